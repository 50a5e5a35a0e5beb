#!/usr/bin/env python3
"""No line of prose on a page has more than 140 columns.

    tests/docs/wrap.py           says which have
    tests/docs/wrap.py --fix     breaks the paragraphs and items of lists that have one anew

Tables, code, headings, pictures, generated pages and GitHub's templates are left alone.
"""
import re
import sys
import textwrap

import links

COLUMNS = 140
LEFT_OUT = re.compile(r"docs/performance(/.*)?\.md$|\.github/")  # generated; GitHub shows each line of an issue as one
LEFT = re.compile(r"\s*(\||#|<|!\[|\[[^\]]+\]:)|    ")  # begins what is no prose
ITEM = re.compile(r"( *)([-*] |\d+\. )")
MARK = re.compile(r"\s*([-+*>#|]|\d+[.)])(\s|$)")  # at the head of a line it would begin something else


def paragraphs(text):
    """(first line, lines, whether they are prose) of what a page consists of."""
    found, inside, fence = [], [], None
    for number, line in enumerate(text.split("\n")):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        begins = ITEM.match(line) or not line.strip() or LEFT.match(line) and not (inside and ITEM.match(inside[0]))
        if fence or mark or begins or not found or not found[-1][2] or not found[-1][1][-1].strip():
            inside = [line]
            prose = not fence and not mark and line.strip() != "" and (ITEM.match(line) is not None or not LEFT.match(line))
            found.append((number, inside, prose))
        else:
            inside.append(line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = None if fence else mark[1]
    return found


def wrapped(lines):
    item = ITEM.match(lines[0])
    indent = " " * len(item[0]) if item else re.match(r" *", lines[0])[0]
    words = " ".join(line.strip() for line in lines)
    for columns in range(COLUMNS, COLUMNS // 2, -1):
        made = textwrap.wrap(words, columns, initial_indent=item[1] if item else indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        if not any(MARK.match(line) for line in made[1:]):
            return made
    return lines


def main():
    long = 0
    for page in links.pages_of(links.ROOT):
        name = str(page.relative_to(links.ROOT))
        if LEFT_OUT.match(name):
            continue
        text = page.read_text(encoding="utf-8")
        out = []
        for number, lines, prose in paragraphs(text):
            wide = prose and any(len(line) > COLUMNS and " " in line.strip() for line in lines)
            made = wrapped(lines) if wide else lines
            if wide and made != lines:
                long += 1
                if "--fix" not in sys.argv[1:]:
                    print(f"{name}:{number + 1}: a line of {max(map(len, lines))} columns")
            out += made
        if "--fix" in sys.argv[1:]:
            page.write_text("\n".join(out), encoding="utf-8")
    print(f"wrap: {long} paragraphs are too wide" if "--fix" not in sys.argv[1:] else f"wrap: {long} paragraphs broken anew")
    return 1 if long and "--fix" not in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
