#!/usr/bin/env python3
"""Asks of every architecture of the installed transformers what architecture_checks.py says.

    sweep_architectures.py [--jobs N] [--seconds S] [--seed S] [--sample N] [--only NAME,...] [--slice I/N] [--results FILE]
    sweep_architectures.py --table FILE                writes the table of docs/models.md from a file of results

Each architecture has a process of its own, forked from one that has imported everything, and so many seconds. Exit status 1 where one
FAILED, crashed or took too long.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import re
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent))
os.environ.setdefault("SPARSEK_BUNDLE", "")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- architectures: begin -->", "<!-- architectures: end -->"


def _quiet():
    import transformers

    transformers.logging.set_verbosity(60)
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore")


def ask(kind, names, seed):
    """Of one architecture, here: {"kind", "model", "layers", "attention", ...}; each of the last two an outcome and words."""
    import architecture_checks
    import small_models

    try:
        model, given = small_models.small(kind, names, seed)
    except small_models.CannotBeSmall as error:
        return {"kind": kind, "small": str(error)}
    said = {"kind": kind, "model": type(model).__name__, "inputs": sorted(given)}
    block = random.Random(f"{kind} {seed}").choice([8, 16])
    said["layers"] = architecture_checks.layers(model, given, block)
    said["attention"] = architecture_checks.attention(model, given)
    return said


def _child(kind, names, seed, end):
    import torch

    import sparse_autotune as sa

    torch.set_num_threads(1)
    _quiet()
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sa.set_options(store="", effort="estimate")
    sa.register_with_transformers()
    end.send(ask(kind, names, seed))


def _came(kind, process, end, started, seconds):
    """The answer of a process, or None where it is still at work."""
    if end.poll():
        try:
            said = end.recv()
        except EOFError:
            process.join()
            said = {"kind": kind, "layers": ("FAILED", f"the process ended with {process.exitcode}"), "attention": ("none", "")}
        process.join()
    elif time.monotonic() - started > seconds:
        process.kill()
        process.join()
        said = {"kind": kind, "layers": ("FAILED", f"took more than {seconds} s"), "attention": ("none", "")}
    else:
        return None
    return said | {"seconds": round(time.monotonic() - started, 1)}


def sweep(kinds, seed=0, jobs=1, seconds=300, told=None):
    """{kind: answer}; told is called with each as it comes."""
    import architecture_checks  # noqa: F401
    import torch
    from transformers.models.llama import modeling_llama  # noqa: F401, with all that most models need, for all processes

    torch.set_num_threads(1)  # no thread is there when a process is forked
    context, waiting, running, found = multiprocessing.get_context("fork"), list(kinds.items()), {}, {}
    while waiting or running:
        while waiting and len(running) < jobs:
            kind, names = waiting.pop(0)
            mine, other = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(kind, names, seed, other), daemon=True)
            process.start()
            other.close()
            running[kind] = (process, mine, time.monotonic())
        time.sleep(0.05)
        for kind, (process, end, started) in list(running.items()):
            said = _came(kind, process, end, started, seconds)
            if said is not None:
                del running[kind]
                found[kind] = said
                if told:
                    told(said)
    return found


def failed(said):
    return [f"{said['kind']} ({said.get('model', '')}), {part}: {said[part][1]}" for part in ("layers", "attention") if said.get(part, ("",))[0] == "FAILED"]


def line(said):
    parts = [f"{part} {said[part][0]}{': ' + said[part][1] if said[part][1] else ''}" for part in ("layers", "attention") if part in said]
    return f"{said['kind']:28} {said.get('model', '-'):44} {'; '.join(parts) or 'cannot be made small: ' + said['small']} [{said['seconds']} s]"


# ------------------------------------------------------------------------------------------------ the table

_ROWS = [  # words, outcomes of layers, of attention
    ("layers equal, attention equal", "equal", "equal"),
    ("layers equal; attention: the model does not call the function, or has only its own", "equal", "none"),
    ("layers equal; attention refused in words", "equal", "refused"),
    ("layers: none is large enough, or the dense model is not loaded either; attention equal", "none refused", "equal"),
    ("nothing to ask, or refused in words", "none refused", "none refused"),
    ("FAILED", "equal none refused FAILED", "equal none refused FAILED"),
]


def table(answers):
    """Lines of Markdown: outcomes, how many architectures, and which."""
    import transformers

    every = len(chosen())
    lines = [
        f"transformers {transformers.__version__}, {len(answers)} of {every} architectures:",
        "",
        "| outcome | number | architectures |",
        "| --- | --- | --- |",
    ]
    left = {said["kind"]: said for said in answers}
    for words, layers, attention in _ROWS:
        names = [kind for kind, said in left.items() if "layers" in said and said["layers"][0] in layers.split() and said["attention"][0] in attention.split()]
        for name in names:
            del left[name]
        if names:
            lines.append(f"| {words} | {len(names)} | {', '.join(f'`{name}`' for name in sorted(names))} |")
    small = sorted(kind for kind, said in left.items() if "small" in said)
    lines.append(f"| not asked: no small model of it could be made by rule | {len(small)} | {', '.join(f'`{name}`' for name in small)} |")
    return lines


def write_table(path):
    answers = json.loads(pathlib.Path(path).read_text())
    text = PAGE.read_text()
    made = "\n".join([BEGIN, "", *table(answers), "", END])
    PAGE.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _found: made, text, flags=re.S))


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, help="so many, drawn at random by the seed")
    parser.add_argument("--only", default="")
    parser.add_argument("--slice", default="0/1")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    return parser.parse_args()


def chosen(only="", sample=None, seed=0, part="0/1"):
    import small_models

    kinds = small_models.architectures()
    names = only.split(",") if only else sorted(kinds)
    unknown = [name for name in names if name not in kinds]
    if unknown:
        raise SystemExit(f"--only: transformers has no architecture {', '.join(unknown)}")
    if sample is not None:
        names = sorted(random.Random(seed).sample(names, min(sample, len(names))))
    index, count = (int(number) for number in part.split("/"))
    return {name: kinds[name] for name in names[index::count]}


def main():
    given = _arguments()
    if given.table:
        write_table(given.table)
        return 0
    answers = []

    def told(said):
        answers.append(said)
        print(line(said), flush=True)
        if given.results:
            given.results.write_text(json.dumps(sorted(answers, key=lambda one: one["kind"]), indent=1))

    sweep(chosen(given.only, given.sample, given.seed, given.slice), given.seed, given.jobs, given.seconds, told)
    wrong = [words for said in answers for words in failed(said)]
    print(f"{len(answers)} architectures, {sum('small' in said for said in answers)} cannot be made small, {len(wrong)} failures; seed {given.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
