"""sa.scaled_dot_product_attention beside PyTorch's: values, masks, what is left to PyTorch, errors, tracers."""

import itertools
import os
import random

import pytest
import torch
from conftest import DTYPES, TOLERANCE
from test_attention import strides_of

import sparse_autotune as sa
from sparse_autotune import _attention, _sdpa

pytorch = torch.nn.functional.scaled_dot_product_attention
ours = sa.scaled_dot_product_attention
SEED = int.from_bytes(os.urandom(4), "little")


def drawn(*sizes, dtype=torch.float32, device="cpu"):
    return torch.randn(*sizes, device=device).to(dtype)


def keeps_no_zeros(mask, q):
    """PyTorch's kernels compute, one of which gives other numbers than 0 to a query that sees no key."""
    return isinstance(mask, torch.Tensor) and mask.dtype is torch.bool and q.is_cuda and q.dtype.itemsize == 2


def agrees(q, k, v, mask=None, **words):
    """Beside PyTorch's function in float64; a BlockMask written out for it."""
    made = ours(q, k, v, mask, **words)
    dense = mask
    if isinstance(mask, sa.BlockMask):
        dense = _sdpa.pairs_of(mask, q)
        if words.get("is_causal"):
            dense, words = dense.tril(), words | {"is_causal": False}
    elif mask is not None and mask.is_floating_point() and type(mask) is torch.Tensor:
        dense = mask.double()
    want = pytorch(q.double(), k.double(), v.double(), dense, **words)
    if keeps_no_zeros(mask, q):
        want = torch.where(mask.any(-1, keepdim=True), want, made.double())
    assert made.shape == want.shape and made.dtype is q.dtype and made.device == q.device
    assert torch.equal(made.isnan(), want.isnan())
    off = (made.double() - want).abs().nan_to_num()
    assert (off <= TOLERANCE[q.dtype] * want.abs().nan_to_num().clamp(min=1)).all(), off.max()
    return made


@pytest.fixture
def counted(monkeypatch):
    """How often sa.attention was called, or what it calls past the dispatcher."""
    calls = []
    real, directly = _attention.attention, _sdpa.direct_attention

    def counting_directly(*operands):
        made = directly(*operands)
        if made is not NotImplemented:
            calls.append({})
        return made

    def counting(*operands, **words):
        calls.append(words)
        return real(*operands, **words)

    monkeypatch.setattr(_sdpa, "attention", counting)
    monkeypatch.setattr(_sdpa, "direct_attention", counting_directly)
    return calls


# ------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3), (2, 2, 2, 3)], ids=str)
@pytest.mark.parametrize("queries,keys", [(1, 1), (7, 33), (33, 7), (64, 64), (1, 90)])
def test_shapes(lead, queries, keys, dtype, device, counted):
    q, k, v = (drawn(*lead, rows, depth, dtype=dtype, device=device) for rows, depth in ((queries, 16), (keys, 16), (keys, 24)))
    agrees(q, k, v)
    agrees(q, k, v, is_causal=True)
    agrees(q, k, v, scale=0.3)
    assert len(counted) == (0 if dtype is torch.float64 and device == "cuda" else 3)


@pytest.mark.parametrize("heads,heads_kv", [(4, 4), (4, 2), (6, 1), (6, 3)])
@pytest.mark.parametrize("lead", [(), (2,), (2, 2)], ids=str)
def test_shared_heads(heads, heads_kv, lead, dtype, device, counted):
    q, k = drawn(*lead, heads, 19, 16, dtype=dtype, device=device), drawn(*lead, heads_kv, 27, 16, dtype=dtype, device=device)
    agrees(q, k, k, enable_gqa=True)
    agrees(q, k, k, enable_gqa=True, is_causal=True)
    assert len(counted) == (0 if dtype is torch.float64 and device == "cuda" else 2)


@pytest.mark.parametrize("kind", ["tight", "rows of heads", "apart", "scattered", "columns", "items inside"])
def test_layouts(kind, dtype, device):
    q, k, v = (drawn(2, 3, rows, 16, dtype=dtype, device=device) for rows in (19, 27, 27))
    given = [strides_of(t)[kind] for t in (q, k, v)]
    torch.testing.assert_close(agrees(*given, is_causal=True), ours(q, k, v, is_causal=True))


