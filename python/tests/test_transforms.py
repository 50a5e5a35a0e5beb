"""torch.func and forward mode, as they stand and inside torch.compile, beside the same transforms of dense matrices."""

import os

import pytest
import torch
from conftest import random_bsr
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.nn.functional import gelu, linear, silu
from torch.utils import _pytree

import sparse_autotune as sa

F64 = torch.float64
SEED = int.from_bytes(os.urandom(4), "little")
ops = torch.ops.sparse_autotune


def problems():
    """name: (function, the same of dense matrices, where, direction)"""
    generator = torch.Generator().manual_seed(SEED)

    def randn(*sizes):
        return torch.randn(*sizes, generator=generator, dtype=F64)

    a = random_bsr(7, 9, (2, 3), dtype=F64, seed=SEED, density=0.6)
    layer = sa.SparseLinear(9, 7, (2, 3), 0.6, dtype=F64, activation="gelu")
    frozen = sa.SparseLinear(9, 7, (2, 3), 0.6, dtype=F64, activation="silu").requires_grad_(False)
    d, mask = a.to_dense(), a.with_values(torch.ones_like(a.values)).to_dense()
    x, u, y, z = randn(9, 3), randn(3, 7), randn(7, 4), randn(4, 9)
    weight, parts = sa.SparseWeight(a), (a.row_offsets, a.col_indices)
    bias = randn(7)

    def dense_layer(layer, activation):
        return lambda t: activation(linear(t, layer.weight.to_dense(), layer.bias))

    return {
        "matmul": (lambda x: sa.matmul(a, x), lambda x: d @ x, x),
        "matmul from the right": (lambda u: sa.matmul(u, a), lambda u: u @ d, u),
        "vector": (lambda v: a @ v, lambda v: d @ v, x[:, 0]),
        "bias": (lambda b: sa.matmul(x.mT, a, transpose=True, bias=b), lambda b: x.mT @ d.mT + b, bias),
        "values": (lambda v: sa.matmul(a.with_values(v), x), lambda v: a.with_values(v).to_dense() @ x, a.values),
        "values and dense": (lambda v: sa.matmul(u, a.with_values(v)) * v.sum(), lambda v: u @ a.with_values(v).to_dense() * v.sum(), a.values),
        "SparseLinear": (layer, dense_layer(layer, gelu), x.mT),
        "SparseLinear, frozen": (frozen, dense_layer(frozen, silu), x.mT),
        "SparseWeight": (lambda t: linear(t, weight, bias), lambda t: linear(t, d, bias), x.mT),
        "sddmm": (lambda y: sa.sddmm(a, y * y.sum(), z).to_dense(), lambda y: (y * y.sum() @ z) * mask, y),
        "sddmm, both": (lambda z: sa.sddmm(a, y * z.sum(), z).to_dense(), lambda z: (y * z.sum() @ z) * mask, z),
        "operator": (lambda x: ops.spmm(a.values, *parts, x, None, 7, 9, 0), lambda x: d @ x, x),
        "operator, sddmm": (lambda y: ops.sddmm(y, z, *parts, 7, 9, 2, 3, 0), lambda y: blocks_of((y @ z) * mask, a), y),
        **{
            f"operator, activation {number}": (
                lambda t, number=number: ops.spmm(a.values, *parts, t, bias, 7, 9, 3 | number << 4),
                lambda t, act=act: act(linear(t, d, bias)),
                x.mT,
            )
            for number, act in ((1, torch.relu), (2, gelu), (3, lambda t: gelu(t, approximate="tanh")), (4, silu))
        },
    }


