"""scaled_matmul: products of float8 and int8 with scale factors, against the numbers that they stand for."""

import random
import re

import pytest
import torch
from conftest import random_bsr

import sparse_autotune as sa
from sparse_autotune._numbers import FACTOR, RIGHT, TRANS

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


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("density", [0.4, 1])
def test_a_grid_of_tiles_as_large_as_blocks(density, transpose):
    whole = random_bsr(32, 24, (8, 4), density)
    values = drawn(*whole.values.shape, dtype=torch.float8_e4m3fn)
    sparse, plain = whole.with_values(values), whole.with_values(values.float()).to_dense().double()
    plain, tile = (plain.T, (4, 8)) if transpose else (plain, (8, 4))
    scale, x = scales(plain.shape, tile), drawn(plain.shape[1], 5, dtype=torch.float8_e4m3fn)
    want = (plain * spread(scale, tile, plain.shape)) @ x.double()
    for says in (None, tile):
        close(sa.scaled_matmul(sparse, x, scale, tile_a=says, transpose=transpose), want, torch.float32)
        got = sa.scaled_matmul(x.T.contiguous(), sparse, None, scale.T.contiguous(), tile_b=says and says[::-1], transpose=not transpose)
        close(got, want.T, torch.float32)
    with pytest.raises(RuntimeError, match="scale_a: its shape is .5.; factors of tiles of"):
        sa.scaled_matmul(sparse, x, torch.ones(5), tile_a=tile, transpose=transpose)
    with pytest.raises(ValueError, match=f"scale_a: its shape is .99.; .* each of the {sparse.nnzb} stored blocks"):
        sa.scaled_matmul(sparse, x, torch.ones(99), transpose=transpose)


def each(scale, tile, shape):
    """A factor for each element of each item."""
    items = scale.expand(*shape[:-2], *scale.shape[-2:]).reshape(-1, *scale.shape[-2:])
    return torch.stack([spread(item, tile, shape[-2:]) for item in items]).reshape(shape)


BATCHES = [((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1,), (2,))]


@pytest.mark.parametrize("lead_a, lead_b", BATCHES)
@pytest.mark.parametrize("own", [False, True])
def test_a_batch(lead_a, lead_b, own):
    """Items have factors of their own, or the same, whether they are written out or one in memory."""
    a, b = drawn(*lead_a, 10, 12, dtype=torch.float8_e4m3fn), drawn(*lead_b, 12, 7, dtype=torch.float8_e4m3fn)
    for tile_a, tile_b in zip(TILES, reversed(TILES), strict=True):
        of_a, of_b = scales((10, 12), tile_a), scales((12, 7), tile_b)
        if own:
            of_a, of_b = torch.randn(*lead_a, *of_a.shape), torch.randn(*lead_b, *of_b.shape)
        words = {"tile_a": tile_a, "tile_b": tile_b}
        want = (a.double() * each(of_a, tile_a, a.shape)) @ (b.double() * each(of_b, tile_b, b.shape))
        close(sa.scaled_matmul(a, b, of_a, of_b, **words), want, torch.float32)
        same = a[..., :1, :, :].expand(a.shape) if lead_a else a
        want = (same.double() * each(of_a, tile_a, a.shape)) @ (b.double() * each(of_b, tile_b, b.shape))
        close(sa.scaled_matmul(same, b, of_a, of_b, **words), want, torch.float32)


