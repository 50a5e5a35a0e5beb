"""What first calls cost: python bench/python/first_calls.py [--device cpu|cuda] [--mode in_place|now|never] [--json FILE] [--threads N].

With --seconds a problem is called for so long, 100 times at least: on a GPU candidates are compiled and proved meanwhile. With --wait-s it is called on until
what is tried in place is decided, for so long at most.

On a GPU the choices are compared in CUDA graphs, too, which leave the host's time out: "loss_in_graphs", null where a call cannot be captured.

Random problems (--count) of SpMM, SDDMM, GEMM and attention with and without masks, and of their gradients, each with an empty store and no bundle. Of each one
the file says how long the first call took and what a usual one takes, how long the slowest of 100 calls took, and what the choices that these calls led to lose
beside those of tuning: calls of the two are timed in turns by the host's clock, and the loss is the median of the ratios, less one.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

os.environ["SPARSEK_BUNDLE"] = ""

import torch  # noqa: E402
from arguments import SECONDS, integer, result_file  # noqa: E402

import sparse_autotune as sa  # noqa: E402
from sparse_autotune import _C  # noqa: E402

CALLS, ROUNDS = 100, 7


def sparse(rng, words, requires_grad=False):
    block = rng.choice([4, 8, 16, 32, 64])
    rows, cols = (block * rng.randrange(64 // block + 1, 2048 // block + 1) for _ in range(2))
    return sa.BSR.from_dense(torch.randn(rows, cols, **words), block=block, density=rng.uniform(0.05, 0.4), by="l2").requires_grad_(requires_grad)


def spmm(rng, words):
    a = sparse(rng, words)
    x = torch.randn(a.shape[1], rng.choice([1, 4, 8, 16, 64, 128, 256]), **words)
    return lambda: sa.matmul(a, x)


def sddmm(rng, words):
    a, k = sparse(rng, words), rng.choice([16, 64, 256])
    x, y = torch.randn(a.shape[0], k, **words), torch.randn(k, a.shape[1], **words)
    return lambda: sa.sddmm(a, x, y)


def gemm(rng, words):
    m, k, n = (rng.randrange(1, 1024) for _ in range(3))
    x, w = torch.randn(m, k, **words), torch.randn(k, n, **words)
    return lambda: sa.gemm(x, w)


def training(rng, words):
    a = sparse(rng, words, requires_grad=True)
    x = torch.randn(a.shape[1], rng.choice([16, 64, 256]), **words).requires_grad_()
    y = torch.randn(a.shape[0], x.shape[1], **words)
    return lambda: torch.autograd.grad(sa.matmul(a, x), (a.values, x), y)


def attention(rng, words, masked=False, gradients=False):
    block, depth, heads = rng.choice([16, 32, 64]), rng.choice([32, 64, 128]), rng.choice([1, 2, 4])
    size = block * rng.randrange(2, 1024 // block + 1)
    q, k, v = (torch.randn(1, heads, size, depth, **words).requires_grad_(gradients) for _ in range(3))
    y = torch.randn_like(q)
    options = {"causal": rng.random() < 0.5}
    if masked:
        kept = torch.rand(size // block, size // block, device=words["device"]) < rng.uniform(0.1, 0.6)
        kept.fill_diagonal_(True)
        options = {"mask": sa.BlockMask.from_dense(kept, block)}
    call = lambda: sa.attention(q, k, v, **options)  # noqa: E731
    return (lambda: torch.autograd.grad(call(), (q, k, v), y)) if gradients else call


KINDS = {
    "spmm": spmm,
    "sddmm": sddmm,
    "gemm": gemm,
    "training": training,
    "attention": attention,
    "attention-mask": lambda rng, words: attention(rng, words, masked=True),
    "attention-gradients": lambda rng, words: attention(rng, words, gradients=True),
    "attention-mask-gradients": lambda rng, words: attention(rng, words, masked=True, gradients=True),
}


def clock(device):
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def seconds(call, device, count=1):
    begin = clock(device)
    for _ in range(count):
        call()
    return (clock(device) - begin) / count


def graph_of(call):
    """The call, captured with the choice that the options in force lead to."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def event_seconds(call, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / count


