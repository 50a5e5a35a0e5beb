"""Collectives on [tokens, features] in two halves, begin and end, with something to compute between them: forward, and backward as well."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

Group = dist.ProcessGroup


class Move:
    """How tensors go between ranks. begin: gives a buffer that holds the result once its work was waited for; end: what is to be done then."""

    group: Group

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        return x, None

    def end(self, buffer: Tensor) -> Tensor:
        return buffer

    def reverse(self) -> Move:
        """That of gradients."""
        raise NotImplementedError


@dataclasses.dataclass
class Stay(Move):
    """Nothing moves, neither forward nor backward."""

    group: Group

    def reverse(self) -> Move:
        return self


@dataclasses.dataclass
class Copy(Move):
    """All ranks have the same, of which each computes a part: gradients are summed."""

    group: Group

    def reverse(self) -> Move:
        return Sum(self.group)


@dataclasses.dataclass
class Sum(Move):
    """Over the ranks, in place where `owned`."""

    group: Group
    owned: bool = False

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x if self.owned and x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)
        return buffer, dist.all_reduce(buffer, group=self.group, async_op=True)

    def reverse(self) -> Move:
        return Copy(self.group)


@dataclasses.dataclass
class Gather(Move):
    """The tokens of all ranks, one rank's behind the other's; gradients are summed, and each rank gets its tokens'."""

    group: Group

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(self.group.size() * x.shape[0], *x.shape[1:])
        return buffer, dist.all_gather_into_tensor(buffer, x.contiguous(), group=self.group, async_op=True)

    def reverse(self) -> Move:
        return Scatter(self.group)


