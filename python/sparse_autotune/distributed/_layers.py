"""A SparseLinear of which a rank has a part: the product of that part, and its state, which is that of the whole."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from .. import _ops, _state
from .._linear import SparseLinear, _product
from ._chunks import Plan
from ._collectives import Copy, moved
from ._partition import Deal, Part, part_of
from ._stored import Stored


@dataclasses.dataclass(frozen=True)
class Whole:
    """The weight of which this is a part; indices on the CPU."""

    row_offsets: Tensor
    col_indices: Tensor
    shape: tuple[int, int]


def local_of(parameter: Any) -> Any:
    """The part of a parameter that is here; its gradient becomes that of the parameter."""
    if isinstance(parameter, DTensor):
        return parameter.to_local() if parameter.requires_grad and torch.is_grad_enabled() else parameter._local_tensor
    return parameter


_Operands = tuple[Tensor, Tensor | None, Tensor, Tensor]


class DealtLinear(SparseLinear):
    """in_features, out_features, the indices and nnzb are those of the part that is here; whole, deal: of what it is a part, and who has what.

    values is a DTensor of as many blocks on each rank; where a rank has fewer, zeros follow, which take no part. state_dict has the whole layer's names, and
    from torch.distributed.checkpoint the whole layer's tensors; a whole layer's state is loaded as well.
    """

    whole: Whole
    deal: Deal
    dim: int  # 0: block rows are dealt, 1: block columns
    mesh: DeviceMesh
    blocks: Tensor  # numbers in the whole of the blocks here

    held: _Operands | None = None
    later: Callable[[], _Operands] | None = None  # what will be held, for the first product
    was_whole: bool = False  # in the last call

    def _operands(self) -> _Operands:
        if self.later is not None:
            self.__dict__["held"] = self.__dict__.pop("later")()
        if self.held is not None:
            return self.held
        if self.was_whole and torch._C._current_graph_task_id() >= 0:
            raise RuntimeError('direct="weights": its products cannot be made again in the backward pass; checkpoint the module from outside, not within it')
        values, bias, row_offsets, col_indices = super()._operands()
        values = local_of(values)
        if values.shape[0] != col_indices.shape[0]:
            values = values[: col_indices.shape[0]]
        return values, local_of(bias), row_offsets, col_indices

    def hold(self, leaves: bool) -> list[Tensor]:
        """Until let_go(), products take what is here now: of a DTensor that is looked up once for all pieces. leaves: detached, with gradients of their own;
        gives those that have one."""
        self.__dict__["was_whole"] = False
        values, bias, row_offsets, col_indices = self._operands()
        if leaves:
            values = values.detach().requires_grad_(self.values.requires_grad)
            bias = bias if bias is None else bias.detach().requires_grad_(bias.requires_grad)
        self.__dict__["held"] = (values, bias, row_offsets, col_indices)
        return [parameter for parameter in (values, bias) if parameter is not None and parameter.requires_grad]

    def let_go(self) -> None:
        self.__dict__.pop("held", None)

    @contextlib.contextmanager
    def as_whole(self, operands: Callable[[], _Operands]) -> Iterator[None]:
        """Products are those of the whole layer meanwhile, whose operands the first of them asks for."""
        held, features = self.held, (self.out_features, self.in_features)
        self.__dict__["later"], self.__dict__["was_whole"] = operands, True
        self.out_features, self.in_features = self.whole.shape
        try:
            yield
        finally:
            self.__dict__.pop("later", None)
            self.__dict__["held"] = held
            self.out_features, self.in_features = features

    def _makes_new(self) -> bool:
        return True

    def local(self, x: Tensor) -> Tensor:
        """The product of this rank's part, and nothing else."""
        return SparseLinear.forward(self, x)

    # ------------------------------------------------------------------------------------------------ state

    def _here(self, name: str, of: Any = None) -> tuple[Tensor, Tensor, int]:
        """What is in memory of a parameter that is dealt, the places of its first entries in the whole, and how many there are in the whole. of: the same of
        a tensor that is sharded as the parameter is.

        FSDP keeps a piece of what a rank has: as torch.chunk makes them.
        """
        parameter: Any = getattr(self, name) if of is None else of  # DistributedDataParallel takes it from the parameters
        first = 0
        if isinstance(parameter, DTensor):
            names, own = parameter.device_mesh.mesh_dim_names or (), (self.mesh.mesh_dim_names or ("",))[0]
            for at, placement in enumerate(parameter.placements):
                if parameter.device_mesh.ndim > 1 and names[at] != own and not placement.is_replicate():
                    rows_per_rank = parameter.shape[0] // self.mesh.size()
                    first = parameter.device_mesh.get_local_rank(at) * -(-rows_per_rank // parameter.device_mesh.size(at))
            local = parameter._local_tensor
        else:
            local = parameter.detach()
        if name == "values":
            places, count = self.blocks, len(self.whole.col_indices)
        else:
            places, count = self.deal.features_of(self.mesh.get_local_rank()), self.whole.shape[0]
        return local, places[first : first + local.shape[0]], count

    def _dealt(self) -> tuple[str, ...]:
        return ("values", "bias") if self.dim == 0 and self.bias is not None else ("values",)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        _state.note_shape(destination, prefix, self.whole.shape)
        for name in self._dealt():
            destination[prefix + name] = Stored.of(*self._here(name))
        for name in ("row_offsets", "col_indices"):
            destination[prefix + name] = getattr(self.whole, name).clone()

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, missing: list[str], unexpected: list[str], errors: list[str]
    ) -> None:
        names = {"values", "row_offsets", "col_indices"} | ({"bias"} if self.bias is not None else set())
        missing.extend(sorted(prefix + name for name in names if prefix + name not in state_dict))
        if strict:
            unexpected.extend(key for key in state_dict if key.startswith(prefix) and key[len(prefix) :] not in names)
        for name in ("row_offsets", "col_indices"):
            given = state_dict.get(prefix + name)
            if given is not None and not torch.equal(given.cpu(), getattr(self.whole, name)):
                errors.append(f"{prefix}{name}: is of another pattern than that which was dealt over the ranks; make the layer with that pattern first")
                return
        for name in names - {"row_offsets", "col_indices"}:
            given = state_dict.get(prefix + name)
            if given is not None:
                self._take(prefix, name, given, errors)

    def _take(self, prefix: str, name: str, given: Tensor, errors: list[str]) -> None:
        if name not in self._dealt():
            into, found = getattr(self, name), given
            if isinstance(into, DTensor) and not isinstance(given, DTensor):
                into = into._local_tensor
            count = self.whole.shape[0]
        else:
            local, places, count = self._here(name)
            into = local[: len(places)]
            if isinstance(given, Stored):
                found = given.detach()[: len(places)]
            else:
                whole = given.full_tensor() if isinstance(given, DTensor) else given
                found = whole[places.to(whole.device)] if whole.shape[0] == count else whole
        if found.shape != into.shape:
            errors.append(f"size mismatch for {prefix}{name}: {list(given.shape)} does not fit; the whole has {count} entries in dimension 0")
            return
        with torch.no_grad():
            into.copy_(found)

    def extra_repr(self) -> str:
        what = "rows" if self.dim == 0 else "columns"
        return f"{super().extra_repr()}, block {what} of {self.whole.shape[0]} x {self.whole.shape[1]} over {self.mesh.size()} ranks"


