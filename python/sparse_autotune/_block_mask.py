"""sa.BlockMask: which blocks of keys each block of queries sees."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from ._bsr import _pair, indices_of


def _check_booleans(mask: Tensor, lines: str) -> None:
    """lines: what the last two dimensions are."""
    if not isinstance(mask, Tensor) or mask.dtype is not torch.bool:
        raise TypeError(f"mask: must be a boolean tensor, not {mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}")
    if not 2 <= mask.dim() <= 4:
        raise ValueError(f"mask: must be [{lines}], [heads, ...] or [batch, heads, ...]; its shape is {list(mask.shape)}")


class BlockMask:
    """A mask of blocks for sa.attention: a list of blocks of keys for each block of queries; no values. Within a block all pairs of a query and a key are
    seen, or those that a tile of bits says.

    offsets: int32 or int64, [batch * heads * ceil(rows / block rows) + 1]; the list of block row i is columns[offsets[i] : offsets[i + 1]].
    columns: the same dtype, [blocks]; numbers of blocks of keys, increasing within a list.
    block: (queries, keys) of a block, each 1 to 256, or one number for both.
    shape: (rows, keys): queries and keys of an item; need not be multiples of the block.
    heads: how many heads have block rows of their own: 1 (one mask for all), or as many as k has, or as q has.
    batch: the same of items: 1, or the batch. Block rows of head h of item i begin at number (i * heads + h) * ceil(rows / block rows).
    tile_numbers: int32, [blocks], with tile_bits: -1 where a block keeps all its pairs, or the number of its tile.
    tile_bits: int32, [tiles, block rows, ceil(block columns / 32)]; bit j % 32 of word j / 32 of a line, the lowest first, is key j of the block: 1 is seen.
    Both are read at every call. On the CPU wrong numbers raise RuntimeError, on CUDA nobody checks them.

    Indices are looked through at the first use, and again when they have changed: on the CPU they are compared, on CUDA PyTorch must count the change. Wrong
    ones raise RuntimeError then.
    """

    __slots__ = ("offsets", "columns", "block", "shape", "heads", "batch", "tile_numbers", "tile_bits", "__weakref__")

    def __init__(
        self,
        offsets: Tensor,
        columns: Tensor,
        block: int | tuple[int, int],
        shape: tuple[int, int],
        heads: int = 1,
        batch: int = 1,
        tile_numbers: Tensor | None = None,
        tile_bits: Tensor | None = None,
    ):
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
        self._take_tiles(tile_numbers, tile_bits)

    def _take_tiles(self, numbers: Tensor | None, bits: Tensor | None) -> None:
        if numbers is not None or bits is not None:
            for name, index in (("tile_numbers", numbers), ("tile_bits", bits)):
                if not isinstance(index, Tensor) or index.dtype is not torch.int32:
                    raise TypeError(f"{name}: must be an int32 tensor, not {index.dtype if isinstance(index, Tensor) else type(index).__name__}")
            assert numbers is not None and bits is not None
            if numbers.dim() != 1 or numbers.shape[0] != self.nnzb:
                raise ValueError(f"tile_numbers: its shape is {list(numbers.shape)}; {self.nnzb} blocks have one each")
            if bits.dim() != 3 or bits.shape[0] == 0 or bits.shape[1] != self.block[0] or bits.shape[2] != _words(self.block[1]):
                wanted = f"[tiles, {self.block[0]}, {_words(self.block[1])}], with at least one tile"
                raise ValueError(f"tile_bits: its shape is {list(bits.shape)}; blocks of {self.block[0]} x {self.block[1]} want {wanted}")
        self.tile_numbers, self.tile_bits = numbers, bits

    @classmethod
    def from_dense(cls, mask: Tensor, block: int | tuple[int, int], *, shape: tuple[int, int] | None = None) -> BlockMask:
        """Of a boolean tensor with an entry for each block: [block rows, block columns], [heads, ...] or [batch, heads, ...]; true is seen.

        shape: (rows, keys), where they are no multiples of the block.
        """
        _check_booleans(mask, "block rows, block columns")
        high, wide = _pair(block)
        down, across = mask.shape[-2:]
        rows, keys = (down * high, across * wide) if shape is None else shape
        if (-(-rows // high), -(-keys // wide)) != (down, across):
            raise ValueError(f"shape: {rows} x {keys} in blocks of {high} x {wide} is no mask of {down} x {across} blocks")
        offsets, columns = indices_of(mask.reshape(-1, across))
        heads = mask.shape[-3] if mask.dim() > 2 else 1
        return cls(offsets, columns, (high, wide), (rows, keys), heads, mask.shape[0] if mask.dim() == 4 else 1)

    @classmethod
    def from_pairs(cls, mask: Tensor, block: int | tuple[int, int]) -> BlockMask:
        """Of a boolean tensor with an entry for each pair: [queries, keys], [heads, ...] or [batch, heads, ...]; true is seen. Blocks with pairs that are
        seen are stored; those that are not seen whole have a tile of bits, blocks that are alike the same.
        """
        _check_booleans(mask, "queries, keys")
        high, wide = _pair(block)
        rows, keys = mask.shape[-2:]
        down, across = -(-rows // high), -(-keys // wide)
        missing = (0, across * wide - keys, 0, down * high - rows)  # beyond the edges
        blocks = [torch.nn.functional.pad(t, missing, value=fill) for t, fill in ((mask, False), (~mask, False))]
        seen, hidden = (t.reshape(*mask.shape[:-2], down, high, across, wide).transpose(-3, -2).reshape(-1, across, high, wide) for t in blocks)
        offsets, columns = indices_of(seen.any(-1).any(-1))
        heads = mask.shape[-3] if mask.dim() > 2 else 1
        made = cls(offsets, columns, (high, wide), (rows, keys), heads, mask.shape[0] if mask.dim() == 4 else 1)
        stored = seen.any(-1).any(-1)
        partial = hidden.any(-1).any(-1)[stored]
        if not partial.any():
            return made
        bits, which = _packed(seen[stored][partial]).unique(dim=0, return_inverse=True)
        numbers = torch.full_like(columns, -1)
        numbers[partial] = which.to(torch.int32)
        made._take_tiles(numbers, bits)
        return made

    def _rows(self) -> Tensor:
        """The block row of each block."""
        return torch.arange(self.offsets.shape[0] - 1, device=self.device).repeat_interleave(torch.diff(self.offsets).long(), output_size=self.nnzb)

    def to_pairs(self) -> Tensor:
        """A boolean tensor [batch, heads, queries, keys]."""
        (down, across), (high, wide) = self.grid, self.block
        made = torch.zeros(self.offsets.shape[0] - 1, across, high, wide, dtype=torch.bool, device=self.device)
        made[self._rows(), self.columns.long()] = True
        if self.tile_numbers is not None and self.tile_bits is not None:
            partial = self.tile_numbers >= 0
            bits = _unpacked(self.tile_bits, wide)
            made[self._rows()[partial], self.columns[partial].long()] = bits[self.tile_numbers[partial].long()]
        made = made.view(self.batch, self.heads, down, across, high, wide).transpose(3, 4)
        return made.reshape(self.batch, self.heads, down * high, across * wide)[..., : self.shape[0], : self.shape[1]]

    def to_dense(self) -> Tensor:
        """A boolean tensor [batch, heads, block rows, block columns]: which blocks are stored."""
        down, across = self.grid
        rows = self._rows()
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
        return _made([part.to(device) for part in _parts(self)], (self.block, self.shape, self.heads, self.batch))

    def __repr__(self) -> str:
        lists = f", {self.heads} heads, {self.batch} items" if self.heads * self.batch > 1 else ""
        tiles = "" if self.tile_bits is None else f", {self.tile_bits.shape[0]} tiles of bits"
        blocks = f"{self.block[0]}x{self.block[1]} blocks{lists}, {self.nnzb} seen, {100 * self.density:.4g} %{tiles}"
        return f"BlockMask({self.shape[0]} x {self.shape[1]}, {blocks}, {self.device})"

    def __reduce__(self) -> Any:
        return BlockMask, (self.offsets, self.columns, self.block, self.shape, self.heads, self.batch, self.tile_numbers, self.tile_bits)


def _count(name: str, number: Any, least: int) -> int:
    if type(number) is bool or not hasattr(number, "__index__"):
        raise TypeError(f"{name}: must be a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name}: must be {least} or more, not {number}")
    return operator.index(number) if isinstance(number, int) else number  # type: ignore[no-any-return]  # of torch.compile, too


def _words(keys: int) -> int:
    """Of a line of a tile."""
    return (keys + 31) // 32


def _packed(tiles: Tensor) -> Tensor:
    """[tiles, queries, keys], bits as booleans, to [tiles, queries, words]."""
    tiles = torch.nn.functional.pad(tiles, (0, _words(tiles.shape[-1]) * 32 - tiles.shape[-1])).unflatten(-1, (-1, 32))
    return (tiles.long() << torch.arange(32, device=tiles.device)).sum(-1).to(torch.int32)  # the 32nd bit is the sign


def _unpacked(bits: Tensor, keys: int) -> Tensor:
    return ((bits.unsqueeze(-1) >> torch.arange(32, device=bits.device)) & 1).bool().flatten(-2)[..., :keys]


def _parts(mask: BlockMask) -> list[Tensor]:
    tiles = [] if mask.tile_numbers is None or mask.tile_bits is None else [mask.tile_numbers, mask.tile_bits]
    return [mask.offsets, mask.columns, *tiles]


torch.serialization.add_safe_globals([BlockMask])  # for torch.load(..., weights_only=True)


def _made(parts: Any, facts: Any) -> BlockMask:
    """Whatever stands for the tensors is taken: trees are also made of their places, names or shapes."""
    mask = BlockMask.__new__(BlockMask)
    mask.offsets, mask.columns, *tiles = parts
    mask.tile_numbers, mask.tile_bits = tiles or (None, None)
    mask.block, mask.shape, mask.heads, mask.batch = facts
    return mask


_pytree.register_pytree_node(
    BlockMask,
    lambda m: (_parts(m), (m.block, m.shape, m.heads, m.batch)),
    _made,  # type: ignore[arg-type]
    serialized_type_name="sparse_autotune.BlockMask",
)
