"""A pair of layers over ranks whose weights travel in place of tokens and summands: sparse weights are often the smaller of the two."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from . import _shared
from ._collectives import Group, Move, begin, end, moved
from ._partition import part_of

WEIGHTS: Literal["weights"] = "weights"


@dataclasses.dataclass(frozen=True)
class Places:
    """Where entries (blocks, or features) of the whole lie when what the ranks have is put one behind the other, `each` of a rank with padding.

    counts: entries of each rank without padding. found: where each entry of the whole lies; None: in this order. entry: the entry at each place, of padding
    any. plain: as many numbers from 0 on as there are places.
    """

    each: int
    counts: tuple[int, ...]
    found: Tensor | None
    entry: Tensor | None
    plain: Tensor

    def entries(self, rank: int) -> Tensor:
        """Those of the whole that a rank has."""
        return (self.plain if self.entry is None else self.entry)[rank * self.each :][: self.counts[rank]]


def _places(numbers: Sequence[Tensor], each: int, device: torch.device) -> Places:
    """numbers: of each rank the entries of the whole that it has, in its order."""
    counts = tuple(map(len, numbers))
    entry = torch.zeros(len(numbers) * each, dtype=torch.int64, device="cpu")
    found = torch.empty(sum(counts), dtype=torch.int64, device="cpu")
    for rank, mine in enumerate(numbers):
        entry[rank * each : rank * each + len(mine)] = mine
        found[mine] = rank * each + torch.arange(len(mine), device="cpu")
    plain = torch.arange(len(numbers) * each, device="cpu")
    in_order = torch.equal(found, plain)
    return Places(each, counts, None if in_order else found.to(device), None if in_order else entry.to(device), plain.to(device))


def _padded(x: Tensor, count: int) -> Tensor:
    if x.shape[0] == count:
        return x.contiguous()
    made = x.new_zeros(count, *x.shape[1:])
    made[: x.shape[0]] = x
    return made


@dataclasses.dataclass
class Assemble(Move):
    """The entries of all ranks, in the order of the whole; gradients are summed, and each rank gets its entries'."""

    group: Group
    places: Places

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        buffer = x.new_empty(self.group.size() * self.places.each, *x.shape[1:])
        return buffer, dist.all_gather_into_tensor(buffer, _padded(x, self.places.each), group=self.group, async_op=True)

    def end(self, buffer: Tensor) -> Tensor:
        return buffer if self.places.found is None else buffer.index_select(0, self.places.found)

    def reverse(self) -> Move:
        return Distribute(self.group, self.places)


@dataclasses.dataclass
class Distribute(Move):
    """Entries of the whole are summed over the ranks, of which each gets its own."""

    group: Group
    places: Places

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        parts = x.contiguous() if self.places.entry is None else x.index_select(0, self.places.entry)
        buffer = x.new_empty(self.places.each, *x.shape[1:])
        return buffer, dist.reduce_scatter_tensor(buffer, parts, group=self.group, async_op=True)

    def end(self, buffer: Tensor) -> Tensor:
        return buffer[: self.places.counts[self.group.rank()]]

    def reverse(self) -> Move:
        return Assemble(self.group, self.places)


class AssembleAlone(Assemble):
    """That of one rank which gets zeros from the others: the products are those of the whole."""

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        return x.new_zeros(self.group.size() * self.places.each, *x.shape[1:]), None

    def reverse(self) -> Move:
        return DistributeAlone(self.group, self.places)


class DistributeAlone(Distribute):
    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        return x.new_zeros(self.places.each, *x.shape[1:]), None


# ------------------------------------------------------------------------------------------------ by copies


_MOST = 8  # channels
_COMING = 1


def _laid(x: Tensor, entries: Tensor, out: Tensor) -> None:
    """Entries of x, by a kernel, also into another GPU's memory. Unlike a copy engine it starts at once; it takes multiprocessors from what runs beside it."""
    torch.index_select(x, 0, entries, out=out)


