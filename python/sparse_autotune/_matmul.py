"""The products: matmul, bsr_gemm, sddmm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from . import _ops
from ._bsr import BSR, is_dense, kind_of, outside_transforms
from ._numbers import ACTIVATION_SHIFT, ACTIVATIONS, FINITE, RIGHT, TRANS, Activation
from ._ops import check_activation
from ._types import DTYPES


def as_bsr(matrix: Any, name: str = "A") -> BSR | None:
    """The matrix as sa.BSR if it is a sparse one, else None. A torch.sparse_bsr tensor keeps its components once they were asked for."""
    if isinstance(matrix, BSR):
        return matrix
    if isinstance(matrix, Tensor):
        if matrix.layout is not torch.sparse_bsr:
            if matrix.layout is not torch.strided:
                raise TypeError(f"{name}: must be torch.sparse_bsr, sa.BSR, a SciPy matrix or a dense tensor, not {matrix.layout}")
            if type(matrix) is Tensor or not hasattr(type(matrix), "bsr"):
                return None
            weight: Any = matrix  # an sa.SparseWeight
            return weight.bsr.transpose() if weight.bsr_transposed else weight.bsr
        return _components_of(matrix)
    if hasattr(matrix, "format") and hasattr(matrix, "tobsr"):
        if matrix.format != "bsr":
            raise TypeError(f"{name}: a SciPy matrix must be in BSR, not {matrix.format.upper()}; sa.BSR.from_scipy(matrix, block) makes blocks of it")
        return BSR.from_scipy(matrix)
    raise TypeError(f"{name}: must be torch.sparse_bsr, sa.BSR, a SciPy matrix or a dense tensor, not {type(matrix).__name__}")


_known: WeakIdKeyDictionary = WeakIdKeyDictionary()  # beside the tensors, not on them: what is on a tensor is saved with it


def _components_of(matrix: Tensor) -> BSR:
    """Of a torch.sparse_bsr tensor; kept as long as it lives and PyTorch counts no change, and not at all where it counts none."""
    if matrix.is_inference() or torch.compiler.is_compiling():
        return BSR.from_torch(matrix)
    kept = _known.get(matrix)
    state = (matrix._version, matrix.requires_grad and torch.is_grad_enabled())
    if kept is None or kept[0] != state:
        kept = (state, BSR.from_torch(matrix))
        _known[matrix] = kept
    return kept[1]


def as_pattern(matrix: Any, name: str = "pattern") -> BSR:
    """The matrix as sa.BSR for its pattern alone: values of any dtype, which nobody reads."""
    if isinstance(matrix, Tensor) and matrix.layout is torch.sparse_bsr and matrix.dim() == 2 and matrix.dtype not in DTYPES:
        with outside_transforms():
            row_offsets, col_indices, block = matrix.crow_indices(), matrix.col_indices(), matrix.values().shape[-2:]
        return BSR.from_pattern(row_offsets, col_indices, (block[0], block[1]), (matrix.shape[0], matrix.shape[1]), dtype=torch.float32)
    if getattr(matrix, "format", None) == "bsr" and hasattr(matrix, "astype"):
        matrix = matrix if matrix.dtype.kind == "f" else matrix.astype("f4")
    sparse = as_bsr(matrix, name)
    if sparse is None:
        raise TypeError(f"{name}: must be sparse, not a dense tensor")
    return sparse


_PARTS = ("values", "row_offsets", "col_indices")


def check_out(out: Any) -> None:
    if not is_dense(out):
        raise TypeError(f"out: must be a dense tensor, not {kind_of(out)}")


def check_into(graded: bool, out: Tensor) -> None:
    if graded or (out.requires_grad and torch.is_grad_enabled()):
        raise RuntimeError("out: a product that writes into a tensor has no gradient; use torch.no_grad()")
    if not _ops.is_compiling() and out.is_neg():
        raise ValueError("out: must not be a tensor that is negated when it is read (torch.Tensor.is_neg)")


def _product(sparse: BSR, dense: Tensor, flags: int, bias: Tensor | None, activation: str | None, out: Tensor | None) -> Tensor:
    values = sparse.values
    if dense.is_nested:
        raise TypeError(f"{'A' if flags & RIGHT else 'B'}: must be a dense tensor, not a nested one")
    if bias is not None and (not isinstance(bias, Tensor) or bias.is_nested):
        raise TypeError(f"bias: must be a tensor, not {kind_of(bias)}")
    if _ops.any_autocast():
        dense, values, bias = _ops.autocast_operands(dense, values, bias)
    rows, cols = sparse.shape
    if dense.is_cuda:
        flags |= _ops.tf32_flag(dense)
    try:
        if activation is None and out is None:
            return _ops.spmm(values, sparse.row_offsets, sparse.col_indices, dense, bias, rows, cols, flags)
        return _activated(sparse, values, dense, flags, bias, activation, out)
    except RuntimeError as error:
        sparse_name, dense_name = ("B", "A") if flags & RIGHT else ("A", "B")
        raise _ops.named(error, dense=dense_name, b=dense_name, d="out", **{part: f"{sparse_name}.{part}" for part in _PARTS}) from None


def _activated(sparse: BSR, values: Tensor, dense: Tensor, flags: int, bias: Tensor | None, activation: str | None, out: Tensor | None) -> Tensor:
    """With an activation, or into a given tensor."""
    check_activation(activation)
    rows, cols = sparse.shape
    graded = _ops.wants_gradient(values, dense, bias)
    if out is not None:
        check_into(graded, out)
        flags |= ACTIVATIONS[activation] << ACTIVATION_SHIFT
        _ops.product_into(values, sparse.row_offsets, sparse.col_indices, dense, bias, rows, cols, flags, out)
        return out
    if graded:
        return _ops.activate(_ops.spmm(values, sparse.row_offsets, sparse.col_indices, dense, bias, rows, cols, flags), activation)
    return _ops.spmm(values, sparse.row_offsets, sparse.col_indices, dense, bias, rows, cols, flags | ACTIVATIONS[activation] << ACTIVATION_SHIFT)


def matmul(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    *,
    transpose: bool = False,
    bias: Tensor | None = None,
    activation: Activation | None = None,
    out: Tensor | None = None,
    assume_finite: bool = False,
) -> Tensor:
    """A @ B, where one of them is sparse.

    The sparse one is an sa.BSR, a torch.sparse_bsr tensor or a SciPy matrix, [rows, cols]; the other one dense, of any strides that are
    read without a copy where rows or columns are contiguous, with any dimensions before the last two (a batch, broadcast as torch.matmul
    does; copied where each widens the other), or a vector. Both on one device (CPU or CUDA), of one dtype: float32, float64, float16,
    bfloat16; so is the result, which is contiguous. Sums are in float32 (float64 for float64).

    transpose: the sparse one transposed, as it lies. bias: [columns of the result], added to each row. activation: "relu", "gelu",
    "gelu_tanh", "silu"; part of the product, or where a gradient is wanted PyTorch's own: at minus infinity the last three give -0.0 as
    part of the product, and NaN as PyTorch's. out: a contiguous tensor for the result (no gradient then). assume_finite: the dense one
    holds no infinity or NaN, so that kernels that multiply filled-in zeros may be chosen.

    Values, the dense tensor and bias may require gradients. RuntimeError, TypeError or ValueError name the argument that is wrong.
    """
    flags = (TRANS if transpose else 0) | (FINITE if assume_finite else 0)
    if out is not None:
        check_out(out)
    sparse = A if type(A) is BSR else as_bsr(A, "A")
    if sparse is not None:
        if not isinstance(B, Tensor) or B.layout is not torch.strided:
            raise TypeError(f"B: must be a dense tensor where A is sparse, not {kind_of(B)}")
        if B.dim() == 1:
            if bias is not None:
                raise ValueError("bias: is added to rows, of which a vector has none")
            made = _product(sparse, B.unsqueeze(1), flags, None, activation, None if out is None else out.unsqueeze(-1))
            return made.squeeze(-1) if out is None else out
        return _product(sparse, B, flags, bias, activation, out)
    sparse = as_bsr(B, "B")
    if sparse is None:
        raise TypeError("A: neither A nor B is sparse; use torch.matmul or sa.gemm")
    if A.dim() == 1:
        made = _product(sparse, A.unsqueeze(0), flags | RIGHT, bias, activation, None if out is None else out.unsqueeze(-2))
        return made.squeeze(-2) if out is None else out
    return _product(sparse, A, flags | RIGHT, bias, activation, out)


def bsr_gemm(*operands: Any, shape: tuple[int, int] | None = None, **options: Any) -> Tensor:
    """bsr_gemm(A, B), or bsr_gemm(row_offsets, col_indices, values, B): A B with a sparse A, whole or as its components; options as of
    matmul.

    shape: (rows, cols) of A with components; by default all whole block rows, and the rows of B.
    """
    if len(operands) == 2:
        sparse = as_bsr(operands[0], "A")
        if sparse is None:
            raise TypeError("A: must be sparse, not a dense tensor")
        if shape is not None:
            raise TypeError(f"shape: is for components; A has its own, {sparse.shape}, and {shape} was given")
        return matmul(sparse, operands[1], **options)
    if len(operands) != 4:
        raise TypeError(f"bsr_gemm takes (A, B) or (row_offsets, col_indices, values, B), not {len(operands)} operands")
    row_offsets, col_indices, values, dense = operands
    if not isinstance(dense, Tensor) or dense.dim() == 0:
        raise TypeError(f"B: must be a dense tensor of one dimension or more, not {'a single number' if isinstance(dense, Tensor) else type(dense).__name__}")
    if shape is None and isinstance(row_offsets, Tensor) and isinstance(values, Tensor) and row_offsets.dim() == 1 and values.dim() > 2:  # else refused below
        if options.get("transpose"):
            raise ValueError("shape: must be given with transpose")
        shape = (max(row_offsets.shape[0] - 1, 0) * values.shape[-2], dense.shape[0 if dense.dim() == 1 else -2])
    return matmul(BSR(row_offsets, col_indices, values, (0, 0) if shape is None else shape), dense, **options)


def sddmm(pattern: Any, X: Tensor, Y: Tensor, *, assume_finite: bool = False) -> BSR:  # noqa: N803
    """The blocks of X Y that are stored in pattern, as an sa.BSR on the same indices (sampled dense-dense product).

    pattern: sa.BSR (of sa.BSR.from_pattern where there are no values), torch.sparse_bsr or SciPy BSR, [rows, cols]; its values are not
    read. X: [..., rows, k], Y: [..., k, cols], dense, of one dtype and on the pattern's device, either by rows or by columns without a
    copy. What of an edge block lies beyond the shape is zero. X and Y may require gradients.
    """
    sparse = pattern if type(pattern) is BSR else as_pattern(pattern)
    for name, operand in (("X", X), ("Y", Y)):
        if not is_dense(operand):
            raise TypeError(f"{name}: must be a dense tensor, not {kind_of(operand)}")
    cast = _ops.autocast_dtype(X) if _ops.any_autocast() else None
    if cast is not None:
        X, Y = X.to(cast), Y.to(cast)  # noqa: N806
    flags = (FINITE if assume_finite else 0) | _ops.tf32_flag(X)
    rows, cols = sparse.shape
    high, wide = sparse.block
    try:
        return sparse.with_values(_ops.sddmm(X, Y, sparse.row_offsets, sparse.col_indices, rows, cols, high, wide, flags))
    except RuntimeError as error:
        raise _ops.named(error, x="X", y="Y", d="the result", **{part: f"pattern.{part}" for part in _PARTS}) from None
