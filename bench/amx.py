#!/usr/bin/env python3
"""SpMM in bfloat16 on the CPU beside dense products of the same sizes, in one process: PyTorch's matmul (oneDNN), and the library's own rows.

    bench/amx.py --library build/release/libsparsek.so --out FILE [--rounds 9] [--rows 4096] [--columns 512] [--blocks 32,64,128] [--densities 0.1,0.5]

Contestants take turns: a burst of runs each, after a pause in which the threads of the one before come to rest; the time of a burst is the median of its
runs, a ratio that of two bursts of the same round. Rates count stored blocks; the dense product's counts all of A. The rows besides what the tuner chooses
(`ours`) are named by --also; SPARSEK_ONEDNN names oneDNN. Needs PyTorch.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from race.bursts import document, in_turn, spread  # noqa: E402
from race.case import Case  # noqa: E402
from race.library import Library  # noqa: E402


class Ours:
    """A plan of the library: what the tuner chooses among all rows, or the best of one."""

    def __init__(self, library, case, pattern, operands, only):
        self.library = library
        self.plan = library.plan("spmm", case, pattern, dict(dtype_a=4, dtype_b=4, dtype_d=4, n=case.n), fresh=True, only=None if only == "ours" else only)
        self.choice = library.choice(self.plan)
        values, b, self.out = operands
        self.args = library.args("spmm", values=values.data_ptr(), b=b.data_ptr(), d=self.out.data_ptr())

    def run(self):
        self.library.run(self.plan, self.args)
        return self.out


def measured(library, block, density, options):
    case = Case("", "peers", options.rows, options.rows, options.columns, (block, block), density, "bf16", cache="warm", assume_finite=True)
    offsets, columns = library.generate(case, 1)
    pattern = library.pattern(case, offsets, columns)
    torch.manual_seed(1)
    values, b = torch.randn(len(columns), block, block).bfloat16(), torch.randn(options.rows, options.columns).bfloat16()
    dense = torch.zeros(options.rows // block, options.rows // block, block, block, dtype=torch.bfloat16)
    row_of = torch.repeat_interleave(torch.arange(len(offsets) - 1), torch.tensor(offsets).diff())
    dense[row_of, torch.tensor(columns)] = values
    dense = dense.transpose(1, 2).reshape(options.rows, options.rows).contiguous()
    out = torch.empty(options.rows, options.columns, dtype=torch.bfloat16)
    ours = {name: Ours(library, case, pattern, (values, b, torch.empty_like(out)), name) for name in ["ours"] + [name for name in options.also.split(";") if name]}
    calls = {**{name: one.run for name, one in ours.items()}, "pytorch": lambda: torch.mm(dense, b, out=out)}
    wanted = dense.double() @ b.double()
    errors = {name: float((call().double() - wanted).abs().max() / wanted.abs().max()) for name, call in calls.items()}
    rounds = in_turn(calls, options.rounds, options.runs)
    flops, all_flops = (2 * x * options.columns for x in (values.numel(), dense.numel()))
    us = {name: statistics.median(r[name] for r in rounds) * 1e6 for name in calls}
    rates = {name: spread([(flops / r[name]) / (all_flops / r["pytorch"]) for r in rounds]) for name in ours}
    for one in ours.values():
        library.destroy_plan(one.plan)
    library.destroy_pattern(pattern)
    return {"block": block, "density": density, "m": options.rows, "k": options.rows, "n": options.columns, "chosen": {name: one.choice for name, one in ours.items()},
            "us": {name: round(x, 1) for name, x in us.items()}, "gflops": {name: round((all_flops if name == "pytorch" else flops) / x / 1e3) for name, x in us.items()},
            "rate_over_dense": rates,
            "errors": {name: float(f"{x:.3g}") for name, x in errors.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--runs", type=int, default=10, help="of a burst")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=int, default=4096, help="M and K")
    parser.add_argument("--columns", type=int, default=512, help="N")
    parser.add_argument("--blocks", default="32,64,128")
    parser.add_argument("--densities", default="0.1,0.5")
    parser.add_argument("--also", default="spmm_bf16_amx;spmm_bf16_avx512;onednn_dense", help="rows whose best candidate is timed, too")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch.set_num_threads(options.threads)
    library, results = Library(options.library, "cpu", ""), []
    with torch.no_grad():
        for density in map(float, options.densities.split(",")):
            for block in map(int, options.blocks.split(",")):
                results.append(measured(library, block, density, options))
                print(json.dumps(results[-1]), flush=True)
    made = document(library, options.threads, peer=f"PyTorch {torch.__version__}", amx=results)
    options.out.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
