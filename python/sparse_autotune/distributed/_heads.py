"""Attention of some heads of all rows, of which the ranks have parts: rows go by copies, chunk by chunk of heads, under the attention of the chunk before."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _ops
from .._attention import attention
from .._block_mask import BlockMask
from . import _shared
from ._shared import Exchange, Places

_COMING, _BACK = 1, 9  # channels, of eight chunks at most
_CHUNKS = 4


class _Chunk:
    """Some heads of k at each rank, and those of q that go with them: numbers of heads at rank 0, and where they lie in the memory."""

    def __init__(self, places: Places, heads: tuple[range, range], batch: int, rows: tuple[int, int], depths: tuple[int, int], others: int, dtype: torch.dtype):
        of_q, of_k = heads
        self.heads = (of_q, of_k, of_k)
        self.shapes = [(batch, len(of), rows[of is of_k], depth) for of, depth in ((of_q, depths[0]), (of_k, depths[0]), (of_k, depths[1]))]
        self.places = [places.take(shape, dtype) for shape in self.shapes]
        self.back_shape = (batch, len(of_q), rows[0] // (others + 1), depths[1])
        self.back = [places.take(self.back_shape, dtype) for _ in range(others)]


def _chunks(q: Tensor, k: Tensor, v: Tensor, ranks: int, whole_mask: bool) -> tuple[list[_Chunk], int]:
    """q, k, v: [batch, heads, rows here, depth]. Also the bytes that all take."""
    of_k = k.shape[1] // ranks
    count = min(of_k, _CHUNKS) if whole_mask else 1
    shared, places, made = q.shape[1] // k.shape[1], Places(), []
    for at in range(count):
        mine = range(of_k * at // count, of_k * (at + 1) // count)
        rows = (q.shape[2] * ranks, k.shape[2] * ranks)
        heads = (range(mine.start * shared, mine.stop * shared), mine)
        made.append(_Chunk(places, heads, q.shape[0], rows, (q.shape[3], v.shape[3]), ranks - 1, q.dtype))
    return made, places.size


def _slabs(x: Tensor, heads: range, each: int, rank: int) -> list[tuple[int, Tensor]]:
    """Of a rank's heads: the number in the chunk's buffer of each item and head, and its rows here, which lie side by side."""
    return [(item * len(heads) + at, x[item, rank * each + head].contiguous()) for item in range(x.shape[0]) for at, head in enumerate(heads)]


def copied(q: Tensor, k: Tensor, v: Tensor, group: dist.ProcessGroup, mask: Any, rows_first: bool, words: dict[str, Any]) -> Tensor | None:
    """None: not here; another way is taken, at all ranks. mask: of this rank's heads."""
    if _ops.wants_gradient(q, k, v) or _ops.any_autocast() or not (mask is None or isinstance(mask, BlockMask)):
        return None
    if rows_first:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if not (q.dtype is k.dtype is v.dtype) or not q.numel() or not k.numel() or not v.numel() or q.shape[1] % k.shape[1] or k.shape[:3] != v.shape[:3]:
        return None
    ranks = group.size()
    chunks, size = _chunks(q, k, v, ranks, mask is None or mask.heads == 1)
    memory = _shared.memory_of(group, q.device, size)
    if memory is None:
        return None
    exchange, rank = Exchange(memory), memory.rank
    operands = list(zip((q, k, v), (x.shape[1] // ranks for x in (q, k, v)), strict=True))
    here: list[Any] = []
    for at, chunk in enumerate(chunks):
        for other in memory.others:
            for (x, each), heads, shape, first in zip(operands, chunk.heads, chunk.shapes, chunk.places, strict=True):
                with exchange.apart():
                    slabs = _slabs(x, heads, each, other)
                for number, slab in slabs:
                    exchange.send(slab, other, first + (number * shape[2] + rank * slab.shape[0]) * shape[3] * slab.element_size(), None)
            exchange.signal(other, _COMING + at)
        # Own rows: those of the first chunk beside what is sent, others aside.
        with exchange.apart(at > 0):
            for (x, each), heads, shape, first in zip(operands, chunk.heads, chunk.shapes, chunk.places, strict=True):
                mine = x[:, rank * each + heads.start : rank * each + heads.stop]
                exchange.here(first, shape, x.dtype).narrow(2, rank * mine.shape[2], mine.shape[2]).copy_(mine)
        here.append(exchange.mark() if at > 0 else None)
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2) if rows_first else q.new_empty(*q.shape[:3], v.shape[3])
    each = q.shape[1] // ranks
    for at, chunk in enumerate(chunks):
        exchange.behind(here[at])
        exchange.wait_all(_COMING + at)
        made = attention(*(exchange.here(first, shape, q.dtype) for first, shape in zip(chunk.places, chunk.shapes, strict=True)), mask=mask, **words)
        exchange.follow()
        of, rows, count = chunk.heads[0], q.shape[2], len(chunk.heads[0])
        for other in memory.others:
            first = chunk.back[memory.sender_at(other)]
            part = made[:, :, other * rows : (other + 1) * rows]
            for number, slab in _slabs(part, range(count), count, 0):
                exchange.send(slab, other, first + number * slab.numel() * slab.element_size(), None)
            exchange.signal(other, _BACK + at)
        with exchange.apart():
            out[:, rank * each + of.start : rank * each + of.stop].copy_(made[:, :, rank * rows : (rank + 1) * rows])
            for sender, other in enumerate(memory.others):
                exchange.memory.wait(other, _BACK + at)
                out[:, other * each + of.start : other * each + of.stop].copy_(exchange.here(chunk.back[sender], chunk.back_shape, q.dtype))
        exchange.hold(made)
    exchange.end()
    return out.transpose(1, 2) if rows_first else out
