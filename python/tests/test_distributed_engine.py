"""Dealt layers under the rest of PyTorch's distributed engine: FSDP2, DistributedDataParallel, torch.compile, checkpoints."""

import copy
import pathlib
import re

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from conftest import close
from test_distributed import MLP, _check_gradients, _mesh
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict, set_model_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel

import sparse_autotune as sa
from sparse_autotune.distributed import ColwiseSparse, PairwiseSparse, RowwiseSparse, stored_state


def _style(**options):
    return PairwiseSparse(up=("gate", "up"), down="down", **options)


def _steps(model, x, count=3):
    """Losses of some steps; each on the whole of x, of which a data parallel rank has its part."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        losses.append(loss.item())
    return losses


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(48, 48, dtype=torch.float64)
        self.mlp = MLP()

    def forward(self, x):
        return self.mlp(self.first(x))


def _tensor_parallel_steps(rank, size):
    """The norm of all gradients is that of the whole: parameters are DTensors."""
    single = Model()
    parallel, x = copy.deepcopy(single), torch.randn(2, 8, 48, dtype=torch.float64)
    parallelize_module(parallel, _mesh(size), {"mlp": _style(chunks=2)})
    want = _steps(single, x)
    plain = [p for p in parallel.first.parameters()]
    dealt = [p for p in parallel.mlp.parameters()]
    optimizer = torch.optim.AdamW([{"params": plain}, {"params": dealt}], 1e-2, foreach=False)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = parallel(x).square().mean()
        loss.backward()
        norms = [torch.nn.utils.get_total_norm([p.grad for p in group]) for group in (plain, dealt)]
        norms = [norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]
        scale = min(1.0, 0.05 / (torch.stack(norms).norm().item() + 1e-6))
        for p in plain + dealt:
            p.grad.mul_(scale)
        optimizer.step()
        losses.append(loss.item())
    close(torch.tensor(losses, dtype=torch.float64), torch.tensor(want, dtype=torch.float64))


def test_tensor_parallel_steps(worlds):
    worlds[2].run(_tensor_parallel_steps)


def _fully_sharded(rank, size, tensor_parallel):
    single, x = Model(), torch.randn(4, 8, 48, dtype=torch.float64)
    model = copy.deepcopy(single)
    mesh = init_device_mesh("cpu", (size // tensor_parallel, tensor_parallel), mesh_dim_names=("dp", "tp"))
    if tensor_parallel > 1:
        parallelize_module(model, mesh["tp"], {"mlp": _style(input_layouts=Shard(1), output_layouts=Shard(1), chunks=2)})
    for module in (model.mlp, model):
        fully_shard(module, mesh=mesh["dp"])
    mine = x.chunk(size // tensor_parallel)[mesh.get_local_rank("dp")].chunk(tensor_parallel, 1)[mesh.get_local_rank("tp")]
    gradient = torch.randn_like(x)
    its = gradient.chunk(size // tensor_parallel)[mesh.get_local_rank("dp")].chunk(tensor_parallel, 1)[mesh.get_local_rank("tp")]
    of_single = x.clone().requires_grad_()
    want = single(of_single)
    want.backward(gradient / (size // tensor_parallel))  # FSDP takes means
    of_model = mine.clone().requires_grad_()
    got = model(of_model)
    got.backward(its)
    close(got, want.chunk(size // tensor_parallel)[mesh.get_local_rank("dp")].chunk(tensor_parallel, 1)[mesh.get_local_rank("tp")])
    for name in ("gate", "up", "down"):
        layer, whole = model.mlp.get_submodule(name), single.mlp.get_submodule(name)
        got = layer.values.grad._local_tensor
        if tensor_parallel > 1:
            _, places, _ = layer._here("values")
            close(got[: len(places)], whole.values.grad[places])
        else:
            close(layer.values.grad.full_tensor(), whole.values.grad)
    torch.optim.AdamW(model.mlp.parameters(), 1e-2).step()


@pytest.mark.parametrize("size, tensor_parallel", [(2, 1), (4, 2), (2, 2)])
def test_fully_shard(worlds, size, tensor_parallel):
    worlds[size].run(_fully_sharded, tensor_parallel)


def _ddp(rank, size):
    single, x = Model(), torch.randn(4, 8, 48, dtype=torch.float64)
    model = copy.deepcopy(single)
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], {"mlp": _style(chunks=1)})
    wrapped = DistributedDataParallel(model, device_mesh=mesh["dp"])
    values = model.mlp.gate.values  # what DDP reduces; it is no parameter of the module while there is a graph
    mine = x.chunk(size // 2)[mesh.get_local_rank("dp")]
    want = single(x)
    (want.square().sum() / (size // 2)).backward()
    got = wrapped(mine)
    close(got, want.chunk(size // 2)[mesh.get_local_rank("dp")])
    got.square().sum().backward()
    layer = model.mlp.gate
    close(values.grad[: layer.nnzb], single.mlp.gate.values.grad[layer.blocks])
    close(model.first.weight.grad, single.first.weight.grad)


def test_ddp(worlds):
    worlds[4].run(_ddp)


def _compiled(rank, size, kind):
    single, x = MLP(), torch.randn(2, 8, 48, dtype=torch.float64)
    parallel = copy.deepcopy(single)
    plan = {"gate": ColwiseSparse(chunks=1), "up": ColwiseSparse(chunks=1), "down": RowwiseSparse(chunks=1)}
    parallelize_module(parallel, _mesh(size), _style(chunks=2) if kind == "pair" else plan)
    compiled = torch.compile(parallel, backend="aot_eager")
    want, got = single(x), compiled(x)
    close(got, want)
    want.sum().backward()
    got.sum().backward()
    _check_gradients(parallel, single)
    with torch.no_grad():
        close(compiled(x), want.detach())


@pytest.mark.parametrize("kind", ["pair", "single"])
def test_compile(worlds, kind):
    worlds[2].run(_compiled, kind)


# ------------------------------------------------------------------------------------------------ checkpoints


def _whole_model(seed):
    torch.manual_seed(20)  # the pattern
    model = Model()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


def _model(size, seed, kind):
    """The pattern is the same for all seeds."""
    model = _whole_model(seed)
    if kind == "fsdp":
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
        parallelize_module(model, mesh["tp"], {"mlp": _style(chunks=1)})
        fully_shard(model.mlp, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    elif kind == "single":
        parallelize_module(model, _mesh(size), {"mlp.gate": ColwiseSparse(), "mlp.up": ColwiseSparse(), "mlp.down": RowwiseSparse()})
    else:
        parallelize_module(model, _mesh(size), {"mlp": _style(chunks=1)})
    return model


def _save(rank, size, folder, kind):
    dcp.save({"model": get_model_state_dict(_model(size, 1, kind))}, checkpoint_id=folder)


def _load(rank, size, folder, kind):
    model = _model(size, 2, kind)
    state = get_model_state_dict(model)
    dcp.load({"model": state}, checkpoint_id=folder)
    set_model_state_dict(model, state)
    want, x = _whole_model(1), torch.randn(4, 8, 48, dtype=torch.float64)
    with torch.no_grad():
        close(model(x), want(x))


@pytest.mark.parametrize("saved", [(2, "pair"), (4, "single"), (4, "fsdp")])
def test_checkpoint(worlds, saved, tmp_path):
    """Saved by some ranks, loaded by 1, 2 and 4, dealt in another way."""
    size, kind = saved
    worlds[size].run(_save, str(tmp_path), kind)
    for loading, other in ((2, "pair"), (4, "pair"), (4, "fsdp"), (2, "single")):
        worlds[loading].run(_load, str(tmp_path), other)
    alone = _whole_model(2)
    state = alone.state_dict()
    dcp.load({"model": state}, checkpoint_id=str(tmp_path), no_dist=True)
    want = _whole_model(1)
    for name, tensor in alone.state_dict().items():
        assert torch.equal(tensor, want.state_dict()[name]), name


def _stepped(model, seed):
    """A model and its optimizer after two steps."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, foreach=False)
    torch.manual_seed(seed)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(2, 8, 48, dtype=torch.float64)).square().mean().backward()
        optimizer.step()
    return optimizer


