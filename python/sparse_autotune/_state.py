"""What load_state_dict takes of a layer or a buffer with blocks: all of it, or nothing.

Values and indices make sense together only. So they are looked at before anything is changed, those of all layers of a model before those
of the first; what cannot be looked at before is undone.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ._bsr import BSR
from ._guard import GuardedIndices
from ._types import DTYPES, listed

PATTERN = ("row_offsets", "col_indices")
_PARTS = (*PATTERN, "values")
_SHAPE = "shape"  # among PyTorch's metadata of a module's state


def note_shape(destination: Any, prefix: str, shape: tuple[int, int]) -> None:
    """Beside the tensors of a state, which do not tell how much of the edge blocks belongs to the matrix."""
    metadata = getattr(destination, "_metadata", None)
    if metadata is not None:
        metadata.setdefault(prefix[:-1], {})[_SHAPE] = list(shape)


class Blocks(GuardedIndices):
    """A module with row_offsets, col_indices and values, perhaps a bias, whose state is loaded whole or not at all."""

    row_offsets: Tensor
    col_indices: Tensor
    values: Tensor

    def _matrix_shape(self) -> tuple[int, int]:
        raise NotImplementedError

    def _room_for(self, values: Tensor) -> Callable[[], None]:
        """Puts values of the shape of others in place of its own; what is returned puts those back."""
        raise NotImplementedError

    def _holds_values(self) -> bool:
        """Not where they are parametrized, held by another, or no part of the state."""
        return "values" in (*self._parameters, *self._buffers) and "values" not in self._non_persistent_buffers_set

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._holds_values():
            note_shape(destination, prefix, self._matrix_shape())

    def _load_from_state_dict(
        self, state: dict[str, Any], prefix: str, metadata: dict[str, Any], strict: bool, missing: list[str], unexpected: list[str], errors: list[str]
    ) -> None:
        arguments = (state, prefix, metadata, strict, missing, unexpected, errors)
        if not self._holds_values():
            return super()._load_from_state_dict(*arguments)
        given = _given(state, prefix)
        wrong, refused = _misfit(self, given, metadata), _refused(errors)
        if wrong is not None:
            said = f"{prefix[:-1] or type(self).__name__}: {wrong}; no layer with blocks is loaded"
            if said not in errors:  # of a layer before this one, which is refused because of this one
                errors.append(said)
        elif refused is not None:
            if not errors:
                errors.append(f"{refused}; no layer with blocks is loaded")
        else:
            with _undone_on_failure(self, given, bool(metadata.get("assign_to_params_buffers"))):
                count = len(errors)
                super()._load_from_state_dict(*arguments)
                if len(errors) > count:
                    raise _Undo
            return None
        own = (*self._parameters, *self._buffers)
        missing.extend(prefix + name for name in own if name not in given and getattr(self, name) is not None)
        unexpected.extend(key for key in state if key.startswith(prefix) and key[len(prefix) :] not in own)
        return None


def _given(state: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name: state[prefix + name] for name in (*_PARTS, "bias") if prefix + name in state}


class _Undo(Exception):
    pass


# ------------------------------------------------------------------------------------------------ a model's other layers


class _Load(threading.local):
    """The call of load_state_dict that goes on: its list of errors, by which it is known again, and what does not fit in it."""

    errors: list[str] | None = None
    misfit: str | None = None


_load = _Load()


def _refused(errors: list[str]) -> str | None:
    """Why the load is refused that goes on, where that is a layer's with blocks."""
    if _load.errors is not errors:
        _load.errors, _load.misfit = errors, _misfit_of_load()
    return _load.misfit


