"""Device programs compiled with NVRTC to PTX, on a machine without a device: what --compile of the carrying compares. Of the same PTX ptxas makes the same cubin, in most of
the time that compiling takes."""

import ctypes
import functools
import os
import pathlib

import program_text
from program_text import Trouble


@functools.cache
def library():
    path = os.environ.get("SPARSEK_NVRTC") or "libnvrtc.so"
    try:
        builtins = sorted(pathlib.Path(path).parent.glob("libnvrtc-builtins.so.*")) if "/" in path else []
        for beside in builtins:
            ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(path)
    except OSError as failure:
        raise Trouble(f"NVRTC does not open ({failure}): SPARSEK_NVRTC names one") from failure


def check(result, call):
    if result != 0:
        raise Trouble(f"{call}: NVRTC says {result}")


def compiled(source, name, options):
    """The PTX of the program NAME.cu below the folder `source`."""
    nvrtc, program, path = library(), ctypes.c_void_p(), program_text.find(source, name)
    headers = [file for file in program_text.closure(source, path) if file != path]
    texts = (ctypes.c_char_p * len(headers))(*[file.read_bytes() for file in headers])
    names = (ctypes.c_char_p * len(headers))(*[file.relative_to(source).as_posix().encode() for file in headers])
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), name.encode(), len(headers), texts, names), "nvrtcCreateProgram")
    try:
        words = options.replace("--gpu-architecture=sm_", "--gpu-architecture=compute_").split()
        size = ctypes.c_size_t()
        if nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*[word.encode() for word in words])) != 0:
            check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)), "nvrtcGetProgramLogSize")
            log = ctypes.create_string_buffer(size.value)
            check(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog")
            raise Trouble(f"{path} does not compile with {options}: {log.value.decode(errors='replace').strip()[:400]}")
        check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
        ptx = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetPTX(program, ptx), "nvrtcGetPTX")
        return ptx.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
