"""Files, other libraries, and what of PyTorch goes round a layer: safetensors, DLPack, DDP, export, deterministic algorithms, scaled gradients, inductor."""

import copy
import io
import json
import pickle
import subprocess
import sys

import pytest
import torch
from conftest import close, random_bsr, sparsek, without_a_gpu
from torch import nn

import sparse_autotune as sa


def test_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = nn.Sequential(sa.SparseLinear(32, 48, 8, 0.5), nn.ReLU(), sa.SparseLinear(48, 8, (8, 16), 0.5, bias=False)).bfloat16()
    x, file = torch.randn(3, 32).bfloat16(), tmp_path / "model.safetensors"
    safetensors.save_model(model, file)
    state = safetensors.load_file(file)
    assert set(state) == set(model.state_dict()) and state["0.col_indices"].dtype is torch.int32
    other = nn.Sequential(sa.SparseLinear(32, 48, 8, 0.25), nn.ReLU(), sa.SparseLinear(48, 8, (8, 16), 1.0, bias=False)).bfloat16()
    other.load_state_dict(state)
    assert torch.equal(other(x), model(x)) and other[0].density == model[0].density
    empty = nn.Sequential(sa.SparseLinear(32, 48, 8, 0.25), nn.ReLU(), sa.SparseLinear(48, 8, (8, 16), 0.25, bias=False)).bfloat16()
    safetensors.load_model(empty, file)
    assert torch.equal(empty(x), model(x))