@pytest.mark.parametrize("way", ["plain", "mask", "gradients", "compiled"])
def test_the_result_lies_as_query(way, dtype, device, counted):
    """So that result.transpose(1, 2).view(batch, queries, -1) is one, as it is of PyTorch's result."""

    def rows_first(heads, rows):
        return drawn(2, rows, heads, 16, dtype=dtype, device=device).transpose(1, 2)

    torch._dynamo.reset()
    # On a GPU PyTorch's own formula has what is left to it, and lays out some results in another way.
    own = device == "cpu" or not (dtype is torch.float64 or (way == "gradients" and dtype is torch.float32))
    function = torch.compile(ours, backend="aot_eager", fullgraph=True) if way == "compiled" else ours
    k = rows_first(2, 33)
    mask = sa.BlockMask.from_pairs(torch.rand(19, 33) < 0.8, 16).to(device) if way == "mask" else None
    for heads, rows in ((4, 19), (4, 1), (2, 19)):
        q = rows_first(heads, rows).requires_grad_(way == "gradients")
        seen = mask if rows == 19 else None
        for causal in (False, True):
            made = function(q, k, k, seen, is_causal=causal, enable_gqa=True)
            if own:
                made.detach().transpose(1, 2).view(2, rows, heads * 16)
            torch.testing.assert_close(made, ours(q.contiguous(), k, k, seen, is_causal=causal, enable_gqa=True))
            assert made.requires_grad is q.requires_grad
    contiguous = function(q.detach().contiguous(), k, k, seen)
    assert contiguous.is_contiguous()
    assert len(counted) >= (6 if own else 0)
    if way == "plain" and own:
        made = ours(rows_first(1, 19), k[:, :1], k[:, :1])
        assert made.shape == (2, 1, 19, 16) and made.is_contiguous()
        assert ours(q[0], k[0], k[0]).transpose(0, 1).is_contiguous()


@pytest.mark.parametrize("given", [(0, 2, 3, 4, 8), (2, 0, 3, 4, 8), (2, 2, 0, 4, 8), (2, 2, 3, 0, 8), (2, 2, 3, 4, 0)], ids=str)
def test_empty(given, device):
    batch, heads, queries, keys, depth = given
    q, k, v = (drawn(batch, heads, *of, device=device) for of in ((queries, depth), (keys, depth), (keys, 4)))
    torch.testing.assert_close(ours(q, k, v), pytorch(q, k, v), equal_nan=True)


@pytest.mark.parametrize("scale", [0.0, -3.0, 1e30, 2, True, float("nan"), float("inf")])
def test_scales(scale, device):
    q, k = drawn(2, 3, 9, 8, device=device), drawn(2, 3, 11, 8, device=device)
    torch.testing.assert_close(ours(q, k, k, scale=scale), pytorch(q, k, k, scale=scale), equal_nan=True, atol=1e-4, rtol=1e-4)


def test_at_random(dtype, device):
    print("seed", SEED)
    draw = random.Random(SEED)
    torch.manual_seed(SEED)
    for _ in range(40):
        batch, heads_kv, share, queries, keys = (draw.randint(1, most) for most in (3, 3, 3, 150, 150))
        depth, depth_v = 8 * draw.randint(1, 9), 8 * draw.randint(1, 9)
        sizes = (batch, heads_kv * share, queries, depth), (batch, heads_kv, keys, depth), (batch, heads_kv, keys, depth_v)
        q, k, v = (draw.choice(list(strides_of(drawn(*size, dtype=dtype, device=device)).values())) for size in sizes)
        shape = [draw.choice([1, size]) for size in (batch, heads_kv * share, queries, keys)]
        while len(shape) > 2 and draw.random() < 0.3:
            shape = shape[1:]
        seen = torch.rand(*shape, device=device) < draw.choice([0.2, 0.9, 1.0])
        mask = draw.choice([None, None, seen, drawn(*shape, dtype=dtype, device=device)])
        agrees(q, k, v, mask, is_causal=mask is None and draw.random() < 0.5, enable_gqa=share > 1 or draw.random() < 0.5)


# ------------------------------------------------------------------------------------------------ masks


