#!/usr/bin/env python3
"""The code blocks of the pages do what they say: blocks.py BUILD_FOLDER

- Each command line of sparsek in a block runs, in the order of the page, in a folder that has the files which the page takes for granted. What measures for
  long is only read: it is given a device that is not there, which is refused after all else was (exit code 4). What inspect and gen print stands there.
- Fragments of C compile, with the variables declared that they take for granted.
- JSON can be read.
- A script that is named is there.

Other blocks of C, and those of Python, Rust and TOML, are tested elsewhere: TESTED says by what. A block on a page that is not there is an error.
"""
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

import links

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^ {0,3}```(\S*)\n(.*?)^ {0,3}```$", re.M | re.S)
COMMAND = re.compile(r"^\s*(?:\$ )?((?:build/release/)?sparsek [a-z]+(?![a-z:]).*)$")
MEASURING = ("bench", "tune", "check", "regret")
# Figures of other machines and days; what GitHub fills in; walks whose programs are not this one (tests/cli/readme.sh and tests/cli/test_toy.py run those).
LEFT_OUT = re.compile(r"docs/(performance|upstream|log)/|docs/(performance|adding-a-kernel|adding-an-operation|adding-a-type|adding-a-mask-shape)\.md|bench/|examples/|CHANGELOG|\.github/")
LANGUAGES = ("", "sh", "console")

# Fragments of C: the page, its number among the blocks of C, what is declared before, what comes after.
FRAGMENTS = [
    ("docs/c.md", 2, "#define TRY(call) if ((call) != SPK_OK) return\nspk_context *context = NULL; spk_pattern *pattern = NULL; spk_plan *plan = NULL; double b[3], d[3];", ""),
    ("docs/c.md", 3, "#define TRY(call) if ((call) != SPK_OK) return\nspk_context *context = NULL; spk_pattern *pattern = NULL; spk_plan *plan = NULL; float values[1], b[1], d[1];", ""),
    ("docs/generators.md", 1, "spk_context *ctx = NULL;", "(void)shortfall;"),
    ("docs/training.md", 1, "int64_t rows = 0, experts = 1, hidden = 1, nnzb = 0; const int32_t *offsets = NULL, *columns = NULL; void *stream = NULL;", "(void)indices;"),
    ("docs/tuning.md", 1, "spk_plan *plan = NULL;", "(void)pinned;"),
]

# The pages whose blocks of a language are tested: by what.
TESTED = {
    "c": {
        "README.md": "tests/cli/readme.sh", "docs/c.md": "tests/cli/readme.sh", "docs/attention.md": "tests/cli/readme.sh", "docs/adding-a-kernel.md": "tests/cli/readme.sh",
        "docs/adding-an-operation.md": "tests/cli/test_toy.py", "docs/adding-a-type.md": "tests/cli/test_types.py", "docs/adding-a-mask-shape.md": "tests/cli/test_masks.py",
    },
    "python": {
        "README.md": "python/tests/test_readme.py", "python/README.md": "python/tests/test_readme.py", "docs/attention.md": "python/tests/test_readme.py",
        "docs/formats.md": "python/tests/test_readme.py", "docs/distributed.md": "python/tests/test_distributed_engine.py", "docs/tuning.md": "python/tests/test_readme.py",
        "docs/models.md": "python/tests/test_readme.py", "docs/adding-a-mask-shape.md": "python/tests/test_readme.py",
        "docs/upstream/*.md": "bench/gpu.sh",  # on a GPU: the program beside the note does the same
    },
    "rust": {"README.md": "rust/tests/pages.py", "docs/attention.md": "rust/tests/pages.py", "rust/*/README.md": "rust/tests/outside"},
    "toml": {"rust/*/README.md": "rust/tests/outside"},
}


def untested(page, text):
    """What is wrong with the blocks of other languages on a page, a line each."""
    fragments = {number for name, number, _, _ in FRAGMENTS if name == page}
    count = 0
    for language, block in FENCE.findall(text):
        count += language == "c"
        if language in LANGUAGES or language == "c" and count in fragments:
            continue
        if language == "json":
            try:
                json.loads(block)
            except ValueError as problem:
                yield f"{page}: a block of JSON: {problem}"
        elif not any(fnmatch.fnmatch(page, pattern) and (ROOT / program).is_file() for pattern, program in TESTED.get(language, {}).items()):
            yield f"{page}: a block of {language} that nothing tests"


