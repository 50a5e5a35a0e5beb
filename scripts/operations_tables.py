"""The operations as the library tells of them (include/sparsek/experimental.h): fields of their problems, sizes, operands, scalars. Generators
of bindings read them here, so that each language names and takes what the tables in src/op say. Needs Python alone, and libsparsek.so."""
import ctypes as C
import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KINDS = ("SIZE", "ITEMS", "DTYPE", "LAYOUT", "BLOCK_LAYOUT", "TRANS", "PART", "CHOICE", "LD", "STRIDE", "REAL", "GROUPS", "HEADS", "HEAD_STRIDE",
         "COUNT", "SCALE", "PROMISE")  # spk_field_kind, from 1 on
ROLES = ("IN", "IN_SCALED", "OUT")  # spk_role
PATTERN_USES = ("NONE", "NEEDED", "OPTIONAL")  # spk_pattern_use
SIZE_SOURCES = ("FIELD", "PATTERN_ROWS", "PATTERN_COLS", "LIST_ROWS", "LIST_COLS")  # spk_size_source
SHARED = -1  # SPK_STRIDE_SHARED


class _Row(C.Structure):
    """A struct that begins with its size."""

    def __init__(self) -> None:
        super().__init__(struct_size=C.sizeof(type(self)))


class _Operation(_Row):
    _fields_ = [("struct_size", C.c_size_t), ("operation", C.c_int), ("takes_pattern", C.c_int), ("name", C.c_char_p), ("formula", C.c_char_p),
                ("problem_type", C.c_char_p), ("args_type", C.c_char_p), ("problem_bytes", C.c_size_t), ("args_bytes", C.c_size_t),
                ("workspace_offset", C.c_size_t), ("workspace_bytes_offset", C.c_size_t), ("stream_offset", C.c_size_t),
                ("field_count", C.c_int), ("size_count", C.c_int), ("operand_count", C.c_int), ("scalar_count", C.c_int), ("sentence", C.c_char_p)]


class _Field(_Row):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("kind", C.c_int), ("operand", C.c_int), ("offset", C.c_size_t),
                ("option", C.c_char_p), ("values", C.c_char_p), ("terms", C.c_char_p), ("usual", C.c_char_p), ("help", C.c_char_p),
                ("low", C.c_double), ("high", C.c_double)]


class _Size(_Row):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("source", C.c_int), ("reserved", C.c_int), ("usual", C.c_int64),
                ("help", C.c_char_p)]


class _Operand(_Row):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("title", C.c_char_p), ("extents", C.c_char_p), ("offset", C.c_size_t),
                ("role", C.c_int), ("scalar", C.c_int), ("is_values", C.c_int), ("may_be_static", C.c_int), ("may_be", C.c_uint64)]


class _Scalar(_Row):
    _fields_ = [("struct_size", C.c_size_t), ("name", C.c_char_p), ("offset", C.c_size_t), ("operand", C.c_int), ("reserved", C.c_int)]


@dataclasses.dataclass(frozen=True)
class Size:
    name: str
    source: str  # of SIZE_SOURCES
    help: str


@dataclasses.dataclass(frozen=True)
class Operand:
    name: str  # of the pointer in the arguments
    title: str  # in formulas and messages
    extents: str
    offset: int
    role: str  # of ROLES
    scalar: "str | None"  # that it is multiplied by
    is_values: bool
    may_be_static: bool
    may_be: "tuple[str, ...]"  # of an output: the operands that may be the same array

    @property
    def is_output(self) -> bool:
        return self.role == "OUT"


@dataclasses.dataclass(frozen=True)
class Field:
    name: str
    kind: str  # of KINDS
    operand: "str | None"  # the name of the one that it is about
    offset: int
    option: "tuple[str, ...]"  # none, one, or one for each value from 1 on
    values: "tuple[str, ...]"  # of an enumeration, from 0 on
    usual: "str | None"
    help: "tuple[str, ...]"  # as option
    low: float
    high: float

    @property
    def is_flag(self) -> bool:
        return self.values == ("no", "yes")

    @property
    def may_be_shared(self) -> bool:
        """Of a stride: one array for all items."""
        return self.kind == "STRIDE" and self.low == SHARED


