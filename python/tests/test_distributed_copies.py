"""Messages that are copies into the memory of other ranks, over 2 and 4 processes of the CPU, which share files in place of devices' memory."""

import contextlib
import copy
import os

import pytest
import torch
import torch.distributed as dist
from conftest import close
from ranks import World
from shared_double import sharing
from test_distributed import MLP, _check_gradients, _mesh, _pair
from test_distributed_attention import _formula
from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.checkpoint import checkpoint

import sparse_autotune as sa
from sparse_autotune.distributed import PairwiseSparse, _copies, _shared, attention_by_heads, chunk_choices, experts, pin_chunks


@pytest.fixture(params=[2, 4])
def world(request, worlds):
    return worlds[request.param]


@contextlib.contextmanager
def _measuring(rank, folder):
    before = sa.set_options(store=os.path.join(folder, f"tuned{rank}.db"), effort="measure", budget_s=0.01)
    try:
        with sharing(folder) as shared:
            yield shared
    finally:
        sa.set_options(store=before.store, effort=before.effort, budget_s=before.budget_s)


# ------------------------------------------------------------------------------------------------ layers


def _copied_pair(rank, size, folder, layouts, chunks, gated, kind):
    with sharing(folder) as shared:
        _pair(rank, size, layouts, chunks, gated, False, kind)
        passes = 2 if layouts == "scattered" else 4  # without gradients twice; a training step is one exchange forward and one back
        assert [memory.exchanges for memory in shared] == [1 + passes]


@pytest.mark.parametrize("layouts", ["sequence", "scattered", "items"])
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_pair(world, layouts, chunks, tmp_path):
    world.run(_copied_pair, str(tmp_path), layouts, chunks, chunks != 2, "copies")


@pytest.mark.parametrize("chunks", [1, 2])
def test_late(world, chunks, tmp_path):
    world.run(_copied_pair, str(tmp_path), "scattered", chunks, chunks != 2, "late copies")


@pytest.mark.parametrize("layouts", ["sequence", "scattered", "items"])
@pytest.mark.parametrize("gated", [True, False])
def test_weights(world, layouts, gated, tmp_path):
    world.run(_copied_weights, str(tmp_path), layouts, gated)


def _copied_weights(rank, size, folder, layouts, gated):
    with sharing(folder) as shared:
        _pair(rank, size, layouts, 1, gated, False, "weights")
        # Of values and the bias of two layers, and the values of the third: gradients in an exchange each. Twice without gradients.
        assert [memory.exchanges for memory in shared] == [1 + 1 + 5 + 2]


def _some_gradients(rank, size, folder):
    """Of one layer, twice; the others' are not asked for. Then of two calls at once."""
    with sharing(folder):
        single = MLP()
        parallel = copy.deepcopy(single)
        style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(0), output_layouts=Shard(0), chunks=1, direct="weights")
        parallelize_module(parallel, _mesh(size), style)
        x = torch.randn(2 * size, 48, dtype=torch.float64)
        mine = x[2 * rank : 2 * rank + 2]
        for layer in ("down", "gate"):
            made = parallel(mine)
            for again in (True, False):
                (got,) = torch.autograd.grad(made.sum(), [parallel.get_submodule(layer).values], retain_graph=again)
                (want,) = torch.autograd.grad(single(x).sum(), [single.get_submodule(layer).values])
                close(got.to_local()[: parallel.get_submodule(layer).nnzb], want[parallel.get_submodule(layer).blocks])
        parallel(parallel(mine)).sum().backward()
        single(single(x)).sum().backward()
        _check_gradients(parallel, single)
        with torch.no_grad():
            close(parallel(mine), single(x)[2 * rank : 2 * rank + 2])


def test_gradients_of_some_weights(world, tmp_path):
    world.run(_some_gradients, str(tmp_path))


def _both(size, kind=MLP, direct="weights"):
    single = kind()
    parallel = copy.deepcopy(single)
    style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(0), output_layouts=Shard(0), chunks=None if direct is None else 1, direct=direct)
    parallelize_module(parallel, _mesh(size), style)
    return single, parallel


def _same(parallel, single, rank, size, call=lambda module, x: module(x)):
    x = torch.randn(2 * size, 48, dtype=torch.float64)
    of_single, mine = x.clone().requires_grad_(), x[2 * rank : 2 * rank + 2].clone().requires_grad_()
    want, got = single(of_single), call(parallel, mine)
    close(got, want[2 * rank : 2 * rank + 2].detach())
    want.sum().backward()
    got.sum().backward()
    close(mine.grad, of_single.grad[2 * rank : 2 * rank + 2])
    _check_gradients(parallel, single)


