"""The Python code of the README files, of docs/attention.md, docs/models.md, docs/tuning.md, docs/formats.md and docs/adding-a-mask-shape.md runs."""

import functools
import importlib.util
import pathlib
import re
import warnings

import pytest

import sparse_autotune as sa
from sparse_autotune import _race

ROOT = pathlib.Path(__file__).parents[2]


def run(name):
    """The names that the page's snippets leave."""
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.M | re.S)
    assert snippets
    if not importlib.util.find_spec("transformers"):
        warnings.warn(f"transformers is not installed: its examples in {name} were NOT TESTED", stacklevel=2)
        snippets = [snippet for snippet in snippets if "transformers" not in snippet and "set_block_mask" not in snippet]
    names = {}
    for snippet in snippets:
        exec(snippet, names)
    return names


@pytest.mark.parametrize("name", ["README.md", "python/README.md"])
def test_snippets(name, capsys):
    sa.set_options(effort="measure", budget_s=0.02)
    names = run(name)
    assert "pytorch_dense" in capsys.readouterr().out
    assert names["layer"].values.grad is not None


def test_attention(monkeypatch):
    monkeypatch.setattr(_race, "PEERS", ("pytorch_sdpa", "flash_attention_4"))  # FlexAttention takes seconds to compile, which other tests spend
    names = run("docs/attention.md")
    assert names["step"].shape == (2, 1, 8, 64) and names["o"].shape == (1, 8, 1024, 64)


def test_mask_shapes(capsys):
    assert run("docs/adding-a-mask-shape.md")["mask"].nnzb == 3 * 3 + sum(range(4, 17))
    assert "BlockMask(512 x 512" in capsys.readouterr().out


def test_models():
    pytest.importorskip("transformers")
    sa.set_options(effort="measure", budget_s=0.02)
    assert run("docs/models.md")["made"].shape == (1, 36)


def test_tuning(monkeypatch):
    monkeypatch.setattr(sa, "warm_up", functools.partial(sa.warm_up, patience_s=0.1))  # the other tests leave no processor idle
    sa.set_options(effort="measure", budget_s=0.02)
    assert run("docs/tuning.md")["model"][0].values.shape[0] > 0


def test_formats(tmp_path, monkeypatch):
    pytest.importorskip("scipy")
    pytest.importorskip("safetensors")
    monkeypatch.chdir(tmp_path)
    names = run("docs/formats.md")
    assert names["a"].shape == (100, 80) and names["a"].nnz > 0
    assert sa.BSR.load(tmp_path / "a.safetensors", "a").block == (3, 4)
