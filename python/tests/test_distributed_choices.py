"""Choices that ranks share, and ranks that die."""

import copy
import os

import pytest
import torch
import torch.distributed as dist
from conftest import close
from ranks import World
from test_distributed import MLP, _mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import parallelize_module

import sparse_autotune as sa
from sparse_autotune.distributed import PairwiseSparse, RowwiseSparse, chunk_choices, pin_chunks, tune_once, warm_up


def _with_a_store(rank, folder):
    return sa.set_options(store=os.path.join(folder, f"tuned{rank}.db"), effort="measure", budget_s=0.02)


def _tuned_once(rank, size, folder):
    before = _with_a_store(rank, folder)
    try:
        a, b = sa.BSR.from_dense(torch.randn(64, 64), 8, density=0.3), torch.randn(64, 16)
        calls = []
        with sa.no_tuning():
            a @ b  # a plan that must not stay
        tune_once(lambda: calls.append(sa.tune(a, b) if rank == 1 else a @ b), src=1)
        assert len(calls) == 1
        choices = [None] * size
        dist.all_gather_object(choices, sa.explain(a, b).choice)
        assert len(set(choices)) == 1, choices
        sa.set_options(store=os.path.join(folder, f"nothing{rank}.db"))
        tune_once(None)
        with pytest.raises(RuntimeError, match="rank 0: ZeroDivisionError: .*division by zero"):
            tune_once(lambda: 1 / 0)
        sa.set_options(store="")
        with pytest.raises(ValueError, match="store: is in memory"):
            tune_once(lambda: None)
    finally:
        sa.set_options(store=before.store, effort=before.effort, budget_s=before.budget_s)
    return choices[0]


def test_tune_once(worlds, tmp_path):
    assert len(set(worlds[2].run(_tuned_once, str(tmp_path)))) == 1


def _chunks(rank, size, folder):
    before = _with_a_store(rank, folder)
    try:
        single = MLP(dtype=torch.float32)
        parallel, x = copy.deepcopy(single), torch.randn(4, 8, 48)
        style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(1), output_layouts=Shard(1))
        parallelize_module(parallel, _mesh(size), style)
        warm_up(parallel, 16, gradients=True)
        mine, want = x.chunk(size, 1)[rank], single(x).chunk(size, 1)[rank]
        close(parallel(mine), want)
        (chosen,) = parallel.plan.chosen.items()
        assert chosen[0] == f"{32 // size} tokens of 48, float32, training" and chosen[1].pieces in (1, 2, 4, 8)
        assert all(parameter.grad is None for parameter in parallel.parameters())
        everywhere = [None] * size
        dist.all_gather_object(everywhere, chunk_choices(parallel))
        assert everywhere == [{"": {chosen[0]: tuple(chosen[1])}}] * size
        pin_chunks(parallel, {"": {chosen[0]: [2, True]}})
        close(parallel(mine), want)
        assert parallel.plan.chosen == {chosen[0]: (2, True)}
        with pytest.raises(ValueError, match="choices: the model has no dealt module 'there'"):
            pin_chunks(parallel, {"there": {}})
        layer = sa.SparseLinear(64, 48, 8, 0.4)
        whole = copy.deepcopy(layer)
        parallelize_module(layer, _mesh(size), RowwiseSparse())
        x = torch.randn(8, 64)
        close(layer(x.chunk(size, 1)[rank].contiguous()), whole(x))
        assert layer.plan.chosen and layer.values.grad is None
        with torch.no_grad():
            close(layer(x.chunk(size, 1)[rank].contiguous()), whole(x))
        assert len(layer.plan.chosen) == 2
    finally:
        sa.set_options(store=before.store, effort=before.effort, budget_s=before.budget_s)


def test_chunks_are_measured_once(worlds, tmp_path):
    worlds[2].run(_chunks, str(tmp_path))


def _dies(rank, size, how):
    model = MLP()
    parallelize_module(model, _mesh(size), PairwiseSparse(up=("gate", "up"), down="down", chunks=2))
    dist.barrier()
    if rank == 1:
        os._exit(3)
    try:
        if how == "product":
            for _ in range(3):
                model(torch.randn(8, 48, dtype=torch.float64)).sum().backward()
        else:
            tune_once(lambda: None, src=1)
    except RuntimeError:
        return "ended"
    raise AssertionError("no error")


@pytest.mark.parametrize("how", ["product", "tuning"])
def test_a_dead_rank_ends_the_others(how):
    world = World(2)
    try:
        assert world.run(_dies, how, only_living=True) == ["ended", None]
    finally:
        world.close()
