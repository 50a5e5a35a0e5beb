# SPARSEK_COMMIT: the revision at configure time, "unknown" outside a checkout.
find_package(Git QUIET)
set(SPARSEK_COMMIT "unknown")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE sparsek_describe
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE sparsek_git)
  if(sparsek_git EQUAL 0)
    set(SPARSEK_COMMIT "${sparsek_describe}")
  endif()
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/.git/logs/HEAD")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/.git/logs/HEAD")
  endif()
endif()
