# What a source folder becomes: an object library, or programs.

# gcc's passes that make code longer even where it is to be short: what moves out of loops or is kept in other registers has to be saved,
# and tables of addresses are longer than comparisons.
set(SINTER_ROOMY -fmove-loop-invariants -ftree-loop-im -ftree-dominator-opts -fcaller-saves -ftree-sra -fipa-sra -fjump-tables)
list(TRANSFORM SINTER_ROOMY REPLACE "^-f" "-fno-" OUTPUT_VARIABLE SINTER_TIGHT)
# What of -O2 makes code longer, and compilations no shorter (2.5 KB).
set(SINTER_NO_GROWTH -freorder-blocks-algorithm=simple -fno-tree-slp-vectorize -fno-tree-vrp)

# sinter_folder(name [extra.c ...]): the object library `name` of name/*.c and name/*/*.c; nothing if there is no source.
function(sinter_folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.c ${PROJECT_SOURCE_DIR}/${name}/*/*.c)
  list(APPEND sources ${ARGN})
  if(sources)
    add_library(${name} OBJECT ${sources})
    target_link_libraries(${name} PRIVATE sinter_flags)
    target_compile_definitions(${name} PRIVATE $<$<BOOL:${WIN32}>:SNT_BUILD>) # SNT_API exports
    # Release builds are for size, but for what sinter_fast names. No exception passes through C: what would unwind it is a tenth of the
    # library; debug builds keep it for backtraces. gcc leaves in loops what takes registers to move, hence code to save them (1 %).
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${SINTER_SMALL};-ffunction-sections;-fdata-sections;-fno-asynchronous-unwind-tables>
      $<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-falign-functions=1;-falign-jumps=1;-falign-labels=1;-falign-loops=1;$<$<BOOL:${SINTER_HAS_ALIGN_DATA}>:-malign-data=abi>;${SINTER_TIGHT}>)
    set_property(GLOBAL APPEND PROPERTY SINTER_OBJECTS $<TARGET_OBJECTS:${name}>)
  endif()
endfunction()

# sinter_fast(glob ...): the files that release builds compile for speed; the other files of a folder, and all of libsinter-runtime, are
# compiled for size.
function(sinter_fast)
  foreach(glob IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${glob})
    set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS
      $<$<AND:$<CONFIG:Release>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,runtime_only>>>:-O2>
      $<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>,$<NOT:$<STREQUAL:$<TARGET_PROPERTY:NAME>,runtime_only>>>:${SINTER_ROOMY};${SINTER_NO_GROWTH}>)
  endforeach()
endfunction()

# sinter_stage_headers(subdir file ...): copies of those files that exist, where #include <subdir/file> finds them.
function(sinter_stage_headers subdir)
  foreach(file IN LISTS ARGN)
    get_filename_component(base ${file} NAME)
    file(GLOB present CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    if(present)
      configure_file(${PROJECT_SOURCE_DIR}/${file} ${SINTER_GENERATED}/include/${subdir}/${base} COPYONLY)
    endif()
  endforeach()
endfunction()

# One relocatable object in which everything but snt_* is local: a program that links libsinter.a sees no internal name.
function(sinter_localised_object out)
  get_property(objects GLOBAL PROPERTY SINTER_OBJECTS)
  set(object ${PROJECT_BINARY_DIR}/sinter_all.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
    COMMAND ${CMAKE_LINKER} -r -o ${object} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    COMMENT "Merging the library into one object")
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${object} PARENT_SCOPE)
endfunction()

# The targets sinter (libsinter.so), sinter_static (libsinter.a) and sinter_internal.
function(sinter_libraries)
  get_property(objects GLOBAL PROPERTY SINTER_OBJECTS)
  add_library(sinter_internal STATIC ${objects})
  add_library(sinter SHARED ${objects})
  set(script ${PROJECT_SOURCE_DIR}/cmake/sinter.map)
  sinter_exports(sinter ${script})
  if(NOT WIN32)
    target_link_options(sinter PRIVATE -Wl,-z,noseparate-code ${SINTER_PACKED_RELOCATIONS})
  endif()
  if(SINTER_SANITIZE OR WIN32)
    # Sanitizers keep their own tables in linked sections, which a relocatable link would merge wrongly; Windows has no hidden names.
    add_library(sinter_static STATIC ${objects})
  else()
    target_link_options(sinter PRIVATE -Wl,--no-undefined)
    sinter_localised_object(merged)
    add_library(sinter_static STATIC ${merged})
  endif()
  set_target_properties(sinter_static PROPERTIES OUTPUT_NAME sinter EXPORT_NAME sinter_static)
  foreach(library sinter sinter_static sinter_internal)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(${library} PUBLIC m ${CMAKE_DL_LIBS} PRIVATE $<BUILD_INTERFACE:sinter_flags>)
    target_include_directories(${library} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/api/include> $<BUILD_INTERFACE:${SINTER_GENERATED}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()
endfunction()

# sinter_host: the part that may use files, environment, processes and threads; the library itself may not.
function(sinter_host_library)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/host/*.c)
  if(sources)
    sinter_embed_texts(tools/host/*.hpp ${SINTER_GENERATED}/host_texts.c HEADER tools/host/host_texts.h
      TYPE host_text TABLE host_texts COUNT host_text_count)
    add_library(sinter_host STATIC ${sources} ${SINTER_GENERATED}/host_texts.c)
    target_compile_definitions(sinter_host PRIVATE _DEFAULT_SOURCE)
    target_link_libraries(sinter_host PUBLIC sinter_internal Threads::Threads m ${CMAKE_DL_LIBS} PRIVATE sinter_flags)
  endif()
endfunction()

# sinter_programs(DIR d OUT o [NAME n] [LINK ...] [EXTRA file.c ...]): each file with a main() is a program in <build>/o, named after the file, or n;
# the folder's files without one are linked into each.
function(sinter_programs)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "DIR;OUT;NAME" "LINK;EXTRA")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_DIR}/*.c)
  string(REPLACE "/" "_" prefix ${arg_DIR})
  set(mains "")
  foreach(source IN LISTS sources)
    file(STRINGS ${source} has_main REGEX "^int main\\(")
    if(has_main)
      list(APPEND mains ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${mains})
  list(APPEND sources ${arg_EXTRA})
  if(mains AND sources)
    add_library(${prefix}_shared OBJECT ${sources})
    sinter_program_settings(${prefix}_shared ${arg_LINK})
  endif()
  foreach(source IN LISTS mains)
    get_filename_component(name ${source} NAME_WE)
    set(target ${prefix}_${name})
    add_executable(${target} ${source})
    sinter_program_settings(${target} ${arg_LINK})
    if(sources)
      target_link_libraries(${target} PRIVATE ${prefix}_shared)
    endif()
    if(arg_NAME)
      set(name ${arg_NAME})
    endif()
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${arg_OUT})
  endforeach()
endfunction()

function(sinter_program_settings target)
  target_compile_definitions(${target} PRIVATE _DEFAULT_SOURCE CL_TARGET_OPENCL_VERSION=120)
  target_include_directories(${target} SYSTEM PRIVATE ${SINTER_OPENCL_INCLUDE})
  target_link_libraries(${target} PRIVATE $<TARGET_NAME_IF_EXISTS:sinter_host> $<TARGET_NAME_IF_EXISTS:sinter_onnx_internal> sinter_internal Threads::Threads ${ARGN} sinter_flags)
endfunction()

# sinter_fuzzers(name ...): tests/fuzz_<name> for libFuzzer, or with a driver of our own; all of them: the target fuzzers.
function(sinter_fuzzers)
  list(TRANSFORM ARGN PREPEND fuzz_ OUTPUT_VARIABLE targets)
  add_custom_target(fuzzers DEPENDS ${targets})
  foreach(fuzzer IN LISTS ARGN)
    set(target fuzz_${fuzzer})
    add_executable(${target} tests/fuzz/${fuzzer}.c tests/fuzz/mutate.c $<$<STREQUAL:${fuzzer},onnx>:tests/fuzz/onnx_import.c>)
    sinter_program_settings(${target})
    target_link_libraries(${target} PRIVATE $<$<STREQUAL:${fuzzer},grown>:conformance_shared> $<$<STREQUAL:${fuzzer},onnx>:sinter_pictures>)
    if(SINTER_FUZZERS)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
      target_sources(${target} PRIVATE tests/fuzz/driver.c)
    endif()
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  endforeach()
endfunction()
