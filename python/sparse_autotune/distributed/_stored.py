"""What torch.distributed.checkpoint sees of a parameter that is dealt over ranks: this rank's places in the whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType


class Stored(Tensor):
    """A rank's entries, along dimension 0, of a tensor of which other ranks have the others. On the memory of the parameter: loading fills that.

    Its shape is that of what is here, its size() that of the whole, as torch.distributed.checkpoint asks for it.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    runs: list[tuple[int, int, int]]  # first place in the whole, first place here, how many
    whole: torch.Size

    @staticmethod
    def of(local: Tensor, places: Tensor, count: int) -> Stored:
        """places: of local[: len(places)] in the whole, which has `count` entries."""
        made = local.detach().as_subclass(Stored)
        breaks = [0, *((places.diff() != 1).nonzero()[:, 0] + 1).tolist(), len(places)] if len(places) else [0]
        made.runs = [(int(places[a]), a, b - a) for a, b in zip(breaks[:-1], breaks[1:], strict=True)]
        made.whole = torch.Size((count, *local.shape[1:]))
        return made

    def size(self, dim: int | None = None) -> Any:
        return self.whole if dim is None else self.whole[dim]

    def _offsets(self, first: int) -> torch.Size:
        return torch.Size((first, *[0] * (len(self.whole) - 1)))

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [ChunkStorageMetadata(self._offsets(first), torch.Size((count, *self.whole[1:]))) for first, _, count in self.runs]

    def __create_write_items__(self, fqn: str, _object: object) -> list[WriteItem]:
        properties = TensorProperties.create_from_tensor(self.detach())
        return [
            WriteItem(MetadataIndex(fqn, chunk.offsets, at), WriteItemType.SHARD, tensor_data=TensorWriteData(chunk, properties, self.whole))
            for at, chunk in enumerate(self.__create_chunk_list__())
        ]

    def __get_tensor_shard__(self, index: MetadataIndex) -> Tensor:
        assert index.offset is not None
        at, count = next((at, count) for first, at, count in self.runs if first == index.offset[0])
        return self.detach()[at : at + count]
