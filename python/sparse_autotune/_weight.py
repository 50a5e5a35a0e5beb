"""sa.SparseWeight: a tensor that is stored as blocks, for the weights of models that are there already."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from . import _functions
from ._bsr import BSR, Norm, _pair, check_dtype, kept_blocks
from ._linear import check_shared, linears
from ._matmul import matmul

_aten = torch.ops.aten


class SparseWeight(Tensor):
    """A matrix that is a tensor to PyTorch and an sa.BSR inside: F.linear and @ multiply by its stored blocks. For inference.

    >>> layer.weight = torch.nn.Parameter(sa.SparseWeight.from_dense(layer.weight, 64, density=0.25), requires_grad=False)

    It has F.linear, torch.matmul, mm, addmm, mv and @ with a dense tensor on the other side (which may require a gradient); .t() and .T;
    .to(), detach, clone, copy_ from one of the same pattern, deepcopy, pickle, torch.save and weights-only loading, shared memory;
    torch.compile and torch.export. to_dense() and .bsr give what it holds. Anything else raises NotImplementedError; safetensors takes
    dense tensors alone. It gets no gradient itself: sa.SparseLinear does. F.linear takes inputs to be finite, as SparseLinear does.
    """

    bsr_values: Tensor
    bsr_row_offsets: Tensor
    bsr_col_indices: Tensor
    bsr_shape: tuple[int, int]
    bsr_transposed: bool

    @staticmethod
    def __new__(cls, matrix: BSR, transposed: bool = False) -> SparseWeight:
        """Of an sa.BSR without batch, on the same memory; or of its transpose."""
        if not isinstance(matrix, BSR):
            raise TypeError(f"matrix: must be an sa.BSR, not {type(matrix).__name__}; SparseWeight.from_dense takes a dense tensor")
        if matrix.values.dim() != 3:
            raise ValueError(f"matrix: its values must have three dimensions, not {matrix.values.dim()}")
        rows, cols = matrix.shape
        size, strides = ((cols, rows), (1, cols)) if transposed else ((rows, cols), (cols, 1))
        self = torch.Tensor._make_wrapper_subclass(cls, size, strides=strides, dtype=matrix.dtype, device=matrix.device)  # type: ignore[attr-defined]
        self.bsr_values, self.bsr_row_offsets, self.bsr_col_indices = matrix.values.detach(), matrix.row_offsets, matrix.col_indices
        self.bsr_shape, self.bsr_transposed = matrix.shape, transposed
        return self

    def __init__(self, matrix: BSR, transposed: bool = False):
        super().__init__()

    @classmethod
    def from_dense(cls, dense: Tensor, block: int | tuple[int, int] = 64, *, density: float | None = None, by: Norm = "l2") -> SparseWeight:
        """The blocks of a matrix that hold a non-zero; or, with density, the round(density * grid) blocks of largest norm. As
        sa.BSR.from_dense."""
        return cls(BSR.from_dense(dense.detach() if isinstance(dense, Tensor) else dense, block, density=density, by=by))

    @property
    def bsr(self) -> BSR:
        """What is stored, on the same memory; of the transpose, where this is a .t()."""
        return BSR(self.bsr_row_offsets, self.bsr_col_indices, self.bsr_values, self.bsr_shape)

    def to_dense(self, *args: Any, **kwargs: Any) -> Tensor:  # type: ignore[override]
        """A dense tensor; arguments as of Tensor.to_dense: dtype."""
        dense = self.bsr.to_dense().to(*args, **kwargs)
        return dense.mT if self.bsr_transposed else dense

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"SparseWeight({self.bsr!r}{', transposed' if self.bsr_transposed else ''})"

    def share_memory_(self) -> SparseWeight:
        """Moves what is stored to shared memory, for other processes."""
        for part in (self.bsr_values, self.bsr_row_offsets, self.bsr_col_indices):
            part.share_memory_()
        return self

    def is_shared(self) -> bool:
        return self.bsr_values.is_shared()

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("DLPack: has no sparse tensors; bsr has the components")

    # ------------------------------------------------------------------------------------------------ what PyTorch asks of it

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["bsr_values", "bsr_row_offsets", "bsr_col_indices"], (self.bsr_shape, self.bsr_transposed)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], meta: Any, outer_size: Any, outer_stride: Any) -> SparseWeight:
        shape, transposed = meta
        return SparseWeight(BSR(inner["bsr_row_offsets"], inner["bsr_col_indices"], inner["bsr_values"], shape), transposed)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = _PRODUCTS.get(func)
        if product is not None:
            return product(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        operator = _OPERATORS.get(func)
        if operator is None:
            raise NotImplementedError(f"{func}: is not there for sa.SparseWeight; its to_dense() is a dense tensor, its bsr an sa.BSR")
        return operator(*args, **(kwargs or {}))

    def _with(self, change: Callable[[Tensor], Tensor], values: Tensor | None = None) -> SparseWeight:
        values = change(self.bsr_values) if values is None else values
        return SparseWeight(BSR(change(self.bsr_row_offsets), change(self.bsr_col_indices), values, self.bsr_shape), self.bsr_transposed)


def _stored(weight: SparseWeight) -> BSR:
    if weight.requires_grad and torch.is_grad_enabled():
        raise RuntimeError("weight: sa.SparseWeight gets no gradient; call requires_grad_(False), or use sa.SparseLinear, which does")
    return weight.bsr


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    if isinstance(input, SparseWeight) or not isinstance(weight, SparseWeight) or isinstance(bias, SparseWeight):
        raise NotImplementedError("linear: only its weight may be an sa.SparseWeight")
    return matmul(input, _stored(weight), transpose=not weight.bsr_transposed, bias=bias, assume_finite=True)


def _matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    if isinstance(out, SparseWeight):
        raise NotImplementedError("out: must not be an sa.SparseWeight, which holds no dense result")
    if not isinstance(input, SparseWeight):
        assert isinstance(other, SparseWeight)
        return matmul(input, _stored(other), transpose=other.bsr_transposed, bias=bias, out=out)
    if isinstance(other, SparseWeight):
        raise NotImplementedError("matmul: of two sa.SparseWeight is not there; one of them must be dense")
    return matmul(_stored(input), other, transpose=input.bsr_transposed, bias=bias, out=out)


_mm, _mv, _addmm = (functools.partial(function, _matmul) for function in (_functions.mm, _functions.mv, _functions.addmm))


def _set_data(weight: Tensor, value: Tensor) -> None:
    raise NotImplementedError("data: of an sa.SparseWeight, or to one, cannot be set; put another Parameter in its place, or use copy_")


def _copied(weight: SparseWeight, **kwargs: Any) -> SparseWeight:
    """aten._to_copy: a dtype is for the values, a device for everything."""
    kwargs.pop("memory_format", None)
    if kwargs.get("layout", torch.strided) is not torch.strided:
        raise NotImplementedError(f"to: sa.SparseWeight has no layout {kwargs['layout']}; its bsr.to_torch() is a torch.sparse_bsr tensor")
    indices = {key: value for key, value in kwargs.items() if key != "dtype"}
    return weight._with(lambda t: _aten._to_copy(t, **indices), _aten._to_copy(weight.bsr_values, **kwargs))


def _transposed(weight: SparseWeight, *dims: int) -> SparseWeight:
    for dim in dims:
        if not -2 <= dim < 2:
            raise IndexError(f"Dimension out of range (expected to be in range of [-2, 1], but got {dim})")
    if len(dims) == 2 and dims[0] % 2 == dims[1] % 2:
        return _alias(weight)
    return SparseWeight(weight.bsr, not weight.bsr_transposed)


def _permuted(weight: SparseWeight, dims: list[int]) -> SparseWeight:
    if len(dims) != 2:
        raise RuntimeError(f"permute(): an sa.SparseWeight has 2 dimensions, not {len(dims)}")
    turned = _transposed(weight, *dims)
    if dims[0] % 2 == dims[1] % 2:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return turned if dims[0] % 2 else _alias(weight)


def _alias(weight: SparseWeight) -> SparseWeight:
    return SparseWeight(weight.bsr, weight.bsr_transposed)


def _copy_into(weight: SparseWeight, source: Tensor, non_blocking: bool = False) -> SparseWeight:
    if not isinstance(weight, SparseWeight) or not isinstance(source, SparseWeight):
        raise NotImplementedError("copy_: between an sa.SparseWeight and a dense tensor is not there; use from_dense or to_dense")
    if (weight.bsr_shape, weight.bsr_transposed, weight.bsr.block, weight.bsr.nnzb) != (
        source.bsr_shape,
        source.bsr_transposed,
        source.bsr.block,
        source.bsr.nnzb,
    ):
        raise ValueError(f"copy_: {source} does not fit into {weight}; load_state_dict(..., assign=True) takes another pattern")
    source.bsr.check_indices()
    for name in ("bsr_row_offsets", "bsr_col_indices", "bsr_values"):
        getattr(weight, name).copy_(getattr(source, name), non_blocking)
    return weight


# Taken before PyTorch takes its functions apart ...
_PRODUCTS: dict[Any, Callable[..., Any]] = {
    torch.nn.functional.linear: _linear,
    torch.matmul: _matmul,
    torch.mm: _mm,
    torch.sparse.mm: _mm,
    torch.sparse.addmm: _addmm,
    torch.mv: _mv,
    torch.addmm: _addmm,
    Tensor.matmul: _matmul,
    Tensor.mm: _mm,
    Tensor.mv: _mv,
    Tensor.addmm: _addmm,
    Tensor.__matmul__: _matmul,
    Tensor.__rmatmul__: lambda self, other: _matmul(other, self),
    Tensor.data.__set__: _set_data,  # type: ignore[attr-defined]
}
# ... and what is left of them.
_OPERATORS: dict[Any, Callable[..., Any]] = {
    _aten.linear.default: _linear,
    _aten.matmul.default: _matmul,
    _aten.mm.default: _mm,
    _aten.mv.default: _mv,
    _aten.addmm.default: _addmm,
    _aten.t.default: _transposed,
    _aten.transpose.int: _transposed,
    _aten.permute.default: _permuted,
    _aten.numpy_T.default: _transposed,
    _aten.detach.default: _alias,
    _aten.alias.default: _alias,
    _aten.clone.default: lambda weight, memory_format=None: weight._with(torch.clone),
    _aten._to_copy.default: _copied,
    _aten.copy_.default: _copy_into,
    _aten.is_pinned.default: lambda weight, device=None: weight.bsr_values.is_pinned(),
    _aten._pin_memory.default: lambda weight, device=None: weight._with(lambda t: t.pin_memory()),
}

torch.serialization.add_safe_globals([SparseWeight])  # for torch.load(..., weights_only=True)


def _has_dense_weight(module: nn.Module) -> bool:
    weight = module._parameters.get("weight")
    return isinstance(weight, nn.Parameter) and type(weight.data) is Tensor


def sparsify_weights(
    model: nn.Module,
    density: float | None = None,
    block: int | tuple[int, int] = 64,
    filter: Callable[[str, nn.Linear], bool] | None = None,  # noqa: A002
    *,
    by: Norm = "l2",
) -> nn.Module:
    """Replaces the weights of a model's nn.Linear layers (and of classes made from it) by SparseWeight; the modules stay. Changes the
    model, and returns it.

    density: of the largest blocks, as to_block_sparse has it; None: exactly the blocks that hold a non-zero, for a model that was pruned
    elsewhere. filter: called with the name and the layer; by default those at least a block high and wide. For inference: the new weights
    get no gradient. sa.to_dense goes back. ValueError where no layer was taken, or where a module of another kind uses such a weight, too.
    """
    taken = linears(model, _pair(block), filter, _has_dense_weight)
    if not taken:
        raise ValueError("model: no nn.Linear was taken")
    check_shared(model, taken)
    made: dict[int, nn.Parameter] = {}
    for name, module in taken.items():
        if id(module.weight) not in made:
            weight = module.weight.detach()
            check_dtype(f"model: the weight of {name!r}", weight.dtype)
            mask = kept_blocks(f"model: the weight of {name!r}", weight, block, density, by)
            made[id(module.weight)] = nn.Parameter(SparseWeight(BSR.from_mask(weight, mask, block)), requires_grad=False)
    for module in taken.values():
        module.weight = made[id(module.weight)]
    return model
