"""Products of dense operands, with groups and without: beside float64, through every transform, and refused in words."""

import os

import pytest
import torch
from conftest import within, without_a_gpu
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.nn.functional import gelu, relu, silu

import sparse_autotune as sa

F64 = torch.float64
SEED = int.from_bytes(os.urandom(4), "little")
ops = torch.ops.sparse_autotune
ACTIVATIONS = {None: lambda x: x, "none": lambda x: x, "relu": relu, "gelu": gelu, "gelu_tanh": lambda x: gelu(x, approximate="tanh"), "silu": silu}


@pytest.fixture
def generator():
    print("seed", SEED)
    return torch.Generator().manual_seed(SEED)


def drawn(generator, low, high):
    return int(torch.randint(low, high + 1, (), generator=generator))


def layouts(tensor):
    """The same numbers by rows, by columns, with lines that lie apart, and with elements that do: the last is copied."""
    high, wide = tensor.shape[-2:]
    apart = tensor.new_full((*tensor.shape[:-2], high, wide + 3), torch.nan)
    apart[..., :wide] = tensor
    scattered = tensor.new_full((*tensor.shape[:-2], high, 2 * wide + 1), torch.nan)
    scattered[..., 0 : 2 * wide : 2] = tensor
    return {
        "rows": tensor.contiguous(),
        "columns": tensor.mT.contiguous().mT,
        "lines apart": apart[..., :wide],
        "scattered": scattered[..., 0 : 2 * wide : 2],
    }


def agrees(got, a, b, bias=None, activation=None, residual=None, factor=None, wanted=None):
    """Entry by entry, of the sums of absolute values; wanted: the product, where it is none of torch.matmul."""
    wide = [None if t is None else t.double() for t in (a, b, bias, residual, factor)]
    a, b, bias, residual, factor = wide
    made = a @ b if wanted is None else wanted(a, b)
    size = a.abs() @ b.abs() if wanted is None else wanted(a.abs(), b.abs())
    if bias is not None:
        made, size = made + bias, size + bias.abs()
    made = ACTIVATIONS[activation](made)
    size = 1.2 * size if activation not in (None, "none", "relu") else size  # the steepest of the derivatives
    if residual is not None:
        made, size = made + residual, size + residual.abs()
    if factor is not None:
        made, size = made * factor, size * factor.abs()
    within(got, made, size + made.abs(), a.shape[-1] + 8)


def ends(*sizes, device="cpu"):
    return torch.tensor(sizes, dtype=torch.int32).cumsum(0, dtype=torch.int32).to(device)


def some_ends(generator, size, groups, device):
    """Ascending at random, with empty groups among them; the last is often the end."""
    made = torch.randint(0, size + 1, (groups,), generator=generator).sort().values.to(torch.int32)
    if drawn(generator, 0, 2):
        made[-1] = size
    return made.to(device)


def pieces(offs, dim):
    """For each group: index of what it has along a dimension."""
    begin = 0
    for group, end in enumerate(offs.tolist()):
        yield group, (slice(None),) * dim + (slice(begin, end),)
        begin = end


def grouped(a, b, offs):
    """The formula, group by group; it has gradients."""
    if b.dim() == 3:
        made = [a[at] @ b[group] for group, at in pieces(offs, 0)]
        rest = a.new_zeros(a.shape[0] - sum(m.shape[0] for m in made), b.shape[-1])
        return torch.cat([*made, rest])
    if a.dim() == 3:
        made = [a[group] @ b[at] for group, at in pieces(offs, 1)]
        return torch.cat([*made, a.new_zeros(a.shape[1], b.shape[-1] - sum(m.shape[1] for m in made))], 1)
    made = [a[:, at[0]] @ b[at] for _, at in pieces(offs, 0)]
    return torch.stack(made) if made else a.new_zeros(0, a.shape[0], b.shape[1])


# ------------------------------------------------------------------------------------------------ values

SHAPES = [(1, 1, 1), (3, 5, 7), (64, 64, 64), (17, 33, 129), (128, 1, 64), (1, 65, 31), (2, 300, 5)]


@pytest.mark.parametrize("m,n,k", [*SHAPES, (0, 4, 3), (4, 0, 3), (4, 3, 0), (0, 0, 0)])
def test_product(m, n, k, dtype, device):
    a, b = torch.randn(m, k, device=device).to(dtype), torch.randn(k, n, device=device).to(dtype)
    got = sa.gemm(a, b)
    assert got.dtype is dtype and got.device == a.device and got.is_contiguous()
    agrees(got, a, b)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("what", ["bias", "residual", "factor", "all"])
