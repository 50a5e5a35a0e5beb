"""Which of the table's proofs are of the sources and tunables as they are now, and which proofs the shipped choices lack.

A proof is of a candidate: the hash of its row's sources, its row's name and its tunables (spk_candidate_hash). When a source changes, the proofs of its rows
are dead: they stand for candidates that are no more.
"""
import collections
import pathlib
import re
import sqlite3
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
CUDA = ROOT / "src" / "backend" / "cuda"
MASK = (1 << 64) - 1

Row = collections.namedtuple("Row", "op name kind arch tunables")  # arch: the least, 80; tunables: {name: values}
Proof = collections.namedtuple("Proof", "hash arch driver row params")
Card = collections.namedtuple("Card", "name arch driver")  # arch: 90
Choice = collections.namedtuple("Choice", "row params")


class Trouble(Exception):
    pass


def hashed(seed, text):
    """spk_hash_text."""
    value = seed
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    value ^= value >> 32
    value = value * 0xD6E8FEB86659FD93 & MASK
    return value ^ value >> 32


def source_hashes(source=ROOT / "src"):
    """Of each file of rows."""
    script = ROOT / "cmake" / "SparsekClosure.cmake"
    try:
        done = subprocess.run(["cmake", f"-DROOT={pathlib.Path(source).resolve()}", "-P", str(script)], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise Trouble(f"cmake cannot hash the sources of the rows: {failure}") from failure
    return dict(line.split() for line in done.stdout.splitlines())


class Candidates:
    """Today's rows of CUDA, and the hashes of their candidates."""

    def __init__(self, rows, sources):
        self.rows = {row.name: row for row in rows}
        self.sources = sources

    def hash(self, choice):
        """None where the row is no more."""
        if choice.row not in self.rows:
            return None
        file = choice.row if choice.row in self.sources else choice.row.split("_")[0]  # a vendor's rows share their sources' hash
        seed = hashed(0xCBF29CE484222325, self.sources[file])
        return f"{hashed(hashed(seed, choice.row), choice.params):016x}"

    def exists(self, choice):
        """Whether the row has these tunables, in this order, with these values."""
        if choice.row not in self.rows:
            return False
        tunables = self.rows[choice.row].tunables
        words = [word.partition("=") for word in choice.params.split()]
        return [name for name, _, _ in words] == list(tunables) and all(value in tunables[name] for name, _, value in words)

    def own(self):
        return [row for row in self.rows.values() if row.kind == "OWN"]


def read_rows(text):
    """The rows of kernels.def that a release has."""
    text = re.sub(r"#ifdef SPARSEK_TEST_ROWS.*?#endif", "", text, flags=re.DOTALL)
    found = []
    for op, name, kind, arch, rest in re.findall(r"^SPK_KERNEL\(SPK_(\w+), (\w+), SPK_KIND_(\w+), SPK_ISA_SM(\d+)A?,(.*)\)$", text, re.MULTILINE):
        tunables = {key: values.split(",") for key, values in re.findall(r"TUNABLE\((\w+), ([\d,]+)\)", rest)}
        found.append(Row(op.lower(), name, kind, int(arch), tunables))
    if not found:
        raise Trouble("kernels.def: no rows are found in it")
    return found


def read_table(text):
    pattern = r'^SPK_PROVED\("([0-9a-f]{16})", "(\w+)", (\d+)\) /\* (\w+) ?(.*?) \*/$'
    return [Proof(hash_, arch, int(driver), row, params) for hash_, arch, driver, row, params in re.findall(pattern, text, re.MULTILINE)]


def read_bundle(path):
    """{card: the choices of its classes}, without processors."""
    cards = collections.defaultdict(set)
    if not pathlib.Path(path).exists():
        raise Trouble(f"{path}: there is no bundle")
    store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    query = """SELECT family.exact, class.device, candidate.name, candidate.params FROM class JOIN family ON family.id = class.family_id
               JOIN candidate ON candidate.class_id = class.id AND candidate.rank = class.chosen"""
    for exact, device, row, params in store.execute(query):
        match = re.search(r";dev=cuda:[^:;]+:sm(\d+):\d+:driver(\d+)", exact)
        if match:
            cards[Card(device, int(match[1]), int(match[2]))].add(Choice(row, params))
    store.close()
    return dict(cards)


def today():
    return Candidates(read_rows((CUDA / "kernels.def").read_text(encoding="utf-8")), source_hashes())


def is_live(candidates, proof):
    choice = Choice(proof.row, proof.params)
    return candidates.exists(choice) and candidates.hash(choice) == proof.hash


def live_on(candidates, table, card):
    """The choices that the library may run on a card for these proofs: they hold for an architecture and a driver's major version."""
    return {Choice(p.row, p.params) for p in table if p.driver == card.driver and re.fullmatch(rf"sm_{card.arch}a?", p.arch) and is_live(candidates, p)}


def dead(candidates, table):
    """Choices of own rows that were proved once and are in no live proof: {row: choices}."""
    live = {Choice(p.row, p.params) for p in table if is_live(candidates, p)}
    gone = collections.defaultdict(set)
    for proof in table:
        choice = Choice(proof.row, proof.params)
        if choice not in live and any(row.name == choice.row for row in candidates.own()):
            gone[choice.row].add(choice)
    return dict(gone)


def lacking(candidates, table, cards):
    """What a card lacks: [(card, own rows without a live proof, chosen candidates without one)]."""
    found = []
    for card, chosen in sorted(cards.items()):
        live = live_on(candidates, table, card)
        rows = sorted(row.name for row in candidates.own() if row.arch <= card.arch and not any(choice.row == row.name for choice in live))
        found.append((card, rows, sorted(choice for choice in chosen if choice not in live)))
    return found


def report(candidates, table, cards):
    """(text, whether a card lacks something)"""
    lines = []
    for card, rows, choices in lacking(candidates, table, cards):
        for row in rows:
            lines.append(f"{card.name}: own row without a live proof: {row}")
        for choice in choices:
            lines.append(f"{card.name}: chosen by the bundle, without a live proof: {choice.row} {choice.params}".rstrip())
    bad = bool(lines)
    for row, choices in sorted(dead(candidates, table).items()):
        lines.append(f"dead: {len(choices)} choices of {row}, such as {min(choices).params or 'the only one'}")
    return "\n".join(lines), bad
