#!/usr/bin/env python3
"""Runs of benchmarks: those that are committed, a file a topic (bench/results/TOPIC.jsonl).

    bench/runs.py list [PATTERN]          names of runs, with * and ?
    bench/runs.py show NAME [--out FILE]  one run as JSON
    bench/runs.py add FILE.json...        runs as the benchmarks write them, each named as its file; one of the same name goes for it
    bench/runs.py remove NAME...
    bench/runs.py check                   fail where a file is not what this program would write

A run begins with a line {"run": NAME, ...}, which has its command, commit and device. What it is long in stands in the lines after it, an
entry each, so that a difference between two commits shows the cases that changed: {"results": {...}} is another entry of its "results", which
is empty in the first line.
"""
import argparse
import fnmatch
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
LONG = 200  # characters: what is longer has its entries on lines of their own
# The first whose name the run's begins with, behind those of the processor: what is left is a topic, too.
TOPICS = ("attention-backward", "attention", "bundle", "check", "decoder", "distributed", "elements", "first-calls", "flips", "gemm", "layers", "narrow", "overhead", "peers",
          "proved", "regret", "sanitizers", "sddmm", "sizes", "small", "spmm", "topologies", "training", "transposed")


class Trouble(Exception):
    pass


def topic_of(name):
    what = re.sub(r"^(cpu|gpu)-[a-z0-9]+-(x\d+-)?", "", name)
    return next((topic for topic in TOPICS if what.startswith(topic)), re.sub(r"-[0-9a-f]{7}$", "", what))


def text_of(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def is_long(value):
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(entry, (dict, list)) for entry in entries) and len(text_of(value)) > LONG


def lines_of(name, document):
    head, rest = {"run": name}, []
    for key, value in document.items():
        if not is_long(value):
            head[key] = value
        elif isinstance(value, list):
            head[key] = []
            rest += [{key: entry} for entry in value]
        else:
            head[key] = {}
            rest += [{key: {entry: of}} for entry, of in value.items()]
    return [text_of(line) for line in (head, *rest)]


def read_file(path):
    """{name: document} of one topic."""
    runs, document = {}, None
    for number, text in enumerate(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"), 1):
        try:
            line = json.loads(text)
            if "run" in line:
                name = line.pop("run")
                if name in runs:
                    raise Trouble(f"{path}:{number}: there are two runs {name}")
                runs[name] = document = line
                continue
            (key, entry), = line.items()
            if isinstance(document[key], list):
                document[key].append(entry)
            else:
                document[key].update(entry)
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise Trouble(f"{path}:{number}: {type(problem).__name__}: {problem}") from None
    return runs


def read(folder=RESULTS, pattern="*"):
    """{name: document} of all runs, by name."""
    runs = {}
    for path in sorted(folder.glob("*.jsonl")):
        for name, document in read_file(path).items():
            if fnmatch.fnmatchcase(name, pattern):
                runs[name] = document
    return dict(sorted(runs.items()))


def file_text(runs):
    return "".join(line + "\n" for name in sorted(runs) for line in lines_of(name, runs[name]))


def put(documents, folder=RESULTS, removed=()):
    """Writes runs into the files of their topics, each file whole or not at all. documents: {name: document}"""
    for topic in sorted({topic_of(name) for name in (*documents, *removed)}):
        path = folder / f"{topic}.jsonl"
        runs = read_file(path) if path.exists() else {}
        runs.update({name: document for name, document in documents.items() if topic_of(name) == topic})
        for name in removed:
            runs.pop(name, None)
        if runs:
            new = path.with_suffix(".new")
            new.write_text(file_text(runs), encoding="utf-8")
            new.replace(path)
        else:
            path.unlink(missing_ok=True)


def known(folder, name):
    runs = read(folder)
    if name not in runs:
        raise Trouble(f"{folder}: there is no run {name} (see `bench/runs.py list`)")
    return runs[name]


def add(folder, paths):
    documents = {}
    for path in paths:
        try:
            documents[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise Trouble(f"{path}: {problem}") from None
        if not isinstance(documents[path.stem], dict) or documents[path.stem].get("schema") != 1:
            raise Trouble(f"{path}: this is not what a benchmark writes (an object with schema 1)")
        if "run" in documents[path.stem]:
            raise Trouble(f'{path}: "run" is what its file calls it, and cannot be a key')
    put(documents, folder)
    for name in documents:
        print(f"{folder / topic_of(name)}.jsonl: {name}")


def check(folder):
    for path in sorted(folder.glob("*.jsonl")):
        runs = read_file(path)
        strays = [name for name in runs if topic_of(name) != path.stem]
        if strays:
            raise Trouble(f"{path}: {strays[0]} belongs to {topic_of(strays[0])}.jsonl")
        if path.read_text(encoding="utf-8") != file_text(runs):
            raise Trouble(f"{path} is written in another way: `bench/runs.py add` the runs that were changed by hand")
    others = [path for path in folder.glob("*.json")]
    if others:
        raise Trouble(f"{others[0]}: `bench/runs.py add {others[0]}` puts it into the file of its topic")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__.split("\n", 2)[2])
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="the folder (default: bench/results)")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list").add_argument("pattern", nargs="?", default="*")
    one = actions.add_parser("show")
    one.add_argument("name")
    one.add_argument("--out", type=pathlib.Path, help="into this file")
    actions.add_parser("add").add_argument("files", nargs="+", type=pathlib.Path)
    actions.add_parser("remove").add_argument("names", nargs="+")
    actions.add_parser("check")
    options = parser.parse_args()
    try:
        if options.action == "list":
            print("\n".join(read(options.results, options.pattern)))
        elif options.action == "show":
            text = json.dumps(known(options.results, options.name), indent=1, ensure_ascii=False) + "\n"
            sys.stdout.write(text) if options.out is None else options.out.write_text(text, encoding="utf-8")
        elif options.action == "add":
            add(options.results, options.files)
        elif options.action == "remove":
            for name in options.names:
                known(options.results, name)
            put({}, options.results, options.names)
        else:
            check(options.results)
    except Trouble as problem:
        print(f"runs: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