def blocks_of(dense, pattern):
    """What a matrix has at the blocks of a pattern; zero beyond its edges."""
    high, wide = pattern.block
    whole = torch.nn.functional.pad(dense, (0, -dense.shape[1] % wide, 0, -dense.shape[0] % high))
    return whole.reshape(whole.shape[0] // high, high, -1, wide).transpose(1, 2)[pattern.block_rows_of(), pattern.col_indices.long()]


def cubed(f):
    return lambda p: f(p).pow(3).sum()


TRANSFORMS = {
    "jvp": lambda f: lambda p, t: torch.func.jvp(f, (p,), (t,)),
    "jacfwd": lambda f: lambda p, t: torch.func.jacfwd(f)(p),
    "jacrev": lambda f: lambda p, t: torch.func.jacrev(f)(p),
    "jacrev by one": lambda f: lambda p, t: torch.func.jacrev(f, chunk_size=1)(p),
    "vjp": lambda f: lambda p, t: torch.func.vjp(lambda p: f(p).pow(2), p)[1](torch.ones_like(f(p))),
    "grad": lambda f: lambda p, t: torch.func.grad(cubed(f))(p),
    "grad of grad": lambda f: lambda p, t: torch.func.grad(lambda p: torch.func.grad(cubed(f))(p).square().sum())(p),
    "hessian": lambda f: lambda p, t: torch.func.hessian(cubed(f))(p),
    "jacrev of jacfwd": lambda f: lambda p, t: torch.func.jacrev(torch.func.jacfwd(cubed(f)))(p),
    "jvp of jvp": lambda f: lambda p, t: torch.func.jvp(lambda p: torch.func.jvp(lambda p: f(p).pow(3), (p,), (t,))[1], (p,), (2 * t,)),
    "vmap of jvp": lambda f: lambda p, t: torch.func.vmap(lambda t: torch.func.jvp(f, (p,), (t,)))(torch.stack([p, t])),
    "vmap": lambda f: lambda p, t: torch.func.vmap(f)(torch.stack([p, t])),
    "vmap of the last dimension": lambda f: lambda p, t: torch.func.vmap(f, in_dims=-1, out_dims=1)(torch.stack([p, t], -1)),
    "vmap of grad": lambda f: lambda p, t: torch.func.vmap(torch.func.grad(cubed(f)))(torch.stack([p, t])),
    "vmap of vmap": lambda f: lambda p, t: torch.func.vmap(torch.func.vmap(f))(torch.stack([p, t, p + t, p - t]).unflatten(0, (2, 2))),
}
NAMES = list(problems())


def agree(got, want):
    """float64, of some hundred roundings at most."""
    mine, theirs = _pytree.tree_leaves(got), _pytree.tree_leaves(want)
    assert len(mine) == len(theirs)
    for g, w in zip(mine, theirs, strict=True):
        assert g.shape == w.shape
        if w.numel():  # of a pattern without blocks, which some seeds draw, there is none
            assert (g - w).abs().max() <= 1e-12 * max(1.0, w.abs().max().item()), f"seed {SEED}: off by {(g - w).abs().max():.3g}, of {w.abs().max():.3g}"


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_as_they_stand(name, transform):
    ours, theirs, where = problems()[name]
    direction = torch.randn(where.shape, dtype=F64)
    agree(TRANSFORMS[transform](ours)(where, direction), TRANSFORMS[transform](theirs)(where, direction))


COMPILED = [
    (name, transform)
    for name in ("matmul", "values and dense", "SparseLinear, frozen", "SparseWeight", "sddmm, both", "operator, activation 4")
    for transform in ("jvp", "jacfwd", "hessian", "grad", "vmap", "vmap of grad", "jvp of jvp", "vjp")
    # of a number times a tensor, which is in these, PyTorch compiles no forward mode in forward mode
    if transform != "jvp of jvp" or name not in ("values and dense", "sddmm, both")
]


@pytest.mark.parametrize("name,transform", COMPILED)
def test_compiled(name, transform):
    """In one graph. Forward mode was zero here."""
    ours, theirs, where = problems()[name]
    direction = torch.randn(where.shape, dtype=F64)
    torch._dynamo.reset()
    made = torch.compile(TRANSFORMS[transform](ours), backend="aot_eager", fullgraph=True)
    agree(made(where, direction), TRANSFORMS[transform](theirs)(where, direction))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled_forward_mode_of_other_backends(backend):
    a = random_bsr(8, 12, 4, dtype=F64, seed=SEED)
    x, t = torch.randn(12, 3, dtype=F64), torch.randn(12, 3, dtype=F64)
    torch._dynamo.reset()
    made = torch.compile(lambda x, t: torch.func.jvp(lambda x: sa.matmul(a, x), (x,), (t,)), backend=backend)
    agree(made(x, t), (a.to_dense() @ x, a.to_dense() @ t))


@pytest.mark.parametrize("name", NAMES)
def test_dual_numbers(name):
    ours, theirs, where = problems()[name]
    direction, duals = torch.randn(where.shape, dtype=F64), []
    with forward_ad.dual_level():
        for function in (ours, theirs):
            duals.append(tuple(forward_ad.unpack_dual(function(forward_ad.make_dual(where, direction)))))
    agree(*duals)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["matmul", "values", "SparseLinear, frozen", "sddmm", "operator"])
