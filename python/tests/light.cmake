# A toolchain that optimises little, whatever a file asks for: for tests of the package, to which its kernels' speed does not matter.
set(CMAKE_C_COMPILE_OBJECT "<CMAKE_C_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -Og -o <OBJECT> -c <SOURCE>")
