# Install rules: library, header, command line, pkg-config file, CMake package.
install(TARGETS sparsek EXPORT sparsek-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sparsek_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sparsek_prover RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sparsek)
install(FILES include/sparsek/sparsek.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sparsek)
install(EXPORT sparsek-targets NAMESPACE sparsek:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)

configure_package_config_file(cmake/sparsek-config.cmake.in ${PROJECT_BINARY_DIR}/sparsek-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sparsek-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sparsek-config.cmake ${PROJECT_BINARY_DIR}/sparsek-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)

# The prefix is found from the file's own place, as cmake --install --prefix may choose another than the build did.
file(RELATIVE_PATH SPARSEK_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/sparsek.pc.in ${PROJECT_BINARY_DIR}/sparsek.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sparsek.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Manual pages, where scdoc is there to make them.
find_program(SCDOC scdoc)
file(GLOB man_sources CONFIGURE_DEPENDS docs/man/*.scd)
if(SCDOC AND man_sources)
  foreach(source IN LISTS man_sources)
    get_filename_component(page ${source} NAME_WLE)
    add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/${page} COMMAND ${SCDOC} < ${source} > ${PROJECT_BINARY_DIR}/${page} DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${PROJECT_BINARY_DIR}/${page})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
