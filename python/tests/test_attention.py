"""Attention: beside PyTorch's in float64 with the mask written out, through every tracer, and refused in words."""

import io
import math
import os
import pickle
import random

import pytest
import torch
from conftest import DTYPES, close, random_bsr
from torch.nn.functional import scaled_dot_product_attention as sdpa

import sparse_autotune as sa

F64 = torch.float64
ops = torch.ops.sparse_autotune
DIAGONALS = ["top_left", "bottom_right"]
SEED = int.from_bytes(os.urandom(4), "little")


def band(queries, keys, causal=None, window=None, sinks=0, diagonal=None):
    """[queries, keys]: what the words of sa.attention let a query see."""
    diagonal = causal if isinstance(causal, str) else diagonal
    left, right = window if isinstance(window, tuple) else (window, None if causal else window)
    key = torch.arange(keys)
    beside = torch.arange(queries).unsqueeze(1) + (keys - queries if diagonal == "bottom_right" else 0)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= key <= beside
    if right:
        seen &= key < beside + right
    if left:
        seen &= (key > beside - left) | (key < sinks)
    return seen


def written_out(mask, heads):
    """[batch, heads, queries, keys] of a BlockMask."""
    blocks = mask.to_dense().repeat_interleave(mask.block[0], 2).repeat_interleave(mask.block[1], 3)[..., : mask.shape[0], : mask.shape[1]]
    return blocks.repeat_interleave(heads // mask.heads, 1)


def formula(q, k, v, seen=None, scale=None, softcap=0.0):
    """In float64: what is wanted, and LSE."""
    share = q.shape[1] // k.shape[1]
    q, k, v = q.double().cpu(), k.double().cpu().repeat_interleave(share, 1), v.double().cpu().repeat_interleave(share, 1)
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool) if seen is None else seen.cpu()
    scores = q @ k.mT * ((q.shape[-1] or 1) ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
        made = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v
    else:
        made = sdpa(q, k, v, attn_mask=seen, scale=scale)
    nothing = ~seen.any(-1, keepdim=True) if seen.shape[-1] else torch.ones(*seen.shape[:-1], 1, dtype=torch.bool)
    return made.masked_fill(nothing, 0), torch.logsumexp(scores.masked_fill(~seen, -math.inf), -1)


def agrees(q, k, v, seen=None, layout="bhsd", plain=None, **words):
    """sa.attention beside the formula, of other k and v where they are `plain`; returns what it gave."""
    turned = [t.transpose(1, 2) for t in (q, k, v)] if layout == "bshd" else [q, k, v]
    o, lse = sa.attention(*turned, layout=layout, return_lse=True, **words)
    alone = sa.attention(*turned, layout=layout, **words)
    assert torch.equal(o, alone) and o.is_contiguous() and lse.is_contiguous()
    assert o.dtype is q.dtype and o.device == q.device and lse.dtype is (F64 if q.dtype is F64 else torch.float32)
    want, want_lse = formula(q, *(plain or (k, v)), seen, words.get("scale"), words.get("softcap", 0.0))
    close((o.transpose(1, 2) if layout == "bshd" else o).cpu(), want)
    lse = lse.cpu()
    assert torch.equal(lse == -math.inf, want_lse == -math.inf)
    close(lse.masked_fill(lse == -math.inf, 0), want_lse.masked_fill(want_lse == -math.inf, 0))
    return o


def drawn(*sizes, dtype=torch.float32, device="cpu"):
    return torch.randn(*sizes, device=device).to(dtype)


def operands(batch=2, heads=4, heads_kv=None, queries=19, keys=27, depth=16, depth_v=None, dtype=torch.float32, device="cpu"):
    heads_kv, depth_v = heads_kv or heads, depth_v or depth
    sizes = (batch, heads, queries, depth), (batch, heads_kv, keys, depth), (batch, heads_kv, keys, depth_v)
    return [drawn(*size, dtype=dtype, device=device) for size in sizes]


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("queries,keys,depth,depth_v", [(1, 1, 1, 1), (7, 33, 8, 24), (64, 65, 64, 64), (129, 100, 40, 32), (1, 300, 128, 128)])
def test_shapes(queries, keys, depth, depth_v, layout, dtype, device):
    agrees(*operands(queries=queries, keys=keys, depth=depth, depth_v=depth_v, dtype=dtype, device=device), layout=layout)


@pytest.mark.parametrize("batch,heads,queries,keys,depth", [(0, 2, 3, 4, 8), (2, 2, 0, 4, 8), (2, 2, 3, 0, 8), (1, 0, 3, 4, 8)])
def test_empty(batch, heads, queries, keys, depth, device):
    q = drawn(batch, heads, queries, depth, device=device)
    k = drawn(batch, heads, keys, depth, device=device)
    o, lse = sa.attention(q, k, k, return_lse=True)
    assert o.shape == q.shape and (o == 0).all() and lse.shape == q.shape[:3] and (lse == -math.inf).all()


def test_without_depth(device):
    q, k, v = drawn(1, 2, 3, 0, device=device), drawn(1, 2, 5, 0, device=device), drawn(1, 2, 5, 4, device=device)
    close(sa.attention(q, k, v), v.mean(2, keepdim=True).expand(1, 2, 3, 4))
    assert sa.attention(drawn(1, 2, 3, 4, device=device), drawn(1, 2, 5, 4, device=device), q[:, :, :1].expand(1, 2, 5, 0)).shape == (1, 2, 3, 0)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("heads,heads_kv", [(1, 1), (4, 2), (6, 1), (6, 3)])
def test_shared_heads(heads, heads_kv, layout, dtype, device):
    agrees(
        *operands(heads=heads, heads_kv=heads_kv, depth_v=8, dtype=dtype, device=device),
        layout=layout,
        causal="bottom_right",
        seen=band(19, 27, "bottom_right"),
    )


def test_scale_and_softcap(dtype, device):
    q, k, v = operands(dtype=dtype, device=device)
    agrees(q, k, v, scale=0.5)
    agrees(q, k, v, scale=0.0)
    agrees(q, k, v, scale=1, softcap=2.0)
    agrees(q, k, v, softcap=0.5)


def strides_of(t):
    """The same numbers: by rows, rows of heads, rows that lie apart, elements that do, another order of all."""
    batch, heads, rows, depth = t.shape
    apart = t.new_full((batch, heads, rows + 1, depth + 8), torch.nan)
    apart[:, :, :rows, :depth] = t
    scattered = t.new_full((batch, heads, rows, 2 * depth), torch.nan)
    scattered[..., ::2] = t
    return {
        "tight": t.contiguous(),
        "rows of heads": t.transpose(1, 2).contiguous().transpose(1, 2),
        "apart": apart[:, :, :rows, :depth],
        "scattered": scattered[..., ::2],
        "columns": t.mT.contiguous().mT,
        "items inside": t.permute(2, 1, 0, 3).contiguous().permute(2, 1, 0, 3),
    }


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("kind", ["tight", "rows of heads", "apart", "scattered", "columns", "items inside"])
def test_strides(kind, layout, dtype, device):
    q, k, v = operands(heads_kv=2, depth_v=24, dtype=dtype, device=device)
    want = sa.attention(q, k, v)
    given = [strides_of(t)[kind] for t in (q, k, v)]
    made = agrees(*given, layout=layout)
    torch.testing.assert_close(made.transpose(1, 2) if layout == "bshd" else made, want)
    mixed = agrees(given[0], k, strides_of(v)["rows of heads"], layout=layout)
    torch.testing.assert_close(mixed.transpose(1, 2) if layout == "bshd" else mixed, want)


def test_one_array_for_all(device):
    q, k, v = operands(batch=3, device=device)
    agrees(q[:1].expand(3, -1, -1, -1), k[:1].expand(3, -1, -1, -1), v)
    agrees(q, k[:, :1].expand(-1, 4, -1, -1), v[:, :1].expand(-1, 4, -1, -1))
    agrees(q, k[:, :, :1].expand(-1, -1, 27, -1), v)
    packed = drawn(2, 20, 3, 4, 16, device=device)  # one projection for all three
    agrees(*packed.permute(2, 0, 3, 1, 4).unbind(0), causal=True, seen=band(20, 20, True))


def test_same_bits_each_time(device):
    q, k, v = operands(queries=65, keys=700, device=device)
    assert all(torch.equal(sa.attention(q, k, v), sa.attention(q, k, v)) for _ in range(5))


# ------------------------------------------------------------------------------------------------ bands


@pytest.mark.parametrize("queries,keys", [(19, 27), (27, 19), (20, 20), (1, 40)])
@pytest.mark.parametrize("diagonal", DIAGONALS)
def test_bands(queries, keys, diagonal, dtype, device):
    q, k, v = operands(heads_kv=2, queries=queries, keys=keys, dtype=dtype, device=device)
    for words in (
        {"causal": diagonal},
        {"causal": diagonal, "window": 5},
        {"causal": diagonal, "window": (5, None), "sinks": 3},
        {"causal": diagonal, "window": (1, 0)},
        {"causal": False, "window": 4, "diagonal": diagonal},
        {"window": (4, 3), "diagonal": diagonal},
        {"window": (None, 2), "diagonal": diagonal},
        {"window": (6, 0), "sinks": 2, "diagonal": diagonal},
        {"window": 1, "sinks": 1, "diagonal": diagonal},
        {"window": 0, "diagonal": diagonal},
    ):
        agrees(q, k, v, seen=band(queries, keys, **words), **words)


def test_as_many_keys_as_queries_need_no_diagonal(device):
    q, k, v = operands(queries=33, keys=33, device=device)
    causal = agrees(q, k, v, causal=True, seen=band(33, 33, True))
    assert torch.equal(causal, sa.attention(q, k, v, causal="bottom_right"))
    torch.testing.assert_close(causal, sdpa(q, k, v, is_causal=True))
    agrees(q, k, v, window=(3, 2), seen=band(33, 33, window=(3, 2)))
    assert torch.equal(sa.attention(q, k, v, causal=False), sa.attention(q, k, v))


@pytest.mark.parametrize("far", [27, 28, 1000, 2**40, 2**62, 10**30])
def test_windows_beyond_the_keys(far, device):
    q, k, v = operands(device=device)
    for words in ({"window": far}, {"window": (far, 3)}, {"window": (2, far)}, {"window": (2, 2), "sinks": far}):
        cut = {name: (tuple(min(n, 100) for n in w) if isinstance(w, tuple) else min(w, 100)) for name, w in words.items()}
        agrees(q, k, v, seen=band(19, 27, diagonal="bottom_right", **cut), diagonal="bottom_right", **words)


def test_what_is_hidden_has_no_influence(device):
    q, k, v = operands(queries=9, keys=40, device=device)
    want = sa.attention(q[:, :, :, :], k[:, :, 8:16].contiguous(), v[:, :, 8:16].contiguous())
    mask = sa.BlockMask.from_dense(torch.tensor([[False, True, False, False, False]] * 2), 8, shape=(9, 40)).to(device)
    for t in (k, v):
        t[:, :, :8], t[:, :, 16:] = torch.nan, torch.inf
    close(sa.attention(q, k, v, mask=mask), want.double())


def test_rows_without_keys(dtype, device):
    q, k, v = operands(queries=12, keys=5, dtype=dtype, device=device)
    v[:, :, 0] = torch.nan  # the first query that sees one sees the first key
    o, lse = sa.attention(q, k, v, causal="bottom_right", return_lse=True)
    assert (o[:, :, :7] == 0).all() and (lse[:, :, :7] == -math.inf).all()
    assert torch.isnan(o[:, :, 7:]).all() and torch.isfinite(lse[:, :, 7:]).all()
    nothing = sa.BlockMask.from_dense(torch.zeros(3, 2, dtype=torch.bool), 4, shape=(12, 5)).to(device)
    o, lse = sa.attention(q, k, v, mask=nothing, return_lse=True)
    assert (o == 0).all() and (lse == -math.inf).all()


# ------------------------------------------------------------------------------------------------ masks of blocks


def some_mask(block, queries, keys, heads=1, batch=1, device="cpu"):
    high, wide = (block, block) if isinstance(block, int) else block
    dense = torch.rand(batch, heads, -(-queries // high), -(-keys // wide)) < 0.5
    dense[:, :, 1:2] = False
    return sa.BlockMask.from_dense(dense, block, shape=(queries, keys)).to(device)


def listed(columns):
    """Of these blocks in the first list."""
    return sa.BlockMask(int32([0, len(columns), len(columns), len(columns)]), int32(columns), 8, (19, 27))


def bare(columns):
    mask = listed(columns)
    return sa.BSR.from_pattern(mask.offsets, mask.columns, mask.block, mask.shape)


@pytest.mark.parametrize("block", [8, (5, 7), (1, 3), (16, 2), (256, 256)], ids=str)
@pytest.mark.parametrize("heads,batch", [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2)])
def test_masks(block, heads, batch, device):
    for dtype in DTYPES:
        q, k, v = operands(heads_kv=2, dtype=dtype, device=device)
        mask = some_mask(block, 19, 27, heads, batch, device)
        seen = written_out(mask, 4).cpu()
        agrees(q, k, v, mask=mask, seen=seen)
        agrees(q, k, v, layout="bshd", mask=mask, causal="bottom_right", window=9, sinks=2, seen=seen & band(19, 27, "bottom_right", 9, 2))


def test_masks_of_sparse_matrices(device):
    q, k, v = operands(queries=20, keys=24, device=device)
    matrix = random_bsr(20, 24, (4, 8), device=device)
    seen = matrix.with_values(torch.ones_like(matrix.values)).to_dense() != 0
    want = agrees(q, k, v, mask=matrix, seen=seen)
    assert torch.equal(sa.attention(q, k, v, mask=matrix.to_torch()), want)
    assert torch.equal(sa.attention(q, k, v, mask=sa.BlockMask(matrix.row_offsets, matrix.col_indices, (4, 8), (20, 24))), want)
    wide = sa.BlockMask(matrix.row_offsets.long(), matrix.col_indices.long(), (4, 8), (20, 24))
    assert torch.equal(sa.attention(q, k, v, mask=wide), want)
    if device == "cpu":
        assert torch.equal(sa.attention(q, k, v, mask=matrix.to_scipy()), want)


def some_band(draw, queries, keys):
    """Words of sa.attention."""
    diagonal = draw.choice(DIAGONALS if queries != keys else [None, *DIAGONALS])
    words = {"window": draw.choice([None, draw.randint(0, 50), (draw.randint(0, 50), None)])}
    if draw.random() < 0.5:
        words["causal"] = diagonal or True
    else:
        words["diagonal"] = diagonal
        words["window"] = draw.choice([words["window"], (draw.randint(0, 50), draw.randint(0, 50))])
    left = words["window"][0] if isinstance(words["window"], tuple) else words["window"]
    return words | ({"sinks": draw.randint(0, 30)} if left else {})


@pytest.mark.parametrize("turn", range(20))
def test_at_random(turn, dtype, device):
    print("seed", SEED)
    draw = random.Random(SEED + turn)
    torch.manual_seed(SEED + turn)
    batch, heads_kv, share, queries, keys = draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 3), draw.randint(1, 90), draw.randint(1, 90)
    depth, depth_v = 8 * draw.randint(1, 9), 8 * draw.randint(1, 9)
    q, k, v = operands(batch, heads_kv * share, heads_kv, queries, keys, depth, depth_v, dtype, device)
    q, k, v = (draw.choice(list(strides_of(t).values())) for t in (q, k, v))
    words = some_band(draw, queries, keys)
    seen = band(queries, keys, **words)
    if draw.random() < 0.6:
        block = draw.randint(1, 40), draw.randint(1, 40)
        mask = some_mask(block, queries, keys, draw.choice([1, heads_kv, heads_kv * share]), draw.choice([1, batch]), device)
        words["mask"], seen = mask, seen & written_out(mask, heads_kv * share).cpu()
    agrees(q, k, v, seen=seen, layout=draw.choice(["bhsd", "bshd"]), softcap=draw.choice([0.0, 2.0]), **words)


def test_a_mask_that_changes(device):
    q, k, v = operands(queries=16, keys=16, device=device)
    mask = sa.BlockMask(torch.arange(3, dtype=torch.int32, device=device), torch.tensor([0, 1], dtype=torch.int32, device=device), 8, (16, 16))
    agrees(q, k, v, mask=mask, seen=written_out(mask, 4))
    mask.columns.copy_(torch.tensor([1, 0], dtype=torch.int32))
    agrees(q, k, v, mask=mask, seen=written_out(mask, 4))


def test_block_mask():
    dense = torch.rand(2, 3, 4, 5) < 0.4
    mask = sa.BlockMask.from_dense(dense, (16, 8))
    assert (mask.batch, mask.heads, mask.grid, mask.shape, mask.block) == (2, 3, (4, 5), (64, 40), (16, 8))
    assert mask.nnzb == dense.sum() and mask.density == dense.double().mean()
    assert torch.equal(mask.to_dense(), dense)
    assert torch.equal(sa.BlockMask.from_dense(dense[0], 8).to_dense()[0], dense[0])
    assert torch.equal(sa.BlockMask.from_dense(dense[0, 0], 8).to_dense()[0, 0], dense[0, 0])
    assert repr(mask) == f"BlockMask(64 x 40, 16x8 blocks, 3 heads, 2 items, {mask.nnzb} seen, {100 * mask.density:.4g} %, cpu)"
    saved = io.BytesIO()
    torch.save(mask, saved)
    saved.seek(0)
    for copy in (pickle.loads(pickle.dumps(mask)), torch.load(saved, weights_only=True), mask.to("cpu")):
        assert torch.equal(copy.to_dense(), dense) and (copy.shape, copy.block) == (mask.shape, mask.block)
    leaves, tree = torch.utils._pytree.tree_flatten(mask)
    assert len(leaves) == 2 and torch.equal(torch.utils._pytree.tree_unflatten(leaves, tree).to_dense(), dense)


# ------------------------------------------------------------------------------------------------ lengths, sequences, pages, tiles of bits

LENGTHS = [0, 1, 63, 64, 65, 70]


def int32(numbers, device="cpu"):
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def spoiled(tensor, hidden):
    """[batch, heads, rows, depth], NaN in rows [batch or 1, rows] that are hidden."""
    return tensor.masked_fill(hidden.to(tensor.device)[:, None, :, None], torch.nan)


def bands(queries, keys, **words):
    """[items, 1, queries, most keys]: band() of each item's own keys."""
    seen = torch.zeros(len(keys), 1, queries, max(keys), dtype=torch.bool)
    for item, length in enumerate(keys):
        seen[item, 0, :, :length] = band(queries, length, **words)
    return seen


BANDS = [{}, {"causal": "top_left"}, {"causal": "bottom_right", "window": 20, "sinks": 3}, {"window": (4, 3), "diagonal": "bottom_right"}]


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("queries", [1, 9])
def test_lengths(queries, layout, dtype, device):
    q, k, v = operands(batch=6, heads_kv=2, queries=queries, keys=70, dtype=dtype, device=device)
    hidden = torch.arange(70) >= torch.tensor(LENGTHS)[:, None]
    given = [q, spoiled(k, hidden), spoiled(v, hidden)]
    for words in BANDS:
        agrees(*given, bands(queries, LENGTHS, **words), layout, (k, v), lengths=int32(LENGTHS, device), **words)
    mask = some_mask(8, queries, 70, 2, 6, device)
    agrees(*given, bands(queries, LENGTHS) & written_out(mask, 4).cpu(), layout, (k, v), lengths=int32(LENGTHS, device), mask=mask)
    agrees(*given, bands(queries, LENGTHS), layout, (k, v), lengths=int32([[n, n] for n in LENGTHS], device)[:, 0])


def ends(lengths, device="cpu"):
    return int32(lengths, device).cumsum(0, dtype=torch.int32)


def packed(queries, keys, **words):
    """[queries, keys]: band() of each sequence."""
    return torch.block_diag(*(band(of_q, of_k, **words) for of_q, of_k in zip(queries, keys, strict=True))).bool()


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_packed_sequences(layout, dtype, device):
    lengths = [0, 1, 63, 64, 65, 0, 2]
    q, k, v = operands(batch=1, heads_kv=2, queries=195, keys=195, dtype=dtype, device=device)
    for words in ({}, {"causal": True}, {"causal": True, "window": 9, "sinks": 2}, {"window": 5}):
        agrees(q, k, v, packed(lengths, lengths, **words), layout, query_ends=ends(lengths, device), **words)
    others = [3, 0, 70, 1, 7, 5, 109]
    for words in BANDS:
        agrees(q, k, v, packed(lengths, others, **words), layout, query_ends=ends(lengths, device), key_ends=ends(others, device), **words)
    mask = some_mask((16, 8), 195, 195, 4, 1, device)
    agrees(q, k, v, packed(lengths, lengths) & written_out(mask, 4).cpu(), layout, query_ends=ends(lengths, device), mask=mask)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_rows_behind_the_last_sequence(layout, device):
    q, k, v = operands(batch=1, queries=50, keys=60, device=device)
    seen = torch.zeros(50, 60, dtype=torch.bool)
    seen[:40, :30] = packed([10, 30], [25, 5])
    given = [spoiled(q, torch.arange(50)[None] >= 40), *(spoiled(t, torch.arange(60)[None] >= 30) for t in (k, v))]
    turned = [t.transpose(1, 2) for t in given] if layout == "bshd" else given
    o, lse = sa.attention(*turned, query_ends=int32([10, 40], device), key_ends=int32([25, 30], device), layout=layout, return_lse=True)
    want, want_lse = formula(q, k, v, seen)
    close((o.transpose(1, 2) if layout == "bshd" else o).cpu(), want)
    close(lse[..., :40].cpu(), want_lse[..., :40])
    assert (lse[..., 40:] == -math.inf).all() and (want[:, :, 40:] == 0).all()
    for empty in (sa.attention(q, k, v, query_ends=int32([], device)), sa.attention(q, k, v, query_ends=int32([0, 0], device))):
        assert (empty == 0).all()


def in_pages(tensor, table, lengths, pages, rows=16):
    """[pages, heads, rows, depth], in memory with rows before heads; NaN where no key of an item stands."""
    made = tensor.new_full((pages, rows, tensor.shape[1], tensor.shape[3]), torch.nan)
    for item, length in enumerate(lengths):
        for key in range(length):
            made[table[item][key // rows], key % rows] = tensor[item, :, key]
    return made.transpose(1, 2)


def a_table(lengths, columns, pages, rows=16):
    """Pages in an order of no pattern; numbers that no key needs are wrong."""
    order = iter(torch.randperm(pages).tolist())
    return [[next(order) if column * rows < length else -7 for column in range(columns)] for length in lengths]


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_pages(layout, dtype, device):
    q, k, v = operands(batch=6, heads_kv=2, queries=3, keys=80, dtype=dtype, device=device)
    table = a_table(LENGTHS, 5, 23)
    pages = [in_pages(t, table, LENGTHS, 23) for t in (k, v)]
    seen = torch.arange(80) < torch.tensor(LENGTHS)[:, None, None, None]
    agrees(q, *pages, seen, layout, (k, v), lengths=int32(LENGTHS, device), page_table=int32(table, device))
    wide = int32([[*row, 99] for row in table], device)
    agrees(q, *pages, seen, layout, (k, v), lengths=int32(LENGTHS, device), page_table=wide[:, :5])
    words = {"causal": "bottom_right", "window": 20, "sinks": 2}
    banded = torch.nn.functional.pad(bands(3, LENGTHS, **words), (0, 10))
    agrees(q, *pages, banded, layout, (k, v), lengths=int32(LENGTHS, device), page_table=int32(table, device), **words)
    mask = some_mask((2, 8), 3, 80, 4, 6, device)
    agrees(q, *pages, seen & written_out(mask, 4).cpu(), layout, (k, v), lengths=int32(LENGTHS, device), page_table=int32(table, device), mask=mask)
    table = a_table([80] * 6, 5, 30)
    agrees(q, *(in_pages(t, table, [80] * 6, 30) for t in (k, v)), None, layout, (k, v), page_table=int32(table, device))


@pytest.mark.parametrize("rows,pages", [(1, 7), (5, 1), (7, 1)])
def test_few_pages(rows, pages, device):
    q, k, v = operands(batch=1, queries=3, keys=rows * pages, device=device)
    table = torch.randperm(pages).tolist()
    agrees(q, *(in_pages(t, [table], [rows * pages], pages, rows) for t in (k, v)), plain=(k, v), page_table=int32([table], device))


def test_packed_sequences_with_pages(dtype, device):
    queries, keys = [1, 7, 0, 2], [65, 16, 3, 0]
    q = drawn(1, 4, 10, 16, dtype=dtype, device=device)
    _, k, v = operands(batch=4, heads_kv=2, keys=80, dtype=dtype, device=device)
    table = a_table(keys, 5, 9)
    seen = torch.zeros(10, 4, 80, dtype=torch.bool)
    for sequence, (begin, count) in enumerate(zip([0, 1, 8, 8], queries, strict=True)):
        seen[begin : begin + count, sequence, : keys[sequence]] = True
    plain = [t.transpose(0, 1).flatten(1, 2)[None] for t in (k, v)]
    pages = [in_pages(t, table, keys, 9) for t in (k, v)]
    agrees(q, *pages, seen.flatten(1), plain=plain, query_ends=ends(queries, device), lengths=int32(keys, device), page_table=int32(table, device))


@pytest.mark.parametrize("block", [8, (5, 40), (16, 33), (1, 32), (32, 256)], ids=str)
@pytest.mark.parametrize("heads,batch", [(1, 1), (2, 1), (4, 2)])
def test_tiles_of_bits(block, heads, batch, device):
    q, k, v = operands(heads_kv=2, queries=37, keys=90, device=device)
    pairs = torch.rand(batch, heads, 37, 90) < 0.7
    pairs[:, :, :8], pairs[..., 40:80] = True, False
    mask = sa.BlockMask.from_pairs(pairs.squeeze(0) if batch == 1 else pairs, block).to(device)
    assert torch.equal(mask.to_pairs().cpu(), pairs) and mask.shape == (37, 90) and (mask.heads, mask.batch) == (heads, batch)
    seen = pairs.repeat_interleave(4 // heads, 1)
    agrees(q, k, v, seen, mask=mask)
    agrees(q, k, v, seen & bands(37, [90, 50], causal="bottom_right"), mask=mask, lengths=int32([90, 50], device), causal="bottom_right")


def test_block_mask_of_pairs():
    assert sa.BlockMask.from_pairs(torch.ones(20, 30, dtype=torch.bool), 8).tile_bits is None
    causal = torch.ones(64, 64, dtype=torch.bool).tril()
    mask = sa.BlockMask.from_pairs(causal, 16)
    assert mask.nnzb == 10 and mask.tile_bits.shape == (1, 16, 1) and (mask.tile_numbers == 0).sum() == 4  # alike along the diagonal
    assert repr(mask) == "BlockMask(64 x 64, 16x16 blocks, 10 seen, 62.5 %, 1 tiles of bits, cpu)"
    saved = io.BytesIO()
    torch.save(mask, saved)
    saved.seek(0)
    leaves, tree = torch.utils._pytree.tree_flatten(mask)
    assert len(leaves) == 4
    for copy in (pickle.loads(pickle.dumps(mask)), torch.load(saved, weights_only=True), mask.to("cpu"), torch.utils._pytree.tree_unflatten(leaves, tree)):
        assert torch.equal(copy.to_pairs(), causal[None, None])
    nothing = sa.BlockMask.from_pairs(torch.zeros(20, 30, dtype=torch.bool), 8)
    assert nothing.nnzb == 0 and not nothing.to_pairs().any()
    blocks = sa.BlockMask.from_dense(torch.tensor([[True, False], [True, True]]), 8, shape=(16, 12))
    assert torch.equal(blocks.to_pairs(), written_out(blocks, 1))


# ------------------------------------------------------------------------------------------------ refusals

i32 = torch.int32


@pytest.mark.parametrize(
    "change,error,words",
    [
        (lambda w: w.update(q=w["q"][0]), RuntimeError, r"q: must have four dimensions, \[batch, heads, rows, depth\]"),
        (lambda w: w.update(q=w["q"][0], layout="bshd"), RuntimeError, r"q: must have four dimensions, \[batch, rows, heads, depth\]"),
        (lambda w: w.update(q=[1]), TypeError, "q: must be a dense tensor, not list"),
        (lambda w: w.update(k=w["k"].to_sparse()), TypeError, "k: must be a dense tensor"),
        (lambda w: w.update(k=w["k"].double()), RuntimeError, "k: its dtype must be that of q, float32, not float64"),
        (lambda w: w.update(v=w["v"].half()), RuntimeError, "v: its dtype must be that of q, float32, not float16"),
        (lambda w: w.update(q=w["q"].int(), k=w["k"].int(), v=w["v"].int()), RuntimeError, "q: its dtype must be float32, float64, float16 or bfloat16"),
        (lambda w: w.update(k=w["k"][:1]), RuntimeError, r"k: its shape is \[1, 2, 27, 16\], that of q \[2, 4, 19, 16\]: they have the same batch and depth"),
        (lambda w: w.update(k=w["k"][..., :8]), RuntimeError, "k: .*the same batch and depth"),
        (lambda w: w.update(v=w["v"][:, :, :20]), RuntimeError, "v: .*the same batch, heads and rows"),
        (lambda w: w.update(v=w["v"][:, :1]), RuntimeError, "v: .*the same batch, heads and rows"),
        (lambda w: w.update(q=w["q"][:, :3]), RuntimeError, "k: has 2 heads, which do not divide the 3 of q"),
        (lambda w: w.update(v=w["v"][..., :0], return_lse=True), RuntimeError, "v: has no columns, which return_lse wants"),
        (lambda w: w.update(layout="sbhd"), ValueError, "layout: must be 'bhsd' or 'bshd', not 'sbhd'"),
        (lambda w: w.update(causal=True), ValueError, "causal: True with 19 queries and 27 keys does not say which key .* causal='top_left' or 'bottom_right'"),
        (lambda w: w.update(causal=True, layout="bshd"), ValueError, "causal: True with 4 queries and 2 keys"),
        (lambda w: w.update(causal="left"), ValueError, "causal: must be None, False, True, 'top_left' or 'bottom_right', not 'left'"),
        (lambda w: w.update(causal=""), ValueError, "causal: must be"),
        (lambda w: w.update(causal="top_left", diagonal="bottom_right"), ValueError, "diagonal: is 'bottom_right', but causal 'top_left'"),
        (lambda w: w.update(diagonal="down"), ValueError, "diagonal: must be None, 'top_left' or 'bottom_right', not 'down'"),
        (lambda w: w.update(window=3), ValueError, "window: with 19 queries and 27 keys .* diagonal='top_left' or 'bottom_right'"),
        (lambda w: w.update(window=-1), ValueError, "window: -1 keys; 0 or None: no limit"),
        (lambda w: w.update(window=(2, -3)), ValueError, "window: -3 keys"),
        (lambda w: w.update(window=(1, 2, 3)), ValueError, r"window: must be a number of keys or \(left, right\)"),
        (lambda w: w.update(window=2.5), TypeError, "window: must be a whole number of keys, not 2.5"),
        (lambda w: w.update(window=True), TypeError, "window: must be a whole number of keys, not True"),
        (lambda w: w.update(causal="top_left", window=(2, 1)), ValueError, "window: 1 keys to the right, of which a causal query sees none"),
        (lambda w: w.update(sinks=2), ValueError, "sinks: are seen whatever the window to the left says, but there is none"),
        (lambda w: w.update(sinks=-2), ValueError, "sinks: -2 keys"),
        (lambda w: w.update(scale=math.nan), RuntimeError, "scale"),
        (lambda w: w.update(scale=1e300), RuntimeError, r"sparse_autotune: scale = 1e\+300: it must be between -1e\+38 and 1e\+38, as sums are in float32"),
        (lambda w: w.update(softcap=math.inf), RuntimeError, "softcap"),
        (lambda w: w.update(mask=torch.ones(19, 27, dtype=torch.bool)), TypeError, "mask: must be sa.BlockMask .*sa.BlockMask.from_dense .* from_pairs"),
        (lambda w: w.update(mask=3), TypeError, "mask: must be sa.BlockMask or a sparse matrix .*, not int"),
        (lambda w: w.update(mask=torch.ones(19, 27).to_sparse()), TypeError, "mask: must be sa.BlockMask .*, not torch.sparse_coo"),
        (lambda w: w.update(mask=some_mask(8, 19, 28)), ValueError, "mask: is of 19 x 28, but there are 19 queries and 27 keys"),
        (lambda w: w.update(mask=some_mask(8, 19, 27, heads=3)), RuntimeError, "mask: has lists for 3 heads; it is 1, or the 2 of k or the 4 of q"),
        (lambda w: w.update(mask=some_mask(8, 19, 27, batch=3)), RuntimeError, "mask: has lists for 3 items; it is 1, or the 2 of the batch"),
        (lambda w: w.update(mask=sa.BlockMask(torch.tensor([0, 1, 1, 1]), torch.tensor([4]), 8, (19, 27))), RuntimeError, r"columns\[0\] = 4"),
        (lambda w: w.update(mask=sa.BlockMask(torch.tensor([0, 2, 1, 1]), torch.tensor([1]), 8, (19, 27))), RuntimeError, "offsets"),
        (lambda w: w.update(mask=listed([1, 0])), RuntimeError, r"columns\[1\] = 0 is less than columns\[0\] = 1 .*sa.BlockMask.from_dense sorts them"),
        (lambda w: w.update(mask=listed([1, 1])), RuntimeError, r"columns\[1\] = 1 repeats columns\[0\] .*sa.BlockMask.from_dense lists each block once"),
        (lambda w: w.update(mask=bare([1, 0])), RuntimeError, r"col_indices\[1\] = 0 is less than .*sa.BSR.from_scipy sorts them"),
    ],
)
def test_wrong_arguments(change, error, words):
    given = dict(zip("qkv", operands(heads_kv=2), strict=True))
    change(given)
    with pytest.raises(error, match=words):
        sa.attention(**given)


LONG = int32([27, 5])
ENDS = int32([9, 19])


@pytest.mark.parametrize(
    "change,error,words",
    [
        (dict(lengths=[27, 5]), TypeError, "lengths: must be a dense tensor, not list"),
        (dict(lengths=LONG.long()), RuntimeError, "lengths: its dtype must be int32, not int64"),
        (dict(lengths=LONG[:1]), RuntimeError, r"lengths: its shape is \[1\]; it must be \[2\]: one for each item"),
        (dict(lengths=LONG[None]), RuntimeError, r"lengths: its shape is \[1, 2\]; it must be \[2\]"),
        (dict(lengths=int32([27, 28])), RuntimeError, r"lengths\[1\] = 28: the limits are 0 and keys = 27"),
        (dict(lengths=int32([-1, 27])), RuntimeError, r"lengths\[0\] = -1: the limits"),
        (dict(lengths=LONG, causal=True), ValueError, "causal: True with lengths does not say which key stands beside which query; give causal="),
        (dict(lengths=LONG, window=3), ValueError, "window: with lengths does not say which key"),
        (dict(key_ends=LONG), ValueError, "key_ends: says where sequences end, and wants query_ends; lengths says"),
        (dict(query_ends=ENDS), RuntimeError, r"query_ends: sequences lie one behind the other in a batch of 1; the shape of q is \[2, 4, 19, 16\]"),
        (dict(one=True, query_ends=ENDS, lengths=LONG), ValueError, "lengths: the keys of packed sequences lie one behind the other; give key_ends"),
        (dict(one=True, query_ends=ENDS, key_ends=ENDS, lengths=LONG), ValueError, "lengths: key_ends says where .* give one of both"),
        (dict(one=True, query_ends=ENDS, key_ends=ENDS, causal=True), ValueError, "causal: True with query_ends and key_ends does not say"),
        (dict(one=True, query_ends=ENDS.long()), RuntimeError, "query_ends: its dtype must be int32, not int64"),
        (dict(one=True, query_ends=ENDS[None]), RuntimeError, r"query_ends: its shape is \[1, 2\]; it must be \[sequences\]"),
        (dict(one=True, query_ends=int32([9, 20])), RuntimeError, r"query_ends\[1\] = 20: the sequence begins at 9, and there are 19 queries"),
        (dict(one=True, query_ends=int32([9, 8])), RuntimeError, r"query_ends\[1\] = 8: the sequence begins at 9"),
        (dict(one=True, query_ends=ENDS, key_ends=ENDS[:1]), RuntimeError, r"key_ends: its shape is \[1\]; it must be \[2\]: one for each sequence"),
        (dict(one=True, query_ends=ENDS, key_ends=int32([9, 28])), RuntimeError, r"key_ends\[1\] = 28: the sequence begins at 9, and there are 27 keys"),
        (dict(one=True, query_ends=ENDS, page_table=LONG[:, None]), ValueError, "lengths: is missing; with page_table and query_ends"),
        (dict(one=True, query_ends=ENDS, key_ends=ENDS, page_table=LONG[:, None]), ValueError, "key_ends: with page_table .* give lengths"),
        (dict(turned=True, page_table=LONG), RuntimeError, r"page_table: its shape is \[2\]; it must be \[2, pages of each\]: one for each item"),
        (dict(turned=True, page_table=LONG.long()[:, None]), RuntimeError, "page_table: its dtype must be int32, not int64"),
        (dict(turned=True, page_table=int32([[1], [2]])), RuntimeError, r"page_table\[1\] = 2: the limits are 0 and pages - 1 = 1"),
        (dict(turned=True, page_table=int32([[1], [0]]), lengths=int32([27, 28])), RuntimeError, r"lengths\[1\] = 28: the limits are 0 and keys = 27"),
        (dict(turned=True, page_table=int32([[1, 0]] * 2), causal=True), ValueError, "causal: True with 19 queries and 54 keys does not say"),
        (dict(turned=True, page_table=int32([[1, 0]] * 2), mask=some_mask(8, 19, 27)), ValueError, "mask: is of 19 x 27, but there are 19 queries and 54 keys"),
    ],
)
def test_wrong_numbers(change, error, words):
    q, k, v = operands(heads_kv=2)
    if change.pop("one", False):
        q, k, v = q[:1], k[:1], v[:1]
    if change.pop("turned", False):
        k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (k, v))
    with pytest.raises(error, match=words):
        sa.attention(q, k, v, **change)


def test_wrong_tiles():
    offsets, columns, bits = int32([0, 1, 2, 2]), int32([0, 1]), torch.zeros(3, 8, 1, dtype=torch.int32)
    q, k, v = operands(heads_kv=2)
    for numbers in ([0, 3], [-2, 0]):
        with pytest.raises(RuntimeError, match=rf"tile_numbers\[{int(numbers[0] == 0)}\] = .*: the limits are -1 and tiles - 1 = 2"):
            sa.attention(q, k, v, mask=sa.BlockMask(offsets, columns, 8, (19, 27), tile_numbers=int32(numbers), tile_bits=bits))
    for numbers, words, error in (
        (columns[:1], r"tile_numbers: its shape is \[1\]; 2 blocks have one each", ValueError),
        (columns.long(), "tile_numbers: must be an int32 tensor, not torch.int64", TypeError),
        (None, "tile_numbers: must be an int32 tensor, not NoneType", TypeError),
    ):
        with pytest.raises(error, match=words):
            sa.BlockMask(offsets, columns, 8, (19, 27), tile_numbers=numbers, tile_bits=bits)
    for wrong in (bits[:0], bits[:, :7], bits[0], bits.expand(3, 8, 2)):
        with pytest.raises(ValueError, match=r"tile_bits: its shape is .*; blocks of 8 x 8 want \[tiles, 8, 1\], with at least one tile"):
            sa.BlockMask(offsets, columns, 8, (19, 27), tile_numbers=columns, tile_bits=wrong)
        with pytest.raises(RuntimeError, match=r"tile_bits: its shape is .*; it must be \[tiles, 8, 1\]"):
            ops.attention(q, k, v, offsets, columns, 8, 8, 1, 1, *PLAIN[6:12], tile_numbers=columns, tile_bits=wrong)
    with pytest.raises(RuntimeError, match="tile_bits: is missing"):
        ops.attention(q, k, v, offsets, columns, 8, 8, 1, 1, *PLAIN[6:12], tile_numbers=columns)
    with pytest.raises(RuntimeError, match="tile_numbers: there is no mask"):
        ops.attention(q, k, v, *PLAIN[:12], tile_numbers=columns, tile_bits=bits)
    with pytest.raises(TypeError, match="mask: must be a boolean tensor"):
        sa.BlockMask.from_pairs(torch.ones(3, 3), 8)
    with pytest.raises(ValueError, match=r"mask: must be \[queries, keys\]"):
        sa.BlockMask.from_pairs(torch.ones(3, dtype=torch.bool), 8)


@pytest.mark.parametrize(
    "make,error,words",
    [
        (lambda: sa.BlockMask([0], torch.zeros(0), 8, (8, 8)), TypeError, "offsets: must be a tensor, not list"),
        (lambda: sa.BlockMask(torch.zeros(2, 1, dtype=i32), torch.zeros(0, dtype=i32), 8, (8, 8)), ValueError, "offsets: must have one dimension"),
        (
            lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0).long(), 8, (8, 8)),
            ValueError,
            "must both be int32 or both int64, not int32 and int64",
        ),
        (lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 300, (8, 8)), ValueError, "block: must be 1 to 256"),
        (lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 8, (8,)), ValueError, r"shape: must be \(rows, keys\)"),
        (lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 8, (8, -8)), ValueError, "shape: must be 0 or more, not -8"),
        (lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 8, (8, 8), heads=0), ValueError, "heads: must be 1 or more"),
        (lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 8, (8, 8), batch=1.5), TypeError, "batch: must be a whole number"),
        (
            lambda: sa.BlockMask(torch.zeros(2, dtype=i32), torch.zeros(0, dtype=i32), 8, (9, 8), heads=2),
            ValueError,
            "offsets: has 2 entries; 9 rows in blocks of 8 for 2 heads of 1 items need 5",
        ),
        (lambda: sa.BlockMask.from_dense(torch.ones(2, 2), 8), TypeError, "mask: must be a boolean tensor, not torch.float32"),
        (lambda: sa.BlockMask.from_dense(torch.ones(2, dtype=torch.bool), 8), ValueError, "mask: must be"),
        (
            lambda: sa.BlockMask.from_dense(torch.ones(2, 2, dtype=torch.bool), 8, shape=(17, 16)),
            ValueError,
            "shape: 17 x 16 in blocks of 8 x 8 is no mask of 2 x 2",
        ),
    ],
)
def test_wrong_masks(make, error, words):
    with pytest.raises(error, match=words):
        make()


