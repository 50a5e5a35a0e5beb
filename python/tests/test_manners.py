"""What users meet beside products: messages in their words, warnings, default devices, parametrized layers, biases of any stride, buffers, pictures."""

import copy
import io
import subprocess
import sys
import warnings

import pytest
import torch
from conftest import random_bsr
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import sparse_autotune as sa


def test_messages_name_the_callers_arguments():
    a, x = random_bsr(8, 8, 4), torch.randn(9, 3)
    with pytest.raises(RuntimeError, match=r"^sparse_autotune: B: its shape is \[9, 3\]; the product needs 8 rows"):
        sa.matmul(a, x)
    with pytest.raises(RuntimeError, match=r"^sparse_autotune: A: its shape is \[3, 9\]; the product needs 8 columns"):
        sa.matmul(x.mT, a)
    with pytest.raises(RuntimeError, match="^sparse_autotune: B: its dtype must be that of A.values, float32, not float64"):
        sa.matmul(a, torch.randn(8, 3).double())
    with pytest.raises(RuntimeError, match="^sparse_autotune: A.values: has 2 blocks, but A.col_indices 4 entries"):
        sa.matmul(sa.BSR(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]), torch.ones(2, 4, 4), (8, 8)), torch.randn(8, 3))
    with pytest.raises(RuntimeError, match=r"^sparse_autotune: X: its shape is \[9, 3\]; the pattern has 8 rows"):
        sa.sddmm(a, x, torch.randn(3, 8))
    with pytest.raises(RuntimeError, match=r"^sparse_autotune: x: its shape is \[2, 9\]; the product needs 8 columns"):
        sa.SparseLinear(8, 8, 4, 0.5)(torch.randn(2, 9))


@pytest.mark.parametrize("how", ["context", "default"])
def test_layers_on_the_default_device(how):
    if how == "context":
        with torch.device("meta"):
            layer = sa.SparseLinear(16, 16, 4, 0.5)
    else:
        torch.set_default_device("meta")
        try:
            layer = sa.SparseLinear(16, 16, 4, 0.5)
        finally:
            torch.set_default_device(None)
    assert {t.device.type for t in (layer.values, layer.bias, layer.row_offsets, layer.col_indices)} == {"meta"}
    assert layer(torch.empty(2, 16, device="meta")).shape == (2, 16)
    whole = sa.SparseLinear(16, 16, 4, 0.5)
    layer.load_state_dict(whole.state_dict(), assign=True)
    x = torch.randn(3, 16)
    torch.testing.assert_close(layer(x), whole(x))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_layers_on_the_default_gpu():
    with torch.device("cuda"):
        layer = sa.SparseLinear(64, 64, 16, 0.5)
        x = torch.randn(8, 64)
    torch.testing.assert_close(layer(x), layer.to_dense()(x), rtol=1e-3, atol=1e-3)


class Halved(nn.Module):
    def forward(self, values):
        return values / 2


def test_values_can_be_parametrized():
    layer = sa.SparseLinear(24, 16, 8, 0.7)
    x, before = torch.randn(5, 24), copy.deepcopy(layer)
    parametrize.register_parametrization(layer, "values", Halved())
    torch.testing.assert_close(layer(x) - layer.bias, (before(x) - before.bias) / 2)
    layer(x).square().sum().backward()
    assert layer.parametrizations["values"].original.grad.abs().sum() > 0
    again = copy.deepcopy(layer)
    again.load_state_dict(layer.state_dict())
    torch.testing.assert_close(again(x), layer(x))
    parametrize.remove_parametrizations(layer, "values", leave_parametrized=True)
    torch.testing.assert_close(layer(x) - layer.bias, (before(x) - before.bias) / 2)


@pytest.mark.parametrize("norm", [parametrizations.weight_norm, parametrizations.spectral_norm, nn.utils.weight_norm])
def test_values_can_be_normed(norm):
    layer = norm(sa.SparseLinear(24, 16, 8, 0.7), name="values")
    layer.train()
    y = layer(torch.randn(5, 24))
    y.sum().backward()
    assert y.shape == (5, 16)


