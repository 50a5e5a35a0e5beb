"""Gradients of attention: beside those of PyTorch's formula in float64, through every tracer, and refused in words."""

import copy
import math

import pytest
import torch
from conftest import close
from test_attention import NO_ARRAYS, PLAIN, band, drawn, formula, int32, of_operators, operands, some_mask, written_out
from torch.utils.checkpoint import checkpoint

import sparse_autotune as sa

F64 = torch.float64
ops = torch.ops.sparse_autotune


def gradients(call, tensors, seeds):
    """Of the sum of what `call` gives, each times its seed."""
    given = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in tensors]
    made = call(*given)
    made = made if isinstance(made, tuple) else (made,)
    return torch.autograd.grad([m for m in made if m is not None], given, [seed for m, seed in zip(made, seeds, strict=True) if m is not None])


def agree(q, k, v, seen=None, layout="bhsd", with_lse=False, **words):
    """Those of sa.attention beside those of the formula."""
    turned = [t.transpose(1, 2) for t in (q, k, v)] if layout == "bshd" else [q, k, v]
    o, lse = sa.attention(*turned, layout=layout, return_lse=True, **words)
    seed, seed_lse = torch.randn_like(o), torch.randn_like(lse).masked_fill(lse == -math.inf, 0)
    got = gradients(lambda *qkv: sa.attention(*qkv, layout=layout, return_lse=with_lse, **words), turned, (seed, seed_lse) if with_lse else (seed,))

    def want(*qkv):
        made, lse = formula(*(t.transpose(1, 2) if layout == "bshd" else t for t in qkv), seen, words.get("scale"), words.get("softcap", 0.0))
        return made.transpose(1, 2) if layout == "bshd" else made, lse.masked_fill(lse == -math.inf, 0) if with_lse else None

    seeds = (seed.double().cpu(), seed_lse.double().cpu())
    for gradient, wanted, of in zip(got, gradients(want, [t.double().cpu() for t in turned], seeds), turned, strict=True):
        assert gradient.dtype is of.dtype and gradient.device == of.device
        close(gradient.cpu(), wanted)
    return got


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("queries,keys,depth,depth_v", [(1, 1, 1, 1), (7, 33, 8, 24), (64, 65, 64, 64), (129, 100, 40, 32)])
def test_shapes(queries, keys, depth, depth_v, layout, dtype, device):
    given = operands(queries=queries, keys=keys, depth=depth, depth_v=depth_v, dtype=dtype, device=device)
    agree(*given, layout=layout, with_lse=queries % 2 == 0)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("heads,heads_kv", [(4, 2), (6, 1), (6, 3)])
def test_shared_heads(heads, heads_kv, layout, dtype, device):
    given = operands(heads=heads, heads_kv=heads_kv, depth_v=8, dtype=dtype, device=device)
    agree(*given, layout=layout, causal="bottom_right", seen=band(19, 27, "bottom_right"))


@pytest.mark.parametrize("queries,keys", [(19, 27), (27, 19), (1, 40)])
@pytest.mark.parametrize("diagonal", ["top_left", "bottom_right"])
def test_bands(queries, keys, diagonal, dtype, device):
    q, k, v = operands(heads_kv=2, queries=queries, keys=keys, dtype=dtype, device=device)
    for words in (dict(causal=diagonal), dict(causal=diagonal, window=5, sinks=3), dict(window=(4, 2), diagonal=diagonal)):
        agree(q, k, v, seen=band(queries, keys, **words), with_lse=True, **words)


def test_scale_and_softcap(dtype, device):
    q, k, v = operands(dtype=dtype, device=device)
    agree(q, k, v, scale=0.5)
    agree(q, k, v, scale=0.0)
    agree(q, k, v, scale=1, softcap=2.0, with_lse=True)


@pytest.mark.parametrize("block,heads,batch", [(8, 1, 1), ((8, 4), 2, 2), ((3, 16), 4, 1)])
def test_masks(block, heads, batch, dtype, device):
    q, k, v = operands(heads_kv=2, dtype=dtype, device=device)
    mask = some_mask(block, 19, 27, heads, batch, device)
    agree(q, k, v, mask=mask, seen=written_out(mask, 4), with_lse=True)
    seen = written_out(mask, 4) & band(19, 27, "top_left", 6, 2).to(device)
    agree(q, k, v, mask=mask, causal="top_left", window=6, sinks=2, seen=seen)


def test_bits(device):
    q, k, v = operands(queries=40, keys=40, device=device)
    pairs = torch.rand(40, 40, device=device) < 0.4
    agree(q, k, v, mask=sa.BlockMask.from_pairs(pairs, 16), seen=pairs)


