"""Masks of common shapes, of scores and of FlexAttention; unions, intersections, stacks and pictures: beside their definitions on all pairs."""

import itertools
import random

import pytest
import torch
from conftest import DEVICES

import sparse_autotune as sa

SIZES = [(1, 1), (64, 64), (77, 130), (130, 77)]
BLOCKS = [16, (8, 24), (64, 32)]


def beside_of(queries, keys, diagonal):
    return torch.arange(queries)[:, None] + (keys - queries if diagonal == "bottom_right" else 0), torch.arange(keys)


def same(mask, wanted):
    """The mask is these pairs, stores no block without any, and has tiles only where a block is not whole."""
    assert torch.equal(mask.to_pairs().cpu(), wanted.expand_as(mask.to_pairs()))
    (high, wide), (down, across), pairs = mask.block, mask.grid, mask.to_pairs().cpu()
    padded = [torch.nn.functional.pad(t, (0, across * wide - t.shape[-1], 0, down * high - t.shape[-2])) for t in (pairs, ~pairs)]
    seen, hidden = (t.unflatten(-1, (across, wide)).unflatten(-3, (down, high)).any(-1).any(-2) for t in padded)
    assert torch.equal(mask.to_dense().cpu(), seen)
    numbers = torch.full((mask.nnzb,), -1) if mask.tile_numbers is None else mask.tile_numbers.cpu()
    assert torch.equal(numbers >= 0, (hidden & seen)[seen])
    if mask.tile_bits is not None:
        assert mask.tile_bits.unique(dim=0).shape == mask.tile_bits.shape  # no two alike


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("queries, keys", SIZES)
@pytest.mark.parametrize("diagonal", ["top_left", "bottom_right"])
def test_bands(queries, keys, diagonal, block):
    beside, key = beside_of(queries, keys, diagonal)
    same(sa.BlockMask.causal(queries, block, keys, diagonal=diagonal), key <= beside)
    for left, right, sinks in ((1, 1, 0), (20, None, 3), (7, 30, 40), (None, 9, 0), (500, 500, 0)):
        seen = torch.ones(queries, keys, dtype=torch.bool)
        if left:
            seen &= (key > beside - left) | (key < sinks)
        if right:
            seen &= key < beside + right
        same(sa.BlockMask.window(queries, (left, right), block, keys, sinks=sinks, diagonal=diagonal), seen)
        if left:
            same(sa.BlockMask.window(queries, left, block, keys, sinks=sinks, causal=diagonal), ((key > beside - left) | (key < sinks)) & (key <= beside))
    for prefix in (0, 1, 40, 1000):
        same(sa.BlockMask.prefix(queries, prefix, block, keys, diagonal=diagonal), (key <= beside) | (key < prefix))
    for stride, local, causal in ((1, 1, True), (16, 5, True), (7, 30, False), (100, 1, True), (33, 64, False)):
        near, last = (key > beside - local) & (key < beside + local), key % stride == stride - 1
        wanted = (near | last) & ((key <= beside) | (not causal))
        same(sa.BlockMask.strided(queries, stride, local, block, keys, causal=causal, diagonal=diagonal), wanted)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("lengths", [[], [0, 0], [1], [10, 0, 100, 1, 1, 50], [64, 64], torch.tensor([30, 40])])
