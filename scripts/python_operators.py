#!/usr/bin/env python3
"""Python's flags, words and operators: one list, of which the extension's headers and a module of the package are made.

    scripts/python_operators.py            writes them
    scripts/python_operators.py --check    writes nothing; fails where a file is not what the lists say

Numbers of the library's enumerations come from its headers. Saved programs hold flags and operators: bits and arguments are added behind what there is,
and nothing is renamed."""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# A flag takes the next bit, or bits; of which operators it is, and what it says.
FLAGS = [
    ("TRANS", 1, "SPMM", "the sparse operand is transposed"),
    ("RIGHT", 1, "SPMM", "the sparse operand stands on the right"),
    ("FINITE", 1, "SPMM SDDMM GEMM", "a promise: dense operands hold no inf or NaN"),
    ("TF32", 1, "SPMM SDDMM GEMM", "float32 may be rounded to TF32"),
    ("ACTIVATION", 3, "SPMM GEMM", "a number of ACTIVATIONS"),
    ("FACTOR", 1, "SPMM GEMM", "the product is multiplied with what `out` holds; of dense operands, with the residual"),
    ("WIDE", 1, "GEMM", "sums of float16 and bfloat16 are not rounded: the result is float32"),
    ("WHOLE", 1, "GEMM", "no row or column lies behind the last group"),
    ("ROWS_FIRST", 1, "ATTENTION", "tensors are [batch, rows, heads, depth]"),
    ("CAUSAL", 1, "ATTENTION", "a query sees no key behind the one beside it"),
    ("TOP_LEFT", 1, "ATTENTION", "the first query stands beside the first key"),
    ("BOTTOM_RIGHT", 1, "ATTENTION", "the last query stands beside the last key"),
    ("AS_QUERY", 1, "", "of direct_attention: the heads of a row of the result lie side by side where those of q do"),
    ("DYNAMIC", 1, "ATTENTION", "the mask is new at nearly every call: on CUDA nobody waits for it"),
]
FAMILIES = ("SPMM", "SDDMM", "GEMM", "ATTENTION")

# Which gradients _spmm_gradients makes: a bit each.
WANTS = ["DENSE", "VALUES"]

# Numbers that only the operators know.
NUMBERS = {
    "REPORT": ["TUNE", "EXPLAIN", "LIST", "RACE", "TUNE_FRESH"],  # `action` of a report
}

# Words for the library's enumerations: of which header, of which enumeration, what its names begin with; the words that Python says otherwise.
WORDS = {
    "Activation": ("core", "spk_activation", "SPK_ACT_", {"gelu_erf": "gelu"}),
    "Diagonal": ("core", "spk_diagonal", "SPK_DIAGONAL_", {"none": None}),
    "Effort": ("tune", "spk_effort", "SPK_TUNE_", {}),
    "Tuning": ("tune", "spk_tuning", "SPK_TUNING_", {}),
}

# Arguments that several operators take.
GROUPS = {
    "SPARSE": "Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor? bias, int rows, int cols, int flags",
    "SAMPLE": "Tensor x, Tensor y, Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols, int flags",
    "DENSE": "Tensor a, Tensor b, Tensor? bias, Tensor? residual",
    "SCALED_SPARSE": "Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, int rows, int cols, int flags",
    "SCALES": "Tensor? scale_a, Tensor? scale_b, Tensor? bias, int tile_a_rows, int tile_a_cols, int tile_b_rows, int tile_b_cols, int result",
    "QKV": "Tensor q, Tensor k, Tensor v",
    "ATTENTION_OPTIONS": "Tensor? row_offsets, Tensor? col_indices, int block_rows, int block_cols, int mask_heads, int mask_items, int window_left, "
    "int window_right, int sinks, float? scale, float softcap, int flags, Tensor? query_ends, Tensor? key_ends, Tensor? page_table, "
    "Tensor? tile_numbers, Tensor? tile_bits",
    "RESULTS": "Tensor grad_o, Tensor? grad_lse, Tensor o, Tensor lse",
    "REPORT": "int action, int rounds",
}
MAY_BE_LEFT_AWAY = ("query_ends", "key_ends", "page_table", "tile_numbers", "tile_bits")  # None by default in the public operators, which {NAME=None} marks

