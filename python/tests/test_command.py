"""The command `sparsek` that comes with the package, and what it reads of models."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
from conftest import PROGRAM

import sparse_autotune as sa

COMMAND = pathlib.Path(sys.executable).with_name("sparsek")


def run(*arguments, cwd):
    done = subprocess.run(list(map(str, arguments)), cwd=cwd, env=os.environ | {"SPARSEK_STORE": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not COMMAND.exists(), reason="the package is not installed in this environment")
def test_the_command(tmp_path):
    said = run(COMMAND, "--version", cwd=tmp_path)
    assert said.startswith("sparsek ") and said == run(sys.executable, "-m", "sparse_autotune", "--version", cwd=tmp_path)
    done = subprocess.run([COMMAND, "benhc"], capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean 'bench'?" in done.stderr


def test_layers_of_a_saved_model(tmp_path):
    """By name, of the sizes that config.json tells; edge rows and columns too."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(vocab_size=99, hidden_size=60, intermediate_size=90, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
    model = transformers.LlamaForCausalLM(config)
    sa.to_block_sparse(model, 0.3, 16, filter=lambda name, layer: "mlp" in name)
    for folder, words in (("one", {}), ("several", dict(max_shard_size="30KB"))):
        model.save_pretrained(tmp_path / folder, **words)
        files = sorted(path.name for path in (tmp_path / folder).glob("model*safetensors*"))
        file = "model.safetensors" if folder == "one" else "model.safetensors.index.json"
        assert file in files and (len(files) > 2) == (folder == "several"), files
        apart = 0
        for name, layer in model.named_modules():
            if not isinstance(layer, sa.SparseLinear):
                continue
            command = [PROGRAM, "convert", file, tmp_path / "out.safetensors", "--tensor", name, "--tensor-out", "w"]
            done = subprocess.run(list(map(str, command)), cwd=tmp_path / folder, env=os.environ | {"SPARSEK_STORE": ""}, capture_output=True, text=True)
            if "lie in several files" in done.stderr:  # where one file ends and the next begins
                apart += 1
                continue
            assert done.returncode == 0 and not done.stderr, done.stderr
            assert torch.equal(sa.BSR.load(tmp_path / "out.safetensors").to_dense(), layer.weight.to_dense()), name
        assert apart <= (0 if folder == "one" else 3)
    up = "model.layers.1.mlp.up_proj"
    told = json.loads(run(PROGRAM, "inspect", "model.safetensors", "--tensor", up, "--json", "-", cwd=tmp_path / "one"))
    assert "BSR 90 x 60 f32" in told["results"][0]["format"]