@dataclasses.dataclass(frozen=True)
class Scalar:
    name: str
    offset: int
    operand: "str | None"  # it counts where the problem has this one


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str  # "spmm"
    number: int  # spk_operation
    pattern: str  # of PATTERN_USES
    formula: str
    problem_type: str  # "spk_spmm"
    args_type: str
    fields: "tuple[Field, ...]"
    sizes: "tuple[Size, ...]"
    operands: "tuple[Operand, ...]"
    scalars: "tuple[Scalar, ...]"

    def operand(self, name: str) -> Operand:
        return next(operand for operand in self.operands if operand.name == name)

    def fields_of(self, *kinds: str) -> "list[Field]":
        return [field for field in self.fields if field.kind in kinds]


def _text(text: "bytes | None") -> "str | None":
    return None if text is None else text.decode()


def _words(text: "bytes | None") -> "tuple[str, ...]":
    return () if text is None else tuple(text.decode().split("|"))


def _named(names: Iterable[str], number: int, of: str) -> str:
    found = dict(enumerate(names)).get(number)
    if found is None:
        raise RuntimeError(f"{of} = {number}: scripts/operations_tables.py does not know it")
    return found


def _rows(get: Any, kind: Any, count: int, *operation: int) -> "list[Any]":
    rows = [kind() for _ in range(count)]
    for i, row in enumerate(rows):
        if get(*operation, i, C.byref(row)) != 0:
            raise RuntimeError(f"row {i} of {kind.__name__}{operation}: the library refuses to tell it")
    return rows


def _operation(library: C.CDLL, info: Any) -> Operation:
    operands = _rows(library.spk_operation_get_operand, _Operand, info.operand_count, info.operation)
    scalars = _rows(library.spk_operation_get_scalar, _Scalar, info.scalar_count, info.operation)
    names = [operand.name.decode() for operand in operands]

    def name_of(index: int) -> "str | None":
        return names[index] if index >= 0 else None

    return Operation(
        name=info.name.decode(), number=info.operation, pattern=_named(PATTERN_USES, info.takes_pattern, "takes_pattern"),
        formula=info.formula.decode(), problem_type=info.problem_type.decode(), args_type=info.args_type.decode(),
        fields=tuple(Field(name=row.name.decode(), kind=_named(("", *KINDS), row.kind, "spk_field_kind"), operand=name_of(row.operand),
                           offset=row.offset, option=_words(row.option), values=_words(row.values), usual=_text(row.usual), help=_words(row.help),
                           low=row.low, high=row.high)
                     for row in _rows(library.spk_operation_get_field, _Field, info.field_count, info.operation)),
        sizes=tuple(Size(row.name.decode(), _named(SIZE_SOURCES, row.source, "spk_size_source"), row.help.decode())
                    for row in _rows(library.spk_operation_get_size, _Size, info.size_count, info.operation)),
        operands=tuple(Operand(name=row.name.decode(), title=row.title.decode(), extents=row.extents.decode(), offset=row.offset,
                               role=_named(ROLES, row.role, "spk_role"), scalar=scalars[row.scalar].name.decode() if row.scalar >= 0 else None,
                               is_values=row.is_values != 0, may_be_static=row.may_be_static != 0,
                               may_be=tuple(name for i, name in enumerate(names) if row.may_be >> i & 1))
                       for row in operands),
        scalars=tuple(Scalar(row.name.decode(), row.offset, name_of(row.operand)) for row in scalars))


def read(library: "str | os.PathLike[str]") -> "dict[str, Operation]":
    """The operations by name, in the order of their table. library: the path of libsparsek.so."""
    path = Path(library).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"library = {path}: there is no such file")
    loaded = C.CDLL(str(path))
    rows = _rows(loaded.spk_operation_get_info, _Operation, loaded.spk_operation_count())
    return {row.name.decode(): _operation(loaded, row) for row in rows}
