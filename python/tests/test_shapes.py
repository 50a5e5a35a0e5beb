"""Random shapes, blocks, types, layouts and batches against dense in float64; and PyTorch's own products of BSR as a yardstick.

On the CPU: a GPU compiles programs for each new block, and the fixed shapes of the other tests run there.
"""

import pytest
import torch
from conftest import DTYPES, close, random_bsr

import sparse_autotune as sa

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

EXAMPLES = settings(max_examples=60, deadline=None, print_blob=True, database=None, derandomize=True)
sizes, blocks = st.integers(0, 70), st.integers(1, 40)
flags, seeds = st.booleans(), st.integers(0, 2**31)


@st.composite
def matrices(draw, batch=()):
    """An sa.BSR of any kind: empty, with edge blocks, stored by columns, indices of 32 or 64 bits."""
    rows, cols, block = draw(sizes), draw(sizes), (draw(blocks), draw(blocks))
    a = random_bsr(rows, cols, block, draw(st.sampled_from([0, 0.2, 0.7, 1])), draw(st.sampled_from(DTYPES)), "cpu", batch, draw(seeds))
    if draw(flags):
        a = a.with_values(a.values.mT.contiguous().mT)
    if draw(flags):
        a = sa.BSR(a.row_offsets.long(), a.col_indices.long(), a.values, a.shape)
    return a


@st.composite
def strided(draw, sizes, like):
    """A dense tensor of some layout: by rows, by columns, a window, every other entry, repeated along the batch."""
    generator = torch.Generator().manual_seed(draw(seeds))
    layout = draw(st.sampled_from(["rows", "columns", "window", "skipping", "repeated", "turned"]))
    whole = list(sizes)
    if layout == "window":
        whole[-1], whole[-2] = whole[-1] + 5, whole[-2] + 3
    elif layout == "skipping":
        whole[-1] *= 2
    elif layout == "repeated" and len(whole) > 2:
        whole[0] = 1
    elif layout == "turned" and len(whole) > 2:
        whole[0], whole[-2] = whole[-2], whole[0]
    t = torch.randn(whole, generator=generator, dtype=torch.float64).to(like.dtype)
    if layout == "columns":
        return t.mT.contiguous().mT
    if layout == "window":
        return t[..., 1:-2, 2:-3]
    if layout == "skipping":
        return t[..., ::2]
    if layout == "repeated":
        return t.expand(sizes)
    return t.transpose(0, -2) if layout == "turned" and len(whole) > 2 else t


def near(got, want, terms):
    """Within rounding of sums of so many terms: the tolerance of the dtype, of the largest entry; more for long sums of entries that cancel."""
    close(got, want, magnitude=max(1.0, want.abs().max().item() if want.numel() else 0.0, terms**0.5))


@EXAMPLES
@given(st.data())
def test_products(data):
    batch = data.draw(st.sampled_from([(), (), (1,), (3,), (2, 2)]), label="batch of values")
    a = data.draw(matrices(batch), label="A")
    right, transpose = data.draw(flags, label="from the right"), data.draw(flags, label="transposed")
    dense_a = a.to_dense().double().mT if transpose else a.to_dense().double()
    inner, n = dense_a.shape[-2 if right else -1], data.draw(sizes, label="n")
    lead = data.draw(st.sampled_from([(), batch] if batch else [(), (1,), (3,), (2, 3)]), label="batch of B")
    b = data.draw(strided((*lead, n, inner) if right else (*lead, inner, n), a), label="B")
    bias = torch.randn(dense_a.shape[-1] if right else n, dtype=torch.float64).to(a.dtype) if data.draw(flags, label="bias") else None
    activation = data.draw(st.sampled_from([None, "relu", "silu"]), label="activation")
    want = b.double() @ dense_a if right else dense_a @ b.double()
    want = want if bias is None else want + bias.double()
    want = {None: lambda t: t, "relu": torch.relu, "silu": torch.nn.functional.silu}[activation](want)
    near(sa.matmul(*((b, a) if right else (a, b)), transpose=transpose, bias=bias, activation=activation), want, inner)


@EXAMPLES
@given(st.data())
def test_sddmm(data):
    pattern = data.draw(matrices(), label="pattern")
    (rows, cols), k = pattern.shape, data.draw(sizes, label="k")
    lead = data.draw(st.sampled_from([(), (1,), (3,), (2, 2)]), label="batch")
    x, y = data.draw(strided((*lead, rows, k), pattern), label="X"), data.draw(strided((*lead, k, cols), pattern), label="Y")
    stored = pattern.with_values(torch.ones_like(pattern.values)).to_dense().double()
    near(sa.sddmm(pattern, x, y).to_dense(), (x.double() @ y.double()) * stored, k)


