"""Products past PyTorch's dispatcher: the same results, and not where something wants to see the operator."""

import gc
import os
import subprocess
import sys
import threading

import pytest
import torch
from conftest import close, random_bsr
from torch.utils._python_dispatch import TorchDispatchMode

import sparse_autotune as sa
from sparse_autotune import _C, _attention, _ops, _sdpa

direct = pytest.mark.skipif(not _ops.direct, reason="this PyTorch does not hand over its tensors")


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


def test_nothing_is_kept(dtype, device):
    """A result is its caller's alone, and nobody holds the operands afterwards."""
    a, layer = random_bsr(40, 56, (8, 16), dtype=dtype, device=device), sa.SparseLinear(56, 40, (8, 16), 0.5, dtype=dtype, device=device)
    b, x = torch.randn(56, 9, device=device).to(dtype), torch.randn(9, 56, device=device).to(dtype)
    given = [a.values, b, x, layer.values, layer.bias]
    if device == "cpu":  # those of a GPU are kept with what is known of the pattern
        given += [a.row_offsets, a.col_indices, layer.row_offsets, layer.col_indices]
    layer(x).sum().backward()  # the gradients are there
    before = [tensor._use_count() for tensor in given]
    for _ in range(3):
        with torch.no_grad():
            assert sa.matmul(a, b)._use_count() == 1 and layer(x)._use_count() == 1
        layer(x).sum().backward()
    gc.collect()
    assert [tensor._use_count() for tensor in given] == before


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


def test_a_result_too_large_for_memory():
    layer = sa.SparseLinear(8, 2**22, (64, 8), pattern=torch.ones(2**16, 1, dtype=torch.bool))
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"cannot make a tensor of shape \[16777216, 4194304\]: .*(stderr|allocate|memory)"):
        layer(torch.empty(1, 8).expand(2**24, 8))  # 2^48 bytes: more than any address space has


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


