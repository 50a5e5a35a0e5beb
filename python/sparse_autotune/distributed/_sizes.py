"""Cutting tokens into pieces."""

from __future__ import annotations

from torch import Tensor


def sizes_of(tokens: int, count: int) -> list[int]:
    return [tokens // count + (at < tokens % count) for at in range(count)]


def cut(x: Tensor, count: int, dim: int = 0) -> list[Tensor]:
    """In one step of autograd: each of several slices would have a gradient as large as the whole."""
    return list(x.split(sizes_of(x.shape[dim], count), dim))
