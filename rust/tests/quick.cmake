# A toolchain that does not optimise, whatever a file asks for (and so has no checked libc calls): for a build that proves that the sources are whole.
set(CMAKE_C_COMPILE_OBJECT "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -O0 -U_FORTIFY_SOURCE -o <OBJECT> -c <SOURCE>")
