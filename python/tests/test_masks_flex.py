"""sa.BlockMask.from_flex beside FlexAttention's own table of pairs (create_mask): generated mask_mods, lists with wrong numbers, and mask_mods that
look at the head or the item beside lists for one."""

import copy
import io
import os
import random

import pytest
import torch

import sparse_autotune as sa

flex = pytest.importorskip("torch.nn.attention.flex_attention")

SEED = int.from_bytes(os.urandom(4), "little")


class Mods:
    """Draws mask_mods. Each is a function of (b, h, q, k), and a text that says what it is."""

    def __init__(self, seed, batch, heads, queries, keys):
        self.random, self.batch, self.heads, self.queries, self.keys = random.Random(seed), batch, heads, queries, keys
        self.longest = max(queries, keys)

    def numbers(self, high, *shape):
        return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(self.random.randrange(1 << 30)))

    def simple(self):
        n, m = self.random.randint(1, self.longest), self.random.randint(2, 9)
        documents, tags, table = (
            self.numbers(4, self.longest).sort().values,
            self.numbers(5, self.longest, 4) == 0,
            self.numbers(3, self.queries, self.keys) == 0,
        )
        spans, of, allowed = self.numbers(self.queries + 1, 3, 2).sort(-1).values, self.numbers(3, self.longest), self.numbers(self.keys, self.queries, 3)
        scores, limit = self.numbers(1000, self.queries, self.keys) / 1000, torch.tensor(0.7)
        return {
            "causal": lambda b, h, q, k: q >= k,
            f"window {n}": lambda b, h, q, k: (q - k).abs() < n,
            f"each {m}th": lambda b, h, q, k: (q + k) % m == 0,
            "documents": lambda b, h, q, k: documents[q] == documents[k],
            "table": lambda b, h, q, k: table[q, k],
            "row of a table, then an element": lambda b, h, q, k: table[q][k],
            "number of a row": lambda b, h, q, k: scores[q].argmax() >= k,
            "best of a row": lambda b, h, q, k: (scores[q].topk(min(2, self.keys)).indices == k).any(),
            "captured threshold": lambda b, h, q, k: scores[q, k] > limit,
            "shares a tag": lambda b, h, q, k: (tags[q] & tags[k]).any(),
            "in a list": lambda b, h, q, k: (allowed[q] == k).any(),
            "in a span": lambda b, h, q, k: (q >= spans[of[k]][0]) & (q < spans[of[k]][1]),
            "all of a stack": lambda b, h, q, k: torch.stack([q >= k, q - k < n]).all(),
            "any of a cat": lambda b, h, q, k: torch.cat([(q >= k)[None], (k % m == 0)[None]]).any(),
            "between": lambda b, h, q, k: torch.max(q, k) - torch.min(q, k) < n,
            "changed in place": lambda b, h, q, k: torch.where(q > k, q, k).add_(1).sub_(q) < n,
            "everything": flex.noop_mask,
            "nothing": lambda b, h, q, k: q.new_zeros((), dtype=torch.bool),
        }

    def of_heads_and_items(self):
        ends, windows = self.numbers(self.keys + 1, self.batch), 1 + self.numbers(self.longest, self.heads)
        documents, both = self.numbers(3, self.batch, self.longest), self.numbers(2, self.batch, self.heads).bool()
        return {
            "end of the item": lambda b, h, q, k: k < ends[b],
            "window of the head": lambda b, h, q, k: (q - k).abs() < windows[h],
            "documents of the item": lambda b, h, q, k: documents[b, q] == documents[b, k],
            "each other head": lambda b, h, q, k: (h % 2 == 0) | (q >= k),
            "a switch of both": lambda b, h, q, k: both[b][h],
        }

    def draw(self, depth=2):
        kind = self.random.choice(["simple", "simple", "own", "and", "or", "not", "where"]) if depth else self.random.choice(["simple", "own"])
        if kind in ("simple", "own"):
            text, mod = self.random.choice(list((self.simple() if kind == "simple" else self.of_heads_and_items()).items()))
            return text, mod
        (text, one), (text_2, other) = self.draw(depth - 1), self.draw(depth - 1)
        if kind in ("and", "or"):
            return f"({text} {kind} {text_2})", (flex.and_masks if kind == "and" else flex.or_masks)(one, other)
        if kind == "not":
            return f"not {text}", lambda b, h, q, k: ~one(b, h, q, k)
        return f"where(q % 2, {text}, {text_2})", lambda b, h, q, k: torch.where(q % 2 == 0, one(b, h, q, k), other(b, h, q, k))


