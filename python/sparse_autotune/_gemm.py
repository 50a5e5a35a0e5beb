"""The products of dense operands: gemm, grouped_gemm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _dense, _ops
from ._bsr import is_dense, kind_of
from ._matmul import check_into, check_out
from ._numbers import ACTIVATION_SHIFT, ACTIVATIONS, FACTOR, WHOLE, WIDE, Activation
from ._ops import check_activation
from ._types import FACTORS, HALVES


def check_dense(name: str, operand: Any) -> None:
    if not is_dense(operand):
        raise TypeError(f"{name}: must be a dense tensor, not {kind_of(operand)}")


def _flags_of(a: Tensor, activation: str | None, factor: Any, out_dtype: torch.dtype | None) -> int:
    flags = (FACTOR if factor is not None else 0) | _ops.tf32_flag(a)
    if activation is not None:
        check_activation(activation)
        flags |= ACTIVATIONS[activation] << ACTIVATION_SHIFT
    if out_dtype is None or out_dtype is a.dtype or a.dtype in FACTORS:  # which the operator refuses
        return flags
    if out_dtype is torch.float32 and a.dtype in HALVES:
        return flags | WIDE
    others = " or torch.float32" if a.dtype in HALVES else ""
    raise ValueError(f"out_dtype: must be that of the operands, {a.dtype}{others}, not {out_dtype}")


def _autocast(a: Tensor, b: Tensor, added: tuple[Tensor | None, ...], out_dtype: torch.dtype | None) -> tuple[Tensor, Tensor, list[Tensor | None]]:
    """The operands in the dtype that autocast asks for, and what is added in that of the result."""
    cast = _ops.autocast_dtype(a)
    if cast is None:
        return a, b, list(added)
    wanted = cast if out_dtype is None else out_dtype
    return a.to(cast), b.to(cast), [None if t is None else t.to(wanted) for t in added]


def _spread(name: str, tensor: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """In the result's shape, as far as it is known: the operator refuses what does not fit."""
    try:
        shape = (*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    except RuntimeError:
        return tensor
    if tensor.shape == shape:
        return tensor
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise ValueError(f"{name}: its shape is {list(tensor.shape)}, which does not broadcast to that of the result, {list(shape)}") from None


def gemm(
    a: Tensor,
    b: Tensor,
    *,
    bias: Tensor | None = None,
    activation: Activation | None = None,
    residual: Tensor | None = None,
    factor: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """act(a @ b + bias) + residual, or times factor: a product of dense tensors in one pass, by the kernel that was measured to be the
    fastest.

    a: [..., M, K], b: [..., K, N], or vectors, with batches as torch.matmul broadcasts them; each of any strides that are read without a
    copy where rows or columns are contiguous. Both on one device (CPU or CUDA), of one dtype: float32, float64, float16, bfloat16; so is
    the result, which is contiguous, but for out_dtype=torch.float32 with float16 and bfloat16, which leaves the sums unrounded. Sums are in
    float32 (float64 for float64).

    bias: [N], added to each row. activation: "relu", "gelu", "gelu_tanh", "silu"; part of the product, or where a gradient is wanted
    PyTorch's own. residual is added after it, or the result multiplied with factor (one of the two); either is broadcast to the result.
    bias, residual and factor have the result's dtype. out: a contiguous tensor for the result (no gradient then); it may be the residual or
    the factor.

    All operands may require gradients. RuntimeError, TypeError or ValueError name the argument that is wrong.
    """
    check_dense("a", a)
    check_dense("b", b)
    if bias is not None:
        check_dense("bias", bias)
    name, added = ("residual", residual) if factor is None else ("factor", factor)
    if residual is not None and factor is not None:
        raise ValueError("factor: is given beside residual; a product takes one of them")
    if added is not None:
        check_dense(name, added)
    if _ops.any_autocast():
        a, b, (bias, added) = _autocast(a, b, (bias, added), out_dtype)
    flags = _flags_of(a, activation, factor, out_dtype)
    if out is not None:
        check_out(out)
        check_into(_ops.wants_gradient(a, b, bias, added), out)
    if a.dim() == 1 or b.dim() == 1:
        return _of_vectors(a, b, bias, name, added, flags, out)
    return _product(a, b, bias, name, added, flags, out)


def _product(a: Tensor, b: Tensor, bias: Tensor | None, name: str, added: Tensor | None, flags: int, out: Tensor | None) -> Tensor:
    if added is not None and a.dim() > 1 and b.dim() > 1:
        added = _spread(name, added, a, b)
    try:
        if out is None:
            return _dense.gemm(a, b, bias, added, None, flags)
        _dense.gemm_into(a, b, bias, added, flags, out)
        return out
    except RuntimeError as error:
        raise _ops.named(error, residual=name, d="out", a="a", b="b", bias="bias") from None


def _of_vectors(a: Tensor, b: Tensor, bias: Tensor | None, name: str, added: Tensor | None, flags: int, out: Tensor | None) -> Tensor:
    """A vector is a row of a, or a column of b; the result has no such dimension."""
    row, column = a.dim() == 1, b.dim() == 1
    if column and bias is not None:
        raise ValueError("bias: is added to rows, of which a product with a vector has none")

    def with_them(t: Tensor | None) -> Tensor | None:
        t = t if t is None or not column else t.unsqueeze(-1)
        return t if t is None or not row else t.unsqueeze(-1 if column and t.dim() == 1 else -2)

    made = _product(a.unsqueeze(0) if row else a, b.unsqueeze(1) if column else b, bias, name, with_them(added), flags, with_them(out))
    if out is not None:
        return out
    made = made.squeeze(-1) if column else made
    return made.squeeze(-1 if column else -2) if row else made


def _ends_on(a: Tensor, b: Tensor, offs: Tensor) -> tuple[Tensor, int]:
    """Ends of the host on the device of the operands; what the device would not check is checked, and what lies behind the last end is
    known."""
    sizes = {(2, 3): a.shape[0], (3, 2): b.shape[-1], (2, 2): a.shape[-1]}
    if offs.dim() != 1 or offs.dtype is not torch.int32 or (a.dim(), b.dim()) not in sizes:
        return offs.to(a.device), 0  # the operator says why
    size, begin = sizes[a.dim(), b.dim()], 0
    for group, end in enumerate(offs.tolist()):
        if not begin <= end <= size:
            raise ValueError(f"offs[{group}] = {end}: the group begins at {begin}, and the axis has {size} elements")
        begin = end
    return offs.to(a.device, non_blocking=True), WHOLE if begin == size else 0


def grouped_gemm(
    a: Tensor,
    b: Tensor,
    offs: Tensor,
    *,
    bias: Tensor | None = None,
    activation: Activation | None = None,
    factor: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Products in groups, each of its own size: the layers of a mixture of experts. offs: int32, where each group ends; the first begins at
    0.

    - a [M, K], b [groups, K, N]: rows of a in groups, each multiplied with its own b; the result is [M, N]. bias: [groups, N].
    - a [groups, M, K], b [K, N]: columns of b in groups, each with its own a; [M, N]. bias: [N].
    - a [M, K], b [K, N]: columns of a and rows of b in groups; a result for each, [groups, M, N] (gradients of the experts' weights). bias:
      [N].

    That is what torch._grouped_mm takes. A group may be empty. What lies behind the last end takes no part: there the result is zero.

    offs may lie on the host or on the device of the operands. On a GPU nobody waits for it or checks it: wrong ends reach beyond the
    tensors. Ends of the host are checked, with CUDA outside of compiled code; there they also save filling the result with zeros where the
    last one is the end of all.

    Operands, dtypes, bias, activation, factor and out_dtype are as those of gemm, gradients too.
    """
    for name, operand in (("a", a), ("b", b), ("offs", offs)):
        check_dense(name, operand)
    if bias is not None:
        check_dense("bias", bias)
    if factor is not None:
        check_dense("factor", factor)
    if _ops.any_autocast():
        a, b, (bias, factor) = _autocast(a, b, (bias, factor), out_dtype)
    flags = _flags_of(a, activation, factor, out_dtype)
    if a.is_cuda and offs.device.type == "cpu":
        if _ops.is_compiling() or _ops.transforming():
            offs = offs.to(a.device, non_blocking=True)
        else:
            offs, known = _ends_on(a, b, offs)
            flags |= known
    try:
        return _dense.gemm(a, b, bias, factor, offs, flags)
    except RuntimeError as error:
        raise _ops.named(error, residual="factor", d="out", a="a", b="b", bias="bias") from None
