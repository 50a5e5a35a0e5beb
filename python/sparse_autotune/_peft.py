"""LoRA adapters of Hugging Face peft on block-sparse layers. peft is imported where it is asked for, not before."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import nn

from ._linear import SparseLinear, check_model

_ALL = "all-linear"
_INITS = (True, False, "gaussian", "orthogonal", "eva")  # those that do not read the layer's weight
_VARIANTS = ("alora_invocation_tokens",)  # likewise
_CLASSIFIERS = ("score", "classifier")


def _check(config: Any, layer: str) -> None:
    """What of a LoraConfig needs a dense weight is refused by name. config: a LoraConfig, or its fields."""
    fields = {field.name: field.metadata.get("is_lora_variant", False) for field in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {}
    asked = (lambda name: getattr(config, name, None)) if fields else config.get
    init = True if asked("init_lora_weights") is None else asked("init_lora_weights")
    if (init.lower() if isinstance(init, str) else init) not in _INITS:
        raise ValueError(
            f"config: init_lora_weights={init!r} is computed from the dense weight, and {layer} is block-sparse; take True, False, 'gaussian', 'orthogonal' or "
            "'eva', or leave the layer out of target_modules"
        )
    variants = [name for name, variant in fields.items() if variant and name not in _VARIANTS] or ["use_dora"]
    for name in (*variants, "use_dora", "use_qalora"):
        if asked(name):
            raise ValueError(f"config: {name} needs a dense weight (DoRA its norms), and {layer} is block-sparse; leave the layer out of target_modules")


def _adapted() -> type:
    """The layer that peft puts around an sa.SparseLinear; made at the first call, as its base class is peft's."""
    from peft.tuners.lora.layer import Linear

    class LoraSparseLinear(Linear):  # type: ignore[misc]
        """y = base(x) + scaling * B(A(dropout(x))). The adapter stays beside the sparse weight: a sum of both would be dense."""

        def _get_in_out_features(self, module: Any) -> tuple[int, int]:
            return module.in_features, module.out_features

        def update_layer(self, adapter_name: str, *given: Any, **words: Any) -> None:
            _check(words.get("config", words), "a target")
            super().update_layer(adapter_name, *given, **words)

        def merge(self, safe_merge: bool = False, adapter_names: list[str] | None = None) -> None:
            raise ValueError(
                "merge: a LoRA adapter on a block-sparse layer cannot be merged, its product fills blocks that are not stored; use sa.to_dense first"
            )

    return LoraSparseLinear


def _all_linear(model: nn.Module, config: Any) -> list[str]:
    """The layers that target_modules="all-linear" means, block-sparse ones among them: all but the last one of a model."""
    from transformers.pytorch_utils import Conv1D  # type: ignore[import-untyped,unused-ignore]

    last = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None  # type: ignore[operator]
    if last is None and "SEQ_CLS" in str(getattr(config, "task_type", None)):
        last = next((getattr(model, name) for name in _CLASSIFIERS if hasattr(model, name)), None)
    return [name for name, module in model.named_modules() if isinstance(module, (nn.Linear, Conv1D, SparseLinear)) and module is not last]


def _name_targets(config: Any, model: nn.Module | None) -> None:
    """peft looks for nn.Linear and its parameters in two places, where block-sparse layers would be passed over in silence."""
    every = isinstance(config.target_modules, str) and config.target_modules.lower() == _ALL
    parameters = getattr(config, "target_parameters", None) or []
    if (every or parameters) and model is None:
        what = f'target_modules="{_ALL}"' if every else f"target_parameters={list(parameters)}"
        raise ValueError(
            f"config: {what} finds dense layers alone, block-sparse ones would get no adapter; give the model as well: sa.register_with_peft(config, model)"
        )
    if every and model is not None:
        config.target_modules = set(_all_linear(model, config))
    for name, layer in model.named_modules() if parameters and model is not None else ():
        for wanted in parameters:
            if isinstance(layer, SparseLinear) and f".{name}.weight".endswith(f".{wanted}"):
                raise ValueError(f"config: target_parameters names {wanted!r}, but {name!r} is block-sparse and has no such parameter; use target_modules")


_made: type | None = None


def register_with_peft(config: Any, model: nn.Module | None = None) -> Any:
    """Makes a peft.LoraConfig adapt sa.SparseLinear layers like nn.Linear ones; returns the config.

        config = sa.register_with_peft(peft.LoraConfig(target_modules=["q_proj", "v_proj"]))
        model = peft.get_peft_model(sa.to_block_sparse(model, 0.1), config)

    To load: config = sa.register_with_peft(peft.LoraConfig.from_pretrained(path)), then peft.PeftModel.from_pretrained(model, path, config=config). The
    sparse weights stay as they are and get no gradient; adapters are trained, saved, switched and removed (unload) as ever. They cannot be merged, as
    their product is dense: merge raises ValueError.

    model: the model with block-sparse layers, needed beside target_modules="all-linear", whose place the names of all its linear layers take (peft would
    find nn.Linear ones only), and beside target_parameters.

    ImportError where peft is not installed; TypeError where config is no LoraConfig, or model no nn.Module; ValueError where the model is needed and not
    given, where target_parameters names the weight of a block-sparse layer, and, here or when the adapter is made, where the config needs a dense weight:
    DoRA and other variants but aLoRA; init_lora_weights "pissa", "olora", "corda", "loftq" and the like.
    """
    global _made
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise ImportError(f"peft: is needed ({error}); pip install peft") from error
    if not isinstance(config, LoraConfig):
        raise TypeError(f"config: must be a peft.LoraConfig, not {type(config).__name__}")
    if getattr(config, "use_dora", False):
        raise ValueError("config: use_dora needs the norms of a dense weight, and a block-sparse layer has none")
    if model is not None:
        check_model(model)
    _name_targets(config, model)
    if _made is None:
        _made = _adapted()
    config._register_custom_module({SparseLinear: _made})
    return config
