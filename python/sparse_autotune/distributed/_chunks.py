"""A product over ranks in pieces of tokens: what one piece sends travels while the next is multiplied. How many pieces is measured once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Shard

from . import _copies, _weights
from ._collectives import Copy, Fetch, Flight, Gather, Move, Return, Scatter, Sum, begin, end, moved
from ._sizes import cut, sizes_of

Inner = Callable[[Tensor], Tensor]


Direct = bool | Literal["copies", "late copies", "weights"]


class Way(NamedTuple):
    """How many pieces; direct: each rank multiplies its own tokens as they are, while ranks send the others' to each other. "copies": these are copied into the
    memory of the others; "late copies": and only the last layer works on pieces; "weights": tokens and summands stay, in one piece, and weights travel."""

    pieces: int
    direct: Direct


@dataclasses.dataclass
class Plan:
    """What a layer, or a pair of layers, does with its input and result. before, after: how pieces travel; layouts: of the input and the result.

    given: what the user wants, or None. chosen: what was measured. way: gives one for an input, as _strategies.chosen does. last: the layer whose summands
    travel, where these may be copied. closed: whether what is given to inner, and its layers, are all that it has gradients for. bare: whether the layers
    are all that the module has parameters for, so that they may be whole. arguments: whether the call has others beside the tokens: then they may not.
    """

    mesh: DeviceMesh
    before: Move
    after: Move
    layouts: tuple[Placement, Placement]
    use_local_output: bool
    way: Callable[[Plan, Tensor, Sequence[Any], Inner], Way]
    given: Way | None = None
    last: Any = None
    closed: bool = False
    bare: bool = False
    arguments: bool = False
    width: int = 0  # features that a piece has when it came; 0: as many as the input
    chosen: dict[str, Way] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        scattered = [layout.dim if isinstance(layout, Shard) and kind in (Gather, Scatter) else None for layout, kind in self._kinds()]
        self.dim_in, self.dim_out = scattered
        if None not in scattered and scattered[0] != scattered[1]:
            raise ValueError(f"output_layouts: must be {self.layouts[0]} or Replicate(), where the inputs are {self.layouts[0]}; is {self.layouts[1]}")

    @property
    def may_be_direct(self) -> bool:
        return isinstance(self.after, Scatter) and isinstance(self.before, (Gather, Copy))

    def _kinds(self) -> list[tuple[Placement, type[Move]]]:
        return [(self.layouts[0], type(self.before)), (self.layouts[1], type(self.after))]

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # works in flight are no part of a graph
    def __call__(self, x: Tensor, layers: Sequence[Any], inner: Inner, finish: Inner) -> Tensor:
        """inner: of a piece of tokens, with the dealt `layers`. finish: is applied to the whole result."""
        if isinstance(x, DTensor):
            x = (x if x.placements == (self.layouts[0],) else x.redistribute(placements=[self.layouts[0]])).to_local()
        way = self.way(self, x, layers, inner)
        try:
            for layer in layers:
                layer.hold(leaves=False)
            made = self.run(x, inner, way, layers)
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

    def _chunks(self, x: Tensor, count: int) -> list[Tensor]:
        if self.dim_in is not None or self.dim_out is None:
            return cut(x.reshape(-1, x.shape[-1]), count)
        return [piece.reshape(-1, x.shape[-1]) for piece in cut(self._by_rank(x, self.dim_out), count, 1)]

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

    def run(self, x: Tensor, inner: Inner, way: Way, layers: Sequence[Any]) -> Tensor:
        if way.direct == _weights.WEIGHTS:
            return _weights.run(self, x, inner, layers)
        if isinstance(way.direct, str):
            made = _copies.run(self, x, inner, way, layers)
            if made is not None:
                return made
        return self._directly(x, inner, way.pieces) if way.direct else self._together(x, inner, way.pieces)

    def _together(self, x: Tensor, inner: Inner, count: int) -> Tensor:
        """Pieces are of the tokens of all ranks, by collectives."""
        lead = [1] * (x.dim() - 2)
        coming = [begin(piece, self.before) for piece in self._chunks(x, count)]
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

    def _directly(self, x: Tensor, inner: Inner, count: int) -> Tensor:
        """Pieces are of the other ranks' tokens. Own tokens are multiplied while these come, those of the last piece while the last summands come back; where
        tokens need not come, all of them are."""
        ranks, rank, group = self.mesh.size(), self.mesh.get_local_rank(), self.mesh.get_group()
        lead = [1] * (x.dim() - 2)

        def product(tokens: Tensor) -> Tensor:
            made = inner(tokens.view(*lead, *tokens.shape) if lead else tokens)
            return made.flatten(0, -2)

        if self.dim_in is not None:
            own = x.reshape(-1, x.shape[-1])
            coming: list[Tensor | tuple[Tensor, Flight]] = [begin(piece, Fetch(group)) for piece in cut(own, count)]
            first = own.shape[0] - (sizes_of(own.shape[0], count)[-1] if count > 1 else 0)
        else:
            assert self.dim_out is not None
            sides = self._by_rank(moved(x, self.before), self.dim_out).unbind(0)
            own, first = sides[rank], 0
            others = [cut(sides[(rank - step) % ranks], count) for step in range(1, ranks)]
            coming = [torch.cat(parts) if ranks > 2 else parts[0] for parts in zip(*others, strict=True)]
        early, late = own.split([first, own.shape[0] - first])
        parts = [product(early)] if first else []
        going = [begin(product(tokens if isinstance(tokens, Tensor) else end(tokens)), Return(group)) for tokens in coming]
        if first < own.shape[0]:
            parts.append(product(late))
        sizes = sizes_of(own.shape[0], count)
        shares = [sizes] if len(parts) == 1 else [sizes[:-1], sizes[-1:]]
        mine = [piece for part, share in zip(parts, shares, strict=True) for piece in part.split(share)]
        return self._joined(x, self._added(mine, going))

    @staticmethod
    def _added(mine: list[Tensor], going: list[tuple[Tensor, Flight]]) -> list[Tensor]:
        if any(part.requires_grad for part in mine) or len(mine) == 1:
            return [part + end(pending) for part, pending in zip(mine, going, strict=True)]
        whole = mine[0].new_empty(sum(map(len, mine)), mine[0].shape[1])
        for place, part, pending in zip(whole.split([len(part) for part in mine]), mine, going, strict=True):
            torch.add(part, end(pending), out=place)
        return [whole]
