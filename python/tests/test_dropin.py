"""Our functions in place of PyTorch's: put there by whoever likes, with every keyword obeyed or refused, and answers in the caller's words."""

import inspect
import itertools
import os
import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import sparse_autotune as sa

# What ours may be put in place of, and how.
PLACES = {
    "F.scaled_dot_product_attention": (F, "scaled_dot_product_attention", sa.scaled_dot_product_attention),
    "torch.matmul": (torch, "matmul", lambda a, b, **words: (sa.matmul if sa.BSR in (type(a), type(b)) else sa.gemm)(a, b, **words)),
    "torch.mm": (torch, "mm", sa.gemm),
    "torch.Tensor.matmul": (torch.Tensor, "matmul", sa.gemm),
    "torch.Tensor.__matmul__": (torch.Tensor, "__matmul__", lambda a, b: sa.matmul(a, b) if type(b) is sa.BSR else sa.gemm(a, b)),
    "torch.sparse.mm": (torch.sparse, "mm", sa.matmul),
    "torch._grouped_mm": (torch, "_grouped_mm", lambda a, b, offs=None, **words: sa.grouped_gemm(a, b, offs, **words)),
    "F.linear": (
        F,
        "linear",
        lambda x, w, b=None: sa.matmul(x, w, transpose=True, bias=b) if isinstance(w, (sa.BSR, sa.SparseWeight)) else sa.gemm(x, w.mT, bias=b),
    ),
}


def all_calls():
    """Public functions, in what they leave to PyTorch, too."""
    q, k = torch.randn(1, 2, 16, 8), torch.randn(1, 1, 16, 8)
    a, x = sa.BSR.from_dense(torch.randn(16, 16), 4, density=0.5), torch.randn(16, 16)
    values = a.values.clone().requires_grad_()
    layer, gate = sa.SparseLinear(16, 16, 4, 0.5, activation="silu"), sa.SparseLinear(16, 16, 4, 0.5)
    grown = lambda t: t.clone().requires_grad_()  # noqa: E731
    sdpa = lambda *operands, **words: F.scaled_dot_product_attention(*operands, **words)  # noqa: E731
    return {
        "no mask": lambda: sdpa(q, q, q),
        "numbers": lambda: sdpa(q, q, q, torch.zeros(16, 16)),
        "booleans": lambda: sdpa(q, q, q, torch.ones(16, 16, dtype=torch.bool).tril()),
        "dropout": lambda: sdpa(q, q, q, dropout_p=0.1),
        "shared heads": lambda: sdpa(q, k, k, enable_gqa=True),
        "blocks": lambda: sa.scaled_dot_product_attention(q, q, q, sa.BlockMask.causal(16, 8), dropout_p=0.1),
        "broadcast": lambda: sdpa(q, k, k, is_causal=True),
        "float8 depth": lambda: sdpa(q[..., :3], q[..., :3], q),
        "nn.MultiheadAttention": lambda: nn.MultiheadAttention(16, 2, dropout=0.1)(x[:, None], x[:, None], x[:, None], need_weights=False)[0],
        "nn.TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(16, 2, 16)(x[:, None]),
        "matmul": lambda: a @ x,
        "matmul from the right": lambda: torch.matmul(x, a),
        "a batch": lambda: sa.matmul(a, torch.randn(3, 16, 2)),
        "gradients": lambda: torch.autograd.grad(sa.matmul(a.with_values(values), x).sum(), values)[0],
        "forward mode": lambda: torch.func.jvp(lambda t: sa.matmul(a, t), (x,), (x,))[1],
        "vmap": lambda: torch.vmap(lambda t: sa.matmul(a, t))(torch.randn(2, 16, 3)),
        "sddmm": lambda: sa.sddmm(a, x, x).values,
        "gemm": lambda: sa.gemm(grown(x), x, activation="gelu", residual=x),
        "gemm of a batch": lambda: sa.gemm(torch.randn(2, 16, 16), x),
        "grouped_gemm": lambda: sa.grouped_gemm(x, torch.randn(2, 16, 3), torch.tensor([5, 16], dtype=torch.int32)),
        "layer": lambda: layer(x),
        "gated": lambda: sa.gated(x, layer, gate),
        "dense of a layer": lambda: sa.to_dense(nn.Sequential(sa.SparseLinear(16, 16, 4, 0.5, activation="gelu")))(x),
        "weight": lambda: F.linear(x, sa.SparseWeight.from_dense(torch.randn(16, 16), 4, density=0.5)),
        "attention": lambda: sa.attention(grown(q), k, k, causal=True),
    }