class PartialLinear(DealtLinear):
    """Of dealt block columns: forward gives this rank's summand, without bias and activation; finished() adds them to the sum."""

    made_at: int = 0  # where the last result lies
    added: tuple[Callable[[], Tensor], Tensor] | None = None
    work: Callable[[Tensor], Tensor] | None = None

    def add_next(self, came: Callable[[], Tensor], out: Tensor) -> None:
        """The next product adds what came() gives, [tokens, features], which is called as late as can be, and writes the sum into `out`."""
        self.__dict__["added"] = (came, out)

    def work_next(self, work: Callable[[Tensor], Tensor]) -> None:
        """The next product is what `work` makes of the layer's input."""
        self.__dict__["work"] = work

    def forget(self) -> None:
        self.__dict__.pop("added", None)
        self.__dict__.pop("work", None)

    def local(self, x: Tensor) -> Tensor:
        work, added = self.work, self.added
        self.forget()
        if work is not None:
            return work(x)
        values, _, row_offsets, col_indices = self._operands()
        try:
            if added is not None:
                came, out = added
                out = out.view(*x.shape[:-1], self.out_features)
                return _ops.product_added(values, row_offsets, col_indices, x, self.out_features, self.in_features, came().view_as(out), out)
            made = _product(x, values, None, row_offsets, col_indices, self.out_features, self.in_features, None)
        except RuntimeError as error:
            raise _ops.named(error, dense="x") from None
        return made

    def forward(self, x: Tensor) -> Tensor:
        made = self.local(x)
        self.made_at = made.data_ptr()
        return made

    def finished(self, made: Tensor, scattered: bool) -> Tensor:
        """scattered: each rank has some of the tokens."""
        bias = local_of(self.bias)
        if bias is not None:
            bias = moved(bias, Copy(self.mesh.get_group())) if scattered and bias.requires_grad else bias
            made = made + bias.to(made.dtype)
        return made if self.activation is None else _ops.activate(made, self.activation)


class ColwiseLinear(DealtLinear):
    """What ColwiseSparse makes of a layer."""

    plan: Plan

    def forward(self, x: Tensor) -> Tensor:
        return self.plan(x, [self], self.local, lambda made: made)


