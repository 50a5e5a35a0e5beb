"""What is measured for a model over ranks: beforehand, and kept for other processes."""

from __future__ import annotations

import torch
from torch import nn

from ._choices import tune_once
from ._chunks import Direct, Plan, Way
from ._layers import DealtLinear


def warm_up(model: nn.Module, tokens: int, *, gradients: bool = False) -> None:
    """Tunes the products of the layers of a model that are dealt over ranks, for so many tokens of a rank's input, at one rank, for all.

    tokens: of a piece, which is what a rank multiplies at a time: all tokens of the group over chunks. gradients: also the products of a backward pass. A
    collective: every rank of the mesh calls it.
    """
    layers = [module for module in model.modules() if isinstance(module, DealtLinear)]
    if not layers:
        raise ValueError("model: has no layer that is dealt over ranks")

    def products() -> None:
        for layer in layers:
            values, *_ = layer._operands()
            x = torch.zeros(tokens, layer.in_features, dtype=values.dtype, device=values.device, requires_grad=gradients)
            with torch.set_grad_enabled(gradients):
                made = layer.local(x)
            if gradients:
                torch.autograd.grad(made, [x, layer.values] if layer.values.requires_grad else [x], torch.zeros_like(made))

    tune_once(products, layers[0].mesh.get_group())


def _plans(model: nn.Module) -> dict[str, Plan]:
    return {name: module.plan for name, module in model.named_modules() if isinstance(getattr(module, "plan", None), Plan)}


def chunk_choices(model: nn.Module) -> dict[str, dict[str, tuple[int, Direct]]]:
    """What was found to be the fastest, for each module, and for each size of its input that it met: how many pieces, and whether they are direct. Plain
    values, for a JSON file."""
    return {name: {key: (way.pieces, way.direct) for key, way in plan.chosen.items()} for name, plan in _plans(model).items() if plan.chosen}


def pin_chunks(model: nn.Module, choices: dict[str, dict[str, tuple[int, Direct]]]) -> None:
    """Takes what chunk_choices gave, of any process: nothing is measured for these sizes. ValueError where a module is missing."""
    plans = _plans(model)
    for name, chosen in choices.items():
        if name not in plans:
            raise ValueError(f"choices: the model has no dealt module {name!r}")
        plans[name].chosen.update({key: Way(*way) for key, way in chosen.items()})
