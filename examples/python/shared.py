"""What the examples share: their common options, timing, tables, and where results go."""

import argparse
import datetime
import io
import json
import pathlib
import re
import statistics
import sys
import time

import torch

import sparse_autotune as sa
from sparse_autotune import _C


def parser(text):
    """The options of every example; text is its docstring."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--small", action="store_true", help="a setting of seconds, as the tests run it")
    made.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    made.add_argument("--seed", type=int, default=20)
    made.add_argument("--budget", type=float, metavar="S", help="seconds that tuning one product may take (default: 2 on the CPU, 5 on a GPU, 0.1 if small)")
    made.add_argument("--picture", type=pathlib.Path, help="write a picture to this file (needs matplotlib)")
    made.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    return made


def parse(parser, arguments):
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    if options.budget is None and options.small:
        options.budget = 0.1  # training meets dozens of classes of products: they would take minutes
    sa.set_options(tuning="now", budget_s=options.budget or 0)  # not in place: the choice is made before it is timed
    return options


def fill(options, *, tiny, usual, large):
    """Options that were not given: tiny with --small, large on a GPU, else usual."""
    sizes = tiny if options.small else large if torch.device(options.device).type == "cuda" else usual
    for option, value in sizes.items():
        if getattr(options, option) is None:
            setattr(options, option, value)


def name(device):
    """The processor, in words."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name()
    models = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return f"{models[0] if models else 'CPU'}, {torch.get_num_threads()} threads"


def times(calls, rounds=15, device="cpu"):
    """{name: median milliseconds} of calls in interleaved rounds; calls that tune do so before."""
    for call in calls.values():
        call()
        call()
    measured = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            wait(device)
            begin = time.perf_counter()
            call()
            wait(device)
            measured[name].append((time.perf_counter() - begin) * 1e3)
    return {name: statistics.median(samples) for name, samples in measured.items()}


def wait(device):
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def table(rows):
    """Prints dicts with the same keys as a table in Markdown."""
    names = list(rows[0])
    cells = [names] + [[f"{row[n]:.4g}" if isinstance(row[n], float) else str(row[n]) for n in names] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    cells.insert(1, ["-" * w for w in widths])
    for line in cells:
        print("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |")
    print(flush=True)


def figure(columns, width, height):
    """A figure with a row of axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


def save(drawn, path):
    """A small file: 64 colours are enough."""
    from PIL import Image

    data = io.BytesIO()
    drawn.savefig(data, dpi=90)
    Image.open(data).convert("RGB").quantize(64).save(path, optimize=True)


def finish(options, result, drawn=None):
    """Writes what was asked for; returns the result, with where it is from."""
    if options.picture and drawn is not None:
        save(drawn, options.picture)
        print(f"picture: {options.picture}")
    result = {
        "schema": 1,
        "command": "python " + " ".join(["examples/python/" + pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _C.commit(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "device": name(options.device),
    } | result
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return result
