"""Masks of blocks that are made in what torch.compile and torch.export see: of numbers alone they are constants, of data they stay outside."""

import pytest
import torch
from conftest import close

import sparse_autotune as sa

SHAPES = {
    "causal": lambda n, device: sa.BlockMask.causal(n, 16, device=device),
    "window": lambda n, device: sa.BlockMask.window(n, 20, (8, 16), causal=True, sinks=3, device=device),
    "prefix": lambda n, device: sa.BlockMask.prefix(n, n // 3, 16, device=device),
    "strided": lambda n, device: sa.BlockMask.strided(n, 16, 5, 16, causal=True, device=device),
    "video": lambda n, device: sa.BlockMask.video(2, 5, n // 10, (1, 3, 3), 16, device=device),
    "documents": lambda n, device: sa.BlockMask.documents([30, n - 30], 16, device=device),
    "stack": lambda n, device: sa.BlockMask.stack([sa.BlockMask.causal(n, 16, device=device), sa.BlockMask.documents([n], 16, device=device)]),
    "whole": lambda n, device: sa.BlockMask.window(n, None, 16, device=device),
    "empty": lambda n, device: sa.BlockMask.window(n, 1, 16, 0, diagonal="top_left", device=device),
}
OF_DATA = {
    "documents": lambda x: sa.BlockMask.documents(x.new_tensor([30, 40], dtype=torch.int64), 16),
    "from_pairs": lambda x: sa.BlockMask.from_pairs(x @ x.mT > 0, 16),
    "union": lambda x: sa.BlockMask.causal(70, 16) | sa.BlockMask.window(70, 9, 16),
    "intersection": lambda x: sa.BlockMask.causal(70, 16) & sa.BlockMask.window(70, 9, 16),
}


def attend(make, q):
    mask = make(q.shape[2], q.device)
    k = q[:, :, : mask.shape[1]]
    return sa.attention(q, k, k, mask=mask)


def compiled(function, **words):
    """And the graphs that come of it."""
    graphs = []

    def backend(graph, _examples):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **words), graphs


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, dynamic, device):
    """One graph for each size, which calls attention alone: nothing makes a mask when it runs."""
    attending, graphs = compiled(lambda q: attend(SHAPES[shape], q), fullgraph=True, dynamic=dynamic)
    for n in (70, 90, 70, 110, 90):
        q = torch.randn(2, 2, n, 16, device=device)
        close(attending(q), attend(SHAPES[shape], q))
    assert len(graphs) == 3
    if shape != "stack":
        called = [node.name for node in graphs[0].graph.nodes if node.op == "call_function"]
        assert called[-1] == "attention_default" and not any(name.startswith(("arange", "zeros")) for name in called)


@pytest.mark.parametrize("shape", ["window", "stack"])
def test_gradients(shape, device):
    q, wanted = (torch.randn(2, 2, 70, 16, device=device, requires_grad=True) for _ in range(2))
    wanted.data.copy_(q.data)
    attending = torch.compile(lambda q: attend(SHAPES[shape], q), fullgraph=True, backend="aot_eager")
    with torch.inference_mode():
        attending(q.detach())
    attending(q).square().sum().backward()
    attend(SHAPES[shape], wanted).square().sum().backward()
    close(q.grad, wanted.grad)


@pytest.mark.parametrize("dynamic", [None, True])
def test_what_a_mask_tells(dynamic, device):
    def told(x):
        mask = sa.BlockMask.window(x.shape[0], 20, 16, causal=True, device=x.device)
        return mask.to_pairs().int() + mask.nnzb, mask.to_dense(), mask.to("cpu").columns, mask.density, mask.grid, mask.shape

    x = torch.ones(70, device=device)
    for got, want in zip(compiled(told, fullgraph=True, dynamic=dynamic)[0](x), told(x), strict=True):
        assert torch.equal(got, want) if isinstance(got, torch.Tensor) else got == want


def test_wrong_numbers():
    with pytest.raises(Exception, match="queries: must be 0 or more, not -70"):
        compiled(lambda x: sa.BlockMask.causal(-len(x), 16).columns, fullgraph=True)[0](torch.ones(70))
    with pytest.raises(ValueError, match="queries: must be 0 or more, not -70"):
        compiled(lambda x: sa.BlockMask.causal(-len(x), 16).columns)[0](torch.ones(70))


@pytest.mark.parametrize("what", OF_DATA)
def test_masks_of_data(what):
    """They break a graph, and where it must be whole the error says what to do."""
    q = torch.randn(2, 2, 70, 16)

    def attend(q):
        return sa.attention(q, q, q, mask=OF_DATA[what](q[0, 0])) + 1

    close(compiled(attend)[0](q), attend(q))
    with pytest.raises(Exception, match="depends on data; make the mask outside of what is compiled, and give it as an argument"):
        compiled(attend, fullgraph=True)[0](q)
    mask = OF_DATA[what](q[0, 0])
    close(compiled(lambda q, mask: sa.attention(q, q, q, mask=mask) + 1, fullgraph=True)[0](q, mask), attend(q))


@pytest.mark.parametrize("strict", [False, True])
def test_exported(strict):
    class Of(torch.nn.Module):
        def __init__(self, make):
            super().__init__()
            self.make = make

        def forward(self, q):
            return attend(self.make, q)

    q = torch.randn(2, 2, 70, 16)
    program = torch.export.export(Of(SHAPES["window"]), (q,), strict=strict)
    close(program.module()(q), attend(SHAPES["window"], q))
    with pytest.raises(Exception, match="a union or intersection of sa.BlockMask: how many blocks it has depends on data"):
        torch.export.export(Of(lambda n, device: OF_DATA["union"](None)), (q,), strict=strict)
