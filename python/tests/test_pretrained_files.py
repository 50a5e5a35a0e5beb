"""Folders that save_pretrained wrote and somebody changed: the model that was saved comes back, or an error says what is wrong."""

import copy
import json
import pickle
import random
import subprocess
import sys
import time

import pytest
import torch

import sparse_autotune as sa

transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

SIZES = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
UP = "model.layers.0.mlp.up_proj"


def config(**changes):
    return transformers.LlamaConfig(**SIZES, **changes)


def sparse(made=None, filter=lambda name, _: "mlp" in name):  # noqa: A002
    return sa.to_block_sparse(made or transformers.LlamaForCausalLM(config()), 0.5, 8, filter=filter).eval()


def logits(model):
    with torch.no_grad():
        return model(torch.arange(8)[None])[0]


def changed(folder, change):
    """config.json's words of the block-sparse layers, changed."""
    path = folder / "config.json"
    told = json.loads(path.read_text())
    change(told["quantization_config"]["layers"])
    path.write_text(json.dumps(told))


def tensors_changed(folder, change):
    """The file that holds a tensor of the layer UP, changed."""
    for path in sorted(folder.glob("*.safetensors")):
        state = safetensors.load_file(path)
        if change(state):
            safetensors.save_file(state, path, metadata={"format": "pt"})
            return
    raise AssertionError("no file was changed")


def poison():
    """What the heap held before: no tensor that nobody fills passes for a good one."""
    for count in (16, 64, 96, 512, 3072, 6144):
        torch.full((count,), 3e37)


HOW = {
    "plain": {},
    "cast": dict(dtype=torch.bfloat16),
    "placed": dict(device_map="cpu"),
    "mismatches taken": dict(ignore_mismatched_sizes=True),
}


