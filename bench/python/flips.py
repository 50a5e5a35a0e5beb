"""How often a tuning chooses otherwise: python bench/python/flips.py [--device cpu|cuda] [--count N] [--times N] [--budget-s S] [--json FILE] [--threads N].

Random problems (--count) of SpMM, SDDMM, GEMM and attention with and without masks, each tuned --times times with an empty store and no bundle. Of each one the
file has the choices, how often each was made, and what each takes over the fastest of them, less one: they are timed in turns. A flip is a tuning whose choice
is another than the problem's most frequent one; what a flip costs is the choice's loss.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

os.environ["SPARSEK_BUNDLE"] = ""

import first_calls  # noqa: E402
import torch  # noqa: E402
from arguments import SECONDS, integer, result_file  # noqa: E402
from busy import KINDS, at, problem  # noqa: E402

import sparse_autotune as sa  # noqa: E402
from sparse_autotune import _C  # noqa: E402

PROGRAM = pathlib.Path(sa.__file__).with_name("sparsek")
CLOSE = 0.01  # a loss of less is a tie


def choice(store):
    """Of the one class in a store."""
    done = subprocess.run([PROGRAM, "store", "list", "--json", "-", "--store", store], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)["results"]
    return found["choice"]


def judged(number, options, folder):
    kind, dtype, call = problem(number, options.seed, options.device)
    stores, counts = {}, collections.Counter()
    for time in range(options.times):
        store = folder / f"{time}.db"
        sa.set_options(store=store, tuning="now", budget_s=options.budget_s)
        sa.clear_cache()
        call()
        sa.set_options(store="")
        made = choice(store)
        stores.setdefault(made, store)
        counts[made] += 1
    usual, over = stores[counts.most_common(1)[0][0]], dict.fromkeys(stores, 1.0)  # the most frequent one
    if len(stores) > 1:
        sa.set_options(store=usual, tuning="ahead_each")
        usual_s = min(first_calls.seconds(call, options.device) for _ in range(5))
        for made, store in stores.items():
            if store != usual:
                called, in_graphs = first_calls.loss(call, options.device, ((store, "ahead_each"), (usual, "ahead_each")), usual_s)
                over[made] = 1 + (called if in_graphs is None else in_graphs)
    least = min(over.values())
    sa.set_options(store="")
    return dict(
        number=number,
        kind=kind,
        dtype=dtype,
        choices=[dict(choice=made, count=count, loss=round(over[made] / least - 1, 4)) for made, count in counts.most_common()],
    )


def summary(rows, times):
    flips = [(row, made) for row in rows for made in row["choices"][1:] for _ in range(made["count"])]
    losses = [made["loss"] for row in rows for made in row["choices"] for _ in range(made["count"])]
    dear = [made for _, made in flips if made["loss"] > CLOSE]
    return dict(
        tunings=len(rows) * times,
        flips=len(flips),
        problems_with_flips=len({row["number"] for row, _ in flips}),
        flips_that_cost_more_than_1_percent=len(dear),
        loss=dict(mean=round(statistics.mean(losses), 4), p95=at(losses, 0.95), most=max(losses)),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--count", type=integer(1), default=40)
    parser.add_argument("--times", type=integer(2), default=10)
    parser.add_argument("--seed", type=integer(0), default=1)
    parser.add_argument("--budget-s", type=SECONDS, default=1.0, help="of each tuning")
    parser.add_argument("--threads", type=integer(1, 1024), default=torch.get_num_threads())
    parser.add_argument("--json", type=result_file)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sa.set_options(effort="measure", warm=True)
    found = dict(
        command="python bench/python/flips.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        on=torch.cuda.get_device_name() if options.device == "cuda" else "cpu",
        threads=options.threads,
        budget_s=options.budget_s,
        kinds=KINDS,
        problems=[],
    )
    for number in range(options.count):
        with tempfile.TemporaryDirectory() as folder:
            row = judged(number, options, pathlib.Path(folder))
        found["problems"].append(row)
        print(f"{number:3} {row['kind']:16} {row['dtype']:8}", *(f"{c['count']} x {c['choice']} {100 * c['loss']:+.1f} %;" for c in row["choices"]), flush=True)
    found["summary"] = summary(found["problems"], options.times)
    print(found["summary"])
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
