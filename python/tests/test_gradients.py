"""Gradients: gradcheck in float64, the second order too, functorch, autocast."""

import weakref

import pytest
import torch
from conftest import close, random_bsr
from torch.autograd import forward_ad, gradcheck, gradgradcheck

import sparse_autotune as sa


def of(matrix, values):
    return matrix.with_values(values)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_products(transpose, lead):
    a = random_bsr(7, 9, (2, 3), dtype=torch.float64)
    m, k = (9, 7) if transpose else (7, 9)
    values = a.values.requires_grad_()
    b = torch.randn(*lead, k, 3, dtype=torch.float64, requires_grad=True)
    x = torch.randn(*lead, 3, m, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(k, dtype=torch.float64, requires_grad=True)
    # the overhang of edge blocks takes no part: its gradient is zero on both sides
    inside = a.with_values(torch.ones_like(a.values)).to_dense()
    assert inside.shape == (7, 9)
    assert gradcheck(lambda v, d: sa.matmul(of(a, v), d, transpose=transpose), (values, b))
    assert gradcheck(lambda v, d, c: sa.matmul(d, of(a, v), transpose=transpose, bias=c, activation="silu"), (values, x, bias))
    assert gradgradcheck(lambda v, d: sa.matmul(of(a, v), d, transpose=transpose), (values, b))
    assert gradgradcheck(lambda v, d: sa.matmul(d, of(a, v), transpose=transpose), (values, x))


def test_batched_values():
    a = random_bsr(6, 8, 2, dtype=torch.float64, batch=(3,))
    values = a.values.requires_grad_()
    b = torch.randn(3, 8, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda v, d: of(a, v) @ d, (values, b))
    assert gradcheck(lambda v, d: of(a, v) @ d, (values, b[0].detach().requires_grad_()))
    x = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda v, d: d @ of(a, v), (values, x))


@pytest.mark.parametrize("lead", [(), (2,)])
def test_sddmm(lead):
    a = random_bsr(7, 9, (2, 3), dtype=torch.float64)
    x = torch.randn(*lead, 7, 4, dtype=torch.float64, requires_grad=True)
    y = torch.randn(*lead, 4, 9, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda p, q: sa.sddmm(a, p, q).values, (x, y))
    assert gradgradcheck(lambda p, q: sa.sddmm(a, p, q).values, (x, y))


def test_conversions():
    dense = torch.randn(7, 9, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda d: sa.BSR.from_mask(d, torch.eye(4, 3) > 0, (2, 3)).to_dense(), (dense,))
    a = random_bsr(7, 9, (2, 3), dtype=torch.float64)
    assert gradcheck(lambda v: of(a, v).T.to_dense(), (a.values.requires_grad_(),))


def test_functorch():
    a = random_bsr(8, 12, 4, dtype=torch.float64)
    b = torch.randn(12, 3, dtype=torch.float64)

    def loss(values, dense):
        return (of(a, values) @ dense).square().sum()

    got = torch.func.grad(loss, argnums=(0, 1))(a.values, b)
    v, d = a.values.clone().requires_grad_(), b.clone().requires_grad_()
    want = torch.autograd.grad(loss(v, d), (v, d))
    close(got[0], want[0])
    close(got[1], want[1])


def test_expanded_gradients(dtype, device):
    a = random_bsr(32, 24, 8, dtype=dtype, device=device).requires_grad_()
    x = torch.randn(5, 24, device=device).to(dtype).requires_grad_()
    sa.matmul(x, a, transpose=True).sum().backward()
    close(x.grad, a.to_dense().detach().double().sum(0).expand(5, -1))
    stored = a.with_values(torch.ones_like(a.values)).to_dense().double()
    close(a.with_values(a.values.grad).to_dense(), x.detach().double().sum(0) * stored)


