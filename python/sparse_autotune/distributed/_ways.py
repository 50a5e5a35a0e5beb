"""In how many pieces, and by which messages, a plan is the fastest: measured once for each size of input, the same at all ranks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _options
from ._choices import in_memory, tune_once
from ._pieces import Inner, Plan, Way

COUNTS = (1, 2, 4, 8)
_DIRECT = COUNTS[:-1]
_ROUNDS = 5
_PIECE = 1024  # tokens that keep a device busy, roughly

Once = Callable[[Tensor, Tensor], None]


def estimated(tokens: int) -> Way:
    """Where nothing may be measured."""
    return Way(max((count for count in COUNTS[:-1] if count * _PIECE <= tokens), default=1), False)


def chosen(plan: Plan, x: Tensor, layers: Sequence[Any], inner: Inner) -> Way:
    if plan.mesh.size() == 1:
        return Way(1, False)
    tokens = x[..., 0].numel()
    at_most = max(1, tokens // (plan.mesh.size() if plan.dim_in is None and plan.dim_out is not None else 1))

    def fitting(way: Way) -> Way:
        return Way(min(way.pieces, at_most), way.direct)

    if plan.given is not None:
        return fitting(plan.given)
    training = torch.is_grad_enabled() and (x.requires_grad or any(layer.values.requires_grad for layer in layers))
    key = f"{tokens} tokens of {x.shape[-1]}, {str(x.dtype)[6:]}{', training' if training else ''}"
    if key in plan.chosen:
        return fitting(plan.chosen[key])
    if not _options.may_measure() or x.is_cuda and torch.cuda.is_current_stream_capturing():
        return fitting(estimated(tokens))
    ways = [Way(count, False) for count in COUNTS if count <= at_most]
    ways += [Way(count, True) for count in _DIRECT if count <= at_most and plan.may_be_direct]
    try:
        leaves = [leaf for layer in layers for leaf in layer.hold(leaves=True)]
        with torch.set_grad_enabled(training):
            plan.chosen[key] = _fastest(plan, x.detach().requires_grad_(training and x.requires_grad), leaves, inner, ways)
    finally:
        for layer in layers:
            layer.let_go()
    return plan.chosen[key]


def _fastest(plan: Plan, x: Tensor, leaves: list[Tensor], inner: Inner, ways: list[Way]) -> Way:
    """By alternated rounds, with the backward pass where there is one; the slowest rank counts, and the first one decides."""
    group = plan.mesh.get_group()

    def once(made: Tensor, of: Tensor) -> None:
        if made.requires_grad:
            torch.autograd.grad(made, [*leaves, of] if of.requires_grad else leaves, torch.zeros_like(made), allow_unused=True)

    _tune(plan, x, inner, once, ways)
    times: list[list[float]] = [[] for _ in ways]
    for round_ in range(_ROUNDS + 1):
        for at, way in enumerate(ways):
            taken = _elapsed(lambda way=way: once(plan.run(x, inner, way), x), x.is_cuda)  # type: ignore[misc]
            if round_ > 0:
                times[at].append(taken)
    medians = torch.tensor([statistics.median(of) for of in times], device=x.device)
    dist.all_reduce(medians, dist.ReduceOp.MAX, group=group)
    best = medians.argmin()
    dist.broadcast(best, dist.get_global_rank(group, 0), group=group)
    return ways[int(best)]


def _sizes(plan: Plan, tokens: int, way: Way) -> set[int]:
    """Tokens of pieces. tokens: of all ranks."""
    if not way.direct:
        return {tokens // way.pieces}
    own = tokens // plan.mesh.size()
    others = (tokens - own) // way.pieces
    return {own, others} if plan.dim_in is None or way.pieces == 1 else {own - own // way.pieces, own // way.pieces, others}


def _tune(plan: Plan, x: Tensor, inner: Inner, once: Once, ways: list[Way]) -> None:
    """The products of all kinds of pieces, at one rank, where the store can be shared."""
    ranks, lead = plan.mesh.size(), [1] * (x.dim() - 2)
    whole = x[..., 0].numel() * (ranks if plan.dim_in is not None else 1)
    sizes = sorted({size for way in ways for size in _sizes(plan, whole, way)}, reverse=True)

    def products() -> None:
        for tokens in sizes:
            piece = x.new_zeros(*lead, tokens, plan.width or x.shape[-1], requires_grad=x.requires_grad)
            once(inner(piece), piece)

    if not in_memory():
        tune_once(products, plan.mesh.get_group())


def _elapsed(call: Callable[[], Any], cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    first = time.perf_counter()
    call()
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - first