def prepare(folder, run):
    """The files that pages take for granted."""
    run("gen", "elasticity", "--cells", "3", "-o", "matrix.mtx", "-q")
    def npy(name, rows, cols):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}".ljust(117) + "\n"
        data = struct.pack(f"<{rows * cols}f", *((index * 7919 % 101 - 50) / 50 for index in range(rows * cols)))
        (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
    npy("weights.npy", 128, 96)
    rows = 144  # 48 corners that are not clamped, with three unknowns each
    for name in ("b.npy", "dense.npy"):
        npy(name, rows, 4)
    for name in ("q.npy", "k.npy", "v.npy"):
        npy(name, 512, 64)


def commands(text):
    """(words, the lines that follow) of each command of sparsek in the blocks of a page."""
    for language, block in FENCE.findall(text):
        if language not in LANGUAGES:
            continue
        found = None
        for line in block.replace("\\\n", " ").split("\n"):
            match = COMMAND.match(line)
            if match or line.startswith("$ "):
                if found:
                    yield found
                found = None
            if match:
                told = re.split(r"\s{3,}(?=[A-Za-z])", re.sub(r"\s+#.*", "", match[1]))[0]  # some blocks have words behind the command
                found = shlex.split(told)[1:], []
            elif found:
                found[1].append(line)
        if found:
            yield found


def here_documents(text):
    """(file, text) of what a page's shell writes with cat."""
    return re.findall(r"^cat >(\S+) <<'END'\n(.*?)^END$", text, re.M | re.S)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    wrong, ran, read = [], 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = os.environ | {"SPARSEK_STORE": str(folder / "store.db"), "SPARSEK_CACHE_DIR": str(folder / "cache"), "COLUMNS": "100", "LC_ALL": "C.UTF-8"}

        def run(*words, cwd=folder):
            return subprocess.run([build / "sparsek", *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600)
        start = folder / "start"
        start.mkdir()
        prepare(start, lambda *words: run(*words, cwd=start))
        for page in links.pages_of(ROOT):
            at, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
            wrong += untested(at, text)
            if LEFT_OUT.match(at):
                continue
            for script in re.findall(r"(?<![\w/.-])((?:scripts|tests|bench)/[\w./-]+)", "\n".join(block for language, block in FENCE.findall(text) if language == "sh")):
                if not os.access(ROOT / script, os.X_OK):
                    wrong.append(f"{at}: there is no program {script}")
            work = folder / at.replace("/", "-")
            shutil.copytree(start, work)
            for file, content in here_documents(text):
                (work / file).write_text(content)
            for words, follows in commands(text):
                measures = words[0] in MEASURING
                options = ["--device", "cuda:99"] if measures and "--device" not in words else []
                if measures and options == []:
                    words = [*words[: words.index("--device") + 1], "cuda:99", *words[words.index("--device") + 2:]]
                if "--from" in words:  # a table of problems is read whole before the device is asked for
                    options, measures = ["--budget", "0.05"], False
                done = run(*words, *options, cwd=work)
                ran, read = ran + (not measures), read + measures
                unknown = words[0] == "explain" and done.returncode == 1 and "the store does not know this problem" in done.stderr  # it was read only
                if done.returncode != (4 if measures else 0) and not unknown:
                    wrong.append(f"{at}: sparsek {shlex.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
                shown = "\n".join(follows).strip("\n")
                if words[0] in ("inspect", "gen") and shown and shown not in done.stdout:
                    wrong.append(f"{at}: sparsek {shlex.join(words)} prints something else:\n{done.stdout}")
        for page, number, before, after in FRAGMENTS:
            blocks = [block for language, block in FENCE.findall((ROOT / page).read_text(encoding="utf-8")) if language == "c"]
            source = f"#include <sparsek/sparsek.h>\nvoid fragment(void);\nvoid fragment(void)\n{{\n{before}\n{blocks[number - 1]}\n{after}\n}}\n"
            done = subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "-fsyntax-only", "-xc", "-"], input=source, capture_output=True,
                                  text=True, check=False)
            if done.returncode:
                wrong.append(f"{page}: block {number} of C does not compile:\n{done.stderr}")
    print("\n".join([*wrong, f"blocks: {ran} commands ran, {read} were read, {len(FRAGMENTS)} fragments of C compiled, {len(wrong)} wrong"]))
    return 1 if wrong or ran < 10 or read < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