@pytest.mark.parametrize("lead_a, lead_b", BATCHES)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_a_batch_of_sparse_ones(lead_a, lead_b, right, own):
    whole = random_bsr(20, 12, (8, 4), batch=lead_a)
    values = drawn(*whole.values.shape, dtype=torch.float8_e4m3fn)
    sparse, plain = whole.with_values(values), whole.with_values(values.float()).to_dense().double()
    x = drawn(*lead_b, *((9, 20) if right else (12, 9)), dtype=torch.float8_e4m3fn)
    for tile in TILES:
        of_a, of_x = scales((20, 12), tile), scales(x.shape[-2:], tile)
        if own:
            of_a, of_x = torch.randn(*lead_a, *of_a.shape), torch.randn(*lead_b, *of_x.shape)
        scaled, other = plain * each(of_a, tile, plain.shape), x.double() * each(of_x, tile, x.shape)
        words = {"tile_a": tile, "tile_b": tile}
        if right:
            close(sa.scaled_matmul(x, sparse, of_x, of_a, **words), other @ scaled, torch.float32)
        else:
            close(sa.scaled_matmul(sparse, x, of_a, of_x, **words), scaled @ other, torch.float32)
    by_block = torch.rand(*(lead_a if own else ()), sparse.nnzb) + 0.5
    scaled = whole.with_values(values.float() * by_block[..., None, None]).to_dense().double()
    got = sa.scaled_matmul(x, sparse, None, by_block) if right else sa.scaled_matmul(sparse, x, by_block)
    close(got, x.double() @ scaled if right else scaled @ x.double(), torch.float32)


def test_blocks_or_tiles_of_a_batch():
    """Two items of two blocks, a factor each; or four tiles of both items, where these are said."""
    values = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8).view(2, 2, 1, 1)
    a = sa.BSR(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), values, (2, 2))
    b, factors = torch.eye(2, dtype=torch.int8), torch.tensor([[1.0, 10.0], [100.0, 1000.0]])
    assert sa.scaled_matmul(a, b, scale_a=factors).tolist() == [[[1, 0], [0, 20]], [[300, 0], [0, 4000]]]
    assert sa.scaled_matmul(a, b, scale_a=factors, tile_a=(1, 1)).tolist() == [[[1, 0], [0, 2000]], [[3, 0], [0, 4000]]]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("stored", [0, 1, 2])
def test_one_factor(stored, shape):
    dense = torch.zeros(16, 8)
    dense[: 8 * stored] = torch.randn(8 * stored, 8)
    sparse, x = sa.BSR.from_dense(dense.to(torch.float8_e5m2), 8), drawn(8, 3, dtype=torch.float8_e5m2)
    assert sparse.nnzb == stored
    want = 2.5 * sparse.to_dense().double() @ x.double()
    close(sa.scaled_matmul(sparse, x, torch.full(shape, 2.5)), want, torch.float32)
    close(sa.scaled_matmul(x.T.contiguous(), sparse, None, torch.full(shape, 2.5), transpose=True), want.T, torch.float32)
    close(sa.scaled_matmul(sparse, x, None, torch.full(shape, 2.5)), want, torch.float32)


def test_tiles_that_shapes_tell():
    a, b = drawn(4, 200, dtype=torch.int8), drawn(200, 6, dtype=torch.int8)
    for counts, tile in (((1, 1), (None, None)), ((4, 1), (1, None)), ((2, 200), (2, 1)), ((4, 25), (1, 8))):
        scale = torch.randn(counts)
        close(sa.scaled_matmul(a, b, scale), (a.double() * spread(scale, tile, a.shape)) @ b.double(), torch.float32)
    for count in (2, 3, 8, 0, 400):  # of 100 each, or of 128 and what is left
        with pytest.raises(ValueError, match=f"scale_a: has {count} factors along 200 columns, .* say tile_a"):
            sa.scaled_matmul(a, b, torch.ones(4, count))
        with pytest.raises(ValueError, match=f"scale_b: has {count} factors along 200 rows, .* say tile_b"):
            sa.scaled_matmul(a, b, None, torch.ones(count, 1))
    scale = torch.randn(4, 2)
    for tile in ((1, 100), (1, 128)):
        close(sa.scaled_matmul(a, b, scale, tile_a=tile), (a.double() * spread(scale, tile, a.shape)) @ b.double(), torch.float32)


