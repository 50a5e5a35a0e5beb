"""A product over ranks in pieces of tokens: what one piece sends travels while the next is multiplied. How many pieces is measured once."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Shard

from .. import _options
from ._choices import in_memory, tune_once
from ._moves import Flight, Gather, Move, Scatter, Sum, begin, end

COUNTS = (1, 2, 4, 8)
_ROUNDS = 5
_PIECE = 1024  # tokens that keep a device busy, roughly

Inner = Callable[[Tensor], Tensor]


def estimated(tokens: int) -> int:
    """Pieces where nothing may be measured."""
    return max((count for count in COUNTS[:-1] if count * _PIECE <= tokens), default=1)


@dataclasses.dataclass
class Plan:
    """What a layer, or a pair of layers, does with its input and result. before, after: how pieces travel; layouts: of the input and the result.

    given: the pieces that the user wants, or None. chosen: what was measured.
    """

    mesh: DeviceMesh
    before: Move
    after: Move
    layouts: tuple[Placement, Placement]
    use_local_output: bool
    given: int | None = None
    width: int = 0  # features that a piece has when it came; 0: as many as the input
    chosen: dict[str, int] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        scattered = [layout.dim if isinstance(layout, Shard) and kind in (Gather, Scatter) else None for layout, kind in self._kinds()]
        self.dim_in, self.dim_out = scattered
        if None not in scattered and scattered[0] != scattered[1]:
            raise ValueError(f"output_layouts: must be {self.layouts[0]} or Replicate(), where the inputs are {self.layouts[0]}; is {self.layouts[1]}")

    def _kinds(self) -> list[tuple[Placement, type[Move]]]:
        return [(self.layouts[0], type(self.before)), (self.layouts[1], type(self.after))]

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # works in flight are no part of a graph
    def __call__(self, x: Tensor, layers: Sequence[Any], inner: Inner, finish: Inner) -> Tensor:
        """inner: of a piece of tokens, with the dealt `layers`. finish: is applied to the whole result."""
        if isinstance(x, DTensor):
            x = (x if x.placements == (self.layouts[0],) else x.redistribute(placements=[self.layouts[0]])).to_local()
        count = self._count(x, layers, inner)
        try:
            for layer in layers:
                layer.hold(leaves=False)
            made = self._run(x, inner, count)
        finally:
            for layer in layers:
                layer.let_go()
        made = finish(made)
        return made if self.use_local_output else DTensor.from_local(made, self.mesh, [self.layouts[1]], run_check=False)

    # ------------------------------------------------------------------------------------------------ pieces

    def _dim(self, x: Tensor, dim: int) -> int:
        at = dim if dim >= 0 else dim + x.dim()
        if not 0 <= at < x.dim() - 1:
            raise ValueError(f"input: has {x.dim()} dimensions; tokens cannot be sharded along dimension {dim}, the last one has the features")
        return at

    def _by_rank(self, x: Tensor, dim: int) -> Tensor:
        """[ranks, tokens of each, features]"""
        ranks, at = self.mesh.size(), self._dim(x, dim)
        if x.shape[at] % ranks:
            raise ValueError(f"input: has {x.shape[at]} entries in dimension {at}, which {ranks} ranks cannot share equally")
        parted = x.reshape(*x.shape[:at], ranks, x.shape[at] // ranks, *x.shape[at + 1 :])
        return parted.movedim(at, 0).reshape(ranks, -1, x.shape[-1])

    def _cut(self, x: Tensor, count: int) -> list[Tensor]:
        if self.dim_in is not None or self.dim_out is None:
            return list(x.reshape(-1, x.shape[-1]).tensor_split(count))
        return [piece.reshape(-1, x.shape[-1]) for piece in self._by_rank(x, self.dim_out).tensor_split(count, 1)]

    def _joined(self, x: Tensor, parts: list[Tensor]) -> Tensor:
        """The result of all pieces, where tokens lie as those of x do; or elsewhere, where only one of them is scattered."""
        ranks, lead = self.mesh.size(), list(x.shape[:-1])
        if self.dim_in is not None and self.dim_out is None:
            at = self._dim(x, self.dim_in)
            sides = [part.view(ranks, -1, part.shape[-1]) for part in parts]
            whole = (sides[0] if len(sides) == 1 else torch.cat(sides, 1)).view(ranks, *lead, parts[0].shape[-1])
            lead[at] *= ranks
            return whole.movedim(0, at).reshape(*lead, -1)
        if self.dim_in is None and self.dim_out is not None:
            lead[self._dim(x, self.dim_out)] //= ranks
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).view(*lead, parts[0].shape[-1])

    def _run(self, x: Tensor, inner: Inner, count: int) -> Tensor:
        lead = [1] * (x.dim() - 2)
        coming = [begin(piece, self.before) for piece in self._cut(x, count)]
        going: list[tuple[Tensor, Flight]] = []
        whole: Tensor | None = None
        first = 0
        for pending in coming:
            tokens = end(pending)
            made = inner(tokens.view(*lead, *tokens.shape) if lead else tokens)
            after = self.after
            if made.dim() > 2 and not isinstance(after, Sum):  # which is in place, and would make autograd copy what is a view
                made = made.flatten(0, -2)
            if isinstance(after, Scatter) and count > 1 and not made.requires_grad:  # each into its place
                if whole is None:
                    whole = made.new_empty(x[..., 0].numel() // (1 if self.dim_in is not None else self.mesh.size()), made.shape[1])
                after = Scatter(after.group, whole[first : first + made.shape[0] // self.mesh.size()])
                first += made.shape[0] // self.mesh.size()
            going.append(begin(made, after))
        parts = [end(pending).flatten(0, -2) for pending in going]
        return self._joined(x, parts if whole is None else [whole])

    # ------------------------------------------------------------------------------------------------ how many

    def _count(self, x: Tensor, layers: Sequence[Any], inner: Inner) -> int:
        if self.mesh.size() == 1:
            return 1
        tokens = x[..., 0].numel()
        at_most = max(1, tokens // (self.mesh.size() if self.dim_in is None and self.dim_out is not None else 1))
        if self.given is not None:
            return min(self.given, at_most)
        training = torch.is_grad_enabled() and (x.requires_grad or any(layer.values.requires_grad for layer in layers))
        key = f"{tokens} tokens of {x.shape[-1]}, {str(x.dtype)[6:]}{', training' if training else ''}"
        if key in self.chosen:
            return min(self.chosen[key], at_most)
        if not _options.may_measure() or x.is_cuda and torch.cuda.is_current_stream_capturing():
            return min(estimated(tokens), at_most)
        counts = [count for count in COUNTS if count <= at_most]
        try:
            leaves = [leaf for layer in layers for leaf in layer.hold(leaves=True)]
            with torch.set_grad_enabled(training):
                self.chosen[key] = self._fastest(x.detach().requires_grad_(training and x.requires_grad), leaves, inner, counts)
        finally:
            for layer in layers:
                layer.let_go()
        return self.chosen[key]

    def _fastest(self, x: Tensor, leaves: list[Tensor], inner: Inner, counts: list[int]) -> int:
        """By alternated rounds, with the backward pass where there is one; the slowest rank counts, and the first one decides."""
        group = self.mesh.get_group()

        def once(made: Tensor, of: Tensor) -> None:
            if made.requires_grad:
                torch.autograd.grad(made, [*leaves, of] if of.requires_grad else leaves, torch.zeros_like(made), allow_unused=True)

        self._tune(x, inner, once, counts)
        times: dict[int, list[float]] = {count: [] for count in counts}
        for round_ in range(_ROUNDS + 1):
            for count in counts:
                taken = _elapsed(lambda count=count: once(self._run(x, inner, count), x), x.is_cuda)  # type: ignore[misc]
                if round_ > 0:
                    times[count].append(taken)
        medians = torch.tensor([statistics.median(times[count]) for count in counts], device=x.device)
        dist.all_reduce(medians, dist.ReduceOp.MAX, group=group)
        best = torch.tensor(counts, device=x.device)[medians.argmin()]
        dist.broadcast(best, dist.get_global_rank(group, 0), group=group)
        return int(best)

    def _tune(self, x: Tensor, inner: Inner, once: Callable[[Tensor, Tensor], None], counts: list[int]) -> None:
        """The products of all kinds of pieces, at one rank, where the store can be shared."""
        ranks, lead = self.mesh.size(), [1] * (x.dim() - 2)
        whole = [x[..., 0].numel() * (ranks if self.dim_in is not None else 1) // count for count in counts]
        width = self.width or x.shape[-1]

        def products() -> None:
            for tokens in whole:
                piece = x.new_zeros(*lead, tokens, width, requires_grad=x.requires_grad)
                once(inner(piece), piece)

        if not in_memory():
            tune_once(products, self.mesh.get_group())


def _elapsed(call: Callable[[], Any], cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    first = time.perf_counter()
    call()
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - first