def _save_optimizer(rank, size, folder):
    model = _model(size, 1, "pair")
    optimizer = _stepped(model, 5)
    state = stored_state(model, get_optimizer_state_dict(model, optimizer))
    dcp.save({"model": get_model_state_dict(model), "optimizer": state}, checkpoint_id=folder)


def _load_optimizer(rank, size, folder):
    single = _whole_model(1)
    of_single = _stepped(single, 5)
    model = _model(size, 2, "pair") if size > 1 else _whole_model(2)
    optimizer = _stepped(model, 6)
    of_model, state = get_model_state_dict(model), get_optimizer_state_dict(model, optimizer)
    dcp.load({"model": of_model, "optimizer": stored_state(model, state)}, checkpoint_id=folder)
    set_model_state_dict(model, of_model)
    set_optimizer_state_dict(model, optimizer, state)
    x = torch.randn(2, 8, 48, dtype=torch.float64)
    for one, of in ((single, of_single), (model, optimizer)):
        of.zero_grad()
        one(x).square().mean().backward()
        of.step()
    with torch.no_grad():
        close(model(x), single(x))


def test_checkpoint_of_an_optimizer(worlds, tmp_path):
    worlds[2].run(_save_optimizer, str(tmp_path))
    for size in (2, 4):
        worlds[size].run(_load_optimizer, str(tmp_path))


