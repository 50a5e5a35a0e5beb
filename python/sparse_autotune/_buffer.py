"""sa.SparseBuffer: a block-sparse matrix that belongs to a module and is not trained."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ._bsr import BSR


class SparseBuffer(nn.Module):
    """A block-sparse matrix as three buffers, so that a model moves, casts and saves it; an sa.BSR that is an attribute of a module is none
    of its tensors.

    >>> self.stiffness = sa.SparseBuffer(A)     # in a module's __init__
    >>> y = self.stiffness(x)                   # A @ x; or sa.matmul(self.stiffness.matrix, x, transpose=True)

    matrix: an sa.BSR; its tensors are taken, not copied. persistent: whether it is part of the state_dict (row_offsets, col_indices, values
    below this module's name, which sa.BSR.load reads from a safetensors file). A state_dict with another number of blocks is taken as it
    is.
    """

    row_offsets: Tensor
    col_indices: Tensor
    values: Tensor

    def __init__(self, matrix: BSR, persistent: bool = True):
        super().__init__()
        if not isinstance(matrix, BSR):
            raise TypeError(f"matrix: must be an sa.BSR, not {type(matrix).__name__}")
        matrix.check_indices()
        self.shape = matrix.shape
        self.register_buffer("row_offsets", matrix.row_offsets, persistent=persistent)
        self.register_buffer("col_indices", matrix.col_indices, persistent=persistent)
        self.register_buffer("values", matrix.values.detach(), persistent=persistent)

    @property
    def matrix(self) -> BSR:
        """The matrix on the module's own tensors."""
        return BSR(self.row_offsets, self.col_indices, self.values, self.shape)

    def forward(self, x: Tensor) -> Tensor:
        """A @ x."""
        from ._matmul import matmul

        return matmul(self.matrix, x)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        indices, values = state_dict.get(prefix + "col_indices"), state_dict.get(prefix + "values")
        if isinstance(indices, Tensor) and isinstance(values, Tensor) and indices.shape != self.col_indices.shape:
            self.col_indices = self.col_indices.new_empty(indices.shape)
            self.values = self.values.new_empty(values.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return repr(self.matrix)
