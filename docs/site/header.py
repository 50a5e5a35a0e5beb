#!/usr/bin/env python3
"""The public headers for Doxygen and for the site's page about it.

    header.py HEADER               a header as Doxygen reads it, its INPUT_FILTER: an ordinary comment above a declaration, or behind one, becomes its text
    header.py FOLDER XML PAGE      writes the page: each header that sparsek.h includes, its sections, and in each what Doxygen found there, in the header's order

A comment that several declarations share becomes the text of each. A comment that an empty line follows belongs to no declaration: the page has it as prose.
A function, type or macro without text is an error.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

SECTION = re.compile(r"/\* -{20,} (.*?) \*/$")
DIRECTIVES = {"function": "doxygenfunction", "typedef": "doxygentypedef", "enum": "doxygenenum", "define": "doxygendefine"}


def begins_comment(line):
    return re.match(r"\s*/\*", line) and not SECTION.match(line)


def of_doxygen(comment):
    """A comment's lines as Doxygen takes them: lines of formulas, four columns in, stay as they are."""
    def formula(line):
        return re.match(r" \*     \S", line) is not None
    lines = [comment[0].replace("/*", "/**", 1)]
    for before, line in zip(comment, comment[1:]):
        if formula(line) != formula(before):
            lines.append(" * @verbatim" if formula(line) else " * @endverbatim")
        lines.append(line[6:] if formula(line) else line)
    return lines


def members(line):
    """The line of a struct's members as one for each of them: "int64_t ldb, ldc; /**< text */"."""
    match = re.match(r"(\s+)((?:const )?\w+ )(\w+(?:, \w+)+);(.*)$", line)
    return [f"{match[1]}{match[2]}{name};{match[4]}" for name in match[3].split(", ")] if match else [line]


def for_doxygen(text):
    lines = re.sub(r",\n\s+(\w+; /\*)", r", \1", text).split("\n")  # members that the formatter broke
    out, comment, at = [], [], 0
    while at < len(lines):
        line = lines[at]
        if begins_comment(line):
            end = next(number for number in range(at, len(lines)) if "*/" in lines[number])
            comment, at = lines[at:end + 1], end + 1
            if lines[at].strip():
                comment = of_doxygen(comment)
            else:
                out, comment = out + comment, []
            continue
        member = re.match(r"    \w", line)  # of a struct or an enumeration; what is further in goes on with a declaration
        for one in members(re.sub(r"^(\s*[^\s#/].*?) /\*(?=[^*])", r"\1 /**<", line)):
            out += (comment if member or re.match(r"\w|#", line) else []) + [one]
        if member or not line.strip() or line.endswith("{") or line.startswith("static"):
            comment = []
        at += 1
    return "\n".join(out)


def found(folder):
    """(name of the header, line, kind, name, whether it has text) of what Doxygen found."""
    def place(node):
        return pathlib.Path(node.find("location").get("file")).name, int(node.find("location").get("line"))
    def has_text(node):
        return any("".join(node.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription"))
    for entry in ElementTree.parse(folder / "index.xml").getroot().iter("compound"):
        root = ElementTree.parse(folder / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        if root.get("kind") == "struct":
            yield *place(root), "struct", root.findtext("compoundname"), has_text(root)
        if root.get("kind") != "file":
            continue
        for node in root.iter("memberdef"):
            name, at, kind = node.findtext("name"), place(node), node.get("kind")
            if kind == "enum" and not name.startswith("spk_"):
                yield from ((*at, "enumvalue", value.findtext("name"), True) for value in node.iter("enumvalue"))
            elif name != "SPK_API" and not name.startswith(("SPARSEK_", "SPK_SIZED_")):
                yield *at, kind, name, has_text(node)


def prose(comment):
    """A comment that stands alone, as reStructuredText: an empty line before a list and behind it."""
    text = "\n".join(re.sub(r"^ \* ?", "", line) for line in comment).strip().removeprefix("/*").removesuffix("*/").strip()
    lines, listed = [], False
    for line in re.sub(r"\b((?:spk|SPK)_\w+(?:\(\w*\))?)", r"``\1``", re.sub(r"([\\*|])", r"\\\1", text).replace("`", "``")).split("\n"):
        begins = line.startswith("- ") or listed and line.startswith("  ")
        lines += [""] * (begins != listed) + [line]
        listed = begins
    return "\n".join(lines)


def title(text, line):
    return f"{text}\n{line * len(text)}\n"


def of_header(text, entries):
    """A header's part of the page: entries, (line, kind, name), between its sections and the comments that stand alone."""
    lines = for_doxygen(text).split("\n")
    parts = [(line, "entry", kind, name) for line, kind, name in entries]
    at = 0
    while at < len(lines):
        if SECTION.match(lines[at]):
            parts.append((at + 1, "section", SECTION.match(lines[at])[1], None))
        elif lines[at].startswith("/*") and not lines[at].startswith("/**"):
            end = next(number for number in range(at, len(lines)) if "*/" in lines[number])
            parts.append((at + 1, "prose", lines[at:end + 1], None))
            at = end
        at += 1
    first = next(line for line, text in enumerate(lines, 1) if text.startswith("#define SPK_VERSION_MAJOR") or SECTION.match(text))
    out = []
    for _, what, kind, name in sorted((part for part in parts if part[0] >= first), key=lambda part: part[0]):
        if what == "section":
            out.append(title(kind[0].upper() + kind[1:], "~"))
        elif what == "prose":
            out.append(prose(kind) + "\n")
        elif kind == "struct":
            out.append(f".. doxygenstruct:: {name}\n   :members:\n   :undoc-members:\n")
        else:
            out.append(f".. {DIRECTIVES.get(kind, 'doxygenenumvalue')}:: {name}\n")
    return out


def page(headers, folder):
    """The page, what is wrong, how many names it has."""
    whole = (headers / "sparsek.h").read_text(encoding="utf-8")
    lines = for_doxygen(whole).split("\n")
    conventions = prose(lines[3:next(number for number, line in enumerate(lines) if line.endswith("*/"))])
    out = [title("C reference", "="), "All of ``<sparsek/sparsek.h>``, made from the headers by Doxygen. :doc:`c` shows how the calls go together.\n",
           title("Conventions", "-"), conventions.removeprefix("Conventions").strip() + "\n"]
    entries, wrong = list(found(folder)), []
    for name in re.findall(r'^#include "(\w+\.h)"', whole, re.M):
        text = (headers / name).read_text(encoding="utf-8")
        mine = [(line, kind, of) for header, line, kind, of, _ in entries if header == name]
        about = re.sub(r"\s+", " ", re.match(r"/\* sparsek: (.*?)\n \* SPDX", text, re.S)[1].replace("\n *", " "))
        out += [title(name, "-"), about[0].upper() + about[1:] + "\n", *of_header(text, mine)]
        names = {of for _, _, of in mine}
        wrong += [f"{name}: Doxygen does not know {of}" for of in re.findall(r"^SPK_API [^;]*?\b(spk_\w+)\(", text, re.M) if of not in names]
    wrong += [f"{header}: {kind} {name} has no text" for header, _, kind, name, text in entries if not text]
    return "\n".join(out), wrong, len({name for _, _, _, name, _ in entries})


def main():
    if len(sys.argv) == 2:
        sys.stdout.write(for_doxygen(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")))
        return 0
    text, wrong, count = page(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    pathlib.Path(sys.argv[3]).write_text(text, encoding="utf-8")
    print("".join(f"{sys.argv[1]}/{line}\n" for line in wrong) + f"header: {count} names")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
