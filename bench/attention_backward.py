#!/usr/bin/env python3
"""Gradients of attention in bfloat16 on the CPU: rows of ours and PyTorch's scaled_dot_product_attention, in alternated rounds.

    bench/attention_backward.py --library build/release/libsparsek.so --out FILE [--rows NAME,NAME] [--rounds 9] [--threads 2] [--only WORD]

Item, head, row, column for all; the same numbers; the same threads. PyTorch's forward pass is not timed. A ratio is the other's time over that of the first
row, the median over the rounds. Errors are the largest difference from PyTorch in float64 over the largest gradient. Needs PyTorch.
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
from attention_gpu import TOP_LEFT, case  # noqa: E402
from race.library import NOW_EACH, Library, TuneOptions, sized  # noqa: E402

BF16 = 4
CASES = [case("", 8, queries, depth, causal=causal) for queries in (512, 1024, 2048) for depth in (64, 128) for causal in (0, 1)]
CASES += [case("", 8, 2048, 128, heads_kv=2, causal=1)]


class Ours:
    """A plan of a row, whose parameters are tuned now, on tensors that it borrows."""

    def __init__(self, library, c, row, arrays, budget):
        operation = library.operations["attention_backward"]
        problem = operation.problem(dtype=BF16, diagonal=TOP_LEFT, **{name: c[name] for name in ("heads", "heads_kv", "queries", "keys", "depth", "causal")})
        options = sized(TuneOptions, budget_s=budget, tuning=NOW_EACH, only=row.encode())
        self.library, self.plan, self.out = library, C.c_void_p(), tuple(torch.empty_like(arrays[name]) for name in "qkv")
        library.check(library.lib.spk_plan_create(library.context, None, problem, C.byref(options), C.byref(self.plan)))
        self.choice = library.choice(self.plan)
        self.args = operation.args(**{name: array.data_ptr() for name, array in arrays.items()}, scale=c["depth"] ** -0.5,
                                   **{f"grad_{name}": array.data_ptr() for name, array in zip("qkv", self.out, strict=True)})

    def run(self):
        self.library.run(self.plan, self.args)
        return self.out


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def gradients(c, q, k, v, grad_o):
    """A call that computes them, by PyTorch; and O."""
    inputs = tuple(x.detach().requires_grad_() for x in (q, k, v))
    o = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=bool(c["causal"]), enable_gqa=c["heads"] != c["heads_kv"])
    return lambda: torch.autograd.grad(o, inputs, grad_o, retain_graph=True), o.detach()


def measured(library, c, rows, rounds, budget):
    torch.manual_seed(1)
    shapes = [(1, c[heads], c[count], c["depth"]) for heads, count in (("heads", "queries"), ("heads_kv", "keys"), ("heads_kv", "keys"), ("heads", "queries"))]
    q, k, v, grad_o = (torch.randn(shape).bfloat16() for shape in shapes)
    theirs, o = gradients(c, q, k, v, grad_o)
    scores = q.double() @ k.double().repeat_interleave(c["heads"] // c["heads_kv"], 1).transpose(-1, -2) * c["depth"] ** -0.5
    if c["causal"]:
        scores.masked_fill_(torch.ones(c["queries"], c["keys"], dtype=torch.bool).triu(1), float("-inf"))
    lse = scores.logsumexp(-1).float().contiguous()
    del scores
    arrays = {"q": q, "k": k, "v": v, "o": o.contiguous(), "lse": lse, "grad_o": grad_o}
    ours = {row: Ours(library, c, row, arrays, budget) for row in rows}
    calls = {**{row: plan.run for row, plan in ours.items()}, "pytorch": theirs}
    wanted = gradients(c, *(x.double() for x in (q, k, v, grad_o)))[0]()
    errors = {name: max(float((a.double() - b).abs().max() / b.abs().max()) for a, b in zip(call(), wanted, strict=True)) for name, call in calls.items()}
    taken = [{name: seconds(calls[name]) for name in list(calls)[::-1 if number % 2 else 1]} for number in range(rounds)]
    for plan in ours.values():
        library.destroy_plan(plan.plan)
    kept = c["heads"] * (c["queries"] * (c["queries"] + 1) // 2 if c["causal"] else c["queries"] * c["keys"])
    us = {name: statistics.median(t[name] for t in taken) * 1e6 for name in calls}
    ratios = {name: sorted(t[name] / t[rows[0]] for t in taken) for name in calls if name != rows[0]}
    return {"dtype": "bf16", **{key: c[key] for key in ("heads", "heads_kv", "queries", "keys", "depth", "causal")},
            "chosen": {row: plan.choice for row, plan in ours.items()}, "us": {name: round(x, 1) for name, x in us.items()},
            "gflops": {name: round(10 * kept * c["depth"] / x / 1e3, 1) for name, x in us.items()},
            "ratios": {name: round(statistics.median(r), 3) for name, r in ratios.items()},
            "least": {name: round(r[0], 3) for name, r in ratios.items()}, "most": {name: round(r[-1], 3) for name, r in ratios.items()},
            "errors": {name: float(f"{x:.3g}") for name, x in errors.items()}}


def spoken(c):
    return f"{c['heads']}/{c['heads_kv']} {c['queries']}x{c['keys']}x{c['depth']} {'causal' if c['causal'] else 'full'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rows", default="attention_backward_bf16_avx512,attention_backward_avx512", help="the first is what the others are compared with")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="cases whose line has this word")
    parser.add_argument("--budget", type=float, default=2, help="seconds of tuning a row and case")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch.set_num_threads(options.threads)
    library, rows, results = Library(options.library, "cpu", ""), options.rows.split(","), []
    for c in CASES:
        if options.only not in spoken(c):
            continue
        r = measured(library, c, rows, options.rounds, options.budget)
        results.append(r)
        print(f"{spoken(c):24} {r['us'][rows[0]]:10.1f} us {r['gflops'][rows[0]]:7.1f} GFLOP/s; "
              + ", ".join(f"{name} {ratio:.2f} ({r['least'][name]:.2f} to {r['most'][name]:.2f})" for name, ratio in r["ratios"].items())
              + f" {r['chosen'][rows[0]]} {r['errors']}", flush=True)
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    document = {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/attention_backward.py " + " ".join(sys.argv[1:]), "peer": f"PyTorch {torch.__version__}",
                "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": options.threads}, "gradients": results}
    options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
