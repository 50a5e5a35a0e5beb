"""Pages of a cache that do not lie one behind the other, in the words of the operators, to which each begins where the one before it ends."""

from __future__ import annotations

import re

from torch import Tensor


def _step(pages: Tensor, row: int) -> int:
    """How many times its own rows a page begins behind the one before it; 0: no whole number."""
    rows, strides = pages.shape[row], pages.stride()
    if pages.shape[0] <= 1 or rows <= 1 or pages.numel() == 0:
        return 1
    unit = rows * strides[row]
    return strides[0] // unit if unit > 0 and strides[0] % unit == 0 else 0


def _finer(pages: Tensor, row: int, step: int) -> Tensor:
    """The same memory as more pages, of which every step-th is one of those given. The others are not named by a table."""
    strides = (pages.shape[row] * pages.stride(row), *pages.stride()[1:])
    return pages.as_strided(((pages.shape[0] - 1) * step + 1, *pages.shape[1:]), strides)


def joined(k: Tensor, v: Tensor, page_table: Tensor, row: int) -> tuple[Tensor, Tensor, Tensor]:
    """k, v and the table as the operators take them; as they are where that is so already, or cannot be. row: the dimension of a page's rows.

    K and V in one tensor [pages, 2, rows, heads, depth] are two pages each. [pages, heads, rows, depth] are as many as there are heads, each
    of which begins at its own place in them.
    """
    if k.dim() != 4 or v.dim() != 4 or k.shape[:3] != v.shape[:3]:
        return k, v, page_table
    step = _step(k, row)
    if step <= 1 or step != _step(v, row):
        return k, v, page_table
    if page_table.device.type == "cpu":  # there wrong numbers are refused, and must not become right ones
        page_table = page_table.clamp(-1, k.shape[0])
    return _finer(k, row, step), _finer(v, row, step), page_table * step


def named(error: RuntimeError, page_table: Tensor, pages: int) -> RuntimeError:
    """A refusal of a number of a page, with the number that the caller gave."""
    found = re.search(r"page_table\[(\d+)\] = -?\d+: the limits are 0 and pages - 1 = \d+", str(error))
    if found is None or type(error) is not RuntimeError:
        return error
    given = int(page_table.reshape(-1)[int(found[1])])
    return RuntimeError(str(error).replace(found[0], f"page_table[{found[1]}] = {given}: the limits are 0 and pages - 1 = {pages - 1}"))
