"""The operators on component tensors: shapes for compilation, gradients, and the raw entry points of the front."""

from __future__ import annotations

import os
import re
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _C  # noqa: F401  registers the operators
from ._nearest import none_of
from ._numbers import ACTIVATION_MASK, ACTIVATION_SHIFT, ACTIVATIONS, FACTOR, FINITE, RIGHT, TF32, TRANS, WANT_DENSE, WANT_VALUES

PLAIN = TRANS | RIGHT | FINITE | TF32  # flags without activation


def check_activation(activation: Any) -> None:
    if activation not in tuple(ACTIVATIONS):
        raise ValueError(none_of("activation", activation, ACTIVATIONS))


def named(error: RuntimeError, **names: str) -> RuntimeError:
    """A refusal of the operators, or of the library, in the caller's words: `names` gives what the caller calls their arguments. Other
    errors stay as they are."""
    text = str(error)
    if type(error) is not RuntimeError or not re.match(rf"sparse_autotune: ({'|'.join(names)})\b", text):
        return error
    return RuntimeError(re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], text))


raw_spmm_out = torch.ops.sparse_autotune._spmm_out.default
raw_spmm_added = torch.ops.sparse_autotune._spmm_added.default
raw_sddmm = torch.ops.sparse_autotune._sddmm.default
raw_sddmm_out = torch.ops.sparse_autotune._sddmm_out.default
public_spmm = torch.ops.sparse_autotune.spmm.default
public_sddmm = torch.ops.sparse_autotune.sddmm.default

transforming = torch._C._are_functorch_transforms_active
is_batch_of_gradients = torch._C._functorch.is_legacy_batchedtensor  # what is_grads_batched makes: a plain Tensor without memory
is_compiling = torch.compiler.is_compiling
is_tracing = torch._C._is_tracing  # torch.jit.trace
any_autocast = torch._C._is_any_autocast_enabled
below_autograd = torch._C._AutoDispatchBelowAutograd
VERSION_UNKNOWN, _VERSION_NONE = -1, -2  # ask the tensors; compare contents

_dispatched_spmm = torch.ops.sparse_autotune._spmm.default._op  # what OpOverload.__call__ calls, without its frame
raw_gradients = torch.ops.sparse_autotune._spmm_gradients.default._op
_watchers = (
    (transforming, False),
    (torch._C._len_torch_dispatch_stack, 0),
    (torch._C._is_torch_function_mode_enabled, False),
    (is_tracing, False),
    (torch.autograd._profiler_enabled, False),
)


def _handover() -> tuple[Any, Any]:
    """What hands tensors over where PyTorch's C interface does not, before 2.14."""
    if _C.hands_over() and not os.environ.get("SPARSEK_TORCH_HANDLES"):  # set: for tests
        return None, None
    aoti = getattr(torch._C, "_aoti", None)
    return getattr(aoti, "unsafe_alloc_void_ptr_from_tensor", None), getattr(aoti, "alloc_tensor_by_stealing_from_void_ptr", None)


