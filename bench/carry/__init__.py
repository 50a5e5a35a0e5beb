"""Which evidence about a row holds for another tree: where what runs is the same in both, whatever became of the sources (comparison.py)."""

import collections
import pathlib

import runs
from program_text import Trouble

from carry import launches
from carry.comparison import Comparison, is_recorded
from carry.trees import ROOT, make, tree_of

Entry = collections.namedtuple("Entry", "place choice")  # place: the dict in the document that has the hash


def decide(comparison, choices, cards, problems, jobs=2):
    """{choice: why it is not carried, or None} of choices that are live in the old tree."""
    old, new = comparison.old, comparison.new
    found, recorded = {}, collections.defaultdict(list)
    for row, params in sorted(choices):
        name = comparison.new_name(row)
        if name not in new.rows:
            found[row, params] = "row is gone"
        elif not new.exists(name, params):
            found[row, params] = "tunables are gone"
        elif is_recorded(old.rows[row]):
            recorded[old.rows[row].op].append((row, params))
        else:
            found[row, params] = comparison.compiled(row)
    if recorded:
        asked = {op: [f"{row} {params}".strip() for row, params in list_] for op, list_ in recorded.items()}
        also = {op: [f"{comparison.new_name(row)} {params}".strip() for row, params in list_] for op, list_ in recorded.items()}
        records = [launches.record(tree.source, tree.build / "sparsek", wanted, problems, cards, jobs) for tree, wanted in ((old, asked), (new, also))]
        flat = [choice for list_ in recorded.values() for choice in list_]
        if comparison.compiles:
            comparison.compile_all(set(flat), *records, jobs)
        found.update({choice: None for choice in flat} | comparison.launched(flat, *records, cards))
    return found


def cards_of(arches):
    """Those that are recorded for evidence of some architectures."""
    return tuple(card for card, (_, arch) in launches.CARDS.items() if arch in arches)


def report(decided):
    """A line for each row, and one for each reason."""
    rows = collections.defaultdict(list)
    for (row, params), why in decided.items():
        rows[row].append((why, params))
    lines = []
    for row, list_ in sorted(rows.items()):
        carried = sum(why is None for why, _ in list_)
        lines.append(f"{row}: {carried} of {len(list_)} carried")
        reasons = collections.defaultdict(list)
        for why, params in list_:
            if why is not None:
                reasons[why.partition(" (")[0]].append((params, why))
        for _, ones in sorted(reasons.items()):
            params, why = min(ones)
            lines.append(f"    {len(ones)} not: {why}{f', such as {params}' if params else ''}")
    return "\n".join(lines)


class Carrying:
    """Entries with a choice and a hash: those that are live in the old tree get the new tree's, where what runs is the same."""

    def __init__(self, comparison):
        self.comparison, self.decided = comparison, {}
        self.dead = self.changed = 0

    def is_live(self, choice, hash_):
        row, params = choice
        return self.comparison.old.exists(row, params) and self.comparison.old.hash(row, params) == hash_

    def decide(self, entries, arches, problems, jobs=2):
        """entries: [(choice, hash)]"""
        live = {choice for choice, hash_ in entries if self.is_live(choice, hash_)}
        self.decided = decide(self.comparison, live, cards_of(arches), problems, jobs)

    def carry(self, entry, choice):
        """Whether the entry, a dict with "hash", stands for the new tree's candidate now."""
        if not self.is_live(choice, entry["hash"]):
            self.dead += 1
            return False
        if self.decided.get(choice, "") is not None:
            return False
        name = self.comparison.new_name(choice[0])
        hash_ = self.comparison.new.hash(name, choice[1])
        if hash_ != entry["hash"]:
            if name != choice[0]:
                entry.update({"choice": f"{name} {choice[1]}".strip()} if "choice" in entry else {"name": name})
            entry.update(hash=hash_, carried={"from": entry["hash"], "commit": self.comparison.old.commit})
            self.changed += 1
        return True


def add_options(parser):
    parser.add_argument("old", metavar="OLD", help="a folder of a source tree, or a revision")
    parser.add_argument("new", metavar="NEW", nargs="?", default=str(ROOT), help="likewise (default: this tree)")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD_NAME=NEW_NAME", help="a row that has another name in NEW")
    parser.add_argument("--dry-run", "--check", action="store_true", help="tell what would be carried, and write nothing")
    parser.add_argument("--compile", action="store_true", help="programs whose text differs are compiled with NVRTC, and are the same where the PTX is")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")


def comparison_of(options):
    """Of the options' trees, both built."""
    pairs = [pair.partition("=") for pair in options.renamed]
    if any(not old or not new for old, _, new in pairs):
        raise Trouble("--renamed OLD_NAME=NEW_NAME: both names are needed")
    old, new = tree_of(options.old), tree_of(options.new)
    renamed = {before: after for before, _, after in pairs}
    for name, tree in [(before, old) for before in renamed] + [(after, new) for after in renamed.values()]:
        if name not in tree.rows:
            raise Trouble(f"--renamed: {name} is no row of {tree.root}")
    for tree in {old.root: old, new.root: new}.values():
        tree.make()
    make(ROOT, "record")  # the double records both
    return Comparison(old, new, renamed, options.compile)


def carry_all(comparison, options, documents, entries, arches, problems, refuted=frozenset()):
    """Changes the entries of documents ({name of a run: document}) and writes those that changed. problems: {op: [options]}. Prints what became of each row."""
    work = Carrying(comparison)
    live = [entry for entry in entries if entry.place["hash"] not in refuted]
    work.decide([(entry.choice, entry.place["hash"]) for entry in live], arches, problems, options.jobs)
    before = {name: str(document) for name, document in documents.items()}
    carried = sum(work.carry(entry.place, entry.choice) for entry in live)
    print(report(work.decided))
    changed = {name: document for name, document in documents.items() if str(document) != before[name]}
    if not options.dry_run:
        runs.put(changed, options.results)
    print(
        f"{carried} of {len(entries)} entries carried from {comparison.old.commit}, {work.changed} of them with another hash; {work.dead} are dead there, "
        f"{len(entries) - len(live)} refuted"
    )
    print("nothing is written" if options.dry_run or not changed else f"written: {', '.join(changed)}")
    return bool(changed) and not options.dry_run