def test_dual_numbers_compiled(name, backend):
    """With the dual level around the compiled function or inside it, where the tangent was lost: left to Python, and refused in one graph."""
    ours, theirs, where = problems()[name]
    direction = torch.randn(where.shape, dtype=F64)
    want = torch.func.jvp(theirs, (where,), (direction,))[1]

    def inside(where, direction):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(ours(forward_ad.make_dual(where, direction))).tangent

    torch._dynamo.reset()
    agree(torch.compile(inside, backend=backend)(where, direction), want)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="torch.compile cannot see forward_ad.dual_level around a product"):
        torch.compile(inside, backend=backend, fullgraph=True)(where, direction)
    torch._dynamo.reset()
    with forward_ad.dual_level():
        agree(forward_ad.unpack_dual(torch.compile(ours, backend=backend)(forward_ad.make_dual(where, direction))).tangent, want)


def tangent(function):
    """The directional derivative of a function's sum, by a dual level inside of what it returns."""

    def inside(x, direction):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(function(forward_ad.make_dual(x, direction)).sum()).tangent

    return inside


PRODUCTS_INTO = {
    "sa.matmul": lambda a, w, x, out: sa.matmul(a, x, out=out),
    "torch.matmul": lambda a, w, x, out: torch.matmul(a, x, out=out),
    "torch.mm": lambda a, w, x, out: torch.mm(a, x, out=out),
    "torch.mm, SparseWeight": lambda a, w, x, out: torch.mm(w, x, out=out),
}


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PRODUCTS_INTO)
def test_dual_numbers_into_out_compiled(name, backend, fullgraph):
    """Refused as without torch.compile, whether the dual level is entered inside the compiled function or around it. Their tangent was left out."""
    a, product = random_bsr(8, 8, 4, dtype=F64, seed=SEED), PRODUCTS_INTO[name]
    weight, x, direction = sa.SparseWeight(a), torch.randn(8, 3, dtype=F64), torch.randn(8, 3, dtype=F64)

    def ours(x):
        return product(a, weight, x, torch.empty(8, 3, dtype=F64)) * x

    torch._dynamo.reset()
    with pytest.raises(Exception, match="has a tangent, and a product that writes into a tensor has no derivative; leave out away"):
        torch.compile(tangent(ours), backend=backend, fullgraph=fullgraph)(x, direction)
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend=backend, fullgraph=fullgraph)
    compiled(x)  # so that there is a graph, of a time without a dual level
    with pytest.raises(NotImplementedError, match="has a tangent"):
        tangent(compiled)(x, direction)
    agree(compiled(x), a.to_dense() @ x * x)