def test_epilogue(activation, what, dtype, device):
    a, b = torch.randn(19, 40, device=device).to(dtype), torch.randn(40, 23, device=device).to(dtype)
    bias, other = torch.randn(23, device=device).to(dtype), torch.randn(19, 23, device=device).to(dtype)
    given = {"bias": {"bias": bias}, "residual": {"residual": other}, "factor": {"factor": other}, "all": {"bias": bias, "residual": other}}[what]
    agrees(sa.gemm(a, b, activation=activation, **given), a, b, activation=activation, **given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_wide_result(dtype, device):
    a, b = torch.randn(20, 50, device=device).to(dtype), torch.randn(50, 30, device=device).to(dtype)
    bias, residual = torch.randn(30, device=device), torch.randn(20, 30, device=device)
    got = sa.gemm(a, b, bias=bias, activation="relu", residual=residual, out_dtype=torch.float32)
    assert got.dtype is torch.float32
    agrees(got, a, b, bias, "relu", residual)
    assert sa.gemm(a, b, out_dtype=dtype).dtype is dtype
    assert sa.grouped_gemm(a, torch.stack([b, b]), ends(7, 13, device=device), out_dtype=torch.float32).dtype is torch.float32
    leaf, weight = a.clone().requires_grad_(), b.clone().requires_grad_()
    sa.gemm(leaf, weight, bias=bias, out_dtype=torch.float32).sum().backward()
    assert leaf.grad.dtype is weight.grad.dtype is dtype
    agrees(leaf.grad, torch.ones(20, 30, device=device), b.mT)


@pytest.mark.parametrize("of_a", ["rows", "columns", "lines apart", "scattered"])
@pytest.mark.parametrize("of_b", ["rows", "columns", "lines apart", "scattered"])
def test_layouts(of_a, of_b, device):
    a, b = torch.randn(3, 13, 21, device=device), torch.randn(3, 21, 10, device=device)
    ones = torch.ones(3, 13, 10, device=device)
    agrees(sa.gemm(layouts(a)[of_a], layouts(b)[of_b], residual=layouts(ones)[of_b]), a, b, residual=ones)


@pytest.mark.parametrize(
    "of_a,of_b",
    [((2,), ()), ((), (2,)), ((3,), (3,)), ((2, 3), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1, 3), (2, 1)), ((0,), (0,)), ((4, 1, 2), (2,)), ((1,), (5, 2))],
    ids=str,
)
@pytest.mark.parametrize("kind", ["rows", "columns", "scattered"])
def test_batches(of_a, of_b, kind, device, dtype):
    a, b = torch.randn(*of_a, 6, 9, device=device).to(dtype), torch.randn(*of_b, 9, 5, device=device).to(dtype)
    bias = torch.randn(5, device=device).to(dtype)
    agrees(sa.gemm(layouts(a)[kind], layouts(b)[kind], bias=bias), a, b, bias)


def test_batches_that_repeat(device):
    a, b = torch.randn(6, 9, device=device), torch.randn(4, 9, 5, device=device)
    agrees(sa.gemm(a.expand(4, 6, 9), b), a.expand(4, 6, 9), b)
    agrees(sa.gemm(a.expand(4, 6, 9), b[:1].expand(4, 9, 5)), a.expand(4, 6, 9), b[:1].expand(4, 9, 5))
    picked = torch.randn(8, 6, 9, device=device)[::2]
    agrees(sa.gemm(picked, b), picked, b)
    inner = torch.randn(6, 4, 9, device=device).transpose(0, 1)  # items side by side in each line
    agrees(sa.gemm(inner, b), inner, b)


@pytest.mark.parametrize("shape", [(3, 1, 23), (1, 23), (23,), (3, 19, 23), (19, 1), (2, 1, 1, 1)], ids=str)
def test_what_is_added_is_broadcast(shape, device):
    lead = (2, 3) if len(shape) == 4 else (3,)
    a, b, other = torch.randn(*lead, 19, 8, device=device), torch.randn(8, 23, device=device), torch.randn(shape, device=device)
    agrees(sa.gemm(a, b, residual=other), a, b, residual=other)
    agrees(sa.gemm(a, b, factor=other, activation="silu"), a, b, factor=other, activation="silu")


def test_vectors(device):
    a, b, x, y = (torch.randn(*s, device=device) for s in ((6, 9), (9, 5), (9,), (6,)))
    torch.testing.assert_close(sa.gemm(a, x), a @ x)
    torch.testing.assert_close(sa.gemm(x, b), x @ b)
    torch.testing.assert_close(sa.gemm(x, x), x @ x)
    torch.testing.assert_close(sa.gemm(torch.stack([a, a]), x, residual=y), torch.stack([a, a]) @ x + y)
    torch.testing.assert_close(sa.gemm(x, b, bias=b[0], residual=b[1]), x @ b + b[0] + b[1])
    torch.testing.assert_close(sa.gemm(x, x, residual=x[0]), x @ x + x[0])
    out = torch.empty(6, device=device)
    assert sa.gemm(a, x, out=out) is out
    torch.testing.assert_close(out, a @ x)


def test_at_random(generator, dtype, device):
    for _ in range(20):
        m, n, k = (drawn(generator, 0, 70) for _ in range(3))
        lead = [(), (drawn(generator, 1, 4),)][drawn(generator, 0, 1)]
        a, b = torch.randn(*lead, m, k, generator=generator).to(device, dtype), torch.randn(k, n, generator=generator).to(device, dtype)
        bias = torch.randn(n, generator=generator).to(device, dtype)
        kinds = list(layouts(a))
        one, two = layouts(a)[kinds[drawn(generator, 0, 3)]], layouts(b)[kinds[drawn(generator, 0, 3)]]
        agrees(sa.gemm(one, two, bias=bias, activation="gelu"), a, b, bias, "gelu")


