#!/usr/bin/env python3
"""Gradients with block masks of 16k to 128k keys on a GPU, from an empty store. Usage: masks.py [--seconds 200] [--seed N] [--count 51]

The first mask has a list of 64 blocks for each of 16 heads at S = 40960, more operands than a proof runs with; the others are drawn at random. Of each one some
rows of O and of the gradient of Q are compared with float64. Needs PyTorch and the Python package; exit status 1: one was wrong, or did not run.
"""

import argparse
import os
import random
import sys
import tempfile
import time

os.environ["SPARSEK_CACHE_DIR"] = tempfile.mkdtemp()

import torch  # noqa: E402

import sparse_autotune as sa  # noqa: E402

WORST = 0.03  # of the largest element: rounding to bf16 leaves some 0.005


def draw(rng):
    """(S, heads, heads of K, block, blocks of a row, depth)"""
    size = rng.choice([16384, 20480, 24000, 32768, 40960, 65536, 98304, 131072])
    heads = min(rng.choice([2, 4, 8, 16]), 4 if size >= 65536 else 16)
    return size, heads, heads // rng.choice([1, 1, 2]), rng.choice([64, 64, 128]), rng.choice([8, 16, 32, 64]), rng.choice([64, 128])


def wrong_by(rng, tensors, seen, block):
    """The largest difference from float64, over the largest element, of O and of the gradient of Q in two rows."""
    q, k, v, o, grad_o = tensors
    size, depth, worst = q.shape[2], q.shape[3], 0.0
    for _ in range(2):
        head, row = rng.randrange(q.shape[1]), rng.randrange(size)
        kv = head // (q.shape[1] // k.shape[1])
        keys = seen[head, row // block].repeat_interleave(block)[:size].nonzero()[:, 0]
        ks, vs = k[0, kv, keys].double(), v[0, kv, keys].double()
        p = torch.softmax(q[0, head, row].double() @ ks.T * depth**-0.5, -1)
        by_p = vs @ grad_o[0, head, row].double()
        grad_q = (p * (by_p - (p * by_p).sum())) @ ks * depth**-0.5
        for got, want in ((o[0, head, row], p @ vs), (q.grad[0, head, row], grad_q)):
            worst = max(worst, ((got.double() - want).abs().max() / want.abs().max()).item())
    return worst


def run(rng, size, heads, heads_kv, block, count, depth):
    generator = torch.Generator("cuda").manual_seed(rng.randrange(1 << 30))
    across = -(-size // block)
    seen = torch.zeros(heads, across, across, dtype=torch.bool, device="cuda")
    for head in range(heads):
        seen[head].scatter_(1, torch.rand(across, across, generator=generator, device="cuda").topk(min(count, across), 1).indices, True)
    mask = sa.BlockMask.from_dense(seen, block, shape=(size, size))
    q, k, v = (torch.randn(1, h, size, depth, generator=generator, device="cuda").bfloat16().requires_grad_() for h in (heads, heads_kv, heads_kv))
    o = sa.attention(q, k, v, mask=mask)
    grad_o = torch.randn(o.shape, generator=generator, device="cuda").bfloat16()
    o.backward(grad_o)
    return wrong_by(rng, (q, k, v, o, grad_o), seen, block)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--count", type=int, default=51)
    options = parser.parse_args()
    rng, end, failed, done = random.Random(options.seed), time.monotonic() + options.seconds, 0, 0
    print(f"seed {options.seed}, {torch.cuda.get_device_name()}", flush=True)
    sa.set_options(tuning="now", budget_s=0.3)
    for number in range(options.count):
        if time.monotonic() > end:
            break
        drawn = (40960, 16, 16, 64, 64, 128) if number == 0 else draw(rng)
        try:
            worst = run(rng, *drawn)
            said = f"{worst:.2g} of the largest element"
        except (RuntimeError, ValueError) as error:
            worst, said = float("inf"), f"{type(error).__name__}: {str(error)[:300]}"
        failed += not worst <= WORST
        done += 1
        print("{} S {} heads {}/{} block {} x {} depth {}: {}".format("ok    " if worst <= WORST else "FAILED", *drawn, said), flush=True)
        torch.cuda.empty_cache()
    print(f"{done} of {options.count} masks, {failed} failed")
    sys.exit(1 if failed or done < options.count else 0)


if __name__ == "__main__":
    main()
