"""The operators on component tensors: shapes for compilation, gradients, and the raw entry points of the front."""

from __future__ import annotations

import os
import re
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _C  # noqa: F401  registers the operators

TRANS, RIGHT, FINITE, TF32 = 1, 2, 4, 8
ACTIVATION_SHIFT = 4
FACTOR = 128  # the product is multiplied with what `out` holds
Activation = Literal["none", "relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: dict[str | None, int] = {None: 0, "none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}


def check_activation(activation: Any) -> None:
    if activation not in tuple(ACTIVATIONS):
        raise ValueError(f"activation: must be one of {', '.join(repr(a) for a in ACTIVATIONS)}, not {activation!r}")


def named(error: RuntimeError, **names: str) -> RuntimeError:
    """A refusal of the operators in the caller's words: `names` gives what the caller calls their arguments. Other errors stay as they are."""
    text = str(error)
    if type(error) is not RuntimeError or not re.match(rf"sparse_autotune: ({'|'.join(names)}):", text):
        return error
    return RuntimeError(re.sub(rf"\b({'|'.join(names)})\b", lambda found: names[found[0]], text))


raw_spmm_out = torch.ops.sparse_autotune._spmm_out.default
raw_sddmm = torch.ops.sparse_autotune._sddmm.default
raw_sddmm_out = torch.ops.sparse_autotune._sddmm_out.default
public_spmm = torch.ops.sparse_autotune.spmm.default
public_sddmm = torch.ops.sparse_autotune.sddmm.default

transforming = torch._C._are_functorch_transforms_active
_is_batch_of_gradients = torch._C._functorch.is_legacy_batchedtensor  # what is_grads_batched makes: a plain Tensor without memory
is_compiling = torch.compiler.is_compiling
any_autocast = torch._C._is_any_autocast_enabled
VERSION_UNKNOWN, _VERSION_NONE = -1, -2  # ask the tensors; compare contents

raw_spmm = torch.ops.sparse_autotune._spmm.default._op  # what OpOverload.__call__ calls, without its frame
raw_gradients = torch.ops.sparse_autotune._spmm_gradients.default._op
_watchers = (
    (transforming, False),
    (torch._C._len_torch_dispatch_stack, 0),
    (torch._C._is_torch_function_mode_enabled, False),
    (torch._C._is_tracing, False),
    (torch.autograd._profiler_enabled, False),
)


def _handover() -> tuple[Any, Any]:
    """What hands tensors over where PyTorch's C interface does not, before 2.14."""
    if _C.hands_over() and not os.environ.get("SPARSEK_TORCH_HANDLES"):  # set: for tests
        return None, None
    aoti = getattr(torch._C, "_aoti", None)
    return getattr(aoti, "unsafe_alloc_void_ptr_from_tensor", None), getattr(aoti, "alloc_tensor_by_stealing_from_void_ptr", None)


# Past the dispatcher, whose call costs more than all else of a small product; not where something wants to see it.
direct = _C.direct_setup((Tensor, torch.nn.Parameter), _watchers, raw_spmm, raw_gradients, *_handover())
if direct:
    raw_spmm, raw_gradients = _C.direct_spmm, _C.direct_gradients


def version_of(row_offsets: Tensor, col_indices: Tensor) -> int:
    """What tells the extension that indices were changed in place; tensors made in inference mode count nothing, and are compared."""
    try:
        return row_offsets._version << 31 ^ col_indices._version
    except RuntimeError:
        return _VERSION_NONE


def stale_values(then: int, now: int) -> str:
    return (
        f"sparse_autotune: values: had {then} blocks in the forward pass and have {now} now (pruned, or loaded with another pattern): "
        "their gradient has no place; call backward before BlockPruner.step and load_state_dict, or compute the forward pass again"
    )


# ------------------------------------------------------------------------------------------------ shapes


def _check_alike(name: str, tensor: Tensor, other: str, like: Tensor) -> None:
    torch._check(tensor.device == like.device, lambda: f"sparse_autotune: {name}: must be on the device of {other}, {like.device}, not on {tensor.device}")
    wanted, given = (str(t.dtype).removeprefix("torch.") for t in (like, tensor))
    torch._check(tensor.dtype == like.dtype, lambda: f"sparse_autotune: {name}: its dtype must be that of {other}, {wanted}, not {given}")