class _Checkpointed(MLP):
    reentrant = False

    def forward(self, x):
        return checkpoint(lambda x: self.down(self.gate(x) * self.up(x)), x, use_reentrant=self.reentrant)


class _CheckpointedReentrant(_Checkpointed):
    reentrant = True


def _checkpoints(rank, size, folder):
    """Of the module, the products are made again with new copies; within the module they cannot be, and another way is measured."""
    with _measuring(rank, folder):
        for reentrant in (False, True):
            _same(*_both(size)[::-1], rank, size, lambda module, x, reentrant=reentrant: checkpoint(module, x, use_reentrant=reentrant))
        single, parallel = _both(size, _Checkpointed, direct=None)
        _same(parallel, single, rank, size)
        (chosen,) = chunk_choices(parallel)[""].values()
        assert chosen[1] != "weights"
        for kind in (_Checkpointed, _CheckpointedReentrant):
            _, parallel = _both(size, kind)
            with pytest.raises(RuntimeError, match="checkpoint the module from outside"):
                parallel(torch.randn(2, 48, dtype=torch.float64, requires_grad=True)).sum().backward()


def test_checkpoints(worlds, tmp_path):
    worlds[2].run(_checkpoints, str(tmp_path))


class _Failing(MLP):
    fails = False

    def forward(self, x):
        if self.fails:
            raise ValueError("on purpose")
        return super().forward(x)


def _errors(rank, size, folder):
    """Raised before any product, at all ranks: what was sent is used up, and the next call is right."""
    with sharing(folder):
        single, parallel = _both(size, _Failing)
        for fails in (True, False, True, False):
            parallel.fails = fails
            if not fails:
                _same(parallel, single, rank, size)
                parallel.zero_grad()
                single.zero_grad()
                continue
            with pytest.raises(ValueError, match="on purpose"):
                parallel(torch.randn(2, 48, dtype=torch.float64))


def test_error_within(worlds, tmp_path):
    worlds[2].run(_errors, str(tmp_path))


class _FailingLate(MLP):
    fails = False

    def forward(self, x):
        hidden = self.gate(x)
        if self.fails:
            raise ValueError("on purpose")
        return self.down(hidden * self.up(x))


def _late_errors(rank, size, folder, only):
    """After the first product; at all ranks, or at one."""
    with sharing(folder):
        single, parallel = _both(size, _FailingLate)
        for fails in (True, False, True, False):
            parallel.fails = fails and (only is None or rank == only)
            if not fails:
                _same(parallel, single, rank, size)
                parallel.zero_grad()
                single.zero_grad()
                continue
            with torch.no_grad(), contextlib.suppress(ValueError):
                parallel(torch.randn(2, 48, dtype=torch.float64))


@pytest.mark.parametrize("only", [None, 0])
def test_error_after_a_product(world, only, tmp_path):
    world.run(_late_errors, str(tmp_path), only)


class _Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = sa.SparseLinear(48, 80, 8, 0.5, dtype=torch.float64)
        self.inside = MLP(width=80, hidden=48)
        self.down = sa.SparseLinear(80, 48, 8, 0.5, dtype=torch.float64)

    def forward(self, x):
        return self.down(self.inside(self.gate(x)))


def _nested(rank, size, folder):
    """A pair within a pair: the outer exchange ends before the inner one begins."""
    with sharing(folder):
        single = _Nested()
        parallel = copy.deepcopy(single)
        words = dict(input_layouts=Shard(0), output_layouts=Shard(0), chunks=1, direct="weights")
        parallelize_module(parallel.inside, _mesh(size), PairwiseSparse(up=("gate", "up"), down="down", **words))
        parallelize_module(parallel, _mesh(size), PairwiseSparse(up="gate", down="down", **words))
        x = torch.randn(2 * size, 48, dtype=torch.float64)
        with torch.no_grad():
            close(parallel(x[2 * rank : 2 * rank + 2]), single(x)[2 * rank : 2 * rank + 2])


def test_nested(world, tmp_path):
    world.run(_nested, str(tmp_path))


class _Asserting(MLP):
    """Knows how many hidden features a rank has."""

    here = None

    def forward(self, x):
        hidden = sa.gated(x, self.gate, self.up)
        assert self.here is None or hidden.shape[-1] == self.here
        return self.down(hidden)


def _asserting(rank, size, folder):
    with _measuring(rank, folder):
        single, parallel = _both(size, _Asserting, direct=None)
        parallel.here = parallel.up.out_features
        _same(parallel, single, rank, size)
        (chosen,) = chunk_choices(parallel)[""].values()
        assert chosen[1] != "weights"


def test_a_module_that_asserts(worlds, tmp_path):
    worlds[2].run(_asserting, str(tmp_path))


