"""PyTorch's own functions with an sa.BSR or an sa.SparseWeight among their operands."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._bsr import BSR
from ._matmul import matmul

Product = Callable[..., Tensor]  # of two operands, one of them sparse; keywords bias and out


def check_matrices(name: str, **operands: Any) -> None:
    """As PyTorch has it; torch.matmul takes batches and vectors, these do not."""
    for operand, given in operands.items():
        dims = given.values.dim() - 1 if isinstance(given, BSR) else given.dim()
        if dims != 2:
            raise RuntimeError(f"{name}: {operand} must be a matrix, got {dims}-D tensor")


def _matmul(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    return matmul(input, other, out=out)


def mm(product: Product, input: Any, mat2: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    check_matrices("mm", self=input, mat2=mat2)
    return product(input, mat2, out=out)


def bmm(product: Product, input: Any, mat2: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    for name, given in (("self", input), ("mat2", mat2)):
        dims = given.values.dim() - 1 if isinstance(given, BSR) else given.dim()
        if dims != 3:
            raise RuntimeError(f"bmm: {name} must be a batch of matrices, got {dims}-D tensor; matmul multiplies one matrix with a batch")
    return product(input, mat2, out=out)


def mv(product: Product, input: Any, vec: Any, *, out: Tensor | None = None) -> Tensor:  # noqa: A002
    check_matrices("mv", self=input)
    if not isinstance(vec, Tensor) or vec.dim() != 1:
        raise RuntimeError(f"mv: vec must be a vector, got {f'{vec.dim()}-D tensor' if isinstance(vec, Tensor) else type(vec).__name__}")
    return product(input, vec, out=out)


def _added(made: Tensor, input: Any, beta: float, alpha: float, out: Tensor | None) -> Tensor:  # noqa: A002
    input = input.expand(made.shape)  # noqa: A001  else a larger one would make the sum larger
    if beta == 0:  # what is in it does not count, NaN and infinities neither
        return torch.mul(made, alpha, out=out)
    return torch.add(input if beta == 1 else beta * input, made, alpha=alpha, out=out)


def addmm(product: Product, input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002
    if type(input) is BSR or hasattr(type(input), "bsr"):
        raise NotImplementedError("addmm: its first operand must be dense")
    check_matrices("addmm", mat1=mat1, mat2=mat2)
    of_rows = isinstance(mat1, Tensor) and not hasattr(type(mat1), "bsr")  # a bias is added to the rows of a product from the right
    if out is None and alpha == 1 and beta == 1 and of_rows and input.dim() == 1:
        return product(mat1, mat2, bias=input)
    return _added(product(mat1, mat2), input, beta, alpha, out)


def _addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1, out: Tensor | None = None) -> Tensor:  # noqa: A002
    if not isinstance(input, Tensor):
        raise NotImplementedError("addmv: its first operand must be dense")
    return _added(mv(matmul, mat, vec), input, beta, alpha, out)


def _linear(input: Any, weight: Any, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    if not isinstance(weight, BSR):
        raise NotImplementedError("linear: only its weight may be an sa.BSR")
    return matmul(input, weight, transpose=True, bias=bias)


def _matmul_of_tensors(input: Any, other: Any, **options: Any) -> Tensor:  # noqa: A002
    """torch.Tensor.matmul, and what x @ A calls."""
    if torch.compiler.is_dynamo_compiling():
        # It gives (x, A) here for A @ x, too. The exception makes it leave the product to Python, or, with fullgraph=True, tell this message.
        raise NotImplementedError(
            "sparse_autotune: torch.compile does not tell A @ x from x @ A where one is an sa.BSR; write sa.matmul(A, x), torch.matmul(A, x) or A.matmul(x)"
        )
    return _matmul(input, other, **options)


def _einsum(*_operands: Any) -> Tensor:
    raise NotImplementedError("einsum: takes no sa.BSR; sa.matmul multiplies from both sides, with batches and transpose=True, sa.sddmm at a pattern's blocks")


_OF_BSR: dict[Any, Callable[..., Tensor]] = {
    torch.matmul: _matmul,
    operator.matmul: _matmul,
    Tensor.matmul: _matmul_of_tensors,
    Tensor.__matmul__: _matmul_of_tensors,
    Tensor.__rmatmul__: lambda self, other: matmul(other, self),
    torch.mm: lambda *operands, **options: mm(matmul, *operands, **options),
    Tensor.mm: lambda *operands, **options: mm(matmul, *operands, **options),
    torch.mv: lambda *operands, **options: mv(matmul, *operands, **options),
    Tensor.mv: lambda *operands, **options: mv(matmul, *operands, **options),
    torch.addmm: lambda *operands, **options: addmm(matmul, *operands, **options),
    Tensor.addmm: lambda *operands, **options: addmm(matmul, *operands, **options),
    torch.sparse.mm: lambda *operands, **options: mm(matmul, *operands, **options),
    torch.sparse.addmm: lambda *operands, **options: addmm(matmul, *operands, **options),
    torch.bmm: lambda *operands, **options: bmm(matmul, *operands, **options),
    Tensor.bmm: lambda *operands, **options: bmm(matmul, *operands, **options),
    torch.addmv: _addmv,
    Tensor.addmv: _addmv,
    torch.nn.functional.linear: _linear,
    torch.einsum: _einsum,
    torch.functional.einsum: _einsum,
}


def of_bsr(func: Any) -> Callable[..., Tensor] | None:
    """What does a function of PyTorch where an operand is an sa.BSR; None where nothing does."""
    return _OF_BSR.get(func)