def _check_devices(like_name: str, like: Tensor, **others: Tensor | None) -> None:
    """One tensor without memory (device "meta") is enough to come here: others must not be taken for it."""
    for name, tensor in others.items():
        if tensor is not None:
            message = f"sparse_autotune: {name}: must be on the device of {like_name}, {like.device}, not on {tensor.device}"
            torch._check(tensor.device == like.device, message.__str__)


def _spmm_shape(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int) -> list[Any]:
    _check_alike("dense", dense, "values", values)
    _check_devices("values", values, row_offsets=row_offsets, col_indices=col_indices, bias=bias)
    inner, given = (rows if bool(flags & TRANS) != bool(flags & RIGHT) else cols), dense.shape[-1 if flags & RIGHT else -2]
    torch._check(given == inner, lambda: f"sparse_autotune: dense: its shape is {list(dense.shape)}; the product needs {inner}")
    lead = values.shape[:-3] if values.dim() - 3 > dense.dim() - 2 else dense.shape[:-2]
    if flags & RIGHT:
        return [*lead, dense.shape[-2], rows if flags & TRANS else cols]
    return [*lead, cols if flags & TRANS else rows, dense.shape[-1]]


@torch.library.register_fake("sparse_autotune::spmm")
def _fake_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags):
    return dense.new_empty(_spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags))


@torch.library.register_fake("sparse_autotune::_spmm")
def _fake_raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version):
    return dense.new_empty(_spmm_shape(values, row_offsets, col_indices, dense, bias, rows, cols, flags))


@torch.library.register_fake("sparse_autotune::_spmm_out")
def _fake_raw_spmm_out(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, out):
    _check_devices("the operands", values, row_offsets=row_offsets, col_indices=col_indices, dense=dense, bias=bias, out=out)


@torch.library.register_fake("sparse_autotune::_spmm_gradients")
def _fake_raw_gradients(values, row_offsets, col_indices, dense, gradient, rows, cols, flags, version, want):
    return (torch.empty_like(dense) if want & 1 else None), (torch.empty_like(values) if want & 2 else None)


def _sddmm_shape(x: Tensor, y: Tensor, row_offsets: Tensor, col_indices: Tensor, block_rows: int, block_cols: int) -> list[Any]:
    _check_alike("y", y, "x", x)
    _check_devices("x", x, row_offsets=row_offsets, col_indices=col_indices)
    return [*torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]), col_indices.shape[0], block_rows, block_cols]


@torch.library.register_fake("sparse_autotune::sddmm")
def _fake_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
    return x.new_empty(_sddmm_shape(x, y, row_offsets, col_indices, block_rows, block_cols))


@torch.library.register_fake("sparse_autotune::_sddmm")
def _fake_raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version):
    return x.new_empty(_sddmm_shape(x, y, row_offsets, col_indices, block_rows, block_cols))


@torch.library.register_fake("sparse_autotune::_sddmm_out")
def _fake_raw_sddmm_out(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version, out):
    _check_devices("the operands", x, y=y, row_offsets=row_offsets, col_indices=col_indices, out=out)


# ------------------------------------------------------------------------------------------------ gradients


def _sum_to(gradient: Tensor, dims: int) -> Tensor:
    return gradient.sum(dim=tuple(range(gradient.dim() - dims))) if gradient.dim() > dims else gradient


def _spmm_gradients(wanted, values, row_offsets, col_indices, dense, rows, cols, flags, grad: Tensor, spmm, sddmm):
    """Of D = op(A) B, or B op(A): one product with op turned round, and one SDDMM at A's blocks. wanted: of values, dense and bias."""
    right, trans = flags & RIGHT, flags & TRANS
    by_values = by_dense = None
    if wanted[1]:
        by_dense = _sum_to(spmm(values, row_offsets, col_indices, grad, None, rows, cols, flags ^ TRANS), dense.dim())
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
        by_values = _sum_to(sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags & (FINITE | TF32)), values.dim())
    return by_values, None, None, by_dense, _sum_to(grad, 1) if wanted[2] else None, None, None, None


def _saved_spmm_gradients(ctx, grad: Tensor, spmm, sddmm):
    needs, (values, row_offsets, col_indices, dense), (rows, cols, flags) = ctx.needs_input_grad, ctx.saved_tensors, ctx.sizes
    return _spmm_gradients((needs[0], needs[3], needs[4]), values, row_offsets, col_indices, dense, rows, cols, flags, grad, spmm, sddmm)


