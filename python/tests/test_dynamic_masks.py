"""Masks that are new at nearly every call: what keeps the word, and that nobody waits for them on CUDA."""

import copy
import io
import pickle

import pytest
import torch
from conftest import TOLERANCE, close
from test_attention import formula, operands, written_out

import sparse_autotune as sa
from sparse_autotune import _C

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
MOST_KEPT = 16  # of dynamic masks, in the extension's cache


def chosen(shape, top_k=3, block=64, device="cpu"):
    return sa.BlockMask.from_scores(torch.randn(shape, device=device), top_k, block)


def staying(mask):
    """The same tensors, of a mask that is not dynamic."""
    made = copy.copy(mask)
    made.dynamic = False
    assert made.columns is mask.columns and mask.dynamic
    return made


def agrees(o, q, k, v, mask):
    close(o.cpu(), formula(q, k, v, written_out(mask, q.shape[1]).cpu())[0])


def wide(dtype=torch.bfloat16, batch=2, heads=4, heads_kv=2, queries=256, keys=320, device="cuda"):
    return operands(batch, heads, heads_kv, queries, keys, 64, dtype=dtype, device=device)


# ------------------------------------------------------------------------------------------------ the word


def test_who_is_dynamic():
    mask = chosen((2, 4, 5))
    assert mask.dynamic and sa.BlockMask.from_scores(torch.randn(4, 5), 9, 64).dynamic
    assert not sa.BlockMask.causal(128, 64).dynamic and not sa.BlockMask.from_dense(torch.ones(2, 2, dtype=torch.bool), 64).dynamic
    given = sa.BlockMask(mask.offsets, mask.columns, 64, mask.shape, heads=2, dynamic=True)
    assert given.dynamic and torch.equal(given.to_dense(), mask.to_dense())
    with pytest.raises(TypeError, match="dynamic: must be True or False, not 1"):
        sa.BlockMask(mask.offsets, mask.columns, 64, mask.shape, heads=2, dynamic=1)
    assert sa.BlockMask.stack([mask, staying(mask)]).dynamic and not sa.BlockMask.stack([staying(mask)]).dynamic
    assert not (mask | mask).dynamic and not (mask & mask).dynamic  # for these the host has read the lists


def test_copies_keep_it():
    saved = io.BytesIO()
    for mask in (chosen((2, 4, 5)), staying(chosen((2, 4, 5)))):
        saved.seek(0)
        torch.save(mask, saved)
        saved.seek(0)
        leaves, tree = torch.utils._pytree.tree_flatten(mask)
        tree = torch.utils._pytree.treespec_loads(torch.utils._pytree.treespec_dumps(tree))
        copies = [pickle.loads(pickle.dumps(mask)), torch.load(saved, weights_only=True), mask.to("cpu"), copy.copy(mask), copy.deepcopy(mask)]
        for made in (*copies, torch.utils._pytree.tree_unflatten(leaves, tree), torch.utils._pytree.tree_map(torch.clone, mask)):
            assert made.dynamic is mask.dynamic and torch.equal(made.to_dense(), mask.to_dense())


def test_results_are_the_same(dtype, device):
    q, k, v = wide(dtype, device=device)
    mask = chosen((2, 4, 5), device=device)
    o, lse = sa.attention(q, k, v, mask=mask, causal="bottom_right", return_lse=True)
    want, want_lse = sa.attention(q, k, v, mask=staying(mask), causal="bottom_right", return_lse=True)
    close(o, want)
    torch.testing.assert_close(lse, want_lse, rtol=1e-4, atol=1e-4)
    agrees(sa.attention(q, k, v, mask=mask), q, k, v, mask)


def test_gradients_are_the_same(device):
    """Where they are wanted the mask is as any other: the same kernels give the same bits."""
    mask = chosen((2, 4, 5), device=device)
    q, k, v = (t.requires_grad_() for t in wide(device=device))
    made = []
    for one in (mask, staying(mask)):
        o = sa.attention(q, k, v, mask=one)
        made.append((o.detach(), *torch.autograd.grad(o, (q, k, v), torch.ones_like(o))))
    for got, want in zip(*made, strict=True):
        assert torch.equal(got, want)


def test_functional_gradients(device):
    mask = chosen((2, 4, 5), device=device)
    q, k, v = wide(torch.float32, device=device)
    made, want = (torch.func.grad(lambda q, one=one: sa.attention(q, k, v, mask=one).square().sum())(q) for one in (mask, staying(mask)))
    assert torch.equal(made, want)


def select_and_attend(q, k, v, scores):
    return sa.attention(q, k, v, mask=sa.BlockMask.from_scores(scores, 3, 64))


