"""sa.attention: the softmax of scores times values."""

from __future__ import annotations

import re
from typing import Any, Literal, NoReturn, overload

import torch
from torch import Tensor

from . import _C, _ops, _pages
from ._band import Side, band_of
from ._block_mask import BlockMask
from ._bsr import BSR
from ._gemm import check_dense
from ._matmul import as_pattern
from ._numbers import BOTTOM_RIGHT, CAUSAL, DYNAMIC, ROWS_FIRST, TOP_LEFT, Diagonal
from ._ops import VERSION_UNKNOWN, any_autocast, forward_ad, is_compiling, is_recorded, is_tracing, transforming
from ._types import HALVES

_NO_MASK: tuple[Any, ...] = (None, None, 1, 1, 1, 1)
_NO_PACKING: tuple[Any, Any, Any] = (None, None, None)
_NO_TILES: tuple[Any, Any] = (None, None)
_BANDS = {None: 0, "top_left": CAUSAL | TOP_LEFT, "bottom_right": CAUSAL | BOTTOM_RIGHT}  # flags of causal alone

public_attention = torch.ops.sparse_autotune.attention.default
public_attention_lse = torch.ops.sparse_autotune.attention_lse.default
public_backward = torch.ops.sparse_autotune.attention_backward.default
raw_attention = torch.ops.sparse_autotune._attention.default._op  # what OpOverload.__call__ calls, without its frame
raw_attention_lse = torch.ops.sparse_autotune._attention_lse.default._op


_hopper: dict[int, bool] = {}


def _is_hopper(device: int) -> bool:
    if device not in _hopper:
        _hopper[device] = torch.cuda.get_device_capability(device)[0] == 9
    return _hopper[device]


_is_hopper._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as assume_constant_result, which imports all of Dynamo


def has_gradients(q: Tensor, masked: bool) -> bool:
    """Whether sa.attention is the one to compute gradients. What stands in for PyTorch's functions asks here, and leaves the rest to them.

    On Hopper the kernel of depths from 16 to 128 is faster than PyTorch's choice. Elsewhere PyTorch's gradients are the faster ones where
    nothing but causality hides keys; a mask of blocks they would multiply as a whole (runs gpu-*-attention-backward* of bench/results). For
    other types and depths sa.attention has a slow kernel only.
    """
    if q.device.type != "cuda":
        return True
    depth = q.shape[-1]
    if q.dtype not in HALVES or depth % 8 != 0 or depth < 16:
        return False
    return depth <= (160 if masked else 128 if _is_hopper(q.get_device()) else 0)


def no_tangents(name: str) -> NoReturn:
    raise NotImplementedError(f"sparse_autotune: {name}: has a tangent, and attention has no forward mode; it has gradients (reverse mode)")


def refuse_tangents(**operands: Tensor) -> None:
    """Ask for forward_ad._current_level first, which costs less."""
    for name, operand in operands.items():
        if _ops.has_tangent(operand):
            no_tangents(name)


direct_attention = _C.direct_attention  # past the dispatcher; NotImplemented of what is not plain


def may_be_direct() -> bool:
    """Whether direct_attention may be asked: by nobody who compiles, differentiates forwards or casts."""
    return not is_compiling() and forward_ad._current_level < 0 and not any_autocast()


def _packing_of(lengths: Any, query_ends: Any, key_ends: Any, page_table: Any) -> tuple[tuple[Any, Any, Any], str]:
    """query_ends, key_ends and page_table as the operators take them, and what the caller calls key_ends."""
    for name, index in (("lengths", lengths), ("query_ends", query_ends), ("key_ends", key_ends), ("page_table", page_table)):
        if index is not None:
            check_dense(name, index)
    if key_ends is not None:
        if query_ends is None:
            raise ValueError("key_ends: says where sequences end, and wants query_ends; lengths says how many keys each item has")
        if page_table is not None:
            raise ValueError("key_ends: with page_table the keys of sequences are not packed; give lengths, the number of each one's keys")
        if lengths is not None:
            raise ValueError("lengths: key_ends says where the keys of each sequence end; give one of both")
        return (query_ends, key_ends, page_table), "key_ends"
    if query_ends is None or page_table is not None:
        if query_ends is not None and lengths is None:
            raise ValueError("lengths: is missing; with page_table and query_ends it says how many keys each sequence has")
        return (query_ends, lengths, page_table), "lengths"
    if lengths is not None:
        raise ValueError("lengths: the keys of packed sequences lie one behind the other; give key_ends")
    return (query_ends, query_ends, None), "query_ends"