def is_recorded() -> bool:
    """Whether a tracer makes a graph of the operators that run."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def _watched_spmm(*operands: Any) -> Tensor:
    """A product that something watches. What a tracer keeps may meet other indices: it is not told the version of these. It may meet
    gradients, too."""
    if is_tracing() or is_recorded():
        *others, flags, _version = operands
        return activate(public_spmm(*others, flags & PLAIN), activation_of(flags))
    return _dispatched_spmm(*operands)


# Past the dispatcher, whose call costs more than all else of a small product; not where something wants to see it.
raw_spmm = _watched_spmm
direct = _C.direct_setup((Tensor, torch.nn.Parameter), _watchers, raw_spmm, raw_gradients, *_handover())
if direct:
    raw_spmm, raw_gradients = _C.direct_spmm, _C.direct_gradients


def version_of(row_offsets: Tensor, col_indices: Tensor) -> int:
    """What tells the extension that indices were changed in place; tensors made in inference mode count nothing, and are compared."""
    try:
        return row_offsets._version << 31 ^ col_indices._version
    except RuntimeError:
        return _VERSION_NONE


_CHANGED = "sparse_autotune: row_offsets, col_indices: were changed in place since the forward pass"


def check_mark(then: int) -> None:
    """After the products of a backward pass, with the mark of the forward pass's indices: changes that PyTorch does not count, on the CPU.
    0: not known."""
    now = _C.mark()
    if now != then and now and then:
        raise RuntimeError(_CHANGED)


def stale_values(then: int, now: int) -> str:
    return (
        f"sparse_autotune: values: had {then} blocks in the forward pass and have {now} now (pruned, or loaded with another pattern): "
        "their gradient has no place; call backward before BlockPruner.step and load_state_dict, or compute the forward pass again"
    )


# ------------------------------------------------------------------------------------------------ gradients


def sum_to(gradient: Tensor, like: Tensor) -> Tensor:
    """Over the dimensions of a batch that the other operand gave."""
    return gradient if gradient.shape == like.shape else gradient.sum_to_size(like.shape)


def summed_bias(gradient: Tensor) -> Tensor:
    return gradient.sum(dim=tuple(range(gradient.dim() - 1))) if gradient.dim() > 1 else gradient


def spmm_gradients(wanted, values, row_offsets, col_indices, dense, rows, cols, flags, grad: Tensor, spmm, sddmm):
    """Of values, dense and bias of D = op(A) B, or B op(A): one product with op turned round, and one SDDMM at A's blocks."""
    right, trans = flags & RIGHT, flags & TRANS
    by_values = by_dense = None
    if wanted[1]:
        by_dense = sum_to(spmm(values, row_offsets, col_indices, grad, None, rows, cols, flags ^ TRANS), dense)
    if wanted[0]:
        if right and values.dim() == 3:  # items of a batch are more rows
            grad_2d, dense_2d = grad.reshape(-1, grad.shape[-1]), dense.reshape(-1, dense.shape[-1])
        else:
            grad_2d, dense_2d = grad, dense
        if right:
            x, y = (grad_2d.mT, dense_2d) if trans else (dense_2d.mT, grad_2d)
        else:
            x, y = (dense_2d, grad_2d.mT) if trans else (grad_2d, dense_2d.mT)
        block_rows, block_cols = values.shape[-2:]
        by_values = sum_to(sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags & (FINITE | TF32)), values)
    return by_values, by_dense, summed_bias(grad) if wanted[2] else None


def sddmm_gradients(wanted, x, y, row_offsets, col_indices, rows, cols, flags, grad: Tensor, spmm):
    """Of x and y."""
    by_x = sum_to(spmm(grad, row_offsets, col_indices, y.mT, None, rows, cols, flags), x) if wanted[0] else None
    by_y = sum_to(spmm(grad, row_offsets, col_indices, x.mT, None, rows, cols, flags | RIGHT), y) if wanted[1] else None
    return by_x, by_y


class _Spmm(torch.autograd.Function):
    """Eager training: a third of the cost of the registered formula. The backward pass can be differentiated again."""

    @staticmethod
    def forward(ctx, values, dense, bias, rest):  # few arguments: each costs, also in backward
        row_offsets, col_indices, rows, cols, flags = rest
        version = version_of(row_offsets, col_indices)
        ctx.save_for_backward(values, dense)
        _C.clear_mark()
        made = raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version)
        ctx.rest = (row_offsets, col_indices, rows, cols, flags, version, _C.mark())
        return made

    @staticmethod
    def backward(ctx, grad):
        values, dense = ctx.saved_tensors
        row_offsets, col_indices, rows, cols, flags, version, mark = ctx.rest
        by_values, by_dense, by_bias, _ = ctx.needs_input_grad
        if version != version_of(row_offsets, col_indices):
            raise RuntimeError(_CHANGED)
        if values.shape[-3] != col_indices.shape[0]:
            raise RuntimeError(stale_values(col_indices.shape[0], values.shape[-3]))
        _C.clear_mark()
        if is_batch_of_gradients(grad) or torch.is_grad_enabled() or values.dim() != 3 or not (flags & RIGHT or dense.dim() == 2):
            products = (public_spmm, public_sddmm) if is_batch_of_gradients(grad) else (spmm, sddmm)
            wanted = (by_values, by_dense, by_bias)
            made = spmm_gradients(wanted, values, row_offsets, col_indices, dense, rows, cols, flags, grad, *products)
        else:
            of_values = of_dense = None
            if by_values or by_dense:
                want = WANT_DENSE * by_dense + WANT_VALUES * by_values
                of_dense, of_values = raw_gradients(values, row_offsets, col_indices, dense, grad, rows, cols, flags, version, want)
            made = (of_values, of_dense, summed_bias(grad) if by_bias else None)
        check_mark(mark)
        return *made, None


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
        ctx.save_for_backward(x, y, row_offsets, col_indices)
        ctx.sizes = (rows, cols, flags)
        _C.clear_mark()
        made = raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version_of(row_offsets, col_indices))
        ctx.mark = _C.mark()
        return made

    @staticmethod
    def backward(ctx, grad):
        product = public_spmm if is_batch_of_gradients(grad) else spmm
        _C.clear_mark()
        made = sddmm_gradients(ctx.needs_input_grad[:2], *ctx.saved_tensors, *ctx.sizes, grad, product)
        check_mark(ctx.mark)
        return *made, None, None, None, None, None, None, None