@pytest.mark.parametrize("dtype", FACTORS)
def test_sparse_from_and_to(dtype):
    dense = drawn(20, 12, dtype=dtype)
    dense[:8, 4:8] = 0
    if dtype is torch.float8_e5m2:
        dense[9, 9] = float("inf")
    a = sa.BSR.from_dense(dense, (8, 4))
    assert a.dtype is dtype and a.nnzb == 8
    for back in (a, a.T.T, sa.BSR.from_mask(dense, torch.ones(3, 3), (8, 4)), sa.BSR.from_dense(dense, 5)):
        assert back.to_dense().dtype is dtype and torch.equal(back.to_dense().float(), dense.float())
    assert torch.equal(a.T.to_dense().float(), dense.float().T)
    x, even = drawn(12, 5, dtype=dtype), sa.BSR.from_dense(dense[:16], (8, 4))
    want = sa.scaled_matmul(even, x)
    native = even.to_torch()
    assert native.dtype is dtype and torch.equal(sa.BSR.from_torch(native).to_dense().float(), dense[:16].float())
    torch.testing.assert_close(sa.scaled_matmul(native, x), want, equal_nan=True)
    torch.testing.assert_close(sa.scaled_matmul(x.T.contiguous(), native, transpose=True), want.T, equal_nan=True)
    torch.testing.assert_close(sa.scaled_matmul(sa.SparseWeight.from_dense(dense[:16], 4), x), want, equal_nan=True)


@pytest.mark.parametrize("dtype", FACTORS)
def test_largest_blocks(dtype):
    dense = drawn(32, 24, dtype=dtype)
    for by in ("l1", "l2", "max"):
        kept, want = sa.BSR.from_dense(dense, 8, density=0.5, by=by), sa.BSR.from_dense(dense.float(), 8, density=0.5, by=by)
        assert kept.dtype is dtype and kept.nnzb == 6 and torch.equal(kept.to_dense().float(), want.to_dense())
    if dtype is not torch.int8:
        dense[3, 4] = float("nan")
        with pytest.raises(ValueError, match="dense: the element at .3, 4. is nan"):
            sa.BSR.from_dense(dense, 8, density=0.5)


@pytest.mark.parametrize("dtype", FACTORS)
def test_sparse_of_scipy_and_files(dtype, tmp_path):
    scipy = pytest.importorskip("scipy.sparse")
    pytest.importorskip("safetensors")
    whole = random_bsr(24, 16, 8)
    a, x = whole.with_values(drawn(*whole.values.shape, dtype=dtype)), drawn(16, 3, dtype=dtype)
    a.save(tmp_path / "a.safetensors")
    loaded = sa.BSR.load(tmp_path / "a.safetensors")
    assert loaded.dtype is dtype and torch.equal(loaded.to_dense().float(), a.to_dense().float())
    if dtype is not torch.int8:
        with pytest.raises(TypeError, match=f"values: SciPy knows no {str(dtype)[6:]}"):
            a.to_scipy()
        return
    matrix = a.to_scipy()
    assert torch.equal(sa.BSR.from_scipy(matrix).to_dense(), a.to_dense()) and torch.equal(sa.BSR.from_scipy(matrix.tocsr(), 5).to_dense(), a.to_dense())
    assert torch.equal(sa.scaled_matmul(matrix, x), sa.scaled_matmul(a, x))
    with pytest.raises(TypeError, match="values: its dtype must be float32, .*, float8_e4m3fn, float8_e5m2 or int8, not uint8"):
        sa.BSR.from_scipy(scipy.bsr_array(matrix.astype("u1")))


