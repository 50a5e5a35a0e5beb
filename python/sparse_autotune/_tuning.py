"""benchmark, tune, explain, inspect."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from . import _C, _ops, _originals
from ._bsr import BSR, is_dense, kind_of
from ._gemm import gemm
from ._matmul import as_bsr, as_pattern, matmul
from ._numbers import FINITE, REPORT_EXPLAIN, REPORT_RACE, REPORT_TUNE, REPORT_TUNE_FRESH, RIGHT, TRANS
from ._report import Inspection, Report
from ._scaled import is_scaled, parts_of, scaled_matmul
from ._types import FACTORS, listed

_MOST_ROUNDS = 100_000


@contextlib.contextmanager
def _progress(wanted: bool | None) -> Iterator[None]:
    """A tqdm bar while something is measured; by default where the standard error is a terminal and tqdm is there."""
    if wanted is None:
        wanted = sys.stderr.isatty()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        wanted = False
    if not wanted:
        yield
        return
    with tqdm(total=1, leave=False) as bar:

        def step(done: int, total: int, what: str) -> None:
            bar.total, bar.n = max(total, 1), done
            bar.set_description(what, refresh=False)
            bar.refresh()

        _C.set_progress(step)
        try:
            yield
        finally:
            _C.set_progress(None)


def _measured(name: str, operand: Any) -> Tensor:
    if not is_dense(operand):
        raise TypeError(f"{name}: must be a dense tensor, not {kind_of(operand)}")
    _check_memory(name, operand)
    return operand


def _check_memory(name: str, *tensors: Tensor) -> None:
    if any(tensor.is_meta for tensor in tensors):
        raise ValueError(f"{name}: is on the device meta, where nothing can be measured")


def _is_dense_product(*operands: Any) -> bool:
    return len(operands) == 2 and all(is_dense(operand) and not hasattr(type(operand), "bsr") for operand in operands)


def _dense_parts(a: Tensor, b: Tensor, offs: Any, flags: int) -> tuple[Any, ...]:
    """Of gemm, or grouped_gemm with offs."""
    _check_memory("A", a)
    _check_memory("B", b)
    if offs is not None:
        _measured("offs", offs)
        return a, b, None, None, offs.to(a.device), flags | _ops.tf32_flag(a)
    a = a.unsqueeze(0) if a.dim() == 1 else a
    b = b.unsqueeze(1) if b.dim() == 1 else b
    return a, b, None, None, None, flags | _ops.tf32_flag(a)


def _call(
    operands: tuple[Any, ...],
    action: int,
    rounds: int,
    progress: bool | None,
    transpose: bool,
    assume_finite: bool,
    offs: Any = None,
    scaling: dict[str, Any] | None = None,
) -> dict[str, Any] | None:
    flags = FINITE if assume_finite else 0
    if len(operands) == 2 and is_scaled(*operands):
        if offs is not None:
            raise TypeError(f"offs: products of {listed(FACTORS)} have no groups")
        of_scales = dict.fromkeys(("scale_a", "scale_b", "tile_a", "tile_b"), None)
        given = {**of_scales, "out_dtype": torch.float32, **(scaling or {})}
        if set(given) - {*of_scales, "out_dtype"}:
            raise TypeError(f"scaling: has {', '.join(sorted(set(given) - {*of_scales, 'out_dtype'}))}; it takes {', '.join(of_scales)} and out_dtype")
        name, of_scaled = parts_of(*operands, flags | (TRANS if transpose else 0), bias=None, **given)
        for operand, tensor in zip(("A", "B", "scale_a", "scale_b"), (*operands, given["scale_a"], given["scale_b"]), strict=True):
            tensor = tensor.values if isinstance(tensor, BSR) else tensor
            if isinstance(tensor, Tensor):
                _check_memory(operand, tensor)
        with torch.no_grad(), _progress(progress):
            return json.loads(getattr(torch.ops.sparse_autotune, f"_report_{name}")(*of_scaled, action, rounds))
    if scaling is not None:
        raise TypeError(f"scaling: is of operands of {listed(FACTORS)}")
    if offs is not None and not _is_dense_product(*operands):
        raise TypeError("offs: groups are of dense operands, (A, B)")
    if len(operands) == 3:
        pattern, x, y = as_pattern(operands[0]), _measured("X", operands[1]), _measured("Y", operands[2])
        _check_memory("pattern", pattern.row_offsets, pattern.col_indices)
        rows, cols = pattern.shape
        parts: tuple[Any, ...] = (x, y, pattern.row_offsets, pattern.col_indices, rows, cols, *pattern.block, flags | _ops.tf32_flag(x))
        op: Callable[..., str] = torch.ops.sparse_autotune._report_sddmm
    elif _is_dense_product(*operands):
        if transpose:
            raise ValueError("transpose: is for a sparse operand; give dense ones as they are to be multiplied, A.mT")
        parts = _dense_parts(operands[0], operands[1], offs, flags)
        op = torch.ops.sparse_autotune._report_gemm
    elif len(operands) == 2:
        sparse, dense = as_bsr(operands[0], "A"), operands[1]
        if sparse is None:
            sparse, dense, flags = as_bsr(operands[1], "B"), operands[0], flags | RIGHT
        if sparse is None:
            raise TypeError("A: neither A nor B is sparse")
        _measured("A" if flags & RIGHT else "B", dense)
        _check_memory("B" if flags & RIGHT else "A", sparse.values, sparse.row_offsets, sparse.col_indices)
        if dense.dim() == 1:
            dense = dense.unsqueeze(0 if flags & RIGHT else 1)
        rows, cols = sparse.shape
        flags |= (TRANS if transpose else 0) | _ops.tf32_flag(dense)
        parts = (sparse.values, sparse.row_offsets, sparse.col_indices, dense, None, rows, cols, flags)
        op = torch.ops.sparse_autotune._report_spmm
    else:
        raise TypeError(f"operands: must be (A, B) or (pattern, X, Y), not {len(operands)}")
    with torch.no_grad(), _progress(progress):
        return json.loads(op(*(p.detach() if isinstance(p, Tensor) else p for p in parts), action, rounds))


def tune(
    *operands: Any,
    transpose: bool = False,
    assume_finite: bool = False,
    offs: Tensor | None = None,
    scaling: dict[str, Any] | None = None,
    fresh: bool = False,
    progress: bool | None = None,
) -> Report:
    """Tunes the product A B (or with three operands sddmm(pattern, X, Y)) as its first call would, and tells what was found.

    Two dense operands are those of gemm, or with offs of grouped_gemm; those of eight bits are scaled_matmul's, with its scale_a, scale_b,
    tile_a, tile_b and out_dtype in scaling. Where the class of problems is known, that is what the store has;
    fresh: measure again. Operands and flags as of matmul and sddmm; only their shapes, types and layouts count. progress: a tqdm bar; by
    default on a terminal.
    """
    found = _call(operands, REPORT_TUNE_FRESH if fresh else REPORT_TUNE, 0, progress, transpose, assume_finite, offs, scaling)
    assert found is not None
    return Report(found)


def explain(*operands: Any, transpose: bool = False, assume_finite: bool = False, offs: Tensor | None = None, scaling: dict[str, Any] | None = None) -> Report:
    """What the store knows of the product A B, sparse or dense, or sddmm(pattern, X, Y); operands as of tune.

    Measures nothing. While calls try the class in place it tells how far they are (origin). LookupError where its class was never tuned.
    """
    found = _call(operands, REPORT_EXPLAIN, 0, False, transpose, assume_finite, offs, scaling)
    if found is None:
        raise LookupError("the store does not know this class of problems; tune it first")
    return Report(found)


def inspect(matrix: Any) -> Inspection:
    """Structure of a sparse matrix: sa.BSR, torch.sparse_bsr or SciPy BSR."""
    sparse = as_pattern(matrix, "matrix")
    if sparse.row_offsets.is_meta:
        raise ValueError("matrix: is on the device meta, which keeps no indices")
    found = json.loads(torch.ops.sparse_autotune._inspect(sparse.row_offsets, sparse.col_indices, *sparse.shape, *sparse.block))
    whole = {k: int(v) if k in ("rows", "cols", "nnzb", "empty_rows", "longest_row") or k.startswith(("block_", "grid_")) else v for k, v in found.items()}
    return Inspection(**whole)


def _elapsed(call: Callable[[], Any], repeats: int, cuda: bool) -> float:
    """Microseconds of a call, between events on CUDA."""
    if not cuda:
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - begin) / repeats * 1e6
    torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(repeats):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / repeats * 1e3


def _times(calls: dict[str, Callable[[], Any]], rounds: int, cuda: bool) -> dict[str, list[float]]:
    """Microseconds of calls in interleaved rounds, each sample some calls long."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    repeats = {}
    for name, call in calls.items():
        call()
        repeats[name] = max(1, min(1000, int(1e3 / max(_elapsed(call, 1, cuda), 0.1))))
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(_elapsed(call, repeats[name], cuda))
    return times


