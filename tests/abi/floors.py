#!/usr/bin/python3
"""Refuses an include or a call from a folder of src/ to one that stands on a higher floor, and what programs include beyond their share.

    tests/abi/floors.py [BUILD]     includes by reading the sources; calls by the symbols of the object files of BUILD, a build folder
    tests/abi/floors.py --test      the script itself, on small trees with one fault each
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# The floors, the lowest first, as in docs/design.md. Rooms of one line stand beside each other: neither uses the other. A room is a folder with all that is
# below it, but for what is a room of its own.
FLOORS = """
base
known type
matrix
matrix/io
op
backend
kernel
backend/cpu backend/cuda
backend/cpu/kernels/attention backend/cpu/kernels/gemm backend/cpu/kernels/sddmm backend/cpu/kernels/spmm
registry
store
tune/measure
tune/search
tune/choose
tune/trial
api
"""

# What sources outside of src/ may include of it. The public header is for all.
OUTSIDE = {"cli": "base type", "prover": "base type backend/cuda", "python/src": "", "examples": ""}

# Made by the build, not found in src/: the device code as text.
GENERATED = {"embedded.c": "backend/cuda"}

FLOOR = {room: height for height, line in enumerate(FLOORS.split("\n")) for room in line.split()}


def room_of(file):
    """Of a path relative to src/, None where no room holds it."""
    if file in GENERATED:
        return GENERATED[file]
    folders = [str(folder) for folder in pathlib.PurePosixPath(file).parents]
    return next((folder for folder in folders if folder in FLOOR), None)


def may_use(room, other):
    return room == other or FLOOR[other] < FLOOR[room]


def includes(path):
    """Line by line: (number, name in quotes)."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".h", ".def", ".cu", ".cuh", ".cpp"))


def find_include(root, path, name):
    """The path relative to src/ of what is included, None where it is not of src/."""
    source = root / "src"
    for folder in (path.parent, source):
        file = (folder / name).resolve()
        if file.is_file():
            return str(file.relative_to(source.resolve())) if file.is_relative_to(source.resolve()) else None
    return None


def check_includes(root):
    """Yields (place, what is wrong)."""
    source = root / "src"
    for path in sources(source):
        file = str(path.relative_to(source))
        room = room_of(file)
        if room is None:
            yield f"src/{file}", "is in no room of the list of floors"
            continue
        for number, name in includes(path):
            target = find_include(root, path, name)
            other = room_of(target) if target is not None else None
            if other is not None and not may_use(room, other):
                yield f"src/{file}:{number}", f"{room} includes {target} of {other}"
    for folder, allowed in OUTSIDE.items():
        for path in sources(root / folder) if (root / folder).is_dir() else []:
            for number, name in includes(path):
                target = find_include(root, path, name)
                if target is not None and room_of(target) not in allowed.split():
                    yield f"{path.relative_to(root)}:{number}", f"{folder} includes {target} of {room_of(target)}"


def objects(root, build):
    """(path relative to src/, object file) of the library's sources that the build compiles; what else lies in the folder may be old."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        path, output = pathlib.Path(command["file"]), command.get("output") or re.search(r" -o (\S+)", command["command"]).group(1)
        for folder in (root / "src", build / "src"):
            if path.is_relative_to(folder) and "sparsek_objects" in output:
                yield str(path.relative_to(folder)), pathlib.Path(command["directory"]) / output


def symbols(files):
    """{file: (defined, undefined)}: the global symbols of its object, from {object: file}."""
    found = {file: (set(), set()) for file in files.values()}
    listing = subprocess.run(["nm", "--print-file-name", "--extern-only", *files], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in listing.splitlines():
        path, _, symbol = line.partition(":")
        *_, kind, name = symbol.split()
        found[files[path]][kind in "Uwv"].add(name)
    return found


def check_calls(root, build):
    """Yields (place, what is wrong)."""
    found = symbols({str(path): file for file, path in objects(root, build)})
    home = {name: file for file, (defined, _) in found.items() for name in defined}
    for file, (_, undefined) in sorted(found.items()):
        for name in sorted(undefined & home.keys()):
            room, other = room_of(file), room_of(home[name])
            if room is not None and other is not None and not may_use(room, other):
                yield f"src/{file}", f"{room} uses {name} of {home[name]} ({other})"


def check(root, build):
    return list(check_includes(root)) + (list(check_calls(root, build)) if build else [])


def tree(root, files):
    """A small project with these sources, compiled."""
    build, commands = root / "build", []
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".c":
            output = build / f"sparsek_objects/{name}.o"
            output.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-c", f"-I{root}/src", path, "-o", output], check=True)
            commands.append({"directory": str(build), "file": str(path), "output": str(output), "command": ""})
    (build / "compile_commands.json").write_text(json.dumps(commands))
    return build


def test():
    """Each tree has the one fault that stands beside it, or none."""
    good = {"src/base/a.h": "int a(void);\n", "src/base/a.c": '#include "base/a.h"\nint a(void)\n{\n    return 1;\n}\n',
            "src/api/b.c": '#include "base/a.h"\nint b(void)\n{\n    return a();\n}\n', "cli/main.c": '#include "base/a.h"\n',
            "src/backend/cpu/c.h": "int c;\n", "src/op/sum/d.c": '#include "base/a.h"\n'}
    trees = [
        ({}, []),
        ({"src/kernel/up.c": '#include "backend/cpu/c.h"\n'}, ["kernel includes backend/cpu/c.h of backend/cpu"]),
        ({"src/backend/cuda/across.h": '#include "backend/cpu/c.h"\n'}, ["backend/cuda includes backend/cpu/c.h of backend/cpu"]),
        ({"src/op/sum/up.h": '#include "backend/cpu/c.h"\n'}, ["op includes backend/cpu/c.h of backend/cpu"]),
        ({"src/matrix/up.c": "int b(void);\nint up(void)\n{\n    return b();\n}\n"}, ["matrix uses b of api/b.c (api)"]),
        ({"src/backend/cuda/across.c": "extern int c_data;\nint *across = &c_data;\n", "src/backend/cpu/c.c": "int c_data = 1;\n"},
         ["backend/cuda uses c_data of backend/cpu/c.c (backend/cpu)"]),
        ({"src/attic/e.c": "int e;\n"}, ["is in no room of the list of floors"]),
        ({"cli/cmd.c": '#include "backend/cpu/c.h"\n'}, ["cli includes backend/cpu/c.h of backend/cpu"]),
    ]
    for more, expected in trees:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            found = [fault for _, fault in check(root, tree(root, good | more))]
            if found != expected:
                sys.exit(f"floors: of {list(more)} the faults {expected} were to be found, not {found}")
    print(f"floors: {len(trees)} trees judged as they are")


if __name__ == "__main__":
    if sys.argv[1:] == ["--test"]:
        test()
    else:
        project = pathlib.Path(__file__).resolve().parents[2]
        faults = check(project, pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None)
        for place, fault in faults:
            print(f"{place}: {fault}")
        if faults:
            sys.exit("floors: a folder uses only those above it in docs/design.md's list")
        print("floors: nothing includes or calls upwards")