def test_documents(lengths, block):
    of = torch.arange(len(lengths)).repeat_interleave(torch.as_tensor(lengths, dtype=torch.int64))
    alike = of[:, None] == of
    same(sa.BlockMask.documents(lengths, block), alike)
    same(sa.BlockMask.documents(lengths, block, causal=True), alike.tril())


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "size, window", [((1, 1, 1), (1, 1, 1)), ((4, 5, 6), (3, 3, 3)), ((3, 8, 8), (2, 9, 4)), ((6, 4, 16), (1, 2, 16)), ((5, 7, 3), (4, 1, 1))]
)
def test_video(size, window, block):
    tokens = torch.tensor(list(itertools.product(*map(range, size))))
    seen = torch.ones(len(tokens), len(tokens), dtype=torch.bool)
    for at, reach, most in zip(tokens.T, window, size, strict=True):
        begin = torch.clamp(at - reach // 2, max=most - reach).clamp(min=0)[:, None]
        seen &= (at >= begin) & (at < begin + reach)
    same(sa.BlockMask.video(*size, window, block), seen)
    assert (seen.sum(1) == seen.sum(1)[0]).all()


def blocks_of(pairs, high, wide):
    """Which blocks have a pair."""
    rows, keys = pairs.shape
    padded = torch.nn.functional.pad(pairs, (0, -keys % wide, 0, -rows % high))
    return padded.unflatten(-1, (-1, wide)).unflatten(0, (-1, high)).any(-1).any(1)


@pytest.mark.parametrize("seed", range(40))
def test_shapes_by_name(seed):
    """Random sizes, blocks and words beside definitions, in pairs; blocks at random are as many as they should be, and whole but for causality."""
    numbers = random.Random(seed)

    def upto(most):
        return numbers.randint(1, most)

    rows, keys, high, wide, heads, window, first = upto(150), upto(150), upto(64), upto(64), upto(2), upto(60), upto(50)
    top_left, all_keys = numbers.random() < 0.5, numbers.random() < 0.5
    beside, key = torch.arange(rows)[:, None] + (0 if top_left else keys - rows), torch.arange(keys)
    so_far = (key <= beside) | all_keys
    near = (key > beside - window) & (key < beside + window)

    def made(shape, most_of=True, **words):
        common = {"heads": heads, "top_left": top_left} | ({"all_keys": all_keys} if most_of else {})
        return sa.BlockMask.shaped(shape, rows, (high, wide), keys, seed=seed, **common, **words)

    same(made("causal"), so_far)
    same(made("window", window=window), near & so_far)
    same(made("sinks", window=window, sinks=first), (near | (key < first)) & so_far)
    same(made("strided", window=window, stride=first), (near | (key % first == first - 1)) & so_far)
    same(made("prefix", most_of=False, prefix=first), (key <= beside) | (key < first))
    lengths = [min(first, keys), keys - min(first, keys)]
    of = torch.arange(2).repeat_interleave(torch.tensor(lengths))
    same(made("documents", lengths=lengths), (beside >= 0) & (beside < keys) & (of[beside.clamp(0, keys - 1)] == of) & so_far)

    visible = blocks_of(so_far, high, wide)
    kept = blocks_of((near | (key < first)) & so_far, high, wide)
    for mask, sure, count in (
        (made("selected", selected=3), torch.zeros_like(kept), 3),
        (made("nsa", window=window, sinks=first, selected=2), kept, kept.sum(1) + 2),
    ):
        dense = mask.to_dense()[0]
        reach = visible.flip(1).cummax(1).values.flip(1)  # blocks up to the last one that may be seen
        assert torch.equal(dense.sum(-1), torch.minimum(torch.as_tensor(count), reach.sum(1)).expand_as(dense.sum(-1)))
        assert dense[:, sure].all() and not dense[:, ~reach].any()
        whole = dense.repeat_interleave(high, -2).repeat_interleave(wide, -1)[:, :rows, :keys]
        assert not (mask.to_pairs()[0] & ~(whole & so_far)).any()


def test_shares_at_random():
    draws = [sa.BlockMask.shaped("random", 512, 16, density=0.2, heads=2, seed=seed).to_dense() for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2]) and not torch.equal(draws[0][0, 0], draws[0][0, 1])
    assert torch.equal(draws[0].sum(-1)[0, 0], (torch.arange(1, 33) * 0.2 + 0.5).floor().clamp(min=1))


