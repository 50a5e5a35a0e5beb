"""PyTorch's default device and default dtype are the caller's: what the package makes for itself lies where the operands are.

A sweep over the public functions under torch.device("meta"), which stands for torch.set_default_device("cuda"), too; and a look at the source.
"""

import ast
import itertools
import pathlib

import pytest
import torch
from torch.utils._device import _device_constructors

import sparse_autotune as sa

FOLDER = pathlib.Path(__file__).parents[1] / "sparse_autotune"
MAKERS = {function.__name__ for function in _device_constructors()} - {"sparse_compressed_tensor_with_dims"}
OF_DEFAULT_DTYPE = {"zeros", "ones", "empty", "full", "eye", "rand", "randn", "linspace", "tensor", "empty_strided", "scalar_tensor"}


def calls_of_makers(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
            if node.func.attr in MAKERS:
                yield node, {word.arg for word in node.keywords}


def test_each_made_tensor_names_its_device_and_dtype():
    found = []
    for path in sorted(FOLDER.rglob("*.py")):
        for node, words in calls_of_makers(path):
            if None in words:  # **options
                continue
            missing = [word for word in ("device", "dtype") if word not in words and (word == "device" or node.func.attr in OF_DEFAULT_DTYPE)]
            if missing:
                found.append(f"{path.relative_to(FOLDER)}:{node.lineno}: torch.{node.func.attr} without {' and '.join(missing)}")
    assert MAKERS >= {"zeros", "arange", "tensor", "sparse_bsr_tensor"}
    assert not found, "\n".join(found)


def size(number):
    """Of what is no tensor."""
    return torch.zeros(int(number), dtype=torch.float32, device="cpu")


def operands():
    torch.manual_seed(3)
    a = sa.BSR.from_dense(torch.randn(16, 16), 4, density=0.5)
    mask, q = sa.BlockMask.from_pairs(torch.rand(16, 16) < 0.5, 8), torch.randn(1, 2, 16, 8)
    return a, torch.randn(16, 16), q, mask, (torch.rand(16, 16) < 0.5), torch.randn(2, 2), torch.tensor([5, 11])


def calls(folder):
    """Public functions of operands on the CPU: each gives tensors, or what holds some, on the CPU."""
    a, x, q, mask, pairs, scores, lengths = operands()
    ends, table = torch.tensor([5, 16], dtype=torch.int32), torch.tensor([[1, 0]], dtype=torch.int32)
    layer, buffer = sa.SparseLinear(16, 16, 4, 0.5), sa.SparseBuffer(a)
    linear = torch.nn.Linear(16, 16)
    scipy = a.to_scipy()
    state = layer.state_dict()
    a.save(folder / "given.safetensors")
    grown = a.with_values(a.values.clone().requires_grad_())
    seeded = lambda make: (torch.manual_seed(5), make())[1]  # noqa: E731
    made = {
        "matmul": lambda: a @ x,
        "matmul from the right": lambda: x @ a,
        "transposed": lambda: sa.matmul(a, x, transpose=True, bias=x[0], activation="gelu"),
        "of torch.sparse_bsr": lambda: sa.matmul(a.to_torch(), x),
        "of SciPy": lambda: sa.matmul(scipy, x),
        "gradients": lambda: torch.autograd.grad((grown @ x).sum(), grown.values)[0],
        "gradient of torch.sparse_bsr": lambda: torch.autograd.grad(
            (sa.matmul(torch.sparse_bsr_tensor(a.row_offsets, a.col_indices, grown.values, a.shape, device="cpu"), x)).sum(), grown.values
        )[0],
        "bsr_gemm": lambda: sa.bsr_gemm(a.row_offsets, a.col_indices, a.values, x),
        "sddmm": lambda: sa.sddmm(a, x, x).values,
        "gemm": lambda: sa.gemm(x, x, bias=x[0], activation="relu", residual=x),
        "grouped_gemm": lambda: sa.grouped_gemm(x, torch.stack([x, x]), ends),
        "repr": lambda: size(len(repr(a)) + len(repr(mask))),
        "from_dense": lambda: sa.BSR.from_dense(x, 4, density=0.3).to_dense(),
        "from_dense, non-zeros": lambda: sa.BSR.from_dense(x, (3, 5)).to_dense(),
        "from_pattern": lambda: sa.BSR.from_pattern(a.row_offsets, a.col_indices, 4, (16, 16), dtype=torch.float32).to_dense(),
        "from_scipy": lambda: sa.BSR.from_scipy(scipy).to_dense(),
        "from_scipy in ragged blocks": lambda: sa.BSR.from_scipy(scipy, 5).to_dense(),
        "from_torch": lambda: sa.BSR.from_torch(a.to_torch()).to_dense(),
        "from_dlpack": lambda: sa.BSR.from_dlpack(a.row_offsets, a.col_indices, a.values, a.shape).to_dense(),
        "to_torch": lambda: a.to_torch().values(),
        "to_dense": a.to_dense,
        "transpose": lambda: a.T.to_dense(),
        "to": lambda: a.to(torch.float64).to_dense(),
        "save, load": lambda: (a.save(folder / "again.safetensors"), sa.BSR.load(folder / "again.safetensors").to_dense())[1],
        "load": lambda: sa.BSR.load(folder / "given.safetensors").values,
        "SparseBuffer": lambda: sa.SparseBuffer(a)(x),
        "a buffer's state": lambda: (buffer.load_state_dict(buffer.state_dict()), buffer(x))[1],
        "SparseLinear of a pattern": lambda: sa.SparseLinear(16, 16, 4, pattern=a, device="cpu").col_indices,
        "SparseLinear of a mask": lambda: sa.SparseLinear(16, 16, 4, pattern=a.to_dense()[::4, ::4] != 0, device="cpu").col_indices,
        "SparseLinear": lambda: seeded(lambda: sa.SparseLinear(16, 16, 4, 0.5, device="cpu", dtype=torch.float32)(x)),
        "from_linear": lambda: sa.SparseLinear.from_linear(linear, 4, 0.5)(x),
        "a layer's dense one": lambda: layer.to_dense()(x),
        "a layer's state": lambda: (layer.load_state_dict(state), layer(x))[1],
        "to_block_sparse, to_dense": lambda: sa.to_dense(sa.to_block_sparse(torch.nn.Sequential(copy(linear)), 0.5, 4))(x),
        "sparsify_weights": lambda: sa.sparsify_weights(torch.nn.Sequential(copy(linear)), 0.5, 4)(x),
        "gated": lambda: sa.gated(x, layer, layer),
        "BlockPruner": lambda: pruned(copy(linear))(x),
        "attention": lambda: sa.attention(q, q, q, mask=mask),
        "packed": lambda: sa.attention(q, q, q, query_ends=ends, causal=True),
        "pages": lambda: sa.attention(q, q.view(2, 1, 16, 8), q.view(2, 1, 16, 8), page_table=table),
        "heads of pages": lambda: sa.attention(q, q.view(2, 2, 8, 8), q.view(2, 2, 8, 8), page_table=table),
        "sdpa": lambda: sa.scaled_dot_product_attention(q, q, q, mask, is_causal=True),
        "sdpa of lengths": lambda: sa.scaled_dot_product_attention(q, q, q, (torch.arange(16, device="cpu") < 7)[None, None, None]),
        "sdpa by PyTorch": lambda: sa.scaled_dot_product_attention(q, q, q, mask, dropout_p=1e-30),
        "benchmark": lambda: size(bool(sa.benchmark(a, x, rounds=3, progress=False))),
    }
    return made | mask_calls(mask, pairs, scores, lengths)


def mask_calls(mask, pairs, scores, lengths):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    given = flex.create_block_mask(lambda b, h, q, k: pairs[q, k], None, None, 16, 16, device="cpu", BLOCK_SIZE=8)
    empty = {"device": "cpu"}
    return {
        "BlockMask.causal": lambda: sa.BlockMask.causal(16, 4, **empty).to_pairs(),
        "BlockMask.window": lambda: sa.BlockMask.window(16, 3, 4, sinks=2, **empty).to_pairs(),
        "BlockMask.documents": lambda: sa.BlockMask.documents([5, 11], 4, **empty).to_pairs(),
        "BlockMask.documents of a tensor": lambda: sa.BlockMask.documents(lengths, 4, causal=True, **empty).to_pairs(),
        "BlockMask.prefix": lambda: sa.BlockMask.prefix(16, 3, 4, **empty).to_pairs(),
        "BlockMask.strided": lambda: sa.BlockMask.strided(16, 3, 2, 4, **empty).to_pairs(),
        "BlockMask.strided causal": lambda: sa.BlockMask.strided(16, 3, 2, 4, causal=True, **empty).to_pairs(),
        "BlockMask.video": lambda: sa.BlockMask.video(2, 2, 4, (1, 2, 3), 4, **empty).to_pairs(),
        "BlockMask of nothing": lambda: sa.BlockMask.causal(0, 4, **empty).to_pairs(),
        "BlockMask.from_scores": lambda: sa.BlockMask.from_scores(scores, 1, 8).to_pairs(),
        "BlockMask.from_dense": lambda: sa.BlockMask.from_dense(scores > 0, 8).to_dense(),
        "BlockMask.from_pairs": lambda: sa.BlockMask.from_pairs(pairs, 8).to_pairs(),
        "BlockMask.from_flex": lambda: sa.BlockMask.from_flex(given).to_pairs(),
        "BlockMask.stack": lambda: sa.BlockMask.stack([mask, mask]).to_pairs(),
        "BlockMask or": lambda: (mask | mask).to_pairs(),
        "BlockMask and": lambda: (mask & mask).to_pairs(),
        "BlockMask.picture": lambda: size(len(mask.picture())),
    }


def copy(linear):
    made = torch.nn.Linear(16, 16, device="cpu", dtype=linear.weight.dtype)
    made.load_state_dict(linear.state_dict())
    return made


def pruned(linear):
    model = torch.nn.Sequential(linear)
    pruner = sa.BlockPruner(model, None, 0.5, end=1, block=4)
    pruner.step()
    return model


@pytest.mark.parametrize("default", ["meta", torch.float64, torch.bfloat16], ids=str)
def test_sweep(default, tmp_path):
    """The same as without a default: values, dtype and device."""
    pytest.importorskip("scipy.sparse"), pytest.importorskip("safetensors")
    sa.set_options(budget_s=0.05)
    made, wrong = calls(tmp_path), []
    wanted = {name: call() for name, call in made.items()}
    before = torch.get_default_dtype()
    for name, call in made.items():
        try:
            if isinstance(default, str):
                with torch.device(default):
                    found = call()
            else:
                torch.set_default_dtype(default)
                found = call()
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
            continue
        finally:
            torch.set_default_dtype(before)
        if found.device.type != "cpu" or found.dtype is not wanted[name].dtype or not torch.equal(found.nan_to_num(), wanted[name].nan_to_num()):
            wrong.append(f"{name}: {found.dtype} on {found.device}, other numbers")
    assert not wrong, "\n".join(wrong)


def test_masks_of_shapes_are_on_the_default_device():
    with torch.device("meta"):
        assert sa.BlockMask.causal(16, 4).device.type == "meta" and sa.SparseLinear(16, 16, 4, 0.5).row_offsets.device.type == "meta"
    assert sa.BlockMask.causal(16, 4).device.type == "cpu"
    assert list(itertools.islice(calls_of_makers(FOLDER / "_bsr.py"), 1))