@pytest.mark.parametrize("lead", [(), (4,), (1,), (2, 4), (2, 1)], ids=str)
@pytest.mark.parametrize("pairs", [(19, 27), (1, 27), (19, 1), (1, 1)], ids=str)
def test_dense_masks(lead, pairs, dtype, device):
    shape = (*lead, *pairs)
    q, k = drawn(2, 4, 19, 16, dtype=dtype, device=device), drawn(2, 4, 27, 16, dtype=dtype, device=device)
    agrees(q, k, k, torch.rand(shape, device=device) < 0.5)
    agrees(q, k, k, drawn(*shape, dtype=dtype, device=device))
    if len(shape) < 4:
        agrees(q[0], k[0], k[0], torch.rand(shape, device=device) < 0.5)


def test_dense_masks_of_any_strides(dtype, device):
    """Those that do not lie along the keys, of whose kind PyTorch's kernels for CUDA refuse some, or read at odd addresses."""
    q, k = drawn(2, 4, 19, 16, dtype=dtype, device=device), drawn(2, 4, 27, 16, dtype=dtype, device=device)
    chances = torch.rand(27, 19, device=device).mT, torch.rand(4, 19, 1, device=device).expand(4, 19, 27), torch.rand(19, 54, device=device)[:, ::2]
    for seen in [chance < 0.5 for chance in chances] + [(chances[1][..., :1] < 0.5).expand(4, 19, 27)]:
        agrees(q, k, k, seen)
    for chance in chances:
        agrees(q, k, k, (chance if dtype is torch.float32 else chance.to(dtype)))


def test_rows_without_keys(dtype, device):
    q = drawn(1, 2, 130, 16, dtype=dtype, device=device)
    for hidden in (slice(0, 64), slice(3, 7), slice(0, 130)):
        seen = torch.ones(130, 130, dtype=torch.bool, device=device)
        seen[hidden] = False
        seen[:, 64:] = False
        for mask in (seen, seen, sa.BlockMask.from_pairs(seen, 16)):
            assert (agrees(q, q, q, mask)[:, :, hidden] == 0).all() or keeps_no_zeros(mask, q)


def test_masks_with_few_blocks_are_converted(counted, monkeypatch):
    """When they come again."""
    sa.clear_cache()
    q = drawn(2, 2, 200, 16)
    seen = torch.zeros(200, 200, dtype=torch.bool)
    seen[:70, :70], seen[70:, 70:] = True, torch.rand(130, 130) < 0.9
    made = []
    real = sa.BlockMask.from_pairs
    monkeypatch.setattr(sa.BlockMask, "from_pairs", lambda *given: made.append(0) or real(*given))
    agrees(q, q, q, seen)
    assert not counted and not made
    for _ in range(3):
        agrees(q, q, q, seen)
    assert len(counted) == 3 and len(made) == 1 and all(isinstance(words["mask"], sa.BlockMask) for words in counted)
    seen.numpy()[:70, :70] = False  # a change that PyTorch does not count
    agrees(q, q, q, seen)
    assert len(counted) == 3
    agrees(q, q, q, seen)
    assert len(counted) == 4 and len(made) == 2
    dense = torch.rand(2, 1, 200, 200) < 0.5
    for _ in range(3):
        agrees(q, q, q, dense)  # nothing would be skipped
    assert len(counted) == 4 and len(made) == 2
    for i in range(6):
        agrees(q, q, q, torch.rand(2, 2, 200, 200).tril(-i) > 0.5)
    assert len(_sdpa.converted._known) == 4
    sa.clear_cache()
    assert not _sdpa.converted._known


def test_masks_of_lengths(counted):
    q, k = drawn(2, 4, 9, 16), drawn(2, 2, 27, 16)
    seen = (torch.arange(27) < torch.tensor([[5], [27]]))[:, None, None]
    agrees(q, k, k, seen, enable_gqa=True)
    assert counted[0]["lengths"].tolist() == [5, 27]
    agrees(q, k, k, ~seen, enable_gqa=True)
    agrees(q, k, k, seen[1:, 0, 0], enable_gqa=True)
    agrees(q, k, k, seen.new_zeros(1, 1, 1, 27), enable_gqa=True)
    agrees(q[:, :, :1], k, k, torch.rand(2, 1, 1, 27) < 0.5, enable_gqa=True)


def some_mask(queries, keys, heads=1, batch=1, block=8):
    return sa.BlockMask.from_pairs((torch.rand(batch, heads, queries, keys) < 0.4) & (torch.rand(batch, heads, 1, keys) < 0.9), block)


