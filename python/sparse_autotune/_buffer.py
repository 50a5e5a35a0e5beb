"""sa.SparseBuffer: a block-sparse matrix that belongs to a module and is not trained."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ._bsr import BSR
from ._state import Blocks


class SparseBuffer(Blocks):
    """A block-sparse matrix as three buffers, so that a model moves, casts and saves it; an sa.BSR that is an attribute of a module is none
    of its tensors.

    >>> self.stiffness = sa.SparseBuffer(A)     # in a module's __init__
    >>> y = self.stiffness(x)                   # A @ x; or sa.matmul(self.stiffness.matrix, x, transpose=True)

    matrix: an sa.BSR; its tensors are taken, not copied. persistent: whether it is part of the state_dict (row_offsets, col_indices, values
    below this module's name, which sa.BSR.load reads from a safetensors file). A state_dict of a matrix of the same shape may have another
    number of blocks; one of another shape or block is refused, and changes nothing.
    Indices that something else changed in place, such as an average of buffers, are refused at the next use (RuntimeError).
    """

    def __init__(self, matrix: BSR, persistent: bool = True):
        super().__init__()
        if not isinstance(matrix, BSR):
            raise TypeError(f"matrix: must be an sa.BSR, not {type(matrix).__name__}")
        matrix.check_indices()
        self.shape = matrix.shape
        self.register_buffer("row_offsets", matrix.row_offsets, persistent=persistent)
        self.register_buffer("col_indices", matrix.col_indices, persistent=persistent)
        self.register_buffer("values", matrix.values.detach(), persistent=persistent)
        self._seal_indices(made=True)

    @property
    def matrix(self) -> BSR:
        """The matrix on the module's own tensors."""
        self._check_own_indices()
        return BSR(self.row_offsets, self.col_indices, self.values, self.shape)

    def forward(self, x: Tensor) -> Tensor:
        """A @ x."""
        from ._matmul import matmul

        return matmul(self.matrix, x)

    def _matrix_shape(self) -> tuple[int, int]:
        return self.shape

    def _room_for(self, values: Tensor) -> Callable[[], None]:
        self.values = self.values.new_empty(values.shape)
        return lambda: None  # the buffer that was there is put back by its name

    def extra_repr(self) -> str:
        return repr(self.matrix)
