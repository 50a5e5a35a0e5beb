"""sa.BlockPruner: gradual block-magnitude pruning inside a training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

from ._bsr import _NORMS, Norm, _blocked, _pair, check_density, check_numbers, norms_of
from ._linear import SparseLinear, activation_of, check_here, check_model, check_replaced, linears, replace_data, replace_modules
from ._nearest import none_of
from ._pretrained import describe

SCHEDULES: dict[str, Callable[[float], float]] = {
    "cubic": lambda progress: 1 - (1 - progress) ** 3,
    "linear": lambda progress: progress,
}


class BlockPruner:
    """Drops the blocks of smallest norm from a model's layers, little by little, while it is trained.

    >>> pruner = sa.BlockPruner(model, optimizer, density=0.25, block=64, end=1000, every=50)
    >>> for x, y in data:
    ...     optimizer.zero_grad()
    ...     loss(pruner.model(x), y).backward()
    ...     optimizer.step()
    ...     pruner.step()

    model: its SparseLinear layers are pruned, each from the density it has; with block, its nn.Linear layers are first replaced by
    SparseLinear of density 1, on the same Parameters (nn.Linear.weight becomes SparseLinear.values), so that optimizers and their groups
    keep what they hold. optimizer: the one, or several, that train these layers; what they keep of each weight (moments) moves with the
    blocks that stay, as do gradients. density: what each layer ends with. The count of blocks is round(density * grid). begin, end, every:
    counts of step(): pruned is after begin steps, then every so many, last after end. schedule: "cubic", "linear" or a function of the
    progress from 0 to 1 that tells the share of pruning done, 0 to 1. by: the norm, "l1", "l2" or "max"; ties go to the lower block.
    filter: called with the name and the layer; by default all layers, those nn.Linear at least a block high and wide.

    Parameters stay the same objects, but their shapes change: a CUDA graph must be captured again and DistributedDataParallel put round the
    model again after a step that returned True; torch.compile does it by itself. Ranks that hold the same weights prune the same blocks.
    Each density may be a new class of products, which its first calls measure; within sa.no_tuning() it is not, until the pruning is
    over. ValueError names a wrong argument; a weight that another module uses, too, is one.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
        density: float = 0.25,
        *,
        end: int,
        begin: int = 0,
        every: int = 1,
        block: int | tuple[int, int] | None = None,
        filter: Callable[[str, nn.Module], bool] | None = None,  # noqa: A002
        by: Norm = "l2",
        schedule: str | Callable[[float], float] = "cubic",
    ):
        check_model(model)
        check_density(density)
        if filter is not None and not callable(filter):
            raise TypeError(f"filter: must be a function of the name and the layer, not {type(filter).__name__}")
        for name, count in (("end", end), ("begin", begin), ("every", every)):
            if not hasattr(count, "__index__"):
                raise TypeError(f"{name}: must be a whole number of steps, not {count!r}")
        if end < 0:
            raise ValueError(f"end: must not be negative, is {end}")
        if not 0 <= begin <= end:
            raise ValueError(f"begin: must be from 0 to end, {end}, not {begin}")
        if every < 1:
            raise ValueError(f"every: must be 1 or more, not {every}")
        if schedule not in SCHEDULES if isinstance(schedule, str) else not callable(schedule):
            raise ValueError(f"schedule: must be a function or one of {', '.join(SCHEDULES)}, not {schedule!r}")
        if by not in tuple(_NORMS):
            raise ValueError(none_of("by", by, _NORMS))
        self._optimizers = [] if optimizer is None else list(optimizer) if isinstance(optimizer, Iterable) else [optimizer]
        for one in self._optimizers:
            if not hasattr(one, "param_groups"):
                raise TypeError(f"optimizer: must be a torch.optim.Optimizer or several, not {type(one).__name__}")
        self._curve = SCHEDULES[schedule] if isinstance(schedule, str) else schedule
        self.target, self.begin, self.end, self.every, self.by = density, begin, end, every, by
        self.steps = 0
        dense: dict[str, nn.Linear] = {} if block is None else linears(model, _pair(block), filter)
        self.layers: dict[str, SparseLinear] = {
            name: module for name, module in model.named_modules() if isinstance(module, SparseLinear) and (filter is None or filter(name, module))
        }
        if not dense and not self.layers:
            raise ValueError("model: has no layer to prune" + ("; with block, nn.Linear layers are taken, too" if block is None else ""))
        _check(model, dense, self.layers, self._optimizers)
        self.model = model
        if block is not None:
            made = {name: _blockwise(linear, _pair(block), self._optimizers) for name, linear in dense.items()}
            self.model = replace_modules(model, lambda name, _module: made.get(name))
            describe(self.model)
            self.layers |= made
        self._initial = {name: layer.density for name, layer in self.layers.items()}

    # ------------------------------------------------------------------------------------------------ the schedule

    def density_at(self, steps: int, initial: float = 1.0) -> float:
        """What the schedule wants of a layer that began with a density, after so many steps."""
        if steps < self.begin:
            return initial
        if steps >= self.end:
            return min(initial, self.target)
        share = self._curve((steps - self.begin) // self.every * self.every / (self.end - self.begin))
        if not 0 <= share <= 1:
            raise ValueError(f"schedule: gave {share}, which is no share from 0 to 1")
        return initial - max(initial - self.target, 0.0) * share

    @property
    def density(self) -> float:
        """Stored blocks over all, of the layers that are pruned."""
        stored = sum(layer.nnzb for layer in self.layers.values())
        return stored / max(1, sum(_blocks(layer) for layer in self.layers.values()))

    @property
    def finished(self) -> bool:
        """Whether the last pruning is done."""
        return self.steps >= self.end

    def step(self) -> bool:
        """Counts a step, after optimizer.step(), and prunes where one is due. True where blocks were dropped."""
        self.steps += 1
        dropped = False
        for name, layer in self.layers.items():
            count = int(self.density_at(self.steps, self._initial[name]) * _blocks(layer) + 0.5)
            if count < layer.nnzb:
                values = layer.values.detach()
                kept = torch.argsort(norms_of(values, self.by), descending=True, stable=True)[:count].sort().values
                _keep(layer, name, kept, self._optimizers)
                dropped = True
        return dropped

    # ------------------------------------------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """Where the schedule stands; plain numbers. The patterns are in the model's own state_dict."""
        return {"steps": self.steps, "initial": dict(self._initial)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What state_dict gave; load the model's and the optimizer's, too. ValueError where the layers have other names."""
        if not isinstance(state, dict) or not {"steps", "initial"} <= set(state):
            raise ValueError(f"state: must have steps and initial, as state_dict gives them, not {list(state) if isinstance(state, dict) else state!r}")
        if set(state["initial"]) != set(self._initial):
            raise ValueError(f"state: its layers are {sorted(state['initial'])}, the model's {sorted(self._initial)}")
        if not hasattr(state["steps"], "__index__") or state["steps"] < 0:
            raise ValueError(f"state: its steps must be a whole number of 0 or more, not {state['steps']!r}")
        for density in state["initial"].values():
            check_density(density)
        self.steps, self._initial = int(state["steps"]), {name: float(density) for name, density in state["initial"].items()}

    def __repr__(self) -> str:
        return f"BlockPruner({len(self.layers)} layers, {100 * self.density:.4g} % now, {100 * self.target:.4g} % after {self.end} steps, {self.steps} done)"


def _blocks(layer: SparseLinear) -> int:
    down, across = layer.weight.grid
    return down * across


def _check(model: nn.Module, dense: dict[str, nn.Linear], sparse: dict[str, SparseLinear], optimizers: list[torch.optim.Optimizer]) -> None:
    """What would go wrong later, said before anything is changed."""
    for name, linear in dense.items():
        check_replaced(name, linear, keeps_weight=True)
    users: dict[int, int] = {}
    for module in model.modules():
        for parameter in module._parameters.values():
            users[id(parameter)] = users.get(id(parameter), 0) + 1
    held = {id(parameter) for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]}
    weights = {name: linear.weight for name, linear in dense.items()} | {name: layer.values for name, layer in sparse.items()}
    for name, weight in weights.items():
        check_here(f"model: {name!r}", weight)
        check_numbers(f"model: the weight of {name!r}", weight)
        if users[id(weight)] > 1:
            raise ValueError(f"model: another module uses the weight of {name!r}, too; leave it out with filter")
        if optimizers and weight.requires_grad and id(weight) not in held:
            raise ValueError(f"optimizer: does not hold the weight of {name!r}; was it made before the layer?")
    for name, linear in dense.items():
        _check_states(optimizers, linear.weight, name, whole=True)


_RESUMED = (
    ". It looks like that of blocks: where a run goes on from a checkpoint, make the layers first, by sa.to_block_sparse(model, 1.0, block); then "
    "load the model, the optimizer and, into a BlockPruner without block, the pruner"
)


def _check_states(optimizers: list[torch.optim.Optimizer], parameter: Tensor, name: str, whole: bool) -> None:
    """Every state of a parameter is a number, or a tensor of its shape (or with an entry for each of its blocks, where it need not be taken
    apart)."""
    for optimizer in optimizers:
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                alike = value.shape == parameter.shape if whole else value.dim() == parameter.dim() and value.shape[0] == parameter.shape[0]
                if alike or value.numel() == 1:
                    continue
            elif value is None or isinstance(value, (bool, int, float, str)):
                continue
            kind = f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            hint = _RESUMED if whole and isinstance(value, Tensor) and value.dim() == 3 else ""
            raise ValueError(
                f"optimizer: {type(optimizer).__name__} keeps {key!r}, {kind}, of {name!r}, which cannot move with blocks of {list(parameter.shape)}{hint}"
            )


def _change(parameter: nn.Parameter, change: Callable[[Tensor], Tensor], optimizers: list[torch.optim.Optimizer]) -> None:
    """Changes a parameter's data, its gradient and what optimizers keep of it; the objects that hold it do not notice."""
    dims = parameter.dim()
    for optimizer in optimizers:
        state = optimizer.state.get(parameter, {})
        for key, value in state.items():
            if isinstance(value, Tensor) and value.dim() == dims:
                state[key] = change(value)
    gradient, parameter.grad = parameter.grad, None
    replace_data(parameter, change(parameter.detach()))
    if gradient is not None:
        parameter.grad = change(gradient)


def _blockwise(linear: nn.Linear, block: tuple[int, int], optimizers: list[torch.optim.Optimizer]) -> SparseLinear:
    """A SparseLinear of density 1 on a layer's own parameters."""
    high, wide = block
    grid = (-(-linear.out_features // high), -(-linear.in_features // wide))
    everything = torch.ones(grid, dtype=torch.bool, device="cpu")
    options: dict[str, Any] = dict(activation=activation_of(linear), device=linear.weight.device, dtype=linear.weight.dtype)
    made = SparseLinear(linear.in_features, linear.out_features, block, bias=False, pattern=everything, **options)
    weight = cast(nn.Parameter, linear.weight)
    _change(weight, lambda t: _blocked(t, block).reshape(-1, high, wide).contiguous(), optimizers)
    made.values, made.bias = weight, linear.bias
    return made.train(linear.training)


def _keep(layer: SparseLinear, name: str, kept: Tensor, optimizers: list[torch.optim.Optimizer]) -> None:
    """Drops all stored blocks but those of given numbers, which increase."""
    _check_states(optimizers, layer.values, name, whole=False)
    rows = layer.weight.block_rows_of()[kept]
    row_offsets = torch.zeros_like(layer.row_offsets)
    row_offsets[1:] = torch.cumsum(torch.bincount(rows, minlength=row_offsets.shape[0] - 1), 0)
    layer.row_offsets, layer.col_indices = row_offsets, layer.col_indices[kept]
    _change(layer.values, lambda t: t.index_select(0, kept), optimizers)
