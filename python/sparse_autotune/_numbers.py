"""Flags of the operators, and numbers of options. Made by scripts/python_operators.py, as the extension's are."""

from __future__ import annotations

from typing import Literal

TRANS = 1  # the sparse operand is transposed
RIGHT = 2  # the sparse operand stands on the right
FINITE = 4  # a promise: dense operands hold no inf or NaN
TF32 = 8  # float32 may be rounded to TF32
ACTIVATION_SHIFT, ACTIVATION_MASK = 4, 7  # a number of ACTIVATIONS
FACTOR = 128  # the product is multiplied with what `out` holds; of dense operands, with the residual
WIDE = 256  # sums of float16 and bfloat16 are not rounded: the result is float32
WHOLE = 512  # no row or column lies behind the last group
ROWS_FIRST = 1024  # tensors are [batch, rows, heads, depth]
CAUSAL = 2048  # a query sees no key behind the one beside it
TOP_LEFT = 4096  # the first query stands beside the first key
BOTTOM_RIGHT = 8192  # the last query stands beside the last key
AS_QUERY = 16384  # of direct_attention: the heads of a row of the result lie side by side where those of q do
DYNAMIC = 32768  # the mask is new at nearly every call: on CUDA nobody waits for it

# The flags that an operator knows.
OF_SPMM = TRANS | RIGHT | FINITE | TF32 | ACTIVATION_MASK << ACTIVATION_SHIFT | FACTOR
OF_SDDMM = FINITE | TF32
OF_GEMM = FINITE | TF32 | ACTIVATION_MASK << ACTIVATION_SHIFT | FACTOR | WIDE | WHOLE
OF_ATTENTION = ROWS_FIRST | CAUSAL | TOP_LEFT | BOTTOM_RIGHT | DYNAMIC

Activation = Literal["none", "relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: dict[str | None, int] = {None: 0, "none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
Diagonal = Literal["top_left", "bottom_right"]
Effort = Literal["measure", "estimate", "exhaustive"]
EFFORTS = {"measure": 0, "estimate": 1, "exhaustive": 2}
Tuning = Literal["in_place", "now", "now_each", "never", "ahead", "ahead_each"]
TUNINGS = {"in_place": 0, "now": 1, "now_each": 2, "never": 3, "ahead": 4, "ahead_each": 5}

WANT_DENSE, WANT_VALUES = 1, 2  # of _spmm_gradients
REPORT_TUNE = 0
REPORT_EXPLAIN = 1
REPORT_LIST = 2
REPORT_RACE = 3
REPORT_TUNE_FRESH = 4

# Of what the operators of attention take beside q, k and v: how much it is, where its tensors, its flags and its page table stand.
ATTENTION_OPTIONS = 17
ATTENTION_TENSORS = (0, 1, 12, 13, 14, 15, 16)
ATTENTION_FLAGS, ATTENTION_PAGES = 11, 14
