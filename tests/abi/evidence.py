#!/usr/bin/python3
"""A row's hash (cmake/evidence) is over what the row really uses: whatever changes nothing of that leaves it, and a change of it makes exactly its users stale.

    tests/abi/evidence.py [BUILD] [--draws N] [--seed N]

In copies of the sources: comments, white space, names and places of files, the order of declarations, cost models and what nobody uses are changed, and no hash
may; constants are changed, and exactly the rows that use them must. The program's tokens are compared with those of GCC's preprocessor, for every source.
With BUILD, a build folder: its rows carry these hashes. A vendor's row on a GPU is recorded as before when its host code is refactored, and otherwise when its
library gets something else. And N constants (default 2) are drawn at random, and every row whose hash stays must have the same machine code.
"""

import argparse
import functools
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from evidence_cases import CONSTANTS, HEAD, OF_NO_ROW, SEEN
from evidence_records import check_records

ROOT = pathlib.Path(__file__).resolve().parents[2]
AVX2 = ["__AVX2__", "__FMA__"]
AVX512 = [*AVX2, *(f"__AVX512{part}__" for part in ("F", "BW", "DQ", "VL"))]


def sources(root):
    """Those that can be rows' own."""
    found = []
    for backend in ("cpu", "cuda"):
        top = root / "backend" / backend
        files = [path for path in sorted(top.rglob("*")) if path.suffix in (".c", ".h", ".cu", ".cuh")]
        found += [path for path in files if path.parent != top and path.parent.name not in ("model", "runtime", "proof", "remote")]
    return found


FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="sparsek-evidence-"))


@functools.cache
def program(*options):
    made = FOLDER / f"evidence{len(options)}"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", *options]
    subprocess.run(["gcc", *flags, "-I", ROOT / "src", *(ROOT / "cmake" / "evidence").glob("*.c"), ROOT / "src/base/hash.c", "-o", made], check=True)
    return made


def run(*words):
    done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"evidence {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout.splitlines()


def hashes(root):
    return {line.split()[1]: line.split()[2] for line in run(root) if line.startswith("row ")}


