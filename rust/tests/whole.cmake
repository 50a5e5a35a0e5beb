# A toolchain that reads each source and all that it includes, and makes empty objects: for a build that proves that the sources are whole,
# and links nothing. What CMake tries out is compiled as ever: the answers are the true ones.
get_property(trying GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT trying)
  set(CMAKE_C_COMPILE_OBJECT
      "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O0 -U_FORTIFY_SOURCE -fsyntax-only <SOURCE>"
      "as -o <OBJECT> /dev/null")
endif()
