"""Layers and products that tracers take apart: torch.fx, torch.jit.trace, ONNX; and what torch.utils.flop_counter counts."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from conftest import close, random_bsr
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import sparse_autotune as sa

ACTIVATIONS = [None, "relu", "gelu", "silu"]


def model(activation, bias=True):
    return nn.Sequential(nn.Linear(16, 24), nn.Tanh(), sa.SparseLinear(24, 12, (4, 8), 0.5, bias, activation=activation))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [False, True])
def test_symbolically_traced(activation, bias):
    """One node, as nn.Linear's F.linear; what x is, and autocast, count when it runs."""
    whole = model(activation, bias)
    traced = torch.fx.symbolic_trace(whole)
    assert sum("_product" in str(node.target) for node in traced.graph.nodes) == 1
    for other in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), torch.fx.symbolic_trace(traced)):
        for size in ((16,), (5, 16), (2, 3, 16)):
            x = torch.randn(size)
            close(other(x), whole(x))
    with torch.autocast("cpu", torch.bfloat16):
        assert traced(torch.randn(5, 16)).dtype is torch.bfloat16
    traced(torch.randn(5, 16)).sum().backward()
    assert whole[2].values.grad is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_traced_by_torch_jit(activation, grad):
    whole, x = model(activation), torch.randn(5, 16)
    with torch.set_grad_enabled(grad):
        traced = torch.jit.trace(whole, x)
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for other in (traced, torch.jit.load(file)):
        for size in ((5, 16), (3, 16)):
            given, same = (t.requires_grad_() for t in (torch.randn(size),) * 2)
            got, want = other(given), whole(same)
            close(got, want)
            close(torch.autograd.grad(got.sum(), given)[0], torch.autograd.grad(want.sum(), same)[0])


@pytest.mark.filterwarnings("ignore")
def test_a_trace_asks_for_indices_as_they_are():
    """It keeps no version of them: they may be others when it runs."""
    a, x = random_bsr(16, 16, 8), torch.randn(16, 3)
    for traced in (torch.jit.trace(lambda x: sa.matmul(a, x), (x,)), torch.fx.experimental.proxy_tensor.make_fx(lambda x: sa.matmul(a, x))(x)):
        text = str(traced.graph)
        assert "spmm" in text and "_spmm" not in text
        close(traced(2 * x), a.to_dense() @ (2 * x))
    sampled = torch.jit.trace(lambda x: sa.sddmm(a, x, x.mT).values, (x.requires_grad_(),))
    close(sampled(x), sa.sddmm(a, x, x.mT).values)


@pytest.mark.filterwarnings("ignore")
def test_onnx_says_what_it_does_not_know():
    pytest.importorskip("torch.onnx")
    with pytest.raises(Exception, match="sparse_autotune::spmm|No module named 'onnx|onnxscript"):
        torch.onnx.export(model("relu"), (torch.randn(5, 16),), io.BytesIO(), dynamo=False)


def counted(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_counted_operations():
    """Two for each entry of a stored block and each row or column of the dense operand: forward, and twice that backward."""
    a, n = random_bsr(20, 24, (4, 8)), 5
    one = 2 * a.values.numel() * n
    x, y = torch.randn(24, n), torch.randn(n, 20)
    assert counted(lambda: sa.matmul(a, x)) == counted(lambda: sa.matmul(y, a)) == counted(lambda: sa.matmul(a, y.mT, transpose=True)) == one
    assert counted(lambda: sa.matmul(a, x, out=torch.empty(20, n))) == one
    assert counted(lambda: sa.matmul(a, torch.randn(2, 3, 24, n))) == 6 * one
    assert counted(lambda: a.with_values(a.values.expand(2, 1, *a.values.shape)) @ torch.randn(3, 24, n)) == 6 * one
    assert counted(lambda: sa.sddmm(a, torch.randn(20, n), torch.randn(n, 24))) == one
    assert counted(lambda: torch.ops.sparse_autotune.spmm(a.values, a.row_offsets, a.col_indices, x, None, 20, 24, 0)) == one
    assert counted(lambda: torch.func.vmap(lambda x: sa.matmul(a, x))(torch.randn(4, 24, n))) == 4 * one
    whole, eight = a.with_values(a.values.to(torch.float8_e5m2)), x.to(torch.float8_e5m2)
    assert counted(lambda: sa.scaled_matmul(whole, eight)) == counted(lambda: sa.scaled_matmul(eight.mT, whole, transpose=True)) == one
    assert counted(lambda: sa.scaled_matmul(eight.mT, eight, torch.ones(n, 1))) == counted(lambda: sa.gemm(x.mT, x)) == 2 * n * 24 * n
    layer, tokens = sa.SparseLinear(24, 20, pattern=a), torch.randn(n, 24, requires_grad=True)
    assert counted(lambda: layer(tokens).sum().backward()) == 3 * one
    assert counted(lambda: layer(tokens.detach()).sum().backward()) == 2 * one
    dense = nn.Linear(24, 20)
    full = sa.SparseLinear.from_linear(dense, (4, 8), 1.0)
    assert counted(lambda: full(tokens).sum().backward()) == counted(lambda: dense(tokens).sum().backward())


COUNTED = """
from torch.utils.flop_counter import FlopCounterMode
import sparse_autotune as sa
sa.set_options(store="", effort="estimate")
with FlopCounterMode(display=False) as counter:
    sa.matmul(sa.BSR.from_dense(torch.eye(8), 4), torch.ones(8, 3))
assert counter.get_total_flops() == 2 * 2 * 16 * 3
"""
UNASKED = """
import sys
before = set(sys.modules)
import sparse_autotune
import importlib.util
assert importlib.util.find_spec("torch.utils.flop_counter").name == "torch.utils.flop_counter"  # who only asks
assert not {"torch.utils.flop_counter", "triton"} & (set(sys.modules) - before)
"""


@pytest.mark.parametrize("first", ["", UNASKED], ids=["counter first", "package first"])
def test_the_counter_is_imported_by_who_counts(first):
    """It imports Triton, which takes longer than all of this package; operations count whichever of the two is imported first."""
    done = subprocess.run([sys.executable, "-c", "import torch" + first + COUNTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