@EXAMPLES
@given(st.data())
def test_gradients(data):
    a = data.draw(matrices(), label="A")
    right, transpose, n = data.draw(flags, label="from the right"), data.draw(flags, label="transposed"), data.draw(sizes, label="n")
    dense = a.to_dense().double().detach().requires_grad_()
    turned = dense.mT if transpose else dense
    inner = turned.shape[-2 if right else -1]
    b = data.draw(strided((n, inner) if right else (inner, n), a), label="B").requires_grad_()
    values = a.values.detach().requires_grad_()
    wide = b.detach().double().requires_grad_()
    pair = (b, a.with_values(values)) if right else (a.with_values(values), b)
    y = sa.matmul(*pair, transpose=transpose)
    grad = torch.randn(y.shape, dtype=torch.float64).to(a.dtype)
    y.backward(grad)
    (wide @ turned if right else turned @ wide).backward(grad.double())
    stored = a.with_values(torch.ones_like(a.values)).to_dense().double()
    near(a.with_values(values.grad).to_dense(), dense.grad * stored, n)
    near(b.grad, wide.grad, max(a.shape))


@EXAMPLES
@given(matrices(), st.sampled_from([(), (2,)]))
def test_conversions(a, batch):
    dense = a.to_dense()
    assert torch.equal(a.T.T.to_dense(), dense) and torch.equal(a.T.to_dense(), dense.mT)
    back = sa.BSR.from_dense(dense, a.block)
    assert torch.equal(back.to_dense(), dense) and back.nnzb <= a.nnzb
    if a.shape[0] % a.block[0] == 0 and a.shape[1] % a.block[1] == 0 and a.row_offsets.dtype is a.col_indices.dtype:
        native = a.to_torch()
        assert torch.equal(native.to_dense(), dense) and torch.equal(sa.BSR.from_torch(native).to_dense(), dense)


@pytest.mark.parametrize("block", [1, 2, 8, 16, (2, 4), (8, 1)], ids=str)
def test_as_pytorch_has_it(block, dtype):
    """Where torch.sparse_bsr @ dense works, ours is the same within rounding, shapes and types included."""
    a = random_bsr(48, 32, block, dtype=dtype)
    native, compared = a.to_torch(), 0
    calls = {
        "matrix": lambda m: m @ torch.ones(32, 5, dtype=dtype).cumsum(0),
        "by columns": lambda m: m @ torch.ones(5, 32, dtype=dtype).cumsum(1).mT,
        "vector": lambda m: m @ torch.ones(32, dtype=dtype).cumsum(0),
        "nothing": lambda m: m @ torch.ones(32, 0, dtype=dtype),
        "from the left": lambda m: torch.ones(5, 48, dtype=dtype).cumsum(1) @ m,
        "layer": lambda m: torch.nn.functional.linear(torch.ones(5, 32, dtype=dtype).cumsum(1), m),
    }
    ours = {"layer": lambda: sa.matmul(torch.ones(5, 32, dtype=dtype).cumsum(1), a, transpose=True)}
    for name, call in calls.items():
        try:
            want = call(native)
        except (RuntimeError, NotImplementedError):
            continue
        got = ours[name]() if name in ours else call(a)
        assert got.dtype is want.dtype and got.device == want.device and got.layout is want.layout, name
        terms = a.to_dense().abs().double().sum().item()
        close(got, want.double(), magnitude=terms * 2 if dtype in (torch.float16, torch.bfloat16) else terms)
        compared += 1
    if not isinstance(block, tuple) and dtype in (torch.float32, torch.float64):
        assert compared >= 2, "PyTorch multiplied nothing: this test compares nothing"


def test_wrong_shapes_as_pytorch_has_it():
    """What PyTorch refuses for its shapes, ours refuses, too, and not with a crash."""
    a = random_bsr(48, 32, 16)
    for m in (a, a.to_torch()):
        for wrong in (torch.ones(31, 5), torch.ones(31), torch.ones(2, 33, 5)):
            with pytest.raises(RuntimeError):
                m @ wrong if isinstance(m, sa.BSR) else sa.matmul(m, wrong)
    with pytest.raises(RuntimeError):
        a.to_torch() @ torch.ones(31, 5)
