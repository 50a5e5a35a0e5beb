#!/usr/bin/env python3
"""Candidates that a device has proved, for the library's table of those that may run where there is no prover.

    bench/proved.py run OUT.json [--op spmm|sddmm|gemm|attention|attention_backward] [--program build/release/sparsek] [--device cuda:0] [--seconds 300]
                                                    prove the candidates of every row over a list of problems, and export what came of it
    bench/proved.py export CACHE_FOLDER OUT.json    what an earlier run left in $SPARSEK_CACHE_DIR
    bench/proved.py table [--check]                 src/backend/cuda/proof/proof_table.def from the committed runs named *proved*; --check: fail where it is another
    bench/proved.py dead [--check]                  which entries of the table stand for nothing any more, and what the cards of share/bundle.db lack: an own
                                                    row without a live proof, a chosen candidate without one; --check: fail where a card lacks something
    bench/proved.py again OUT.json [--program build/release/sparsek] [--device cuda:0] [--seconds 500] [--jobs 6]
                                                    prove what the cards lack, on one of them, and add it to OUT.json; then `table` puts it into the table
    bench/proved.py carry OLD [NEW] [--renamed OLD_NAME=NEW_NAME] [--compile] [--dry-run]
                                                    what is proved in the tree OLD (a folder, or a revision) is proved in NEW (this one) where what runs is the
                                                    same, though the sources differ: its entries in the committed runs get NEW's hashes; then `table`

A candidate (its source and its tunables) enters the table where at least one of its programs was found good on that architecture and driver and none was
found bad. An entry whose source has changed since stands for nothing: its hash is no candidate's any more. So a change of a row's sources wants `again`,
or `carry` where it changed nothing that runs.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

import carry as carrying
import live_proofs
import runs
from carry import launches
from carry.comparison import split_choice
from live_proofs import Trouble

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "backend" / "cuda" / "proof" / "proof_table.def"
RESULTS = ROOT / "bench" / "results"
BUNDLE = ROOT / "share" / "bundle.db"
PROGRAM = str(ROOT / "build" / "release" / "sparsek")
HEADER = struct.Struct("<8sIIQQ")  # of a file of the cache: magic, version, bytes of the key, of the content, hash
KEY = re.compile(rb"proof:([0-9a-f]{16})[0-9a-f]{16}")
GOOD = re.compile(r"good\ndriver (\d+)\narch (\S+)\ndevice ([^\n]*)\nchoice ([^\n]*)\n")

# dtype, block, M = K, N, density, more options: the fewest that find each candidate one that it computes on an H200, and vendors' rows and float32 theirs.
PROBLEMS = [("f16", "64x32", 1024, 256, 0.5, ""), ("bf16", "128", 1024, 1, 0.5, "--layout-b col --layout-d col"), ("f64", "72", 1008, 128, 0.1, "--use-c"),
            ("bf16", "16", 1024, 256, 0.1, ""), ("f16", "128", 1024, 512, 0.5, "--layout-b col --layout-d col --bias col --activation relu"),
            ("bf16", "128", 1024, 32, 0.5, ""), ("f32", "72", 1008, 256, 0.1, "--compute tf32"), ("f16", "64x32", 1024, 16, 0.5, ""),
            ("f16", "64x32", 1024, 32, 0.5, ""), ("f32", "8", 1024, 16, 0.1, ""), ("bf16", "64x32", 1024, 1024, 0.1, ""), ("f32", "64", 1024, 512, 0.1, ""),
            ("f16", "32", 1024, 512, 0.1, ""), ("f32", "1", 1024, 512, 0.05, ""), ("f16", "8", 1024, 512, 0.1, "")]

# Of the other products, in types, sizes and blocks that each own row computes.
SDDMM = ["--m 1024 --k 1024 --n 1024 --block 128 --dtype bf16 --density 0.2", "--m 1024 --k 1024 --n 512 --block 16 --dtype bf16 --density 0.1",
         "--m 1024 --k 1024 --n 512 --block 32 --dtype f32 --density 0.1", "--m 1008 --k 1008 --n 256 --block 72 --dtype f64 --density 0.1"]
GEMM = ["--m 4096 --k 4096 --n 4096 --dtype bf16", "--m 16 --k 1024 --n 1024 --dtype bf16", "--m 512 --k 512 --n 512 --dtype f64", "--m 512 --k 512 --n 512 --dtype f32"]

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
              "--dtype f16 --depth 32 --window-left 100 --diagonal bottom_right", "--dtype f32 --depth 64", "--dtype f64 --depth 16 --causal --diagonal top_left",
              "--dtype bf16 --depth 256 --causal --diagonal top_left", "--dtype f16 --depth 192 --depth-v 128 --causal --diagonal top_left")]


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


def joined(earlier, now):
    """Entries of an earlier run that a new one does not replace, and the new ones."""
    hashes = {e["hash"] for e in now}
    return [e for e in earlier if e["hash"] not in hashes] + now


def export(cache, out, program=None, device="cuda:0", add=False):
    """add: to what the file has already."""
    good, bad = collect(cache)
    if not good:
        raise Trouble(f"{cache}: there is no proof")
    if add and pathlib.Path(out).exists():
        earlier = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
        good, bad = joined(earlier["proved"], good), joined(earlier["refuted"], bad)
    document = envelope(program, device)
    document.update(command=f"bench/proved.py {sys.argv[1]} {pathlib.Path(out).name}", proved=good, refuted=bad)
    pathlib.Path(out).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{out}: {len(good)} candidates proved by {sum(e['programs'] for e in good)} programs, {len(bad)} refuted")


def options_of(op):
    """Of the problems to be tuned."""
    others = {"attention": ATTENTION, "attention_backward": GRADIENTS, "sddmm": SDDMM, "gemm": GEMM}
    if op in others:
        return others[op]
    return [f"--m {size} --k {size} --n {n} --block {block} --dtype {dtype} --density {density} {more}" for dtype, block, size, n, density, more in PROBLEMS]


def call(command, cache, seconds):
    """Whether it ended in time; what it says of a failure is printed."""
    try:
        done = subprocess.run(command, env={"SPARSEK_BUNDLE": str(BUNDLE), **os.environ, "SPARSEK_CACHE_DIR": str(cache)}, capture_output=True, text=True, timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command[1:])}: not done in {seconds:.0f} s", flush=True)
        return False
    if done.returncode != 0:
        print(f"{' '.join(command[1:])}: {done.stderr.strip()[-300:]}", flush=True)
    return True


def tune(op, problem, program, device, *more):
    return [program, "tune", "--device", device, "--op", op, *problem.split(), "--assume-finite", "--budget", "0.05", "--fresh", *more]


def run(out, op, program, device, seconds):
    """Exhaustive tuning has all candidates compiled and proved first, whatever the budget."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        cache = os.environ.get("SPARSEK_CACHE_DIR", folder)
        problems = options_of(op)
        for number, problem in enumerate(problems):
            left = end - time.monotonic()
            if left < 5:
                print(f"{len(problems) - number} problems are left out: the time is over")
                break
            if not call(tune(op, problem, program, device, "--effort", "exhaustive"), cache, left):
                break
        export(cache, out, program, device)


