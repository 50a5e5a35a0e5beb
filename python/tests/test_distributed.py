"""Layers over 2 and 4 processes beside the same layers in one."""

import copy

import pytest
import torch
from conftest import close
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import parallelize_module

import sparse_autotune as sa
from sparse_autotune.distributed import ColwiseSparse, PairwiseSparse, RowwiseSparse
from sparse_autotune.distributed._partition import deal


@pytest.fixture(params=[2, 4])
def world(request, worlds):
    return worlds[request.param]


# ------------------------------------------------------------------------------------------------ dealing


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("kind", ["random", "skewed", "few", "one heavy"])
def test_deal(ranks, kind):
    generator = torch.Generator().manual_seed(ranks)
    counts = {
        "random": torch.randint(5, 30, (64,), generator=generator),
        "skewed": torch.arange(64),
        "few": torch.tensor([3, 1, 2]),
        "one heavy": torch.tensor([50] + [1] * 20),
    }[kind]
    made = deal(counts, ranks, 4)
    assert sorted(unit for mine in made.units for unit in mine) == list(range(len(counts)))
    assert made.units_per_rank == -(-len(counts) // ranks)
    loads = [int(counts[list(mine)].sum()) for mine in made.units]
    if kind in ("random", "skewed"):
        assert max(loads) - min(loads) <= 1 + (64 % ranks > 0) * int(counts.max())
    assert made == deal(counts, ranks, 4)


# ------------------------------------------------------------------------------------------------ layers


def _mesh(size):
    return init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))


def _skewed(rows, cols):
    """A pattern whose first block rows and columns have the most."""
    seen = torch.rand(rows, cols) < 0.3
    seen[: rows // 3, : cols // 2] = True
    seen[-1] = False
    return seen


def _shard(x, dim, rank, size):
    return x.chunk(size, dim)[rank].contiguous()


class MLP(nn.Module):
    def __init__(self, width=48, hidden=80, block=8, bias=True, gated=True, dtype=torch.float64):
        super().__init__()
        rows, cols = hidden // block, width // block
        self.gate = sa.SparseLinear(width, hidden, block, pattern=_skewed(rows, cols), bias=bias, activation="silu", dtype=dtype)
        self.up = sa.SparseLinear(width, hidden, (block, 4), 0.4, bias=bias, dtype=dtype)
        self.down = sa.SparseLinear(hidden, width, block, pattern=_skewed(cols, rows), bias=bias, activation=None if gated else "gelu", dtype=dtype)
        self.gated = gated

    def forward(self, x):
        return self.down(sa.gated(x, self.gate, self.up) if self.gated else torch.tanh(self.gate(x)) * self.up(x))


def _grads(module):
    """Of values, in the whole layer's order, and of biases."""
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def _check_gradients(parallel, single):
    """Each rank's gradients are those of its blocks in the whole."""
    for name, layer in parallel.named_modules():
        if not isinstance(layer, sa.SparseLinear):
            continue
        want, got = single.get_submodule(name), layer.values.grad.to_local()
        close(got[: layer.nnzb], want.values.grad[layer.blocks])
        assert not got[layer.nnzb :].any()
        if layer.bias is not None and layer.dim == 0:
            _, places, _ = layer._here("bias")
            close(layer.bias.grad.to_local()[: len(places)], want.bias.grad[places])
        elif layer.bias is not None:
            close(layer.bias.grad.to_local(), want.bias.grad)


LAYOUTS = {
    "whole": (Replicate(), Replicate()),
    "sequence": (Shard(1), Shard(1)),
    "scattered": (Replicate(), Shard(1)),
    "gathered": (Shard(1), Replicate()),
    "items": (Shard(0), Shard(0)),
}


def _pair(rank, size, layouts, chunks, gated, dtensor, direct=None):
    single = MLP(gated=gated)
    parallel, mesh = copy.deepcopy(single), _mesh(size)
    if rank > 0:
        nn.init.zeros_(parallel.up.values)  # rank 0 has what counts
    came, goes = LAYOUTS[layouts]
    style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=came, output_layouts=goes, use_local_output=not dtensor, chunks=chunks, direct=direct)
    parallelize_module(parallel, mesh, style)
    loads = [layer.nnzb for layer in (parallel.gate, parallel.up, parallel.down)]
    whole = sum(layer.nnzb for layer in (single.gate, single.up, single.down))
    assert sum(loads) <= whole / size + 3, (loads, whole)  # of 10 units with some 10 blocks each
    x = torch.randn(4, 8, 48, dtype=torch.float64)
    gradient = torch.randn(4, 8, 48, dtype=torch.float64)
    of_single = x.clone().requires_grad_()
    want = single(of_single)
    want.backward(gradient)

    def part(tensor, layout):
        return _shard(tensor, layout.dim, rank, size) if isinstance(layout, Shard) else tensor

    mine = part(x, came).clone().requires_grad_()
    if dtensor:
        got = parallel(DTensor.from_local(mine, mesh, [came]))
        assert isinstance(got, DTensor) and got.placements == (goes,)
        got.backward(distribute_tensor(gradient, mesh, [goes]))
        got = got.to_local()
    else:
        got = parallel(mine)
        got.backward(part(gradient, goes).clone())
    close(got, part(want.detach(), goes))
    close(mine.grad, part(of_single.grad, came))
    _check_gradients(parallel, single)
    with torch.no_grad():
        again = parallel(mine)
        again = again.to_local() if dtensor else again
        close(again, part(want.detach(), goes))
        repeated = parallel(mine)
        assert torch.equal(again, repeated.to_local() if dtensor else repeated)


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("chunks", [1, 3])
def test_pair(world, layouts, chunks):
    world.run(_pair, layouts, chunks, chunks == 1, layouts in ("sequence", "scattered") and chunks == 1)