@pytest.mark.parametrize(
    "up,backend",  # in PyTorch 2.10 inductor's own nn.Linear has no forward mode
    [(sa.SparseLinear, "eager"), (sa.SparseLinear, "aot_eager"), (sa.SparseLinear, "inductor"), (torch.nn.Linear, "eager"), (torch.nn.Linear, "aot_eager")],
)
def test_gated_dual_numbers_compiled(up, backend):
    """A gated product that would be written over its factor: compiled, it was refused as if the caller had given an `out`."""
    gate = sa.SparseLinear(9, 7, (2, 3), 0.6, dtype=F64, activation="silu")
    up = sa.SparseLinear(9, 7, (2, 3), 0.6, dtype=F64) if up is sa.SparseLinear else up(9, 7, dtype=F64)
    x, direction = torch.randn(5, 9, dtype=F64), torch.randn(5, 9, dtype=F64)
    want = torch.func.jvp(lambda x: (gate(x) * up(x)).sum(), (x,), (direction,))[1].detach()

    def ours(x):
        return sa.gated(x, gate, up)

    with torch.no_grad():
        torch._dynamo.reset()
        agree(torch.compile(tangent(ours), backend=backend)(x, direction), want)
        torch._dynamo.reset()
        with pytest.raises(Exception, match="torch.compile cannot see forward_ad.dual_level around a product"):
            torch.compile(tangent(ours), backend=backend, fullgraph=True)(x, direction)
        torch._dynamo.reset()
        agree(tangent(torch.compile(ours, backend=backend))(x, direction), want)


def test_forward_mode_beside_reverse_mode():
    a = random_bsr(6, 8, 2, dtype=F64, seed=SEED)
    values, x = a.values.requires_grad_(), torch.randn(8, 3, dtype=F64, requires_grad=True)
    y, bias = torch.randn(3, 6, dtype=F64, requires_grad=True), torch.randn(8, dtype=F64, requires_grad=True)
    options = dict(check_forward_ad=True, check_batched_forward_grad=True)
    left, right = lambda v, d: a.with_values(v) @ d, lambda v, d, b: sa.matmul(d, a.with_values(v), bias=b, activation="silu")
    assert gradcheck(left, (values, x), **options)
    assert gradcheck(right, (values, y, bias), **options)
    assert gradcheck(lambda p, q: sa.sddmm(a, p, q).values, (y.mT, x.mT), **options)
    assert gradgradcheck(left, (values, x), check_fwd_over_rev=True)
    assert gradgradcheck(lambda p, q: sa.sddmm(a, p, q).values, (y.mT, x.mT), check_fwd_over_rev=True)
    jacobian = torch.autograd.functional.jacobian(lambda d: a.detach() @ d, x.detach(), vectorize=True, strategy="forward-mode")
    agree(jacobian, torch.autograd.functional.jacobian(lambda d: a.to_dense().detach() @ d, x.detach()))


@pytest.mark.parametrize("lead", [(), (1,), (4,), (2, 1)])
@pytest.mark.parametrize("other", [(), (4,), (3, 1, 4)])
def test_vmap_of_batches(lead, other):
    """Values, dense and bias mapped over in every combination; each may have a batch of its own."""
    generator = torch.Generator().manual_seed(SEED)
    a = random_bsr(6, 8, 2, dtype=F64, seed=SEED)
    values, dense = torch.randn(3, *lead, *a.values.shape, generator=generator, dtype=F64), torch.randn(3, *other, 5, 8, generator=generator, dtype=F64)
    bias = torch.randn(3, 6, generator=generator, dtype=F64)

    def ours(v, d, b):
        return sa.matmul(d, a.with_values(v), transpose=True, bias=b, activation="gelu")

    def theirs(v, d, b):
        return gelu(d @ a.with_values(v).to_dense().mT + b)

    try:
        torch.broadcast_shapes(lead, other)
    except RuntimeError:
        with pytest.raises(RuntimeError, match="the dimensions of the batch differ"):
            torch.func.vmap(ours)(values, dense, bias)
        return
    for in_dims in ((0, 0, 0), (0, None, None), (None, 0, None), (None, None, 0), (0, 0, None), (0, None, 0), (None, 0, 0)):
        given = [t if dim == 0 else t[0] for t, dim in zip((values, dense, bias), in_dims, strict=True)]
        want = torch.stack([theirs(*(t[i] if dim == 0 else t for t, dim in zip(given, in_dims, strict=True))) for i in range(3)])
        agree(torch.func.vmap(ours, in_dims=in_dims)(*given), want)