def benchmark(
    A: Any,  # noqa: N803
    B: Any,  # noqa: N803
    *,
    transpose: bool = False,
    assume_finite: bool = False,
    rounds: int = 20,
    progress: bool | None = None,
) -> Report:
    """The race of every candidate for A B, sparse or dense, dense multiplication among them, and beside them PyTorch's own products.

    The rows of kind "peer" are timed from Python on the operands themselves, back to back (so with warm caches): sparse_autotune (matmul or
    gemm, all of its overhead included), pytorch_dense (torch.matmul) and, of a sparse operand, pytorch_bsr (torch.sparse_bsr, where PyTorch
    can do it); of operands of eight bits sparse_autotune alone (scaled_matmul, without factors). rounds: interleaved rounds of the last
    phase. The report prints as a table, shows itself in notebooks, and has plot() and to_dict(). The result goes to the store.
    """
    _check_rounds(rounds)
    found = _call((A, B), REPORT_RACE, rounds, progress, transpose, assume_finite)
    assert found is not None
    report = Report(found)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")  # of PyTorch's BSR, which nobody asked for by name
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")  # of checks that ours have passed
        _add_peers(report, A, B, transpose, assume_finite, rounds)
    return report


def _check_rounds(rounds: Any, least: int = 0) -> None:
    if not hasattr(rounds, "__index__"):
        raise TypeError(f"rounds: must be a whole number, not {rounds!r}")
    if not least <= rounds <= _MOST_ROUNDS:
        raise ValueError(f"rounds: must be from {least} to {_MOST_ROUNDS}, not {rounds}")


