#!/usr/bin/env python3
"""Fails where a crate that would be linked (or runs while building) has a licence outside the list: rust/tests/licenses.py MANIFEST [CARGO'S OPTIONS]."""
import re
import subprocess
import sys

ALLOWED = {"0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "ISC", "MIT",
           "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib"}


def allowed(expression):
    """Whether one of the alternatives of an SPDX expression is allowed in all its parts."""
    tokens = re.findall(r"\(|\)|\bOR\b|\bAND\b|[^()\s]+(?: WITH [^()\s]+)?", expression.replace("/", " OR "))

    def alternatives(at):
        value, at = parts(at)
        while at < len(tokens) and tokens[at] == "OR":
            other, at = parts(at + 1)
            value = value or other
        return value, at

    def parts(at):
        value, at = one(at)
        while at < len(tokens) and tokens[at] == "AND":
            other, at = one(at + 1)
            value = value and other
        return value, at

    def one(at):
        if tokens[at] != "(":
            return tokens[at] in ALLOWED, at + 1
        value, at = alternatives(at + 1)
        return value, at + 1

    return alternatives(0)[0]


def main():
    # Tests' dependencies are no part of what is delivered.
    command = ["cargo", "tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}\t{l}", "--manifest-path", *sys.argv[1:]]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    crates = {tuple(line.removesuffix(" (*)").split("\t")) for line in lines if line}
    wrong = sorted(f"{crate.strip()}: {licence or 'none stated'}" for crate, licence in crates if not allowed(licence or "none stated"))
    print(f"{len(crates)} crates, {len(wrong)} with a licence that is not allowed")
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    for expression, expected in (("MIT", True), ("GPL-3.0", False), ("MIT OR GPL-3.0", True), ("(MIT OR Apache-2.0) AND GPL-2.0", False),
                                 ("(MIT OR GPL-2.0) AND Unicode-3.0", True), ("MIT/Apache-2.0", True), ("Apache-2.0 WITH LLVM-exception", True)):
        assert allowed(expression) is expected, expression
    main()
