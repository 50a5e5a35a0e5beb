"""Buffers with indices are no numbers to calculate with: averages of them are refused, and everything else that moves, copies or loads them is not."""

import copy
import io
import os
import pickle
import random

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn

import sparse_autotune as sa

SEED = int.from_bytes(os.urandom(4), "little")


def layer_of(kind, seed):
    """One block in each row, so that a column that is too small by one is a right pattern, too."""
    draw = torch.Generator().manual_seed(seed)
    pattern = torch.zeros(24, 12, dtype=torch.bool).scatter_(1, torch.randint(12, (24, 1), generator=draw), True)
    pattern[0] = torch.arange(12) > 9
    if kind == "linear":
        return sa.SparseLinear(192, 384, 16, pattern=pattern)
    return sa.SparseBuffer(sa.BSR.from_mask(torch.randn(384, 192, generator=draw), pattern, 16))


def of_all(model, other, change):
    for mine, theirs in zip(model.buffers(), other.buffers(), strict=True):
        change(mine, theirs)


def of_state(model, other, change):
    for mine, theirs in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        change(mine, theirs)


def averaged(mine, theirs):
    with torch.no_grad():
        mine.copy_(0.9999 * mine + (1 - 0.9999) * theirs)


def by_lerp(mine, theirs):
    mine.copy_(torch.lerp(mine.detach().float(), theirs.detach().float() - 0.3, 0.5))


def by_swa(mine, theirs):
    mine.detach().copy_((mine.detach().double() * 2 + theirs.detach() * 1.5) / 4)


def ema(model, other):
    mean = AveragedModel(other, multi_avg_fn=get_ema_multi_avg_fn(0.9999), use_buffers=True)
    for _ in range(3):
        mean.update_parameters(other)
    return mean.module


def run(layer):
    return layer(torch.randn(192, 5) if isinstance(layer, sa.SparseBuffer) else torch.randn(5, 192))


USES = {
    "call": run,
    "state_dict": lambda layer: layer.state_dict(),
    "eval": lambda layer: layer.eval(),
    "to": lambda layer: layer.to(torch.float64),
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "matrix": lambda layer: layer.matrix if isinstance(layer, sa.SparseBuffer) else layer.weight,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ["linear", "buffer"])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("how", ["buffers", "state", "lerp", "swa", "AveragedModel"])
def test_averages_are_refused(how, used, kind, use):
    layer = layer_of(kind, SEED)
    if used:
        run(layer)
    model = nn.Sequential(copy.deepcopy(layer))
    if how == "AveragedModel":
        changed = ema(None, nn.Sequential(layer))[0]
        if all(torch.equal(a, b) for a, b in zip((changed.row_offsets, changed.col_indices), (layer.row_offsets, layer.col_indices), strict=True)):
            pytest.skip(f"seed {SEED}: the average came out whole")
    else:
        change = {"buffers": averaged, "state": averaged, "lerp": by_lerp, "swa": by_swa}[how]
        (of_state if how == "state" else of_all)(model, nn.Sequential(layer), change)
        with torch.no_grad():
            model[0].col_indices.copy_((model[0].col_indices * 0.99).int())  # some are too small by one, whatever the average rounded to
        changed = model[0]
    with pytest.raises(RuntimeError, match="row_offsets, col_indices: were changed in place .*average"):
        USES[use](changed)
    changed.load_state_dict(layer.state_dict())  # what helps
    x = torch.randn(192, 192)
    assert torch.equal(changed(x), layer(x))


@pytest.mark.parametrize("turn", range(10))
def test_no_average_is_wrong_in_silence(turn):
    """Whatever the average does to the indices: the result is right, or there is none."""
    seed = SEED + turn
    layer = layer_of("linear", seed)
    decay = random.Random(seed).choice([0.5, 0.9, 0.99, 0.999, 0.9999])
    words = dict(avg_fn=get_ema_avg_fn(decay)) if turn % 2 else dict(multi_avg_fn=get_ema_multi_avg_fn(decay))
    mean = AveragedModel(nn.Sequential(layer), **words, use_buffers=True)
    for _ in range(4):
        mean.update_parameters(nn.Sequential(layer))
    x = torch.randn(3, 192)
    try:
        found = mean(x)
    except RuntimeError as error:
        assert "average" in str(error)
    else:
        torch.testing.assert_close(found, layer(x), rtol=1e-3, atol=1e-3, msg=f"seed {seed}, decay {decay}")


def saved_and_loaded(layer):
    kept = io.BytesIO()
    torch.save(layer, kept)
    kept.seek(0)
    return torch.load(kept, weights_only=False)


def by_way_of_meta(layer):
    kept = layer.state_dict()
    layer.to("meta").to_empty(device="cpu")
    layer.load_state_dict(kept)
    return layer


def loaded(layer, assign=False):
    other = layer_of("linear" if isinstance(layer, sa.SparseLinear) else "buffer", SEED + 1)
    other.load_state_dict(layer.state_dict(), assign=assign)
    return other


@pytest.mark.parametrize("kind", ["linear", "buffer"])
@pytest.mark.parametrize(
    "change",
    [copy.copy, copy.deepcopy, saved_and_loaded, loaded, lambda layer: loaded(layer, True), by_way_of_meta]
    + [lambda layer: layer.double(), lambda layer: layer.share_memory(), lambda layer: layer.train().eval(), lambda layer: loaded(loaded(layer))],
)
def test_what_moves_copies_or_loads_is_taken(change, kind):
    layer = layer_of(kind, SEED)
    x = torch.randn(192, 192)
    wanted = layer(x).detach()
    changed = change(layer)
    torch.testing.assert_close(changed(x.to(changed.values.dtype)).float().detach(), wanted)


def test_writing_the_same_indices_again_is_taken():
    """As a broadcast of buffers does before each forward pass."""
    layer = layer_of("linear", SEED)
    x = torch.randn(2, 192)
    wanted = layer(x)
    for _ in range(3):
        for buffer in layer.buffers():
            buffer.copy_(buffer.clone())
        assert torch.equal(layer(x), wanted)


def test_assigned_and_swapped_indices_are_taken():
    layer, other = layer_of("linear", SEED), layer_of("linear", SEED + 1)
    x = torch.randn(2, 192)
    layer(x), other(x)
    found = torch.func.functional_call(layer, dict(other.named_parameters()) | dict(other.named_buffers()), (x,))
    assert torch.equal(found, other(x))
    layer.values, layer.row_offsets, layer.col_indices = other.values, other.row_offsets, other.col_indices
    layer.bias = other.bias
    assert torch.equal(layer(x), other(x))


def test_the_first_broadcast_among_ranks_is_taken(monkeypatch):
    """DistributedDataParallel begins with the buffers of rank 0, which may have drawn another pattern."""
    import sparse_autotune._guard as guard

    layer, other = layer_of("linear", SEED), layer_of("linear", SEED + 1)
    copied = copy.deepcopy(layer)
    monkeypatch.setattr(guard, "_among_ranks", lambda: True)
    for mine, theirs in zip([*layer.buffers(), *layer.parameters()], [*other.buffers(), *other.parameters()], strict=True):
        mine.detach().copy_(theirs)
    x = torch.randn(2, 192)
    assert torch.equal(layer(x), other(x))
    copied.col_indices.copy_(other.col_indices)
    with pytest.raises(RuntimeError, match="average"):
        copied(x)
