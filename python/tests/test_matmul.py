"""Products against dense, for every dtype, layout, block and batch."""

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa

SHAPES = [((64, 48), 16), ((50, 70), (8, 16)), ((33, 20), (5, 3)), ((7, 300), 64), ((96, 96), (1, 4)), ((40, 64), (32, 8))]


def wide(matrix):
    return matrix.to_dense().double()


@pytest.mark.parametrize("shape,block", SHAPES, ids=str)
@pytest.mark.parametrize("transpose", [False, True])
def test_left(shape, block, transpose, dtype, device):
    a = random_bsr(*shape, block, dtype=dtype, device=device)
    dense = wide(a).mT if transpose else wide(a)
    by_rows = torch.randn(dense.shape[1], 37, device=device).to(dtype)
    for b in (by_rows, by_rows.t().contiguous().t(), torch.randn(dense.shape[1], 80, device=device).to(dtype)[:, 3:40], by_rows.repeat(1, 2)[:, ::2]):
        close(sa.matmul(a, b, transpose=transpose), dense @ b.double())


@pytest.mark.parametrize("shape,block", SHAPES, ids=str)
@pytest.mark.parametrize("transpose", [False, True])
def test_right(shape, block, transpose, dtype, device):
    a = random_bsr(*shape, block, dtype=dtype, device=device)
    dense = wide(a).mT if transpose else wide(a)
    for lead in ((9,), (2, 9), (2, 3, 4)):
        x = torch.randn(*lead, dense.shape[0], device=device).to(dtype)
        close(sa.matmul(x, a, transpose=transpose), x.double() @ dense)
    x = torch.randn(4, 9, dense.shape[0], device=device).to(dtype)
    for other in (x.transpose(0, 1), x.mT.contiguous().mT, x[:, 2:5], x.expand(3, 4, 9, -1)):
        close(sa.matmul(other, a, transpose=transpose), other.double() @ dense)


def test_batches(dtype, device):
    a = random_bsr(40, 24, (8, 4), dtype=dtype, device=device, batch=(3,))
    one = a.with_values(a.values[0])
    b = torch.randn(3, 24, 10, device=device).to(dtype)
    close(a @ b, wide(a) @ b.double())
    close(a @ b[0], wide(a) @ b[0].double())
    close(one @ b, wide(one) @ b.double())
    close(one @ b[:1].expand(3, -1, -1), wide(one) @ b[:1].expand(3, -1, -1).double())
    x = torch.randn(3, 7, 40, device=device).to(dtype)
    close(x @ a, x.double() @ wide(a))
    heads = torch.randn(24, 3, 10, device=device).to(dtype).transpose(0, 1)
    close(one @ heads, wide(one) @ heads.double())
    with pytest.raises(RuntimeError, match=r"values: its shape is \[3, 12, 8, 4\], that of B \[2, 24, 10\]: the dimensions of the batch differ"):
        a @ torch.randn(2, 24, 10, device=device).to(dtype)


def test_vectors(dtype, device):
    a = random_bsr(30, 20, 5, dtype=dtype, device=device)
    v, w = torch.randn(20, device=device).to(dtype), torch.randn(30, device=device).to(dtype)
    close(a @ v, wide(a) @ v.double())
    close(w @ a, w.double() @ wide(a))


@pytest.mark.parametrize("rows,cols,n", [(0, 8, 5), (8, 0, 5), (8, 8, 0)])
def test_empty(rows, cols, n, device):
    a = random_bsr(rows, cols, 4, density=1, device=device)
    close(a @ torch.randn(cols, n, device=device), torch.zeros(rows, n, device=device))
    turned = torch.randn(3, 2, n, cols, device=device).transpose(0, 1).mT  # PyTorch takes empty ones as contiguous, whatever their strides are
    close(a @ turned, torch.zeros(2, 3, rows, n, device=device))
    none = random_bsr(8, 8, 4, density=0, device=device)
    assert none.nnzb == 0
    close(none @ torch.randn(8, 3, device=device), torch.zeros(8, 3, device=device))


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu"])
def test_bias_and_activation(activation, dtype, device):
    a = random_bsr(48, 32, 16, dtype=dtype, device=device)
    act = {
        None: lambda t: t,
        "relu": torch.relu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda t: torch.nn.functional.gelu(t, approximate="tanh"),
        "silu": torch.nn.functional.silu,
    }[activation]
    x, b = torch.randn(2, 6, 32, device=device).to(dtype), torch.randn(48, device=device).to(dtype)
    close(sa.matmul(x, a, transpose=True, bias=b, activation=activation), act(x.double() @ wide(a).mT + b.double()))
    y, c = torch.randn(32, 11, device=device).to(dtype), torch.randn(11, device=device).to(dtype)
    close(sa.matmul(a, y, bias=c, activation=activation), act(wide(a) @ y.double() + c.double()))


def test_out(dtype, device):
    a = random_bsr(48, 32, 16, dtype=dtype, device=device)
    b = torch.randn(32, 5, device=device).to(dtype)
    out = torch.full((48, 5), float("nan"), device=device, dtype=dtype)
    assert sa.matmul(a, b, out=out) is out
    close(out, wide(a) @ b.double())
    with pytest.raises(RuntimeError, match="out: its shape is"):
        sa.matmul(a, b, out=out[:4])
    with pytest.raises(RuntimeError, match="out: must be contiguous"):
        sa.matmul(a, b, out=torch.empty(5, 48, device=device, dtype=dtype).t())