def test_compiled(device):
    compiled = torch.compile(select_and_attend, fullgraph=True, backend="aot_eager")
    q, k, v = wide(torch.float32, device=device)
    for _ in range(2):
        scores = torch.randn(2, 4, 5, device=device)
        close(compiled(q, k, v, scores), select_and_attend(q, k, v, scores))
    masked = torch.compile(lambda q, k, v, mask: sa.attention(q, k, v, mask=mask), fullgraph=True, backend="aot_eager")
    for mask in (chosen((2, 4, 5), device=device), staying(chosen((2, 4, 5), device=device))):
        agrees(masked(q, k, v, mask), q, k, v, mask)
    q.requires_grad_()
    (got,), (want,) = (torch.autograd.grad(run(q, k, v, scores).square().sum(), q) for run in (compiled, select_and_attend))
    close(got, want)


def test_exported(device):
    class Layer(torch.nn.Module):
        def forward(self, *given):
            return select_and_attend(*given)

    given = (*wide(torch.float32, device=device), torch.randn(2, 4, 5, device=device))
    exported, saved = torch.export.export(Layer(), given), io.BytesIO()
    torch.export.save(exported, saved)
    saved.seek(0)
    for program in (exported, torch.export.load(saved)):
        close(program.module()(*given), Layer()(*given))


# ------------------------------------------------------------------------------------------------ CUDA


