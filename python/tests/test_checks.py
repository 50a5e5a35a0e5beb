"""Nothing reaches the library that could crash it: errors name the argument."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
import scipy.sparse
import torch
from conftest import close, random_bsr

import sparse_autotune as sa
from sparse_autotune import _numbers


def bsr(row_offsets, col_indices, shape=(8, 8), block=4, nnzb=None, dtype=torch.float32):
    values = torch.randn(len(col_indices) if nnzb is None else nnzb, block, block).to(dtype)
    return sa.BSR(torch.tensor(row_offsets, dtype=torch.int32), torch.tensor(col_indices, dtype=torch.int32), values, shape)


def replaced(**parts):
    a = bsr([0, 1, 2], [0, 1])
    return sa.BSR(**({"row_offsets": a.row_offsets, "col_indices": a.col_indices, "values": a.values, "shape": a.shape} | parts))


@pytest.mark.parametrize(
    "matrix,message",
    [
        (bsr([0, 1, 2], [0, 2]), "col_indices"),
        (bsr([0, 1, 2], [0, -1]), "col_indices"),
        (bsr([0, 2, 2], [1, 0]), "col_indices"),
        (bsr([0, 2, 1], [0, 1]), "row_offsets"),
        (bsr([1, 1, 2], [0, 1]), "row_offsets"),
        (bsr([0, 1, 9], [0, 1]), "row_offsets"),
        (bsr([0, 2], [0, 1]), "row_offsets: has 2 entries"),
        (bsr([0, 1, 2], [0, 1], nnzb=3), "values: has 3 blocks"),
        (bsr([0, 1, 2], [0, 1], shape=(2**63 - 1, 8)), "row_offsets: has 3 entries"),
        (replaced(row_offsets=torch.tensor([0, 1, 2])), "A.col_indices: its dtype must be that of A.row_offsets"),
        (replaced(row_offsets=torch.tensor([0.0, 1, 2])), "row_offsets: its dtype must be int32 or int64"),
        (replaced(row_offsets=torch.tensor([[0, 1, 2]]).int()), r"row_offsets: must be a contiguous tensor of one dimension; its shape is \[1, 3\]"),
        (replaced(col_indices=torch.tensor([0, 1], dtype=torch.int32, device="meta")), "A.col_indices: must be on the device of A.values, cpu, not on meta"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_wrong_matrices(matrix, message):
    with pytest.raises(RuntimeError, match=message):
        matrix @ torch.zeros(8, 3).to(matrix.dtype)


def test_wrong_operands():
    a = random_bsr(8, 8, 4)
    with pytest.raises(RuntimeError, match="B: its shape"):
        a @ torch.randn(9, 3)
    with pytest.raises(RuntimeError, match="B: its dtype must be that of A.values, float32, not float64"):
        a @ torch.randn(8, 3).double()
    with pytest.raises(TypeError, match=f"matrix: {STORED} int32"):
        sa.matmul(torch.ones(8, 8, dtype=torch.int32).to_sparse_bsr((4, 4)), torch.randn(8, 3))
    with pytest.raises(TypeError, match="A: neither"):
        sa.matmul(torch.randn(8, 8), torch.randn(8, 8))
    with pytest.raises(TypeError, match="B: must be a dense tensor"):
        sa.matmul(a, a)
    with pytest.raises(TypeError, match="A: must be torch.sparse_bsr"):
        sa.matmul("a", torch.randn(8, 8))
    with pytest.raises(RuntimeError, match="bias: must have one dimension with 3 entries; its shape is \\[8\\]"):
        sa.matmul(a, torch.randn(8, 3), bias=torch.randn(8))
    with pytest.raises(TypeError, match="linear: must be an nn.Linear, not Conv2d"):
        sa.SparseLinear.from_linear(torch.nn.Conv2d(3, 4, 3))
    with pytest.raises(ValueError, match="activation"):
        sa.matmul(a, torch.randn(8, 3), activation="softplus")
    with pytest.raises(RuntimeError, match="X: its shape"):
        sa.sddmm(a, torch.randn(9, 3), torch.randn(3, 8))
    with pytest.raises(RuntimeError, match="Y: has 4 rows"):
        sa.sddmm(a, torch.randn(8, 3), torch.randn(4, 8))
    with pytest.raises(ValueError, match="values"):
        sa.BSR(a.row_offsets, a.col_indices, torch.randn(4, 4), (8, 8))
    with pytest.raises(RuntimeError, match="device"):
        a.with_values(a.values.to("meta")) @ torch.randn(8, 3)


def test_wrong_operands_of_every_kind():
    a, b = random_bsr(8, 8, 4, density=1), torch.randn(8, 3)
    for wrong, message in (
        (b.int(), "B: its dtype"),
        (b.to(torch.complex128), "B: its dtype must be that of A.values, float32, not complex128"),
        (b.to(torch.float8_e5m2), "B: its dtype must be that of A.values, float32, not float8_e5m2"),
        (b.to("meta"), "B: must be on the device of A.values, cpu, not on meta"),
        (b.double().to("meta"), "B: must be on the device of A.values, cpu, not on meta"),
        (torch.tensor(1.0), r"B: must have two dimensions or more; its shape is \[\]"),
    ):
        with pytest.raises(RuntimeError, match=message):
            a @ wrong
    for wrong in (b.to_sparse(), b.numpy(), a.to_torch()):
        with pytest.raises(TypeError, match="B: must be a dense tensor"):
            sa.matmul(a, wrong)
    for bias in (torch.randn(1, 3), torch.randn(4), torch.randn(3).double(), torch.randn(3, device="meta")):
        with pytest.raises(RuntimeError, match="bias: "):
            sa.matmul(a, b, bias=bias)
    for out in (torch.empty(8, 4), torch.empty(3, 8).t(), torch.empty(1, 3).expand(8, 3), torch.empty(8, 3).double(), torch.empty(8, 3, device="meta")):
        with pytest.raises(RuntimeError, match="out: "):
            sa.matmul(a, b, out=out)
    square = torch.randn(8, 8)
    with pytest.raises(RuntimeError, match="overlaps"):
        sa.matmul(a, square, out=square)
    x, y = torch.randn(8, 4), torch.randn(4, 8)
    for wrong in ((x, y.double()), (x, torch.randn(4, 9)), (x, y.to("meta")), (torch.randn(2, 8, 4), torch.randn(3, 4, 8)), (x[0], y)):
        with pytest.raises(RuntimeError, match="[XY]: "):
            sa.sddmm(a, *wrong)
    layer = sa.SparseLinear(8, 8, 4, 0.5)
    for wrong in (torch.randn(2, 9), torch.randn(2, 8).double(), torch.ones(2, 8).int(), torch.tensor(1.0), torch.randn(2, 8, device="meta")):
        with pytest.raises(RuntimeError, match="x: "):
            layer(wrong)


def test_wrong_types_and_numbers():
    a = random_bsr(8, 8, 4, density=1)
    with pytest.raises(TypeError, match="values: must be a tensor, not NoneType"):
        sa.BSR(a.row_offsets, a.col_indices, None, (8, 8))
    with pytest.raises(TypeError, match="row_offsets: must be a tensor, not list"):
        sa.BSR([0, 2, 4], a.col_indices, a.values, (8, 8))
    for block in ("4", 4.0, (4,), (4, 4, 4), None):
        with pytest.raises(TypeError, match="block: must be"):
            sa.SparseLinear(8, 8, block, 0.5)
    for wrong in ({"density": float("nan")}, {"in_features": -8}, {"out_features": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sa.SparseLinear(**({"in_features": 8, "out_features": 8, "block": 4, "density": 0.5} | wrong))
    with pytest.raises(TypeError, match="values: its dtype must be .* not int32"):
        a.with_values(a.values.int())
    edge = sa.BSR.from_dense(torch.randn(7, 7), 4)
    for convert in (edge.to_torch, edge.to_scipy):
        with pytest.raises(ValueError, match="shape"):
            convert()
    with pytest.raises(TypeError, match="values: SciPy"):
        a.to(torch.bfloat16).to_scipy()
    dense = torch.randn(8, 8)
    close(sa.BSR.from_mask(dense, torch.tensor([[1, 0], [0, 2]]), 4).to_dense(), torch.block_diag(dense[:4, :4], dense[4:, 4:]))


def test_freed_memory():
    """A tensor whose memory was given back has none to read."""
    for name in ("values", "row_offsets", "col_indices", "dense"):
        a, b = random_bsr(8, 8, 4, density=1), torch.randn(8, 3)
        a = sa.BSR(a.row_offsets.clone(), a.col_indices.clone(), a.values.clone(), (8, 8))
        (b if name == "dense" else getattr(a, name)).untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match="NULL"):
            a @ b


def test_values_without_memory():
    """On the device "meta" shapes alone are computed, and a layer may be made there and filled later."""
    a = random_bsr(8, 12, 4).to("meta")
    assert (a @ torch.randn(12, 3, device="meta")).shape == (8, 3)
    assert sa.sddmm(a, torch.randn(8, 3, device="meta"), torch.randn(3, 12, device="meta")).values.shape == a.values.shape
    layer, like = sa.SparseLinear(11, 7, 4, 0.5, device="meta"), sa.SparseLinear(11, 7, 4, 0.5)
    assert layer(torch.randn(2, 11, device="meta")).shape == (2, 7)
    layer.to_empty(device="cpu").load_state_dict(like.state_dict())
    x = torch.randn(2, 11)
    close(layer(x), like(x))


WITHOUT_NUMBERS = {
    "to_block_sparse": lambda dense, sparse, matrix: sa.to_block_sparse(torch.nn.Sequential(torch.nn.Linear(8, 8, device="cpu"), dense), 0.5, 4),
    "to_dense": lambda dense, sparse, matrix: sa.to_dense(torch.nn.Sequential(torch.nn.ReLU(), sparse)),
    "to_dense of a layer": lambda dense, sparse, matrix: sparse.to_dense(),
    "from_linear": lambda dense, sparse, matrix: sa.SparseLinear.from_linear(dense, 4, 0.5),
    "a pruner of dense layers": lambda dense, sparse, matrix: sa.BlockPruner(torch.nn.Sequential(torch.nn.ReLU(), dense), end=1, block=4),
    "a pruner of sparse layers": lambda dense, sparse, matrix: sa.BlockPruner(torch.nn.Sequential(torch.nn.ReLU(), sparse), end=1),
    "from_dense": lambda dense, sparse, matrix: sa.BSR.from_dense(matrix, 4),
    "from_dense of a density": lambda dense, sparse, matrix: sa.BSR.from_dense(matrix, 4, density=0.5),
    "from_mask": lambda dense, sparse, matrix: sa.BSR.from_mask(matrix, torch.ones(2, 2, dtype=torch.bool), 4),
    "from_mask of such a mask": lambda dense, sparse, matrix: sa.BSR.from_mask(torch.ones(8, 8), torch.ones(2, 2, dtype=torch.bool, device="meta"), 4),
}


@pytest.mark.parametrize("what", WITHOUT_NUMBERS)
def test_blocks_of_nothing(what):
    """Which blocks a matrix on the device "meta" has, nobody can say. The model stays as it was."""
    dense, sparse = torch.nn.Linear(8, 8, device="meta"), sa.SparseLinear(8, 8, 4, 0.5, device="meta")
    with pytest.raises(ValueError, match="^(model: the weight of '1'|layer: its weight|linear.weight|dense|mask): is on the meta device, and has no numbers"):
        WITHOUT_NUMBERS[what](dense, sparse, torch.empty(8, 8, device="meta"))


def test_lazy_negation_is_carried_out():
    a = random_bsr(8, 8, 4)
    b = torch.randn(8, 3, dtype=torch.complex64).conj().imag
    assert b.is_neg()
    close(a @ b, a.to_dense() @ b.clone())


def test_trees():
    """torch.utils._pytree takes matrices apart, and puts whatever it likes in their places."""
    from torch.utils import _pytree

    a = random_bsr(8, 8, 4)
    assert _pytree.tree_map(lambda t: t.shape, a).values == a.values.shape
    close(_pytree.tree_map(lambda t: t * 2 if t.is_floating_point() else t, a).to_dense(), 2 * a.to_dense())


def test_indices_changed_in_place():
    a = bsr([0, 1, 2], [0, 1])
    b = torch.randn(8, 3)
    close(a @ b, a.to_dense() @ b)
    a.col_indices[0] = 1
    close(a @ b, a.to_dense() @ b)
    a.col_indices[0] = 7
    with pytest.raises(RuntimeError, match="col_indices"):
        a @ b
    with pytest.raises(RuntimeError, match="col_indices"):
        torch.ops.sparse_autotune.spmm(a.values, a.row_offsets, a.col_indices, b, None, 8, 8, 0)


def test_freed_indices_leave_nothing_behind():
    """Patterns of one size are made and dropped: memory is used again, answers are not."""
    b = torch.randn(32, 3)
    for seed in range(300):
        a = random_bsr(32, 32, 8, seed=seed)
        order = torch.randperm(4)[:2].sort()[0].int()
        a = sa.BSR(torch.tensor([0, 2, 2, 2, 2], dtype=torch.int32), order, torch.randn(2, 8, 8), (32, 32))
        close(a @ b, a.to_dense() @ b)


def test_indices_made_in_inference_mode():
    with torch.inference_mode():
        a = bsr([0, 1, 2], [0, 1])
        b = torch.randn(8, 3)
        close(a @ b, a.to_dense() @ b)
        a.col_indices[0] = 1
        close(a @ b, a.to_dense() @ b)
        close(torch.ops.sparse_autotune.spmm(a.values, a.row_offsets, a.col_indices, b, None, 8, 8, 0), a.to_dense() @ b)


def test_options():
    for wrong in ({"effort": "huge"}, {"tuning": "guess"}, {"budget_s": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sa.set_options(**wrong)
    with pytest.raises(ValueError, match=r"tuning: must be one of .*, not 'in-place'; did you mean 'in_place'\?"):
        sa.set_options(tuning="in-place")
    with pytest.raises(TypeError, match=r"unknown option 'tunning'; there are .*; did you mean 'tuning'\?"):
        sa.set_options(tunning="now")
    with pytest.raises(TypeError, match="nonsense"):
        sa.set_options(nonsense=1)
    a = random_bsr(64, 64, 16)
    sa.set_options(effort="measure", tuning="ahead_each")
    with pytest.raises(RuntimeError, match="class"):
        a @ torch.randn(64, 8)
    before = sa.set_options(choice="reference_smpm")
    with pytest.raises(RuntimeError, match=r'no kernel "reference_smpm"; did you mean "reference_spmm"\?'):
        a @ torch.randn(64, 8)
    sa.set_options(**dataclasses.asdict(before))
    sa.set_options(tuning="now", budget_s=0.05)
    with sa.no_tuning():
        close(a @ torch.eye(64), a.to_dense())


@pytest.mark.parametrize("name", ["only", "exclude", "choice"])
@pytest.mark.parametrize("nothing", [None, ""])
def test_options_that_are_taken_back(name, nothing):
    sa.set_options(**{name: "spmm_nonsense"})
    before = sa.set_options(**{name: nothing})
    assert getattr(before, name) == "spmm_nonsense" and getattr(sa.get_options(), name) == ""


def test_versions_agree():
    import pathlib
    import re

    from sparse_autotune import _C

    assert sa.__version__ == _C.version()
    project = pathlib.Path(__file__).parents[2] / "pyproject.toml"
    if project.exists():
        assert re.search(r'^version = "(.*?)"', project.read_text(), re.M).group(1) == sa.__version__


def test_indices_changed_behind_pytorch():
    """Through NumPy, which counts no version: the same memory, new or old tensors."""
    columns, dense = np.array([0], "i4"), torch.tensor([[1.0], [2.0]])
    offsets = torch.tensor([0, 1], dtype=torch.int32)

    def fresh():
        return sa.matmul(sa.BSR(offsets, torch.from_numpy(columns), torch.ones(1, 1, 1), (1, 2)), dense).item()

    kept = sa.BSR(offsets, torch.from_numpy(columns), torch.ones(1, 1, 1), (1, 2))
    assert (fresh(), sa.matmul(kept, dense).item()) == (1, 1)
    columns[0] = 1
    assert (fresh(), sa.matmul(kept, dense).item()) == (2, 2)
    matrix = scipy.sparse.bsr_matrix((np.ones((1, 1, 1), "f4"), np.array([0], "i4"), np.array([0, 1], "i4")), shape=(1, 2))
    assert sa.matmul(matrix, dense).item() == 1
    matrix.indices[0] = 1
    assert sa.matmul(matrix, dense).item() == 2


def test_messages_say_what_to_do():
    a, x = random_bsr(8, 8, 4, density=1), torch.randn(8, 3)
    with pytest.raises(TypeError, match="bias: must be a tensor, not float"):
        sa.matmul(a, x, bias=1.0)
    for rounds in (10**12, -1):
        with pytest.raises(ValueError, match="rounds: must be from 0 to"):
            sa.benchmark(a, x, rounds=rounds)
    with pytest.raises(TypeError, match="A: a SciPy matrix must be in BSR, not CSR; sa.BSR.from_scipy"):
        sa.matmul(scipy.sparse.csr_matrix(np.eye(8, dtype="f4")), x)
    with pytest.raises(TypeError, match="X: must be a dense tensor, not ndarray"):
        sa.sddmm(a, x.numpy(), x.mT)


def test_a_bare_pattern():
    a, x, y = random_bsr(16, 24, (4, 8)), torch.randn(16, 5), torch.randn(5, 24)
    bare = sa.BSR.from_pattern(a.row_offsets, a.col_indices, (4, 8), (16, 24))
    close(sa.sddmm(bare, x, y).values, sa.sddmm(a, x, y).values)
    assert bare.values.untyped_storage().nbytes() == 4 and sa.inspect(bare).nnzb == a.nnzb
    assert sa.SparseLinear(24, 16, pattern=bare).nnzb == a.nnzb
    with pytest.raises(TypeError, match="values: must be a tensor, not NoneType; sa.BSR.from_pattern"):
        sa.BSR(a.row_offsets, a.col_indices, None, (16, 24))


def test_cached_patterns_are_bounded():
    from sparse_autotune import _C

    sa.clear_cache()
    assert _C.cached_patterns() == (0, 0)
    b, made = torch.randn(512, 3), [random_bsr(512, 512, 2, seed=seed) for seed in range(6)]
    try:
        made[0] @ b
        one = _C.cached_patterns()[1]
        assert one > 4 * made[0].col_indices.nbytes
        _C.limit_patterns(3 * one + one // 2)
        for a in made:
            close(a @ b, a.to_dense() @ b)
        count, total = _C.cached_patterns()
        assert count == 3 and total <= 3.5 * one
        _C.limit_patterns(0)
        assert _C.cached_patterns()[0] == 1  # the one used last
        for a in (*made, made[-1]):
            close(a @ b, a.to_dense() @ b)
        assert _C.cached_patterns()[0] == 1
    finally:
        _C.limit_patterns(2**30)
    sa.clear_cache()
    assert _C.cached_patterns() == (0, 0)


def test_a_store_that_cannot_be_used_is_told_once(tmp_path):
    store = tmp_path / "store.db"
    store.write_text("no store, but a text of some length " * 100)
    a, b = random_bsr(64, 64, 16), torch.randn(64, 7)
    sa.set_options(store=str(store))
    with pytest.warns(sa.SparseAutotuneWarning, match="store .*store.db is not used") as told:
        close(a @ b, a.to_dense() @ b)
        sa.clear_cache()
        close(a @ b, a.to_dense() @ b)
    assert len([w for w in told if "store.db" in str(w.message)]) == 1


FLOATING = "its dtype must be float32, float64, float16 or bfloat16, not"
STORED = "its dtype must be float32, float64, float16, bfloat16, float8_e4m3fn, float8_e5m2 or int8, not"
INDICES = dict(row_offsets=torch.tensor([0, 1, 2]), col_indices=torch.tensor([0, 1]))


@pytest.mark.parametrize(
    "make,kind,message",
    [
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 4, 4).int(), shape=(8, 8)), TypeError, f"values: {STORED} int32"),
        (lambda: sa.BSR.from_torch(torch.eye(8).long().to_sparse_bsr((4, 4))), TypeError, f"matrix: {STORED} int64"),
        (lambda: sa.BSR.from_scipy(scipy.sparse.csr_matrix(np.eye(8, dtype=bool)), 4), TypeError, f"values: {STORED} bool"),
        (lambda: sa.BSR.from_dense(torch.ones(8, 8).cfloat(), 4), TypeError, f"dense: {STORED} complex64"),
        (lambda: random_bsr(8, 8, 4).to(torch.int16), TypeError, f"values: {STORED} int16"),
        (lambda: sa.SparseLinear(8, 8, 4, 0.5, dtype=torch.cfloat), TypeError, f"dtype: {FLOATING} complex64"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 0, 4), shape=(8, 8)), ValueError, r"values: blocks must be 1 to 256 high and wide, not \[0, 4\]"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 300, 4), shape=(8, 8)), ValueError, r"not \[300, 4\]"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 4, 4), shape=(8, -8)), ValueError, r"shape: sizes must not be negative, but are \(8, -8\)"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 4, 4), shape=(True, 20)), ValueError, r"shape: must be \(rows, cols\), not \(True, 20\)"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 4, 4), shape=8), ValueError, r"shape: must be \(rows, cols\), not 8"),
        (lambda: sa.BSR(**INDICES, values=torch.ones(2, 4, 4), shape=(8.0, 8)), ValueError, r"shape: must be \(rows, cols\), not \(8.0, 8\)"),
        (lambda: sa.BSR.from_dense(np.eye(8), 4), TypeError, "dense: must be a dense tensor, not ndarray"),
        (lambda: sa.BSR.from_dense(torch.eye(8).to_sparse(), 4), TypeError, "dense: must be a dense tensor, not torch.sparse_coo"),
        (lambda: sa.BSR.from_mask(torch.ones(8), torch.ones(2, 2), 4), ValueError, "dense: must have two dimensions, not 1"),
        (lambda: sa.BSR.from_mask(torch.ones(8, 8), [[1, 0], [0, 1]], 4), TypeError, "mask: must be a tensor, not list"),
        (lambda: sa.BSR.from_dense(torch.ones(8, 8), 4, density=torch.tensor([0.5, 0.2])), TypeError, "density: must be a number from 0 to 1"),
        (lambda: sa.BSR.from_dense(torch.ones(8, 8), 4, density=0.5, by=["l2"]), ValueError, r"by: must be one of .* not \['l2'\]"),
        (lambda: sa.BSR.from_torch(np.eye(8)), TypeError, "matrix: must be a torch.sparse_bsr tensor, not ndarray"),
        (lambda: sa.BSR.from_scipy(np.eye(8), 4), TypeError, "matrix: must be a SciPy sparse matrix, not ndarray"),
        (lambda: sa.SparseLinear(8.0, 8, 4, 0.5), TypeError, "in_features: must be a whole number, not 8.0"),
        (lambda: sa.SparseLinear(8, 8, 4, pattern=[[1, 0], [0, 1]]), TypeError, "pattern: must be a boolean mask of the blocks or an sa.BSR, not list"),
        (lambda: sa.SparseLinear(8, 8, 1, pattern=torch.eye(8).to_sparse_bsr((1, 1))), TypeError, "pattern: .* not torch.sparse_bsr"),
        (lambda: sa.SparseLinear(8, 8, 4), ValueError, "density: give either density or pattern; neither is given"),
        (lambda: sa.SparseLinear(8, 8, 4, 0.5, activation=[]), ValueError, r"activation: must be one of .* not \[\]"),
        (lambda: sa.SparseWeight(torch.eye(8)), TypeError, "matrix: must be an sa.BSR, not Tensor"),
        (lambda: sa.to_block_sparse(torch.eye(8), 0.5), TypeError, "model: must be an nn.Module, not Tensor"),
        (lambda: sa.to_dense(random_bsr(8, 8, 4)), TypeError, "model: must be an nn.Module, not BSR"),
    ],
)
def test_wrong_makings(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("convert", ["to_dense", "transpose", "to_torch", "to_scipy"])
@pytest.mark.parametrize(
    "changes,message",
    [
        (dict(col_indices=torch.tensor([0, -1])), "col_indices: has -1; block columns are 0..1"),
        (dict(col_indices=torch.tensor([2, 0])), "col_indices: has 2; block columns are 0..1"),
        (dict(shape=(16, 8)), "row_offsets: has 3 entries; a matrix of 16 rows in blocks of 4 needs 5"),
        (dict(values=torch.ones(3, 4, 4)), "values: has 3 blocks, but col_indices 2 entries"),
    ],
    ids=["negative", "beyond", "offsets", "values"],
)
def test_conversions_of_wrong_matrices(convert, changes, message):
    """They gave some other matrix."""
    wrong = sa.BSR(**(INDICES | dict(values=torch.ones(2, 4, 4), shape=(8, 8)) | changes))
    with pytest.raises(ValueError, match=message):
        getattr(wrong, convert)()


def test_patterns_of_any_dtype():
    """Where values are not read, theirs need not be one that products take."""
    x, y, a = torch.randn(8, 3), torch.randn(3, 8), torch.block_diag(torch.ones(4, 4), torch.ones(4, 4))
    for pattern in (a.long().to_sparse_bsr((4, 4)), scipy.sparse.bsr_matrix(a.bool().numpy(), blocksize=(4, 4))):
        close(sa.sddmm(pattern, x, y).to_dense(), a * (x @ y))
        assert sa.inspect(pattern).nnzb == 2
        with pytest.raises(TypeError, match=STORED):
            sa.matmul(pattern, x)


def test_wrong_arguments_of_calls():
    a, x = random_bsr(8, 8, 4, density=1), torch.randn(8, 3)
    parts = (a.row_offsets, a.col_indices, a.values)
    sparse = x.to_sparse()
    for call, kind, message in (
        (lambda: sa.matmul(a, sparse), TypeError, "B: must be a dense tensor where A is sparse, not torch.sparse_coo"),
        (lambda: sa.matmul(a, x, out=[1]), TypeError, "out: must be a dense tensor, not list"),
        (lambda: sa.matmul(a, x, out=sparse), TypeError, "out: must be a dense tensor, not torch.sparse_coo"),
        (lambda: sa.matmul(a, x, activation=["relu"]), ValueError, "activation: must be one of"),
        (lambda: sa.bsr_gemm(a, x, shape=(3, 3)), TypeError, r"shape: is for components; A has its own, \(8, 8\), and \(3, 3\) was given"),
        (lambda: sa.bsr_gemm([0, 1], *parts[1:], x), TypeError, "row_offsets: must be a tensor, not list"),
        (lambda: sa.bsr_gemm(*parts, x.numpy()), TypeError, "B: must be a dense tensor of one dimension or more, not ndarray"),
        (lambda: sa.bsr_gemm(parts[0][:0], *parts[1:], x), RuntimeError, "row_offsets: has 0 entries"),
        (lambda: sa.sddmm(a, sparse, x.mT), TypeError, "X: must be a dense tensor, not torch.sparse_coo"),
        (lambda: sa.sddmm(torch.eye(8), x, x.mT), TypeError, "pattern: must be sparse, not a dense tensor"),
        (lambda: sa.benchmark(a, x, rounds="3"), TypeError, "rounds: must be a whole number, not '3'"),
        (lambda: sa.benchmark(a, x.numpy()), TypeError, "B: must be a dense tensor, not ndarray"),
        (lambda: sa.benchmark(x.mT.tolist(), a), TypeError, "A: must be .* not list"),
        (lambda: sa.benchmark(a, a), TypeError, "B: must be a dense tensor, not BSR"),
        (lambda: sa.tune(a, [1], [2]), TypeError, "X: must be a dense tensor, not list"),
        (lambda: sa.tune(a.to("meta"), x.to("meta")), ValueError, "B: is on the device meta"),
        (lambda: sa.inspect(a.to("meta")), ValueError, "matrix: is on the device meta"),
    ):
        with pytest.raises(kind, match=message):
            call()


@pytest.mark.parametrize(
    "options,message",
    [
        ({"effort": []}, r"effort: .* not \[\]"),
        ({"warm": "no"}, "warm: must be True or False, not 'no'"),
        ({"budget_s": "2"}, "budget_s: must be a number from 0 to 86400, not '2'"),
        ({"only": ["a"]}, r"only: must be a text or None, not \['a'\]"),
        ({"choice": 7}, "choice: must be a text or None, not 7"),
        ({"store": 3}, "store: must be a path, a text or None, not 3"),
    ],
)
def test_wrong_options(options, message):
    before = sa.get_options()
    with pytest.raises((TypeError, ValueError), match=message):
        sa.set_options(**options)
    assert sa.get_options() == before


@pytest.mark.parametrize(
    "options,message",
    [
        ({"end": "5"}, "end: must be a whole number of steps, not '5'"),
        ({"end": 5.5}, "end: must be a whole number of steps, not 5.5"),
        ({"end": -1}, "end: must not be negative, is -1"),
        ({"end": 5, "schedule": 3}, "schedule: must be a function or one of cubic, linear, not 3"),
        ({"end": 5, "optimizer": "sgd"}, "optimizer: must be a torch.optim.Optimizer or several, not str"),
        ({"end": 5, "optimizer": 0.5}, "optimizer: must be a torch.optim.Optimizer or several, not float"),
        ({"end": 5, "model": None}, "model: must be an nn.Module, not NoneType"),
    ],
)
def test_wrong_pruners(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sa.BlockPruner(**({"model": torch.nn.Sequential(sa.SparseLinear(8, 8, 4, 1.0))} | options))


def test_wrong_states_of_a_pruner():
    pruner = sa.BlockPruner(torch.nn.Sequential(sa.SparseLinear(8, 8, 4, 1.0)), end=5)
    for state, message in (
        ({}, "state: must have steps and initial"),
        ({"steps": -4, "initial": {"0": 1.0}}, "state: its steps must be a whole number of 0 or more, not -4"),
        ({"steps": 1, "initial": {"0": float("nan")}}, "density: must be from 0 to 1, not nan"),
    ):
        with pytest.raises(ValueError, match=message):
            pruner.load_state_dict(state)


def test_a_file_of_another_shape(tmp_path):
    a = random_bsr(8, 12, 4)
    a.save(tmp_path / "a.safetensors")
    assert sa.BSR.load(tmp_path / "a.safetensors", shape=(8, 12)).shape == (8, 12)
    with pytest.raises(ValueError, match=r"shape: .* says that 'matrix' is 8 x 12, and \(12, 8\) was given"):
        sa.BSR.load(tmp_path / "a.safetensors", shape=(12, 8))


def refused_alike(operator, operands, meta):
    """What the operator refuses, it refuses without memory, too, in the same words; and what it takes, it takes."""
    outcomes = []
    for given in (operands, meta):
        try:
            outcomes.append(operator(*given))
        except (RuntimeError, TypeError) as error:
            outcomes.append(str(error).split("\n")[0].split("sparse_autotune: ")[-1])
    real, fake = outcomes
    assert isinstance(real, str) == isinstance(fake, str), outcomes
    return outcomes


WRONG_OPERANDS = {
    "nothing": {},
    "bias too long": {"bias": torch.randn(9)},
    "bias of two dimensions": {"bias": torch.randn(1, 5)},
    "bias of another dtype": {"bias": torch.randn(5).double()},
    "col_indices too short": {"col_indices": lambda t: t[:-1]},
    "col_indices of another dtype": {"col_indices": lambda t: t.long()},
    "int16": {"col_indices": lambda t: t.short(), "row_offsets": lambda t: t.short()},
    "float indices": {"col_indices": lambda t: t.float(), "row_offsets": lambda t: t.float()},
    "row_offsets too short": {"row_offsets": lambda t: t[:-1]},
    "row_offsets of two dimensions": {"row_offsets": lambda t: t[None]},
    "row_offsets with gaps": {"row_offsets": lambda t: t.repeat_interleave(2)[::2]},
    "values of two dimensions": {"values": lambda t: t[0]},
    "values of int32": {"values": lambda t: t.int(), "dense": lambda t: t.int()},
    "values of a batch that does not fit": {"values": lambda t: t.expand(2, *t.shape), "dense": lambda t: t.expand(3, *t.shape)},
    "batches that broadcast": {"values": lambda t: t.expand(2, 1, *t.shape), "dense": lambda t: t.expand(3, *t.shape)},
    "dense a vector": {"dense": lambda t: t[0]},
    "dense of another dtype": {"dense": lambda t: t.double()},
    "dense of another size": {"dense": lambda t: t[1:, 1:]},
    "blocks too high": {"values": lambda t: torch.randn(t.shape[0], 257, 8), "row_offsets": lambda t: t[:2]},
    "rows negative": {"rows": -1},
}


@pytest.mark.parametrize("name", WRONG_OPERANDS)
@pytest.mark.parametrize("right", [False, True], ids=["left", "right"])
def test_products_without_memory_refuse_the_same(name, right):
    a = random_bsr(20, 24, (4, 8))
    given = {"values": a.values, "row_offsets": a.row_offsets, "col_indices": a.col_indices, "dense": torch.randn(24, 5), "bias": None, "rows": 20, "cols": 24}
    if right:
        given["dense"] = torch.randn(24, 20)
    for key, change in WRONG_OPERANDS[name].items():
        given[key] = change(given[key]) if callable(change) else change
    if right and name == "bias of another dtype":
        given["bias"] = torch.randn(24).double()
    real = (*given.values(), 2 if right else 0)
    meta = tuple(t.to("meta") if isinstance(t, torch.Tensor) else t for t in real)
    if name == "row_offsets with gaps":
        meta = (*meta[:1], meta[1].new_empty_strided(real[1].shape, real[1].stride()), *meta[2:])
    outcomes = refused_alike(torch.ops.sparse_autotune.spmm, real, meta)
    assert isinstance(outcomes[0], str) == (name not in ("nothing", "batches that broadcast")), outcomes
    out = real[0].new_empty(outcomes[0].shape) if not isinstance(outcomes[0], str) else torch.empty(20, 5)
    into = torch.ops.sparse_autotune._spmm_out
    refused_alike(into, (*real, -1, out), (*meta, -1, out.to("meta")))
    added = torch.ops.sparse_autotune._spmm_added
    refused_alike(added, (*real, -1, out.clone(), out), (*meta, -1, out.to("meta"), out.to("meta")))
    for wrong in (out[..., :-1], out.double(), out.mT.contiguous().mT):
        assert isinstance(refused_alike(into, (*real, -1, wrong), (*meta, -1, wrong.to("meta")))[0], str)
        for pair in ((wrong, out), (out, wrong)):
            assert isinstance(refused_alike(added, (*real, -1, *pair), (*meta, -1, *(t.to("meta") for t in pair)))[0], str)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"x": lambda t: t[1:]},
        {"y": lambda t: t[:, 1:]},
        {"y": lambda t: t[1:]},
        {"y": lambda t: t.double()},
        {"x": lambda t: t[0]},
        {"x": lambda t: t.int(), "y": lambda t: t.int()},
        {"x": lambda t: t.expand(2, *t.shape), "y": lambda t: t.expand(3, *t.shape)},
        {"row_offsets": lambda t: t[:-1]},
        {"col_indices": lambda t: t.long()},
        {"block_rows": 0},
    ],
    ids=lambda change: ", ".join(change) or "nothing",
)
def test_sddmm_without_memory_refuses_the_same(change):
    a = random_bsr(20, 24, (4, 8))
    given = {"x": torch.randn(20, 6), "y": torch.randn(6, 24), "row_offsets": a.row_offsets, "col_indices": a.col_indices}
    given |= {"rows": 20, "cols": 24, "block_rows": 4, "block_cols": 8, "flags": 0}
    for key, other in change.items():
        given[key] = other(given[key]) if callable(other) else other
    real = tuple(given.values())
    outcomes = refused_alike(torch.ops.sparse_autotune.sddmm, real, tuple(t.to("meta") if isinstance(t, torch.Tensor) else t for t in real))
    assert isinstance(outcomes[0], str) == bool(change), outcomes


def _flagged(name, flags):
    a = random_bsr(20, 24, (4, 8))
    indices, numbers = (a.row_offsets, a.col_indices), (20, 24)
    q = torch.randn(1, 2, 8, 4)
    operands = {
        "spmm": (a.values, *indices, torch.randn(24, 5), None, *numbers, flags),
        "sddmm": (torch.randn(20, 6), torch.randn(6, 24), *indices, *numbers, 4, 8, flags),
        "gemm": (torch.randn(3, 4), torch.randn(4, 5), None, None, None, flags),
        "attention": (q, q, q, None, None, 1, 1, 1, 1, 0, 0, 0, None, 0.0, flags),
    }[name]
    return operands, tuple(t.to("meta") if isinstance(t, torch.Tensor) else t for t in operands)


@pytest.mark.parametrize("flags", [1 << 20, 1 << 40, -1])
@pytest.mark.parametrize("name", ["spmm", "sddmm", "gemm", "attention"])
def test_unknown_flags(name, flags):
    real, fake = refused_alike(getattr(torch.ops.sparse_autotune, name), *_flagged(name, flags))
    assert real == fake and real.startswith(f"flags: {flags} has bits that this operator does not know"), (real, fake)
    assert not isinstance(refused_alike(getattr(torch.ops.sparse_autotune, name), *_flagged(name, 0))[0], str)


def test_flags_that_exclude_each_other():
    real, fake = refused_alike(torch.ops.sparse_autotune.attention, *_flagged("attention", _numbers.CAUSAL | _numbers.TOP_LEFT | _numbers.BOTTOM_RIGHT))
    assert real == fake and "says top_left and bottom_right" in real
    for other in (_numbers.TRANS, _numbers.FACTOR):  # of other operators
        assert "that this operator does not know" in refused_alike(torch.ops.sparse_autotune.attention, *_flagged("attention", other))[0]


def test_programs_that_could_never_run_are_not_exported():
    class Product(torch.nn.Module):
        def __init__(self, bias, col_indices):
            super().__init__()
            self.a, self.bias, self.col_indices = random_bsr(20, 24, (4, 8)), bias, col_indices

        def forward(self, x):
            a = self.a if self.col_indices is None else sa.BSR(self.a.row_offsets, self.col_indices, self.a.values, self.a.shape)
            return sa.matmul(x, a, bias=self.bias)

    x = torch.randn(3, 20)
    program = torch.export.export(Product(torch.randn(24), None), (x,))
    assert program.module()(x).shape == (3, 24)
    for wrong in (Product(torch.randn(9), None), Product(torch.randn(24).double(), None), Product(None, random_bsr(20, 24, (4, 8)).col_indices.long())):
        with pytest.raises(Exception, match="sparse_autotune: (bias|B.col_indices): "):
            torch.export.export(wrong, (x,))


WRONG_INDICES = {"out of range": ([0, 1, 2], [7, 0]), "falls": ([0, 2, 1], [0, 1]), "twice": ([0, 2, 2], [1, 1]), "ends early": ([0, 1, 1], [0, 1])}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged, "quantized"], ids=str)
def test_nested_and_quantized_operands(layout, capfd):
    """In words: what PyTorch has to say of them is an internal error, with C++ traces on stderr."""
    a, layer, x = random_bsr(8, 8, 4, density=1), sa.SparseLinear(8, 8, 4, 0.5), torch.randn(8, 3)
    if layout == "quantized":
        wrong = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
        message = "not (a quantized one|qint8)"
    else:
        wrong = torch.nested.nested_tensor([torch.randn(8, 3), torch.randn(8, 2)], layout=layout)
        message = "not (a nested one|nested ones|torch.jagged)"
    for call in (
        lambda: sa.matmul(a, wrong),
        lambda: sa.matmul(wrong, a),
        lambda: sa.matmul(a, x, out=wrong),
        lambda: sa.matmul(x.mT, a, bias=wrong),
        lambda: layer(wrong),
        lambda: sa.gated(wrong, layer, layer),
        lambda: sa.sddmm(a, wrong, wrong),
        lambda: sa.tune(a, wrong),
        lambda: sa.BSR.from_dense(wrong, 4),
    ):
        with pytest.raises((TypeError, RuntimeError), match=message):
            call()
    if layout is not torch.jagged:  # takes the call itself, and says what is wrong
        with pytest.raises((TypeError, RuntimeError), match=message):
            torch.nn.functional.linear(wrong, sa.SparseWeight(a))
    if layout != "quantized":
        for parts in ((wrong, a.col_indices, a.values), (a.row_offsets, wrong, a.values), (a.row_offsets, a.col_indices, wrong)):
            with pytest.raises(TypeError, match="must be dense tensors, not nested ones"):
                sa.BSR(*parts, (8, 8))
    assert "Exception" not in capfd.readouterr().err


def test_nothing_is_measured_on_meta():
    a, x = random_bsr(8, 8, 4, density=1), torch.randn(8, 3)
    meta = sa.BSR(a.row_offsets.to("meta"), a.col_indices.to("meta"), a.values.to("meta"), a.shape)
    for wrong in (meta, a.with_values(meta.values)):
        for call in (sa.tune, sa.explain, sa.benchmark):
            with pytest.raises(ValueError, match="A: is on the device meta, where nothing can be measured"):
                call(wrong, x)
    with pytest.raises(ValueError, match="B: is on the device meta"):
        sa.tune(x.mT, meta)
    with pytest.raises(ValueError, match="pattern: is on the device meta"):
        sa.tune(meta, x, x.mT)


def test_a_density_of_no_block_is_told():
    linear = torch.nn.Linear(10, 10)
    told = "density: 0.1 of 1 x 1 blocks is no block: the matrix is zero"
    for make in (
        lambda: sa.SparseLinear.from_linear(linear, block=64, density=0.1),
        lambda: sa.SparseLinear(10, 10, 64, 0.1),
        lambda: sa.BSR.from_dense(linear.weight.detach(), 64, density=0.1),
    ):
        with pytest.warns(sa.SparseAutotuneWarning, match=told):
            assert make().nnzb == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sa.SparseLinear.from_linear(linear, block=64, density=0.0).nnzb == 0
        assert sa.SparseLinear(0, 10, 64, 0.1).nnzb == 0


@pytest.mark.parametrize("name", WRONG_INDICES)
def test_wrong_indices_in_files(tmp_path, name):
    safetensors = pytest.importorskip("safetensors.torch")
    row_offsets, col_indices = (torch.tensor(indices, dtype=torch.int32) for indices in WRONG_INDICES[name])
    wrong, file = sa.BSR(row_offsets, col_indices, torch.ones(2, 4, 4), (8, 8)), tmp_path / "wrong.safetensors"
    with pytest.raises(ValueError, match="row_offsets|col_indices"):
        wrong.save(file)
    assert not file.exists()
    note = dict(rows=8, cols=8, block_rows=4, block_cols=4, block_layout="row")
    parts = {"a.row_offsets": row_offsets, "a.col_indices": col_indices, "a.values": wrong.values}
    safetensors.save_file(parts, file, metadata={"sparsek.bsr.a": json.dumps(note)})
    with pytest.raises(ValueError, match="row_offsets|col_indices"):
        sa.BSR.load(file)


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(block_rows=0), r"blocks of 0 x 4; its values have the shape \[2, 4, 4\]"),
        (dict(block_cols=2), "blocks of 4 x 2"),
        (dict(rows="8"), "lacks a whole number for rows"),
        (dict(cols=8.5), "lacks a whole number"),
        (dict(rows=None), "lacks a whole number"),
        (dict(block_layout="diagonal"), "or a block_layout of row or col"),
        (dict(rows=-8), "shape: sizes must not be negative"),
        (dict(rows=12), "row_offsets: has 3 entries; a matrix of 12 rows"),
    ],
)
def test_files_that_say_what_is_not_so(tmp_path, change, message):
    safetensors = pytest.importorskip("safetensors.torch")
    a, file = bsr([0, 1, 2], [0, 1]), tmp_path / "a.safetensors"
    note = dict(rows=8, cols=8, block_rows=4, block_cols=4, block_layout="row") | change
    parts = {"a.row_offsets": a.row_offsets, "a.col_indices": a.col_indices, "a.values": a.values}
    safetensors.save_file(parts, file, metadata={"sparsek.bsr.a": json.dumps(note)})
    with pytest.raises(ValueError, match=message):
        sa.BSR.load(file)
