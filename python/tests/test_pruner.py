"""sa.BlockPruner."""

import copy

import pytest
import torch
from conftest import close
from torch import nn
from torch.nn.utils import prune

import sparse_autotune as sa


def task(count=256, generator=None):
    """Sums of inputs that lie in a few blocks, through a kink: a sparse layer can learn it."""
    x = torch.randn(count, 32, generator=generator, dtype=torch.float64)
    return x, torch.stack([x[:, 0:8].sum(1).relu(), x[:, 16:24].sum(1).tanh()], 1)


def small(dtype=torch.float64):
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2)).to(dtype)


def stored(layer):
    """One where the weight has blocks, zero elsewhere."""
    return layer.weight.with_values(torch.ones_like(layer.values)).to_dense().detach()


def train(model, optimizer, steps, pruner=None, seed=0, seen=None):
    generator, device = torch.Generator().manual_seed(seed), next(model.parameters()).device
    for _ in range(steps):
        x, y = (t.to(device) for t in task(128, generator))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)  # is alive while the next one is computed, and with it the graph
        loss.backward()
        optimizer.step()
        if pruner is not None:
            pruner.step()
            if seen is not None:
                seen.append(pruner.density)
    return loss.item()


@pytest.mark.parametrize("dense", [True, False])
def test_trained_while_pruned(dense, device):
    model = small().to(device)
    if not dense:
        sa.to_block_sparse(model, 1.0, 8)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    pruner = sa.BlockPruner(model, optimizer, 0.25, begin=20, end=120, every=10, block=8 if dense else None)
    assert list(pruner.layers) == ["0"] and type(model[2]) is nn.Linear and pruner.density == 1
    seen = []
    first = train(model, optimizer, 1, pruner, seen=seen)
    loss = train(model, optimizer, 299, pruner, seen=seen)
    assert model[0].nnzb == 8 and pruner.finished and model[0].values.shape == (8, 8, 8)
    want = [pruner.density_at(step) for step in range(1, 301)]
    assert want[19] == 1 and want[28] == 1 and want[29] == 1 - 0.75 * (1 - 0.9**3) and want[119:] == [0.25] * 181
    assert want == sorted(want, reverse=True) and len(set(want)) == 11
    assert seen == [int(32 * density + 0.5) / 32 for density in want]
    assert loss < 0.05 < 1 < first, (first, loss)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop, torch.optim.AdamW])
def test_follows_a_dense_layer_with_a_mask(optimizer):
    """Values, moments and gradients are those of a dense layer whose dropped blocks are kept at zero."""
    options = {"lr": 1e-2} | ({"momentum": 0.9} if optimizer is torch.optim.SGD else {"weight_decay": 1e-2})
    reference, model = nn.Linear(20, 12, dtype=torch.float64), nn.Sequential(nn.Identity())
    model[0] = copy.deepcopy(reference)
    theirs, ours = optimizer(reference.parameters(), **options), optimizer(model.parameters(), **options)
    for step in range(12):
        if step == 3:  # with moments from dense training
            weight = model[0].weight
            pruner = sa.BlockPruner(model, ours, 0.3, end=6, every=2, block=(4, 8), schedule="linear")
            assert model[0].values is weight and ours.param_groups[0]["params"][0] is weight and weight.shape == (9, 4, 8)
        x, y = torch.randn(16, 20, dtype=torch.float64), torch.randn(16, 12, dtype=torch.float64)
        for module, opt in ((reference, theirs), (model, ours)):
            opt.zero_grad()
            (module(x) - y).square().mean().backward()
        if step >= 3:
            reference.weight.grad *= stored(model[0])
        theirs.step(), ours.step()
        if step >= 3:
            with torch.no_grad():
                pruner.step()
                keep = stored(model[0])
                reference.weight *= keep
                for value in theirs.state[reference.weight].values():
                    if isinstance(value, torch.Tensor) and value.dim() == 2:
                        value *= keep
            close(model[0].weight.to_dense(), reference.weight)
            close(model[0].weight.with_values(model[0].values.grad).to_dense(), reference.weight.grad * keep)
    assert model[0].nnzb == 3


def test_keeps_the_largest(device):
    layer = sa.SparseLinear(32, 32, 8, 1.0, device=device)
    norms = layer.values.detach().flatten(1).abs().amax(1)
    where = layer.weight.block_rows_of() * 4 + layer.col_indices
    pruner = sa.BlockPruner(layer, None, 0.25, end=1, by="max")
    assert pruner.step() and not pruner.step() and pruner.model is layer
    assert (layer.weight.block_rows_of() * 4 + layer.col_indices).tolist() == sorted(where[norms.topk(4).indices].tolist())
    x = torch.randn(5, 32, device=device)
    close(layer(x), layer.to_dense()(x))


