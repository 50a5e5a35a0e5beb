"""PyTorch's own functions and operators with an sa.BSR, as they stand and inside torch.compile: in the order that was written, or refused."""

import operator
import os

import pytest
import torch
from conftest import random_bsr, within
from torch.nn.functional import linear

import sparse_autotune as sa

SEED = int.from_bytes(os.urandom(4), "little")  # is part of the test's name where one fails: see the fixture
KINDS = {"square": ((24, 24), 8), "wide": ((24, 40), (8, 5)), "edges": ((21, 34), (4, 8))}
# Of A [m, k], x [k, n] or [n, m], y [k, n], v [k], u [m]; each with what it is of dense matrices, and whether torch.compile takes it whole.
PRODUCTS = {
    "A @ x": (lambda s, x, y, v, u: s @ y, False),
    "x @ A": (lambda s, x, y, v, u: x @ s, False),
    "A @ v": (lambda s, x, y, v, u: s @ v, False),
    "u @ A": (lambda s, x, y, v, u: u @ s, False),
    "x @ A @ y": (lambda s, x, y, v, u: x @ s @ y, False),
    "x @ (A @ y)": (lambda s, x, y, v, u: x @ (s @ y), False),
    "A @ y.T.T": (lambda s, x, y, v, u: s @ y.T.T, False),
    "A @ y + 1": (lambda s, x, y, v, u: (s @ (y + 1)) * 2 + 1, False),
    "A.T @ x.T": (lambda s, x, y, v, u: s.T @ x.T, False),
    "y.T @ A.T": (lambda s, x, y, v, u: y.T @ s.T, False),
    "operator.matmul(A, y)": (lambda s, x, y, v, u: operator.matmul(s, y), False),
    "operator.matmul(x, A)": (lambda s, x, y, v, u: operator.matmul(x, s), False),
    "x.matmul(A)": (lambda s, x, y, v, u: x.matmul(s), False),
    "A.matmul(y)": (lambda s, x, y, v, u: s.matmul(y), True),
    "torch.matmul(A, y)": (lambda s, x, y, v, u: torch.matmul(s, y), True),
    "torch.matmul(x, A)": (lambda s, x, y, v, u: torch.matmul(x, s), True),
    "torch.matmul(A, v)": (lambda s, x, y, v, u: torch.matmul(s, v), True),
    "torch.matmul(u, A)": (lambda s, x, y, v, u: torch.matmul(u, s), True),
    "torch.mm(A, y)": (lambda s, x, y, v, u: torch.mm(s, y), True),
    "torch.mm(x, A)": (lambda s, x, y, v, u: torch.mm(x, s), True),
    "x.mm(A)": (lambda s, x, y, v, u: x.mm(s), True),
    "torch.mv(A, v)": (lambda s, x, y, v, u: torch.mv(s, v), True),
    "addmm(v, x, A)": (lambda s, x, y, v, u: torch.addmm(v, x, s), True),
    "addmm(y[0], A, y)": (lambda s, x, y, v, u: torch.addmm(y[0], s, y, beta=0.5, alpha=2), True),
    "addmv(u, A, v)": (lambda s, x, y, v, u: torch.addmv(u, s, v), True),
    "F.linear(y.T, A, u)": (lambda s, x, y, v, u: linear(y.T, s, u), True),
    "F.linear(v, A)": (lambda s, x, y, v, u: linear(v, s), True),
    "torch.matmul(input=A, other=y)": (lambda s, x, y, v, u: torch.matmul(input=s, other=y), True),
    "torch.matmul(x, other=A)": (lambda s, x, y, v, u: torch.matmul(x, other=s), True),
    "x.matmul(other=A)": (lambda s, x, y, v, u: x.matmul(other=s), False),
    "torch.mm(input=x, mat2=A)": (lambda s, x, y, v, u: torch.mm(input=x, mat2=s), True),
    "x.mm(mat2=A)": (lambda s, x, y, v, u: x.mm(mat2=s), True),
    "torch.mv(input=A, vec=v)": (lambda s, x, y, v, u: torch.mv(input=s, vec=v), True),
    "addmm(input=v, mat1=x, mat2=A)": (lambda s, x, y, v, u: torch.addmm(input=v, mat1=x, mat2=s), True),
    "v.addmm(mat1=x, mat2=A)": (lambda s, x, y, v, u: v.addmm(mat1=x, mat2=s), True),
    "addmv(input=u, mat=A, vec=v)": (lambda s, x, y, v, u: torch.addmv(input=u, mat=s, vec=v), True),
    "F.linear(input=y.T, weight=A, bias=u)": (lambda s, x, y, v, u: linear(input=y.T, weight=s, bias=u), True),
}


@pytest.fixture
def generator():
    print("seed", SEED)
    return torch.Generator().manual_seed(SEED)


def operands(kind, generator):
    (m, k), block = KINDS[kind]
    a = random_bsr(m, k, block, seed=SEED)
    return a, *(torch.randn(size, generator=generator) for size in ((7, m), (k, 7), (k,), (m,)))


