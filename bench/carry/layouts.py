"""The parameters of programs' entries as bytes: how many, and which are padding."""

import os
import pathlib
import re
import subprocess

import program_text
from program_text import Trouble

PLAIN = {"int": 4, "unsigned": 4, "float": 4, "double": 8, "long long": 8, "spk_tensor_map": 128}


def balanced(text, end):
    """Where the parenthesis begins that ends at `end`."""
    depth = 0
    for at in range(end, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    raise Trouble(f"no parenthesis begins in {text[:80]!r}")


def signatures(text):
    """{entry: parameters as text} of the kernels that a source file defines; in a macro the entry may be the macro's argument: {"MACRO(name)": ...}."""
    found = {}
    text = program_text.without_comments(text)
    text = re.sub(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b.*$", " ", text, flags=re.MULTILINE)
    for match in re.finditer(r"__global__", text):
        head = text[match.end() : text.index("{", match.end())].replace("\\\n", " ")
        end = head.rindex(")")
        begin = balanced(head, end)
        name = re.search(r"(\w+)\s*$", head[:begin])[1]
        line = text.rfind("\n#define", 0, match.start())
        macro = (
            re.match(r"\n#define\s+(\w+)\(", text[line:])
            if line >= 0 and "\\\n" in text[line : match.start()] and not re.search(r"[^\\]\n", text[line + 1 : match.start()])
            else None
        )
        found[f"{macro[1]}({name})" if macro else name] = " ".join(head[begin + 1 : end].split())
    return found


def entries_of(source, program):
    """{entry: [types]} of one program: its file and what that includes."""
    texts = [path.read_text(encoding="utf-8") for path in program_text.closure(source, program)]
    other_names = {name: kind for text in texts for kind, name in re.findall(r"^typedef (\w+) (\w+);", text, re.MULTILINE)}
    found = {}
    for text in texts:
        for entry, parameters in signatures(text).items():
            macro = re.fullmatch(r"(\w+)\(\w+\)", entry)
            names = [entry] if not macro else [use for other in texts for use in re.findall(rf"^{macro[1]}\((\w+)", other, re.MULTILINE)]
            kinds = [type_of(parameter) for parameter in parameters.split(",")]
            found.update({name: [other_names.get(kind, kind) for kind in kinds] for name in names})
    return found


def type_of(parameter):
    """Of "const __grid_constant__ spk_tile_order order"."""
    if "*" in parameter:
        return "*"
    words = [word for word in parameter.split() if word not in ("const", "__grid_constant__")]
    return " ".join(words[:-1])


def headers_of(source, program, kinds):
    """The headers of a program that define some types."""
    defines = re.compile(rf"^\}} (?:{'|'.join(kinds)});", re.MULTILINE)
    return tuple(
        path.relative_to(source).as_posix()
        for path in program_text.closure(source, program)
        if path.suffix == ".h" and defines.search(path.read_text(encoding="utf-8"))
    )


PROGRAM = """#include <stdio.h>
#include <string.h>
{includes}
#define SHOW(type) {{ type all; memset(&all, 255, sizeof all); __builtin_clear_padding(&all); printf("%s ", #type); \\
    for (size_t i = 0; i < sizeof all; i++) printf("%02x", ((unsigned char *)&all)[i]); puts(""); }}
int main(void) {{ {shows} return 0; }}
"""


def masks_of(source, headers, kinds, folder):
    """{type: its bytes in hexadecimal, those of padding 00}, as the C compiler lays it out."""
    program = pathlib.Path(folder) / "layouts.c"
    program.write_text(
        PROGRAM.format(includes="\n".join(f'#include "{name}"' for name in headers), shows=" ".join(f"SHOW({kind})" for kind in kinds)), encoding="utf-8"
    )
    made = program.with_suffix("")
    words = [os.environ.get("CC", "gcc"), "-std=gnu11", "-w", "-I", source, "-I", source.parent / "include", "-o", made, program]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Trouble(f"the types of programs' parameters do not compile (a gcc from 11 on is needed): {done.stderr.strip()[:600]}")
    shown = subprocess.run([made], check=True, capture_output=True, text=True).stdout
    return dict(line.split() for line in shown.splitlines())


def layouts(source, folder):
    """The text that the double reads: "ENTRY MASK MASK", a line each, of all programs of a tree."""
    plain = {kind: "ff" * size for kind, size in PLAIN.items()} | {"*": "ff" * 8}
    made, lines = {}, {}
    for program in program_text.programs(source):
        known = entries_of(source, program)
        structs = tuple(sorted({kind for kinds in known.values() for kind in kinds} - set(plain)))
        headers = headers_of(source, program, structs) if structs else ()
        if (headers, structs) not in made:
            made[headers, structs] = plain | (masks_of(source, headers, structs, folder) if structs else {})
        for entry, kinds in known.items():
            line = f"{entry} {' '.join(made[headers, structs][kind] for kind in kinds)}"
            if lines.setdefault(entry, line) != line:
                raise Trouble(f"{entry}: two programs have this entry, with other parameters")
    return "".join(f"{line}\n" for _, line in sorted(lines.items()))
