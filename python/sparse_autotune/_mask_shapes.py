"""The library's table of shapes, whose masks follow from numbers and are made by it, on the CPU.

What stays here is of tensors, which may lie on a GPU: blocks and tiles of a table of pairs, of FlexAttention's rules, of unions. So does
BlockMask.from_scores: its lists are made where the scores are, and nobody waits for them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _C

_MOST_PAIRS = 1 << 20  # that are looked at at once: caches hold them


class Sizes(NamedTuple):
    rows: int
    keys: int
    high: int
    wide: int

    @property
    def grid(self) -> tuple[int, int]:
        return -(-self.rows // self.high), -(-self.keys // self.wide)


class Tiled(NamedTuple):
    """[block rows, block columns] of the blocks that are stored, ascending; which of them have a tile, and their bits, packed."""

    stored: Tensor
    partial: Tensor
    bits: Tensor


def words_of(keys: int) -> int:
    """Of a line of a tile."""
    return (keys + 31) // 32


def packed(tiles: Tensor) -> Tensor:
    """[tiles, queries, keys], bits as booleans, to [tiles, queries, words]."""
    bits = torch.nn.functional.pad(tiles, (0, words_of(tiles.shape[-1]) * 32 - tiles.shape[-1])).unflatten(-1, (-1, 32))
    return (bits.int() << torch.arange(32, dtype=torch.int32, device=tiles.device)).sum(-1, dtype=torch.int32)  # the 32nd bit is the sign


def unpacked(bits: Tensor, keys: int) -> Tensor:
    return ((bits.unsqueeze(-1) >> torch.arange(32, device=bits.device)) & 1).bool().flatten(-2)[..., :keys]


def _no_tiles(sizes: Sizes, device: Any) -> Tensor:
    return torch.zeros(0, sizes.high, words_of(sizes.wide), dtype=torch.int32, device=device)


def evaluate(sizes: Sizes, some: Tensor, whole: Tensor, seen: Callable[[Tensor], Tensor]) -> Tiled:
    """some: which blocks may have pairs that are seen, whole: which of these certainly keep all; [..., block rows, block columns]. seen: of
    some of the others, whose places are the rows of a tensor, a boolean for each pair, [n, queries, keys].
    """
    down, across = sizes.grid
    stored, partial, bits = some.clone(), torch.zeros_like(some), []
    rows = torch.arange(down * sizes.high, device=some.device).view(down, sizes.high, 1) < sizes.rows
    keys = torch.arange(across * sizes.wide, device=some.device).view(across, 1, sizes.wide) < sizes.keys
    for at in (some & ~whole).nonzero().split(max(1, _MOST_PAIRS // (sizes.high * sizes.wide))):
        if len(at) == 0:  # split gives one part of nothing
            continue
        real = rows[at[:, -2]] & keys[at[:, -1]]
        found = seen(at) & real
        empty, full = ~found.flatten(1).any(1), (found == real).flatten(1).all(1)
        kept = ~(empty | full)
        stored[tuple(at[empty].T)] = False
        partial[tuple(at[kept].T)] = True
        bits.append(packed(found[kept]))  # of a large mask the booleans would fill the memory
    tiles = torch.cat(bits) if bits else _no_tiles(sizes, some.device)
    return Tiled(stored.reshape(-1, across), partial.reshape(-1, across), tiles)


def pairs_at(sizes: Sizes, at: Tensor) -> tuple[Tensor, Tensor]:
    """Queries [n, high, 1] and keys [n, 1, wide] of blocks at these places; for what lies beyond the edges the last ones."""
    queries = at[:, -2, None, None] * sizes.high + torch.arange(sizes.high, device=at.device)[:, None]
    keys = at[:, -1, None, None] * sizes.wide + torch.arange(sizes.wide, device=at.device)
    return queries.clamp(max=max(sizes.rows - 1, 0)), keys.clamp(max=max(sizes.keys - 1, 0))


class Parameter(NamedTuple):
    """What a shape may be told, as the library has it."""

    name: str
    value: int  # one of those below
    help: str
    usual: str | None  # the default in words; None: it must be given
    least: int
    most: int


COUNT, SHARE, FLAG, CELLS, RANGE, LIST = range(1, 7)  # spk_mask_value


class Shape(NamedTuple):
    help: str
    is_random: bool
    parameters: dict[str, Parameter]


SHAPES = {name: Shape(told, draws, {of[0]: Parameter(*of) for of in parameters}) for name, told, draws, parameters in _C.mask_shapes()}
MOST_KEYS = 1 << 40  # for a window without an end
MOST_SEED = (1 << 63) - 1


def in_python(help: str) -> str:
    """Words for the options that a text of the command line names: "the first `prefix` keys"."""
    return re.sub(r"--([a-z-]+)", lambda option: f"`{option[1].replace('-', '_')}`", help)


INTEGERS = functools.partial(torch.frombuffer, dtype=torch.int32)  # of a bytearray, always on the CPU


def picture(seen: Tensor, columns: int) -> str:
    """A boolean [down, across] in Braille: a dot where something of its part is seen."""
    down, across = seen.shape
    wide = min(2 * columns, across) + min(2 * columns, across) % 2
    high = max(4, -(-round(wide * down / max(across, 1)) // 4) * 4)
    dots = torch.zeros(high, wide, dtype=torch.bool, device="cpu")
    at = seen.cpu().nonzero()
    dots[at[:, 0] * high // max(down, 1), at[:, 1] * wide // max(across, 1)] = True
    weights = torch.tensor([[1, 8], [2, 16], [4, 32], [64, 128]], dtype=torch.int64, device="cpu")
    cells = (dots.view(high // 4, 4, wide // 2, 2) * weights[:, None, :]).sum((1, 3))
    lines = ["".join(chr(0x2800 + int(cell)) for cell in line) for line in cells]
    edge = "─" * (wide // 2)
    return "\n".join([f"┌{edge}┐", *(f"│{line}│" for line in lines), f"└{edge}┘"])
