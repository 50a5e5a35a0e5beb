"""Index buffers of a module that are changed in place by something that takes them for numbers, such as an average of all buffers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ._ops import is_compiling, transforming

_NAMES = ("row_offsets", "col_indices")
_ODD = 0x1E3779B97F4A7C15

_CHANGED = (
    "sparse_autotune: row_offsets, col_indices: were changed in place since the layer was made, copied or loaded, as by an average of buffers "
    "(AveragedModel with use_buffers=True): they say where blocks are, and have no average. Average the parameters alone; load_state_dict "
    "takes other indices, and so does an assignment (layer.col_indices = tensor)"
)


def _readable(indices: Any) -> bool:
    """Whether their numbers can be looked at here: not those of traced, sharded, transformed or meta tensors."""
    if type(indices) is not Tensor or indices.is_meta or indices.is_inference() or transforming() or torch._C._len_torch_dispatch_stack():
        return False
    return not (indices.is_cuda and torch.cuda.is_current_stream_capturing())


def _content(indices: Tensor) -> Tensor:
    """One number for all, on their device: other indices have another one, but for a chance of 2^-64."""
    weights = torch.arange(1, indices.numel() + 1, dtype=torch.int64, device=indices.device) * _ODD
    weights = (weights ^ (weights >> 31)) * _ODD
    return (indices.detach().long() * weights).sum()


def _among_ranks() -> bool:
    """Whether there are other processes, which may send the indices of theirs, as DistributedDataParallel does when it begins."""
    return torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1


class GuardedIndices(nn.Module):
    """A module with the buffers row_offsets and col_indices. Each use asks whether PyTorch counts a change of them, and looks at the numbers
    where it does: those that were neither loaded nor assigned are refused (RuntimeError). In compiled functions nobody asks; train, eval,
    state_dict, copies and moves do.
    """

    _seal: tuple[Any, ...] | None  # both tensors, each with its count of changes; whether they are as they were made; and their contents

    def _seal_indices(self, made: bool = False) -> None:
        rows, columns = (self._buffers.get(name) for name in _NAMES)
        if not _readable(rows) or not _readable(columns):
            self.__dict__["_seal"] = None
            return
        assert rows is not None and columns is not None
        self.__dict__["_seal"] = (rows, rows._version, columns, columns._version, made, _content(rows), _content(columns))

    def _check_indices(self, rows: Any, columns: Any) -> None:
        seal = self.__dict__.get("_seal")
        if seal is None:
            self._seal_indices()
        elif seal[0] is rows and seal[2] is columns and (seal[1] != rows._version or seal[3] != columns._version):
            self._look_again(seal, rows, columns)

    def _look_again(self, seal: tuple[Any, ...], rows: Tensor, columns: Tensor) -> None:
        if not _readable(rows) or not _readable(columns):
            return
        made = bool(seal[4])
        if not (bool(_content(rows) == seal[5]) and bool(_content(columns) == seal[6])) and not (made and _among_ranks()):
            raise RuntimeError(_CHANGED)
        self._seal_indices(made)

    def _check_own_indices(self) -> None:
        if not is_compiling():
            self._check_indices(*(self._buffers.get(name) for name in _NAMES))

    # ------------------------------------------------------------------------------------------------ what changes them, and what copies them

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _NAMES:
            self.__dict__["_seal"] = None

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        if all(prefix + name in state_dict for name in _NAMES):
            self._seal_indices()

    def _save_to_state_dict(self, *args: Any) -> None:
        self._check_own_indices()
        super()._save_to_state_dict(*args)

    def train(self, mode: bool = True) -> Any:
        self._check_own_indices()
        return super().train(mode)

    def _apply(self, *args: Any, **options: Any) -> Any:
        self._check_own_indices()
        before = self.__dict__.get("_seal")
        super()._apply(*args, **options)
        self._seal_indices(made=before is not None and before[4])
        after = self.__dict__["_seal"]
        if before is None or after is None or any(int(old) != int(new) for old, new in zip(before[5:], after[5:], strict=True)):
            self.__dict__["_seal"] = None  # to_empty: what comes next fills them
        return self

    def __getstate__(self) -> dict[str, Any]:
        self._check_own_indices()
        return {name: value for name, value in self.__dict__.items() if name != "_seal"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._seal_indices()
