"""Triton kernels that write rows into the memory of other ranks. A row is a program's work; addresses of the ranks' buffers come as numbers."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_MOST = 4096  # elements of a row at a time


@triton.jit
def _copy_row(source, target, width: tl.constexpr, step: tl.constexpr):
    source = tl.multiple_of(source, 16)
    target = tl.multiple_of(target, 16)
    for first in tl.static_range(0, width, step):
        at = first + tl.arange(0, step)
        tl.store(target + at, tl.load(source + at, mask=at < width), mask=at < width)


@triton.jit
def _send(x, order, expert, base, addresses, rank, pairs, first, notes, each, low, high, last, k: tl.constexpr, width: tl.constexpr, step: tl.constexpr):
    at = tl.program_id(0)
    of = tl.load(expert + at).to(tl.int32)
    local = of % each
    if (of < last) & (local >= low) & (local < high):
        pair = tl.load(order + at)
        row = (tl.load(base + of) + at).to(tl.int64)
        address = tl.load(addresses + of // each)
        rows = (address + first).to(tl.pointer_type(x.dtype.element_ty))
        tl.store((address + notes).to(tl.pointer_type(tl.int32)) + row, (rank * pairs + pair).to(tl.int32))
        _copy_row(x + pair // k * width, rows + row * width, width, step)


@triton.jit
def _give_back(made, notes, end, addresses, pairs, first, width: tl.constexpr, step: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if row < tl.load(end):
        note = tl.load(notes + row)
        address = tl.load(addresses + note // pairs)
        rows = (address + first).to(tl.pointer_type(made.dtype.element_ty))
        _copy_row(made + row * width, rows + (note % pairs).to(tl.int64) * width, width, step)


@triton.jit
def _weighted(returns, weights, kept, out, some: tl.constexpr, k: tl.constexpr, width: tl.constexpr, step: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    for first in tl.static_range(0, width, step):
        at = first + tl.arange(0, step)
        total = tl.zeros([step], tl.float32)
        for pair in tl.static_range(k):
            row = tl.load(returns + (token * k + pair) * width + at, mask=at < width, other=0.0).to(tl.float32)
            if some:
                row = tl.where(tl.load(kept + token * k + pair) != 0, row, 0.0)
            total += row * tl.load(weights + token * k + pair).to(tl.float32)
        tl.store(out + token * width + at, total.to(out.dtype.element_ty), mask=at < width)


def _steps(width: int) -> dict[str, Any]:
    step = min(_MOST, triton.next_power_of_2(width))
    return dict(width=width, step=step, num_warps=max(1, min(8, step // 256)))


def send(memory: Any, x: Tensor, order: Tensor, expert: Tensor, base: Tensor, each: int, part: range, k: int, first: int, notes: int) -> None:
    ranks, pairs = memory.ranks, len(order)
    places = (memory.addresses(), memory.rank, pairs, first, notes, each, part.start, part.stop, ranks * each)
    _send[(pairs,)](x, order, expert, base, *places, k=k, **_steps(x.shape[1]))


def give_back(memory: Any, made: Tensor, notes: Tensor, end: Tensor, pairs: int, first: int) -> None:
    _give_back[(len(made),)](made, notes, end, memory.addresses(), pairs, first, **_steps(made.shape[1]))


def weighted(returns: Tensor, weights: Tensor, kept: Tensor | None) -> Tensor:
    tokens, k = weights.shape
    out = torch.empty(tokens, returns.shape[1], dtype=returns.dtype, device=returns.device)
    _weighted[(tokens,)](
        returns, weights.contiguous(), returns if kept is None else kept.view(torch.uint8), out, some=kept is not None, k=k, **_steps(returns.shape[1])
    )
    return out