def draw(seed):
    """A mask_mod, sizes, and blocks, also larger ones than sa.BlockMask has."""
    rng = random.Random(seed)
    sizes = dict(B=rng.choice([1, 1, 2, 3]), H=rng.choice([1, 2, 4]), Q_LEN=rng.randint(1, 150), KV_LEN=rng.randint(1, 150))
    block = tuple(rng.choice([1, 2, 3]) * rng.choice([4, 16, 32, 128]) for _ in range(2))
    return *Mods(seed, *sizes.values()).draw(), sizes, block


@pytest.mark.parametrize("turn", range(40))
def test_generated_mods(turn):
    seed = SEED + turn
    text, mod, sizes, block = draw(seed)
    wanted = flex.create_mask(mod, **sizes, device="cpu")
    made = sa.BlockMask.from_flex(flex.create_block_mask(mod, **sizes, device="cpu", BLOCK_SIZE=block))
    assert torch.equal(made.to_pairs(), wanted), f"draw({seed}): {text}, {sizes}, blocks of {block}: {int((made.to_pairs() != wanted).sum())} pairs differ"


def all_blocks(mod, queries, keys, block, items=1, heads=1):
    """Lists of all blocks, as partial ones, for so many items and heads."""
    down, across = -(-queries // block), -(-keys // block)
    columns = torch.arange(across, dtype=torch.int32).expand(items, heads, down, across).contiguous()
    counts = torch.full((items, heads, down), across, dtype=torch.int32)
    return flex.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=block, mask_mod=mod, seq_lengths=(queries, keys))


@pytest.mark.parametrize("turn", range(20))
def test_lists_for_one_head_or_item(turn):
    """The lists serve all heads and items; mask_mod has the last word. Never the pairs of head 0, or of item 0, for another one."""
    seed = SEED + turn
    rng = random.Random(seed)
    batch, heads, queries, keys, block = rng.randint(2, 3), rng.choice([2, 4]), rng.randint(1, 90), rng.randint(1, 90), rng.choice([16, 32])
    text, mod = Mods(seed, batch, heads, queries, keys).draw()
    given = all_blocks(mod, queries, keys, block)
    wanted = flex.create_mask(mod, batch, heads, queries, keys, device="cpu")
    made = sa.BlockMask.from_flex(given, heads=heads, batch=batch)
    said = f"seed {seed}: {text}"
    assert made.heads in (1, heads) and made.batch in (1, batch), said
    assert torch.equal(made.to_pairs().expand_as(wanted), wanted), said
    alone = sa.BlockMask.from_flex(given)
    assert torch.equal(alone.to_pairs()[0, 0], wanted[0, 0]), said
    q, k = torch.randn(batch, heads, queries, 8), torch.randn(batch, heads, keys, 8)
    try:
        found = sa.attention(q, k, k, mask=alone)
    except ValueError as error:
        assert "holds for" in str(error), said
    else:
        torch.testing.assert_close(found, sa.attention(q, k, k, mask=sa.BlockMask.from_pairs(wanted, 16)), msg=said)


def by_head(b, h, q, k):
    return q - k < 8 * (h + 1)


def by_item(b, h, q, k):
    return k < 20 + 7 * b


@pytest.mark.parametrize("mod, of, word", [(by_head, "head 0", "heads"), (by_item, "item 0", "batch")])
def test_what_holds_for_one_head_or_item_alone(mod, of, word):
    """That is kept whatever is made of the mask, and refused with the word that helps."""
    alone = sa.BlockMask.from_flex(all_blocks(mod, 64, 64, 16))
    kept = io.BytesIO()
    torch.save(alone, kept)
    kept.seek(0)
    leaves, spec = torch.utils._pytree.tree_flatten(alone)
    others = [alone, alone.to("cpu"), copy.deepcopy(alone), torch.load(kept), torch.utils._pytree.tree_unflatten(leaves, spec)]
    others += [alone & sa.BlockMask.causal(64, 16), sa.BlockMask.causal(64, 16) | alone]
    others += [sa.BlockMask.stack([alone, alone])] if word == "heads" else []
    q = torch.randn(2, 2, 64, 8)
    for mask in others:
        for call in (lambda mask=mask: sa.attention(q, q, q, mask=mask), lambda mask=mask: sa.scaled_dot_product_attention(q, q, q, mask)):
            with pytest.raises(ValueError, match=rf"mask: holds for {of} alone, and there are 2: .*from_flex\(\.\.\., {word}=2\)"):
                call()
        one = q[:, :1] if word == "heads" else q[:1]
        assert sa.attention(one, one, one, mask=mask).shape == one.shape if mask.batch in (1, len(one)) else True
    with pytest.raises(ValueError, match="masks: holds for"):
        alone | sa.BlockMask.from_dense(torch.ones(2, 2, 4, 4, dtype=torch.bool), 16)
    whole = sa.BlockMask.from_flex(all_blocks(mod, 64, 64, 16), **{word: 2})
    assert sa.attention(q, q, q, mask=whole).shape == q.shape and whole.alone == (False, False)
    with pytest.raises(ValueError, match=f"{word}: is 3, but the mask has lists for 2"):
        sa.BlockMask.from_flex(all_blocks(mod, 64, 64, 16, 2, 2), **{word: 3})
    with pytest.raises((TypeError, ValueError), match=f"{word}: must be"):
        sa.BlockMask.from_flex(all_blocks(mod, 64, 64, 16), **{word: 0})


