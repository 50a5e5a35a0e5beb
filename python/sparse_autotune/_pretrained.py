"""Models of Hugging Face transformers with block-sparse layers, which save_pretrained and from_pretrained keep.

transformers finds how a model's layers are stored in "quantization_config" of config.json. Here it names each block-sparse layer and its
sizes; a loader that is registered under its method puts such layers into the model before its weights come.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from ._linear import SparseLinear

METHOD = "sparse_autotune"


class Layers:
    """In place of a "quantization_config": what the model's block-sparse layers are when somebody asks."""

    quant_method = METHOD

    def __init__(self, model: nn.Module):
        self._model = weakref.ref(model)

    def to_dict(self) -> dict[str, Any]:
        model = self._model()
        found = {} if model is None else {name: _facts(layer) for name, layer in model.named_modules() if isinstance(layer, SparseLinear)}
        return {"quant_method": METHOD, "layers": found}

    to_diff_dict = to_dict

    def __deepcopy__(self, memo: Any) -> Any:
        """A copy of a config tells what its model had; the copy of a model makes its own."""
        return self.to_dict()


def _facts(layer: SparseLinear) -> dict[str, Any]:
    sizes = dict(in_features=layer.in_features, out_features=layer.out_features, block=list(layer.block), blocks=layer.nnzb)
    return sizes | dict(bias=layer.bias is not None, activation=layer.activation)


def describe(model: nn.Module) -> None:
    """Lets the config of a transformers model tell of its block-sparse layers, unless it tells of another method already."""
    config: Any = getattr(model, "config", None)
    if config is None or not hasattr(config, "to_json_string") or not hasattr(model, "save_pretrained"):
        return
    given = getattr(config, "quantization_config", None)
    method = given.get("quant_method") if isinstance(given, dict) else getattr(given, "quant_method", None)
    if given is None or method == METHOD:
        config.quantization_config = Layers(model)


def forget(model: nn.Module) -> None:
    """After the last block-sparse layer has gone."""
    config: Any = getattr(model, "config", None)
    if isinstance(getattr(config, "quantization_config", None), Layers) and not any(isinstance(module, SparseLinear) for module in model.modules()):
        del config.quantization_config


def _empty(facts: dict[str, Any], dtype: torch.dtype) -> SparseLinear:
    """A layer of so many blocks, which are to be loaded."""
    made = SparseLinear(
        facts["in_features"],
        facts["out_features"],
        tuple(facts["block"]),
        0.0,
        bias=facts["bias"],
        activation=facts["activation"],
        device="meta",
        dtype=dtype,
    )
    made.values = nn.Parameter(made.values.new_empty(facts["blocks"], *made.block))
    made.col_indices = made.col_indices.new_empty(facts["blocks"])
    return made


def put_layers(model: nn.Module, layers: dict[str, dict[str, Any]]) -> None:
    """Puts empty block-sparse layers in the places of nn.Linear ones. ValueError names one that the model does not have."""
    modules = dict(model.named_modules())
    for name, facts in layers.items():
        linear = modules.get(name)
        if not isinstance(linear, nn.Linear):
            there = "no such layer" if linear is None else f"{type(linear).__name__} there"
            raise ValueError(f"config.json: tells of a block-sparse layer {name!r}; the model has {there}")
        parent, _, own = name.rpartition(".")
        setattr(modules[parent], own, _empty(facts, linear.weight.dtype).train(linear.training))


def register() -> None:
    """With transformers, once."""
    from transformers.quantizers import auto, base  # type: ignore[import-untyped,unused-ignore]
    from transformers.utils import quantization_config  # type: ignore[import-untyped,unused-ignore]

    if METHOD in auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        return

    class Config(quantization_config.QuantizationConfigMixin):  # type: ignore[misc,unused-ignore]
        def __init__(self, layers: dict[str, Any] | None = None, quant_method: Any = METHOD):
            self.quant_method, self.layers = quant_method, layers or {}

    class Loader(base.HfQuantizer):  # type: ignore[misc,unused-ignore]
        def _process_model_before_weight_loading(self, model: Any, **_words: Any) -> None:
            config: Any = self.quantization_config
            put_layers(model, config.layers)

        def postprocess_model(self, model: Any, **_words: Any) -> None:
            """It is a model as others are: half(), float() and training are as they were."""
            self.remove_quantization_config(model)
            describe(model)

        def is_serializable(self, *_args: Any, **_words: Any) -> bool:
            return True

        @property
        def is_trainable(self) -> bool:
            return True

    auto.register_quantization_config(METHOD)(Config)
    auto.register_quantizer(METHOD)(Loader)