# ------------------------------------------------------------------------------------------------ PyTorch's tools

NO_ARRAYS = (None, None, None, None, None)
PLAIN = (None, None, 1, 1, 1, 1, 0, 0, 0, None, 0.0, 0, *NO_ARRAYS)  # no mask, no band


def of_operators(device):
    q, k, v = operands(heads_kv=2, depth_v=8, device=device)
    mask = some_mask((8, 4), 19, 27, 2, 2, device)
    yield (q, k, v, *PLAIN)
    yield (q.transpose(1, 2).contiguous(), k.transpose(1, 2).contiguous(), v.transpose(1, 2).contiguous(), *PLAIN[:11], 1024 | 2048 | 8192, *NO_ARRAYS)
    yield (q, k, v, mask.offsets, mask.columns, 8, 4, 2, 2, 5, 0, 2, 0.25, 3.0, 2048 | 4096, *NO_ARRAYS)
    yield (q, k, v, mask.offsets, mask.columns, 8, 4, 2, 2, *PLAIN[6:11], 32768, *NO_ARRAYS)
    tiles = int32([i % 4 - 1 for i in range(mask.nnzb)], device), torch.randint(-(2**31), 2**31, (3, 8, 1), device=device).int()
    yield (q, k, v, mask.offsets, mask.columns, 8, 4, 2, 2, 5, 0, 2, 0.25, 3.0, 2048 | 4096, None, int32([27, 3], device), None, *tiles)
    yield (q[:1], k[:1], v[:1], *PLAIN[:12], int32([4, 19], device), int32([27, 27], device), None, None, None)
    k, v = (t.transpose(1, 2).contiguous() for t in (k, v))
    yield (q.transpose(1, 2).contiguous(), k, v, *PLAIN[:11], 1024, None, int32([54, 3], device), int32([[1, 0], [0, 1]], device), None, None)