# Of a struct that holds a group: what its members are.
MEMBERS = {
    "row_offsets": "with col_indices: a mask of blocks",
    "scale": "none: 1 / sqrt(depth)",
    "query_ends": "packed sequences; key_ends, too",
    "key_ends": "without query_ends, or with pages: how many keys there are of each item or sequence",
    "tile_numbers": "with tile_bits, and a mask",
}

# Schemas, and the C++ functions that implement them where these have another name. Those that begin with an underscore know nothing of gradients.
OPERATORS = {
    "spmm({SPARSE}) -> Tensor": "",
    "sddmm({SAMPLE}) -> Tensor": "",
    "_spmm({SPARSE}, int version) -> Tensor": "raw_spmm",
    "_spmm_out({SPARSE}, int version, Tensor(a!) out) -> ()": "raw_spmm_out",
    "_spmm_added({SPARSE}, int version, Tensor residual, Tensor(a!) out) -> ()": "raw_spmm_added",
    "_sddmm({SAMPLE}, int version) -> Tensor": "raw_sddmm",
    "_sddmm_out({SAMPLE}, int version, Tensor(a!) out) -> ()": "raw_sddmm_out",
    "_spmm_gradients(Tensor values, Tensor row_offsets, Tensor col_indices, Tensor dense, Tensor gradient, int rows, int cols, int flags, int version, "
    "int want) -> (Tensor?, Tensor?)": "raw_gradients",
    "gemm({DENSE}, Tensor? offs, int flags) -> Tensor": "",
    "_gemm({DENSE}, Tensor? offs, int flags) -> Tensor": "gemm",
    "_gemm_out({DENSE}, int flags, Tensor(a!) out) -> ()": "raw_gemm_out",
    "scaled_spmm({SCALED_SPARSE}, {SCALES}) -> Tensor": "",
    "scaled_gemm(Tensor a, Tensor b, int flags, {SCALES}) -> Tensor": "",
    "_report_scaled_spmm({SCALED_SPARSE}, {SCALES}, {REPORT}) -> str": "report_scaled_spmm",
    "_report_scaled_gemm(Tensor a, Tensor b, int flags, {SCALES}, {REPORT}) -> str": "report_scaled_gemm",
    "attention({QKV}, {ATTENTION_OPTIONS=None}) -> Tensor": "",
    "attention_lse({QKV}, {ATTENTION_OPTIONS=None}) -> (Tensor, Tensor)": "",
    "_attention({QKV}, {ATTENTION_OPTIONS}, int version) -> Tensor": "raw_attention",
    "_attention_lse({QKV}, {ATTENTION_OPTIONS}, int version) -> (Tensor, Tensor)": "raw_attention_lse",
    "attention_backward({RESULTS}, {QKV}, {ATTENTION_OPTIONS=None}) -> (Tensor, Tensor, Tensor)": "",
    "_attention_backward({RESULTS}, {QKV}, {ATTENTION_OPTIONS}, int version) -> (Tensor, Tensor, Tensor)": "raw_attention_backward",
    "_report_gemm({DENSE}, Tensor? offs, int flags, {REPORT}) -> str": "report_gemm",
    "_report_spmm({SPARSE}, {REPORT}) -> str": "report_spmm",
    "_report_sddmm({SAMPLE}, {REPORT}) -> str": "report_sddmm",
    "_inspect(Tensor row_offsets, Tensor col_indices, int rows, int cols, int block_rows, int block_cols) -> str": "inspect",
}

# Functions that Python calls past the dispatcher, by position: with the arguments of an operator, or these.
DIRECT = {
    "direct_spmm": "_spmm",
    "direct_gradients": "_spmm_gradients",
    "direct_attention": "{QKV}, int left, int right, int first, float? scale, float softcap, int flags, bool may_share_heads",
}