def test_what_has_no_gradient():
    a = random_bsr(8, 8, 4).requires_grad_()
    with pytest.raises(RuntimeError, match="out"):
        sa.matmul(a, torch.randn(8, 3), out=torch.empty(8, 3))
    t = random_bsr(8, 8, 4).to_torch().requires_grad_()
    for call in (lambda: sa.matmul(t, torch.randn(8, 3)), lambda: sa.matmul(torch.randn(3, 8), t), lambda: sa.BSR.from_torch(t)):
        with pytest.raises(TypeError, match="leaf gets no gradient"):
            call()
    with torch.no_grad():
        close(sa.matmul(t, torch.eye(8)), t.to_dense())
    close(sa.matmul(t.detach(), torch.eye(8)), t.to_dense().detach())


@pytest.mark.parametrize("block", [4, (2, 4)], ids=str)
def test_torch_bsr_made_of_values(block):
    """The gradient goes through a torch.sparse_bsr tensor, used twice and with non-square blocks, too, where PyTorch's own product has none."""
    a = random_bsr(8, 12, block, dtype=torch.float64)
    b, x = torch.randn(12, 3, dtype=torch.float64, requires_grad=True), torch.randn(5, 8, dtype=torch.float64)
    values, same = a.values.clone().requires_grad_(), a.values.clone().requires_grad_()
    m = torch.sparse_bsr_tensor(a.row_offsets, a.col_indices, values, a.shape)
    with torch.no_grad():
        close(sa.matmul(m, b), a.to_dense() @ b)
    (sa.matmul(m, b).square().sum() + sa.matmul(x, m).square().sum()).backward()
    by_b = b.grad.clone()
    b.grad = None
    (sa.matmul(of(a, same), b).square().sum() + sa.matmul(x, of(a, same)).square().sum()).backward()
    close(values.grad, same.grad)
    close(by_b, b.grad)


def test_a_torch_bsr_tensor_is_freed():
    """What a tensor keeps of itself does not keep the tensor."""
    a = random_bsr(8, 8, 4)
    for graded in (False, True):
        m = torch.sparse_bsr_tensor(a.row_offsets, a.col_indices, a.values.clone().requires_grad_(graded), a.shape)
        sa.matmul(m, torch.randn(8, 3))
        gone = weakref.ref(m)
        del m
        assert gone() is None, graded


def test_autocast():
    a = random_bsr(32, 16, 8).requires_grad_()
    x = torch.randn(4, 16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = sa.matmul(x, a, transpose=True)
    assert y.dtype is torch.bfloat16
    y.float().square().sum().backward()
    assert a.values.grad.dtype is torch.float32 and x.grad.dtype is torch.float32


def test_indices_changed_before_the_backward_pass():
    a = random_bsr(32, 24, 8).requires_grad_()
    y = a @ torch.randn(24, 3)
    a.col_indices.add_(0)
    with pytest.raises(RuntimeError, match="changed in place since"):
        y.sum().backward()


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_one_gradient_alone(wanted, device):
    a = random_bsr(32, 24, 8, device=device)
    values, x = a.values.requires_grad_(wanted[0]), torch.randn(2, 5, 24, device=device).mT.contiguous().mT.requires_grad_(wanted[1])
    sa.matmul(x, a, transpose=True).square().sum().backward()
    dense = a.to_dense().detach().double()
    grad = 2 * x.detach().double() @ dense.mT
    if wanted[0]:
        stored = a.with_values(torch.ones_like(values)).to_dense().double()
        close(a.with_values(values.grad).to_dense(), torch.einsum("bti,btj->ij", grad, x.detach().double()) * stored)
    else:
        close(x.grad, grad @ dense)
    assert (values.grad is None, x.grad is None) == (not wanted[0], not wanted[1])


def test_forward_mode_into_a_given_tensor_is_refused():
    a, x, out = random_bsr(6, 8, 2), torch.randn(8, 3), torch.empty(6, 3)
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="dense: has a tangent"):
        sa.matmul(a, forward_ad.make_dual(x, x), out=out)
    for call in (
        lambda: torch.func.jvp(lambda x: sa.matmul(a, x, out=out), (x,), (x,)),
        lambda: torch.compile(lambda x: torch.func.jvp(lambda x: sa.matmul(a, x, out=out), (x,), (x,)), backend="aot_eager")(x),
    ):
        with pytest.raises(Exception, match="out: a product inside torch.func"):
            call()


