"""Styles for torch.distributed.tensor.parallel.parallelize_module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from ._chunks import Direct, Plan, Way
from ._collectives import Copy, Exchange, Gather, Join, Move, Scatter, Sum
from ._copies import COPIES, LATE
from ._layers import ColwiseLinear, DealtLinear, PartialLinear, RowwiseLinear, agreed_pattern, check_layer, counts_of, split
from ._partition import Deal, deal
from ._strategies import chosen
from ._weights import WEIGHTS


class _Style(ParallelStyle):
    def __init__(self, input_layouts: Placement, output_layouts: Placement, use_local_output: bool, chunks: int | None, direct: Direct | None = None):
        super().__init__()
        if chunks is not None and (not hasattr(chunks, "__index__") or chunks < 1):
            raise ValueError(f"chunks: must be a whole number from 1, or None, not {chunks!r}")
        if direct is not None and chunks is None:
            raise ValueError("direct: goes with a number of chunks; without one both are measured")
        self.input_layouts, self.output_layouts, self.use_local_output = input_layouts, output_layouts, use_local_output
        if direct not in (None, False, True, COPIES, LATE, WEIGHTS):
            raise ValueError(f"direct: must be True, False, {COPIES!r}, {LATE!r} or {WEIGHTS!r}, not {direct!r}")
        if direct == WEIGHTS and chunks != 1:
            raise ValueError(f"chunks: must be 1 with direct={WEIGHTS!r}, which cuts no tokens; is {chunks}")
        self.given = None if chunks is None else Way(chunks, direct or False)

    def _plan(self, mesh: DeviceMesh, before: Move, after: Move) -> Plan:
        plan = Plan(mesh, before, after, (self.input_layouts, self.output_layouts), self.use_local_output, chosen, self.given)
        if self.given is not None and self.given.direct and not plan.may_be_direct:
            raise ValueError(f"direct: wants output_layouts Shard(the dimension of the tokens), not {self.output_layouts}")
        return plan

    def _check_mesh(self, mesh: DeviceMesh) -> None:
        if mesh.ndim != 1:
            raise ValueError(f"device_mesh: must have one dimension, has {mesh.ndim}; slice it first, mesh['tp']")

    def _tokens(self, name: str, layout: Any, mesh: DeviceMesh, moves: tuple[Move, Move]) -> Move:
        """That of whole tokens: for all, or each rank its own."""
        if isinstance(layout, Replicate):
            return moves[0]
        if isinstance(layout, Shard) and layout.dim != -1:
            return moves[1]
        raise ValueError(f"{name}: must be Replicate() or Shard(the dimension of the tokens), not {layout}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, use_local_output={self.use_local_output})"


def _join(given: Deal, mesh: DeviceMesh, device: torch.device) -> Join:
    if given.is_plain():
        return Join(mesh.get_group(), None, None)
    order = given.order()
    local = torch.full((given.features * given.ranks,), len(order), dtype=torch.int64, device="cpu")
    local[order] = torch.arange(len(order), device="cpu")
    rank = mesh.get_local_rank()
    return Join(mesh.get_group(), order.to(device), local[rank * given.features : (rank + 1) * given.features].to(device))


def _exchange(given: Deal, mesh: DeviceMesh, device: torch.device) -> Exchange:
    """From what was dealt to pieces as torch.chunk makes them."""
    ranks, rank, order = mesh.size(), mesh.get_local_rank(), given.order()
    each = -(-len(order) // ranks)
    owner, place = order // given.features, order % given.features
    feature = torch.arange(len(order), device="cpu")
    to = feature // each
    sent = [place[(owner == rank) & (to == other)] for other in range(ranks)]
    received = [feature[(owner == other) & (to == rank)] - rank * each for other in range(ranks)]
    widths = (given.features, max(0, min(each, len(order) - rank * each)))
    lists = [(torch.cat(indices).to(device), [len(part) for part in indices]) for indices in (sent, received)]
    return Exchange(mesh.get_group(), *lists[0], *lists[1], widths)


class ColwiseSparse(_Style):
    """Block rows of an sa.SparseLinear over the ranks of a DeviceMesh: each computes some outputs of all tokens.

    input_layouts: Replicate() (the default), or Shard(d): each rank has its tokens, along dimension d; they are gathered. output_layouts: Shard(-1) (the
    default), each rank has the outputs that torch.chunk would give it, or Replicate(). use_local_output: a tensor, or else a DTensor. chunks: into how many
    pieces tokens are cut, of which one is multiplied while others travel; None: measured, once for each size of input.

    Block rows are dealt so that ranks store equally many blocks. The order in which they are dealt is undone behind the product: by an all-to-all
    (Shard(-1)), or as part of the all-gather (Replicate()). PairwiseSparse needs neither.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True, chunks: int | None = None
    ):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output, chunks)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self._check_mesh(device_mesh)
        layer, group = check_layer("module", module), device_mesh.get_group()
        before = self._tokens("input_layouts", self.input_layouts, device_mesh, (Copy(group), Gather(group)))
        if self.output_layouts not in (Shard(-1), Replicate()):
            raise ValueError(f"output_layouts: must be Shard(-1) or Replicate(), not {self.output_layouts}")
        whole = agreed_pattern(layer, device_mesh, self.src_data_rank)
        given = deal(counts_of(whole, 0, layer.block, "module"), device_mesh.size(), layer.block[0])
        made = split(layer, ColwiseLinear, whole, 0, given, device_mesh, self.src_data_rank)
        assert isinstance(made, ColwiseLinear)
        of = _exchange if self.output_layouts == Shard(-1) else _join
        made.plan = self._plan(device_mesh, before, of(given, device_mesh, made.row_offsets.device))
        return made


