"""A double of the memory that the devices of a group share, for processes of the CPU: files that all of them have mapped."""

import itertools
import os
import time

import torch
import torch.distributed as dist

from sparse_autotune.distributed import _shared

_CHANNELS = 64
count = 0  # exchanges' memories that were made here


class _Handle:
    """What is used of PyTorch's handle. A signal is a byte that one rank sets and another clears."""

    def __init__(self, folder, name, group, size):
        self.rank, self.ranks = group.rank(), group.size()
        for rank in range(self.ranks) if self.rank == 0 else ():
            for what, room in (("buffer", size), ("signals", _CHANNELS * self.ranks)):
                with open(self._path(folder, name, what, rank), "wb") as file:
                    file.truncate(room)
        dist.barrier(group)
        self.buffers = [torch.from_file(self._path(folder, name, "buffer", rank), True, size, dtype=torch.uint8) for rank in range(self.ranks)]
        self.signals = [
            torch.from_file(self._path(folder, name, "signals", rank), True, _CHANNELS * self.ranks, dtype=torch.uint8).numpy() for rank in range(self.ranks)
        ]

    @staticmethod
    def _path(folder, name, what, rank):
        return os.path.join(folder, f"{name}.{what}{rank}")

    def _until(self, flags, at, value, timeout_ms):
        end = time.monotonic() + timeout_ms / 1e3
        while flags[at] != value:
            if time.monotonic() > end:
                raise RuntimeError(f"no signal within {timeout_ms} ms")
            time.sleep(0)

    def put_signal(self, rank, channel, timeout_ms):
        flags, at = self.signals[rank], channel * self.ranks + self.rank
        self._until(flags, at, 0, timeout_ms)
        flags[at] = 1

    def wait_signal(self, rank, channel, timeout_ms):
        flags, at = self.signals[self.rank], channel * self.ranks + rank
        self._until(flags, at, 1, timeout_ms)
        flags[at] = 0


class Files(_shared.Memory):
    def __init__(self, folder, name, group, size):
        global count
        count += 1
        self.group, self.size = group, size
        self.handle = _Handle(folder, name, group, size)
        self.buffers = self.handle.buffers
        self._begun(group, torch.device("cpu"))


_numbers = itertools.count()


def install(folder):
    """Groups of the CPU share memory from here on."""
    _shared.make = lambda group, _device, size: Files(folder, f"memory{next(_numbers)}", group, size)
    _shared.reachable = lambda group, _device: _shared.known_of(group, True).reachable
