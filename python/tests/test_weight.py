"""sa.SparseWeight: tensors with block-sparse storage in models that know nothing of them."""

import copy
import io
import pickle

import pytest
import torch
from conftest import close, random_bsr
from torch import nn

import sparse_autotune as sa


def weight_of(rows, cols, block, **kwargs):
    return sa.SparseWeight(random_bsr(rows, cols, block, **kwargs))


def parameter(weight):
    return nn.Parameter(weight, requires_grad=False)


def test_products(dtype, device):
    weight = weight_of(40, 56, (8, 16), dtype=dtype, device=device)
    dense = weight.to_dense()
    assert type(dense) is torch.Tensor and dense.shape == weight.shape == (40, 56) and weight.dtype is dtype
    x, bias = torch.randn(2, 5, 56, device=device).to(dtype), torch.randn(40, device=device).to(dtype)
    wide, d = x.double(), dense.double()
    close(nn.functional.linear(x, weight), wide @ d.mT)
    close(nn.functional.linear(x[0, 0], weight, bias), wide[0, 0] @ d.mT + bias.double())
    close(nn.functional.linear(x, weight, bias), wide @ d.mT + bias.double())
    for turned in (weight.t(), weight.T, weight.mT, weight.transpose(0, 1), weight.transpose(-1, -2), weight.permute(1, 0)):
        assert isinstance(turned, sa.SparseWeight) and turned.shape == (56, 40)
        close(x @ turned, wide @ d.mT)
    close(weight.t().t() @ x.mT, d @ wide.mT)
    close(weight @ x[0, 0], d @ wide[0, 0])
    close(x[:, 0, :40] @ weight, wide[:, 0, :40] @ d)
    close(torch.addmm(bias, x[0], weight.t()), wide[0] @ d.mT + bias.double())
    close(torch.addmm(x[0, :, :40], x[1], weight.t(), beta=2, alpha=3), 2 * wide[0, :, :40] + 3 * (wide[1] @ d.mT))
    close(torch.mm(x[0], weight.t(), out=torch.empty(5, 40, device=device, dtype=dtype)), wide[0] @ d.mT)
    close(sa.matmul(x, weight.t()), wide @ d.mT)
    assert sa.inspect(weight).nnzb == weight.bsr.nnzb


def test_a_transformer_takes_it(device):
    """Attention and feed-forward layers of torch.nn, their fast paths among them, run on sparse weights."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, device=device)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(3, 7, 64, device=device)
    sparse = sa.sparsify_weights(copy.deepcopy(model), 0.5, 16)
    assert isinstance(sparse.layers[0].linear1.weight, sa.SparseWeight) and sparse.layers[0].linear1.weight.bsr.density == 0.5
    assert isinstance(sparse.layers[1].self_attn.out_proj.weight, nn.Parameter)
    dense = sa.to_dense(copy.deepcopy(sparse))
    assert not any(isinstance(p, sa.SparseWeight) for p in dense.parameters())
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            close(sparse(x), dense(x), magnitude=100)  # attention of both may be computed in other ways
    with torch.no_grad():
        assert (sparse(x) - model(x)).abs().max() > 0.01
        close(sa.sparsify_weights(copy.deepcopy(dense), None, 16)(x), dense(x), magnitude=100)
        assert sa.sparsify_weights(dense, None, 16).layers[0].linear1.weight.bsr.density == 0.5


def test_gradients_of_what_is_dense():
    model = sa.sparsify_weights(nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 16)).double(), 0.5, 16)
    dense = sa.to_dense(copy.deepcopy(model))
    x = torch.randn(5, 32, dtype=torch.float64, requires_grad=True)
    got, want = (torch.autograd.grad(m(x).square().sum(), [x, m[0].bias]) for m in (model, dense))
    for ours, theirs in zip(got, want, strict=True):
        close(ours, theirs)
    model.requires_grad_(True)
    with pytest.raises(RuntimeError, match="weight: sa.SparseWeight gets no gradient"):
        model(x)
    with torch.no_grad():
        close(model(x), dense(x))


@pytest.mark.parametrize("graded", [False, True])
def test_compiled(graded, device):
    model = sa.sparsify_weights(nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 16)).to(device), 0.5, 16)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for tokens in (3, 5, 8):
        x = torch.randn(tokens, 32, device=device, requires_grad=graded)
        y = compiled(x)
        close(y, model(x))
        if graded:
            close(torch.autograd.grad(y.sum(), x)[0], torch.autograd.grad(model(x).sum(), x)[0])
    turned = torch.compile(lambda w, x: w.t().detach() @ x, backend="aot_eager", fullgraph=True)
    weight = model[0].weight
    close(turned(weight, torch.eye(48, device=device)), weight.to_dense().mT)


def test_moved_and_copied(device):
    layer = nn.Linear(32, 48, device=device)
    layer.weight = parameter(weight_of(48, 32, 16, device=device))
    x = torch.randn(5, 32, device=device)
    want = layer(x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer).to("cpu").to(device), layer.to(device)):
        assert isinstance(other.weight, sa.SparseWeight) and isinstance(other.weight, nn.Parameter) and not other.weight.requires_grad
        close(other(x), want)
    assert copy.deepcopy(layer).weight.bsr_values.data_ptr() != layer.weight.bsr_values.data_ptr()
    half = copy.deepcopy(layer).to(torch.bfloat16)
    assert half.weight.dtype is torch.bfloat16 and half.weight.bsr_col_indices.dtype is torch.int32
    close(half(x.bfloat16()), want)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16
    assert layer.to("meta").weight.device.type == "meta"


def test_shared():
    """torch.multiprocessing's way: the memory is shared, not copied."""
    from multiprocessing.reduction import ForkingPickler

    model = sa.sparsify_weights(nn.Sequential(nn.Linear(32, 48)), 0.5, 16)
    assert not model[0].weight.is_shared()
    model.share_memory()
    assert model[0].weight.is_shared() and model[0].weight.bsr_col_indices.is_shared()
    other = pickle.loads(ForkingPickler.dumps(model[0].weight))
    model[0].weight.bsr_values.mul_(2)
    assert torch.equal(other.to_dense(), model[0].weight.to_dense())