# ------------------------------------------------------------------------------------------------ the cheapest way

_apply_spmm = super(torch.autograd.Function, _Spmm).apply  # what Function.apply comes to where nothing is transformed; up to PyTorch 2.13 it costs by itself
_alive = torch._C._functorch.unwrap_if_dead  # the other thing that it does


def spmm(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int) -> Tensor:
    """D = op(A) dense, or dense op(A): the raw operator where no gradient is wanted; the public one where PyTorch transforms or traces
    it."""
    if is_compiling() or transforming() or forward_ad._current_level >= 0:
        return public_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    if torch.is_grad_enabled() and (values.requires_grad or dense.requires_grad or (bias is not None and bias.requires_grad)):
        if is_tracing():
            return public_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
        return _apply_spmm(_alive(values), _alive(dense), bias, (row_offsets, col_indices, rows, cols, flags))
    return raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version_of(row_offsets, col_indices))


def sddmm(x: Tensor, y: Tensor, row_offsets: Tensor, col_indices: Tensor, rows: int, cols: int, block_rows: int, block_cols: int, flags: int) -> Tensor:
    """The blocks of x y that a pattern names."""
    if is_compiling() or transforming() or forward_ad._current_level >= 0 or is_tracing():
        return public_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        return _Sddmm.apply(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags)
    return raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version_of(row_offsets, col_indices))


def wants_gradient(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def has_tangent(operand: Any) -> bool:
    """Of forward-mode derivatives. Ask for forward_ad._current_level first, which costs less."""
    if not isinstance(operand, Tensor):
        return False
    if not is_recorded():
        return forward_ad.unpack_dual(operand, level=0).tangent is not None
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    with disable_proxy_modes_tracing():  # the question is no part of the graph
        return forward_ad.unpack_dual(operand, level=0).tangent is not None


def refuse_gradients(**operands: Any) -> None:
    """Of products of eight bits, which have none."""
    if torch.is_grad_enabled():
        for name, operand in operands.items():
            if getattr(operand, "requires_grad", False):
                why = "requires a gradient, which products of eight bits do not have"
                raise NotImplementedError(f"sparse_autotune: {name}: {why}; give {name}.detach(), or multiply under torch.no_grad()")
    if forward_ad._current_level >= 0:
        for name, operand in operands.items():
            if has_tangent(operand):
                raise NotImplementedError(f"sparse_autotune: {name}: has a tangent, and products of eight bits have no derivative")


def multiplied_with_tangents(values, row_offsets, col_indices, dense, bias, rows: int, cols: int, flags: int, out) -> bool:
    """Inside a dual level: a product that multiplies `out` and has tangents is done as its formula, which has a derivative; others are
    refused."""
    operands = {"values": values, "dense": dense, "bias": bias, "out": out}
    name = next((name for name, operand in operands.items() if has_tangent(operand)), None)
    if name is None:
        return False
    if not flags & FACTOR:
        raise NotImplementedError(f"sparse_autotune: {name}: has a tangent, and a product that writes into a tensor has no derivative; leave out away")
    out.mul_(public_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags & ~FACTOR))
    return True