def test_a_mod_that_names_head_and_item_without_looking_needs_no_number():
    for mod in (flex.noop_mask, lambda b, h, q, k: (q >= k) & torch.ones_like(h, dtype=torch.bool), lambda b, h, q, k: b.new_full((), True, dtype=torch.bool)):
        assert sa.BlockMask.from_flex(all_blocks(mod, 40, 40, 16)).alone == (False, False)


def lists(**changes):
    """Two rows of two blocks of 16 x 16, whole, with a change."""
    parts = dict(kv_num_blocks=torch.full((1, 1, 2), 2, dtype=torch.int32), kv_indices=torch.tensor([[[[0, 1], [0, 1]]]], dtype=torch.int32))
    parts |= dict(full_kv_num_blocks=None, full_kv_indices=None) | changes
    rest = dict.fromkeys(("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"))
    return flex.BlockMask(**parts, **rest, BLOCK_SIZE=(16, 16), mask_mod=flex.noop_mask, seq_lengths=(32, 32))


def int32(*rows):
    return torch.tensor([[rows]], dtype=torch.int32)


@pytest.mark.parametrize(
    "changes, said",
    [
        (dict(kv_indices=int32((0, 1), (0, 2))), r"kv_indices\[0, 0, 1, 1\] is 2; block columns are 0\.\.1"),
        (dict(kv_indices=int32((0, 1), (3, 1))), r"kv_indices\[0, 0, 1, 0\] is 3"),
        (dict(kv_indices=int32((-1, 1), (0, 1))), r"kv_indices\[0, 0, 0, 0\] is -1"),
        (dict(kv_indices=int32((0, 1), (1, 1))), r"kv_indices lists a block twice, in row \[0, 0, 1\]"),
        (dict(kv_num_blocks=int32(2, 3)), r"kv_num_blocks\[0, 0, 1\] is 3; kv_indices has room for 2"),
        (dict(kv_num_blocks=int32(-1, 2)), r"kv_num_blocks\[0, 0, 0\] is -1"),
        (dict(kv_num_blocks=int32(2, 2, 2)), "kv_num_blocks is"),
        (dict(kv_num_blocks=int32(2), kv_indices=int32((0, 1))), "has 1 block rows; 32 queries in blocks of 16 have 2"),
        (dict(full_kv_num_blocks=int32(0, 1), full_kv_indices=int32((7, 7), (2, 7))), r"full_kv_indices\[0, 0, 1, 0\] is 2"),
        (
            dict(full_kv_num_blocks=int32(0, 1), full_kv_indices=int32((7, 7), (1, 7))),
            r"full_kv_indices lists a block that kv_indices lists, too, in row \[0, 0, 1\]",
        ),
    ],
)
def test_wrong_lists(changes, said):
    with pytest.raises(ValueError, match="mask: " + said):
        sa.BlockMask.from_flex(lists(**changes))
    assert sa.BlockMask.from_flex(lists(kv_num_blocks=int32(2, 1), kv_indices=int32((0, 1), (1, 9)))).to_dense()[0, 0].tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize(
    "mod, said",
    [
        (lambda b, h, q, k: q >= k and k > 3, "cannot be evaluated"),
        (lambda b, h, q, k: q - k, "it gives torch.int64, not booleans"),
        (lambda b, h, q, k: (q >= k)[None], r"it gives a tensor \[1\] for a pair"),
        (lambda b, h, q, k: torch.ones(3, dtype=torch.bool)[q], "out of (bounds|range)"),
    ],
)
def test_mods_that_flex_attention_refuses(mod, said):
    with pytest.raises(ValueError, match=f"mask_mod: .*{said}"):
        sa.BlockMask.from_flex(all_blocks(mod, 40, 40, 16))


def test_no_keyword_is_dropped():
    given = all_blocks(by_item, 40, 40, 16)
    for word in ("kernel_options", "BLOCK_SIZE", "mask_mod"):
        with pytest.raises(TypeError, match=word):
            sa.BlockMask.from_flex(given, **{word: 1})
