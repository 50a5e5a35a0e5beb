# Install rules: library, headers, command line, pkg-config file, CMake package.
install(TARGETS sparsek EXPORT sparsek-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sparsek_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sparsek_prover RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sparsek)
install(FILES share/bundle.db share/programs.db DESTINATION ${CMAKE_INSTALL_DATADIR}/sparsek) # found from the library (src/store/store_layers.c, src/backend/cuda/runtime/shipped.c)
install(DIRECTORY include/sparsek DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT sparsek-targets NAMESPACE sparsek:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)
if(SPARSEK_STATIC)
  install(TARGETS sparsek_static EXPORT sparsek-static-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT sparsek-static-targets NAMESPACE sparsek:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)
endif()

configure_package_config_file(cmake/sparsek-config.cmake.in ${PROJECT_BINARY_DIR}/sparsek-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sparsek-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sparsek-config.cmake ${PROJECT_BINARY_DIR}/sparsek-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sparsek)

# The prefix is found from the file's own place, as cmake --install --prefix may choose another than the build did.
file(RELATIVE_PATH SPARSEK_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(JOIN SPARSEK_STATIC_PACKAGES " " SPARSEK_PC_PACKAGES)
list(TRANSFORM SPARSEK_STATIC_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE SPARSEK_PC_LIBRARIES)
list(JOIN SPARSEK_PC_LIBRARIES " " SPARSEK_PC_LIBRARIES)
configure_file(cmake/sparsek.pc.in ${PROJECT_BINARY_DIR}/sparsek.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sparsek.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The licence, and the list of what is linked and what is opened (SPDX), with the licences of that.
configure_file(cmake/sparsek.spdx.in ${PROJECT_BINARY_DIR}/sparsek.spdx @ONLY)
install(FILES LICENSE ${PROJECT_BINARY_DIR}/sparsek.spdx DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Manual pages, where scdoc is there to make them: the program's own, and one for each command, which the program writes from its tables of options.
set(commands info bench tune explain compute inspect convert gen check regret store)
find_program(SCDOC scdoc)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR OR SPARSEK_SANITIZE)
  set(runs_here OFF)
else()
  set(runs_here ON)
endif()
if(SCDOC)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/sparsek.1 COMMAND ${SCDOC} < ${PROJECT_SOURCE_DIR}/docs/man/sparsek.1.scd > ${PROJECT_BINARY_DIR}/sparsek.1
                     DEPENDS docs/man/sparsek.1.scd VERBATIM)
  set(man_pages ${PROJECT_BINARY_DIR}/sparsek.1)
  foreach(command IN LISTS commands)
    if(runs_here)
      set(page ${PROJECT_BINARY_DIR}/sparsek-${command}.1)
      add_custom_command(OUTPUT ${page} COMMAND sparsek_cli help --format scd ${command} > ${page}.scd COMMAND ${SCDOC} < ${page}.scd > ${page} DEPENDS sparsek_cli VERBATIM)
      list(APPEND man_pages ${page})
    endif()
  endforeach()
  add_custom_target(sparsek_man ALL DEPENDS ${man_pages})
  install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

# Completion of command lines, which the program writes too.
if(runs_here)
  foreach(shell IN ITEMS bash zsh fish)
    set(script ${PROJECT_BINARY_DIR}/completion/${shell})
    add_custom_command(OUTPUT ${script} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completion
                       COMMAND sparsek_cli completion ${shell} > ${script} DEPENDS sparsek_cli VERBATIM)
    list(APPEND completion_scripts ${script})
  endforeach()
  add_custom_target(sparsek_completion ALL DEPENDS ${completion_scripts})
  install(FILES ${PROJECT_BINARY_DIR}/completion/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sparsek)
  install(FILES ${PROJECT_BINARY_DIR}/completion/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _sparsek)
  install(FILES ${PROJECT_BINARY_DIR}/completion/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME sparsek.fish)
endif()