def _load_whole(rank, size):
    """A state dict of the whole layer, as torch.load gives it; and what does not fit."""
    model, want = _model(size, 2, "pair"), _whole_model(1)
    assert not model.load_state_dict(want.state_dict()).missing_keys
    x = torch.randn(4, 8, 48, dtype=torch.float64)
    close(model(x), want(x))
    other = want.state_dict()
    other["mlp.gate.col_indices"] = other["mlp.gate.col_indices"].flip(0)
    with pytest.raises(RuntimeError, match="gate.col_indices: is of another pattern"):
        model.load_state_dict(other)
    del other["mlp.gate.col_indices"]
    with pytest.raises(RuntimeError, match="Missing key.*mlp.gate.col_indices"):
        model.load_state_dict(other)
    dist.barrier()


def test_load_whole(worlds):
    worlds[2].run(_load_whole)


def _refusals(rank, size):
    mesh = _mesh(size)
    with pytest.raises(TypeError, match="module: must be an sa.SparseLinear, not Linear"):
        parallelize_module(nn.Linear(4, 4), mesh, ColwiseSparse())
    with pytest.raises(ValueError, match="module: has 10 outputs, which must be a multiple of the block's 4"):
        parallelize_module(sa.SparseLinear(8, 10, 4, 1.0), mesh, ColwiseSparse())
    with pytest.raises(ValueError, match=r"output_layouts: must be S.* or Replicate\(\)"):
        parallelize_module(MLP(), mesh, _style(input_layouts=Shard(1), output_layouts=Shard(0)))
    with pytest.raises(ValueError, match=r"input_layouts: must be Replicate\(\) or Shard\(the dimension of the tokens\)"):
        parallelize_module(sa.SparseLinear(8, 8, 4, 1.0), mesh, ColwiseSparse(input_layouts=Shard(-1)))
    with pytest.raises(ValueError, match="chunks: must be a whole number from 1"):
        ColwiseSparse(chunks=0)
    with pytest.raises(ValueError, match="direct: goes with a number of chunks"):
        _style(direct=True)
    with pytest.raises(ValueError, match="chunks: must be 1 with direct='weights', which cuts no tokens; is 2"):
        _style(chunks=2, direct="weights")
    with pytest.raises(ValueError, match="direct: wants output_layouts Shard"):
        parallelize_module(MLP(), mesh, _style(chunks=1, direct=True))
    with pytest.raises(ValueError, match="up: makes 80 features in blocks of 16, down takes 80 in blocks of 8"):
        model = MLP()
        model.up = sa.SparseLinear(48, 80, 16, 1.0)
        parallelize_module(model, mesh, _style())
    layer = sa.SparseLinear(8, 8, 4, 1.0)
    parallelize_module(layer, mesh, RowwiseSparse(input_layouts=None, output_layouts=Shard(0)))
    with pytest.raises(ValueError, match="module: is dealt over ranks already"):
        parallelize_module(layer, mesh, ColwiseSparse())
    with pytest.raises(ValueError, match=rf"input: has 5 entries in dimension 0, which {size} ranks cannot share equally"):
        layer(torch.randn(5, 8).chunk(size, 1)[rank])

    with pytest.raises(ValueError, match="layer: its values are over several ranks"):
        sa.to_dense(nn.ModuleDict({"it": layer}))
    with pytest.raises(ValueError, match="model: 'it': its values are over several ranks"):
        sa.BlockPruner(nn.ModuleDict({"it": layer}), None, 0.1, end=1)

    class Residual(MLP):
        def forward(self, x):
            return x + super().forward(x)

    model = Residual()
    parallelize_module(model, mesh, _style(chunks=1))
    with pytest.raises(ValueError, match="Residual: its result must be what 'down' gives"):
        model(torch.randn(4, 48, dtype=torch.float64))


def test_refusals(worlds):
    worlds[2].run(_refusals)


def _page(rank, size, page):
    (snippet,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        begun = []
        patch.setattr(torch.distributed, "init_process_group", begun.append)  # the ranks have theirs
        exec(snippet, names)
    assert begun == ["gloo"]
    assert names["y"].shape == (2, 32, 64)


def test_page(worlds):
    """The code of docs/distributed.md runs."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "distributed.md"
    if not page.exists():
        pytest.skip("needs the repository")
    worlds[2].run(_page, page.read_text())
