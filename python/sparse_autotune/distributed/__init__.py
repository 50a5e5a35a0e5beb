"""Block-sparse layers, attention and experts over several processes, by PyTorch's distributed engine."""

from ._attention import attention_by_heads, attention_by_keys
from ._checkpoint import stored_state
from ._choices import share_store, tune_once
from ._experts import experts
from ._styles import ColwiseSparse, PairwiseSparse, RowwiseSparse
from ._warm import chunk_choices, pin_chunks, warm_up

__all__ = [
    "ColwiseSparse",
    "PairwiseSparse",
    "RowwiseSparse",
    "attention_by_heads",
    "attention_by_keys",
    "chunk_choices",
    "experts",
    "pin_chunks",
    "share_store",
    "stored_state",
    "tune_once",
    "warm_up",
]
