"""Nothing reaches the library that could crash it: errors name the argument."""

import pytest
import torch
from conftest import close, random_bsr

import sparse_autotune as sa


def bsr(row_offsets, col_indices, shape=(8, 8), block=4, nnzb=None, dtype=torch.float32):
    values = torch.randn(len(col_indices) if nnzb is None else nnzb, block, block).to(dtype)
    return sa.BSR(torch.tensor(row_offsets, dtype=torch.int32), torch.tensor(col_indices, dtype=torch.int32), values, shape)


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
        (bsr([0, 1, 2], [0, 1], dtype=torch.int32), "values: its dtype"),
        (bsr([0, 1, 2], [0, 1], shape=(8, -8)), "shape"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_wrong_matrices(matrix, message):
    with pytest.raises(RuntimeError, match=message):
        matrix @ torch.zeros(8, 3).to(matrix.dtype)


def test_wrong_operands():
    a = random_bsr(8, 8, 4)
    with pytest.raises(RuntimeError, match="dense: its shape"):
        a @ torch.randn(9, 3)
    with pytest.raises(RuntimeError, match="dense: its dtype"):
        a @ torch.randn(8, 3).double()
    with pytest.raises(TypeError, match="A: neither"):
        sa.matmul(torch.randn(8, 8), torch.randn(8, 8))
    with pytest.raises(TypeError, match="B: must be a dense tensor"):
        sa.matmul(a, a)
    with pytest.raises(TypeError, match="A: must be torch.sparse_bsr"):
        sa.matmul("a", torch.randn(8, 8))
    with pytest.raises(RuntimeError, match="bias"):
        sa.matmul(a, torch.randn(8, 3), bias=torch.randn(8))
    with pytest.raises(ValueError, match="activation"):
        sa.matmul(a, torch.randn(8, 3), activation="softplus")
    with pytest.raises(RuntimeError, match="x: its shape"):
        sa.sddmm(a, torch.randn(9, 3), torch.randn(3, 8))
    with pytest.raises(RuntimeError, match="y: has 4 rows"):
        sa.sddmm(a, torch.randn(8, 3), torch.randn(4, 8))
    with pytest.raises(ValueError, match="values"):
        sa.BSR(a.row_offsets, a.col_indices, torch.randn(4, 4), (8, 8))
    with pytest.raises(RuntimeError, match="values: blocks must be 1 to 256"):
        sa.BSR(torch.tensor([0, 1]), torch.tensor([0]), torch.randn(1, 300, 4), (300, 4)) @ torch.randn(4, 1)
    with pytest.raises(RuntimeError, match="device"):
        a.with_values(a.values.to("meta")) @ torch.randn(8, 3)


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
    for wrong in ({"effort": "huge"}, {"unknown": "guess"}, {"budget_s": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sa.set_options(**wrong)
    with pytest.raises(TypeError, match="nonsense"):
        sa.set_options(nonsense=1)
    a = random_bsr(64, 64, 16)
    sa.set_options(effort="measure", unknown="fail")
    with pytest.raises(RuntimeError, match="class"):
        a @ torch.randn(64, 8)
    sa.set_options(unknown="tune", budget_s=0.05)
    with sa.no_tuning():
        close(a @ torch.eye(64), a.to_dense())


def test_versions_agree():
    import pathlib
    import re

    from sparse_autotune import _C

    assert sa.__version__ == _C.version()
    project = pathlib.Path(__file__).parents[2] / "pyproject.toml"
    if project.exists():
        assert re.search(r'^version = "(.*?)"', project.read_text(), re.M).group(1) == sa.__version__
