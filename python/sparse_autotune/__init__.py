"""Block-sparse times dense matrix multiplication for PyTorch, chosen by measurement.

>>> import sparse_autotune as sa
>>> A = sa.BSR.from_dense(weight, block=64, density=0.1)
>>> y = sa.matmul(A, x)
"""

from typing import Any as _Any

from . import _fakes, _flops, _imports, _transforms  # noqa: F401  what PyTorch must know of the operators
from ._attention import attention
from ._block_mask import BlockMask
from ._bsr import BSR
from ._buffer import SparseBuffer
from ._gemm import gemm, grouped_gemm
from ._linear import SparseLinear, gated, to_block_sparse, to_dense
from ._matmul import bsr_gemm, matmul, sddmm
from ._options import clear_cache, get_options, no_tuning, set_options
from ._peft import register_with_peft
from ._pruner import BlockPruner
from ._race import benchmark_attention
from ._report import Inspection, Report
from ._scaled import scaled_matmul
from ._sdpa import scaled_dot_product_attention
from ._transformers import register_with_transformers, set_block_mask
from ._tuning import benchmark, explain, inspect, tune
from ._warm import WarmUp, warm_up
from ._warnings import SparseAutotuneWarning
from ._weight import SparseWeight, sparsify_weights


def __getattr__(name: str) -> _Any:
    if name == "distributed":  # brings PyTorch's distributed engine, which takes a while
        import importlib

        return importlib.import_module(".distributed", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_imports.watch()
__version__ = "0.2.0"
__all__ = [
    "BSR",
    "BlockMask",
    "BlockPruner",
    "Inspection",
    "Report",
    "SparseAutotuneWarning",
    "SparseBuffer",
    "SparseLinear",
    "SparseWeight",
    "WarmUp",
    "attention",
    "benchmark",
    "benchmark_attention",
    "bsr_gemm",
    "clear_cache",
    "explain",
    "gated",
    "gemm",
    "get_options",
    "grouped_gemm",
    "inspect",
    "matmul",
    "no_tuning",
    "register_with_peft",
    "register_with_transformers",
    "scaled_dot_product_attention",
    "scaled_matmul",
    "sddmm",
    "set_block_mask",
    "set_options",
    "sparsify_weights",
    "to_block_sparse",
    "to_dense",
    "tune",
    "warm_up",
]
