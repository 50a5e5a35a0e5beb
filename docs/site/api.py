#!/usr/bin/env python3
"""Writes the reference pages of the site, from what stands in the sources: api.py FOLDER. Nothing is imported or compiled.

    docs/c-api.rst        the public header: a section for each of its own, with every function, type and macro and the comment above it
    python/api.rst        the names that sparse_autotune exports: signatures, docstrings, public methods and properties
    python/api-distributed.rst    the same of sparse_autotune.distributed

An exported name without a docstring is an error.
"""
import ast
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include" / "sparsek" / "sparsek.h"
PACKAGE = ROOT / "python" / "sparse_autotune"


def escaped(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def indented(text, by=3):
    return textwrap.indent(text, " " * by)


def title(text, line):
    return f"{text}\n{line * len(text)}\n"


# ---------------------------------------------------------------------------------------------------------------------- C

KINDS = {"function": "func", "type": "type", "struct": "struct", "enum": "enum", "macro": "macro"}


def comment_text(comment):
    """The lines of a comment without what makes it one."""
    lines = comment.strip().removeprefix("/*").removesuffix("*/").split("\n")
    return [re.sub(r"^ \* ?", "", line).rstrip() if at else line.strip() for at, line in enumerate(lines)]


class Prose:
    """A comment as reStructuredText: paragraphs, lists, formulas; names of the header are links."""

    def __init__(self, known):
        self.known = known

    def words(self, text):
        parts = []
        for at, part in enumerate(re.split(r"\b(spk_[a-z0-9_]+|SPK_[A-Z0-9_]+)\b", text)):
            kind = self.known.get(part) if at % 2 else None
            parts.append(f"\\ :c:{KINDS[kind]}:`{part}`\\ " if kind else f"\\ ``{part}``\\ " if at % 2 else escaped(part))
        return re.sub(r"(:c:func:`\w+`\\ )\(\)", r"\1", "".join(parts)).strip()  # the link has its own parentheses

    def __call__(self, lines):
        out, paragraph = [], []

        def end():
            if paragraph:
                out.append(self.words(" ".join(paragraph)))
                paragraph.clear()
        formula = []
        for line in [*lines, ""]:
            if line.startswith("    "):
                end()
                formula.append(line.strip())
                continue
            if formula:
                out.append("::\n\n" + indented("\n".join(formula)))
                formula.clear()
            if not line:
                end()
            elif line.startswith("- "):
                end()
                paragraph.append("•\u00a0" + line[2:])
            else:
                paragraph.append(line.strip())
        return "\n\n".join(out) + "\n"


def groups(text):
    """(comment, code) of what empty lines part; a comment above an empty line is a group without code."""
    for part in re.split(r"\n\s*\n(?![^{}]*\n\})", text.strip()):
        match = re.match(r"(/\*.*?\*/)\n?(.*)\Z", part.strip(), re.S)
        yield (comment_text(match[1]), match[2].strip()) if match else ([], part.strip())


def declared(code):
    """(kind, name, text) of each declaration, where text is what the directive of the kind takes."""
    plain = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    for match in re.finditer(r"^SPK_API ([^;]*);", plain, re.M):
        text = re.sub(r"\s+", " ", match[1])
        yield "function", re.search(r"(spk_\w+)\(", text)[1], text
    for match in re.finditer(r"^static inline ([^{;]*?)\s*\{", plain, re.M):
        text = re.sub(r"\s+", " ", match[1])
        yield "function", re.search(r"(spk_\w+)\(", text)[1], text
    for match in re.finditer(r"^typedef (struct|enum) (spk_\w+)(\s*\{)?", plain, re.M):
        yield match[1] if match[3] else "type", match[2], match[2]
    for match in re.finditer(r"^typedef [^;{]*\(\*(spk_\w+)\)", plain, re.M):
        yield "type", match[1], match[1]
    for match in re.finditer(r"^#define (SPK_\w+)(\([^)]*\))?", plain, re.M):
        if not match[1].startswith("SPK_SIZED_") and match[1] != "SPK_API":
            yield "macro", match[1], match[1] + (match[2] or "")


def c_sections(text):
    """(title, text) of the header's sections."""
    text = text[text.index("#define SPK_VERSION_MAJOR"):]
    text = text[: text.index("#ifdef __cplusplus")] if "#ifdef __cplusplus" in text else text
    parts = re.split(r"^/\* -{20,} (.*?) \*/$", text, flags=re.M)
    yield "version", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def c_page():
    header = HEADER.read_text(encoding="utf-8")
    sections = [(name, list(groups(text))) for name, text in c_sections(header)]
    known = {name: kind for _, parts in sections for _, code in parts for kind, name, _ in declared(code)}
    prose = Prose(known)
    lead = comment_text(header[: header.index("*/") + 2])
    out = [title("C reference", "="), "All of ``<sparsek/sparsek.h>``, made from the header itself. :doc:`c` shows how the calls go together.\n",
           prose(line for line in lead[3:] if line != "Conventions")]
    for name, parts in sections:
        out.append(title(name[0].upper() + name[1:], "-"))
        for comment, code in parts:
            found = list(declared(code))
            shown = re.sub(r"^#define SPK_SIZED_.*\n?", "", re.sub(r"^SPK_API ", "", code, flags=re.M), flags=re.M)
            if not found:
                out.append(prose(comment) + ("\n.. code-block:: c\n\n" + indented(shown) + "\n" if shown and not shown.startswith("#") else ""))
                continue
            body = prose(comment) if comment else ""
            if any(kind in ("struct", "enum") or "typedef" in code for kind, _, _ in found) or found[0][0] == "macro":
                body += "\n.. code-block:: c\n\n" + indented(shown) + "\n"
            for kind, _, text in found[:-1]:
                out.append(f".. c:{kind}:: {text}\n")
            out.append(f".. c:{found[-1][0]}:: {found[-1][2]}\n\n{indented(body)}\n")
    return "\n".join(out), [], len(known)


# ---------------------------------------------------------------------------------------------------------------------- Python


def exported(package):
    """(name, node, module) of what a package's __init__.py exports, in the order of __all__."""
    init = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    origin = {alias.asname or alias.name: (node.module, alias.name) for node in init.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    names = next(ast.literal_eval(node.value) for node in init.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    trees = {}
    for name in names:
        module, original = origin[name]
        if module not in trees:
            trees[module] = ast.parse((package / f"{module}.py").read_text(encoding="utf-8"))
        found = [node for node in trees[module].body if getattr(node, "name", None) == original]
        if not found:
            raise SystemExit(f"api: {module}.py has no {original}, which __init__.py exports")
        yield name, found[-1], module


def decorators(node):
    return {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)}


def signature(node, bound):
    """What stands in parentheses, and what is returned."""
    arguments = ast.parse(ast.unparse(node)).body[0].args if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    if arguments is None:
        return ""
    if bound:
        (arguments.posonlyargs or arguments.args).pop(0)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"({ast.unparse(arguments)}){returns}"


def py_prose(text, names):
    """A docstring as reStructuredText: paragraphs; blocks that are indented or begin with >>> stay as they are; sa.NAME is a link."""
    def words(part):
        made = []
        for at, piece in enumerate(re.split(r"\bsa\.([A-Za-z_]\w*)\b", part)):
            if at % 2 == 0:
                made += [f"\\ ``{p}``\\ " if n % 2 else escaped(p) for n, p in enumerate(re.split(r"`+([^`]+)`+", piece))]
            elif piece in names:
                made.append(f"\\ :py:{names[piece]}:`sa.{piece} <sparse_autotune.{piece}>`\\ ")
            else:
                made.append(f"sa.{escaped(piece)}")
        return "".join(made).strip()
    out = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if part.startswith(">>>") or all(line.startswith("    ") for line in part.split("\n")):
            out.append(".. code-block:: python\n\n" + indented(textwrap.dedent(part)))
        elif all(line.startswith(("- ", "  ")) for line in part.split("\n")):
            out += ["- " + words(re.sub(r"\s+", " ", item)) for item in re.split(r"^- ", part, flags=re.M)[1:]]
        else:
            out.append(words(re.sub(r"\s+", " ", part)))
    return "\n\n".join(out) + "\n"


def members(node):
    """(directive, name and signature, docstring) of a class's public parts that have a docstring."""
    for part in node.body:
        if not isinstance(part, ast.FunctionDef) or part.name.startswith("_") or "overload" in decorators(part):
            continue
        text, marks = ast.get_docstring(part), decorators(part)
        if text is None or marks & {"setter"}:
            continue
        if marks & {"property", "cached_property"}:
            yield "property", part.name, text
        else:
            kind = "classmethod" if "classmethod" in marks else "staticmethod" if "staticmethod" in marks else "method"
            yield kind, part.name + signature(part, kind != "staticmethod"), text


def kinds(found):
    return {name: "class" if isinstance(node, ast.ClassDef) else "func" for name, node, _ in found}


def python_page(heading, about, module_name, package):
    found, top = list(exported(package)), kinds(exported(PACKAGE))
    own = kinds(found)
    out = [title(heading, "="), about + "\n", f".. py:module:: {module_name}\n"]
    wrong = []
    for section, kind in (("Functions", "func"), ("Classes", "class")):
        out.append(title(section, "-"))
        for name, node, module in found:
            if own[name] != kind:
                continue
            text = ast.get_docstring(node)
            if text is None:
                wrong.append(f"{(package / module).relative_to(ROOT)}.py: {name} has no docstring")
                continue
            if kind == "func":
                out.append(f".. py:function:: {name}{signature(node, False)}\n\n{indented(py_prose(text, top))}\n")
                continue
            made = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
            hidden = made is None or any(isinstance(base, ast.Name) and "Warning" in base.id for base in node.bases)
            out.append(f".. py:class:: {name}{'' if hidden else signature(made, True)}\n\n{indented(py_prose(text, top))}\n")
            if made is not None and ast.get_docstring(made):
                out.append(indented(py_prose(ast.get_docstring(made), top)) + "\n")
            for directive, head, words in members(node):
                out.append(indented(f".. py:{directive}:: {head}\n\n{indented(py_prose(words, top))}\n"))
    return "\n".join(out), wrong, len(found)


def main():
    folder = pathlib.Path(sys.argv[1])
    trouble = []
    pages = {"docs/c-api.rst": c_page()}
    about = "All that ``import sparse_autotune as sa`` brings, made from the docstrings. :doc:`README` shows how it is used."
    pages["python/api.rst"] = python_page("Python reference", about, "sparse_autotune", PACKAGE)
    about = "All of ``sa.distributed``, made from the docstrings. :doc:`/docs/distributed` shows how it is used."
    pages["python/api-distributed.rst"] = python_page("Python reference: several processes", about, "sparse_autotune.distributed", PACKAGE / "distributed")
    for path, (text, wrong, count) in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
        trouble += wrong
        print(f"api: {path} has {count} names")
    print("".join(f"{line}\n" for line in trouble), end="")
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
