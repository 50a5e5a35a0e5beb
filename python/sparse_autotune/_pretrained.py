"""Models of Hugging Face transformers with block-sparse layers, which save_pretrained and from_pretrained keep.

transformers finds how a model's layers are stored in "quantization_config" of config.json. Here it names each block-sparse layer and its
sizes; a loader that is registered with transformers puts such layers into the model before its weights come. It has no "quant_method": a
transformers that does not know the loader, as sparse_autotune was not imported, refuses such a file then. Of a method that it does not
know, it would pass over the layers, and make up their weights.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import re
import sys
from typing import Any, cast

import torch
from torch import nn

from . import _card, _conversions, _while_loading
from ._bsr import BSR
from ._linear import SparseLinear
from ._numbers import ACTIVATIONS
from ._warnings import warn

METHOD = "sparse_autotune"
_WORDS = ("loader", "needs", "layers", "quant_method")  # of quantization_config; the last is that of files of the preview
_FACTS = ("in_features", "out_features", "block", "blocks", "bias", "activation")
_PARTS = ("values", "row_offsets", "col_indices", "bias")
_KINDS = {torch.int32: "I32", torch.int64: "I64"}
Headers = dict[str, tuple[list[int], str]]  # names in files: shape and type


# ------------------------------------------------------------------------------------------------ what config.json tells


def layers_of(model: nn.Module) -> dict[str, dict[str, Any]]:
    """What config.json tells of each block-sparse layer."""
    return {name: _facts(layer) for name, layer in model.named_modules() if isinstance(layer, SparseLinear)}


def _facts(layer: SparseLinear) -> dict[str, Any]:
    sizes = dict(in_features=layer.in_features, out_features=layer.out_features, block=list(layer.block), blocks=layer.nnzb)
    return sizes | dict(bias=layer.bias is not None, activation=layer.activation)


def _is_ours(told: Any) -> bool:
    return isinstance(told, dict) and METHOD in (told.get("loader"), told.get("quant_method"))


def _check_words(told: dict[str, Any]) -> None:
    """ValueError where quantization_config lacks its layers, or has a word that could mean anything of them. Passed over, it would leave dense
    layers with random weights, or others than were saved."""
    where = "config.json: its quantization_config"
    for key in ("loader", "quant_method"):
        if key in told and told[key] != METHOD:
            other = "quant_method" if key == "loader" else "loader"
            raise ValueError(f"{where} has {key} {told[key]!r} beside {other} {METHOD!r}: only one of them can load its layers")
    unknown = [key for key in told if key not in _WORDS]
    if unknown:
        raise ValueError(f"{where} has {_listed(unknown)}, which {METHOD} does not know; it knows {', '.join(_WORDS)}")
    if "layers" not in told:
        raise ValueError(f"{where} has no layers: nothing says which layers are block-sparse")
    if not isinstance(told["layers"], dict):
        raise ValueError(f"{where}: its layers must be an object, not {type(told['layers']).__name__}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more


def _checked(name: str, facts: Any, linear: nn.Linear) -> dict[str, Any]:
    """What is told of a layer, where it can be true of the layer that the model has; ValueError else, before anything is made of it."""
    where = f"config.json: tells of the block-sparse layer {name!r}"
    if not isinstance(facts, dict):
        raise ValueError(f"{where}: {facts!r}, which is no object")
    unknown = [key for key in facts if key not in _FACTS]
    if unknown:
        raise ValueError(f"{where} that it has {_listed(unknown)}, which {METHOD} does not know; it knows {', '.join(_FACTS)}")
    for key in ("in_features", "out_features", "blocks"):
        if type(facts.get(key)) is not int:
            raise ValueError(f"{where} that {key} is {facts.get(key)!r}, which is no whole number")
    sizes, wanted = (facts["out_features"], facts["in_features"]), (linear.out_features, linear.in_features)
    if sizes != wanted:
        raise ValueError(f"{where} that it is {sizes[0]} x {sizes[1]}; the model's layer is {wanted[0]} x {wanted[1]}")
    block = facts.get("block")
    if not isinstance(block, list) or len(block) != 2 or any(type(side) is not int or not 1 <= side <= 256 for side in block):
        raise ValueError(f"{where} that its block is {block!r}; it must be [high, wide], each 1 to 256")
    most = -(-wanted[0] // block[0]) * -(-wanted[1] // block[1])
    if not 0 <= facts["blocks"] <= most:
        raise ValueError(f"{where} that {facts['blocks']} blocks are stored; it has 0 to {most}")
    if type(facts.get("bias")) is not bool:
        raise ValueError(f"{where} that bias is {facts.get('bias')!r}, which is neither true nor false")
    if facts.get("activation") not in tuple(ACTIVATIONS):
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"{where} that activation is {facts.get('activation')!r}; known are {known}")
    return facts


# ------------------------------------------------------------------------------------------------ loading


def _empty(facts: dict[str, Any], dtype: torch.dtype) -> SparseLinear:
    """A layer of so many blocks, which are to be loaded. Nothing of it takes memory."""
    rows, cols, block = facts["out_features"], facts["in_features"], (facts["block"][0], facts["block"][1])
    offsets = torch.empty(-(-rows // block[0]) + 1, dtype=torch.int32, device="meta")
    columns = torch.empty(facts["blocks"], dtype=torch.int32, device="meta")
    pattern = BSR.from_pattern(offsets, columns, block, (rows, cols))
    return SparseLinear(cols, rows, bias=facts["bias"], pattern=pattern, activation=facts["activation"], device="meta", dtype=dtype)


def _place(name: str, modules: dict[str, nn.Module], model: Any) -> str | None:
    """The name here of a layer that another class of the same model saved: with the base model's name before it, or without. None: it
    belongs to a head that this class does not have."""
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    for own in (name, name.removeprefix(prefix), prefix + name):
        if own in modules:
            return own
    saved_by = getattr(getattr(model, "config", None), "architectures", None) or []
    foreign_head = prefix != "." and not name.startswith(prefix) and type(model).__name__ not in saved_by
    return None if foreign_head else name


def put_layers(model: nn.Module, layers: dict[str, dict[str, Any]], headers: Headers | None = None) -> dict[str, SparseLinear]:
    """Puts empty block-sparse layers in the places of nn.Linear ones; gives them by their names. headers: of the files.

    ValueError names a layer that the model does not have, or of which config.json tells what is not so of the model or the files. Nothing
    is changed then.
    """
    modules = dict(model.named_modules())
    made: dict[str, SparseLinear] = {}
    for told, facts in layers.items():
        name = _place(told, modules, model)
        if name is None:
            continue
        linear = modules.get(name)
        if not isinstance(linear, nn.Linear):
            there = "no such layer" if linear is None else f"{type(linear).__name__} there"
            raise ValueError(f"config.json: tells of a block-sparse layer {told!r}; the model has {there}")
        layer = _empty(_checked(told, facts, linear), linear.weight.dtype).train(linear.training)
        _check_files(told, layer, headers or {})
        made[name] = _while_loading.begin(layer)
    places = {id(modules[name]): layer for name, layer in made.items()}
    for module in modules.values():
        for own, child in list(module._modules.items()):
            if id(child) in places:
                module._modules[own] = places[id(child)]
    _forget_ties(model)
    return made


def _forget_ties(model: Any) -> None:
    """transformers looks for the weights that it ties by name, and a block-sparse layer has none of that name."""
    tied: dict[str, str] = getattr(model, "all_tied_weights_keys", None) or {}
    for target, source in list(tied.items()):
        owners = []
        for name in (target, source):
            try:
                owners.append(model.get_submodule(name.rpartition(".")[0]))
            except AttributeError:
                continue
        if any(isinstance(owner, SparseLinear) for owner in owners) and target.endswith(".weight"):
            del tied[target]


def _tensors(layer: SparseLinear) -> dict[str, torch.Tensor]:
    return {part: getattr(layer, part) for part in _PARTS if getattr(layer, part) is not None}


def _check_files(name: str, layer: SparseLinear, headers: Headers) -> None:
    for part, tensor in _tensors(layer).items():
        shape, kind = headers.get(f"{name}.{part}", (list(tensor.shape), None))
        if shape != list(tensor.shape):
            raise ValueError(f"config.json: tells that {name}.{part} is {list(tensor.shape)}; the file has {shape}")
        if kind is not None and not tensor.is_floating_point() and kind not in ("I32", "I64"):
            raise ValueError(f"{name}: its blocks in the files are wrong: {part} must be int32 or int64, and is of the type {kind} there")
        if kind is not None and tensor.is_floating_point() and not kind.removeprefix("torch.").startswith(("F", "BF", "float", "bfloat")):
            raise ValueError(f"{name}: its {part} in the files must be numbers of a floating type, and are of the type {kind} there")


def headers_of(files: Any) -> Headers:
    """What files say of the tensors that may be a block-sparse layer's."""
    from safetensors import safe_open

    found: Headers = {}
    for path in map(str, files or ()):
        if path.endswith(".safetensors"):
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118
                    if key.rpartition(".")[2] in _PARTS:
                        tensor = file.get_slice(key)
                        found[key] = list(tensor.get_shape()), tensor.get_dtype()
        elif path.endswith((".bin", ".pt", ".pth")):
            with contextlib.suppress(pickle.UnpicklingError):  # transformers says what is wrong, or was told to trust it
                for key, tensor in torch.load(path, map_location="meta", weights_only=True).items():
                    if key.rpartition(".")[2] in _PARTS and isinstance(tensor, torch.Tensor):
                        found[key] = list(tensor.shape), _KINDS.get(tensor.dtype, str(tensor.dtype))
    return found


