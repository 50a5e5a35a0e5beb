"""What torch.utils.flop_counter counts of the operators: a multiplication and an addition for each entry of a stored block, or of a dense
operand."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import sys
from typing import Any

import torch

from ._numbers import RIGHT, ROWS_FIRST, WANT_DENSE, WANT_VALUES

_ops = torch.ops.sparse_autotune


def _of_spmm(values: Any, dense: Any, flags: int) -> int:
    lead = torch.broadcast_shapes(tuple(values[:-3]), tuple(dense[:-2]))
    return 2 * math.prod(values[-3:]) * dense[-2 if flags & RIGHT else -1] * math.prod(lead)


def _spmm_flop(values, row_offsets, col_indices, dense, bias, rows, cols, flags, *_rest, out_shape=None, **_kwargs) -> int:
    return _of_spmm(values, dense, flags)


def _sddmm_flop(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, *_rest, out_shape=None, **_kwargs) -> int:
    lead = torch.broadcast_shapes(tuple(x[:-2]), tuple(y[:-2]))
    return 2 * col_indices[0] * block_rows * block_cols * x[-1] * math.prod(lead)


def _gradients_flop(values, row_offsets, col_indices, dense, gradient, rows, cols, flags, version, want, out_shape=None, **_kwargs) -> int:
    return (bool(want & WANT_DENSE) + bool(want & WANT_VALUES)) * _of_spmm(values, dense, flags)


def _gemm_flop(a, b, bias, residual, offs, flags, out_shape=None, **_kwargs) -> int:
    lead = () if offs is not None else torch.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2]))  # the groups make up the whole
    return 2 * a[-2] * a[-1] * b[-1] * math.prod(lead)


def _gemm_out_flop(a, b, bias, residual, flags, out, out_shape=None, **_kwargs) -> int:
    return _gemm_flop(a, b, bias, residual, None, flags)


def _scaled_spmm_flop(values, row_offsets, col_indices, dense, rows, cols, flags, *_scales, out_shape=None, **_kwargs) -> int:
    return _of_spmm(values, dense, flags)


def _scaled_gemm_flop(a, b, flags, *_scales, out_shape=None, **_kwargs) -> int:
    return _gemm_flop(a, b, None, None, None, flags)


def _attention_flop(
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
    *_rest,
    out_shape=None,
    **_kwargs,
) -> int:
    """Of all blocks of the mask, or all keys of all items; causality, windows, lengths and sequences are not looked at, as the counter does
    not with PyTorch's own."""
    head, row = (2, 1) if flags & ROWS_FIRST else (1, 2)
    lists = q[0] * q[head]
    keys = k[row] if page_table is None else k[row] * page_table[1]
    pairs = lists * q[row] * keys if col_indices is None else col_indices[0] * block_rows * block_cols * lists // (mask_heads * mask_items)
    return 2 * pairs * (q[3] + v[3])


def _backward_flop(grad_o, grad_lse, o, lse, q, k, v, *rest, out_shape=None, **_kwargs) -> int:
    """Five products to the two of the forward pass."""
    return _attention_flop(q, k, v, *rest) // (q[3] + v[3]) * (3 * q[3] + 2 * v[3]) if q[3] + v[3] else 0


def register(counter: Any) -> None:
    """Tells torch.utils.flop_counter the formulas."""
    for packets, formula in (
        ([_ops.spmm, _ops._spmm, _ops._spmm_out, _ops._spmm_added], _spmm_flop),
        ([_ops.sddmm, _ops._sddmm, _ops._sddmm_out], _sddmm_flop),
        ([_ops._spmm_gradients], _gradients_flop),
        ([_ops.gemm, _ops._gemm], _gemm_flop),
        ([_ops._gemm_out], _gemm_out_flop),
        ([_ops.scaled_spmm], _scaled_spmm_flop),
        ([_ops.scaled_gemm], _scaled_gemm_flop),
        ([_ops.attention, _ops.attention_lse, _ops._attention, _ops._attention_lse], _attention_flop),
        ([_ops.attention_backward, _ops._attention_backward], _backward_flop),
    ):
        counter.register_flop_formula(packets)(formula)


# ------------------------------------------------------------------------------------------------ when it is imported

_COUNTER = "torch.utils.flop_counter"  # imports Triton, which takes longer than all of this package


class _OnImport:
    """A finder of modules that finds none: where the counter is imported, it has the others' loader register the formulas, and goes."""

    asking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _COUNTER or self.asking:
            return None
        self.asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asking = False
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            run(module)
            register(module)
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)  # type: ignore[arg-type]

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if _COUNTER in sys.modules:
    register(sys.modules[_COUNTER])
else:
    sys.meta_path.insert(0, _OnImport())  # type: ignore[arg-type]
