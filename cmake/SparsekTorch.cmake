# TORCH_ROOT: the installed torch, whose headers and libraries the Python package's extension is built with. An isolated build does not see it as a
# module, but it is on disk: in the interpreter's own folders, or where TORCH_ROOT says.
if(NOT TORCH_ROOT)
  execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/find_torch.py OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed)
  if(failed OR NOT found)
    message(FATAL_ERROR "No torch is installed for ${Python_EXECUTABLE}. Install it first (pip install torch, 2.10 or later), or name its folder: "
                        "TORCH_ROOT=/path/to/site-packages/torch pip install .")
  endif()
  set(TORCH_ROOT ${found})
endif()
if(NOT EXISTS ${TORCH_ROOT}/include/torch/csrc/stable/library.h)
  message(FATAL_ERROR "${TORCH_ROOT} has no include/torch/csrc/stable/library.h: torch 2.10 or later is needed")
endif()
message(STATUS "torch: ${TORCH_ROOT}")