@pytest.mark.parametrize("dtype", FACTORS)
def test_what_takes_no_eight_bits(dtype):
    dense, x = drawn(16, 16, dtype=dtype), drawn(16, 3, dtype=dtype)
    a, linear = sa.BSR.from_dense(dense, 8), torch.nn.Linear(16, 16)
    linear.weight = torch.nn.Parameter(dense, requires_grad=False)
    hint = f"its dtype must be float32, float64, float16 or bfloat16, not {str(dtype)[6:]} .scaled_matmul multiplies that"
    for call in (
        lambda: a @ x,
        lambda: x.T @ a,
        lambda: a @ x.float(),
        lambda: sa.matmul(a.to_torch(), x),
        lambda: torch.matmul(a, x),
        lambda: torch.nn.functional.linear(x.T, a),
        lambda: torch.nn.functional.linear(x.T, sa.SparseWeight.from_dense(dense, 8)),
        lambda: sa.sddmm(a, dense, dense),
        lambda: sa.gemm(dense, x),
        lambda: sa.gemm(dense, x, out_dtype=torch.float32),
        lambda: sa.grouped_gemm(dense, dense, torch.tensor([16]).int()),
        lambda: sa.matmul(a.to("meta"), x.to("meta")),
        lambda: sa.gemm(dense.to("meta"), x.to("meta")),
        lambda: sa.SparseLinear(16, 16, 8, 0.5, dtype=dtype),
        lambda: sa.SparseLinear.from_linear(linear, 8, 0.5),
        lambda: sa.to_block_sparse(torch.nn.Sequential(linear), 0.5, 8),
        lambda: sa.sparsify_weights(torch.nn.Sequential(linear), 0.5, 8),
        lambda: sa.BlockPruner(torch.nn.Sequential(linear), block=8, end=1),
    ):
        with pytest.raises((TypeError, RuntimeError), match=hint):
            call()
    assert linear.weight.dtype is dtype and type(linear.weight.data) is torch.Tensor


def test_no_gradient():
    f8 = torch.float8_e4m3fn
    wants = {"A": drawn(8, 16, dtype=f8), "B": drawn(16, 8, dtype=f8), "scale_a": torch.rand(8, 1), "scale_b": torch.rand(1, 8), "bias": torch.rand(8)}
    plain = sa.scaled_matmul(**wants)
    assert not plain.requires_grad
    sparse = sa.BSR.from_dense(wants["A"], 8)
    for name in wants:
        given = {**wants, name: wants[name].clone().requires_grad_()}
        kinds = [given]
        if name == "A":
            kinds += [{**wants, "A": sparse.with_values(sparse.values.clone().requires_grad_())}]
            kinds += [{**wants, "A": torch.nn.Parameter(sa.SparseWeight(sparse))}]
        else:
            kinds += [{**given, "A": sparse}]
        for operands in kinds:
            with pytest.raises(NotImplementedError, match=f"{name}: requires a gradient, .* give {name}.detach.., or multiply under torch.no_grad"):
                sa.scaled_matmul(**operands)
            for mode in (torch.no_grad, torch.inference_mode):
                with mode():
                    made = sa.scaled_matmul(**operands)
                    assert not made.requires_grad and torch.equal(made, plain)
            assert torch.equal(sa.scaled_matmul(**{key: operand.detach() for key, operand in operands.items()}), plain)
    scale = wants.pop("scale_a").requires_grad_()
    op, (a, b, bias) = torch.ops.sparse_autotune.scaled_gemm, (wants["A"], wants["B"], wants["bias"])
    with pytest.raises(NotImplementedError, match="bias: requires a gradient"):
        op(a, b, 0, None, None, bias.requires_grad_(), 0, 0, 0, 0, 0)
    with pytest.raises(NotImplementedError, match="scale_a: requires a gradient"):
        torch.func.grad(lambda s: sa.scaled_matmul(a, b, s).sum())(scale.detach())
    with pytest.raises(NotImplementedError, match="scale_a: has a tangent"):
        torch.func.jvp(lambda s: sa.scaled_matmul(a, b, s), (scale.detach(),), (torch.ones(8, 1),))
    with pytest.raises(NotImplementedError, match="scale_a: requires a gradient"):
        torch.compile(lambda s: sa.scaled_matmul(a, b, s), backend="aot_eager")(scale)
    sa.set_options(store="", effort="estimate")
    assert sa.tune(a, b, scaling={"scale_a": scale}).choice


def test_float8_gradients_go_through_conversions():
    dense = torch.randn(12, 8, requires_grad=True)
    a = sa.BSR.from_dense(dense.to(torch.float8_e5m2), 4, density=0.5)
    a.T.to_dense().float().sum().backward()
    assert torch.equal(dense.grad, (a.to_dense().float() != 0).float())