class Copy:
    """The sources, to be changed. With `with`."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sparsek-evidence-"))
        self.root = self.folder / "src"
        shutil.copytree(ROOT / "src" / "backend", self.root / "backend")
        shutil.copytree(ROOT / "src" / "type", self.root / "type")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def replace(self, name, old, new, count=1):
        path = self.root / "backend" / name
        text = path.read_text()
        if text.count(old) < 1:
            sys.exit(f"evidence: {name} has no {old!r} any more: name another constant")
        path.write_text(text.replace(old, new, count))

    def stale(self, before):
        now = hashes(self.root)
        return sorted(row for row in before.keys() | now.keys() if before.get(row) != now.get(row))


# ------------------------------------------------------------------------------------------------------------ what changes nothing


ASIDE = re.compile(r"(/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^\s*#\s*include[^\n]*)", re.DOTALL | re.MULTILINE)


def in_code(copy, change):
    """Where there is code, not within comments and texts."""
    for path in sources(copy.root):
        parts = ASIDE.split(path.read_text())
        path.write_text("".join(part if i % 2 else change(part) for i, part in enumerate(parts)))


def comments(copy):
    in_code(copy, lambda code: code.replace(";", "; /* a remark, with ' and \" */").replace("{", "/* { */ {"))
    for path in sources(copy.root):
        path.write_text(f"/* Another head.\n * It says #define TILE 8 */\n{path.read_text()}\n// an end\n")


def white_space(copy):
    in_code(
        copy,
        lambda code: (
            re.sub(r"^(    )+", lambda match: "\t" * (len(match[0]) // 4), code, flags=re.MULTILINE)
            .replace(", ", "  ,")
            .replace(" = ", "=")
            .replace(";\n", ";\n\n\n")
        ),
    )


def move(copy, moves):
    """Files by name under backend/, with every inclusion and every name of a program."""
    for path in (copy.root / "backend").rglob("*"):
        if path.suffix not in (".c", ".h", ".cu", ".cuh"):
            continue
        text = old = path.read_text()
        for here, there in moves.items():
            text = text.replace(f'"backend/{here}"', f'"backend/{there}"')
            if here.endswith(".cu"):
                text = text.replace(f'"{pathlib.Path(here).name}"', f'"{pathlib.Path(there).name}"')
        if text != old:
            path.write_text(text)
    for here, there in moves.items():
        target = copy.root / "backend" / there
        target.parent.mkdir(parents=True, exist_ok=True)
        (copy.root / "backend" / here).rename(target)


def renamed(copy):
    move(
        copy,
        {
            "cuda/device/common/number.cuh": "cuda/device/elements.cuh",
            "cpu/kernels/vectors/vector.h": "cpu/kernels/lanes.h",
            "cuda/host/frame/launch.c": "cuda/host/frame/start.c",
            "cuda/host/frame/launch.h": "cuda/host/frame/start.h",
            "cuda/kernels/gemm_sm90_wgmma.cu": "cuda/kernels/gemm_wide.cu",
            "cuda/helpers/copy_lines.cu": "cuda/helpers/lines.cu",
        },
    )


def moved(copy):
    device = copy.root / "backend" / "cuda" / "device"
    moves = {
        f"cuda/device/{path.parent.name}/{path.name}": f"cuda/{'ptx' if path.parent.name == 'ptx' else 'device/shared'}/{path.name}"
        for path in device.glob("*/*")
    }
    kernels = copy.root / "backend" / "cpu" / "kernels"
    moves |= {f"cpu/kernels/tiles/{path.name}": f"cpu/kernels/templates/{path.name}" for path in kernels.glob("tiles/tile_*.h")}
    moves["cpu/kernels/spmm/spmm_f32_avx2.c"] = "cpu/kernels/spmm_f32_avx2.c"
    moves["cuda/kernels/spmm_sm90_wgmma.cu"] = "cuda/device/programs/spmm_sm90_wgmma.cu"
    move(copy, moves)


def ordered(copy):
    """A definition goes behind the next one."""
    copy.replace("cpu/kernels/spmm/tile_real_row.h", "static bool applicable(", "static int first_of_all(int x)\n{\n    return x;\n}\n\nstatic bool applicable(")
    text = (copy.root / "backend/cuda/host/frame/launch.c").read_text()
    functions = re.findall(r"^(?:static )?[a-z_0-9 ]+ \*?\w+\([^;{}]*\)\n\{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    copy.replace("cuda/host/frame/launch.c", functions[-2] + "\n" + functions[-1], functions[-1] + "\n" + functions[-2])


def unused(copy):
    """New code that nobody uses yet."""
    for name, text in (
        (
            "cuda/device/common/number.cuh",
            "struct float8 { unsigned char bits; };\nstatic __device__ inline float read_float8(float8 x)\n{\n    return x.bits * 0.5f;\n}\n",
        ),
        ("cpu/kernels/cost.h", "enum { COST_OF_NOTHING = 12 };\nstatic inline int cost_of_nothing(void)\n{\n    return COST_OF_NOTHING;\n}\n"),
    ):
        path = copy.root / "backend" / name
        head, mark, tail = path.read_text().rpartition("#endif")
        path.write_text(head + text + mark + tail)
    copy.replace(
        "cuda/device/common/problem.cuh",
        HEAD,
        "#if BATCHED\n#define NOBODY 12\nstatic inline int nobodys(int x)\n{\n    return x + NOBODY;\n}\n#endif\n;\nstatic_assert(sizeof(int) == 4);\n" + HEAD,
    )
    copy.replace("cuda/host/frame/launch.h", "#ifndef SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_H\n#define SPK_BACKEND_CUDA_HOST_FRAME_LAUNCH_H\n", "#pragma once\n#if 1\n")


def models(copy):
    copy.replace("cpu/kernels/cost.h", "1.06 * depth", "1.07 * depth")
    copy.replace("cuda/kernels/gemm_sm90_wgmma.c", "FLOPS_US = 5.3e6", "FLOPS_US = 5.2e6")
    copy.replace("cuda/kernels/sddmm_sm90_wgmma.c", "LINE_US = 1.04e-3", "LINE_US = 1.05e-3")
    copy.replace("cuda/model/attention_sm90.c", ";", "; ")


NEUTRAL = {
    "comments": comments,
    "white space": white_space,
    "renamed files": renamed,
    "moved files": moved,
    "order": ordered,
    "unused code": unused,
    "cost models": models,
}

# ------------------------------------------------------------------------------------------------------------ what makes rows stale


def edited(copy, edits):
    for name, old, new in edits:
        path = copy.root / "backend" / name
        text = path.read_text()
        if old == "":
            head, guard, tail = text.rpartition("#endif") if name.endswith(".h") else (text, "", "")
            path.write_text(head + new + guard + tail)
        elif old == "^":
            path.write_text(new + text)
        else:
            copy.replace(name, old, new)


def check_seen(found):
    for name, (first, then, row) in SEEN.items():
        with Copy() as copy:
            edited(copy, first)
            before = hashes(copy.root) if first else found
            edited(copy, then)
            if row not in copy.stale(before):
                sys.exit(f"evidence: {name} changes, and the hash of {row} does not")
    print(f"evidence: {len(SEEN)} changes that are easily not seen are seen")


def exchanges(path):
    """(lines of #if, #else and #endif) of each conditional with two branches that differ."""
    lines, open_at = path.read_text().split("\n"), []
    for i, line in enumerate(lines):
        match = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", line)
        if match and match[1].startswith("if"):
            open_at.append([i])
        elif match and match[1] != "endif":
            open_at[-1].append(i)
        elif match:
            at = [*open_at.pop(), i]
            alone = any("this file alone" in lines[outer[0]] for outer in open_at)  # a header's defaults, which no row compiles
            if not alone and len(at) >= 3 and lines[at[0] + 1 : at[1]] != lines[at[1] + 1 : at[2]]:
                yield lines, at


def check_branches(before, draws, seed):
    """Two branches of a conditional that change places make somebody stale, but where no row computes with them."""
    with Copy() as copy:
        all_of_them = [
            (path, lines, at)
            for path in sources(copy.root)
            for lines, at in exchanges(path)
            if not any(path.name == name and text in lines[at[0] + 1 : at[1]] for name, text in OF_NO_ROW)
        ]
        drawn = random.Random(seed).sample(all_of_them, min(draws, len(all_of_them)))
        for path, lines, at in drawn:
            path.write_text("\n".join([*lines[: at[0] + 1], *lines[at[1] + 1 : at[2]], lines[at[1]], *lines[at[0] + 1 : at[1]], *lines[at[2] :]]))
            if not copy.stale(before):
                sys.exit(f"evidence: {path.relative_to(copy.root)}:{at[0] + 1}: the branches change places, and no hash changes")
            path.write_text("\n".join(lines))
    print(f"evidence: {len(drawn)} of {len(all_of_them)} conditionals with their branches exchanged (seed {seed}): each makes a row stale")


def check_constants(before):
    for name, old, new, rows in CONSTANTS:
        with Copy() as copy:
            copy.replace(name, old, new)
            stale = copy.stale(before)
            if stale != sorted(rows.split()):
                sys.exit(f"evidence: {name}, {old!r} as {new!r}: stale are {' '.join(stale)}; its users are {rows}")
    print(f"evidence: {len(CONSTANTS)} constants, each with exactly its users")


def check_neutral(before):
    for name, change in NEUTRAL.items():
        with Copy() as copy:
            change(copy)
            stale = copy.stale(before)
            if stale:
                sys.exit(f"evidence: {name}: they change nothing, and stale are {' '.join(stale)}")
    print(f"evidence: {', '.join(NEUTRAL)}: no hash changed")


# ------------------------------------------------------------------------------------------------------------ the tokens


def options_of(path):
    if path.suffix == ".cu":
        return [
            ["-D__cplusplus=201703"],
            [
                *("-D" + word for word in "PACKED=1 TILED=1 SCRUB=1 SPLIT=2 BATCHED=1 USE_C=1 CUT=1 Q_HELD=1 MASKED=1 DTYPE_D=F16 CLUSTER=2".split()),
                "-D__cplusplus=201703",
            ],
        ]
    sets = AVX2 if path.stem.endswith("_avx2") else AVX512 if path.stem.endswith(("_avx512", "_amx")) else []
    return [[*(f"-D{name}=1" for name in sets), "-DSPK_SOURCE_HASH=0"]]


def tokens(root, name, options):
    """Without the two ways to write a pragma."""
    found, lines = [], run(root, "--tokens", name, *options)
    i = 0
    while i < len(lines):
        if lines[i] == "_Pragma":
            found += ["#pragma", *lines[i + 2][1:-1].split(), "#end"]
            i += 4
        else:
            found.append(lines[i])
            i += 1
    return found


def check_tokens():
    """Everything that no source of rows includes is empty for GCC, as it is left out here."""
    with Copy() as copy:
        empty, count = copy.folder / "empty", 0
        files = sources(copy.root)
        for name in {name for path in files for name in re.findall(r'^\s*#\s*include\s+[<"]([^">]+)[">]', path.read_text(), re.MULTILINE)}:
            if copy.root / name not in files and name != "type/half.h":
                (empty / name).parent.mkdir(parents=True, exist_ok=True)
                (empty / name).touch()
                (copy.root / name).unlink(missing_ok=True)
        for path in files:
            for options in options_of(path) if path.suffix in (".c", ".cu") else []:
                gcc = ["gcc", "-E", "-P", "-undef", "-nostdinc", "-xc", "-I", copy.root, "-I", empty, *options, path]
                (copy.folder / "gcc.c").write_text(subprocess.run(gcc, check=True, capture_output=True, text=True).stdout)
                name = path.relative_to(copy.root)
                if tokens(copy.folder, "gcc.c", ["-DNOTHING"]) != tokens(copy.root, name, options):
                    sys.exit(f"evidence: {name} with {' '.join(options)}: these are not the tokens that GCC's preprocessor gives")
                count += 1
    print(f"evidence: {count} sources have the tokens that GCC's preprocessor gives")


# ------------------------------------------------------------------------------------------------------------ constants drawn at random


class Objects:
    """Rows of a processor compiled as in a build, with less optimisation and without their cost models: what is left is what runs."""

    def __init__(self, build):
        commands = json.loads((build / "compile_commands.json").read_text())
        self.words = {
            pathlib.Path(c["file"]).stem: shlex.split(c["command"])
            for c in commands
            if re.search(r"/backend/cpu/kernels/[^/]*/[^/]*\.c$", c["file"]) and "sparsek_objects" in c["command"]
        }

    def code(self, row, root):
        """None: it does not compile."""
        words = self.words[row]
        begin = next(i for i, word in enumerate(words) if re.search(r"(gcc|cc|clang)(-\d+)?$", word))
        source = file_of(row, root)
        words = [word for word in words[begin:] if not word.startswith(("-DSPK_SOURCE_HASH", "-O", "-g", "-W"))]
        words[words.index("-o") + 1] = "-"
        words[words.index("-c") + 1] = str(source)
        words = [f"-I{root}" if word == f"-I{ROOT / 'src'}" else word for word in words]
        words += ["-S", "-O1", "-w", '-DSPK_SOURCE_HASH="x"', "-I", str(ROOT / "src"), f"-ffile-prefix-map={root}=."]
        words.remove("-c")
        done = subprocess.run(words, capture_output=True, text=True)
        code = done.stdout if done.returncode == 0 else None
        return code and [line for line in code.splitlines() if not line.startswith("#")]  # where it comes from


def without_models(copy):
    for path in sources(copy.root):
        text = path.read_text()
        path.write_text(re.sub(r"\.predict_us = [^,}]*,", "", text))


def file_of(row, root):
    return next((root / "backend" / "cpu" / "kernels").rglob(f"{row}.c"))


def tokens_of_row(row, root):
    return run(root, "--tokens", file_of(row, root).relative_to(root))


def check_draws(build, draws, seed):
    """Where a constant changes and a row's hash does not, its machine code must be the same."""
    generator, objects, compared, changed = random.Random(seed), Objects(build), 0, 0
    with Copy() as plain:
        without_models(plain)
        before = hashes(plain.root)
        places = [
            (path.relative_to(plain.root / "backend"), match.span())
            for path in sources(plain.root)
            if path.suffix in (".c", ".h") and "/cpu/kernels/" in str(path)
            for match in re.finditer(
                r"(?<![\w.\"'])[1-9]\d{0,3}(?![\w.\"'])",
                re.sub(r"/\*.*?\*/|\"[^\"\n]*\"|#include.*", lambda m: " " * len(m[0]), path.read_text(), flags=re.DOTALL),
            )
        ]
        for _ in range(draws):
            name, (begin, end) = generator.choice(places)
            with Copy() as copy:
                without_models(copy)
                path = copy.root / "backend" / name
                text = path.read_text()
                path.write_text(f"{text[:begin]}{int(text[begin:end]) + 1}{text[end:]}")
                stale = set(copy.stale(before))
                changed += len(stale)
                same = sorted(
                    row for row in objects.words if row not in stale and row in before and tokens_of_row(row, copy.root) != tokens_of_row(row, plain.root)
                )
                for row in generator.sample(same, min(2, len(same))):
                    code = objects.code(row, copy.root)
                    compared += code is not None
                    if code is not None and code != objects.code(row, plain.root):
                        sys.exit(
                            f"evidence: {name}, {text[begin:end]} at {text.count(chr(10), 0, begin) + 1} plus 1: "
                            f"{row} has other machine code and the same hash\n"
                            f"  replay: tests/abi/evidence.py {build} --draws {draws} --seed {seed}"
                        )
    print(
        f"evidence: {draws} constants drawn at random (seed {seed}): {changed} rows became stale; "
        f"{compared} read the constant, do not use it and have the same machine code"
    )


def check_build(build, found):
    commands = (build / "compile_commands.json").read_text()
    for row, hash_ in found.items():
        if f'/{row}.c"' not in commands:  # built for other processors
            continue
        if not re.search(rf"SPK_SOURCE_HASH=[\\\"]*{hash_}.*/{row}\.c\"", commands):
            sys.exit(f"evidence: {build} has another hash for {row} than {hash_}")
    print(f"evidence: {build} carries these hashes")


def check_listing(found):
    """The command of docs/adding-a-kernel.md; and that nothing in the program is undefined."""
    checked = program("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    lines = subprocess.run([checked, ROOT / "src"], check=True, capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"}).stdout.splitlines()
    if {line.split()[1]: line.split()[2] for line in lines if line.startswith("row ")} != found:
        sys.exit("evidence: the program has other hashes where it is looked over")
    for root in ("src", ROOT / "src"):
        done = subprocess.run(["cmake", f"-DROOT={root}", "-P", "cmake/SparsekClosure.cmake"], check=True, capture_output=True, text=True, cwd=ROOT)
        if dict(line.split() for line in done.stdout.splitlines()) != found:
            sys.exit(f"evidence: cmake -DROOT={root} -P cmake/SparsekClosure.cmake lists other hashes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    options = parser.parse_args()
    try:
        found = hashes(ROOT / "src")
        check_listing(found)
        check_tokens()
        check_neutral(found)
        check_constants(found)
        check_seen(found)
        check_branches(found, 5 * options.draws, options.seed)
        if options.build is not None:
            check_build(options.build, found)
            check_records(options.build)
            check_draws(options.build, options.draws, options.seed)
    finally:
        shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