@pytest.mark.parametrize("heads,batch", list(itertools.product([1, 2, 4], [1, 3])))
def test_block_masks(heads, batch, device):
    mask = some_mask(19, 27, heads, batch).to(device)
    for dtype in DTYPES:
        q, k = drawn(3, 4, 19, 16, dtype=dtype, device=device), drawn(3, 2, 27, 16, dtype=dtype, device=device)
        for is_causal in (False, True):
            agrees(q, k, k, mask, is_causal=is_causal, enable_gqa=True)
            if batch == 1:
                agrees(q[0], k[0], k[0], mask, is_causal=is_causal, enable_gqa=True)
            if heads == 1 and batch == 1:
                agrees(q[0, 0], k[0, 0], k[0, 0], mask, is_causal=is_causal)
        with_gradient = q.clone().requires_grad_()
        ours(with_gradient, k, k, mask, enable_gqa=True).sum().backward()
        wanted = q.clone().requires_grad_()
        pytorch(wanted, k, k, _sdpa.pairs_of(mask, q), enable_gqa=True).sum().backward()
        torch.testing.assert_close(with_gradient.grad, wanted.grad, atol=20 * TOLERANCE[dtype], rtol=20 * TOLERANCE[dtype])


def test_block_masks_of_more_dimensions():
    q, mask = drawn(2, 3, 4, 19, 16), some_mask(19, 19, 4, 6)
    agrees(q, q, q, mask)
    assert ours(q, q, q, mask, dropout_p=0.5).shape == q.shape


@pytest.mark.parametrize("variant", ["causal_upper_left", "causal_lower_right"])
def test_causal_biases(variant, counted, device):
    from torch.nn.attention import bias

    q, k = drawn(2, 4, 9, 16, device=device), drawn(2, 4, 27, 16, device=device)
    agrees(q, k, k, getattr(bias, variant)(9, 27))
    agrees(q, q, q, getattr(bias, variant)(9, 9))
    assert len(counted) == 2


# ------------------------------------------------------------------------------------------------ what is left to PyTorch


@pytest.mark.parametrize("own", [False, True])
def test_gradients(own, counted, monkeypatch, device):
    """Of sa.attention, and where it is not to compute them, of PyTorch."""
    monkeypatch.setattr(_sdpa, "has_gradients", lambda q, masked: own)
    for name in "qkv":
        for mask in (None, some_mask(9, 9)):
            given = {n: drawn(2, 4 if n == "q" else 2, 9, 8, device=device) for n in "qkv"}
            given[name].requires_grad_()
            words = dict(enable_gqa=True) | ({"is_causal": True} if mask is None else {})
            made = ours(*given.values(), None if mask is None else mask.to(device), **words)
            want = pytorch(*given.values(), None if mask is None else mask.to_pairs().to(device), **words)
            (got,), (wanted,) = (torch.autograd.grad(o.square().sum(), given[name]) for o in (made, want))
            torch.testing.assert_close(got, wanted)
    assert len(counted) == (6 if own else 0)
    with torch.no_grad():
        ours(*given.values(), enable_gqa=True)
    with torch.inference_mode():
        ours(*given.values(), enable_gqa=True)
    assert len(counted) == (8 if own else 2)


def test_gradients_of_gradients(counted, device):
    """Of the formula, which one asks for by name, as with PyTorch's function."""
    given = [drawn(1, 2, 4, 3, dtype=torch.float64, device=device).requires_grad_() for _ in range(3)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(ours, given) and not counted


def test_dropout(counted, device):
    q = drawn(2, 3, 40, 8, device=device)
    torch.manual_seed(1)
    made = ours(q, q, q, None, 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(made, pytorch(q, q, q, None, 0.5, True)) and not counted


def test_others_are_left_to_pytorch(counted):
    q = drawn(2, 3, 9, 8)
    for given in (
        (q[:1], q, q),  # broadcast
        (q, q[:, :1], q[:, :1]),
        (q, q[0], q[0]),
    ):
        assert torch.equal(ours(*given), pytorch(*given))
    assert not counted


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided], ids=str)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors(layout, counted, capfd):
    rows = [torch.randn(2, n, 8) for n in (4, 7)]
    q = torch.nested.nested_tensor(rows)
    if layout is torch.jagged:
        q = torch.nested.nested_tensor([item.transpose(0, 1) for item in rows], layout=layout).transpose(1, 2)
    for words in ({}, {"scale": 2}):
        for made, want in zip(ours(q, q, q, **words).unbind(), pytorch(q, q, q, **words).unbind(), strict=True):
            torch.testing.assert_close(made, want)
    with pytest.raises((RuntimeError, ValueError)):  # of PyTorch
        ours(q, torch.randn(2, 2, 7, 8), q.transpose(1, 2))
    assert not counted and capfd.readouterr() == ("", "")


