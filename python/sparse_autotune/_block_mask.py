"""sa.BlockMask: which blocks of keys each block of queries sees."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

from . import _C, _flex, _mask_shapes
from ._band import Side, band_of
from ._bsr import _pair, in_line, indices_of, plain_numbers, tuples
from ._mask_shapes import MOST_KEYS
from ._nearest import hint, none_of
from ._numbers import BOTTOM_RIGHT, CAUSAL, Diagonal
from ._ops import is_compiling, is_recorded, is_tracing, transforming


def _check_booleans(mask: Tensor, lines: str) -> None:
    """lines: what the last two dimensions are."""
    if not isinstance(mask, Tensor) or mask.dtype is not torch.bool:
        raise TypeError(f"mask: must be a boolean tensor, not {mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}")
    if not 2 <= mask.dim() <= 4:
        raise ValueError(f"mask: must be [{lines}], [heads, ...] or [batch, heads, ...]; its shape is {list(mask.shape)}")


class BlockMask:
    """A mask of blocks for sa.attention: a list of blocks of keys for each block of queries; no values. Within a block all pairs of a query
    and a key are seen, or those that a tile of bits says.

    offsets: int32 or int64, [batch * heads * ceil(rows / block rows) + 1]; the list of block row i is columns[offsets[i] : offsets[i + 1]].
    columns: the same dtype, [blocks]; numbers of blocks of keys, increasing within a list. block: (queries, keys) of a block, each 1 to
    256, or one number for both. shape: (rows, keys): queries and keys of an item; need not be multiples of the block. heads: how many heads
    have block rows of their own: 1 (one mask for all), or as many as k has, or as q has. batch: the same of items: 1, or the batch. Block
    rows of head h of item i begin at number (i * heads + h) * ceil(rows / block rows). tile_numbers: int32, [blocks], with tile_bits: -1
    where a block keeps all its pairs, or the number of its tile. tile_bits: int32, [tiles, block rows, ceil(block columns / 32)]; bit j %
    32 of word j / 32 of a line, the lowest first, is key j of the block: 1 is seen. Both are read at every call. On the CPU wrong numbers
    raise RuntimeError, on CUDA nobody checks them. dynamic: the lists are new at nearly every call, as from_scores makes them.

    Indices are looked through at the first use, and again when they have changed: on the CPU they are compared, on CUDA PyTorch must count
    the change. Wrong ones raise RuntimeError then. On CUDA the host waits for the GPU first. It reads the lists, and plans the work by them.

    Nobody waits for a dynamic mask on CUDA, where no gradient is wanted. The GPU looks through the lists when it comes to them, and kernels
    go without the host's plan. Only the first call of a new kind of problem waits, since it is measured. Wrong indices hide all keys; a
    later call with the same mask raises RuntimeError, unless its tensors were made in inference mode. A CUDA graph reads the lists anew at
    each replay: making the mask may be captured, too. Lists that were made before the capture must live as long as the graph; wrong ones
    raise nothing in it. On the CPU, and with gradients, dynamic changes nothing. Set it to False where such a mask serves many calls.
    """

    __slots__ = ("offsets", "columns", "block", "shape", "heads", "batch", "tile_numbers", "tile_bits", "dynamic", "alone", "__weakref__")

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
        dynamic: bool = False,
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
        if type(dynamic) is not bool:
            raise TypeError(f"dynamic: must be True or False, not {dynamic!r}")
        self.offsets, self.columns, self.dynamic = in_line(offsets), in_line(columns), dynamic
        self.alone = (False, False)  # of from_flex: whether the lists of one item, or of one head, are no others'
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
            if bits.dim() != 3 or bits.shape[0] == 0 or bits.shape[1] != self.block[0] or bits.shape[2] != _mask_shapes.words_of(self.block[1]):
                wanted = f"[tiles, {self.block[0]}, {_mask_shapes.words_of(self.block[1])}], with at least one tile"
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
        rows, keys = _fitting(shape, down, across, high, wide)
        offsets, columns = indices_of(mask.reshape(-1, across))
        heads = mask.shape[-3] if mask.dim() > 2 else 1
        return cls(offsets, columns, (high, wide), (rows, keys), heads, mask.shape[0] if mask.dim() == 4 else 1)

    @classmethod
    def from_pairs(cls, mask: Tensor, block: int | tuple[int, int]) -> BlockMask:
        """Of a boolean tensor with an entry for each pair: [queries, keys], [heads, ...] or [batch, heads, ...]; true is seen. Blocks with
        pairs that are seen are stored; those that are not seen whole have a tile of bits, blocks that are alike the same.
        """
        _check_booleans(mask, "queries, keys")
        _stay_outside("sa.BlockMask.from_pairs")
        high, wide = _pair(block)
        rows, keys = mask.shape[-2:]
        down, across = -(-rows // high), -(-keys // wide)
        missing = (0, across * wide - keys, 0, down * high - rows)  # beyond the edges
        blocks = [torch.nn.functional.pad(t, missing, value=fill) for t, fill in ((mask, False), (~mask, False))]
        seen, hidden = (t.reshape(*mask.shape[:-2], down, high, across, wide).transpose(-3, -2).reshape(-1, across, high, wide) for t in blocks)
        stored = seen.any(-1).any(-1)
        partial = stored & hidden.any(-1).any(-1)
        heads, batch = mask.shape[-3] if mask.dim() > 2 else 1, mask.shape[0] if mask.dim() == 4 else 1
        sizes = _mask_shapes.Sizes(rows, keys, high, wide)
        return cls._of_tiles(_mask_shapes.Tiled(stored, partial, _mask_shapes.packed(seen[partial])), sizes, heads, batch)

    @classmethod
    def _of_tiles(cls, tiled: _mask_shapes.Tiled, sizes: _mask_shapes.Sizes, heads: int, batch: int) -> BlockMask:
        """Blocks alike have the same tile."""
        offsets, columns = indices_of(tiled.stored)
        made = cls(offsets, columns, (sizes.high, sizes.wide), (sizes.rows, sizes.keys), heads, batch)
        if tiled.bits.shape[0] > 0:
            bits, which = tiled.bits.unique(dim=0, return_inverse=True)
            numbers = torch.full_like(columns, -1)
            numbers[tiled.partial[tiled.stored]] = which.to(torch.int32)
            made._take_tiles(numbers, bits)
        return made

    @classmethod
    def causal(
        cls, queries: int, block: int | tuple[int, int] = 128, keys: int | None = None, *, diagonal: Diagonal | None = None, device: Any = None
    ) -> BlockMask:
        """A query sees no key behind the one beside it. diagonal: as in sa.attention, wanted where there are not as many keys as queries.

        This and the other shapes are made on the CPU, in time and memory of the blocks, and copied to `device` without waiting for it; None is
        PyTorch's default device. In a function that torch.compile sees they are made once, when it is compiled, and it is compiled anew for
        other numbers.
        """
        return cls.window(queries, None, block, keys, causal=True, diagonal=diagonal, device=device)

    @classmethod
    def window(
        cls,
        queries: int,
        window: Side | tuple[Side, Side],
        block: int | tuple[int, int] = 128,
        keys: int | None = None,
        *,
        causal: bool | Diagonal | None = None,
        sinks: int = 0,
        diagonal: Diagonal | None = None,
        device: Any = None,
    ) -> BlockMask:
        """What the words window, causal, sinks and diagonal of sa.attention let a query see, in blocks. Alone they need no mask: give them
        to sa.attention."""
        sizes = _sizes(queries, queries if keys is None else keys, block)
        unclear = f"{sizes.rows} queries and {sizes.keys} keys" if sizes.rows != sizes.keys else ""
        left, right, first, flags = band_of(causal, window, sinks, diagonal, unclear, 0)
        words = {"window": left or MOST_KEYS, "window_right": 1 if flags & CAUSAL else right or MOST_KEYS, "top_left": not flags & BOTTOM_RIGHT}
        return _shaped(sizes, "sinks" if first else "window", device, words | ({"sinks": first} if first else {}))

    @classmethod
    def documents(cls, lengths: Iterable[int] | Tensor, block: int | tuple[int, int] = 128, *, causal: bool = False, device: Any = None) -> BlockMask:
        """Documents one behind the other, of so many tokens each, which see only themselves. lengths on a GPU are waited for; query_ends of
        sa.attention are not. A function that is compiled whole (fullgraph=True) takes numbers here, and no tensor of lengths.
        """
        if isinstance(lengths, Tensor):
            _stay_outside("sa.BlockMask.documents, of a tensor of lengths")
        counts = [_count("lengths", length, 0) for length in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
        sizes = _sizes(sum(counts), sum(counts), block)
        return _shaped(sizes, "documents", device, {"lengths": tuple(counts), "all_keys": not causal})

    @classmethod
    def prefix(
        cls, queries: int, prefix: int, block: int | tuple[int, int] = 128, keys: int | None = None, *, diagonal: Diagonal | None = None, device: Any = None
    ) -> BlockMask:
        """All see the first `prefix` keys, and no key behind those and the one beside."""
        sizes = _sizes(queries, queries if keys is None else keys, block)
        count = min(_count("prefix", prefix, 0), sizes.keys)
        unclear = f"{sizes.rows} queries and {sizes.keys} keys" if sizes.rows != sizes.keys else ""
        *_, flags = band_of(True, None, 0, diagonal, unclear, 0)
        return _shaped(sizes, "prefix", device, {"prefix": count, "top_left": not flags & BOTTOM_RIGHT})

    @classmethod
    def strided(
        cls,
        queries: int,
        stride: int,
        local: int,
        block: int | tuple[int, int] = 128,
        keys: int | None = None,
        *,
        causal: bool | Diagonal | None = None,
        diagonal: Diagonal | None = None,
        device: Any = None,
    ) -> BlockMask:
        """The `local` keys nearest to the one beside, which counts (as many on each side, unless causal), and of each `stride` keys the
        last one (the "fixed" pattern of Child et al. 2019, arXiv:1904.10509).
        """
        sizes = _sizes(queries, queries if keys is None else keys, block)
        unclear = f"{sizes.rows} queries and {sizes.keys} keys" if sizes.rows != sizes.keys else ""
        *_, flags = band_of(causal, _count("local", local, 1), 0, diagonal, unclear, 0)
        words = {
            "stride": min(_count("stride", stride, 1), MOST_KEYS),
            "window": min(local, MOST_KEYS),
            "all_keys": not flags & CAUSAL,
            "top_left": not flags & BOTTOM_RIGHT,
        }
        return _shaped(sizes, "strided", device, words)

    @classmethod
    def video(cls, frames: int, height: int, width: int, window: tuple[int, int, int], block: int | tuple[int, int] = 128, *, device: Any = None) -> BlockMask:
        """frames * height * width tokens, in this order; one sees those in a box about it: window[0] frames, window[1] lines, window[2]
        columns. At the ends the box is shifted inwards, so that all see equally many.
        """
        size = (_count("frames", frames, 1), _count("height", height, 1), _count("width", width, 1))
        if not isinstance(window, (tuple, list)) or len(window) != 3:
            raise ValueError(f"window: must be (frames, lines, columns), not {window!r}")
        reach = tuple(min(_count("window", of, 1), most) for of, most in zip(window, size, strict=True))
        sizes = _sizes(size[0] * size[1] * size[2], size[0] * size[1] * size[2], block)
        return _shaped(sizes, "video", device, {"cells": size, "window": reach})

    @classmethod
    def shaped(
        cls, shape: str, queries: int, block: int | tuple[int, int] = 128, keys: int | None = None, *, seed: int = 0, device: Any = None, **words: Any
    ) -> BlockMask:
        """A shape of the library's table by its name: BlockMask.shaped("nsa", 4096, 64, window=512, sinks=64, selected=16, heads=8). shapes() lists
        the names and their words, which are the options of `sparsek gen mask`. Some shapes draw blocks at random; other seeds draw others. A query
        sees no key behind the one beside it, unless the shape says otherwise or all_keys is True. The last query stands beside the last key; with
        top_left=True the first stands beside the first.
        """
        known = _mask_shapes.SHAPES.get(shape) if isinstance(shape, str) else None
        if known is None:
            raise ValueError(none_of("shape", shape, _mask_shapes.SHAPES))
        sizes = _sizes(queries, queries if keys is None else keys, block)
        for name in words:
            if name not in known.parameters:
                raise TypeError(f"{name}: shape {shape!r} takes {', '.join(known.parameters)}{hint(name, known.parameters)}")
        given = {}
        for name, parameter in known.parameters.items():
            if name in words:
                given[name] = _word(parameter, words[name])
            elif parameter.usual is None:
                raise TypeError(f"{name}: shape {shape!r} needs it: {parameter.help}")
            elif parameter.value == _mask_shapes.SHARE:
                given[name] = float(parameter.usual)
        return _shaped(sizes, shape, device, given, _count("seed", seed, 0, _mask_shapes.MOST_SEED))

    @staticmethod
    def shapes() -> dict[str, dict[str, str]]:
        """What `shaped` takes: of each shape "help", what a query sees, and its words, with what they mean and what is usual."""
        told = {}
        for name, shape in _mask_shapes.SHAPES.items():
            words = {of.name: f"{of.help} ({'needed' if of.usual is None else f'default: {of.usual}'})" for of in shape.parameters.values()}
            told[name] = {"help": _mask_shapes.in_python(shape.help), **words}
        return told

    @classmethod
    def from_scores(cls, scores: Tensor, top_k: int, block: int | tuple[int, int], *, shape: tuple[int, int] | None = None) -> BlockMask:
        """Each block of queries sees the top_k blocks of keys that have the highest scores: [block rows, block columns], [heads, ...] or
        [batch, heads, ...]. A model may choose its mask at every step, a list for each head of k or of q. The mask is dynamic: a GPU is
        waited for neither here nor by sa.attention, but where gradients are wanted or a new kind of problem is measured. Where there are
        fewer blocks than top_k, all. What must not be seen is left to causal, lengths and so on of sa.attention: a score of -inf is chosen
        where there are no others. NaN is refused on the CPU; on other devices, and in a function that is compiled or traced, nobody looks:
        there it counts as the highest score.

        shape: (rows, keys), where they are no multiples of the block.
        """
        if not isinstance(scores, Tensor) or not scores.is_floating_point():
            raise TypeError(f"scores: must be a tensor of floating point numbers, not {scores.dtype if isinstance(scores, Tensor) else type(scores).__name__}")
        if not 2 <= scores.dim() <= 4:
            raise ValueError(f"scores: must be [block rows, block columns], [heads, ...] or [batch, heads, ...]; the shape is {list(scores.shape)}")
        high, wide = _pair(block)
        down, across = scores.shape[-2:]
        rows, keys = _fitting(shape, down, across, high, wide)
        count = min(_count("top_k", top_k, 1), across)
        if scores.device.type == "cpu" and not (is_compiling() or transforming() or is_tracing() or is_recorded()):
            for first in scores.isnan().nonzero()[:1].tolist():
                raise ValueError(f"scores: the one at {first} is nan, neither high nor low; give -inf to blocks that come last")
        with torch.no_grad():
            columns = scores.topk(count, dim=-1, sorted=False).indices.sort(-1).values.to(torch.int32).reshape(-1)
        heads, batch = scores.shape[-3] if scores.dim() > 2 else 1, scores.shape[0] if scores.dim() == 4 else 1
        offsets = torch.arange(batch * heads * down + 1, dtype=torch.int32, device=scores.device) * count
        return cls(offsets, columns, (high, wide), (rows, keys), heads, batch, dynamic=True)

    @classmethod
    def from_flex(cls, mask: Any, *, heads: int | None = None, batch: int | None = None) -> BlockMask:
        """Of a torch.nn.attention.flex_attention.BlockMask: its full blocks as they are; of its partial ones, what its mask_mod says of each
        pair. mask_mod is evaluated as FlexAttention does, by torch.vmap. Blocks of more than 256 become smaller ones. A GPU is waited for.

        heads, batch: how many heads q has, and how many items. They count where the mask has lists for one head, or one item, and its
        mask_mod looks at that number: the result has lists for all of them then. None: the result holds for head 0 (or item 0) alone, and
        sa.attention refuses it beside more.

        ValueError where mask_mod cannot be evaluated, and where the lists are wrong.
        """
        _stay_outside("sa.BlockMask.from_flex")
        flex = _flex.read(mask)
        looks = _flex.looks_at(flex.mask_mod, flex.partial.device) if flex.partial.any() else (False, False)
        counts, alone = list(flex.partial.shape[:2]), [False, False]
        for i, (name, given) in enumerate((("batch", batch), ("heads", heads))):
            wanted = counts[i] if given is None else _count(name, given, 1)
            if counts[i] != 1 and wanted != counts[i]:
                raise ValueError(f"{name}: is {wanted}, but the mask has lists for {counts[i]}")
            if counts[i] == 1 and looks[i]:
                counts[i], alone[i] = wanted, given is None
        flex = flex._replace(partial=flex.partial.expand(*counts, -1, -1), full=flex.full.expand(*counts, -1, -1))
        tiled = _mask_shapes.evaluate(flex.sizes, flex.partial | flex.full, flex.full, lambda at: _flex.pairs(flex, at))
        made = cls._of_tiles(tiled, flex.sizes, counts[1], counts[0])
        made.alone = (alone[0], alone[1])
        return made

    @classmethod
    def stack(cls, masks: Sequence[BlockMask]) -> BlockMask:
        """One mask of a batch, from a mask of each item: all of the same shape, block and heads. It is dynamic where one of them is."""
        masks = list(masks)
        for mask in masks:
            if not isinstance(mask, BlockMask) or (mask.shape, mask.block, mask.heads, mask.batch) != (masks[0].shape, masks[0].block, masks[0].heads, 1):
                raise ValueError(f"masks: must be masks of one item each, of the same shape, block and heads; {mask!r} beside {masks[0]!r}")
        if not masks:
            raise ValueError("masks: there are none")
        before, ends = 0, [masks[0].offsets[:1]]
        for mask in masks:
            ends.append(mask.offsets[1:] + before)
            before += mask.nnzb
        made = cls(torch.cat(ends), torch.cat([mask.columns for mask in masks]), masks[0].block, masks[0].shape, masks[0].heads, len(masks))
        made.dynamic = any(mask.dynamic for mask in masks)
        made.alone = (False, any(mask.alone[1] for mask in masks))
        if any(mask.tile_bits is not None for mask in masks):
            tiles, numbers, bits = 0, [], []
            for mask in masks:
                if mask.tile_numbers is None or mask.tile_bits is None:
                    numbers.append(torch.full_like(mask.columns, -1, dtype=torch.int32))
                    continue
                numbers.append(torch.where(mask.tile_numbers >= 0, mask.tile_numbers + tiles, -1))
                bits.append(mask.tile_bits)
                tiles += mask.tile_bits.size(0)
            made._take_tiles(torch.cat(numbers), torch.cat(bits))
        return made

    def __or__(self, other: BlockMask) -> BlockMask:
        """What either lets a query see. Of heads and items one has as many as the other, or one. A GPU is waited for."""
        return self._combined(other, torch.logical_or) if isinstance(other, BlockMask) else NotImplemented

    def __and__(self, other: BlockMask) -> BlockMask:
        """What both let a query see; otherwise as the union."""
        return self._combined(other, torch.logical_and) if isinstance(other, BlockMask) else NotImplemented

    def _combined(self, other: BlockMask, how: Any) -> BlockMask:
        _stay_outside("a union or intersection of sa.BlockMask")
        if (self.shape, self.block) != (other.shape, other.block):
            raise ValueError(f"masks: only those of the same shape and block are combined, not {self!r} and {other!r}")
        sizes = _mask_shapes.Sizes(*self.shape, *self.block)
        try:
            batch, heads = torch.broadcast_shapes((self.batch, self.heads), (other.batch, other.heads))
        except RuntimeError:
            raise ValueError(f"masks: must have as many heads and items, or one: {self!r} and {other!r}") from None
        for mask in (self, other):
            mask.check_alone("masks", batch, heads)
        states = [mask._states().expand(batch, heads, -1, -1) for mask in (self, other)]
        some, whole = how(states[0] > -2, states[1] > -2), how(states[0] == -1, states[1] == -1)

        def seen(at: Tensor) -> Tensor:
            return how(*(mask._pairs_of(state[tuple(at.T)]) for mask, state in zip((self, other), states, strict=True)))  # type: ignore[no-any-return]

        made = self._of_tiles(_mask_shapes.evaluate(sizes, some, whole, seen), sizes, heads, batch)
        made.alone = (self.alone[0] or other.alone[0], self.alone[1] or other.alone[1])
        return made

    def check_alone(self, name: str, items: int, heads: int) -> None:
        """Refuses (ValueError) more items or heads than the mask holds for, where it was made by from_flex without their number. name: of
        the mask, for messages."""
        for alone, count, what, word in ((self.alone[0], items, "item", "batch"), (self.alone[1], heads, "head", "heads")):
            if alone and count > 1:
                why = f"the mask_mod of FlexAttention that it was made of looks at the number of the {what}"
                raise ValueError(f"{name}: holds for {what} 0 alone, and there are {count}: {why}; sa.BlockMask.from_flex(..., {word}={count}) makes all lists")

    def _states(self) -> Tensor:
        """[batch, heads, block rows, block columns]: -2 of a block that is not stored, -1 of one that is whole, or the number of its
        tile."""
        down, across = self.grid
        states = torch.full((self.offsets.numel() - 1, across), -2, dtype=torch.int32, device=self.device)
        states[self._rows(), self.columns.long()] = -1 if self.tile_numbers is None else self.tile_numbers
        return states.view(self.batch, self.heads, down, across)

    def _pairs_of(self, states: Tensor) -> Tensor:
        """[n, queries, keys] of blocks in these states."""
        seen = (states == -1)[:, None, None].expand(-1, *self.block)
        if self.tile_bits is None:
            return seen
        return seen | ((states >= 0)[:, None, None] & _mask_shapes.unpacked(self.tile_bits[states.clamp(min=0).long()], self.block[1]))

    def picture(self, columns: int = 32, *, head: int = 0, item: int = 0) -> str:
        """The blocks of one head of one item, in Braille: a dot where some block of its part is stored. columns: at most so many characters
        wide."""
        if not (0 <= head < self.heads and 0 <= item < self.batch):
            raise ValueError(f"head, item: there are {self.heads} heads and {self.batch} items, not {head} and {item}")
        return _mask_shapes.picture(self.to_dense()[item, head], _count("columns", columns, 1))

    def _rows(self) -> Tensor:
        """The block row of each block."""
        return torch.arange(self.offsets.numel() - 1, device=self.device).repeat_interleave(torch.diff(self.offsets).long(), output_size=self.nnzb)

    def to_pairs(self) -> Tensor:
        """A boolean tensor [batch, heads, queries, keys]."""
        (down, across), (high, wide) = self.grid, self.block
        made = torch.zeros(self.offsets.numel() - 1, across, high, wide, dtype=torch.bool, device=self.device)
        made[self._rows(), self.columns.long()] = True
        if self.tile_numbers is not None and self.tile_bits is not None:
            partial = self.tile_numbers >= 0
            bits = _mask_shapes.unpacked(self.tile_bits, wide)
            made[self._rows()[partial], self.columns[partial].long()] = bits[self.tile_numbers[partial].long()]
        made = made.view(self.batch, self.heads, down, across, high, wide).transpose(3, 4)
        return made.reshape(self.batch, self.heads, down * high, across * wide)[..., : self.shape[0], : self.shape[1]]

    def to_dense(self) -> Tensor:
        """A boolean tensor [batch, heads, block rows, block columns]: which blocks are stored."""
        down, across = self.grid
        rows = self._rows()
        made = torch.zeros(self.offsets.numel() - 1, across, dtype=torch.bool, device=self.device)
        made[rows, self.columns.long()] = True
        return made.view(self.batch, self.heads, down, across)

    @property
    def device(self) -> torch.device:
        return self.columns.device

    @property
    def nnzb(self) -> int:
        """Blocks that are seen, of all heads and items."""
        return self.columns.numel()  # torch.compile(dynamic=True) knows it of constants, but not their shape

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
        return _made([part.to(device) for part in _parts(self)], _facts(self))

    def __repr__(self) -> str:
        lists = f", {self.heads} heads, {self.batch} items" if self.heads * self.batch > 1 else ""
        tiles = "" if self.tile_bits is None else f", {self.tile_bits.shape[0]} tiles of bits"
        blocks = f"{self.block[0]}x{self.block[1]} blocks{lists}, {self.nnzb} seen, {100 * self.density:.4g} %{tiles}"
        return f"BlockMask({self.shape[0]} x {self.shape[1]}, {blocks}, {self.device})"

    def __reduce__(self) -> Any:
        tiles = (self.tile_numbers, self.tile_bits)
        made = BlockMask, (self.offsets, self.columns, self.block, self.shape, self.heads, self.batch, *tiles, self.dynamic)
        return (*made, self.alone) if any(self.alone) else made

    def __setstate__(self, alone: tuple[bool, bool]) -> None:
        self.alone = alone


def _fitting(shape: tuple[int, int] | None, down: int, across: int, high: int, wide: int) -> tuple[int, int]:
    """Queries and keys of so many blocks."""
    rows, keys = (down * high, across * wide) if shape is None else shape
    if (-(-rows // high), -(-keys // wide)) != (down, across):
        raise ValueError(f"shape: {rows} x {keys} in blocks of {high} x {wide} is no mask of {down} x {across} blocks")
    return rows, keys


def _sizes(queries: Any, keys: Any, block: Any) -> _mask_shapes.Sizes:
    return _mask_shapes.Sizes(_count("queries", queries, 0, MOST_KEYS), _count("keys", keys, 0, MOST_KEYS), *_pair(block))


def _word(parameter: _mask_shapes.Parameter, given: Any) -> Any:
    """A value of a parameter, checked."""
    name = parameter.name
    if parameter.value == _mask_shapes.FLAG:
        if type(given) is not bool:
            raise TypeError(f"{name}: must be True or False, not {given!r}")
        return given
    if parameter.value == _mask_shapes.SHARE:
        if not (isinstance(given, (int, float)) or hasattr(given, "__float__")):
            raise TypeError(f"{name}: must be a number, not {given!r}")
        if not parameter.least <= float(given) <= parameter.most:
            raise ValueError(f"{name}: must be from {parameter.least} to {parameter.most}, not {given!r}")
        return float(given)
    if parameter.value == _mask_shapes.COUNT:
        return _count(name, given, parameter.least, parameter.most)
    wanted = {_mask_shapes.CELLS: 3, _mask_shapes.RANGE: 2}.get(parameter.value)
    if not isinstance(given, (tuple, list)) or len(given) != (wanted or len(given)):
        raise ValueError(f"{name}: must be {wanted or 'a list of'} whole numbers, not {given!r}")
    return tuple(_count(name, number, parameter.least, parameter.most) for number in given)


def _known(value: Any) -> Any:
    """Plain numbers, also in tuples. What is compiled holds for these only."""
    if isinstance(value, tuple):
        return tuple(map(_known, value))
    return value if isinstance(value, (str, float, bool)) else operator.index(value)


def _shaped(sizes: _mask_shapes.Sizes, shape: str, device: Any, words: dict[str, Any], seed: int = 0) -> BlockMask:
    """From numbers alone. What is compiled or exported has the mask's tensors as constants. The library is called in this function, and in
    none that it calls: torch.compile, which looks at each, would warn of what it does not know.
    """
    rows, keys, high, wide = _known(tuple(sizes))
    of, given = (rows, keys, high, wide), tuple((name, _known(value)) for name, value in words.items())
    heads = _known(words.get("heads", 1))
    if is_compiling():
        return _made(_constant(device, of, heads, shape, _known(seed), given), ((high, wide), (rows, keys), heads, 1, False, (False, False)))
    made = _listed(of, heads, _C.make_mask(shape, *of, seed, dict(given), _mask_shapes.INTEGERS))
    return _made([part.to(_device(device), non_blocking=True) for part in _parts(made)], _facts(made))


def _listed(of: tuple[int, int, int, int], heads: int, arrays: tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, int]) -> BlockMask:
    offsets, columns, numbers, bits, tiles = arrays
    columns = torch.empty(0, dtype=torch.int32, device="cpu") if columns is None else columns
    bits = None if bits is None else bits.view(tiles, of[2], _mask_shapes.words_of(of[3]))
    return BlockMask(offsets, columns, of[2:], of[:2], heads, 1, numbers, bits)


def _device(given: Any) -> Any:
    return torch.get_default_device() if given is None else given


def _constant(device: Any, of: tuple[int, int, int, int], heads: int, shape: str, seed: int, words: tuple[tuple[str, Any], ...]) -> list[Tensor]:
    with _disable_current_modes():  # those of torch.export would see no numbers
        made = _listed(of, heads, _C.make_mask(shape, *of, seed, dict(words), _mask_shapes.INTEGERS))
        return [part.to(_device(device), non_blocking=True) for part in _parts(made)]


_constant._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as assume_constant_result, which imports all of Dynamo


def _stay_outside(what: str) -> None:
    """Of graphs: torch.compile leaves this to Python, or refuses it, in these words, with fullgraph=True."""
    if is_compiling():
        why = f"{what}: how many blocks it has depends on data; make the mask outside of what is compiled, and give it as an argument"
        torch._dynamo.graph_break(msg=why)
        if torch.compiler.is_exporting():
            raise ValueError(why)


def _count(name: str, number: Any, least: int, most: int | None = None) -> int:
    if type(number) is bool or not (isinstance(number, int) or hasattr(number, "__index__")):  # PyTorch 2.11 traces no hasattr of a symbol
        raise TypeError(f"{name}: must be a whole number, not {number!r}")
    if number < least:
        raise ValueError(f"{name}: must be {least} or more, not {number}")
    if most is not None and number > most:
        raise ValueError(f"{name}: must be {most} or less, not {number}")
    return operator.index(number) if isinstance(number, int) else number  # type: ignore[no-any-return]  # of torch.compile, too


def _parts(mask: BlockMask) -> list[Tensor]:
    tiles = [] if mask.tile_numbers is None or mask.tile_bits is None else [mask.tile_numbers, mask.tile_bits]
    return [mask.offsets, mask.columns, *tiles]


_PARTS = ("offsets", "columns", "tile_numbers", "tile_bits")


def _facts(mask: BlockMask) -> Any:
    return mask.block, mask.shape, mask.heads, mask.batch, mask.dynamic, mask.alone


torch.serialization.add_safe_globals([BlockMask])  # for torch.load(..., weights_only=True)


def _made(parts: Any, facts: Any) -> BlockMask:
    """Whatever stands for the tensors is taken: trees are also made of their places, names or shapes."""
    mask = BlockMask.__new__(BlockMask)
    mask.offsets, mask.columns, *tiles = parts
    mask.tile_numbers, mask.tile_bits = tiles or (None, None)
    mask.block, mask.shape, mask.heads, mask.batch, mask.dynamic, mask.alone = facts
    return mask


_pytree.register_pytree_node(
    BlockMask,
    lambda m: (_parts(m), _facts(m)),
    _made,  # type: ignore[arg-type]
    serialized_type_name="sparse_autotune.BlockMask",
    to_dumpable_context=plain_numbers,
    from_dumpable_context=tuples,
    flatten_with_keys_fn=lambda m: ([*zip(map(_pytree.GetAttrKey, _PARTS), _parts(m), strict=False)], _facts(m)),
)
