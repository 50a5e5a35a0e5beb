#!/usr/bin/python3
"""Each header of the CPU's kernels compiles alone: as it is, and a template for each type and instruction set.

    tests/abi/templates.py [NAME]     NAME: headers whose path has it; all

A header that is for some instances says so by an #error, "NAME is for TYPE ...", in the others.
"""

import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KERNELS = ROOT / "src" / "backend" / "cpu" / "kernels"
TYPES = ("F32", "F64", "F16", "BF16")
NATIVE = "gcc"
CROSS = "aarch64-linux-gnu-gcc"
AVX2 = "-mavx2 -mfma -mf16c"
AVX512 = f"{AVX2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mamx-tile -mamx-bf16"
NEON = "-march=armv8.2-a+bf16"
# Functions of a template are static, and nobody calls them here.
OPTIONS = (
    '-std=gnu11 -x c -fsyntax-only -DSPK_SOURCE_HASH="" -Isrc -Iinclude -Wall -Wextra -Wno-unused '
    "-Werror=implicit-function-declaration -Werror=implicit-int -Werror=int-conversion -Werror=incompatible-pointer-types"
)

Instance = collections.namedtuple("Instance", "compiler options")


def compilers():
    """(by what a header is compiled alone, its options), of those that are here."""
    host = os.uname().machine
    if host == "aarch64":
        return [("PORTABLE", NATIVE, ""), ("NEON", NATIVE, NEON)]
    found = [("PORTABLE", NATIVE, ""), ("AVX2", NATIVE, AVX2), ("AVX512", NATIVE, AVX512)] if host == "x86_64" else [("PORTABLE", NATIVE, "")]
    if shutil.which(CROSS):
        return [*found, ("NEON", CROSS, NEON)]
    print(f"templates: no {CROSS} here: NEON is not compiled")
    return found


def is_template(text):
    return re.search(r"\b[TS]\(\w+\)|\bREAL\b|\bSTORED\b|vectors/instance\.h", text) is not None


def instances(text):
    """What a header of this text is compiled for."""
    yield Instance(NATIVE, "")
    if not is_template(text):
        return
    for isa, compiler, options in compilers_here:
        for type_ in TYPES:
            yield Instance(compiler, f"-DTYPE={type_} -DISA={isa} {options}")
        if isa == "AVX512" and re.search(r"^#if !?(TILE_)?PAIRED", text, re.MULTILINE):
            yield Instance(compiler, f"-DTYPE=BF16 -DISA={isa} -DTILE_PAIRED=1 -DPAIRED=1 {options}")
            yield Instance(compiler, f"-DTYPE=BF16 -DISA={isa} -DPAIRED=1 -DTILES=1 {options}")


def compile_alone(header, instance):
    """None: it compiles; else why it does not."""
    source = f'#include "{header.relative_to(ROOT / "src")}"\n'
    command = [instance.compiler, *OPTIONS.split(), *instance.options.split(), "-"]
    done = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def main():
    headers = [path for path in sorted(KERNELS.rglob("*.h")) if not sys.argv[1:] or sys.argv[1] in str(path)]
    if not headers:
        sys.exit(f"templates: no header of {KERNELS.relative_to(ROOT)} is named {sys.argv[1]}")
    work = [(header, instance) for header in headers for instance in instances(header.read_text())]
    compiled, failed = collections.Counter(), False
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (header, instance), why in zip(work, pool.map(lambda one: compile_alone(*one), work), strict=True):
            name = header.relative_to(ROOT)
            compiled[name] += why is None
            if why is not None and not re.search(r'#error "\S+ is for ', why):
                errors = [line for line in why.splitlines() if "error" in line]
                print(f"{name} does not compile alone: {instance.compiler} {instance.options}", *errors[:5], sep="\n    ")
                failed = True
    for header in headers:
        if compiled[header.relative_to(ROOT)] == 0:
            for_another = "ISA NEON" in header.read_text(encoding="utf-8") and not any(isa == "NEON" for isa, _, _ in compilers_here)
            print(f"{header.relative_to(ROOT)} {'is not compiled' if for_another else 'compiles for no instance'}")
            failed |= not for_another
    if failed:
        sys.exit(1)
    print(f"templates: {len(headers)} headers compile alone, {compiled.total()} times")


compilers_here = compilers()
main()
