"""The operators on tensors without memory: shapes for torch.compile and torch.export, which refuse what the operators refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._bsr import hint_at_scaled
from ._dense import cut_dim, result_dtype
from ._numbers import (
    ATTENTION_PAGES,
    BOTTOM_RIGHT,
    FACTOR,
    OF_ATTENTION,
    OF_GEMM,
    OF_SDDMM,
    OF_SPMM,
    RIGHT,
    ROWS_FIRST,
    TOP_LEFT,
    TRANS,
    WANT_DENSE,
    WANT_VALUES,
)
from ._scaled import ALL, BLOCK
from ._types import DTYPES, FACTORS, RESULTS, listed, name_of


def _require(holds: Any, text: str) -> None:
    torch._check(holds, lambda: f"sparse_autotune: {text}")


def _check_flags(flags: int, known: int) -> None:
    _require(flags & ~known == 0, f"flags: {flags} has bits that this operator does not know, {flags & ~known}; it knows those of {known}")


def _check_dtype(name: str, tensor: Tensor, other: str, like: Tensor) -> None:
    _require(tensor.dtype == like.dtype, f"{name}: its dtype must be that of {other}, {name_of(like.dtype)}, not {name_of(tensor.dtype)}")


def _check_devices(like_name: str, like: Tensor, **others: Tensor | None) -> None:
    """One tensor without memory (device "meta") is enough to come here: others must not be taken for it."""
    for name, tensor in others.items():
        if tensor is not None:
            _require(tensor.device == like.device, f"{name}: must be on the device of {like_name}, {like.device}, not on {tensor.device}")


def _check_number(name: str, tensor: Tensor) -> None:
    text = f"{name}: its dtype must be {listed(DTYPES)}, not {name_of(tensor.dtype)}{hint_at_scaled(tensor.dtype)}"
    _require(tensor.dtype in DTYPES, text)


def _check_pattern(row_offsets: Tensor, col_indices: Tensor, rows: int, cols: int, block_rows: int, block_cols: int) -> None:
    sizes = f"shape: {rows} x {cols} in blocks of {block_rows} x {block_cols}"
    _require(1 <= block_rows and block_rows <= 256 and 1 <= block_cols and block_cols <= 256, f"{sizes}: blocks must be 1 to 256 high and wide")
    _require(0 <= rows and 0 <= cols, f"{sizes}: sizes must not be negative")
    integer = row_offsets.dtype in (torch.int32, torch.int64)
    _require(integer, f"row_offsets: its dtype must be int32 or int64, not {name_of(row_offsets.dtype)}")
    _check_dtype("col_indices", col_indices, "row_offsets", row_offsets)
    for name, tensor in (("row_offsets", row_offsets), ("col_indices", col_indices)):
        _require(tensor.dim() == 1, f"{name}: must be a contiguous tensor of one dimension; its shape is {list(tensor.shape)}")
        strided = type(tensor.stride(0)) is int and tensor.stride(0) != 1 and type(tensor.shape[0]) is int and tensor.shape[0] > 1
        _require(not strided, f"{name}: must be a contiguous tensor of one dimension; its strides are {list(tensor.stride())}")
    down = (rows + block_rows - 1) // block_rows
    _require(
        row_offsets.shape[0] == down + 1, f"row_offsets: has {row_offsets.shape[0]} entries; a matrix of {rows} rows in blocks of {block_rows} needs {down + 1}"
    )


def _batch(name: str, x: Tensor, items_x: int, other: str, y: Tensor, items_y: int) -> list[Any]:
    """What broadcasting makes of the dimensions before the items of two operands."""
    of_x: Sequence[Any] = x.shape[: x.dim() - items_x]
    of_y: Sequence[Any] = y.shape[: y.dim() - items_y]
    if not of_x or not of_y:
        return [*of_x, *of_y]
    try:
        return [*torch.broadcast_shapes(tuple(of_x), tuple(of_y))]
    except RuntimeError:
        text = f"{name}: its shape is {list(x.shape)}, that of {other} {list(y.shape)}: the dimensions of the batch differ"
        raise RuntimeError(f"sparse_autotune: {text}") from None


def _check_flags_of_new(flags: int) -> None:
    """Of products that make their result."""
    _check_flags(flags, OF_SPMM)
    _require(not flags & FACTOR, "flags: a factor is what out holds: there is none")


def _spmm_shape(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int) -> list[Any]:
    _check_flags(flags, OF_SPMM)
    _require(values.dim() >= 3, f"values: must have the dimensions [..., blocks, block rows, block columns], not {list(values.shape)}")
    _check_devices("values", values, row_offsets=row_offsets, col_indices=col_indices, dense=dense, bias=bias)
    _check_pattern(row_offsets, col_indices, rows, cols, values.shape[-2], values.shape[-1])
    nnzb = col_indices.shape[0]
    _require(values.shape[-3] == nnzb, f"values: has {values.shape[-3]} blocks, but col_indices {nnzb} entries")
    _check_number("values", values)
    _check_dtype("dense", dense, "values", values)
    _require(dense.dim() >= 2, f"dense: must have two dimensions or more; its shape is {list(dense.shape)}")
    right, turned = bool(flags & RIGHT), bool(flags & TRANS) != bool(flags & RIGHT)
    inner, m = (rows, cols) if turned else (cols, rows)
    given, n = (dense.shape[-1], dense.shape[-2]) if right else (dense.shape[-2], dense.shape[-1])
    _require(given == inner, f"dense: its shape is {list(dense.shape)}; the product needs {inner} {'columns' if right else 'rows'}")
    made = [*_batch("values", values, 3, "dense", dense, 2), *((n, m) if right else (m, n))]
    if bias is not None:
        _check_dtype("bias", bias, "values", values)
        text = f"bias: must be a tensor of one dimension with {made[-1]} entries; its shape is {list(bias.shape)}"
        _require(bias.dim() == 1, text)
        _require(bias.shape[0] == made[-1], text)
    return made


def _sddmm_shape(
    x: Tensor, y: Tensor, row_offsets: Tensor, col_indices: Tensor, rows: int, cols: int, block_rows: int, block_cols: int, flags: int
) -> list[Any]:
    _check_flags(flags, OF_SDDMM)
    _check_devices("x", x, y=y, row_offsets=row_offsets, col_indices=col_indices)
    for name, operand in (("x", x), ("y", y)):
        _require(operand.dim() >= 2, f"{name}: must have two dimensions or more; its shape is {list(operand.shape)}")
    _check_pattern(row_offsets, col_indices, rows, cols, block_rows, block_cols)
    _check_number("x", x)
    _check_dtype("y", y, "x", x)
    _require(x.shape[-2] == rows, f"x: its shape is {list(x.shape)}; the pattern has {rows} rows")
    _require(y.shape[-1] == cols, f"y: its shape is {list(y.shape)}; the pattern has {cols} columns")
    _require(x.shape[-1] == y.shape[-2], f"y: has {y.shape[-2]} rows, but x {x.shape[-1]} columns")
    return [*_batch("x", x, 2, "y", y, 2), col_indices.shape[0], block_rows, block_cols]


def _check_groups(a: Tensor, b: Tensor, offs: Tensor) -> None:
    _require(offs.dtype == torch.int32, f"offs: its dtype must be int32, not {name_of(offs.dtype)}")
    _require(offs.dim() == 1, f"offs: must be a contiguous tensor of one dimension; its shape is {list(offs.shape)}")
    fits = (a.dim(), b.dim()) in ((2, 3), (3, 2), (2, 2))
    shapes = f"the shapes of a and b are {list(a.shape)} and {list(b.shape)}"
    _require(fits, f"offs: groups are of two matrices, or of a matrix and one for each group; {shapes}")
    for name, operand in (("a", a), ("b", b)):
        if operand.dim() == 3:
            _require(operand.shape[0] == offs.shape[0], f"{name}: has {operand.shape[0]} matrices, but offs {offs.shape[0]} groups")


def _check_result(name: str, tensor: Tensor, dtype: torch.dtype, shape: list[Any], text: str) -> None:
    _require(tensor.dtype == dtype, f"{name}: its dtype must be that of the result, {name_of(dtype)}, not {name_of(tensor.dtype)}")
    _require(tensor.dim() == len(shape), text)
    for size, wanted in zip(tensor.shape, shape, strict=True):
        _require(size == wanted, text)


def _gemm_shape(a: Tensor, b: Tensor, bias: Tensor | None, residual: Tensor | None, offs: Tensor | None, flags: int) -> list[Any]:
    _check_flags(flags, OF_GEMM)
    _check_number("a", a)
    _check_devices("a", a, b=b, bias=bias, residual=residual, offs=offs)
    _check_dtype("b", b, "a", a)
    for name, operand in (("a", a), ("b", b)):
        _require(operand.dim() >= 2, f"{name}: must have two dimensions or more; its shape is {list(operand.shape)}")
    m, n, depth = a.shape[-2], b.shape[-1], a.shape[-1]
    _require(b.shape[-2] == depth, f"b: its shape is {list(b.shape)}; the product needs {depth} rows, as a has columns")
    if offs is None:
        made = [*_batch("a", a, 2, "b", b, 2), m, n]
    else:
        _check_groups(a, b, offs)
        made = [m, n] if a.dim() != b.dim() else [offs.shape[0], m, n]
    dtype = result_dtype(a, flags)
    if bias is not None:
        each = offs is not None and cut_dim(a, b, offs) == 0
        wanted = [offs.shape[0], n] if offs is not None and each else [n]
        what = "a line for each group" if each else "an entry for each column"
        _check_result("bias", bias, dtype, wanted, f"bias: must have the shape {wanted}, {what}; its shape is {list(bias.shape)}")
    if residual is not None:
        _check_result("residual", residual, dtype, made, f"residual: its shape is {list(residual.shape)}, the result's {made}")
        _require(offs is None or bool(flags & FACTOR), "residual: nothing is added to a product in groups, which may only be multiplied")
    return made


def _check_out(out: Tensor, like: Tensor, shape: list[Any], dtype: torch.dtype | None = None, name: str = "out") -> None:
    _check_devices("the operands", like, **{name: out})
    if dtype is None or dtype == like.dtype:
        _check_dtype(name, out, "the operands", like)
    else:
        _require(out.dtype == dtype, f"{name}: its dtype must be that of the result, {name_of(dtype)}, not {name_of(out.dtype)}")
    _require(out.dim() == len(shape), f"{name}: its shape is {list(out.shape)}, the result's {shape}")
    for size, wanted in zip(out.shape, shape, strict=True):
        _require(size == wanted, f"{name}: its shape is {list(out.shape)}, the result's {shape}")
    _require(out.is_contiguous(), f"{name}: must be contiguous; its strides are {list(out.stride())}")


@torch.library.register_fake("sparse_autotune::spmm")
def _spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags):
    _check_flags_of_new(flags)
    return dense.new_empty(_spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags))


@torch.library.register_fake("sparse_autotune::_spmm")
def _raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version):
    _check_flags_of_new(flags)
    return dense.new_empty(_spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags))


@torch.library.register_fake("sparse_autotune::_spmm_out")
def _raw_spmm_out(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, out):
    _check_out(out, dense, _spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags))


@torch.library.register_fake("sparse_autotune::_spmm_added")
def _raw_spmm_added(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, residual, out):
    _require(not flags & FACTOR, "flags: a product to which a residual is added takes no factor")
    made = _spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    _check_out(out, dense, made)
    _check_out(residual, dense, made, name="residual")


@torch.library.register_fake("sparse_autotune::_spmm_gradients")
def _raw_gradients(values, row_offsets, col_indices, dense, gradient, rows, cols, flags, version, want):
    return (torch.empty_like(dense) if want & WANT_DENSE else None), (torch.empty_like(values) if want & WANT_VALUES else None)


@torch.library.register_fake("sparse_autotune::sddmm")
def _sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
    return x.new_empty(_sddmm_shape(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags))


@torch.library.register_fake("sparse_autotune::_sddmm")
def _raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version):
    return x.new_empty(_sddmm_shape(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags))


@torch.library.register_fake("sparse_autotune::_sddmm_out")
def _raw_sddmm_out(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version, out):
    _check_out(out, x, _sddmm_shape(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags))


@torch.library.register_fake("sparse_autotune::gemm")
def _gemm(a, b, bias, residual, offs, flags):
    return a.new_empty(_gemm_shape(a, b, bias, residual, offs, flags), dtype=result_dtype(a, flags))


@torch.library.register_fake("sparse_autotune::_gemm")
def _raw_gemm(a, b, bias, residual, offs, flags):
    return a.new_empty(_gemm_shape(a, b, bias, residual, offs, flags), dtype=result_dtype(a, flags))


@torch.library.register_fake("sparse_autotune::_gemm_out")
def _raw_gemm_out(a, b, bias, residual, flags, out):
    _check_out(out, a, _gemm_shape(a, b, bias, residual, None, flags), result_dtype(a, flags))


# ------------------------------------------------------------------------------------------------ scaled


def _scaled_dtype(result: int) -> torch.dtype:
    *others, last = (f"{place} ({name_of(dtype)})" for place, dtype in enumerate(RESULTS))
    _require(0 <= result and result < len(RESULTS), f"result: {result} is none of {', '.join(others)} and {last}")
    return RESULTS[result]


def _check_factors(name: str, tensor: Tensor) -> None:
    _require(tensor.dtype in FACTORS, f"{name}: its dtype must be {listed(FACTORS)}, not {name_of(tensor.dtype)}")


def _check_dims(name: str, tensor: Tensor) -> None:
    _require(tensor.dim() >= 2, f"{name}: must have two dimensions or more; its shape is {list(tensor.shape)}")


def _tiles_along(size: Any, side: int) -> Any:
    return 1 if side == ALL else (size + side - 1) // side


def _check_scale(name: str, scale: Tensor | None, lead: Sequence[Any], sizes: Sequence[Any], tile: tuple[int, int], stored: Any = None) -> None:
    """Factors of a matrix of so many rows and columns, or of so many stored blocks: the same for each item of the batch, or each its own."""
    if scale is None:
        return
    _require(scale.dtype == torch.float32, f"{name}: its dtype must be float32, not {name_of(scale.dtype)}")
    if stored is not None and tile == (BLOCK, BLOCK):
        one, what = [stored], "one factor for each stored block needs "
    else:
        for side in tile:
            text = f"{name}: a factor covers tiles of 1 element or more, or all ({ALL}) of an axis, not {side}"
            _require(side >= 1 or side == ALL, text)
        one = [_tiles_along(size, side) for size, side in zip(sizes, tile, strict=True)]
        rows, cols = ("all" if side == ALL else side for side in tile)
        what = f"factors of tiles of {rows} x {cols} need "
    each = f", or {[*lead, *one]}, for each item of the batch" if lead else ""
    text = f"{name}: its shape is {list(scale.shape)}; {what}{one}{each}"
    wanted = one if scale.dim() == len(one) else [*lead, *one]
    _require(scale.dim() == len(wanted), text)
    for size, asked in zip(scale.shape, wanted, strict=True):
        _require(size == asked, text)


@torch.library.register_fake("sparse_autotune::scaled_spmm")
def _scaled_spmm(
    values, row_offsets, col_indices, dense, rows, cols, flags, scale_a, scale_b, bias, tile_a_rows, tile_a_cols, tile_b_rows, tile_b_cols, result
):
    _check_flags_of_new(flags)
    _check_factors("values", values)
    _check_dtype("dense", dense, "values", values)
    _require(values.dim() >= 3, f"values: must have the dimensions [..., blocks, block rows, block columns], not {list(values.shape)}")
    _check_dims("dense", dense)
    _check_devices("values", values, row_offsets=row_offsets, col_indices=col_indices, dense=dense, scale_a=scale_a, scale_b=scale_b, bias=bias)
    _check_pattern(row_offsets, col_indices, rows, cols, values.shape[-2], values.shape[-1])
    nnzb = col_indices.shape[0]
    _require(values.shape[-3] == nnzb, f"values: has {values.shape[-3]} blocks, but col_indices {nnzb} entries")
    right = bool(flags & RIGHT)
    inner, m = (rows, cols) if bool(flags & TRANS) != right else (cols, rows)
    given = dense.shape[-1] if right else dense.shape[-2]
    _require(given == inner, f"dense: its shape is {list(dense.shape)}; the product needs {inner} {'columns' if right else 'rows'}")
    shape, dtype = [dense.shape[-2], m] if right else [m, dense.shape[-1]], _scaled_dtype(result)
    made = dense.new_empty([*_batch("values", values, 3, "dense", dense, 2), *shape], dtype=dtype)
    if bias is not None:
        _check_result("bias", bias, dtype, shape[1:], f"bias: must have one dimension with {shape[1]} entries; its shape is {list(bias.shape)}")
    of_sparse = (values.shape[:-3], (cols, rows) if flags & TRANS else (rows, cols))
    of_dense = (dense.shape[:-2], dense.shape[-2:])
    tile_a, tile_b = (tile_a_rows, tile_a_cols), (tile_b_rows, tile_b_cols)
    of_a, of_b = ("scale_a", scale_a), ("scale_b", scale_b)
    _check_scale(*(of_b if right else of_a), *of_sparse, tile_b if right else tile_a, nnzb)
    _check_scale(*(of_a if right else of_b), *of_dense, tile_a if right else tile_b)
    return made


@torch.library.register_fake("sparse_autotune::scaled_gemm")
def _scaled_gemm(a, b, flags, scale_a, scale_b, bias, tile_a_rows, tile_a_cols, tile_b_rows, tile_b_cols, result):
    _check_flags(flags, OF_GEMM)
    _check_factors("a", a)
    _check_dtype("b", b, "a", a)
    _check_dims("a", a)
    _check_dims("b", b)
    _check_devices("a", a, b=b, scale_a=scale_a, scale_b=scale_b, bias=bias)
    _require(a.shape[-1] == b.shape[-2], f"b: its shape is {list(b.shape)}; the product needs {a.shape[-1]} rows, as a has columns")
    made = a.new_empty([*_batch("a", a, 2, "b", b, 2), a.shape[-2], b.shape[-1]], dtype=_scaled_dtype(result))
    if bias is not None:
        text = f"bias: must have the shape {[b.shape[-1]]}, an entry for each column; its shape is {list(bias.shape)}"
        _check_result("bias", bias, made.dtype, [b.shape[-1]], text)
    _check_scale("scale_a", scale_a, a.shape[:-2], a.shape[-2:], (tile_a_rows, tile_a_cols))
    _check_scale("scale_b", scale_b, b.shape[:-2], b.shape[-2:], (tile_b_rows, tile_b_cols))
    return made


# ------------------------------------------------------------------------------------------------ attention


def _heads(name: str, tensor: Tensor, rows_first: bool) -> tuple[Any, Any, Any, Any]:
    """Batch, heads, rows and depth."""
    wanted = "[batch, rows, heads, depth]" if rows_first else "[batch, heads, rows, depth]"
    _require(tensor.dim() == 4, f"{name}: must have four dimensions, {wanted}; its shape is {list(tensor.shape)}")
    batch, one, two, depth = tensor.shape
    return (batch, two, one, depth) if rows_first else (batch, one, two, depth)


def _check_same(name: str, tensor: Tensor, other: str, like: Tensor, what: str, *pairs: tuple[Any, Any]) -> None:
    for size, wanted in pairs:
        _require(size == wanted, f"{name}: its shape is {list(tensor.shape)}, that of {other} {list(like.shape)}: they have the same {what}")


def _check_lists(sizes: tuple[Any, ...], row_offsets: Tensor, col_indices: Tensor, block_rows: int, block_cols: int, of_heads: Any, of_items: Any) -> None:
    batch, heads, heads_kv, queries, keys = sizes
    text = f"mask: has lists for {of_heads} heads; it is 1, or the {heads_kv} of k or the {heads} of q"
    _require(of_heads == 1 or of_heads == heads_kv or of_heads == heads, text)
    _require(of_items == 1 or of_items == batch, f"mask: has lists for {of_items} items; it is 1, or the {batch} of the batch")
    lists = of_heads * of_items
    rows = queries if lists == 1 else lists * ((queries + block_rows - 1) // block_rows) * block_rows
    _check_pattern(row_offsets, col_indices, rows, keys, block_rows, block_cols)


def _check_index(name: str, index: Tensor | None, dims: int, wanted: Any, of: str) -> None:
    if index is None:
        return
    _require(index.dtype == torch.int32, f"{name}: its dtype must be int32, not {name_of(index.dtype)}")
    text = f"{name}: its shape is {list(index.shape)}; it must be [{wanted}{', pages of each]' if dims > 1 else ']'}: one for {of}"
    _require(index.dim() == dims, text)
    _require(index.shape[0] == wanted, text)


def _check_packing(q: Tensor, batch: Any, query_ends: Tensor | None, key_ends: Tensor | None, page_table: Tensor | None) -> None:
    _check_devices("q", q, query_ends=query_ends, key_ends=key_ends, page_table=page_table)
    lists, of = batch, "each item"
    if query_ends is not None:
        _require(key_ends is not None, "key_ends: is missing; query_ends has the ends of sequences, whose keys must end somewhere, too")
        text = f"query_ends: sequences lie one behind the other in a batch of 1; the shape of q is {list(q.shape)}"
        _require(batch == 1, text)
        _require(query_ends.dim() == 1, f"query_ends: its shape is {list(query_ends.shape)}; it must be [sequences]")
        lists, of = query_ends.shape[0], "each sequence"
        _check_index("query_ends", query_ends, 1, lists, of)
    _check_index("key_ends", key_ends, 1, lists, of)
    _check_index("page_table", page_table, 2, lists, of)


def _check_tiles(q: Tensor, col_indices: Tensor | None, block_rows: int, block_cols: int, tile_numbers: Tensor | None, tile_bits: Tensor | None) -> None:
    _check_devices("q", q, tile_numbers=tile_numbers, tile_bits=tile_bits)
    if tile_numbers is None or tile_bits is None:
        _require(tile_numbers is tile_bits, f"{'tile_numbers' if tile_numbers is None else 'tile_bits'}: is missing")
        return
    _require(col_indices is not None, "tile_numbers: there is no mask whose blocks have tiles")
    _check_index("tile_numbers", tile_numbers, 1, col_indices.shape[0], "each block")  # type: ignore[union-attr]
    _check_dtype("tile_bits", tile_bits, "tile_numbers", tile_numbers)
    wanted = f"[tiles, {block_rows}, {(block_cols + 31) // 32}]: at least one tile, a line for each query of a block, a bit for each of its keys"
    text = f"tile_bits: its shape is {list(tile_bits.shape)}; it must be {wanted}"
    _require(tile_bits.dim() == 3, text)
    for size, is_size in zip(tile_bits.shape[1:], (block_rows, (block_cols + 31) // 32), strict=True):
        _require(size == is_size, text)
    _require(tile_bits.shape[0] != 0, text)


def _attention_shapes(
    q, k, v, row_offsets, col_indices, block_rows, block_cols, of_heads, of_items, flags, query_ends, key_ends, page_table, want_lse
) -> tuple[list[Any], list[Any]]:
    _check_flags(flags, OF_ATTENTION)
    both = bool(flags & TOP_LEFT) and bool(flags & BOTTOM_RIGHT)
    _require(not both, f"flags: {flags} says top_left and bottom_right; one key stands beside a query")
    rows_first = bool(flags & ROWS_FIRST)
    _check_number("q", q)
    _check_devices("q", q, k=k, v=v, row_offsets=row_offsets, col_indices=col_indices)
    _check_dtype("k", k, "q", q)
    _check_dtype("v", v, "q", q)
    batch, heads, queries, depth = _heads("q", q, rows_first)
    batch_k, heads_kv, keys, depth_k = _heads("k", k, rows_first)
    batch_v, heads_v, keys_v, depth_v = _heads("v", v, rows_first)
    paged = page_table is not None
    _check_same("k", k, "q", q, "depth" if paged else "batch and depth", (batch_k, batch_k if paged else batch), (depth_k, depth))
    _check_same("v", v, "k", k, f"{'pages' if paged else 'batch'}, heads and rows", (batch_v, batch_k), (heads_v, heads_kv), (keys_v, keys))
    divides = heads % heads_kv == 0 if heads_kv != 0 else heads == 0
    _require(divides, f"k: has {heads_kv} heads, which do not divide the {heads} of q")
    if want_lse:
        _require(depth_v != 0 or depth == 0, "v: has no columns, which return_lse wants")
    _check_packing(q, batch, query_ends, key_ends, page_table)
    if paged:
        _require(batch_k != 0 and keys != 0, f"k: its shape is {list(k.shape)}: there is at least one page, of one row")
        keys = keys * page_table.shape[1]
    if row_offsets is not None:
        _check_lists((batch, heads, heads_kv, queries, keys), row_offsets, col_indices, block_rows, block_cols, of_heads, of_items)
    return ([batch, queries, heads, depth_v] if rows_first else [batch, heads, queries, depth_v]), [batch, heads, queries]


def _fake_attention(want_lse: bool) -> Any:
    def fake(
        q,
        k,
        v,
        row_offsets,
        col_indices,
        block_rows,
        block_cols,
        mask_heads,
        mask_items,
        window_left,
        window_right,
        sinks,
        scale,
        softcap,
        flags,
        query_ends=None,
        key_ends=None,
        page_table=None,
        tile_numbers=None,
        tile_bits=None,
        version=None,
    ):
        mask = (row_offsets, col_indices, block_rows, block_cols, mask_heads, mask_items)
        made, of_lse = _attention_shapes(q, k, v, *mask, flags, query_ends, key_ends, page_table, want_lse)
        _check_tiles(q, col_indices, block_rows, block_cols, tile_numbers, tile_bits)
        o = q.new_empty(made)
        return (o, q.new_empty(of_lse, dtype=torch.float64 if q.dtype == torch.float64 else torch.float32)) if want_lse else o

    return fake


for _name_of_op in ("attention", "_attention"):
    torch.library.register_fake(f"sparse_autotune::{_name_of_op}")(_fake_attention(False))
    torch.library.register_fake(f"sparse_autotune::{_name_of_op}_lse")(_fake_attention(True))


@torch.library.register_fake("sparse_autotune::attention_backward")
def _fake_backward(grad_o, grad_lse, o, lse, q, k, v, *rest, **named):
    made_o, made_lse = _fake_attention(True)(q, k, v, *rest, **named)
    page_table = named.get("page_table", rest[ATTENTION_PAGES] if len(rest) > ATTENTION_PAGES else None)
    _require(page_table is None, "page_table: pages of a cache have no gradient")
    for name, given, made, like in (("o", o, made_o, "attention's result"), ("lse", lse, made_lse, "the logarithms of attention's sums")):
        _check_made(name, given, made, like)
    _check_made("grad_o", grad_o, made_o, "o")
    if grad_lse is not None:
        _check_made("grad_lse", grad_lse, made_lse, "lse")
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _check_made(name: str, given: Tensor, made: Tensor, like: str) -> None:
    _require(given.dtype == made.dtype, f"{name}: its dtype must be that of {like}, {name_of(made.dtype)}, not {name_of(given.dtype)}")
    text = f"{name}: its shape is {list(given.shape)}; it must be {list(made.shape)}, that of {like}"
    _require(given.dim() == made.dim(), text)
    for size, wanted in zip(given.shape, made.shape, strict=True):
        _require(size == wanted, text)


torch.library.register_fake("sparse_autotune::_attention_backward")(_fake_backward)