def _check_told(model: nn.Module, layers: dict[str, Any], headers: Headers) -> None:
    """ValueError where the files have blocks of a layer of which config.json does not tell: the model's would get random weights.

    A model may rename its layers on their way to the files: then a layer that is told has its blocks under a name that is not told. So names
    are wrong only where there are more of them than of such layers.
    """
    modules, own = dict(model.named_modules()), set(model.state_dict())
    stored = {}
    for key in headers:
        name, _, part = key.rpartition(".")
        place = _place(name, modules, model) or name
        blocks = part in ("row_offsets", "col_indices") or part == "values" and type(modules.get(place)) is nn.Linear
        if blocks and f"{place}.{part}" not in own:
            stored[name] = key
    untold = [name for name in stored if name not in layers]
    if len(untold) > sum(f"{name}.col_indices" not in headers for name in layers):
        first = untold[0]
        raise ValueError(
            f"config.json: the layers of its quantization_config lack {_listed(untold)}, of which the files have blocks ({stored[first]}): "
            "without their sizes they cannot be loaded"
        )


def check_loaded(layers: dict[str, SparseLinear], headers: Headers, model: nn.Module) -> None:
    """Whether all of these layers came from the files. What did not is memory as it was found.

    transformers marks the tensors that it loads. Those that it keeps on a disk are without memory here. ValueError names what is missing or
    wrong.
    """
    marks = any(hasattr(tensor, "_is_hf_initialized") for tensor in (*model.parameters(), *model.buffers()))
    for name, layer in layers.items():
        tensors = _tensors(layer)
        for part, tensor in tensors.items():
            came = getattr(tensor, "_is_hf_initialized", False) if marks else f"{name}.{part}" in headers
            if not came and not tensor.is_meta:
                raise ValueError(f"config.json: tells of a block-sparse layer {name!r} with {part}; the files have none of its shape, {list(tensor.shape)}")
        if not any(tensor.is_meta for tensor in tensors.values()):
            try:
                layer.weight._check_all_indices()
            except ValueError as error:
                raise ValueError(f"{name}: its blocks in the files are wrong: {error}") from None


