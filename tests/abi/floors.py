#!/usr/bin/python3
"""Refuses an include or a call from a folder of src/ or cli/ to one that stands on a higher floor, and what programs take of src/ beyond their share.

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
LIBRARY = """
base
known type
matrix
matrix/io
op
backend
kernel
backend/cpu backend/cuda/device
backend/cpu/kernels/attention backend/cpu/kernels/gemm backend/cpu/kernels/sddmm backend/cpu/kernels/spmm backend/cuda/runtime backend/cuda/helpers
backend/cuda/proof backend/cuda/host/frame
backend/cuda/remote
backend/cuda/host/indices
backend/cuda/host/schedule
backend/cuda/host/groups backend/cuda/host/attention
backend/cuda/host/tiles backend/cuda/model
backend/cuda/vendor
backend/cuda/kernels backend/cuda/timing
backend/cuda
registry
store
tune/measure
tune/search
tune/choose
tune/trial
api
"""

COMMAND_LINE = """
base
io
args
matrix
problem
result
check regret
commands
"""

# What sources outside of src/ may include of it, and compile. The public headers are for all.
OUTSIDE = {"cli": "base type", "prover": "base type backend/cuda/proof", "python/src": "type", "examples": ""}

# Made by the build, not found in src/: the device code as text.
GENERATED = {"embedded.c": "backend/cuda/device"}

# What the host and the device program of one row derive alike, or a table of rows, is for all who know of the device.
COMMON = re.compile(r"backend/cuda/(kernels/\w+\.h|kernels\.def)")

# By the folder that a house is: its rooms with their floors, and the target of the build that compiles it.
HOUSES = {"src": (LIBRARY, "sparsek_objects"), "cli": (COMMAND_LINE, "sparsek_cli")}
FLOOR = {(house, room): height for house, (floors, _) in HOUSES.items() for height, line in enumerate(floors.split("\n")) for room in line.split()}


def name_of(house, path):
    """Rooms and files of the library are told without its folder."""
    return path if house == "src" else f"{house}/{path}"


def room_of(house, file):
    """Of a path relative to the house, None where no room holds it."""
    if house == "src" and file in GENERATED:
        return GENERATED[file]
    if house == "src" and COMMON.fullmatch(file):
        return "backend/cuda/device"
    folders = [str(folder) for folder in pathlib.PurePosixPath(file).parents]
    return next((folder for folder in folders if (house, folder) in FLOOR), None)


def device_of(room):
    """"cuda" of backend/cuda/runtime; None of what is of no device."""
    found = re.match(r"backend/(\w+)", room)
    return found and found.group(1)


def may_use(house, room, other):
    devices = {device_of(room), device_of(other)} - {None}
    return room == other or (FLOOR[house, other] < FLOOR[house, room] and len(devices) < 2)


def includes(path):
    """Line by line: (number, name in quotes)."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".c", ".h", ".def", ".cu", ".cuh", ".cpp"))


def find_include(root, path, name):
    """(house, path relative to it) of what is included, None where it is of none. What names a file from the root is of no other folder."""
    for folder in (path.parent, root / "src", root):
        file = (folder / name).resolve()
        if file.is_file():
            return next(((house, str(file.relative_to(root / house))) for house in HOUSES if file.is_relative_to(root / house)), None)
    return None


def check_house(root, house):
    """Yields (place, what is wrong): what the sources of a house include of it."""
    for path in sources(root / house):
        file = str(path.relative_to(root / house))
        room = room_of(house, file)
        if room is None:
            yield f"{house}/{file}", "is in no room of the list of floors"
            continue
        for number, name in includes(path):
            target_house, target = find_include(root, path, name) or (None, None)
            other = room_of(house, target) if target_house == house else None
            if other is not None and not may_use(house, room, other):
                yield f"{house}/{file}:{number}", f"{name_of(house, room)} includes {name_of(house, target)} of {name_of(house, other)}"


def check_includes(root):
    """Yields (place, what is wrong)."""
    for house in HOUSES:
        yield from check_house(root, house)
    for folder, allowed in ({"src": ""} | OUTSIDE).items():
        for path in sources(root / folder) if (root / folder).is_dir() else []:
            for number, name in includes(path):
                house, target = find_include(root, path, name) or (folder, None)
                of = room_of(house, target) if house == "src" and target else house
                if house != folder and of not in allowed.split():
                    yield f"{path.relative_to(root)}:{number}", f"{folder} includes {name_of(house, target)} of {of}"