@pytest.mark.parametrize("layouts", ["sequence", "scattered", "items"])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_direct(world, layouts, chunks):
    world.run(_pair, layouts, chunks, chunks != 2, False, True)


@pytest.mark.parametrize("layouts", ["sequence", "scattered", "items"])
@pytest.mark.parametrize("gated", [True, False])
def test_weights_travel(world, layouts, gated):
    world.run(_pair, layouts, 1, gated, gated and layouts == "sequence", "weights")


def _plain_order(rank, size):
    """What the ranks have, one behind the other, is the whole: nothing is put in order. Beside it, a rank that has nothing."""
    for units in (size, size + 1, 1):
        single = MLP(hidden=8 * units, gated=False)
        parallel = copy.deepcopy(single)
        style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(0), output_layouts=Shard(0), chunks=1, direct="weights")
        parallelize_module(parallel, _mesh(size), style)
        x = torch.randn(size, 48, dtype=torch.float64)
        of_single, mine = x.clone().requires_grad_(), x[rank : rank + 1].clone().requires_grad_()
        want, got = single(of_single), parallel(mine)
        close(got, want[rank : rank + 1].detach())
        want.sum().backward()
        got.sum().backward()
        close(mine.grad, of_single.grad[rank : rank + 1])
        _check_gradients(parallel, single)


def test_weights_of_few_units(world):
    world.run(_plain_order)


def _one_layer(rank, size, kind, layouts, rows, activation):
    came, goes = layouts
    single = sa.SparseLinear(48, 8 * rows, 8, pattern=_skewed(rows, 6), activation=activation, dtype=torch.float64)
    if kind is RowwiseSparse:
        single = sa.SparseLinear(8 * rows, 48, 8, pattern=_skewed(6, rows), activation=activation, dtype=torch.float64)
    parallel = copy.deepcopy(single)
    parallelize_module(nn.ModuleDict({"it": parallel}), _mesh(size), {"it": kind(input_layouts=came, output_layouts=goes, chunks=2)})
    x = torch.randn(3, 8, single.in_features, dtype=torch.float64)
    whole = x.clone().requires_grad_()
    want = single(whole)
    gradient = torch.randn_like(want)
    want.backward(gradient)

    def part(tensor, layout):
        if not isinstance(layout, Shard):
            return tensor
        pieces = tensor.chunk(size, layout.dim)
        return pieces[rank] if rank < len(pieces) else tensor.narrow(layout.dim, 0, 0)

    mine = part(x, came).clone().requires_grad_()
    got = parallel(mine)
    close(got, part(want.detach(), goes))
    got.backward(part(gradient, goes).clone())
    close(mine.grad, part(whole.grad, came))
    _check_gradients(nn.ModuleDict({"it": parallel}), nn.ModuleDict({"it": single}))


@pytest.mark.parametrize("rows", [8, 7])
@pytest.mark.parametrize("came", [Replicate(), Shard(1)])
@pytest.mark.parametrize("goes", [Shard(-1), Replicate()])
def test_colwise(world, came, goes, rows):
    world.run(_one_layer, ColwiseSparse, (came, goes), rows, "relu")


@pytest.mark.parametrize("rows", [8, 7])
@pytest.mark.parametrize("came", [Shard(-1), Replicate()])
@pytest.mark.parametrize("goes", [Replicate(), Shard(1)])
def test_rowwise(world, came, goes, rows):
    world.run(_one_layer, RowwiseSparse, (came, goes), rows, "gelu")