def test_what_tuning_takes():
    sa.set_options(store="", effort="measure", tuning="now", budget_s=0.05, warm=True)
    sa.clear_cache()
    a, b = drawn(16, 16, dtype=torch.int8), drawn(16, 16, dtype=torch.int8)
    offs = torch.tensor([8, 16], dtype=torch.int32)
    for call in (sa.tune, sa.explain):
        with pytest.raises(TypeError, match="offs: products of .* int8 have no groups"):
            call(a, b, offs=offs)
        for operands in ((a.to("meta"), b), (sa.BSR.from_dense(a, 8).to("meta"), b)):
            with pytest.raises(ValueError, match="A: is on the device meta"):
                call(*operands)
    scaling = {"scale_a": torch.ones(16, 1), "scale_b": torch.ones(2, 4)}
    assert "A scaled by row, B scaled by 8x4" in str(sa.tune(a, b, scaling=scaling)).split("\n")[0]
    sparse = sa.BSR.from_dense(a, 8)
    assert "A scaled by block" in str(sa.tune(sparse, b, scaling={"scale_a": torch.ones(sparse.nnzb)})).split("\n")[0]
    assert "scaled" not in str(sa.tune(a.float(), b.float())).split("\n")[0]
    both = torch.stack([a, a])
    assert "scaled by row" in str(sa.tune(both, b, scaling={"scale_a": torch.ones(2, 16, 1)})).split("\n")[0]
    for left in (a, sparse):
        assert sa.benchmark(left, b, rounds=3)["sparse_autotune"]["median_us"] > 0


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
    sa.set_options(store="", effort="measure", tuning="now", budget_s=0.05, warm=True)
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
    parts = (values, sparse.row_offsets, sparse.col_indices, x, 16, 24, 0, torch.ones(values.shape[0]), None, None, -2, -2, 0, 0, 1)
    torch.library.opcheck(torch.ops.sparse_autotune.scaled_spmm.default, parts)
    stacked = (torch.stack([a, a]), b, 0, torch.rand(2, 16, 1), None, None, 1, -1, 0, 0, 0)
    torch.library.opcheck(torch.ops.sparse_autotune.scaled_gemm.default, stacked)
    parts = (torch.stack([values] * 3), *parts[1:7], torch.ones(3, values.shape[0]), *parts[8:])
    torch.library.opcheck(torch.ops.sparse_autotune.scaled_spmm.default, parts)