class _Fetch:
    """What the ranks have of several tensors, in one exchange.

    The first `ahead` tensors are waited for by the first products: kernels send them, and they are ordered where they are taken. The others come under these
    products, aside of the current stream, by copy engines. All memory is the current stream's: it waits for a mark before it uses or frees any, so that the
    allocator need not know of the other stream.
    """

    def __init__(self, memory: _shared.Memory, tensors: Sequence[tuple[Tensor, Places]], firsts: Sequence[int], ahead: int):
        self.memory, self.items = memory, [(first, places, x.shape[1:], x.dtype) for first, (x, places) in zip(firsts, tensors, strict=True)]
        self.made = [x.new_empty(sum(places.counts), *x.shape[1:]) for x, places in tensors]
        self.ahead = ahead
        self.sent: list[Tensor] = []
        self.marks: dict[int, Any] = {}  # where a tensor has been put into `made`
        _shared.catch_up(memory)  # send() writes here what an exchange before may read
        self.exchange = _shared.Exchange(memory)
        self.end: Any = None  # a mark
        memory.open = self.finish

    def place(self, at: int, rank: int) -> int:
        first, places, entry, dtype = self.items[at]
        return first + rank * places.each * entry.numel() * dtype.itemsize

    def part(self, at: int, rank: int, count: int, where: int) -> Tensor:
        """What a rank has of a tensor, as it lies at rank `where`."""
        entry, dtype = self.items[at][2:]
        return self.memory.view(where, self.place(at, rank), (count, *entry), dtype)

    def send(self, at: int, x: Tensor) -> None:
        """In the order of the tensors. x: contiguous, and there before this was made."""
        exchange, rank, count = self.exchange, self.memory.rank, x.shape[0]
        self.sent.append(x)
        for other in self.memory.others:
            if at < self.ahead:
                with exchange.apart():
                    _laid(x, self.items[at][1].plain[:count], self.part(at, rank, count, other))
                exchange.signal(other, _COMING + at)
            else:
                exchange.send(x, other, self.place(at, rank), _COMING + at)
        with exchange.apart(at >= self.ahead):
            self.part(at, rank, count, rank).copy_(x)
        if at + 1 == len(self.items):
            for later in range(self.ahead, len(self.items)):
                with exchange.apart():
                    self._receive(later)
                self.marks[later] = exchange.mark()

    def _receive(self, at: int) -> None:
        first, places, entry, dtype = self.items[at]
        self.exchange.wait_all(_COMING + at)
        came = self.exchange.here(first, (self.memory.ranks * places.each, *entry), dtype)
        if places.found is None:
            self.made[at].copy_(came)
        else:
            _laid(came, places.found, self.made[at])

    def _receive_here(self, at: int) -> None:
        self._receive(at)
        self.marks[at] = self.exchange.mark_here()

    def take(self, at: int) -> Tensor:
        if at >= self.ahead or at in self.marks:
            self.exchange.behind(self.marks[at])
        else:
            self._receive_here(at)
        made, self.made[at] = self.made[at], self.made[at].new_empty(0)
        if len(self.marks) == len(self.items):
            self.finish()
        return made

    def finish(self) -> None:
        """What came may be overwritten: all of it has been put into `made`."""
        if self.memory.open != self.finish:
            return
        self.memory.open = None
        for at in range(self.ahead):
            if at not in self.marks:  # not taken yet, or not at all: the signals are used up, for what comes next
                self._receive_here(at)
            self.exchange.follow_mark(self.marks[at])
        self.end = self.exchange.end_apart()

    def join(self) -> None:
        """The current stream goes on behind all of it."""
        if len(self.sent) == len(self.items):
            self.finish()
        else:  # after an error: nobody takes what came, but memory that was sent may be freed
            self.memory.open, self.end = None, self.exchange.mark()
        self.exchange.behind(self.end)
        self.sent.clear()


class AssembleByCopies(Move):
    """Assemble where ranks copy into each other's memory. Gradients go in an exchange each, as soon as they are there."""

    def __init__(self, fetch: _Fetch, at: int):
        self.group, self.fetch, self.at = fetch.memory.group, fetch, at
        self.back = _DistributeByCopies(fetch, at)

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        self.fetch.send(self.at, x)
        return x.new_empty(0), None

    def end(self, buffer: Tensor) -> Tensor:
        return self.fetch.take(self.at)

    def reverse(self) -> Move:
        return self.back


class _DistributeByCopies(Move):
    """Distribute likewise: what came is added to what is here, in the order of the ranks."""

    def __init__(self, fetch: _Fetch, at: int):
        self.group, self.fetch, self.at = fetch.memory.group, fetch, at
        self.exchange: _shared.Exchange | None = None
        self.mark: Any = None
        self.used: Tensor | None = None  # aside

    def begin(self, x: Tensor) -> tuple[Tensor, Any]:
        fetch, memory, places = self.fetch, self.fetch.memory, self.fetch.items[self.at][1]
        x, rank = x.contiguous(), memory.rank
        made = x.new_empty(places.counts[rank], *x.shape[1:])
        exchange = self.exchange = _shared.Exchange(memory)
        with exchange.apart():
            for other in memory.others:
                _laid(x, places.entries(other), fetch.part(self.at, rank, places.counts[other], other))
                exchange.signal(other, _COMING + self.at)
            _laid(x, places.entries(rank), made)
            exchange.wait_all(_COMING + self.at)
            for other in sorted(memory.others):
                made += fetch.part(self.at, other, places.counts[rank], rank)
        self.mark, self.used = exchange.end_apart(), x
        return made, None

    def end(self, buffer: Tensor) -> Tensor:
        assert self.exchange is not None
        self.exchange.behind(self.mark)
        self.used = None
        return buffer


