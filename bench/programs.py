#!/usr/bin/env python3
"""The compiled device programs that ship with the library, share/programs.db: bench/programs.py collect|make|check|list [--database FILE].

  collect FOLDER   makes the file of a cache of compiled programs ($SPARSEK_CACHE_DIR/cubin), which `python bench/python/first_choices.py` fills on a GPU. Taken
                   are programs of usual problems, and of those that serve the same problems the one or two whose tiles serve most others, too
  make             compiles anew what is of another source, with NVRTC ($SPARSEK_NVRTC), on any machine: no GPU is needed
  check            says how many are of this tree's sources; fails where fewer than nine of ten are
  list             a line a program: file, source's hash, architecture, options

A program that is not there, or is of another source, is compiled where it is met. So a stale file costs time, never correctness.
"""

import argparse
import collections
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
HEADER = struct.Struct("<8sIIQQ")  # src/backend/cuda/runtime/cubins.c
KEY = re.compile(r"^(?P<file>\S+\.cu) (?P<hash>[0-9a-f]{16}) (?:nvrtc=\S+ )?arch=(?P<arch>\S+) ?(?P<options>.*)$")
# Constants that follow from the problem; the others are of tiles, and another value of them computes the same.
OF_ATTENTION = {"DTYPE_A", "DEPTH", "DEPTH_V", "MASKED", "LEFT", "RIGHT", "WANT_LSE", "LIMITED", "CAPPED", "PACKED", "PAGED", "TILED", "COUNTED", "SHARED", "SCRUB", "VECTOR"}
OF_PRODUCTS = {"DTYPE_A", "DTYPE_B", "DTYPE_D", "COMPUTE", "LAYOUT_A", "LAYOUT_B", "LAYOUT_D", "A_K_CONTIGUOUS", "HAS_POSITIONS", "BIAS", "ASSUME_FINITE"}
OF_PRODUCTS |= {"BLOCK_ROWS", "BLOCK_COLS", "ACTIVATION", "RESIDUAL"}
USUAL = {"DEPTH": {"32", "64", "128"}, "DEPTH_V": {"32", "64", "128"}, "BLOCK_ROWS": {"4", "8", "16", "32", "64", "128"}}
HALVES = ("3", "4")  # f16, bf16
SECOND = re.compile(r"_simt\.cu$")  # in 16 bits: for pointers that are not aligned, and small blocks
OF_BLOCKS = {"attention_sm90.cu": "UNIT", "attention_backward_sm80.cu": "STEP_KEYS"}  # of tiles, but with a mask what fits its blocks
EVERY = 99  # of programs that another one's tiles name
KEPT = {"spmm_sm90_wgmma.cu": 2, "gemm_sm90_wgmma.cu": 6, "gemm_sm80_mma.cu": 6}  # for the same problems; others: 1
KEPT |= {"attention_delta.cu": EVERY, "attention_grad_q.cu": EVERY}
WITH_LSE = ("attention_sm90.cu", "attention_sm80.cu", "attention_simt.cu")  # forward, whose constant WANT_LSE is the caller's; gradients always have 0
COMMON = "--gpu-architecture={} -default-device --std=c++17 {}"  # src/backend/cuda/runtime/program.c


