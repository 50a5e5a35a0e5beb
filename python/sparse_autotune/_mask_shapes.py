"""Masks of common shapes: from a rule for pairs of a query and a key to stored blocks and tiles of bits, without a table of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Rule = Callable[[Tensor, Tensor], Tensor]  # queries (int64), keys (int32), which broadcast; which pairs are seen

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


def words(keys: int) -> int:
    """Of a line of a tile."""
    return (keys + 31) // 32


def packed(tiles: Tensor) -> Tensor:
    """[tiles, queries, keys], bits as booleans, to [tiles, queries, words]."""
    bits = torch.nn.functional.pad(tiles, (0, words(tiles.shape[-1]) * 32 - tiles.shape[-1])).unflatten(-1, (-1, 32))
    return (bits.int() << torch.arange(32, dtype=torch.int32, device=tiles.device)).sum(-1, dtype=torch.int32)  # the 32nd bit is the sign


def unpacked(bits: Tensor, keys: int) -> Tensor:
    return ((bits.unsqueeze(-1) >> torch.arange(32, device=bits.device)) & 1).bool().flatten(-2)[..., :keys]


def _no_tiles(sizes: Sizes, device: Any) -> Tensor:
    return torch.zeros(0, sizes.high, words(sizes.wide), dtype=torch.int32, device=device)


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


def by_rule(sizes: Sizes, some: Tensor, whole: Tensor, rule: Rule) -> Tiled:
    def seen(at: Tensor) -> Tensor:
        queries, keys = pairs_at(sizes, at)
        return rule(queries, keys.int())

    return evaluate(sizes, some, whole, seen)


def _numbers(count: int) -> Tensor:
    """Shapes are made on the CPU, whatever the default device is."""
    return torch.arange(count, dtype=torch.int64, device="cpu")


def _ends(of_each: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The least and the largest of each `size` neighbours."""
    missing = -of_each.shape[0] % size
    padded = torch.cat([of_each, of_each[-1:].expand(missing)]).view(-1, size)
    return padded.amin(1), padded.amax(1)


def intervals(sizes: Sizes, begin: Tensor, end: Tensor, first: int = 0) -> Tiled:
    """Query i sees the keys [begin[i], end[i]), and of the first ones those below end[i]."""
    if sizes.rows == 0 or sizes.keys == 0:
        nothing = torch.zeros(sizes.grid, dtype=torch.bool, device="cpu")
        return Tiled(nothing, nothing, _no_tiles(sizes, "cpu"))
    begin, end = begin.int(), end.int()
    begins, ends = _ends(begin, sizes.high), _ends(end, sizes.high)
    left = _numbers(sizes.grid[1]) * sizes.wide
    right = (left + sizes.wide).clamp(max=sizes.keys)
    reached = left < ends[1][:, None]
    some = reached & ((right > begins[0][:, None]) | (left < first))
    certain = (left >= begins[1][:, None]) | (right <= first)
    return by_rule(sizes, some, some & certain & (right <= ends[0][:, None]), lambda q, k: (k < end[q]) & ((k >= begin[q]) | (k < first)))


def band(sizes: Sizes, left: int, right: int, first: int, shift: int) -> Tiled:
    """As sa.attention's: key i + shift stands beside query i; left, right: 0 is no limit."""
    beside = _numbers(sizes.rows) + shift
    end = (beside + right if right else torch.full_like(beside, sizes.keys)).clamp(0, sizes.keys)
    begin = (beside - left + 1 if left else torch.zeros_like(beside)).clamp(min=0)
    return intervals(sizes, begin, end, first)


def documents(sizes: Sizes, lengths: Iterable[int], causal: bool) -> Tiled:
    counts = torch.tensor(list(lengths), dtype=torch.int64, device="cpu")
    ends = counts.cumsum(0)
    begin, end = (ends - counts).repeat_interleave(counts), ends.repeat_interleave(counts)
    return intervals(sizes, begin, _numbers(sizes.rows) + 1 if causal else end)


def prefix(sizes: Sizes, count: int, shift: int) -> Tiled:
    end = (_numbers(sizes.rows) + shift + 1).clamp(count, sizes.keys)
    return intervals(sizes, torch.zeros_like(end), end)


def strided(sizes: Sizes, stride: int, local: int, causal: bool, shift: int) -> Tiled:
    """The `local` nearest keys (on each side, where it is not causal), and the last of each `stride` keys."""

    def rule(q: Tensor, k: Tensor) -> Tensor:
        beside = (q + shift).int()
        near = (k > beside - local) & (k < beside + local)
        found = near | (k % stride == stride - 1)
        return found & (k <= beside) if causal else found

    if sizes.rows == 0 or sizes.keys == 0:
        return intervals(sizes, _numbers(sizes.rows), _numbers(sizes.rows))
    first, last = (end + shift for end in _ends(_numbers(sizes.rows), sizes.high))
    left = _numbers(sizes.grid[1]) * sizes.wide
    right = (left + sizes.wide).clamp(max=sizes.keys)
    has_last = right // stride > left // stride
    some = has_last | ((right > first[:, None] - local + 1) & (left < last[:, None] + local))
    certain = (left > last[:, None] - local) & (right <= first[:, None] + local)
    if causal:
        some, certain = some & (left <= last[:, None]), certain & (right <= first[:, None] + 1)
    return by_rule(sizes, some, some & certain, rule)


def _reach(at: Tensor, window: int, size: int) -> tuple[Tensor, Tensor]:
    """The places that one at `at` sees: `window` of them about it, shifted inwards at the ends."""
    begin = (at - window // 2).clamp(max=size - window).clamp(min=0)
    return begin, begin + window


def video(sizes: Sizes, size: tuple[int, int, int], window: tuple[int, int, int]) -> Tiled:
    """Tokens of frames of lines, in this order."""
    _, height, width = size

    def place(token: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return token // (height * width), token // width % height, token % width

    def rule(q: Tensor, k: Tensor) -> Tensor:
        seen = torch.ones((), dtype=torch.bool, device="cpu")
        for at, to, reach, most in zip(place(q.int()), place(k), window, size, strict=True):
            begin, end = _reach(at, reach, most)
            seen = seen & (to >= begin) & (to < end)
        return seen

    def spans(block: int) -> list[tuple[Tensor, Tensor]]:
        """The first and the last frame, line and column of each block; all of them, where it goes beyond a frame, or a line."""
        first = _numbers(-(-sizes.rows // block)) * block
        ends = list(zip(place(first), place((first + block - 1).clamp(max=sizes.rows - 1)), strict=True))
        for i in (1, 2):
            same = torch.stack([a == b for a, b in ends[:i]]).all(0)
            a, b = ends[i]
            ends[i] = torch.where(same, a, 0), torch.where(same, b, size[i] - 1)
        return ends

    some = torch.ones(sizes.grid, dtype=torch.bool, device="cpu")
    for (first, last), (left, right), reach, most in zip(spans(sizes.high), spans(sizes.wide), window, size, strict=True):
        some &= (right >= _reach(first, reach, most)[0][:, None]) & (left < _reach(last, reach, most)[1][:, None])
    return by_rule(sizes, some, torch.zeros_like(some), rule)


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
