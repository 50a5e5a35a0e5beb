#!/usr/bin/env python3
"""The three products of a training step on the CPU, in one process: SpMM (A B), SpMM with A transposed, and SDDMM, each with as much work as the others.

    bench/training.py --library build/release/libsparsek.so --out FILE [--rounds 21] [--rows 2048] [--columns 512] [--blocks 32,64,128] [--density 0.1]

They take turns: a burst of runs each, after a pause in which the threads of the one before come to rest; the time of a burst is the median of its runs, a ratio
that of two bursts of the same round. Own rows alone take part. Operands are warm, and begin with a cache line. Needs Python alone.
"""
import argparse
import array
import json
import os
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from race.bursts import document, in_turn, spread  # noqa: E402
from race.case import Case  # noqa: E402
from race.library import DTYPES, ROW, Library  # noqa: E402

LINE = 64  # bytes


def numbers(count, rng):
    return array.array("f", [rng.uniform(-1, 1) for _ in range(count + LINE // 4)])


def address(numbers_of):
    """Where the first whole line begins: PyTorch's tensors begin with one, and vectors that straddle two cost SpMM a quarter."""
    return -(-numbers_of.buffer_info()[0] // LINE) * LINE


class Product:
    def __init__(self, library, name, options, block, rng):
        size, trans, op = options.rows, name == "transposed", "sddmm" if name == "sddmm" else "spmm"
        k, n = (options.columns, size) if op == "sddmm" else (size, options.columns)
        case = Case("", "peers", size, k, n, (block, block), options.density, "f32", trans=trans, cache="warm", op=op)
        offsets, columns = library.generate(case, 1)
        self.library, self.pattern, self.blocks = library, library.pattern(case, offsets, columns), len(columns)
        values, thin, wide = (numbers(count, rng) for count in (len(columns) * block * block, size * options.columns, size * options.columns))
        self.memory = values, thin, wide
        types = dict(dtype_d=DTYPES["f32"])
        if op == "sddmm":
            fields = dict(types, dtype_x=DTYPES["f32"], k=k, layout_y=ROW)
            self.args = library.args(op, x=address(thin), y=address(wide), d=address(values))
        else:
            fields = dict(types, dtype_a=DTYPES["f32"], dtype_b=DTYPES["f32"], n=n, trans_a=int(trans))
            self.args = library.args(op, values=address(values), b=address(thin), d=address(wide))
        self.plan = library.plan(op, case, self.pattern, fields, fresh=True, only=",".join(library.own_rows(op)))
        self.choice = library.choice(self.plan)

    def run(self):
        self.library.run(self.plan, self.args)

    def destroy(self):
        self.library.destroy_plan(self.plan)
        self.library.destroy_pattern(self.pattern)


def measured(library, block, options):
    rng = random.Random(block)
    products = {name: Product(library, name, options, block, rng) for name in ("spmm", "transposed", "sddmm")}
    rounds = in_turn({name: product.run for name, product in products.items()}, options.rounds, options.runs)
    work = {name: 2 * product.blocks * block * block * options.columns for name, product in products.items()}
    us = {name: statistics.median(r[name] for r in rounds) * 1e6 for name in products}
    rates = {name: spread([work[name] / r[name] / (work["spmm"] / r["spmm"]) for r in rounds]) for name in ("transposed", "sddmm")}
    for product in products.values():
        product.destroy()
    return {"block": block, "density": options.density, "rows": options.rows, "columns": options.columns, "chosen": {name: p.choice for name, p in products.items()},
            "us": {name: round(x, 1) for name, x in us.items()}, "gflops": {name: round(work[name] / x / 1e3) for name, x in us.items()},
            "rate_over_spmm": rates}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--runs", type=int, default=8, help="of a burst")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=int, default=2048, help="of the sparse matrix, and its columns")
    parser.add_argument("--columns", type=int, default=512, help="of the dense ones; SDDMM's K")
    parser.add_argument("--blocks", default="32,64,128")
    parser.add_argument("--density", type=float, default=0.1)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    library, results = Library(options.library, "cpu", ""), []
    for block in map(int, options.blocks.split(",")):
        results.append(measured(library, block, options))
        print(json.dumps(results[-1]), flush=True)
    made = document(library, options.threads, training=results)
    options.out.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
