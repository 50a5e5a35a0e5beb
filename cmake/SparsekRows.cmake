# How files of rows are compiled, and how device code comes into a library.
include(SparsekClosure)
set(SPARSEK_SOURCE_ROOT ${PROJECT_SOURCE_DIR}/src)

# sparsek_row_options(RESULT FILE): sets the properties of a file of rows, in the directory that calls. RESULT: the files that its hash is over.
# A kernel file's ISA is in its name. The hash of its sources (cmake/SparsekClosure.cmake) goes into the tuning evidence and the proofs, so that these go stale
# when the code behind them changes, the host's as well: it says what is launched, and on what.
function(sparsek_row_options result kernel)
  sparsek_row_sources(files ${SPARSEK_SOURCE_ROOT} ${kernel})
  sparsek_hash_files(hash ${SPARSEK_SOURCE_ROOT} ${files})
  set(${result} "${files}" PARENT_SCOPE)
  set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_DEFINITIONS SPK_SOURCE_HASH="${hash}")
  get_filename_component(stem ${kernel} NAME_WE)
  if(kernel MATCHES "/kernels/")
    if(SPARSEK_FUZZ) # the fuzzers are for the readers: kernels under instrumentation would only cost minutes of compiling
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -O0 -fno-sanitize=all)
    elseif(CMAKE_BUILD_TYPE STREQUAL "Debug") # for the sanitizers and valgrind: more takes minutes of compiling, and what such pointers reach is seen by the address sanitizer too
      set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS -O1 -g1 -ffp-contract=fast -fno-sanitize=null,object-size,pointer-overflow)
      if(SPARSEK_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU") # checks as calls, not in place: a third less of compiling
        set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS --param=asan-instrumentation-with-call-threshold=0)
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
  if(stem MATCHES "_bf16_avx512$|^attention_bf16_amx$") # their rows ask for it
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
  add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -DROOT=${SPARSEK_SOURCE_ROOT} -DLIST=${list_file} -DOUTPUT=${output} -P ${here}/SparsekEmbed.cmake
                     DEPENDS ${ARGN} ${list_file} ${here}/SparsekEmbed.cmake ${here}/SparsekClosure.cmake VERBATIM)
endfunction()
