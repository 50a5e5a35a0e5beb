"""torch.compile, opcheck."""

import subprocess
import sys

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa
from sparse_autotune import _ops

ops = torch.ops.sparse_autotune


@pytest.mark.parametrize("graded", [False, True])
def test_opcheck(graded, device):
    a = random_bsr(20, 24, (4, 8), device=device)
    values, b = a.values.clone().requires_grad_(graded), torch.randn(24, 5, device=device, requires_grad=graded)
    bias = torch.randn(5, device=device, requires_grad=graded)
    x, y = torch.randn(20, 6, device=device, requires_grad=graded), torch.randn(6, 24, device=device, requires_grad=graded)
    indices = (a.row_offsets, a.col_indices)
    torch.library.opcheck(ops.spmm.default, (values, *indices, b, bias, 20, 24, 0))
    torch.library.opcheck(ops.spmm.default, (values, *indices, torch.randn(3, 24, device=device), None, 20, 24, 3))
    torch.library.opcheck(ops.sddmm.default, (x, y, *indices, 20, 24, 4, 8, 0))


def test_opcheck_out_variants(device):
    a = random_bsr(20, 24, (4, 8), device=device)
    b, x, y = torch.randn(24, 5, device=device), torch.randn(20, 6, device=device), torch.randn(6, 24, device=device)
    indices = (a.row_offsets, a.col_indices)
    names = ("test_schema", "test_faketensor")
    torch.library.opcheck(ops._spmm_out.default, (a.values, *indices, b, None, 20, 24, 0, -1, torch.empty(20, 5, device=device)), test_utils=names)
    added = (torch.randn(20, 5, device=device), torch.empty(20, 5, device=device))
    torch.library.opcheck(ops._spmm_added.default, (a.values, *indices, b, None, 20, 24, 0, -1, *added), test_utils=names)
    torch.library.opcheck(ops._sddmm_out.default, (x, y, *indices, 20, 24, 4, 8, 0, -1, torch.empty_like(a.values)), test_utils=names)


@pytest.fixture(autouse=True)
def _nothing_compiled():
    """A function is compiled for so many kinds of arguments at most."""
    torch._dynamo.reset()


def test_compiled_product_and_gradients(device):
    a = random_bsr(32, 24, 8, device=device)

    def step(values, x):
        return sa.matmul(x, a.with_values(values), transpose=True, activation="gelu").square().sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for tokens in (3, 5, 8):
        got = [a.values.clone().requires_grad_(), torch.randn(tokens, 24, device=device, requires_grad=True)]
        want = [t.detach().clone().requires_grad_() for t in got]
        compiled(*got).backward()
        step(*want).backward()
        for g, w in zip(got, want, strict=True):
            close(g.grad, w.grad)


@pytest.mark.parametrize("dense", [torch.randn(24, 5), torch.randn(24)], ids=["matrix", "vector"])
def test_compiled_product_into_out(dense, device):
    a, dense = random_bsr(32, 24, 8, device=device), dense.to(device)
    made = torch.compile(lambda x, out: sa.matmul(a, 2 * x, out=out, activation="relu").add(1), fullgraph=True, backend="aot_eager")
    for scale in (1, 3):
        out = torch.empty(32, *dense.shape[1:], device=device)
        got, want = made(scale * dense, out), (a.to_dense() @ (2 * scale * dense)).relu()
        close(out, want)
        close(got, want + 1)


def test_compiled_gated_product(device):
    gate, up = sa.SparseLinear(32, 24, 8, 0.5, activation="silu", device=device), sa.SparseLinear(32, 24, 8, 0.5, device=device)
    compiled = torch.compile(lambda x: sa.gated(2 * x, gate, up) + 1, fullgraph=True, backend="aot_eager")
    for tokens in (3, 5):
        x = torch.randn(tokens, 32, device=device, requires_grad=True)
        want = gate(2 * x) * up(2 * x) + 1
        with torch.no_grad():
            close(compiled(x), want)
        close(compiled(x), want)
        (given,) = torch.autograd.grad(compiled(x).sum(), x)
        close(given, torch.autograd.grad(want.sum(), x)[0])


def test_compiled_product_into_out_has_no_gradient():
    a, x = random_bsr(32, 24, 8), torch.randn(24, 5, requires_grad=True)
    with pytest.raises(Exception, match="out: a product that writes into a tensor has no gradient"):
        torch.compile(lambda x, out: sa.matmul(a, x, out=out), backend="aot_eager")(x, torch.empty(32, 5))


def test_compiled_sddmm_into_spmm(device):
    a = random_bsr(32, 24, 8, device=device)
    x, y = torch.randn(32, 6, device=device), torch.randn(6, 24, device=device)

    def both(x, y):
        return sa.matmul(sa.sddmm(a, x, y), y.mT)

    close(torch.compile(both, fullgraph=True, backend="aot_eager")(x, y), both(x, y))


@pytest.mark.parametrize("what", ["left", "right", "components", "layer", "sddmm", "weight"])
def test_sizes_of_the_dense_operand_are_symbolic(what):
    a, layer = random_bsr(32, 24, 8), sa.SparseLinear(24, 32, 8, 0.5)
    weight = sa.SparseWeight(a)
    function = {
        "left": lambda x: sa.matmul(a, x.mT),
        "right": lambda x: sa.matmul(x, a, transpose=True),
        "components": lambda x: sa.bsr_gemm(a.row_offsets, a.col_indices, a.values, x.mT),
        "layer": layer,
        "sddmm": lambda x: sa.sddmm(a, x.new_ones(32, x.shape[0]), x).values,
        "weight": lambda x: torch.nn.functional.linear(x, weight),
    }[what]
    graphs = []

    def backend(graph, _examples):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(function, backend=backend, fullgraph=True, dynamic=True)
    for size in range(2, 22):
        x = torch.randn(size, 24)
        close(compiled(x), function(x))
    assert len(graphs) <= 2


def test_a_product_that_may_round_is_compiled_anew():
    """What decides whether float32 becomes TF32 on a GPU is read when a function is compiled, and a change of it is seen."""
    compiled = torch.compile(lambda x: x + _ops._rounds_to_tf32(), fullgraph=True, backend="eager")
    try:
        for precision, want in (("highest", 0), ("high", 1), ("highest", 0)):
            torch.set_float32_matmul_precision(precision)
            assert compiled(torch.zeros(1)) == _ops._rounds_to_tf32() == want
    finally:
        torch.set_float32_matmul_precision("highest")


def test_whether_a_product_may_round_by_the_newer_setting():
    """In a process of its own: PyTorch refuses most of what follows when both kinds of settings were used."""
    program = "import torch; from sparse_autotune import _ops; torch.backends.cuda.matmul.fp32_precision = 'tf32'; print(_ops._rounds_to_tf32())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"
