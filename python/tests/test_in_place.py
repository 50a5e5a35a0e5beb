"""set_options(tuning="in_place"): nobody waits, every call is right, and the fastest of those that took turns stays."""

import os
import subprocess
import sys
import time

import pytest
import torch
from conftest import DTYPES, close, random_bsr

import sparse_autotune as sa
from sparse_autotune import _C

CALLS = 100


@pytest.fixture
def measured():
    """Steps of tunings: none may be made by a call."""
    steps = []
    sa.set_options(store="", effort="measure", tuning="in_place", warm=True, budget_s=0.05)
    sa.clear_cache()
    _C.set_progress(lambda *step: steps.append(step))
    yield steps
    _C.set_progress(None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype, measured):
    a, x = random_bsr(96, 80, (16, 8), dtype=dtype), torch.randn(80, 24).to(dtype)
    want = a.to_dense().double() @ x.double()
    for call in range(CALLS):
        close(sa.matmul(a, x), want)
        if call == 0:
            report = sa.explain(a, x)
            assert report.origin == "tried in place: 1 run in turn so far" and report.choice and not report.from_store
            assert report.origin in str(report) and "This class is tried in place" in report.summary
    assert not measured
    report = sa.explain(a, x)
    assert report.origin is None and report.from_store
    assert report.choice and report.provisional in ("in_place", "load") and sum(c["median_us"] is not None for c in report.candidates) > 1
    again = random_bsr(96, 80, (16, 8), dtype=dtype)  # another pattern of the class: from the store
    close(sa.matmul(again, x), again.to_dense().double() @ x.double())
    assert not measured
    # Who asks for a tuning with more time than the trial had gets one; that of a busy machine is left alone for some minutes.
    sa.set_options(budget_s=1.0)
    sa.tune(a, x, fresh=report.provisional == "load")
    assert measured


def test_layers_are_trained(measured):
    torch.manual_seed(3)
    layer = sa.SparseLinear(64, 48, 16, 0.4)
    dense = torch.nn.Linear(64, 48)
    with torch.no_grad():
        dense.weight.copy_(layer.weight.to_dense())
        dense.bias.copy_(layer.bias)
    for _ in range(CALLS):
        x = torch.randn(20, 64)
        for model in (layer, dense):
            model.zero_grad()
            model(x).square().sum().backward()
        torch.testing.assert_close(layer(x), dense(x), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(layer.bias.grad, dense.bias.grad, atol=1e-2, rtol=1e-3)
    assert not measured


def test_attention(measured):
    q, k, v = (torch.randn(1, 2, 96, 32, requires_grad=True) for _ in range(3))
    y = torch.randn_like(q)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    wanted = torch.autograd.grad(want, (q, k, v), y)
    for _ in range(CALLS):
        o = sa.attention(q, k, v, causal=True)
        torch.testing.assert_close(o, want, atol=1e-5, rtol=1e-4)
        for got, of in zip(torch.autograd.grad(o, (q, k, v), y), wanted, strict=True):
            torch.testing.assert_close(got, of, atol=1e-4, rtol=1e-3)
    assert not measured


def test_it_is_what_a_program_gets_that_asks_for_nothing(tmp_path):
    program = """if True:
        import torch
        import sparse_autotune as sa
        a, x = sa.BSR.from_dense(torch.randn(96, 80), (16, 8), density=0.4), torch.randn(80, 24)
        sa.matmul(a, x)
        print(sa.get_options().tuning, sa.explain(a, x).origin)
    """
    env = {**os.environ, "SPARSEK_STORE": str(tmp_path / "store.db"), "SPARSEK_BUNDLE": ""}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("in_place tried in place: 1 run in turn so far"), done.stdout + done.stderr


def test_equal_bits(measured):
    """Where PyTorch is asked for them the first call tunes, and all calls agree."""
    a, x = random_bsr(96, 80, (16, 8)), torch.randn(80, 24)
    torch.use_deterministic_algorithms(True)
    try:
        first = sa.matmul(a, x)
        assert measured
        for _ in range(20):
            assert torch.equal(sa.matmul(a, x), first)
    finally:
        torch.use_deterministic_algorithms(False)


def test_who_forbids_or_asks_for_measuring(measured):
    a, x = random_bsr(96, 80, (16, 8)), torch.randn(80, 24)
    with sa.no_tuning():
        for _ in range(CALLS):
            sa.matmul(a, x)
    assert not known(a, x)
    layer = sa.SparseLinear(64, 48, 16, 0.4)
    sa.warm_up(layer, [24])
    sa.set_options(tuning="ahead_each")
    with torch.no_grad():
        layer(torch.randn(24, 64))  # it is known


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captures_while_candidates_are_made_ready(measured):
    """Another thread compiles, proves, and allocates from PyTorch's allocator, which must end no capture of this one."""
    captures = 0
    for size in range(512, 896, 64):
        a = random_bsr(1024, size, 32, dtype=torch.bfloat16, device="cuda")
        x = torch.randn(size, 64, dtype=torch.bfloat16, device="cuda")
        want = a.to_dense().double() @ x.double()
        sa.matmul(a, x)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(100):  # some milliseconds
                    y = sa.matmul(a, x)
            graph.replay()
            captures += 1
            sa.matmul(a, x)
        close(y, want)
    assert captures > 50


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda(measured):
    """The first choice works while others are compiled and proved; a capture before that holds it, and one after it the fastest."""
    dtype = torch.bfloat16
    a, x = random_bsr(512, 512, (64, 64), dtype=dtype).to("cuda"), torch.randn(512, 256, device="cuda", dtype=dtype)
    want = a.to_dense().double() @ x.double()
    close(sa.matmul(a, x), want)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = sa.matmul(a, x)
    graph.replay()
    close(captured, want)
    begin = time.monotonic()
    while time.monotonic() - begin < 120 and not known(a, x):
        for _ in range(CALLS):
            close(sa.matmul(a, x), want)
    report = sa.explain(a, x)
    assert report.provisional == "in_place" and sum(c["median_us"] is not None for c in report.candidates) > 1
    assert not measured
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other):
        again = sa.matmul(a, x)
    for replayed, out in ((graph, captured), (other, again)):
        out.zero_()
        replayed.replay()
        close(out, want)


def known(a, x):
    try:
        return bool(sa.explain(a, x).choice)
    except LookupError:
        return False