def test_out(device, dtype):
    a, b = torch.randn(2, 9, 12, device=device).to(dtype), torch.randn(12, 7, device=device).to(dtype)
    out = torch.full((2, 9, 7), torch.nan, device=device, dtype=dtype)
    assert sa.gemm(a, b, activation="relu", out=out) is out
    agrees(out, a, b, activation="relu")
    before = torch.randn_like(out)
    out.copy_(before)
    version = out._version
    sa.gemm(a, b, residual=out, out=out)
    assert out._version > version
    agrees(out, a, b, residual=before)


def test_same_bits_each_time(device):
    a, b = torch.randn(65, 700, device=device), torch.randn(700, 33, device=device)
    assert all(torch.equal(sa.gemm(a, b), sa.gemm(a, b)) for _ in range(5))


# ------------------------------------------------------------------------------------------------ groups


def groups_of(kind, m, n, k, groups, dtype=torch.float32, device="cpu"):
    sizes = {"rows": ((m, k), (groups, k, n)), "columns": ((groups, m, k), (k, n)), "depth": ((m, k), (k, n))}[kind]
    return [torch.randn(*size, device=device).to(dtype) for size in sizes]


KINDS = ["rows", "columns", "depth"]


def axis_of(kind, m, n, k):
    return {"rows": m, "columns": n, "depth": k}[kind]