def _misfit_of_load() -> str | None:
    """The first misfit of the model on which load_state_dict was called; None, too, where something changes the state on its way to a
    layer."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code is not nn.Module.load_state_dict.__code__:  # type: ignore[attr-defined]
        frame = frame.f_back
    if frame is None:
        return None
    model, state, strict, assign = (frame.f_locals.get(name) for name in ("self", "state_dict", "strict", "assign"))
    if not isinstance(model, nn.Module) or not isinstance(state, dict) or any(module._load_state_dict_pre_hooks for module in model.modules()):
        return None
    metadata = getattr(state, "_metadata", None) or {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, Blocks) and type(module)._load_from_state_dict is Blocks._load_from_state_dict and module._holds_values():
            prefix = f"{name}." if name else ""
            wrong = _misfit(module, _given(state, prefix), (metadata.get(name) or {}) | {"assign_to_params_buffers": assign})
            if wrong is None and strict and _has_other_names(module, state, prefix):
                wrong = "its keys are not those of the layer"
            if wrong is not None:
                return f"{name or type(module).__name__}: {wrong}"
    return None


def _has_other_names(module: Blocks, state: dict[str, Any], prefix: str) -> bool:
    """What PyTorch refuses in the end of a strict load, and names."""
    own = {name for name, tensor in (*module._parameters.items(), *module._buffers.items()) if tensor is not None}
    if any(prefix + name not in state for name in own - module._non_persistent_buffers_set):
        return True
    return any(key.startswith(prefix) and key[len(prefix) :].split(".")[0] not in own | set(module._modules) for key in state)


# ------------------------------------------------------------------------------------------------ before


def _misfit(module: Blocks, given: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    """Why a state is not of such a module; None where nothing speaks against it."""
    shape = module._matrix_shape()
    for name, tensor in given.items():
        if not torch.overrides.is_tensor_like(tensor):
            return f"{name} must be a tensor, not {type(tensor).__name__}"
    stated = metadata.get(_SHAPE)
    stated = list(stated) if isinstance(stated, (list, tuple)) else None
    if stated is not None and stated != list(shape):
        return f"the state is of a matrix of {_times(stated)}, this one is {_times(shape)}"
    own = {name: getattr(module, name) for name in _PARTS}
    there = [name for name in _PARTS if name in given]
    absent = [name for name in _PARTS if name not in given]
    if there and absent and not any(tensor.is_meta for tensor in own.values()):
        same = all(_equal(given[name], own[name]) for name in there if name in PATTERN)
        if "values" in given or not same:
            return f"the state has {', '.join(there)}, but not {', '.join(absent)}: which values belong to which blocks is not known without all three"
    bias = getattr(module, "bias", None)
    if "bias" in given and bias is not None and given["bias"].shape != bias.shape:
        return f"size mismatch for bias: {list(given['bias'].shape)} in the state, {list(bias.shape)} here"
    if "values" in given:
        wrong = _wrong_values(given["values"], own["values"], bool(metadata.get("assign_to_params_buffers")))
        if wrong is not None:
            return wrong
    wrong = _wrong_pattern(given, own, shape)
    if wrong is None and not absent and stated is None and _reaches_beyond(given, shape):
        return (
            f"its values are not zero beyond the matrix of {_times(shape)}, as those of a larger one; the state does not tell its shape. "
            "If it is of this one, set what of its edge blocks lies beyond to zero, or save it by torch.save, which keeps the shape"
        )
    return wrong


def _wrong_values(values: Any, own: Tensor, assign: bool) -> str | None:
    alike = values.dim() == own.dim() and values.shape[:-3] == own.shape[:-3] and values.shape[-2:] == own.shape[-2:]
    if not alike:
        return f"size mismatch for values: {list(values.shape)} in the state, blocks of {_times(own.shape[-2:])} ({list(own.shape)}) here"
    if values.is_complex():
        return f"values are {values.dtype}, which has no place in {own.dtype}"
    if assign and values.dtype not in DTYPES:
        return f"values must be {listed(DTYPES)} to be assigned, not {values.dtype}"
    return None


def _wrong_pattern(given: dict[str, Any], own: dict[str, Tensor], shape: tuple[int, int]) -> str | None:
    for name in PATTERN:
        indices = given.get(name)
        if indices is not None and indices.dtype not in (torch.int32, torch.int64):
            return f"{name} must be int32 or int64, not {str(indices.dtype).removeprefix('torch.')}"
    if not all(name in given for name in PATTERN):
        return None
    offsets, columns = given["row_offsets"], given["col_indices"]
    if "values" in given and columns.dim() == 1 and columns.shape[0] != given["values"].shape[-3]:
        return f"values has {given['values'].shape[-3]} blocks, but col_indices {columns.shape[0]} entries"
    block = (own["values"].shape[-2], own["values"].shape[-1])
    if _has_numbers(offsets, columns):
        offsets, columns = offsets.detach().cpu().long(), columns.detach().cpu().long()
    try:
        if offsets.dtype is columns.dtype and columns.dim() == 1:
            BSR.from_pattern(offsets, columns, block, shape).check_indices()
        elif columns.dim() != 1:
            return f"col_indices: must have one dimension; its shape is {list(columns.shape)}"
    except ValueError as error:
        return str(error)
    if own["col_indices"].dtype is torch.int32 and -(-shape[1] // block[1]) > 2**31 and _has_numbers(columns):
        if columns.numel() and int(columns.max()) >= 2**31:
            return f"col_indices has {int(columns.max())}, which int32 does not hold"
    return None


def _reaches_beyond(given: dict[str, Any], shape: tuple[int, int]) -> bool:
    """Whether an edge block has something that is not zero where the matrix has ended."""
    offsets, columns, values = (given[name] for name in _PARTS)
    if not _has_numbers(offsets, columns, values):
        return False
    down, across = shape[0] % values.shape[-2], shape[1] % values.shape[-1]
    values = values.detach()
    if down and bool((values[..., int(offsets[-2]) :, down:, :] != 0).any()):
        return True
    last = (columns == shape[1] // values.shape[-1]).nonzero().flatten().to(values.device) if across else None
    return last is not None and bool((values.index_select(values.dim() - 3, last)[..., across:] != 0).any())


def _has_numbers(*tensors: Any) -> bool:
    """Whether their numbers can be looked at: not those of traced, sharded or meta tensors."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return False
    return all(type(tensor) in (Tensor, nn.Parameter) and tensor.layout is torch.strided and not tensor.is_meta for tensor in tensors)


