"""Block-sparse layers over several processes, by PyTorch's distributed engine."""

from ._styles import ColwiseSparse, PairwiseSparse, RowwiseSparse

__all__ = ["ColwiseSparse", "PairwiseSparse", "RowwiseSparse"]
