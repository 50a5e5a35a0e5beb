"""Layers of the Python package beside PyTorch's dense ones: python bench/python/layers.py [--device cpu|cuda] [--json FILE [--add]] [--only REGEX].

Each case times all its calls in interleaved rounds, back to back within a sample; ratios are medians over the rounds. On CUDA a sample is timed by events
around its calls, so that host cost shows where it is longer than the kernels. "graph" rows replay a graph with one call (or eight), "kernel" rows one with
twenty, per call: what the device takes when nothing waits for the host. --add keeps the cases of FILE that were not measured now; it is written after
each case.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from arguments import SECONDS

import sparse_autotune as sa
from sparse_autotune import _C

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from race.harness import card  # noqa: E402

ROUNDS = 15
SAMPLE_US = 5e3
IN_A_GRAPH = 20


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


def race(calls, cuda):
    """Rows of a case: {name: call, or (call, how many products it does)}; the first is what the others are compared with."""
    calls = {name: call if isinstance(call, tuple) else (call, 1) for name, call in calls.items()}
    repeats, times, rows = {}, {name: [] for name in calls}, []
    for name, (call, _) in calls.items():
        for _ in range(3):
            call()
        repeats[name] = max(1, min(500, int(SAMPLE_US / max(sample(call, 2, cuda), 0.1))))
    for _ in range(ROUNDS):
        for name, (call, count) in calls.items():
            times[name].append(sample(call, repeats[name], cuda) / count)
    first = next(iter(times))
    for name, measured in times.items():
        low, _, high = statistics.quantiles(measured, n=4)
        over = {other: paired(measured, times[other]) for other in (first, "kernel", "PyTorch BSR") if other in times and other != name}
        row = dict(name=name, median_us=round(statistics.median(measured), 3), spread_us=round((high - low) / 2, 3), over=over)
        print(f"  {name:22} {row['median_us']:12.2f} us ±{row['spread_us']:9.2f}  " + ", ".join(f"{r:.3f} x {o}" for o, r in over.items()), flush=True)
        rows.append(row)
    return rows


def paired(ours, theirs):
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 4)


def step(layer, x, gradient):
    """Forward and backward; x requires a gradient, as inside a model."""

    def call():
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x).backward(gradient)

    return call


def graph_of(call, count=1):
    """A replay of a graph with the call, `count` times; and the count."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay, count


def native(sparse, x):
    """PyTorch's own BSR, or None where it cannot do the product."""
    weight = sparse.weight.to_torch()
    try:
        F.linear(x, weight)
    except (RuntimeError, NotImplementedError) as error:
        print("  PyTorch BSR:", str(error).split("\n")[0])
        return None
    return lambda: F.linear(x, weight)


class MLP(torch.nn.Module):
    """down(silu(gate(x)) * up(x)), what is elementwise in place; with sparse layers it is part of gate's product."""

    def __init__(self, width, hidden, block, density, dtype, device):
        super().__init__()
        options = dict(bias=False, dtype=dtype, device=device)
        if density is None:
            self.gate, self.up, self.down = (torch.nn.Linear(*sizes, **options) for sizes in ((width, hidden), (width, hidden), (hidden, width)))
        else:
            self.gate = sa.SparseLinear(width, hidden, block, density, activation="silu", **options)
            self.up, self.down = (sa.SparseLinear(*sizes, block, density, **options) for sizes in ((width, hidden), (hidden, width)))

    def forward(self, x):
        if isinstance(self.gate, sa.SparseLinear):
            return self.down(sa.gated(x, self.gate, self.up))
        return self.down(F.silu(self.gate(x), inplace=True).mul_(self.up(x)))


