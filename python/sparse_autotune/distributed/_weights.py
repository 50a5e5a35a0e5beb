"""A pair of layers over ranks whose weights travel in place of tokens and summands: sparse weights are often the smaller of the two."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ._deal import part_of
from ._moves import Group, Move, begin, end, moved

WEIGHTS: Literal["weights"] = "weights"


@dataclasses.dataclass(frozen=True)
class Places:
    """Where entries (blocks, or features) of the whole lie when what the ranks have is put one behind the other, `each` of a rank with padding.

    counts: entries of each rank without padding. found: where each entry of the whole lies; None: in this order. entry: the entry at each place, of padding
    any.
    """

    each: int
    counts: tuple[int, ...]
    found: Tensor | None
    entry: Tensor | None


def _places(numbers: Sequence[Tensor], each: int, device: torch.device) -> Places:
    """numbers: of each rank the entries of the whole that it has, in its order."""
    counts = tuple(map(len, numbers))
    entry = torch.zeros(len(numbers) * each, dtype=torch.int64)
    found = torch.empty(sum(counts), dtype=torch.int64)
    for rank, mine in enumerate(numbers):
        entry[rank * each : rank * each + len(mine)] = mine
        found[mine] = rank * each + torch.arange(len(mine))
    plain = torch.equal(found, torch.arange(len(numbers) * each))
    return Places(each, counts, None if plain else found.to(device), None if plain else entry.to(device))


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
        whole, deal = layer.whole, layer.deal
        numbers = [part_of(whole.row_offsets, whole.col_indices, layer.dim, deal, rank).blocks for rank in range(deal.ranks)]
        bias = None
        if layer.dim == 0 and layer.bias is not None:
            units = [torch.tensor(mine, dtype=torch.int64) for mine in deal.units]
            features = [(mine[:, None] * deal.width + torch.arange(deal.width)).flatten() for mine in units]
            bias = _places(features, deal.features, device)
        known = Shape(_places(numbers, max(map(len, numbers)), device), bias, whole.row_offsets.to(device), whole.col_indices.to(device))
        layer.__dict__["assembled"] = known
    return known


def _assembled(layer: Any, group: Group, kind: type[Assemble]) -> Callable[[], Any]:
    """Begins to fetch the whole of a layer; what it gives waits for it."""
    values, bias, *_ = layer.held
    shape = shape_of(layer, values.device)
    coming = begin(values, kind(group, shape.blocks))
    coming_bias = None
    if shape.bias is not None:
        coming_bias = begin(bias[: shape.bias.counts[group.rank()]], kind(group, shape.bias))

    def operands() -> Any:
        return end(coming), bias if coming_bias is None else end(coming_bias), shape.row_offsets, shape.col_indices

    return operands


def run(plan: Any, x: Tensor, inner: Callable[[Tensor], Tensor], layers: Sequence[Any], kind: type[Assemble] = Assemble) -> Tensor:
    """Each rank multiplies its own tokens by the whole weights, which come layer by layer, under the products of those before; the gradients of their values
    are summed likewise. layers: hold what is here of them, in the order of their products."""
    group, lead = plan.mesh.get_group(), [1] * (x.dim() - 2)
    if plan.dim_in is not None:
        own = x.reshape(-1, x.shape[-1])
    else:
        own = plan._by_rank(moved(x, plan.before) if kind is Assemble else x, plan.dim_out)[plan.mesh.get_local_rank()]
    with contextlib.ExitStack() as wholes:
        for layer, operands in [(layer, _assembled(layer, group, kind)) for layer in layers]:
            wholes.enter_context(layer.as_whole(operands))
        made = inner(own.view(*lead, *own.shape) if lead else own)
    return plan._joined(x, [made.flatten(0, -2)])  # type: ignore[no-any-return]
