"""Block-sparse layers, attention and experts over several processes beside one.

    python bench/python/distributed.py [--device cpu|cuda] [--ranks N] [--json FILE]

Each case times all its calls in alternated rounds; a call that is "one" runs on the first rank while the others wait, all others run on all ranks, and the
slowest rank counts. Ratios are medians over the rounds, of the first call's time over the row's. "graph": replays of a CUDA graph with one call, so that the
host's time does not count. Every result is compared with that of one process, and with itself from run to run. The file is written after each case.

On CUDA there is a rank for each GPU, over NCCL; on the CPU the sizes are small, over gloo: that is for tests.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing
from arguments import SECONDS, integer
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import parallelize_module

import sparse_autotune as sa
from sparse_autotune import _C
from sparse_autotune.distributed import PairwiseSparse, attention_by_heads, attention_by_keys, chunk_choices, experts, tune_once

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from race.harness import card  # noqa: E402

ROUNDS = 11
SAMPLE_US = 1e4
KINDS = {"": None, "d": True, "c": "copies", "l": "late copies", "w": "weights"}  # of --chunks
WORDS = {True: "direct", "copies": "copies", "late copies": "late copies", "weights": "weights"}
LAYOUTS = {"whole": (Replicate(), Replicate()), "scattered": (Replicate(), Shard(0)), "sequence": (Shard(0), Shard(0))}


class Ranks:
    """This process among the others."""

    def __init__(self, rank, size, device):
        self.rank, self.size, self.cuda = rank, size, device == "cuda"
        self.device = torch.device("cuda", rank) if self.cuda else torch.device("cpu")

    def largest(self, number):
        found = torch.tensor(float(number), dtype=torch.float64, device=self.device)
        dist.all_reduce(found, dist.ReduceOp.MAX)
        return found.item()

    def mine(self, tensor, layout):
        return tensor.chunk(self.size, layout.dim)[self.rank].contiguous() if isinstance(layout, Shard) else tensor

    def sample(self, call, repeats, alone):
        """Microseconds of one call, out of `repeats` in a row; of the slowest rank."""
        if self.cuda:
            torch.cuda.synchronize()
        dist.barrier()
        elapsed = 0.0
        if self.rank == 0 or not alone:
            if self.cuda:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                for _ in range(repeats):
                    call()
                end.record()
                end.synchronize()
                elapsed = begin.elapsed_time(end) * 1e3
            else:
                first = time.perf_counter()
                for _ in range(repeats):
                    call()
                elapsed = (time.perf_counter() - first) * 1e6
        return self.largest(elapsed) / repeats

    def race(self, calls, rounds):
        """Rows of a case: {name: call}; names that begin with "one" are of the first rank alone."""
        times, repeats = {name: [] for name in calls}, {}
        for name, call in calls.items():
            alone = name.startswith("one")
            self.sample(call, 2, alone)
            repeats[name] = max(1, min(200, int(SAMPLE_US / max(self.sample(call, 2, alone), 0.1))))
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(self.sample(call, repeats[name], name.startswith("one")))
        rows = []
        for name, measured in times.items():
            low, _, high = statistics.quantiles(measured, n=4)
            first = next(one for one in times if one.endswith(", graph") == name.endswith(", graph"))
            gain = round(statistics.median(a / b for a, b in zip(times[first], measured, strict=True)), 4)
            rows.append(dict(name=name, median_us=round(statistics.median(measured), 3), spread_us=round((high - low) / 2, 3), first=first, gain=gain))
        return rows

    def graph_of(self, call):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
        return graph.replay

    def with_graphs(self, calls):
        if not self.cuda:
            return calls
        graphs = {}
        for name, call in calls.items():
            if not name.startswith("one") or self.rank == 0:
                graphs[name + ", graph"] = self.graph_of(call)
            else:
                graphs[name + ", graph"] = None
            dist.barrier()
        return calls | graphs


def off(got, want):
    """The largest difference, over the largest entry that is wanted."""
    return ((got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=1e-30)).item()


class MLP(torch.nn.Module):
    def __init__(self, width, hidden, block, density, dtype, device):
        super().__init__()
        options = dict(bias=False, dtype=dtype, device=device)
        self.up = sa.SparseLinear(width, hidden, block, density, activation="silu", **options)
        self.down = sa.SparseLinear(hidden, width, block, density, **options)

    def forward(self, x):
        return self.down(self.up(x))


class Layers:
    """An MLP, forward or a training step."""

    def __init__(self, what, sizes, tokens, block, density, dtype):
        self.what, self.sizes, self.tokens, self.block, self.density, self.dtype = what, sizes, tokens, block, density, dtype
        self.name = f"mlp {what} {str(dtype)[6:]} {sizes[0]}->{sizes[1]}->{sizes[0]} {density:.0%} block {block} T={tokens}"

    def facts(self):
        sizes = dict(width=self.sizes[0], hidden=self.sizes[1], tokens=self.tokens, block=self.block, density=self.density)
        return dict(case=self.name, what=f"mlp {self.what}", dtype=str(self.dtype)[6:], **sizes)

    def model(self, ranks):
        torch.manual_seed(1)
        return MLP(*self.sizes, self.block, self.density, self.dtype, ranks.device)

    def parallel(self, ranks, layouts, chunks, direct):
        came, goes = LAYOUTS[layouts]
        style = PairwiseSparse(up="up", down="down", input_layouts=came, output_layouts=goes, chunks=chunks, direct=direct)
        return parallelize_module(self.model(ranks), init_device_mesh(ranks.device.type, (ranks.size,)), style)

    def step(self, model, x, gradient):
        """Of values and input; what it gives is the gradient of the input."""

        def call():
            model.zero_grad(set_to_none=True)
            x.grad = None
            made = model(x)
            made.backward(gradient)
            return x.grad

        return call

    def forward(self, model, x, _gradient):
        def call():
            with torch.no_grad():
                return model(x)

        return call

    def call(self, model, x, gradient):
        return self.forward(model, x, None) if self.what == "forward" else self.step(model, x.requires_grad_(), gradient)

    def measure(self, ranks, rounds, chunks):
        torch.manual_seed(2)
        x, gradient = (torch.randn(self.tokens, self.sizes[0], device=ranks.device).to(self.dtype) for _ in range(2))
        single = self.call(self.model(ranks), x.clone(), gradient)
        tune_once(single)
        want = single()
        calls, facts = {"one": single}, {}
        for layouts, (came, goes) in LAYOUTS.items():
            back = goes if self.what == "forward" else came  # where the result that is compared lies
            for count, direct in chunks:
                if direct and layouts == "whole" or direct == "late copies" and (layouts != "scattered" or self.what != "forward"):
                    continue
                if direct in ("copies", "late copies") and self.what != "forward" and layouts != "sequence":
                    continue
                model = self.parallel(ranks, layouts, count, direct)
                call = self.call(model, ranks.mine(x, came).clone(), ranks.mine(gradient, goes).clone())
                name = f"{ranks.size} ranks, {layouts}" + (f", {count}{' ' + WORDS[direct] if direct else ''}" if count else "")
                first = call().clone()
                error = ranks.largest(off(first, ranks.mine(want, back)))
                same = ranks.largest(0.0 if torch.equal(first, call()) else 1.0) == 0
                facts[name] = dict(error=error, repeatable=same, blocks=[model.up.nnzb, model.down.nnzb], chosen=chunk_choices(model).get("", {}))
                calls[name] = call
        return rows_of(ranks.race(ranks.with_graphs(calls), rounds), facts)


class Attention:
    """Of a mask of blocks at random, one for all heads."""

    def __init__(self, rows, heads, depth, block, kept, dtype):
        self.rows, self.heads, self.depth, self.block, self.kept, self.dtype = rows, heads, depth, block, kept, dtype
        self.name = f"attention forward {str(dtype)[6:]} S={rows} heads {heads} depth {depth} {kept:.0%} block {block}"

    def facts(self):
        sizes = dict(rows=self.rows, heads=self.heads, depth=self.depth, block=self.block, kept=self.kept)
        return dict(case=self.name, what="attention forward", dtype=str(self.dtype)[6:], **sizes)

    def measure(self, ranks, rounds, _chunks):
        torch.manual_seed(3)
        grid = self.rows // self.block
        mask = sa.BlockMask.from_dense((torch.rand(grid, grid) < self.kept).to(ranks.device), self.block)
        q, k, v = (torch.randn(1, self.heads, self.rows, self.depth, device=ranks.device).to(self.dtype) for _ in range(3))

        def called(function, *operands, **words):
            def call():
                with torch.no_grad():
                    return function(*operands, **words)

            return call

        single = called(sa.attention, q, k, v, mask=mask)
        tune_once(single)
        want = ranks.mine(single(), Shard(2))
        mine = [ranks.mine(x, Shard(2)) for x in (q, k, v)]
        calls = {
            f"{ranks.size} ranks, by heads": called(attention_by_heads, *mine, mask=mask),
            f"{ranks.size} ranks, by heads, copies": called(attention_by_heads, *mine, mask=mask, copies=True),
            f"{ranks.size} ranks, by keys": called(attention_by_keys, *mine, mask),
        }
        facts = {}
        for name, call in calls.items():
            first = call().clone()
            error = ranks.largest(off(first, want))
            facts[name] = dict(error=error, repeatable=ranks.largest(0.0 if torch.equal(first, call()) else 1.0) == 0)
        return rows_of(ranks.race(ranks.with_graphs({"one": single} | calls), rounds), facts)


class Experts:
    """A mixture of experts with gates, forward; routed at random."""

    def __init__(self, tokens, chosen, count, model, hidden, dtype):
        self.tokens, self.chosen, self.count, self.model, self.hidden, self.dtype = tokens, chosen, count, model, hidden, dtype
        self.name = f"experts forward {str(dtype)[6:]} {count} of {model}x{hidden} T={tokens} top {chosen}"

    def facts(self):
        sizes = dict(tokens=self.tokens, chosen=self.chosen, experts=self.count, model=self.model, hidden=self.hidden)
        return dict(case=self.name, what="experts forward", dtype=str(self.dtype)[6:], **sizes)

    def measure(self, ranks, rounds, _chunks):
        torch.manual_seed(4)
        alone = [dist.new_group([rank]) for rank in range(ranks.size)][ranks.rank]
        x = torch.randn(self.tokens, self.model, device=ranks.device).to(self.dtype)
        chosen = torch.rand(self.tokens, self.count, device=ranks.device).topk(self.chosen).indices
        weights = torch.full_like(chosen, 1 / self.chosen, dtype=self.dtype)
        shapes = [(self.count, self.model, self.hidden)] * 2 + [(self.count, self.hidden, self.model)]
        gate, up, down = (torch.randn(shape, device=ranks.device).to(self.dtype) / shape[1] ** 0.5 for shape in shapes)
        capacity = int(1.15 * self.tokens * self.chosen / ranks.size**2) if self.tokens > 1000 else None  # of pairs from a rank to another

        def called(x, chosen, weights, gate, up, down, **words):
            def call():
                with torch.no_grad():
                    return experts(x, chosen, weights, up, down, gate=gate, **words)

            return call

        operands = (x, chosen, weights, gate, up, down)
        single = called(*operands, group=alone)
        tune_once(single)
        want = ranks.mine(single(), Shard(0))
        calls, facts = {"one": single}, {}
        for limit in [None, capacity] if capacity else [None]:
            call = called(*(ranks.mine(operand, Shard(0)) for operand in operands), capacity=limit)
            first = call().clone()
            same = ranks.largest(0.0 if torch.equal(first, call()) else 1.0) == 0
            name = f"{ranks.size} ranks" + (f", capacity {limit}" if limit else "")
            calls[name], facts[name] = call, dict(error=ranks.largest(off(first, want)), repeatable=same, capacity=limit)
        return rows_of(ranks.race(ranks.with_graphs(calls), rounds), facts)


def rows_of(rows, facts):
    for row in rows:
        row |= facts.get(row["name"].removesuffix(", graph"), {})
    return rows


def cases(device):
    if device == "cpu":
        found = [Layers(what, (64, 128), 64, 16, 0.25, torch.float32) for what in ("forward", "training")]
        return [*found, Attention(512, 4, 16, 32, 0.3, torch.float32), Experts(64, 2, 8, 32, 48, torch.float32)]
    sizes = (4096, 14336)
    found = [Layers("forward", sizes, 8192, 128, density, torch.bfloat16) for density in (0.1, 0.25)]
    found.append(Attention(131072, 8, 128, 128, 0.13, torch.bfloat16))
    found.append(Experts(8192, 2, 64, 4096, 2048, torch.bfloat16))
    return found + [Layers("training", sizes, 8192, 128, density, torch.bfloat16) for density in (0.1, 0.25)]


def agreed(ranks, wanted):
    return ranks.largest(wanted if ranks.rank == 0 else 0.0) > 0


def head(options, device):
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = dict(schema=1, sparsek=_C.version(), commit=_C.commit(), date=stamp, command=options.command, device=device)
    versions = dict(torch=torch.__version__, cuda=torch.version.cuda)
    if device["kind"] == "cuda":
        versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found | dict(versions=versions, rounds=options.rounds, budget_s=options.budget_s, ctas=options.ctas, low_priority=options.low_priority)


def write(path, first, done):
    if path:
        with open(path + ".part", "w") as file:
            json.dump(dict(**first, distributed=done), file, indent=1)
            file.write("\n")
        os.replace(path + ".part", path)


def worker(rank, options, folder):
    begin = time.monotonic()
    ranks = Ranks(rank, options.ranks, options.device)
    if ranks.cuda:
        torch.cuda.set_device(ranks.device)
    else:
        torch.set_num_threads(1)
    sa.set_options(store=options.store or os.path.join(folder, "store.db"), tuning="now", budget_s=options.budget_s)
    rendezvous = dist.FileStore(os.path.join(folder, "rendezvous"), options.ranks)
    named = {}
    if ranks.cuda:
        of_nccl = dist.ProcessGroupNCCL.Options(is_high_priority_stream=not options.low_priority)
        if options.ctas:
            of_nccl.config.max_ctas = options.ctas
        named = dict(device_id=ranks.device, pg_options=of_nccl)
    limit = datetime.timedelta(seconds=300)
    dist.init_process_group("nccl" if ranks.cuda else "gloo", store=rendezvous, rank=rank, world_size=options.ranks, timeout=limit, **named)
    name = torch.cuda.get_device_name() if ranks.cuda else "cpu"
    first, done = head(options, dict(kind=options.device, name=name, count=options.ranks)), []
    for case in cases(options.device):
        if not re.search(options.only, case.name) or not agreed(ranks, float(time.monotonic() - begin < options.limit_s)):
            continue
        started = time.monotonic()
        rows = case.measure(ranks, options.rounds, options.chunks)
        done.append(case.facts() | dict(rows=rows, seconds=round(time.monotonic() - started, 1)) | (dict(card=card()) if ranks.cuda else {}))
        if rank == 0:
            print(f"{case.name}: {done[-1]['seconds']} s", flush=True)
            for row in rows:
                wrong = f"error {row['error']:.2g}{'' if row['repeatable'] else ', other bits at each run'}" if "error" in row else ""
                chosen = f" {list(row['chosen'].values())}" if row.get("chosen") else ""
                print(f"  {row['name']:36}{row['median_us']:12.2f} us ±{row['spread_us']:9.2f}  {row['gain']:.3f} x  {wrong}{chosen}", flush=True)
            write(options.json, first, done)
        if ranks.cuda:
            torch.cuda.empty_cache()
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--ranks", type=integer(1, 1024), default=2)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose name matches")
    parser.add_argument(
        "--chunks",
        default="0,1,2,4,1d,2d,4d,1c,2c,4c,1l,2l,4l,1w",
        help="pieces of tokens to time, by commas, with d: direct, c: copies, l: late copies, w: weights; 0: as the layer measures",
    )
    parser.add_argument("--rounds", type=integer(1), default=ROUNDS)
    parser.add_argument("--budget-s", type=SECONDS, default=1.0, help="seconds of one tuning")
    parser.add_argument("--limit-s", type=SECONDS, default=1e9, help="begin no case after so many seconds")
    parser.add_argument("--low-priority", action="store_true", help="NCCL's stream has no priority over the products'")
    parser.add_argument("--ctas", type=integer(0, 64), default=0, help="thread blocks of NCCL at most; 0: as it likes")
    parser.add_argument("--store", metavar="FILE", help="of decisions, to keep; else one that goes with the run")
    options = parser.parse_args()
    options.chunks = [(int(word.rstrip("dclw")) or None, KINDS[word.lstrip("0123456789")]) for word in options.chunks.split(",")]
    options.command = "python " + " ".join(sys.argv)
    if options.json:
        os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, (options, folder), nprocs=options.ranks)


if __name__ == "__main__":
    main()