class Case:
    """sizes: (inputs, outputs) of a layer, (width, hidden) of an MLP."""

    def __init__(self, what, sizes, tokens, block, density, dtype, device):
        self.what, self.sizes, self.tokens, self.block, self.density, self.dtype, self.device = what, sizes, tokens, block, density, dtype, device
        self.cuda, self.choice = device != "cpu", None  # choice: what was chosen for a forward product
        self.name = f"{what} {str(dtype)[6:]} {sizes[0]}->{sizes[1]} {density:.0%} block {block} T={tokens}"

    def facts(self):
        return dict(
            case=self.name,
            what=self.what,
            inputs=self.sizes[0],
            outputs=self.sizes[1],
            tokens=self.tokens,
            block=self.block,
            density=self.density,
            dtype=str(self.dtype)[6:],
            rounds=ROUNDS,
        )

    def layers(self):
        options = dict(bias=False, dtype=self.dtype, device=self.device)
        return torch.nn.Linear(*self.sizes, **options), sa.SparseLinear(*self.sizes, self.block, self.density, **options)

    def input(self, width, **options):
        return torch.randn(self.tokens, width, dtype=self.dtype, device=self.device, **options)

    def measure(self):
        return getattr(self, "measure_" + self.what)()

    def measure_forward(self):
        dense, sparse = self.layers()
        x = self.input(self.sizes[0])
        with torch.no_grad():
            calls = {"nn.Linear": lambda: dense(x), "SparseLinear": lambda: sparse(x)}
            sparse(x)  # tuned before what is beside it is compiled
            self.choice = sa.explain(x, sparse.weight, transpose=True, assume_finite=True).choice
            theirs = native(sparse, x) if not self.cuda or self.tokens <= 512 else None
            if theirs is not None:
                calls["PyTorch BSR"] = theirs
            if self.cuda:
                ours = calls["SparseLinear"]
                calls |= {"nn.Linear, graph": graph_of(calls["nn.Linear"]), "graph": graph_of(ours)}
                calls |= {"graph of 8": graph_of(ours, 8), "kernel": graph_of(ours, IN_A_GRAPH)}
            return race(calls, self.cuda)

    def measure_training(self):
        dense, sparse = self.layers()
        x, gradient = self.input(self.sizes[0], requires_grad=True), self.input(self.sizes[1])
        return race({"nn.Linear": step(dense, x, gradient), "SparseLinear": step(sparse, x, gradient)}, self.cuda)

    def measure_mlp(self):
        dense, sparse = (MLP(*self.sizes, self.block, density, self.dtype, self.device) for density in (None, self.density))
        x = self.input(self.sizes[0])
        with torch.no_grad():
            return race({"dense": lambda: dense(x), "sparse": lambda: sparse(x)}, self.cuda)

    def attentions(self):
        """One query and one key of four heads."""
        q = torch.randn(1, 4, 1, 16, dtype=self.dtype, device=self.device)
        return {
            "F.scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(q, q, q),
            "sa.scaled_dot_product_attention": lambda: sa.scaled_dot_product_attention(q, q, q),
            "sa.attention": lambda: sa.attention(q, q, q),
            "sa.attention, causal": lambda: sa.attention(q, q, q, causal="top_left"),
        }

    def measure_host(self):
        """Products so small that the call is what is timed."""
        dense, sparse = self.layers()
        a, b, x, gradient = sparse.weight.detach(), self.input(16), self.input(16, requires_grad=True), self.input(16)
        with torch.no_grad():
            rows = race(
                {"F.linear": lambda: F.linear(b, b), "nn.Linear": lambda: dense(b), "sa.matmul": lambda: sa.matmul(a, b), "SparseLinear": lambda: sparse(b)},
                self.cuda,
            )
            rows += race(self.attentions(), self.cuda)
        steps = {"nn.Linear, forward and backward": step(dense, x, gradient), "SparseLinear, forward and backward": step(sparse, x, gradient)}
        return rows + race(steps, self.cuda)


def cases(device):
    host = Case("host", (16, 16), 16, 16, 1.0, torch.float32, device)
    if device == "cpu":
        return [Case(what, (2048, 2048), 256, 64, 0.1, torch.float32, device) for what in ("forward", "training")] + [host]
    found, sizes, bf16 = [host], (4096, 14336), torch.bfloat16
    found += [Case("forward", sizes, tokens, block, 0.1, bf16, device) for block in (64, 128) for tokens in (1, 16, 64, 512, 4096)]
    found += [Case("training", sizes, 8192, block, 0.1, bf16, device) for block in (64, 128)]
    return found + [Case("mlp", sizes, 4096, block, density, bf16, device) for block in (64, 128) for density in (0.25, 0.1)]


def device_of(device):
    if device != "cpu":
        return dict(kind="cuda", name=torch.cuda.get_device_name(), threads=torch.get_num_threads())
    found = sa.tune(sa.BSR.from_dense(torch.eye(8), 4), torch.eye(8)).device
    return dict(kind="cpu", name=found["name"], threads=torch.get_num_threads())


def stamp():
    return dict(commit=_C.commit(), date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))


def write(path, head, done):
    if path:
        with open(path + ".part", "w") as file:
            json.dump(dict(**head, layers=list(done.values())), file, indent=1)
            file.write("\n")
        os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--add", action="store_true", help="keep the cases that FILE has")
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose name matches")
    parser.add_argument("--limit-s", type=SECONDS, default=1e9, help="begin no case after so many seconds")
    options = parser.parse_args()
    sa.set_options(tuning="now")
    torch.manual_seed(1)
    if options.json:
        os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    done, begin, threads = {}, time.monotonic(), torch.get_num_threads()
    head = dict(
        schema=1,
        sparsek=_C.version(),
        **stamp(),
        command="python " + " ".join(sys.argv),
        device=device_of(options.device),
        versions=dict(torch=torch.__version__, cuda=torch.version.cuda),
    )
    if options.add and options.json and os.path.exists(options.json):
        with open(options.json) as file:
            done = {case["case"]: case for case in json.load(file)["layers"]}
    for case in cases(options.device):
        if not re.search(options.only, case.name) or time.monotonic() - begin > options.limit_s:
            continue
        print(case.name, flush=True)
        torch.set_num_threads(1 if case.what == "host" else threads)
        done[case.name] = case.facts() | dict(rows=case.measure(), choice=case.choice) | stamp() | (dict(card=card()) if case.cuda else {})
        write(options.json, head, done)


if __name__ == "__main__":
    main()