def objects(root, build):
    """(target, house, path relative to it, object file) of the sources that the build compiles; what else lies in the folder may be old."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        path, output = pathlib.Path(command["file"]), command.get("output") or re.search(r" -o (\S+)", command["command"]).group(1)
        for target in (target for _, target in HOUSES.values() if target in output):
            for house in HOUSES:
                for folder in (root / house, build / house):
                    if path.is_relative_to(folder):
                        yield target, house, str(path.relative_to(folder)), pathlib.Path(command["directory"]) / output


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
    compiled = list(objects(root, build))
    for house, (_, target) in HOUSES.items():
        files = {str(path): file for by, of, file, path in compiled if (by, of) == (target, house)}
        if not files:
            yield house, f"the build compiles nothing of it for {target}"
            continue
        found = symbols(files)
        home = {name: file for file, (defined, _) in found.items() for name in defined}
        for file, (_, undefined) in sorted(found.items()):
            for name in sorted(undefined & home.keys()):
                room, other = room_of(house, file), room_of(house, home[name])
                if room is not None and other is not None and not may_use(house, room, other):
                    yield f"{house}/{file}", f"{name_of(house, room)} uses {name} of {name_of(house, home[name])} ({name_of(house, other)})"
    for target, house, file, _ in compiled:
        if target == "sparsek_cli" and house == "src" and room_of(house, file) not in OUTSIDE["cli"].split():
            yield f"{house}/{file}", f"cli compiles {file} of {room_of(house, file)}"


def check(root, build):
    return list(check_includes(root)) + (list(check_calls(root, build)) if build else [])


def tree(root, files):
    """A small project with these sources, compiled."""
    build, commands = root / "build", []
    for name, text in files.items():
        by, _, name = name.rpartition(":")  # whose target compiles it, where not its own house's
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".c":
            output = build / HOUSES[by or name.split("/")[0]][1] / f"{name}.o"
            output.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-c", f"-I{root}/src", f"-I{root}", path, "-o", output], check=True)
            commands.append({"directory": str(build), "file": str(path), "output": str(output), "command": ""})
    (build / "compile_commands.json").write_text(json.dumps(commands))
    return build


def test():
    """Each tree has the one fault that stands beside it, or none."""
    good = {"src/base/a.h": "int a(void);\n", "src/base/a.c": '#include "base/a.h"\nint a(void)\n{\n    return 1;\n}\n',
            "src/api/b.c": '#include "base/a.h"\nint b(void)\n{\n    return a();\n}\n', "cli/base/text.h": "int text(void);\n",
            "cli/base/text.c": '#include "cli/base/text.h"\nint text(void)\n{\n    return 1;\n}\n', "cli/io/j.h": "int j;\n", "cli/regret/k.h": "int k;\n",
            "cli/commands/main.c": '#include "base/a.h"\n#include "cli/base/text.h"\nint main(void)\n{\n    return text();\n}\n',
            "src/backend/cpu/c.h": "int c;\n", "src/op/sum/d.c": '#include "base/a.h"\n'}
    trees = [
        ({}, []),
        ({"src/kernel/up.c": '#include "backend/cpu/c.h"\n'}, ["kernel includes backend/cpu/c.h of backend/cpu"]),
        ({"src/backend/cuda/across.h": '#include "backend/cpu/c.h"\n'}, ["backend/cuda includes backend/cpu/c.h of backend/cpu"]),
        ({"src/backend/cuda/runtime/across.h": '#include "backend/cpu/c.h"\n'}, ["backend/cuda/runtime includes backend/cpu/c.h of backend/cpu"]),
        ({"src/backend/cuda/runtime/up.h": '#include "backend/cuda/proof/p.h"\n', "src/backend/cuda/proof/p.h": "int p;\n"},
         ["backend/cuda/runtime includes backend/cuda/proof/p.h of backend/cuda/proof"]),
        ({"src/backend/cuda/kernels/k.h": "int k;\n", "src/backend/cuda/model/down.c": '#include "backend/cuda/kernels/k.h"\n'}, []),
        ({"src/op/sum/up.h": '#include "backend/cpu/c.h"\n'}, ["op includes backend/cpu/c.h of backend/cpu"]),
        ({"src/matrix/up.c": "int b(void);\nint up(void)\n{\n    return b();\n}\n"}, ["matrix uses b of api/b.c (api)"]),
        ({"src/backend/cuda/across.c": "extern int c_data;\nint *across = &c_data;\n", "src/backend/cpu/c.c": "int c_data = 1;\n"},
         ["backend/cuda uses c_data of backend/cpu/c.c (backend/cpu)"]),
        ({"src/attic/e.c": "int e;\n"}, ["is in no room of the list of floors"]),
        ({"cli/commands/cmd.c": '#include "backend/cpu/c.h"\n'}, ["cli includes backend/cpu/c.h of backend/cpu"]),
        ({"cli:src/kernel/c.c": "int compiled;\n"}, ["cli compiles kernel/c.c of kernel"]),
        ({"src/op/sum/up.c": '#include "cli/base/text.h"\n'}, ["src includes cli/base/text.h of cli"]),
        ({"prover/p.h": '#include "../cli/base/text.h"\n'}, ["prover includes cli/base/text.h of cli"]),
        ({"cli/base/up.c": '#include "cli/io/j.h"\n'}, ["cli/base includes cli/io/j.h of cli/io"]),
        ({"cli/base/up.c": '#include "../io/j.h"\n'}, ["cli/base includes cli/io/j.h of cli/io"]),
        ({"cli/check/across.c": '#include "cli/regret/k.h"\n'}, ["cli/check includes cli/regret/k.h of cli/regret"]),
        ({"cli/args/up.c": "int m(void);\nint up(void)\n{\n    return m();\n}\n", "cli/problem/m.c": "int m(void)\n{\n    return 1;\n}\n"},
         ["cli/args uses m of cli/problem/m.c (cli/problem)"]),
        ({"cli/e.c": "int e;\n"}, ["is in no room of the list of floors"]),
        ({"cli/attic/e.c": "int e;\n"}, ["is in no room of the list of floors"]),
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
            sys.exit("floors: a folder uses only those above it in docs/design.md's lists")
        print("floors: nothing includes or calls upwards")
