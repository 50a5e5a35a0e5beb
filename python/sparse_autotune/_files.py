"""Block-sparse matrices in safetensors files, as sparsek's command line reads and writes them."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from typing import Any

import torch
from torch import Tensor

_NOTE = "sparsek.bsr."
_SIZE_LIMIT = 1 << 48  # of rows and columns in a file, as in the library


def check_name(name: Any) -> None:
    """As the library has it: what is written can be read by everything of ours."""
    if not isinstance(name, str):
        raise TypeError(f"name: must be a str, not {type(name).__name__}")
    try:
        name.encode()
        good = bool(name) and "\0" not in name and name != "__metadata__"
    except UnicodeEncodeError:
        good = False
    if not good:
        raise ValueError(f"name: {name!r} is no name of a matrix in a file: text in UTF-8, not empty, without a NUL, not __metadata__")


def write(path: str | os.PathLike[str], name: str, parts: dict[str, Tensor], shape: tuple[int, int]) -> None:
    """At every moment the path holds the old file or the new one. What is no regular file is written straight. OSError names the path that
    was asked for, or its folder where there is none."""
    from safetensors.torch import save, save_file

    values, target = parts["values"], os.fsdecode(os.path.realpath(path))
    note = {"rows": shape[0], "cols": shape[1], "block_rows": values.shape[1], "block_cols": values.shape[2], "block_layout": "row"}
    content = {f"{name}.{part}": _own(tensor) for part, tensor in parts.items()}, {_NOTE + name: json.dumps(note)}
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            file.write(save(*content))
        return
    part = f"{target}.part-{os.getpid()}-{threading.get_ident()}"
    try:
        with open(part, "xb"):
            pass
    except OSError as error:
        asked = os.fsdecode(path)
        folder = os.path.dirname(asked) or "."
        raise OSError(error.errno, error.strerror, asked if os.path.isdir(folder) else folder) from None
    try:
        save_file(content[0], part, content[1])
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _own(tensor: Tensor) -> Tensor:
    """The numbers in memory of their own: safetensors refuses tensors that share some."""
    own = tensor.detach().resolve_neg().cpu().contiguous()
    return own if own.untyped_storage().nbytes() == own.nbytes else own.clone(memory_format=torch.contiguous_format)


def read(
    path: str | os.PathLike[str], name: str | None, shape: tuple[int, int] | None, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    from safetensors import SafetensorError, safe_open

    if name is not None and not isinstance(name, str):
        raise TypeError(f"name: must be a str, not {type(name).__name__}")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            return _read(file, os.fspath(path), name, shape, device)
    except SafetensorError as error:
        raise ValueError(f"path: {os.fspath(path)} is no whole safetensors file: {error}") from None


def _read(file: Any, path: str, name: str | None, shape: tuple[int, int] | None, device: torch.device | str) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    notes: dict[str, str] = {key[len(_NOTE) :]: text for key, text in (file.metadata() or {}).items() if key.startswith(_NOTE)}
    if name is None:
        if len(notes) != 1:
            raise ValueError(f"name: must say which matrix of {path} is meant; it has {', '.join(notes) or 'none with a shape'}")
        name = next(iter(notes))
    note = _checked(notes[name], f"path: {path} says of {name!r}") if name in notes else None
    if note is not None:
        stated = (note["rows"], note["cols"])
        if shape is not None and tuple(shape) != stated:
            raise ValueError(f"shape: {path} says that {name!r} is {stated[0]} x {stated[1]}, and {tuple(shape)} was given")
        shape = stated
    prefix = f"{name}." if name or note is not None else ""  # a layer's state alone has no name
    there, bare = set(file.keys()), note is not None and note.get("pattern_only") is True
    parts = ("row_offsets", "col_indices") if bare else ("row_offsets", "col_indices", "values")
    missing = [prefix + part for part in parts if prefix + part not in there]
    if missing:
        raise ValueError(f"name: {path} has no {', '.join(missing)}")
    if shape is None:
        raise ValueError(f"shape: must be given for {name!r}, of which {path} tells none")
    row_offsets, col_indices = file.get_tensor(prefix + "row_offsets"), file.get_tensor(prefix + "col_indices")
    if bare:
        return row_offsets, col_indices, _ones(note, col_indices, f"{path}: {prefix}col_indices", device), shape
    values = file.get_tensor(prefix + "values")
    if note is not None:
        _check_blocks(note, values, f"path: {path} says of {name!r}")
        values = values.mT if note["block_layout"] == "col" else values
    return row_offsets, col_indices, values, shape


def _ones(note: Any, col_indices: Tensor, where: str, device: torch.device | str) -> Tensor:
    """The values of a pattern alone, in the memory of one number."""
    if col_indices.dim() != 1:
        raise ValueError(f"{where} must have one dimension; its shape is {list(col_indices.shape)}")
    if not (1 <= note["block_rows"] <= 256 and 1 <= note["block_cols"] <= 256):
        raise ValueError(f"{where}: blocks must be 1 to 256 high and wide, not {note['block_rows']} x {note['block_cols']}")
    return torch.ones((), dtype=torch.float32, device=device).expand(col_indices.shape[0], note["block_rows"], note["block_cols"])


def _checked(text: str, where: str) -> dict[str, Any]:
    """What a file says of a matrix; ValueError where it is incomplete or has sizes that no file holds."""
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{where}: {text[:200]!r}, which is no JSON") from None
    sizes = ("rows", "cols", "block_rows", "block_cols")
    if not isinstance(note, dict) or any(type(note.get(key)) is not int for key in sizes) or note.get("block_layout") not in ("row", "col"):
        raise ValueError(f"{where}: {text[:200]}, which lacks a whole number for {', '.join(sizes)}, or a block_layout of row or col")
    if max(note["rows"], note["cols"]) > _SIZE_LIMIT:
        raise ValueError(f"{where}: {text[:200]}; sizes may be {_SIZE_LIMIT} at most")
    return note


def _check_blocks(note: dict[str, Any], values: Tensor, where: str) -> None:
    stored = list(values.mT.shape[-2:] if note["block_layout"] == "col" else values.shape[-2:]) if values.dim() == 3 else None
    if stored != [note["block_rows"], note["block_cols"]]:
        raise ValueError(f"{where}: blocks of {note['block_rows']} x {note['block_cols']}; its values have the shape {list(values.shape)}")
