#!/usr/bin/env python3
"""Writes Python's reference pages of the site, from what stands in the sources: api.py FOLDER. Nothing is imported or compiled.

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
PACKAGE = ROOT / "python" / "sparse_autotune"


def escaped(text):
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def indented(text, by=3):
    return textwrap.indent(text, " " * by)


def title(text, line):
    return f"{text}\n{line * len(text)}\n"


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
    pages = {}
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