def test_each_from_its_own_density():
    model = nn.Sequential(sa.SparseLinear(64, 64, 8, 0.5), sa.SparseLinear(64, 64, 8, 0.125))
    pruner = sa.BlockPruner(model, None, 0.25, end=4, schedule="linear")
    counts = []
    for _ in range(5):
        pruner.step()
        counts.append((model[0].nnzb, model[1].nnzb))
    assert counts == [(28, 8), (24, 8), (20, 8), (16, 8), (16, 8)]
    assert "2 layers" in repr(pruner)


def test_resumed():
    """Model, optimizer and pruner from their state_dicts go on as if nothing had happened."""
    torch.manual_seed(3)
    whole = small()
    half = copy.deepcopy(whole)

    def make(model):
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        return optimizer, sa.BlockPruner(model, optimizer, 0.25, end=20, every=3, block=8)

    optimizer, pruner = make(whole)
    train(whole, optimizer, 10, pruner), train(whole, optimizer, 15, pruner, seed=1)
    optimizer, pruner = make(half)
    train(half, optimizer, 10, pruner)
    saved = copy.deepcopy((half.state_dict(), optimizer.state_dict(), pruner.state_dict()))
    fresh = small()
    optimizer, pruner = make(fresh)
    train(fresh, optimizer, 1)  # of another shape than what comes
    fresh.load_state_dict(saved[0]), optimizer.load_state_dict(saved[1]), pruner.load_state_dict(saved[2])
    train(fresh, optimizer, 15, pruner, seed=1)
    assert fresh[0].nnzb == 8
    for (name, got), want in zip(fresh.state_dict().items(), whole.state_dict().values(), strict=True):
        assert torch.equal(got, want), name
    with pytest.raises(ValueError, match="state"):
        pruner.load_state_dict({"steps": 1, "initial": {"other": 1.0}})


def test_compiled():
    model = small(torch.float32)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    pruner = sa.BlockPruner(model, optimizer, 0.25, end=2, block=8)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for _ in range(3):
        x = torch.randn(4, 32)
        optimizer.zero_grad()
        compiled(x).square().sum().backward()
        close(compiled(x), model(x))
        optimizer.step()
        pruner.step()
    assert model[0].nnzb == 8


def test_what_cannot_be_pruned():
    tied = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    tied[2].weight = tied[0].weight
    with pytest.raises(ValueError, match="another module uses the weight of '0'"):
        sa.BlockPruner(tied, None, 0.5, end=1, block=8)
    model = small(torch.float32)
    with pytest.raises(ValueError, match="no layer"):
        sa.BlockPruner(model, None, 0.5, end=1)
    with pytest.raises(ValueError, match="optimizer: does not hold the weight of '0'"):
        sa.BlockPruner(model, torch.optim.SGD(small().parameters()), 0.5, end=1, block=8)
    lbfgs = torch.optim.LBFGS(model.parameters())

    def closure():
        loss = model(torch.randn(4, 32)).square().sum()
        loss.backward()
        return loss

    lbfgs.step(closure)
    with pytest.raises(ValueError, match="LBFGS keeps"):
        sa.BlockPruner(model, lbfgs, 0.5, end=1, block=8)
    assert type(model[0]) is nn.Linear and model[0].weight.shape == (64, 32), "changed although it was refused"
    for wrong in (dict(density=1.5), dict(begin=3), dict(every=0), dict(schedule="steep"), dict(by="l3"), dict(block=300)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sa.BlockPruner(small(), None, **({"end": 2, "block": 8} | wrong))
    pruner = sa.BlockPruner(small(), None, 0.5, end=9, block=8, schedule=lambda progress: 1 + progress)
    with pytest.raises(ValueError, match="schedule"):
        pruner.step()


@pytest.mark.parametrize("how", ["values", "values and input", "autocast", "compiled", "with an activation"])
def test_backward_after_pruning_is_refused(how):
    layer = sa.SparseLinear(32, 32, 8, 1.0, activation="relu" if how == "with an activation" else None)
    pruner = sa.BlockPruner(layer, None, 0.25, end=1)
    x = torch.randn(4, 32, requires_grad=how == "values and input")
    call = torch.compile(layer, backend="aot_eager") if how == "compiled" else layer
    with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
        loss = call(x).sum()
    pruner.step()
    with pytest.raises(RuntimeError, match="values: had 16 blocks in the forward pass and have 4 now"):
        loss.backward()
    assert layer.values.grad is None
    layer(x).sum().backward()
    assert layer.values.grad.shape == (4, 8, 8)


def test_hooks_and_activations_stay():
    model = sa.to_dense(nn.Sequential(sa.SparseLinear(32, 32, 8, 1.0, activation="relu")))
    seen = []
    model[0].register_forward_hook(lambda module, args, result: seen.append(type(module)))
    x = torch.randn(4, 32)
    want = model(x)
    pruner = sa.BlockPruner(model, None, 0.5, end=1, block=8)
    close(model(x), want)
    assert seen == [seen[0], sa.SparseLinear] and pruner.layers["0"].activation == "relu"
    with pytest.raises(ValueError, match="the weight of '0' is computed"):
        sa.BlockPruner(nn.Sequential(prune.identity(nn.Linear(8, 8), "weight")), None, 0.5, end=1, block=4)
