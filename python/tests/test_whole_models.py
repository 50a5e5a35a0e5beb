"""Whole models of transformers with block-sparse layers: LoRA adapters, tied layers, torch.compile, generation with a static cache."""

import copy

import pytest
import torch
from conftest import close
from test_pretrained import MODELS, SMALL
from torch._dynamo.utils import counters

import sparse_autotune as sa

transformers = pytest.importorskip("transformers")
TARGETS = {"llama": ["q_proj", "down_proj"], "bert": ["query", "dense"], "vit": "all-linear", "mixtral": ["q_proj", "v_proj"]}


def _sparse(kind, **words):
    model, inputs = MODELS[kind]()
    return sa.to_block_sparse(model.eval(), 0.4, 8, **words), inputs


def _first(found):
    return found[0]


# ---------------------------------------------------------------------------------------------------- LoRA


@pytest.fixture
def peft():
    return pytest.importorskip("peft")


def _adapters(model):
    return {name: p for name, p in model.named_parameters() if "lora_" in name}


@pytest.mark.parametrize("kind", MODELS)
def test_lora(peft, kind, tmp_path):
    model, inputs = _sparse(kind)
    before = _first(model(inputs)).detach()
    targets = TARGETS[kind]
    if targets == "all-linear":
        targets = [name for name, layer in model.named_modules() if isinstance(layer, sa.SparseLinear)]
    config = sa.register_with_peft(peft.LoraConfig(r=4, target_modules=targets))
    adapted = peft.get_peft_model(model, config)
    made = [m for m in adapted.modules() if type(m).__name__ == "LoraSparseLinear"]
    assert made and all(isinstance(m.base_layer, sa.SparseLinear) for m in made)
    close(_first(adapted(inputs)).detach(), before)  # B is zero at the beginning
    trained = [name for name, p in adapted.named_parameters() if p.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    optimizer = torch.optim.SGD([p for p in adapted.parameters() if p.requires_grad], lr=0.5)
    values = made[0].base_layer.values.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        _first(adapted(inputs))[..., :3].square().mean().backward()  # of a whole normalised row it would always be the same
        optimizer.step()
    assert torch.equal(made[0].base_layer.values, values)
    after = _first(adapted(inputs)).detach()
    assert not torch.equal(after, before)
    with adapted.disable_adapter():
        close(_first(adapted(inputs)).detach(), before)
    adapted.save_pretrained(tmp_path)
    clean = adapted.unload()
    close(_first(clean(inputs)).detach(), before)
    again = peft.PeftModel.from_pretrained(clean, tmp_path, config=sa.register_with_peft(peft.LoraConfig.from_pretrained(tmp_path)))
    close(_first(again.eval()(inputs)).detach(), after)


def test_lora_is_the_sum_of_both(peft):
    layer = sa.SparseLinear(32, 48, 8, 0.4, activation=None)
    model = torch.nn.Sequential(layer)
    dense = layer.to_dense()
    adapted = peft.get_peft_model(model, sa.register_with_peft(peft.LoraConfig(r=4, lora_alpha=8, target_modules=["0"])))
    for p in _adapters(adapted).values():
        torch.nn.init.normal_(p)
    a, b = (next(p for name, p in _adapters(adapted).items() if part in name) for part in ("lora_A", "lora_B"))
    x = torch.randn(5, 32)
    close(adapted(x).detach(), (dense(x) + 2 * (x @ a.mT) @ b.mT).detach())


def test_lora_that_cannot_be(peft):
    model = torch.nn.Sequential(sa.SparseLinear(32, 48, 8, 0.4))
    adapted = peft.get_peft_model(model, sa.register_with_peft(peft.LoraConfig(target_modules=["0"])))
    with pytest.raises(ValueError, match="cannot be merged"):
        adapted.merge_and_unload()
    with pytest.raises(TypeError, match="must be a peft.LoraConfig, not str"):
        sa.register_with_peft("lora")
    with pytest.raises(ValueError, match="use_dora"):
        sa.register_with_peft(peft.LoraConfig(use_dora=True, target_modules=["0"]))


def _adapted_layers(model):
    return sorted({name.split(".lora_")[0].removeprefix("base_model.model.") for name in _adapters(model)})


def test_lora_on_all_linear_layers(peft, tmp_path):
    """Block-sparse ones among them; the last layer is left out, as peft does."""
    model, inputs = _sparse("llama", filter=lambda name, layer: "mlp" in name or name == "lm_head")
    wanted = sorted(name for name, layer in model.named_modules() if isinstance(layer, (torch.nn.Linear, sa.SparseLinear)) and name != "lm_head")
    with pytest.raises(ValueError, match='target_modules="all-linear" finds dense layers alone.*give the model'):
        sa.register_with_peft(peft.LoraConfig(target_modules="all-linear"))
    config = sa.register_with_peft(peft.LoraConfig(r=2, target_modules="All-Linear"), model)
    adapted = peft.get_peft_model(model, config)
    assert _adapted_layers(adapted) == wanted
    for p in _adapters(adapted).values():
        torch.nn.init.normal_(p)
    adapted.save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(adapted.unload(), tmp_path, config=sa.register_with_peft(peft.LoraConfig.from_pretrained(tmp_path)))
    assert _adapted_layers(again) == wanted
    dense = peft.LoraConfig(r=2, target_modules="all-linear")
    assert _adapted_layers(peft.get_peft_model(sa.to_dense(again.unload()), dense)) == wanted


def test_lora_on_a_classifier(peft):
    config = transformers.LlamaConfig(vocab_size=50, num_key_value_heads=2, num_labels=16, pad_token_id=0, **SMALL)
    model = sa.to_block_sparse(transformers.LlamaForSequenceClassification(config), 0.4, 8)
    assert isinstance(model.score, sa.SparseLinear)
    made = sa.register_with_peft(peft.LoraConfig(r=2, target_modules="all-linear", task_type="SEQ_CLS"), model)
    assert made.target_modules and not any("score" in name for name in made.target_modules)


@pytest.mark.parametrize(
    "words,layers",
    [
        (dict(target_modules=r".*mlp\.(up|down)_proj"), ["0.mlp.down_proj", "0.mlp.up_proj", "1.mlp.down_proj", "1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], layers_to_transform=[1]), ["1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], exclude_modules=["model.layers.0.mlp.up_proj"]), ["1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], modules_to_save=["gate_proj"]), ["0.mlp.up_proj", "1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], use_rslora=True, lora_alpha=3), ["0.mlp.up_proj", "1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], rank_pattern={"up_proj": 3}), ["0.mlp.up_proj", "1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], init_lora_weights="gaussian"), ["0.mlp.up_proj", "1.mlp.up_proj"]),
        (dict(target_modules=["up_proj"], init_lora_weights="orthogonal"), ["0.mlp.up_proj", "1.mlp.up_proj"]),
    ],
)
def test_selections_of_lora(peft, words, layers, tmp_path):
    """Which layers, and beside the dense model of the same weights the same results."""
    model, inputs = _sparse("llama")
    dense = sa.to_dense(copy.deepcopy(model))
    made = [peft.get_peft_model(model, sa.register_with_peft(peft.LoraConfig(r=4, **words))), peft.get_peft_model(dense, peft.LoraConfig(r=4, **words))]
    assert [name.removeprefix("model.layers.") for name in _adapted_layers(made[0])] == layers
    for one in made:
        generator = torch.Generator().manual_seed(3)
        for p in _adapters(one).values():
            torch.nn.init.normal_(p, generator=generator)
    want = _first(made[1](inputs)).detach()
    close(_first(made[0](inputs)).detach(), want)
    _first(made[0](inputs)).square().mean().backward()
    trained = [name for name, p in made[0].named_parameters() if p.requires_grad and p.grad is None]
    assert not trained
    made[0].save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(copy.deepcopy(made[0].unload()), tmp_path, config=sa.register_with_peft(peft.LoraConfig.from_pretrained(tmp_path)))
    close(_first(again(inputs)).detach(), want)


