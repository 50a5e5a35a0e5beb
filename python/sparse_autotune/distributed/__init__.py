"""Block-sparse layers over several processes, by PyTorch's distributed engine."""

from ._choices import share_store, tune_once
from ._styles import ColwiseSparse, PairwiseSparse, RowwiseSparse
from ._warm import chunk_choices, pin_chunks, warm_up

__all__ = ["ColwiseSparse", "PairwiseSparse", "RowwiseSparse", "chunk_choices", "pin_chunks", "share_store", "tune_once", "warm_up"]