def test_sequences_and_lengths(dtype, device):
    q, k, v = operands(batch=1, queries=30, keys=30, dtype=dtype, device=device)
    ends = int32([4, 4, 21, 26], device)  # what follows is in none
    number = torch.bucketize(torch.arange(30), ends.cpu().long(), right=True)
    seen = (number.unsqueeze(1) == number) & band(30, 30, True) & (number < 4)
    made = agree(q, k, v, query_ends=ends, causal=True, seen=seen)
    assert all((gradient[:, :, 26:] == 0).all() for gradient in made)
    q, k, v = operands(dtype=dtype, device=device)
    lengths = int32([27, 5], device)
    seen = torch.arange(27) < lengths.cpu().view(2, 1, 1, 1)
    made = agree(q, k, v, lengths=lengths, seen=seen.expand(2, 4, 19, 27))
    assert (made[1][1, :, 5:] == 0).all() and (made[2][1, :, 5:] == 0).all()


@pytest.mark.parametrize("batch,heads,queries,keys,depth", [(0, 2, 3, 4, 8), (2, 2, 0, 4, 8), (2, 2, 3, 0, 8), (1, 0, 3, 4, 8)])
def test_empty(batch, heads, queries, keys, depth, device):
    q, k = (drawn(batch, heads, rows, depth, device=device).requires_grad_() for rows in (queries, keys))
    sa.attention(q, k, k).sum().backward()
    assert (q.grad == 0).all() and (k.grad == 0).all()


def test_without_columns_or_heads(device):
    q, k, v = operands(device=device)
    given = [t.requires_grad_() for t in (q, k, v[..., :0].clone())]
    sa.attention(*given).sum().backward()
    assert all((t.grad == 0).all() for t in given)
    q, k = (drawn(1, heads, 6, 8, device=device).requires_grad_() for heads in (0, 1))
    sa.attention(q, k, k).sum().backward()
    assert (k.grad == 0).all() and q.grad.shape == q.shape


def test_rows_that_see_nothing(device):
    q, k, v = (t.requires_grad_() for t in operands(queries=20, keys=8, device=device))
    o, lse = sa.attention(q, k, v, causal="bottom_right", return_lse=True)
    (o.sum() + lse[:, :, 12:].sum()).backward()
    assert (q.grad[:, :, :12] == 0).all() and all(t.grad.isfinite().all() for t in (q, k, v))


def test_what_is_not_kept_has_no_influence(device):
    q, k, v = operands(queries=64, keys=64, device=device)
    seed = torch.randn_like(q)
    want = gradients(lambda *qkv: sa.attention(*qkv, causal=True), (q, k, v), (seed,))
    k[:, :, 40:], v[:, :, 40:], q[:, :, 40:] = torch.nan, torch.inf, torch.nan
    got = gradients(lambda *qkv: sa.attention(*qkv, causal=True)[:, :, :40], (q, k, v), (seed[:, :, :40],))
    close(got[0][:, :, :40], want[0][:, :, :40])


def test_strides_of_gradients(device):
    q, k, v = operands(heads_kv=2, device=device)
    for seed in (torch.randn(1, 1, 1, 1, device=device).expand(2, 4, 19, 16), torch.randn(2, 19, 4, 32, device=device)[..., ::2].transpose(1, 2)):
        given = [t.clone().requires_grad_() for t in (q, k, v)]
        other = [t.clone().requires_grad_() for t in (q, k, v)]
        sa.attention(*given).backward(seed)
        sa.attention(*other).backward(seed.contiguous())
        for one, two in zip(given, other, strict=True):
            assert torch.equal(one.grad, two.grad)


def test_one_array_for_all(device):
    packed = drawn(2, 20, 3, 4, 16, dtype=F64, device=device).requires_grad_()  # one projection for all three
    assert torch.autograd.gradcheck(lambda x: sa.attention(*x.permute(2, 0, 3, 1, 4).unbind(0), causal=True), packed[:, :5].detach().requires_grad_())
    k = drawn(1, 1, 7, 4, dtype=F64, device=device).requires_grad_()
    q = drawn(2, 2, 5, 4, dtype=F64, device=device).requires_grad_()
    assert torch.autograd.gradcheck(lambda q, k: sa.attention(q, k.expand(2, 2, 7, 4), k.expand(2, 2, 7, 4)), (q, k))


def test_only_what_is_wanted(device):
    q, k, v = operands(device=device)
    for name in range(3):
        given = [t.clone().requires_grad_(i == name) for i, t in enumerate((q, k, v))]
        sa.attention(*given).sum().backward()
        assert [t.grad is not None for t in given] == [i == name for i in range(3)]
    with torch.no_grad():
        assert not sa.attention(q.requires_grad_(), k, v).requires_grad
    o, lse = sa.attention(q, k, v, return_lse=True)
    (alone,) = torch.autograd.grad(lse.sum(), q)  # nothing asks for that of o
    assert alone.isfinite().all()


