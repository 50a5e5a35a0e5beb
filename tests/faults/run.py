"""Makes calls to the system fail, one at a time, under the command line: run.py PROGRAM LIBRARY [--all] [--seed N] [--case TEXT].

LIBRARY is fail_call.c as a shared library, which is preloaded. Each command runs once to count its calls of each kind; then it runs again and again,
and each time another call fails: once, or that one and all later ones. Whatever fails, the run must end

- with a documented exit code that is true: 0 only where the whole result is there, 5 where memory or the disk failed, never 2 (nobody's command was wrong);
- with no partial output: a path holds nothing, or what it held before, or the whole result;
- with no temporary file left behind;
- with the store as it was, or with a decision more: none lost, none set aside.

And a quit (SIGQUIT) comes at the moment when a file is there that is written aside: it leaves nothing either.

Without --all a sample of the calls is tried (the seed is printed). A failure prints its --case, which replays it alone.

libgomp ends the process where it gets no memory for its own threads, so memory fails with one thread only. OpenBLAS and MKL are kept out, as their code is
not ours to mend; but for threads: the library must look before it lets OpenBLAS start any. The command "search" looks for them, and opens none: each of its
early calls for memory is tried.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

KINDS = ["malloc", "open", "read", "write", "fsync", "mmap", "pthread_create", "rename", "fcntl"]
TRIES = 6  # calls of each kind and mode of one command, without --all
EARLY = 400  # calls for memory in which a context is made, and libraries are looked for
WRITTEN_ASIDE = 3  # files of one command at which a quit is tried
NO_LIBRARIES = {"SPARSEK_MKL": "none", "SPARSEK_OPENBLAS": "none", "SPARSEK_BLIS": "none", "SPARSEK_ONEDNN": "none"}
TUNED = ["--m", "64", "--k", "64", "--block", "16", "--density", "0.3", "--budget", "0.05"]

# Each command, and the files that it writes. The folder holds a.mtx, a.safetensors, b.npy, old.json (an export) and s.db, a store of three decisions.
COMMANDS = {
    "tune": (["tune", *TUNED, "--n", "8"], []),
    "bench": (["bench", *TUNED, "--n", "8", "--json", "out.json"], ["out.json"]),
    "run": (["compute", "a.mtx", "b.npy", "-o", "d.npy", "--block", "16", "--budget", "0.05", "--only", "reference_spmm,spmm_portable"], ["d.npy"]),
    "search": (["tune", *TUNED, "--n", "8", "--effort", "estimate", "--only", "reference_spmm"], []),
    "convert": (["convert", "a.mtx", "c.safetensors", "--block", "16"], ["c.safetensors"]),
    "convert-text": (["convert", "a.safetensors", "c.mtx"], ["c.mtx"]),
    "inspect": (["inspect", "a.mtx", "--json", "out.json", "--spy", "out.svg"], ["out.json", "out.svg"]),
    "list": (["store", "list", "--json", "out.json"], ["out.json"]),
    "export": (["store", "export", "e.json"], ["e.json"]),
    "import": (["store", "import", "old.json"], []),
    "verify": (["store", "verify"], []),
}
WITHOUT_STORE = ("convert", "convert-text", "inspect")
EXACT = ("c.safetensors", "c.mtx", "e.json", "out.svg")  # the same bytes on every run; the others hold measured times or are compared as arrays


class Trial:
    """One folder in which one command is run."""

    def __init__(self, program, library, folder):
        self.program, self.library, self.folder = program, library, pathlib.Path(folder)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("SPARSEK_", "OMP_"))}
        self.env.update(SPARSEK_CACHE_DIR=str(self.folder / "cache"), LC_ALL="C.UTF-8")

    def prepare(self, template):
        """The folder as the template is."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in template.iterdir():
            shutil.copy2(path, self.folder / path.name)

    def run(self, arguments, threads=1, vendors=False, **env):
        """Its exit code (None: it hung) and what it said."""
        libraries = {"SPARSEK_BLIS": "none", "SPARSEK_MKL": "none", "SPARSEK_ONEDNN": "none"} if threads > 1 else {"SPARSEK_BLIS": "none"} if vendors else NO_LIBRARIES  # BLIS ends the process where memory fails
        command = [self.program, *arguments, "--threads", str(threads), "-q"] if arguments[0] not in ("convert", "inspect", "store") else [self.program, *arguments, "-q"]
        try:
            done = subprocess.run(command, cwd=self.folder, env={**self.env, **libraries, **env}, capture_output=True, encoding="utf-8", errors="replace",
                                  timeout=600, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, "hung"
        return done.returncode, done.stderr


def decisions(store):
    """Every class of a store with the number of its candidates. Opened for writing: an interrupted transaction is rolled back first."""
    with contextlib.closing(sqlite3.connect(store)) as database:
        if database.execute("pragma integrity_check").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("integrity_check")
        return set(database.execute("SELECT f.exact || '|' || k.rest, count(*) FROM class k JOIN family f ON f.id = k.family_id "
                                    "JOIN candidate c ON c.class_id = k.id GROUP BY k.id"))


def make_template(trial, template):
    """What every run begins with, made by the program itself while nothing fails."""
    steps = [["gen", "uniform", *TUNED[:8], "-o", "a.safetensors"], ["convert", "a.safetensors", "a.mtx"],
             ["gen", "uniform", "--m", "64", "--k", "8", "--block", "1", "--density", "1", "-o", "b.safetensors"],
             ["convert", "b.safetensors", "b.npy", "--to", "dense"],
             *(["tune", *TUNED, "--n", str(n), "--store", "s.db"] for n in (1, 2, 3)),
             ["store", "export", "old.json", "--store", "s.db"],
             ["compute", "a.mtx", "b.npy", "-o", "expected.npy", "--block", "16", "--store", "other.db", "--only", "reference_spmm"]]
    for step in steps:
        done = subprocess.run([trial.program, *step], cwd=trial.folder, env={**trial.env, **NO_LIBRARIES}, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"sparsek {' '.join(step)}: exit {done.returncode}\n{done.stderr}")
    for path in trial.folder.iterdir():
        if path.is_file() and not path.name.startswith(("b.safetensors", "other.db")):
            shutil.copy2(path, template / path.name)


def same_array(got, expected):
    """Two .npy files of one shape and type, equal within rounding."""
    if len(got) != len(expected) or got[:10] != expected[:10]:
        return False
    width = {b"<f8": "d", b"<f4": "f"}[next(t for t in (b"<f8", b"<f4") if t in expected[:128])]
    start = 10 + int.from_bytes(expected[8:10], "little")
    a, b = memoryview(got[start:]).cast(width), memoryview(expected[start:]).cast(width)
    return all(abs(x - y) <= 1e-4 * (1 + abs(y)) for x, y in zip(a, b))


def whole(name, content, reference, template):
    """Whether an output is a whole result."""
    if name in EXACT:
        return content == reference
    if name == "d.npy":
        return same_array(content, (template / "expected.npy").read_bytes())
    try:
        got, expected = json.loads(content), json.loads(reference)
    except ValueError:
        return False
    return got.keys() == expected.keys() and len(got.get("results", ())) == len(expected.get("results", ()))


def problems(trial, template, name, kind, code, before, references):
    """What is wrong with a run that has ended."""
    outputs = COMMANDS[name][1]
    if kind == "quit" and code == -signal.SIGQUIT:
        pass
    elif code is None or code < 0 or code not in (0, 1, 3, 4, 5):
        yield f"exit code {code}"
    elif code == 1:  # the store is sound
        yield "exit code 1, which is for a check that fell short"
    elif code == 3 and kind == "malloc":
        yield "exit code 3, which blames the input, where memory ran out"
    for output in outputs:
        path = trial.folder / output
        if path.exists():
            if not whole(output, path.read_bytes(), references[name, output], template):
                yield f"{output} is not whole"
        elif code == 0:
            yield f"exit code 0 without {output}"
    left = {path.name for path in trial.folder.iterdir()} - {path.name for path in template.iterdir()} - set(outputs) - {"cache", "s.db-journal"}
    if left:
        yield f"left behind: {', '.join(sorted(left))}"
    if not (trial.folder / "s.db").exists():
        yield "the store is gone"
        return
    try:
        lost = before - decisions(trial.folder / "s.db")
    except sqlite3.Error as error:
        yield f"the store cannot be read: {error}"
        return
    if lost:
        yield f"{len(lost)} decisions lost"


def command_of(name):
    arguments = list(COMMANDS[name][0])
    return arguments if name in WITHOUT_STORE else [*arguments, "--store", "s.db"]


def settings_of(name, kind):
    """Threads fail where there are some, and OpenBLAS wants its own; the rest with one thread."""
    if kind == "pthread_create":
        return {"threads": 2, "vendors": True}
    return {"vendors": name == "search"}


def try_case(trial, template, case, before, references):
    """One run; what went wrong, as lines."""
    name, kind, rest = case.split(":", 2)
    trial.prepare(template)
    wish = {"QUIT_AT": rest} if kind == "quit" else {"FAIL_CALL": f"{kind}:{rest}"}
    code, said = trial.run(command_of(name), **settings_of(name, kind), LD_PRELOAD=trial.library, **wish)
    return [f"{case}: {what}\n    {said.strip()[-300:]}" for what in problems(trial, template, name, kind, code, before, references)]


def count_calls(trial, template, name, kind_settings):
    trial.prepare(template)
    count = trial.folder / "calls.txt"
    code, said = trial.run(command_of(name), **kind_settings, LD_PRELOAD=trial.library, COUNT_CALLS=str(count))
    if code != 0:
        raise SystemExit(f"{name} fails by itself: exit {code}\n{said}")
    return {kind: int(number) for kind, number in (line.split() for line in count.read_text().splitlines())}


def choose_cases(name, counts, every, draw):
    """Half of a sample are early calls, where opening and starting is; the rest is drawn from all."""
    for kind in KINDS:
        total = counts[kind]
        for mode in ("", ":on"):
            if kind == "pthread_create" and mode == "":
                continue  # a limit on threads lasts
            numbers = range(1, total + 1)
            if not every and total > TRIES:
                numbers = sorted(set(draw.sample(numbers, TRIES - 1)) | {draw.randint(1, min(total, 20))})
            if (name, kind, mode) == ("search", "malloc", ""):
                numbers = sorted({*numbers, *range(1, min(total, EARLY) + 1)})
            if kind == "pthread_create":
                numbers = numbers[:1]  # libgomp ends the process where the second cannot be made after the first could
            yield from (f"{name}:{kind}:{number}{mode}" for number in numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--all", action="store_true", help="every call, not a sample")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--case", help="only this one, such as tune:read:2, export:write:1:on or run:quit:1")
    options = parser.parse_args()
    program, library = (str(pathlib.Path(path).resolve()) for path in (options.program, options.library))
    draw = random.Random(options.seed)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="sparsek-faults-") as top:
        folders = {name: pathlib.Path(top, name) for name in ("template", "first", "second", "third")}
        for folder in folders.values():
            folder.mkdir()
        template = folders["template"]
        trials = [Trial(program, library, folders[name]) for name in ("first", "second", "third")]
        make_template(trials[0], template)
        before = decisions(template / "s.db")
        references, cases = {}, []
        for name, (_, outputs) in COMMANDS.items():
            if options.case and not options.case.startswith(name + ":"):
                continue
            counts = count_calls(trials[0], template, name, settings_of(name, "malloc"))
            references.update({(name, output): (trials[0].folder / output).read_bytes() for output in outputs})
            counts["pthread_create"] = count_calls(trials[0], template, name, settings_of(name, "pthread_create"))["pthread_create"]
            cases += choose_cases(name, counts, options.all, draw)
            cases += [f"{name}:quit:{number + 1}" for number in range(WRITTEN_ASIDE) if COMMANDS[name][1]]
        cases = [options.case] if options.case else cases
        failures = []
        free = list(trials)
        with concurrent.futures.ThreadPoolExecutor(len(free)) as pool:
            def one(case):
                trial = free.pop()
                try:
                    return try_case(trial, template, case, before, references)
                finally:
                    free.append(trial)
            for found in pool.map(one, cases):
                failures += found
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{len(cases)} failing calls tried, {len(failures)} failures" + (f" (seed {options.seed}; replay one with --case)" if failures else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