def test_table_of_shapes():
    """Every shape of the library can be made here, with what its row says must be given."""
    told = sa.BlockMask.shapes()
    given = {shape: {word: 20 for word, text in words.items() if text.endswith("(needed)")} for shape, words in told.items()}
    assert given["prefix"] == {"prefix": 20}
    given["video"] = {"cells": (2, 5, 8)}
    assert {"sinks", "random", "selected", "nsa", "prefix"} < set(told) and all(words["help"] for words in told.values())
    for shape in told:
        mask = sa.BlockMask.shaped(shape, 80, 16, **given[shape])
        assert mask.nnzb > 0 and mask.shape == (80, 80)
    assert told["window"]["window"] == "keys up to the one beside a query (default: an 8th of the keys)"
    assert told["sinks"]["help"] == "a window, and the first `sinks` keys" and not any("--" in words["help"] for words in told.values())
    empty = sa.BlockMask.shaped("random", 80, 16, density=0.0)
    assert empty.nnzb == 0 and not empty.to_pairs().any()
    half = sa.BlockMask.shaped("random", 80, 16, density=torch.tensor(0.5))
    assert torch.equal(half.columns, sa.BlockMask.shaped("random", 80, 16, density=0.5).columns)
    with pytest.raises(TypeError, match="density: must be a number, not 'half'"):
        sa.BlockMask.shaped("random", 80, 16, density="half")
    for lengths in ((50, 30), ()):
        with pytest.raises(ValueError, match="tokens = 3-9: lengths are given, too: only one of both"):
            sa.BlockMask.shaped("documents", 80, 16, lengths=lengths, tokens=(3, 9))


def test_what_python_raises_is_raised():
    """While the library's arrays are turned into tensors."""

    def refuse(_):
        raise KeyError("refused")

    with pytest.raises(KeyError, match="refused"):
        sa._C.make_mask("causal", 80, 80, 16, 16, 0, {}, refuse)


def test_long_masks_are_small():
    """Time and memory of the blocks, not of the pairs, of which there are 2^34 here."""
    n = 1 << 17
    causal = sa.BlockMask.causal(n)
    assert (causal.nnzb, causal.tile_bits.shape[0]) == (n // 128 * (n // 128 + 1) // 2, 1)
    window = sa.BlockMask.window(n, 1024, causal=True, sinks=4)
    assert window.nnzb < 11 * n // 128 and window.tile_bits.shape[0] <= 4
    assert sa.BlockMask.documents([1000] * 131).nnzb < 11 * n // 128
    assert sa.BlockMask.video(8, 64, 64, (3, 9, 9), 64).density < 0.3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(6, 9), (3, 6, 9), (2, 3, 6, 9)])
