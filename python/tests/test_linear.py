"""sa.SparseLinear and what puts it into models."""

import copy
import functools
import io
import pickle

import pytest
import torch
from conftest import close, sparsek
from torch import nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import sparse_autotune as sa


def dense_of(layer, x):
    y = nn.functional.linear(x.double(), layer.weight.to_dense().double(), None if layer.bias is None else layer.bias.double())
    return {None: lambda t: t, "relu": torch.relu, "silu": nn.functional.silu, "gelu": nn.functional.gelu}[layer.activation](y)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", [None, "gelu"])
def test_forward(bias, activation, dtype, device):
    layer = sa.SparseLinear(100, 60, (8, 16), 0.4, bias, activation=activation, dtype=dtype, device=device)
    for lead in ((), (5,), (2, 5), (2, 3, 4), (0,)):
        x = torch.randn(*lead, 100, device=device).to(dtype)
        with torch.no_grad():
            close(layer(x), dense_of(layer, x))
        close(layer(x), dense_of(layer, x))
    close(layer.eval().to_dense()(x), nn.functional.linear(x, layer.weight.to_dense(), layer.bias))


def test_training_follows_dense():
    """A few steps of the layer and of a dense one with the gradient masked."""
    layer = sa.SparseLinear(48, 32, 16, 0.5, activation="relu", dtype=torch.float64)
    dense = layer.to_dense()
    mask = layer.weight.with_values(torch.ones_like(layer.values)).to_dense()
    ours, theirs = torch.optim.Adam(layer.parameters(), 1e-2), torch.optim.Adam(dense.parameters(), 1e-2)
    for _ in range(5):
        x = torch.randn(7, 48, dtype=torch.float64)
        ours.zero_grad(), theirs.zero_grad()
        layer(x).square().sum().backward()
        torch.relu(dense(x)).square().sum().backward()
        dense.weight.grad *= mask
        ours.step(), theirs.step()
    close(layer.weight.to_dense(), dense.weight)
    close(layer.bias, dense.bias)


def test_from_linear_keeps_the_largest_blocks():
    linear = nn.Linear(32, 24)
    layer = sa.SparseLinear.from_linear(linear, 8, 0.25)
    assert layer.nnzb == 3
    norms = linear.weight.detach().view(3, 8, 4, 8).square().sum((1, 3)).sqrt().flatten()
    kept = layer.weight.block_rows_of() * 4 + layer.col_indices
    assert sorted(kept.tolist()) == sorted(norms.topk(3).indices.tolist())
    close(sa.SparseLinear.from_linear(linear, 8, 1.0)(torch.eye(32)), linear(torch.eye(32)))
    assert sa.SparseLinear.from_linear(linear, 8, 0.0).nnzb == 0


@pytest.mark.parametrize("by", ["l1", "l2", "max"])
@pytest.mark.parametrize("magnitude", [1e25, 1e-25, 1e200, 1e-200, 1e308, 1e-307])
def test_no_norm_overflows(magnitude, by):
    """Magnitudes whose squares (or sums) their dtype does not hold: blocks had norms of infinity or zero, and the first of them were kept."""
    dtype = torch.float32 if 1e-30 < magnitude < 1e30 else torch.float64
    dense = torch.full((16, 16), magnitude, dtype=dtype)
    dense[8:12, 4:8] *= 1.5
    dense[12:, 12:] *= 1.25
    linear = nn.Linear(16, 16, dtype=dtype)
    linear.weight.data.copy_(dense)
    made = sa.BSR.from_dense(dense, 4, density=2 / 16, by=by)
    layer = sa.SparseLinear.from_linear(linear, 4, 2 / 16, by)
    for a in (made, layer.weight, sa.SparseWeight.from_dense(dense, 4, density=2 / 16, by=by).bsr):
        assert (a.row_offsets.tolist(), a.col_indices.tolist()) == ([0, 0, 0, 1, 2], [1, 3])
    whole = sa.SparseLinear.from_linear(linear, 4, 1.0, by)
    assert sa.BlockPruner(whole, None, 2 / 16, end=1, by=by).step()
    assert (whole.row_offsets.tolist(), whole.col_indices.tolist()) == ([0, 0, 0, 1, 2], [1, 3])


