"""Attention and experts over 2 and 4 processes beside the same in one."""

import pytest
import torch
from conftest import close
from torch import nn

import sparse_autotune as sa
from sparse_autotune.distributed import attention_by_heads, attention_by_keys, experts


@pytest.fixture(params=[2, 4])
def world(request, worlds):
    return worlds[request.param]


def _operands(heads, of_k, rows, layout="bhsd"):
    shapes = [(2, h, rows, d) for h, d in ((heads, 8), (of_k, 8), (of_k, 4), (heads, 4))]
    made = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return [x.transpose(1, 2).contiguous() for x in made] if layout == "bshd" else made


def _checked(rank, size, call, whole_call, operands, dim):
    """call: of this rank's rows. The last of the operands is the gradient of the result."""
    q, k, v, gradient = operands
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    want = whole_call(*leaves)
    want.backward(gradient)
    mine = [x.chunk(size, dim)[rank].contiguous().requires_grad_() for x in (q, k, v)]
    got = call(*mine)
    close(got, want.detach().chunk(size, dim)[rank])
    got.backward(gradient.chunk(size, dim)[rank].contiguous())
    for ours, theirs in zip(mine, leaves, strict=True):
        close(ours.grad, theirs.grad.chunk(size, dim)[rank])
    with torch.no_grad():
        again = call(*mine)
        close(again, want.detach().chunk(size, dim)[rank])
        assert torch.equal(again, call(*mine))


def _by_heads(rank, size, layout, kind):
    operands = _operands(8, 4, 32, layout)
    words = {}
    if kind == "causal":
        words = dict(causal=True, scale=0.3, softcap=5.0)
    elif kind != "none":
        heads = {"one": (), "of k": (4,), "of q": (8,), "items": (2, 4)}[kind]
        words = dict(mask=sa.BlockMask.from_dense(torch.rand(*heads, 4, 4) < 0.5, 8))
    dim = 2 if layout == "bhsd" else 1
    _checked(rank, size, lambda *x: attention_by_heads(*x, layout=layout, **words), lambda *x: sa.attention(*x, layout=layout, **words), operands, dim)


@pytest.mark.parametrize("layout, kind", [("bhsd", "none"), ("bshd", "causal"), ("bhsd", "one"), ("bshd", "of k"), ("bhsd", "of q"), ("bhsd", "items")])
def test_by_heads(world, layout, kind):
    world.run(_by_heads, layout, kind)


MASKS = {
    "random": lambda: sa.BlockMask.from_dense(torch.rand(8, 16) < 0.3, (8, 4)),
    "heads": lambda: sa.BlockMask.from_dense(torch.rand(2, 4, 8, 16) < 0.3, (8, 4)),
    "causal": lambda: sa.BlockMask.causal(64, 8),
    "window": lambda: sa.BlockMask.window(64, 11, 8, causal=True, sinks=3),
    "own": lambda: sa.BlockMask.from_dense(torch.eye(4, dtype=torch.bool), 16),
    "nothing": lambda: sa.BlockMask.from_dense(torch.zeros(4, 4, dtype=torch.bool), 16),
}


def _by_keys(rank, size, kind):
    mask = MASKS[kind]()
    operands = _operands(8, 4, 64)
    _checked(rank, size, lambda *x: attention_by_keys(*x, mask, scale=0.4), lambda *x: sa.attention(*x, mask=mask, scale=0.4), operands, 2)


@pytest.mark.parametrize("kind", MASKS)
def test_by_keys(world, kind):
    world.run(_by_keys, kind)


def _attention_refusals(rank, size):
    q, k, v, _ = _operands(8, 4, 64 // size)
    with pytest.raises(ValueError, match="k: has 3 heads, which 2 ranks cannot share equally"):
        attention_by_heads(q, k[:, :3], v[:, :3])
    with pytest.raises(ValueError, match="query_ends: is not there"):
        attention_by_heads(q, k, v, query_ends=torch.tensor([3]))
    with pytest.raises(ValueError, match="mask: is of 40 x 40; 2 ranks want equal shares in whole blocks of 8 x 8"):
        attention_by_keys(q, k, v, sa.BlockMask.causal(40, 8))
    with pytest.raises(ValueError, match="q: its shape is .*of 32 rows of the mask each of 2 ranks has 16"):
        attention_by_keys(q, k, v, sa.BlockMask.causal(32, 8))
    with pytest.raises(TypeError, match="mask: must be an sa.BlockMask, not Tensor"):
        attention_by_keys(q, k, v, torch.ones(4, 4))


def test_refusals(worlds):
    worlds[2].run(_attention_refusals)


# ------------------------------------------------------------------------------------------------ experts


def _formula(x, chosen, weights, up, down, gate):
    out = torch.zeros_like(x)
    for token in range(x.shape[0]):
        for at, expert in enumerate(chosen[token].tolist()):
            hidden = x[token] @ up[expert]
            hidden = nn.functional.silu(hidden) if gate is None else nn.functional.silu(x[token] @ gate[expert]) * hidden
            out[token] += weights[token, at] * (hidden @ down[expert])
    return out


def _experts(rank, size, gated, capacity, skewed):
    tokens, model, hidden, count, k = 12 * size, 8, 12, 2 * size, 2
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in ((tokens, model), (count, model, hidden), (count, hidden, model), (count, model, hidden))]
    weights = torch.rand(tokens, k, dtype=torch.float64)
    chosen = torch.rand(tokens, count).topk(k).indices
    if skewed:
        chosen[:, 0] = 1
    leaves = [x.clone().requires_grad_() for x in (*tensors, weights)]
    kept = torch.ones_like(weights)
    if capacity is not None:  # the first pairs of each rank that go to a rank
        for first in range(0, tokens, 12):
            room = [capacity] * size
            for token in range(first, first + 12):
                for at in range(k):
                    to = int(chosen[token, at]) // 2
                    kept[token, at] = float(room[to] > 0)
                    room[to] -= 1
    want = _formula(leaves[0], chosen, leaves[4] * kept, leaves[1], leaves[2], leaves[3] if gated else None)
    gradient = torch.randn_like(want)
    want.backward(gradient)
    mine = [x.chunk(size)[rank].clone().requires_grad_() for x in (*tensors, weights)]
    x, up, down, gate, of = mine
    got = experts(x, chosen.chunk(size)[rank], of, up, down, gate=gate if gated else None, capacity=capacity)
    close(got, want.detach().chunk(size)[rank])
    got.backward(gradient.chunk(size)[rank])
    for ours, theirs in zip(mine, leaves, strict=True):
        if theirs.grad is not None:
            close(ours.grad, theirs.grad.chunk(size)[rank])
    with pytest.raises(ValueError, match="capacity: must be a whole number from 1"):
        experts(x, chosen.chunk(size)[rank], of, up, down, capacity=0)


@pytest.mark.parametrize("gated, capacity, skewed", [(True, None, False), (False, None, True), (True, 7, False), (False, 5, True)])
def test_experts(world, gated, capacity, skewed):
    world.run(_experts, gated, capacity, skewed)
