"""FlexAttention under masks of 128 x 128 and of 64 x 64 blocks. Needs PyTorch with CUDA and Triton only.

    python3 flex-attention-blocks.py [S = 8192] [FRACTION of the blocks kept = 0.125]
"""
import signal
import sys
import time

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BATCH, HEADS, DEPTH, ATTEMPT_S = 1, 16, 128, 30
TILES_OF_64 = {"BLOCK_M": 64, "BLOCK_N": 64}


def mask_of(size, block, fraction):
    """For each block of queries the same number of blocks of keys, at random columns: whole blocks, so that no function of positions is called."""
    grid = size // block
    count = max(1, round(grid * fraction))
    columns = torch.stack([torch.randperm(grid)[:count].sort().values for _ in range(grid)]).int()
    indices = torch.zeros(1, 1, grid, grid, dtype=torch.int32)
    indices[0, 0, :, :count] = columns
    counts = torch.full((1, 1, grid), count, dtype=torch.int32)
    none = torch.zeros_like(counts), torch.zeros_like(indices)
    made = BlockMask.from_kv_blocks(none[0].cuda(), none[1].cuda(), counts.cuda(), indices.cuda(), BLOCK_SIZE=block, seq_lengths=(size, size))
    return made, columns.long().cuda(), count * block / size


def median_us(run, times=20):
    """The device's time of a call: the median of `times` groups of four, which hide the host's."""
    samples = []
    for at in range(times + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)  # the host has launched all four before the first begins
        begin.record()
        for _ in range(4):
            run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3 / 4)
    return sorted(samples[2:])[times // 2]


def error(out, q, k, v, columns, block):
    """The largest difference from float64 of the first and the last block of queries of a head, over the largest |V|."""
    worst = 0.0
    for row in (0, columns.shape[0] - 1):
        keys = (columns[row][:, None] * block + torch.arange(block, device="cuda")).flatten()
        rows = slice(row * block, (row + 1) * block)
        scores = q[0, 3, rows].double() @ k[0, 3, keys].double().T * DEPTH ** -0.5
        worst = max(worst, ((out[0, 3, rows].double() - torch.softmax(scores, 1) @ v[0, 3, keys].double()).abs().max() / v.abs().max()).item())
    return worst


def attempt(what, make, flops, check=None):
    def late(number, frame):
        raise TimeoutError(f"not ready after {ATTEMPT_S} s")
    signal.signal(signal.SIGALRM, late)
    signal.alarm(ATTEMPT_S)
    began = time.perf_counter()
    try:
        run = make()
        out = run()
        torch.cuda.synchronize()
        ready = time.perf_counter() - began
        us = median_us(run)
        wrong = f", largest error {check(out):.1g} of the largest |V|" if check else ""
        print(f"  {what:58} {us:8.1f} us {flops / us * 1e-6:7.1f} TFLOP/s on kept blocks, ready in {ready:4.1f} s{wrong}")
    except Exception as problem:
        lines = [line for line in str(problem).splitlines() if "rror" in line] or str(problem).splitlines() or [""]
        print(f"  {what:58} {type(problem).__name__}: {lines[0][:400]}")
    signal.alarm(0)
    torch._dynamo.reset()


def main():
    sys.stdout.reconfigure(line_buffering=True)
    size, fraction = int(sys.argv[1]) if len(sys.argv) > 1 else 8192, float(sys.argv[2]) if len(sys.argv) > 2 else 0.125
    torch.manual_seed(1)
    q, k, v = (torch.randn(BATCH, HEADS, size, DEPTH, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    grad = torch.randn_like(q)
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; {HEADS} heads, {size} queries and keys, D {DEPTH}, bf16, {fraction * 100:g} % of the blocks kept")
    full = 4.0 * BATCH * HEADS * size * size * DEPTH
    attempt("scaled_dot_product_attention, no mask", lambda: lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), full)
    for block, ways in ((128, (("compiled", None, {}),)), (64, (("compiled", None, {}), ("kernel_options of 64 x 64", None, TILES_OF_64),
                                                               ("max-autotune-no-cudagraphs", "max-autotune-no-cudagraphs", {})))):
        mask, columns, kept = mask_of(size, block, fraction)
        print(f" blocks of {block}:")
        for name, mode, options in ways:
            def forward():
                compiled = torch.compile(flex_attention, mode=mode)
                return lambda: compiled(q, k, v, block_mask=mask, kernel_options=options)

            def backward():
                out = torch.compile(flex_attention, mode=mode)(*leaves, block_mask=mask, kernel_options=options)
                return lambda: torch.autograd.grad(out, leaves, grad, retain_graph=True)[0]
            with torch.no_grad():
                attempt(f"forward, {name}", forward, full * kept, lambda out: error(out, q, k, v, columns, block))
            if mode is None:
                attempt(f"gradients, {name}", backward, 2.5 * full * kept)


if __name__ == "__main__":
    main()
