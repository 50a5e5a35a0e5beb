"""What a call costs besides the product: python bench/python/host.py [--beside FOLDER] [--pairs N] [--calls N] [--json FILE].

Small products of known classes on one thread, which take a microsecond or two: sa.matmul, sa.SparseLinear without and with gradients, sa.sddmm, sa.gemm,
sa.attention. Of each one the median over --calls calls, in microseconds. --beside: a folder with another installation of sparse_autotune
(pip install --target). The two are timed in turns, --pairs times, each in a process of its own; the file has the medians, and the median of the ratios of
this one to the other.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from arguments import integer, result_file


def timed(calls):
    import torch

    import sparse_autotune as sa

    torch.set_num_threads(1)
    torch.manual_seed(1)
    sa.set_options(store="", effort="measure", tuning="now", budget_s=0.05, warm=True)
    a = sa.BSR.from_dense(torch.randn(64, 64), block=16, density=0.3, by="l2")
    x, y, layer = torch.randn(64, 8), torch.randn(8, 64), sa.SparseLinear(64, 64, 16, 0.3)
    q = torch.randn(1, 2, 32, 16)
    ones = torch.ones(8, 64)

    def trained():
        made = layer(y)
        torch.autograd.grad(made, (layer.values, layer.bias), ones)

    products = {
        "matmul": lambda: sa.matmul(a, x),
        "SparseLinear": lambda: layer(y),
        "SparseLinear, gradients": trained,
        "sddmm": lambda: sa.sddmm(a, x, y),
        "gemm": lambda: sa.gemm(y, x),
        "attention": lambda: sa.attention(q, q, q, causal=True),
    }
    found = {}
    for name, call in products.items():
        with torch.set_grad_enabled("gradients" in name):
            for _ in range(50):
                call()
            times = []
            for _ in range(calls):
                begin = time.perf_counter_ns()
                call()
                times.append(time.perf_counter_ns() - begin)
        found[name] = 1e-3 * statistics.median(times)
    from sparse_autotune import _C

    return dict(commit=_C.commit(), us=found)


def run(folder, calls):
    env = os.environ | {"SPARSEK_BUNDLE": ""} | ({"PYTHONPATH": str(folder)} if folder else {})
    done = subprocess.run([sys.executable, __file__, "--calls", str(calls), "--once"], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--beside", type=pathlib.Path)
    parser.add_argument("--pairs", type=integer(1), default=11)
    parser.add_argument("--calls", type=integer(10), default=3000)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=result_file)
    options = parser.parse_args()
    if options.once:
        print(json.dumps(timed(options.calls)))
        return
    runs = {None: [], options.beside: []}
    for _ in range(options.pairs):
        for folder, list_of in runs.items():
            list_of.append(run(folder, options.calls))
    found = dict(command="python bench/python/host.py " + " ".join(sys.argv[1:]), date=datetime.date.today().isoformat(), schema=1, calls=options.calls)
    found |= dict(commit=runs[None][0]["commit"], beside=runs[options.beside][0]["commit"] if options.beside else None, host=[])
    for name in runs[None][0]["us"]:
        ours, others = ([one["us"][name] for one in runs[folder]] for folder in (None, options.beside))
        row = dict(call=name, us=round(statistics.median(ours), 3))
        if options.beside:
            row |= dict(beside_us=round(statistics.median(others), 3), ratio=round(statistics.median(a / b for a, b in zip(ours, others, strict=True)), 4))
        found["host"].append(row)
        print(row)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
