"""scaled_matmul: products of float8 and int8 with scale factors, against the numbers that they stand for."""

import pytest
import torch
from conftest import random_bsr

import sparse_autotune as sa

FACTORS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.int8]
RESULTS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
LARGEST = 50


def drawn(*shape, dtype):
    numbers = torch.randn(*shape)
    return (numbers * 20).round().clamp(-LARGEST, LARGEST).to(dtype) if dtype is torch.int8 else numbers.to(dtype)


def spread(scale, tile, shape):
    """A factor for each element."""
    rows, cols = (size if side is None else side for side, size in zip(tile, shape, strict=True))
    return scale.double().repeat_interleave(rows, 0)[: shape[0]].repeat_interleave(cols, 1)[:, : shape[1]]


def scales(shape, tile):
    counts = [1 if side is None else -(-size // side) for side, size in zip(tile, shape, strict=True)]
    return torch.randn(*counts)


def close(got, want, dtype):
    assert got.dtype is dtype
    torch.testing.assert_close(got.double(), want, atol=RESULTS[dtype] * max(want.abs().max().item(), 1e-30), rtol=RESULTS[dtype])


TILES = [(None, None), (1, None), (None, 1), (1, 16), (16, 16), (7, 5), (100, 1)]


@pytest.mark.parametrize("out_dtype", RESULTS)
@pytest.mark.parametrize("dtype", FACTORS)
def test_dense(dtype, out_dtype):
    a, b = drawn(33, 48, dtype=dtype), drawn(48, 20, dtype=dtype)
    for tile_a, tile_b in zip(TILES, reversed(TILES), strict=True):
        scale_a, scale_b = scales(a.shape, tile_a), scales(b.shape, tile_b)
        want = (a.double() * spread(scale_a, tile_a, a.shape)) @ (b.double() * spread(scale_b, tile_b, b.shape))
        close(sa.scaled_matmul(a, b, scale_a, scale_b, tile_a=tile_a, tile_b=tile_b, out_dtype=out_dtype), want, out_dtype)
    close(sa.scaled_matmul(a, b.T.contiguous().T, out_dtype=out_dtype), a.double() @ b.double(), out_dtype)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", FACTORS)
def test_sparse(dtype, transpose, right):
    whole = random_bsr(40, 27, (8, 6))
    values = drawn(*whole.values.shape, dtype=dtype)
    sparse, plain = whole.with_values(values), whole.with_values(values.float()).to_dense().double()
    plain = plain.T if transpose else plain
    other = drawn(*((13, plain.shape[0]) if right else (plain.shape[1], 13)), dtype=dtype)
    for tile in TILES:
        scale, of_other = scales(plain.shape, tile), scales(other.shape, tile)
        scaled, of = plain * spread(scale, tile, plain.shape), other.double() * spread(of_other, tile, other.shape)
        if right:
            got = sa.scaled_matmul(other, sparse, of_other, scale, tile_a=tile, tile_b=tile, transpose=transpose)
            close(got, of @ scaled, torch.float32)
        else:
            got = sa.scaled_matmul(sparse, other, scale, of_other, tile_a=tile, tile_b=tile, transpose=transpose)
            close(got, scaled @ of, torch.float32)


def test_a_factor_for_each_stored_block():
    whole = random_bsr(40, 24, 8)
    values, scale = drawn(*whole.values.shape, dtype=torch.float8_e4m3fn), torch.rand(whole.values.shape[0]) + 0.5
    sparse, x = whole.with_values(values), drawn(24, 9, dtype=torch.float8_e4m3fn)
    want = whole.with_values(values.float() * scale[:, None, None]).to_dense().double() @ x.double()
    close(sa.scaled_matmul(sparse, x, scale), want, torch.float32)
    close(sa.scaled_matmul(x.T.contiguous(), sparse, None, scale, transpose=True), want.T, torch.float32)


def test_what_torch_scales():
    a, b = drawn(32, 64, dtype=torch.float8_e4m3fn), drawn(48, 64, dtype=torch.float8_e4m3fn).T
    scale_a, scale_b = torch.tensor(0.5), torch.tensor(3.0)
    try:
        want = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"PyTorch has no such product here: {error}")
    torch.testing.assert_close(sa.scaled_matmul(a, b, scale_a, scale_b, out_dtype=torch.bfloat16), want, atol=2e-2, rtol=2e-2)


def test_bias_and_activation():
    a, b, bias = drawn(10, 32, dtype=torch.int8), drawn(32, 12, dtype=torch.int8), torch.randn(12)
    scale = torch.full((10, 1), 0.01)
    want = torch.relu((a.double() * 0.01) @ b.double() + bias.double())
    close(sa.scaled_matmul(a, b, scale, bias=bias, activation="relu"), want, torch.float32)


def test_tuned_stored_and_explained():
    sa.set_options(store="", effort="measure", unknown="tune", budget_s=0.05, warm=True)
    sa.clear_cache()
    a, b = drawn(32, 32, dtype=torch.float8_e4m3fn), drawn(32, 32, dtype=torch.float8_e4m3fn)
    scaling = {"scale_a": torch.ones(32, 2), "scale_b": torch.ones(2, 2)}
    with pytest.raises(LookupError):
        sa.explain(a, b, scaling=scaling)
    report = sa.tune(a, b, scaling=scaling)
    assert report.choice and report.problem["scale_a"] == "1x16" and report.problem["scale_b"] == "16x16" and report.problem["dtype"] == "f8e4m3"
    assert sa.explain(a, b, scaling=scaling).from_store
    with pytest.raises(LookupError):
        sa.explain(a, b)


def test_compiled():
    a, b, scale = drawn(16, 32, dtype=torch.float8_e4m3fn), drawn(32, 8, dtype=torch.float8_e4m3fn), torch.rand(16, 1)
    whole = torch.compile(lambda a, b: sa.scaled_matmul(a, b, scale) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(whole(a, b), sa.scaled_matmul(a, b, scale) + 1)
    a, b = drawn(16, 32, dtype=torch.int8), drawn(32, 8, dtype=torch.int8)  # opcheck multiplies, which PyTorch does not do in float8
    torch.library.opcheck(torch.ops.sparse_autotune.scaled_gemm.default, (a, b, 0, scale, None, None, 1, -1, 0, 0, 0))
    sparse = random_bsr(16, 24, 8)
    values, x = drawn(*sparse.values.shape, dtype=torch.int8), drawn(24, 5, dtype=torch.int8)
    parts = (values, sparse.row_offsets, sparse.col_indices, x, 16, 24, 0, torch.ones(values.shape[0]), None, None, 8, 8, 0, 0, 1)
    torch.library.opcheck(torch.ops.sparse_autotune.scaled_spmm.default, parts)


def test_refused():
    a, b = drawn(8, 12, dtype=torch.int8), drawn(12, 8, dtype=torch.int8)
    for error, words, call in (
        (ValueError, "out_dtype: must be torch.float32", lambda: sa.scaled_matmul(a, b, out_dtype=torch.int8)),
        (ValueError, "scale_a: has 5 factors along 8 rows", lambda: sa.scaled_matmul(a, b, torch.ones(5, 1))),
        (ValueError, "tile_b: is given without scale_b", lambda: sa.scaled_matmul(a, b, tile_b=(1, 1))),
        (ValueError, "tile_a: 0 is no side", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1), tile_a=(0, 1))),
        (TypeError, "tile_a: must be a tile's rows and columns", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1), tile_a=3)),
        (
            RuntimeError,
            r"scale_a: its shape is .2, 1.; .* need .8, 1.",
            lambda: sa.scaled_matmul(a, b, torch.ones(2, 1), tile_a=(1, None)),
        ),
        (RuntimeError, "scale_a: its dtype must be float32, not float64", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1, dtype=torch.float64))),
        (RuntimeError, "B: its dtype must be that of A, int8, not float32", lambda: sa.scaled_matmul(a, b.float())),
        (RuntimeError, "A: its dtype must be float8_e4m3fn, float8_e5m2 or int8, not float32", lambda: sa.scaled_matmul(a.float(), b.float())),
        (TypeError, "scaling: is of operands of float8_e4m3fn", lambda: sa.tune(a.float(), b.float(), scaling={})),
        (TypeError, "scaling: has scale_c", lambda: sa.tune(a, b, scaling={"scale_c": None})),
    ):
        with pytest.raises(error, match=words):
            call()