def ratios_of_graphs(call, stores, count):
    graphs = []
    for store, tuning in stores:
        sa.set_options(store=store, tuning=tuning)
        graphs.append(graph_of(call))
    for _ in range(ROUNDS):
        least = [min(event_seconds(graph, count) for _ in range(3)) for graph in graphs]
        yield least[0] / least[1]


def ratios_of_calls(call, device, stores, count):
    for _ in range(ROUNDS):
        least = []
        for store, tuning in stores:
            sa.set_options(store=store, tuning=tuning)
            for _ in range(3):
                call()
            least.append(min(seconds(call, device, count) for _ in range(3)))
        yield least[0] / least[1]


def loss(call, device, stores, usual_s):
    """Of the first store's choices, over the second's: in calls as the user makes them, and on a GPU in CUDA graphs, None where they cannot be captured."""
    count = max(1, min(50 if device == "cpu" else 400, int((2e-3 if device == "cpu" else 12e-3) / max(usual_s, 1e-7))))
    called, captured = statistics.median(ratios_of_calls(call, device, stores, count)) - 1, None
    if device == "cuda":
        try:
            captured = statistics.median(ratios_of_graphs(call, stores, min(50, count))) - 1
        except RuntimeError as failure:
            print(f"  not captured: {str(failure).splitlines()[0]}", file=sys.stderr)
            torch.cuda.synchronize()
    return called, captured


class Settled:
    """Whether a store that trials in place write to has had its last decision: none came for two seconds. Looked at four times a second."""

    def __init__(self, store):
        self.store, self.begin, self.looked, self.size, self.last = store, time.perf_counter(), 0.0, None, None

    def now(self, wait_s):
        at = time.perf_counter()
        if at - self.looked > 0.25:
            self.looked = at
            facts = self.store.stat() if self.store.exists() else None
            written = facts and (facts.st_size, facts.st_mtime_ns)
            if written != self.size:
                self.size, self.last = written, at
        return at - self.begin > wait_s or (self.last is not None and at - self.last > 2)


def tried(call, options, folder):
    device, store, tuned = options.device, folder / "tried.db", folder / "tuned.db"
    sa.set_options(store=store, tuning=options.mode, budget_s=0)
    sa.clear_cache()
    first_s = seconds(call, device)
    calls, begin, settled = [], time.perf_counter(), Settled(store)
    while len(calls) < CALLS or time.perf_counter() < begin + options.seconds or (options.mode == "in_place" and not settled.now(options.wait_s)):
        calls.append(seconds(call, device))
    usual_s = statistics.median(calls[-20:])
    sa.set_options(store=tuned, tuning="now", budget_s=options.budget_s)
    tuning_s = seconds(call, device)
    lost, in_graphs = loss(call, device, ((store, options.mode), (tuned, "now")), usual_s)
    return dict(
        first_ms=round(1e3 * first_s, 3),
        usual_ms=round(1e3 * usual_s, 4),
        slowest_ms=round(1e3 * max(calls), 3),
        calls=len(calls),
        decided_s=None if settled.last is None else round(settled.last - begin, 2),
        waited_ms=round(1e3 * (first_s - usual_s), 3),
        tuning_s=round(tuning_s, 2),
        loss=round(lost, 4),
        loss_in_graphs=None if in_graphs is None else round(in_graphs, 4),
    )