def _beside(queries: Any, keys: Any, lengths: Any, query_ends: Any, key_ends: Any, page_table: Any) -> tuple[str, int]:
    """What does not say which key stands beside which query, "" where it is clear; and the flag that says it to the library then."""
    if query_ends is not None:
        of = "page_table" if page_table is not None else "key_ends" if key_ends is not None else ""
        return (f"query_ends and {of}", 0) if of else ("", TOP_LEFT)  # each sequence has as many keys as queries
    if lengths is not None:
        return "lengths", 0
    return f"{queries} queries and {keys} keys" if queries != keys else "", 0


def pattern_of_mask(mask: Any) -> BSR:
    """Of a mask that is no BlockMask."""
    kinds = "mask: must be sa.BlockMask or a sparse matrix in blocks (sa.BSR, torch.sparse_bsr, SciPy)"
    if isinstance(mask, Tensor):
        if mask.layout is torch.strided and not hasattr(type(mask), "bsr"):
            raise TypeError(f"{kinds}, not a dense tensor; sa.BlockMask.from_dense takes one of blocks, from_pairs one of pairs")
        if mask.layout not in (torch.strided, torch.sparse_bsr):
            raise TypeError(f"{kinds}, not {mask.layout}")
    elif hasattr(mask, "kv_num_blocks"):
        raise TypeError(f"{kinds}, not a BlockMask of FlexAttention; sa.BlockMask.from_flex takes one")
    elif not isinstance(mask, BSR) and not (hasattr(mask, "format") and hasattr(mask, "tobsr")):
        raise TypeError(f"{kinds}, not {type(mask).__name__}")
    return as_pattern(mask, "mask")


def _mask_of(mask: Any, queries: Any, keys: Any, items: Any, heads: Any) -> tuple[Any, ...]:
    """Indices and numbers, as the operators take them."""
    if not isinstance(mask, BlockMask):
        mask = pattern_of_mask(mask)
    if mask.shape[0] != queries or mask.shape[1] != keys:
        raise ValueError(f"mask: is of {mask.shape[0]} x {mask.shape[1]}, but there are {queries} queries and {keys} keys")
    if isinstance(mask, BSR):
        return mask.row_offsets, mask.col_indices, *mask.block, 1, 1
    if mask.alone != (False, False):
        mask.check_alone("mask", items, heads)
    return mask.offsets, mask.columns, *mask.block, mask.heads, mask.batch


_OF_BLOCK_MASK = {
    "row_offsets": "offsets",
    "col_indices": "columns",
    "sa.BSR.from_scipy sums duplicates": "sa.BlockMask.from_dense lists each block once",
    "sa.BSR.from_scipy sorts them": "sa.BlockMask.from_dense sorts them",
}


