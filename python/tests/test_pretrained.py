"""Models of transformers with block-sparse layers, saved and loaded."""

import copy
import json

import pytest
import torch
from conftest import close

import sparse_autotune as sa

transformers = pytest.importorskip("transformers")

SMALL = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)


def _llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, num_key_value_heads=2, **SMALL)), torch.randint(50, (2, 12))


def _bert():
    return transformers.BertModel(transformers.BertConfig(vocab_size=50, **SMALL)), torch.randint(50, (2, 12))


def _vit():
    config = transformers.ViTConfig(image_size=16, patch_size=8, **SMALL)
    return transformers.ViTForImageClassification(config), torch.randn(2, 3, 16, 16)


def _mixtral():
    config = transformers.MixtralConfig(vocab_size=50, num_key_value_heads=2, num_local_experts=4, **SMALL)
    return transformers.MixtralForCausalLM(config), torch.randint(50, (2, 12))


MODELS = {"llama": _llama, "bert": _bert, "vit": _vit, "mixtral": _mixtral}


def _first(found):
    return found[0]


@pytest.fixture(autouse=True)
def _registered():
    sa.register_with_transformers()


@pytest.mark.parametrize("kind", MODELS)
def test_saved_and_loaded(kind, tmp_path):
    model, inputs = MODELS[kind]()
    model = sa.to_block_sparse(model.eval(), 0.4, 8)
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, sa.SparseLinear)}
    assert len(layers) > 4
    model.save_pretrained(tmp_path)
    found = json.loads((tmp_path / "config.json").read_text())["quantization_config"]
    assert found["loader"] == "sparse_autotune" and set(found["layers"]) == set(layers)
    loaded, said = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"], said
    for name, layer in layers.items():
        got = loaded.get_submodule(name)
        assert torch.equal(got.values, layer.values) and torch.equal(got.col_indices, layer.col_indices) and got.activation == layer.activation
    with torch.no_grad():
        close(_first(loaded(inputs)), _first(model(inputs)))


def test_loaded_models_are_as_others(tmp_path):
    model, tokens = _llama()
    sa.to_block_sparse(model, 0.4, 8, filter=lambda name, _: "mlp" in name).save_pretrained(tmp_path / "first")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "first", dtype=torch.bfloat16)
    layer = loaded.model.layers[0].mlp.up_proj
    assert isinstance(layer, sa.SparseLinear) and layer.values.dtype is torch.bfloat16 and layer.row_offsets.dtype is torch.int32
    loaded = loaded.float().train()
    loaded(tokens, labels=tokens).loss.backward()
    assert layer.values.grad is not None
    pruner = sa.BlockPruner(loaded, None, 0.2, end=1)
    pruner.step()
    loaded.save_pretrained(tmp_path / "second")  # with the blocks that there are now
    again = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "second").eval()
    with torch.no_grad():
        close(again(tokens).logits, loaded.eval()(tokens).logits)
    assert torch.equal(again.generate(tokens, max_new_tokens=3, do_sample=False), loaded.generate(tokens, max_new_tokens=3, do_sample=False))
    copied = copy.deepcopy(loaded)
    copied.save_pretrained(tmp_path / "third")
    with torch.no_grad():
        close(transformers.LlamaForCausalLM.from_pretrained(tmp_path / "third")(tokens).logits, loaded(tokens).logits)
    sa.to_dense(loaded).save_pretrained(tmp_path / "dense")
    assert "quantization_config" not in json.loads((tmp_path / "dense" / "config.json").read_text())
    with torch.no_grad():
        close(transformers.LlamaForCausalLM.from_pretrained(tmp_path / "dense")(tokens).logits, loaded(tokens).logits)


def test_a_config_that_does_not_fit(tmp_path):
    model, _ = _llama()
    sa.to_block_sparse(model, 0.4, 8).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace("mlp.up_proj", "mlp.other"))
    with pytest.raises(ValueError, match=r"config.json: tells of a block-sparse layer 'model.layers.0.mlp.other'; the model has no such layer"):
        transformers.LlamaForCausalLM.from_pretrained(tmp_path)