@pytest.mark.parametrize("shards", ["one file", "shards"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("part", ["values", "row_offsets", "col_indices", "bias"])
def test_no_tensor_is_left_as_it_was_found(part, how, shards, tmp_path):
    model = sparse(transformers.LlamaForCausalLM(config(mlp_bias=True)))
    model.save_pretrained(tmp_path, max_shard_size="20KB" if shards == "shards" else "1GB")
    files = len(list(tmp_path.glob("*.safetensors")))
    assert files > 2 if shards == "shards" else files == 1
    tensors_changed(tmp_path, lambda state: state.pop(f"{UP}.{part}", None) is not None)
    index = tmp_path / "model.safetensors.index.json"
    if index.exists():
        told = json.loads(index.read_text())
        del told["weight_map"][f"{UP}.{part}"]
        index.write_text(json.dumps(told))
    poison()
    with pytest.raises(ValueError, match=f"'{UP}' with {part}; the files have none"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **HOW[how])


@pytest.mark.parametrize("how", HOW)
def test_a_bias_that_no_file_has(how, tmp_path):
    sparse().save_pretrained(tmp_path)
    changed(tmp_path, lambda layers: layers[UP].update(bias=True))
    poison()
    with pytest.raises(ValueError, match=f"'{UP}' with bias; the files have none"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **HOW[how])


def _shape(state, part, change):
    name = f"{UP}.{part}"
    if name in state:
        state[name] = change(state[name]).contiguous()
    return name in state


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("part", ["values", "row_offsets", "col_indices"])
def test_tensors_of_another_size(part, how, tmp_path):
    sparse().save_pretrained(tmp_path)
    tensors_changed(tmp_path, lambda state: _shape(state, part, lambda t: t[:-1]))
    with pytest.raises(ValueError, match=rf"{UP}.{part} is \[.*; the file has \["):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **HOW[how])


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool])
def test_values_that_are_no_floating_numbers(dtype, tmp_path):
    sparse().save_pretrained(tmp_path)
    tensors_changed(tmp_path, lambda state: _shape(state, "values", lambda t: t.to(dtype)))
    with pytest.raises(ValueError, match=f"{UP}: its values in the files must be numbers of a floating type, and are of the type"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("change", [lambda t: t.flip(0), lambda t: t + 100, lambda t: t - 1, lambda t: t.float() + 0.5, lambda t: t.long() + 2**32])
@pytest.mark.parametrize("part", ["row_offsets", "col_indices"])
def test_wrong_indices(part, change, tmp_path):
    sparse().save_pretrained(tmp_path)
    tensors_changed(tmp_path, lambda state: _shape(state, part, change))
    with pytest.raises(ValueError, match=f"{UP}: its blocks in the files are wrong"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


LIES = [0, -1, 1 << 40, 63, 65, 10**30, True, None, 2.5, "64", [], [8], [8, 8, 8], [0, 8], [8, 1 << 40], [True, 8], {}, "relu6", False]


@pytest.mark.parametrize("seed", range(40))
def test_a_config_is_not_believed(seed, tmp_path_factory):
    """A few bytes of it cost neither time nor memory, whatever they say."""
    draw = random.Random(seed)
    model = torch.nn.ModuleDict({"0": torch.nn.Linear(64, 96), "1": torch.nn.Linear(96, 64)})
    facts = dict(in_features=64, out_features=96, block=[8, 8], blocks=draw.randint(0, 96), bias=True, activation=None)
    layers = {"0": dict(facts)}
    key = draw.choice([*facts, "0"])
    lie = draw.choice([lie for lie in LIES if key == "0" or lie != facts[key] or type(lie) is not type(facts[key])])
    good = key == "blocks" and type(lie) is int and 0 <= lie <= 96 or key == "bias" and lie is False
    if key == "0":
        layers["0"] = lie
    elif draw.random() < 0.2:
        del layers["0"][key]
        good = key == "activation"
    else:
        layers["0"][key] = lie
    from sparse_autotune import _pretrained

    began = time.process_time()
    if good:
        _pretrained.put_layers(model, layers)
        assert isinstance(model["0"], sa.SparseLinear) and all(tensor.is_meta for tensor in model["0"].state_dict().values())
    else:
        with pytest.raises(ValueError, match="config.json: tells of the block-sparse layer '0'"):
            _pretrained.put_layers(model, layers)
            pytest.fail(f"seed {seed}: {layers} was taken")
        assert type(model["0"]) is torch.nn.Linear
    assert time.process_time() - began < 60  # of this process: sizes that were believed would take minutes


def test_sizes_are_those_of_the_models_layer(tmp_path):
    sparse().save_pretrained(tmp_path)
    changed(tmp_path, lambda layers: layers[UP].update(in_features=1 << 30, out_features=1 << 30, block=[1, 1]))
    with pytest.raises(ValueError, match=f"'{UP}' that it is {1 << 30} x {1 << 30}; the model's layer is 96 x 64"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def told_changed(folder, change):
    """quantization_config of config.json, changed."""
    path = folder / "config.json"
    told = json.loads(path.read_text())
    change(told["quantization_config"])
    path.write_text(json.dumps(told))


WORDS = {  # of quantization_config: what is changed, and what is refused
    "no layers": (lambda told: told.pop("layers"), "has no layers"),
    "null for layers": (lambda told: told.update(layers=None), "its layers must be an object, not NoneType"),
    "a list of layers": (lambda told: told.update(layers=list(told["layers"])), "its layers must be an object, not list"),
    "another method": (lambda told: told.update(quant_method="bitsandbytes"), "has quant_method 'bitsandbytes' beside loader 'sparse_autotune'"),
    "an unknown method": (lambda told: told.update(quant_method="mine"), "has quant_method 'mine' beside loader"),
    "no method": (lambda told: told.update(quant_method=None), "has quant_method None beside loader"),
    "another loader": (lambda told: told.update(loader="mine", quant_method="sparse_autotune"), "has loader 'mine' beside quant_method 'sparse_autotune'"),
    "an unknown word": (lambda told: told.update(scale=2), "has 'scale', which sparse_autotune does not know; it knows loader, needs, layers"),
    "a word of another method": (lambda told: told.update(load_in_4bit=True), "has 'load_in_4bit', which"),
    "many unknown words": (lambda told: told.update(dict.fromkeys("abcde")), "has 'a', 'b', 'c' and 2 more, which"),
}


VERSIONS = [(word, version) for word in WORDS for version in ("now", "preview") if version == "now" or "quant_method" not in WORDS[word][1]]


@pytest.mark.parametrize("word,version", VERSIONS)
def test_words_beside_the_layers(word, version, tmp_path):
    sparse().save_pretrained(tmp_path)
    if version == "preview":
        told_changed(tmp_path, lambda told: [told.pop("loader"), told.pop("needs"), told.update(quant_method="sparse_autotune")])
    told_changed(tmp_path, WORDS[word][0])
    with pytest.raises(ValueError, match=f"config.json: its quantization_config:? {WORDS[word][1]}"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("fact", [dict(transposed=True), dict(scale=None), dict(In_features=64)])
def test_facts_of_a_layer_that_nobody_knows(fact, tmp_path):
    sparse().save_pretrained(tmp_path)
    changed(tmp_path, lambda layers: layers[UP].update(fact))
    with pytest.raises(ValueError, match=f"'{UP}' that it has '{next(iter(fact))}', which sparse_autotune does not know; it knows in_features, out_features"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def as_pickles(folder):
    """The tensors as torch.save keeps them."""
    for path in folder.glob("*.safetensors"):
        torch.save(safetensors.load_file(path), folder / "pytorch_model.bin")
        path.unlink()


@pytest.mark.parametrize("files", ["one", "shards", "pickle"])
@pytest.mark.parametrize("seed", range(3))
def test_layers_of_which_nothing_is_told(seed, files, tmp_path):
    model = sparse(filter=lambda name, _: True)
    model.save_pretrained(tmp_path, max_shard_size="20KB" if files == "shards" else "1GB")
    if files == "pickle":
        as_pickles(tmp_path)
    assert torch.equal(logits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()), logits(model))
    draw = random.Random(seed)
    names = [name for name, layer in model.named_modules() if isinstance(layer, sa.SparseLinear)]
    lost = draw.sample(names, draw.choice([1, 2, len(names)]))
    changed(tmp_path, lambda layers: [layers.pop(name) for name in lost])
    with pytest.raises(ValueError, match="config.json: the layers of its quantization_config lack '") as error:
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert any(f"'{name}'" in str(error.value) for name in lost), lost


def test_layers_that_the_model_makes_itself(tmp_path):
    """Of those config.json need not tell: they are there before anything is loaded."""

    class Model(transformers.LlamaForCausalLM):
        __module__ = transformers.LlamaForCausalLM.__module__

        def __init__(self, told):
            super().__init__(told)
            self.model.layers[0].mlp.up_proj = sa.SparseLinear(64, 96, 8, 0.5, bias=False)

    model = sparse(Model(config()), filter=lambda name, _: "gate" in name)
    model.save_pretrained(tmp_path)
    changed(tmp_path, lambda layers: layers.pop(UP))
    assert torch.equal(logits(Model.from_pretrained(tmp_path).eval()), logits(model))


# ------------------------------------------------------------------------------------------------ whose config it is


def test_models_of_one_config(tmp_path):
    """A teacher stays dense, whatever is done to the student; and what is pruned while it is trained tells of itself."""
    shared = config()
    before = shared.to_dict()
    teacher, student, pruned = (transformers.LlamaForCausalLM(shared).eval() for _ in range(3))
    sparse(student)
    pruner = sa.BlockPruner(pruned, None, 0.25, end=1, block=16, filter=lambda name, _: "mlp" in name)
    pruner.step()
    models = {"teacher": teacher, "student": student, "pruned": pruned}
    for order in (models, reversed(models)):
        for name in order:
            models[name].save_pretrained(tmp_path / name)
    for name, model in models.items():
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / name).eval()
        assert type(again.get_submodule(UP)) is type(model.get_submodule(UP)) and torch.equal(logits(again), logits(model))
        assert not hasattr(again.config, "quantization_config")
    assert student.config is teacher.config is shared and not hasattr(shared, "quantization_config")
    assert {key for key, value in shared.to_dict().items() if before.get(key) != value} <= {"architectures", "dtype"}


def test_a_dense_model_of_a_sparse_ones_config(tmp_path):
    sparse().save_pretrained(tmp_path / "sparse")
    read = transformers.AutoConfig.from_pretrained(tmp_path / "sparse")
    dense = transformers.LlamaForCausalLM(read).eval()
    dense.save_pretrained(tmp_path / "dense")
    assert "quantization_config" not in json.loads((tmp_path / "dense" / "config.json").read_text())
    assert torch.equal(logits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "dense").eval()), logits(dense))


def test_layers_are_told_wherever_they_came_from(tmp_path):
    """Of a part of the model, or put in by hand; in copies and pickles."""
    model = transformers.LlamaForCausalLM(config()).eval()
    sa.to_block_sparse(model.model, 0.5, 8, filter=lambda name, _: "gate" in name)
    model.get_submodule(UP.rpartition(".")[0]).up_proj = sa.SparseLinear(64, 96, 16, 0.5, bias=True)
    for number, one in enumerate((model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)))):
        one.save_pretrained(tmp_path / str(number))
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / str(number)).eval()
        assert torch.equal(logits(again), logits(model))
    pickle.loads(pickle.dumps(model.config))


