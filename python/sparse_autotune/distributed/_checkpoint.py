"""States of optimizers for checkpoints that other numbers of ranks load."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed.tensor import DTensor

from ._layers import DealtLinear
from ._stored import Stored


def stored_state(model: nn.Module, state: dict[str, Any]) -> dict[str, Any]:
    """What torch.distributed.checkpoint.state_dict.get_optimizer_state_dict gave, with what belongs to dealt parameters as the whole layer has it.

    >>> state = get_optimizer_state_dict(model, optimizer)
    >>> dcp.load({"model": get_model_state_dict(model), "optimizer": stored_state(model, state)}, checkpoint_id=folder)
    >>> set_optimizer_state_dict(model, optimizer, state)

    The result is on the memory of `state`: loading into it fills that. For saving, dcp.save takes it. The model's own state needs no such call.
    """
    dealt = {
        f"{path}.{name}" if path else name: (layer, name) for path, layer in model.named_modules() if isinstance(layer, DealtLinear) for name in layer._dealt()
    }

    def seen(key: str, entry: Any) -> Any:
        if key not in dealt or not isinstance(entry, DTensor):
            return entry
        layer, name = dealt[key]
        return Stored.of(*layer._here(name, entry)) if entry.shape == getattr(layer, name).shape else entry

    of_parameters = {key: {word: seen(key, entry) for word, entry in entries.items()} for key, entries in state["state"].items()}
    return {**state, "state": of_parameters}