def test_the_older_way():
    """What hands tensors over before PyTorch 2.14, with this PyTorch: these tests in another process."""
    if os.environ.get("SPARSEK_TORCH_HANDLES"):
        return
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=os.environ | {"SPARSEK_TORCH_HANDLES": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_known_products(dtype, device):
    """The second product of a sparse operand takes what the first has found of it, as long as that holds."""
    layers = [sa.SparseLinear(48, 40, (8, 16), density, bias, dtype=dtype, device=device) for density, bias in ((0.3, True), (0.7, False), (0.3, False))]
    for tokens in ((5,), (7,), (5,), (2, 3), (4, 2, 3), (1,), (0,), (2, 3)) * 10:
        x = torch.randn(*tokens, 48, device=device).to(dtype)
        for layer in layers:
            with torch.no_grad():
                layer.values.mul_(-1)
                close(layer(x), dense_of(layer, x))
    a, b = random_bsr(40, 48, (8, 16), dtype=dtype, device=device), torch.randn(48, 9, device=device).to(dtype)
    for _ in range(70):
        close(sa.matmul(a, b), a.to_dense().double() @ b.double())
        close(sa.matmul(a, b[:, :4]), a.to_dense().double() @ b[:, :4].double())  # not contiguous
        close(sa.matmul(b.mT[:, :40].contiguous(), a), b.mT[:, :40].double() @ a.to_dense().double())


def dense_of(layer, x):
    y = x.double() @ layer.weight.to_dense().double().mT
    return y if layer.bias is None else y + layer.bias.double()


@pytest.mark.parametrize(
    "change",
    [
        lambda layer: setattr(layer.values, "data", layer.values.data.to(torch.float64)),
        lambda layer: layer.to(torch.bfloat16).to(torch.float64),
        lambda layer: setattr(layer.values, "data", layer.values.data[:-1].clone()),
        lambda layer: setattr(layer.values, "data", layer.values.data.mT),
        lambda layer: setattr(layer.values, "data", torch._neg_view(layer.values.data)),
        lambda layer: setattr(layer.bias, "data", torch._neg_view(layer.bias.data)),
        lambda layer: setattr(layer.bias, "data", layer.bias.data[:-1].clone()),
        lambda layer: setattr(layer, "col_indices", layer.col_indices.long()),
        lambda layer: setattr(layer, "col_indices", layer.col_indices.flip(0)),
        lambda layer: setattr(layer, "col_indices", layer.col_indices[:-1]),
        lambda layer: layer.col_indices.numpy().__setitem__(slice(None), layer.col_indices.numpy()[::-1].copy()),
        lambda layer: setattr(layer, "out_features", 15),
        lambda layer: setattr(layer, "activation", "relu"),
        lambda layer: sa.clear_cache(),
        lambda layer: torch.set_num_threads(1),
        lambda layer: None,
    ],
)
def test_a_known_product_that_is_no_more(change):
    """What has changed is seen: the product is right, or refused as one that was never seen is."""
    layer = sa.SparseLinear(16, 16, 8, pattern=torch.eye(2, dtype=torch.bool))
    threads = torch.get_num_threads()
    with torch.no_grad():
        layer.bias.normal_()
        for _ in range(3):
            layer(torch.randn(4, 16))
        change(layer)
        inputs = [torch.randn(4, 16), torch.randn(4, 16).double(), torch.randn(4, 17), torch.randn(0, 16), torch._neg_view(torch.randn(4, 16))]
        given = [(layer.values, layer.row_offsets, layer.col_indices, x, layer.bias, layer.out_features, 16, 7) for x in inputs]
        for operands in given:
            outcomes = []
            for product in (lambda *o: _ops.raw_spmm(*o, 0), torch.ops.sparse_autotune.spmm):
                try:
                    outcomes.append(product(*operands))
                except RuntimeError as error:
                    outcomes.append(str(error).split("\n")[0].split("sparse_autotune: ")[-1])
            ours, theirs = outcomes
            assert (ours == theirs) if isinstance(ours, str) else torch.equal(ours, theirs), outcomes
    torch.set_num_threads(threads)


def test_known_products_of_many_threads():
    layers, wrong = [sa.SparseLinear(64, 48, 16, density) for density in (0.25, 0.5, 0.75, 1.0)], []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for i in range(150):
            layer, x = layers[(i + seed) % 4], torch.randn(1 + i % 5, 64, generator=generator)
            with torch.no_grad():
                if not torch.allclose(layer(x), dense_of(layer, x).float(), atol=1e-4):
                    wrong.append((seed, i))
            if i % 50 == 49:
                sa.clear_cache()

    with sa.no_tuning():
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def _band_operands(dtype, queries=12, keys=12, heads_kv=2):
    made = torch.randn(2, 4, queries, 8), torch.randn(2, heads_kv, keys, 8), torch.randn(2, heads_kv, keys, 6)
    return [t.to(dtype) for t in made]


@direct
@pytest.mark.parametrize(
    "words", [{}, {"causal": "top_left"}, {"causal": "bottom_right", "window": 5, "sinks": 2}, {"scale": 0.3, "softcap": 2.0}, {"layout": "bshd"}]
)
def test_attention_the_same_as_the_operator(dtype, words, monkeypatch):
    q, k, v = _band_operands(dtype, keys=15)
    if "layout" in words:
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    asked = []
    monkeypatch.setattr(_attention, "direct_attention", lambda *given: asked.append(_C.direct_attention(*given)) or asked[-1])
    made = sa.attention(q, k, v, **words)
    assert any(answer is made for answer in asked)
    monkeypatch.setattr(_attention, "direct_attention", lambda *given: NotImplemented)
    assert torch.equal(made, sa.attention(q, k, v, **words)) and made.is_contiguous() and made._use_count() == 1


@direct
def test_attention_of_pytorch_the_same_way(monkeypatch):
    asked = []
    monkeypatch.setattr(_sdpa, "direct_attention", lambda *given: asked.append(_C.direct_attention(*given)) or asked[-1])
    q, k, v = _band_operands(torch.float32, heads_kv=4)
    for causal in (False, True):
        close(sa.scaled_dot_product_attention(q, k, v, is_causal=causal), torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    assert len(asked) == 2 and NotImplemented not in asked
    few = [t[:, :2] for t in (k, v)]
    close(
        sa.scaled_dot_product_attention(q, *few, enable_gqa=True),
        torch.nn.functional.scaled_dot_product_attention(q, *few, enable_gqa=True),
    )
    assert asked[2] is not NotImplemented
    with pytest.raises(RuntimeError):  # heads do not broadcast: PyTorch says so
        sa.scaled_dot_product_attention(q, *few)
    assert asked[3] is NotImplemented


NOT_DIRECT = {
    "a gradient": lambda q, k, v: (q.requires_grad_(), k, v),
    "another dtype": lambda q, k, v: (q, k.double(), v),
    "integers": lambda q, k, v: (q.int(), k.int(), v.int()),
    "three dimensions": lambda q, k, v: (q[0], k[0], v[0]),
    "nothing": lambda q, k, v: (q[:, :, :0], k, v),
    "depths that differ": lambda q, k, v: (q, k[..., :-1], v),
    "heads that do not divide": lambda q, k, v: (q[:, :3], k, v),
    "no heads of keys": lambda q, k, v: (q, k[:, :0], v[:, :0]),
    "keys that differ": lambda q, k, v: (q, k, v[:, :, 1:]),
    "no tensor": lambda q, k, v: (q, 3, v),
    "a sparse one": lambda q, k, v: (q.to_sparse(), k, v),
    "a nested one": lambda q, k, v: (torch.nested.nested_tensor(list(q)), k, v),
    "a nested one last": lambda q, k, v: (q, k, torch.nested.nested_tensor(list(v))),
    "a quantized one": lambda q, k, v: (torch.quantize_per_tensor(q, 0.1, 0, torch.qint8), k, v),
    "without memory": lambda q, k, v: (q.to("meta"), k.to("meta"), v.to("meta")),
    "a negation": lambda q, k, v: (torch._neg_view(q), k, v),
}


@direct
@pytest.mark.parametrize("name", NOT_DIRECT)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.*quantize", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_attention_that_is_not_for_here(name, capfd):
    operands = NOT_DIRECT[name](*_band_operands(torch.float32))
    assert _C.direct_attention(*operands, 0, 0, 0, None, 0.0, 0, True) is NotImplemented
    assert capfd.readouterr() == ("", "")


@direct
def test_numbers_that_are_not_for_here():
    q, k, v = _band_operands(torch.float32)
    for scale, softcap in ((1e300, 0.0), (float("nan"), 0.0), (2, 0.0), (None, 1), (torch.ones(()), 0.0)):
        assert _C.direct_attention(q, k, v, 0, 0, 0, scale, softcap, 0, True) is NotImplemented
    with pytest.raises(RuntimeError, match="sparse_autotune: scale = 1e"):
        sa.attention(q, k, v, scale=1e300)
    close(sa.attention(q, k, v, scale=2), sa.attention(q, k, v, scale=2.0))
    close(sa.attention(*(t.double() for t in (q, k, v)), scale=1e39), sa.attention(*(t.double() for t in (q * 1e3, k, v)), scale=1e36))
    with torch.no_grad():
        made = _C.direct_attention(q.requires_grad_(), k, v, 0, 0, 0, None, 0.0, 0, True)
    assert made is not NotImplemented and not made.requires_grad


@direct
def test_modes_see_attention():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen, operands = [], _band_operands(torch.float32)
    with Seen():
        sa.attention(*operands)
        sa.scaled_dot_product_attention(operands[0], *(t.repeat_interleave(2, 1) for t in operands[1:]))
    assert sum("attention" in name for name in seen) == 2
    with torch.autograd.profiler.profile() as profile:
        sa.attention(*operands)
    assert any("sparse_autotune::_attention" in event.name for event in profile.function_events)


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
