"""Products of eight-bit factors with scale factors: scaled_matmul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import _ops
from ._bsr import BSR, is_dense, kind_of
from ._matmul import _PARTS, as_bsr
from ._numbers import ACTIVATION_SHIFT, ACTIVATIONS, FINITE, RIGHT, TRANS, Activation
from ._ops import check_activation
from ._types import FACTORS, RESULTS, listed

ALL = -1  # of a tile: all that there are along this axis
BLOCK = -2  # both sides of a tile: a stored block

Tile = Sequence[int | None]
_MOST = 1 << 62


def is_scaled(*operands: Any) -> bool:
    """Whether it is a product of factors of eight bits."""
    return any(getattr(operand, "dtype", None) in FACTORS for operand in operands)


def _sides(name: str, tile: Any) -> tuple[int, int]:
    if not isinstance(tile, Sequence) or len(tile) != 2:
        raise TypeError(f"{name}: must be a tile's rows and columns, (1, 128), not {tile!r}")
    for side in tile:
        if side is not None and (type(side) is not int or not 1 <= side <= _MOST):
            raise ValueError(f"{name}: {side!r} is no side of a tile: 1 to 2^62 elements, or None, all that there are")
    return tile[0] or ALL, tile[1] or ALL


def _side(name: str, size: int, count: int, axis: str) -> int:
    """What a factor covers of an axis, by how many there are."""
    if count == size:
        return 1
    if count == 1:
        return ALL
    side = size // max(count, 1)
    if not side or side * count != size or side & (side - 1):  # 2 along 200 may be of 100 or of 128
        raise ValueError(f"{name}: has {count} factors along {size} {axis}, which does not tell how many each covers: say tile_{name[-1]}")
    return side


def factors_of(name: str, scale: Tensor | None, tile: Tile | None, shape: Sequence[int], stored: int | None = None):
    """Factors in the operator's shape, and the tile that each covers. shape: [..., rows, columns]; stored: how many blocks of a sparse matrix are."""
    if scale is None:
        if tile is not None:
            raise ValueError(f"tile_{name[-1]}: is given without {name}")
        return None, 0, 0
    if not is_dense(scale):
        raise TypeError(f"{name}: must be a dense tensor, not {kind_of(scale)}")
    lead = tuple(shape[:-2])
    if tile is None and stored is not None and tuple(scale.shape) in ((stored,), (*lead, stored)):
        return scale, BLOCK, BLOCK
    if tile is not None:
        sides = _sides(f"tile_{name[-1]}", tile)
    elif scale.numel() == 1:
        sides = (ALL, ALL)
    elif scale.dim() == 2 or scale.dim() == len(shape):
        sides = (_side(name, shape[-2], scale.shape[-2], "rows"), _side(name, shape[-1], scale.shape[-1], "columns"))
    else:
        what = f", or a line of one for each of the {stored} stored blocks" if stored is not None else ""
        what += f"; for each item of the batch, [{', '.join(map(str, lead))}, ...]" if lead else ""
        raise ValueError(f"{name}: its shape is {list(scale.shape)}; it must be a single factor, a matrix of one for each tile{what}")
    return (scale.reshape(1, 1) if scale.numel() == 1 else scale), *sides


def _flags(transpose: bool, activation: str | None, assume_finite: bool) -> int:
    check_activation(activation)
    return (TRANS if transpose else 0) | (FINITE if assume_finite else 0) | ACTIVATIONS[activation] << ACTIVATION_SHIFT


def _result(out_dtype: torch.dtype) -> int:
    if out_dtype not in RESULTS:
        raise ValueError(f"out_dtype: must be {listed(RESULTS, 'torch.')}, not {out_dtype}")
    return RESULTS.index(out_dtype)


