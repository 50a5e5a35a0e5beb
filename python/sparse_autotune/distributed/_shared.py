"""Memory of a group into which every rank copies at every other, by the copy engines of CUDA devices: PyTorch's symmetric memory."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_FREE = 0  # the channel that says: what was sent is used up
_STEP = 1 << 25  # bytes; sizes are multiples
_ALIGNED = 256
_MOST_VIEWS = 1024


def limit() -> int:
    """Bytes that a group may keep. Read at each new size."""
    return int(os.environ.get("SPARSEK_DISTRIBUTED_MB", "2048")) << 20


class Memory:
    """A buffer at each rank of a group, and signals. What is sent to a rank lies there until that rank has ended its Exchange.

    It is kept for the life of the group: CUDA graphs have its addresses.
    """

    def __init__(self, group: dist.ProcessGroup, device: torch.device, size: int):
        from torch.distributed import _symmetric_memory

        self.group, self.size = group, size
        buffer = _symmetric_memory.empty(size, dtype=torch.uint8, device=device)
        self.handle = _symmetric_memory.rendezvous(buffer, group)
        self.buffers = [self.handle.get_buffer(rank, (size,), torch.uint8, 0) for rank in range(group.size())]
        self.kept = buffer
        self._begun(group, device)

    def _begun(self, group: dist.ProcessGroup, device: torch.device) -> None:
        self.rank, self.ranks = group.rank(), group.size()
        self.others = [(self.rank + step) % self.ranks for step in range(1, self.ranks)]
        self.timeout_ms = _timeout_ms(group, device)
        self.aside: Any = torch.cuda.Stream(device, priority=-1) if device.type == "cuda" else None
        self.last: Any = None  # the stream of the last exchange, and its end
        self.open: Callable[[], None] | None = None  # ends an exchange that goes on while the caller computes
        self.numbers: Tensor | None = None
        self.views: dict[tuple[int, int, torch.Size, torch.dtype], Tensor] = {}
        self.signal_all()

    def signal_all(self) -> None:
        for rank in self.others:
            self.put(rank, _FREE)

    def sender_at(self, rank: int) -> int:
        """Which one this rank is among the others there."""
        return (self.rank - rank) % self.ranks - 1

    def put(self, rank: int, channel: int) -> None:
        self.handle.put_signal(rank, channel, self.timeout_ms)

    def wait(self, rank: int, channel: int) -> None:
        self.handle.wait_signal(rank, channel, self.timeout_ms)

    def addresses(self) -> Tensor:
        """Of the buffers, for kernels."""
        if self.numbers is None:
            self.numbers = torch.tensor([buffer.data_ptr() for buffer in self.buffers], dtype=torch.int64, device=self.buffers[self.rank].device)
        return self.numbers

    def view(self, rank: int, first: int, shape: Any, dtype: torch.dtype) -> Tensor:
        """Of the buffer at a rank, from a byte on."""
        key = (rank, first, torch.Size(shape), dtype)
        found = self.views.get(key)
        if found is None:
            if len(self.views) >= _MOST_VIEWS:
                self.views.clear()
            size = math.prod(shape) * dtype.itemsize
            with torch.inference_mode(False):  # it is kept, also for training
                found = self.views[key] = self.buffers[rank][first : first + size].view(dtype).view(shape)
        return found


class Alone(Memory):
    """That of one rank which works as if there were others, and gets zeros from them: its products are those of a real exchange."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device, size: int):
        self.group, self.size = group, size
        self.buffers = [torch.zeros(size, dtype=torch.uint8, device=device)] * group.size()
        self._begun(group, device)

    def put(self, rank: int, channel: int) -> None:
        pass

    def wait(self, rank: int, channel: int) -> None:
        pass


def catch_up(memory: Memory) -> None:
    """The current stream goes on behind what was queued aside of it: then it may write where an exchange read what lies here."""
    if memory.aside is None:
        return
    stream = torch.cuda.current_stream(memory.aside.device)
    with torch.cuda.stream(memory.aside):
        recorded = torch.cuda.is_current_stream_capturing()
    if recorded or not torch.cuda.is_current_stream_capturing():  # else nothing of this CUDA graph is queued there
        stream.wait_stream(memory.aside)


