"""Decoding: attention of one query to many keys, in PyTorch. Which ways divide the keys among the multiprocessors? Needs PyTorch with CUDA and Triton only.

    python3 attention-split-keys.py [KEYS = 131072]
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

HEADS, HEADS_KV, DEPTH = 32, 8, 128


def median_us(run, times=20):
    """The device's time of a call: the median of `times` calls, each launched while the device is held."""
    samples = []
    for _ in range(times + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)
        begin.record()
        run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3)
    return sorted(samples[2:])[times // 2]


def attempt(what, make, moved, want):
    try:
        run = make()
        out = run()
        torch.cuda.synchronize()
        wrong = ((out.double() - want).abs().max() / want.abs().max()).item()
        us = median_us(run)
        print(f"  {what:60} {us:8.1f} us {moved / us * 1e-6:6.2f} TB/s of K and V, largest error {wrong:.1g} of the largest element")
    except Exception as problem:
        print(f"  {what:60} {type(problem).__name__}: {str(problem).splitlines()[0][:300]}")
    torch._dynamo.reset()


def by_hand(q, k, v, splits):
    """The keys in pieces, each an item of a batch of FlashAttention; the heads of a group as queries; the pieces' results joined by their log-sum-exp."""
    batch, heads, _, depth = q.shape
    groups, keys = k.shape[1], k.shape[2]
    def pieces(x):
        return x.view(batch, groups, splits, keys // splits, depth).transpose(1, 2).reshape(batch * splits, groups, keys // splits, depth)
    piece = pieces(k), pieces(v)

    def call():
        queries = q.view(batch, 1, groups, heads // groups, depth).expand(-1, splits, -1, -1, -1).reshape(batch * splits, groups, heads // groups, depth)
        o, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(queries, *piece)
        weight = torch.softmax(lse.view(batch, splits, groups, heads // groups, 1), 1)
        return (o.view(batch, splits, groups, heads // groups, depth) * weight).sum(1).view(batch, heads, 1, depth)
    return call


def oracle(q, k, v):
    group = q.shape[1] // k.shape[1]
    outs = []
    for item in range(q.shape[0]):
        scores = torch.einsum("ghd,gkd->ghk", q[item].view(-1, group, q.shape[-1]).double(), k[item].double()) * q.shape[-1] ** -0.5
        outs.append(torch.einsum("ghk,gkd->ghd", torch.softmax(scores, -1), v[item].double()).reshape(q.shape[1], 1, -1))
    return torch.stack(outs)


def race(batch, keys, splits):
    torch.manual_seed(1)
    q = torch.randn(batch, HEADS, 1, DEPTH, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, HEADS_KV, keys, DEPTH, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    want, moved = oracle(q, k, v), 2.0 * k.numel() * k.element_size()
    print(f"{batch} x 1 query, {HEADS} heads, {HEADS_KV} of keys, {keys} keys, D {DEPTH}, bf16:")

    def sdpa(backend):
        def call():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return lambda: call
    attempt("scaled_dot_product_attention, cuDNN", sdpa(SDPBackend.CUDNN_ATTENTION), moved, want)
    attempt("scaled_dot_product_attention, FlashAttention", sdpa(SDPBackend.FLASH_ATTENTION), moved, want)
    attempt("scaled_dot_product_attention, memory-efficient", sdpa(SDPBackend.EFFICIENT_ATTENTION), moved, want)

    def flex(mask, **options):
        def make():
            compiled, made = torch.compile(flex_attention), mask()
            return lambda: compiled(q, k, v, block_mask=made, enable_gqa=True, kernel_options=options)
        return make

    def all_seen():
        return create_block_mask(lambda b, h, i, j: j >= 0, None, None, 1, keys, device="cuda")
    attempt("flex_attention", flex(lambda: None), moved, want)
    attempt(f"flex_attention, SPLIT_KV = {splits}", flex(lambda: None, SPLIT_KV=splits), moved, want)
    attempt("flex_attention, a block mask that keeps all", flex(all_seen), moved, want)
    attempt(f"the same, SPLIT_KV = {splits}", flex(all_seen, SPLIT_KV=splits), moved, want)
    if batch == 1:  # then the pieces are views of K and V
        attempt(f"FlashAttention, {splits} pieces of the keys by hand", lambda: by_hand(q, k, v, splits), moved, want)


def main():
    sys.stdout.reconfigure(line_buffering=True)
    keys = int(sys.argv[1]) if len(sys.argv) > 1 else 131072
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    with torch.no_grad():
        race(1, keys, 64)
        race(4, keys // 4, 16)


if __name__ == "__main__":
    main()
