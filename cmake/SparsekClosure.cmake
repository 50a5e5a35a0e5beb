# What evidence about kernels is keyed by: a hash of each file of rows over what its rows really use (cmake/evidence/main.c says how).
#
#     cmake -DROOT=src -P cmake/SparsekClosure.cmake    the hash of every file of rows, a line each
cmake_minimum_required(VERSION 3.25)
set(SPARSEK_EVIDENCE_SOURCE ${CMAKE_CURRENT_LIST_DIR}/evidence)

# sparsek_evidence_program(RESULT FOLDER): builds the program that hashes in FOLDER, for the machine that builds, and gives its path.
function(sparsek_evidence_program result folder)
  file(GLOB sources ${SPARSEK_EVIDENCE_SOURCE}/*.c)
  if(CMAKE_C_COMPILER AND NOT CMAKE_CROSSCOMPILING)
    set(compiler ${CMAKE_C_COMPILER})
  else()
    find_program(SPARSEK_HOST_CC NAMES cc gcc clang DOC "A C compiler for the machine that builds")
    set(compiler ${SPARSEK_HOST_CC})
  endif()
  if(NOT compiler)
    message(FATAL_ERROR "The hashes of the kernels' sources are made by a program of this machine: -DSPARSEK_HOST_CC= names a C compiler for it.")
  endif()
  file(MAKE_DIRECTORY ${folder})
  # spk_hash_text is the library's own: the candidates' hashes are made of these with it.
  execute_process(COMMAND ${compiler} -std=gnu11 -O1 -I ${SPARSEK_EVIDENCE_SOURCE}/../../src ${sources} ${SPARSEK_EVIDENCE_SOURCE}/../../src/base/hash.c -o ${folder}/evidence
                  RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "${compiler} cannot build cmake/evidence: ${said}")
  endif()
  set(${result} ${folder}/evidence PARENT_SCOPE)
endfunction()

# sparsek_evidence(RESULT FOLDER ROOT): what the program says of the sources under ROOT, as a list of lines.
function(sparsek_evidence result folder root)
  sparsek_evidence_program(program ${folder})
  execute_process(COMMAND ${program} ${root} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE why OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "The sources of the kernels cannot be hashed: ${why}")
  endif()
  string(REPLACE "\n" ";" lines "${said}")
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  get_filename_component(ROOT ${ROOT} ABSOLUTE)
  execute_process(COMMAND mktemp -d OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  sparsek_evidence(lines ${folder} ${ROOT})
  file(REMOVE_RECURSE ${folder})
  set(text "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^row ([^ ]+) ([^ ]+)")
      string(APPEND text "${CMAKE_MATCH_1} ${CMAKE_MATCH_2}\n")
    endif()
  endforeach()
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo_append "${text}")
endif()
