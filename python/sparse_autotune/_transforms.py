"""Transforms of the public operators: reverse mode, forward mode and vmap, as they stand, under torch.func and inside torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import _SingleLevelFunction

from . import _C, _attention, _dense, _ops
from ._dense import BARE, public_gemm, raw_gemm_out
from ._numbers import ATTENTION_FLAGS, ATTENTION_OPTIONS, ATTENTION_PAGES, ATTENTION_TENSORS, DYNAMIC, FACTOR, RIGHT
from ._ops import PLAIN, forward_ad, public_sddmm, public_spmm, raw_spmm_out, transforming

_aten = torch.ops.aten
_functorch = torch._C._functorch
_library = torch.library.Library("sparse_autotune", "IMPL")  # lives as long as the process: what it registers goes with it


def _through_activation(change: Tensor, before: Tensor, activation: str | None) -> Tensor:
    """A tangent or a gradient through an activation: entry by entry the derivative is the same."""
    if activation == "relu":
        return _aten.threshold_backward(change, before, 0)
    if activation in ("gelu", "gelu_tanh"):
        return _aten.gelu_backward(change, before, approximate="tanh" if activation == "gelu_tanh" else "none")
    if activation == "silu":  # silu_backward has no forward mode
        share = torch.sigmoid(before)
        return change * share * (1 + before * (1 - share))
    return change


def _below_autograd(op: Any, keyset: Any, operands: tuple[Any, ...]) -> Tensor:
    # Functions run with gradients off, of this level of torch.func; those below it have their own.
    with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        return op.redispatch(keyset & torch._C._after_autograd_keyset, *operands)


def _primals(tensors: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """Without the tangents of this level; those of levels below it stay."""
    return [None if t is None else torch._VF._unpack_dual(t, level=0)[0] for t in tensors]  # type: ignore[attr-defined]


class _Product(_SingleLevelFunction):
    @staticmethod
    def forward(ctx, keyset, values, row_offsets, col_indices, dense, bias, rows, cols, flags):
        ctx.set_materialize_grads(False)
        kept = (values, row_offsets, col_indices, dense, bias)
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        ctx.sizes = (rows, cols, flags & PLAIN)
        ctx.activation = _ops.activation_of(flags)
        _C.clear_mark()
        made = _below_autograd(public_spmm, keyset, (values, row_offsets, col_indices, dense, bias, rows, cols, flags))
        ctx.mark = _C.mark()
        return made

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return (None,) * 9
        kept, needs = ctx.saved_tensors, ctx.needs_input_grad
        values, row_offsets, col_indices, dense, _bias = kept
        _C.clear_mark()
        if ctx.activation:
            grad = _through_activation(grad, public_spmm(*kept, *ctx.sizes), ctx.activation)
        made = _ops.spmm_gradients((needs[1], needs[4], needs[5]), values, row_offsets, col_indices, dense, *ctx.sizes, grad, public_spmm, public_sddmm)
        _ops.check_mark(ctx.mark)
        return None, made[0], None, None, made[1], made[2], None, None, None

    @staticmethod
    def jvp(ctx, _keyset, of_values, _rows, _cols, of_dense, of_bias, *_rest):
        with forward_ad._set_fwd_grad_enabled(True):
            return _Product.tangent(ctx, _primals(ctx.saved_tensors), of_values, of_dense, of_bias)

    @staticmethod
    def tangent(ctx, kept, of_values, of_dense, of_bias):
        values, row_offsets, col_indices, dense, bias = kept
        parts = []
        if of_values is not None:
            parts.append(public_spmm(of_values, row_offsets, col_indices, dense, of_bias, *ctx.sizes))
        if of_dense is not None:
            parts.append(public_spmm(values, row_offsets, col_indices, of_dense, None if parts else of_bias, *ctx.sizes))
        if not parts:
            parts.append(public_spmm(torch.zeros_like(values), row_offsets, col_indices, dense, of_bias, *ctx.sizes))
        made = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return _through_activation(made, public_spmm(*kept, *ctx.sizes), ctx.activation) if ctx.activation else made


class _Sampled(_SingleLevelFunction):
    @staticmethod
    def forward(ctx, keyset, x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
        ctx.set_materialize_grads(False)
        kept = (x, y, row_offsets, col_indices)
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        ctx.sizes = (rows, cols, block_rows, block_cols, flags)
        _C.clear_mark()
        made = _below_autograd(public_sddmm, keyset, (*kept, *ctx.sizes))
        ctx.mark = _C.mark()
        return made

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return (None,) * 10
        rows, cols, _block_rows, _block_cols, flags = ctx.sizes
        _C.clear_mark()
        made = _ops.sddmm_gradients(ctx.needs_input_grad[1:3], *ctx.saved_tensors, rows, cols, flags, grad, public_spmm)
        _ops.check_mark(ctx.mark)
        return None, *made, None, None, None, None, None, None, None

    @staticmethod
    def jvp(ctx, _keyset, of_x, of_y, *_rest):
        x, y, *indices = _primals(ctx.saved_tensors)
        pairs = [(of_x, y)] if of_y is None else [(x, of_y)] if of_x is None else [(of_x, y), (x, of_y)]
        with forward_ad._set_fwd_grad_enabled(True):
            parts = [public_sddmm(*pair, *indices, *ctx.sizes) for pair in pairs]
            return parts[0] if len(parts) == 1 else parts[0] + parts[1]


class _Dense(_SingleLevelFunction):
    @staticmethod
    def forward(ctx, keyset, a, b, bias, residual, offs, flags):
        ctx.set_materialize_grads(False)
        kept = (a, b, bias, residual, offs)
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        ctx.flags = flags
        return _below_autograd(public_gemm, keyset, (*kept, flags))

    @staticmethod
    def before(ctx, a, b, bias, offs):
        """What the activation and the factor are applied to; None where there is neither."""
        return public_gemm(a, b, bias, None, offs, ctx.flags & BARE) if ctx.flags & ~BARE else None

    @staticmethod
    def backward(ctx, grad):
        if grad is None:
            return (None,) * 7
        a, b, bias, residual, offs = ctx.saved_tensors
        needs, activation = ctx.needs_input_grad, _ops.activation_of(ctx.flags)
        before = _Dense.before(ctx, a, b, bias, offs)
        by_residual = grad if needs[4] else None
        if ctx.flags & FACTOR and residual is not None:
            by_residual = grad * _ops.activate(before, activation) if needs[4] else None
            grad = grad * residual
        grad = _through_activation(grad, before, activation)
        made = _dense.gemm_gradients(needs[1:4], a, b, offs, ctx.flags, grad, public_gemm)
        return None, *made, by_residual, None, None

    @staticmethod
    def jvp(ctx, _keyset, of_a, of_b, of_bias, of_residual, *_rest):
        with forward_ad._set_fwd_grad_enabled(True):
            return _Dense.tangent(ctx, _primals(ctx.saved_tensors), of_a, of_b, of_bias, of_residual)

    @staticmethod
    def tangent(ctx, kept, of_a, of_b, of_bias, of_residual):
        a, b, bias, residual, offs = kept
        bare, activation, factor = ctx.flags & BARE, _ops.activation_of(ctx.flags), ctx.flags & FACTOR
        before = _Dense.before(ctx, a, b, bias, offs)
        parts = []
        if of_a is not None:
            parts.append(public_gemm(of_a, b, of_bias, None, offs, bare))
        if of_b is not None:
            parts.append(public_gemm(a, of_b, None if parts else of_bias, None, offs, bare))
        if of_bias is not None and not parts:
            parts.append(public_gemm(torch.zeros_like(a), b, of_bias, None, offs, bare))
        parts = [_through_activation(part, before, activation) for part in parts]
        if factor and residual is not None:
            parts = [part * residual for part in parts]
        if of_residual is not None:
            parts.append(of_residual * _ops.activate(before, activation) if factor else of_residual.clone())
        made = parts[0]
        for part in parts[1:]:
            made = made + part
        return made


def _refuse_compiled_duals(operands: tuple[Any, ...]) -> None:
    """A graph with a dual level of its own does not tell these functions, when it runs, that there is one."""
    if torch._guards.TracingContext.try_get() is not None:
        if any(map(_ops.has_tangent, operands)):
            raise NotImplementedError(
                "sparse_autotune: torch.compile cannot see forward_ad.dual_level around a product; use torch.func.jvp there, or enter the level outside"
            )


def _kernel(op: Any, function: Any) -> Callable[..., Tensor]:
    apply = function.apply

    def run(keyset: Any, *operands: Any) -> Tensor:
        if forward_ad._current_level < 0 and not transforming():
            if not torch.is_grad_enabled() or not any(isinstance(t, Tensor) and t.requires_grad for t in operands):
                with torch._C._AutoDispatchBelowAutograd():
                    return op.redispatch(keyset & torch._C._after_autograd_keyset, *operands)
        elif not transforming():
            _refuse_compiled_duals(operands)
        before = _functorch.get_single_level_autograd_function_allowed()
        _functorch.set_single_level_autograd_function_allowed(True)  # it is the operator that goes from one level of torch.func to the next
        try:
            return apply(keyset, *operands)
        finally:
            _functorch.set_single_level_autograd_function_allowed(before)

    return run


_library.impl("spmm", _kernel(public_spmm, _Product), "Autograd", with_keyset=True)
_library.impl("sddmm", _kernel(public_sddmm, _Sampled), "Autograd", with_keyset=True)
_library.impl("gemm", _kernel(public_gemm, _Dense), "Autograd", with_keyset=True)


def _spmm_into(keyset, values, row_offsets, col_indices, dense, bias, rows, cols, flags, version, out):
    """For compiled graphs: torch.compile calls it with the tangents of a dual level, whether the level is entered inside of them or around
    them."""
    operands = (values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    if forward_ad._current_level >= 0 and _ops.multiplied_with_tangents(*operands, out):
        return
    with torch._C._AutoDispatchBelowAutograd():
        raw_spmm_out.redispatch(keyset & torch._C._after_autograd_keyset, *operands, version, out)


_library.impl("_spmm_out", _spmm_into, "Autograd", with_keyset=True)


def _gemm_into(keyset, a, b, bias, residual, flags, out):
    if forward_ad._current_level >= 0:
        _dense.refuse_tangents(a=a, b=b, bias=bias, residual=residual, out=out)
    with torch._C._AutoDispatchBelowAutograd():
        raw_gemm_out.redispatch(keyset & torch._C._after_autograd_keyset, a, b, bias, residual, flags, out)


_library.impl("_gemm_out", _gemm_into, "Autograd", with_keyset=True)


def _without_gradients(op: Any) -> Callable[..., Any]:
    names = [argument.name for argument in op._schema.arguments]

    def run(keyset: Any, *operands: Any) -> Any:
        _ops.refuse_gradients(**dict(zip(names, operands, strict=False)))
        with torch._C._AutoDispatchBelowAutograd():
            return op.redispatch(keyset & torch._C._after_autograd_keyset, *operands)

    return run


for _op in (torch.ops.sparse_autotune.scaled_spmm.default, torch.ops.sparse_autotune.scaled_gemm.default):
    _library.impl(_op._schema.name.removeprefix("sparse_autotune::"), _without_gradients(_op), "Autograd", with_keyset=True)


class _Attention(_SingleLevelFunction):
    """q, k, v, then what says which pairs are kept."""

    @staticmethod
    def forward(ctx, keyset, q, k, v, *rest):
        ctx.set_materialize_grads(False)
        static = rest[ATTENTION_FLAGS] & ~DYNAMIC  # the faster kernel of gradients wants a mask that the host knows
        rest = (*rest[:ATTENTION_FLAGS], static, *rest[ATTENTION_FLAGS + 1 :])
        o, lse = _below_autograd(_attention.public_attention_lse, keyset, (q, k, v, *rest))
        rest += (None,) * (ATTENTION_OPTIONS - len(rest))
        ctx.save_for_backward(q, k, v, o, lse, *(rest[at] for at in ATTENTION_TENSORS))
        ctx.rest = [None if at in ATTENTION_TENSORS else given for at, given in enumerate(rest)]
        return o, lse

    @staticmethod
    def backward(ctx, grad_o, grad_lse):
        q, k, v, o, lse, *tensors = ctx.saved_tensors
        nothing = (None,) * (1 + len(ctx.rest))
        if grad_o is None and grad_lse is None:
            return (*nothing, None, None, None)
        rest = list(ctx.rest)
        for at, tensor in zip(ATTENTION_TENSORS, tensors, strict=True):
            rest[at] = tensor
        made = _attention.public_backward(torch.zeros_like(o) if grad_o is None else grad_o, grad_lse, o, lse, q, k, v, *rest)
        wanted = (gradient if wants else None for gradient, wants in zip(made, ctx.needs_input_grad[1:4], strict=True))
        return None, *wanted, *nothing[1:]

    @staticmethod
    def jvp(ctx, _keyset, of_q, of_k, of_v, *_rest):
        tangents = zip("qkv", (of_q, of_k, of_v), strict=True)
        _attention.no_tangents(next(name for name, tangent in tangents if tangent is not None))


def _attend(keyset: Any, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Any:
    if len(rest) > ATTENTION_PAGES and rest[ATTENTION_PAGES] is not None and _ops.wants_gradient(q, k, v):
        raise NotImplementedError("sparse_autotune: page_table: pages of a cache have no gradient; call it under torch.no_grad(), or detach q, k and v")
    if forward_ad._current_level >= 0:
        _attention.refuse_tangents(q=q, k=k, v=v)
    return _attend_lse(keyset, q, k, v, *rest)


_attend_lse = _kernel(_attention.public_attention_lse, _Attention)


def _attend_alone(keyset: Any, q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
    """A gradient wants the logarithms, too; without columns of v there are none, and the result is empty."""
    if v.shape[-1] == 0 and _ops.wants_gradient(q, k, v):
        with torch.no_grad():
            made = _attention.public_attention(q, k, v, *rest)
        return made + 0 * (q.sum() + k.sum() + v.sum())  # type: ignore[no-any-return]
    if _ops.wants_gradient(q, k, v) or transforming() or forward_ad._current_level >= 0:
        return _attention.public_attention_lse(q, k, v, *rest)[0]  # type: ignore[no-any-return]
    with torch._C._AutoDispatchBelowAutograd():
        return _attention.public_attention.redispatch(keyset & torch._C._after_autograd_keyset, q, k, v, *rest)  # type: ignore[no-any-return]


class _AttentionBackward(_SingleLevelFunction):
    """torch.func.grad asks for a graph of it whether somebody goes back through it or not."""

    @staticmethod
    def forward(ctx, keyset, *operands):
        ctx.set_materialize_grads(False)
        return _below_autograd(_attention.public_backward, keyset, operands)

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("sparse_autotune: the gradients of attention have no gradients of their own")

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError("sparse_autotune: the gradients of attention have no forward mode")


_ATTENTIONS = (_attention.public_attention, _attention.public_attention_lse, _attention.public_backward)
for _op, _run in zip(_ATTENTIONS, (_attend_alone, _attend, _kernel(_attention.public_backward, _AttentionBackward)), strict=True):
    _library.impl(_op._schema.name.removeprefix("sparse_autotune::"), _run, "Autograd", with_keyset=True)


# ------------------------------------------------------------------------------------------------ vmap


def _first(tensor: Tensor, dim: int | None, dims: int) -> Tensor:
    """The mapped dimension, if there is one, in front of so many others."""
    if dim is None:
        return tensor
    tensor = tensor.movedim(dim, 0)
    while tensor.dim() <= dims:
        tensor = tensor.unsqueeze(1)
    return tensor


def _check_unmapped(*dims: int | None) -> None:
    if any(dim is not None for dim in dims):
        raise NotImplementedError("sparse_autotune: row_offsets, col_indices: torch.func.vmap cannot map over them; the items of a batch have one pattern")


@torch.library.register_vmap("sparse_autotune::spmm", lib=_library)
def _vmap_spmm(info, in_dims, values, row_offsets, col_indices, dense, bias, rows, cols, flags):
    of_values, of_rows, of_cols, of_dense, of_bias, *_ = in_dims
    _check_unmapped(of_rows, of_cols)
    activation = None
    added = None
    if of_bias is not None:  # is not part of a product: each item has its own
        activation, flags = _ops.activation_of(flags), flags & PLAIN
        added, bias = bias.movedim(of_bias, 0), None
    lead = max(values.dim() - 3 - (of_values is not None), dense.dim() - 2 - (of_dense is not None))
    if not flags & RIGHT and of_values is None and values.dim() == 3 and of_dense is not None and lead == 0:
        dense = dense.movedim(of_dense, 0)
        if dense.shape[-1] == 1 and bias is None:  # vectors: the columns of one product
            made = public_spmm(values, row_offsets, col_indices, dense.squeeze(-1).mT, None, rows, cols, flags).mT.unsqueeze(-1)
        else:
            made = public_spmm(values, row_offsets, col_indices, dense, bias, rows, cols, flags)
    else:
        made = public_spmm(_first(values, of_values, lead + 3), row_offsets, col_indices, _first(dense, of_dense, lead + 2), bias, rows, cols, flags)
    if added is None:
        return made, 0
    return _ops.activate(made + added.reshape(added.shape[0], *[1] * (lead + 1), added.shape[-1]), activation), 0


@torch.library.register_vmap("sparse_autotune::sddmm", lib=_library)
def _vmap_sddmm(info, in_dims, x, y, row_offsets, col_indices, rows, cols, block_rows, block_cols, flags):
    of_x, of_y, of_rows, of_cols, *_ = in_dims
    _check_unmapped(of_rows, of_cols)
    lead = max(x.dim() - 2 - (of_x is not None), y.dim() - 2 - (of_y is not None))
    sizes = (rows, cols, block_rows, block_cols, flags)
    return public_sddmm(_first(x, of_x, lead + 2), _first(y, of_y, lead + 2), row_offsets, col_indices, *sizes), 0


def _vmap_groups(info, in_dims, operands):
    """Groups come one batch at a time."""
    if in_dims[4] is not None:
        raise NotImplementedError("sparse_autotune: offs: torch.func.vmap cannot map over it; the items of a batch have the same groups")
    items = []
    for item in range(info.batch_size):
        of_item = [t if dim is None else t.select(dim, item) for t, dim in zip(operands, in_dims, strict=True)]
        items.append(public_gemm(*of_item))
    return torch.stack(items), 0


@torch.library.register_vmap("sparse_autotune::gemm", lib=_library)
def _vmap_gemm(info, in_dims, a, b, bias, residual, offs, flags):
    of_a, of_b, of_bias, of_residual, *_ = in_dims
    if offs is not None:
        return _vmap_groups(info, in_dims, (a, b, bias, residual, offs, flags))
    lead = max(a.dim() - 2 - (of_a is not None), b.dim() - 2 - (of_b is not None))
    if residual is not None:
        residual = residual.expand(info.batch_size, *residual.shape) if of_residual is None else residual.movedim(of_residual, 0)
    a, b = _first(a, of_a, lead + 2), _first(b, of_b, lead + 2)
    if of_bias is None and (of_a is not None or of_b is not None):
        return public_gemm(a, b, bias, residual, None, flags), 0
    made = public_gemm(a, b, None if of_bias is not None else bias, None, None, flags & BARE)
    if of_bias is not None:  # is not part of a product: each item has its own
        bias = bias.movedim(of_bias, 0)
        made = made + bias.reshape(bias.shape[0], *[1] * (lead + 1), bias.shape[-1])
    return _dense.finished(made, residual, flags), 0


def _vmap_attention(op: Any) -> Callable[..., Any]:
    def run(info, in_dims, *operands):
        """Comes one batch at a time."""
        items = []
        for item in range(info.batch_size):
            items.append(op(*(t if dim is None else t.select(dim, item) for t, dim in zip(operands, in_dims, strict=True))))
        if isinstance(items[0], Tensor):
            return torch.stack(items), 0
        return tuple(torch.stack(parts) for parts in zip(*items, strict=True)), (0,) * len(items[0])

    return run


for _op in _ATTENTIONS:
    torch.library.register_vmap(_op._schema.name, _vmap_attention(_op), lib=_library)
