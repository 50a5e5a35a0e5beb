#!/usr/bin/env python3
"""Two builds beside each other, in alternated rounds: what a call costs the host before any arithmetic, and how many cases `sparsek check` tries in a second.

    bench/against.py --old OTHER/build/release --new build/release --out FILE [--rounds 12] [--python-old PYTHON --python-new PYTHON]

A build is a release build with the target bench_overhead. --python-...: interpreters that have the package of that build, PyTorch and numpy; calls from Python are
timed with them, too. Every figure is the median over the rounds; a ratio is the median over the rounds of new over old.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PYTHON = """
import json, statistics, time, torch
import sparse_autotune as sa
sa.set_options(tuning="now")
torch.manual_seed(1)
torch.set_num_threads(1)
dense = torch.randn(64, 64)
a, x, y = sa.BSR.from_dense(dense, block=16, density=0.5), torch.randn(64, 8), torch.randn(8, 64)
linear = torch.nn.Linear(64, 64)
with torch.no_grad():
    linear.weight.copy_(dense)
layer = sa.SparseLinear.from_linear(linear, block=16, density=0.5)
def cost(call):
    for _ in range(300):
        call()
    took = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(1000):
            call()
        took.append((time.perf_counter() - start) * 1e3)
    return statistics.median(took)
with torch.no_grad():
    found = {"sa_matmul_us": cost(lambda: sa.matmul(a, x)), "at_operator_us": cost(lambda: a @ x), "sparse_linear_us": cost(lambda: layer(y))}
print(json.dumps(found))
"""


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()[-400:]}")
    return done.stdout


def overhead(build):
    made = json.loads(run([build / "bench" / "bench_overhead"]))
    return made["commit"], {name: value for name, value in made.items() if name.endswith("_us")}


def cases_a_second(build, seed):
    """Of SpMM, whose draws are the same in both builds as long as nobody changes them."""
    with tempfile.TemporaryDirectory() as folder:
        text = run([build / "sparsek", "check", "--cases", "250", "--seed", str(seed), "--op", "spmm"], SPARSEK_CACHE_DIR=folder)
    cases, seconds = re.search(r"(\d+) cases, seed \d+, ([\d.]+) s", text).groups()
    return {"check_cases_per_s": int(cases) / float(seconds)}


def calls(python):
    return json.loads(run([python, "-c", PYTHON], SPARSEK_STORE="")) if python else {}


def measured(build, python, number):
    commit, found = overhead(build)
    return commit, {**found, **cases_a_second(build, 1000 + number), **calls(python)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=pathlib.Path, required=True)
    parser.add_argument("--new", type=pathlib.Path, required=True)
    parser.add_argument("--python-old")
    parser.add_argument("--python-new")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    old, new, commits = [], [], {}
    for number in range(options.rounds):
        for name, build, python, kept in (("old", options.old, options.python_old, old), ("new", options.new, options.python_new, new))[::-1 if number % 2 else 1]:
            commits[name], found = measured(build.resolve(), python, number)
            kept.append(found)
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    figures = {}
    for name in new[0]:
        pairs = [(a[name], b[name]) for a, b in zip(old, new) if a.get(name, 0) > 0 and b.get(name, 0) > 0]
        if pairs:
            ratios = sorted(b / a for a, b in pairs)
            figures[name] = {"old": round(statistics.median(a for a, _ in pairs), 4), "new": round(statistics.median(b for _, b in pairs), 4),
                             "ratio": round(statistics.median(ratios), 4), "least": round(ratios[0], 4), "most": round(ratios[-1], 4), "pairs": len(pairs)}
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    document = {"schema": 1, "against": commits["old"], "commit": commits["new"], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/against.py " + " ".join(sys.argv[1:]), "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": os.cpu_count()},
                "figures": figures}
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    for name, f in figures.items():
        print(f"{name:36} {f['old']:10.3f} {f['new']:10.3f}  {f['ratio']:.3f}  ({f['least']:.2f} to {f['most']:.2f})")


if __name__ == "__main__":
    main()