def _as_batch(matrix: Tensor, lead: Any) -> Tensor:
    """With the dimensions of the batch that others gave it; autograd sums over them again."""
    return matrix if matrix.dim() == 2 or matrix.shape[:-2] == lead else matrix.expand(*lead, *matrix.shape[-2:])


def _sddmm_gradients(ctx, grad: Tensor, spmm):
    x, y, row_offsets, col_indices = ctx.saved_tensors
    rows, cols, flags = ctx.sizes
    by_x = by_y = None
    if ctx.needs_input_grad[0]:
        by_x = _sum_to(spmm(grad, row_offsets, col_indices, _as_batch(y.mT, grad.shape[:-3]), None, rows, cols, flags), x.dim())
    if ctx.needs_input_grad[1]:
        by_y = _sum_to(spmm(grad, row_offsets, col_indices, _as_batch(x.mT, grad.shape[:-3]), None, rows, cols, flags | RIGHT), y.dim())
    return by_x, by_y, None, None, None, None, None, None, None


def _save_spmm(ctx, inputs, output):
    values, row_offsets, col_indices, dense, _bias, rows, cols, flags = inputs
    if flags >> ACTIVATION_SHIFT:
        raise NotImplementedError("sparse_autotune::spmm: flags: an activation inside the product has no gradient; apply it to the result")
    ctx.save_for_backward(values, row_offsets, col_indices, dense)
    ctx.sizes = (rows, cols, flags)


def _save_sddmm(ctx, inputs, output):
    x, y, row_offsets, col_indices, rows, cols, _block_rows, _block_cols, flags = inputs
    ctx.save_for_backward(x, y, row_offsets, col_indices)
    ctx.sizes = (rows, cols, flags)


torch.library.register_autograd(
    "sparse_autotune::spmm", lambda ctx, grad: _saved_spmm_gradients(ctx, grad, public_spmm, public_sddmm), setup_context=_save_spmm
)
torch.library.register_autograd("sparse_autotune::sddmm", lambda ctx, grad: _sddmm_gradients(ctx, grad, public_spmm), setup_context=_save_sddmm)


class _Spmm(torch.autograd.Function):
    """Eager training: a third of the cost of the registered formula. The backward pass can be differentiated again."""

    @staticmethod
    def forward(ctx, values, dense, bias, rest):  # few arguments: each costs, also in backward
        row_offsets, col_indices, rows, cols, flags = rest
        version = version_of(row_offsets, col_indices)
        ctx.save_for_backward(values, dense)
        ctx.rest = (row_offsets, col_indices, rows, cols, flags, version)
        return raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version)

    @staticmethod
    def backward(ctx, grad):
        values, dense = ctx.saved_tensors
        row_offsets, col_indices, rows, cols, flags, version = ctx.rest
        by_values, by_dense, by_bias, _ = ctx.needs_input_grad
        if version != version_of(row_offsets, col_indices):
            raise RuntimeError("sparse_autotune: row_offsets, col_indices: were changed in place since the forward pass")
        if values.shape[-3] != col_indices.shape[0]:
            raise RuntimeError(stale_values(col_indices.shape[0], values.shape[-3]))
        if _is_batch_of_gradients(grad):
            made = _spmm_gradients((by_values, by_dense, by_bias), values, row_offsets, col_indices, dense, rows, cols, flags, grad, public_spmm, public_sddmm)
            return made[0], made[3], made[4], None
        if torch.is_grad_enabled() or values.dim() != 3 or not (flags & RIGHT or dense.dim() == 2):
            wanted = (by_values, by_dense, by_bias)
            made = _spmm_gradients(wanted, values, row_offsets, col_indices, dense, rows, cols, flags, grad, spmm, sddmm)
            return made[0], made[3], made[4], None
        of_values = of_dense = None
        if by_values or by_dense:
            of_dense, of_values = raw_gradients(values, row_offsets, col_indices, dense, grad, rows, cols, flags, version, by_dense + 2 * by_values)
        return of_values, of_dense, _sum_to(grad, 1) if by_bias else None, None


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
        ctx.save_for_backward(x, y, row_offsets, col_indices)
        ctx.sizes = (rows, cols, flags)
        return raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version_of(row_offsets, col_indices))

    @staticmethod
    def backward(ctx, grad):
        return _sddmm_gradients(ctx, grad, public_spmm if _is_batch_of_gradients(grad) else spmm)