# ------------------------------------------------------------------------------------------------ of layers


@dataclasses.dataclass(frozen=True)
class Shape:
    """What assembles a layer: the places of its blocks and of its bias, and the indices of the whole on the layer's device. bias: None: all ranks have it."""

    blocks: Places
    bias: Places | None
    row_offsets: Tensor
    col_indices: Tensor


def shape_of(layer: Any, device: torch.device) -> Shape:
    """The same object for a layer each time, as plans are kept for its indices."""
    known = layer.__dict__.get("assembled")
    if known is None or known.row_offsets.device != device:
        with torch.inference_mode(False):  # it is kept, also for training
            known = layer.__dict__["assembled"] = _shape_of(layer, device)
    return known  # type: ignore[no-any-return]


def _shape_of(layer: Any, device: torch.device) -> Shape:
    whole, deal = layer.whole, layer.deal
    numbers = [part_of(whole.row_offsets, whole.col_indices, layer.dim, deal, rank).blocks for rank in range(deal.ranks)]
    bias = None
    if layer.dim == 0 and layer.bias is not None:
        bias = _places([deal.features_of(rank) for rank in range(deal.ranks)], deal.features, device)
    return Shape(_places(numbers, max(map(len, numbers)), device), bias, whole.row_offsets.to(device), whole.col_indices.to(device))


def _tensors(layer: Any, rank: int) -> list[tuple[Tensor, Places]]:
    """What is here of a layer, and travels: its values, and of dealt outputs the bias."""
    values, bias, *_ = layer.held
    shape = shape_of(layer, values.device)
    tensors = [(values, shape.blocks)] + ([(bias[: shape.bias.counts[rank]], shape.bias)] if shape.bias is not None else [])
    return [(x.contiguous(), places) for x, places in tensors]


def _fetch(group: Group, tensors: Sequence[tuple[Tensor, Places]], ahead: int) -> _Fetch | None:
    """None: by collectives. The same at all ranks."""
    rooms = _shared.Places()
    firsts = [rooms.take((group.size() * places.each, *x.shape[1:]), x.dtype) for x, places in tensors]
    memory = _shared.memory_of(group, tensors[0][0].device, rooms.size) if len(tensors) <= _MOST else None
    return None if memory is None else _Fetch(memory, tensors, firsts, ahead)


def _operands(layer: Any, coming: Sequence[Any]) -> Callable[[], Any]:
    """Waits for what is under way."""
    _, bias, *_ = layer.held
    shape = layer.assembled

    def operands() -> Any:
        values, *others = map(end, coming)
        return values, others[0] if others else bias, shape.row_offsets, shape.col_indices

    return operands


def run(plan: Any, x: Tensor, inner: Callable[[Tensor], Tensor], layers: Sequence[Any], alone: bool = False) -> Tensor:
    """Each rank multiplies its own tokens by the whole weights, which come layer by layer, under the products of those before; the gradients of their values
    are summed likewise. layers: hold what is here of them, in the order of their products. alone: nothing comes, and zeros take its place."""
    group, rank, lead = plan.mesh.get_group(), plan.mesh.get_local_rank(), [1] * (x.dim() - 2)
    if plan.dim_in is not None:
        own = x.reshape(-1, x.shape[-1])
    else:
        own = plan._by_rank(x if alone else moved(x, plan.before), plan.dim_out)[rank]
    tensors = [_tensors(layer, rank) for layer in layers]
    every = [tensor for of_layer in tensors for tensor in of_layer]
    fetch = None if alone else _fetch(group, every, len(every) - len(tensors[-1]))
    kind = AssembleAlone if alone else Assemble
    moves = iter([AssembleByCopies(fetch, at) if fetch is not None else kind(group, places) for at, (_, places) in enumerate(every)])
    with contextlib.ExitStack() as wholes:
        if fetch is not None:
            wholes.callback(fetch.join)
        coming = [[begin(tensor, next(moves)) for tensor, _ in of_layer] for of_layer in tensors]
        for layer, of_layer in zip(layers, coming, strict=True):
            wholes.enter_context(layer.as_whole(_operands(layer, of_layer)))
        made = inner(own.view(*lead, *own.shape) if lead else own)
        for layer in layers:
            layer._operands()  # what came is taken also where nothing was multiplied by it
    return plan._joined(x, [made.flatten(0, -2)])  # type: ignore[no-any-return]