def cases(generator, kind):
    yield (20, 12, 16), ends(5, 0, 11, 4)
    yield (20, 12, 16), ends(*{"rows": (20,), "columns": (12,), "depth": (16,)}[kind])
    yield (20, 12, 16), ends(0, 0, 0)
    yield (20, 12, 16), ends(3, 0, 2)
    yield (20, 12, 16), torch.zeros(0, dtype=torch.int32)
    yield (0, 12, 16), ends(0, 0)
    yield (20, 12, 0), ends(0, 0)
    yield (20, 0, 16), ends(0, 0)
    for _ in range(6):
        sizes = tuple(drawn(generator, 1, 60) for _ in range(3))
        yield sizes, some_ends(generator, axis_of(kind, *sizes), drawn(generator, 1, 9), "cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_groups(kind, dtype, device, generator):
    for (m, n, k), offs in cases(generator, kind):
        if offs.numel() and offs[-1] > axis_of(kind, m, n, k):
            offs = offs.clamp(max=axis_of(kind, m, n, k))
        a, b = groups_of(kind, m, n, k, offs.numel(), dtype, device)
        for where in {"cpu", device}:
            got = sa.grouped_gemm(a, b, offs.to(where))
            assert got.dtype is dtype and got.is_contiguous()
            agrees(got, a, b, wanted=lambda a, b, offs=offs: grouped(a, b, offs))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of_a", ["rows", "columns", "lines apart", "scattered"])
@pytest.mark.parametrize("of_b", ["rows", "columns", "lines apart", "scattered"])
def test_layouts_of_groups(kind, of_a, of_b, device):
    offs = ends(4, 0, 6, 3)
    a, b = groups_of(kind, 15, 14, 16, 4, device=device)
    got = sa.grouped_gemm(layouts(a)[of_a], layouts(b)[of_b], offs.to(device))
    agrees(got, a, b, wanted=lambda a, b: grouped(a, b, offs))


@pytest.mark.parametrize("kind", KINDS)
def test_epilogue_of_groups(kind, dtype, device):
    offs = ends(4, 0, 6, 2)  # one column, row or product is behind the last end
    m, n, k = 13, 13, 13
    a, b = groups_of(kind, m, n, k, 4, dtype, device)
    bias = torch.randn(*((4, n) if kind == "rows" else (n,)), device=device).to(dtype)
    factor = torch.randn(*((4, m, n) if kind == "depth" else (m, n)), device=device).to(dtype)
    line = {"rows": lambda b: torch.cat([b.repeat_interleave(torch.tensor([4, 0, 6, 2]), 0), b.new_zeros(1, n)]), "depth": lambda b: b}.get(
        kind, lambda b: torch.cat([b[:12], b.new_zeros(1)])
    )
    got = sa.grouped_gemm(a, b, offs.to(device), bias=bias, activation="silu", factor=factor)
    spread = line(bias.cpu())
    agrees(got.cpu(), a.cpu(), b.cpu(), spread, "silu", factor=factor.cpu(), wanted=lambda a, b: grouped(a, b, offs))
    if kind == "rows":
        assert (got[12:] == 0).all()
    if kind == "columns":
        assert (got[:, 12:] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_behind_the_last_end_is_zero(kind, device):
    offs = ends(3, 2, device=device)
    a, b = groups_of(kind, 9, 9, 9, 2, device=device)
    (a if kind == "rows" else b)[(slice(None),) * (kind == "columns") + (slice(5, None),)] = torch.nan  # it takes no part
    a, b = a.requires_grad_(), b.requires_grad_()
    got = sa.grouped_gemm(a, b, offs)
    assert torch.isfinite(got).all()
    if kind != "depth":
        assert (got.movedim(1 if kind == "columns" else 0, 0)[5:] == 0).all()
    got.sum().backward()
    cut = {"rows": (a.grad, 0), "columns": (b.grad, 1), "depth": (b.grad, 0)}[kind]
    assert torch.isfinite(a.grad).all() and torch.isfinite(b.grad[:5] if kind == "rows" else b.grad).all()
    assert (cut[0].movedim(cut[1], 0)[5:] == 0).all()


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this PyTorch has no torch._grouped_mm")
def test_takes_what_pytorch_takes():
    offs = ends(8, 16, 8)
    for kind in KINDS:
        a, b = groups_of(kind, 32, 32, 32, 3, torch.bfloat16)
        if kind == "rows":
            b = b.mT.contiguous().mT
        try:
            want = torch._grouped_mm(a, b, offs=offs)
        except (RuntimeError, NotImplementedError) as error:
            pytest.skip(f"torch._grouped_mm does not run here: {str(error).splitlines()[0]}")
        torch.testing.assert_close(sa.grouped_gemm(a, b, offs), want, rtol=2e-2, atol=2e-1)


# ------------------------------------------------------------------------------------------------ gradients


def leaf(*sizes, generator=None):
    return torch.randn(*sizes, dtype=F64, generator=generator).requires_grad_()


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("added", [None, "residual", "factor"])
@pytest.mark.parametrize("function", ["front", "operator"])
def test_gradients(activation, added, function, generator):
    a, b, bias, other = leaf(2, 4, 5, generator=generator), leaf(5, 3, generator=generator), leaf(3, generator=generator), leaf(2, 4, 3, generator=generator)
    flags = list(ACTIVATIONS).index(activation) - 1 << 4 | (128 if added == "factor" else 0) if activation else (128 if added == "factor" else 0)

    def run(a, b, bias, other):
        if function == "operator":
            return ops.gemm(a, b, bias, other if added else None, None, flags)
        return sa.gemm(a, b, bias=bias, activation=activation, **({added: other} if added else {}))

    inputs = (a, b, bias, other.requires_grad_(added is not None))
    twice = activation != "relu"  # which has a corner
    assert gradcheck(run, inputs, check_forward_ad=True, check_batched_grad=True)
    if twice:
        assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("of_a,of_b", [((), ()), ((2,), (2,)), ((), (2,)), ((3, 1), (2,)), ((1,), (3,))], ids=str)
def test_gradients_of_batches(of_a, of_b, generator):
    a, b = leaf(*of_a, 3, 4, generator=generator), leaf(*of_b, 4, 2, generator=generator)
    assert gradcheck(sa.gemm, (a, b)) and gradgradcheck(sa.gemm, (a, b))
    assert gradcheck(lambda a, b: sa.gemm(a.mT, b.mT), (a.detach().mT.clone().requires_grad_(), b.detach().mT.clone().requires_grad_()))
    assert gradcheck(lambda v: sa.gemm(a.detach(), v), (leaf(4),))


def small_groups(kind, generator):
    """With an empty group, and something behind the last end."""
    sizes = {"rows": ((6, 3), (3, 3, 2), (3, 2), (6, 2)), "columns": ((3, 3, 2), (2, 6), (6,), (3, 6)), "depth": ((2, 6), (6, 3), (3,), (3, 2, 3))}[kind]
    return ends(2, 0, 3), *(leaf(*size, generator=generator) for size in sizes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [None, "gelu"])
@pytest.mark.parametrize("function", ["front", "operator"])
def test_gradients_of_groups(kind, activation, function, generator):
    offs, a, b, bias, factor = small_groups(kind, generator)

    def run(a, b, bias, factor):
        if function == "operator":
            return ops.gemm(a, b, bias, factor, offs, 128 | (2 << 4 if activation else 0))
        return sa.grouped_gemm(a, b, offs, bias=bias, activation=activation, factor=factor)

    assert gradcheck(run, (a, b, bias, factor), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(run, (a, b, bias, factor))
    assert gradcheck(lambda a, b: sa.grouped_gemm(a, b, offs), (a, b))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_formula(kind, device, generator):
    offs, *given = small_groups(kind, generator)
    mine, theirs = ([t.detach().to(device).requires_grad_() for t in given] for _ in range(2))
    direction = torch.randn_like(given[3]).to(device)
    (sa.grouped_gemm(mine[0], mine[1], offs.to(device), factor=mine[3]) * direction).sum().backward()
    (grouped(theirs[0], theirs[1], offs) * theirs[3] * direction).sum().backward()
    for g, w in zip(mine, theirs, strict=True):
        assert (g.grad is None) == (w.grad is None)
        if w.grad is not None:
            torch.testing.assert_close(g.grad, w.grad)


def test_only_what_is_wanted(device):
    a, b = torch.randn(4, 3, device=device, requires_grad=True), torch.randn(3, 5, device=device)
    sa.gemm(a, b).sum().backward()
    assert b.grad is None
    torch.testing.assert_close(a.grad, b.sum(1).expand(4, 3))
    residual = torch.randn(1, 5, device=device, requires_grad=True)
    sa.gemm(a.detach(), b, residual=residual).sum().backward()
    torch.testing.assert_close(residual.grad, torch.full((1, 5), 4.0, device=device))


def test_changed_since_the_forward_pass():
    a, b, offs = torch.randn(4, 3, requires_grad=True), torch.randn(2, 3, 5), ends(1, 3)
    made = sa.grouped_gemm(a, b, offs)
    offs[0] = 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


# ------------------------------------------------------------------------------------------------ transforms


def problems(generator):
    a, b, bias, other = (torch.randn(*s, dtype=F64, generator=generator) for s in ((4, 5), (5, 3), (3,), (4, 3)))
    offs, *given = small_groups("rows", generator)
    g, h, lines, factor = (t.detach() for t in given)
    spread = torch.cat([lines.repeat_interleave(torch.tensor([2, 0, 3]), 0), lines.new_zeros(1, 2)])
    tail = torch.ones(6, 1, dtype=F64)
    tail[5] = 0
    return {
        "a": (lambda a: sa.gemm(a, b), lambda a: a @ b, a),
        "b": (lambda b: sa.gemm(a, b), lambda b: a @ b, b),
        "both": (lambda a: sa.gemm(a, b * a.sum()), lambda a: a @ (b * a.sum()), a),
        "bias": (lambda v: sa.gemm(a, b, bias=v, activation="silu"), lambda v: silu(a @ b + v), bias),
        "residual": (lambda r: sa.gemm(a, b, activation="gelu", residual=r * r), lambda r: gelu(a @ b) + r * r, other),
        "factor": (lambda r: sa.gemm(a, b, activation="gelu", factor=r), lambda r: gelu(a @ b) * r, other),
        "all": (lambda a: sa.gemm(a, b, bias=bias * a.sum(), activation="silu", factor=a[:, :3]), lambda a: silu(a @ b + bias * a.sum()) * a[:, :3], a),
        "vector": (lambda v: sa.gemm(a, v), lambda v: a @ v, b[:, 0]),
        "operator": (lambda a: ops.gemm(a, b, bias, other, None, 4 << 4), lambda a: silu(a @ b + bias) + other, a),
        "groups": (lambda g: sa.grouped_gemm(g, h, offs), lambda g: grouped(g, h, offs), g),
        "groups, weights": (lambda h: sa.grouped_gemm(g, h, offs, activation="silu", factor=factor), lambda h: silu(grouped(g, h, offs)) * factor, h),
        "groups, bias": (
            lambda t: sa.grouped_gemm(g, h, offs, bias=lines * t),
            lambda t: grouped(g, h, offs) + spread * t * tail,
            torch.ones(1, dtype=F64),
        ),
    }


def cubed(f):
    return lambda p: f(p).pow(3).sum()


TRANSFORMS = {
    "jvp": lambda f: lambda p, t: torch.func.jvp(f, (p,), (t,)),
    "jacfwd": lambda f: lambda p, t: torch.func.jacfwd(f)(p),
    "jacrev": lambda f: lambda p, t: torch.func.jacrev(f)(p),
    "vjp": lambda f: lambda p, t: torch.func.vjp(lambda p: f(p).pow(2), p)[1](torch.ones_like(f(p))),
    "grad": lambda f: lambda p, t: torch.func.grad(cubed(f))(p),
    "grad of grad": lambda f: lambda p, t: torch.func.grad(lambda p: torch.func.grad(cubed(f))(p).square().sum())(p),
    "hessian": lambda f: lambda p, t: torch.func.hessian(cubed(f))(p),
    "jvp of jvp": lambda f: lambda p, t: torch.func.jvp(lambda p: torch.func.jvp(lambda p: f(p).pow(3), (p,), (t,))[1], (p,), (2 * t,)),
    "vmap": lambda f: lambda p, t: torch.func.vmap(f)(torch.stack([p, t])),
    "vmap of the last dimension": lambda f: lambda p, t: torch.func.vmap(f, in_dims=-1, out_dims=1)(torch.stack([p, t], -1)),
    "vmap of grad": lambda f: lambda p, t: torch.func.vmap(torch.func.grad(cubed(f)))(torch.stack([p, t])),
    "vmap of vmap": lambda f: lambda p, t: torch.func.vmap(torch.func.vmap(f))(torch.stack([p, t, p + t, p - t]).unflatten(0, (2, 2))),
}
NAMES = list(problems(torch.Generator()))


def close(got, want):
    for g, w in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want), strict=True):
        assert g.shape == w.shape
        assert (g - w).abs().max() <= 1e-11 * max(1.0, w.abs().max().item()), f"seed {SEED}: off by {(g - w).abs().max():.3g}, of {w.abs().max():.3g}"


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_transforms(name, transform, generator):
    ours, theirs, where = problems(generator)[name]
    direction = torch.randn(where.shape, dtype=F64, generator=generator)
    close(TRANSFORMS[transform](ours)(where, direction), TRANSFORMS[transform](theirs)(where, direction))


@without_a_gpu
@pytest.mark.parametrize("transform", ["jvp", "grad", "vmap", "vmap of grad", "hessian"])
@pytest.mark.parametrize("name", ["both", "all", "operator", "groups", "groups, weights"])
def test_transforms_compiled(name, transform, generator):
    ours, theirs, where = problems(generator)[name]
    direction = torch.randn(where.shape, dtype=F64, generator=generator)
    torch._dynamo.reset()
    compiled = torch.compile(TRANSFORMS[transform](ours), backend="aot_eager", fullgraph=True)
    close(compiled(where, direction), TRANSFORMS[transform](theirs)(where, direction))


def test_vmap_with_bias_for_each_item():
    a, b, bias, residual = torch.randn(4, 5, dtype=F64), torch.randn(5, 3, dtype=F64), torch.randn(7, 3, dtype=F64), torch.randn(7, 4, 3, dtype=F64)
    made = torch.func.vmap(lambda v: sa.gemm(a, b, bias=v, activation="gelu"))(bias)
    torch.testing.assert_close(made, gelu(a @ b + bias[:, None]))
    made = torch.func.vmap(lambda v, r: sa.gemm(a, b, bias=v, residual=r), in_dims=(0, 0))(bias, residual)
    torch.testing.assert_close(made, a @ b + bias[:, None] + residual)
    made = torch.func.vmap(lambda r: sa.gemm(a, b, factor=r))(residual)
    torch.testing.assert_close(made, a @ b * residual)
    with pytest.raises(NotImplementedError, match="offs: torch.func.vmap cannot map"):
        torch.func.vmap(lambda o: ops.gemm(a, torch.stack([b, b]), None, None, o, 0))(torch.stack([ends(2, 2), ends(1, 3)]))


def test_forward_mode(device):
    a, b, t = (torch.randn(4, 4, dtype=F64, device=device) for _ in range(3))
    with forward_ad.dual_level():
        made = sa.gemm(forward_ad.make_dual(a, t), b, activation="silu")
        want = silu(forward_ad.make_dual(a, t) @ b)
        torch.testing.assert_close(forward_ad.unpack_dual(made).tangent, forward_ad.unpack_dual(want).tangent)
        with pytest.raises(NotImplementedError, match="a: has a tangent"):
            sa.gemm(forward_ad.make_dual(a, t), b, out=torch.empty_like(a))


def test_autocast():
    a, b, bias, other = torch.randn(4, 6, requires_grad=True), torch.randn(6, 5), torch.randn(5), torch.randn(4, 5)
    with torch.autocast("cpu", torch.bfloat16):
        made = sa.gemm(a, b, bias=bias, residual=other)
        wide = sa.gemm(a, b, bias=bias, residual=other, out_dtype=torch.float32)
        pieces = sa.grouped_gemm(a, torch.stack([b, b]), ends(1, 3))
        assert sa.gemm(a.double(), b.double()).dtype is F64
    assert made.dtype is pieces.dtype is torch.bfloat16 and wide.dtype is torch.float32
    made.sum().backward()
    assert a.grad.dtype is torch.float32


# ------------------------------------------------------------------------------------------------ PyTorch's machinery


def calls(device="cpu"):
    """name: (operator, operands)"""
    a, b, bias, other = (torch.randn(*s, device=device) for s in ((4, 5), (5, 3), (3,), (4, 3)))
    offs = ends(1, 0, 2, device=device)
    need = lambda t: t.clone().requires_grad_()  # noqa: E731
    return {
        "gemm": (ops.gemm, (need(a), need(b), need(bias), need(other), None, 4 << 4)),
        "gemm, batch": (ops.gemm, (need(torch.stack([a, a])), b, None, None, None, 0)),
        "gemm, wide": (ops.gemm, (a.to(torch.bfloat16), b.to(torch.bfloat16), bias, None, None, 256)),
        "gemm, factor": (ops.gemm, (need(a), need(b), None, need(other), None, 128)),
        "gemm, rows": (ops.gemm, (need(a), need(torch.stack([b] * 3)), need(torch.stack([bias] * 3)), None, offs, 1 << 4)),
        "gemm, columns": (ops.gemm, (need(torch.stack([a] * 3)), need(b), need(bias), need(other), offs, 128)),
        "gemm, depth": (ops.gemm, (need(a), need(b), None, None, offs, 0)),
        "_gemm": (ops._gemm, (a, b, bias, other, None, 4 << 4)),
        "_gemm_out": (ops._gemm_out, (a, b, bias, other, 0, torch.empty(4, 3, device=device))),
    }


@pytest.mark.parametrize("name", calls())
def test_opcheck(name, device):
    op, operands = calls(device)[name]
    torch.library.opcheck(op, operands)


@without_a_gpu
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled(backend):
    offs = ends(2, 0, 3)

    def step(x, w, experts, bias):
        hidden = sa.gemm(x, w, bias=bias, activation="gelu")
        return sa.grouped_gemm(hidden, experts, offs, activation="relu").square().mean() + sa.gemm(x, w, residual=hidden).sum()

    given = [torch.randn(*s) for s in ((6, 8), (8, 4), (3, 4, 5), (4,))]
    torch._dynamo.reset()
    compiled = torch.compile(step, backend=backend, fullgraph=True)
    results = []
    for function in (step, compiled):
        leaves = [t.clone().requires_grad_() for t in given]
        made = function(*leaves)
        made.backward()
        results.append([made.detach(), *(t.grad for t in leaves)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*given), step(*given))


@without_a_gpu
def test_compiled_with_symbolic_sizes_and_out():
    torch._dynamo.reset()
    product = torch.compile(lambda a, b, offs: sa.grouped_gemm(a, b, offs), backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (5, 9, 12):
        a, b, offs = torch.randn(rows, 7), torch.randn(2, 7, 3), ends(2, rows - 2)
        torch.testing.assert_close(product(a, b, offs), grouped(a, b, offs))
    into = torch.compile(lambda a, b, out: sa.gemm(a, b, out=out) + 1, backend="aot_eager", fullgraph=True)
    a, b, out = torch.randn(4, 5), torch.randn(5, 3), torch.empty(4, 3)
    with torch.no_grad():
        torch.testing.assert_close(into(a, b, out), a @ b + 1)
    torch.testing.assert_close(out, a @ b)
    exported = torch.export.export(Model(), (torch.randn(4, 5),)).module()
    x = torch.randn(4, 5)
    torch.testing.assert_close(exported(x), Model.formula(x))


class Model(torch.nn.Module):
    weight = torch.linspace(-1, 1, 15).reshape(3, 5)

    @staticmethod
    def formula(x):
        return relu(x @ Model.weight.mT)

    def forward(self, x):
        return sa.gemm(x, self.weight.mT, activation="relu")


def test_traced():
    a, b = torch.randn(4, 5), torch.randn(5, 3)
    traced = torch.jit.trace(lambda a, b: sa.gemm(a, b, activation="relu"), (a, b))
    torch.testing.assert_close(traced(2 * a, b), relu(2 * a @ b))
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda a, b: sa.gemm(a, b))(a, b)
    leaf_a = a.clone().requires_grad_()
    graph(leaf_a, b).sum().backward()
    torch.testing.assert_close(leaf_a.grad, b.sum(1).expand(4, 5))


def test_meta():
    a, b = torch.empty(2, 4, 5, device="meta"), torch.empty(5, 3, device="meta")
    assert sa.gemm(a, b).shape == (2, 4, 3)
    offs = torch.empty(6, dtype=torch.int32, device="meta")
    assert sa.grouped_gemm(a[0], b, offs).shape == (6, 4, 3)
    with pytest.raises(RuntimeError, match="b: must be on the device of a, meta, not on cpu"):
        sa.gemm(a, torch.randn(5, 3))


def test_flops():
    from torch.utils.flop_counter import FlopCounterMode

    a, b = torch.randn(2, 4, 5, requires_grad=True), torch.randn(5, 3, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        sa.gemm(a, b).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 2 * 4 * 5 * 3
    for kind in KINDS:
        a, b = groups_of(kind, 6, 7, 8, 3)
        with FlopCounterMode(display=False) as counter:
            sa.grouped_gemm(a, b, ends(1, 2, 3))
        assert counter.get_total_flops() == 2 * 6 * 7 * 8


def test_tuning():
    sa.set_options(effort="measure", budget_s=0.05)
    a, b = torch.randn(48, 40), torch.randn(40, 32)
    with pytest.raises(LookupError, match="class"):
        sa.explain(a, b)
    report = sa.tune(a, b)
    assert report.problem["op"] == "gemm" and (report.problem["m"], report.problem["n"], report.problem["k"]) == (48, 32, 40)
    assert sa.explain(a, b).choice == report.choice and "A 48 x 40 times B 40 x 32" in str(report)
    offs = ends(8, 40)
    grouped_report = sa.tune(a, torch.stack([b, b]), offs=offs)
    assert grouped_report.class_key != report.class_key and sa.explain(a, torch.stack([b, b]), offs=offs).choice == grouped_report.choice
    peers = sa.benchmark(a, b, rounds=3)
    assert peers["pytorch_dense"]["median_us"] > 0 and peers["sparse_autotune"]["median_us"] > 0
    with pytest.raises(ValueError, match="transpose: is for a sparse operand"):
        sa.tune(a, b, transpose=True)
    with pytest.raises(TypeError, match="offs: groups are of dense operands"):
        sa.tune(sa.BSR.from_dense(a, 8), b, offs=offs)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captured():
    a, b = torch.randn(128, 64, device="cuda", dtype=torch.float16), torch.randn(3, 64, 96, device="cuda", dtype=torch.float16)
    offs, out = ends(30, 50, 48, device="cuda"), torch.empty(128, 96, device="cuda", dtype=torch.float16)
    want = sa.grouped_gemm(a, b, offs)
    sa.gemm(a, b[0], out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = sa.grouped_gemm(a, b, offs)
        sa.gemm(a, b[0], out=out)
    out.zero_()
    a.mul_(2)
    graph.replay()
    torch.testing.assert_close(made, 2 * want)
    torch.testing.assert_close(out, (a.float() @ b[0].float()).half(), rtol=3e-3, atol=3e-2)


# ------------------------------------------------------------------------------------------------ refused

A, B, G, S = torch.randn(4, 5), torch.randn(5, 3), torch.randn(2, 5, 3), torch.randn(3, 3)
REFUSED = {
    "a is none": (lambda: sa.gemm([1.0], B), TypeError, "a: must be a dense tensor, not list"),
    "b is sparse": (lambda: sa.gemm(A, sa.BSR.from_dense(B, 1)), TypeError, "b: must be a dense tensor, not BSR"),
    "bias is none": (lambda: sa.gemm(A, B, bias=3.0), TypeError, "bias: must be a dense tensor, not float"),
    "a number": (lambda: sa.gemm(A[0, 0], B), RuntimeError, r"a: must have two dimensions or more; its shape is \[\]"),
    "dtypes": (lambda: sa.gemm(A, B.double()), RuntimeError, "b: its dtype must be that of a, float32, not float64"),
    "integers": (lambda: sa.gemm(A.int(), B.int()), RuntimeError, "a: its dtype must be float32, float64, float16 or bfloat16, not int32"),
    "depth": (lambda: sa.gemm(A, B.mT), RuntimeError, r"b: its shape is \[3, 5\]; the product needs 5 rows, as a has columns"),
    "batches": (lambda: sa.gemm(torch.randn(2, 4, 5), torch.randn(3, 5, 3)), RuntimeError, "a: its shape is .* the dimensions of the batch differ"),
    "bias": (lambda: sa.gemm(A, B, bias=torch.randn(4)), RuntimeError, r"bias: must have the shape \[3\], an entry for each column; its shape is \[4\]"),
    "bias of f64": (lambda: sa.gemm(A, B, bias=torch.randn(3).double()), RuntimeError, "bias: its dtype must be that of the result, float32, not float64"),
    "bias of a vector": (lambda: sa.gemm(A, A[0], bias=A[0]), ValueError, "bias: is added to rows"),
    "activation": (lambda: sa.gemm(A, B, activation="tanh"), ValueError, "activation: must be one of .* not 'tanh'"),
    "residual": (lambda: sa.gemm(A, B, residual=torch.randn(3, 4)), ValueError, r"residual: its shape is \[3, 4\], .* \[4, 3\]"),
    "residual of f64": (lambda: sa.gemm(A, B, residual=torch.randn(4, 3).double()), RuntimeError, "residual: its dtype must be that of the result"),
    "factor of f64": (lambda: sa.gemm(A, B, factor=torch.randn(4, 3).double()), RuntimeError, "factor: its dtype must be that of the result"),
    "both": (lambda: sa.gemm(A, B, factor=A, residual=A), ValueError, "factor: is given beside residual"),
    "out_dtype": (lambda: sa.gemm(A, B, out_dtype=torch.float16), ValueError, "out_dtype: must be that of the operands, torch.float32, not torch.float16"),
    "out": (lambda: sa.gemm(A, B, out=torch.empty(3, 4)), RuntimeError, r"out: its shape is \[3, 4\], the result's \[4, 3\]"),
    "out is none": (lambda: sa.gemm(A, B, out=3), TypeError, "out: must be a dense tensor, not int"),
    "out of f64": (lambda: sa.gemm(A, B, out=torch.empty(4, 3).double()), RuntimeError, "out: its dtype must be that of the operands, float32, not float64"),
    "out by columns": (lambda: sa.gemm(A, B, out=torch.empty(3, 4).mT), RuntimeError, "out: must be contiguous"),
    "out with gradients": (lambda: sa.gemm(A.clone().requires_grad_(), B, out=torch.empty(4, 3)), RuntimeError, "out: .* has no gradient"),
    "out is a": (lambda: sa.gemm(S, S, out=S), RuntimeError, "overlaps"),
    "offs is none": (lambda: sa.grouped_gemm(A, G, [2, 4]), TypeError, "offs: must be a dense tensor, not list"),
    "offs of i64": (lambda: sa.grouped_gemm(A, G, torch.tensor([2, 4])), RuntimeError, "offs: its dtype must be int32, not int64"),
    "offs of two dimensions": (lambda: sa.grouped_gemm(A, G, ends(2, 2)[None]), RuntimeError, "offs: must be a contiguous tensor of one dimension"),
    "groups": (lambda: sa.grouped_gemm(A, G, ends(2, 1, 1)), RuntimeError, "b: has 2 matrices, but offs 3 groups"),
    "dimensions": (lambda: sa.grouped_gemm(A[None], G, ends(2, 2)), RuntimeError, r"offs: groups are of two matrices, .* are \[1, 4, 5\] and \[2, 5, 3\]"),
    "past the end": (lambda: sa.grouped_gemm(A, G, ends(2, 3)), RuntimeError, r"offs\[1\] = 5: the group begins at 2, and the axis has 4 elements"),
    "descending": (lambda: sa.grouped_gemm(A, G, ends(3, -1)), RuntimeError, r"offs\[1\] = 2: the group begins at 3"),
    "negative": (lambda: sa.grouped_gemm(A, G, ends(-1, 2)), RuntimeError, r"offs\[0\] = -1"),
    "bias of groups": (
        lambda: sa.grouped_gemm(A, G, ends(2, 2), bias=torch.randn(3)),
        RuntimeError,
        r"bias: must have the shape \[2, 3\], a line for",
    ),
    "factor of groups": (lambda: sa.grouped_gemm(A, G, ends(2, 2), factor=torch.randn(3)), RuntimeError, "factor: its shape is"),
    "residual of groups": (lambda: ops.gemm(A, G, None, torch.randn(4, 3), ends(2, 2), 0), RuntimeError, "residual: nothing is added to a product in groups"),
    "matmul": (lambda: sa.matmul(A, B), TypeError, "A: neither A nor B is sparse; use torch.matmul or sa.gemm"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        call()


COMPILED = ["dtypes", "integers", "depth", "batches", "bias", "offs of i64", "groups", "dimensions", "bias of groups", "factor of groups", "residual of groups"]


@pytest.mark.parametrize("name", COMPILED)
def test_refused_without_memory(name):
    """The same words from shapes alone."""
    call, kind, text = REFUSED[name]
    with torch._subclasses.fake_tensor.FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(kind, match=text):
        call()