Q = torch.zeros(2, 4, 5, 8)


@pytest.mark.parametrize(
    "given,words",
    [
        ((Q, Q.double(), Q.double()), {}),
        ((Q.long(), Q.long(), Q.long()), {}),
        ((Q[0, 0, 0], Q, Q), {}),
        ((Q, Q[..., :4], Q), {}),
        ((Q, Q[:, :, :3], Q), {}),
        ((Q, Q[:, :3], Q[:, :3]), {}),
        ((Q, Q[:, :3], Q[:, :3]), {"enable_gqa": True}),
        ((Q[0, 0], Q[0, 0], Q[0, 0]), {"enable_gqa": True}),
        ((Q, Q, Q, torch.ones(5, 5, dtype=torch.bool)), {"is_causal": True}),
        ((Q, Q, Q, torch.ones(5, 5, dtype=torch.int32)), {}),
        ((Q, Q, Q, torch.ones(5, 5, dtype=torch.float64)), {}),
        ((Q, Q, Q, torch.ones(5, 6, dtype=torch.bool)), {}),
        ((Q, Q, Q, torch.ones(1, 1, 1, 5, 5, dtype=torch.bool)), {}),
        ((Q, Q, Q, torch.ones(3, 1, 1, 5, dtype=torch.bool)), {}),
        ((Q, Q, Q, None, -0.1), {}),
        ((Q, Q, Q, None, 1.5), {}),
        ((Q, Q, Q), {"scale": "1"}),
        ((Q, Q, Q), {"nonsense": 1}),
        ((Q, Q), {}),
        ((Q, Q, None), {}),
        ((Q.numpy(), Q, Q), {}),
        ((Q, Q, Q, "causal"), {}),
    ],
)
def test_errors_are_those_of_pytorch(given, words):
    found = []
    for function in (pytorch, ours):
        try:
            found.append(function(*given, **words))
        except Exception as error:
            found.append((type(error), str(error)))
    want, made = found
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(made, want)
    else:
        assert isinstance(made, tuple) and made[0] is want[0] and (made[1] == want[1] or want[0] is TypeError)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(
    "mask,words",
    [
        (sa.BlockMask.causal(6, 2), "attn_mask: is of 6 x 6, but there are 5 queries and 5 keys"),
        (some_mask(5, 5, 3, 1, 2), "attn_mask: has lists for 3 heads; it is 1, or the 2 of key or the 4 of query"),
        (some_mask(5, 5, 1, 3, 2), "attn_mask: has lists for 3 items; it is 1, or the 2 of the batch"),
    ],
)
def test_wrong_block_masks(mask, words, gradient):
    with pytest.raises(ValueError, match=words):
        ours(Q.clone().requires_grad_(gradient), Q[:, :2], Q[:, :2], mask, enable_gqa=True)


@pytest.mark.parametrize("lists", [1, 2, 4])
@pytest.mark.parametrize(
    "heads,shared,words",
    [
        ((2, 2), False, "enable_gqa: is False, but key has 2 heads for the 4 of query; with enable_gqa=True"),
        ((4, 2), False, "enable_gqa: is False, but value has 2 heads for the 4 of query"),
        ((3, 3), False, "key: has 3 heads, which do not divide the 4 of query"),
        ((3, 3), True, "key: has 3 heads, which do not divide the 4 of query"),
        ((8, 8), True, "key: has 8 heads, which do not divide the 4 of query"),
        ((0, 0), True, "key: has 0 heads, which do not divide the 4 of query"),
    ],
)
def test_wrong_heads_beside_a_block_mask(heads, shared, words, lists):
    """PyTorch's function needs the word enable_gqa, too; its own error speaks of the sizes of two tensors."""
    key, value = (torch.randn(2, of, 5, 8) for of in heads)
    for is_causal in (False, True):
        with pytest.raises(ValueError, match=words):
            ours(Q, key, value, some_mask(5, 5, lists, 1, 2), is_causal=is_causal, enable_gqa=shared)