@pytest.mark.parametrize("shape,block", SHAPES, ids=str)
def test_sddmm(shape, block, dtype, device):
    pattern = random_bsr(*shape, block, dtype=dtype, device=device)
    stored = pattern.with_values(torch.ones_like(pattern.values)).to_dense().double()
    x, y = torch.randn(shape[0], 19, device=device).to(dtype), torch.randn(19, shape[1], device=device).to(dtype)
    for left in (x, x.t().contiguous().t()):
        for right in (y, y.t().contiguous().t()):
            close(sa.sddmm(pattern, left, right).to_dense(), (x.double() @ y.double()) * stored)
    xs, ys = torch.randn(2, shape[0], 6, device=device).to(dtype), torch.randn(2, 6, shape[1], device=device).to(dtype)
    close(sa.sddmm(pattern, xs, ys).to_dense(), (xs.double() @ ys.double()) * stored)


def test_torch_and_scipy_operands():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    a = random_bsr(48, 32, 16)
    b, x = torch.randn(32, 5), torch.randn(4, 48)
    t = a.to_torch()
    close(sa.matmul(t, b), t @ b)
    close(sa.matmul(x, t), x @ a.to_dense())
    assert sa.matmul(t, b).data_ptr() != 0 and t.values().data_ptr() == a.values.data_ptr()
    s = a.to_scipy()
    assert isinstance(s, scipy_sparse.bsr_array)
    close(sa.matmul(s, b), t @ b)
    close(sa.bsr_gemm(a.row_offsets, a.col_indices, a.values, b), t @ b)
    t.values().mul_(2)
    close(sa.bsr_gemm(t, b), 2 * (a.with_values(a.values / 2) @ b))


def test_torch_operands_made_in_inference_mode():
    """They count no version."""
    a, b = random_bsr(48, 32, 16), torch.randn(32, 5)
    with torch.inference_mode():
        t = a.with_values(a.values.clone()).to_torch()
        close(sa.matmul(t, b), a.to_dense() @ b)
    close(sa.matmul(t, b), a.to_dense() @ b)
    close(sa.sddmm(t, b.mT.new_ones(48, 2), b.new_ones(2, 32)).values, torch.full_like(a.values, 2))
    with torch.inference_mode():
        t.values().mul_(2)
    close(sa.matmul(t, b), 2 * (a.to_dense() @ b))


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
def test_activations_at_minus_infinity(activation):
    """As part of the product their limit; the steps of their own that gradients need are PyTorch's."""
    a, x = sa.BSR.from_dense(torch.eye(4), 2), torch.full((4, 3), -float("inf"))
    a.values.copy_(torch.ones_like(a.values))  # no zero beside an infinity
    made = sa.matmul(a, x, activation=activation)
    assert (made == 0).all() and torch.signbit(made).all()
    assert sa.matmul(a, x.requires_grad_(), activation=activation).isnan().all()


def test_unsorted_and_double_blocks_of_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    import numpy

    data = numpy.arange(12.0).reshape(3, 2, 2)
    matrix = scipy_sparse.bsr_array((data, [1, 0, 1], [0, 3, 3]), shape=(4, 4))
    close(sa.BSR.from_scipy(matrix).to_dense(), torch.from_numpy(matrix.toarray()))
    assert matrix.indices.tolist() == [1, 0, 1], "the caller's matrix was changed"


def test_int64_indices(device):
    a = random_bsr(48, 32, 16, device=device)
    long = sa.BSR(a.row_offsets.long(), a.col_indices.long(), a.values, a.shape)
    b = torch.randn(32, 5, device=device)
    close(long @ b, a @ b)


def test_transposed_values_are_read_in_place(dtype, device):
    a = random_bsr(48, 40, (16, 8), dtype=dtype, device=device)
    b = torch.randn(48, 9, device=device).to(dtype)
    turned = a.transpose()
    assert not turned.values.is_contiguous()
    close(turned @ b, wide(a).mT @ b.double())
    close(turned.T.to_dense(), a.to_dense())
    strided = a.with_values(torch.stack([a.values, a.values], dim=-1)[..., 0])
    close(strided @ b[:40], wide(a) @ b[:40].double())


def test_infinities_stay_where_they_belong(device):
    a = random_bsr(32, 32, 8, density=0.3, device=device)
    b = torch.randn(32, 6, device=device)
    b[9] = float("inf")
    got = a @ b
    touched = a.to_dense()[:, 9] != 0
    assert torch.isfinite(got[~touched]).all() and not torch.isfinite(got[touched]).any()


def test_out_of_vectors():
    a = random_bsr(24, 40, 8)
    for left, right, rows in ((a, torch.randn(40), 24), (torch.randn(24), a, 40)):
        out = torch.full((rows,), torch.nan)
        assert sa.matmul(left, right, out=out) is out
        close(out, sa.matmul(left, right))
