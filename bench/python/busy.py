"""Tuning and products beside busy loops: python bench/python/busy.py [--loops 1,2,4] [--count N] [--budget-s S] [--json FILE] [--threads N].

Random problems (--count) of SpMM, SDDMM, GEMM and attention with and without masks, on the CPU. For each number of loops: how long a tuning took, over its
budget; and, once the loops are gone, what the choice loses beside that of a tuning on the quiet machine: the two are timed in turns, and the loss is the median
of the ratios, less one. Then one product of float32 runs for some seconds, alone and beside each number of loops: the median and the 95th percentile.
"""

import argparse
import contextlib
import datetime
import json
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

import first_calls
import torch
from arguments import SECONDS, integer, listed, result_file

import sparse_autotune as sa
from sparse_autotune import _C

KINDS = ("spmm", "sddmm", "gemm", "attention", "attention-mask")
RUNNING_S, COLUMNS = 3.0, (32, 128)


def turn():
    while True:
        pass


@contextlib.contextmanager
def busy(loops):
    """So many processes that do nothing else; they have begun."""
    spawned = [multiprocessing.get_context("fork").Process(target=turn, daemon=True) for _ in range(loops)]
    for process in spawned:
        process.start()
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in spawned:
            process.kill()
            process.join()


def problem(number, seed, device="cpu"):
    rng = random.Random(1000 * seed + number)
    torch.manual_seed(1000 * seed + number)
    kind = KINDS[number % len(KINDS)]
    dtype = rng.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16])
    return kind, str(dtype)[6:], first_calls.KINDS[kind](rng, dict(device=device, dtype=dtype))


def tuned(call, store, budget_s):
    sa.set_options(store=store, tuning="now", budget_s=budget_s)
    sa.clear_cache()
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def judged(number, options, folder):
    kind, dtype, call = problem(number, options.seed)
    row = dict(number=number, kind=kind, dtype=dtype, over_budget={}, loss={})
    for loops in options.loops:
        with busy(loops):
            row["over_budget"][loops] = round(tuned(call, folder / f"busy{loops}.db", options.budget_s) / options.budget_s, 2)
    tuned(call, folder / "quiet.db", options.budget_s)
    usual_s = min(first_calls.seconds(call, "cpu") for _ in range(5))
    for loops in options.loops:
        pair = ((folder / f"busy{loops}.db", "ahead_each"), (folder / "quiet.db", "ahead_each"))
        row["loss"][loops] = round(first_calls.loss(call, "cpu", pair, usual_s)[0], 4)
    sa.set_options(store="")
    return row


def at(values, part):
    return sorted(values)[round(part * (len(values) - 1))]


def percentiles(call):
    for _ in range(20):
        call()
    times, end = [], time.perf_counter() + RUNNING_S
    while time.perf_counter() < end:
        times.append(1e6 * first_calls.seconds(call, "cpu"))
    return dict(median_us=round(at(times, 0.5), 1), p95_us=round(at(times, 0.95), 1), runs=len(times))


def running(columns, options):
    torch.manual_seed(1)
    a = sa.BSR.from_dense(torch.randn(2048, 2048), block=32, density=0.1, by="l2")
    x = torch.randn(2048, columns)
    sa.set_options(store="", tuning="never")
    found = {0: percentiles(lambda: sa.matmul(a, x))}
    for loops in options.loops:
        with busy(loops):
            found[loops] = percentiles(lambda: sa.matmul(a, x))
    return dict(columns=columns, loops=found)


def summary(rows, loops):
    return {
        count: dict(
            over_budget=dict(median=at([row["over_budget"][count] for row in rows], 0.5), most=max(row["over_budget"][count] for row in rows)),
            loss=dict(
                median=at([row["loss"][count] for row in rows], 0.5),
                p95=at([row["loss"][count] for row in rows], 0.95),
                most=max(row["loss"][count] for row in rows),
            ),
            within_15_percent=round(sum(row["loss"][count] <= 0.15 for row in rows) / len(rows), 3),
        )
        for count in loops
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loops", type=listed(integer(1, 64)), default=[1, 2, 4], help="busy loops, one after the other")
    parser.add_argument("--count", type=integer(1), default=40)
    parser.add_argument("--seed", type=integer(0), default=1)
    parser.add_argument("--budget-s", type=SECONDS, default=1.0, help="of each tuning")
    parser.add_argument("--threads", type=integer(1, 1024), default=torch.get_num_threads())
    parser.add_argument("--json", type=result_file)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["SPARSEK_BUNDLE"] = ""
    sa.set_options(effort="measure", warm=True)
    found = dict(
        command="python bench/python/busy.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        threads=options.threads,
        budget_s=options.budget_s,
        problems=[],
        running=[],
    )
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            row = judged(number, options, pathlib.Path(folder))
        found["problems"].append(row)
        print(f"{number:3} {row['kind']:16} {row['dtype']:8} over its budget {row['over_budget']}; loss {row['loss']}", flush=True)
    found["summary"] = summary(found["problems"], options.loops)
    for columns in COLUMNS:
        found["running"].append(running(columns, options))
        print(found["running"][-1], flush=True)
    for loops, row in found["summary"].items():
        print(f"{loops} loops: {row}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
