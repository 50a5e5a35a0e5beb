"""In how many pieces, and by which messages, a plan is the fastest: measured once for each size of input, the same at all ranks."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _options
from . import _copies, _shared, _weights
from ._choices import in_memory, tune_once
from ._chunks import Direct, Inner, Plan, Way
from ._copies import COPIES, LATE
from ._weights import WEIGHTS

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
    if key in plan.chosen and not (plan.arguments and plan.chosen[key].direct == WEIGHTS):
        return fitting(plan.chosen[key])
    if not _options.may_measure() or x.is_cuda and torch.cuda.is_current_stream_capturing():
        return fitting(estimated(tokens))
    ways = [Way(count, False) for count in COUNTS if count <= at_most]
    ways += [Way(count, True) for count in _DIRECT if count <= at_most and plan.may_be_direct]
    ways += [way for way in _copied(plan, x, training) if way.pieces <= at_most]
    ways += [Way(1, WEIGHTS)] if plan.may_be_direct and plan.bare and not plan.arguments else []
    try:
        leaves = [leaf for layer in layers for leaf in layer.hold(leaves=True)]
        with torch.set_grad_enabled(training), _options.tuning_at_once():
            plan.chosen[key] = _fastest(plan, x.detach().requires_grad_(training and x.requires_grad), layers, leaves, inner, ways)
    finally:
        for layer in layers:
            layer.let_go()
    return plan.chosen[key]


def _copied(plan: Plan, x: Tensor, training: bool) -> list[Way]:
    """Those whose messages are copies, where these can be made."""
    if not _copies.may_copy(plan, x, training) or not _shared.reachable(plan.mesh.get_group(), x.device):
        return []
    kinds: list[Direct] = [COPIES] if plan.dim_in is not None else [COPIES, LATE]
    return [Way(count, kind) for kind in kinds for count in _DIRECT]


def _fastest(plan: Plan, x: Tensor, layers: Sequence[Any], leaves: list[Tensor], inner: Inner, ways: list[Way]) -> Way:
    """By alternated rounds, with the backward pass where there is one; the slowest rank counts, and the first one decides.

    On CUDA it is the device's time that counts: the host's is hidden in a CUDA graph, and behind a device that is busy.
    """
    group = plan.mesh.get_group()

    def once(made: Tensor, of: Tensor) -> None:
        if made.requires_grad:
            torch.autograd.grad(made, [*leaves, of] if of.requires_grad else leaves, torch.zeros_like(made), allow_unused=True)

    _tune(plan, x, layers, inner, once, ways)
    ways = [way for way in ways if way.direct != WEIGHTS or _possible(lambda way=way: once(plan.run(x, inner, way, layers), x), group, x.device)]  # type: ignore[misc]
    clock = _DeviceClock(group, x.device) if x.is_cuda else _host_clock
    times: list[list[float]] = [[] for _ in ways]
    for round_ in range(_ROUNDS + 1):
        for at, way in enumerate(ways):
            taken = clock(lambda way=way: once(plan.run(x, inner, way, layers), x))  # type: ignore[misc]
            if round_ > 0:
                times[at].append(taken)
    medians = torch.tensor([statistics.median(of) for of in times], dtype=torch.float64, device=x.device)
    dist.all_reduce(medians, dist.ReduceOp.MAX, group=group)
    best = medians.argmin()
    dist.broadcast(best, dist.get_global_rank(group, 0), group=group)
    return ways[int(best)]


def _possible(call: Callable[[], Any], group: dist.ProcessGroup, device: torch.device) -> bool:
    """Whether a call raises nothing, at any rank. It may where a module checkpoints a part of itself, or has sizes of its own."""
    raised = torch.zeros(1, dtype=torch.float32, device=device)
    try:
        call()
    except Exception:  # whatever the module has against it
        raised += 1
    dist.all_reduce(raised, group=group)
    return not raised.item()


def _sizes(plan: Plan, tokens: int, way: Way) -> set[int]:
    """Tokens of pieces. tokens: of all ranks."""
    if not way.direct:
        return {tokens // way.pieces}
    own = tokens // plan.mesh.size()
    others = (tokens - own) // way.pieces
    return {own, others} if plan.dim_in is None or way.pieces == 1 else {own - own // way.pieces, own // way.pieces, others}


def _tune(plan: Plan, x: Tensor, layers: Sequence[Any], inner: Inner, once: Once, ways: list[Way]) -> None:
    """The products of all kinds of pieces, at one rank, where the store can be shared."""
    ranks, lead = plan.mesh.size(), [1] * (x.dim() - 2)
    whole = x[..., 0].numel() * (ranks if plan.dim_in is not None else 1)
    whole_weights = Way(1, WEIGHTS) in ways
    copied = [way for way in ways if isinstance(way.direct, str) and way.direct != WEIGHTS]
    sizes = sorted({size for way in ways if not isinstance(way.direct, str) for size in _sizes(plan, whole, way)}, reverse=True)

    def products() -> None:
        for tokens in sizes:
            piece = x.new_zeros(*lead, tokens, plan.width or x.shape[-1], requires_grad=x.requires_grad)
            once(inner(piece), piece)
        for way in copied:
            made = _copies.run(plan, x, inner, way, layers, _shared.Alone)
            assert made is not None
            once(made, x)
        if whole_weights:
            with contextlib.suppress(Exception):  # _possible tells
                once(_weights.run(plan, x, inner, layers, alone=True), x)

    if not in_memory():
        tune_once(products, plan.mesh.get_group())


def _host_clock(call: Callable[[], Any]) -> float:
    first = time.perf_counter()
    call()
    return time.perf_counter() - first


class _DeviceClock:
    """The device's seconds of a call. It waits first, as long as the host took for the call before, so that all is queued when it begins, at all ranks."""

    _CYCLES_PER_S = 2e9
    _MARGIN_S = 1e-3

    def __init__(self, group: dist.ProcessGroup, device: torch.device):
        self.group, self.token, self.host = group, torch.zeros(1, dtype=torch.float32, device=device), 0.01

    def __call__(self, call: Callable[[], Any]) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        dist.all_reduce(self.token, group=self.group)  # ranks begin together
        torch.cuda.synchronize()
        torch.cuda._sleep(int((self.host + self._MARGIN_S) * self._CYCLES_PER_S))
        dist.all_reduce(self.token, group=self.group)
        first = time.perf_counter()
        begin.record()
        call()
        end.record()
        self.host = max(time.perf_counter() - first, self.host / 2)
        end.synchronize()
        return begin.elapsed_time(end) / 1e3
