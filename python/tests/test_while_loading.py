"""Loading of transformers models whose code names the weights of their layers, keeps some in float32, or joins them in the file."""

import math

import pytest
import torch
from conftest import close

import sparse_autotune as sa

transformers = pytest.importorskip("transformers", reason="Hugging Face transformers is not installed: NOTHING of it was tested", exc_type=ImportError)

SMALL = dict(vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)
T5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)


@pytest.fixture(autouse=True)
def _registered():
    sa.register_with_transformers()


def _mlp(name, _layer):
    return "mlp" in name or "DenseReluDense" in name or "self_attn" in name


# What models do to the weight of a layer within their _init_weights.
DEEDS = {
    "init": lambda weight: [
        one(weight)
        for one in (torch.nn.init.xavier_uniform_, torch.nn.init.zeros_, torch.nn.init.orthogonal_, torch.nn.init.trunc_normal_, torch.nn.init.kaiming_normal_)
    ],
    "of transformers": lambda weight: [
        transformers.initialization.normal_(weight, mean=0.0, std=0.02),
        transformers.initialization.copy_(weight, torch.zeros(weight.shape)),
        transformers.initialization.lecun_normal_(weight),
    ],
    "methods": lambda weight: weight.data.normal_().mul_(0.5).clamp_(-1, 1),
    "slices": lambda weight: [weight.data[: weight.shape[0] // 2].fill_(1.0), transformers.initialization.zeros_(weight[0])],
    "sizes": lambda weight: torch.nn.init.normal_(weight.data, std=1 / math.sqrt(weight.size(0) * weight.shape[1] * weight.dim() * weight.numel())),
    "in place": lambda weight: weight.__itruediv__(3.0),
    "copies": lambda weight: weight.copy_(torch.eye(*weight.shape)),
    "flags": lambda weight: setattr(weight, "_is_hf_initialized", True),
    "of PyTorch's kind": lambda weight: torch.nn.init.ones_(weight) if isinstance(weight, torch.nn.Parameter) else 1 / 0,
}


@pytest.mark.parametrize("deed", DEEDS)
def test_models_that_initialise_their_layers_weights(deed, tmp_path):
    met = []

    class Model(transformers.LlamaModel):
        __module__ = transformers.LlamaModel.__module__  # of classes of others transformers passes over what is loaded

        @torch.no_grad()
        def _init_weights(self, module):
            super()._init_weights(module)
            if hasattr(module, "up_proj"):
                for layer in (module.up_proj, module.gate_proj, module.down_proj):
                    met.append(type(layer.weight))
                    DEEDS[deed](layer.weight)

    model = sa.to_block_sparse(Model(transformers.LlamaConfig(**SMALL)), 0.5, 8, filter=_mlp)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    met.clear()
    loaded = Model.from_pretrained(tmp_path)
    assert met
    state = loaded.state_dict()
    assert list(state) == list(model.state_dict()) and all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    layers = [layer for layer in loaded.modules() if isinstance(layer, sa.SparseLinear)]
    assert layers and all(type(layer) is sa.SparseLinear and isinstance(layer.weight, sa.BSR) for layer in layers)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layers_that_a_model_keeps_in_float32(dtype, tmp_path):
    """T5 keeps "wo" so, and casts its input where the weight is a tensor."""
    model = sa.to_block_sparse(transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)).eval(), 0.5, 8, filter=_mlp)
    model.save_pretrained(tmp_path / "sparse")
    sa.to_dense(model).save_pretrained(tmp_path / "dense")
    ids = torch.randint(3, 99, (2, 10))
    sparse, dense = (transformers.T5ForConditionalGeneration.from_pretrained(tmp_path / kind, dtype=dtype).eval() for kind in ("sparse", "dense"))
    again = sa.to_block_sparse(transformers.T5ForConditionalGeneration.from_pretrained(tmp_path / "dense", dtype=dtype).eval(), 0.5, 8, filter=_mlp)
    kept = dense.encoder.block[0].layer[-1].DenseReluDense.wo.weight.dtype
    want = dense(input_ids=ids, decoder_input_ids=ids).logits
    for made in (sparse, again):
        layer = made.encoder.block[0].layer[-1].DenseReluDense
        assert layer.wo.values.dtype is kept and layer.wi.values.dtype is dtype
        close(made(input_ids=ids, decoder_input_ids=ids).logits, want)
        with pytest.raises(RuntimeError, match="x: its dtype must be that of values"):
            layer.wi(torch.ones(2, 32))
    close(sa.to_dense(again)(input_ids=ids, decoder_input_ids=ids).logits, want)


joined = pytest.importorskip("transformers.core_model_loading", reason="transformers before 5 joins no weights in files")


def _joins(pattern_in_file, names):
    """A model whose file has the weights of some layers as one."""

    class Model(transformers.LlamaForCausalLM):
        pass

    transform = joined.WeightConverter(source_patterns=pattern_in_file, target_patterns=names, operations=[joined.Chunk(dim=0)])
    from transformers.conversion_mapping import register_checkpoint_conversion_mapping

    register_checkpoint_conversion_mapping("Model", [transform], overwrite=True)
    return Model


@torch.no_grad()
@pytest.mark.parametrize("suffix", ["", ".weight"])
@pytest.mark.parametrize("sparse", ["q_proj", "q_proj k_proj v_proj", "up_proj", "q_proj up_proj"])
def test_weights_that_the_file_has_as_one(suffix, sparse, tmp_path):
    names = [f"self_attn.{name}{suffix}" for name in ("q_proj", "k_proj", "v_proj")]
    kind = _joins(f"self_attn.att_proj{suffix}", names)
    model = kind(transformers.LlamaConfig(**SMALL | {"num_hidden_layers": 2})).eval()
    model.save_pretrained(tmp_path / "dense")
    files = _names(tmp_path / "dense")
    assert any("att_proj" in name for name in files) and not any("q_proj" in name for name in files)
    taken = sparse.split()
    sa.to_block_sparse(model, 0.4, 8, filter=lambda name, _layer: name.rpartition(".")[2] in taken and "layers.0" in name)
    model.save_pretrained(tmp_path / "sparse")
    loaded, said = kind.from_pretrained(tmp_path / "sparse", output_loading_info=True)
    assert not said["missing_keys"] and not said["unexpected_keys"] and not said["mismatched_keys"], said
    ids = torch.randint(99, (2, 6))
    assert torch.equal(loaded(ids).logits, model(ids).logits)
    loaded.save_pretrained(tmp_path / "again")
    assert torch.equal(kind.from_pretrained(tmp_path / "again")(ids).logits, model(ids).logits)
    for number, one in enumerate((model, loaded)):  # dense again, they are joined again
        sa.to_dense(one).save_pretrained(tmp_path / f"back {number}")
        assert _names(tmp_path / f"back {number}") == files
        close(kind.from_pretrained(tmp_path / f"back {number}")(ids).logits, one(ids).logits)


def _names(folder):
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", "pt") as file:
        return sorted(file.keys())
