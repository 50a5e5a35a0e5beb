#!/usr/bin/env python3
"""Every relative link in the project's Markdown leads to a file that is there, and every anchor to a heading of it, as GitHub names them.

    tests/docs/links.py            all pages that git knows, or would take
    tests/docs/links.py --test     whether it finds what is broken
"""
import html
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1`*~* *$", re.M | re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.M)
HTML = re.compile(r"\b(?:href|src|srcset)=\"([^\"]+)\"")


def text_of(path):
    """A page without its blocks of code."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchor(title):
    """GitHub's name for a heading."""
    title = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", title)
    title = html.unescape(re.sub(r"<[^>]+>|[`*]", "", title))
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def anchors(path):
    found, names = {}, set()
    for title in re.findall(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", text_of(path), re.M):
        name = anchor(title)
        count = found.get(name, 0)
        found[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", path.read_text(encoding="utf-8")))


def links(path):
    text = text_of(path)
    return HTML.findall(text) + [link for pattern in (LINK, REFERENCE) for link in pattern.findall(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text))]


def broken(root, pages):
    """What is wrong, a line each."""
    wrong, known = [], {}
    for page in pages:
        for link in links(page):
            if re.match(r"[a-z][a-z0-9+.-]*:", link, re.I):
                continue
            where, _, name = link.partition("#")
            target = (page.parent / urllib.parse.unquote(where)).resolve() if where else page
            at = page.relative_to(root)
            if where.startswith("/") or root not in [target, *target.parents]:
                wrong.append(f"{at}: {link} leaves the project")
            elif not target.exists():
                wrong.append(f"{at}: {link}: there is no such file")
            elif name and target.suffix == ".md" and name not in known.setdefault(target, anchors(target)):
                wrong.append(f"{at}: {link}: there is no such heading")
            elif name and target.suffix != ".md":
                wrong.append(f"{at}: {link}: an anchor of what is no page")
    return wrong


def pages_of(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], cwd=root, capture_output=True, check=True).stdout
    return [root / name for name in sorted(listed.decode().split("\0")) if name and (root / name).exists()]


def test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "a.md").write_text("# One: `two` & three\n## Same\n## Same\n[good](b.md#x-y) [good](#one-two--three) [good](#same-1) `[no](link.md)`\n"
                                   "```\n[no](link.md)\n# no heading\n```\n[bad](c.md) [bad](b.md#z) [bad](#no-heading) <img src=\"d.svg\">\n[bad](../e.md)\n[far](https://x.y/z)\n"
                                   "[a [nested] one](f.md)\n")
        (root / "b.md").write_text("X *y*\n=====\n# X y\n")
        found = broken(root, [root / "a.md", root / "b.md"])
        wanted = ["a.md: d.svg: there is no such file", "a.md: c.md: there is no such file", "a.md: b.md#z: there is no such heading", "a.md: #no-heading: there is no such heading",
                  "a.md: ../e.md leaves the project", "a.md: f.md: there is no such file"]
        assert found == wanted, found


def main():
    if sys.argv[1:] == ["--test"]:
        test()
        return 0
    pages = pages_of(ROOT)
    wrong = broken(ROOT, pages)
    print("\n".join(wrong + [f"links: {len(pages)} pages, {sum(len(links(page)) for page in pages)} links, {len(wrong)} broken"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