@pytest.mark.parametrize("place", PLACES)
def test_ours_in_place_of_pytorchs(place, monkeypatch):
    owner, name, ours = PLACES[place]
    wanted = {}
    for call, run in all_calls().items():
        torch.manual_seed(1)
        wanted[call] = run().shape
    monkeypatch.setattr(owner, name, ours)
    for call, run in all_calls().items():
        assert run().shape == wanted[call], call


def test_ours_in_place_of_pytorchs_is_compiled(monkeypatch):
    q = torch.randn(1, 2, 16, 8)
    added = torch.randn(16, 16)
    wanted = F.scaled_dot_product_attention(q, q, q, added)
    monkeypatch.setattr(F, "scaled_dot_product_attention", sa.scaled_dot_product_attention)
    call = torch.compile(lambda q, mask: F.scaled_dot_product_attention(q, q, q, mask), backend="eager", fullgraph=True)
    torch.testing.assert_close(call(q, added), wanted)


def test_benchmark_attention_still_races_pytorchs(monkeypatch):
    """What it calls pytorch_sdpa is PyTorch's."""
    asked = []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *operands, **words: asked.append(1))
    q = torch.randn(1, 1, 32, 8)
    sa.benchmark_attention(q, q, q, rounds=3, progress=False)
    assert not asked


def test_no_keyword_is_dropped():
    """No public function, and no way to make something, takes words that it does not know."""
    open_ended = {"bsr_gemm", "set_options", "BlockMask.shaped"}  # they hand them on to what knows its own
    named = {name: getattr(sa, name) for name in sa.__all__ if callable(getattr(sa, name)) and not inspect.isclass(getattr(sa, name))}
    for kind in (sa.BSR, sa.BlockMask, sa.SparseWeight, sa.SparseLinear):
        named |= {f"{kind.__name__}.{name}": getattr(kind, name) for name, made in vars(kind).items() if isinstance(made, classmethod) and name[0] != "_"}
    for name, function in named.items():
        kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD not in kinds or name in open_ended, name
    a, x, q = sa.BSR.from_dense(torch.randn(16, 16), 4), torch.randn(16, 16), torch.randn(1, 1, 16, 8)
    for call in (
        lambda **words: sa.BlockMask.shaped("causal", 16, 8, **words),
        lambda **words: sa.attention(q, q, q, **words),
        lambda **words: sa.scaled_dot_product_attention(q, q, q, **words),
        lambda **words: sa.matmul(a, x, **words),
        lambda **words: sa.bsr_gemm(a, x, **words),
        lambda **words: sa.bsr_gemm(a.row_offsets, a.col_indices, a.values, x, **words),
        lambda **words: sa.gemm(x, x, **words),
        lambda **words: sa.set_options(**words),
        lambda **words: sa.benchmark_attention(q, q, q, **words),
        lambda **words: torch.matmul(a, x, **words),
        lambda **words: torch.mm(a, x, **words),
        lambda **words: F.linear(x, a, **words),
        lambda **words: torch.addmm(x, a, x, **words),
    ):
        for word in ("kernel_options", "score_mod", "block_mask", "window_size", "nonsense"):
            with pytest.raises(TypeError, match=word):
                call(**{word: 1})


