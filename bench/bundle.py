#!/usr/bin/env python3
"""The bundle: what was chosen on known processors and cards for common classes, which ships with the library.

    bench/bundle.py run OUT.json [--device cpu|cuda:0] [--threads N] [--seconds 230] [--budget 2] [--skip N] [--program build/release/sparsek] [--decoder "ARGS"]
                                  tunes the common classes of that device, those of bench/python/decoder.py among them (--decoder, with the Python package
                                  importable), and writes what came of it, without what is this machine's own
    bench/bundle.py list OUT.json [--device cpu|cuda:0]    writes these classes' problems, for `sparsek regret --from OUT.json --bundle`
    bench/bundle.py make [--check] share/bundle.db from the committed runs named *bundle*; --check: fail where it would hold something else
    bench/bundle.py carry OLD [NEW] [--renamed OLD_NAME=NEW_NAME] [--compile] [--dry-run]
                                  evidence of the tree OLD (a folder, or a revision) is of NEW (this one) where what runs is the same, though the sources differ:
                                  the candidates of the committed runs get NEW's hashes; then `make`

A class enters under the model of its device: of a processor with its number of threads and instruction sets, of a card with its driver's major version; no
libraries. Hosts of one processor differ, and their neighbours disturb them: of a class that several runs on processors have, the candidate is chosen that is
the best on their average. On a processor, where nothing proves a vendor's row again, the choice is one of sparsek's own rows: classes whose own best is more than 2 % behind
the winner stay out, and are tuned where they are met; so does evidence that is provisional. The rest keeps the best few candidates of each. A processor
wants a budget of 1.5 s and more: with less, operands that should be cold lie in a large last cache.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import carry as carrying
import proved
import runs
from carry import launches

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "share" / "bundle.db"
RESULTS = ROOT / "bench" / "results"
SCHEMA = 1        # of exports (src/store/store_json.h)
KEPT = 4          # candidates of a class
IN_RUN = 8        # of one in a run: what another run of that processor chose is among them
BEHIND = 1.02     # own rows over the winner, on a processor

# What a layer's call looks like from PyTorch (nn): W [m, k] sparse, activations [tokens, k]; and from C (mm), row-major.
NN = dict(layout_b="col", layout_d="col", assume_finite=True)


class Trouble(Exception):
    pass


# ---------------------------------------------------------------------------------------------------- which problems


def problems(kind):
    """The common ones, the most common first."""
    sizes = [(4096, 4096), (14336, 4096), (4096, 14336)] if kind == "cuda" else [(1024, 1024), (4096, 1024), (1024, 4096)]
    tokens = (8192, 16, 64, 1, 1024) if kind == "cuda" else (128, 16, 1, 512)
    types = ("bf16",) if kind == "cuda" else ("f32",)
    for density in ("10%", "25%", "50%"):
        for block in ("128", "64") if kind == "cuda" else ("32", "64"):
            for m, k in sizes:
                for n in tokens:
                    for dtype in types:
                        common = dict(m=m, k=k, n=n, block=block, density=density, dtype=dtype)
                        yield dict(common, **NN)
                        if kind == "cpu":
                            yield dict(common, assume_finite=True)
    for m, k in sizes:  # gradients by the values
        for n in tokens[:2]:
            yield dict(op="sddmm", m=m, k=n, n=k, block="128" if kind == "cuda" else "32", density="10%", dtype=types[0])
    for m, k in sizes:
        for n in tokens:
            yield dict(op="gemm", m=n, k=k, n=m, dtype=types[0])
    for queries, keys in ((8192, 8192), (1024, 1024), (1, 8192)) if kind == "cuda" else ((512, 512), (1, 512)):
        for depth in (128, 64):
            yield dict(op="attention", queries=queries, keys=keys, depth=depth, heads=32 if kind == "cuda" else 8, heads_kv=8, causal=queries > 1, dtype=types[0])


# ---------------------------------------------------------------------------------------------------- a run


def design():
    """The processor's, as spk_probe_design has it: a run is of this machine."""
    facts = dict(re.findall(r"^(cpu family|model)\s*: (\S+)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    return f"f{facts['cpu family']}m{facts['model']}"


def model_of(key):
    """A class's key with the model in place of all that is one machine's own (spk_key_of_bundle)."""
    match = re.fullmatch(r"(.*);dev=([^;|]*)(\|.*)", key)
    if match is None:
        raise Trouble(f"no device in the key {key!r}")
    words = match.group(2).split(":")
    model = words[:4]
    if words[0] == "cpu":
        model.append(design())
    if words[0] == "cuda":
        driver = re.fullmatch(r"driver(\d+)", words[4])
        if driver is None:
            raise Trouble(f"no driver in the key {key!r}")
        model.append(f"driver{int(driver.group(1)) // 1000}")
    return f"{match.group(1)};dev={':'.join(model)}{match.group(3)}"


def trimmed(entry):
    """A class as it enters; None: it stays out."""
    good = [c for c in entry["candidates"] if c["status"] == "ok" and c["median_us"] > 0]
    if entry["chosen"] < 0 or not good or entry.get("provisional") is not None:  # what others disturbed is no evidence for other machines
        return None
    chosen = entry["candidates"][entry["chosen"]]
    if ";dev=cpu:" in entry["key"]:
        own = [c for c in good if c["kind"] == "own"]
        if not own or min(c["median_us"] for c in own) > BEHIND * min(c["median_us"] for c in good):
            return None
        good = own
        if chosen["kind"] != "own":
            chosen = min(own, key=lambda c: c["median_us"])
    rest = sorted((c for c in good if c is not chosen), key=lambda c: c["median_us"])
    return dict(entry, key=model_of(entry["key"]), candidates=[chosen] + rest[:IN_RUN - 1], chosen=0)


def call(words, environment, seconds):
    try:
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in (0, 1):
        print(f"{shlex.join(map(str, words))[:200]}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return done


def run(options):
    """Tunes what there is time for. A tuning that is cut off leaves what was finished before it."""
    end = time.monotonic() + options.seconds
    kind = "cuda" if options.device.startswith("cuda") else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store.db")
        environment = dict(os.environ, SPARSEK_STORE=store, SPARSEK_BUNDLE="")
        if options.threads:
            environment["OMP_NUM_THREADS"] = str(options.threads)
        if options.decoder is not None:
            words = [sys.executable, ROOT / "bench" / "python" / "decoder.py", "--store", store, *shlex.split(options.decoder)]
            call(words, environment, end - time.monotonic())
        asked = list(problems(kind))
        done = 0
        for problem in asked[options.skip :]:
            left = end - time.monotonic()
            if left < options.budget + 1:
                break
            listed = os.path.join(folder, "problem.json")
            pathlib.Path(listed).write_text(json.dumps([problem]))
            words = [options.program, "tune", "--from", listed, "--device", options.device, "--budget", str(options.budget), "--quiet"]
            done += call(words, environment, left) is not None
        exported = os.path.join(folder, "export.json")
        subprocess.run([options.program, "store", "export", exported, "--quiet"], env=environment, check=True)
        found = json.loads(pathlib.Path(exported).read_text())
    kept = [made for made in map(trimmed, found["classes"]) if made is not None]
    command = "bench/bundle.py run " + " ".join(shlex.quote(word) for word in sys.argv[2:])
    made = dict(schema=found["schema"], command=command, problems=done, of=len(asked), classes=kept, left_out=len(found["classes"]) - len(kept))
    pathlib.Path(options.out).write_text(json.dumps(made, indent=1) + "\n")
    print(f"{len(kept)} classes, {made['left_out']} left out; {done} of {len(asked) - options.skip} problems had time")


# ---------------------------------------------------------------------------------------------------- the bundle


def bundles(folder):
    """Runs of `run`, by name; not those of `sparsek regret --bundle`."""
    return {name: document for name, document in runs.read(folder, "*bundle*").items() if "classes" in document}


def agreed(entries):
    """One class from several runs: the newest run's candidates, by their time over the best one's, on the average of the runs (geometric).

    A run that does not list a candidate had better ones: there it counts as the slowest that is listed.
    """
    newest = max(entries, key=lambda entry: entry["measured_at"])

    def behind(candidate, entry):
        times = {(c["name"], c["params"]): c["median_us"] for c in entry["candidates"]}
        return times.get((candidate["name"], candidate["params"]), max(times.values())) / min(times.values())

    ordered = sorted(newest["candidates"], key=lambda candidate: math.prod(behind(candidate, entry) for entry in entries))
    return dict(newest, candidates=ordered, chosen=0)


def gather():
    """The classes of all runs. Of one that several have, the newest: the rows of a card change from run to run; on a processor, what they agree on."""
    found = {}
    schemas = set()
    for document in bundles(RESULTS).values():
        schemas.add(document["schema"])
        for entry in document["classes"]:
            found.setdefault(entry["key"], []).append(entry)
    for key, entries in found.items():
        entry = agreed(entries) if ";dev=cpu:" in key and len(entries) > 1 else max(entries, key=lambda one: one["measured_at"])
        found[key] = dict(entry, candidates=entry["candidates"][:KEPT])
    if len(schemas) > 1:
        raise Trouble(f"{RESULTS}: runs of schemas {sorted(schemas)}; they must be of one")
    return dict(schema=schemas.pop() if schemas else SCHEMA, classes=[found[key] for key in sorted(found)])


def choices(store_or_json):
    return sorted((c["key"], c["chosen"], [(k["name"], k["params"], k["hash"]) for k in c["candidates"]]) for c in store_or_json["classes"])


def export(program, store):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "export.json")
        environment = dict(os.environ, SPARSEK_BUNDLE="")
        subprocess.run([program, "store", "export", path, "--quiet", "--store", store], check=True, env=environment)
        return json.loads(pathlib.Path(path).read_text())


def make(options):
    wanted = gather()
    if options.check:
        if not BUNDLE.exists() or choices(export(options.program, BUNDLE)) != choices(wanted):
            raise Trouble(f"{BUNDLE.relative_to(ROOT)} is not what the runs say: bench/bundle.py make")
        print(f"{BUNDLE.relative_to(ROOT)}: {len(wanted['classes'])} classes, as the runs say")
        return
    BUNDLE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        listed, store = os.path.join(folder, "classes.json"), os.path.join(folder, "bundle.db")
        pathlib.Path(listed).write_text(json.dumps(wanted))
        environment = dict(os.environ, SPARSEK_BUNDLE="")
        subprocess.run([options.program, "store", "import", listed, "--quiet", "--store", store], check=True, env=environment)
        BUNDLE.write_bytes(pathlib.Path(store).read_bytes())
        BUNDLE.chmod(0o644)
    print(f"{BUNDLE.relative_to(ROOT)}: {len(wanted['classes'])} classes, {BUNDLE.stat().st_size} bytes")


# ---------------------------------------------------------------------------------------------------- another tree's evidence


def words_of(problem):
    """The command line's, of a problem of a list."""
    words = [f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}") for key, value in problem.items() if key != "op" and value is not False]
    return " ".join(word for word in words if word != "--assume-finite") + (" --diagonal top_left" if problem.get("causal") else "")


def all_problems():
    """{op: [options]}: the bundle's, and those that find each candidate one that it computes."""
    found = {op: proved.options_of(op) + more for op, more in launches.MORE.items()}
    for problem in problems("cuda"):
        found[problem.get("op", "spmm")].append(words_of(problem))
    return found


def carry(options):
    comparison = carrying.comparison_of(options)
    documents = bundles(options.results)
    candidates = [one for document in documents.values() for entry in document["classes"] for one in entry["candidates"]]
    entries = [carrying.Entry(one, (one["name"], one["params"])) for one in candidates]
    arches = {"sm_90a" if match[1] == "90" else f"sm_{match[1]}" for document in documents.values() for entry in document["classes"]
              for match in re.finditer(r";dev=cuda:[^:;]+:sm(\d+):", entry["key"])}
    if carrying.carry_all(comparison, options, documents, entries, arches, all_problems()):
        print("next: python3 bench/bundle.py make")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "sparsek"))
    actions = parser.add_subparsers(dest="action", required=True)
    one = actions.add_parser("run")
    one.add_argument("out")
    one.add_argument("--device", default="cpu")
    one.add_argument("--threads", type=int, default=0)
    one.add_argument("--seconds", type=float, default=230)
    one.add_argument("--budget", type=float, default=2)
    one.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N problems, which a run before had time for")
    one.add_argument("--decoder", help="options of bench/python/decoder.py, which is run first")
    one.add_argument("--program", default=argparse.SUPPRESS)
    listed = actions.add_parser("list")
    listed.add_argument("out")
    listed.add_argument("--device", default="cpu")
    two = actions.add_parser("make")
    two.add_argument("--check", action="store_true")
    two.add_argument("--program", default=argparse.SUPPRESS)
    carrying.add_options(actions.add_parser("carry"))
    options = parser.parse_args()
    try:
        if options.action == "list":
            pathlib.Path(options.out).write_text(json.dumps(list(problems("cuda" if options.device.startswith("cuda") else "cpu")), indent=1) + "\n")
        elif options.action == "carry":
            carry(options)
        else:
            run(options) if options.action == "run" else make(options)
    except (Trouble, carrying.Trouble, runs.Trouble) as trouble:
        sys.exit(f"bench/bundle.py: {trouble}")


if __name__ == "__main__":
    main()