class _FunctionalSpmm(torch.autograd.Function):
    """For torch.func, which wants the context apart; slower."""

    @staticmethod
    def forward(values, row_offsets, col_indices, dense, bias, rows, cols, flags):
        return raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, VERSION_UNKNOWN)

    setup_context = staticmethod(_save_spmm)

    @staticmethod
    def backward(ctx, grad):
        return _saved_spmm_gradients(ctx, grad, spmm, sddmm)


class _FunctionalSddmm(_Sddmm):
    @staticmethod
    def forward(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
        return raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, VERSION_UNKNOWN)

    setup_context = staticmethod(_save_sddmm)


# ------------------------------------------------------------------------------------------------ the cheapest way

_apply_spmm = super(torch.autograd.Function, _Spmm).apply  # what Function.apply comes to where nothing is transformed; up to PyTorch 2.13 it costs by itself
_alive = torch._C._functorch.unwrap_if_dead  # the other thing that it does


def refuse_tangents(**operands: Tensor | None) -> None:
    """Within forward_ad.dual_level: a product would lose the tangents."""
    for name, operand in operands.items():
        if operand is not None and forward_ad.unpack_dual(operand).tangent is not None:
            raise NotImplementedError(
                f"sparse_autotune: {name}: has a tangent, and there is no forward-mode derivative; use reverse mode (backward, torch.func.grad)"
            )


def spmm(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int) -> Tensor:
    """D = op(A) dense, or dense op(A), without activation: the raw operator where no gradient is wanted."""
    if is_compiling():
        return public_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    if transforming():
        return _FunctionalSpmm.apply(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    if forward_ad._current_level >= 0:
        refuse_tangents(values=values, dense=dense, bias=bias)
    if torch.is_grad_enabled() and (values.requires_grad or dense.requires_grad or (bias is not None and bias.requires_grad)):
        return _apply_spmm(_alive(values), _alive(dense), bias, (row_offsets, col_indices, rows, cols, flags))
    return raw_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version_of(row_offsets, col_indices))


def sddmm(x: Tensor, y: Tensor, row_offsets: Tensor, col_indices: Tensor, rows: int, cols: int, block_rows: int, block_cols: int, flags: int) -> Tensor:
    """The blocks of x y that a pattern names."""
    if is_compiling():
        return public_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags)
    if transforming():
        return _FunctionalSddmm.apply(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags)
    if forward_ad._current_level >= 0:
        refuse_tangents(X=x, Y=y)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        return _Sddmm.apply(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags)
    return raw_sddmm(x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags, version_of(row_offsets, col_indices))


def wants_gradient(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def product_into(values: Tensor, row_offsets: Tensor, col_indices: Tensor, dense: Tensor, bias: Tensor | None, rows: int, cols: int, flags: int, out: Tensor):
    """The raw operator that writes into a tensor; where no gradient is wanted."""
    if is_compiling():
        version = VERSION_UNKNOWN  # compiled code outlives versions: the extension asks for those of each run
    else:
        if forward_ad._current_level >= 0:
            refuse_tangents(values=values, dense=dense, bias=bias, out=out)
        version = version_of(row_offsets, col_indices)
        torch.autograd.graph.increment_version(out)  # what autograd has kept of it is no more
    raw_spmm_out(values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, out)


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


def tf32_flag(dense: Tensor) -> int:
    return TF32 if dense.is_cuda and dense.dtype is torch.float32 and torch.get_float32_matmul_precision() != "highest" else 0


def autocast_operands(x: Tensor, values: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """The operands of a product in the dtype that autocast asks for. Ask any_autocast first."""
    cast = autocast_dtype(x)
    if cast is None:
        return x, values, bias
    return x.to(cast), values.to(cast), None if bias is None else bias.to(cast)


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The dtype that autocast asks of a product on the tensor's device, or None. Ask any_autocast first, which costs less."""
    kind = tensor.device.type
    if kind == "meta":  # is no device to autocast
        return None
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) and tensor.dtype is not torch.float64 else None
