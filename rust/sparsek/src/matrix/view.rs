//! What a matrix is, and its arrays.
use super::{Format, Matrix};
use crate::error::{Error, Result};
use crate::sys;
use crate::types::{Dtype, Element, count};

impl Matrix {
    /// How it is stored.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// let matrix = sparsek::Matrix::from_triplets(&context, (2, 2), &[1i32], &[0], &[3f32])?;
    /// assert_eq!(matrix.format(), sparsek::Format::Coo);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn format(&self) -> Format {
        match self.desc.format {
            sys::SPK_COO => Format::Coo,
            sys::SPK_CSR => Format::Csr,
            sys::SPK_BSR => Format::Bsr,
            _ => Format::Dense,
        }
    }

    /// The type of its elements.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Matrix::from_dense(&context, (1, 1), &[1f64])?.dtype(), sparsek::Dtype::F64);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Rows and columns.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Matrix::from_dense(&context, (1, 2), &[1f64; 2])?.shape(), (1, 2));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn shape(&self) -> (usize, usize) {
        (count(self.desc.rows), count(self.desc.cols))
    }

    /// Rows and columns of a block; 1 and 1 without blocks.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Matrix::from_dense(&context, (1, 2), &[1f64; 2])?.block(), (1, 1));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn block(&self) -> (usize, usize) {
        (count(self.desc.block_rows), count(self.desc.block_cols))
    }

    /// Its stored values; `T` must be their type. Of types that no `T` has, [`Matrix::cast`] makes others.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// let matrix = sparsek::Matrix::from_dense(&context, (1, 2), &[1f64; 2])?;
    /// assert!(matrix.values::<f64>().is_ok() && matrix.values::<f32>().is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn values<T: Element>(&self) -> Result<&[T]> {
        if self.dtype() != T::DTYPE {
            return Err(Error::argument(format!("the values are {:?}, not {:?}", self.dtype(), T::DTYPE)));
        }
        let desc = &self.desc;
        let elements = match self.format() {
            Format::Dense => {
                let (lines, length) =
                    if desc.layout == sys::SPK_ROW_MAJOR { (desc.rows, desc.cols) } else { (desc.cols, desc.rows) };
                if lines == 0 || length == 0 { 0 } else { (lines - 1) * desc.ld.max(length) + length }
            }
            _ => desc.nnz * desc.block_rows * desc.block_cols,
        };
        // SAFETY: the library's array has that many elements of that type, and lives as long as the matrix.
        Ok(unsafe { slice(desc.values.cast(), elements) })
    }

    /// Where rows begin among the entries (CSR) or block rows among the blocks (BSR); else empty.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// let dense = sparsek::Matrix::from_dense(&context, (2, 2), &[0f32, 1., 0., 2.])?;
    /// assert_eq!(dense.to_bsr((1, 1), sparsek::Layout::RowMajor)?.row_offsets(), [0, 1, 2]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn row_offsets(&self) -> &[i64] {
        let desc = &self.desc;
        let rows = match self.format() {
            Format::Csr => desc.rows,
            Format::Bsr => (desc.rows + desc.block_rows - 1) / desc.block_rows,
            _ => return &[],
        };
        // SAFETY: as many 64-bit indices, which live as long as the matrix.
        unsafe { slice(desc.row_offsets.cast(), rows + 1) }
    }

    /// Rows of the entries (COO); else empty.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Matrix::from_triplets(&context, (2, 2), &[1i32], &[0], &[3f32])?.row_indices(), [1]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn row_indices(&self) -> &[i64] {
        if self.format() != Format::Coo {
            return &[];
        }
        // SAFETY: nnz 64-bit indices, which live as long as the matrix.
        unsafe { slice(self.desc.row_indices.cast(), self.desc.nnz) }
    }

    /// Columns of the entries (COO, CSR) or block columns (BSR); empty of a dense matrix.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Matrix::from_triplets(&context, (2, 2), &[1i32], &[0], &[3f32])?.col_indices(), [0]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn col_indices(&self) -> &[i64] {
        if self.format() == Format::Dense {
            return &[];
        }
        // SAFETY: nnz 64-bit indices, which live as long as the matrix.
        unsafe { slice(self.desc.col_indices.cast(), self.desc.nnz) }
    }
}

/// # Safety
/// The pointer is NULL or to that many elements, which live as long as `'a` and do not change.
unsafe fn slice<'a, T>(pointer: *const T, elements: i64) -> &'a [T] {
    let elements = count(elements);
    if pointer.is_null() || elements == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(pointer, elements) }
}