class _Few(MLP):
    """One block, and none."""

    def __init__(self):
        super().__init__()
        one = torch.zeros(10, 6, dtype=torch.bool)
        one[3, 2] = True
        self.gate = sa.SparseLinear(48, 80, 8, pattern=one, activation="silu", dtype=torch.float64)
        self.down = sa.SparseLinear(80, 48, 8, pattern=torch.zeros(6, 10, dtype=torch.bool), dtype=torch.float64)


class _Wide(MLP):
    """May have a buffer of the hidden features of a rank."""

    def forward(self, x):
        return self.down(self.gate(x) * self.up(x) * getattr(self, "scale", 1.0))


def _corners(rank, size, folder):
    with _measuring(rank, folder):
        single, parallel = _both(size)
        with torch.inference_mode():
            parallel(torch.randn(2, 48, dtype=torch.float64))
        _same(parallel, single, rank, size)
        _same(*_both(size, _Few)[::-1], rank, size)
        single, parallel = _both(size, _Wide, direct=None)
        parallel.register_buffer("scale", torch.ones(parallel.up.out_features, dtype=torch.float64))
        _same(parallel, single, rank, size)
        (chosen,) = chunk_choices(parallel)[""].values()
        assert chosen[1] != "weights"


def test_corners_of_weights(worlds, tmp_path):
    worlds[2].run(_corners, str(tmp_path))


class _Scaled(MLP):
    """Has a parameter beside its layers, whose gradient no copy would carry."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(80, dtype=torch.float64))

    def forward(self, x):
        return self.down(sa.gated(x, self.gate, self.up) * self.scale)


def _beside(rank, size, folder):
    with sharing(folder) as shared:
        single = _Scaled()
        parallel, x = copy.deepcopy(single), torch.randn(4, 8, 48, dtype=torch.float64)
        parallel.scale = nn.Parameter(torch.ones(parallel.down.in_features // size, dtype=torch.float64))
        style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(1), output_layouts=Shard(1), chunks=2, direct="copies")
        parallelize_module(parallel, _mesh(size), style)
        mine = x.chunk(size, 1)[rank].clone().requires_grad_()
        parallel(mine).sum().backward()
        assert not shared and parallel.scale.grad is not None
        with torch.no_grad():
            close(parallel(mine), single(x).chunk(size, 1)[rank])
        assert len(shared) == 1


def test_other_parameters(worlds, tmp_path):
    worlds[2].run(_beside, str(tmp_path))


class _WithArgument(MLP):
    def forward(self, x, scale=None):
        hidden = sa.gated(x, self.gate, self.up)
        return self.down(hidden if scale is None else hidden * scale)


def _argument(rank, size, folder):
    """Of this rank's hidden features: whole weights would not fit it, though they were the choice of a call without it."""
    with _measuring(rank, folder):
        single, parallel = _both(size, _WithArgument, direct=None)
        x = torch.randn(2 * size, 48, dtype=torch.float64)
        mine = x[2 * rank : 2 * rank + 2]
        scale = torch.full((), 3.0, dtype=torch.float64)
        with torch.no_grad():
            parallel(mine)
            (key,) = chunk_choices(parallel)[""]
            pin_chunks(parallel, {"": {key: [1, "weights"]}})
            close(parallel(mine), single(x)[2 * rank : 2 * rank + 2])
            wide = scale.expand(parallel.down.in_features)
            close(parallel(mine, wide), single(x, scale)[2 * rank : 2 * rank + 2])
        assert chunk_choices(parallel)[""][key][1] != "weights"


def test_later_arguments(worlds, tmp_path):
    worlds[2].run(_argument, str(tmp_path))


def _order(own, count):
    early, pieces = _copies._order(own, count)
    return early, sorted(token for first, size in pieces for token in range(first, first + size))


@pytest.mark.parametrize("own", [1, 5, 8, 17])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_order(own, count):
    early, tokens = _order(own, min(count, own))
    assert tokens == list(range(own)) and 0 <= early < own


def _measured(rank, size, folder):
    with _measuring(rank, folder) as shared:
        single = MLP(dtype=torch.float32)
        for came in (Replicate(), Shard(1)):
            parallel, x = copy.deepcopy(single), torch.randn(4, 8, 48)
            parallelize_module(parallel, _mesh(size), PairwiseSparse(up=("gate", "up"), down="down", input_layouts=came, output_layouts=Shard(1)))
            with torch.no_grad():
                close(parallel(x if came == Replicate() else x.chunk(size, 1)[rank]), single(x).chunk(size, 1)[rank])
            everywhere = [None] * size
            dist.all_gather_object(everywhere, chunk_choices(parallel))
            assert everywhere == [everywhere[0]] * size and len(everywhere[0][""]) == 1
        assert shared and shared[0].exchanges > 20


