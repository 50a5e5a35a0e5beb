"""Wrong indices are refused by all that reads them, products or not: nothing beyond a tensor is read, and no wrong matrix is made without a word."""

import pytest
import torch
from conftest import random_bsr

import sparse_autotune as sa


def matrix(offsets, columns, shape=(8, 8), dtype=torch.int32):
    return sa.BSR(torch.tensor(offsets, dtype=dtype), torch.tensor(columns, dtype=dtype), torch.ones(len(columns), 4, 4), shape)


def strided():
    return sa.BSR(torch.tensor([0, 9, 1, 9, 2, 9]).int()[::2], torch.tensor([0, 1]).int(), torch.ones(2, 4, 4), (8, 8))


WRONG = {
    "short offsets": lambda: sa.BSR(torch.zeros(1, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), torch.zeros(0, 1, 1), (10**8, 4)),
    "int16": lambda: matrix([0, 1, 2], [0, 1], dtype=torch.int16),
    "float": lambda: matrix([0, 1, 2], [0, 1], dtype=torch.float32),
    "two dtypes": lambda: sa.BSR(torch.tensor([0, 1, 2]), torch.tensor([0, 1]).int(), torch.ones(2, 4, 4), (8, 8)),
    "two dimensions": lambda: sa.BSR(torch.tensor([[0, 1, 2]]), torch.tensor([0, 1]), torch.ones(2, 4, 4), (8, 8)),
    "begins late": lambda: matrix([1, 1, 2], [0, 1]),
    "falls": lambda: matrix([0, 2, 1], [0, 1]),
    "ends early": lambda: matrix([0, 1, 1], [0, 1]),
    "ends late": lambda: matrix([0, 1, 9], [0, 1]),
    "negative column": lambda: matrix([0, 1, 2], [0, -1]),
    "column too large": lambda: matrix([0, 1, 2], [0, 2]),
    "column beyond int32": lambda: matrix([0, 1, 2], [0, 2**32 + 1], dtype=torch.int64),
    "unsorted": lambda: matrix([0, 2, 2], [1, 0]),
    "twice": lambda: matrix([0, 2, 2], [1, 1]),
}
READERS = {
    "inspect": sa.inspect,
    "to_dense": lambda a: a.to_dense(),
    "transpose": lambda a: a.transpose(),
    "to_torch": lambda a: a.to_torch(),
    "to_scipy": lambda a: a.to_scipy(),
    "layer": lambda a: sa.SparseLinear(a.shape[1], a.shape[0], pattern=a),
    "buffer": sa.SparseBuffer,
    "product": lambda a: a @ torch.zeros(a.shape[1], 2),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("reader", READERS)
def test_wrong_indices_are_refused(reader, wrong):
    if reader == "to_scipy":
        pytest.importorskip("scipy")
    with pytest.raises((ValueError, RuntimeError), match="row_offsets|col_indices"):
        READERS[reader](WRONG[wrong]())


def test_inspect_takes_what_is_not_contiguous():
    assert sa.inspect(strided())


def test_messages_name_the_place():
    with pytest.raises(ValueError, match=r"col_indices\[1\] is 0 and comes after 1 in its block row: .* sa.BSR.from_scipy sorts"):
        WRONG["unsorted"]().to_dense()
    with pytest.raises(ValueError, match=r"col_indices\[1\] is 1 and is a second time in its block row"):
        WRONG["twice"]().to_dense()
    with pytest.raises(ValueError, match=r"row_offsets\[2\] is 1, less than row_offsets\[1\], 2"):
        WRONG["falls"]().to_dense()
    with pytest.raises(RuntimeError, match="sa.BSR.from_scipy sums duplicates"):
        READERS["product"](WRONG["twice"]())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_right_indices_are_taken(dtype):
    for shape, block, density in (((37, 50), (3, 7), 0.4), ((8, 8), 4, 1.0), ((64, 20), (1, 5), 0.1), ((12, 12), 4, 0.0)):
        a = random_bsr(*shape, block, density=density)
        a = sa.BSR(a.row_offsets.to(dtype), a.col_indices.to(dtype), a.values, a.shape)
        a.check_indices()
        torch.testing.assert_close(a.transpose().to_dense(), a.to_dense().mT)
        assert sa.inspect(a).nnzb == a.nnzb
