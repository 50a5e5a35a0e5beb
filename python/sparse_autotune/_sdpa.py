"""sa.scaled_dot_product_attention: PyTorch's function, by sa.attention where that computes the same."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.nn import Parameter, functional
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import _ops, _originals
from ._attention import attention, direct_attention, has_gradients, may_be_direct
from ._block_mask import BlockMask
from ._numbers import AS_QUERY, CAUSAL, TOP_LEFT
from ._ops import forward_ad
from ._types import DTYPES, HALVES

_MOST_DEPTH = 256  # of kernels for GPUs
_BLOCK = 64  # of dense masks that are made ones of blocks
_LEAST, _MOST = 128, 1 << 26  # queries and keys of such a mask; entries of all that are kept
_MOST_MASKS = 4
_MOST_SCALE = 1e38  # that the library takes
_NO_FUNCTION = torch._C._disabled_torch_function_impl
_WORTH = 0.75  # such a mask stores no more of its blocks

Words = dict[str, Any]  # of sa.attention


def _plain(tensor: Any) -> bool:
    """A strided tensor that is what it seems; those of tracers are, too."""
    kind = type(tensor)
    if kind is Tensor or kind is Parameter:
        return tensor.layout is torch.strided and not tensor.is_nested  # a nested one says that it is strided
    if not isinstance(tensor, Tensor) or tensor.layout is not torch.strided or kind.__torch_function__ is not _NO_FUNCTION:
        return False
    return kind is FunctionalTensor or not is_traceable_wrapper_subclass(tensor)


def _same_dtype(query: Tensor, key: Tensor, value: Tensor) -> torch.dtype | None:
    """The dtype in which all are multiplied; None where there is none."""
    dtypes = (query.dtype, key.dtype, value.dtype)
    if _ops.any_autocast() and torch.float64 not in dtypes and all(dtype in DTYPES for dtype in dtypes):
        cast = _ops.autocast_dtype(query)
        if cast is not None:
            return cast
    return query.dtype if dtypes[1] is query.dtype and dtypes[2] is query.dtype else None


def _fitting(query: Tensor, key: Tensor, value: Tensor, shared: bool) -> bool:
    """Whether the shapes are those of sa.attention, but for how many dimensions lead. shared: key and value may have fewer heads."""
    dims = query.dim()
    if dims < (3 if shared else 2) or key.dim() != dims or value.dim() != dims:
        return False
    if key.shape[:-1] != value.shape[:-1] or query.shape[-1] != key.shape[-1]:
        return False
    if not shared:
        return query.shape[:-2] == key.shape[:-2]
    return query.shape[:-3] == key.shape[:-3] and key.shape[-3] != 0 and query.shape[-3] % key.shape[-3] == 0


def _has_kernel(query: Tensor, value: Tensor, dtype: torch.dtype, masked: bool) -> bool:
    """Whether more than the reference kernel takes the depths. masked: PyTorch would multiply all, so that a plain kernel will do, too."""
    if query.device.type in ("cpu", "meta"):
        return True
    if query.device.type != "cuda" or dtype is torch.float64:
        return False
    depths = (query.shape[-1], value.shape[-1])
    if max(depths) > _MOST_DEPTH:
        return False
    return masked or dtype not in HALVES or all(depth % 8 == 0 and depth >= 16 for depth in depths)


def takes(query: Any, key: Any, value: Any, dropout_p: float = 0.0, shared: bool = False, masked: bool = False) -> bool:
    """Whether sa.attention computes what PyTorch's function does of these operands, [..., heads, rows, depth]. What it does not, wrong ones
    among it, is left to PyTorch. masked: by a BlockMask.
    """
    if dropout_p != 0.0 or not (_plain(query) and _plain(key) and _plain(value)):
        return False
    if query.device != key.device or query.device != value.device or not _fitting(query, key, value, shared):
        return False
    if query.numel() == 0 or key.numel() == 0 or value.numel() == 0:
        return False
    dtype = _same_dtype(query, key, value)
    if dtype not in DTYPES or not _has_kernel(query, value, dtype, masked):
        return False
    if _ops.transforming() and not masked:
        return False  # PyTorch's own has a rule for whole batches
    if forward_ad._current_level >= 0 and any(_ops.has_tangent(operand) for operand in (query, key, value)):
        return False
    if not _ops.wants_gradient(query, key, value):
        return True
    if not _ops.is_compiling() and not torch.backends.cuda.flash_sdp_enabled():
        return False  # who asks for the formula may want gradients of gradients, which compiled functions do not have
    return has_gradients(query, masked)


# ------------------------------------------------------------------------------------------------ masks


_Entry = tuple[Tensor, bool, BlockMask | None]  # a copy, whether it was looked through, and what it became where that is worth it


class _Converted:
    """Dense masks that were met lately, and what came of each. They are compared entry by entry, so that changes are seen. To convert one
    takes longer than a call with it: that is done when it comes again.
    """

    def __init__(self) -> None:
        self._known: list[_Entry] = []

    def get(self, mask: Tensor) -> BlockMask | None:
        entry = next((entry for entry in self._known if entry[0].shape == mask.shape and torch.equal(entry[0], mask)), None)
        if entry is not None and entry[1]:
            return entry[2]
        kept: _Entry = (mask.clone(), False, None)
        if entry is not None:
            kept = (entry[0], True, BlockMask.from_pairs(mask, _BLOCK) if _stored(mask) <= _WORTH else None)
        others: list[_Entry] = []
        entries = mask.numel()
        for other in self._known[:_MOST_MASKS]:
            entries += other[0].numel()
            if other is not entry and entries <= _MOST and len(others) < _MOST_MASKS - 1:
                others.append(other)
        self._known = [kept, *others]
        return kept[2]

    def clear(self) -> None:
        self._known = []


converted = _Converted()


def _stored(mask: Tensor) -> float:
    """The share of its blocks in which a query sees a key."""
    rows, keys = mask.shape[-2:]
    padded = functional.pad(mask, (0, -keys % _BLOCK, 0, -rows % _BLOCK))
    blocks = padded.unflatten(-1, (-1, _BLOCK)).any(-1).unflatten(-2, (-1, _BLOCK)).any(-2)
    return blocks.float().mean().item()


def _readable(mask: Tensor) -> bool:
    """Whether its entries may be looked at here: on the CPU, by nobody who only traces."""
    quiet = not (_ops.is_compiling() or _ops.transforming() or _ops.is_tracing() or _ops.is_recorded())
    return quiet and mask.device.type == "cpu" and type(mask) in (Tensor, Parameter) and torch._C._len_torch_dispatch_stack() == 0


def _lengths_of(mask: Tensor) -> Tensor | None:
    """Of [batch, keys], where each item sees its first keys: how many; int32."""
    lengths = mask.sum(-1, dtype=torch.int32)
    return lengths if torch.equal(mask, torch.arange(mask.shape[-1], device=mask.device) < lengths[:, None]) else None


def words_of_mask(mask: Tensor, query: Tensor, key: Tensor) -> Words | None:
    """What says the same as a dense mask of booleans, where it is worth it."""
    queries, keys = query.shape[-2], key.shape[-2]
    if mask.dim() < 2 or query.dim() > 4 or mask.dim() > max(query.dim(), 2) or mask.dtype is not torch.bool or not _readable(mask):
        return None
    sizes = (1,) * (4 - query.dim()) + tuple(query.shape[:-2])
    shape = (1,) * (4 - mask.dim()) + tuple(mask.shape)
    if shape[3] != keys or shape[2] not in (1, queries) or any(of not in (1, wanted) for of, wanted in zip(shape, sizes[:2], strict=False)):
        return None
    if shape[2] != queries or (queries == 1 and shape[1] == 1):
        if shape[1] != 1:
            return None
        lengths = _lengths_of(mask.reshape(shape[0], keys))
        return None if lengths is None else {"lengths": lengths.expand(sizes[0]).contiguous()}
    if queries < _LEAST or keys < _LEAST or mask.numel() > _MOST:
        return None
    blocks = converted.get(mask.reshape(shape))
    return None if blocks is None else {"mask": blocks}


def _words_of(query: Tensor, key: Tensor, attn_mask: Any, is_causal: bool) -> Words | None:
    """The words of sa.attention that say what attn_mask and is_causal do; None where none do."""
    if isinstance(attn_mask, BlockMask):
        return {"mask": attn_mask, "causal": "top_left" if is_causal else None}
    if attn_mask is None:
        return {"causal": "top_left" if is_causal else None}
    if is_causal:
        return None  # an error of PyTorch's
    if type(attn_mask).__name__ == "CausalBias":  # its module takes a second to import
        if (attn_mask.seq_len_q, attn_mask.seq_len_kv) != (query.shape[-2], key.shape[-2]):
            return None
        return {"causal": "top_left" if attn_mask.variant.name == "UPPER_LEFT" else "bottom_right"}
    return words_of_mask(attn_mask, query, key) if _plain(attn_mask) else None


def check_mask(name: str, mask: BlockMask, query: Tensor, key: Tensor) -> None:
    """query, key: [..., heads, rows, depth], or without heads."""
    queries, keys = query.shape[-2], key.shape[-2]
    if mask.shape[0] != queries or mask.shape[1] != keys:
        raise ValueError(f"{name}: is of {mask.shape[0]} x {mask.shape[1]}, but there are {queries} queries and {keys} keys")
    heads, heads_kv = (1, 1) if query.dim() < 3 else (query.shape[-3], key.shape[-3])
    if mask.heads not in (1, heads, heads_kv):
        raise ValueError(f"{name}: has lists for {mask.heads} heads; it is 1, or the {heads_kv} of key or the {heads} of query")
    items = 1
    for size in query.shape[:-3]:
        items *= size
    if mask.batch not in (1, items):
        raise ValueError(f"{name}: has lists for {mask.batch} items; it is 1, or the {items} of the batch")
    mask.check_alone(name, items, heads)


def _check_heads(query: Tensor, key: Tensor, value: Tensor, shared: bool) -> None:
    """Beside a BlockMask. PyTorch's function speaks of the sizes of tensors; one head goes with any number, there, too. shared: enable_gqa."""
    if query.dim() < 3 or key.dim() < 3 or value.dim() < 3:
        return
    heads = query.shape[-3]
    for name, operand in (("key", key), ("value", value)):
        of = operand.shape[-3]
        if of in (1, heads) or heads == 1 and not shared:
            continue
        if of == 0 or heads < of or heads % of:
            raise ValueError(f"{name}: has {of} heads, which do not divide the {heads} of query")
        if not shared:
            raise ValueError(f"enable_gqa: is False, but {name} has {of} heads for the {heads} of query; with enable_gqa=True heads of query share one")


