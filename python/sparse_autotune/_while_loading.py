"""Block-sparse layers between the moment when from_pretrained puts them into a model and the one when their weights have come.

transformers calls a model's _init_weights in that time, and many of those name the weights of their layers: what they do is for dense tensors,
fill, scale and slice them. They find one here. It says that it is initialised, as a loaded weight does, and whatever is written to it is lost.
"""

from __future__ import annotations

import torch
from torch import nn

from ._linear import SparseLinear


class LoadingLinear(SparseLinear):
    """A layer whose weights are still to come."""

    @property
    def weight(self) -> nn.Parameter:  # type: ignore[override]
        shape = (self.out_features, self.in_features)
        made = nn.Parameter(torch.empty(shape, device="meta", dtype=self.values.dtype), requires_grad=False)
        made._is_hf_initialized = True  # type: ignore[attr-defined]
        return made


def begin(layer: SparseLinear) -> SparseLinear:
    layer.__class__ = LoadingLinear
    return layer


def finish(model: nn.Module) -> None:
    for module in model.modules():
        if type(module) is LoadingLinear:
            module.__class__ = SparseLinear  # type: ignore[assignment]