CPP = {
    "Tensor": "const Tensor &",
    "Tensor?": "const std::optional<Tensor> &",
    "Tensor(a!)": "Tensor ",
    "int": "int64_t ",
    "float": "double ",
    "float?": "std::optional<double> ",
}
PYTHON = {"Tensor": "Tensor", "Tensor?": "Tensor | None", "int": "int", "float": "float", "float?": "float | None", "bool": "bool"}
MADE_BY = "Made by scripts/python_operators.py"


def parts_of(operator: str) -> tuple[str, str, str]:
    """Name, arguments and result."""
    found = re.fullmatch(r"(\w+)\((.*)\) -> (.*)", operator)
    assert found, operator
    return found[1], found[2], found[3]


def arguments_of(text: str) -> list[tuple[str, str]]:
    """Types and names of "TYPE NAME, ...", where {GROUP} stands for a group's; or those of the operator of this name."""
    text = next((given for name, given, _ in map(parts_of, OPERATORS) if name == text), text)
    whole = re.sub(r"\{(\w+)(?:=None)?\}", lambda found: GROUPS[found[1]], text)
    return [(kind, name) for kind, name in (argument.split() for argument in whole.split(", "))]


def schema_of(text: str) -> str:
    def written(found: re.Match[str]) -> str:
        arguments = GROUPS[found[1]]
        return re.sub(rf"\b({'|'.join(MAY_BE_LEFT_AWAY)})\b", r"\1=None", arguments) if found[2] else arguments

    return re.sub(r"\{(\w+)(=None)?\}", written, text)


def parameters_of(text: str) -> str:
    """Of an operator's function, with the groups' macros."""
    made = []
    for part in text.split(", "):
        kind, _, name = part.partition(" ")
        made.append(f"{part[1:-1].removesuffix('=None')}_PARAMETERS" if part.startswith("{") else CPP[kind] + name)
    return ", ".join(made)


def result_of(text: str) -> str:
    if text == "()":
        return "void"
    kinds = {"str": "std::string", "Tensor": "Tensor", "Tensor?": "std::optional<Tensor>"}
    made = [kinds[kind] for kind in text.strip("()").split(", ")]
    return made[0] if len(made) == 1 else f"std::tuple<{', '.join(made)}>"