# ------------------------------------------------------------------------------------------------ saving


def mark_kept(model: nn.Module) -> None:
    """Some transformers models keep layers in float32 whatever the rest is in, and cast what these get only where the weight is a tensor: such
    a block-sparse layer casts its input itself."""
    for own, module in model.named_modules():
        names = [*(getattr(module, "_keep_in_fp32_modules", None) or ()), *(getattr(module, "_keep_in_fp32_modules_strict", None) or ())]
        if names and hasattr(module, "save_pretrained"):
            kept = re.compile("|".join(rf"(^|\.){name}($|\.)" for name in names))
            for name, layer in module.named_modules(prefix=own):
                if isinstance(layer, SparseLinear) and kept.search(name):
                    layer.casts_input = True


def describe(model: nn.Module) -> None:
    """From now on save_pretrained of a transformers model tells of its block-sparse layers."""
    mark_kept(model)
    if hasattr(model, "save_pretrained") and "transformers.modeling_utils" in sys.modules:
        register()


def _told_while_saving(save: Any) -> Any:
    """PreTrainedModel.save_pretrained, with the layers that the model has at that moment in its config. The config itself, which other
    models may share, is left as it is."""

    @functools.wraps(save)
    def save_pretrained(self: Any, save_directory: Any, *args: Any, **words: Any) -> Any:
        layers, config = layers_of(self), getattr(self, "config", None)
        told = getattr(config, "quantization_config", None)
        if config is None or getattr(self, "_hf_peft_config_loaded", False) or not (layers or _is_ours(told)):
            return save(self, save_directory, *args, **words)
        if layers and told is not None and not _is_ours(told):
            warn("sparse_autotune: config: tells of another quantization method already, and not of the block-sparse layers: from_pretrained cannot load them")
            return save(self, save_directory, *args, **words)
        self.config = copy.copy(config)
        if layers:
            self.config.quantization_config = {"loader": METHOD, "needs": f"import {METHOD}, before the model is loaded", "layers": layers}
        else:
            del self.config.quantization_config
        try:
            _conversions.exempt(self, list(layers))
            made = save(self, save_directory, *args, **words)
            if layers and words.get("is_main_process", True):
                _card.write(save_directory, type(self).__name__, layers)
            return made
        finally:
            for key in ("architectures", "dtype"):  # which it sets
                if hasattr(self.config, key):
                    setattr(config, key, getattr(self.config, key))
            self.config = config
            _conversions.restore(self)

    return save_pretrained