@pytest.mark.parametrize("heads", [(1, 1), (1, 4), (4, 1), (2, 1), (1, 2), (4, 2)])
def test_one_head_beside_a_block_mask(heads):
    """It goes with any number without the word; with it, key and value may have different numbers, as PyTorch has it."""
    q, (key, value) = drawn(2, 4, 5, 8), [drawn(2, of, 5, 8) for of in heads]
    mask, shared = some_mask(5, 5, 1, 1, 2), 2 in heads
    torch.testing.assert_close(ours(q, key, value, mask, enable_gqa=shared), pytorch(q, key, value, mask.to_pairs(), enable_gqa=shared))


# ------------------------------------------------------------------------------------------------ PyTorch's tools


@pytest.mark.parametrize("dynamic", [None, True])
def test_compile(dynamic, device):
    def step(q, k, mask, dense, bias):
        made = ours(q, k, k, is_causal=True, enable_gqa=True), ours(q, k, k, mask, enable_gqa=True), ours(q, k, k, dense, enable_gqa=True)
        return *made, ours(q, k, k, bias, enable_gqa=True), ours(q * 2, k, k, enable_gqa=True) + 1

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for queries, keys in ((19, 27), (130, 140)):
        q, k = drawn(2, 4, queries, 16, device=device), drawn(2, 2, keys, 16, device=device)
        given = some_mask(queries, keys, 2).to(device), torch.rand(queries, keys, device=device) < 0.1, drawn(queries, keys, device=device)
        for got, want in zip(compiled(q, k, *given), step(q, k, *given), strict=True):
            torch.testing.assert_close(got, want)
        q.requires_grad_()
        (got,), (wanted,) = (torch.autograd.grad(sum(o.square().sum() for o in f(q, k, *given)), q) for f in (compiled, step))
        torch.testing.assert_close(got, wanted, atol=1e-4, rtol=1e-4)


def test_export_and_meta(device):
    class Layer(torch.nn.Module):
        def forward(self, q):
            return ours(q, q, q, is_causal=True)

    q = drawn(2, 4, 33, 16, device=device)
    exported = torch.export.export(Layer(), (q,))
    assert any("sparse_autotune" in str(node.target) for node in exported.graph.nodes)
    torch.testing.assert_close(exported.module()(q), pytorch(q, q, q, is_causal=True))
    assert ours(*[q.to("meta")] * 3).shape == q.shape


def test_autocast(device, counted):
    q, k, v = drawn(2, 4, 19, 16, device=device), drawn(2, 4, 27, 16, device=device).bfloat16(), drawn(2, 4, 27, 16, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        made, want = ours(q, k, v), pytorch(q, k, v)
        with pytest.raises(RuntimeError):
            ours(q, k.double(), v)
        alone = ours(*[q.double()] * 3)
    assert made.dtype is want.dtype is torch.bfloat16 and alone.dtype is torch.float64 and len(counted) == (2 if device == "cpu" else 1)
    torch.testing.assert_close(made, want, atol=2e-2, rtol=2e-2)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_transforms(device, counted):
    q, k = drawn(3, 2, 4, 9, 8, device=device), drawn(2, 4, 11, 8, device=device)
    made = torch.func.vmap(lambda q: ours(q, k, k))(q)
    torch.testing.assert_close(made, torch.stack([pytorch(one, k, k) for one in q]))
    assert not counted
    mask = some_mask(9, 11).to(device)
    made = torch.func.vmap(lambda q: ours(q, k, k, mask))(q)
    torch.testing.assert_close(made, torch.stack([pytorch(one, k, k, mask.to_pairs()) for one in q]))
    for given in (None, mask):
        got = torch.func.grad(lambda q: ours(q, k, k, given).square().sum())(q[0])  # noqa: B023
        dense = None if given is None else given.to_pairs()
        torch.testing.assert_close(got, torch.func.grad(lambda q: pytorch(q, k, k, dense).square().sum())(q[0]))  # noqa: B023
    # PyTorch's own kernel for the CPU has no derivative of forward mode: the formula has
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        got, want = (torch.func.jvp(lambda q: f(q, k, k), (q[0],), (q[1],)) for f in (ours, pytorch))  # noqa: B023
    torch.testing.assert_close(got, want)


def test_flop_counter(device):
    from torch.utils.flop_counter import FlopCounterMode

    q = drawn(2, 4, 19, 16, device=device)
    with FlopCounterMode(display=False) as counter:
        ours(q, q, q)
    assert counter.get_total_flops() == 2 * 2 * 4 * 19 * 19 * 32
