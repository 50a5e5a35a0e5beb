#!/usr/bin/env python3
"""The members of the operations' problems in include/sparsek/operations.h, with what each is, from src/op/NAME/fields.def.

    scripts/header_fields.py                    writes what the tables say
    scripts/header_fields.py --check LIBRARY    writes nothing; fails where the header says something else, or libsparsek.so has other fields or values

What a field is stands in its table: in a comment behind its row, or in an indented one below it. A comment of its own line stands above the members that
follow. A field that has neither joins the next ones of its sort, "int64_t m, n, k; /* >= 0 */"; where there is none, its help is taken. Fields that an
operation takes from another one's folder are described there."""

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import operations_tables

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "include/sparsek/operations.h"
COLUMNS = 140

# The C type of a row's field; None: an enumeration of core.h, or int, by the row's last value.
TYPES = {
    "FIELD_SIZE": "int64_t",
    "FIELD_ITEMS": "int64_t",
    "FIELD_DTYPE": "spk_dtype",
    "FIELD_DTYPE_FACTORS": "spk_dtype",
    "FIELD_COMPUTE": "spk_dtype",
    "FIELD_SCALE": "spk_scale",
    "FIELD_LAYOUT": "spk_layout",
    "FIELD_BLOCK_LAYOUT": "spk_layout",
    "FIELD_TRANS": "spk_trans",
    "FIELD_TRANS_OF": "spk_trans",
    "FIELD_PART": None,
    "FIELD_FLAG_PART": "int",
    "FIELD_CHOICE": None,
    "FIELD_GROUPS": "int64_t",
    "FIELD_GROUP_AXIS": "spk_group_axis",
    "FIELD_LD": "int64_t",
    "FIELD_STRIDE": "int64_t",
    "FIELD_STRIDE_OUT": "int64_t",
    "FIELD_STRIDE_ASKED": "int64_t",
    "FIELD_HEADS": "int64_t",
    "FIELD_COUNT": "int64_t",
    "FIELD_COUNT_SAID": "int64_t",
    "FIELD_FLAG": "int",
    "FIELD_PROMISE": "int",
    "FIELD_FLAG_OF": "int",
    "FIELD_HEAD_STRIDE": "int64_t",
    "FIELD_BIAS": "spk_bias",
    "FIELD_ACTIVATION": "spk_activation",
    "FIELD_RESIDUAL": "spk_residual",
}
SORTS = {"FIELD_LD": "ld", "FIELD_HEAD_STRIDE": "head stride", "FIELD_STRIDE": "stride", "FIELD_STRIDE_OUT": "stride"}  # of others: their type
BYTES = {"int64_t": 8, "spk_scale": 16}  # of others 4
TOKEN = re.compile(
    r"""^\#include\ "(?P<path>[^"]+)" | ^(?P<kind>FIELD\w*)\((?P<given>(?:"[^"]*"|[^")])*)\), | (?P<comment>/\*.*?\*/) | (?P<other>\S)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


@dataclass
class Member:
    name: str
    kind: str  # its C type
    sort: str
    help: str = ""
    doc: str = ""  # a comment behind the row
    above: str = ""  # a comment of its own line
    elsewhere: bool = False  # another operation's folder says what it is


def enumerators() -> dict[str, str]:
    """The type of each enumerator of core.h."""
    text = (ROOT / "include/sparsek/core.h").read_text()
    return {name: kind for body, kind in re.findall(r"typedef enum \w+ \{(.*?)\} (\w+);", text, re.DOTALL) for name in re.findall(r"\b(SPK_\w+) =", body)}


def text_of(comment: str) -> str:
    return re.sub(r"\s*\n\s*\*?\s*", " ", comment[2:-2]).strip()


def member_of(kind: str, given: list[str], types: dict[str, str], where: str) -> Member:
    if kind not in TYPES:
        sys.exit(f"{where}: {kind}: scripts/header_fields.py does not know the type of such a field")
    last = {"FIELD_PART": 2, "FIELD_CHOICE": 1}.get(kind)
    of = TYPES[kind] or types.get(given[last], "int") if last else TYPES[kind]
    assert of
    return Member(given[0], of, SORTS.get(kind, of), given[-1].strip('"') if given[-1].startswith('"') else "")


def members_of(path: Path, folder: str, types: dict[str, str]) -> list[Member]:
    """Of the rows of a table, and of those that it includes."""
    made: list[Member] = []
    above = ""
    text = path.read_text()
    for found in TOKEN.finditer(text, text.index("*/") + 2):  # the first comment says what the file is
        where = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
        if found["other"]:
            sys.exit(f"{where}: neither a row, a comment nor an #include")
        if found["comment"]:
            if text[found.start() - 1] == "\n":
                above = text_of(found["comment"])
            elif made:
                made[-1].doc = text_of(found["comment"])
            continue
        if found["path"]:
            more = members_of(ROOT / "src" / found["path"], folder, types)
        else:
            given = [part.strip() for part in re.findall(r'(?:"[^"]*"|[^,"])+', found["given"])]
            more = [member_of(found["kind"], given, types, where)]
        if above:
            more[0].above, above = above, ""
        made += more
    if path.parent.name != folder:
        made = [Member(member.name, member.kind, member.sort, elsewhere=True) for member in made]
    return made


def groups_of(members: list[Member]) -> list[list[Member]]:
    """Those that one declaration declares."""
    groups: list[list[Member]] = []
    for member in members:
        last = groups[-1][-1] if groups else None
        if last and last.sort == member.sort and last.elsewhere == member.elsewhere and not last.doc and not member.above:
            groups[-1].append(member)
        else:
            groups.append([member])
    return groups


def struct_of(operation: str, types: dict[str, str]) -> str:
    """As clang-format finds it before it aligns comments and breaks lines."""
    problem, table = f"spk_{operation}", f"src/op/{operation}/fields.def"
    lines = [f"typedef struct {problem} {{", "    size_t struct_size;", f"    spk_operation operation; /* SPK_{operation.upper()} */"]
    at, covered = 12, ""  # covered: the type of the members that a comment above them speaks of
    for group in groups_of(members_of(ROOT / table, operation, types)):
        above = group[0].above
        doc = group[-1].doc or ("" if above else group[-1].help)
        covered = group[0].kind if above or (covered == group[0].kind and not doc) else ""
        if not (doc or covered or group[-1].elsewhere):
            sys.exit(f"{problem}.{group[-1].name}: nothing says what it is: its row in {table} needs a comment")
        line = f"    {group[0].kind} {', '.join(member.name for member in group)};"
        if doc and not above and len(f"{line} /* {doc} */") > COLUMNS:
            doc, above = "", doc
        lines += [f"    /* {above} */"] if above else []
        lines.append(f"{line} /* {doc} */" if doc else line)
        for member in group:
            size = BYTES.get(member.kind, 4)
            if at % min(size, 8):
                sys.exit(f"{problem}.{member.name}: there is a gap before it: a field of 4 bytes more must stand there")
            at += size
    if at % 8:
        lines.append("    int reserved; /* 0 */")
    return "\n".join([*lines, f"}} {problem};"])


def plain(text: str) -> str:
    """Without what clang-format chooses: spaces, and where lines of comments break."""
    return " ".join(re.sub(r"\n\s*\*(?!/)", " ", text).split())


def unlike_library(path: str, types: dict[str, str]) -> list[str]:
    """Members whose name or values the library has otherwise."""
    said = []
    for operation in operations_tables.read(path).values():
        members = members_of(ROOT / f"src/op/{operation.name}/fields.def", operation.name, types)
        if [member.name for member in members] != [field.name for field in operation.fields]:
            said.append(f"{operation.problem_type}: the library has the fields {', '.join(field.name for field in operation.fields)}")
            continue
        for member, field in zip(members, operation.fields, strict=True):
            known = [name for name, kind in types.items() if kind == member.kind]
            if field.values and field.kind != "DTYPE" and member.kind != "int" and len(field.values) != len(known):
                said.append(f"{operation.problem_type}.{member.name}: has the values {', '.join(field.values)}; {member.kind} has {', '.join(known)}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="LIBRARY", help="write nothing; fail where the header is not what the tables say, or libsparsek.so says")
    check = parser.parse_args().check
    types, text, stale = enumerators(), HEADER.read_text(), []
    operations = re.findall(r"^SPK_OP\((\w+)\)", (ROOT / "src/op/operations.def").read_text(), re.MULTILINE)
    for operation in operations:
        found = re.search(rf"typedef struct spk_{operation} \{{.*?\}} spk_{operation};", text, re.DOTALL)
        if not found:
            sys.exit(f"{HEADER.relative_to(ROOT)}: has no struct spk_{operation}")
        struct = struct_of(operation, types)
        if plain(struct) != plain(found[0]):
            stale.append(f"spk_{operation}")
            text = text[: found.start()] + struct + text[found.end() :]
    if stale and not check:
        HEADER.write_text(text)
        subprocess.run([shutil.which("clang-format-14") or "clang-format", "-i", str(HEADER)], check=True)
    for name in stale:
        print(f"{HEADER.relative_to(ROOT)}: {name}: " + ("is not what src/op says: scripts/header_fields.py writes it" if check else "written"))
    unlike = unlike_library(check, types) if check else []
    for line in unlike:
        print(line)
    if check and not stale and not unlike:
        print(f"header_fields: {len(operations)} operations")
    return 1 if check and (stale or unlike) else 0


if __name__ == "__main__":
    sys.exit(main())
