#!/usr/bin/env python3
"""Candidates that a device has proved, for the library's table of those that may run where there is no prover.

    bench/proved.py run OUT.json [--op spmm|attention|attention_backward] [--program build/release/sparsek] [--device cuda:0] [--seconds 300]
                                                    prove the candidates of every row over a list of problems, and export what came of it
    bench/proved.py export CACHE_FOLDER OUT.json    what an earlier run left in $SPARSEK_CACHE_DIR
    bench/proved.py table [--check]                 src/backend/cuda/proved.def from bench/results/*proved*.json; --check: fail where it is another

A candidate (its source and its tunables) enters the table where at least one of its programs was found good on that architecture and driver and none was
found bad. An entry whose source has changed since stands for nothing: its hash is no candidate's any more.
"""
import argparse
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "backend" / "cuda" / "proved.def"
RESULTS = ROOT / "bench" / "results"
HEADER = struct.Struct("<8sIIQQ")  # of a file of the cache: magic, version, bytes of the key, of the content, hash
KEY = re.compile(rb"proof:([0-9a-f]{16})[0-9a-f]{16}")
GOOD = re.compile(r"good\ndriver (\d+)\narch (\S+)\ndevice ([^\n]*)\nchoice ([^\n]*)\n")

# dtype, block, M = K, N, density, more options: the fewest that find each candidate one that it computes on an H200, and vendors' rows and float32 theirs.
PROBLEMS = [("f16", "64x32", 1024, 256, 0.5, ""), ("bf16", "128", 1024, 1, 0.5, "--layout-b col --layout-d col"), ("f64", "72", 1008, 128, 0.1, "--use-c"),
            ("bf16", "16", 1024, 256, 0.1, ""), ("f16", "128", 1024, 512, 0.5, "--layout-b col --layout-d col --bias col --activation relu"),
            ("bf16", "128", 1024, 32, 0.5, ""), ("f32", "72", 1008, 256, 0.1, "--compute tf32"), ("f16", "64x32", 1024, 16, 0.5, ""),
            ("f16", "64x32", 1024, 32, 0.5, ""), ("f32", "8", 1024, 16, 0.1, ""), ("bf16", "64x32", 1024, 1024, 0.1, ""), ("f32", "64", 1024, 512, 0.1, ""),
            ("f16", "32", 1024, 512, 0.1, ""), ("f32", "1", 1024, 512, 0.05, ""), ("f16", "8", 1024, 512, 0.1, "")]

# Options of attention: what the widest programs are used for.
ATTENTION = [f"--heads 8 {more}" for more in
             ("--queries 1024 --keys 1024 --dtype bf16 --depth 128 --causal --diagonal top_left", "--queries 1024 --keys 1024 --dtype bf16 --depth 64",
              "--queries 2048 --keys 2048 --dtype bf16 --depth 128 --mask-heads 8 --block 64 --density 0.2",
              "--queries 2048 --keys 2048 --dtype f16 --depth 128 --heads-kv 2 --mask-heads 2 --block 128 --density 0.3", "--queries 1 --keys 8192 --heads-kv 2 --dtype bf16 --depth 128",
              "--queries 1024 --keys 1024 --dtype f16 --depth 64 --causal --window-left 200 --diagonal bottom_right", "--queries 1024 --keys 1024 --dtype bf16 --depth 128",
              "--queries 2048 --keys 2048 --dtype bf16 --depth 64 --mask-heads 1 --block 64 --density 0.2", "--queries 1024 --keys 1024 --sequences 4 --dtype bf16 --depth 128 --causal --diagonal top_left",
              "--queries 1 --keys 2048 --heads-kv 2 --batch 4 --key-lengths --page-keys 64 --pages 128 --dtype bf16 --depth 128", "--queries 1024 --keys 1024 --dtype bf16 --depth 96 --causal --diagonal top_left",
              "--queries 1024 --keys 1024 --dtype bf16 --depth 256 --causal --diagonal top_left", "--queries 1024 --keys 1024 --dtype f32 --depth 64 --causal --diagonal top_left")]

# Options of gradients of attention: each candidate computes one of them.
GRADIENTS = [f"--queries 512 --keys 512 --heads 4 {more}" for more in
             ("--dtype bf16 --depth 64", "--dtype f16 --depth 64 --causal --diagonal top_left", "--dtype bf16 --depth 128 --heads-kv 2 --causal --diagonal top_left",
              "--dtype f16 --depth 32 --window-left 100 --diagonal bottom_right", "--dtype f32 --depth 64", "--dtype f64 --depth 16 --causal --diagonal top_left")]


class Trouble(Exception):
    pass


def read_proof(path):
    """(key's candidate, text) of a proof or refutation in the cache; None for what is something else."""
    data = path.read_bytes()
    if len(data) < HEADER.size:
        return None
    magic, version, key_bytes, content_bytes, _ = HEADER.unpack_from(data)
    key = data[HEADER.size:HEADER.size + key_bytes]
    match = KEY.fullmatch(key)
    if magic != b"spkcubin" or version != 1 or not match or len(data) != HEADER.size + key_bytes + content_bytes:
        return None
    return match.group(1).decode(), data[HEADER.size + key_bytes:].rstrip(b"\0").decode(errors="replace")


