"""A pair of layers over ranks whose tokens and summands go by copies: the devices' processors have nothing to do but products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .. import _ops
from . import _shared
from ._shared import Exchange, Memory, Places
from ._sizes import cut, sizes_of

COPIES: Literal["copies"] = "copies"
LATE: Literal["late copies"] = "late copies"
_COMING, _BACK = 1, 9  # channels: of pieces of tokens, eight at most; of summands

Came = Callable[[], Tensor]


class _Regions:
    """Where things lie in a memory: others' tokens, piece by piece, and their summands of the own tokens. A sender is the number of a rank among the others, of
    which the first is the rank behind this one."""

    def __init__(self, ranks: int, own: int, widths: tuple[int, int], dtype: torch.dtype, pieces: Sequence[int]):
        places = Places()
        self.others, self.own, self.widths, self.dtype, self.pieces = ranks - 1, own, widths, dtype, pieces
        self.coming = [places.take((self.others, piece, widths[0]), dtype) for piece in pieces]
        self.back = [places.take((own, widths[1]), dtype) for _ in range(self.others)]
        self.size = places.size

    def token(self, sender: int, piece: int) -> int:
        return self.coming[piece] + sender * self.pieces[piece] * self.widths[0] * self.dtype.itemsize

    def summand(self, sender: int, first: int) -> int:
        return self.back[sender] + first * self.widths[1] * self.dtype.itemsize

    def received(self, exchange: Exchange, first: int, count: int) -> Tensor:
        """The summands of some tokens, added in the order of the senders."""
        made, *others = (exchange.here(self.summand(sender, first), (count, self.widths[1]), self.dtype) for sender in range(self.others))
        for other in others:
            made = made + other
        return made


def _send_back(exchange: Exchange, regions: _Regions, made: Tensor, first: int, channel: int | None) -> None:
    """made: summands of tokens of all others, from the token `first` of each."""
    exchange.follow()
    parts = made.contiguous().view(regions.others, -1, regions.widths[1])
    for part, rank in zip(parts, exchange.memory.others, strict=True):
        exchange.send(part, rank, regions.summand(exchange.memory.sender_at(rank), first), channel)


def _order(own: int, count: int) -> tuple[int, list[tuple[int, int]]]:
    """How many of the own tokens are multiplied first, and the pieces, (first token, tokens), as they travel.

    Those that the other ranks multiply last travel first: their summands are back by then, and are added by the product itself.
    """
    if count == 1:
        return own // 2, [(0, own)]
    late = count // 2
    early = own - own * late // count
    sizes = [*sizes_of(own - early, late), *sizes_of(early, count - late)]
    firsts = [early + sum(sizes[:at]) for at in range(late)] + [sum(sizes[late:at]) for at in range(late, count)]
    return early, list(zip(firsts, sizes, strict=True))


class _Rounds:
    """Tokens of others come, and their summands go back; own tokens are multiplied first and last.

    product: (which, tokens) -> summands; which: "early", "late", or the number of a piece of the others' tokens. onto: is told what the late product adds
    itself, and where it writes the sum. keep: what comes is copied, as its place is used again before a backward pass.
    """

    def __init__(self, ranks: int, own: int, widths: tuple[int, int], dtype: torch.dtype, count: int):
        self.early, self.pieces = _order(own, count)
        self.regions = _Regions(ranks, own, widths, dtype, [size for _, size in self.pieces])
        self.together = count == 1  # all summands come at once

    def run(
        self, memory: Memory, own: Tensor, product: Callable[[Any, Tensor], Tensor], onto: Callable[[Came, Tensor], None] | None = None, keep: bool = False
    ) -> Tensor:
        exchange, regions, early = Exchange(memory), self.regions, self.early
        for at, (first, count) in enumerate(self.pieces):
            for rank in memory.others:
                exchange.send(own[first : first + count], rank, regions.token(memory.sender_at(rank), at), _COMING + at)
        mine = product("early", own[:early]) if early else None
        for at, (first, count) in enumerate(self.pieces):
            exchange.wait_all(_COMING + at)
            came = exchange.here(regions.coming[at], (regions.others * count, regions.widths[0]), regions.dtype)
            last_of_late = at + 1 < len(self.pieces) and first >= early > self.pieces[at + 1][0]
            channel = _BACK + 1 if at + 1 == len(self.pieces) else _BACK if last_of_late else None
            _send_back(exchange, regions, product(at, came.clone() if keep else came), first, channel)
        whole = own.new_empty(own.shape[0], regions.widths[1])
        # No view: it is the result of a step of autograd's, which may be no view of what others write into.
        late = own.new_empty(0).set_(whole.untyped_storage(), early * regions.widths[1], (own.shape[0] - early, regions.widths[1]))  # type: ignore[call-overload]

        def came_late() -> Tensor:
            exchange.wait_all(_BACK + self.together)
            return regions.received(exchange, early, len(late))

        if onto is not None:
            onto(came_late, late)
            product("late", own[early:])
        else:
            torch.add(product("late", own[early:]), came_late(), out=late)
        if mine is not None:
            if not self.together:
                exchange.wait_all(_BACK + 1)
            torch.add(mine, regions.received(exchange, 0, early), out=whole[:early])
        exchange.end()
        return whole


# ------------------------------------------------------------------------------------------------ of a plan


def may_copy(plan: Any, x: Tensor, training: bool) -> bool:
    """Whether the copies are made for such a call."""
    last = plan.last
    if last is None or not plan.may_be_direct or _ops.any_autocast() or x.dtype is not last.values.dtype or not x.numel():
        return False
    return not training or plan.dim_in is not None and plan.closed and x.requires_grad


def run(
    plan: Any, x: Tensor, inner: Callable[[Tensor], Tensor], way: Any, layers: Sequence[Any], of: Callable[..., Memory | None] = _shared.memory_of
) -> Tensor | None:
    """None: not here; another way is taken, at all ranks. of: gives the memory."""
    training = torch.is_grad_enabled() and (x.requires_grad or any(layer.values.requires_grad for layer in layers))
    if not may_copy(plan, x, training):
        return None
    ranks, last = plan.mesh.size(), plan.last
    own = x[..., 0].numel() // (1 if plan.dim_in is not None else ranks)
    widths, count = (x.shape[-1], last.out_features), min(way.pieces, own, _BACK - _COMING)
    rounds = _Rounds(ranks, own, widths, x.dtype, count) if plan.dim_in is not None else None
    regions = rounds.regions if rounds is not None else _Regions(ranks, own, widths, x.dtype, [])
    memory = of(plan.mesh.get_group(), x.device, regions.size)
    if memory is None:
        return None
    lead = [1] * (x.dim() - 2)

    def product(tokens: Tensor) -> Tensor:
        return inner(tokens.view(*lead, *tokens.shape) if lead else tokens).flatten(0, -2)

    try:
        if rounds is None:
            whole = (_late if way.direct == LATE else _scattered)(plan, memory, regions, x, product if way.direct != LATE else inner, count)
        elif training:
            leaves = [leaf for layer in layers for leaf in layer.hold(leaves=False)]
            back = _Rounds(ranks, own, widths[::-1], x.dtype, count)
            whole = _Trained.apply(x.reshape(own, -1).contiguous(), (memory, rounds, back, product, last, layers), *leaves)  # type: ignore[no-untyped-call]
        else:
            whole = rounds.run(memory, x.reshape(own, -1).contiguous(), lambda _, tokens: product(tokens), last.add_next)
    finally:
        last.forget()
    return plan._joined(x, [whole])  # type: ignore[no-any-return]


def _scattered(plan: Any, memory: Memory, regions: _Regions, x: Tensor, product: Callable[[Tensor], Tensor], count: int) -> Tensor:
    """All ranks have all tokens: those of others are multiplied first, and the summands of these are added by the product of the own ones."""
    sides = plan._by_rank(x, plan.dim_out).unbind(0)
    exchange, first = Exchange(memory), 0
    for at, parts in enumerate(zip(*(cut(sides[rank], count) for rank in memory.others), strict=True)):
        made = product(torch.cat(parts) if len(parts) > 1 else parts[0])
        _send_back(exchange, regions, made, first, _BACK if at + 1 == count else None)
        first += len(parts[0])
    whole = x.new_empty(regions.own, regions.widths[1])

    def came() -> Tensor:
        exchange.wait_all(_BACK)
        return regions.received(exchange, 0, regions.own)

    plan.last.add_next(came, whole)
    product(sides[memory.rank])
    exchange.end()
    return whole


def _late(plan: Any, memory: Memory, regions: _Regions, x: Tensor, inner: Callable[[Tensor], Tensor], count: int) -> Tensor:
    """The same, but all tokens go through the layers before the last at once, and only that one works on pieces."""
    exchange, last = Exchange(memory), plan.last
    whole = x.new_empty(regions.own, regions.widths[1])

    def pieces(hidden: Tensor) -> Tensor:
        sides = plan._by_rank(hidden, plan.dim_out).unbind(0)
        first = 0
        for at, parts in enumerate(zip(*(cut(sides[rank], count) for rank in memory.others), strict=True)):
            made = last.local(torch.cat(parts) if len(parts) > 1 else parts[0])
            _send_back(exchange, regions, made, first, _BACK + at)
            first += len(parts[0])
        first = 0
        for at, part in enumerate(cut(sides[memory.rank], count)):

            def came(at: int = at, first: int = first, count: int = len(part)) -> Tensor:
                exchange.wait_all(_BACK + at)
                return regions.received(exchange, first, count)

            last.add_next(came, whole[first : first + len(part)])
            last.local(part)
            first += len(part)
        return whole

    last.work_next(pieces)
    inner(x)
    exchange.end()
    return whole


class _Trained(torch.autograd.Function):
    """Both passes are one exchange each, in the same order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, work: Any, *_leaves: Tensor) -> Tensor:
        memory, rounds, ctx.back, inner, last, layers = work
        ctx.leaves = [leaf for layer in layers for leaf in layer.hold(leaves=True)]
        ctx.memory, ctx.pieces = memory, {}

        def product(which: Any, tokens: Tensor) -> Tensor:
            with torch.enable_grad():
                leaf = tokens.detach().requires_grad_()
                made = inner(leaf)
            ctx.pieces[which] = (leaf, made)
            return made.detach()

        return rounds.run(memory, x, product, last.add_next, keep=True)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        sums: list[Tensor | None] = [None] * len(ctx.leaves)

        def product(which: Any, grad: Tensor) -> Tensor:
            leaf, made = ctx.pieces.pop(which)
            of_leaf, *found = torch.autograd.grad(made, [leaf, *ctx.leaves], grad, allow_unused=True)
            for at, part in enumerate(found):
                if part is not None:
                    before = sums[at]
                    sums[at] = part if before is None else before.add_(part)
            return of_leaf

        return ctx.back.run(ctx.memory, grad.contiguous(), product), None, *sums