def parts_of(A: Any, B: Any, flags: int, scale_a: Any, scale_b: Any, tile_a: Any, tile_b: Any, bias: Any, out_dtype: torch.dtype):  # noqa: N803
    """The operator's name, and its operands."""
    sparse: BSR | None = as_bsr(A, "A")
    right = sparse is None and not (is_dense(B) and not hasattr(type(B), "bsr"))
    if right:
        sparse = as_bsr(B, "B")
    for name, operand in (("A", A), ("B", B)):
        if (name == "B") != right or sparse is None:
            if sparse is not None and not is_dense(operand):
                raise TypeError(f"{name}: must be a dense tensor, not {kind_of(operand)}")
            if is_dense(operand) and operand.dim() < 2:
                raise ValueError(f"{name}: must have two dimensions or more; its shape is {list(operand.shape)}")
    result = _result(out_dtype)
    if sparse is None:
        if flags & TRANS:
            raise ValueError("transpose: is for a sparse operand; give dense ones as they are to be multiplied, A.mT")
        of_a = factors_of("scale_a", scale_a, tile_a, A.shape)
        of_b = factors_of("scale_b", scale_b, tile_b, B.shape)
        return "scaled_gemm", (A, B, flags, of_a[0], of_b[0], bias, *of_a[1:], *of_b[1:], result)
    shape = (*sparse.values.shape[:-3], *(sparse.shape[::-1] if flags & TRANS else sparse.shape))
    of_a = factors_of("scale_a", scale_a, tile_a, *((A.shape,) if right else (shape, sparse.nnzb)))
    of_b = factors_of("scale_b", scale_b, tile_b, *((shape, sparse.nnzb) if right else (B.shape,)))
    rows, cols = sparse.shape
    dense, flags = (A, flags | RIGHT) if right else (B, flags)
    scales = (of_a[0], of_b[0], bias, *of_a[1:], *of_b[1:], result)
    return "scaled_spmm", (sparse.values, sparse.row_offsets, sparse.col_indices, dense, rows, cols, flags, *scales)


def scaled_matmul(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    scale_a: Tensor | None = None,
    scale_b: Tensor | None = None,
    *,
    tile_a: Tile | None = None,
    tile_b: Tile | None = None,
    transpose: bool = False,
    bias: Tensor | None = None,
    activation: Activation | None = None,
    out_dtype: torch.dtype = torch.float32,
    assume_finite: bool = False,
) -> Tensor:
    """act(A' @ B' + bias), where each element of A' and B' is one of A and B times the factor that covers it.

    A: [..., M, K], B: [..., K, N], matrices of one dtype, torch.float8_e4m3fn, torch.float8_e5m2 or torch.int8; one of them may be sparse, as in
    matmul. scale_a, scale_b: float32 on the operands' device; without one all factors are 1. A factor covers a tile of its matrix:

    - one number: the whole matrix;
    - [M, 1] or [1, K] (of B: [K, 1] or [1, N]): a row, or a column, each;
    - [ceil(M / r), ceil(K / c)]: tiles of r x c, of the transposed matrix with transpose;
    - [nnzb], of a sparse matrix: its stored blocks, in the order of col_indices.

    Items of a batch have the same factors, or each its own: [..., M, 1] of A [..., M, K], and [..., nnzb]. Without a tile, [items, nnzb] is
    taken as factors of stored blocks, even if it could be of tiles: say tile_a then.
    tile_a, tile_b say the tile: (128, 128), and None for all of an axis, (1, None). Without them a side is taken to be what the shapes say:
    1, all, or a power of two that divides the matrix's. ValueError asks for the tile where they say none of these: two factors along 200 may
    be of 100 or of 128. The result is out_dtype: torch.float32, torch.float16 or torch.bfloat16; so is bias, [N]. transpose, activation and
    assume_finite as of matmul. Sums are float32, of int8 whole numbers without rounding.

    There is no gradient: operands that require one are refused (NotImplementedError) unless gradients are off. This version has a reference
    kernel, on the CPU: right, and slow.
    """
    if bias is not None and not is_dense(bias):
        raise TypeError(f"bias: must be a dense tensor, not {kind_of(bias)}")
    _ops.refuse_gradients(A=A, B=B, scale_a=scale_a, scale_b=scale_b, bias=bias)
    name, parts = parts_of(A, B, _flags(transpose, activation, assume_finite), scale_a, scale_b, tile_a, tile_b, bias, out_dtype)
    try:
        return getattr(torch.ops.sparse_autotune, name)(*parts)
    except RuntimeError as error:
        names = {"a": "A", "b": "B"}
        if name == "scaled_spmm":
            sparse, dense = ("B", "A") if parts[6] & RIGHT else ("A", "B")
            names = {"dense": dense, "b": dense, **{part: f"{sparse}.{part}" for part in _PARTS}}
        raise _ops.named(error, d="the result", **names) from None