@pytest.mark.parametrize("shape", [(1, 0, 5, 8), (0, 5, 8), (2, 3, 0, 5, 8)])
@pytest.mark.parametrize("words", [{}, dict(is_causal=True), dict(enable_gqa=True), dict(dropout_p=0.5), dict(attn_mask=torch.zeros(5, 5))])
def test_no_heads(shape, words):
    """PyTorch's function may end the process."""
    q = torch.randn(shape, requires_grad=True)
    made = sa.scaled_dot_product_attention(q, q, q[..., :4], **words)
    assert made.shape == (*shape[:-1], 4) and made.requires_grad
    made.sum().backward()
    some = torch.randn(*shape[:-3], 3, 5, 8)
    if words.get("enable_gqa"):
        with pytest.raises(ValueError, match="key: has 0 heads, which do not divide the 3 of query"):
            sa.scaled_dot_product_attention(some, q, q, **words)


# ------------------------------------------------------------------------------------------------ odd tensors


def every_second(t):
    return torch.stack([t, t + 1], 1)[:, 0]


def a_and_x(dtype=torch.float32):
    return sa.BSR.from_dense(torch.randn(16, 16, dtype=dtype), 4, density=0.5), torch.randn(16, 16, dtype=dtype)


def test_strided_indices():
    scipy = pytest.importorskip("scipy.sparse")
    a, x = a_and_x()
    parts = every_second(a.row_offsets), every_second(a.col_indices)
    assert not parts[0].is_contiguous()
    native = torch.sparse_bsr_tensor(*parts, a.values, a.shape)
    theirs = scipy.bsr_matrix((a.values.numpy(), parts[1].numpy(), parts[0].numpy()), shape=(16, 16))
    for given in (sa.BSR(*parts, a.values, a.shape), native, theirs):
        torch.testing.assert_close(sa.matmul(given, x), a @ x)
        torch.testing.assert_close(sa.sddmm(given, x, x).values, sa.sddmm(a, x, x).values)
    torch.testing.assert_close(sa.bsr_gemm(*parts, a.values, x), a @ x)
    mask, q = sa.BlockMask.from_dense(torch.rand(4, 4) < 0.5, 4), torch.randn(1, 1, 16, 8)
    torch.testing.assert_close(
        sa.attention(q, q, q, mask=sa.BlockMask(every_second(mask.offsets), every_second(mask.columns), 4, (16, 16))), sa.attention(q, q, q, mask=mask)
    )
    torch.testing.assert_close(sa.SparseBuffer(sa.BSR(*parts, a.values, a.shape))(x), a @ x)


def test_overlapping_memory_is_named_in_the_callers_words():
    a, x = a_and_x()
    line, both = a.values.view(-1)[:16].view(16, 1), torch.randn(32, 16)
    for call, said in (
        (lambda: sa.matmul(a, x, out=x), "out overlaps B"),
        (lambda: sa.matmul(x, a, out=x), "out overlaps A"),
        (lambda: sa.matmul(a, torch.randn(16, 1), out=line), r"out overlaps A\.values"),
        (lambda: sa.gemm(x, x, out=x), "out overlaps a"),
        (lambda: sa.gemm(torch.randn(16, 16), both[8:24], out=both[:16]), "out overlaps b"),
    ):
        with pytest.raises(RuntimeError, match=f"^sparse_autotune: {said}") as found:
            call()
        assert "args." not in str(found.value) and "0x" not in str(found.value)


def test_functions_of_pytorch():
    a, x = a_and_x()
    torch.testing.assert_close(torch.sparse.mm(a, x), a @ x)
    torch.testing.assert_close(torch.sparse.mm(x, a), x @ a)
    torch.testing.assert_close(torch.sparse.addmm(x, a, x, beta=2, alpha=3), 2 * x + 3 * (a @ x))
    batch = a.with_values(torch.randn(3, *a.values.shape))
    torch.testing.assert_close(torch.bmm(batch, x.expand(3, 16, 16)), batch.to_dense() @ x)
    torch.testing.assert_close(x.expand(3, 16, 16).bmm(batch), x @ batch.to_dense())
    with pytest.raises(RuntimeError, match="bmm: self must be a batch of matrices, got 2-D tensor"):
        torch.bmm(a, x[None])
    for function, operands in (
        (torch.baddbmm, (x[None], batch, x[None])),
        (torch.add, (a, x)),
        (torch.sum, (a,)),
        (torch.kron, (x, a)),
        (torch.cat, ([a, a],)),
    ):
        with pytest.raises(TypeError, match=f"{function.__name__}: takes no sa.BSR; .*to_dense"):
            function(*operands)
    weight = sa.SparseWeight.from_dense(torch.randn(16, 16), 4, density=0.5)
    torch.testing.assert_close(torch.sparse.mm(weight, x), weight.to_dense() @ x)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "array"])