@pytest.mark.parametrize("top_k", [1, 4, 9, 20])
def test_scores(shape, top_k, device):
    scores = torch.randn(shape, device=device, requires_grad=True)
    mask = sa.BlockMask.from_scores(scores, top_k, 16, shape=(90, 140))
    wanted = torch.zeros(shape, dtype=torch.bool, device=device).scatter_(-1, scores.topk(min(top_k, 9)).indices, True)
    assert torch.equal(mask.to_dense(), wanted.view(mask.batch, mask.heads, 6, 9)) and mask.device == scores.device
    assert mask.tile_numbers is None and (torch.diff(mask.columns.view(-1, min(top_k, 9))) > 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_attention_by_shapes(device):
    """What a shape lets a query see is what sa.attention's words do."""
    torch.manual_seed(5)
    q, k, v = (torch.randn(2, 2, 200, 32, device=device) for _ in range(3))
    for mask, words in (
        (sa.BlockMask.causal(200, 64, device=device), {"causal": True}),
        (sa.BlockMask.window(200, 40, 32, causal=True, sinks=3, device=device), {"causal": True, "window": 40, "sinks": 3}),
        (sa.BlockMask.window(200, (9, 20), 64, device=device), {"window": (9, 20)}),
    ):
        torch.testing.assert_close(sa.attention(q, k, v, mask=mask), sa.attention(q, k, v, **words), rtol=1e-4, atol=1e-5)


def test_unions_and_intersections():
    torch.manual_seed(7)
    makers = [
        sa.BlockMask.causal(90, 16),
        sa.BlockMask.window(90, 20, 16),
        sa.BlockMask.documents([30, 40, 20], 16),
        sa.BlockMask.from_pairs(torch.rand(2, 3, 90, 90) < 0.3, 16),
        sa.BlockMask.from_pairs(torch.rand(3, 90, 90) < 0.01, 16),
        sa.BlockMask.from_dense(torch.rand(6, 6) < 0.4, 16, shape=(90, 90)),
        sa.BlockMask.from_dense(torch.zeros(6, 6, dtype=torch.bool), 16, shape=(90, 90)),
    ]
    for a, b in itertools.product(makers, makers):
        same(a | b, a.to_pairs() | b.to_pairs())
        same(a & b, a.to_pairs() & b.to_pairs())
    for other in (sa.BlockMask.causal(90, 8), sa.BlockMask.causal(91, 16)):
        with pytest.raises(ValueError, match="same shape and block"):
            makers[0] | other
    with pytest.raises(ValueError, match="as many heads and items"):
        makers[3] & sa.BlockMask.from_dense(torch.ones(2, 6, 6, dtype=torch.bool), 16, shape=(90, 90))
    with pytest.raises(TypeError):
        makers[0] | torch.ones(90, 90)


def test_stack():
    masks = [sa.BlockMask.documents(lengths, 16) for lengths in ([50, 14], [64], [1, 30, 33])]
    stacked = sa.BlockMask.stack(masks)
    assert (stacked.batch, stacked.heads, stacked.nnzb) == (3, 1, sum(mask.nnzb for mask in masks))
    assert torch.equal(stacked.to_pairs(), torch.cat([mask.to_pairs() for mask in masks]))
    whole = [sa.BlockMask.from_dense(torch.rand(4, 4) < 0.5, 16) for _ in range(2)]
    assert sa.BlockMask.stack(whole).tile_bits is None
    for wrong in ([], [masks[0], whole[0].to_pairs()], [masks[0], sa.BlockMask.causal(65, 16)], [stacked]):
        with pytest.raises(ValueError, match="masks: "):
            sa.BlockMask.stack(wrong)


@pytest.mark.parametrize("queries, keys", [(256, 256), (200, 330)])
def test_flex(queries, keys):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    of = torch.randint(0, 4, (keys,)).sort().values

    def causal(b, h, q, k):
        return q >= k

    def by_head(b, h, q, k):
        return (q - k).abs() < 30 * (h + 1) + 100 * b

    def documents(b, h, q, k):
        return of[q.clamp(max=keys - 1)] == of[k]

    for rule, batch, heads in ((causal, None, None), (by_head, 2, 3), (documents, None, None), (flex.noop_mask, 2, None)):
        given = flex.create_block_mask(rule, batch, heads, queries, keys, device="cpu", BLOCK_SIZE=64)
        q, k = torch.arange(queries)[:, None], torch.arange(keys)
        b, h = torch.arange(batch or 1)[:, None, None, None], torch.arange(heads or 1)[:, None, None]
        seen = torch.as_tensor(rule(b, h, q, k)).expand(batch or 1, heads or 1, queries, keys)
        same(sa.BlockMask.from_flex(given), seen)
    branching = flex.BlockMask.from_kv_blocks(
        torch.ones(1, 1, 4, dtype=torch.int32), torch.zeros(1, 1, 4, 4, dtype=torch.int32), BLOCK_SIZE=64, mask_mod=lambda b, h, q, k: q >= k and k > 3
    )
    with pytest.raises(ValueError, match="mask_mod: cannot be evaluated"):
        sa.BlockMask.from_flex(branching)
    with pytest.raises(TypeError, match="must be a BlockMask of torch"):
        sa.BlockMask.from_flex(torch.ones(3, 3))
    q = torch.randn(1, 1, 256, 16)
    with pytest.raises(TypeError, match="mask: must be sa.BlockMask .*, not a BlockMask of FlexAttention; sa.BlockMask.from_flex takes one"):
        sa.attention(q, q, q, mask=branching)


def test_picture():
    assert sa.BlockMask.causal(64, 16).picture() == "┌──┐\n│⣷⣄│\n└──┘"
    assert sa.BlockMask.from_dense(torch.zeros(4, 4, dtype=torch.bool), 16).picture() == "┌──┐\n│⠀⠀│\n└──┘"
    wide = sa.BlockMask.window(4096, 300, 16).picture(20).splitlines()
    assert len(wide[0]) == 22 and wide[1].startswith("│⣿")
    with pytest.raises(ValueError, match="head, item"):
        sa.BlockMask.causal(64, 16).picture(head=1)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: sa.BlockMask.causal(-1), "queries: must be 0 or more"),
        (lambda: sa.BlockMask.causal(10, 8, 20), "causal: True with 10 queries and 20 keys"),
        (lambda: sa.BlockMask.causal(10, 300), "block"),
        (lambda: sa.BlockMask.window(10, -3), "window: -3 keys"),
        (lambda: sa.BlockMask.window(10, None, sinks=3), "sinks: "),
        (lambda: sa.BlockMask.documents([3, -1]), "lengths: must be 0 or more"),
        (lambda: sa.BlockMask.prefix(10, -1), "prefix: must be 0 or more"),
        (lambda: sa.BlockMask.strided(10, 0, 3), "stride: must be 1 or more"),
        (lambda: sa.BlockMask.strided(10, 3, 0), "local: must be 1 or more"),
        (lambda: sa.BlockMask.video(0, 3, 3, (1, 1, 1)), "frames: must be 1 or more"),
        (lambda: sa.BlockMask.video(2, 3, 3, (1, 1)), "window: must be"),
        (lambda: sa.BlockMask.shaped("round", 9), "shape: must be one of 'causal', 'window', .*, not 'round'$"),
        (lambda: sa.BlockMask.shaped("casual", 9), r"not 'casual'; did you mean 'causal'\?"),
        (lambda: sa.BlockMask.shaped("window", 9, window=0), "window: must be 1 or more"),
        (lambda: sa.BlockMask.shaped("window", 9, window=1 << 41), "window: must be 1099511627776 or less, not 2199023255552"),
        (lambda: sa.BlockMask.shaped("window", 9, window=1 << 70), "window: must be 1099511627776 or less"),
        (lambda: sa.BlockMask.shaped("documents", 9, lengths=[1 << 70]), "lengths: must be 1099511627776 or less"),
        (lambda: sa.BlockMask.shaped("random", 9, seed=1 << 63), "seed: must be 9223372036854775807 or less"),
        (lambda: sa.BlockMask.causal(1 << 70), "queries: must be 1099511627776 or less"),
        (lambda: sa.BlockMask.prefix(9, 3, keys=1 << 70, diagonal="top_left"), "keys: must be 1099511627776 or less"),
        (lambda: sa.BlockMask.shaped("random", 9, density=2), "density: must be from 0 to 1"),
        (lambda: sa.BlockMask.shaped("video", 9, cells=(3, 3)), "cells: must be 3 whole numbers"),
        (lambda: sa.BlockMask.shaped("video", 9, cells=(3, 3, 3)), "cells = 3 x 3 x 3: are 27 queries and as many keys, but queries = 9, keys = 9"),
        (lambda: sa.BlockMask.shaped("documents", 9, lengths=[4, 4]), "lengths: their sum is 8, but there are 9 keys"),
        (lambda: sa.BlockMask.from_scores(torch.randn(3, 4), 0, 16), "top_k: must be 1 or more"),
        (lambda: sa.BlockMask.from_scores(torch.randn(4), 1, 16), "scores: must be"),
        (lambda: sa.BlockMask.from_scores(torch.randn(3, 4), 1, 16, shape=(48, 80)), "shape: 48 x 80"),
        (lambda: sa.BlockMask.from_scores(torch.tensor([[1, -torch.inf], [torch.nan, torch.inf]]), 1, 16), r"scores: the one at \[1, 0\] is nan"),
        (lambda: sa.BlockMask.from_scores(torch.full((2, 3, 4), torch.nan), 4, 16), r"scores: the one at \[0, 0, 0\] is nan"),
    ],
)
def test_wrong_words(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_words_of_a_shape():
    """As of a function: those it does not know, and those that are missing."""
    with pytest.raises(TypeError, match="head: shape 'causal' takes heads, all_keys, top_left; did you mean 'heads'\\?"):
        sa.BlockMask.shaped("causal", 9, head=3)
    with pytest.raises(TypeError, match="sinks: shape 'causal' takes heads, all_keys, top_left$"):
        sa.BlockMask.shaped("causal", 9, sinks=3)
    with pytest.raises(TypeError, match="prefix: shape 'prefix' needs it: so many of the first keys"):
        sa.BlockMask.shaped("prefix", 9)
