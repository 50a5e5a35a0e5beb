"""Runs the model's first choice of many random problems: python bench/python/first_choices.py [--seconds N] [--processes N] [--seed N].

Nothing is measured. What counts is what comes to the cache of compiled programs, $SPARSEK_CACHE_DIR/cubin: bench/programs.py collects there what ships with the
library. The problems are those of usual models more often than others: 16-bit types, blocks of 64 and 128, depths of 64 and 128.
"""

import argparse
import multiprocessing
import os
import random
import time

os.environ["SPARSEK_BUNDLE"] = ""
os.environ["SPARSEK_PROVER"] = "none"  # what was proved by committed runs will do

TOKENS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 777, 1024, 2048, 4096)


def dtype(rng, torch, half=0.7, double=True):
    if rng.random() < half:
        return rng.choice([torch.bfloat16, torch.bfloat16, torch.float16])
    return rng.choice([torch.float32, torch.float32, torch.float64]) if double else torch.float32


def sparse(rng, torch, sa, words):
    block = rng.choice([64, 64, 64, 128, 128, 32, 32, 16, 16, 8, 4, 3])
    rows, cols = (block * rng.randrange(1, 4096 // block + 1) for _ in range(2))
    count = max(1, int(rng.choice([0.05, 0.1, 0.1, 0.2, 0.4]) * (rows // block) * (cols // block)))
    count = min(count, 200_000)
    at = torch.randperm((rows // block) * (cols // block), device="cuda")[:count].sort().values
    offsets = torch.zeros(rows // block + 1, dtype=torch.int64, device="cuda")
    offsets[1:] = torch.bincount(at // (cols // block), minlength=rows // block).cumsum(0)
    return sa.BSR(offsets.int(), (at % (cols // block)).int(), torch.randn(count, block, block, **words), (rows, cols))


def product(rng, torch, sa, words):
    a, n, training = sparse(rng, torch, sa, words), rng.choice(TOKENS), rng.random() < 0.5
    a.requires_grad_(training)
    if rng.random() < 0.5:
        x = torch.randn(a.shape[1], n, **words)
    else:
        x = torch.randn(n, a.shape[1], **words).T
    x.requires_grad_(training)
    if not training and rng.random() < 0.3:
        return sa.sddmm(a, torch.randn(a.shape[0], n, **words), torch.randn(n, a.shape[1], **words))
    out = sa.matmul(a, x)
    return torch.autograd.grad(out, (a.values, x), torch.randn_like(out)) if training else out


def layer(rng, torch, sa, words):
    block = rng.choice([64, 64, 128, 32, 16])
    inner, outer = (block * rng.randrange(1, 4096 // block + 1) for _ in range(2))
    made = sa.SparseLinear(inner, outer, block, rng.choice([0.1, 0.25, 0.5]), bias=rng.random() < 0.5, **words)
    x = torch.randn(rng.choice(TOKENS), inner, **words).requires_grad_(rng.random() < 0.5)
    out = made(x)
    return out.backward(torch.randn_like(out)) if x.requires_grad else out


def dense(rng, torch, sa, words):
    m, k, n = rng.choice(TOKENS), *(rng.choice([64, 100, 768, 1024, 2048, 3072, 4096]) for _ in range(2))
    return sa.gemm(torch.randn(m, k, **words), torch.randn(k, n, **words) if rng.random() < 0.5 else torch.randn(n, k, **words).T)


def attention(rng, torch, sa, words):
    depth, heads = rng.choice([64, 64, 64, 128, 128, 128, 32, 80, 96, 192, 256]), rng.choice([1, 2, 4, 8, 16, 32])
    shared, gradients = rng.choice([1, 1, 2, 4, 8]), rng.random() < 0.4
    size, block = rng.choice([64, 128, 333, 512, 1024, 2048, 4096, 8192]), rng.choice([16, 32, 64, 64, 128, 128])
    shared = shared if heads % shared == 0 else 1
    queries = rng.choice([1, 1, 4, 16]) if not gradients and rng.random() < 0.3 else size
    options = {"causal": rng.random() < 0.5}
    if queries == size and rng.random() < 0.5:
        size = queries = max(2, size // block) * block
        kept = torch.rand(size // block, size // block, device="cuda") < rng.choice([0.05, 0.1, 0.3, 0.6])
        kept.fill_diagonal_(True)
        options = {"mask": sa.BlockMask.from_dense(kept, block)}
    elif rng.random() < 0.2:
        options = {"window": (rng.choice([64, 256, 1024]), 0), "causal": True}
    q = torch.randn(rng.choice([1, 1, 2, 8]), heads, queries, depth, **words).requires_grad_(gradients)
    k, v = (torch.randn(q.shape[0], heads // shared, size, depth, **words).requires_grad_(gradients) for _ in range(2))
    out = sa.attention(q, k, v, **options)
    return torch.autograd.grad(out, (q, k, v), torch.randn_like(out)) if gradients else out


def work(number, options, end, results):
    import torch

    import sparse_autotune as sa

    sa.set_options(store="", effort="measure", tuning="never")
    rng, done, refused = random.Random(1000 * options.seed + number), 0, {}
    while time.monotonic() < end:
        make = rng.choice([product, product, layer, dense, attention, attention, attention])
        kind = dtype(rng, torch, half=0.95 if make is attention else 0.7, double=make is not attention)
        try:
            make(rng, torch, sa, dict(device="cuda", dtype=kind))
            torch.cuda.synchronize()
            done += 1
        except (LookupError, RuntimeError, TypeError, ValueError) as failure:
            refused[f"{make.__name__}: {str(failure)[:160]}"] = refused.get(f"{make.__name__}: {str(failure)[:160]}", 0) + 1
    results.put((done, refused))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    results, end = spawn.Queue(), time.monotonic() + options.seconds
    workers = [spawn.Process(target=work, args=(number, options, end, results)) for number in range(options.processes)]
    for worker in workers:
        worker.start()
    total, refused = 0, {}
    for _ in workers:
        done, why = results.get()
        total += done
        for text, count in why.items():
            refused[text] = refused.get(text, 0) + count
    for worker in workers:
        worker.join()
    print(f"{total} problems; {sum(refused.values())} refused")
    for text, count in sorted(refused.items(), key=lambda item: -item[1])[:20]:
        print(f"  {count:5} {text}")


if __name__ == "__main__":
    main()