def test_what_vmap_cannot_map_over():
    a, x = random_bsr(6, 8, 2), torch.randn(8, 3)
    with pytest.raises(NotImplementedError, match="row_offsets, col_indices: torch.func.vmap cannot map over them"):
        torch.func.vmap(lambda c: sa.matmul(sa.BSR(a.row_offsets, c, a.values, a.shape), x))(torch.stack([a.col_indices] * 2))


@pytest.mark.filterwarnings("ignore")
def test_sparse_bsr_tensors_under_transforms():
    """At their first product, when nothing is kept of them; torch.func cannot wrap such a tensor."""
    a, x, t = random_bsr(8, 12, 4, dtype=F64, seed=SEED), torch.randn(12, 3, dtype=F64), torch.randn(12, 3, dtype=F64)
    dense = a.to_dense()

    def multiplied(matrix):
        return lambda x: sa.matmul(matrix, x).square().sum(0)

    for name, transform in TRANSFORMS.items():
        if name != "vmap of vmap":  # whose operands are vectors here
            print(name)
            agree(transform(multiplied(a.to_torch()))(x, t), transform(lambda x: (dense @ x).square().sum(0))(x, t))
    pattern = torch.sparse_bsr_tensor(a.row_offsets, a.col_indices, a.values.long(), a.shape)
    stored = a.with_values(torch.ones_like(a.values)).to_dense()
    y, mask = torch.randn(8, 12, dtype=F64), stored
    agree(torch.func.grad(lambda x: sa.sddmm(pattern, y, x @ x.mT).to_dense().sum())(x), torch.func.grad(lambda x: (y @ x @ x.mT * mask).sum())(x))
    torch._dynamo.reset()
    for transformed in (lambda f: f, lambda f: torch.func.grad(cubed(f))):
        matrix = a.to_torch()
        made = torch.compile(transformed(lambda x, matrix=matrix: sa.matmul(matrix, x)), backend="aot_eager")(x)
        agree(made, transformed(lambda x: dense @ x)(x))
    values = a.values.clone().requires_grad_()
    matrix = torch.sparse_bsr_tensor(a.row_offsets, a.col_indices, values, a.shape)
    torch.func.grad(lambda x: sa.matmul(matrix, x).square().sum())(x).sum().backward()
    want = torch.func.grad(lambda v: (2 * a.with_values(v).to_dense().mT @ (a.with_values(v).to_dense() @ x)).sum())(a.values)
    agree(values.grad, want)


def test_what_a_transform_leaves_behind():
    """The function that torch.func.vjp returns runs when the transform is over; so may tensors that a closure kept."""
    a, x = random_bsr(6, 8, 2, dtype=F64, seed=SEED), torch.randn(8, 3, dtype=F64)
    kept = []
    made, back = torch.func.vjp(lambda x: (kept.append(x), sa.matmul(a, x))[1], x)
    for change in (torch.ones_like(made), torch.randn_like(made)):
        agree(back(change)[0], a.to_dense().mT @ change)
    agree(sa.matmul(a, kept[0]), a.to_dense() @ x)
    agree(sa.sddmm(a, torch.ones(6, 3, dtype=F64), kept[0].mT).values, sa.sddmm(a, torch.ones(6, 3, dtype=F64), x.mT).values)
