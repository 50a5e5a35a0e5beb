# How files of rows are compiled, and how device code comes into a library.
include(SparsekClosure)
set(SPARSEK_SOURCE_ROOT ${PROJECT_SOURCE_DIR}/src)

# What evidence is keyed by: SPARSEK_HASH_<path of a file of rows>, and build/evidence/hashes.txt, which the embedded programs read theirs from.
sparsek_evidence(lines ${PROJECT_BINARY_DIR}/evidence ${SPARSEK_SOURCE_ROOT})
set(hashes "")
set(files "")
foreach(line IN LISTS lines)
  if(line MATCHES "^row [^ ]+ ([^ ]+) (.+)$")
    set(SPARSEK_HASH_${CMAKE_MATCH_2} ${CMAKE_MATCH_1})
  elseif(line MATCHES "^file (.+)$")
    list(APPEND files ${SPARSEK_SOURCE_ROOT}/${CMAKE_MATCH_1})
  else()
    string(APPEND hashes "${line}\n")
  endif()
endforeach()
set(SPARSEK_PROGRAM_HASHES ${PROJECT_BINARY_DIR}/evidence/hashes.txt)
file(CONFIGURE OUTPUT ${SPARSEK_PROGRAM_HASHES} CONTENT "${hashes}" @ONLY) # rewritten only where it differs
file(GLOB tool ${SPARSEK_EVIDENCE_SOURCE}/*.[ch])
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files} ${tool})

# Whether kernels of AVX-512 can run on this machine, where it says.
set(SPARSEK_HAS_AVX512 ON)
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo flags REGEX "^flags.* avx512bw( |$)" LIMIT_COUNT 1)
  if(NOT flags)
    set(SPARSEK_HAS_AVX512 OFF)
  endif()
endif()

# sparsek_row_options(FILE): sets the properties of a file of rows, in the directory that calls. A kernel file's ISA is in its name. The hash of what its rows use
# (cmake/evidence) goes into the tuning evidence and the proofs, so that these go stale when the code behind them changes, the host's as well: it says what
# is launched, and on what. A file from elsewhere, of tests, has the hash of its bytes.
function(sparsek_row_options kernel)
  file(RELATIVE_PATH name ${SPARSEK_SOURCE_ROOT} ${kernel})
  set(hash "${SPARSEK_HASH_${name}}")
  if(name MATCHES "^\\.\\.")
    file(SHA256 ${kernel} hash)
    string(SUBSTRING ${hash} 0 16 hash)
  endif()
  if(hash)
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_DEFINITIONS SPK_SOURCE_HASH="${hash}")
  endif()
  get_filename_component(stem ${kernel} NAME_WE)
  if(kernel MATCHES "/kernels/")
    if(SPARSEK_FUZZ) # the fuzzers are for the readers: kernels under instrumentation would only cost minutes of compiling
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -O0 -fno-sanitize=all)
    elseif(CMAKE_BUILD_TYPE STREQUAL "Debug") # for the sanitizers and valgrind: more takes minutes of compiling, and what such pointers reach is seen by the address sanitizer too
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -O1 -g1 -ffp-contract=fast -fno-sanitize=null,object-size,pointer-overflow)
      if(SPARSEK_SANITIZE) # half of the compiling; the runs are small
        set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -Og)
      endif()
      # Checks as calls, not in place, and undefined behaviour ends the program (SIGILL; a debugger shows the line) without a message: half of what is left.
      if(SPARSEK_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS --param=asan-instrumentation-with-call-threshold=0 -fsanitize-undefined-trap-on-error)
      endif()
      if(SPARSEK_SANITIZE AND kernel MATCHES "_(avx512|amx)\\.c$" AND NOT SPARSEK_HAS_AVX512) # it cannot run here
        set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
      endif()
    else()
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=fast)
    endif()
  endif()
  if(stem MATCHES "_avx2$")
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
  elseif(stem MATCHES "_(avx512|amx)$")
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
  endif()
  if(stem MATCHES "_bf16_neon$") # their rows ask for it
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -march=armv8.2-a+bf16)
  endif()
  if(stem MATCHES "_bf16_avx512$|^attention_(backward_)?bf16_amx$") # their rows ask for it
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -mavx512bf16)
  endif()
  if(stem MATCHES "_amx$") # their rows ask for AMX
    if(SPARSEK_EMULATE_TILES)
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_DEFINITIONS SPK_TILES_EMULATED=1)
    else()
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -mamx-tile -mamx-bf16)
    endif()
  endif()
  if(stem MATCHES "(_half_|^sddmm_|^gemm_).*avx") # their rows ask for it
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -mf16c)
  endif()
endfunction()

# sparsek_embed(OUTPUT FILE...): the C file OUTPUT with the device code of the files as text.
function(sparsek_embed output)
  set(list "")
  foreach(file IN LISTS ARGN)
    file(RELATIVE_PATH name ${SPARSEK_SOURCE_ROOT} ${file})
    string(REGEX REPLACE "^.*/([^/]+\\.cu)$" "\\1" name ${name})
    string(APPEND list "${name}=${file}\n")
  endforeach()
  cmake_path(REPLACE_EXTENSION output LAST_ONLY list OUTPUT_VARIABLE list_file)
  file(CONFIGURE OUTPUT ${list_file} CONTENT "${list}" @ONLY) # rewritten only where it differs
  set(here ${PROJECT_SOURCE_DIR}/cmake)
  add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -DHASHES=${SPARSEK_PROGRAM_HASHES} -DLIST=${list_file} -DOUTPUT=${output} -P ${here}/SparsekEmbed.cmake
                     DEPENDS ${ARGN} ${list_file} ${SPARSEK_PROGRAM_HASHES} ${here}/SparsekEmbed.cmake VERBATIM)
endfunction()
