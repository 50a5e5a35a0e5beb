"""The operators on two dense operands, with groups or without: gradients, and the raw entry points of the front.

One operator multiplies, and its operands say how: with offs, where each group ends, those of [M, K] and [groups, K, N] are rows of a in
groups, of [groups, M, K] and [K, N] columns of b, of [M, K] and [K, N] both along K, with a result for each group. So the gradients of each
are again such products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _ops
from ._numbers import ACTIVATION_MASK, ACTIVATION_SHIFT, FACTOR, FINITE, TF32, WHOLE, WIDE
from ._ops import forward_ad, is_compiling, is_recorded, is_tracing, transforming
from ._types import HALVES

BARE = FINITE | TF32 | WIDE | WHOLE  # flags without activation and factor

public_gemm = torch.ops.sparse_autotune.gemm.default
raw_gemm = torch.ops.sparse_autotune._gemm.default._op  # what OpOverload.__call__ calls, without its frame
raw_gemm_out = torch.ops.sparse_autotune._gemm_out.default


def result_dtype(a: Tensor, flags: int) -> torch.dtype:
    return torch.float32 if flags & WIDE and a.dtype in HALVES else a.dtype


def cut_dim(a: Tensor, b: Tensor, offs: Tensor | None) -> int | None:
    """The dimension of the result that groups cut; None: each has a result of its own, or there are none."""
    return None if offs is None or a.dim() == b.dim() else 0 if b.dim() == 3 else 1


def finished(made: Tensor, residual: Tensor | None, flags: int) -> Tensor:
    """What follows a product, as steps of their own."""
    made = _ops.activate(made, _ops.activation_of(flags))
    if residual is None:
        return made
    return made * residual if flags & FACTOR else made + residual


def _gradient_of_bias(a: Tensor, b: Tensor, offs: Tensor | None, flags: int, grad: Tensor, product: Any) -> Tensor:
    cut = cut_dim(a, b, offs)
    if cut is None:
        return _ops.summed_bias(grad)
    ones = grad.new_ones(1, grad.shape[0])
    if cut == 0:  # a bias for each group, along the rows of which the sum goes
        return product(ones, grad, None, None, offs, flags).squeeze(1)
    assert offs is not None
    return product(ones.expand(offs.shape[0], *ones.shape), grad, None, None, offs, flags).squeeze(0)


def gemm_gradients(wanted, a: Tensor, b: Tensor, offs: Tensor | None, flags: int, grad: Tensor, product):
    """Of a, b and bias of D = a b + bias. The sums of a wide result go back in the operands' dtype, as those of all others."""
    flags &= FINITE | TF32 | WHOLE
    by_a = by_b = None
    by_bias = _gradient_of_bias(a, b, offs, flags, grad, product) if wanted[2] else None
    grad = grad if grad.dtype == a.dtype else grad.to(a.dtype)
    if wanted[0]:
        by_a = product(grad, b.mT, None, None, offs, flags)
        by_a = by_a if offs is not None else _ops.sum_to(by_a, a)
    if wanted[1]:
        if offs is None and b.dim() == 2:  # items of a batch are more rows
            a, grad = a.reshape(-1, a.shape[-1]), grad.reshape(-1, grad.shape[-1])
        by_b = product(a.mT, grad, None, None, offs, flags)
        by_b = by_b if offs is not None else _ops.sum_to(by_b, b)
    return by_a, by_b, by_bias


class _Gemm(torch.autograd.Function):
    """Eager training, without activation and residual. The backward pass can be differentiated again."""

    @staticmethod
    def forward(ctx, a, b, bias, offs, flags):
        ctx.save_for_backward(a, b, offs)
        ctx.flags = flags
        return raw_gemm(a, b, bias, None, offs, flags)

    @staticmethod
    def backward(ctx, grad):
        a, b, offs = ctx.saved_tensors
        product = public_gemm if _ops.is_batch_of_gradients(grad) else gemm
        return *gemm_gradients(ctx.needs_input_grad[:3], a, b, offs, ctx.flags, grad, product), None, None


def gemm(a: Tensor, b: Tensor, bias: Tensor | None, residual: Tensor | None, offs: Tensor | None, flags: int) -> Tensor:
    """D = act(a b + bias) + residual, or times residual: the raw operator where no gradient is wanted; the public one where PyTorch
    transforms or traces it."""
    graded = torch.is_grad_enabled() and (
        a.requires_grad or b.requires_grad or (bias is not None and bias.requires_grad) or (residual is not None and residual.requires_grad)
    )
    if graded and (residual is not None or flags >> ACTIVATION_SHIFT & ACTIVATION_MASK):  # what their gradients need is kept
        return finished(gemm(a, b, bias, None, offs, flags & BARE), residual, flags)
    if is_compiling() or transforming() or forward_ad._current_level >= 0 or is_tracing() or is_recorded():
        return public_gemm(a, b, bias, residual, offs, flags)
    if graded:
        return _Gemm.apply(a, b, bias, offs, flags)  # type: ignore[no-any-return]
    return raw_gemm(a, b, bias, residual, offs, flags)


def refuse_tangents(**operands: Tensor | None) -> None:
    name = next((name for name, operand in operands.items() if _ops.has_tangent(operand)), None)
    if name is not None:
        raise NotImplementedError(f"sparse_autotune: {name}: has a tangent, and a product that writes into a tensor has no derivative; leave out away")


def gemm_into(a: Tensor, b: Tensor, bias: Tensor | None, residual: Tensor | None, flags: int, out: Tensor) -> None:
    """The raw operator that writes into a tensor; where no gradient is wanted."""
    if transforming():
        raise NotImplementedError("sparse_autotune: out: a product inside torch.func.grad, jvp or vmap cannot write into a tensor")
    if is_compiling():  # the operator's own kernel for Autograd looks for tangents
        raw_gemm_out(a, b, bias, residual, flags, out)
        return
    if forward_ad._current_level >= 0:
        refuse_tangents(a=a, b=b, bias=bias, residual=residual, out=out)
    torch.autograd.graph.increment_version(out)  # what autograd has kept of it is no more
    with _ops.below_autograd():
        raw_gemm_out(a, b, bias, residual, flags, out)
