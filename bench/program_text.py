"""What of a device program the compiler reads with given options, as tokens: without comments and white space, with what it includes in place, and
without the branches of #if that the options leave out.

Two programs of the same tokens are the same program. Macros are not expanded: their definitions are tokens as well. Where a condition cannot be worked
out, all of its branches stay: then a change of any of them counts.
"""

import functools
import operator
import re

TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.\'])*|<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||::|[-+*/%&|^=]=|##|\S'
)
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)")
FOLDERS = ("backend/cuda/kernels", "backend/cuda/helpers")  # of programs, by their names alone
DEEPEST = 50  # of macros in macros, and of files in files


class Trouble(Exception):
    pass


class Unknown(Exception):
    """A condition that is not understood."""


def without_comments(text):
    return COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else " ", text)


@functools.cache
def read(path):
    """[(directive or "", its text, its tokens)] of a file, a line each."""
    text = without_comments(re.sub(r"\\\r?\n", " ", path.read_text(encoding="utf-8")))
    lines = []
    for line in text.splitlines():
        match = DIRECTIVE.match(line)
        if match:
            lines.append((match[1] or "#", match[2].strip(), tuple(TOKEN.findall(line))))
        elif line.strip():
            lines.append(("", "", tuple(TOKEN.findall(line))))
    return tuple(lines)


# ---------------------------------------------------------------------------------------------------- conditions

LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


def quotient(a, b):
    """As in C, towards 0."""
    if b == 0:
        raise Unknown
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


COMPUTE = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "/": quotient,
    "%": lambda a, b: a - b * quotient(a, b),
}


def expand(words, macros, depth=0):
    """Object-like macros in place; a name that is none is 0, as for the compiler."""
    if depth > DEEPEST:
        raise Unknown
    found, at = [], 0
    while at < len(words):
        word = words[at]
        if word == "defined":
            name = words[at + 2] if words[at + 1 : at + 2] == ["("] else words[at + 1] if at + 1 < len(words) else ""
            at += 4 if words[at + 1 : at + 2] == ["("] else 2
            found.append("1" if name in macros else "0")
            continue
        at += 1
        if not re.match(r"[A-Za-z_]", word):
            found.append(word)
        elif words[at : at + 1] == ["("] or macros.get(word, "") is None:  # a macro with arguments
            raise Unknown
        elif word in macros:
            found += expand(TOKEN.findall(macros[word]), macros, depth + 1)
        else:
            found.append({"true": "1"}.get(word, "0"))
    return found


class Expression:
    """Of integers, as C has them in conditions; Unknown where it is something else."""

    def __init__(self, words):
        self.words = words

    def next(self):
        return self.words.pop(0) if self.words else ""

    def value(self):
        word = self.next()
        if word in ("!", "-", "+", "~"):
            value = self.value()
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[word]
        if word == "(":
            value = self.level(0)
            if self.next() != ")":
                raise Unknown
            return value
        number = NUMBER.fullmatch(word)
        if number is None:
            raise Unknown
        octal = len(number[1]) > 1 and number[1][0] == "0" and number[1][1] not in "xX"
        return int(number[1], 8 if octal else 0)

    def level(self, at):
        """From the operators that bind least."""
        if at == len(LEVELS):
            return self.value()
        value = self.level(at + 1)
        while self.words and self.words[0] in LEVELS[at]:
            compute = COMPUTE[self.next()]
            value = compute(value, self.level(at + 1))
        return value


def holds(condition, macros):
    """Of #if and #elif."""
    expression = Expression(expand(TOKEN.findall(condition), macros))
    value = expression.level(0)
    if expression.words:
        raise Unknown
    return value != 0


# ---------------------------------------------------------------------------------------------------- a program


def macros_of(options):
    """Of the compiler's options: "-DNAME=VALUE", and what NVRTC defines for an architecture."""
    macros = {"__CUDACC__": "1", "__CUDACC_RTC__": "1", "__cplusplus": "201703L"}
    for option in options.split():
        if option.startswith("-D"):
            name, _, value = option[2:].partition("=")
            macros[name] = value or "1"
        match = re.fullmatch(r"--gpu-architecture=sm_(\d+)(a?)", option)
        if match:
            macros["__CUDA_ARCH__"] = match[1] + "0"
            if match[2]:
                macros[f"__CUDA_ARCH_FEAT_SM{match[1]}_ALL"] = "1"
    return macros