def test_copies_are_measured(worlds, tmp_path):
    worlds[2].run(_measured, str(tmp_path))


def _limited(rank, size, folder):
    with sharing(folder) as shared:
        os.environ["SPARSEK_DISTRIBUTED_MB"] = "0"
        try:
            _pair(rank, size, "sequence", 2, True, False, "copies")
        finally:
            del os.environ["SPARSEK_DISTRIBUTED_MB"]
        assert not shared
    assert _shared.memory_of(dist.group.WORLD, torch.device("cpu"), 1) is None


def test_limit(worlds, tmp_path):
    worlds[2].run(_limited, str(tmp_path))


def _dies(rank, size, folder):
    with sharing(folder) as shared:
        model = MLP()
        style = PairwiseSparse(up=("gate", "up"), down="down", input_layouts=Shard(0), output_layouts=Shard(0), chunks=2, direct="copies")
        parallelize_module(model, _mesh(size), style)
        with torch.no_grad():
            model(torch.randn(8, 48, dtype=torch.float64))
            dist.barrier()
            if rank == 1:
                os._exit(3)
            for memory in shared:
                memory.timeout_ms = 3000
            try:
                model(torch.randn(8, 48, dtype=torch.float64))
                model(torch.randn(8, 48, dtype=torch.float64))
            except RuntimeError:
                return "ended"
    raise AssertionError("no error")


def test_a_dead_rank_ends_the_others(tmp_path):
    world = World(2)
    try:
        assert world.run(_dies, str(tmp_path), only_living=True) == ["ended", None]
    finally:
        world.close()


# ------------------------------------------------------------------------------------------------ attention and experts


def _heads(rank, size, folder, heads, heads_of_k, each, layout):
    """each: whether every head has lists of its own."""
    rows = 16 * size
    q, k, v = torch.randn(2, heads, rows, 16), torch.randn(2, heads_of_k, rows, 16), torch.randn(2, heads_of_k, rows, 8)
    mask = sa.BlockMask.from_dense(torch.rand(*((2, heads) if each else ()), rows // 8, rows // 8) < 0.5, 8)
    mine = [x.chunk(size, 2)[rank].contiguous() for x in (q, k, v)]
    if layout == "bshd":
        mine = [x.transpose(1, 2).contiguous() for x in mine]
    with sharing(folder) as shared:
        for words in (dict(mask=mask), dict(causal=True, window=(9, 0)), dict(mask=mask)):
            got = attention_by_heads(*mine, layout=layout, copies=True, **words)
            assert got.is_contiguous()
            close(got.transpose(1, 2) if layout == "bshd" else got, sa.attention(q, k, v, **words).chunk(size, 2)[rank])
        assert shared[-1].exchanges == 4


@pytest.mark.parametrize("heads, heads_of_k, each", [(24, 24, False), (8, 4, False), (8, 8, True)])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_heads(world, heads, heads_of_k, each, layout, tmp_path):
    world.run(_heads, str(tmp_path), heads, heads_of_k, each, layout)


def _experts(rank, size, folder, gated, capacity, skewed, each):
    tokens, model, hidden, count, k = 12 * size, 8, 12, each * size, 2
    x, up, down, gate = (
        torch.randn(shape, dtype=torch.float64) for shape in ((tokens, model), (count, model, hidden), (count, hidden, model), (count, model, hidden))
    )
    weights, chosen = torch.rand(tokens, k, dtype=torch.float64), torch.rand(tokens, count).topk(k).indices
    if skewed:
        chosen[:, 0] = 1
    kept = torch.ones_like(weights)
    for first in range(0, tokens, 12) if capacity else ():  # the first pairs of each rank that go to a rank
        room = [capacity] * size
        for token in range(first, first + 12):
            for at in range(k):
                to = int(chosen[token, at]) // each
                kept[token, at] = float(room[to] > 0)
                room[to] -= 1
    want = _formula(x, chosen, weights * kept, up, down, gate if gated else None).chunk(size)[rank]
    mine = [whole.chunk(size)[rank] for whole in (x, chosen, weights, up, down)]
    words = dict(gate=gate.chunk(size)[rank] if gated else None, capacity=capacity)
    with sharing(folder) as shared:
        got = experts(*mine, **words)
        close(got, want)
        assert torch.equal(experts(*mine, **words), got)
        assert [memory.exchanges for memory in shared] == [3]


@pytest.mark.parametrize("gated, capacity, skewed, each", [(True, None, False, 2), (False, None, True, 3), (True, 7, False, 2), (False, 5, True, 4)])
def test_experts(world, gated, capacity, skewed, each, tmp_path):
    world.run(_experts, str(tmp_path), gated, capacity, skewed, each)
