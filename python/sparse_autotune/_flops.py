"""What torch.utils.flop_counter counts of the operators: a multiplication and an addition for each entry of a stored block."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils.flop_counter import register_flop_formula

from ._ops import RIGHT

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
    return (bool(want & 1) + bool(want & 2)) * _of_spmm(values, dense, flags)


for _packets, _formula in (
    ([_ops.spmm, _ops._spmm, _ops._spmm_out], _spmm_flop),
    ([_ops.sddmm, _ops._sddmm, _ops._sddmm_out], _sddmm_flop),
    ([_ops._spmm_gradients], _gradients_flop),
):
    register_flop_formula(_packets)(_formula)