def summary(problems):
    waited, losses = sorted(row["waited_ms"] for row in problems), sorted(row["loss"] for row in problems)
    captured = sorted(row["loss_in_graphs"] for row in problems if row["loss_in_graphs"] is not None)
    at = lambda values, part: values[round(part * (len(values) - 1))]  # noqa: E731
    three = lambda values: dict(median=at(values, 0.5), p95=at(values, 0.95), most=values[-1])  # noqa: E731
    return dict(waited_ms=three(waited), loss=three(losses), loss_in_graphs=three(captured) if captured else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=result_file)
    parser.add_argument("--mode", choices=("in_place", "now", "never"), default="in_place", help="set_options(tuning=MODE)")
    parser.add_argument("--threads", type=integer(1, 1024), default=torch.get_num_threads())
    parser.add_argument("--budget-s", type=SECONDS, default=0.0, help="of the tuning that is compared with; 0: the default")
    parser.add_argument("--seconds", type=SECONDS, default=0.0, help="for which a problem is called, 100 times at least")
    parser.add_argument("--wait-s", type=SECONDS, default=0.0, help="for which it is called at most, until all is decided in place; 0: no longer than that")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=integer(1), default=40)
    parser.add_argument("--seed", type=integer(0), default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the two stores of each problem, NUMBER-tried.db and NUMBER-tuned.db")
    parser.add_argument("--numbers", help="comma-separated: only these of the problems")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this one; several times: these")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: there is no CUDA device")
    torch.set_num_threads(options.threads)
    sa.set_options(effort="measure", warm=True)
    found = dict(
        command="python bench/python/first_calls.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        threads=options.threads,
        device={"name": torch.cuda.get_device_name()} if options.device == "cuda" else None,
        mode=options.mode,
        seconds=options.seconds,
        problems=[],
    )
    kinds = options.kind or list(KINDS)
    sa.set_options(store="", tuning="never")
    for make in KINDS.values():  # what PyTorch does once a process
        make(random.Random(0), dict(device=options.device, dtype=torch.float32))()
    numbers = range(options.count) if options.numbers is None else [int(number) for number in options.numbers.split(",")]
    for number in numbers:
        rng = random.Random(1000 * options.seed + number)
        torch.manual_seed(1000 * options.seed + number)
        kind = kinds[number % len(kinds)]
        dtype = rng.choice([torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16])
        if options.device == "cuda" and "attention" in kind:
            dtype = rng.choice([torch.bfloat16, torch.float16])
        call = KINDS[kind](rng, dict(device=options.device, dtype=dtype))
        with tempfile.TemporaryDirectory() as folder:
            row = dict(number=number, kind=kind, dtype=str(dtype)[6:], **tried(call, options, pathlib.Path(folder)))
            sa.set_options(store="")
            if options.keep is not None:
                options.keep.mkdir(parents=True, exist_ok=True)
                for store in pathlib.Path(folder).glob("*.db*"):
                    shutil.copy(store, options.keep / f"{number}-{store.name}")
        found["problems"].append(row)
        print(
            f"{number:3} {kind:24} {row['dtype']:8} first {row['first_ms']:9.2f} ms, usual {row['usual_ms']:8.3f}, slowest {row['slowest_ms']:8.2f}; "
            f"tuning {row['tuning_s']:5.2f} s; loss {100 * row['loss']:6.1f} %"
            + ("" if row["loss_in_graphs"] is None else f", in graphs {100 * row['loss_in_graphs']:6.1f} %"),
            flush=True,
        )
        found.update(summary(found["problems"]))
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(
        f"waited beyond the call: median {found['waited_ms']['median']:.2f} ms, 95th {found['waited_ms']['p95']:.2f}, most {found['waited_ms']['most']:.2f}; "
        f"loss: median {100 * found['loss']['median']:.1f} %, 95th {100 * found['loss']['p95']:.1f} %, most {100 * found['loss']['most']:.1f} %"
        + ("" if found["loss_in_graphs"] is None else "; in graphs {median:.3f}, {p95:.3f}, {most:.3f}".format(**found["loss_in_graphs"]))
    )


if __name__ == "__main__":
    main()