def _peer_rounds(rounds: int) -> int:
    return max(3, min(rounds, 20))


def _add_peers(report: Report, A: Any, B: Any, transpose: bool, assume_finite: bool, rounds: int) -> None:  # noqa: N803
    if is_scaled(A, B):  # PyTorch has no such products of all kinds
        own = {"sparse_autotune": lambda: scaled_matmul(A, B, transpose=transpose, assume_finite=assume_finite)}
        report.add("sparse_autotune", _times(own, _peer_rounds(rounds), (A if isinstance(A, Tensor) else B).is_cuda)["sparse_autotune"])
        return
    if _is_dense_product(A, B):
        for name, times in _times(
            {"sparse_autotune": lambda: gemm(A, B), "pytorch_dense": lambda: _originals.matmul(A, B)}, _peer_rounds(rounds), A.is_cuda
        ).items():
            report.add(name, times)
        return
    left, right = as_bsr(A, "A"), None
    if left is None:
        right = as_bsr(B, "B")
    sparse = left if left is not None else right
    assert sparse is not None
    full = sparse.to_dense()
    full = full.mT.contiguous() if transpose else full
    calls: dict[str, Callable[[], Any]] = {}
    calls["sparse_autotune"] = lambda: matmul(A, B, transpose=transpose, assume_finite=assume_finite)
    calls["pytorch_dense"] = (lambda: _originals.matmul(full, B)) if left is not None else (lambda: _originals.matmul(A, full))
    why = None
    try:
        native = (sparse.transpose() if transpose else sparse).to_torch()
        native_call = (lambda: _originals.matmul(native, B)) if left is not None else (lambda: _originals.matmul(A, native))
        native_call()
        calls["pytorch_bsr"] = native_call
    except (RuntimeError, ValueError, NotImplementedError) as error:
        why = str(error).split("\n")[0]
    for name, times in _times(calls, _peer_rounds(rounds), sparse.values.is_cuda).items():
        report.add(name, times)
    if why is not None:
        report.add("pytorch_bsr", [], why=why)
