"""Programs of torch.export whose inputs and results are sparse, before and after they are saved."""

import io
import warnings

import numpy
import pytest
import torch

import sparse_autotune as sa


class Product(torch.nn.Module):
    def forward(self, a, x):
        return sa.matmul(a, x)


class Scaled(torch.nn.Module):
    """Its result is sparse, too."""

    def forward(self, given):
        return {"made": given["matrices"][0].with_values(given["matrices"][0].values * 2), "mask": given["mask"]}


class Attention(torch.nn.Module):
    def forward(self, q, mask):
        return sa.attention(q, q, q, mask=mask)


def matrix():
    return sa.BSR.from_dense(torch.randn(18, 14), (4, 3), density=0.5)


def masks():
    pairs = sa.BlockMask.from_pairs(torch.rand(2, 16, 16) < 0.4, 8)
    return [sa.BlockMask.from_dense(torch.tensor([[True, False], [True, True]]), 8), pairs, sa.BlockMask.causal(16, (4, 8))]


def saved_and_loaded(program):
    kept = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, kept)
    kept.seek(0)
    return torch.export.load(kept)


def flat(result):
    return torch.utils._pytree.tree_leaves(result)


@pytest.mark.parametrize("case", ["matrix", "sizes of NumPy", "tree", *(f"mask {i}" for i in range(3))])
def test_saved_programs_take_what_they_took(case):
    a, q = matrix(), torch.randn(1, 2, 16, 8)
    if case == "sizes of NumPy":
        a = sa.BSR(a.row_offsets, a.col_indices, a.values, tuple(numpy.array(a.shape)))
    if case.startswith("mask"):
        module, given = Attention(), (q, masks()[int(case[-1])])
    else:
        module, given = (Scaled(), ({"matrices": [a, matrix()], "mask": masks()[1]},)) if case == "tree" else (Product(), (a, torch.randn(14, 3)))
    program = torch.export.export(module, given)
    wanted = module(*given)
    for one in (program, saved_and_loaded(program), saved_and_loaded(saved_and_loaded(program))):
        found = one.module()(*given)
        assert torch.utils._pytree.tree_structure(found) == torch.utils._pytree.tree_structure(wanted)
        assert all(torch.equal(left, right) for left, right in zip(flat(found), flat(wanted), strict=True))


@pytest.mark.parametrize("make", [matrix, *(lambda i=i: masks()[i] for i in range(3))])
def test_trees_of_text(make):
    pytree = torch.utils._pytree
    spec = pytree.tree_structure({"given": [make(), 1]})
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
