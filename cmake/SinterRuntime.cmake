# libsinter-runtime: load a program, attach to the host's device, record; no compiler, no drivers of its own. The list below is all of it: where
# one of these files would call the compiler, runtime_only/ answers. Small is the point: -Oz, no unwind tables, and what no exported function
# (cmake/sinter-runtime.symbols) needs is dropped.
set(SINTER_RUNTIME_SOURCES
  api/blob_load.c api/constants.c api/context.c api/device.c api/exec.c api/pack.c api/program_query.c api/store.c
  cost_targets/mask.c
  door/door_binding.c door/door_check.c door/door_describe.c door/door_device.c door/door_exec.c door/door_features.c door/door_format.c door/door_memory.c
  door/door_ports.c door/door_record.c door/door_slots.c door/door_steps.c
  ir/base/arena.c ir/graph/dtype.c ir/expr/expr.c ir/expr/copy.c ir/expr/div.c ir/expr/prove.c ir/expr/query.c ir/expr/sum.c ir/expr/text.c
  ir/graph/lex.c ir/graph/parse.c ir/graph/text.c ir/graph/graph.c ir/base/literal.c ir/graph/making.c ir/plan/plan.c ir/plan/parse.c ir/plan/print.c ir/plan/verify.c ir/base/sha256.c
  ir/base/text.c
  runtime/rt_common.c runtime/rt_system.c runtime/vulkan/profile.c runtime/vulkan/units.c
  runtime_only/profile_names.c runtime_only/without_compiler.c)

function(sinter_runtime_libraries)
  set(names ${PROJECT_SOURCE_DIR}/cmake/sinter-runtime.symbols)
  file(STRINGS ${names} symbols)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${names})
  list(JOIN symbols "; " exported)
  set(script ${SINTER_GENERATED}/sinter-runtime.map)
  file(CONFIGURE OUTPUT ${script} CONTENT "{\n  global: ${exported};\n  local: *;\n};\n")

  add_library(runtime_only OBJECT ${SINTER_RUNTIME_SOURCES})
  target_link_libraries(runtime_only PRIVATE sinter_flags)
  target_include_directories(runtime_only SYSTEM PRIVATE ${SINTER_VULKAN_INCLUDE})
  target_compile_definitions(runtime_only PRIVATE _POSIX_C_SOURCE=200809L EXPR_KNOWN=0)
  target_compile_options(runtime_only PRIVATE -ffunction-sections -fdata-sections
    $<$<NOT:$<CONFIG:Debug>>:${SINTER_SMALL} -fno-asynchronous-unwind-tables>
    $<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:${SINTER_TIGHT}>)
  set(objects $<TARGET_OBJECTS:runtime_only>)

  add_library(sinter_runtime SHARED ${objects})
  sinter_exports(sinter_runtime ${script})
  if(WIN32)
    list(JOIN symbols "\n  " exported)
    file(CONFIGURE OUTPUT ${SINTER_GENERATED}/sinter-runtime.def CONTENT "EXPORTS\n  ${exported}\n")
    target_sources(sinter_runtime PRIVATE ${SINTER_GENERATED}/sinter-runtime.def)
  else()
    target_link_options(sinter_runtime PRIVATE -Wl,-z,noseparate-code ${SINTER_PACKED_RELOCATIONS})
  endif()
  if(SINTER_SANITIZE OR WIN32)
    add_library(sinter_runtime_static STATIC ${objects})
    target_link_options(sinter_runtime_static PUBLIC -Wl,--gc-sections)
  else()
    target_link_options(sinter_runtime PRIVATE -Wl,--no-undefined)
    list(TRANSFORM symbols PREPEND "--undefined=" OUTPUT_VARIABLE roots)
    set(object ${PROJECT_BINARY_DIR}/sinter_runtime_all.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
      COMMAND ${CMAKE_LINKER} -r --gc-sections ${roots} -o ${object} ${objects}
      COMMAND ${CMAKE_OBJCOPY} --localize-hidden --strip-unneeded ${object}
      COMMENT "Merging the runtime library into one object")
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    add_library(sinter_runtime_static STATIC ${object})
  endif()
  set_target_properties(sinter_runtime_static PROPERTIES EXPORT_NAME sinter_runtime_static)
  foreach(library sinter_runtime sinter_runtime_static)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME sinter-runtime)
    target_link_libraries(${library} PRIVATE m $<BUILD_INTERFACE:sinter_flags>)
    target_include_directories(${library} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/api/include> $<BUILD_INTERFACE:${SINTER_GENERATED}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
  install(TARGETS sinter_runtime sinter_runtime_static EXPORT sinterTargets)
  configure_file(cmake/sinter-runtime.pc.in ${SINTER_GENERATED}/sinter-runtime.pc @ONLY)
  install(FILES ${SINTER_GENERATED}/sinter-runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# examples/saved: an application that has nothing but the runtime library.
function(sinter_runtime_example)
  add_executable(examples_saved examples/saved/saved.c)
  target_link_libraries(examples_saved PRIVATE sinter_runtime ${CMAKE_DL_LIBS} sinter_flags)
  target_compile_definitions(examples_saved PRIVATE _DEFAULT_SOURCE)
  set_target_properties(examples_saved PROPERTIES OUTPUT_NAME saved RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endfunction()