def collect(cache):
    """Good candidates with the number of programs, and refuted ones with a reason, of a cache folder."""
    good, bad = {}, {}
    for path in sorted((pathlib.Path(cache) / "cubin").glob("*.cubin")):
        proof = read_proof(path)
        if proof is None:
            continue
        candidate, text = proof
        match = GOOD.fullmatch(text)
        if match:
            facts = {"hash": candidate, "arch": match[2], "driver": int(match[1]), "choice": match[4], "programs": 0}
            entry = good.setdefault((candidate, match[2], int(match[1])), facts)
            entry["programs"] += 1
        elif not text.startswith("good"):
            bad[candidate] = {"hash": candidate, "why": text}
    order = sorted(good.values(), key=lambda e: (e["choice"], e["arch"], e["driver"]))
    return order, sorted(bad.values(), key=lambda e: e["hash"])


def envelope(program, device):
    """Version, device and time as the program says them."""
    if program is None:
        return {"schema": 1}
    info = json.loads(subprocess.run([program, "info", "--device", device, "--json", "-"], check=True, capture_output=True, text=True).stdout)
    info.pop("results", None)
    return info


def export(cache, out, program=None, device="cuda:0"):
    good, bad = collect(cache)
    if not good:
        raise Trouble(f"{cache}: there is no proof")
    document = envelope(program, device)
    document.update(command=f"bench/proved.py {sys.argv[1]} {pathlib.Path(out).name}", proved=good, refuted=bad)
    pathlib.Path(out).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{out}: {len(good)} candidates proved by {sum(e['programs'] for e in good)} programs, {len(bad)} refuted")


def options_of(op):
    """Of the problems to be tuned."""
    if op.startswith("attention"):
        return GRADIENTS if op == "attention_backward" else ATTENTION
    return [f"--m {size} --k {size} --n {n} --block {block} --dtype {dtype} --density {density} {more}" for dtype, block, size, n, density, more in PROBLEMS]


def run(out, op, program, device, seconds):
    """Exhaustive tuning has all candidates compiled and proved first, whatever the budget."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cache = os.environ.get("SPARSEK_CACHE_DIR", folder)
        problems = options_of(op)
        for number, problem in enumerate(problems):
            left = seconds - (time.monotonic() - begun)
            if left < 5:
                print(f"{len(problems) - number} problems are left out: the time is over")
                break
            command = [program, "tune", "--device", device, "--op", op, *problem.split(), "--assume-finite", "--effort", "exhaustive", "--budget", "0.05", "--fresh"]
            try:
                done = subprocess.run(command, env={**os.environ, "SPARSEK_CACHE_DIR": cache}, capture_output=True, text=True, timeout=left)
            except subprocess.TimeoutExpired:
                print(f"{' '.join(command[1:])}: not done in {left:.0f} s")
                break
            if done.returncode != 0:
                print(f"{' '.join(command[1:])}: {done.stderr.strip()[-300:]}")
        export(cache, out, program, device)


def table_text(files):
    """The table of some result files: what is good in any, and bad in none."""
    good, bad = {}, set()
    for path in files:
        document = json.loads(path.read_text(encoding="utf-8"))
        bad.update(e["hash"] for e in document["refuted"])
        for e in document["proved"]:
            good[e["hash"], e["arch"], e["driver"] // 1000] = e["choice"]
    lines = ["/* Made by `bench/proved.py table`: the candidates that committed runs (in bench/results, their names have 'proved') found good, and none bad. */"]
    for (candidate, arch, driver), choice in sorted(good.items(), key=lambda item: (item[1], item[0])):
        if candidate not in bad:
            lines.append(f'SPK_PROVED("{candidate}", "{arch}", {driver}) /* {choice} */')
    return "\n".join(lines) + "\n"


def table(results, out, check):
    text = table_text(sorted(results.glob("*proved*.json")))
    if not check:
        out.write_text(text, encoding="utf-8")
    elif out.read_text(encoding="utf-8") != text:
        raise Trouble(f"{out} is not what {results} gives: run `python3 bench/proved.py table` and commit what it writes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("out")
    one.add_argument("--op", choices=("spmm", "attention", "attention_backward"), default="spmm")
    one.add_argument("--program", default=str(ROOT / "build" / "release" / "sparsek"))
    one.add_argument("--device", default="cuda:0")
    one.add_argument("--seconds", type=float, default=300)
    two = commands.add_parser("export")
    two.add_argument("cache")
    two.add_argument("out")
    two.add_argument("--program", help="the sparsek that ran, for version and device")
    three = commands.add_parser("table")
    three.add_argument("--check", action="store_true")
    three.add_argument("--results", type=pathlib.Path, default=RESULTS)
    three.add_argument("--out", type=pathlib.Path, default=TABLE)
    options = parser.parse_args()
    try:
        if options.command == "run":
            run(options.out, options.op, options.program, options.device, options.seconds)
        elif options.command == "export":
            export(options.cache, options.out, options.program)
        else:
            table(options.results, options.out, options.check)
    except (Trouble, OSError, ValueError, KeyError, subprocess.CalledProcessError) as trouble:
        sys.exit(f"proved.py: {trouble}")


if __name__ == "__main__":
    main()
