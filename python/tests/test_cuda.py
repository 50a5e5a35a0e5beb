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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_graph(dtype):
    layer = sa.SparseLinear(256, 512, 32, 0.3, activation="relu", dtype=dtype, device="cuda")
    x = torch.randn(64, 256, device="cuda").to(dtype)
    with torch.no_grad():
        layer(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layer(x)
        sa.clear_cache()
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            graph.replay()
            close(y, torch.relu(x.double() @ layer.weight.to_dense().double().mT + layer.bias.double()))


def test_capture_measures_nothing():
    sa.set_options(effort="measure", unknown="tune")
    a, b = random_bsr(320, 192, 32, device="cuda"), torch.randn(192, 24, device="cuda")
    with sa.no_tuning():
        a @ b  # its pattern is known then, its class is not
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="captured"), torch.cuda.graph(graph):
        a @ b