def test_batches_of_gradients():
    a = random_bsr(6, 8, 2, dtype=torch.float64)
    values, x = a.values.requires_grad_(), torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda v, d: a.with_values(v) @ d, (values, x), check_batched_grad=True)
    assert gradcheck(lambda v, d: d @ a.with_values(v), (values, y), check_batched_grad=True)
    assert gradcheck(lambda d, e: sa.sddmm(a.detach(), d, e).values, (y.mT.detach().requires_grad_(), x.mT.detach().requires_grad_()), check_batched_grad=True)
    whole = torch.autograd.functional.jacobian(lambda d: a.detach() @ d, x.detach())
    close(torch.autograd.functional.jacobian(lambda d: a.detach() @ d, x.detach(), vectorize=True), whole)


def test_out_that_is_negated():
    a = random_bsr(6, 8, 2)
    with pytest.raises(ValueError, match="^out: must not be"):
        sa.matmul(a, torch.randn(8, 3), out=torch._neg_view(torch.zeros(6, 3)))


def test_what_a_product_wrote_over_has_no_gradient_left():
    a, out, w = random_bsr(8, 6, 2), torch.ones(8, 3), torch.ones(8, 3, requires_grad=True)
    y = (out * w).sum()
    with torch.no_grad():
        sa.matmul(a, torch.randn(6, 3), out=out)
    assert out._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("lead_x,lead_y", [((2,), (1, 1)), ((1,), (3,)), ((3,), (1, 1, 1)), ((3,), ()), ((1, 2), (2,))])
def test_sddmm_of_dimensions_of_size_one(lead_x, lead_y):
    """They were taken forward and refused backward."""
    a = random_bsr(8, 8, 4, dtype=torch.float64)
    x, y = torch.randn(*lead_x, 8, 5, dtype=torch.float64, requires_grad=True), torch.randn(*lead_y, 5, 8, dtype=torch.float64, requires_grad=True)
    mask = a.with_values(torch.ones_like(a.values)).to_dense()
    weights = torch.randn_like(x @ y)
    got = torch.autograd.grad((sa.sddmm(a, x, y).to_dense() * weights).sum(), (x, y))
    want = torch.autograd.grad((x @ y * mask * weights).sum(), (x, y))
    for g, w in zip(got, want, strict=True):
        close(g, w)


def _through(kind, a, z):
    if kind == "sddmm":
        return sa.sddmm(a, z, z.mT).values
    if kind == "operator":
        return torch.ops.sparse_autotune.spmm(a.values, a.row_offsets, a.col_indices, z, None, *a.shape, 0)
    return sa.matmul(a, z)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("kind", ["matmul", "sddmm", "operator"])
@pytest.mark.parametrize("how", ["numpy", "data", "set data"])
def test_indices_changed_behind_pytorch_between_passes(how, kind, lead, second):
    """The backward pass was that of the other pattern."""
    row_offsets, col_indices = torch.tensor([0, 1, 2], dtype=torch.int32), torch.tensor([0, 1], dtype=torch.int32)
    a = sa.BSR(row_offsets, col_indices, torch.randn(2, 4, 4, requires_grad=True), (8, 8))
    z = torch.randn(*lead, 8, 3, requires_grad=True)
    loss = _through(kind, a, z).square().sum()
    torch.autograd.grad(loss, z, retain_graph=True)
    if how == "numpy":
        col_indices.numpy()[1] = 0
    elif how == "data":
        col_indices.data[1] = 0
    else:
        col_indices.data = torch.tensor([0, 0], dtype=torch.int32)
    with pytest.raises(RuntimeError, match="row_offsets, col_indices: were changed in place since the forward pass"):
        torch.autograd.grad(loss, z, create_graph=second)
    loss = _through(kind, a, z).square().sum()
    sa.clear_cache()  # the same indices in another object of the extension
    torch.autograd.grad(loss, z, create_graph=second)
