"""Attention over ranks that have a part of the sequence each."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from .._attention import attention
from .._block_mask import BlockMask
from . import _heads
from ._collectives import Parcels, Swap, begin, end, moved
from ._masks import of_heads, of_keys


def _group(group: dist.ProcessGroup | None) -> dist.ProcessGroup:
    found = dist.group.WORLD if group is None else group
    if found is None:
        raise ValueError("group: there is none; call torch.distributed.init_process_group first")
    return found


def _check_heads(name: str, x: Tensor, group: dist.ProcessGroup, rows: int) -> None:
    ranks, heads = group.size(), 3 - rows
    if x.dim() != 4:
        raise ValueError(f"{name}: must have four dimensions, has {x.dim()}")
    if x.shape[heads] % ranks:
        raise ValueError(f"{name}: has {x.shape[heads]} heads, which {ranks} ranks cannot share equally")


def _to_heads(x: Tensor, group: dist.ProcessGroup, rows: int) -> Any:
    """From all heads of this rank's rows to this rank's heads of all rows, which are under way. rows: the dimension."""
    return begin(x.unflatten(3 - rows, (group.size(), -1)).movedim(3 - rows, 0), Swap(group))


def _whole(pending: Any, rows: int) -> Tensor:
    return end(pending).movedim(0, rows).flatten(rows, rows + 1)


def attention_by_heads(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    group: dist.ProcessGroup | None = None,
    mask: Any = None,
    layout: Literal["bhsd", "bshd"] = "bhsd",
    copies: bool = False,
    **words: Any,
) -> Tensor:
    """sa.attention where each rank of the group has equally many consecutive rows of q, k and v, and computes some heads of all of them.

    q, k, v: as of sa.attention, this rank's rows. Heads of k must be a multiple of the ranks. mask and words (causal, window, sinks, diagonal, scale, softcap,
    lengths): as of sa.attention, of the whole sequence. Gives this rank's rows of the result, and gradients to q, k and v.

    All four tensors go through an all-to-all: a rank sends (ranks - 1) / ranks of what it has. With layout="bshd" and a batch of one nothing is copied
    behind it. What a mask of blocks has for this rank's heads is looked up once for each BlockMask object.

    copies: between GPUs with peer access, and without gradients, rows go by copies over shared memory instead, some heads at a time, under the attention of
    those before. The same at every rank. In a CUDA graph it was faster than NCCL on two GPUs, outside of one slower.
    """
    for word in ("query_ends", "key_ends", "page_table", "return_lse"):
        if words.get(word) is not None:
            raise ValueError(f"{word}: is not there for attention over ranks")
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout: must be 'bhsd' or 'bshd', not {layout!r}")
    group, rows = _group(group), 2 if layout == "bhsd" else 1
    if isinstance(mask, BlockMask):
        mask = of_heads(mask, group.size(), group.rank())
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check_heads(name, x, group, rows)
    made = _heads.copied(q, k, v, group, mask, layout == "bshd", words) if copies else None
    if made is not None:
        return made
    coming = [_to_heads(x, group, rows) for x in (q, k, v)]
    o = attention(*(_whole(pending, rows) for pending in coming), mask=mask, layout=layout, **words)
    back = moved(o.unflatten(rows, (group.size(), -1)).movedim(rows, 0), Swap(group))
    return back.movedim(0, 3 - rows).flatten(3 - rows, 4 - rows)


def _merged(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Of results over disjoint keys, and the logarithms of their sums."""
    (a, of_a), (b, of_b) = parts
    most = torch.maximum(of_a, of_b).detach().clamp(min=torch.finfo(of_a.dtype).min / 4)  # -inf where no key is seen
    weights = [(of - most).exp() for of in (of_a, of_b)]
    total = (weights[0] + weights[1]).clamp(min=torch.finfo(of_a.dtype).tiny)
    wa, wb = ((weight / total).unsqueeze(-1) for weight in weights)
    return (a * wa + b * wb).to(a.dtype)


def attention_by_keys(
    q: Tensor, k: Tensor, v: Tensor, mask: BlockMask, *, group: dist.ProcessGroup | None = None, scale: float | None = None, softcap: float = 0.0
) -> Tensor:
    """sa.attention where each rank of the group has equally many consecutive rows of q, k and v, and gets the blocks of keys that its lists name.

    q: [batch, heads, queries, depth], k, v: [batch, heads of k, keys, depth], this rank's rows, which must be whole blocks of the mask. mask: an
    sa.BlockMask of the whole sequence, the same at every rank; all that is seen must be in it. Gives this rank's rows of the result, and gradients to q, k
    and v.

    Blocks of k and v go to the ranks whose lists (of any head) name them, and no others do. Meanwhile this rank's queries meet its own keys; the two
    results are merged by the logarithms of their sums. Who sends what is worked out once for each BlockMask object, on the host; then nobody waits.
    """
    if not isinstance(mask, BlockMask):
        raise TypeError(f"mask: must be an sa.BlockMask, not {type(mask).__name__}")
    group = _group(group)
    plan, ranks, wide = of_keys(mask, group.size(), group.rank()), group.size(), mask.block[1]
    for name, x, rows in (("q", q, mask.shape[0]), ("k", k, mask.shape[1]), ("v", v, mask.shape[1])):
        if x.dim() != 4 or x.shape[2] * ranks != rows:
            raise ValueError(f"{name}: its shape is {list(x.shape)}; of {rows} rows of the mask each of {ranks} ranks has {rows // ranks}, in dimension 2")
    words: dict[str, Any] = dict(scale=q.shape[-1] ** -0.5 if scale is None else scale, softcap=softcap)
    both = torch.cat([k, v], -1).unflatten(2, (-1, wide)).movedim(2, 0)
    # One by one: an index that names a block twice would have a gradient whose order of summation is open.
    parcels = torch.cat([both.index_select(0, blocks) for blocks in plan.sent])
    pending = begin(parcels, Parcels(group, [len(blocks) for blocks in plan.sent], plan.received))
    own = attention(q, k, v, mask=plan.own, return_lse=True, **words)
    came = end(pending)
    if plan.others is None:
        return own[0] + 0 * came.sum() if came.requires_grad else own[0]  # gradients of what was sent come back
    keys = came.movedim(0, 2).flatten(2, 3)
    others = attention(q, keys[..., : k.shape[-1]], keys[..., k.shape[-1] :], mask=plan.others, return_lse=True, **words)
    return _merged([own, others])
