#!/usr/bin/env python3
"""Attention on the CPU beside PyTorch's scaled_dot_product_attention, in alternated rounds.

    bench/attention.py --library build/release/libsparsek.so --out FILE [--rounds 15] [--threads 2] [--budget 5]

Item, head, row, column for both; the same numbers; the same threads. A ratio is PyTorch's time over ours, the median over the rounds. Errors are the largest
difference from PyTorch in float64 over the largest |V|. Needs PyTorch.
"""
import argparse
import ctypes as C
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from race.library import Library, TuneOptions, sized  # noqa: E402

TOP_LEFT = 1
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
CASES = [dict(heads=heads, heads_kv=kv, queries=s, keys=s, depth=depth, causal=causal, dtype=dtype)
         for dtype in DTYPES
         for heads, kv, s, depth in ((8, 8, 512, 64), (8, 8, 2048, 64), (4, 4, 2048, 128), (8, 2, 2048, 128), (2, 2, 8192, 128))
         for causal in (0, 1)]
CASES += [dict(heads=8, heads_kv=8, queries=1, keys=8192, depth=128, causal=0, dtype=dtype) for dtype in DTYPES]


class Ours:
    """A plan of the library, tuned now, on tensors that it borrows."""

    def __init__(self, library, case, q, k, v, budget):
        given = {name: case[name] for name in ("heads", "heads_kv", "queries", "keys", "depth", "causal")}
        operation = library.operations["attention"]
        problem = operation.problem(dtype={"f32": 1, "bf16": 4}[case["dtype"]], diagonal=TOP_LEFT, **given)
        options = sized(TuneOptions, budget_s=budget)
        self.library, self.plan = library, C.c_void_p()
        library.check(library.lib.spk_plan_create(library.context, None, problem, C.byref(options), C.byref(self.plan)))
        self.out = torch.empty_like(q)
        self.choice = library.lib.spk_plan_choice(self.plan).decode()
        self.args = operation.args(q=q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=self.out.data_ptr(), scale=case["depth"] ** -0.5)

    def run(self):
        self.library.check(self.library.lib.spk_run(self.plan, self.args, None))
        return self.out

    def close(self):
        self.library.lib.spk_plan_destroy(C.byref(self.plan))


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measured(library, case, rounds, budget):
    torch.manual_seed(1)
    dtype = DTYPES[case["dtype"]]
    q, k, v = (torch.randn(1, heads, rows, case["depth"]).to(dtype)
               for heads, rows in ((case["heads"], case["queries"]), (case["heads_kv"], case["keys"]), (case["heads_kv"], case["keys"])))
    peer = lambda *x: torch.nn.functional.scaled_dot_product_attention(*x, is_causal=bool(case["causal"]), enable_gqa=case["heads"] != case["heads_kv"])  # noqa: E731
    ours = Ours(library, case, q, k, v, budget)
    wanted = peer(*(x.double() for x in (q, k, v)))
    errors = {name: float((got.double() - wanted).abs().max() / v.abs().max()) for name, got in (("ours", ours.run()), ("peer", peer(q, k, v)))}
    pairs = []
    for number in range(rounds):
        both = {}
        for name, call in (("ours", ours.run), ("peer", lambda: peer(q, k, v)))[::-1 if number % 2 else 1]:
            both[name] = seconds(call)
        pairs.append(both)
    ours.close()
    ratios = sorted(p["peer"] / p["ours"] for p in pairs)
    kept = sum(min(i + 1, case["keys"]) for i in range(case["queries"])) if case["causal"] else case["queries"] * case["keys"]
    flops, us = 4 * kept * case["depth"] * case["heads"], {name: statistics.median(p[name] for p in pairs) * 1e6 for name in ("ours", "peer")}
    return {**case, "chosen": ours.choice, "us": round(us["ours"], 2), "peer_us": round(us["peer"], 2), "gflops": round(flops / us["ours"] / 1e3, 1),
            "peer_gflops": round(flops / us["peer"] / 1e3, 1), "ratio": round(statistics.median(ratios), 4), "least": round(ratios[0], 4), "most": round(ratios[-1], 4),
            "error": float(f"{errors['ours']:.3g}"), "peer_error": float(f"{errors['peer']:.3g}")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=5, help="seconds of tuning a case")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch.set_num_threads(options.threads)
    library = Library(options.library, "cpu", "")
    results = []
    with torch.no_grad():
        for case in CASES:
            results.append(measured(library, case, options.rounds, options.budget))
            r = results[-1]
            print(f"{r['dtype']:5} {r['heads']}/{r['heads_kv']} heads {r['queries']:5} x {r['keys']:5} x {r['depth']:3} {'causal' if r['causal'] else 'full':6} "
                  f"{r['us']:10.1f} us {r['gflops']:7.1f} GFLOP/s, peer {r['peer_gflops']:7.1f}: {r['ratio']:.3f} ({r['least']:.2f} to {r['most']:.2f}) {r['chosen']}", flush=True)
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    document = {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/attention.py " + " ".join(sys.argv[1:]), "peer": f"PyTorch {torch.__version__}",
                "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": options.threads}, "attention": results}
    options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