@pytest.mark.parametrize("how", ["pissa", "PiSSA", "pissa_niter_4", "olora", "corda", "loftq", "mica", "lora_ga"])
def test_initialisations_that_read_the_dense_weight(peft, how):
    model = torch.nn.Sequential(sa.SparseLinear(32, 48, 8, 0.4))
    more = dict(loftq_config={"loftq_bits": 4}) if how == "loftq" else {}
    with pytest.raises(ValueError, match=f"init_lora_weights='{how}' is computed from the dense weight"):
        peft.get_peft_model(model, sa.register_with_peft(peft.LoraConfig(target_modules=["0"], init_lora_weights=how, **more)))


def test_lora_on_parameters(peft):
    model, _ = _sparse("llama", filter=lambda name, layer: "up_proj" in name)
    with pytest.raises(ValueError, match=r"target_parameters=\['mlp.up_proj.weight'\] finds dense layers alone.*give the model"):
        sa.register_with_peft(peft.LoraConfig(target_parameters=["mlp.up_proj.weight"]))
    with pytest.raises(ValueError, match="target_parameters names 'mlp.up_proj.weight', but 'model.layers.0.mlp.up_proj' is block-sparse"):
        sa.register_with_peft(peft.LoraConfig(target_parameters=["mlp.up_proj.weight"]), model)
    sa.register_with_peft(peft.LoraConfig(target_parameters=["mlp.down_proj.weight"]), model)
    with pytest.raises(ValueError, match="use_qalora needs a dense weight"):
        peft.get_peft_model(model, sa.register_with_peft(peft.LoraConfig(target_modules=["up_proj"], use_qalora=True)))