class RowwiseLinear(PartialLinear):
    """What RowwiseSparse makes of a layer."""

    plan: Plan

    def forward(self, x: Tensor) -> Tensor:
        return self.plan(x, [self], self.local, lambda made: self.finished(made, self.plan.dim_out is not None))


# ------------------------------------------------------------------------------------------------ dealing


def check_layer(name: str, module: Any) -> SparseLinear:
    if not isinstance(module, SparseLinear):
        raise TypeError(f"{name}: must be an sa.SparseLinear, not {type(module).__name__}; PyTorch's own styles take nn.Linear")
    if type(module) is not SparseLinear:
        raise ValueError(f"{name}: is dealt over ranks already, or of a class of its own ({type(module).__name__})")
    if type(module._parameters.get("values")) is not nn.Parameter:
        raise ValueError(f"{name}: its values are no plain parameter; parallelize it before fully_shard and parametrizations")
    return module


def agreed_pattern(layer: SparseLinear, mesh: DeviceMesh, source: int | None) -> Whole:
    """That of the source; the same everywhere."""
    indices: list[Any] = [layer.row_offsets.cpu(), layer.col_indices.cpu()]
    if source is not None and mesh.size() > 1:
        group = mesh.get_group()
        dist.broadcast_object_list(indices, dist.get_global_rank(group, source), group=group)
    return Whole(indices[0], indices[1], (layer.out_features, layer.in_features))


def counts_of(whole: Whole, dim: int, block: tuple[int, int], name: str) -> Tensor:
    """Blocks of each block row or block column."""
    features, width = whole.shape[dim], block[dim]
    if features % width:
        raise ValueError(f"{name}: has {features} {'outputs' if dim == 0 else 'inputs'}, which must be a multiple of the block's {width} to be dealt")
    if dim == 0:
        return whole.row_offsets.diff()
    return torch.bincount(whole.col_indices, minlength=features // width)


def _scattered(local: Tensor, whole: Tensor, places: list[Tensor], mesh: DeviceMesh, source: int | None) -> Tensor:
    """local: filled with what the source has at this rank's places; zeros follow."""
    local.zero_()
    rank = mesh.get_local_rank()
    if source is None or mesh.size() == 1:
        local[: len(places[rank])] = whole[places[rank].to(whole.device)]
        return local
    pieces = None
    if rank == source:
        pieces = [torch.zeros_like(local) for _ in places]
        for piece, at in zip(pieces, places, strict=True):
            piece[: len(at)] = whole[at.to(whole.device)]
    group = mesh.get_group()
    dist.scatter(local, pieces, dist.get_global_rank(group, source), group=group)
    return local


def split(layer: SparseLinear, kind: type[DealtLinear], whole: Whole, dim: int, given: Deal, mesh: DeviceMesh, source: int | None) -> DealtLinear:
    """Makes the layer one of `kind`, in place."""
    parts: list[Part] = [part_of(whole.row_offsets, whole.col_indices, dim, given, rank) for rank in range(mesh.size())]
    own, most_blocks = parts[mesh.get_local_rank()], max(len(part.blocks) for part in parts)
    values, device = layer.values, layer.values.device

    def parameter(local: Tensor, like: nn.Parameter, placement: Any) -> nn.Parameter:
        return nn.Parameter(DTensor.from_local(local, mesh, [placement], run_check=False), requires_grad=like.requires_grad)

    with torch.no_grad():
        local = values.new_empty(most_blocks, *layer.block)
        if not local.is_meta:
            local = _scattered(local, values.detach(), [part.blocks for part in parts], mesh, source)
        layer.values = parameter(local, values, Shard(0))
        if layer.bias is not None:
            bias = layer.bias
            if dim == 0:
                places = [given.features_of(rank) for rank in range(given.ranks)]
                local = bias.new_empty(given.features)
                local = local if local.is_meta else _scattered(local, bias.detach(), places, mesh, source)
                layer.bias = parameter(local, bias, Shard(0))
            else:
                local = bias.detach().clone()
                if source is not None and mesh.size() > 1 and not local.is_meta:
                    dist.broadcast(local, dist.get_global_rank(mesh.get_group(), source), group=mesh.get_group())
                layer.bias = parameter(local, bias, Replicate())
    layer.row_offsets, layer.col_indices = own.row_offsets.to(device), own.col_indices.to(device)
    layer.out_features = given.features if dim == 0 else layer.out_features
    layer.in_features = given.features if dim == 1 else layer.in_features
    layer.__class__ = kind
    assert isinstance(layer, DealtLinear)
    layer.whole, layer.deal, layer.dim, layer.mesh, layer.blocks = whole, given, dim, mesh, own.blocks
    return layer
