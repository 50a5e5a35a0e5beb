"""Batches of both operations: what PyTorch's broadcasting makes of them, or an error."""

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa


def test_batches_that_do_not_fit():
    """As many items in other dimensions would be paired at will."""
    a = random_bsr(8, 8, 4, density=1)
    for given in ((6,), (3, 2)):
        with pytest.raises(RuntimeError, match=r"values: their shape is \[2, 3, 4, 4, 4\], that of B .*: the dimensions of the batch differ"):
            a.with_values(torch.randn(2, 3, 4, 4, 4)) @ torch.randn(*given, 8, 3)
        with pytest.raises(RuntimeError, match=r"X: its shape is \[2, 3, 8, 4\], that of Y .*: the dimensions of the batch differ"):
            sa.sddmm(a, torch.randn(2, 3, 8, 4), torch.randn(*given, 4, 8))


LEADS = [(), (0,), (1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (2, 2), (0, 1), (1, 0), (1, 2, 1), (2, 1, 2), (1, 1, 2), (1, 2, 2)]


@pytest.mark.parametrize("one", LEADS, ids=str)
@pytest.mark.parametrize("other", LEADS, ids=str)
def test_every_batch_is_right_or_refused(one, other):
    """What PyTorch's broadcasting makes of two batches, in its shape, or an error: never items that nobody wrote."""
    a = random_bsr(8, 8, 4, density=1)
    x, y = torch.randn(*one, 8, 5), torch.randn(*other, 5, 8)
    try:
        sampled = sa.sddmm(a, x, y)
    except RuntimeError as refused:
        assert "batch" in str(refused) and one and other
    else:
        wanted = x @ y
        assert sampled.values.shape[:-3] == wanted.shape[:-2]
        close(sampled.to_dense(), wanted)
    batch = a.with_values(torch.randn(*one, 4, 4, 4))
    dense = torch.randn(*other, 8, 3)
    try:
        product = batch @ dense
    except RuntimeError as refused:
        assert "batch" in str(refused) and one and other
    else:
        wanted = batch.to_dense() @ dense
        assert product.shape == wanted.shape
        close(product, wanted)


@pytest.mark.parametrize("lead_x,lead_y", [((2,), (1, 1)), ((1, 1), (2,)), ((1,), (3,)), ((3,), (1, 1, 1)), ((0,), (1, 1))])
def test_sddmm_broadcasts_dimensions_of_size_one(lead_x, lead_y):
    """There was room for one item, and all were written."""
    a, x, y = random_bsr(8, 8, 4, density=1), torch.randn(*lead_x, 8, 5), torch.randn(*lead_y, 5, 8)
    close(sa.sddmm(a, x, y).to_dense(), x @ y)
    assert sa.sddmm(a.to("meta"), x.to("meta"), y.to("meta")).to_dense().shape == (x @ y).shape