# ------------------------------------------------------------------------------------------------------------ proving again

FEW = 200  # candidates of a row that are all proved; of a row with more, those that tuning tries


class Again:
    """What the cards of the bundle lack, proved in a cache of its own."""

    def __init__(self, cache, program, device, seconds):
        self.cache, self.program, self.device, self.end = cache, program, device, time.monotonic() + seconds
        self.candidates = live_proofs.today()
        self.table = live_proofs.read_table(TABLE.read_text(encoding="utf-8"))
        self.cards = live_proofs.read_bundle(BUNDLE)

    def left(self):
        return self.end - time.monotonic()

    def lacking(self):
        """(own rows, chosen candidates) that some card lacks, after what is proved by now."""
        good, _ = collect(self.cache)
        found = [live_proofs.Proof(e["hash"], e["arch"], e["driver"] // 1000, *split_choice(e["choice"])) for e in good]
        lists = live_proofs.lacking(self.candidates, self.table + found, self.cards)
        return sorted({row for _, rows, _ in lists for row in rows}), sorted({choice for _, _, choices in lists for choice in choices})

    def prove_row(self, name):
        row = self.candidates.rows[name]
        count = 1
        for values in row.tunables.values():
            count *= len(values)
        effort = "exhaustive" if count <= FEW else "measure"
        for problem in options_of(row.op):
            if self.left() > 5:
                call(tune(row.op, problem, self.program, self.device, "--only", name, "--effort", effort), self.cache, self.left())

    def prove_classes(self):
        """A class that the bundle knows is not tuned: its choice is proved."""
        listed = pathlib.Path(self.cache) / "classes.json"
        subprocess.run([sys.executable, str(ROOT / "bench" / "bundle.py"), "list", str(listed), "--device", self.device], check=True)
        call([self.program, "tune", "--from", str(listed), "--device", self.device, "--budget", "0.05", "--quiet"], self.cache, self.left())

    def prove_choice(self, choice):
        """On problems drawn at random, until one is among them that the candidate computes."""
        params = ["--params", choice.params] if choice.params else []
        for seed in range(1, 9):
            if self.left() > 5 and choice in self.lacking()[1]:
                call([self.program, "check", "--device", self.device, "--kernel", choice.row, *params, "--each", "1", "--seed", str(seed)], self.cache, self.left())


def again(out, program, device, seconds, jobs):
    """Rows one after the other, as one tuning compiles on all processors; then the bundle's classes, then what of their choices is left."""
    with tempfile.TemporaryDirectory() as folder:
        work = Again(os.environ.get("SPARSEK_CACHE_DIR", folder), program, device, seconds)
        rows, choices = work.lacking()
        print(f"to prove: {len(rows)} rows ({', '.join(rows) or 'none'}) and {len(choices)} choices of the bundle", flush=True)
        for row in rows:
            work.prove_row(row)
        if work.lacking()[1] and work.left() > 5:
            work.prove_classes()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work.prove_choice, work.lacking()[1]))
        rows, choices = work.lacking()
        for row in rows:
            print(f"not proved: no candidate of {row}")
        for choice in choices:
            print(f"not proved: {choice.row} {choice.params}")
        export(work.cache, out, program, device, add=True)
    if rows or choices:
        raise Trouble("some are not proved: the same command after `bench/proved.py table` goes on with them")