def check(name, got, a, others):
    """Sums of up to two products, within (terms + 4) roundings of the sum of the absolute values."""
    function, _ = PRODUCTS[name]
    wide = [t.double() for t in (a.to_dense(), *others)]
    within(got, function(*wide), function(*(t.abs() for t in wide)), sum(a.shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_as_they_stand(name, kind, generator):
    a, *others = operands(kind, generator)
    check(name, PRODUCTS[name][0](a, *others), a, others)


class Holder(torch.nn.Module):
    def __init__(self, matrix, function):
        super().__init__()
        self.matrix, self.function = matrix, function

    def forward(self, *others):
        return self.function(self.matrix, *others)


def ways(function, a, others):
    """The sparse operand as an argument, in a closure, in a module, and made inside; each a function of tensors."""
    parts = (a.row_offsets, a.col_indices, a.values)
    yield function, (a, *others)
    yield (lambda *given: function(a, *given)), others
    yield Holder(a, function), others
    yield (lambda *given: function(sa.BSR(*given[:3], a.shape), *given[3:])), (*parts, *others)


@pytest.mark.parametrize("kind", ["square", "wide"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_compiled(name, kind, generator):
    """Never the other order, which for square matrices nothing else would notice."""
    a, *others = operands(kind, generator)
    function, whole = PRODUCTS[name]
    for i, (way, given) in enumerate(ways(function, a, others)):
        torch._dynamo.reset()
        backend = "aot_eager" if i == 1 else "eager"
        check(name, torch.compile(way, backend=backend)(*given), a, others)
        if i:
            continue
        torch._dynamo.reset()
        compiled = torch.compile(way, backend=backend, fullgraph=True)
        if whole:
            check(name, compiled(*given), a, others)
        else:
            with pytest.raises(torch._dynamo.exc.Unsupported, match=r"write sa\.matmul\(A, x\)|[Dd]ata-dependent|bincount|nonzero"):
                compiled(*given)


def test_compiled_by_inductor(generator):
    a, *others = operands("square", generator)
    torch._dynamo.reset()
    made = torch.compile(lambda a, x, y: (a @ y, x @ a, torch.matmul(a, y), sa.matmul(x, a)))(a, *others[:2])
    for name, got in zip(("A @ x", "x @ A", "A @ x", "x @ A"), made, strict=True):
        check(name, got, a, others)


@pytest.mark.parametrize("strict", [False, True])
def test_exported_in_the_order_that_was_written(strict, generator):
    a, *others = operands("square", generator)
    for name in ("A @ x", "x @ A", "torch.matmul(A, y)", "A.matmul(y)"):
        program = torch.export.export(Holder(a, PRODUCTS[name][0]), tuple(others), strict=strict)
        check(name, program.module()(*others), a, others)


def test_sparse_weights_compiled(generator):
    a, x, y, v, u = operands("square", generator)
    weight = sa.SparseWeight(a)
    for name in ("A @ x", "x @ A", "A @ v", "u @ A", "torch.matmul(A, y)", "torch.mm(x, A)", "addmm(v, x, A)", "F.linear(y.T, A, u)", "x @ A @ y"):
        torch._dynamo.reset()
        check(name, torch.compile(PRODUCTS[name][0], backend="aot_eager")(weight, x, y, v, u), a, (x, y, v, u))


def test_what_is_refused():
    numpy = pytest.importorskip("numpy")
    a = random_bsr(8, 12, 4)
    for call in (lambda: numpy.ones((3, 8)) @ a, lambda: a @ numpy.ones((12, 3))):
        with pytest.raises(TypeError, match="must be .*not ndarray"):
            call()
    with pytest.raises(NotImplementedError, match="einsum: takes no sa.BSR; sa.matmul"):
        torch.einsum("ij,jk->ik", a, torch.ones(12, 3))
    with pytest.raises(NotImplementedError, match="linear: only its weight"):
        linear(a, torch.ones(3, 12))
    with pytest.raises(NotImplementedError, match="addmm: its first operand must be dense"):
        torch.addmm(a, torch.ones(8, 3), torch.ones(3, 12))
    for call, text in (
        (lambda: torch.mm(a, torch.ones(12)), "mm: mat2 must be a matrix, got 1-D"),
        (lambda: torch.mm(torch.ones(2, 3, 8), a), "mm: self must be a matrix, got 3-D"),
        (lambda: torch.mv(a, torch.ones(12, 1)), "mv: vec must be a vector, got 2-D"),
        (lambda: torch.addmm(torch.ones(3), a, torch.ones(12)), "addmm: mat2 must be a matrix, got 1-D"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_into_a_given_tensor(generator):
    a, x, y, v, u = operands("wide", generator)
    for name, call, size in (
        ("torch.matmul(A, y)", lambda out: torch.matmul(a, y, out=out), (24, 7)),
        ("torch.mm(x, A)", lambda out: torch.mm(x, a, out=out), (7, 40)),
        ("torch.mv(A, v)", lambda out: torch.mv(a, v, out=out), (24,)),
        ("addmm(v, x, A)", lambda out: torch.addmm(v, x, a, out=out), (7, 40)),
    ):
        out = torch.full(size, torch.nan)
        assert call(out) is out
        check(name, out, a, (x, y, v, u))
