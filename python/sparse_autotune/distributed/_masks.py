"""What one rank needs of a mask of blocks: made once for each mask, on the host."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import torch
from torch import Tensor

from .._block_mask import BlockMask

_known: weakref.WeakKeyDictionary[BlockMask, dict[Any, Any]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class _Lists:
    rows: Tensor  # the block row of each block, over all heads and items
    columns: Tensor
    down: int

    @staticmethod
    def of(mask: BlockMask) -> _Lists:
        offsets = mask.offsets.to("cpu", torch.int64)
        return _Lists(torch.repeat_interleave(torch.arange(len(offsets) - 1, device="cpu"), offsets.diff()), mask.columns.to("cpu", torch.int64), mask.grid[0])


def _part(mask: BlockMask, lists: _Lists, rows: Tensor, columns: Tensor, shape: tuple[int, int], heads: int) -> BlockMask:
    """rows, columns: the new numbers of block rows and block columns, increasing; -1 where one is left out."""
    row, column = rows[lists.rows], columns[lists.columns]
    kept = ((row >= 0) & (column >= 0)).nonzero()[:, 0]
    lines = mask.batch * heads * -(-shape[0] // mask.block[0])
    offsets = torch.zeros(lines + 1, dtype=torch.int32, device="cpu")
    offsets[1:] = torch.cumsum(torch.bincount(row[kept], minlength=lines), 0)
    device = mask.columns.device
    tiles: tuple[Any, Any] = (None, None)
    if mask.tile_numbers is not None and len(kept):
        tiles = (mask.tile_numbers[kept.to(device)], mask.tile_bits)
    made = BlockMask(offsets.to(device), column[kept].to(device, torch.int32), mask.block, shape, heads, mask.batch, *tiles)
    made.alone = mask.alone
    return made


def _remembered(mask: BlockMask, key: Any, make: Any) -> Any:
    known = _known.setdefault(mask, {})
    if key not in known:
        known[key] = make()
    return known[key]


def of_heads(mask: BlockMask, ranks: int, rank: int) -> BlockMask:
    """The lists of this rank's heads; of a mask for all heads, itself."""

    def make() -> BlockMask:
        lists, each = _Lists.of(mask), mask.heads // ranks
        line = torch.arange(mask.batch * mask.heads * lists.down, device="cpu")
        item, head, row = line // (mask.heads * lists.down), line // lists.down % mask.heads, line % lists.down
        mine = head // each == rank
        rows = torch.where(mine, (item * each + head - rank * each) * lists.down + row, -1)
        return _part(mask, lists, rows, torch.arange(mask.grid[1], device="cpu"), mask.shape, each)

    if mask.heads == 1:
        mask.check_alone("mask", 1, ranks)
        return mask
    if mask.heads % ranks:
        raise ValueError(f"mask: has lists for {mask.heads} heads, which {ranks} ranks cannot share equally")
    return _remembered(mask, (ranks, rank), make)  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class Keys:
    """sent: for each rank the blocks of keys here that its lists name; received: how many come from each; own, others: the masks of what is here and what
    comes, in the order in which it comes."""

    sent: list[Tensor]
    received: list[int]
    own: BlockMask
    others: BlockMask | None


def of_keys(mask: BlockMask, ranks: int, rank: int) -> Keys:
    high, wide = mask.block
    if mask.shape[0] % (ranks * high) or mask.shape[1] % (ranks * wide):
        raise ValueError(f"mask: is of {mask.shape[0]} x {mask.shape[1]}; {ranks} ranks want equal shares in whole blocks of {high} x {wide}")

    def make() -> Keys:
        lists, down, across = _Lists.of(mask), mask.grid[0] // ranks, mask.grid[1] // ranks
        owner = lists.rows % lists.down // down
        needed = [lists.columns[owner == other].unique() for other in range(ranks)]  # by each rank
        here = lambda of, by: needed[by][needed[by] // across == of]  # noqa: E731
        sent = [here(rank, other) - rank * across if other != rank else torch.empty(0, dtype=torch.int64, device="cpu") for other in range(ranks)]
        coming = [here(other, rank) if other != rank else torch.empty(0, dtype=torch.int64, device="cpu") for other in range(ranks)]
        line = torch.arange(mask.batch * mask.heads * lists.down, device="cpu")
        rows = torch.where(line % lists.down // down == rank, line // lists.down * down + line % lists.down - rank * down, -1)
        shape = (mask.shape[0] // ranks, mask.shape[1] // ranks)
        own, others = (torch.full((mask.grid[1],), -1, dtype=torch.int64, device="cpu") for _ in range(2))
        own[rank * across : (rank + 1) * across] = torch.arange(across, device="cpu")
        come = torch.cat(coming)
        others[come] = torch.arange(len(come), device="cpu")
        remote = _part(mask, lists, rows, others, (shape[0], len(come) * wide), mask.heads) if len(come) else None
        device = mask.columns.device
        return Keys([part.to(device) for part in sent], [len(part) for part in coming], _part(mask, lists, rows, own, shape, mask.heads), remote)

    return _remembered(mask, ("keys", ranks, rank), make)  # type: ignore[no-any-return]