@pytest.mark.parametrize("by", ["l1", "l2", "max"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_not_finite_has_no_norm(value, dtype, by):
    """Its block came first, or last, without a word. What is stored as it is may hold anything."""
    linear = nn.Linear(12, 10, dtype=dtype)
    linear.weight.data[3, 7] = linear.weight.data[9, 0] = float(value)
    said = rf"the element at \[3, 7\] is {value}, .*nan_to_num"
    for make, name in (
        (lambda: sa.BSR.from_dense(linear.weight, 4, density=0.5, by=by), "dense"),
        (lambda: sa.SparseWeight.from_dense(linear.weight, 4, density=0.5, by=by), "dense"),
        (lambda: sa.SparseLinear.from_linear(linear, 4, 0.5, by), "linear.weight"),
    ):
        with pytest.raises(ValueError, match=rf"^{name}: {said}"):
            make()
    torch.testing.assert_close(sa.BSR.from_dense(linear.weight, 4).to_dense(), linear.weight, equal_nan=True)
    model = nn.Sequential(nn.Linear(12, 12, dtype=dtype), linear)
    for change in (sa.to_block_sparse, sa.sparsify_weights):
        with pytest.raises(ValueError, match=rf"^model: the weight of '1': {said}"):
            change(model, 0.5, 4, by=by)
        assert all(type(layer) is nn.Linear and type(layer.weight) is nn.Parameter for layer in model)


@pytest.mark.parametrize("by", ["l1", "l2", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_command_line_keeps_the_same_blocks(tmp_path, dtype, by):
    """Also where norms are nearly equal, of blocks with the same values in another order, or equal."""
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("safetensors")
    block = torch.randn(5, 3, dtype=dtype)
    blocks = torch.stack([block.flatten()[torch.randperm(15)].view(5, 3) if i % 3 else block for i in range(120)])
    dense = blocks.view(10, 12, 5, 3).transpose(1, 2).reshape(50, 36)[:48, :35].contiguous()
    numpy.save(tmp_path / "dense.npy", dense.numpy())
    done = sparsek("convert", tmp_path / "dense.npy", tmp_path / "pruned.safetensors", "--block", "5x3", "--prune", "0.4", "--by", by)
    assert done.returncode == 0, done.stderr
    theirs, ours = sa.BSR.load(tmp_path / "pruned.safetensors"), sa.BSR.from_dense(dense, (5, 3), density=0.4, by=by)
    assert torch.equal(ours.row_offsets, theirs.row_offsets.int()) and torch.equal(ours.col_indices, theirs.col_indices.int())
    assert torch.equal(ours.values, theirs.values)


def test_norms_are_computed_in_parts(monkeypatch):
    dense = torch.randn(40, 24)
    whole = sa._bsr.block_norms(dense, (4, 8))
    monkeypatch.setattr(sa._bsr, "_ENTRIES_AT_ONCE", 200)
    assert torch.equal(sa._bsr.block_norms(dense, (4, 8)), whole) and whole.shape == (10, 3)
    assert sa._bsr.block_norms(torch.empty(0, 24), 8).shape == (0, 3) and sa._bsr.block_norms(torch.empty(24, 0), 8).shape == (3, 0)


def test_initialisation_leaves_the_overhang_zero():
    layer = sa.SparseLinear(21, 19, 8, 1.0)
    x = torch.zeros(3, 3, 8, 8)
    x[layer.weight.block_rows_of(), layer.col_indices.long()] = layer.values.detach()
    full = x.transpose(1, 2).reshape(24, 24)
    assert not full[19:].any() and not full[:, 21:].any() and full[:19, :21].all()


@pytest.mark.parametrize(
    "arguments,message",
    [
        (dict(block=0, density=0.5), "block"),
        (dict(density=1.5), "density"),
        (dict(), "density"),
        (dict(density=0.5, activation="tan"), "activation"),
        (dict(block=8, pattern=torch.ones(3, 3)), "pattern"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        sa.SparseLinear(32, 32, **arguments)


def test_saving():
    torch.manual_seed(1)
    layer, x = sa.SparseLinear(32, 24, 8, 0.5, activation="silu"), torch.randn(5, 32)
    want = layer(x)
    close(copy.deepcopy(layer)(x), want)
    close(pickle.loads(pickle.dumps(layer))(x), want)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)
    other = sa.SparseLinear(32, 24, 8, 0.25, activation="silu")
    other(x)  # its old pattern is known
    other.load_state_dict(state)
    close(other(x), want)
    same_count = sa.SparseLinear(32, 24, 8, 0.5, activation="silu")
    same_count(x)
    same_count.load_state_dict(state)
    close(same_count(x), want)


def test_models():
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Sequential(nn.Linear(128, 64)), nn.Linear(64, 3))
    x = torch.randn(7, 64)
    full = sa.to_block_sparse(copy.deepcopy(model), 1.0, 16)
    assert isinstance(full[0], sa.SparseLinear) and isinstance(full[2][0], sa.SparseLinear) and type(full[3]) is nn.Linear
    close(full(x), model(x))
    close(sa.to_dense(full)(x), model(x))
    assert type(full[0]) is nn.Linear
    some = sa.to_block_sparse(copy.deepcopy(model), 0.5, 16, lambda name, layer: name == "2.0")
    assert type(some[0]) is nn.Linear and isinstance(some[2][0], sa.SparseLinear)
    assert isinstance(sa.to_block_sparse(nn.Linear(32, 32), 0.5, 16), sa.SparseLinear)
    with pytest.raises(ValueError, match="model"):
        sa.to_block_sparse(nn.ReLU(), 0.5)


def test_tied_layers_stay_tied():
    shared = nn.Linear(32, 32)
    model = sa.to_block_sparse(nn.Sequential(shared, nn.ReLU(), shared), 0.5, 16)
    assert model[0] is model[2]


def test_half_and_autocast():
    layer = sa.SparseLinear(32, 24, 8, 0.5)
    x = torch.randn(5, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype is torch.bfloat16
    y.float().sum().backward()
    assert layer.values.grad.dtype is torch.float32
    half = copy.deepcopy(layer).bfloat16()
    assert half.col_indices.dtype is torch.int32
    close(half(x.bfloat16()), dense_of(half, x.bfloat16()))


def test_compiled_training_step():
    layer = sa.SparseLinear(32, 24, 8, 0.5, activation="gelu")
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")
    for tokens in (3, 5, 9):
        x = torch.randn(2, tokens, 32)
        layer.zero_grad(), compiled.zero_grad()
        layer(x).square().sum().backward()
        compiled(x).square().sum().backward()
        for ours, theirs in zip(layer.parameters(), compiled.parameters(), strict=True):
            close(theirs.grad, ours.grad)
    with torch.no_grad():
        close(compiled(x), layer(x))


def test_export():
    layer = sa.SparseLinear(32, 24, 8, 0.5).eval()
    tokens = torch.export.Dim("tokens", min=2, max=64)
    with torch.no_grad():
        program = torch.export.export(layer, (torch.randn(5, 32),), dynamic_shapes=({0: tokens},))
        x = torch.randn(11, 32)
        close(program.module()(x), layer(x))


def test_functional_call():
    layer, x = sa.SparseLinear(32, 24, 8, 0.5, dtype=torch.float64), torch.randn(5, 32, dtype=torch.float64)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    got = torch.func.grad(lambda p: torch.func.functional_call(layer, p, (x,)).square().sum())(parameters)
    layer(x).square().sum().backward()
    close(got["values"], layer.values.grad)
    close(got["bias"], layer.bias.grad)


@pytest.mark.filterwarnings("ignore")
def test_transformer_layers_in_eval():
    """PyTorch's fused path, which takes tensors alone, is left to dense weights."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    sa.to_block_sparse(model, 0.5, 16)
    x = torch.randn(2, 3, 64)
    with torch.no_grad():
        close(model(x), sa.to_dense(copy.deepcopy(model)).train(False)(x))


def test_what_is_frozen_stays_frozen():
    linear = nn.Linear(32, 32)
    linear.bias.requires_grad_(False)
    layer = sa.SparseLinear.from_linear(linear, 8, 0.5)
    assert layer.values.requires_grad and not layer.bias.requires_grad
    model = nn.Sequential(nn.Linear(32, 32)).requires_grad_(False)
    for change in (lambda m: sa.to_block_sparse(m, 0.5, 8), sa.to_dense):
        assert not any(p.requires_grad for p in change(model).parameters())


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    model[2].weight, model[2].bias = model[0].weight, model[0].bias
    bias, x = model[0].bias, torch.randn(5, 32)
    sa.to_block_sparse(model, 0.5, 8)
    assert model[0].values is model[2].values and model[0].bias is model[2].bias is bias
    want = model(x)
    other = sa.to_block_sparse(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)), 0.25, 8)
    other[2].values = other[0].values
    other.load_state_dict(model.state_dict())
    close(other(x), want)
    sa.to_dense(model)
    assert model[0].weight is model[2].weight and model[0].bias is bias
    close(model(x), want)
    head = nn.Sequential(nn.Embedding(32, 32), nn.Linear(32, 32))
    head[1].weight = head[0].weight
    with pytest.raises(ValueError, match="model: '0' uses a weight that would become sparse"):
        sa.to_block_sparse(head, 0.5, 8)
    assert type(head[1]) is nn.Linear


def test_hooks_go_along():
    model, seen = nn.Sequential(nn.Linear(32, 32)), []
    handles = [
        model[0].register_forward_pre_hook(lambda module, args: seen.append("before")),
        model[0].register_forward_hook(lambda module, args, kwargs, result: seen.append("after"), with_kwargs=True),
        model[0].register_full_backward_hook(lambda module, grads, made: seen.append("backward")),
    ]
    x = torch.randn(5, 32, requires_grad=True)
    for change in (lambda m: m, lambda m: sa.to_block_sparse(m, 0.5, 8), sa.to_dense):
        seen.clear()
        change(model)(x).sum().backward()
        assert seen == ["before", "after", "backward"]
    for handle in handles:
        handle.remove()
    model(x)
    assert len(seen) == 3


@pytest.mark.filterwarnings("ignore:.*weight_norm")
def test_what_cannot_go_along_says_so():
    computed = nn.utils.weight_norm(nn.Linear(32, 32))
    replaced = nn.Linear(32, 32)
    replaced.forward = lambda x: x
    for layer, message in ((computed, "the weight of '0' is computed"), (replaced, "the forward of '0' was replaced")):
        model = nn.Sequential(layer)
        with pytest.raises(ValueError, match=message):
            sa.to_block_sparse(model, 0.5, 8)
        assert model[0] is layer
    model = nn.Sequential(nn.Linear(32, 32))
    model[0].weight.register_hook(lambda grad: grad)
    with pytest.warns(sa.SparseAutotuneWarning, match="hooks on the weight of '0'"):
        sa.to_block_sparse(model, 0.5, 8)
    model = nn.Sequential(nn.Linear(32, 32))
    model[0].register_state_dict_post_hook(lambda *args: None)
    with pytest.warns(sa.SparseAutotuneWarning, match="hooks of '0' on its state_dict"):
        sa.to_block_sparse(model, 0.5, 8)
    with pytest.raises(TypeError, match="filter: must be a function"):
        sa.to_block_sparse(nn.Linear(32, 32), 0.5, 8, ["0"])
    for call in (sa.to_block_sparse, sa.sparsify_weights):
        with pytest.raises(TypeError, match="density: must be a number from 0 to 1, not '50%'"):
            call(nn.Linear(32, 32), "50%", 8)


def test_names_stay_with_activations():
    model = nn.Sequential(sa.SparseLinear(32, 32, 8, 0.5, activation="gelu"))
    x = torch.randn(5, 32)
    want = model(x)
    sa.to_dense(model)
    assert sorted(model.state_dict()) == ["0.bias", "0.weight"] and "activation='gelu'" in repr(model)
    close(model(x), want)
    close(pickle.loads(pickle.dumps(model))(x), want)
    close(sa.to_block_sparse(model, 1.0, 8)(x), want)
    assert model[0].activation == "gelu"


def test_another_pattern_is_loaded_in_inference_mode():
    layer, other = sa.SparseLinear(32, 32, 8, 0.5), sa.SparseLinear(32, 32, 8, 0.25)
    with torch.inference_mode():
        layer.load_state_dict(other.state_dict())
        x = torch.randn(3, 32)
        close(layer(x), other(x))


class Gated(nn.Module):
    def __init__(self, gate, up):
        super().__init__()
        self.gate, self.up = gate, up

    def forward(self, x):
        return sa.gated(x, self.gate, self.up)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", [None, "silu"])
@pytest.mark.parametrize("up", [sa.SparseLinear, nn.Linear])
def test_gated(up, activation, bias, dtype, device):
    options = dict(dtype=dtype, device=device)
    gate = sa.SparseLinear(100, 60, (8, 16), 0.4, bias, activation=activation, **options)
    other = nn.Linear(100, 60, bias, **options) if up is nn.Linear else sa.SparseLinear(100, 60, 16, 0.5, bias, **options)
    for lead in ((5,), (2, 3, 4), (0,), ()):
        x = torch.randn(*lead, 100, device=device).to(dtype)
        want = gate(x).detach() * other(x).detach()
        before = x.clone()
        with torch.no_grad():
            made = sa.gated(x, gate, other)
        assert made.shape == (*lead, 60) and torch.equal(x, before)
        close(made, want)
        close(sa.gated(x, gate, other), want)


def test_gated_has_gradients_and_hooks():
    gate, up = sa.SparseLinear(32, 24, 8, 0.5, activation="silu", dtype=torch.float64), nn.Linear(32, 24, dtype=torch.float64)
    both, x = Gated(gate, up), torch.randn(5, 32, dtype=torch.float64)
    inputs = tuple(t.detach().requires_grad_() for t in (x, gate.values, up.weight))

    def product(x, values, weight):
        return torch.func.functional_call(both, {"gate.values": values, "up.weight": weight}, (x,))

    assert torch.autograd.gradcheck(product, inputs)
    sa.gated(x, gate, up).sum().backward()
    assert gate.values.grad is not None and up.weight.grad is not None
    calls = []
    handle = gate.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        hooked = sa.gated(x, gate, up)
        handle.remove()
        close(hooked, sa.gated(x, gate, up))
    assert calls == [1]
    with pytest.raises(RuntimeError, match="size"):
        sa.gated(x, gate, nn.Linear(32, 23, dtype=torch.float64))


def test_gated_leaves_other_modules_results_alone():
    gate, kept = sa.SparseLinear(32, 32, 8, 0.5), torch.randn(5, 32)
    before, x = kept.clone(), torch.randn(5, 32)
    with torch.no_grad():
        close(sa.gated(x, gate, lambda x: kept), gate(x) * before)
        close(sa.gated(kept, gate, nn.Identity()), gate(before) * before)
    assert torch.equal(kept, before)


def test_gated_under_autocast():
    gate, up, x = sa.SparseLinear(32, 24, 8, 0.5, activation="silu"), sa.SparseLinear(32, 24, 8, 0.5), torch.randn(5, 32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        made = sa.gated(x, gate, up)
        assert made.dtype is torch.bfloat16
        close(made, gate(x) * up(x))


def test_gated_takes_layers_as_they_are():
    """What is called in place of a layer's forward, and what keeps results, is not passed by."""
    x, kept, w = torch.randn(6, 24), torch.randn(6, 20), torch.randn(6, 20, requires_grad=True)
    gate, up = sa.SparseLinear(24, 20, 8, 0.5, activation="silu"), nn.Linear(24, 20)

    class Called(nn.Linear):
        def __call__(self, x):
            return kept

    before = kept.clone()
    with torch.no_grad():
        close(sa.gated(x, gate, Called(24, 20)), gate(x) * before)
        forward = gate.forward
        gate.forward = lambda z: forward(z) * 3
        close(sa.gated(x, gate, up), 3 * forward(x) * up(x))
        del gate.forward
        up.forward = lambda z: kept
        close(sa.gated(x, gate, up), gate(x) * before)
        del up.forward
    assert torch.equal(kept, before)
    for layer in (gate, up):
        layer.requires_grad_(False)
    want = gate(x) * up(x)

    def policy(context, op, *args, **options):
        return CheckpointPolicy.MUST_SAVE if "addmm" in str(op) else CheckpointPolicy.PREFER_RECOMPUTE

    save = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(lambda w: sa.gated(x, gate, up) * w, w, use_reentrant=False, context_fn=save).sum().backward()
    close(w.grad, want)
    with forward_ad.dual_level():
        weight, tangent = up.weight.detach(), torch.randn(20, 24)
        given = {"weight": forward_ad.make_dual(weight, tangent)}
        made = forward_ad.unpack_dual(sa.gated(x, gate, lambda z: torch.func.functional_call(up, given, z)))
        close(made.tangent, gate(x) * (x @ tangent.mT))
        del up._parameters["weight"]
        up.weight = given["weight"]
        close(forward_ad.unpack_dual(sa.gated(x, gate, up)).tangent, gate(x) * (x @ tangent.mT))
