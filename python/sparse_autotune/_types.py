"""Element types, as PyTorch has them: the rows of the library's table, src/type/types.def."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from . import _C

_ROWS = [row for row in _C.types() if row[1] != "none"]
_OF: dict[str, torch.dtype] = {name: getattr(torch, called) for name, called, *_ in _ROWS}

NAMES = {_OF[name]: name for name, *_ in _ROWS}  # the library's
DTYPES = tuple(_OF[name] for name, _, use, *_ in _ROWS if use == "VALUES")
FACTORS = tuple(_OF[name] for name, _, use, *_ in _ROWS if use == "FACTORS")  # of scaled_matmul
HALVES = tuple(_OF[name] for name, _, use, wider, *_ in _ROWS if use == "VALUES" and wider)  # whose sums are float32
FLOATS8 = tuple(dtype for dtype in FACTORS if dtype.is_floating_point)
RESULTS = tuple(getattr(torch, called) for called in next(row[4] for row in _ROWS if row[2] == "FACTORS").split("|"))  # of products of factors
NOT_IN_NUMPY = tuple(_OF[row[0]] for row in _ROWS if row[5] is None)


def name_of(dtype: torch.dtype) -> str:
    """PyTorch's, without "torch."."""
    return str(dtype).removeprefix("torch.")


def listed(dtypes: Iterable[torch.dtype], before: str = "") -> str:
    """ "float32, float64, float16 or bfloat16", each with `before` in front."""
    *others, last = (before + name_of(dtype) for dtype in dtypes)
    return f"{', '.join(others)} or {last}" if others else last
