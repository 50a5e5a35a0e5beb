"""A mixture of experts whose experts are dealt over ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _ops
from .._gemm import grouped_gemm
from .._numbers import Activation
from ._attention import _group
from ._collectives import Stay, Swap, moved
from ._routes import alone, routed, sorted_pairs


def _slots(chosen: Tensor, each: int, ranks: int, capacity: int) -> Tensor:
    """Where each pair of a token and an expert is sent: rank * capacity + place, or behind all where the rank has no room left."""
    to, order, begins = sorted_pairs(chosen.flatten() // each, ranks)
    to = to.to(torch.int64)
    at = torch.arange(len(order), device=chosen.device) - begins[to]  # pairs of a rank lie in the order of their numbers
    return torch.empty_like(order).scatter_(0, order, torch.where(at < capacity, to * capacity + at, ranks * capacity))


def _without_gradients(
    x: Tensor,
    chosen: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    gate: Tensor | None,
    activation: Activation | None,
    group: dist.ProcessGroup,
    capacity: int | None,
) -> Tensor | None:
    """None: not here; another way is taken, at all ranks."""
    ranks, pairs, each = group.size(), chosen.numel(), up.shape[0]
    if capacity is None or capacity >= pairs:
        if ranks == 1:
            return alone(x, chosen, weights, up, down, gate, activation)
        return routed(x, chosen.flatten(), None, weights, up, down, gate, activation, group, ranks * pairs)
    kept = _slots(chosen, each, ranks, capacity) < ranks * capacity
    expert = torch.where(kept, chosen.flatten(), ranks * each)
    return routed(x, expert, kept, weights, up, down, gate, activation, group, ranks * capacity) if ranks > 1 else None


def experts(
    x: Tensor,
    chosen: Tensor,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    *,
    gate: Tensor | None = None,
    activation: Activation | None = "silu",
    group: dist.ProcessGroup | None = None,
    capacity: int | None = None,
) -> Tensor:
    """The weighted sum over each token's experts of act(x up) down, or with gate of (act(x gate) * (x up)) down. Each rank has its tokens and its experts.

    x: [tokens, model], as many tokens at each rank. chosen: int64 [tokens, k], numbers of experts over all ranks; rank r has those from r * E. weights:
    [tokens, k], which get gradients. up, gate: [E, model, hidden], down: [E, hidden, model], this rank's. capacity: so many pairs of a token and an expert
    go from a rank to another at most, and later ones give nothing, as if their weights were zero; None: all go, in messages that hold tokens * k pairs for
    each rank.

    Messages have one size, and the groups of sa.grouped_gemm are made on the device: the host waits for nothing. The same bits at each run.
    """
    group = _group(group)
    ranks, tokens, each = group.size(), x.shape[0], up.shape[0]
    for name, of, shape in (("chosen", chosen, "[tokens, k]"), ("weights", weights, "[tokens, k]")):
        if of.dim() != 2 or of.shape[0] != tokens or of.shape != chosen.shape:
            raise ValueError(f"{name}: must be {shape}, for {tokens} tokens; its shape is {list(of.shape)}")
    if chosen.dtype is not torch.int64:
        raise TypeError(f"chosen: must be int64, not {chosen.dtype}")
    pairs = chosen.numel()
    if capacity is not None and (not hasattr(capacity, "__index__") or capacity < 1):
        raise ValueError(f"capacity: must be a whole number from 1, or None, not {capacity!r}")
    if not _ops.wants_gradient(x, weights, up, down, gate) and not _ops.any_autocast() and pairs:
        made = _without_gradients(x, chosen, weights, up, down, gate, activation, group, capacity)
        if made is not None:
            return made
    move = Swap(group) if ranks > 1 else Stay(group)
    slots_per_rank = pairs if capacity is None else min(capacity, pairs)
    slots = _slots(chosen, each, ranks, slots_per_rank)
    # Each slot's pair, and behind all pairs one of zeros, for slots that stay empty.
    source = torch.full((ranks * slots_per_rank + 1,), pairs, dtype=torch.int64, device=x.device).scatter_(0, slots, torch.arange(pairs, device=x.device))[:-1]
    expert = torch.cat([chosen.flatten() % each, chosen.new_full((1,), each)])[source].view(ranks, slots_per_rank)
    doubled = torch.cat([x.unsqueeze(1).expand(-1, chosen.shape[1], -1).flatten(0, 1), x.new_zeros(1, x.shape[1])])
    came = moved(doubled.index_select(0, source).view(ranks, slots_per_rank, -1), move).flatten(0, 1)
    of, order = moved(expert, move).flatten().sort(stable=True)
    ends = torch.searchsorted(of, torch.arange(each, device=x.device), right=True).to(torch.int32)
    rows = came.index_select(0, order)
    if gate is None:
        hidden = grouped_gemm(rows, up, ends, activation=activation)
    else:
        hidden = grouped_gemm(rows, gate, ends, activation=activation, factor=grouped_gemm(rows, up, ends))
    made = grouped_gemm(hidden, down, ends).index_select(0, order.argsort())
    back = moved(made.view(ranks, slots_per_rank, -1), move).flatten(0, 1)
    back = torch.cat([back, back.new_zeros(1, back.shape[1])]).index_select(0, slots)
    return (back.view(*chosen.shape, -1) * weights.unsqueeze(-1).to(back.dtype)).sum(1)