def test_exported(tmp_path):
    model = sa.sparsify_weights(nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 16)), 0.5, 16).eval()
    x = torch.randn(5, 32)
    with torch.no_grad():
        program = torch.export.export(model, (x,))
        torch.export.save(program, tmp_path / "model.pt2")
        close(torch.export.load(tmp_path / "model.pt2").module()(x), model(x))


def test_saved():
    layer, x = nn.Linear(32, 48), torch.randn(5, 32)
    layer.weight = parameter(weight_of(48, 32, 16))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    same = copy.deepcopy(layer)
    same.weight.bsr_values.zero_()
    same.load_state_dict(state)
    close(same(x), layer(x))
    fresh = nn.Linear(32, 48).requires_grad_(False)
    with pytest.raises(RuntimeError, match="copy_: between"):
        fresh.load_state_dict(state)
    other = copy.deepcopy(layer)
    other.weight = parameter(weight_of(48, 32, 16, density=0))
    with pytest.raises(RuntimeError, match="assign=True"):
        other.load_state_dict(state)
    fresh.load_state_dict(state, assign=True)
    close(fresh(x), layer(x))


def test_what_it_cannot_do_says_so():
    weight = weight_of(32, 32, 16)
    for call in (lambda: weight + 1, lambda: weight[0], lambda: weight.sum(), lambda: torch.cat([weight, weight]), lambda: weight.mul_(2)):
        with pytest.raises(NotImplementedError, match=r"is not there for sa.SparseWeight; its to_dense\(\)"):
            call()
    with pytest.raises(NotImplementedError, match="two sa.SparseWeight"):
        weight @ weight
    with pytest.raises(NotImplementedError, match="only its weight"):
        nn.functional.linear(weight, torch.randn(4, 32))
    with pytest.raises(RuntimeError, match="B: its shape"):
        weight @ torch.randn(31, 3)
    with pytest.raises(NotImplementedError, match="out: "):
        torch.mm(torch.randn(32, 32), torch.randn(32, 32), out=weight)
    with pytest.raises(NotImplementedError, match="DLPack"):
        torch.from_dlpack(weight)
    with pytest.raises(NotImplementedError, match="data: "):
        weight.data = torch.randn(32, 32)
    with pytest.raises(ValueError, match="matrix"):
        sa.SparseWeight(random_bsr(32, 32, 16, batch=(2,)))
    tied = nn.Sequential(nn.Embedding(48, 32), nn.Linear(32, 48))
    tied[1].weight = tied[0].weight
    with pytest.raises(ValueError, match="model: '0' uses a weight"):
        sa.sparsify_weights(tied, 0.5, 16)
    with pytest.raises(ValueError, match="model: no"):
        sa.sparsify_weights(nn.ReLU())


def test_tied_layers_stay_tied():
    model = nn.Sequential(nn.Linear(32, 32), nn.Linear(32, 32))
    model[1].weight = model[0].weight
    sa.sparsify_weights(model, 0.5, 16)
    assert model[0].weight is model[1].weight and isinstance(model[0].weight, sa.SparseWeight)
    sa.to_dense(model)
    assert model[0].weight is model[1].weight and type(model[0].weight) is nn.Parameter


def test_addmm_without_its_first_operand():
    weight, x = weight_of(32, 24, 8), torch.randn(5, 32)
    nothing = torch.full((24,), float("nan"))
    want = 3 * (x @ weight.to_dense())
    close(torch.addmm(nothing, x, weight, beta=0, alpha=3), want)
    close(torch.addmm(nothing, x, weight, beta=0, alpha=3, out=torch.empty(5, 24)), want)
    for wrong in (torch.randn(23), torch.randn(3, 5, 24)):
        for beta in (0, 2):
            with pytest.raises(RuntimeError):
                torch.addmm(wrong, x, weight, beta=beta)


def test_refused_as_pytorch_does():
    weight = weight_of(32, 32, 8)
    dense, vector, batch = weight.to_dense(), torch.randn(32), torch.randn(2, 3, 32)
    for call in (
        lambda w: torch.mm(batch, w),
        lambda w: torch.mm(vector, w),
        lambda w: w.mm(batch.mT),
        lambda w: w.mm(vector),
        lambda w: torch.mv(w, dense),
        lambda w: torch.mv(vector, w),
        lambda w: torch.addmm(vector, batch, w),
        lambda w: torch.addmm(vector, w, vector),
        lambda w: w.permute(1, 1),
        lambda w: w.permute(0),
        lambda w: w.permute(0, 1, 1),
        lambda w: w.permute(0, 5),
        lambda w: w.transpose(0, 5),
        lambda w: w.transpose(-3, 0),
    ):
        with pytest.raises((RuntimeError, IndexError)) as theirs:
            call(dense)
        with pytest.raises(theirs.type):
            call(weight)
    close(weight.permute(-1, 0) @ vector, dense.mT @ vector)
    close(weight.transpose(1, -1) @ vector, dense @ vector)
