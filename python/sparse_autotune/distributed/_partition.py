"""Which rank has which block rows (or block columns) of a weight: equally many of them, and as equally many blocks as that allows."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

_MOST_SWAPS = 1000


@dataclasses.dataclass(frozen=True)
class Deal:
    """Units are blocks of features: block rows of a weight whose outputs are dealt, block columns of one whose inputs are.

    units: of each rank, in increasing order. width: features of a unit. units_per_rank: padding included.
    """

    units: tuple[tuple[int, ...], ...]
    width: int

    @property
    def ranks(self) -> int:
        return len(self.units)

    @property
    def units_per_rank(self) -> int:
        return max(map(len, self.units))

    @property
    def features(self) -> int:
        """Of a rank, padding included."""
        return self.units_per_rank * self.width

    def features_of(self, rank: int) -> Tensor:
        """Which of the whole a rank has, in its order, without padding."""
        units = torch.tensor(self.units[rank], dtype=torch.int64, device="cpu")
        return (units[:, None] * self.width + torch.arange(self.width, device="cpu")).flatten()

    def places(self) -> tuple[Tensor, Tensor]:
        """The rank of each unit, and its place there."""
        count = sum(map(len, self.units))
        owner, place = (torch.empty(count, dtype=torch.int64, device="cpu") for _ in range(2))
        for rank, mine in enumerate(self.units):
            owner[list(mine)] = rank
            place[list(mine)] = torch.arange(len(mine), device="cpu")
        return owner, place

    def order(self) -> Tensor:
        """Where each feature of the whole lies when what the ranks have is put one behind the other."""
        owner, place = self.places()
        first = (owner * self.units_per_rank + place) * self.width
        return (first[:, None] + torch.arange(self.width, device="cpu")).flatten()

    def is_plain(self) -> bool:
        """Whether that is the order of the whole."""
        return [unit for mine in self.units for unit in mine] == list(range(self.ranks * self.units_per_rank))


def _halves(counts: Tensor, heavy: list[int], light: list[int], units_per_rank: int, gap: int) -> tuple[int, int | None] | None:
    """What to swap of two ranks (or to hand over, where the other has room), so that the larger load becomes as small as possible; None: nothing helps."""
    best, found = gap, None
    for mine in heavy:
        for other in [*light, None] if len(light) < units_per_rank else light:
            moved = int(counts[mine]) - (0 if other is None else int(counts[other]))
            left = max(gap - moved, moved)
            if 0 < moved < gap and left < best:
                best, found = left, (mine, other)
    return found


def deal(counts: Tensor, ranks: int, width: int) -> Deal:
    """counts: blocks of each unit. The same for the same counts, everywhere.

    The heaviest unit goes to the rank with the fewest blocks that has room; then units are swapped between the heaviest rank and the lightest that
    helps, as long as the heaviest becomes lighter.
    """
    counts = counts.to("cpu", torch.int64)
    units_per_rank = -(-counts.shape[0] // ranks)
    units: list[list[int]] = [[] for _ in range(ranks)]
    loads = [0] * ranks
    for unit in torch.argsort(counts, descending=True, stable=True).tolist():
        rank = min((r for r in range(ranks) if len(units[r]) < units_per_rank), key=lambda r: (loads[r], len(units[r]), r))
        units[rank].append(unit)
        loads[rank] += int(counts[unit])
    for _ in range(_MOST_SWAPS):
        heavy = loads.index(max(loads))
        for light in sorted(range(ranks), key=lambda r: (loads[r], r)):
            found = _halves(counts, units[heavy], units[light], units_per_rank, loads[heavy] - loads[light])
            if found is not None:
                break
        else:
            break
        mine, other = found
        moved = int(counts[mine]) - (0 if other is None else int(counts[other]))
        units[heavy].remove(mine)
        units[light].append(mine)
        if other is not None:
            units[light].remove(other)
            units[heavy].append(other)
        loads[heavy] -= moved
        loads[light] += moved
    return Deal(tuple(tuple(sorted(mine)) for mine in units), width)


@dataclasses.dataclass(frozen=True)
class Part:
    """What one rank stores of a weight: the numbers of its blocks in the whole, in the order in which it has them, and their indices there."""

    blocks: Tensor
    row_offsets: Tensor
    col_indices: Tensor


def part_of(row_offsets: Tensor, col_indices: Tensor, dim: int, given: Deal, rank: int) -> Part:
    """dim: 0 where block rows are dealt, 1 where block columns are. Indices on the CPU."""
    offsets, columns = row_offsets.to(torch.int64), col_indices.to(torch.int64)
    rows = torch.repeat_interleave(torch.arange(offsets.shape[0] - 1, device="cpu"), offsets.diff())
    owner, place = given.places()
    unit = rows if dim == 0 else columns
    mine = (owner[unit] == rank).nonzero()[:, 0]
    rows, columns = rows[mine], columns[mine]
    if dim == 0:
        rows, height = place[rows], given.units_per_rank
    else:
        columns, height = place[columns], offsets.shape[0] - 1
    order = torch.argsort(rows * (int(columns.max()) + 1 if len(columns) else 1) + columns)
    local = torch.zeros(height + 1, dtype=torch.int32, device="cpu")
    local[1:] = torch.cumsum(torch.bincount(rows, minlength=height), 0)
    return Part(mine[order], local, columns[order].to(torch.int32))
