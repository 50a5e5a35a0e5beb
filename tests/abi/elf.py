#!/usr/bin/python3
"""Reads every program and shared library that a build, an installation or a wheel holds, and fails where one is not as it should be.

    tests/abi/elf.py [--hardened] FILE_OR_FOLDER...    (a folder is searched, but for CMakeFiles)

Each must look for libraries in folders relative to its own file only ($ORIGIN) and name those that it needs without a folder. With --hardened, each must also
be as cmake/SparsekHardening.cmake wants it.
"""
import os
import pathlib
import re
import subprocess
import sys


# What has a checked form. Those that only move memory are left out: their checked form needs the size of the buffer, which the compiler may not see.
CHECKABLE = re.compile(r"^(v?(f|d|s|sn|as|)printf|strn?c(py|at)|stpn?cpy|f?gets|f?read|getcwd|readlink|realpath)$")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}).stdout


class Elf:
    """What readelf tells of one file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.movable = int.from_bytes(file.read(18)[16:], sys.byteorder) == 3  # ET_DYN
        self.segments = re.findall(r"^  (\w+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3})", readelf("-l", path), re.M)
        self.undefined = {name.split("@")[0] for name in re.findall(r" UND (\S+)", readelf("--dyn-syms", path))}
        self.dynamic = re.findall(r"^ 0x[0-9a-f]+ \((\w+)\)\s+(.*)$", readelf("-d", path), re.M)

    def values(self, *tags):
        """Of the entries of the dynamic section with one of these tags: what stands in brackets, else the whole text."""
        found = []
        for tag, text in self.dynamic:
            if tag in tags:
                bracket = re.search(r"\[(.*)\]$", text.strip())
                found.append(bracket.group(1) if bracket else text.strip())
        return found


def search_path(elf):
    """RPATH and RUNPATH. The loader takes an empty entry, or one that is relative, as in the working folder."""
    for value in elf.values("RPATH", "RUNPATH"):
        for entry in value.split(":"):
            if entry != "$ORIGIN" and not entry.startswith("$ORIGIN/"):
                yield f'it looks for libraries in "{entry}" (RUNPATH "{value}"): only folders that begin with $ORIGIN are allowed'
    for name in elf.values("NEEDED"):
        if "/" in name:
            yield f"it needs {name}: a name without a folder is wanted"


def hardening(elf):
    """The processor's protection of indirect branches is no part of it: the linker drops its mark where one input has none."""
    flags = " ".join(elf.values("FLAGS", "FLAGS_1")).split()
    if "GNU_RELRO" not in dict(elf.segments):
        yield "no RELRO: its table of addresses stays writable"
    if "BIND_NOW" not in flags and "NOW" not in flags:
        yield "no BIND_NOW: addresses are looked up while it runs"
    if dict(elf.segments).get("GNU_STACK", "RWE") != "RW ":
        yield "its stack is executable"
    if any("W" in access and "E" in access for kind, access in elf.segments if kind == "LOAD"):
        yield "a segment is writable and executable"
    if not elf.movable:
        yield "a program at a fixed address (no PIE)"
    if elf.values("TEXTREL") or "TEXTREL" in flags:
        yield "its code is changed when it is loaded (TEXTREL)"
    if "__stack_chk_fail" not in elf.undefined:
        yield "no stack protector"
    checked = any(name.startswith("__") and name.endswith("_chk") for name in elf.undefined)
    if not checked and any(map(CHECKABLE.match, elf.undefined)):
        yield "no checked libc calls (_FORTIFY_SOURCE)"


def faults(path, checks):
    elf = Elf(path)
    return [fault for check in checks for fault in check(elf)]


def is_linked(path):
    """Whether it is an ELF file that a linker made (a program or a shared library, not an object)."""
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return len(head) == 18 and head[:4] == b"\x7fELF" and int.from_bytes(head[16:18], sys.byteorder) in (2, 3)


def files(arguments):
    for argument in map(pathlib.Path, arguments):
        if not argument.is_dir():
            yield argument
            continue
        for folder, folders, names in os.walk(argument):
            folders[:] = sorted(name for name in folders if name != "CMakeFiles")
            yield from (path for path in (pathlib.Path(folder, name) for name in sorted(names)) if is_linked(path))


def main():
    looked, bad, arguments = 0, 0, sys.argv[1:]
    checks = [search_path]
    if "--hardened" in arguments:
        arguments.remove("--hardened")
        checks.append(hardening)
    for path in files(arguments):
        looked += 1
        for fault in faults(path, checks):
            bad += 1
            print(f"{path}: {fault}")
    print(f"elf: {looked} programs and libraries read, {bad} faults")
    sys.exit(bad > 0 or looked == 0)


if __name__ == "__main__":
    main()
