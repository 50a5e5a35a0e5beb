"""sa.BSR: a block-sparse matrix as its component tensors."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack as outside_transforms
from torch.utils import _pytree

from . import _files
from ._nearest import none_of
from ._types import DTYPES, FACTORS, FLOATS8, NOT_IN_NUMPY, listed, name_of
from ._warnings import warn

Norm = Literal["l1", "l2", "max"]


class BSR:
    """A block-sparse matrix in BSR (block compressed sparse rows).

    row_offsets: int32 or int64, [ceil(rows / block_rows) + 1]; block row i holds the blocks row_offsets[i] .. row_offsets[i + 1] - 1.
    col_indices: the same dtype, [nnzb]; the block column of each block, increasing within a block row. values: float32, float64, float16 or
    bfloat16, or for scaled_matmul float8_e4m3fn, float8_e5m2 or int8, [..., nnzb, block_rows, block_cols]; dimensions before are a batch on
    one pattern. Blocks are 1 to 256 high and wide. Indices that do not lie one behind the other in memory are copied. May require a
    gradient. shape: (rows, cols); need not be multiples of the block: what of an edge block lies beyond is ignored.

    A @ B works on either side, as do torch.matmul, mm, bmm, mv, addmm, addmv, F.linear and torch.sparse.mm. In a function that
    torch.compile sees, write sa.matmul(A, B) or A.matmul(B): A @ B and B @ A are left to Python there, and refused with fullgraph=True.

    Indices are looked through at the first product, and again when they have changed: on the CPU they are compared, on CUDA PyTorch must
    count the change. Wrong ones raise RuntimeError then.
    """

    __slots__ = ("row_offsets", "col_indices", "values", "shape", "__weakref__")
    __array_ufunc__ = None  # array @ BSR is __rmatmul__'s, which says what is wrong with it

    def __init__(self, row_offsets: Tensor, col_indices: Tensor, values: Tensor, shape: tuple[int, int]):
        if not (isinstance(row_offsets, Tensor) and isinstance(col_indices, Tensor) and isinstance(values, Tensor)):
            kinds = {"row_offsets": row_offsets, "col_indices": col_indices, "values": values}
            hint = "; sa.BSR.from_pattern makes a bare pattern" if values is None else ""
            raise TypeError("; ".join(f"{name}: must be a tensor, not {type(t).__name__}" for name, t in kinds.items() if not isinstance(t, Tensor)) + hint)
        if row_offsets.is_nested or col_indices.is_nested or values.is_nested:
            raise TypeError("row_offsets, col_indices, values: must be dense tensors, not nested ones")
        if values.dim() < 3:
            raise ValueError(f"values: must have the dimensions [..., blocks, block rows, block columns], not {list(values.shape)}")
        check_dtype("values", values.dtype, FACTORS)
        if not (1 <= values.shape[-2] <= 256 and 1 <= values.shape[-1] <= 256):
            raise ValueError(f"values: blocks must be 1 to 256 high and wide, not {list(values.shape[-2:])}")
        if not isinstance(shape, (tuple, list)) or len(shape) != 2 or not (_is_size(shape[0]) and _is_size(shape[1])):
            raise ValueError(f"shape: must be (rows, cols), not {shape!r}")
        if shape[0] < 0 or shape[1] < 0:
            raise ValueError(f"shape: sizes must not be negative, but are {tuple(shape)}")
        self.row_offsets, self.col_indices, self.values = in_line(row_offsets), in_line(col_indices), values
        self.shape = (shape[0], shape[1])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """PyTorch's products; and a sign to its fused paths, such as nn.TransformerEncoderLayer's in eval, that this weight is not for
        them."""
        from ._functions import of_bsr

        product = of_bsr(func)
        if product is not None:
            return product(*args, **(kwargs or {}))
        if all(kind in (cls, Tensor, torch.nn.Parameter) for kind in types):  # nobody else could have an answer
            name = torch.overrides.resolve_name(func) or getattr(func, "__name__", func)
            raise TypeError(f"{name}: takes no sa.BSR; sa.matmul and sa.sddmm multiply, and to_dense() is a dense tensor")
        return NotImplemented

    # ------------------------------------------------------------------------------------------------ facts

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def block(self) -> tuple[int, int]:
        """(block_rows, block_cols)"""
        return self.values.shape[-2], self.values.shape[-1]

    @property
    def nnzb(self) -> int:
        """Stored blocks."""
        return self.col_indices.shape[0]

    @property
    def grid(self) -> tuple[int, int]:
        """Blocks down and across, edge blocks included."""
        return -(-self.shape[0] // self.block[0]), -(-self.shape[1] // self.block[1])

    @property
    def density(self) -> float:
        """Stored blocks over all; 0 for an empty grid."""
        return self.nnzb / (self.grid[0] * self.grid[1]) if self.grid[0] and self.grid[1] else 0.0

    @property
    def requires_grad(self) -> bool:
        return self.values.requires_grad

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"BSR({rows} x {cols}, {self.block[0]}x{self.block[1]} blocks, {self.nnzb} stored, {100 * self.density:.4g} %, {self.dtype}, {self.device})"

    # ------------------------------------------------------------------------------------------------ from and to

    @classmethod
    def from_dense(cls, dense: Tensor, block: int | tuple[int, int], *, density: float | None = None, by: Norm = "l2") -> BSR:
        """The blocks of a matrix [rows, cols] that hold a non-zero; or, with density, the round(density * grid) blocks of largest norm.

        by: "l1", "l2" or "max". Ties: the lower block first. With density all values must be finite.
        """
        return cls.from_mask(dense, kept_blocks("dense", dense, block, density, by), block)

    @classmethod
    def from_mask(cls, dense: Tensor, mask: Tensor, block: int | tuple[int, int]) -> BSR:
        """The blocks of a matrix [rows, cols] that a mask [grid rows, grid cols] keeps; their values are copied (gradients flow
        through)."""
        _check_matrix(dense)
        pair = _pair(block)
        grid = [-(-size // side) for size, side in zip(dense.shape, pair, strict=True)]
        if not isinstance(mask, Tensor):
            raise TypeError(f"mask: must be a tensor, not {type(mask).__name__}")
        if list(mask.shape) != grid:
            raise ValueError(f"mask: its shape is {list(mask.shape)}, the grid of blocks {grid}")
        check_numbers("dense", dense)
        check_numbers("mask", mask)
        mask = mask.bool()  # others would be taken for numbers of blocks
        row_offsets, col_indices = indices_of(mask)
        return cls(row_offsets, col_indices, _moved(dense, lambda numbers: _blocked(numbers, pair)[mask]), (dense.shape[0], dense.shape[1]))

    @classmethod
    def from_pattern(
        cls, row_offsets: Tensor, col_indices: Tensor, block: int | tuple[int, int], shape: tuple[int, int], *, dtype: torch.dtype | None = None
    ) -> BSR:
        """A bare pattern, as sddmm, inspect and SparseLinear take it: all values are one zero, which takes no memory."""
        if not isinstance(row_offsets, Tensor) or not isinstance(col_indices, Tensor):
            return cls(row_offsets, col_indices, torch.empty(0, 1, 1, dtype=torch.float32, device="cpu"), shape)  # is refused
        if col_indices.dim() != 1:
            raise ValueError(f"col_indices: must have one dimension; its shape is {list(col_indices.shape)}")
        return cls(row_offsets, col_indices, torch.zeros((), dtype=dtype, device=row_offsets.device).expand(col_indices.shape[0], *_pair(block)), shape)

    @classmethod
    def from_torch(cls, matrix: Tensor) -> BSR:
        """A torch.sparse_bsr matrix, without a copy: values and indices are the same memory.

        A gradient goes on to the values of which the matrix was made. A leaf that requires one is refused: PyTorch cannot keep a gradient
        in it.
        """
        if not isinstance(matrix, Tensor) or matrix.layout is not torch.sparse_bsr:
            raise TypeError(f"matrix: must be a torch.sparse_bsr tensor, not {kind_of(matrix)}")
        with outside_transforms():  # which cannot wrap a torch.sparse_bsr tensor: none belongs to a level of torch.func
            return cls._from_torch(matrix)

    @classmethod
    def _from_torch(cls, matrix: Tensor) -> BSR:
        if matrix.dim() != 2 or matrix.dense_dim():
            raise ValueError(f"matrix: batches and dense dimensions of torch.sparse_bsr are not taken, its shape is {list(matrix.shape)}; give the components")
        check_dtype("matrix", matrix.dtype, FACTORS)
        shape = (matrix.shape[0], matrix.shape[1])
        if not matrix.requires_grad or not torch.is_grad_enabled():
            return cls(matrix.crow_indices(), matrix.col_indices(), matrix.values().detach(), shape)
        if matrix.is_leaf:
            raise TypeError(
                "matrix: a torch.sparse_bsr leaf gets no gradient, as PyTorch can keep none in it; make it of values that require one, "
                "torch.sparse_bsr_tensor(crow_indices, col_indices, values), or give sa.BSR"
            )
        return cls(matrix.crow_indices(), matrix.col_indices(), _ValuesOf.apply(matrix), shape)

    @classmethod
    def from_dlpack(cls, row_offsets: Any, col_indices: Any, values: Any, shape: tuple[int, int]) -> BSR:
        """Components of any library that has DLPack, without a copy. The other way, give the tensors of this matrix to that library's
        from_dlpack."""
        return cls(torch.from_dlpack(row_offsets), torch.from_dlpack(col_indices), torch.from_dlpack(values), shape)

    @classmethod
    def from_scipy(cls, matrix: Any, block: int | tuple[int, int] | None = None) -> BSR:
        """A SciPy sparse matrix or array. BSR whose blocks are in order is taken without a copy; unsorted blocks are sorted, duplicates
        summed.

        block: of the result, which need not divide the matrix; needed where the matrix is not in BSR.
        """
        if not hasattr(matrix, "format") or not hasattr(matrix, "tobsr"):
            raise TypeError(f"matrix: must be a SciPy sparse matrix, not {type(matrix).__name__}")
        shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        if block is not None:
            high, wide = _pair(block)
            rows, cols = shape
            if rows % high or cols % wide:  # SciPy wants whole blocks
                matrix = matrix.tocoo(copy=True)
                matrix.resize(-(-rows // high) * high, -(-cols // wide) * wide)
            matrix = matrix.tobsr(blocksize=(high, wide))
        elif matrix.format != "bsr":
            raise ValueError(f"block: must be given for a matrix that is not in BSR, but in {matrix.format.upper()}")
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data), shape)

    @classmethod
    def load(cls, path: str | os.PathLike[str], name: str | None = None, *, shape: tuple[int, int] | None = None, device: torch.device | str = "cpu") -> BSR:
        """A matrix of a safetensors file, as sparsek's command line writes it (gen, convert). Needs safetensors.

        name: of the matrix, by default the only one in the file. shape: for the weight of a SparseLinear in a model's state, of which the
        file tells none (its name there is the layer's; "" in the state of a layer alone). A pattern without values, such as a mask that the
        command line made, has values of one, which take no memory. ValueError names what is missing or wrong, indices included.
        """
        made = cls(*_files.read(path, name, shape, device))
        made._check_all_indices()
        return made

    def save(self, path: str | os.PathLike[str], name: str = "matrix") -> None:
        """Writes a safetensors file with this matrix alone, which sparsek's command line reads. Needs safetensors. Takes no batch.

        ValueError where the name or the indices are wrong: nothing is written then. A file that was there stays until the new one is whole.
        """
        _files.check_name(name)
        if self.values.dim() != 3:
            raise ValueError("values: save takes no batch")
        if self.values.is_meta or self.row_offsets.is_meta or self.col_indices.is_meta:
            raise ValueError("values: must have memory to be saved, and are on the meta device")
        self._check_all_indices()
        _files.write(path, name, {"row_offsets": self.row_offsets, "col_indices": self.col_indices, "values": self.values}, self.shape)

    def to_torch(self) -> Tensor:
        """As torch.sparse_bsr, detached, without a copy. It takes no edge blocks: ValueError where rows or cols are not multiples of the
        block."""
        self._plain("torch.sparse_bsr")
        return torch.sparse_bsr_tensor(self.row_offsets, self.col_indices, self.values.detach(), self.shape, **_as_given(self.values))

    def to_scipy(self) -> Any:
        """As scipy.sparse.bsr_array, without a copy where the values are on the CPU; no bfloat16, no float8; shapes that are multiples
        of the block."""
        import scipy.sparse

        self._plain("scipy.sparse.bsr_array")
        if self.dtype in NOT_IN_NUMPY:
            raise TypeError(f"values: SciPy knows no {name_of(self.dtype)}")
        parts = (self.values.detach().cpu().numpy(), self.col_indices.cpu().numpy(), self.row_offsets.cpu().numpy())
        return scipy.sparse.bsr_array(parts, shape=self.shape, blocksize=self.block, copy=False)

    def to_dense(self) -> Tensor:
        """[..., rows, cols]; gradients flow to the values."""
        down, across = self.grid
        high, wide = self.block
        lead = self.values.shape[:-3]
        at = self.block_rows_of() * across + self.col_indices.long()

        def spread(values: Tensor) -> Tensor:
            flat = values.new_zeros(*lead, down * across, high, wide)
            full = flat.index_copy(len(lead), at, values).unflatten(len(lead), (down, across))
            return full.transpose(-3, -2).reshape(*lead, down * high, across * wide)

        return _moved(self.values, spread)[..., : self.shape[0], : self.shape[1]]

    def block_rows_of(self) -> Tensor:
        """int64 [nnzb]: the block row of each block."""
        self.check_indices()
        counts = torch.diff(self.row_offsets).long()
        return torch.repeat_interleave(torch.arange(counts.shape[0], device=self.device), counts, output_size=self.nnzb)

    # ------------------------------------------------------------------------------------------------ variants

    def with_values(self, values: Tensor) -> BSR:
        """Other values on the same pattern."""
        return BSR(self.row_offsets, self.col_indices, values, self.shape)

    def transpose(self) -> BSR:
        """The transposed matrix, with indices and values of its own; gradients flow to the values.

        A product does not need it: matmul(..., transpose=True) reads this matrix as it lies.
        """
        rows = self.block_rows_of()
        order = torch.argsort(self.col_indices.long() * max(self.grid[0], 1) + rows)
        counts = torch.bincount(self.col_indices.long(), minlength=self.grid[1])
        offsets = torch.zeros(self.grid[1] + 1, dtype=self.row_offsets.dtype, device=self.device)
        offsets[1:] = torch.cumsum(counts, 0)
        values = _moved(self.values, lambda blocks: blocks.index_select(blocks.dim() - 3, order)).mT
        return BSR(offsets, rows[order].to(self.col_indices.dtype), values, (self.shape[1], self.shape[0]))

    @property
    def T(self) -> BSR:  # noqa: N802
        return self.transpose()

    def to(self, *args: Any, **kwargs: Any) -> BSR:
        """As Tensor.to: dtype for the values, device for everything."""
        values = self.values.to(*args, **kwargs)
        return BSR(self.row_offsets.to(values.device), self.col_indices.to(values.device), values, self.shape)

    def detach(self) -> BSR:
        return self.with_values(self.values.detach())

    def requires_grad_(self, requires_grad: bool = True) -> BSR:
        self.values.requires_grad_(requires_grad)
        return self

    def __matmul__(self, other: Tensor) -> Tensor:
        from ._matmul import matmul

        return matmul(self, other)

    def matmul(self, other: Tensor) -> Tensor:
        """self @ other."""
        from ._matmul import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Tensor) -> Tensor:
        from ._matmul import matmul

        return matmul(other, self)

    def __reduce__(self) -> Any:
        return BSR, (self.row_offsets, self.col_indices, self.values, self.shape)

    def check_indices(self) -> None:
        """Refuses (ValueError) indices that are not those of a matrix in BSR of this shape: wrong dtypes, dimensions or numbers; offsets
        that do not begin with 0, fall, or do not end with the number of blocks; columns out of range, unsorted or twice in a block row. On
        CUDA only what needs no waiting: products look at the rest."""
        down, across = self.grid
        offsets, columns = self.row_offsets, self.col_indices
        if offsets.dtype not in (torch.int32, torch.int64) or columns.dtype is not offsets.dtype:
            given = f"{offsets.dtype} and {columns.dtype}".replace("torch.", "")
            raise ValueError(f"row_offsets, col_indices: must both be int32 or both int64, not {given}")
        for name, indices in (("row_offsets", offsets), ("col_indices", columns)):
            if indices.dim() != 1:
                raise ValueError(f"{name}: must have one dimension; its shape is {list(indices.shape)}")
        if offsets.shape[0] != down + 1:
            needs = f"a matrix of {self.shape[0]} rows in blocks of {self.block[0]} needs {down + 1}"
            raise ValueError(f"row_offsets: has {offsets.shape[0]} entries; {needs}")
        if self.values.shape[-3] != self.nnzb:
            raise ValueError(f"values: has {self.values.shape[-3]} blocks, but col_indices {self.nnzb} entries")
        if torch.compiler.is_compiling() or type(columns) is not Tensor or type(offsets) is not Tensor or torch._C._are_functorch_transforms_active():
            return
        if columns.device.type != "cpu" or offsets.device.type != "cpu" or torch._C._len_torch_dispatch_stack():
            return
        first, last, counts = int(offsets[0]), int(offsets[-1]), torch.diff(offsets)
        if first != 0:
            raise ValueError(f"row_offsets[0] is {first}; it must be 0")
        if down and int(counts.min()) < 0:
            row = int(counts.argmin())
            raise ValueError(f"row_offsets[{row + 1}] is {int(offsets[row + 1])}, less than row_offsets[{row}], {int(offsets[row])}")
        if last != self.nnzb:
            raise ValueError(f"row_offsets[{down}] is {last}, but col_indices has {self.nnzb} entries")
        if not self.nnzb:
            return
        low, high = (int(bound) for bound in columns.aminmax())
        if low < 0 or high >= across:
            raise ValueError(f"col_indices: has {low if low < 0 else high}; block columns are 0..{across - 1}")
        inside = torch.ones(self.nnzb, dtype=torch.bool, device=columns.device)  # not the first of a block row
        inside[offsets[:-1][counts > 0].long()] = False
        wrong = (torch.diff(columns) <= 0) & inside[1:]
        if bool(wrong.any()):
            at = int(wrong.to(torch.uint8).argmax()) + 1
            what = "is a second time in its block row" if columns[at] == columns[at - 1] else f"comes after {int(columns[at - 1])} in its block row"
            raise ValueError(f"col_indices[{at}] is {int(columns[at])} and {what}: columns must increase; {_HOW_TO_SORT}")

    def _check_all_indices(self) -> None:
        """check_indices, on CUDA too, where it waits for them."""
        BSR(self.row_offsets.cpu(), self.col_indices.cpu(), self.values, self.shape).check_indices()

    def _plain(self, name: str) -> None:
        self.check_indices()
        if self.values.dim() != 3:
            raise ValueError(f"values: {name} takes no batch")
        if self.shape[0] % self.block[0] or self.shape[1] % self.block[1]:
            raise ValueError(f"shape: {self.shape} is not a multiple of the block {self.block}, as {name} wants")


def _as_given(values: Tensor) -> dict[str, Any]:
    """Of a torch.sparse_bsr tensor that is made of checked parts: where they are, whatever the default device is."""
    return {"device": values.device, "dtype": values.dtype, "check_invariants": False}


class _ValuesOf(torch.autograd.Function):
    """The values of a torch.sparse_bsr tensor. Unlike its values(), it keeps no reference to the tensor, which may so keep the result."""

    @staticmethod
    def forward(ctx, matrix):
        ctx.save_for_backward(matrix.crow_indices(), matrix.col_indices())
        ctx.shape = matrix.shape
        return matrix.values().detach()

    @staticmethod
    def backward(ctx, grad):
        return torch.sparse_bsr_tensor(*ctx.saved_tensors, grad, ctx.shape, **_as_given(grad))


def in_line(indices: Tensor) -> Tensor:
    """Indices as products read them, one behind the other: a copy of others."""
    return indices if indices.dim() != 1 or indices.numel() < 2 or indices.stride(0) == 1 else indices.contiguous()


_HOW_TO_SORT = "sa.BSR.from_scipy sorts blocks and sums duplicates"

_NORMS = ("l1", "l2", "max")
_ENTRIES_AT_ONCE = 1 << 22  # of which norms are computed in one go: what float64 takes of memory


def check_dtype(name: str, dtype: Any, more: tuple[torch.dtype, ...] = ()) -> None:
    if dtype not in DTYPES and dtype not in more:
        given = name_of(dtype) if isinstance(dtype, torch.dtype) else repr(dtype)
        raise TypeError(f"{name}: its dtype must be {listed((*DTYPES, *more))}, not {given}{hint_at_scaled(dtype)}")


def hint_at_scaled(dtype: Any) -> str:
    """What follows the name of a dtype that is refused."""
    return " (scaled_matmul multiplies that)" if dtype in FACTORS else ""


def _moved(values: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """What a change makes of values that moves them and no more. Of float8 PyTorch cannot move all: bytes go in their place, or float32 where
    a gradient is to go back."""
    if values.dtype not in FLOATS8:
        return change(values)
    if values.requires_grad and torch.is_grad_enabled():
        return change(values.float()).to(values.dtype)
    return change(values.view(torch.uint8)).view(values.dtype)


def is_dense(operand: Any) -> bool:
    """Whether it is a tensor with a number at each place."""
    return isinstance(operand, Tensor) and operand.layout is torch.strided and not operand.is_nested and not operand.is_quantized


def kind_of(operand: Any) -> str:
    """What was given in place of something else, for messages."""
    if not isinstance(operand, Tensor):
        return type(operand).__name__
    return "a nested one" if operand.is_nested else "a quantized one" if operand.is_quantized else str(operand.layout)


def _is_size(number: Any) -> bool:
    return type(number) is not bool and (isinstance(number, int) or hasattr(number, "__index__"))


def _check_matrix(dense: Any) -> None:
    if not is_dense(dense):
        raise TypeError(f"dense: must be a dense tensor, not {kind_of(dense)}")
    if dense.dim() != 2:
        raise ValueError(f"dense: must have two dimensions, not {dense.dim()}")
    check_dtype("dense", dense.dtype, FACTORS)


def check_numbers(name: str, tensor: Tensor) -> None:
    """Where blocks are chosen or moved by what they hold."""
    if tensor.is_meta:
        raise ValueError(f"{name}: is on the meta device, and has no numbers yet; load them first, or move the model by to_empty and fill it")


def indices_of(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Row offsets and block columns (int32) of a boolean mask [grid rows, grid cols]."""
    row_offsets = torch.zeros(mask.shape[0] + 1, dtype=torch.int32, device=mask.device)
    row_offsets[1:] = torch.cumsum(mask.sum(1), 0)
    return row_offsets, mask.nonzero()[:, 1].to(torch.int32)


def block_norms(dense: Tensor, block: int | tuple[int, int], by: Norm = "l2") -> Tensor:
    """What orders the blocks of a matrix as their norms do, [grid rows, grid cols]; see norms_of."""
    return norms_of(_blocked(dense.detach(), _pair(block)), by)


def norms_of(blocks: Tensor, by: Norm = "l2") -> Tensor:
    """What orders blocks [..., block rows, block cols] as their norms do, in float64: the "l1" or "max" norm, or the square of the "l2"
    norm, all of values that are scaled so that no sum of finite ones overflows. Sums go by rows, as those of the library's pruning: ties
    are the same there.
    """
    if by not in _NORMS:
        raise ValueError(none_of("by", by, _NORMS))
    scale = _scale_of(blocks) if blocks.dtype is torch.float64 else 1.0  # no square of the others overflows in float64
    norms = torch.empty(blocks.shape[:-2], dtype=torch.float64, device=blocks.device)
    at_once = max(1, _ENTRIES_AT_ONCE // max(1, math.prod(blocks.shape[1:])))
    for begin in range(0, blocks.shape[0], at_once):
        sizes = (blocks[begin : begin + at_once].double() * scale).abs().flatten(-2)
        if by == "max":
            norms[begin : begin + at_once] = sizes.amax(-1)
        else:
            norms[begin : begin + at_once] = (sizes if by == "l1" else sizes * sizes).cumsum(-1)[..., -1]
    return norms


def _scale_of(values: Tensor) -> float:
    """A power of two that brings the largest finite magnitude near one, as the library's pruning has it."""
    largest = values.abs().nan_to_num(0.0, 0.0, 0.0).amax().item() if values.numel() else 0.0
    return math.ldexp(1.0, max(-1000, min(1000, -math.frexp(largest)[1])))


def check_density(density: float) -> None:
    if not hasattr(density, "__float__") or getattr(density, "ndim", None):
        raise TypeError(f"density: must be a number from 0 to 1, not {density!r}")
    if not 0 <= density <= 1:
        raise ValueError(f"density: must be from 0 to 1, not {density}")


def kept_blocks(name: str, dense: Tensor, block: int | tuple[int, int], density: float | None, by: Norm) -> Tensor:
    """As largest_blocks; without a density, those that hold a non-zero."""
    _check_matrix(dense)
    check_numbers(name, dense)
    return largest_blocks(name, dense, block, density, by) if density is not None else (_blocked(dense, _pair(block)) != 0).flatten(2).any(2)


def largest_blocks(name: str, dense: Tensor, block: int | tuple[int, int], density: float, by: Norm) -> Tensor:
    """A mask [grid rows, grid cols] of the round(density * grid) blocks of largest norm. name: of the matrix, for messages."""
    check_numbers(name, dense)
    norms = block_norms(dense, block, by)
    if not norms.isfinite().all():
        row, col = (~dense.isfinite()).nonzero()[0].tolist()
        what = f"the element at [{row}, {col}] is {dense[row, col].item()}, and its block has no norm to compare"
        raise ValueError(f"{name}: {what}; replace such values first, as torch.nan_to_num does")
    return _largest(norms, density)


def _largest(norms: Tensor, density: float) -> Tensor:
    check_density(density)
    count = int(density * norms.numel() + 0.5)
    if not count and density > 0 and norms.numel():
        warn(f"sparse_autotune: density: {density} of {norms.shape[0]} x {norms.shape[1]} blocks is no block: the matrix is zero; take a smaller block")
    mask = torch.zeros(norms.numel(), dtype=torch.bool, device=norms.device)
    mask[torch.argsort(norms.flatten(), descending=True, stable=True)[:count]] = True
    return mask.view_as(norms)


def _pair(block: int | tuple[int, int]) -> tuple[int, int]:
    pair = tuple(block) if isinstance(block, (tuple, list)) else (block, block)
    if len(pair) != 2 or not all(hasattr(number, "__index__") and not getattr(number, "ndim", None) for number in pair):
        raise TypeError(f"block: must be a whole number or two of them, not {block!r}")
    high, wide = operator.index(pair[0]), operator.index(pair[1])
    if not (1 <= high <= 256 and 1 <= wide <= 256):
        raise ValueError(f"block: must be 1 to 256 high and wide, not {high} x {wide}")
    return high, wide


def _blocked(dense: Tensor, block: tuple[int, int]) -> Tensor:
    """[grid rows, grid cols, block rows, block cols]; edges filled with zeros."""
    high, wide = block
    rows, cols = dense.shape
    down, across = -(-rows // high), -(-cols // wide)
    if down * high != rows or across * wide != cols:
        dense = torch.nn.functional.pad(dense, (0, across * wide - cols, 0, down * high - rows))
    return dense.reshape(down, high, across, wide).transpose(1, 2)


torch.serialization.add_safe_globals([BSR])  # for torch.load(..., weights_only=True)


def plain_numbers(context: Any) -> Any:
    """What a saved program (torch.export.save) keeps of a context of trees, as JSON: tuples of numbers as lists."""
    if isinstance(context, (tuple, list)):
        return [plain_numbers(part) for part in context]
    return context if isinstance(context, bool) else operator.index(context)


def tuples(context: Any) -> Any:
    """The context again, which is compared with that of what is given."""
    return tuple(map(tuples, context)) if isinstance(context, list) else context


def _unflatten(parts: Any, shape: tuple[int, int]) -> BSR:
    """Whatever stands for the tensors is taken: trees are also made of their places, names or shapes."""
    matrix = BSR.__new__(BSR)
    matrix.row_offsets, matrix.col_indices, matrix.values = parts
    matrix.shape = shape
    return matrix


_pytree.register_pytree_node(
    BSR,
    lambda m: ([m.row_offsets, m.col_indices, m.values], m.shape),
    _unflatten,  # type: ignore[arg-type]
    serialized_type_name="sparse_autotune.BSR",
    to_dumpable_context=plain_numbers,
    from_dumpable_context=tuples,
    flatten_with_keys_fn=lambda m: ([(_pytree.GetAttrKey(name), getattr(m, name)) for name in ("row_offsets", "col_indices", "values")], m.shape),
)
