# `cmake --install`: the command, its manual page, the two libraries with headers, a package
# (find_package(fusec) gives fusec::fusec and fusec::fuse_rt) and pkg-config files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(fuse_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fusec)
foreach(library libfusec fuse_rt)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${library} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN")
  # A symbol that nobody defines is an error here, not in the program of a user.
  target_link_options(${library} PRIVATE -Wl,--no-undefined)
endforeach()
set_target_properties(libfusec PROPERTIES OUTPUT_NAME fusec EXPORT_NAME fusec)
install(FILES include/fusec.h include/fuse_rt.h include/dlpack.h TYPE INCLUDE)

set_target_properties(fusec PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS fusec RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_BINARY_DIR}/tools/fusec.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(TARGETS libfusec fuse_rt EXPORT fusec-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT fusec-targets NAMESPACE fusec:: DESTINATION ${fuse_package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/fusec-config.cmake.in
  ${CMAKE_BINARY_DIR}/fusec-config.cmake INSTALL_DESTINATION ${fuse_package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/fusec-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fusec-config.cmake ${CMAKE_BINARY_DIR}/fusec-config-version.cmake
  DESTINATION ${fuse_package_dir})

function(fuse_install_pkgconfig name description)
  set(PC_NAME ${name})
  set(PC_DESCRIPTION ${description})
  # Relative, so that the installed tree may be moved.
  file(RELATIVE_PATH PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/library.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
fuse_install_pkgconfig(fusec "compiler for block-level tensor kernels")
fuse_install_pkgconfig(fuse_rt "run time for kernels compiled by fusec")
