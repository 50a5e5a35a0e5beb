#!/usr/bin/env python3
"""Copies the project's pages, and what they link to, into a folder that Sphinx reads: stage.py FOLDER. The pages keep their places, so that their links hold.

A link to a folder becomes one to the folder's README.md. Pictures go to FOLDER/as-they-are, too, for pages that show them through HTML. Pages of a folder in
FOLDED have their places below its README.md, by a list at the end of its copy, which GitHub would show as code.
"""
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "docs"))
import links  # noqa: E402

LEFT_OUT = (".github/",)  # what GitHub shows in its own places
FOLDED = ("docs/log",)  # folders that have one entry in index.rst, their README.md
BELOW = "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def for_site(text, page):
    """The page's text as Sphinx takes it: links to folders become links to their README.md, and links in a heading stand below it."""
    def to_readme(match):
        where, hash_sign, name = match[1].partition("#")
        return f"]({where.rstrip('/')}/README.md{hash_sign}{name})" if where and (page.parent / where).is_dir() else match[0]

    def below(match):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[0])
        return heading + "\n\n" + ", ".join(re.findall(r"\[[^\]]*\]\([^)]*\)", match[0]))
    return re.sub(r"^#+ .*\]\(.*$", below, re.sub(r"\]\(([^)\s:]+)\)", to_readme, text), flags=re.M)


def copy(source, folder):
    target = folder / source.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".md":
        below = BELOW if source.name == "README.md" and str(source.parent.relative_to(ROOT)) in FOLDED else ""
        target.write_text(for_site(source.read_text(encoding="utf-8"), source) + below, encoding="utf-8")
    else:
        shutil.copyfile(source, target)


def list_folder(target, folder):
    """A page that lists a folder's files, for one that has no README.md."""
    names = sorted(path.name for path in target.iterdir() if path.is_file())
    for name in names:
        copy(target / name, folder)
    title = target.relative_to(ROOT)
    page = folder / title / "README.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"# {title}\n\n" + "\n".join(f"- [{name}]({name})" for name in names) + "\n", encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("conf.py", "index.rst"):
        shutil.copyfile(HERE / name, folder / name)
    for page in links.pages_of(ROOT):
        if str(page.relative_to(ROOT)).startswith(LEFT_OUT):
            continue
        copy(page, folder)
        for where in {link.partition("#")[0] for link in links.links(page) if ":" not in link} - {""}:
            target = (page.parent / where).resolve()
            if target.is_dir() and not (target / "README.md").exists():
                list_folder(target, folder)
            elif target.is_file() and target.suffix != ".md":
                copy(target, folder)
    shutil.copytree(ROOT / "docs" / "figures", folder / "as-they-are" / "docs" / "figures")


if __name__ == "__main__":
    main()