@pytest.mark.parametrize("right", [True, False])
def test_biases_of_any_stride(right):
    a = random_bsr(12, 12, 4)
    x = torch.randn(12, 12)
    product = (lambda bias: sa.matmul(x, a, bias=bias)) if right else (lambda bias: sa.matmul(a, x, bias=bias))
    expected = x @ a.to_dense() if right else a.to_dense() @ x
    for bias in (torch.randn(()).expand(12), torch.randn(24)[::2], torch.randn(12, 3)[:, 1], torch.randn(12).flip(0)):
        for _ in range(3):  # the second and third of a kind take a shorter way
            torch.testing.assert_close(product(bias), expected + bias, rtol=1e-4, atol=1e-4)
    bias = torch.randn((), requires_grad=True)
    product(bias.expand(12)).sum().backward()
    torch.testing.assert_close(bias.grad, torch.tensor(144.0))


def test_warnings_have_a_category_and_a_place(tmp_path):
    program = f"""
import warnings
import torch, sparse_autotune as sa
assert issubclass(sa.SparseAutotuneWarning, RuntimeWarning)
sa.set_options(store={str(tmp_path)!r}, budget_s=0.05)  # a folder is no store
a = sa.BSR.from_dense(torch.randn(8, 8), 4)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    a @ torch.randn(8, 2)
    for _ in range(3):
        pass
told = [w for w in told if "is not used" in str(w.message)]
assert len(told) == 1, told
assert told[0].category is sa.SparseAutotuneWarning
print(told[0].filename, told[0].lineno)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    name, line = done.stdout.split()
    assert name == str(path) and int(line) in (9, 10, 11)


def test_warnings_can_be_ignored_by_category():
    from sparse_autotune import _warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(sa.SparseAutotuneWarning, match="busy"):
            _warnings.warn("busy")
        warnings.simplefilter("ignore", sa.SparseAutotuneWarning)
        _warnings.warn("busy")


class Solver(nn.Module):
    def __init__(self, matrix):
        super().__init__()
        self.stiffness = sa.SparseBuffer(matrix)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * self.stiffness(x)


def test_a_matrix_is_a_buffer():
    a = random_bsr(12, 20, 4)
    model, x = Solver(a), torch.randn(20, 3)
    torch.testing.assert_close(model(x), a @ x)
    assert set(model.state_dict()) == {"scale", "stiffness.row_offsets", "stiffness.col_indices", "stiffness.values"}
    assert [name for name, _ in model.named_parameters()] == ["scale"]
    assert model.double().stiffness.matrix.dtype is torch.float64
    assert model.to("meta").stiffness.matrix.device.type == "meta"
    model = Solver(a)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = Solver(random_bsr(12, 20, 4, density=1.0))
    other.load_state_dict(torch.load(file))
    torch.testing.assert_close(other(x), a @ x)
    torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), a @ x)
    assert "BSR(12 x 20" in repr(model)
    with pytest.raises(TypeError, match="matrix: must be an sa.BSR, not Tensor"):
        sa.SparseBuffer(x)


def test_pictures_have_whole_labels_and_quartiles():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from sparse_autotune._report import _quartile_distances

    # A class that no other test measures: its report is an estimate, without times.
    assert not sa.tune(random_bsr(80, 48, 16), torch.randn(48, 28)).plot().patches
    sa.set_options(effort="measure", budget_s=0.5)
    report = sa.tune(random_bsr(64, 64, 16), torch.randn(64, 20))
    assert report.chosen
    axes = report.plot()
    axes.figure.canvas.draw()
    for label in axes.get_yticklabels():
        assert label.get_window_extent().x0 >= 0, label.get_text()
    _, narrow = plt.subplots(figsize=(5, 4), layout="constrained")
    for drawn in (axes, report.plot(narrow)):
        drawn.figure.canvas.draw()
        title = drawn.title.get_window_extent()
        assert drawn.get_title() and title.x0 >= 0 and title.x1 <= drawn.figure.bbox.width
    plt.close("all")
    low, high = _quartile_distances({"samples_us": [10, 10, 11, 12, 100], "median_us": 11})
    assert (low, high) == (1, 1)
    low, high = _quartile_distances({"samples_us": [10, 11, 50, 100], "median_us": 30.5})
    assert low < high and low < 30.5
    assert _quartile_distances({"samples_us": [], "median_us": 5}) == (0, 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_is_left_alone(tmp_path, threads):
    """Libraries of the race set numbers of threads, some of them OpenMP's, which is torch's, too."""
    before = torch.get_num_threads()
    sa.set_options(store=tmp_path / "store.db", effort="measure", budget_s=0.2, tuning="now_each")
    torch.manual_seed(0)
    matrix = sa.BSR.from_dense(torch.randn(512, 512), block=32, density=0.1)
    try:
        torch.set_num_threads(threads)
        for n in (5, 16, 40):
            sa.matmul(matrix, torch.randn(512, n), assume_finite=True)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