def test_same_bits_each_time(device):
    given = [t.requires_grad_() for t in operands(heads_kv=1, queries=300, keys=300, device=device)]
    made = [torch.autograd.grad(sa.attention(*given, causal=True).square().sum(), given) for _ in range(4)]
    assert all(torch.equal(a, b) for other in made[1:] for a, b in zip(made[0], other, strict=True))


# ------------------------------------------------------------------------------------------------ PyTorch's tools


def of_backward(device):
    for given in of_operators(device):
        if given[17] is not None:  # pages
            continue
        o, lse = ops.attention_lse(*given)
        for grad_lse in (None, torch.randn_like(lse)):
            yield (torch.randn_like(o), grad_lse, o, lse, *given)


@pytest.mark.parametrize("name", ["attention_backward", "_attention_backward"])
def test_opcheck(name, device):
    for given in of_backward(device):
        raw = name.startswith("_")
        tests = ("test_schema", "test_faketensor") if raw else ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        torch.library.opcheck(getattr(ops, name).default, (*given, -1) if raw else given, test_utils=tests)


@pytest.mark.parametrize("name", ["attention", "attention_lse"])
def test_opcheck_with_gradients(name, device):
    for given in of_operators(device):
        if given[17] is not None:
            continue
        tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
        torch.library.opcheck(getattr(ops, name).default, tuple(t.requires_grad_() if i < 3 else t for i, t in enumerate(given)), test_utils=tests)


@pytest.mark.parametrize("dynamic", [None, True])
def test_compile(dynamic, device):
    def step(q, k, v, mask):
        o, lse = sa.attention(q * 2, k, v, mask=mask, causal="bottom_right", return_lse=True)
        return o.square().sum() + lse.clamp(min=-5).sum() + sa.attention(q, k, v).sum()

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for queries, keys in ((19, 27), (33, 40)):
        given = [t.requires_grad_() for t in operands(heads_kv=2, queries=queries, keys=keys, device=device)]
        mask = some_mask(8, queries, keys, 4, 1, device)
        for got, want in zip(torch.autograd.grad(compiled(*given, mask), given), torch.autograd.grad(step(*given, mask), given), strict=True):
            torch.testing.assert_close(got, want)


def test_func(device):
    q, k, v = operands(batch=1, heads=2, dtype=F64, device=device)
    loss = lambda q, k, v: sa.attention(q, k, v, causal="top_left").square().sum()  # noqa: E731
    want = gradients(lambda *qkv: loss(*qkv), (q, k, v), (torch.ones((), dtype=F64, device=device),))
    for got, wanted in zip(torch.func.grad(loss, (0, 1, 2))(q, k, v), want, strict=True):
        close(got, wanted)
    many = torch.randn(3, *q.shape, dtype=F64, device=device)
    each = torch.func.vmap(torch.func.grad(loss), (0, None, None))(many, k, v)
    for got, item in zip(each, many, strict=True):
        close(got, torch.func.grad(loss)(item, k, v))


def test_autocast(device):
    q, k, v = (t.requires_grad_() for t in operands(device=device))
    with torch.autocast(device, dtype=torch.bfloat16):
        made = sa.attention(q, k, v)
    made.sum().backward()
    assert made.dtype is torch.bfloat16 and all(t.grad.dtype is torch.float32 for t in (q, k, v))
    want = gradients(lambda *qkv: sa.attention(*qkv), (q, k, v), (torch.ones_like(q),))
    for t, wanted in zip((q, k, v), want, strict=True):
        close(t.grad.bfloat16(), wanted.double())


def test_checkpoint(device):
    given = [t.requires_grad_() for t in operands(device=device)]
    want = torch.autograd.grad(sa.attention(*given).square().sum(), given)
    got = torch.autograd.grad(checkpoint(sa.attention, *given, use_reentrant=False).square().sum(), given)
    assert all(torch.equal(a, b) for a, b in zip(want, got, strict=True))


def test_export(device):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project = torch.nn.Linear(16, 48)

        def forward(self, x):
            q, k, v = self.project(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4).unbind(0)
            return sa.attention(q, k, v, causal=True)

    model, x = Model().to(device), drawn(2, 9, 16, device=device)
    exported = torch.export.export(model, (x,)).module()
    copied = copy.deepcopy(model)
    exported(x).sum().backward()
    model(x).sum().backward()
    assert copied.project.weight.grad is None
    torch.testing.assert_close(dict(exported.named_parameters())["project.weight"].grad, model.project.weight.grad)