def pairs_of(mask: BlockMask, query: Tensor) -> Tensor:
    """A dense mask that PyTorch's function takes beside such a query."""
    pairs = mask.to_pairs()
    if query.dim() == 2:
        return pairs[0, 0]
    if pairs.shape[1] > 1:
        pairs = pairs.repeat_interleave(query.shape[-3] // pairs.shape[1], 1)
    lead = query.shape[:-3] if pairs.shape[0] > 1 else (1,) * (query.dim() - 3)
    return pairs.reshape(*lead, *pairs.shape[1:])


def _four(tensor: Tensor) -> Tensor:
    """[batch, heads, rows, depth]."""
    if tensor.dim() > 4:
        return tensor.flatten(0, -4)
    return tensor if tensor.dim() == 4 else tensor[(None,) * (4 - tensor.dim())]


def _along_keys(mask: Tensor, keys: int) -> Tensor:
    """A dense mask whose rows lie in memory. PyTorch's kernels for CUDA refuse others, or read at addresses that are not aligned, which ends the use
    of the GPU in this process."""
    if mask.dim() == 0 or mask.shape[-1] not in (1, keys) or (mask.shape[-1] == keys and (keys == 1 or mask.stride(-1) == 1)):
        return mask
    return mask.expand(*mask.shape[:-1], keys).contiguous()


def _as_query(query: Tensor, key: Tensor, value: Tensor, scale: float | None, words: Words) -> Tensor:
    """sa.attention; where the heads of each row of query lie side by side, so do those of the result, as PyTorch has it."""
    if query.shape[1] == 1 or query.shape[2] == 1 or query.stride(1) >= query.stride(2):
        return attention(query, key, value, scale=scale, **words)
    return attention(*(operand.transpose(1, 2) for operand in (query, key, value)), scale=scale, layout="bshd", **words).transpose(1, 2)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | BlockMask | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention, by sa.attention where that computes the same: softmax(scale query keyᵀ) value.

    query: [..., heads, queries, depth], key: [..., heads, keys, depth], value: [..., heads, keys, depth of value]; all of one dtype and
    on one device. Leading dimensions may be missing, and there may be more of them. The result is [..., heads, queries, depth of value],
    of the same dtype. With enable_gqa key and value may have fewer heads, which divide those of query. is_causal: query i sees the keys 0
    to i, whatever the number of keys. scale: None is 1 / sqrt(depth). A query that sees no key gives 0, unless PyTorch's function
    computes: in 16 bits on a GPU that may give it other numbers. The result is contiguous, or, where query is a view of
    [batch, queries, heads, depth], such a view: result.transpose(1, 2) is contiguous then.

    attn_mask is one of these:

    - booleans (true is seen) or numbers to add, of a shape that broadcasts to [..., heads, queries, keys];
    - a torch.nn.attention.bias.CausalBias;
    - an sa.BlockMask, also beside is_causal. It has lists for one head, or those of key or query, and for one item, or all. Operands of
      three dimensions are the heads of one item.

    PyTorch's function computes, from the same arguments (the dense mask of a BlockMask), where one of these holds, sa.attention elsewhere:

    - dropout and numbers to add; on CUDA gradients, but those with a BlockMask in 16 bits and depths of 16 to 160 in multiples of 8; with
      gradients, torch.nn.attention.sdpa_kernel without FLASH_ATTENTION;
    - dtypes other than float32, float64, float16 and bfloat16; on CUDA float64, depths above 256, and in 16 bits, without a BlockMask,
      depths below 16 or no multiples of 8;
    - shapes that broadcast, other layouts, subclasses of tensors; torch.func, unless there is a BlockMask;
    - a dense mask. Two kinds on the CPU are the exception, as their entries can be read there. A mask that says how many of the first keys
      each item has becomes lengths. One of 128 queries and keys or more becomes a BlockMask when it comes again, where that stores at
      most three quarters of the blocks of 64 x 64; the last few are remembered, and compared. For a GPU make the BlockMask yourself.

    Errors are PyTorch's, and ValueError where an sa.BlockMask does not fit, or the heads beside one want enable_gqa.
    """
    if attn_mask is None and dropout_p == 0.0 and may_be_direct():
        made = direct_attention(query, key, value, 0, 0, 0, scale, 0.0, AS_QUERY | CAUSAL | TOP_LEFT if is_causal else AS_QUERY, enable_gqa)
        if made is not NotImplemented:
            return made  # type: ignore[no-any-return]
    blocks = attn_mask if isinstance(attn_mask, BlockMask) else None
    if (scale is None or abs(scale) <= _MOST_SCALE) and takes(query, key, value, dropout_p, enable_gqa, blocks is not None):
        if blocks is not None:
            check_mask("attn_mask", blocks, query, key)
        words = _words_of(query, key, attn_mask, is_causal)
        if words is not None:
            made = _as_query(_four(query), _four(key), _four(value), scale, words)
            return made if query.dim() == 4 else made.reshape(*query.shape[:-1], value.shape[-1])
    if _plain(query) and _plain(key) and _plain(value) and query.dim() > 2 and key.dim() > 2 and value.dim() > 2:
        if query.shape[-3] == 0:  # by whose number PyTorch's function divides, which may end the process
            return _originals.matmul(_originals.matmul(query, key.mT), value)
        for name, operand in (("key", key), ("value", value)):
            if enable_gqa and operand.shape[-3] == 0:
                raise ValueError(f"{name}: has 0 heads, which do not divide the {query.shape[-3]} of query")
    dense: Any = attn_mask
    if blocks is not None:
        _check_heads(query, key, value, enable_gqa)
        check_mask("attn_mask", blocks, query, key)
        dense = pairs_of(blocks, query).tril() if is_causal else pairs_of(blocks, query)
        is_causal = False
        if enable_gqa and query.dim() > 2 and 0 < key.shape[-3] < query.shape[-3]:  # else a GPU would be left the formula only
            heads, enable_gqa = query.shape[-3], False
            key, value = (operand.repeat_interleave(heads // operand.shape[-3], -3) for operand in (key, value))
    elif isinstance(attn_mask, Tensor) and key.dim() > 1 and _plain(attn_mask) and attn_mask.is_cuda:
        dense = _along_keys(attn_mask, key.shape[-2])
    return _originals.scaled_dot_product_attention(query, key, value, dense, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