def register() -> None:
    """With transformers, once."""
    from transformers import modeling_utils  # type: ignore[import-untyped,unused-ignore]
    from transformers.quantizers import auto, base  # type: ignore[import-untyped,unused-ignore]
    from transformers.utils import quantization_config  # type: ignore[import-untyped,unused-ignore]

    if METHOD in auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        return

    class Config(quantization_config.QuantizationConfigMixin):  # type: ignore[misc,unused-ignore]
        def __init__(self, **told: Any):
            _check_words(told)
            self.quant_method, self.layers = cast(Any, METHOD), told["layers"]

    class Loader(base.HfQuantizer):  # type: ignore[misc,unused-ignore]
        _made: dict[str, SparseLinear]
        _headers: Headers

        def _process_model_before_weight_loading(self, model: Any, **words: Any) -> None:
            config: Any = self.quantization_config
            self._headers = headers_of(words.get("checkpoint_files"))
            self._made = put_layers(model, config.layers, self._headers)
            _check_told(model, config.layers, self._headers)

        def postprocess_model(self, model: Any, **_words: Any) -> None:
            """It is a model as others are: half(), float() and training are as they were."""
            _while_loading.finish(model)
            self.remove_quantization_config(model)
            check_loaded(self._made, self._headers, model)
            describe(model)

        def update_weight_conversions(self, weight_conversions: Any, model: Any) -> Any:
            config: Any = self.quantization_config
            return _conversions.left(super().update_weight_conversions(weight_conversions, model), config.layers)

        def is_serializable(self, *_args: Any, **_words: Any) -> bool:
            return True

        @property
        def is_trainable(self) -> bool:
            return True

    supports = auto.AutoHfQuantizer.supports_quant_method

    def supports_quant_method(told: Any) -> Any:
        if _is_ours(told):
            _check_words(told)
            told.setdefault("quant_method", METHOD)
        return supports(told)

    auto.register_quantization_config(METHOD)(Config)
    auto.register_quantizer(METHOD)(Loader)
    auto.AutoHfQuantizer.supports_quant_method = staticmethod(supports_quant_method)  # type: ignore[method-assign,unused-ignore]
    model: Any = modeling_utils.PreTrainedModel
    model.save_pretrained = _told_while_saving(model.save_pretrained)