def test_data_parallel(tmp_path):
    """One process of its own group: what DDP hooks into runs."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.project = torch.nn.Linear(16, 48)

        def forward(self, x):
            return sa.attention(*self.project(x).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4).unbind(0), causal=True)

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        model = Model()
        plain = copy.deepcopy(model)
        x = drawn(2, 9, 16)
        DistributedDataParallel(model)(x).sum().backward()
        plain(x).sum().backward()
        torch.testing.assert_close(model.project.weight.grad, plain.project.weight.grad)
    finally:
        dist.destroy_process_group()


def test_a_changed_mask_is_told(device):
    given = [t.requires_grad_() for t in operands(device=device)]
    mask = some_mask(8, 19, 27, 1, 1, device)
    made = sa.attention(*given, mask=mask)
    mask.columns.add_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


# ------------------------------------------------------------------------------------------------ refused


def test_what_has_no_derivative(device):
    q, k, v = operands(dtype=F64, device=device)
    given = [t.clone().requires_grad_() for t in (q, k, v)]
    (first,) = torch.autograd.grad(sa.attention(*given).square().sum(), given[:1], create_graph=True)
    with pytest.raises(NotImplementedError, match="the gradients of attention have no gradients of their own"):
        first.sum().backward()
    with pytest.raises(NotImplementedError, match="the gradients of attention have no gradients of their own"):
        torch.func.grad(lambda q: torch.func.grad(lambda q: sa.attention(q, k, v).square().sum())(q).sum())(q)
    with pytest.raises(NotImplementedError, match="q: has a tangent, and attention has no forward mode"):
        torch.func.jvp(lambda q: sa.attention(q, k, v), (q,), (q,))
    with torch.autograd.forward_ad.dual_level():
        with pytest.raises(NotImplementedError, match="k: has a tangent"):
            sa.attention(q, torch.autograd.forward_ad.make_dual(k, k), v)
        sa.attention(q, k, v)
    pages = drawn(9, 4, 8, 16, dtype=F64, device=device).transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    table = int32([[0, 1], [3, 2]], device)
    with pytest.raises(NotImplementedError, match="page_table: pages of a cache have no gradient"):
        sa.attention(q, pages, pages, page_table=table)
    with torch.no_grad():
        sa.attention(q, pages, pages, page_table=table)


def test_numbers_are_numbers(device):
    q, k, v = operands(device=device)
    for name in ("scale", "softcap"):
        with pytest.raises(TypeError, match=f"{name}: must be a number, not a tensor"):
            sa.attention(q, k, v, **{name: torch.tensor(0.5)})


def test_wrong_results_are_refused(device):
    q, k, v = operands(device=device)
    o, lse = sa.attention(q, k, v, return_lse=True)
    for wrong, words in (
        ((o[:, :2], None, o, lse), r"grad_o: its shape is \[2, 2, 19, 16\]; it must be \[2, 4, 19, 16\], that of o"),
        ((o, None, o[:1], lse), r"o: its shape is \[1, 4, 19, 16\]; it must be"),
        ((o, None, o, lse.double()), "lse: its dtype must be that of the logarithms of attention's sums, float32, not float64"),
        ((o, lse[0], o, lse), r"grad_lse: its shape is \[4, 19\]; it must be \[2, 4, 19\], that of lse"),
        ((o.half(), None, o, lse), "grad_o: its dtype must be that of o, float32, not float16"),
    ):
        with pytest.raises(RuntimeError, match=words):
            ops.attention_backward(*wrong, q, k, v, *PLAIN)
        torch._dynamo.reset()  # sizes of the call before would be symbols
        with pytest.raises(Exception, match=words):
            torch.compile(ops.attention_backward, fullgraph=True, backend="eager")(*wrong, q, k, v, *PLAIN)
    assert len(NO_ARRAYS) == 5


# docs/numerics.md has these figures.
TIED = {torch.float32: {10: "0.25", 18: "0.2528", 24: "0.135", 25: "1", 60: "1"}, torch.float64: {25: "0.25", 40: "0.25002", 45: "0.2509", 50: "0.223"}}


@pytest.mark.parametrize("dtype", TIED)
def test_four_keys_that_share_a_great_score(dtype):
    """O has a quarter of each, at any size; gradients what the rounded LSE says."""
    for exponent, weight in TIED[dtype].items():
        q, k, v = (torch.zeros(1, 1, count, 16, dtype=dtype) for count in (1, 8, 8))
        q[..., 0], k[..., :4, 0], v[..., :4, :] = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2), torch.arange(4, dtype=dtype)[:, None]
        v.requires_grad_()
        o = sa.attention(q, k, v, scale=1.0)
        o.sum().backward()
        assert torch.allclose(o, torch.full_like(o, 1.5), rtol=1e-6), exponent
        digits = len(weight.removeprefix("0."))
        assert {f"{got:.{digits}g}" for got in v.grad[0, 0, :4].flatten().tolist()} == {weight}, exponent
        assert not v.grad[0, 0, 4:].any()