def _named(error: RuntimeError, mask: Any, key_ends: str) -> RuntimeError:
    """In the caller's words. key_ends: what the caller calls them."""
    text = str(error)
    if type(error) is not RuntimeError or not text.startswith("sparse_autotune: "):
        return error
    names = {"key_ends": key_ends}
    if isinstance(mask, BlockMask):
        names |= _OF_BLOCK_MASK
    return RuntimeError(re.sub(rf"\b({'|'.join(map(re.escape, names))})\b", lambda found: names[found[0]], text))


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = ...,
    causal: bool | Diagonal | None = ...,
    window: Side | tuple[Side, Side] = ...,
    sinks: int = ...,
    diagonal: Diagonal | None = ...,
    scale: float | None = ...,
    softcap: float = ...,
    lengths: Tensor | None = ...,
    query_ends: Tensor | None = ...,
    key_ends: Tensor | None = ...,
    page_table: Tensor | None = ...,
    return_lse: Literal[False] = ...,
    layout: Literal["bhsd", "bshd"] = ...,
) -> Tensor: ...
@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = ...,
    causal: bool | Diagonal | None = ...,
    window: Side | tuple[Side, Side] = ...,
    sinks: int = ...,
    diagonal: Diagonal | None = ...,
    scale: float | None = ...,
    softcap: float = ...,
    lengths: Tensor | None = ...,
    query_ends: Tensor | None = ...,
    key_ends: Tensor | None = ...,
    page_table: Tensor | None = ...,
    return_lse: Literal[True],
    layout: Literal["bhsd", "bshd"] = ...,
) -> tuple[Tensor, Tensor]: ...
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Any = None,
    causal: bool | Diagonal | None = None,
    window: Side | tuple[Side, Side] = None,
    sinks: int = 0,
    diagonal: Diagonal | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    lengths: Tensor | None = None,
    query_ends: Tensor | None = None,
    key_ends: Tensor | None = None,
    page_table: Tensor | None = None,
    return_lse: bool = False,
    layout: Literal["bhsd", "bshd"] = "bhsd",
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(scale q kᵀ) v over the keys that each query sees, by the kernel that was measured to be the fastest.

    q: [batch, heads, queries, depth], k: [batch, heads of k, keys, depth], v: [batch, heads of k, keys, depth of v]; with layout="bshd" the
    two dimensions in the middle are the other way round. Any strides are read without a copy where each row is contiguous, and no two heads
    or rows are the same memory. All on one device (CPU or CUDA), of one dtype: float32, float64, float16, bfloat16; so is the result, which
    is contiguous in the layout of q. Sums are in float32 (float64 for float64). heads must be a multiple of the heads of k: head h of q
    goes with head h // (heads / heads of k).

    A query sees a key unless one of these excludes it; keys that it does not see have no influence, whatever stands there. A query that
    sees none gives 0.

    - mask: sa.BlockMask, or a matrix in BSR (sa.BSR, torch.sparse_bsr, SciPy) of queries x keys, whose values nobody reads: keys in blocks
      that are not there, and, where the BlockMask has tiles of bits, keys whose bit is 0. The first call with a mask waits for a GPU,
      unless the mask is dynamic (sa.BlockMask) and no gradient is wanted.
    - causal: "top_left": query i stands beside key i, "bottom_right": beside key i + keys - queries; keys behind that one. True only where
      there are as many queries as keys, where both are the same. There is no default.
    - window: how many keys a query sees on each side of the one beside it, which counts: window=1 is that one alone. (left, right) for each
      side; of a single number with causal, that to the left. None or 0: no limit. Without causal, and where there are not as many queries
      as keys, diagonal says which key is the one beside, in the words of causal.
    - sinks: so many first keys are seen whatever the window to the left says, which must be given; causal, the window to the right and the
      mask hold for them.

    Four int32 tensors on the device of q are read at every call, so that what was measured for one set of numbers serves all. On a GPU
    nobody waits for them or checks them: wrong ones reach beyond the tensors. Inside a CUDA graph they are read at each replay. With
    lengths, or where keys end elsewhere than queries, causal=True and a window do not say which key is the one beside: give "top_left" or
    "bottom_right".

    - lengths: [batch], item i has its first lengths[i] keys only.
    - query_ends: [sequences], of sequences that are packed one behind the other in q, k and v, whose batch is 1: where each one ends, the
      first begins at 0 (cu_seqlens[1:]). A query sees keys of its own sequence only. Rows behind the last end are 0 and -inf in the
      results; nobody reads theirs.
    - key_ends: [sequences], where the keys of each sequence end; None: where its queries do.
    - page_table: [batch, pages of each item] ([sequences, ...] with query_ends): k and v are pages, in place of items, [pages, heads, rows,
      depth] in the order of the layout, and page_table[i] are the numbers of those that item i has, in order. lengths says how many keys
      there are, None: all rows of the pages. What lies behind them, numbers and rows, is not looked at. Pages are never copied: in memory
      each begins where the rows of the one before it end, as those of a contiguous [pages, rows, heads, depth] do (layout="bshd", or its
      transpose(1, 2)), or so many times its rows behind the begin of that one, the same number in k and v. So are those of a contiguous
      [pages, heads, rows, depth], and of one tensor of both, [pages, 2, rows, heads, depth] or [pages, 2, heads, rows, depth]; to these a
      call adds a product of page_table with that number.

    scale: None: 1 / sqrt(depth). softcap: scores s become softcap * tanh(s / softcap); 0: they stay. return_lse: also returns the natural
    logarithm of the sum of the exponentials of each query's scores, float32 (float64 for float64), [batch, heads, queries] in either
    layout; -inf where a query sees no key.

    q, k and v may require gradients, of the result and of the logarithms: of these (not with page_table) the backward pass keeps q, k, v,
    the result and the logarithms, and no matrix of scores. One candidate gives the same bits at each run; while candidates take turns
    (tuning="in_place", the default for what nobody knows), bits may differ from call to call. Gradients of gradients and forward mode are
    refused with NotImplementedError.

    RuntimeError, TypeError or ValueError name the argument that is wrong.
    """
    plain = mask is None and lengths is None and query_ends is None and key_ends is None and page_table is None and not return_lse and may_be_direct()
    if plain and window is None and diagonal is None and sinks == 0 and layout == "bhsd" and (causal is None or type(causal) is str and causal in _BANDS):
        made = direct_attention(q, k, v, 0, 0, 0, scale, softcap, _BANDS[causal], True)
        if made is not NotImplemented:
            return made  # type: ignore[no-any-return]
        plain = False
    check_dense("q", q)
    check_dense("k", k)
    check_dense("v", v)
    if forward_ad._current_level >= 0:
        refuse_tangents(q=q, k=k, v=v)
    if isinstance(scale, Tensor) or isinstance(softcap, Tensor):
        raise TypeError(f"{'scale' if isinstance(scale, Tensor) else 'softcap'}: must be a number, not a tensor; it has no gradient")
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: must be 'bhsd' or 'bshd', not {layout!r}")
    if _ops.any_autocast() and (cast := _ops.autocast_dtype(q)) is not None:
        q, k, v = q.to(cast), k.to(cast), v.to(cast)
    masked, left, right, first, flags, version = _NO_MASK, 0, 0, 0, 0, VERSION_UNKNOWN
    packing, of_keys, table = _NO_PACKING, "key_ends", page_table
    if lengths is not None or query_ends is not None or key_ends is not None or page_table is not None:
        if page_table is not None:
            check_dense("page_table", page_table)
            pages = k.shape[:1]
            k, v, page_table = _pages.joined(k, v, page_table, 2 if layout == "bhsd" else 1)
        packing, of_keys = _packing_of(lengths, query_ends, key_ends, page_table)
    if mask is not None or window is not None or diagonal is not None or sinks or not (causal is None or causal is False):
        if q.dim() == 4 and k.dim() == 4 and (page_table is None or page_table.dim() == 2):  # the operators refuse others
            row = 2 if layout == "bhsd" else 1
            queries, keys = q.shape[row], k.shape[row] if page_table is None else k.shape[row] * page_table.shape[1]
            left, right, first, flags = band_of(causal, window, sinks, diagonal, *_beside(queries, keys, lengths, query_ends, key_ends, page_table))
            masked = _NO_MASK if mask is None else _mask_of(mask, queries, keys, q.shape[0], q.shape[3 - row])
            if isinstance(mask, BlockMask) and mask.dynamic:
                flags |= DYNAMIC
    if plain:
        made = direct_attention(q, k, v, left, right, first, scale, softcap, flags if layout == "bhsd" else flags | ROWS_FIRST, True)
        if made is not NotImplemented:
            return made  # type: ignore[no-any-return]
    tiles = (mask.tile_numbers, mask.tile_bits) if isinstance(mask, BlockMask) else _NO_TILES
    operands = (q, k, v, *masked, left, right, first, scale, softcap, flags if layout == "bhsd" else flags | ROWS_FIRST, *packing, *tiles)
    try:
        recorded = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
        if recorded or is_compiling() or transforming() or forward_ad._current_level >= 0 or is_tracing() or is_recorded():
            return (public_attention_lse if return_lse else public_attention)(*operands)  # type: ignore[no-any-return]
        if mask is not None and masked is not _NO_MASK:
            version = _ops.version_of(masked[0], masked[1])
        return (raw_attention_lse if return_lse else raw_attention)(*operands, version)  # type: ignore[no-any-return]
    except RuntimeError as error:
        if page_table is not table and table is not None:
            error = _pages.named(error, table, pages[0])
        raise _named(error, mask, of_keys) from None
