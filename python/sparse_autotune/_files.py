"""Block-sparse matrices in safetensors files, as sparsek's command line reads and writes them."""

from __future__ import annotations

import json
import os
from typing import Any

import torch
from torch import Tensor

_NOTE = "sparsek.bsr."


def write(path: str | os.PathLike[str], name: str, parts: dict[str, Tensor], shape: tuple[int, int]) -> None:
    from safetensors.torch import save_file

    values = parts["values"]
    note = {"rows": shape[0], "cols": shape[1], "block_rows": values.shape[1], "block_cols": values.shape[2], "block_layout": "row"}
    save_file({f"{name}.{part}": tensor.detach().contiguous() for part, tensor in parts.items()}, path, metadata={_NOTE + name: json.dumps(note)})


def read(
    path: str | os.PathLike[str], name: str | None, shape: tuple[int, int] | None, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    from safetensors import safe_open

    with safe_open(path, framework="pt", device=str(device)) as file:
        notes: dict[str, Any] = {key[len(_NOTE) :]: text for key, text in (file.metadata() or {}).items() if key.startswith(_NOTE)}
        if name is None:
            if len(notes) != 1:
                raise ValueError(f"name: must say which matrix of {os.fspath(path)} is meant; it has {', '.join(notes) or 'none with a shape'}")
            name = next(iter(notes))
        prefix = f"{name}." if name else ""
        missing = [part for part in ("row_offsets", "col_indices", "values") if prefix + part not in file.keys()]  # noqa: SIM118
        if missing:
            raise ValueError(f"name: {os.fspath(path)} has no {', '.join(prefix + part for part in missing)}")
        row_offsets, col_indices, values = (file.get_tensor(prefix + part) for part in ("row_offsets", "col_indices", "values"))
    if name in notes:
        note = _checked(notes[name], values, f"path: {os.fspath(path)} says of {name!r}")
        stated = (note["rows"], note["cols"])
        if shape is not None and tuple(shape) != stated:
            raise ValueError(f"shape: {os.fspath(path)} says that {name!r} is {stated[0]} x {stated[1]}, and {tuple(shape)} was given")
        shape = stated
        values = values.mT if note["block_layout"] == "col" else values
    elif shape is None:
        raise ValueError(f"shape: must be given for {name!r}, of which {os.fspath(path)} tells none")
    return row_offsets, col_indices, values, shape


def _checked(text: str, values: Tensor, where: str) -> dict[str, Any]:
    """What a file says of a matrix; ValueError where it is incomplete, or not true of the values."""
    note = json.loads(text)
    sizes = ("rows", "cols", "block_rows", "block_cols")
    if not isinstance(note, dict) or any(type(note.get(key)) is not int for key in sizes) or note.get("block_layout") not in ("row", "col"):
        raise ValueError(f"{where}: {text}, which lacks a whole number for {', '.join(sizes)}, or a block_layout of row or col")
    stored = list(values.mT.shape[-2:] if note["block_layout"] == "col" else values.shape[-2:]) if values.dim() == 3 else None
    if stored != [note["block_rows"], note["block_cols"]]:
        raise ValueError(f"{where}: blocks of {note['block_rows']} x {note['block_cols']}; its values have the shape {list(values.shape)}")
    return note
