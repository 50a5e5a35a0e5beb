"""sa.BlockMask: which blocks of keys each block of queries sees."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from ._bsr import _pair, indices_of


class BlockMask:
    """A mask of blocks for sa.attention: a list of blocks of keys for each block of queries; no values.

    offsets: int32 or int64, [batch * heads * ceil(rows / block rows) + 1]; the list of block row i is columns[offsets[i] : offsets[i + 1]].
    columns: the same dtype, [blocks]; numbers of blocks of keys, increasing within a list.
    block: (queries, keys) of a block, each 1 to 256, or one number for both.
    shape: (rows, keys): queries and keys of an item; need not be multiples of the block.
    heads: how many heads have block rows of their own: 1 (one mask for all), or as many as k has, or as q has.
    batch: the same of items: 1, or the batch. Block rows of head h of item i begin at number (i * heads + h) * ceil(rows / block rows).

    Indices are looked through at the first use, and again when they have changed: on the CPU they are compared, on CUDA PyTorch must count the change. Wrong
    ones raise RuntimeError then.
    """

    __slots__ = ("offsets", "columns", "block", "shape", "heads", "batch", "__weakref__")

    def __init__(self, offsets: Tensor, columns: Tensor, block: int | tuple[int, int], shape: tuple[int, int], heads: int = 1, batch: int = 1):
        for name, indices in (("offsets", offsets), ("columns", columns)):
            if not isinstance(indices, Tensor):
                raise TypeError(f"{name}: must be a tensor, not {type(indices).__name__}")
            if indices.dim() != 1:
                raise ValueError(f"{name}: must have one dimension; its shape is {list(indices.shape)}")
        if offsets.dtype not in (torch.int32, torch.int64) or columns.dtype is not offsets.dtype:
            given = f"{offsets.dtype} and {columns.dtype}".replace("torch.", "")
            raise ValueError(f"offsets, columns: must both be int32 or both int64, not {given}")
        self.block = _pair(block)
        if not isinstance(shape, (tuple, list)) or len(shape) != 2:
            raise ValueError(f"shape: must be (rows, keys), not {shape!r}")
        self.shape = (_count("shape", shape[0], 0), _count("shape", shape[1], 0))
        self.heads, self.batch = _count("heads", heads, 1), _count("batch", batch, 1)
        self.offsets, self.columns = offsets, columns
        wanted = self.batch * self.heads * self.grid[0] + 1
        if offsets.shape[0] != wanted:
            lists = f" for {self.heads} heads of {self.batch} items" if self.heads * self.batch > 1 else ""
            raise ValueError(f"offsets: has {offsets.shape[0]} entries; {self.shape[0]} rows in blocks of {self.block[0]}{lists} need {wanted}")

    @classmethod
    def from_dense(cls, mask: Tensor, block: int | tuple[int, int], *, shape: tuple[int, int] | None = None) -> BlockMask:
        """Of a boolean tensor with an entry for each block: [block rows, block columns], [heads, ...] or [batch, heads, ...]; true is seen.

        shape: (rows, keys), where they are no multiples of the block.
        """
        if not isinstance(mask, Tensor) or mask.dtype is not torch.bool:
            raise TypeError(f"mask: must be a boolean tensor, not {mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}")
        if not 2 <= mask.dim() <= 4:
            raise ValueError(f"mask: must be [block rows, block columns], [heads, ...] or [batch, heads, ...]; its shape is {list(mask.shape)}")
        high, wide = _pair(block)
        down, across = mask.shape[-2:]
        rows, keys = (down * high, across * wide) if shape is None else shape
        if (-(-rows // high), -(-keys // wide)) != (down, across):
            raise ValueError(f"shape: {rows} x {keys} in blocks of {high} x {wide} is no mask of {down} x {across} blocks")
        offsets, columns = indices_of(mask.reshape(-1, across))
        heads = mask.shape[-3] if mask.dim() > 2 else 1
        return cls(offsets, columns, (high, wide), (rows, keys), heads, mask.shape[0] if mask.dim() == 4 else 1)

    def to_dense(self) -> Tensor:
        """A boolean tensor [batch, heads, block rows, block columns]."""
        down, across = self.grid
        rows = torch.arange(self.offsets.shape[0] - 1, device=self.device).repeat_interleave(torch.diff(self.offsets).long(), output_size=self.nnzb)
        made = torch.zeros(self.offsets.shape[0] - 1, across, dtype=torch.bool, device=self.device)
        made[rows, self.columns.long()] = True
        return made.view(self.batch, self.heads, down, across)

    @property
    def device(self) -> torch.device:
        return self.columns.device

    @property
    def nnzb(self) -> int:
        """Blocks that are seen, of all heads and items."""
        return self.columns.shape[0]

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks down and across of one head of one item, edge blocks included."""
        return -(-self.shape[0] // self.block[0]), -(-self.shape[1] // self.block[1])

    @property
    def density(self) -> float:
        """Blocks that are seen over all; 0 where there are none."""
        all_of_them = self.batch * self.heads * self.grid[0] * self.grid[1]
        return self.nnzb / all_of_them if all_of_them else 0.0

    def to(self, device: torch.device | str | int) -> BlockMask:
        return _made((self.offsets.to(device), self.columns.to(device)), (self.block, self.shape, self.heads, self.batch))

    def __repr__(self) -> str:
        lists = f", {self.heads} heads, {self.batch} items" if self.heads * self.batch > 1 else ""
        blocks = f"{self.block[0]}x{self.block[1]} blocks{lists}, {self.nnzb} seen, {100 * self.density:.4g} %"
        return f"BlockMask({self.shape[0]} x {self.shape[1]}, {blocks}, {self.device})"

    def __reduce__(self) -> Any:
        return BlockMask, (self.offsets, self.columns, self.block, self.shape, self.heads, self.batch)


def _count(name: str, number: Any, least: int) -> int:
    if type(number) is bool or not hasattr(number, "__index__"):
        raise TypeError(f"{name}: must be a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name}: must be {least} or more, not {number}")
    return operator.index(number) if isinstance(number, int) else number  # type: ignore[no-any-return]  # of torch.compile, too


torch.serialization.add_safe_globals([BlockMask])  # for torch.load(..., weights_only=True)


def _made(parts: Any, facts: Any) -> BlockMask:
    """Whatever stands for the tensors is taken: trees are also made of their places, names or shapes."""
    mask = BlockMask.__new__(BlockMask)
    mask.offsets, mask.columns = parts
    mask.block, mask.shape, mask.heads, mask.batch = facts
    return mask


_pytree.register_pytree_node(
    BlockMask,
    lambda m: ([m.offsets, m.columns], (m.block, m.shape, m.heads, m.batch)),
    _made,  # type: ignore[arg-type]
    serialized_type_name="sparse_autotune.BlockMask",
)