def test_other_classes_of_the_same_model(tmp_path):
    whole = sparse(filter=None)
    whole.save_pretrained(tmp_path / "whole")
    assert isinstance(whole.lm_head, sa.SparseLinear)
    base = transformers.AutoModel.from_pretrained(tmp_path / "whole").eval()
    assert torch.equal(logits(base), logits(whole.model))
    told = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "whole").eval()
    assert torch.equal(logits(told.model), logits(whole.model))
    base.save_pretrained(tmp_path / "base")
    head = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base").eval()
    assert torch.equal(logits(head.model), logits(base)) and type(head.lm_head) is torch.nn.Linear


# ------------------------------------------------------------------------------------------------ who may load it


def run(program, *arguments):
    given = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True)


LOAD = """
model = transformers.LlamaForCausalLM.from_pretrained(sys.argv[1])
print(type(model.model.layers[0].mlp.up_proj).__name__)
"""


@pytest.mark.parametrize("imports", ["import sparse_autotune, transformers", "import transformers.modeling_utils, sparse_autotune"])
def test_importing_is_enough(imports, tmp_path):
    sparse().save_pretrained(tmp_path)
    done = run(
        f"import sys\n{imports}\nassert not any('_Finder' in repr(f) for f in sys.meta_path) or 'transformers.modeling_utils' not in sys.modules{LOAD}",
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout.strip() == "SparseLinear", done.stderr[-1000:]


def test_importing_costs_nothing():
    done = run("import sys, sparse_autotune; print([name for name in sys.modules if name.split('.')[0] == 'transformers'])")
    assert done.stdout.strip() == "[]", done.stderr[-1000:]


def test_without_sparse_autotune_it_is_refused(tmp_path):
    """Its layers would have random weights."""
    sparse().save_pretrained(tmp_path)
    done = run(f"import sys, transformers{LOAD}", tmp_path)
    assert done.returncode != 0 and "quant_method" in done.stderr, done.stdout


def test_files_of_the_first_version(tmp_path):
    """They had a quant_method."""
    model = sparse()
    model.save_pretrained(tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    told["quantization_config"] = {"quant_method": "sparse_autotune", "layers": told["quantization_config"]["layers"]}
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert torch.equal(logits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()), logits(model))


def test_a_card_says_how_to_load_it(tmp_path):
    model = sparse()
    model.save_pretrained(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "6 of the linear layers" in text and "50 % of their blocks" in text
    program = text.split("```python\n")[1].split("```")[0].replace("path of this folder", str(tmp_path))
    done = run(program + "print(type(model.model.layers[0].mlp.up_proj).__name__)")
    assert done.stdout.strip() == "SparseLinear", done.stderr[-1000:]
    (tmp_path / "README.md").write_text("mine")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    transformers.LlamaForCausalLM(config()).save_pretrained(tmp_path / "dense")
    assert not (tmp_path / "dense" / "README.md").exists()
