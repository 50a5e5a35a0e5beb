"""The Python code of the README files runs."""

import pathlib
import re

import pytest

import sparse_autotune as sa

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "python/README.md"])
def test_snippets(name, capsys):
    sa.set_options(effort="measure", budget_s=0.02)
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.M | re.S)
    assert snippets
    names = {}
    for snippet in snippets:
        exec(snippet, names)
    assert "pytorch_dense" in capsys.readouterr().out
    assert names["layer"].values.grad is not None
