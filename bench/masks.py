#!/usr/bin/env python3
"""Attention under masks of blocks beside full attention, on the CPU, in alternated rounds of one process.

    bench/masks.py --library build/release/libsparsek.so --out FILE [--rounds 15] [--threads 2] [--budget 5]

Each block row keeps the same share of its blocks, at random. A ratio is the masked problem's time over that of the full one: the median over the rounds, and
the least time of the one over the least time of the other, which other programs disturb less. Needs Python alone.
"""
import argparse
import ctypes as C
import datetime
import json
import os
import pathlib
import random
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from race.library import I64, NOW_EACH, Indices, Library, TuneOptions, sized  # noqa: E402

DTYPES = {"f32": (1, 4), "bf16": (4, 2)}
SHAPE = dict(heads=4, queries=4096, keys=4096)
CASES = [dict(dtype=dtype, depth=depth, block=block, kept=kept) for dtype in DTYPES for depth in (64, 128) for block in (64, 128) for kept in (0.1, 0.25, 0.5)]


def make_pattern(library, block, kept):
    """The lists of blocks of one head, which all share; what lies in them must live as long as the call."""
    numbers, down = random.Random(19), SHAPE["queries"] // block
    across = SHAPE["keys"] // block
    rows = [sorted(numbers.sample(range(across), max(1, round(kept * across)))) for _ in range(down)]
    columns = [column for row in rows for column in row]
    offsets = [sum(map(len, rows[:i])) for i in range(down + 1)]
    arrays = (C.c_int64 * len(offsets))(*offsets), (C.c_int64 * len(columns))(*columns)
    made = C.c_void_p()
    indices = sized(Indices, rows=SHAPE["queries"], cols=SHAPE["keys"], block_rows=block, block_cols=block, nnzb=len(columns),
                    row_offsets=C.addressof(arrays[0]), col_indices=C.addressof(arrays[1]), index_type=I64)
    library.check(library.lib.spk_pattern_create(library.context, C.byref(indices), C.byref(made)))
    return made, len(columns) / (down * across)


class Plan:
    """A plan, tuned now, on memory of its own."""

    def __init__(self, library, case, pattern, budget):
        self.library, self.pattern, self.plan = library, pattern, C.c_void_p()
        operation, (dtype, size) = library.operations["attention"], DTYPES[case["dtype"]]
        problem, options = operation.problem(dtype=dtype, depth=case["depth"], **SHAPE), sized(TuneOptions, budget_s=budget, tuning=NOW_EACH)
        library.check(library.lib.spk_plan_create(library.context, pattern, problem, C.byref(options), C.byref(self.plan)))
        count = SHAPE["heads"] * SHAPE["queries"] * case["depth"]
        self.arrays = {name: (C.c_char * (count * size + 64))() for name in "qkvo"}
        at = {name: (C.addressof(array) + 63) // 64 * 64 for name, array in self.arrays.items()}
        for number, name in enumerate("qkv"):
            library.check(library.lib.spk_fill_random(library.context, dtype, C.c_int64(count), C.c_uint64(number + 1), C.c_void_p(at[name])))
        self.choice = library.choice(self.plan)
        self.args = operation.args(scale=case["depth"] ** -0.5, **at)

    def seconds(self):
        start = time.perf_counter()
        self.library.run(self.plan, self.args)
        return time.perf_counter() - start

    def close(self):
        self.library.destroy_plan(self.plan)


def measured(library, case, rounds, budget):
    pattern, kept = make_pattern(library, case["block"], case["kept"])
    plans = {"masked": Plan(library, case, pattern, budget), "full": Plan(library, case, None, budget)}
    times = {name: [] for name in plans}
    for plan in plans.values():
        plan.seconds()
    for number in range(rounds):
        for name in list(plans)[::-1 if number % 2 else 1]:
            times[name].append(plans[name].seconds())
    result = {**SHAPE, **case, "kept": round(kept, 4), "us": round(statistics.median(times["masked"]) * 1e6, 1), "full_us": round(statistics.median(times["full"]) * 1e6, 1),
              "ratio": round(statistics.median(m / f for m, f in zip(times["masked"], times["full"])), 4), "least_ratio": round(min(times["masked"]) / min(times["full"]), 4),
              "chosen": plans["masked"].choice, "full_chosen": plans["full"].choice}
    for plan in plans.values():
        plan.close()
    library.destroy_pattern(pattern)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=5, help="seconds of tuning a plan")
    parser.add_argument("--only", default="", help="cases of this dtype only")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    library, results = Library(options.library, "cpu", ""), []
    for case in CASES:
        if options.only not in ("", case["dtype"]):
            continue
        results.append(measured(library, case, options.rounds, options.budget))
        r = results[-1]
        print(f"{r['dtype']:5} depth {r['depth']:3} blocks {r['block']:3} kept {r['kept']:.3f}: {r['us']:10.1f} us for {r['full_us']:10.1f}, ratio {r['ratio']:.3f}, "
              f"least {r['least_ratio']:.3f} {r['chosen']} | {r['full_chosen']}", flush=True)
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    document = {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/masks.py " + " ".join(sys.argv[1:]), "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": options.threads},
                "masks": results}
    options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
