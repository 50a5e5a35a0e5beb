#!/usr/bin/env python3
"""Large sparse products, as finite elements and graphs have them: bench/large.py OUT.json [--count 30] [--seed 1] [--most 2e7]

Writes a list of problems for `sparsek regret --from OUT.json --among 40`, which tells how far a tuning's choices are from the best. A million stored values and
more, up to --most of them; blocks of 1 to 8, square or not; 1 to 64 columns; f32 and f64. Log-uniform where a range is named. The same seed, the same list.
"""
import argparse
import json
import math
import random
import sys

LEAST = 1e6
PATTERNS = ("uniform", "bernoulli", "banded", "power-law", "elasticity")
SIDES = (1, 2, 3, 4, 5, 6, 8)
COLUMNS = (1, 2, 3, 4, 8, 16, 32, 64)


def elasticity(draw, values):
    """Blocks of 3x3 on hexahedra: 27 neighbours a node."""
    cells = max(4, round((values / (9 * 27)) ** (1 / 3)) - 1)
    return dict(pattern="elasticity", cells=f"{cells}", dtype=draw.choice(("f32", "f64")))


def any_blocks(draw, values, pattern):
    rows = draw.choice(SIDES)
    cols = rows if draw.random() < 0.7 else draw.choice(SIDES)
    in_row = math.exp(draw.uniform(math.log(4), math.log(64)))  # blocks
    block_rows = max(64, round(values / (rows * cols * in_row)))
    block_cols = max(64, round(block_rows * draw.choice((0.5, 1, 1, 1, 2))))
    return dict(
        pattern=pattern,
        m=block_rows * rows,
        k=block_cols * cols,
        block=f"{rows}x{cols}",
        density=f"{min(1.0, in_row / block_cols):.6g}",
        dtype=draw.choice(("f32", "f64")),
    )


def problem(draw, most):
    values = math.exp(draw.uniform(math.log(LEAST), math.log(most)))
    pattern = draw.choice(PATTERNS)
    made = elasticity(draw, values) if pattern == "elasticity" else any_blocks(draw, values, pattern)
    return dict(made, n=draw.choice(COLUMNS), seed=draw.randrange(1, 1 << 30))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT.json")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=float, default=2e7, help="stored values")
    args = parser.parse_args()
    if args.count < 1 or not LEAST <= args.most <= 1e9:
        parser.error(f"--count from 1, --most from {LEAST:g} to 1e9")
    draw = random.Random(args.seed)
    with open(args.out, "w", encoding="utf-8") as out:
        json.dump([problem(draw, args.most) for _ in range(args.count)], out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    sys.exit(main())
