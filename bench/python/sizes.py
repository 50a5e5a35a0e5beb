"""What sizes of a layer cost: python bench/python/sizes.py [--device cpu|cuda] [--json FILE] [--threads N].

119 numbers of tokens (--count) from 1 to 600 go through one block-sparse layer, in several orders, each with an empty store and tuned with warm caches, as
the losses are timed. The file says how many were measured within the call (stalls), how long the longest call took, and what the choices of the others lose
beside tuning each: the size's own choice and the one that was taken are timed in turns, and the loss is the median of the ratios, less one. Equal choices
lose nothing. On CUDA the times are those of graphs of many products, so that the host's time does not count.
"""

import argparse
import datetime
import json
import pathlib
import sqlite3
import statistics
import sys
import tempfile
import time

import torch
from arguments import SECONDS, integer, real, result_file

import sparse_autotune as sa
from sparse_autotune import _C

COUNT, LARGEST = 119, 600


def ordered(sizes, order):
    return {"up": sizes, "down": sizes[::-1], "mixed": [sizes[(47 * i) % len(sizes)] for i in range(len(sizes))]}[order]


def classes(store):
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM class").fetchone()[0]


def choice_of(form, n):
    return str(sa.explain(*form(n), assume_finite=True).choice)


def took(call, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def graphed(call, repeats):
    """Seconds of a call, as a function: replays of a CUDA graph of so many."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()

    def seconds():
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end) / repeats

    return seconds


def ratio_on_cuda(form, n, taken, own, rounds):
    operands, samples = form(n), {}
    for choice in (taken, own):
        sa.set_options(choice=choice)
        samples[choice] = graphed(lambda: sa.matmul(*operands, assume_finite=True), 20)
    sa.set_options(choice="")
    least = lambda choice: min(samples[choice]() for _ in range(3))  # noqa: E731
    least(taken), least(own)
    return statistics.median(least(taken) / least(own) for _ in range(rounds))


def ratio(form, n, taken, own, rounds):
    """taken over own, in turns; of each turn the least of three samples, as others use the processors."""
    operands = form(n)
    if operands[1].is_cuda:
        return ratio_on_cuda(form, n, taken, own, rounds)
    times = {}

    def least(choice):
        sa.set_options(choice=choice)
        return min(took(lambda: sa.matmul(*operands, assume_finite=True), times["repeats"]) for _ in range(3))

    times["repeats"] = 1
    times["repeats"] = max(1, int(1e-3 / max(least(own), 1e-7)))
    found = [least(taken) / least(own) for _ in range(rounds)]
    sa.set_options(choice="")
    return statistics.median(found)


def stalls(form, sizes, order, budget_s):
    """Sizes that were measured within the call, and the choice of each."""
    folder = tempfile.TemporaryDirectory()
    store = pathlib.Path(folder.name) / "store.db"
    sa.set_options(store=store, budget_s=budget_s)
    sa.clear_cache()
    measured, longest, chosen, known = [], 0.0, {}, 0
    for n in ordered(sizes, order):
        operands = form(n)
        begin = time.perf_counter()
        sa.matmul(*operands, assume_finite=True)
        call_s = time.perf_counter() - begin
        longest = max(longest, call_s)
        report = sa.explain(*operands, assume_finite=True)
        if classes(store) > known:
            known = classes(store)
            measured.append(n)
        chosen[n] = str(report.choice)
    return measured, longest, chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=result_file)
    parser.add_argument("--threads", type=integer(1, 1024), default=1)
    parser.add_argument("--width", type=integer(1, 65536), default=1024)
    parser.add_argument("--rounds", type=integer(1), default=7)
    parser.add_argument("--budget-s", type=SECONDS, default=0.0, help="of one tuning")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=integer(2, LARGEST), default=COUNT, help="of sizes; no multiple of 47")
    parser.add_argument("--block", type=integer(1, 256), default=32)
    parser.add_argument("--density", type=real(0, 1), default=0.1)
    parser.add_argument("--form", choices=("plain", "layer"), help="only this one: B by rows, or by columns")
    options = parser.parse_args()
    if options.count % 47 == 0:
        parser.error(f"--count {options.count}: must be no multiple of 47")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: there is no CUDA device")
    sizes = [1 + (LARGEST - 1) * i // (options.count - 1) for i in range(options.count)]
    dtype = torch.float32 if options.device == "cpu" else torch.bfloat16
    words = dict(device=options.device, dtype=dtype)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    sparse = sa.BSR.from_dense(torch.randn(options.width, options.width, **words), block=options.block, density=options.density)
    found = dict(
        command="python bench/python/sizes.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        threads=options.threads,
        device={"name": torch.cuda.get_device_name()} if options.device == "cuda" else None,
        layer=f"{options.width} x {options.width}, {str(dtype)[6:]}, {options.density:.0%} of {options.block} x {options.block} blocks",
        sizes=sizes,
        forms=[],
    )
    before = sa.set_options(effort="measure", warm=True)
    forms = dict(plain=lambda n: (sparse, torch.ones(options.width, n, **words)), layer=lambda n: (sparse, torch.ones(n, options.width, **words).mT))
    for name, form in forms.items():
        if options.form not in (None, name):
            continue
        folder = tempfile.TemporaryDirectory()  # a store in memory would let the first sizes go
        sa.set_options(store=pathlib.Path(folder.name) / "store.db", budget_s=options.budget_s, tuning="now_each")
        sa.clear_cache()
        begin = time.perf_counter()
        for n in sizes:
            sa.matmul(*form(n), assume_finite=True)
        if options.device == "cuda":
            torch.cuda.synchronize()
        all_s = time.perf_counter() - begin
        own = {n: choice_of(form, n) for n in sizes}
        sa.set_options(tuning="now")
        known = {}
        for order in ("up", "down", "mixed"):
            measured, longest, chosen = stalls(form, sizes, order, options.budget_s)
            losses = []
            for n in sizes:
                key = (n, chosen[n], own[n])
                if key not in known:
                    known[key] = 0.0 if chosen[n] == own[n] else ratio(form, n, chosen[n], own[n], options.rounds) - 1
                losses.append(known[key])
            ranked = sorted(losses)
            row = dict(
                form=name,
                order=order,
                stalls=len(measured),
                measured=measured,
                longest_call_s=round(longest, 3),
                tuning_each_s=round(all_s, 2),
                median_loss=round(statistics.median(losses), 4),
                p95_loss=round(ranked[round(0.95 * (len(ranked) - 1))], 4),
                most=round(ranked[-1], 4),
                other_choice=sum(chosen[n] != own[n] for n in sizes),
                losses=[round(loss, 4) for loss in losses],
            )
            found["forms"].append(row)
            print(
                f"{name:6} {order:6} {row['stalls']} stalls {measured}, longest call {longest:.3f} s; loss: median {100 * row['median_loss']:.1f} %, "
                f"95th {100 * row['p95_loss']:.1f} %, most {100 * row['most']:.1f} %; {row['other_choice']} of {len(sizes)} differ",
                flush=True,
            )
            if options.json is not None:
                options.json.write_text(json.dumps(found, indent=1) + "\n")
    sa.set_options(**{"effort": before.effort})


if __name__ == "__main__":
    main()
