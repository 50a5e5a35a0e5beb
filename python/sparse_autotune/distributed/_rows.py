"""Rows that go to places of other ranks' memory which only the device knows: by kernels in Triton, which PyTorch brings for CUDA; elsewhere by operators."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ._shared import Memory


@functools.cache
def _kernels() -> Any:
    """None where there is no Triton."""
    try:
        from . import _kernels
    except ImportError:
        return None
    return _kernels


def can_send(device: torch.device) -> bool:
    return device.type != "cuda" or _kernels() is not None


def send_rows(
    memory: Memory, x: Tensor, order: Tensor, expert: Tensor, base: Tensor, each: int, part: range, k: int, rows: tuple[int, int], notes: int
) -> None:
    """Pair order[i], of the token order[i] // k, goes to the rank of its expert[i], row base[expert[i]] + i, where that is one of the rank's experts in `part`;
    beside it, in the notes, from where it comes. Of `each` experts a rank; expert numbers behind all are left out.

    rows, notes: bytes at which rows and notes of this part begin at each rank, and of rows the number that there is room for.
    """
    first, room = rows
    if x.is_cuda:
        _kernels().send(memory, x, order, expert, base, each, part, k, first, notes)
        return
    local = expert.to(torch.int64)
    for rank in range(memory.ranks):
        mine = ((local // each == rank) & (local % each >= part.start) & (local % each < part.stop)).nonzero()[:, 0]
        to = base[local[mine]].to(torch.int64) + mine
        memory.view(rank, first, (room, x.shape[1]), x.dtype)[to] = x[order[mine] // k]
        memory.view(rank, notes, (room,), torch.int32)[to] = (memory.rank * len(order) + order[mine]).to(torch.int32)


def return_rows(memory: Memory, made: Tensor, notes: Tensor, end: Tensor, pairs: int, first: int) -> None:
    """Rows before end[0] go back where their notes say: as row `pair` of the returns, which begin at a byte at each rank."""
    if made.is_cuda:
        _kernels().give_back(memory, made, notes, end, pairs, first)
        return
    used = notes[: int(end)].to(torch.int64)
    for rank in range(memory.ranks):
        mine = (used // pairs == rank).nonzero()[:, 0]
        memory.view(rank, first, (pairs, made.shape[1]), made.dtype)[used[mine] % pairs] = made[mine]


def weighted(returns: Tensor, weights: Tensor, kept: Tensor | None) -> Tensor:
    """Sums over each token's pairs; rows that are not kept count nothing, whatever is in them."""
    if returns.is_cuda and _kernels() is not None:
        return _kernels().weighted(returns, weights, kept)  # type: ignore[no-any-return]
    rows = returns.view(*weights.shape, -1)
    if kept is not None:
        rows = torch.where(kept.view(*weights.shape, 1), rows, 0)
    return (rows * weights.unsqueeze(-1).to(rows.dtype)).sum(1)
