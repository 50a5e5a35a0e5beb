"""Trees of sources: folders, or revisions of this one."""

import functools
import pathlib
import re
import subprocess
from collections import namedtuple

import live_proofs
from program_text import Trouble

from carry import objects

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORKTREES = ROOT / "build" / "carry"

Row = namedtuple("Row", "name op kind backend tunables")


def call(words, **more):
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout.strip()
    except OSError as failure:
        raise Trouble(f"{words[0]}: {failure}") from failure
    except subprocess.CalledProcessError as failure:
        raise Trouble(f"{' '.join(map(str, words))}: {(failure.stderr or failure.stdout).strip()[-400:]}") from failure


def read_rows(text, backend):
    """Of a kernels.def."""
    text = re.sub(r"#ifdef SPARSEK_TEST_ROWS.*?#endif", "", text, flags=re.DOTALL)
    return [
        Row(name, op.lower(), kind, backend, {key: values.split(",") for key, values in re.findall(r"TUNABLE\((\w+), ([-\d,]+)\)", rest)})
        for op, name, kind, rest in re.findall(r"^SPK_KERNEL\(SPK_(\w+), (\w+), SPK_KIND_(\w+),(.*)\)$", text, re.MULTILINE)
    ]


class Tree:
    """A tree of sources: its rows and their hashes; once it is built, its objects."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.source, self.build = self.root / "src", self.root / "build" / "release"
        if not (self.source / "backend" / "cuda" / "kernels.def").is_file():
            raise Trouble(f"{root}: no tree of sparsek's sources")

    @functools.cached_property
    def commit(self):
        try:
            return call(["git", "-C", self.root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        except Trouble:
            return "unknown"

    @functools.cached_property
    def rows(self):
        return {
            row.name: row
            for backend in ("cpu", "cuda")
            for row in read_rows((self.source / "backend" / backend / "kernels.def").read_text(encoding="utf-8"), backend)
        }

    @functools.cached_property
    def sources(self):
        """The hash of each file of rows, as the tree itself has it."""
        text = call(["cmake", f"-DROOT={self.source}", "-P", self.root / "cmake" / "SparsekClosure.cmake"])
        return dict(line.split() for line in text.splitlines())

    @functools.cached_property
    def candidates(self):
        return live_proofs.Candidates(self.rows.values(), self.sources)

    def exists(self, row, params):
        return self.candidates.exists(live_proofs.Choice(row, params))

    def hash(self, row, params):
        return self.candidates.hash(live_proofs.Choice(row, params))

    @functools.cached_property
    def commands(self):
        return objects.read_commands(self.build)

    def file_of(self, backend, row):
        """A row's host file, wherever among the kernels it stands."""
        kernels = f"src/backend/{backend}/kernels/"
        found = (name for name in self.commands if name.startswith(kernels) and name.endswith(f"/{row}.c"))
        return next(found, f"{kernels}{row}.c")

    def make(self):
        """Its program and its library."""
        make(self.root, "sparsek_cli")


def make(root, target):
    """A moment where it is made already."""
    if not (root / "build" / "release" / "build.ninja").exists():
        call(["cmake", "--preset", "release", "-DSPARSEK_TESTS=ON"], cwd=root)
    call(["cmake", "--build", "--preset", "release", "-j", "2", "--target", target, "--", "--quiet"], cwd=root)


def tree_of(given):
    """A folder, or a revision of this tree in a folder of its own."""
    if pathlib.Path(given).is_dir():
        return Tree(given)
    try:
        commit = call(["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}"])
    except Trouble as trouble:
        raise Trouble(f"{given!r} is neither a folder nor a revision") from trouble
    folder = WORKTREES / commit[:12]
    if not folder.exists():
        call(["git", "-C", ROOT, "worktree", "prune"])
        call(["git", "-C", ROOT, "worktree", "add", "--detach", folder, commit])
    return Tree(folder)
