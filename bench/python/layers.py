"""Layers of the Python package beside PyTorch's dense ones, in one run: python bench/python/layers.py [--device cpu|cuda] [--json FILE].

Each case times all its calls in interleaved rounds, back to back within a sample; a ratio is the median over rounds of dense time over the row's time.
On CUDA a sample is timed by events around its calls, so that host cost shows where it is longer than the kernels; "graph" rows replay a captured call.
"""

import argparse
import datetime
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812

import sparse_autotune as sa
from sparse_autotune import _C

ROUNDS = 15


def sample(call, repeats, cuda):
    """Microseconds of one call, out of `repeats` in a row."""
    if not cuda:
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - begin) / repeats * 1e6
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeats * 1e3


def race(case, calls, cuda):
    """Rows of a case; the first call is the dense one."""
    repeats, times, rows = {}, {name: [] for name in calls}, []
    for name, call in calls.items():
        for _ in range(3):
            call()
        repeats[name] = max(1, min(500, int(5e3 / max(sample(call, 2, cuda), 0.1))))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(sample(call, repeats[name], cuda))
    dense = times[next(iter(calls))]
    for name, measured in times.items():
        low, _, high = statistics.quantiles(measured, n=4)
        ratio = statistics.median(d / t for d, t in zip(dense, measured, strict=True))
        row = dict(case=case, name=name, median_us=statistics.median(measured), spread_us=(high - low) / 2, times_dense=ratio, rounds=ROUNDS)
        print(f"{case:44} {name:22} {row['median_us']:12.2f} us ±{row['spread_us']:9.2f}  {ratio:7.2f} x dense", flush=True)
        rows.append(row)
    return rows


def step(layer, x, gradient):
    """Forward and backward; x requires a gradient, as inside a model."""

    def call():
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x).backward(gradient)

    return call


def graph_of(call):
    """A replay of a captured call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def layers(inputs, outputs, block, density, dtype, device):
    dense = torch.nn.Linear(inputs, outputs, bias=False, dtype=dtype, device=device)
    sparse = sa.SparseLinear(inputs, outputs, block, density, bias=False, dtype=dtype, device=device)
    return dense, sparse


def native(sparse, x):
    """PyTorch's own BSR, or None where it cannot do the product."""
    weight = sparse.weight.to_torch()
    try:
        F.linear(x, weight)
    except (RuntimeError, NotImplementedError) as error:
        print("PyTorch BSR:", str(error).split("\n")[0])
        return None
    return lambda: F.linear(x, weight)


def forward(sizes, block, density, dtype, device, tokens, graphs=False):
    dense, sparse = layers(*sizes, block, density, dtype, device)
    x = torch.randn(tokens, sizes[0], dtype=dtype, device=device)
    case = f"{str(dtype)[6:]} {sizes[0]}->{sizes[1]} {density:.0%} block {block} T={tokens}"
    with torch.no_grad():
        calls = {"nn.Linear": lambda: dense(x), "SparseLinear": lambda: sparse(x)}
        theirs = native(sparse, x)
        if theirs is not None:
            calls["PyTorch BSR"] = theirs
        rows = race(case, calls, device != "cpu")
        if graphs:
            replays = {f"{name}, graph": graph_of(calls[name]) for name in ("nn.Linear", "SparseLinear")}
            rows += race(case, replays, True)
    return rows


def training(sizes, block, density, dtype, device, tokens):
    dense, sparse = layers(*sizes, block, density, dtype, device)
    x = torch.randn(tokens, sizes[0], dtype=dtype, device=device, requires_grad=True)
    gradient = torch.randn(tokens, sizes[1], dtype=dtype, device=device)
    case = f"{str(dtype)[6:]} {sizes[0]}->{sizes[1]} {density:.0%} block {block} T={tokens} forward+backward"
    return race(case, {"nn.Linear": step(dense, x, gradient), "SparseLinear": step(sparse, x, gradient)}, device != "cpu")


def host_cost(device):
    """A product so small that the call is what is timed."""
    dense, sparse = layers(16, 16, 16, 1.0, torch.float32, device)
    a, b, x = sparse.weight.detach(), torch.randn(16, 16, device=device), torch.randn(16, 16, device=device, requires_grad=True)
    gradient = torch.randn(16, 16, device=device)
    with torch.no_grad():
        calls = {"F.linear": lambda: F.linear(b, b), "sa.matmul": lambda: sa.matmul(a, b), "SparseLinear": lambda: sparse(b), "nn.Linear": lambda: dense(b)}
        rows = race("host cost, no gradient", calls, device != "cpu")
    calls = {"nn.Linear": step(dense, x, gradient), "SparseLinear": step(sparse, x, gradient)}
    return rows + race("host cost, forward+backward", calls, device != "cpu")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.manual_seed(1)
    rows = []
    if options.device == "cpu":
        rows += forward((2048, 2048), 64, 0.1, torch.float32, "cpu", 256)
        rows += training((2048, 2048), 64, 0.1, torch.float32, "cpu", 256)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        rows += host_cost("cpu")
        torch.set_num_threads(threads)
    else:
        rows += host_cost(options.device)
        for block in (64, 128):
            for tokens in (1, 16, 64, 512, 4096):
                rows += forward((4096, 14336), block, 0.1, torch.bfloat16, options.device, tokens, graphs=tokens >= 512)
            rows += training((4096, 14336), block, 0.1, torch.bfloat16, options.device, 8192)
    name = torch.cuda.get_device_name() if options.device != "cpu" else sa.tune(sa.BSR.from_dense(torch.eye(8), 4), torch.eye(8)).device["name"]
    head = dict(schema=1, sparsek=_C.version(), commit=_C.commit(), torch=torch.__version__, device=name, threads=torch.get_num_threads())
    head |= dict(date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), command="python " + " ".join(sys.argv))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(**head, rows=rows), file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
