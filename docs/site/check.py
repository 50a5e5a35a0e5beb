#!/usr/bin/env python3
"""Every relative link of a built site leads to a file of it, and every anchor to a place in that file: check.py FOLDER."""
import html
import pathlib
import re
import sys
import urllib.parse


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in root.rglob("*.html")}
    places = {path: set(map(html.unescape, re.findall(r"\bid=\"([^\"]+)\"", text))) for path, text in texts.items()}
    wrong, count = [], 0
    for path, text in texts.items():
        for link in map(html.unescape, re.findall(r"\b(?:href|src|srcset)=\"([^\"]+)\"", text)):
            where, _, place = link.partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:|//", link, re.I):
                continue
            count += 1
            where = where.partition("?")[0]
            target = (path.parent / urllib.parse.unquote(where)).resolve() if where else path
            if not target.exists() or place and target in places and urllib.parse.unquote(place) not in places[target]:
                wrong.append(f"{path.relative_to(root)}: {link}")
    print("\n".join(sorted(wrong) + [f"site: {len(texts)} pages, {count} links, {len(wrong)} broken"]))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
