"""Whether what runs is the same in two trees.

of a row of CUDA      the programs, the launches and a library's calls of a candidate are the same for every problem of a list (launches.py, program_text.py)
of a processor's row  its object is the same machine code, made by the same compiler with the same options (objects.py); of a vendor's all of its folder
"""

import collections
import concurrent.futures
import functools
import re

import program_text

from carry import cubins, objects

VENDORS = ("VENDOR", "DENSE")


class Comparison:
    """Of choices (row, params) of the old tree with the same ones of the new tree."""

    def __init__(self, old, new, renamed=None, compiles=False):
        self.old, self.new, self.renamed, self.compiles = old, new, renamed or {}, compiles
        self.same_program = functools.cache(self.compare_programs)
        self.same_cubin = functools.cache(self.compare_cubins)
        self.cached = {}

    def new_name(self, row):
        return self.renamed.get(row, row)

    def rename(self, row):
        """Of words that begin with the row's name: its entries and files."""
        if self.new_name(row) == row:
            return lambda word: word
        pattern = re.compile(rf"(?<![A-Za-z0-9]){row}(?![A-Za-z0-9])|(?<![A-Za-z0-9]){row}(?=_)", re.IGNORECASE)
        return lambda word: pattern.sub(lambda match: self.new_name(row) if match[0].islower() else self.new_name(row).upper(), word)

    def same_text(self, row, file, new_file, options):
        return program_text.same(self.old.source, self.new.source, file, new_file, options, self.rename(row))

    def compare_programs(self, row, file, new_file, options):
        return self.same_text(row, file, new_file, options) or (self.compiles and self.same_cubin(file, new_file, options))

    def compare_cubins(self, file, new_file, options):
        return cubins.compiled(self.old.source, file, options) == cubins.compiled(self.new.source, new_file, options)

    def compile_all(self, choices, old, new, jobs):
        """Side by side, what `launched` would compile one after the other."""
        wanted = set()
        for (card, choice, problem), before in old.items():
            row, params = split_choice(choice)
            after = new.get((card, f"{self.new_name(row)} {params}".strip(), problem))
            if (row, params) in choices and after and before.launches == after.launches:
                rename = self.rename(row)
                wanted |= {(row, file, rename(file), options) for file, _, options in before.programs}
        differ = {program[1:] for program in wanted if not self.same_text(*program)}
        if not differ:
            return
        print(f"{len(differ)} programs are compiled twice", flush=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for number, _ in enumerate(pool.map(lambda program: self.same_cubin(*program), sorted(differ)), 1):
                if number % 100 == 0:
                    print(f"{number} of {len(differ)}", flush=True)

    # ---- launches

    def differs(self, row, before, after):
        """Why two records are not the same; None: they are."""
        if before is None or after is None:
            return "it computes other problems"
        rename = self.rename(row)
        if [tuple(map(rename, program)) for program in before.programs] != list(after.programs):
            return "it has other programs"
        if before.launches != after.launches:
            return "launch differs"
        for file, _, options in before.programs:
            if not self.same_program(row, file, rename(file), options):
                return "program differs"
        return None

    def launched(self, choices, old, new, cards):
        """{choice: why it is not carried} of CUDA's rows, from two records (launches.record)."""
        found = {}
        problems = {(card, choice): set() for card in cards for choice in choices}
        for (card, choice, problem), _ in old.items():
            problems.setdefault((card, split_choice(choice)), set()).add(problem)
        other = collections.defaultdict(set)
        for card, choice, problem in new:
            other[card, choice].add(problem)
        for row, params in choices:
            before, after = f"{row} {params}".strip(), f"{self.new_name(row)} {params}".strip()
            for card in cards:
                seen = problems[card, (row, params)]
                if not seen:
                    found[row, params] = "not recorded"
                for problem in sorted(seen | other[card, after]):
                    one, two = old.get((card, before, problem)), new.get((card, after, problem))
                    failed = next((record.failed for record in (one, two) if record and record.failed), None)
                    why = f"its run fails: {failed}" if failed else self.differs(row, one, two)
                    if why and (row, params) not in found:
                        found[row, params] = f"{why} ({problem}, {card})"
        return found

    # ---- objects

    def object_differs(self, file, row=None, new_file=None):
        """Of a source below the tree, in the other one new_file; row: the one whose hash and name are in it."""
        rename = self.rename(row) if row else lambda word: word
        new_file = new_file or file
        if (file in self.old.commands) != (new_file in self.new.commands):
            return f"{file} is in one of the trees alone"
        if file not in self.old.commands:
            return f"{file} is not built here"
        sides = []
        for tree, name, change in ((self.old, file, rename), (self.new, new_file, lambda word: word)):
            path, words = tree.commands[name]
            own = objects.source_hash(words)
            sides.append((objects.options_of(words, tree.root, own, change), objects.code_of(path, own, change)))
        if sides[0][0] != sides[1][0]:
            return f"{file} is compiled otherwise"
        return None if sides[0][1] == sides[1][1] else f"machine code differs ({file})"

    def folder_differs(self, folder):
        """Of all objects of a folder of vendors."""
        files = sorted(name for name in {**self.old.commands, **self.new.commands} if name.startswith(f"src/backend/{folder}/"))
        return next((why for why in map(self.object_differs, files) if why), None)

    def compiled(self, row):
        """Why the evidence about a row that is not recorded does not hold; None: it does."""
        kind, backend = self.old.rows[row].kind, self.old.rows[row].backend
        if kind in VENDORS or row not in self.old.sources:
            key = f"{backend}/vendor"
            if key not in self.cached:
                self.cached[key] = self.folder_differs(key)
            return self.cached[key]
        if row not in self.cached:
            self.cached[row] = self.object_differs(self.old.file_of(backend, row), row, self.new.file_of(backend, self.new_name(row)))
        return self.cached[row]


def split_choice(text):
    """("spmm_cuda_rows", "ACROSS=4 SPLIT=1 AHEAD=1")"""
    row, _, params = text.partition(" ")
    return row, params


def is_recorded(row):
    return row.backend == "cuda"
