"""What only a GPU has: streams and graphs."""

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")


def test_other_stream():
    a, b = random_bsr(256, 256, 32, device="cuda"), torch.randn(256, 64, device="cuda")
    want = a.to_dense() @ b
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        got = a @ (b * 1)
    torch.cuda.current_stream().wait_stream(stream)
    close(got, want)


def captured(call):
    """A graph of the call, and its result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


@pytest.mark.parametrize("tokens", [1, 64, 1000])
@pytest.mark.parametrize("block", [32, 64, 128])
def test_graph_of_a_plan_made_in_it(block, tokens):
    """The captured product has a plan of its own: its device memory is made during the capture, and is no part of it."""
    layer = sa.SparseLinear(1024, 2048, block, 0.2, dtype=torch.bfloat16, device="cuda")
    x = torch.randn(tokens, 1024, dtype=torch.bfloat16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad():
        with torch.cuda.stream(side):
            for _ in range(3):
                layer(x)
        torch.cuda.current_stream().wait_stream(side)
        graph, y = captured(lambda: layer(x))
        for _ in range(2):
            x.copy_(torch.randn_like(x))
            graph.replay()
            close(y, torch.nn.functional.linear(x.double(), layer.weight.to_dense().double(), layer.bias.double()))


def test_graph_of_a_step():
    """Forward and backward of a layer in one graph."""
    layer = sa.SparseLinear(512, 768, 64, 0.3, dtype=torch.bfloat16, device="cuda")
    x = torch.randn(256, 512, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    gradient = torch.randn(256, 768, dtype=torch.bfloat16, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            layer(x).backward(gradient)
    torch.cuda.current_stream().wait_stream(side)
    layer.zero_grad(set_to_none=True)
    x.grad = None
    graph, _ = captured(lambda: layer(x).backward(gradient))
    gradient.copy_(torch.randn_like(gradient))
    graph.replay()
    got = [x.grad.clone(), layer.values.grad.clone(), layer.bias.grad.clone()]
    layer.zero_grad(set_to_none=True)
    x.grad = None
    layer(x).backward(gradient)
    for one, want in zip(got, [x.grad, layer.values.grad, layer.bias.grad], strict=True):
        close(one, want)


def test_capture_refuses_unknown_indices():
    a, b = random_bsr(256, 192, 32, device="cuda"), torch.randn(192, 64, device="cuda")
    with pytest.raises(RuntimeError, match="before the capture"):
        captured(lambda: a @ b)
    close(a @ b, a.to_dense() @ b)  # the capture was refused, nothing else


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_graph(dtype):
    layer = sa.SparseLinear(256, 512, 32, 0.3, activation="relu", dtype=dtype, device="cuda")
    x = torch.randn(64, 256, device="cuda").to(dtype)
    with torch.no_grad():
        layer(x)
        graph, y = captured(lambda: layer(x))
        sa.clear_cache()
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            graph.replay()
            close(y, torch.relu(x.double() @ layer.weight.to_dense().double().mT + layer.bias.double()))


def test_capture_measures_nothing():
    sa.set_options(effort="measure", tuning="now")
    a, b = random_bsr(320, 192, 32, device="cuda"), torch.randn(192, 24, device="cuda")
    with sa.no_tuning():
        a @ b  # its pattern is known then, its class is not
    with pytest.raises(RuntimeError, match="captured"):
        captured(lambda: a @ b)
