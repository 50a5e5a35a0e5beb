"""States and files: what is loaded is what was saved, or it is refused and nothing has changed. A failure names the seed that draws it again."""

import copy
import io
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest
import torch
from conftest import close, random_bsr, sparsek
from torch import nn

import sparse_autotune as sa

SEEDS = range(int(os.environ.get("SPARSEK_TEST_SEED", 0)), int(os.environ.get("SPARSEK_TEST_SEED", 0)) + 60)


def snapshot(model):
    """All that a refused load must leave: the objects, their numbers, gradients and what requires some."""
    tensors = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}
    return {name: (t, t.detach().clone(), None if t.grad is None else t.grad.clone(), t.requires_grad) for name, t in tensors.items()}


def check_unchanged(model, before, where=lambda name: True):
    after = snapshot(model)
    assert set(after) == set(before)
    for name, (tensor, numbers, gradient, graded) in before.items():
        if where(name):
            now = after[name]
            assert now[0] is tensor and now[3] == graded, name
            assert now[1].dtype is numbers.dtype and torch.equal(now[1], numbers), name
            assert (gradient is None) == (now[2] is None) and (gradient is None or torch.equal(gradient, now[2])), name


def dense_of(module):
    return (module.matrix if isinstance(module, sa.SparseBuffer) else module.weight).to_dense().detach()