class Reader:
    def __init__(self, source, options):
        self.source, self.macros, self.tokens = source, macros_of(options), []

    def define(self, text):
        match = re.match(r"(\w+)(\(?)\s*(.*)", text, re.DOTALL)
        if match:
            self.macros[match[1]] = None if match[2] else match[3]

    def include(self, text, depth):
        name = self.macros.get(text, text) or ""
        path = self.source / name.strip('"')
        if not name.startswith('"') or not path.is_file():
            raise Trouble(f"#include {text}: there is no such file in {self.source}")
        self.file(path, depth + 1)

    def branch(self, word, text):
        """True, False, or None: it cannot be told."""
        if word in ("ifdef", "ifndef"):
            return (text in self.macros) == (word == "ifdef")
        try:
            return holds(text, self.macros)
        except Unknown:
            return None

    def file(self, path, depth=0):
        if depth > DEEPEST:
            raise Trouble(f"{path}: it includes itself")
        stack = []  # of [what holds now, whether one was taken for certain]
        lines = read(path)
        guard = lines[0][1] if len(lines) > 1 and lines[0][0] == "ifndef" and lines[1][:2] == ("define", lines[0][1]) else None
        for word, text, tokens in lines:
            off = any(now is False for now, _ in stack)
            if word in ("if", "ifdef", "ifndef"):
                now = False if off else self.branch(word, text)
                stack.append([now, now is True])
                self.mark(now, word, text)
            elif word in ("elif", "else") and stack:
                above = any(now is False for now, _ in stack[:-1])
                now = False if above or stack[-1][1] else True if word == "else" else self.branch("if", text)
                if now is True and word == "else" and stack[-1][0] is None:
                    now = None
                stack[-1] = [now, stack[-1][1] or now is True]
                self.mark(now, word, text)
            elif word == "endif" and stack:
                stack.pop()
            elif not off and word == "define" and text == guard:
                self.define(text)  # that a file is read once is no part of the program
            elif not off:
                self.line(word, text, tokens, depth)

    def mark(self, now, word, text):
        if now is None:
            self.tokens += ["#", word, *TOKEN.findall(text)]

    def line(self, word, text, tokens, depth):
        if word == "include":
            self.include(text, depth)
            return
        if word == "define":
            self.define(text)
        elif word == "undef":
            self.macros.pop(text, None)
        self.tokens += (*tokens, "\n") if word else tokens  # a directive ends with its line


def programs(source):
    return [path for folder in FOLDERS for path in sorted((source / folder).glob("*.cu"))]


def find(source, name):
    for folder in FOLDERS:
        if (source / folder / name).is_file():
            return source / folder / name
    raise Trouble(f"{name}: no such program in {source}")


@functools.cache
def closure(source, path):
    """The files of a program, whatever the options: it and what it includes in quotes, directly or not."""
    found, waiting = [], [path]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.append(file)
        names = [name for _, text, _ in read(file) for name in re.findall(r'"([^"]+)"', text)]
        waiting += [source / name for name in names if (source / name).is_file()]
    return tuple(sorted(found))


@functools.cache
def tokens(source, name, options):
    """Of the program NAME.cu below the folder `source` (a tree's src), compiled with these options."""
    reader = Reader(source, options)
    reader.file(find(source, name))
    return tuple(reader.tokens)


def contents(source, path):
    return [file.read_bytes() for file in closure(source, path)]


def same(old, new, name, new_name, options, rename=lambda word: word):
    """Whether two trees' programs are the same with these options. rename: of words that are another in the new tree."""
    if name == new_name and contents(old, find(old, name)) == contents(new, find(new, name)):
        return True
    return [rename(word) for word in tokens(old, name, options)] == list(tokens(new, new_name, options))
