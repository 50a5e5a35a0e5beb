#!/usr/bin/python3
"""Reads every program and shared library that a build, an installation or a wheel holds, and fails where one is not as it should be.

    tests/abi/elf.py FILE_OR_FOLDER...    (a folder is searched, but for CMakeFiles)

Each must look for libraries in folders relative to its own file only ($ORIGIN) and name those that it needs without a folder.
"""
import os
import pathlib
import re
import subprocess
import sys


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"LC_ALL": "C"}).stdout


class Elf:
    """What readelf tells of one file."""

    def __init__(self, path):
        self.path = path
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


CHECKS = [search_path]


def faults(path):
    elf = Elf(path)
    return [fault for check in CHECKS for fault in check(elf)]


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
    looked, bad = 0, 0
    for path in files(sys.argv[1:]):
        looked += 1
        for fault in faults(path):
            bad += 1
            print(f"{path}: {fault}")
    print(f"elf: {looked} programs and libraries read, {bad} faults")
    sys.exit(bad > 0 or looked == 0)


if __name__ == "__main__":
    main()
