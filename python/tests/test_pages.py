"""Caches of pages as others keep them: whatever the order of pages, heads, rows and K and V in memory, nothing is copied, and the result is that of
the keys one behind the other."""

import os
import random

import pytest
import torch
from conftest import DEVICES

import sparse_autotune as sa

SEED = int.from_bytes(os.urandom(4), "little")
ORDERS = {  # of the memory; and the places of pages, heads, rows, depth in it, where K and V are two of the dimension named "two"
    "pages rows heads": ("pages", "rows", "heads", "depth"),
    "pages heads rows": ("pages", "heads", "rows", "depth"),
    "pages two rows heads": ("pages", "two", "rows", "heads", "depth"),
    "pages two heads rows": ("pages", "two", "heads", "rows", "depth"),
    "two pages rows heads": ("two", "pages", "rows", "heads", "depth"),
    "two pages heads rows": ("two", "pages", "heads", "rows", "depth"),
    "layers pages two heads rows": ("layers", "pages", "two", "heads", "rows", "depth"),
    "pages layers two rows heads": ("pages", "layers", "two", "rows", "heads", "depth"),
}


def cache(order, sizes, device):
    """K and V, [pages, heads, rows, depth], in that order of memory."""
    names = ORDERS[order]
    if "two" not in names:
        return [
            torch.randn(*(sizes[name] for name in names), device=device).permute([names.index(n) for n in ("pages", "heads", "rows", "depth")]) for _ in "kv"
        ]
    whole = torch.randn(*(sizes.get(name, 3 if name == "layers" else 2) for name in names), device=device)
    at = lambda which: tuple(which if n == "two" else 1 if n == "layers" else slice(None) for n in names)  # noqa: E731
    rest = [n for n in names if n not in ("two", "layers")]
    return [whole[at(which)].permute([rest.index(n) for n in ("pages", "heads", "rows", "depth")]) for which in (0, 1)]


def draw(seed):
    rng = random.Random(seed)
    heads = rng.choice([1, 2, 4])
    return dict(pages=rng.randint(1, 12), heads=heads, rows=rng.choice([1, 2, 8, 16]), depth=rng.choice([8, 16, 24])), heads * rng.choice([1, 2]), rng


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("turn", range(4))
def test_orders(turn, order, layout, device):
    seed = SEED + turn
    torch.manual_seed(seed)
    sizes, heads, rng = draw(seed)
    k, v = cache(order, sizes, device)
    items, each = rng.randint(1, 3), rng.randint(1, 4)
    table = torch.randint(sizes["pages"], (items, each), dtype=torch.int32, device=device)
    lengths = torch.randint(1, each * sizes["rows"] + 1, (items,), dtype=torch.int32, device=device)
    q = torch.randn(items, heads, 3, sizes["depth"], device=device)
    keys, values = (t[table.long()].transpose(1, 2).reshape(items, sizes["heads"], -1, sizes["depth"]) for t in (k, v))
    wanted = sa.attention(q, keys.contiguous(), values.contiguous(), lengths=lengths)
    given = (q, k, v) if layout == "bhsd" else (t.transpose(1, 2) for t in (q, k, v))
    kept = table.clone()
    found = sa.attention(*given, page_table=table, lengths=lengths, layout=layout)
    found = found if layout == "bhsd" else found.transpose(1, 2)
    torch.testing.assert_close(found, wanted, msg=f"seed {seed}, {order}, {layout}: {sizes}, table {table.tolist()}, lengths {lengths.tolist()}")
    assert torch.equal(table, kept)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("wrong", [5, 6, -1, -7, 2**30, 2**31 - 1, -(2**31)])
def test_wrong_numbers_are_named_as_they_were_given(order, wrong):
    k, v = cache(order, dict(pages=5, heads=2, rows=4, depth=8), "cpu")
    table = torch.tensor([[0, 4], [wrong, 2]], dtype=torch.int32)
    q = torch.randn(2, 2, 1, 8)
    with pytest.raises(RuntimeError, match=rf"page_table\[2\] = {wrong}: the limits are 0 and pages - 1 = 4$"):
        sa.attention(q, k, v, page_table=table)
    lengths = torch.tensor([8, 4], dtype=torch.int32)
    table = torch.tensor([[0, 4], [2, wrong]], dtype=torch.int32)  # behind the length: not looked at
    assert sa.attention(q, k, v, page_table=table, lengths=lengths).isfinite().all()


def test_compiled():
    k, v = cache("pages two heads rows", dict(pages=5, heads=2, rows=4, depth=8), "cpu")
    table, q = torch.tensor([[0, 4], [3, 2]], dtype=torch.int32), torch.randn(2, 2, 1, 8)
    call = torch.compile(lambda q, k, v, table: sa.attention(q, k, v, page_table=table), backend="aot_eager", fullgraph=True)
    assert torch.equal(call(q, k, v, table), sa.attention(q, k, v, page_table=table))


def test_orders_that_cannot_be_read_in_place():
    whole = torch.randn(5, 9, 2, 8)
    k, v = whole[:, :4].transpose(1, 2), whole[:, 5:].transpose(1, 2)  # a page begins two and a quarter times its rows behind the other
    table = torch.zeros(1, 2, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="k: pages are read where they lie"):
        sa.attention(torch.randn(1, 2, 1, 8), k, v, page_table=table)
    with pytest.raises(RuntimeError, match="pages are read where they lie"):  # not the same in k and v
        sa.attention(torch.randn(1, 2, 1, 8), k.contiguous(), v.transpose(1, 2).contiguous().transpose(1, 2), page_table=table)