class Exchange:
    """One round of copies: every rank sends what it has to say, takes what came, and ends. All ranks do so in the same order.

    The copies run aside of the current stream, each behind what was queued there before it.
    """

    def __init__(self, memory: Memory):
        if memory.open is not None:  # else every rank would wait for the others to end it
            memory.open()
        self.memory, self.sent = memory, list[Tensor]()
        self.stream = None
        if memory.aside is not None:
            self.stream = torch.cuda.current_stream(memory.aside.device)
            capturing = torch.cuda.is_current_stream_capturing()
            if not capturing and memory.last is not None and memory.last[0] != self.stream:
                self.stream.wait_event(memory.last[1])
            memory.aside.wait_stream(self.stream)
        with self.apart():
            for rank in memory.others:
                memory.wait(rank, _FREE)

    def apart(self, wanted: bool = True) -> Any:
        """Aside of the current stream, where that is wanted."""
        return torch.cuda.stream(self.memory.aside) if wanted and self.stream is not None else contextlib.nullcontext()

    def mark(self) -> Any:
        """How far the copies are queued by now; for behind()."""
        return None if self.stream is None else self.memory.aside.record_event()

    def behind(self, mark: Any) -> None:
        """The current stream waits for the copies before a mark."""
        if mark is not None and self.stream is not None:
            self.stream.wait_event(mark)

    def follow(self) -> None:
        """What is sent from here on is behind all that was queued."""
        if self.stream is not None:
            self.memory.aside.wait_stream(self.stream)

    def mark_here(self) -> Any:
        """How far the current stream is queued by now; for follow_mark()."""
        return None if self.stream is None else torch.cuda.current_stream(self.memory.aside.device).record_event()

    def follow_mark(self, mark: Any) -> None:
        """follow(), of what is before a mark."""
        if mark is not None:
            self.memory.aside.wait_event(mark)

    def send(self, x: Tensor, rank: int, first: int, channel: int | None) -> None:
        """x: contiguous, and unchanged until the end of the exchange. channel: is signalled when it, and all that was sent to the rank before, is there."""
        with self.apart():
            self.memory.view(rank, first, x.shape, x.dtype).copy_(x)
            if channel is not None:
                self.memory.put(rank, channel)
        self.hold(x)

    def signal(self, rank: int, channel: int) -> None:
        with self.apart():
            self.memory.put(rank, channel)

    def hold(self, x: Tensor) -> None:
        """Its memory is nobody else's until the end of the exchange."""
        self.sent.append(x)

    def wait_all(self, channel: int) -> None:
        """The current stream waits for a signal of every other rank."""
        for rank in self.memory.others:
            self.memory.wait(rank, channel)

    def here(self, first: int, shape: Any, dtype: torch.dtype) -> Tensor:
        """What came; until the end."""
        return self.memory.view(self.memory.rank, first, shape, dtype)

    def end(self) -> None:
        """The current stream goes on when the copies of this rank are made, and what came may be overwritten."""
        memory = self.memory
        if self.stream is not None:
            self.stream.wait_stream(memory.aside)
        memory.signal_all()
        if self.stream is not None:
            if not torch.cuda.is_current_stream_capturing():
                memory.last = (self.stream, self.stream.record_event())
        self.sent.clear()

    def end_apart(self) -> Any:
        """The same, where what came was used aside alone: the current stream does not wait. It must wait for the mark that this gives before the memory of
        anything that is used aside is freed, and because a CUDA graph has to end with all of its work."""
        memory = self.memory
        with self.apart():
            memory.signal_all()
        mark = self.mark()
        if mark is not None and not torch.cuda.is_current_stream_capturing():
            memory.last = (None, mark)  # of no stream: each waits
        self.sent.clear()
        return mark


class Places:
    """Parts of a buffer, one behind the other."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, shape: Any, dtype: torch.dtype) -> int:
        first = self.size
        self.size += -(-math.prod(shape) * dtype.itemsize // _ALIGNED) * _ALIGNED
        return first


def _timeout_ms(group: dist.ProcessGroup, device: torch.device) -> int:
    try:
        timeout = group._get_backend(device).options._timeout
    except (AttributeError, NotImplementedError, RuntimeError):
        timeout = dist.default_pg_timeout
    return int((timeout or datetime.timedelta(minutes=10)) / datetime.timedelta(milliseconds=1))


class _Known:
    """Of a group."""

    def __init__(self, reachable: bool):
        self.reachable = reachable
        self.memories: list[Memory] = []


_known: weakref.WeakKeyDictionary[dist.ProcessGroup, _Known] = weakref.WeakKeyDictionary()


def _host() -> str:
    """Processes of one host have it in common."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read()
    except OSError:
        return os.uname().nodename


def _reachable(group: dist.ProcessGroup, device: torch.device) -> bool:
    """Whether each device of the group can write into each other; the same at all ranks. A collective."""
    index = -1
    if device.type == "cuda" and not os.environ.get("SPARSEK_DISTRIBUTED_NO_COPIES"):
        index = torch.cuda.current_device() if device.index is None else device.index
    found: list[Any] = [None] * group.size()
    dist.all_gather_object(found, (_host(), index, str(torch.cuda.get_device_properties(index).uuid) if index >= 0 else ""), group=group)
    fine = all(host == found[0][0] and at >= 0 for host, at, _ in found) and len({uuid for *_, uuid in found}) == len(found)
    if fine:
        # Devices are numbered alike in the processes of a host, or hidden from each other: then the rendezvous itself would tell.
        fine = all(at == index or at < torch.cuda.device_count() and torch.cuda.can_device_access_peer(index, at) for _, at, _ in found)
    answers: list[Any] = [None] * group.size()
    dist.all_gather_object(answers, fine, group=group)
    return all(answers)


def reachable(group: dist.ProcessGroup, device: torch.device) -> bool:
    """Whether the devices of the group can copy into each other. A collective at the first time."""
    if group.size() == 1 or device.type != "cuda":
        return False
    known = _known.get(group)
    return known_of(group, _reachable(group, device) if known is None else known.reachable).reachable


def known_of(group: dist.ProcessGroup, reachable: bool) -> _Known:
    return _known.setdefault(group, _Known(reachable))


make: Callable[[dist.ProcessGroup, torch.device, int], Memory] = Memory


def memory_of(group: dist.ProcessGroup, device: torch.device, size: int) -> Memory | None:
    """A memory with room for so many bytes; None where the devices cannot copy into each other, the limit is reached, or there is none yet and a CUDA graph is
    being captured. The same at all ranks that ask for the same. A collective at the first time, and for each size that is larger than those before.
    """
    capturing = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
    if capturing and group not in _known or not reachable(group, device):
        return None
    known = _known[group]
    fitting = next((memory for memory in known.memories if memory.size >= size), None)
    if fitting is not None or capturing:
        return fitting
    size = -(-size // _STEP) * _STEP
    if size + sum(memory.size for memory in known.memories) > limit():
        return None
    with torch.inference_mode(False):
        known.memories.append(make(group, device, size))
    return known.memories[-1]