def test_scipy_matrices_that_blocks_do_not_divide(form):
    scipy = pytest.importorskip("scipy.sparse")
    for rows, cols, block in itertools.product((1, 7, 10, 16), (1, 5, 16), (4, (3, 7), 16)):
        made = scipy.random(rows, cols, 0.5, format="csr", random_state=rows * cols, dtype="f4")
        made = scipy.csr_array(made) if form == "array" else made.asformat(form)
        dense = torch.from_numpy(made.toarray())
        found = sa.BSR.from_scipy(made, block)
        assert found.shape == (rows, cols) and torch.equal(found.to_dense(), dense) and torch.equal(torch.from_numpy(made.toarray()), dense)
        assert found.nnzb == sa.BSR.from_dense(dense, block).nnzb or form == "bsr"


def test_zeros_without_memory():
    """As derivatives of PyTorch may be."""
    a, x = a_and_x()
    zero, q = torch._efficientzerotensor(16, 3), torch.randn(1, 1, 16, 8)
    layer, nothing = sa.SparseLinear(16, 16, 4, 0.5), torch._efficientzerotensor((1, 1, 16, 8))
    assert torch.equal(a @ zero, torch.zeros(16, 3)) and torch.equal(sa.gemm(x, zero), torch.zeros(16, 3))
    torch.testing.assert_close(layer(torch._efficientzerotensor(2, 16)), layer.bias.expand(2, 16))
    torch.testing.assert_close(sa.sddmm(a, zero, zero.mT).to_dense(), torch.zeros(16, 16))
    for words in ({}, dict(causal=True), dict(return_lse=True)):
        found, plain = (sa.attention(t, q, q, **words) for t in (nothing, torch.zeros_like(q)))
        torch.testing.assert_close(found, plain)
        torch.testing.assert_close(sa.attention(q, q, nothing, **words), sa.attention(q, q, torch.zeros_like(q), **words))
    torch.testing.assert_close(sa.scaled_dot_product_attention(nothing, q, q), sa.scaled_dot_product_attention(torch.zeros_like(q), q, q))


def test_out_that_requires_a_gradient():
    a, x = a_and_x()
    for call in (lambda out: sa.matmul(a, x, out=out), lambda out: sa.gemm(x, x, out=out)):
        out = torch.empty(16, 16, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"out: .*use torch.no_grad\(\)"):
            call(out)
        with torch.no_grad():
            assert call(out) is out and out.requires_grad and out.is_leaf
        torch.testing.assert_close(out.detach(), call(torch.empty(16, 16)))


def test_benchmark_warns_of_nothing():
    """PyTorch has a warning of its own for each tensor in BSR whose checks nobody asked for."""
    script = (
        "import torch, warnings, sparse_autotune as sa\n"
        "warnings.simplefilter('error')\n"
        "warnings.filterwarnings('ignore', category=sa.SparseAutotuneWarning)\n"
        "sa.set_options(store='', budget_s=0.05)\n"
        "a = sa.BSR.from_dense(torch.randn(64, 64), 16, density=0.5)\n"
        "for words in ({}, {'transpose': True}): sa.benchmark(a, torch.randn(64, 8), rounds=3, progress=False, **words)\n"
        "sa.benchmark(torch.randn(8, 64), a, rounds=3, progress=False)\n"
        "a.to_torch()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | {"PYTHONWARNINGS": "default"}, timeout=300)
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr


def test_names_of_the_module():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        public = [name for name in dir(sa) if not name.startswith("_")]
    extra = set(public) - set(sa.__all__) - {"distributed"}
    assert not extra, extra
