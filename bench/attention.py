#!/usr/bin/env python3
"""Attention on the CPU beside PyTorch's scaled_dot_product_attention, in alternated rounds.

    bench/attention.py --library build/release/libsparsek.so --out FILE [--rounds 15] [--threads 2] [--budget 5] [--only WORD]

Item, head, row, column for both; the same numbers; the same threads. A ratio is PyTorch's time over ours, the median over the rounds. Errors are the largest
difference from PyTorch in float64 over the largest |V|. A mask of blocks, or a window, is a mask of elements to PyTorch. Needs PyTorch.
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
from attention_gpu import TOP_LEFT, case, kept_pairs, make_pattern, mask_lists  # noqa: E402
from race.library import NOW_EACH, Library, TuneOptions, sized  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
CASES = [case("", heads, s, depth, heads_kv=kv, causal=causal) for heads, kv, s, depth in ((8, 8, 1024, 64), (8, 8, 2048, 64), (8, 8, 2048, 128), (8, 2, 2048, 128), (2, 2, 8192, 128))
         for causal in (0, 1)]
CASES += [case("", 8, 2048, 128, causal=1, window=256), case("", 8, 1, 128, keys=8192), case("", 8, 1, 128, heads_kv=2, keys=8192), case("", 4, 2048, 64, block=64, kept=3, lists=4), case("", 4, 4096, 128, block=128, kept=3, lists=4)]


class Ours:
    """A plan of the library, tuned now, on tensors that it borrows."""

    def __init__(self, library, c, dtype, lists, q, k, v, budget):
        given = {name: c[name] for name in ("heads", "heads_kv", "queries", "keys", "depth", "causal")}
        operation = library.operations["attention"]
        problem = operation.problem(dtype={"f32": 1, "bf16": 4}[dtype], diagonal=TOP_LEFT, window_left=c["window"], mask_heads=c["lists"], **given)
        options = sized(TuneOptions, budget_s=budget, tuning=NOW_EACH)
        self.library, self.plan = library, C.c_void_p()
        library.check(library.lib.spk_plan_create(library.context, make_pattern(library, c, lists) if lists else None, problem, C.byref(options), C.byref(self.plan)))
        self.out = torch.empty_like(q)
        self.choice = library.choice(self.plan)
        self.args = operation.args(q=q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=self.out.data_ptr(), scale=c["depth"] ** -0.5)

    def run(self):
        self.library.run(self.plan, self.args)
        return self.out


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measured(library, c, dtype, rounds, budget):
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, heads, rows, c["depth"]).to(DTYPES[dtype])
               for heads, rows in ((c["heads"], c["queries"]), (c["heads_kv"], c["keys"]), (c["heads_kv"], c["keys"])))
    lists, mask = mask_lists(c) if c["block"] else None, None
    if lists:
        blocks = torch.zeros(len(lists), c["keys"] // c["block"], dtype=torch.bool)
        for row, columns in zip(blocks, lists):
            row[columns] = True
        mask = blocks.repeat_interleave(c["block"], 0).repeat_interleave(c["block"], 1).unflatten(0, (c["lists"], -1)).unsqueeze(0)
    if c["window"]:
        behind = torch.arange(c["queries"])[:, None] - torch.arange(c["keys"])
        mask = (behind >= 0) & (behind < c["window"])
    peer = lambda *x: torch.nn.functional.scaled_dot_product_attention(*x, attn_mask=mask, is_causal=bool(c["causal"] and not c["window"]), enable_gqa=c["heads"] != c["heads_kv"])  # noqa: E731
    ours = Ours(library, c, dtype, lists, q, k, v, budget)
    calls = {"ours": ours.run, "pytorch": lambda: peer(q, k, v)}
    wanted = peer(*(x.double() for x in (q, k, v)))
    errors = {name: float((call().double() - wanted).abs().max() / v.abs().max()) for name, call in calls.items()}
    pairs = [{name: seconds(calls[name]) for name in list(calls)[::-1 if number % 2 else 1]} for number in range(rounds)]
    library.destroy_plan(ours.plan)
    ratios, flops, us = sorted(p["pytorch"] / p["ours"] for p in pairs), 4 * kept_pairs(c, lists) * c["depth"], {name: statistics.median(p[name] for p in pairs) * 1e6 for name in calls}
    return {"dtype": dtype, **{key: value for key, value in c.items() if key != "name"}, "chosen": ours.choice, "us": {name: round(x, 1) for name, x in us.items()},
            "gflops": {name: round(flops / x / 1e3, 1) for name, x in us.items()}, "ratios": {"pytorch": round(statistics.median(ratios), 4)}, "least": round(ratios[0], 4),
            "most": round(ratios[-1], 4), "errors": {name: float(f"{x:.3g}") for name, x in errors.items()}}


def spoken(dtype, c):
    mask = f"window {c['window']}" if c["window"] else "causal" if c["causal"] else f"b{c['block']}" if c["block"] else "full"
    return f"{dtype} {c['heads']}/{c['heads_kv']} {c['queries']}x{c['keys']}x{c['depth']} {mask}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="cases whose line has this word")
    parser.add_argument("--budget", type=float, default=5, help="seconds of tuning a case")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch.set_num_threads(options.threads)
    library = Library(options.library, "cpu", "")
    results = []
    with torch.no_grad():
        for dtype, c in ((dtype, c) for dtype in DTYPES for c in CASES):
            if options.only not in spoken(dtype, c):
                continue
            r = measured(library, c, dtype, options.rounds, options.budget)
            results.append(r)
            print(f"{spoken(dtype, c):42} {r['us']['ours']:10.1f} us {r['gflops']['ours']:7.1f} GFLOP/s, PyTorch {r['gflops']['pytorch']:7.1f}: {r['ratios']['pytorch']:.3f} "
                  f"({r['least']:.2f} to {r['most']:.2f}) {r['chosen']}", flush=True)
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    document = {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/attention.py " + " ".join(sys.argv[1:]), "peer": f"PyTorch {torch.__version__}",
                "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": options.threads}, "attention": results}
    options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
