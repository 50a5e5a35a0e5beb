"""LoRA adapters of Hugging Face peft on block-sparse layers. peft is imported where it is asked for, not before."""

from __future__ import annotations

from typing import Any

from ._linear import SparseLinear


def _adapted() -> type:
    """The layer that peft puts around an sa.SparseLinear; made at the first call, as its base class is peft's."""
    from peft.tuners.lora.layer import Linear

    class LoraSparseLinear(Linear):  # type: ignore[misc]
        """y = base(x) + scaling * B(A(dropout(x))). The adapter stays beside the sparse weight: a sum of both would be dense."""

        def _get_in_out_features(self, module: Any) -> tuple[int, int]:
            return module.in_features, module.out_features

        def merge(self, safe_merge: bool = False, adapter_names: list[str] | None = None) -> None:
            raise ValueError(
                "merge: a LoRA adapter on a block-sparse layer cannot be merged, its product fills blocks that are not stored; use sa.to_dense first"
            )

    return LoraSparseLinear


_made: type | None = None


def register_with_peft(config: Any) -> Any:
    """Makes a peft.LoraConfig adapt sa.SparseLinear layers like nn.Linear ones; returns the config.

        config = sa.register_with_peft(peft.LoraConfig(target_modules=["q_proj", "v_proj"]))
        model = peft.get_peft_model(sa.to_block_sparse(model, 0.1), config)

    To load: config = sa.register_with_peft(peft.LoraConfig.from_pretrained(path)), then peft.PeftModel.from_pretrained(model, path, config=config). The
    sparse weights stay as they are and get no gradient; adapters are trained, saved, switched and removed (unload) as ever. They cannot be merged, as
    their product is dense: merge raises ValueError. DoRA, which needs the dense weight's norms, does not work.

    ImportError where peft is not installed; TypeError where config is no LoraConfig; ValueError where it asks for DoRA.
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
    if _made is None:
        _made = _adapted()
    config._register_custom_module({SparseLinear: _made})
    return config
