"""Experts over ranks without gradients: rows are written straight where the experts read them, and the results where their tokens are."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _dense
from .._gemm import _flags_of
from .._numbers import WHOLE
from . import _rows, _shared
from ._shared import Exchange, Places

_COUNTS, _COMING, _BACK = 1, 2, 4  # channels; of two parts of the experts each
_PARTS = 2


def _grouped(a: Tensor, b: Tensor, ends: Tensor, activation: str | None = None, factor: Tensor | None = None) -> Tensor:
    """As grouped_gemm, but what lies behind the last end is left as it is: nobody reads it."""
    return _dense.gemm(a, b, None, factor, ends, _flags_of(a, activation, factor, None) | WHOLE)


def hidden_to_model(rows: Tensor, up: Tensor, gate: Tensor | None, down: Tensor, ends: Tensor, activation: str | None) -> Tensor:
    if gate is None:
        hidden = _grouped(rows, up, ends, activation)
    else:
        hidden = _grouped(rows, gate, ends, activation, _grouped(rows, up, ends))
    return _grouped(hidden, down, ends)


def sorted_pairs(expert: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The experts in increasing order, the pairs in that order, and where each expert begins, up to the one behind all."""
    narrow = torch.uint8 if count < 255 else torch.int16 if count < 32767 else torch.int32  # a sort of narrow keys has fewer passes
    values, order = expert.to(narrow).sort(stable=True)
    return values, order, torch.searchsorted(values, torch.arange(count + 1, dtype=narrow, device=expert.device))


def alone(x: Tensor, chosen: Tensor, weights: Tensor, up: Tensor, down: Tensor, gate: Tensor | None, activation: str | None) -> Tensor:
    """Of one rank."""
    k = chosen.shape[1]
    _, order, begins = sorted_pairs(chosen.flatten(), up.shape[0])
    made = hidden_to_model(x.index_select(0, order // k), up, gate, down, begins[1:].to(torch.int32), activation)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=x.device))
    return torch.nn.functional.embedding_bag(place.view_as(chosen), made, per_sample_weights=weights.to(made.dtype), mode="sum")


def routed(
    x: Tensor,
    expert: Tensor,
    kept: Tensor | None,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    gate: Tensor | None,
    activation: str | None,
    group: dist.ProcessGroup,
    room: int,
) -> Tensor | None:
    """None: not here; another way is taken, at all ranks. expert: of each pair, or the number behind all where the pair is not kept. room: for rows that come
    to a rank, at most.

    The experts of a rank are worked through in two parts, so that rows of one travel while those of the other are multiplied.
    """
    if not _rows.can_send(x.device) or x.shape[1] * x.element_size() % 16 or x.dtype is not up.dtype:
        return None
    ranks, each, (pairs, k), model = group.size(), up.shape[0], (expert.numel(), weights.shape[1]), x.shape[1]
    count, parts = ranks * each, _PARTS if each % _PARTS == 0 else 1
    places = Places()
    at_counts = places.take((ranks, count), torch.int32)
    at_rows = [places.take((room, model), x.dtype) for _ in range(parts)]
    at_notes = [places.take((room,), torch.int32) for _ in range(parts)]
    at_back = places.take((pairs, down.shape[2]), x.dtype)
    memory = _shared.memory_of(group, x.device, places.size)
    if memory is None:
        return None
    values, order, begins = sorted_pairs(expert, count)
    counts = begins.diff().to(torch.int32)
    exchange = Exchange(memory)
    for other in memory.others:
        exchange.send(counts, other, at_counts + memory.rank * 4 * count, _COUNTS)
    everyones = exchange.here(at_counts, (ranks, count), torch.int32)
    everyones[memory.rank].copy_(counts)
    exchange.wait_all(_COUNTS)
    through = everyones.cumsum(0)  # with the ranks before
    totals = through[-1].view(ranks, parts, -1)
    ends = totals.cumsum(2)
    before = through[memory.rank - 1] if memory.rank else torch.zeros_like(through[0])
    base = (ends - totals).flatten() + before - begins[:-1]
    mine = ends[memory.rank].to(torch.int32)
    exchange.follow()
    x, ranges = x.contiguous(), [range(each * part // parts, each * (part + 1) // parts) for part in range(parts)]
    sent = []
    for part, of in enumerate(ranges):
        with exchange.apart():
            _rows.send_rows(memory, x, order, values, base, each, of, k, (at_rows[part], room), at_notes[part])
        for other in memory.others:
            exchange.signal(other, _COMING + part)
        sent.append(exchange.mark())
    for part, of in enumerate(ranges):
        exchange.behind(sent[part])
        exchange.wait_all(_COMING + part)
        rows = exchange.here(at_rows[part], (room, model), x.dtype)
        picked = [of_all if of_all is None else of_all[of.start : of.stop] for of_all in (up, gate, down)]
        made = hidden_to_model(rows, picked[0], picked[1], picked[2], mine[part], activation)  # type: ignore[arg-type]
        exchange.follow()
        with exchange.apart():
            _rows.return_rows(memory, made, exchange.here(at_notes[part], (room,), torch.int32), mine[part, -1:], pairs, at_back)
        for other in memory.others:
            exchange.signal(other, _BACK + part)
        exchange.hold(made)
    for tensor in (x, order, values, base, mine):
        exchange.hold(tensor)
    exchange.behind(exchange.mark())
    for part in range(parts):
        exchange.wait_all(_BACK + part)
    out = _rows.weighted(exchange.here(at_back, (pairs, down.shape[2]), x.dtype), weights, kept)
    exchange.end()
    return out
