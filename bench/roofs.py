#!/usr/bin/env python3
"""The roofs of an NVIDIA GPU, as a plain program reaches them: memory and L2 bandwidth, the dense f16 rate, what a kernel costs in a graph.

    bench/roofs.py --out gpu-h200-roofs.json [--rounds 21]

Needs PyTorch with CUDA and Triton. Every measurement is a CUDA graph of several launches, timed by events; the figure is the median over the rounds.
What fails is named under `failed` and left null.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

import torch
import triton
import triton.language as tl

from race.harness import card


def graph_of(run, launches):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(launches):
            run()
    torch.cuda.synchronize()
    return graph


def replay_us(graph):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def median_us(run, launches, rounds):
    """One launch's time; the card's facts under that load."""
    graph = graph_of(run, launches)
    for _ in range(3):
        replay_us(graph)
    samples = [replay_us(graph) / launches for _ in range(rounds)]
    return statistics.median(samples), card()


@triton.jit
def read_pieces(x, out, pieces, start, step, count, PIECE: tl.constexpr):
    """A program sums `count` pieces: number start * its index, then every step-th, around the end. Loads pass L1."""
    program = tl.program_id(0)
    lanes = tl.arange(0, PIECE)
    total = tl.zeros((PIECE,), dtype=tl.float32)
    for i in range(count):
        piece = (program * start + i * step) % pieces
        total += tl.load(x + piece * PIECE + lanes, cache_modifier=".cg")
    tl.store(out + program, tl.sum(total, axis=0))


def fastest_read(x, shapes, rounds):
    """GB/s and the card's facts of the best shape: (elements of a piece, programs, start, step, pieces a program reads)."""
    best, facts = 0, {}
    for piece, programs, start, step, count in shapes:
        out = torch.zeros(programs, device="cuda")
        us, seen = median_us(lambda: read_pieces[(programs,)](x, out, x.numel() // piece, start, step, count, PIECE=piece, num_warps=8), 3, rounds)
        reads = programs * count * piece
        want, scale = x.double().sum().item() * reads / x.numel(), x.double().abs().sum().item() * reads / x.numel()
        if abs(out.double().sum().item() - want) > 1e-4 * scale:
            raise RuntimeError(f"the programs' sum is {out.double().sum().item()}, not {want}")
        if reads * 4 / us / 1e3 > best:
            best, facts = reads * 4 / us / 1e3, seen
    return best, facts


def multiprocessors():
    return torch.cuda.get_device_properties(0).multi_processor_count


def hbm_read(rounds):
    x = torch.randn(1 << 30, device="cuda")  # 4 GiB
    best, facts = fastest_read(x, [(piece, 1 << 14, 1, 1 << 14, (1 << 16) // piece) for piece in (2048, 4096, 8192)], rounds)
    parts = x.chunk(4)  # a sum of more than 2 GiB is split anyhow
    us, seen = median_us(lambda: [part.sum() for part in parts], 1, rounds)
    return (best, facts) if best > x.numel() * 4 / us / 1e3 else (x.numel() * 4 / us / 1e3, seen)


def hbm_copy(rounds):
    x = torch.randn(1 << 30, device="cuda")
    y = torch.empty_like(x)
    us, facts = median_us(lambda: y.copy_(x), 3, rounds)
    return 2 * x.numel() * 4 / us / 1e3, facts


def l2_read(rounds):
    """Every program reads all of 20 MiB four times, from an offset of its own, so that neighbours do not ask for the same at the same time."""
    x = torch.randn(5 << 20, device="cuda")
    return fastest_read(x, [(piece, per * multiprocessors(), 397, 1, 4 * x.numel() // piece) for piece in (2048, 4096, 8192) for per in (2, 4, 8)], rounds)


def dense_f16(rounds):
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.empty_like(a)
    us, facts = median_us(lambda: torch.mm(a, b, out=out), 4, rounds)
    return 2.0 * 8192**3 / us / 1e6, facts


def graph_node(rounds):
    """What each further kernel adds to a graph of dependent kernels that do nearly nothing."""
    x = torch.zeros(1, device="cuda")
    few, many = graph_of(lambda: x.add_(1), 100), graph_of(lambda: x.add_(1), 1100)
    for graph in (few, many):
        replay_us(graph)
    return statistics.median((replay_us(many) - replay_us(few)) / 1000 for _ in range(rounds)), card()


MEASUREMENTS = {"hbm_read_gbps": hbm_read, "hbm_copy_gbps": hbm_copy, "l2_read_gbps": l2_read, "dense_f16_tflops": dense_f16, "graph_node_us": graph_node}


def commit():
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"], capture_output=True, text=True, timeout=20,
                              cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    torch.manual_seed(1)
    roofs, cards, failed = {}, {}, {}
    for name, measure in MEASUREMENTS.items():
        try:
            value, cards[name] = measure(options.rounds)
            roofs[name] = float(f"{value:.5g}")
        except Exception as problem:  # the others still count
            roofs[name], failed[name] = None, f"{type(problem).__name__}: {problem}"
        torch.cuda.empty_cache()
        print(f"{name:18} {roofs[name] if name not in failed else failed[name]}", flush=True)
    facts = card()
    document = {"schema": 1, "roofs": roofs, "failed": failed, "cards": cards, "commit": commit(),
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": "bench/roofs.py " + " ".join(sys.argv[1:]),
                "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "triton": triton.__version__},
                "device": {"kind": "cuda", "name": facts.get("name", torch.cuda.get_device_name()), "threads": None, "isa": ["sm_%d%d" % torch.cuda.get_device_capability()],
                           "driver": facts.get("driver"), "card": cards.get("dense_f16_tflops", facts)}}
    with open(options.out + ".part", "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(options.out + ".part", options.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