def _equal(one: Any, other: Tensor) -> bool:
    return _has_numbers(one, other) and one.shape == other.shape and bool((one.detach().to(other.device) == other).all())


def _times(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


# ------------------------------------------------------------------------------------------------ and back


@contextlib.contextmanager
def _undone_on_failure(module: Blocks, given: dict[str, Any], assign: bool) -> Iterator[None]:
    """Makes room for what comes. If that fails after all, the module is as it was."""
    undo: list[Callable[[], None]] = []
    groups: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    for tensors in groups:
        undo.extend(_putting_back(tensors, name, tensor) for name, tensor in tensors.items() if tensor is not None and name in given)
    if not _has_numbers(*given.values()):  # these may fail while they are copied
        undo.extend(_filling_again(getattr(module, name)) for name in given if getattr(module, name, None) is not None)
    try:
        values, columns = given.get("values"), given.get("col_indices")
        if columns is not None and columns.shape != module.col_indices.shape:
            module.col_indices = module.col_indices.new_empty(columns.shape)
        if values is not None and values.shape != module.values.shape:
            swaps = torch.__future__.get_swap_module_params_on_conversion()
            if assign and not swaps and "values" in module._parameters:  # whoever holds the old parameter keeps it whole
                placeholder = torch.empty(values.shape, dtype=module.values.dtype, device="meta")
                module._parameters["values"] = nn.Parameter(placeholder, requires_grad=module.values.requires_grad)
            else:
                undo.append(module._room_for(values))
        yield
    except BaseException as error:
        for step in reversed(undo):
            step()
        module._seal_indices()
        if not isinstance(error, _Undo):
            raise


def _putting_back(tensors: dict[str, Any], name: str, tensor: Tensor) -> Callable[[], None]:
    return lambda: tensors.__setitem__(name, tensor)


def _filling_again(tensor: Tensor) -> Callable[[], None]:
    kept = tensor.detach().clone()

    def fill() -> None:
        with torch.no_grad():
            tensor.copy_(kept)

    return fill
