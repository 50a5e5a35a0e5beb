"""sa.warm_up: what a model's products are tuned for before users wait for them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ._linear import SparseLinear
from ._options import may_tune, tuning_each

_IDLE_SHARE = 0.5  # of the processors, that nobody uses
_LOOK_S = 0.2


def _idle_share() -> float:
    """Of all processors, over a moment; 1 where the system does not say."""

    def spent() -> tuple[int, int] | None:
        try:
            with open("/proc/stat") as file:
                numbers = [int(word) for word in file.readline().split()[1:]]
        except (OSError, ValueError):
            return None
        return numbers[3] + numbers[4], sum(numbers)

    first = spent()
    time.sleep(_LOOK_S)
    last = spent()
    if first is None or last is None or last[1] <= first[1]:
        return 1.0
    return (last[0] - first[0]) / (last[1] - first[1])


class WarmUp:
    """A warm-up in the background, of sa.warm_up(background=True)."""

    def __init__(self, jobs: list[Callable[[], None]], patience_s: float):
        self._jobs, self._patience_s = jobs, patience_s
        self._stopped = False
        self._done = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sparse_autotune.warm_up", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with contextlib.suppress(OSError, AttributeError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)  # of this thread, and of those that it starts
            for job in self._jobs:
                begun = time.monotonic()
                while not self._stopped and _idle_share() < _IDLE_SHARE and time.monotonic() - begun < self._patience_s:
                    pass
                if self._stopped:
                    return
                job()
                self._done += 1
        except BaseException as error:
            self._error = error

    @property
    def done(self) -> int:
        """Products of the list that are warm."""
        return self._done

    def stop(self) -> None:
        """Ends after the product that is being tuned now; returns when it has."""
        self._stopped = True
        self._thread.join()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all is tuned; False: not within timeout seconds. Raises what the warm-up failed with."""
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()


def _layer_job(layer: SparseLinear, tokens: int, gradients: bool) -> Callable[[], None]:
    def job() -> None:
        values, *_ = layer._operands()
        x = torch.zeros(tokens, layer.in_features, dtype=values.dtype, device=values.device, requires_grad=gradients)
        # in the calling thread, on CUDA, too: the wish to tune is this thread's
        with torch.set_grad_enabled(gradients), torch.autograd.set_multithreading_enabled(False):
            made = SparseLinear.forward(layer, x)
            if gradients:
                wanted = [x, *(p for p in layer.parameters() if p.requires_grad)]
                torch.autograd.grad(made, wanted, torch.zeros_like(made))

    return job


def _model_job(model: nn.Module, inputs: Any) -> Callable[[], None]:
    def job() -> None:
        with torch.no_grad():
            if isinstance(inputs, dict):
                model(**inputs)
            elif isinstance(inputs, (tuple, list)):
                model(*inputs)
            else:
                model(inputs)

    return job


def _check_sizes(sizes: Any) -> list[Any]:
    if isinstance(sizes, (int, Tensor, dict)):
        sizes = [sizes]
    if not isinstance(sizes, Iterable):
        raise TypeError(f"sizes: must be numbers of tokens or inputs of the model, not {type(sizes).__name__}")
    found = list(sizes)
    for size in found:
        if isinstance(size, bool) or not (hasattr(size, "__index__") or isinstance(size, (Tensor, tuple, list, dict))):
            raise TypeError(f"sizes: must be numbers of tokens or inputs of the model, not {type(size).__name__}")
        if not isinstance(size, (Tensor, tuple, list, dict)) and int(size) < 1:
            raise ValueError(f"sizes: a number of tokens must be at least 1, is {size}")
    return found


def _run_all(jobs: list[Callable[[], None]], progress: bool | None) -> None:
    """With a tqdm bar, which says how long the rest may take; by default where the standard error is a terminal and tqdm is there."""
    bar = None
    if sys.stderr.isatty() if progress is None else progress:
        with contextlib.suppress(ImportError):
            from tqdm.auto import tqdm

            bar = tqdm(total=len(jobs), desc="warm_up", unit="product", leave=False, mininterval=0)  # every product is shown: tqdm leaves out quick ones
    with bar if bar is not None else contextlib.nullcontext():
        for job in jobs:
            job()
            if bar is not None:
                bar.update()


def warm_up(
    model: nn.Module, sizes: Any, *, gradients: bool = False, background: bool = False, patience_s: float = 60.0, progress: bool | None = None
) -> WarmUp | None:
    """Tunes a model's products for the sizes that will come, so that no call waits for a measurement, and each size has its own choice.

    Without a warm-up a number of tokens that is new to a layer runs at once on what was chosen for the nearest one. Only the first of a layer, and one that
    is sixteen times smaller or larger than all others, is measured by the product's own calls (see docs/tuning.md). After a warm-up none is.

    sizes: numbers of tokens, each of which is tuned for every sa.SparseLinear of the model; or inputs of the model (a tensor, a tuple, or a dict of keywords),
    with which it is called once, so that attention and all other products are met. gradients: also the products of a backward pass (of numbers only).
    background: a thread of the lowest priority does it where half of the processors are idle, or none was for patience_s seconds, and an sa.WarmUp comes back
    at once; the model must not be changed meanwhile. What such a thread measures beside other work is provisional in the store, and measured anew some day.
    progress: a tqdm bar with the time that the rest may take, where the work is not in the background; by default where the standard error is a terminal and
    tqdm is there.

    Whatever the option tuning says, it tunes; with effort="estimate" and inside sa.no_tuning() it does nothing. Raises what a call of the model raises.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: must be a torch.nn.Module, not {type(model).__name__}")
    wanted = _check_sizes(sizes)
    layers = [module for module in model.modules() if isinstance(module, SparseLinear)]
    numbers = [int(size) for size in wanted if hasattr(size, "__index__") and not isinstance(size, Tensor)]
    inputs = [size for size in wanted if isinstance(size, Tensor) or not hasattr(size, "__index__")]
    if numbers and not layers:
        raise ValueError("model: has no sa.SparseLinear; give inputs of the model as sizes")
    if not may_tune():
        return None
    work = [_layer_job(layer, tokens, gradients) for layer in layers for tokens in numbers]
    work += [_model_job(model, given) for given in inputs]

    def tuned(job: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            with tuning_each():
                job()

        return run

    jobs = [tuned(job) for job in work]
    if background:
        return WarmUp(jobs, patience_s)
    _run_all(jobs, progress)
    return None
