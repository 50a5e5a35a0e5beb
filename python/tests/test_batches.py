"""Batches of both operations: what PyTorch's broadcasting makes of them, or its error."""

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa


def test_batches_that_do_not_fit():
    """As many items in other dimensions would be paired at will."""
    a = random_bsr(8, 8, 4, density=1)
    for given in ((6,), (3, 2)):
        with pytest.raises(RuntimeError, match=r"values: its shape is \[2, 3, 4, 4, 4\], that of B .*: the dimensions of the batch differ"):
            a.with_values(torch.randn(2, 3, 4, 4, 4)) @ torch.randn(*given, 8, 3)
        with pytest.raises(RuntimeError, match=r"X: its shape is \[2, 3, 8, 4\], that of Y .*: the dimensions of the batch differ"):
            sa.sddmm(a, torch.randn(2, 3, 8, 4), torch.randn(*given, 4, 8))


LEADS = [(), (0,), (1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (2, 2), (0, 1), (1, 0), (1, 2, 1), (2, 1, 2), (1, 1, 2), (1, 2, 2)]


@pytest.mark.parametrize("one", LEADS, ids=str)
@pytest.mark.parametrize("other", LEADS, ids=str)
def test_every_batch_is_as_pytorch_has_it(one, other):
    """Broadcast where PyTorch broadcasts, an error where it has one; the gradients, and the shapes of tensors without memory, too."""
    a = random_bsr(8, 8, 4, density=1)
    x, y = torch.randn(*one, 8, 5, requires_grad=True), torch.randn(*other, 5, 8, requires_grad=True)
    values, dense = torch.randn(*one, 4, 4, 4, requires_grad=True), torch.randn(*other, 8, 3, requires_grad=True)
    left = torch.randn(*other, 3, 8, requires_grad=True)
    for ours, theirs, leaves in (
        (lambda p, x, y: sa.sddmm(p, x, y).to_dense(), lambda p, x, y: x @ y, (x, y)),
        (lambda p, v, d: p.with_values(v) @ d, lambda p, v, d: p.with_values(v).to_dense() @ d, (values, dense)),
        (lambda p, v, d: d @ p.with_values(v), lambda p, v, d: d @ p.with_values(v).to_dense(), (values, left)),
    ):
        try:
            want = theirs(a, *leaves)
        except RuntimeError:
            for device in ("cpu", "meta"):
                with pytest.raises(RuntimeError, match="the dimensions of the batch differ"):
                    ours(a.to(device), *(t.detach().to(device) for t in leaves))
            continue
        got = ours(a, *leaves)
        close(got, want)
        assert ours(a.to("meta"), *(t.detach().to("meta") for t in leaves)).shape == want.shape
        change = torch.randn(want.shape)
        for mine, wanted in zip(torch.autograd.grad(got, leaves, change), torch.autograd.grad(want, leaves, change), strict=True):
            close(mine, wanted)


@pytest.mark.parametrize("lead_x,lead_y", [((2,), (1, 1)), ((1, 1), (2,)), ((1,), (3,)), ((3,), (1, 1, 1)), ((0,), (1, 1))])
def test_sddmm_broadcasts_dimensions_of_size_one(lead_x, lead_y):
    """There was room for one item, and all were written."""
    a, x, y = random_bsr(8, 8, 4, density=1), torch.randn(*lead_x, 8, 5), torch.randn(*lead_y, 5, 8)
    close(sa.sddmm(a, x, y).to_dense(), x @ y)
    assert sa.sddmm(a.to("meta"), x.to("meta"), y.to("meta")).to_dense().shape == (x @ y).shape