def test_refused():
    a, b = drawn(8, 12, dtype=torch.int8), drawn(12, 8, dtype=torch.int8)
    one = sa.BSR.from_dense(b, 4)
    indices = (one.row_offsets, one.col_indices)
    none, op_spmm = (None, None, None, 0, 0, 0, 0, 0), torch.ops.sparse_autotune.scaled_spmm
    for error, words, call in (
        (ValueError, "out_dtype: must be torch.float32", lambda: sa.scaled_matmul(a, b, out_dtype=torch.int8)),
        (ValueError, "scale_a: has 5 factors along 8 rows", lambda: sa.scaled_matmul(a, b, torch.ones(5, 1))),
        (ValueError, "tile_b: is given without scale_b", lambda: sa.scaled_matmul(a, b, tile_b=(1, 1))),
        (ValueError, "tile_a: 0 is no side", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1), tile_a=(0, 1))),
        (ValueError, "tile_a: -1 is no side", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1), tile_a=(-1, 1))),
        (ValueError, "tile_a: 9223372036854775808 is no side", lambda: sa.scaled_matmul(a, b, torch.ones(8, 1), tile_a=(2**63, 1))),
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
        (RuntimeError, "dense: must have two dimensions or more", lambda: op_spmm(one.values, *indices, a[0], 12, 8, 2, *none)),
        (RuntimeError, "a: must have two dimensions or more", lambda: torch.ops.sparse_autotune.scaled_gemm(a[0], b, 0, *none)),
        (RuntimeError, "b: must have two dimensions or more", lambda: torch.ops.sparse_autotune.scaled_gemm(a, b[0], 0, *none)),
        (RuntimeError, "A: .* the dimensions of the batch differ", lambda: sa.scaled_matmul(a.expand(2, 8, 12), b.expand(3, 12, 8))),
        (
            RuntimeError,
            r"scale_a: its shape is .3, 8, 1.; .* need .8, 1., or .2, 8, 1., for each item of the batch",
            lambda: sa.scaled_matmul(a.expand(2, 8, 12), b, torch.ones(3, 8, 1)),
        ),
        (ValueError, "scale_a: its shape is .2, 8, 1.; it must be a single factor", lambda: sa.scaled_matmul(a, b, torch.ones(2, 8, 1))),
        (ValueError, r"scale_a: its shape is .8.; .* for each item of the batch, .2, ....$", lambda: sa.scaled_matmul(a.expand(2, 8, 12), b, torch.ones(8))),
        (ValueError, "A: must have two dimensions or more", lambda: sa.scaled_matmul(a[0], b)),
        (RuntimeError, "A: its dtype must be that of B.values, int8, not float8_e5m2", lambda: sa.scaled_matmul(a.to(torch.float8_e5m2), one)),
        (RuntimeError, "A: its shape is .8, 12.; the product needs 8 columns", lambda: sa.scaled_matmul(a, one, transpose=True)),
        (RuntimeError, "A: its shape is .8, 12.; the product needs 8 columns", lambda: sa.scaled_matmul(a.to("meta"), one.to("meta"), transpose=True)),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_factor_without_a_result_to_hold_it(device):
    """The product would be multiplied with what memory holds."""
    one, b = sa.BSR.from_dense(drawn(8, 12, dtype=torch.int8), 4), drawn(12, 8, dtype=torch.int8)
    values, offsets, columns, b = (part.to(device) for part in (one.values, one.row_offsets, one.col_indices, b))
    none, ops = (None, None, None, 0, 0, 0, 0, 0), torch.ops.sparse_autotune
    for call in (
        lambda: ops.scaled_spmm(values, offsets, columns, b, 8, 12, FACTOR, *none),
        lambda: ops.spmm(values.float(), offsets, columns, b.float(), None, 8, 12, FACTOR),
    ):
        with pytest.raises(RuntimeError, match="flags: a factor is what out holds: there is none"):
            call()


def refusal(call):
    """The words, None where it does not refuse."""
    try:
        call()
    except RuntimeError as error:
        return re.search("(scale_[ab]|bias|result): .*", str(error))[0].replace("that of values", "that of the result")


