#!/usr/bin/env python3
"""Compiles a device program for the host, and prints the shared object's name: what nvrtc_double.c calls.

    tests/on_host/compile.py NAME.cu [-DNAME=VALUE ...]

$SPARSEK_ON_HOST_FOLDER: where objects are kept (default: build/on-host). $SPARSEK_ON_HOST_FLAGS: more words for g++, such as -fsanitize=address.
Headers that hold instructions alone are replaced whole (tensor.hpp, halves.hpp); INSTRUCTIONS lists single ones in headers that hold more.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CUDA = ROOT / "src" / "backend" / "cuda"
ENTRY = re.compile(r'extern "C" __global__ void\s+__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*(\w+)\s*\(')
INSTRUCTIONS = {
    "device/common/number.cuh": {'asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));': "y = _cvtsh_ss(x.bits);",
                                 'asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y->bits) : "f"(x));': "y->bits = _cvtss_sh(x, 0);"},
    "device/attention/softmax.cuh": {'asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = std::exp2(x);",
                                     'asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));': "y = 1 / x;"},
    "device/attention/attention_store.cuh": {
        'asm volatile("{\\n\\t.reg .pred p;\\n\\tsetp.ne.u32 p, %5, 0;\\n\\t@p st.global.v4.b32 [%0], {%1, %2, %3, %4};\\n\\t}" ::"l"(to), "r"(x[0]),\n'
        '                 "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"((unsigned)there)\n                 : "memory");': "if (there) memcpy(to, x, 16);"}}


def instructions_replaced(folder):
    for name, replaced in INSTRUCTIONS.items():
        text = (CUDA / name).read_text(encoding="utf-8")
        for instruction, on_host in replaced.items():
            if instruction not in text:
                sys.exit(f"{name} has no {instruction}")
            text = text.replace(instruction, on_host)
        to = folder / "backend" / "cuda" / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="utf-8")


def program_of(source):
    """The text that is compiled: a runner for each entry, which takes a launch's parameters. Static shared memory is a static array."""
    text = source.read_text(encoding="utf-8")
    runners = "".join(f'extern "C" __attribute__((visibility("default"))) void run_{entry}(void **parameters, unsigned grid, unsigned threads)\n'
                      f"{{\n    on_host::launch({entry}, parameters, grid, threads);\n}}\n" for entry in ENTRY.findall(text))
    fixed = "" if "extern __shared__" in text else "#undef __shared__\n#define __shared__ static\n"
    return f'#include <immintrin.h>\n#include "on_host/halves.hpp"\n{fixed}#include "{source.relative_to(ROOT / "src")}"\n{runners}'


def compiled(name, options):
    source = next(iter(CUDA.glob(f"*/{name}")), None)
    if source is None:
        sys.exit(f"no device program is named {name}")
    flags = os.environ.get("SPARSEK_ON_HOST_FLAGS", "").split()
    sources = [*CUDA.rglob("*.cuh"), *CUDA.rglob("*.h"), *CUDA.rglob("*.cu"), *pathlib.Path(__file__).parent.iterdir()]
    stamp = max(file.stat().st_mtime_ns for file in sources if file.is_file())
    kept = pathlib.Path(os.environ.get("SPARSEK_ON_HOST_FOLDER", ROOT / "build" / "on-host"))
    made = kept / (hashlib.sha256(repr((name, options, flags, stamp)).encode()).hexdigest()[:24] + ".so")
    if made.exists():
        return made
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        work = pathlib.Path(folder)
        instructions_replaced(work)
        (work / "program.cpp").write_text(program_of(source), encoding="utf-8")
        command = ["g++", "-shared", "-fPIC", "-O1", "-g", "-std=c++17", "-w", "-mf16c", "-U_FORTIFY_SOURCE", "-fvisibility=hidden", f"-I{work}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}",
                   f"-I{ROOT / 'tests'}", *flags, *options, str(work / "program.cpp"), "-o", str(work / "program.so")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr[:3000])
        os.replace(work / "program.so", made)
    return made


if __name__ == "__main__":
    print(compiled(sys.argv[1], sys.argv[2:]))