# ---------------------------------------------------------------------------------------------------- tied layers


def test_tied_embeddings_stay_tied(tmp_path):
    config = transformers.LlamaConfig(vocab_size=64, num_key_value_heads=2, tie_word_embeddings=True, **SMALL)
    model = transformers.LlamaForCausalLM(config).eval()
    with pytest.raises(ValueError, match="leave the layer out"):
        sa.to_block_sparse(model, 0.4, 8)
    model = sa.to_block_sparse(model, 0.4, 8, lambda name, layer: "lm_head" not in name)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    inputs = torch.randint(64, (2, 12))
    want = model(inputs).logits.detach()
    sa.register_with_transformers()
    model.save_pretrained(tmp_path)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    assert loaded.lm_head.weight is loaded.model.embed_tokens.weight
    close(loaded(inputs).logits.detach(), want)
    loaded(inputs).logits.square().mean().backward()
    assert loaded.lm_head.weight.grad is not None


def test_a_module_that_occurs_twice():
    """Layers that share one module, and layers that share one weight."""
    shared = torch.nn.Linear(32, 32)
    tied = torch.nn.Linear(32, 32)
    tied.weight = shared.weight
    model = torch.nn.Sequential(shared, torch.nn.ReLU(), shared, tied)
    dense = sa.to_dense(sa.to_block_sparse(model, 0.5, 8))
    assert dense[0] is dense[2] and dense[0].weight is dense[3].weight
    sparse = sa.to_block_sparse(dense, 0.5, 8)
    assert sparse[0] is sparse[2] and sparse[0].values is sparse[3].values
    assert len(list(sparse.parameters())) == 3  # one weight, two biases
    x = torch.randn(4, 32)
    sparse(x).sum().backward()
    got, place = sparse[0].values.grad, sparse[0].weight
    want = sa.to_dense(sparse)
    want(x).sum().backward()
    blocks = sa.BSR(place.row_offsets, place.col_indices, torch.ones_like(got), place.shape).to_dense() != 0
    close(sa.BSR(place.row_offsets, place.col_indices, got, place.shape).to_dense(), want[0].weight.grad * blocks)


# ---------------------------------------------------------------------------------------------------- torch.compile


@pytest.mark.parametrize("kind", MODELS)
def test_compile(kind):
    model, inputs = _sparse(kind)
    torch._dynamo.reset()
    want = _first(model(inputs)).detach()
    close(_first(torch.compile(model, backend="aot_eager", dynamic=False)(inputs)).detach(), want)


def test_compile_of_training():
    model, inputs = _sparse("llama")
    torch._dynamo.reset()
    model(inputs).logits.square().mean().backward()
    layer = next(m for m in model.modules() if isinstance(m, sa.SparseLinear))
    want = layer.values.grad.clone()
    model.zero_grad()
    torch.compile(model, backend="aot_eager", dynamic=False)(inputs).logits.square().mean().backward()
    close(layer.values.grad, want)


# ---------------------------------------------------------------------------------------------------- generation


@pytest.mark.parametrize("kind", ["llama", "mixtral"])
@pytest.mark.parametrize("attention", ["sdpa", "sparse_autotune"])
def test_generation_with_a_static_cache(kind, attention):
    sa.register_with_transformers()
    model, inputs = _sparse(kind)
    model.set_attn_implementation(attention)
    words = dict(max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=None)
    static = model.generate(inputs, cache_implementation="static", disable_compile=True, **words)
    dynamic = model.generate(inputs, **words)
    dense = sa.to_dense(model).generate(inputs, **words)
    assert static.shape == (2, 18)
    assert torch.equal(static, dynamic) and torch.equal(static, dense)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs are of a GPU")
def test_generation_in_a_graph():
    model, inputs = _sparse("llama")
    model, inputs = model.cuda(), inputs.cuda()
    words = dict(max_new_tokens=6, do_sample=False, pad_token_id=0, eos_token_id=None)
    want = model.generate(inputs, **words)
    # what transformers compiles: compiling model.forward as well makes PyTorch 2.11 crash, with a dense model too
    words |= dict(cache_implementation="static", compile_config=transformers.CompileConfig(mode="reduce-overhead", fullgraph=True, dynamic=False))
    counters.clear()
    for _ in range(2):
        assert torch.equal(model.generate(inputs, **words), want)
    assert counters["inductor"]["cudagraph_recorded_non_static_inputs"] > 0 and counters["inductor"]["cudagraph_skips"] == 0