@pytest.mark.parametrize("seed", range(60))
def test_shapes_without_memory(seed):
    """Where there are no numbers, the same factors and biases are refused as where there are, in the same words."""
    numbers, ops = random.Random(seed), torch.ops.sparse_autotune
    lead, of_other = numbers.choice(((), (2,))), numbers.choice(((), (2,)))
    whole, flags = random_bsr(24, 20, (8, 4)), numbers.choice((0, TRANS, RIGHT, TRANS | RIGHT))
    values = whole.values.to(torch.int8).expand(*lead, *whole.values.shape)
    sizes = (20, 24) if flags & TRANS else (24, 20)
    other = (*of_other, *((6, sizes[0]) if flags & RIGHT else (sizes[1], 6)))
    made = (*(lead or of_other), *((6, sizes[1]) if flags & RIGHT else (sizes[0], 6)))

    def factors(of, shape, stored):
        """Of some tile, or what is nearly that."""
        tile = (-2, -2) if stored and numbers.random() < 0.4 else tuple(numbers.choice((-1, 1, 3, 8, 64)) for _ in shape)
        one = [stored] if tile[0] == -2 else [1 if side == -1 else -(-size // side) for side, size in zip(tile, shape, strict=True)]
        one = [*numbers.choice(((), of)), *one]
        one[numbers.randrange(len(one))] += numbers.random() < 0.2
        tile = numbers.choice((tile, tile, tile, tile, tile, (0, 1), (-3, 2), (-2, 1)))
        return torch.ones(numbers.choice((one, one, one, one, one, one[1:], [1, *one]))), tile

    bias = numbers.choice((None, torch.ones(made[-1]), torch.ones(made[-1] + 1), torch.ones(1, made[-1])))
    result = numbers.choice((0, 0, 0, 1))
    of_sparse, of_dense = factors(lead, sizes, whole.nnzb), factors(of_other, other[-2:], 0)
    (a, tile_a), (b, tile_b) = (of_dense, of_sparse) if flags & RIGHT else (of_sparse, of_dense)
    sparse = (values, whole.row_offsets, whole.col_indices, torch.ones(other, dtype=torch.int8), 24, 20, flags, a, b, bias, *tile_a, *tile_b, result)
    x, y = torch.ones(*lead, *sizes, dtype=torch.int8), torch.ones(*of_other, sizes[1], 6, dtype=torch.int8)
    (a, tile_a), (b, tile_b) = factors(lead, sizes, 0), factors(of_other, (sizes[1], 6), 0)
    bias = numbers.choice((None, torch.ones(6), torch.ones(5), torch.ones(1, 6)))
    for name, given in (("scaled_spmm", sparse), ("scaled_gemm", (x, y, 0, a, b, bias, *tile_a, *tile_b, result))):
        there = refusal(lambda name=name, given=given: getattr(ops, name)(*given))
        meta = [part.to("meta") if isinstance(part, torch.Tensor) else part for part in given]
        assert refusal(lambda name=name, meta=meta: getattr(ops, name)(*meta)) == there


def test_blocks_without_memory():
    one = sa.BSR.from_dense(torch.ones(8, 12, dtype=torch.int8), 4).to("meta")
    none = (None, None, None, 0, 0, 0, 0, 0)
    for values, columns in ((one.values, one.col_indices[1:]), (one.values[1:], one.col_indices)):
        with pytest.raises(RuntimeError, match=r"values: has \d blocks, but col_indices \d entries"):
            torch.ops.sparse_autotune.scaled_spmm(values, one.row_offsets, columns, torch.ones(12, 2, dtype=torch.int8, device="meta"), 8, 12, 0, *none)
    with pytest.raises(RuntimeError, match="scale_a: its dtype must be float32, not float16"):
        sa.scaled_matmul(one, torch.ones(12, 2, dtype=torch.int8, device="meta"), torch.ones(8, 1, dtype=torch.float16, device="meta"))


def test_autocast_leaves_whole_numbers():
    """As PyTorch does: int8 is refused beside autocast as it is without."""
    whole = sa.BSR.from_dense(torch.ones(16, 16, dtype=torch.int8), 8)
    for dtype in (torch.float32, torch.int8):
        with torch.autocast("cpu"), pytest.raises(RuntimeError, match="int8"):
            sa.matmul(whole, torch.ones(16, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_autocast_of_float8(dtype):
    """As PyTorch does: the numbers as they stand, in autocast's dtype. Who scales says the dtypes, and is not asked again."""
    whole = random_bsr(24, 16, 8)
    a, x, scale = whole.with_values(drawn(*whole.values.shape, dtype=dtype)), drawn(16, 3, dtype=dtype), torch.rand(24, 1)
    plain, scaled = whole.with_values(a.values.bfloat16()), sa.scaled_matmul(a, x, scale)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made, native = sa.matmul(a, x), torch.mm(a.to_dense(), x)
        assert torch.equal(sa.scaled_matmul(a, x, scale), scaled)
        assert torch.equal(sa.gemm(x.mT, x), sa.gemm(x.mT.bfloat16(), x.bfloat16()))
    assert torch.equal(made, sa.matmul(plain, x.bfloat16())) and made.dtype is native.dtype
    torch.testing.assert_close(made, native, atol=2e-2, rtol=2e-2)
