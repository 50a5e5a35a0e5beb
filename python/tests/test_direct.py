"""Products past PyTorch's dispatcher: the same results, and not where something wants to see the operator."""

import pytest
import torch
from conftest import close, random_bsr
from torch.utils._python_dispatch import TorchDispatchMode

import sparse_autotune as sa
from sparse_autotune import _C, _ops

direct = pytest.mark.skipif(not _ops.direct, reason="PyTorch hands over its tensors from 2.14 on")


def operands(a, b, bias=None):
    return a.values, a.row_offsets, a.col_indices, b, bias, *a.shape, 0, -1


@direct
def test_the_same_as_the_operator(dtype, device):
    a = random_bsr(40, 56, (8, 16), dtype=dtype, device=device)
    b, bias = torch.randn(56, 9, device=device).to(dtype), torch.randn(9, device=device).to(dtype)
    for given in (operands(a, b), operands(a, b, bias)):
        made = _C.direct_spmm(*given)
        assert type(made) is torch.Tensor and torch.equal(made, torch.ops.sparse_autotune._spmm(*given))
    gradient = torch.randn(40, 9, device=device).to(dtype)
    for want in range(4):
        given = (a.values, a.row_offsets, a.col_indices, b, gradient, *a.shape, 0, -1, want)
        for ours, theirs in zip(_C.direct_gradients(*given), torch.ops.sparse_autotune._spmm_gradients(*given), strict=True):
            assert (ours is None) == (theirs is None) and (ours is None or torch.equal(ours, theirs))


@direct
def test_errors_are_the_same():
    a, b = random_bsr(16, 16, 8), torch.randn(15, 3)
    with pytest.raises(RuntimeError) as ours:
        _C.direct_spmm(*operands(a, b))
    with pytest.raises(RuntimeError) as theirs:
        torch.ops.sparse_autotune._spmm(*operands(a, b))
    assert "dense: its shape is [15, 3]" in str(ours.value) and str(ours.value) in str(theirs.value)
    with pytest.raises(OverflowError):
        _C.direct_spmm(a.values, a.row_offsets, a.col_indices, b, None, 2**70, 16, 0, -1)


@direct
def test_what_the_dispatcher_must_see():
    a, b = random_bsr(16, 16, 8), torch.randn(16, 3)

    class Other(torch.Tensor):
        pass

    negated = torch.randn(16, 3, dtype=torch.complex64).conj().imag
    for given in (b.as_subclass(Other), negated):
        made = _C.direct_spmm(*operands(a, given))
        close(made.as_subclass(torch.Tensor), a.to_dense() @ given.as_subclass(torch.Tensor))
        assert type(made) is type(torch.ops.sparse_autotune._spmm(*operands(a, given)))
    assert _C.direct_spmm(*operands(a.to("meta"), b.to("meta"))).device.type == "meta"
    for wrong in (operands(a, None), operands(a, b.to("meta")), operands(a, b)[:-1], ()):
        with pytest.raises((RuntimeError, TypeError)) as ours:
            _C.direct_spmm(*wrong)
        with pytest.raises(ours.type):
            torch.ops.sparse_autotune._spmm(*wrong)
    with torch.device("cpu"):
        close(_C.direct_spmm(*operands(a, b)), a.to_dense() @ b)


def test_modes_and_profilers_see_the_operator():
    a, b = random_bsr(16, 16, 8), torch.randn(16, 3)
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        close(sa.matmul(a, b), a.to_dense() @ b)
    assert "sparse_autotune._spmm.default" in seen
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        sa.matmul(a, b)
    assert "sparse_autotune::_spmm" in [event.key for event in profile.key_averages()]


@pytest.mark.filterwarnings("ignore")
def test_traced():
    a = random_bsr(16, 16, 8)
    traced = torch.jit.trace(lambda x: sa.matmul(a, x), (torch.randn(16, 3),), check_trace=False)
    x = torch.randn(16, 3)
    close(traced(x), a.to_dense() @ x)
