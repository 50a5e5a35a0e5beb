"""A double of the memory that the devices of a group share, for processes of the CPU: files that all of them have mapped."""

import contextlib
import itertools
import os
import time

import torch
import torch.distributed as dist

from sparse_autotune.distributed import _shared

_CHANNELS = 64
_numbers = itertools.count()


class _Handle:
    """What is used of PyTorch's handle. A signal is a byte that one rank sets and another clears."""

    def __init__(self, path, group, size):
        self.rank, self.ranks = group.rank(), group.size()
        rooms = {"buffer": size, "signals": _CHANNELS * self.ranks}
        for what, room in rooms.items():
            with open(f"{path}.{what}{self.rank}", "wb") as file:
                file.truncate(room)
        dist.barrier(group)
        mapped = {what: [torch.from_file(f"{path}.{what}{rank}", True, room, dtype=torch.uint8) for rank in range(self.ranks)] for what, room in rooms.items()}
        self.buffers, self.signals = mapped["buffer"], [signals.numpy() for signals in mapped["signals"]]

    def _until(self, flags, at, value, timeout_ms):
        end = time.monotonic() + timeout_ms / 1e3
        while flags[at] != value:
            if time.monotonic() > end:
                raise RuntimeError(f"no signal within {timeout_ms} ms")
            time.sleep(2e-4)  # others have to run

    def put_signal(self, rank, channel, timeout_ms):
        flags, at = self.signals[rank], channel * self.ranks + self.rank
        self._until(flags, at, 0, timeout_ms)
        flags[at] = 1

    def wait_signal(self, rank, channel, timeout_ms):
        flags, at = self.signals[self.rank], channel * self.ranks + rank
        self._until(flags, at, 1, timeout_ms)
        flags[at] = 0


class _Files(_shared.Memory):
    timeout_s = 300.0

    def __init__(self, path, group, size):
        self.group, self.size, self.exchanges = group, size, 0
        self.handle = _Handle(path, group, size)
        self.buffers = self.handle.buffers
        self._begun(group, torch.device("cpu"))
        self.timeout_ms = int(self.timeout_s * 1000)

    def signal_all(self):
        self.exchanges += 1  # each ends so
        super().signal_all()


@contextlib.contextmanager
def sharing(folder):
    """Groups of the CPU share memory; gives the list of what they share."""
    made = []
    before = _shared.make, _shared.reachable, dict(_shared._known)

    def make(group, _device, size):
        made.append(_Files(os.path.join(folder, f"memory{next(_numbers)}"), group, size))
        return made[-1]

    _shared._known.clear()
    _shared.make = make
    _shared.reachable = lambda group, _device: group.size() > 1 and _shared.known_of(group, True).reachable
    try:
        yield made
    finally:
        _shared.make, _shared.reachable, known = before
        _shared._known.clear()
        _shared._known.update(known)