def product_into(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int, out: Tensor):
    """The raw operator that writes into a tensor; where no gradient is wanted."""
    if transforming():
        raise NotImplementedError("sparse_autotune: out: a product inside torch.func.grad, jvp or vmap cannot write into a tensor")
    if is_compiling():  # the operator's own kernel for Autograd looks for tangents; compiled code outlives versions: the extension asks for those of each run
        raw_spmm_out(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN, out)
        return
    if forward_ad._current_level >= 0 and multiplied_with_tangents(values, row_offsets, col_indices, dense, bias, rows, cols, flags, out):
        return
    version = version_of(row_offsets, col_indices)
    torch.autograd.graph.increment_version(out)  # what autograd has kept of it is no more
    with below_autograd():
        raw_spmm_out(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, out)


class _Added(_Spmm):
    """The gradients are those of the product."""

    @staticmethod
    def forward(ctx, values, dense, bias, rest):
        *others, residual, out = rest
        row_offsets, col_indices, rows, cols, flags = others
        version = version_of(row_offsets, col_indices)
        ctx.save_for_backward(values, dense)
        _C.clear_mark()
        raw_spmm_added(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, residual, out)
        ctx.rest = (*others, version, _C.mark())
        return out


def product_added(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, rows: int, cols: int, residual: Tensor, out: Tensor) -> Tensor:
    """out = dense A^T + residual. The residual gets no gradient."""
    flags = RIGHT | TRANS | FINITE | tf32_flag(dense)
    if wants_gradient(values, dense):
        return _Added.apply(values, dense, None, (row_offsets, col_indices, rows, cols, flags, residual, out))  # type: ignore[no-any-return, no-untyped-call]
    with below_autograd():
        raw_spmm_added(values, row_offsets, col_indices, dense, None, rows, cols, flags, version_of(row_offsets, col_indices), residual, out)
    return out


def may_overwrite() -> bool:
    """Whether nobody sees results in between: no transform, mode, tracer or tangent."""
    if is_compiling():
        return not transforming()
    return forward_ad._current_level < 0 and all(ask() == quiet for ask, quiet in _watchers)


def activate(x: Tensor, activation: str | None) -> Tensor:
    """The activation on its own, for passes that keep what its gradient needs."""
    if activation == "relu":
        return torch.nn.functional.relu(x)
    if activation == "gelu":
        return torch.nn.functional.gelu(x)
    if activation == "gelu_tanh":
        return torch.nn.functional.gelu(x, approximate="tanh")
    if activation == "silu":
        return torch.nn.functional.silu(x)
    return x


def activation_of(flags: int) -> str | None:
    return next(name for name, number in ACTIVATIONS.items() if number == flags >> ACTIVATION_SHIFT & ACTIVATION_MASK)


def _rounds_to_tf32() -> bool:
    """Whether PyTorch's products of float32 may round on a GPU: of what asked for it, the one property that can be read after both kinds of settings."""
    return torch.backends.cuda.matmul.fp32_precision == "tf32"


# What torch.compiler.assume_constant_result sets, whose import takes a second. Nothing that says it can be traced; a change compiles anew.
_rounds_to_tf32._dynamo_marked_constant = True  # type: ignore[attr-defined]


def tf32_flag(dense: Tensor) -> int:
    return TF32 if dense.is_cuda and dense.dtype is torch.float32 and _rounds_to_tf32() else 0


def autocast_operands(x: Tensor, values: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The operands of a product in the dtype that autocast asks for. Ask any_autocast first."""
    cast = autocast_dtype(x)
    if cast is None or not values.is_floating_point():
        return x, values, bias
    return x.to(cast), values.to(cast), None if bias is None else bias.to(cast)


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The dtype that autocast asks of a product on the tensor's device, or None. Ask any_autocast first, which costs less."""
    kind = tensor.device.type
    if kind == "meta":  # is no device to autocast
        return None
    casts = torch.is_autocast_enabled(kind) and tensor.is_floating_point() and tensor.dtype is not torch.float64
    return torch.get_autocast_dtype(kind) if casts else None