@needs_cuda
@pytest.mark.parametrize("lists", ["one", "heads of k", "heads of q", "items", "items and heads"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lists(dtype, lists):
    q, k, v = wide(dtype)
    shape = {"one": (4, 5), "heads of k": (2, 4, 5), "heads of q": (4, 4, 5), "items": (2, 1, 4, 5), "items and heads": (2, 2, 4, 5)}[lists]
    mask = chosen(shape, device="cuda")
    o = sa.attention(q, k, v, mask=mask)
    agrees(o, q, k, v, mask)
    close(o, sa.attention(q, k, v, mask=staying(mask)))


@needs_cuda
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_uneven_lists(index):
    """Empty ones, long ones, and a part of a block at the edge; the host is told nothing of their lengths."""
    q, k, v = wide(queries=250, keys=300)
    seen = torch.rand(2, 4, 5) < 0.4
    seen[:, 1], seen[:, 2] = False, True
    made = sa.BlockMask.from_dense(seen, 64, shape=(250, 300)).to("cuda")
    mask = sa.BlockMask(made.offsets.to(index), made.columns.to(index), 64, made.shape, 2, dynamic=True)
    agrees(sa.attention(q, k, v, mask=mask), q, k, v, mask)


@needs_cuda
def test_tiles_of_bits():
    q, k, v = wide()
    mask = sa.BlockMask.from_pairs(torch.rand(256, 320, device="cuda") < 0.5, 64)
    mask.dynamic = True
    close(sa.attention(q, k, v, mask=mask), sa.attention(q, k, v, mask=staying(mask)))


@needs_cuda
def test_nobody_waits():
    """The calls come back while the stream is busy with what was put on it before them."""
    q, k, v = wide()
    scores = [torch.randn(2, 4, 5, device="cuda") for _ in range(4)]
    with torch.no_grad():
        for one in scores[:2]:
            select_and_attend(q, k, v, one)
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000_000)  # about a second
        made = [select_and_attend(q, k, v, one) for one in scores]
        done = torch.cuda.Event()
        done.record()
        assert not done.query()
    for o, one in zip(made, scores, strict=True):
        agrees(o, q, k, v, sa.BlockMask.from_scores(one, 3, 64))


@needs_cuda
def test_the_same_mask_again():
    sa.clear_cache()
    q, k, v = wide()
    mask = chosen((2, 4, 5), device="cuda")
    first = sa.attention(q, k, v, mask=mask)
    kept = _C.cached_patterns()
    assert kept[0] == 1 and torch.equal(sa.attention(q, k, v, mask=mask), first) and _C.cached_patterns() == kept
    sa.attention(q, k, v, mask=staying(mask))  # one that the host knows is another
    assert _C.cached_patterns()[0] == 2
    for one in (mask, staying(mask)):
        sa.attention(q, k, v, mask=one)
    assert _C.cached_patterns()[0] == 2


@needs_cuda
def test_changed_in_place():
    q, k, v = wide()
    mask = chosen((2, 4, 5), device="cuda")
    for _ in range(3):
        mask.columns.copy_(chosen((2, 4, 5), device="cuda").columns)
        agrees(sa.attention(q, k, v, mask=mask), q, k, v, mask)


@needs_cuda
def test_inference_mode():
    """Nothing counts changes of its tensors: each call has a pattern of its own."""
    q, k, v = wide()
    with torch.inference_mode():
        mask = chosen((2, 4, 5), device="cuda")
        sa.attention(q, k, v, mask=mask)
        kept = _C.cached_patterns()
        for _ in range(3):
            mask.columns.copy_(chosen((2, 4, 5), device="cuda").columns)
            agrees(sa.attention(q, k, v, mask=mask), q, k, v, mask)
        assert _C.cached_patterns() == kept


@needs_cuda
def test_two_streams():
    q, k, v = wide()
    mask, other = chosen((2, 4, 5), device="cuda"), torch.cuda.Stream()
    first = sa.attention(q, k, v, mask=mask)
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        second = sa.attention(q, k, v, mask=mask)
    torch.cuda.current_stream().wait_stream(other)
    assert torch.equal(first, second)
    agrees(second, q, k, v, mask)


@needs_cuda
def test_many_masks():
    """300 in a row: few are kept, and memory does not grow with their number."""
    sa.clear_cache()
    q, k, v = wide()
    taken = []
    with torch.no_grad():
        for i in range(300):
            mask = chosen((2, 4, 5), device="cuda")
            o = sa.attention(q, k, v, mask=mask)
            if i % 60 == 59:
                agrees(o, q, k, v, mask)
                taken.append(torch.cuda.memory_allocated())
            assert _C.cached_patterns()[0] <= MOST_KEPT
    assert max(taken) <= taken[0] + (1 << 20)


@needs_cuda
def test_others_stay_known():
    """Masks that come and go do not push out one that stays."""
    sa.clear_cache()
    q, k, v = wide()
    known = staying(chosen((2, 4, 5), device="cuda"))
    want = sa.attention(q, k, v, mask=known)
    for _ in range(200):
        sa.attention(q, k, v, mask=chosen((2, 4, 5), device="cuda"))
    assert _C.cached_patterns()[0] == MOST_KEPT + 1
    assert torch.equal(sa.attention(q, k, v, mask=known), want) and _C.cached_patterns()[0] == MOST_KEPT + 1


@needs_cuda
@pytest.mark.parametrize("effort", ["estimate", "measure"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_captured_with_its_selection(dtype, effort):
    """Scores, selection and attention in one graph: each replay sees the mask of its scores."""
    sa.set_options(effort=effort, budget_s=0.1)
    q, k, v = wide(dtype)
    scores = torch.randn(2, 4, 5, device="cuda")
    with torch.no_grad():
        select_and_attend(q, k, v, scores)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            made = [select_and_attend(q, k, v, scores + step) for step in (0, 1)]  # the second may take the memory of the first one's mask
        sa.clear_cache()
        for _ in range(3):
            scores.normal_()
            v.normal_()
            graph.replay()
            mask = sa.BlockMask.from_scores(scores, 3, 64)
            for o in made:
                agrees(o, q, k, v, mask)


@needs_cuda
def test_captured_alone():
    """A mask from outside of the graph is read at each replay, in inference mode, too."""
    q, k, v = wide()
    for inference in (False, True):
        with torch.inference_mode(inference), torch.no_grad():
            mask = chosen((2, 4, 5), device="cuda")
            sa.attention(q, k, v, mask=mask)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                made = sa.attention(q, k, v, mask=mask)
            for _ in range(3):
                mask.columns.copy_(chosen((2, 4, 5), device="cuda").columns)
                graph.replay()
                agrees(made, q, k, v, mask)


@needs_cuda
def test_wrong_indices():
    """A later call with the same mask says so, and none with another one."""
    q, k, v = wide()
    right = chosen((2, 4, 5), device="cuda")
    columns = right.columns.clone()
    columns[4] = 9
    wrong = sa.BlockMask(right.offsets, columns, 64, right.shape, 2, dynamic=True)
    sa.attention(q, k, v, mask=right)
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)  # both calls come before the GPU has looked
    made, beside = sa.attention(q, k, v, mask=wrong), sa.attention(q, k, v, mask=right)
    torch.cuda.synchronize()
    assert (made == 0).all()
    agrees(beside, q, k, v, right)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"columns\[4\] = 9: block columns are 0\.\.4"):
            sa.attention(q, k, v, mask=wrong)
        agrees(sa.attention(q, k, v, mask=right), q, k, v, right)
    columns.copy_(right.columns)
    assert torch.allclose(sa.attention(q, k, v, mask=wrong), beside, rtol=0, atol=TOLERANCE[torch.bfloat16])