@pytest.mark.parametrize("name", ["attention", "attention_lse", "_attention", "_attention_lse"])
def test_opcheck(name, device):
    for given in of_operators(device):
        raw = name.startswith("_")
        tests = ("test_schema", "test_faketensor") if raw else ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        torch.library.opcheck(getattr(ops, name).default, (*given, -1) if raw else given, test_utils=tests)


@pytest.mark.parametrize("dynamic", [None, True])
def test_compile(dynamic, device):
    def step(q, k, v, mask, window):
        o, lse = sa.attention(q * 2, k, v, mask=mask, causal="bottom_right", window=window, return_lse=True)
        return o + 1, lse, sa.attention(q, k, v, layout="bshd" if q.shape[1] == k.shape[1] and q.shape[2] == k.shape[2] else "bhsd")

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for queries, keys in ((19, 27), (33, 40)):
        q, k, v = operands(heads_kv=2, queries=queries, keys=keys, device=device)
        mask = some_mask(8, queries, keys, 4, 1, device)
        for got, want in zip(compiled(q, k, v, mask, 6), step(q, k, v, mask, 6), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dynamic", [None, True])
def test_compile_with_numbers(dynamic, device):
    def step(q, k, v, lengths, query_ends, page_table, mask):
        pages = sa.attention(q, k, v, lengths=lengths, page_table=page_table, layout="bshd", mask=mask)
        packed = sa.attention(q.reshape(1, -1, 4, 16), q.reshape(1, -1, 4, 16), q.reshape(1, -1, 4, 16), query_ends=query_ends, causal=True, layout="bshd")
        return pages, packed

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for queries, each in ((5, 2), (7, 3)):
        q, k, v = drawn(2, queries, 4, 16, device=device), drawn(9, 16, 2, 16, device=device), drawn(9, 16, 2, 16, device=device)
        mask = sa.BlockMask.from_pairs(torch.rand(queries, each * 16, device=device) < 0.5, 8)
        table = torch.randperm(9, device=device)[: 2 * each].view(2, each).int()
        given = (q, k, v, int32([each * 16, 3], device), int32([3, 2 * queries], device), table, mask)
        for got, want in zip(compiled(*given), step(*given), strict=True):
            torch.testing.assert_close(got, want)


def test_compile_refuses_as_eager_does(device):
    q, k, v = operands(heads_kv=2, device=device)
    for given in ((q, k[:1], v), (q, k, v[:, :, :3]), (q[:, :3], k, v), (q[0], k, v), (q, k.double(), v)):
        words = []
        torch._dynamo.reset()  # symbolic sizes have other names
        for call in (sa.attention, torch.compile(sa.attention, fullgraph=True, backend="eager")):
            with pytest.raises(Exception) as caught:
                call(*given)
            words.append(str(caught.value))
        assert words[0].split("\n")[0] in words[1]
    two, turned = int32([1, 2], device), [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (k, v)]
    for given in (
        dict(lengths=two[:1]),
        dict(lengths=two.long()),
        dict(query_ends=two),
        dict(page_table=two),
        dict(page_table=two[:, None].long()),
    ):
        words = []
        torch._dynamo.reset()
        for call in (sa.attention, torch.compile(sa.attention, fullgraph=True, backend="eager")):
            with pytest.raises(Exception) as caught:
                call(q, *turned, **given)
            words.append(str(caught.value))
        plain = words[0].split("\n")[0].replace("lengths", "key_ends")
        assert plain in words[1] or words[0].split("\n")[0] in words[1]
    with pytest.raises(Exception, match="does not say which key stands beside which query"):
        torch.compile(lambda: sa.attention(q, k, v, causal=True), fullgraph=True, backend="eager")()


def test_fakes_and_graphs(device):
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    q, k, v = operands(dtype=torch.bfloat16, device=device)
    with FakeTensorMode() as mode:
        o, lse = sa.attention(*(mode.from_tensor(t) for t in (q, k, v)), return_lse=True)
        assert (o.shape, o.dtype, lse.shape, lse.dtype) == ((2, 4, 19, 16), torch.bfloat16, (2, 4, 19), torch.float32)
    graph = make_fx(lambda q: sa.attention(q, k, v, causal="top_left"))(q)
    assert any(node.target is ops.attention.default for node in graph.graph.nodes)
    assert torch.equal(graph(q), sa.attention(q, k, v, causal="top_left"))
    meta = sa.attention(q.to("meta"), k.to("meta"), v.to("meta"), layout="bhsd")
    assert meta.shape == q.shape and meta.device.type == "meta"


class MaskGiven(torch.nn.Module):
    def forward(self, q, mask):
        return sa.attention(q, q, q, mask=mask)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_with_a_mask_as_an_argument(strict, device):
    q = torch.randn(1, 2, 64, 16, device=device)
    for mask in (sa.BlockMask.causal(64, 16, device=device), sa.BlockMask.window(64, 20, 16, causal=True, device=device)):
        program = torch.export.export(MaskGiven(), (q, mask), strict=strict)
        torch.testing.assert_close(program.module()(q, mask), sa.attention(q, q, q, mask=mask))


def test_export(device):
    class Layer(torch.nn.Module):
        def forward(self, q, k, v):
            return sa.attention(q, k, v, causal="bottom_right", window=7)

    q, k, v = operands(device=device)
    exported = torch.export.export(Layer(), (q, k, v))
    torch.testing.assert_close(exported.module()(q, k, v), Layer()(q, k, v))


def test_vmap(device):
    q, k, v = drawn(3, 2, 4, 9, 8, device=device), drawn(2, 4, 11, 8, device=device), drawn(2, 4, 11, 3, 8, device=device)
    made = torch.func.vmap(lambda q, v: sa.attention(q, k, v), in_dims=(0, 3))(q, v)
    torch.testing.assert_close(made, torch.stack([sa.attention(q[i], k, v[..., i, :]) for i in range(3)]))
    o, lse = torch.func.vmap(lambda q: sa.attention(q, k, v[..., 0, :], return_lse=True))(q)
    assert o.shape == (3, 2, 4, 9, 8) and lse.shape == (3, 2, 4, 9)
    lengths = int32([[11, 3], [0, 1], [5, 5]], device).mT.contiguous()
    made = torch.func.vmap(lambda q, lengths: sa.attention(q, k, v[..., 0, :], lengths=lengths), in_dims=(0, 1))(q, lengths)
    torch.testing.assert_close(made, torch.stack([sa.attention(q[i], k, v[..., 0, :], lengths=lengths[:, i]) for i in range(3)]))


def test_autocast(device):
    q, k, v = operands(device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        made = sa.attention(q, k, v.bfloat16())
    assert made.dtype is torch.bfloat16
    assert torch.equal(made, sa.attention(q.bfloat16(), k.bfloat16(), v.bfloat16()))


def test_flop_counter(device):
    from torch.utils.flop_counter import FlopCounterMode

    q, k, v = operands(heads_kv=2, depth_v=24, device=device)
    mask = some_mask(8, 19, 27, 2, 1, device)

    def counted(**words):
        with FlopCounterMode(display=False) as counter:
            sa.attention(q, k, v, **words)
        return counter.get_total_flops()

    assert counted() == counted(return_lse=True) == 2 * 2 * 4 * 19 * 27 * (16 + 24)
    assert counted(lengths=int32([3, 4], device)) == counted()
    k, v = k.transpose(1, 2).contiguous().transpose(1, 2), v.transpose(1, 2).contiguous().transpose(1, 2)
    assert counted(page_table=int32([[0, 1, 0], [1, 1, 0]], device)) == 3 * counted()
    assert counted(mask=mask) == 2 * mask.nnzb * 64 * 2 * 2 * (16 + 24)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captured():
    q, k, v = operands(queries=64, keys=64, depth=64, dtype=torch.float16, device="cuda")
    mask = some_mask(16, 64, 64, 4, 1, "cuda")
    want = sa.attention(q, k, v, mask=mask)
    sa.attention(q, k, v, causal=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made, causal = sa.attention(q, k, v, mask=mask), sa.attention(q, k, v, causal=True)
    v.mul_(2)
    graph.replay()
    torch.testing.assert_close(made, 2 * want)
    torch.testing.assert_close(causal, sa.attention(q, k, v, causal=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_numbers_that_change_between_replays():
    q, k, v = operands(queries=4, keys=64, depth=64, dtype=torch.bfloat16, device="cuda")
    lengths = int32([64, 3], "cuda")
    sa.attention(q, k, v, lengths=lengths)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = sa.attention(q, k, v, lengths=lengths)
    for numbers in ([5, 64], [0, 33]):
        lengths.copy_(int32(numbers))
        graph.replay()
        torch.testing.assert_close(made, sa.attention(q, k, v, lengths=lengths))


def test_negated_and_subclassed(device):
    q, k, v = operands(device=device)
    negated = torch._neg_view(q)
    torch.testing.assert_close(sa.attention(negated, k, v), sa.attention(-q, k, v))
    weight = torch.nn.Parameter(q, requires_grad=False)
    assert torch.equal(sa.attention(weight, k, v), sa.attention(q, k, v))
