# The installed tree: headers and operator tables, both libraries, the tool, and the two ways to find them (pkg-config, CMake).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinter)

install(DIRECTORY api/include/sinter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(table IN LISTS SINTER_TABLES)
  install(FILES ${table} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sinter OPTIONAL)
endforeach()
install(TARGETS sinter sinter_static EXPORT sinterTargets)
if(TARGET tools_sinter_main)
  install(TARGETS tools_sinter_main conformance_main)
endif()
install(EXPORT sinterTargets NAMESPACE sinter:: DESTINATION ${package_dir})

configure_package_config_file(cmake/sinterConfig.cmake.in ${SINTER_GENERATED}/sinterConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${SINTER_GENERATED}/sinterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${SINTER_GENERATED}/sinterConfig.cmake ${SINTER_GENERATED}/sinterConfigVersion.cmake DESTINATION ${package_dir})

configure_file(cmake/sinter.pc.in ${SINTER_GENERATED}/sinter.pc @ONLY)
install(FILES ${SINTER_GENERATED}/sinter.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