@dataclasses.dataclass
class Scatter(Move):
    """Sums over the ranks, of which each gets its tokens'."""

    group: Group
    into: Tensor | None = None  # the buffer

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(x.shape[0] // self.group.size(), *x.shape[1:]) if self.into is None else self.into
        return buffer, dist.reduce_scatter_tensor(buffer, x.contiguous(), group=self.group, async_op=True)

    def reverse(self) -> Move:
        return Gather(self.group)


@dataclasses.dataclass
class Join(Move):
    """Features of all ranks at every rank. order: where each feature of the whole lies among them; None: in this order."""

    group: Group
    order: Tensor | None
    local: Tensor | None  # of the features here the place in the whole, which has one behind the last where there is padding

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(self.group.size() * x.shape[0], x.shape[1])
        return buffer, dist.all_gather_into_tensor(buffer, x.contiguous(), group=self.group, async_op=True)

    def end(self, buffer: Tensor) -> Tensor:
        ranks = self.group.size()
        side = buffer.view(ranks, -1, buffer.shape[1]).transpose(0, 1).reshape(buffer.shape[0] // ranks, -1)
        return side if self.order is None else side.index_select(1, self.order)

    def reverse(self) -> Move:
        return Pick(self.group, self.order, self.local)


@dataclasses.dataclass
class Pick(Move):
    """Of features that all ranks have, each takes its own; gradients of all are put together again."""

    group: Group
    order: Tensor | None
    local: Tensor | None

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        if self.local is None:
            return x.chunk(self.group.size(), 1)[self.group.rank()].contiguous(), None
        return torch.nn.functional.pad(x, (0, 1)).index_select(1, self.local), None

    def reverse(self) -> Move:
        return Join(self.group, self.order, self.local)


@dataclasses.dataclass
class Exchange(Move):
    """Features go from ranks to ranks. sent: the features here, in the order of the ranks that get them; counts of them for each rank; received: where each
    feature that comes lies here, of `width`."""

    group: Group
    sent: Tensor
    sent_counts: list[int]
    received: Tensor
    received_counts: list[int]
    widths: tuple[int, int]

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(len(self.received), x.shape[0])
        sent = x.t().index_select(0, self.sent)
        return buffer, dist.all_to_all_single(buffer, sent, self.received_counts, self.sent_counts, group=self.group, async_op=True)

    def end(self, buffer: Tensor) -> Tensor:
        made = buffer.new_zeros(self.widths[1], buffer.shape[1]) if len(self.received) < self.widths[1] else torch.empty_like(buffer)
        return made.index_copy_(0, self.received, buffer).t().contiguous()

    def reverse(self) -> Move:
        return Exchange(self.group, self.received, self.received_counts, self.sent, self.sent_counts, self.widths[::-1])


@dataclasses.dataclass
class Parcels(Move):
    """Rows go from ranks to ranks: so many to each, so many from each, in the order of the ranks."""

    group: Group
    sent: list[int]
    received: list[int]

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(sum(self.received), *x.shape[1:])
        return buffer, dist.all_to_all_single(buffer, x.contiguous(), self.received, self.sent, group=self.group, async_op=True)

    def reverse(self) -> Move:
        return Parcels(self.group, self.received, self.sent)


@dataclasses.dataclass
class Swap(Move):
    """Entry r of dimension 0 goes to rank r; what comes from rank r stands there."""

    group: Group

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = torch.empty_like(x, memory_format=torch.contiguous_format)
        return buffer, dist.all_to_all_single(buffer, x.contiguous(), group=self.group, async_op=True)

    def reverse(self) -> Move:
        return self


class _Works:
    """Several that are waited for together."""

    def __init__(self, works: list[Any]):
        self.works = works

    def wait(self) -> None:
        for work in self.works:
            work.wait()


def _sent(group: Group, pairs: list[tuple[Tensor, int, Tensor, int]]) -> _Works:
    """pairs: a tensor, how many ranks further it goes, and one that is filled from so many ranks further; all at once."""
    ranks, rank = group.size(), group.rank()
    messages = []
    for out, to, into, of in pairs:
        messages.append(dist.P2POp(dist.isend, out, group=group, group_peer=(rank + to) % ranks))
        messages.append(dist.P2POp(dist.irecv, into, group=group, group_peer=(rank + of) % ranks))
    return _Works(dist.batch_isend_irecv(messages))


@dataclasses.dataclass
class Fetch(Move):
    """The tokens of all other ranks, the one before first; gradients go back to each, and are summed there."""

    group: Group

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        others, x = self.group.size() - 1, x.contiguous()
        buffer = x.new_empty(others * x.shape[0], *x.shape[1:])
        return buffer, _sent(self.group, [(x, step + 1, part, -step - 1) for step, part in enumerate(buffer.chunk(others))])

    def reverse(self) -> Move:
        return Return(self.group)


@dataclasses.dataclass
class Return(Move):
    """What was made of tokens that Fetch brought goes back to each rank, which sums it in the order of the ranks behind it."""

    group: Group

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        others, x = self.group.size() - 1, x.contiguous()
        buffer = torch.empty_like(x)
        parts = zip(x.chunk(others), buffer.chunk(others), strict=True)
        return buffer, _sent(self.group, [(out, -step - 1, into, step + 1) for step, (out, into) in enumerate(parts)])

    def end(self, buffer: Tensor) -> Tensor:
        first, *others = buffer.chunk(self.group.size() - 1)
        for other in others:
            first = first + other
        return first

    def reverse(self) -> Move:
        return Fetch(self.group)


class Flight:
    """One move of one tensor, and of its gradient: what is under way."""

    def __init__(self, move: Move):
        self.move = move
        self.work: Any = None
        self.back: Tensor | None = None

    def wait(self) -> None:
        """On CUDA the stream waits, not the host. An error of the process group is raised here."""
        if self.work is not None:
            self.work.wait()
            self.work = None


class _Begin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, flight: Flight) -> Tensor:
        ctx.flight = flight
        buffer, flight.work = flight.move.begin(x)
        if buffer is x and flight.work is not None:
            ctx.mark_dirty(x)
        return buffer

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        flight = ctx.flight
        flight.wait()
        back, flight.back = flight.back, None
        return flight.move.reverse().end(back), None


class _End(torch.autograd.Function):
    """Backward, this one begins: the engine goes on with what was computed before it in the forward pass, and comes to _Begin last."""

    @staticmethod
    def forward(ctx: Any, buffer: Tensor, flight: Flight) -> Tensor:
        ctx.flight, ctx.shape = flight, buffer.shape
        flight.wait()
        return flight.move.end(buffer)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        flight = ctx.flight
        flight.back, flight.work = flight.move.reverse().begin(grad)
        return grad.new_empty(1).expand(ctx.shape), None  # of the buffer, which nobody reads


def begin(x: Tensor, move: Move) -> tuple[Tensor, Flight]:
    flight = Flight(move)
    if x.requires_grad and torch.is_grad_enabled():
        return _Begin.apply(x, flight), flight  # type: ignore[no-untyped-call]
    buffer, flight.work = move.begin(x)
    return buffer, flight


def end(pending: tuple[Tensor, Flight]) -> Tensor:
    buffer, flight = pending
    if buffer.requires_grad:
        return _End.apply(buffer, flight)  # type: ignore[no-any-return, no-untyped-call]
    flight.wait()
    return flight.move.end(buffer)


def moved(x: Tensor, move: Move) -> Tensor:
    """Both halves, one behind the other."""
    return end(begin(x, move))
