"""What is recorded of the vendors' rows on a GPU (bench/carry/launches.py) when their sources change: for evidence.py."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from unittest import mock

from evidence_cases import RECORDED, RECORDED_CHOICES, RECORDED_PROBLEMS, REFACTORED

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from carry import launches  # noqa: E402
from carry.layouts import layouts  # noqa: E402

CARD = "NVIDIA H200"
VENDOR = ROOT / "src" / "backend" / "cuda" / "vendor"


class Library:
    """The build's library, in another folder and with sources of the vendors' folder changed."""

    def __init__(self, build, folder):
        self.build, self.folder = build.resolve(), pathlib.Path(folder)
        self.commands = {c["file"]: c for c in json.loads((build / "compile_commands.json").read_text()) if "sparsek_objects" in c["command"]}
        self.file = (build / "libsparsek.so").resolve()
        listed = subprocess.run(["ninja", "-C", build, "-t", "commands", self.file.name], check=True, capture_output=True, text=True)
        self.link = next(line for line in listed.stdout.splitlines() if f" -o {self.file.name} " in line)
        self.layout = layouts(ROOT / "src", folder)

    def change(self, edits):
        """[(file, a text in it, what it becomes)]"""
        texts = {}
        for name, old, new in edits:
            text = texts.get(name) or (VENDOR / name).read_text()
            if old not in text:
                sys.exit(f"evidence: {name} has no {old!r} any more: name another")
            texts[name] = text.replace(old, new, 1)
        soname = ".".join(self.file.name.split(".")[:4])  # libsparsek.so.0.2
        link = self.link.replace(f" -o {self.file.name} ", f" -o {self.folder / soname} ")
        for name, text in texts.items():
            words = shlex.split(self.commands[str(VENDOR / name)]["command"])
            source, out, here = self.folder / name, words[words.index("-o") + 1], self.folder / f"{name}.o"
            source.write_text(text)
            words[words.index("-o") + 1], words[words.index("-c") + 1] = str(here), str(source)
            subprocess.run([*words, "-O1", "-w"], check=True, cwd=self.build)
            link = link.replace(f" {out} ", f" {here} ")
        subprocess.run(link, shell=True, check=True, cwd=self.build)

    def record(self):
        """{(choice, problem): Record, without the problem's number}"""
        found = {}
        with mock.patch.object(launches, "RECORD", self.build / "tests" / "record.so"), mock.patch.dict(os.environ, LD_LIBRARY_PATH=str(self.folder)):
            for op, problems in RECORDED_PROBLEMS.items():
                for problem in problems:
                    for line in launches.record_problem(self.build / "sparsek", CARD, op, problem, RECORDED_CHOICES[op], self.layout, False):
                        found[line["choice"], problem] = line
        return found


def check_records(build):
    if not (build / "tests" / "record.so").exists():
        sys.exit(f"evidence: {build} has no tests/record.so: build it with -DSPARSEK_TESTS=ON")
    with tempfile.TemporaryDirectory() as folder:
        library = Library(build, folder)
        before = library.record()
        missing = {choice for list_ in RECORDED_CHOICES.values() for choice in list_} - {choice for choice, _ in before}
        failed = {choice: line["failed"] for (choice, _), line in before.items() if "failed" in line}
        if missing or failed:
            sys.exit(f"evidence: of the vendors' rows these are not recorded: {' '.join(missing)} {failed or ''}")
        for edits, rows in [(REFACTORED, ""), *(([edit], rows) for *edit, rows in RECORDED)]:
            library.change(edits)
            after = library.record()
            stale = {choice.split()[0] for choice, problem in before.keys() | after.keys() if before.get((choice, problem)) != after.get((choice, problem))}
            if stale != set(rows.split()):
                sys.exit(f"evidence: {edits}: recorded otherwise are {' '.join(sorted(stale)) or 'none'}; they should be {rows or 'none'}")
    print(f"evidence: {len(REFACTORED)} refactorings of vendors' rows are recorded as before, {len(RECORDED)} changes as changes of exactly their rows")
