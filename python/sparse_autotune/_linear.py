"""sa.SparseLinear: a linear layer with a block-sparse weight, and what puts it into models."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from . import _ops
from ._bsr import BSR, Norm, _largest, _pair, check_dtype, check_numbers, indices_of, kind_of, largest_blocks
from ._numbers import ACTIVATION_SHIFT, ACTIVATIONS, FACTOR, FINITE, RIGHT, TRANS, Activation
from ._ops import check_activation
from ._state import Blocks
from ._warnings import warn

_LINEAR = RIGHT | TRANS | FINITE


class _Parametrizations(nn.ModuleDict):
    """The dict of torch.nn.utils.parametrize, for a layer whose parameter has the name of a dict's method: nn.ModuleDict refuses the key
    "values"."""

    def add_module(self, name: str, module: nn.Module | None) -> None:
        if name == "values":
            self._modules[name] = module  # type: ignore[assignment]
        else:
            super().add_module(name, module)


@torch.fx.wrap  # one node of torch.fx.symbolic_trace, as F.linear is
def _product(
    x: Tensor, values: Tensor, bias: Tensor | None, row_offsets: Tensor, col_indices: Tensor, out_features: int, in_features: int, activation: str | None
) -> Tensor:
    """activation(x W^T + bias)"""
    if x.is_nested:
        raise TypeError("x: must be a dense tensor, not a nested one")
    if _ops.any_autocast():
        x, values, bias = _ops.autocast_operands(x, values, bias)
    if x.dim() == 1:
        return _product(x.unsqueeze(0), values, bias, row_offsets, col_indices, out_features, in_features, activation).squeeze(0)
    flags = _LINEAR | _ops.tf32_flag(x) if x.is_cuda else _LINEAR
    if activation is not None:
        if _ops.wants_gradient(values, x, bias):
            return _ops.activate(_ops.spmm(values, row_offsets, col_indices, x, bias, out_features, in_features, flags), activation)
        flags |= ACTIVATIONS[activation] << ACTIVATION_SHIFT
    return _ops.spmm(values, row_offsets, col_indices, x, bias, out_features, in_features, flags)


class SparseLinear(Blocks):
    """y = activation(x W^T + bias), W [out_features, in_features] in BSR with a trainable array of values.

    in_features, out_features: need not be multiples of the block. block: (rows, columns) of W's blocks, or one number for both; 1 to 256.
    density: share of blocks that are stored, drawn at random (from torch's generator); or pattern: a boolean mask [grid rows, grid cols] of
    the blocks to store, or an sa.BSR whose pattern is taken. activation: None, "relu", "gelu", "gelu_tanh", "silu"; part of the product
    where no gradient is wanted (see sa.matmul's activation).

    Parameters: values [nnzb, block rows, block cols] and bias [out_features]. Buffers: row_offsets, col_indices (int32). Input [...,
    in_features] of the values' dtype (any under autocast), output [..., out_features]. The input must be finite: an infinity may give NaN
    in places that it would not reach (see sa.matmul's assume_finite). ValueError names a wrong argument.

    load_state_dict takes another pattern of the same shape and block, whatever its number of blocks. A state that does not fit a layer is
    refused (RuntimeError), and all such layers of the model stay as they were.
    The buffers have no average: weights of a model are averaged without them (AveragedModel's use_buffers=False). What changed them in
    place, and was no load_state_dict, is refused at the next use (RuntimeError); other indices are assigned, as new tensors.
    """

    values: nn.Parameter
    casts_input = False  # to the dtype of values: of a layer that a model keeps in float32 for its own reasons

    def __init__(
        self,
        in_features: int,
        out_features: int,
        block: int | tuple[int, int] = 64,
        density: float | None = None,
        bias: bool = True,
        *,
        pattern: Tensor | BSR | None = None,
        activation: Activation | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        if (density is None) == (pattern is None):
            raise ValueError(f"density: give either density or pattern; {'neither is' if density is None else 'both are'} given")
        for name, count in (("in_features", in_features), ("out_features", out_features)):
            if not hasattr(count, "__index__"):
                raise TypeError(f"{name}: must be a whole number, not {count!r}")
            if count < 0:
                raise ValueError(f"{name}: must not be negative, is {count}")
        check_activation(activation)
        check_dtype("dtype", torch.get_default_dtype() if dtype is None else dtype)
        if pattern is not None and not isinstance(pattern, BSR) and not (isinstance(pattern, Tensor) and pattern.layout is torch.strided):
            raise TypeError(f"pattern: must be a boolean mask of the blocks or an sa.BSR, not {kind_of(pattern)}")
        self.in_features, self.out_features = (count if isinstance(count, torch.SymInt) else int(count) for count in (in_features, out_features))
        self.activation = activation
        self.block = pattern.block if isinstance(pattern, BSR) else _pair(block)
        row_offsets, col_indices = self._indices(density, pattern)
        self.values = nn.Parameter(torch.empty(col_indices.shape[0], *self.block, device=device, dtype=dtype))
        # On the values' device, which may be PyTorch's default one. Copies: layers made of one pattern may be loaded with different ones.
        self.register_buffer("row_offsets", row_offsets.to(device=self.values.device, dtype=torch.int32, copy=True))
        self.register_buffer("col_indices", col_indices.to(device=self.values.device, dtype=torch.int32, copy=True))
        self.bias: nn.Parameter | None
        self.register_parameter("bias", nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None)
        self._seal_indices(made=True)
        self.reset_parameters()

    def _indices(self, density: float | None, pattern: Tensor | BSR | None) -> tuple[Tensor, Tensor]:
        grid = (-(-self.out_features // self.block[0]), -(-self.in_features // self.block[1]))
        if isinstance(pattern, BSR):
            if pattern.shape != (self.out_features, self.in_features):
                raise ValueError(f"pattern: its shape is {pattern.shape}, the weight's {(self.out_features, self.in_features)}")
            pattern.check_indices()
            return pattern.row_offsets, pattern.col_indices
        if pattern is None:
            assert density is not None
            pattern = _largest(torch.rand(grid, dtype=torch.float32, device="cpu"), density)
        if tuple(pattern.shape) != grid:
            raise ValueError(f"pattern: its shape is {list(pattern.shape)}, the grid of blocks {list(grid)}")
        return indices_of(pattern.bool())

    def reset_parameters(self) -> None:
        """Uniform, as nn.Linear's, for the inputs that an output really has on average. What of edge blocks lies beyond the weight is
        zero."""
        used = self.values.numel() / max(self.out_features, 1)
        bound = 1 / math.sqrt(used) if used > 0 else 0.0
        with torch.no_grad():
            self.values.uniform_(-bound, bound)
            self._clear_overhang()
            if self.bias is not None:
                self.bias.uniform_(-bound, bound)

    def _clear_overhang(self) -> None:
        if self.values.is_meta:
            return
        down, across = self.out_features % self.block[0], self.in_features % self.block[1]
        if down:
            self.values[int(self.row_offsets[-2]) :, down:] = 0
        if across:
            self.values[self.col_indices == self.in_features // self.block[1], :, across:] = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "parametrizations" and type(value) is nn.ModuleDict:
            value = _Parametrizations(dict(value.items()))
        super().__setattr__(name, value)

    # ------------------------------------------------------------------------------------------------ the product

    def _operands(self) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
        """values, bias, row_offsets, col_indices. Module.__getattr__ is slow; what was moved elsewhere (by FSDP, a parametrized bias) it
        still finds."""
        parameters, buffers = self._parameters, self._buffers
        values, bias, row_offsets, col_indices = parameters.get("values"), parameters.get("bias"), buffers.get("row_offsets"), buffers.get("col_indices")
        if values is None or row_offsets is None or col_indices is None or (bias is None and "bias" not in parameters):
            return self.values, self.bias, self.row_offsets, self.col_indices
        if not _ops.is_compiling():
            self._check_indices(row_offsets, col_indices)
        return values, bias, row_offsets, col_indices

    def _makes_new(self) -> bool:
        """Whether the result of forward is nobody else's: a subclass of Parameter, or a parametrization, may have kept it."""
        return type(self._parameters.get("values")) is nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        values, bias, row_offsets, col_indices = self._operands()
        if self.casts_input and x.dtype is not values.dtype:
            x = x.to(values.dtype)
        try:
            return _product(x, values, bias, row_offsets, col_indices, self.out_features, self.in_features, self.activation)
        except RuntimeError as error:
            raise _ops.named(error, dense="x", b="x") from None

    def _product_times(self, x: Tensor, factor: Tensor) -> bool:
        """factor *= self(x) in one product, where that can be; else nothing, and False."""
        values, bias, row_offsets, col_indices = self._operands()
        if _ops.any_autocast():
            x, values, bias = _ops.autocast_operands(x, values, bias)
        fits = factor.shape == (*x.shape[:-1], self.out_features) and factor.dtype is x.dtype and factor.device == x.device and factor.is_contiguous()
        if not fits or x.dim() < 2 or _ops.wants_gradient(values, x, bias, factor):
            return False
        flags = _LINEAR | _ops.tf32_flag(x) | ACTIVATIONS[self.activation] << ACTIVATION_SHIFT | FACTOR
        _ops.product_into(values, row_offsets, col_indices, x, bias, self.out_features, self.in_features, flags, factor)
        return True

    # ------------------------------------------------------------------------------------------------ from and to

    @property
    def weight(self) -> BSR:
        """W on the layer's own tensors."""
        self._check_own_indices()
        return BSR(self.row_offsets, self.col_indices, self.values, (self.out_features, self.in_features))

    @property
    def nnzb(self) -> int:
        """Stored blocks."""
        return self.col_indices.shape[0]

    @property
    def density(self) -> float:
        """Stored blocks over all."""
        return self.weight.density

    @classmethod
    def from_linear(
        cls, linear: nn.Linear, block: int | tuple[int, int] = 64, density: float = 0.1, by: Norm = "l2", *, activation: Activation | None = None
    ) -> SparseLinear:
        """A layer with the round(density * grid) blocks of largest norm of an nn.Linear's weight, and its bias; copies.

        by: "l1", "l2" or "max". Ties: the lower block first. The weight must be finite.
        """
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"linear: must be an nn.Linear, not {type(linear).__name__}")
        return cls._of_blocks(linear, block, largest_blocks("linear.weight", linear.weight, block, density, by), activation)

    @classmethod
    def _of_blocks(cls, linear: nn.Linear, block: int | tuple[int, int], mask: Tensor, activation: Activation | None) -> SparseLinear:
        """With the blocks of the weight that a mask keeps."""
        weight, bias = linear.weight.detach(), linear.bias is not None
        made = cls(linear.in_features, linear.out_features, block, bias=bias, pattern=mask, activation=activation, device=weight.device, dtype=weight.dtype)
        with torch.no_grad():
            made.values.copy_(BSR.from_mask(weight, mask, block).values)
            if made.bias is not None:
                made.bias.copy_(linear.bias)
        made.values.requires_grad_(linear.weight.requires_grad)
        if made.bias is not None:
            made.bias.requires_grad_(linear.bias.requires_grad)
        return made.train(linear.training)

    def to_dense(self) -> nn.Linear:
        """An nn.Linear with the same weight and bias; copies. An activation is not part of it (but of what sa.to_dense puts into a
        model)."""
        return _dense_of(self, nn.Linear)

    def _matrix_shape(self) -> tuple[int, int]:
        return self.out_features, self.in_features

    def _room_for(self, values: Tensor) -> Callable[[], None]:
        own = self.values
        kept, gradient = own.detach(), own.grad

        def back() -> None:
            replace_data(own, kept)
            own.grad = gradient

        replace_data(own, kept.new_empty(values.shape))
        own.grad = None
        return back

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, block={self.block}, density={self.density:.4g}, bias={self.bias is not None}"
        return text + (f", activation={self.activation!r}" if self.activation else "")


def replace_data(parameter: nn.Parameter, data: Tensor) -> None:
    """Data of another shape for the same object, which optimizers and hooks keep.

    A graph that is still alive keeps autograd's record of the old shape, and later graphs would take it over; a passing dtype makes
    autograd drop it. What such a graph would still accumulate is refused: it has the old shape.
    """
    if parameter.requires_grad and not torch.is_inference_mode_enabled():  # no graph is found there
        message = _ops.stale_values(parameter.shape[0], data.shape[0])

        def refuse(_gradients: Any) -> None:
            raise RuntimeError(message)

        torch.autograd.graph.get_gradient_edge(parameter).node.register_prehook(refuse)
    parameter.data = data.new_empty(0, dtype=torch.float32 if data.dtype is torch.float16 else torch.float16)
    parameter.data = data


def check_here(name: str, weight: Tensor) -> None:
    if hasattr(weight, "device_mesh"):
        raise ValueError(f"{name}: its values are over several ranks; do this before parallelize_module and fully_shard")


def _dense_of(layer: SparseLinear, kind: type[nn.Linear]) -> nn.Linear:
    check_here("layer", layer.values)
    check_numbers("layer: its weight", layer.values)
    made = kind(layer.in_features, layer.out_features, layer.bias is not None, device=layer.values.device, dtype=layer.values.dtype)
    with torch.no_grad():
        made.weight.copy_(layer.weight.to_dense())
        if layer.bias is not None:
            made.bias.copy_(layer.bias)
            made.bias.requires_grad_(layer.bias.requires_grad)
    made.weight.requires_grad_(layer.values.requires_grad)
    return made.train(layer.training)


def _is_plain(layer: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether calling the layer is its kind's forward and no more."""
    made = type(layer)
    if not isinstance(layer, kind) or made.forward is not kind.forward or made.__call__ is not nn.Module.__call__ or "forward" in vars(layer):
        return False
    if nn.modules.module._has_any_global_hook():
        return False
    return not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)


def gated(x: Tensor, gate: nn.Module, up: nn.Module) -> Tensor:
    """gate(x) * up(x): the first half of a gated MLP, such as SwiGLU with an activation "silu" in gate.

    gate, up: layers with as many outputs. Where gate is an sa.SparseLinear, up one or an nn.Linear, and no gradient is wanted, gate's
    product reads up's result and writes over it: a pass over three arrays less. Everywhere else, and where something watches operators, it
    is what the formula says.
    """
    fresh = (isinstance(up, SparseLinear) and _is_plain(up, SparseLinear) and up._makes_new()) or (
        _is_plain(up, nn.Linear) and type(up._parameters.get("weight")) is nn.Parameter
    )
    if fresh and _is_plain(gate, SparseLinear) and _ops.may_overwrite():
        factor = up(x)
        return factor if gate._product_times(x, factor) else gate(x) * factor  # type: ignore[operator]
    return gate(x) * up(x)


class _ActivatedLinear(nn.Linear):
    """What sa.to_dense makes of a SparseLinear with an activation: one layer again, so that names in the model's state stay."""

    activation: Activation | None = None

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return _ops.activate(super().forward(input), self.activation)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, activation={self.activation!r}"


# ------------------------------------------------------------------------------------------------ models


def replace_modules(model: nn.Module, wanted: Callable[[str, nn.Module], nn.Module | None]) -> nn.Module:
    """Puts what `wanted` makes of a module in its place everywhere, a module that occurs twice once; returns the model, or what replaces
    it.

    Hooks go along: the dicts themselves, so that their handles still remove them.
    """
    made: dict[int, nn.Module] = {}
    for name, module in list(model.named_modules(remove_duplicate=True)):
        new = wanted(name, module)
        if new is not None:
            made[id(module)] = new
            for hooks in _HOOKS:
                setattr(new, hooks, getattr(module, hooks))
    if id(model) in made:
        return made[id(model)]
    for module in model.modules():
        for name, child in list(module._modules.items()):
            if child is not None and id(child) in made:
                module._modules[name] = made[id(child)]
    return model


_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_is_full_backward_hook",
)
_STATE_HOOKS = ("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
_TENSOR_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


def check_replaced(name: str, linear: nn.Linear, keeps_weight: bool = False) -> None:
    """What a layer has that the one in its place cannot have is refused, or at least told."""
    if not isinstance(linear._parameters.get("weight"), nn.Parameter):
        raise ValueError(
            f"model: the weight of {name!r} is computed (weight_norm, torch.nn.utils.prune); make it a parameter first (remove_weight_norm, prune.remove), "
            "or leave it out with filter"
        )
    if "forward" in vars(linear):
        raise ValueError(f"model: the forward of {name!r} was replaced by another function, which would be lost; leave it out with filter")
    if any(getattr(linear, hooks) for hooks in _STATE_HOOKS):
        warn(f"sparse_autotune: hooks of {name!r} on its state_dict do not go over to the layer in its place")
    if not keeps_weight and any(getattr(linear.weight, hooks, None) for hooks in _TENSOR_HOOKS):
        warn(f"sparse_autotune: hooks on the weight of {name!r} do not go over to the layer in its place")


def check_shared(model: nn.Module, taken: dict[str, nn.Linear]) -> None:
    """A weight that also a module uses which stays as it is would be untied."""
    weights = {id(module._parameters["weight"]) for module in taken.values()}
    for name, module in model.named_modules():
        for own, parameter in module._parameters.items():
            if id(parameter) in weights and not (own == "weight" and any(module is one for one in taken.values())):
                raise ValueError(f"model: {name!r} uses a weight that would become sparse; leave the layer out with filter")


def check_model(model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: must be an nn.Module, not {type(model).__name__}")


def is_plain(module: nn.Module) -> bool:
    """Of no class of its own, whose forward may be anything."""
    return type(module) in (nn.Linear, _ActivatedLinear)


def activation_of(linear: nn.Linear) -> Activation | None:
    return linear.activation if isinstance(linear, _ActivatedLinear) else None


def linears(
    model: nn.Module,
    block: tuple[int, int],
    filter: Callable[[str, Any], bool] | None,  # noqa: A002
    wanted: Callable[[nn.Module], bool] = is_plain,
) -> dict[str, nn.Linear]:
    """The nn.Linear layers of a model that a filter takes; without one those at least a block high and wide."""
    check_model(model)
    if filter is not None and not callable(filter):
        raise TypeError(f"filter: must be a function of the name and the layer, not {type(filter).__name__}")
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and wanted(module):
            taken = module.out_features >= block[0] and module.in_features >= block[1] if filter is None else filter(name, module)
            if taken:
                found[name] = module
    return found


def to_block_sparse(
    model: nn.Module,
    density: float,
    block: int | tuple[int, int] = 64,
    filter: Callable[[str, nn.Linear], bool] | None = None,  # noqa: A002
    *,
    by: Norm = "l2",
) -> nn.Module:
    """Replaces the nn.Linear layers of a model by SparseLinear, each with its density of largest blocks. Changes the model, and returns it.

    filter: called with the name and the layer; by default those at least a block high and wide. Layers of one weight have one sparse
    weight; biases stay the same parameters; hooks of the layers go along. save_pretrained of a transformers model tells of the layers (see
    sa.register_with_transformers).

    ValueError where no layer was taken, where a module that stays uses a weight, too, where a weight is computed from others (weight_norm,
    torch.nn.utils.prune), and where it is on the meta device.
    """
    from ._pretrained import describe

    taken = linears(model, _pair(block), filter)
    if not taken:
        raise ValueError("model: no nn.Linear was taken")
    for name, linear in taken.items():
        check_replaced(name, linear)
    check_shared(model, taken)
    masks = {name: largest_blocks(f"model: the weight of {name!r}", linear.weight, block, density, by) for name, linear in taken.items()}
    first: dict[int, SparseLinear] = {}

    def make(name: str, _module: nn.Module) -> nn.Module | None:
        linear = taken.get(name)
        if linear is None:
            return None
        made = SparseLinear._of_blocks(linear, block, masks[name], activation_of(linear))
        made.register_parameter("bias", linear.bias)
        tied = first.setdefault(id(linear.weight), made)
        made.values, made.row_offsets, made.col_indices = tied.values, tied.row_offsets, tied.col_indices
        return made

    changed = replace_modules(model, make)
    describe(changed)
    return changed


def to_dense(model: nn.Module) -> nn.Module:
    """Replaces the SparseLinear layers of a model by nn.Linear (one that applies the activation, too, where a layer has one), and every
    sa.SparseWeight by a dense Parameter. Names, ties and hooks stay. Changes the model, and returns it."""
    check_model(model)
    for name, layer in model.named_modules():
        if isinstance(layer, SparseLinear):
            check_numbers(f"model: the weight of {name!r}", layer.values)
    first: dict[int, tuple[SparseLinear, nn.Linear]] = {}

    def make(_name: str, module: nn.Module) -> nn.Module | None:
        if not isinstance(module, SparseLinear):
            return None
        made = _dense_of(module, _ActivatedLinear if module.activation else nn.Linear)
        if isinstance(made, _ActivatedLinear):
            made.activation = module.activation
        tied, weight_of = first.setdefault(id(module.values), (module, made))
        if torch.equal(tied.row_offsets, module.row_offsets) and torch.equal(tied.col_indices, module.col_indices):
            made.weight = weight_of.weight
        made.register_parameter("bias", module.bias)
        return made

    changed = replace_modules(model, make)
    dense: dict[int, nn.Parameter] = {}
    for module in changed.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and hasattr(type(parameter), "bsr"):
                dense.setdefault(id(parameter), nn.Parameter(parameter.to_dense(), requires_grad=parameter.requires_grad))
                module._parameters[name] = dense[id(parameter)]
    return changed
