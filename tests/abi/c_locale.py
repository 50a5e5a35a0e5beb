#!/usr/bin/python3
"""Refuses calls that the process's locale decides: a comma for a point, letters that have no capital, messages in another encoding.

    tests/abi/c_locale.py BUILD       the objects of library, program and prover of BUILD, a build folder, and the formats in all sources
    tests/abi/c_locale.py EXTENSION   what the Python package's extension, a file, calls
    tests/abi/c_locale.py --test      the script itself, on small files with one fault each

src/base/c_locale.c alone makes such calls, in the C locale; src/base/json_text.c makes Jansson's there.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# By symbol. What prints by a va_list may print anything; of the others the formats are read in the sources. sscanf and strtol read whole numbers here, in which
# a locale has no say.
FORBIDDEN = re.compile(r"""^(
    _*(iso\w*_)?strto(d|f|ld|f\d+x?)(_l)?(_internal)? | atof | _*ctype_(b|tolower|toupper)(_loc)? | is(al|alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)(_l)? |
    to(upper|lower)(_l)? | strn?casecmp(_l)? | strcasestr | strcoll(_l)? | strxfrm(_l)? | strftime(_l)? | strptime | strfmon(_l)? | strfromd | (strerror|strsignal|perror|psignal|__xpg_strerror)(_r|_l)? |
    setlocale | localeconv | uselocale | newlocale | duplocale | nl_langinfo(_l)? | fnmatch | glob | regcomp | regexec | wordexp |
    mblen | mbto\w+ | mbr\w+ | mbsr?\w*to\w+ | wc\w*tomb\w* | wcs\w+ | btowc | wctob | tow\w+ | isw\w+ | fw?print[wW]\w* | wprintf |
    (__)?v\w*printf(_chk)? | (__)?v\w*scanf(_chk)? | _ZNSo.*_M_insertI[def]E.* | _ZNSi.*_M_extractI[def]E.*
)$""", re.VERBOSE)
JANSSON = re.compile(r"^json_(dump\w*|load\w*)$")
FREE = {"src/base/c_locale.c": FORBIDDEN, "src/base/json_text.c": JANSSON}

# By format: %f and the like, %'d, %Id, %lc, %ls, %m.
CALL = re.compile(r"\b(?:std::)?(f|d|s|sn|as|)printf\s*\(|\b(f|s|)scanf\s*\(")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
CONVERSION = re.compile(r"%(?:%|([-+ #0'I]*)(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(hh|h|ll|l|q|j|z|t|L)?([a-zA-Z]))")
SCANNED = re.compile(r"%(?:%|(\*?)(?:\d+)?(hh|h|ll|l|q|j|z|t|L)?([a-zA-Z\[]))")

TARGETS = ("sparsek_objects", "sparsek_cli", "sparsek_prover")
SOURCES = ("src", "cli", "prover", "python/src")


def objects(root, build):
    """(path of the source relative to the root, object file)"""
    for command in json.loads((build / "compile_commands.json").read_text()):
        path, output = pathlib.Path(command["file"]), command.get("output") or re.search(r" -o (\S+)", command["command"]).group(1)
        if path.is_relative_to(root) and not path.is_relative_to(build) and any(f"{target}.dir/" in output for target in TARGETS):
            yield str(path.relative_to(root)), pathlib.Path(command["directory"]) / output


def undefined(path, dynamic=False):
    listing = subprocess.run(["nm", "--undefined-only", *(["-D"] if dynamic else []), path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted({line.split()[-1].split("@")[0] for line in listing.splitlines() if line.strip()})


def check_symbols(root, build):
    found = 0
    for source, path in objects(root, build):
        found += 1
        for symbol in undefined(path):
            if (FORBIDDEN.match(symbol) or JANSSON.match(symbol)) and not (source in FREE and FREE[source].match(symbol)):
                yield source, f"calls {symbol}"
    if found == 0:
        yield str(build), "has no objects of " + ", ".join(TARGETS)


def check_extension(path):
    for symbol in undefined(path, dynamic=True):
        if FORBIDDEN.match(symbol):
            yield str(path), f"calls {symbol}"


def arguments(text, at):
    """What stands between the parenthesis before `at` and the one that closes it."""
    depth, i = 1, at
    while depth and i < len(text):
        string = STRING.match(text, i)
        if string:
            i = string.end()
            continue
        if text[i] == "'" and i + 2 < len(text):  # a character
            i += 4 if text[i + 1] == "\\" else 3
            continue
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        i += 1
    return text[at:i]


def without_comments(text):
    blank = lambda found: found.group(0) if found.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", found.group(0))
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|/\*.*?\*/|//[^\n]*', blank, text, flags=re.DOTALL)


def check_formats(root):
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*")) if (root / folder).is_dir() else []:
            if path.suffix not in (".c", ".h", ".cpp", ".def") or str(path.relative_to(root)) in FREE:
                continue
            text = without_comments(path.read_text())
            for call in CALL.finditer(text):
                if "format(" in text[max(0, call.start() - 24):call.start()]:  # the attribute
                    continue
                place = f"{path.relative_to(root)}:{text.count(chr(10), 0, call.start()) + 1}"
                inside = arguments(text, call.end())
                strings = STRING.findall(re.sub(r"\bPRI([diuxX])\w+", r'"\1"', inside))
                if not strings:
                    yield place, "prints by a format that is no literal"
                joined = "".join(strings)
                scans = call.group(0).rstrip("( ").endswith("scanf")
                for flags, length, letter in (SCANNED if scans else CONVERSION).findall(joined):
                    if letter and (letter in "aAeEfFgGmCS" or (letter in "cs[" and length == "l") or (not scans and set(flags) & set("'I"))):
                        yield place, f"{call.group(0).rstrip('( ')} of %{flags}{length}{letter}: spk_snprintf and spk_fprintf print it in the C locale"


def check(root, build):
    return list(check_symbols(root, build)) + list(check_formats(root))


def test():
    """Each file has the one fault that stands beside it, or none."""
    head = "#include <ctype.h>\n#include <fnmatch.h>\n#include <stdarg.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <strings.h>\n#include <time.h>\n"
    bodies = [
        ('char t[9]; return snprintf(t, 9, "%d %s %5.3s %c %zu%%f", n, "f", "a", 102, sizeof t);', None),
        ("return n >= '0' && n <= '9';", None),
        ('/* printf("%f", 1.) */ return n;', None),
        ('return sscanf("1", "%d", &n);', None),
        ('char t[9]; return snprintf(t, 9, "%d %.2f", n, n / 2.0);', "snprintf of %f"),
        ('return printf("a" "%-*.3g", n, n / 2.0);', "printf of %-g"),
        ('return fprintf(stderr, "%\'d", n);', "fprintf of %'d"),
        ('return printf(n ? "%d" : "%e", n);', "printf of %e"),
        ('float f; return sscanf("1", "%f", &f);', "sscanf of %f"),
        ("const char *f = t(n); return printf(f, n);", "a format that is no literal"),
        ('return (int)strtod(t(n), NULL);', "calls strtod"),
        ('return (int)atof(t(n));', "calls (strtod|atof)"),
        ('return isspace(n);', "calls (__ctype_b_loc|isspace)"),
        ('return toupper(n);', "calls (__ctype_toupper_loc|toupper)"),
        ('return strncasecmp(t(n), t(n + 1), 3);', "calls strncasecmp"),
        ('return strcoll(t(n), t(n + 1));', "calls strcoll"),
        ('return strerror(n)[0];', "calls strerror"),
        ('return fnmatch(t(n), t(n + 1), 0);', "calls fnmatch"),
        ('char s[9]; struct tm tm = {0}; return (int)strftime(s, 9, t(n), &tm);', "calls strftime"),
        ('char s[9]; va_list l; va_start(l, n); n = vsnprintf(s, 9, t(n), l); va_end(l); return n;', "calls (__)?vsnprintf(_chk)?"),
    ]
    for body, expected in bodies:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            source, build = root / "src/x.c", root / "build"
            output = build / "sparsek_objects.dir/x.c.o"
            source.parent.mkdir()
            output.parent.mkdir(parents=True)
            source.write_text(f"#define _GNU_SOURCE\n{head}const char *t(int n);\nint f(int n, ...);\nint f(int n, ...)\n{{\n    {body}\n}}\n")
            subprocess.run(["gcc", "-w", "-O2", "-D_FORTIFY_SOURCE=2", "-c", source, "-o", output], check=True)
            (build / "compile_commands.json").write_text(json.dumps([{"directory": str(build), "file": str(source), "output": str(output), "command": ""}]))
            found = [fault for _, fault in check(root, build)]
            if len(found) != (expected is not None) or (expected and not re.match(f"({expected})", found[0].replace("prints by ", ""))):
                sys.exit(f"c_locale: of {body} {expected} was to be found, not {found}")
    print(f"c_locale: {len(bodies)} files judged as they are")


if __name__ == "__main__":
    if sys.argv[1:] == ["--test"]:
        test()
    elif len(sys.argv) == 2:
        path = pathlib.Path(sys.argv[1]).resolve()
        faults = list(check_extension(path)) if path.is_file() else check(pathlib.Path(__file__).resolve().parents[2], path)
        for place, fault in faults:
            print(f"{place}: {fault}")
        if faults:
            sys.exit("c_locale: src/base/c_locale.h has what does the same in the C locale")
        print("c_locale: nothing depends on the process's locale")
    else:
        sys.exit(__doc__)