def hashes():
    """Of each program's source, as the build writes them into the library (cmake/SparsekClosure.cmake)."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/evidence"
        sources = [*(ROOT / "cmake/evidence").glob("*.c"), ROOT / "src/base/hash.c"]
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-I", ROOT / "src", *sources, "-o", program], check=True)
        listed = subprocess.run([program, ROOT / "src"], capture_output=True, text=True, check=True).stdout
    return dict(line.split()[1:] for line in listed.splitlines() if line.startswith("program "))


def name(found):
    return f"{found['file']} {found['hash']} arch={found['arch']} {found['options']}"


def of_cache(folder):
    """What the files of a cache hold: key and cubin."""
    for path in sorted(pathlib.Path(folder).glob("*.cubin")):
        whole = path.read_bytes()
        if len(whole) < HEADER.size:
            continue
        magic, _, key_bytes, size, _ = HEADER.unpack_from(whole)
        key, cubin = whole[HEADER.size : HEADER.size + key_bytes], whole[HEADER.size + key_bytes :]
        found = KEY.match(key.decode(errors="replace"))
        if magic == b"spkcubin" and len(cubin) == size and found:
            yield found, cubin


def read(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return {key: (size, zipped) for key, size, zipped in database.execute("SELECT key, bytes, zipped FROM program")}


def write(path, programs):
    aside = path.with_suffix(".new")
    aside.unlink(missing_ok=True)
    database = sqlite3.connect(aside)
    with database:
        database.execute("CREATE TABLE program (key TEXT PRIMARY KEY, bytes INTEGER NOT NULL, zipped BLOB NOT NULL)")
        database.executemany("INSERT INTO program VALUES (?, ?, ?)", [(key, *programs[key]) for key in sorted(programs)])
    database.execute("VACUUM")
    database.close()
    os.replace(aside, path)


def zipped(cubin):
    return len(cubin), zlib.compress(cubin, 9)


def say(programs):
    print(f"{len(programs)} programs, {sum(size for size, _ in programs.values()) / 2**20:.1f} MiB, {sum(len(z) for _, z in programs.values()) / 2**20:.1f} zipped")


def words_of(found):
    return dict(word[2:].split("=", 1) for word in found["options"].split() if word.startswith("-D") and "=" in word)


def constants(found):
    """What a program is of: the constants that follow from the problem, and those of tiles.

    The two types of 16 bits are one, as is attention with and without LSE: `variants` makes each of the other.
    """
    own = OF_ATTENTION if found["file"].startswith("attention") else OF_PRODUCTS
    of_problem, of_tiles = [], []
    for word, value in words_of(found).items():
        if word == "WANT_LSE":
            continue
        if word.startswith("DTYPE") and value in HALVES:
            value = "half"
        fits_mask = word == OF_BLOCKS.get(found["file"]) and "-DMASKED=1 " in found["options"]
        (of_problem if word in own or fits_mask else of_tiles).append((word, value))
    return (found["file"], found["arch"], *of_problem), (found["file"], *of_tiles)


def is_usual(found):
    words = words_of(found)
    if any(words.get(word) not in (None, *values) for word, values in USUAL.items()):
        return False
    small = int(words.get("BLOCK_ROWS", 128)) < 16
    return not SECOND.search(found["file"]) or words["DTYPE_A"] not in HALVES or small


def variants(file, options):
    """The options of a program in each type of 16 bits, with and without LSE."""
    made = [options]
    if re.search(r"-DDTYPE_A=[34] ", options):
        made = [re.sub(r"(-DDTYPE_\w+=)[34]\b", rf"\g<1>{half}", options) for half in HALVES]
    if "-DWANT_LSE=" in options and file in WITH_LSE:
        made = [re.sub(r"-DWANT_LSE=\d", f"-DWANT_LSE={lse}", each) for each in made for lse in (0, 1)]
    return dict.fromkeys(made)


def chosen(cache):
    """Of programs for the same problems those with the most usual tiles."""
    groups, usual = collections.defaultdict(dict), collections.Counter()
    for found, _ in cache:
        if is_usual(found):
            problem, tiles = constants(found)
            usual[tiles] += 1
            groups[problem][tiles] = found
    for problem, group in groups.items():
        for tiles in sorted(group, key=lambda tiles: (-usual[tiles], tiles))[: KEPT.get(problem[0], 1)]:
            yield group[tiles]


def collect(options):
    today = hashes()
    cache = [(found, cubin) for found, cubin in of_cache(options.folder) if today.get(found["file"]) == found["hash"]]
    if not cache:
        raise SystemExit(f"{options.folder} holds no program of this tree's sources")
    compiled = {name(found): cubin for found, cubin in cache}
    wanted = {name({**found.groupdict(), "options": each}) for found in chosen(cache) for each in variants(found["file"], found["options"])}
    programs = {key: zipped(compiled[key]) for key in wanted if key in compiled}
    programs |= compile_all({key: today[KEY.match(key)["file"]] for key in wanted if key not in compiled})
    write(options.database, programs)
    say(programs)


def compile_anew(key, source_hash):
    from carry import cubins

    found = KEY.match(key)
    cubin = cubins.compiled(ROOT / "src", found["file"], COMMON.format(found["arch"], found["options"]).strip())
    return f"{found['file']} {source_hash} arch={found['arch']} {found['options']}", zipped(cubin)


def compile_all(sources):
    """Of keys and their sources' hashes: keys of today and programs."""
    programs = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, (key, content) in enumerate(pool.map(lambda item: compile_anew(*item), sources.items()), 1):
            programs[key] = content
            if sys.stderr.isatty():
                print(f"\r{count} of {len(sources)}", end="", file=sys.stderr)
    return programs


def make(options):
    today, programs = hashes(), read(options.database)
    stale = [key for key in programs if today.get(KEY.match(key)["file"]) != KEY.match(key)["hash"]]
    waiting = {key: today[KEY.match(key)["file"]] for key in stale if KEY.match(key)["file"] in today}
    made = compile_all(waiting)
    for key in stale:
        del programs[key]
    write(options.database, programs | made)
    print(f"{len(made)} compiled anew, {len(stale) - len(waiting)} of programs that are gone left out")
    say(programs | made)


def check(options):
    today, programs = hashes(), read(options.database)
    live = [key for key in programs if (found := KEY.match(key)) and today.get(found["file"]) == found["hash"]]
    for key, (size, content) in programs.items():
        if len(zlib.decompress(content)) != size:
            raise SystemExit(f"{options.database}: {key} is damaged")
    print(f"{len(live)} of {len(programs)} programs are of this tree's sources")
    if 10 * len(live) < 9 * len(programs):
        raise SystemExit(f"{options.database} is stale: bench/programs.py make compiles it anew")


def show(options):
    for key in sorted(read(options.database)):
        print(key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=pathlib.Path, default=ROOT / "share/programs.db")
    actions = parser.add_subparsers(required=True)
    actions.add_parser("collect").set_defaults(action=collect)
    actions.choices["collect"].add_argument("folder", type=pathlib.Path)
    for word, action in (("make", make), ("check", check), ("list", show)):
        actions.add_parser(word).set_defaults(action=action)
    options = parser.parse_args()
    options.action(options)


if __name__ == "__main__":
    main()
