"""Whether two object files are the same machine code: the sections that are loaded, and their relocations, by the names of what they refer to.

What a debugger alone reads does not count, nor do names of static functions. A row's object holds the hash of its own sources as text, which does
not count either.
"""

import collections
import json
import shlex
import struct

from program_text import Trouble

ALLOCATED = 2  # of a section's flags
NOTHING = 8  # SHT_NOBITS
RELOCATIONS = 4  # SHT_RELA
SYMBOLS = 2  # SHT_SYMTAB
LEFT_OUT = (".eh_frame", ".note")
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")

Section = collections.namedtuple("Section", "name kind flags data size link info")


def text_at(data, begin):
    return data[begin : data.index(b"\0", begin)].decode()


def read_sections(path):
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise Trouble(f"{path}: no object file of 64 bits")
    header = HEADER.unpack_from(data)
    raw = [SECTION.unpack_from(data, header[6] + i * header[11]) for i in range(header[12])]
    names = data[raw[header[13]][4] :][: raw[header[13]][5]]
    found = []
    for name, kind, flags, _, offset, size, link, info, *_ in raw:
        found.append(Section(text_at(names, name), kind, flags, b"" if kind == NOTHING else data[offset : offset + size], size, link, info))
    return found


def read_symbols(sections):
    """[what each symbol stands for]: a global one by its name, another by its place."""
    table = next((s for s in sections if s.kind == SYMBOLS), None)
    if table is None:
        return [], {}
    found, defined = [], {}
    for name, info, _, index, value, _ in SYMBOL.iter_unpack(table.data):
        title = text_at(sections[table.link].data, name)
        place = f"{sections[index].name}+{value}" if 0 < index < len(sections) else f"#{index}+{value}"
        is_local = info >> 4 == 0
        found.append(place if is_local else title)
        if not is_local and index != 0:
            defined[title] = place
    return found, defined


def is_loaded(section):
    return bool(section.flags & ALLOCATED) and not section.name.startswith(LEFT_OUT)


def code_of(path, source_hash=None, rename=lambda name: name):
    """What of an object file is compared. source_hash: of the row, as text in it."""
    sections = read_sections(path)
    symbols, defined = read_symbols(sections)
    data, relocations = [], []
    for section in sections:
        if is_loaded(section):
            content = section.data.replace(source_hash.encode(), b"0" * 16) if source_hash else section.data
            data.append((rename(section.name), section.size, content))
        if section.kind == RELOCATIONS and is_loaded(sections[section.info]):
            entries = [(offset, info & 0xFFFFFFFF, rename(symbols[info >> 32]), addend) for offset, info, addend in RELOCATION.iter_unpack(section.data)]
            relocations.append((rename(sections[section.info].name), entries))
    return data, relocations, {rename(name): rename(place) for name, place in defined.items()}


def read_commands(build):
    """{source below the tree: (object's path, the words that compile it)} of a build folder, for the library's objects."""
    listed = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    root = build.parent.parent
    found = {}
    for entry in listed:
        if "sparsek_objects.dir" in entry.get("output", entry["command"]) and entry["file"].startswith(f"{root}/src/"):
            words = shlex.split(entry["command"])
            found[entry["file"][len(f"{root}/") :]] = (build / words[words.index("-o") + 1], words)
    return found


def source_hash(words):
    """Of the row that the words compile, which its object holds as text; None: it is no file of rows."""
    found = [word.partition("=")[2].strip('"') for word in words if word.startswith("-DSPK_SOURCE_HASH=")]
    return found[0] if found else None


def options_of(words, root, source_hash=None, rename=lambda name: name):
    """The words without what differs by the folder, the row's hash and where to write."""
    kept = []
    skip = False
    for word in words:
        if skip or word in ("-c", "-o", "-MF", "-MT", "-MQ", "-MD"):
            skip = word in ("-o", "-MF", "-MT", "-MQ") and not skip
            continue
        word = word.replace(str(root), "ROOT")
        kept.append(rename(word.replace(source_hash, "HASH") if source_hash else word))
    return kept