class RowwiseSparse(_Style):
    """Block columns of an sa.SparseLinear over the ranks of a DeviceMesh: each computes a summand of all outputs of all tokens.

    input_layouts: Shard(-1) (the default), each rank has the inputs that torch.chunk would give it, or Replicate(). output_layouts: Replicate() (the default):
    summands are added everywhere (all-reduce); or Shard(d): each rank gets its tokens, along dimension d (reduce-scatter). use_local_output, chunks: as of
    ColwiseSparse.

    Block columns are dealt so that ranks store equally many blocks. The order in which they are dealt is undone before the product: by an all-to-all
    (Shard(-1)), or as each rank takes its inputs (Replicate()). Bias and activation follow the sum.
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True, chunks: int | None = None
    ):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output, chunks)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self._check_mesh(device_mesh)
        layer, group = check_layer("module", module), device_mesh.get_group()
        after = self._tokens("output_layouts", self.output_layouts, device_mesh, (Sum(group, owned=True), Scatter(group)))
        if self.input_layouts not in (Shard(-1), Replicate()):
            raise ValueError(f"input_layouts: must be Shard(-1) or Replicate(), not {self.input_layouts}")
        whole = agreed_pattern(layer, device_mesh, self.src_data_rank)
        given = deal(counts_of(whole, 1, layer.block, "module"), device_mesh.size(), layer.block[1])
        made = split(layer, RowwiseLinear, whole, 1, given, device_mesh, self.src_data_rank)
        assert isinstance(made, RowwiseLinear)
        of = _exchange if self.input_layouts == Shard(-1) else _join
        made.plan = self._plan(device_mesh, of(given, device_mesh, made.row_offsets.device).reverse(), after)
        made.plan.width = given.features
        return made


class _Pair:
    """Before the class of a module whose children are a pair."""

    plan: Plan
    pair: tuple[str, ...]  # down last

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        layers = [self.get_submodule(name) for name in self.pair]  # type: ignore[attr-defined]
        down = layers[-1]
        assert isinstance(down, PartialLinear)

        def inner(tokens: Tensor) -> Tensor:
            made = super(_Pair, self).forward(tokens, *args, **kwargs)  # type: ignore[misc]
            if not isinstance(made, Tensor) or made.data_ptr() != down.made_at:
                raise ValueError(
                    f"{type(self).__bases__[-1].__name__}: its result must be what {self.pair[-1]!r} gives, which is a summand of the result as yet"
                )
            return made

        if torch.is_grad_enabled() or not self.plan.chosen:
            known = {id(parameter) for layer in layers for parameter in layer.parameters()}
            others = [parameter for parameter in self.parameters() if id(parameter) not in known]  # type: ignore[attr-defined]
            self.plan.closed = not args and not kwargs and not any(parameter.requires_grad for parameter in others)
            buffers = len(list(self.buffers())) - sum(len(list(layer.buffers())) for layer in layers)  # type: ignore[attr-defined]
            self.plan.bare = not others and buffers == 0
        self.plan.arguments = bool(args or kwargs)
        return self.plan(x, layers, inner, lambda made: down.finished(made, self.plan.dim_out is not None))


class PairwiseSparse(_Style):
    """A module whose hidden features are dealt over the ranks: block rows of the layers `up`, and the same block columns of the layer `down`.

    >>> parallelize_module(model, mesh, {"layers.*.mlp": PairwiseSparse(up=("gate_proj", "up_proj"), down="down_proj")})

    up: names of sa.SparseLinear layers in the module, or one name; down: that of the layer that takes what they make. The block's height of the first is the
    block's width of the second. The module's forward must compute each token from its own features, and each hidden feature from its own (activations,
    products, sa.gated), and give back what `down` gives; its first argument is the tokens, others are passed on to each piece as they are.

    input_layouts: Replicate() (the default) or Shard(d): each rank has its tokens, along dimension d. output_layouts: the same. Replicate() sums the result
    over the ranks (all-reduce); Shard(d) reduces and scatters it. use_local_output, chunks: as of ColwiseSparse. direct, with chunks: where results are
    scattered, ranks send tokens and summands to each other, and multiply their own tokens meanwhile, in place of collectives: True by messages, "copies" by
    copies into each other's memory (GPUs of one host; elsewhere as True), "late copies" the same with pieces for `down` alone. "weights": tokens stay; each
    rank fetches the whole weights, and multiplies its own tokens; hidden features are all there then. None: measured.

    Hidden features are dealt so that ranks store equally many blocks of all the layers together. The order stays between the layers: nothing is undone.
    """

    def __init__(
        self,
        *,
        up: str | Sequence[str],
        down: str,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
        chunks: int | None = None,
        direct: Direct | None = None,
    ):
        super().__init__(input_layouts or Replicate(), output_layouts or Replicate(), use_local_output, chunks, direct)
        self.up, self.down = (up,) if isinstance(up, str) else tuple(up), down
        if not self.up:
            raise ValueError("up: names no layer")

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self._check_mesh(device_mesh)
        group, source = device_mesh.get_group(), self.src_data_rank
        before = self._tokens("input_layouts", self.input_layouts, device_mesh, (Copy(group), Gather(group)))
        after = self._tokens("output_layouts", self.output_layouts, device_mesh, (Sum(group, owned=True), Scatter(group)))
        plan = self._plan(device_mesh, before, after)
        layers = {name: check_layer(name, module.get_submodule(name)) for name in (*self.up, self.down)}
        width, hidden = layers[self.down].block[1], layers[self.down].in_features
        for name in self.up:
            if (layers[name].block[0], layers[name].out_features) != (width, hidden):
                raise ValueError(
                    f"{name}: makes {layers[name].out_features} features in blocks of {layers[name].block[0]}, {self.down} takes {hidden} in blocks of {width}"
                )
        wholes = {name: agreed_pattern(layer, device_mesh, source) for name, layer in layers.items()}
        counts = sum(counts_of(wholes[name], int(name == self.down), layers[name].block, name) for name in layers)
        assert isinstance(counts, Tensor)
        given = deal(counts, device_mesh.size(), width)
        for name in self.up:
            split(layers[name], DealtLinear, wholes[name], 0, given, device_mesh, source)
        split(layers[self.down], PartialLinear, wholes[self.down], 1, given, device_mesh, source)
        module.__class__ = type(f"Dealt{type(module).__name__}", (_Pair, type(module)), {})
        made: Any = module
        made.plan, made.pair = plan, (*self.up, self.down)
        plan.last = layers[self.down]
        return module