def test_layers_of_one_pattern_are_saved_and_loaded_apart(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    pattern = random_bsr(32, 32, 8)
    model = nn.Sequential(sa.SparseLinear(32, 32, pattern=pattern), sa.SparseLinear(32, 32, pattern=pattern))
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")  # refuses tensors that share memory
    before = model[1].weight.to_dense().detach()
    model[0].load_state_dict(sa.SparseLinear(32, 32, 8, pattern=1 - torch.eye(4)).state_dict())
    assert model[0].nnzb == 12
    close(model[1].weight.to_dense(), before)


def test_a_state_with_wrong_indices_is_found():
    layer = sa.SparseLinear(32, 32, 8, 0.5)
    state = copy.deepcopy(layer.state_dict())
    state["col_indices"][0] = 4
    with pytest.raises(RuntimeError, match="col_indices"):
        layer.load_state_dict(state)
    layer.col_indices[0] = 4
    with pytest.raises(RuntimeError, match="col_indices"):
        layer(torch.randn(2, 32))


def test_matrices_in_files():
    a = random_bsr(24, 16, 8)
    file = io.BytesIO()
    torch.save({"a": a}, file)
    file.seek(0)
    for other in (torch.load(file, weights_only=True)["a"], pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
        assert other.shape == a.shape and torch.equal(other.to_dense(), a.to_dense())


def test_files_of_the_command_line(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    made, ours, back = tmp_path / "made.safetensors", tmp_path / "ours.safetensors", tmp_path / "back.npy"
    done = sparsek("gen", "uniform", "--rows", 50, "--cols", 70, "--block", "8x16", "--density", 0.5, "--seed", 3, "-o", made)
    assert done.returncode == 0, done.stderr
    a = sa.BSR.load(made)
    assert (a.shape, a.block, a.nnzb) == ((50, 70), (8, 16), 18) and a.dtype is torch.float32
    close(a @ torch.eye(70), a.to_dense())
    a.T.save(ours, "turned")  # edge blocks, values by columns
    assert sparsek("convert", ours, back, "--to", "dense").returncode == 0
    import numpy

    assert torch.equal(torch.from_numpy(numpy.load(back)), a.to_dense().mT)
    note = dict(rows=50, cols=70, block_rows=8, block_cols=16, block_layout="col")
    parts = {"a.row_offsets": a.row_offsets, "a.col_indices": a.col_indices, "a.values": a.values.mT.contiguous()}
    safetensors.save_file(parts, ours, metadata={"sparsek.bsr.a": json.dumps(note)})
    by_columns = sa.BSR.load(ours)
    assert torch.equal(by_columns.to_dense(), a.to_dense()) and not by_columns.values.is_contiguous()
    wrong = sparsek("inspect", tmp_path / "nowhere.safetensors")
    assert wrong.returncode == 3 and "nowhere" in wrong.stderr


def test_weights_in_a_model_s_file(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = nn.Sequential(nn.Identity(), sa.SparseLinear(40, 24, 16, 0.5))
    file = tmp_path / "model.safetensors"
    safetensors.save_model(model, file)
    weight = sa.BSR.load(file, "1", shape=(24, 40))
    assert torch.equal(weight.to_dense(), model[1].weight.to_dense())
    for arguments, message in (((), "name: must say"), (("1",), "shape: must be given"), (("2",), "name: .* has no 2.row_offsets")):
        with pytest.raises(ValueError, match=message):
            sa.BSR.load(file, *arguments)
    with pytest.raises(ValueError, match="values"):
        random_bsr(8, 8, 4, batch=(2,)).save(file)


def test_dlpack():
    import numpy

    a, b = random_bsr(24, 16, (8, 4)), torch.randn(16, 5)
    arrays = [numpy.from_dlpack(t) for t in (a.row_offsets, a.col_indices, a.values)]
    assert arrays[2].ctypes.data == a.values.data_ptr()
    own = [array.copy() for array in arrays]
    back = sa.BSR.from_dlpack(*own, a.shape)
    assert back.values.data_ptr() == own[2].ctypes.data
    close(back @ torch.from_dlpack(b.numpy()), a.to_dense() @ b)
    own[2] *= 2
    close(back @ b, 2 * (a.to_dense() @ b))
    layer = sa.SparseLinear(16, 24, pattern=a)
    assert numpy.from_dlpack(layer.values.detach()).ctypes.data == layer.values.data_ptr()


DDP = """
import sys, torch, torch.distributed as dist
import sparse_autotune as sa
from torch import nn

rank, broadcast = int(sys.argv[1]), sys.argv[3] == "True"
torch.set_num_threads(1)
sa.set_options(store="", effort="estimate")
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)

def data(step):
    return torch.randn(8, 32, generator=torch.Generator().manual_seed(step), dtype=torch.float64)

def train(model, pruner, optimizer, part, wrap):
    outer, density = wrap(model), []
    for step in range(6):
        optimizer.zero_grad()
        outer(data(step)[part]).square().mean().backward()
        optimizer.step()
        if pruner.step():
            outer = wrap(model)
        density.append(pruner.density)
    assert density[-1] == 0.25 and len(set(density)) == 3, density
    return {name: p.detach().clone() for name, p in model.named_parameters()} | {name: p.grad.clone() for name, p in model.named_parameters()}

def make():
    torch.manual_seed(7)
    model = nn.Sequential(sa.SparseLinear(32, 48, 8, 0.5), nn.Tanh(), nn.Linear(48, 8)).double()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return model, sa.BlockPruner(model, optimizer, 0.25, end=4, every=2), optimizer

parallel = lambda model: nn.parallel.DistributedDataParallel(model, broadcast_buffers=broadcast)
got = train(*make(), slice(4 * rank, 4 * rank + 4), parallel)
want = train(*make(), slice(None), lambda model: model)
for name in want:
    torch.testing.assert_close(got[name], want[name], rtol=1e-12, atol=1e-12)
dist.destroy_process_group()
"""


@without_a_gpu
@pytest.mark.parametrize("broadcast", [False, True])
def test_ddp(tmp_path, broadcast):
    """Two processes with half of the batch each, pruned on the way, go where one with the whole batch goes."""
    workers = [subprocess.Popen([sys.executable, "-c", DDP, str(rank), str(tmp_path / "meeting"), str(broadcast)]) for rank in range(2)]
    try:
        assert [worker.wait(timeout=600) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()


def test_exported_program_in_a_file(tmp_path):
    layer = nn.Sequential(sa.SparseLinear(32, 24, 8, 0.5, activation="relu"), sa.SparseLinear(24, 8, 8, 0.5)).eval()
    tokens = torch.export.Dim("tokens", min=2, max=64)
    with torch.no_grad():
        program = torch.export.export(layer, (torch.randn(5, 32),), dynamic_shapes=({0: tokens},))
        torch.export.save(program, tmp_path / "layer.pt2")
        loaded = torch.export.load(tmp_path / "layer.pt2").module()
        x = torch.randn(11, 32)
        close(loaded(x), layer(x))


def test_deterministic_algorithms(dtype, device):
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        model = nn.Sequential(sa.SparseLinear(96, 64, 16, 0.5), sa.SparseLinear(64, 32, (8, 16), 0.5)).to(device, dtype)
        x = torch.randn(40, 96, device=device).to(dtype)
        seen = []
        for _ in range(3):
            model.zero_grad()
            y = model(x)
            y.float().square().sum().backward()
            sa.BlockPruner(copy.deepcopy(model), None, 0.25, end=1).step()
            seen.append([y.detach(), *(p.grad for p in model.parameters()), model[0].weight.T.to_dense()])
        for other in seen[1:]:
            assert all(torch.equal(a, b) for a, b in zip(seen[0], other, strict=True))
    finally:
        torch.use_deterministic_algorithms(before)


def test_scaled_gradients(device):
    """autocast with GradScaler: steps as without, an overflow is skipped."""
    layer = sa.SparseLinear(32, 24, 8, 0.5, device=device)
    plain = copy.deepcopy(layer)
    scaler = torch.amp.GradScaler(device, init_scale=256.0)
    optimizer, other = torch.optim.SGD(layer.parameters(), 0.1), torch.optim.SGD(plain.parameters(), 0.1)
    x = torch.randn(6, 32, device=device)
    for module in (layer, plain):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = module(x).float().square().mean()
        if module is plain:
            loss.backward()
            other.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    close(layer.values, plain.values)
    kept = layer.values.detach().clone()
    layer.values.grad.fill_(float("inf"))
    scaler.scale(layer(x).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(layer.values, kept) and scaler.get_scale() == 128.0


@without_a_gpu
def test_inductor():
    """The one compilation with code generated: forward, backward and an activation after the product."""
    layer = sa.SparseLinear(32, 24, 8, 0.5, activation="gelu")
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, dynamic=True)
    for tokens in (3, 5):
        x = torch.randn(2, tokens, 32)
        layer.zero_grad(), compiled.zero_grad()
        layer(x).square().sum().backward()
        compiled(x).square().sum().backward()
        for ours, theirs in zip(layer.parameters(), compiled.parameters(), strict=True):
            close(theirs.grad, ours.grad)