def tell_dead(check, bundle):
    candidates, table = live_proofs.today(), live_proofs.read_table(TABLE.read_text(encoding="utf-8"))
    text, lacks = live_proofs.report(candidates, table, live_proofs.read_bundle(bundle))
    print(text or "every entry's choice is live, and no card lacks a proof")
    if check and lacks:
        raise Trouble("a card of the bundle lacks live proofs: on a GPU, bench/proved.py again OUT.json, then bench/proved.py table (bench/results/README.md)")


def table_text(documents):
    """The table of some runs: what is good in any, and bad in none."""
    good, bad = {}, set()
    for document in documents:
        bad.update(e["hash"] for e in document["refuted"])
        for e in document["proved"]:
            good[e["hash"], e["arch"], e["driver"] // 1000] = e["choice"]
    lines = ["/* Made by `bench/proved.py table`: the candidates that committed runs (in bench/results, their names have 'proved') found good, and none bad. */"]
    for (candidate, arch, driver), choice in sorted(good.items(), key=lambda item: (item[1], item[0])):
        if candidate not in bad:
            lines.append(f'SPK_PROVED("{candidate}", "{arch}", {driver}) /* {choice} */')
    return "\n".join(lines) + "\n"


def table(results, out, check):
    text = table_text(runs.read(results, "*proved*").values())
    if not check:
        out.write_text(text, encoding="utf-8")
    elif out.read_text(encoding="utf-8") != text:
        raise Trouble(f"{out} is not what {results} gives: run `python3 bench/proved.py table` and commit what it writes")


def carry(options):
    """Of what is refuted nothing is carried: it is proved again, or refuted again."""
    comparison = carrying.comparison_of(options)
    documents = runs.read(options.results, "*proved*")
    proved = [entry for document in documents.values() for entry in document["proved"]]
    refuted = {entry["hash"] for document in documents.values() for entry in document["refuted"]}
    problems = {op: options_of(op) + launches.MORE[op] for op in launches.MORE}
    entries = [carrying.Entry(entry, split_choice(entry["choice"])) for entry in proved]
    if carrying.carry_all(comparison, options, documents, entries, {entry["arch"] for entry in proved}, problems, refuted):
        print("next: python3 bench/proved.py table")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("out")
    one.add_argument("--op", choices=("spmm", "sddmm", "gemm", "attention", "attention_backward"), default="spmm")
    one.add_argument("--program", default=PROGRAM)
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
    four = commands.add_parser("dead")
    four.add_argument("--check", action="store_true")
    four.add_argument("--bundle", type=pathlib.Path, default=BUNDLE)
    five = commands.add_parser("again")
    five.add_argument("out")
    five.add_argument("--program", default=PROGRAM)
    five.add_argument("--device", default="cuda:0")
    five.add_argument("--seconds", type=float, default=500)
    five.add_argument("--jobs", type=int, default=6)
    carrying.add_options(commands.add_parser("carry"))
    act(parser.parse_args())


def act(options):
    try:
        if options.command == "run":
            run(options.out, options.op, options.program, options.device, options.seconds)
        elif options.command == "export":
            export(options.cache, options.out, options.program)
        elif options.command == "dead":
            tell_dead(options.check, options.bundle)
        elif options.command == "again":
            again(options.out, options.program, options.device, options.seconds, options.jobs)
        elif options.command == "carry":
            carry(options)
        else:
            table(options.results, options.out, options.check)
    except (Trouble, carrying.Trouble, runs.Trouble, OSError, ValueError, KeyError, subprocess.CalledProcessError) as trouble:
        sys.exit(f"proved.py: {trouble}")


if __name__ == "__main__":
    main()