def drawn(draw, rows=None, cols=None, block=None, kind=None):
    """A layer or a buffer of random sizes."""
    block = block or (draw.randint(1, 9), draw.randint(1, 9))
    rows, cols = rows or draw.randint(1, 40), cols or draw.randint(1, 40)
    seed = draw.randrange(1 << 30)
    if (kind or draw.choice(["linear", "buffer"])) == "buffer":
        a = random_bsr(rows, cols, block, draw.random(), seed=seed)
        return sa.SparseBuffer(sa.BSR.from_mask(a.to_dense(), torch.rand(a.grid) < draw.random(), block))
    torch.manual_seed(seed)
    grid = (-(-rows // block[0]), -(-cols // block[1]))
    layer = sa.SparseLinear(cols, rows, block, bias=draw.random() < 0.5, pattern=torch.rand(grid) < draw.random())
    if draw.random() < 0.5:
        layer.values.grad = torch.randn_like(layer.values)
    return layer


def like(draw, module):
    """Another one of the same sizes."""
    kind = "buffer" if isinstance(module, sa.SparseBuffer) else "linear"
    matrix = module.matrix if kind == "buffer" else module.weight
    while True:
        made = drawn(draw, *matrix.shape, matrix.block, kind)
        if kind == "buffer" or (made.bias is None) == (module.bias is None):
            return made


def state_of(draw, model):
    """As it is, as a plain dict, through torch.save or through safetensors."""
    way = draw.choice(["state", "dict", "torch", "safetensors"])
    state = copy.deepcopy(model.state_dict())
    if way == "dict":
        return dict(state)
    if way == "torch":
        file = io.BytesIO()
        torch.save(state, file)
        return torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    if way == "safetensors":
        safetensors = pytest.importorskip("safetensors.torch")
        return safetensors.load(safetensors.save(dict(state)))
    return state


class Breaks(torch.Tensor):
    """A tensor whose copy fails."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.copy_:
            raise OSError("the disk is gone")
        return super().__torch_function__(func, types, args, kwargs)


def _wrong(draw, state, prefix):
    """One change that makes the state of a layer wrong; its name."""
    offsets, columns, values = (prefix + name for name in ("row_offsets", "col_indices", "values"))
    changes = {
        "missing": lambda: state.pop(draw.choice([offsets, columns, values])),
        "no tensor": lambda: state.update({draw.choice([offsets, columns, values]): 3}),
        "a block more": lambda: state.update({values: torch.cat([state[values], torch.ones_like(state[values][:1])]) if len(state[values]) else torch.ones(1)}),
        "another block": lambda: state.update({values: nn.functional.pad(state[values], (0, 1))}),
        "cut": lambda: state.update({offsets: state[offsets][:-1]}),
        "offsets": lambda: state.update({offsets: state[offsets] + 1}),
        "floats": lambda: state.update({draw.choice([offsets, columns]): torch.full_like(state[offsets], torch.nan, dtype=torch.float32)}),
        "booleans": lambda: state.update({offsets: state[offsets].bool()}),
        "beyond int32": lambda: state.update({offsets: state[offsets].long() + 2**32}),
        "a column too far": lambda: state.update({columns: state[columns].long() + 2**32} if len(state[columns]) else {columns: torch.ones(2)}),
        "complex": lambda: state.update({values: state[values].to(torch.complex64)}),
    }
    name = draw.choice(list(changes))
    changes[name]()
    return name


@pytest.mark.parametrize("seed", SEEDS)
def test_a_layer_is_loaded_or_left(seed):
    draw = random.Random(seed)
    module = drawn(draw)
    source = like(draw, module)
    want, state = dense_of(source), state_of(draw, source)
    assign, strict = draw.random() < 0.3, draw.random() < 0.5
    if draw.random() < 0.3:  # a good one
        if draw.random() < 0.5:
            state |= {name: state[name].long() for name in ("row_offsets", "col_indices")}
        module.load_state_dict(state, assign=assign)
        assert torch.equal(dense_of(module), want), f"seed {seed}"
        return
    name, before = _wrong(draw, state, ""), snapshot(module)
    with pytest.raises(RuntimeError):
        module.load_state_dict(state, strict=strict, assign=assign)
        pytest.fail(f"seed {seed}: {name} was taken")
    check_unchanged(module, before)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_layers_of_a_model_are_loaded_or_left_together(seed):
    draw = random.Random(seed)
    parts = [drawn(draw) for _ in range(draw.randint(2, 5))]
    model = nn.ModuleDict({f"part{i}": part for i, part in enumerate(parts)} | {"dense": nn.Linear(3, 4)})
    source = nn.ModuleDict({f"part{i}": like(draw, part) for i, part in enumerate(parts)} | {"dense": nn.Linear(3, 4)})
    state, assign, strict = state_of(draw, source), draw.random() < 0.3, draw.random() < 0.5
    if draw.random() < 0.2:
        model.load_state_dict(state, assign=assign)
        for got, want in zip(list(model.values())[:-1], list(source.values())[:-1], strict=True):
            assert torch.equal(dense_of(got), dense_of(want)), f"seed {seed}"
        return
    at = draw.randrange(len(parts))
    name, before = _wrong(draw, state, f"part{at}."), snapshot(model)
    with pytest.raises(RuntimeError, match=f"part{at}"):
        model.load_state_dict(state, strict=strict, assign=assign)
        pytest.fail(f"seed {seed}: {name} was taken")
    check_unchanged(model, before, lambda name: name.startswith("part"))


@pytest.mark.parametrize("seed", SEEDS)
def test_other_sizes_are_refused(seed):
    """Where the grid of blocks is the same, too: a few rows or columns more in the edge blocks."""
    draw = random.Random(seed)
    block, kind = (draw.randint(2, 9), draw.randint(2, 9)), draw.choice(["linear", "buffer"])
    down, across = draw.randint(1, 4), draw.randint(1, 4)
    sizes = [(down * block[0] - i, across * block[1] - j) for i in range(block[0]) for j in range(block[1])]
    here, there = draw.sample(sizes, 2)
    pattern = torch.ones(down, across)
    if kind == "linear":
        module, source = (sa.SparseLinear(size[1], size[0], block, pattern=pattern) for size in (here, there))
    else:
        module, source = (sa.SparseBuffer(sa.BSR.from_mask(torch.rand(size) + 1, pattern, block)) for size in (here, there))
    before, bare = snapshot(module), draw.random() < 0.5
    state = dict(source.state_dict()) if bare else source.state_dict()
    if bare and kind == "buffer" and there[0] <= here[0] and there[1] <= here[1]:
        return  # nothing of such a state tells it from one of this size
    if bare and kind == "linear" and there[0] == here[0] and there[1] < here[1]:
        return
    with pytest.raises(RuntimeError, match="matrix of|bias"):
        module.load_state_dict(state, strict=draw.random() < 0.5, assign=draw.random() < 0.3)
        pytest.fail(f"seed {seed}: {there} was taken for {here}")
    check_unchanged(module, before)


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("same_count", [False, True])
def test_a_copy_that_fails_is_undone(same_count, assign):
    layer = sa.SparseLinear(32, 32, 8, 0.5)
    layer.values.grad = torch.ones_like(layer.values)
    state = dict(sa.SparseLinear(32, 32, 8, 0.5 if same_count else 0.25).state_dict())
    state["bias"] = torch.ones(32).as_subclass(Breaks)
    before, x = snapshot(layer), torch.randn(3, 32)
    want = layer(x)
    if assign:
        layer.load_state_dict(state, assign=True)  # copies nothing
        return
    with pytest.raises(RuntimeError, match="the disk is gone"):
        layer.load_state_dict(state)
    check_unchanged(layer, before)
    assert torch.equal(layer(x), want)


def test_an_optimizer_goes_on_after_a_refusal():
    layers = [nn.Sequential(sa.SparseLinear(32, 32, 8, 0.5)) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    optimizers = [torch.optim.Adam(layer.parameters(), 0.1) for layer in layers]
    pruners = [sa.BlockPruner(layer, optimizer, 0.25, end=4, every=2) for layer, optimizer in zip(layers, optimizers, strict=True)]
    for step in range(6):
        for layer, optimizer, pruner in zip(layers, optimizers, pruners, strict=True):
            optimizer.zero_grad()
            layer(torch.full((2, 32), step + 1.0)).square().sum().backward()
            optimizer.step()
            pruner.step()
        if step == 2:
            with pytest.raises(RuntimeError):
                layers[0].load_state_dict(sa.SparseLinear(32, 24, 8, 0.25).state_dict() | {"x": torch.ones(1)})
            wrong = nn.Sequential(sa.SparseLinear(32, 40, 8, 1.0)).state_dict()
            with pytest.raises(RuntimeError, match="matrix of 40 x 32, this one is 32 x 32"):
                layers[0].load_state_dict(wrong)
            with pytest.raises(ValueError, match="density"):
                pruners[0].load_state_dict({"steps": 1, "initial": {"0": 7.0}})
    for got, want in zip(layers[0].state_dict().values(), layers[1].state_dict().values(), strict=True):
        assert torch.equal(got, want)


def test_layers_without_memory_are_loaded_one_tensor_at_a_time():
    """As loaders do that place each tensor where it belongs."""
    source = sa.SparseLinear(20, 12, 8, 0.5)
    with torch.device("meta"):
        layer = sa.SparseLinear(20, 12, 8, 0.5)
    names = list(source.state_dict())
    for name in random.sample(names, len(names)):
        layer.load_state_dict({name: source.state_dict()[name]}, strict=False, assign=True)
    assert torch.equal(dense_of(layer), dense_of(source)) and torch.equal(layer.bias, source.bias)
    with torch.device("meta"):
        other = sa.SparseLinear(20, 12, 8, 1.0)
    other.load_state_dict(source.state_dict(), assign=True)
    assert torch.equal(dense_of(other), dense_of(source))


def test_a_refused_load_says_what_to_do():
    layer = sa.SparseLinear(20, 12, 8, 1.0)
    values = {"values": layer.state_dict()["values"]}
    with pytest.raises(RuntimeError, match="the state has values, but not row_offsets, col_indices"):
        layer.load_state_dict(values, strict=False)
    with torch.no_grad():
        layer.values.fill_(1)
    with pytest.raises(RuntimeError, match="not zero beyond the matrix of 12 x 20"):
        sa.SparseLinear(20, 12, 8, 1.0).load_state_dict(dict(layer.state_dict()))
    sa.SparseLinear(20, 12, 8, 1.0).load_state_dict(layer.state_dict())  # which tells its shape


@pytest.mark.parametrize("seed", range(6))
def test_a_refused_load_says_its_reason_once(seed):
    draw = random.Random(seed)
    model = nn.Sequential(*(sa.SparseLinear(16, 16, 8, 1.0) for _ in range(4)))
    state = model.state_dict()
    wrong = draw.randrange(4)
    kind = draw.choice(["values", "missing", "unexpected"])
    if kind == "values":
        state[f"{wrong}.values"] = state[f"{wrong}.values"][:, :4]
    elif kind == "missing":
        del state[f"{wrong}.bias"]
    else:
        state[f"{wrong}.more"] = torch.ones(1)
    with pytest.raises(RuntimeError) as error:
        model.load_state_dict(state)
    told = {"values": "size mismatch for values", "missing": f"{wrong}.bias", "unexpected": f"{wrong}.more"}[kind]
    text = str(error.value)
    assert text.count(told) == 1 and text.count("no layer with blocks is loaded") == 1, (seed, kind, text)


@pytest.mark.parametrize("folder", ["none", "none/below", "file"])
def test_a_folder_that_is_not_there_is_named(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    matrix = sa.BSR.from_dense(torch.eye(16), 8)
    for asked in (tmp_path / folder, pathlib.Path(folder)):
        with pytest.raises(OSError) as error:
            matrix.save(asked / "matrix.safetensors")
        assert error.value.filename == str(asked) and isinstance(error.value, (FileNotFoundError, NotADirectoryError))
    with pytest.raises(IsADirectoryError):
        matrix.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_distributed_checkpoints(tmp_path):
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    model = nn.Sequential(sa.SparseLinear(20, 24, 8, 0.5), nn.Linear(24, 4))
    checkpoint.save(model.state_dict(), checkpoint_id=tmp_path, no_dist=True)
    other = nn.Sequential(sa.SparseLinear(20, 24, 8, 0.5), nn.Linear(24, 4))
    state = other.state_dict()
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    other.load_state_dict(state)
    assert torch.equal(dense_of(other[0]), dense_of(model[0]))
    fewer = nn.Sequential(sa.SparseLinear(20, 24, 8, 0.2), nn.Linear(24, 4))
    before = snapshot(fewer)
    with pytest.raises(BaseException, match="(?i)size mismatch"):
        checkpoint.load(fewer.state_dict(), checkpoint_id=tmp_path, no_dist=True)
    check_unchanged(fewer, before)


# ------------------------------------------------------------------------------------------------ what is the user's


def test_nothing_is_left_on_tensors_and_modules():
    """What hangs on a tensor is saved with it, and loads only where sparse_autotune is."""
    sparse, x = torch.randn(32, 32).to_sparse_bsr((8, 8)), torch.randn(32, 4)
    q = torch.randn(1, 16, 2, 8)
    tensors = [sparse, x, q, torch.randn(16, 16)]
    module = nn.Module()
    module.register_buffer("sparse", sparse)
    before, own = set(vars(module)), io.BytesIO()
    torch.save(module.state_dict(), own)
    sa.matmul(sparse, x)
    sa.matmul(x.t(), sparse)
    sa.sddmm(sparse, x, x.t())
    sa.BSR.from_torch(sparse) @ x
    sa.gemm(tensors[3], tensors[3])
    sa.attention(q, q, q)
    sa.inspect(sparse)
    sa.BSR.from_dense(tensors[3], 8) @ tensors[3]
    sa.SparseBuffer(sa.BSR.from_torch(sparse))(x)
    for tensor in tensors:
        assert not vars(tensor), vars(tensor)
    assert set(vars(module)) == before
    used = io.BytesIO()
    torch.save(module.state_dict(), used)
    program = "import sys, io, torch; torch.load(io.BytesIO(sys.stdin.buffer.read()))"
    for file in (own, used):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], input=file.getvalue(), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[-500:]


def test_components_of_a_sparse_tensor_are_kept_as_long_as_it_lives():
    from sparse_autotune import _matmul

    sparse, count = torch.randn(32, 32).to_sparse_bsr((8, 8)), len(_matmul._known)
    assert _matmul.as_bsr(sparse) is _matmul.as_bsr(sparse) and len(_matmul._known) == count + 1
    sparse.values().mul_(2)
    close(sa.matmul(sparse, torch.eye(32)), sparse.to_dense())
    del sparse
    assert len(_matmul._known) == count


# ------------------------------------------------------------------------------------------------ files

NAMES = ["matrix", "a.b.c", "a/b", "übung", "values", "row_offsets.values", " ", "a\nb", "__metadata__x", "sparsek.bsr.x", "名前", "-x", "'q'", "x" * 300]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_name(name, dtype, tmp_path):
    """What Python writes is read by Python and by the command line, and what that writes by Python."""
    pytest.importorskip("safetensors")
    a, file, back = random_bsr(20, 28, (8, 4), dtype=dtype), tmp_path / "a.safetensors", tmp_path / "back.safetensors"
    a = sa.BSR.from_mask(a.to_dense(), torch.rand(a.grid) < 0.7, a.block)
    a.save(file, name)
    for given in ((), (name,)):
        again = sa.BSR.load(file, *given)
        assert again.shape == a.shape and again.dtype is dtype and torch.equal(again.to_dense(), a.to_dense())
    if dtype is torch.float32 or name == "matrix":
        done = sparsek("convert", file, back, f"--tensor={name}", f"--tensor-out={name}")
        assert done.returncode == 0, done.stderr
        again = sa.BSR.load(back, name)
        assert again.dtype is dtype and torch.equal(again.to_dense(), a.to_dense())


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "__metadata__"], ids=ascii)
def test_names_that_nobody_could_read(name, tmp_path):
    with pytest.raises(ValueError, match="name: .* is no name of a matrix in a file"):
        random_bsr(8, 8, 4).save(tmp_path / "a.safetensors", name)
    assert not any(tmp_path.iterdir())


MADE = {
    "mask": ("gen", "mask", "--shape", "causal", "--rows", 96, "--cols", 96, "--block", 32),
    "window": ("gen", "mask", "--shape", "window", "--window", 3, "--rows", 96, "--block", 16),
    "uniform": ("gen", "uniform", "--rows", 50, "--cols", 70, "--block", "8x16", "--density", 0.5),
}
WAYS = {
    "as it is": (),
    "f64": (("convert", "made", "file", "--dtype", "f64"),),
    "named": (("convert", "made", "file", "--tensor-out", "a.b"),),
    "by text": (("convert", "made", "text.mtx"), ("convert", "text.mtx", "file", "--block", "8x16")),
    "bare": (("convert", "made", "text.smtx", "--pattern-only"), ("convert", "text.smtx", "file", "--block", "8x16")),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("way", WAYS)
def test_what_the_command_line_writes(kind, way, tmp_path):
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("safetensors")
    places = {name: tmp_path / f"{name}.safetensors" for name in ("made", "file", "again")} | {"out": tmp_path / "dense.npy"}
    last = WAYS[way][-1][2] if WAYS[way] else "made"
    for call in (MADE[kind] + ("-o", "made"), *WAYS[way], ("convert", last, "out", "--to", "dense")):
        done = sparsek(*(places.get(word, tmp_path / str(word) if "text." in str(word) else word) for word in call))
        assert done.returncode == 0, (call, done.stderr)
    a = sa.BSR.load(places[last])
    close(a.to_dense().double(), torch.from_numpy(numpy.load(places["out"])).double())
    a.save(places["again"])
    again = sa.BSR.load(places["again"])
    assert again.dtype is a.dtype and torch.equal(again.to_dense(), a.to_dense())


def test_a_pattern_takes_no_memory(tmp_path):
    """The values that its file does not hold would be 4 GiB."""
    safetensors = pytest.importorskip("safetensors.torch")
    count, file = 1 << 14, tmp_path / "mask.safetensors"
    note = dict(rows=256, cols=256 * count, block_rows=256, block_cols=256, block_layout="row", pattern_only=True)
    parts = {"m.row_offsets": torch.tensor([0, count]), "m.col_indices": torch.arange(count)}
    safetensors.save_file(parts, file, metadata={"sparsek.bsr.m": json.dumps(note)})
    a = sa.BSR.load(file)
    assert a.nnzb == count and a.values.untyped_storage().nbytes() <= 16 and float(a.values[-1, -1, -1]) == 1


@pytest.mark.parametrize("seed", SEEDS[:20])
def test_damaged_files_are_refused(seed, tmp_path):
    """Cut, or with other bytes: the same matrix, or one error that names the file or what is wrong in it."""
    draw = random.Random(seed)
    a, file = random_bsr(24, 24, 8, seed=seed), tmp_path / "a.safetensors"
    a.save(file)
    content = bytearray(file.read_bytes())
    for _ in range(20):
        changed = bytearray(content)
        if draw.random() < 0.3:
            del changed[draw.randrange(len(changed)) :]
        else:
            changed[draw.randrange(min(len(changed), 500))] = draw.randrange(256)
        file.write_bytes(changed)
        try:
            again = sa.BSR.load(file)
        except (ValueError, TypeError):
            continue
        again.check_indices()


def test_notes_that_are_no_notes(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    file, note = tmp_path / "a.safetensors", dict(rows=8, cols=8, block_rows=4, block_cols=4, block_layout="row")
    parts = {"a.row_offsets": torch.tensor([0, 0, 0]), "a.col_indices": torch.zeros(0, dtype=torch.int64), "a.values": torch.zeros(0, 4, 4)}
    for text, message in (
        ("[" * 100000, "no JSON"),
        ("{", "no JSON"),
        (json.dumps(note | {"rows": 10**60}), "sizes may be"),
        (json.dumps(note | {"cols": True}), "lacks a whole number"),
        (json.dumps(note | {"pattern_only": True, "block_rows": 1000, "rows": 1001}), "1 to 256"),
    ):
        safetensors.save_file(parts, file, metadata={"sparsek.bsr.a": text})
        with pytest.raises(ValueError, match=message):
            sa.BSR.load(file)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    safetensors = pytest.importorskip("safetensors.torch")
    a, file = random_bsr(24, 24, 8), tmp_path / "a.safetensors"
    a.save(file)
    before = file.read_bytes()

    def fails(tensors, path, metadata):
        with open(path, "wb") as half:
            half.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors, "save_file", fails)
    with pytest.raises(OSError, match="No space"):
        random_bsr(32, 32, 8).save(file)
    assert file.read_bytes() == before and [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError, match="nowhere"):
        a.save(tmp_path / "nowhere" / "a.safetensors")
    with pytest.raises(ValueError, match="meta"):
        a.to("meta").save(file)


def test_tensors_that_share_memory_are_saved(tmp_path):
    pytest.importorskip("safetensors")
    a = random_bsr(24, 24, 8)
    both = torch.cat([a.row_offsets, a.col_indices])
    values = torch._neg_view(torch.stack([-a.values, a.values], -1)[..., 0])
    shared = sa.BSR(both[: a.row_offsets.shape[0]], both[a.row_offsets.shape[0] :], values, a.shape)
    shared.save(tmp_path / "a.safetensors")
    assert torch.equal(sa.BSR.load(tmp_path / "a.safetensors").to_dense(), a.to_dense())


def test_sparse_weights_take_no_wrong_indices():
    weight = sa.SparseWeight(random_bsr(16, 16, 8, 1.0))
    kept = [part.clone() for part in (weight.bsr_row_offsets, weight.bsr_col_indices, weight.bsr_values)]
    matrix = weight.bsr
    for offsets, columns in itertools.product((matrix.row_offsets.long(), matrix.row_offsets.long() + 2**32), (matrix.col_indices.long(),)):
        wrong = sa.SparseWeight(sa.BSR(offsets + 1, columns, matrix.values + 1, matrix.shape))
        with pytest.raises(ValueError, match="row_offsets"):
            weight.copy_(wrong)
        for part, before in zip((weight.bsr_row_offsets, weight.bsr_col_indices, weight.bsr_values), kept, strict=True):
            assert torch.equal(part, before)
