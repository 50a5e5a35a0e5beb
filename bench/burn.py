#!/usr/bin/env python3
"""Runs the benchmark of rust/burn-sparse and writes its medians down: bench/burn.py FILE [CARGO BENCH'S OPTIONS]. --read in place of options: what ran last.

Needs cargo, and the library where SPARSEK_ROOT says, or else builds it. On a machine that does other things, run it under `chrt -r 1`.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = ROOT / "rust" / "burn-sparse"
FORWARD = {"m": 4096, "k": 4096, "n": 256, "density": 0.1, "dtype": "f32", "layout_b": "col", "layout_d": "col", "epilogue": "bias", "assume_finite": True}
CALL = {**FORWARD, "m": 32, "k": 32, "n": 1, "density": 1.0}
PROBLEMS = {"forward_b32": {**FORWARD, "block_rows": 32, "block_cols": 32}, "forward_b64": {**FORWARD, "block_rows": 64, "block_cols": 64},
            "call": {**CALL, "block_rows": 32, "block_cols": 32}}


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=CRATE, **options).stdout.strip()


def commit():
    short = output_of("git", "rev-parse", "--short=12", "HEAD")
    return short + ("-dirty" if output_of("git", "status", "--porcelain", "--untracked-files=no") else "")


def target_folder():
    return pathlib.Path(json.loads(output_of("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"))["target_directory"])


def rows_of(folder):
    """Medians and the spread of a group's benches in microseconds, and how each compares with the sparse layer."""
    rows = {}
    for path in sorted(folder.glob("*/new/estimates.json")):
        estimates = json.loads(path.read_text())
        rows[path.parts[-3]] = {"median_us": estimates["median"]["point_estimate"] / 1e3, "spread_us": estimates["median_abs_dev"]["point_estimate"] / 1e3}
    own = rows["sparse_linear"]["median_us"]
    for row in rows.values():
        row["over_sparse_linear"] = row["median_us"] / own
    return rows


def cargo_bench(options):
    """Runs it, and gives what it says of itself: the processor and the chosen kernels, which go to stderr."""
    command = ["cargo", "bench", "--locked", "--bench", "linear", *options]
    with subprocess.Popen(command, cwd=CRATE, stderr=subprocess.PIPE, text=True) as bench:
        said = []
        for line in bench.stderr:
            print(line, end="", file=sys.stderr)
            said.append(line.strip())
    if bench.returncode:
        sys.exit(bench.returncode)
    device = next(json.loads(line) for line in said if line.startswith("{"))
    return device, said


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    options = sys.argv[2:]
    device, said = (None, []) if options == ["--read"] else cargo_bench(options)
    groups = {name: rows_of(target_folder() / "criterion" / name) for name in PROBLEMS}
    results = [{"problem": problem, "rows": groups[name]} for name, problem in PROBLEMS.items()]
    for key, begins, read in (("chosen", "chosen: ", str), ("over_library_paired", "over the library: ", float)):
        for result, line in zip(results, (line for line in said if line.startswith(begins))):
            result[key] = read(line.removeprefix(begins))
    call = groups["call"]
    document = {"schema": 1, "burn": "0.22.1", "commit": commit(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": " ".join(["bench/burn.py", "FILE", *options]), "device": device or {"kind": "cpu", "threads": os.cpu_count()}, "results": results,
                "call_over_library_us": call["sparse_linear"]["median_us"] - call["library"]["median_us"]}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(document, indent=1) + "\n")
    for name, rows in groups.items():
        print(name, *(f"{row}: {values['median_us']:.1f} us ({values['over_sparse_linear']:.3f})" for row, values in rows.items()), sep="\n  ")
    print(f"a call costs {document['call_over_library_us']:.2f} us over the library's")


if __name__ == "__main__":
    main()
