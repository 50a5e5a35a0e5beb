"""What a BlockMask of FlexAttention says: its lists of blocks, and its mask_mod, which is asked for each pair by itself, as FlexAttention does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _mask_shapes

_aten = torch.ops.aten
_MOST_BLOCK = 256  # of sa.BlockMask
_OF_SHAPE_ALONE = {  # operators that do not look into their first operand
    getattr(_aten, name).default for name in ("new_ones", "new_zeros", "new_full", "new_empty", "ones_like", "zeros_like", "full_like", "empty_like")
}


class Flex(NamedTuple):
    """partial, full: [items, heads, block rows, block columns], which blocks are in the lists."""

    sizes: _mask_shapes.Sizes
    partial: Tensor
    full: Tensor
    mask_mod: Any


def read(mask: Any) -> Flex:
    try:
        counts, columns, full_counts, full_columns = mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices
        (high, wide), (rows, keys), mask_mod = mask.BLOCK_SIZE, mask.seq_lengths, mask.mask_mod
    except AttributeError as missing:
        raise TypeError(f"mask: must be a BlockMask of torch.nn.attention.flex_attention, not {type(mask).__name__} ({missing})") from None
    given = _mask_shapes.Sizes(rows, keys, high, wide)
    partial = _listed(given, "kv_num_blocks", counts, "kv_indices", columns)
    full = torch.zeros_like(partial) if full_counts is None else _listed(given, "full_kv_num_blocks", full_counts, "full_kv_indices", full_columns)
    if full.shape != partial.shape:
        raise ValueError(f"mask: kv_num_blocks is {list(counts.shape)}, but full_kv_num_blocks {list(full_counts.shape)}")
    _refuse("full_kv_indices", "lists a block that kv_indices lists, too, in row", (full & partial).any(-1))
    sizes = _mask_shapes.Sizes(rows, keys, _fitting(high, rows), _fitting(wide, keys))
    return Flex(sizes, _split(partial, given, sizes), _split(full, given, sizes), mask_mod)


def _refuse(name: str, what: str, wrong: Tensor) -> None:
    for place in wrong.nonzero()[:1].tolist():
        raise ValueError(f"mask: {name} {what} {place}")


def _listed(sizes: _mask_shapes.Sizes, of_counts: str, counts: Tensor, of_columns: str, columns: Tensor) -> Tensor:
    """[items, heads, rows, across] of lists: the first `counts` of each row's columns."""
    down, across = sizes.grid
    for name, numbers in ((of_counts, counts), (of_columns, columns)):
        if not isinstance(numbers, Tensor) or numbers.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"mask: {name} must be an int32 tensor, not {numbers.dtype if isinstance(numbers, Tensor) else type(numbers).__name__}")
    if columns.shape[:-1] != counts.shape or not 1 <= counts.dim() <= 3:
        raise ValueError(
            f"mask: {of_counts} is {list(counts.shape)} and {of_columns} {list(columns.shape)}; they must be [B, H, rows] and [B, H, rows, columns]"
        )
    if counts.shape[-1] != down:
        raise ValueError(f"mask: has {counts.shape[-1]} block rows; {sizes.rows} queries in blocks of {sizes.high} have {down}")
    counts, columns = (numbers.reshape((1,) * (3 - counts.dim()) + tuple(numbers.shape)).long() for numbers in (counts, columns))
    most = columns.shape[-1]
    for place in ((counts < 0) | (counts > most)).nonzero()[:1].tolist():
        raise ValueError(f"mask: {of_counts}{place} is {int(counts[tuple(place)])}; {of_columns} has room for {most} in a row")
    there = torch.arange(most, dtype=torch.int64, device=counts.device) < counts[..., None]
    for place in (there & ((columns < 0) | (columns >= across))).nonzero()[:1].tolist():
        raise ValueError(f"mask: {of_columns}{place} is {int(columns[tuple(place)])}; block columns are 0..{across - 1}")
    made = torch.zeros(*counts.shape, across + 1, dtype=torch.bool, device=counts.device)
    made = made.scatter_(-1, torch.where(there, columns, across), True)[..., :across]
    _refuse(of_columns, "lists a block twice, in row", made.sum(-1) != counts)
    return made


def _fitting(size: int, length: int) -> int:
    """The side of a block that sa.BlockMask takes in place of one that may be larger: a divisor, unless there is one block."""
    if size <= _MOST_BLOCK:
        return size
    return 128 if size >= length else max(side for side in range(1, _MOST_BLOCK + 1) if size % side == 0)


def _split(listed: Tensor, of: _mask_shapes.Sizes, into: _mask_shapes.Sizes) -> Tensor:
    """The same blocks in smaller ones."""
    if of == into:
        return listed
    down, across = (torch.arange(count, dtype=torch.int64, device=listed.device) for count in into.grid)
    return listed[..., down * into.high // of.high, :][..., across * into.wide // of.wide]


def _of_scalars(mask_mod: Any) -> Callable[..., Tensor]:
    """mask_mod of one pair, with a check of what it gives."""

    def ask(item: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = mask_mod(item, head, query, key)
        if not isinstance(seen, Tensor):
            seen = torch.tensor(seen, dtype=None, device=query.device)
        if seen.dtype is not torch.bool:
            raise TypeError(f"it gives {seen.dtype}, not booleans")
        if seen.dim() != 0:
            raise TypeError(f"it gives a tensor {list(seen.shape)} for a pair of a query and a key, not one boolean")
        return seen

    return ask


def _indexing() -> Any:
    """FlexAttention's way with table[q], which is the same with and without vmap."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    return TransformGetItemToIndex()


def pairs(flex: Flex, at: Tensor) -> Tensor:
    """[n, queries, keys]: which pairs of partial blocks at these places mask_mod lets see. As in FlexAttention each number is a scalar to
    it, and vmap makes tensors of them."""
    queries, keys = _mask_shapes.pairs_at(flex.sizes, at)
    ask = torch.vmap(_of_scalars(flex.mask_mod), in_dims=(None, None, None, 0))
    ask = torch.vmap(torch.vmap(ask, in_dims=(None, None, 0, None)))
    try:
        with torch.no_grad(), _indexing():
            return ask(at[:, 0], at[:, 1], queries.squeeze(2), keys.squeeze(1)).to(at.device)  # type: ignore[no-any-return]
    except Exception as error:
        raise ValueError(f"mask_mod: cannot be evaluated for pairs of a query and a key, as FlexAttention does by torch.vmap: {error}") from error


def looks_at(mask_mod: Any, device: torch.device) -> tuple[bool, bool]:
    """Whether what mask_mod says follows from the number of the item, and from that of the head. Of one that cannot be traced: yes."""
    from torch.fx.experimental.proxy_tensor import make_fx

    numbers = [torch.zeros((), dtype=torch.int64, device=device) for _ in range(4)]
    try:
        with torch.no_grad(), _indexing():
            graph = make_fx(_of_scalars(mask_mod))(*numbers).graph
    except Exception:
        return True, True
    used: set[Any] = set()
    for node in reversed(graph.nodes):
        schema = getattr(node.target, "_schema", None)
        if node.op == "output" or node in used or (schema is not None and schema.is_mutable):
            used.update(node.all_input_nodes if node.target not in _OF_SHAPE_ALONE else [])
    item, head, *_ = (node in used for node in graph.nodes if node.op == "placeholder")
    return item, head
