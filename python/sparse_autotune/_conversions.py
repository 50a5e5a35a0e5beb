"""What save_pretrained and from_pretrained of transformers make of weights on their way to a file and back: joined, split and turned around.

A conversion that joins several layers' weights in the file (query, key and value, say) cannot do so once one of them is block-sparse. It is
left out then, for the dense layers that it would have reached, too, which the file has under the model's own names.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from torch import nn

_BEFORE = "_sparse_autotune_conversions"
_STORED = ("values", "row_offsets", "col_indices")


def _meets(conversion: Any, layers: Iterable[str], joins: bool) -> bool:
    """Whether a conversion, from the file's names or to them, finds anything of the layers. joins: their biases, and dense weights of theirs, count."""
    parts = (*_STORED, "weight", "bias") if joins else _STORED
    return any(conversion.rename_source_key(f"{layer}.{part}")[1] is not None for layer in layers for part in parts)


def _hinders(conversion: Any, layers: Iterable[str]) -> bool:
    """Whether block-sparse layers cannot be saved by it: tensors are joined, split or turned, or a name comes back as another one."""
    from transformers.core_model_loading import WeightConverter  # type: ignore[import-untyped,unused-ignore]

    conversion = copy.deepcopy(conversion)  # which remembers what it met
    back = conversion.reverse_transform()
    if isinstance(conversion, WeightConverter):
        one = len(conversion.source_patterns) == 1 and len(conversion.target_patterns) == 1
        return _meets(back, layers, not one)
    names = [f"{layer}.{part}" for layer in layers for part in (*_STORED, "bias")]
    return any(conversion.rename_source_key(back.rename_source_key(name)[0])[0] != name for name in names)


def _of(model: Any) -> list[Any] | None:
    """The conversions that save_pretrained would use; None where this transformers has none."""
    try:
        from transformers import conversion_mapping, core_model_loading  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return None
    if not hasattr(conversion_mapping, "get_model_conversion_mapping") or not hasattr(core_model_loading.WeightTransform, "reverse_transform"):
        return None
    given = getattr(model, "_weight_conversions", None)
    if given is not None:
        return list(given)
    prefix = getattr(core_model_loading, "PrefixChange", ())
    return [one for one in conversion_mapping.get_model_conversion_mapping(model, add_legacy=False) if not isinstance(one, prefix)]


def exempt(model: nn.Module, layers: list[str]) -> None:
    """Of a transformers model, for its block-sparse layers, before it is saved."""
    found = _of(model)
    if not found:
        return
    kept = [one for one in found if not _hinders(one, layers)]
    if len(kept) < len(found):
        if _BEFORE not in vars(model):
            setattr(model, _BEFORE, getattr(model, "_weight_conversions", None))
        model._weight_conversions = kept  # type: ignore[assignment]


def restore(model: nn.Module) -> None:
    """After the last block-sparse layer has gone."""
    if _BEFORE not in vars(model):
        return
    before = vars(model).pop(_BEFORE)
    if before is not None:
        model._weight_conversions = before
    elif hasattr(model, "_weight_conversions"):
        del model._weight_conversions


def left(conversions: list[Any], layers: Iterable[str]) -> list[Any]:
    """Those with which a file of block-sparse layers is loaded: without what was left out when it was saved and would meet its tensors now."""
    return [one for one in conversions if not (_hinders(one, layers) and _meets(copy.deepcopy(one), layers, False))]