def in_lines(text: str, width: int) -> list[str]:
    """Broken behind commas."""
    lines = [""]
    for part in re.split(r"(?<=, )", text):
        if lines[-1] and len(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return lines


def macro(lines: list[str]) -> str:
    return " \\\n".join(line.rstrip() for line in lines)


def bits() -> dict[str, tuple[int, int]]:
    """Of each flag its lowest bit, and how many it has."""
    made, next_bit = {}, 0
    for name, width, _, _ in FLAGS:
        made[name] = (next_bit, width)
        next_bit += width
    return made


def enumeration(header: str, name: str, begin: str) -> dict[str, int]:
    """Words and numbers of an enumeration of a public header."""
    text = (ROOT / f"include/sparsek/{header}.h").read_text()
    found = re.search(rf"typedef enum {name} \{{(.*?)\}} {name};", text, re.S)
    if not found:
        sys.exit(f"include/sparsek/{header}.h: has no enumeration {name}")
    body = re.sub(r"/\*.*?\*/", "", found[1], flags=re.S)
    return {word.lower(): int(number) for word, number in re.findall(rf"\b{begin}(\w+) = (\d+)", body)}


def words(kind: str) -> dict[str, int]:
    header, name, begin, renamed = WORDS[kind]
    made = {renamed.get(word, word): number for word, number in enumeration(header, name, begin).items()}
    return {word: number for word, number in made.items() if word is not None}


def flags_header() -> str:
    rows = []
    for name, (bit, width) in bits().items():
        said = next(doc for flag, _, _, doc in FLAGS if flag == name)
        if width == 1:
            rows.append(f"    FLAG_{name} = {1 << bit}, /* {said} */")
        else:
            rows += [f"    FLAG_{name}_SHIFT = {bit}, /* {said} */", f"    FLAG_{name}_MASK = {(1 << width) - 1},"]
    known = []
    for family in FAMILIES:
        parts = [f"FLAG_{name}_MASK << FLAG_{name}_SHIFT" if width > 1 else f"FLAG_{name}" for name, width, of, _ in FLAGS if family in of.split()]
        known.append(f"    FLAGS_OF_{family} = {' | '.join(parts)},")
    numbers = [f"enum : int64_t {{ {', '.join(f'{kind}_{name} = {i}' for i, name in enumerate(names))} }};" for kind, names in NUMBERS.items()]
    return "\n".join(
        [
            f"/* Flags and numbers that the operators are given. {MADE_BY}. */",
            "#pragma once",
            "",
            "#include <cstdint>",
            "",
            "// clang-format off",
            "namespace sparse_autotune {",
            "",
            "enum : int64_t {",
            *rows,
            "};",
            "",
            "/* Those that an operator knows. */",
            "enum : int64_t {",
            *known,
            "};",
            "",
            f"enum : int64_t {{ {', '.join(f'WANT_{name} = {1 << i}' for i, name in enumerate(WANTS))} }};",
            *numbers,
            "",
            "} // namespace sparse_autotune",
            "",
        ]
    )


def places(names: list[str], last: str) -> str:
    return f"enum {{ {', '.join([*(name.upper() for name in names), last])} }};"


def members_of(group: str) -> list[str]:
    made = []
    for kind, name in arguments_of(f"{{{group}}}"):
        held = CPP[kind].removeprefix("const ").replace("&", "")
        made.append(f"    {held}{name};" + (f" /* {MEMBERS[name]} */" if name in MEMBERS else ""))
    return made


def operators_header() -> str:
    made = [
        f"/* The operators: their schemas, and the parameters of the functions that implement them. {MADE_BY}. */",
        "#pragma once",
        "",
        "#include <optional>",
        "#include <string>",
        "#include <tuple>",
        "",
        '#include "../state.h"',
        "",
        "// clang-format off",
        "/* Parameters that several functions have, and their names, to hand them on. */",
    ]
    for name, text in GROUPS.items():
        arguments = arguments_of(text)
        for what, listed in (("PARAMETERS", [CPP[kind] + argument for kind, argument in arguments]), ("ARGUMENTS", [argument for _, argument in arguments])):
            made.append(macro([f"#define {name}_{what}", *(f"    {line}" for line in in_lines(", ".join(listed), 130))]))
    rows = []
    for text, function in OPERATORS.items():
        name, given, result = parts_of(text)
        schema = [f'        "{line}"' for line in in_lines(schema_of(text), 120)]
        parameters = [f"        {line}" for line in in_lines(f"({parameters_of(given)}), {result_of(result)})", 128)]
        rows += [f"    ROW({name}, {function or name},", *schema[:-1], f"{schema[-1]},", *parameters]
    made += ["", "/* ROW(name, function, schema, (the function's parameters), what it returns) */", macro(["#define OPERATORS(ROW)", *rows])]
    spmm, gradients = arguments_of(DIRECT["direct_spmm"]), arguments_of(DIRECT["direct_gradients"])
    made += [
        "",
        "namespace sparse_autotune {",
        "",
        "/* Where the arguments of _spmm stand: tensors, then whole numbers. */",
        places([name for kind, name in spmm if kind.startswith("Tensor")], "SPMM_TENSORS"),
        places([name for kind, name in spmm if kind == "int"], "SPMM_NUMBERS"),
        "/* So many has _spmm_gradients. */",
        f"enum {{ GRADIENTS_TENSORS = {sum(kind == 'Tensor' for kind, _ in gradients)}, GRADIENTS_NUMBERS = {sum(kind == 'int' for kind, _ in gradients)} }};",
        "/* Where those of direct_attention stand. */",
        "struct DirectAttention {",
        f"    {places([name for _, name in arguments_of(DIRECT['direct_attention'])], 'ARGUMENTS')}",
        "};",
        "",
        "/* What an operator of attention gets beside q, k and v. */",
        "struct AttentionOptions {",
        *members_of("ATTENTION_OPTIONS"),
        "};",
        "",
        "} // namespace sparse_autotune",
        "",
    ]
    return "\n".join(made)


def literal(kind: str) -> str:
    return f"{kind} = Literal[{', '.join(f'{chr(34)}{word}{chr(34)}' for word in words(kind))}]"


def mapping(pairs: dict[str, int]) -> str:
    return "{" + ", ".join(f'"{word}": {number}' for word, number in pairs.items()) + "}"


def python_module() -> str:
    rows = []
    for name, (bit, width) in bits().items():
        said = next(doc for flag, _, _, doc in FLAGS if flag == name)
        rows.append(f"{name} = {1 << bit}  # {said}" if width == 1 else f"{name}_SHIFT, {name}_MASK = {bit}, {(1 << width) - 1}  # {said}")
    known = []
    for family in FAMILIES:
        parts = [f"{name}_MASK << {name}_SHIFT" if width > 1 else name for name, width, of, _ in FLAGS if family in of.split()]
        known.append(f"OF_{family} = {' | '.join(parts)}")
    activations = mapping(words("Activation"))
    options = arguments_of("{ATTENTION_OPTIONS}")
    return "\n".join(
        [
            f'"""Flags of the operators, and numbers of options. {MADE_BY}, as the extension\'s are."""',
            "",
            "from __future__ import annotations",
            "",
            "from typing import Literal",
            "",
            *rows,
            "",
            "# The flags that an operator knows.",
            *known,
            "",
            literal("Activation"),
            f"ACTIVATIONS: dict[str | None, int] = {{None: 0, {activations[1:]}",
            literal("Diagonal"),
            literal("Effort"),
            f"EFFORTS = {mapping(words('Effort'))}",
            literal("Tuning"),
            f"TUNINGS = {mapping(words('Tuning'))}",
            "",
            f"{', '.join(f'WANT_{name}' for name in WANTS)} = {', '.join(str(1 << i) for i, _ in enumerate(WANTS))}  # of _spmm_gradients",
            *(f"REPORT_{name} = {i}" for i, name in enumerate(NUMBERS["REPORT"])),
            "",
            "# Of what the operators of attention take beside q, k and v: how much it is, where its tensors, its flags and its page table stand.",
            f"ATTENTION_OPTIONS = {len(options)}",
            f"ATTENTION_TENSORS = ({', '.join(str(i) for i, (kind, _) in enumerate(options) if kind.startswith('Tensor'))})",
            f"ATTENTION_FLAGS, ATTENTION_PAGES = {[name for _, name in options].index('flags')}, {[name for _, name in options].index('page_table')}",
            "",
        ]
    )


def stubs() -> str:
    """The extension's own, with the functions that are called by position."""
    text = (ROOT / "python/sparse_autotune/_C.pyi").read_text()
    for name, arguments in DIRECT.items():
        given = ", ".join(f"{argument}: {PYTHON[kind]}" for kind, argument in arguments_of(arguments))
        text, count = re.subn(rf"def {name}\([^)]*\) -> Any: \.\.\.", f"def {name}(\n    {given}, /\n) -> Any: ...", text)
        if count != 1:
            sys.exit(f"python/sparse_autotune/_C.pyi: has no function {name}")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not what the lists say")
    check = parser.parse_args().check
    stale = 0
    for name, text in (
        ("python/src/generated/flags.h", flags_header()),
        ("python/src/generated/operators.h", operators_header()),
        ("python/sparse_autotune/_C.pyi", stubs()),
        ("python/sparse_autotune/_numbers.py", python_module()),
    ):
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        if check:
            print(f"{name}: is not what scripts/python_operators.py makes; run it")
            stale = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"{name}: written")
    if check and not stale:
        print(f"python_operators: {len(FLAGS)} flags, {len(OPERATORS)} operators")
    return stale


if __name__ == "__main__":
    sys.exit(main())
