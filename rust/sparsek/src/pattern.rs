//! Where the stored blocks are.
use crate::context::Context;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::sys;
use crate::types::{Index, Layout, count, size, sized};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Where the stored blocks of a matrix are (BSR). Immutable; clones are the same pattern.
///
/// ```
/// let context = sparsek::Context::new()?;
/// let diagonal = sparsek::Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1])?;
/// assert_eq!(diagonal.values_len(), 2 * 32 * 32);
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone)]
pub struct Pattern {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<sys::spk_pattern>,
    context: Context, // dropped after `raw` is destroyed
    rows: i64,
    cols: i64,
    block_rows: i64,
    block_cols: i64,
    nnzb: i64,
}

// SAFETY: patterns are immutable, says sparsek.h.
unsafe impl Send for Inner {}
// SAFETY: likewise.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: this is the owner; the context lives until after this.
        unsafe { sys::spk_pattern_destroy(&mut raw) };
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks of {:?} in {:?}", self.nnzb(), self.block(), self.shape())
    }
}

/// Figures of a [`Pattern`].
///
/// ```
/// let context = sparsek::Context::new()?;
/// let info = sparsek::Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1])?.info()?;
/// assert_eq!((info.density, info.longest_row), (0.5, 1));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PatternInfo {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Rows and columns of a block.
    pub block: (usize, usize),
    /// Blocks down and across, edge blocks included.
    pub grid: (usize, usize),
    /// Stored blocks.
    pub nnzb: usize,
    /// Stored blocks over those of the grid; 0 for an empty grid.
    pub density: f64,
    /// Block rows without a block.
    pub empty_rows: usize,
    /// Blocks in the fullest block row.
    pub longest_row: usize,
    /// Standard deviation of blocks per block row over their mean.
    pub row_spread: f64,
    /// Share of a block row's columns that the next one has too, averaged.
    pub row_overlap: f64,
    /// Mean distance of a block from the diagonal, scaled to 0 .. 1.
    pub bandwidth: f64,
}

impl Pattern {
    /// The pattern of a matrix of `shape` (rows, columns) in blocks of `block`. Block row i holds the blocks
    /// `row_offsets[i] .. row_offsets[i + 1]`, whose block columns, strictly increasing, are in `col_indices`. The shape need
    /// not be a multiple of the block. The indices are checked and copied.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let pattern = sparsek::Pattern::new(&context, (100, 50), (32, 32), &[0i64, 1, 1, 2, 2], &[1, 0])?;
    /// assert_eq!(pattern.shape(), (100, 50));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn new<I: Index>(
        context: &Context,
        shape: (usize, usize),
        block: (usize, usize),
        row_offsets: &[I],
        col_indices: &[I],
    ) -> Result<Pattern> {
        if (1..=256).contains(&block.0) {
            let needed = shape.0.div_ceil(block.0).checked_add(1);
            if needed != Some(row_offsets.len()) {
                return Err(Error::argument(format!(
                    "row_offsets has {} indices: {} rows in blocks of {} need {}",
                    row_offsets.len(),
                    shape.0,
                    block.0,
                    shape.0.div_ceil(block.0).saturating_add(1)
                )));
            }
        }
        let mut indices = sized!(spk_bsr_indices);
        (indices.rows, indices.cols) = (size(shape.0), size(shape.1));
        (indices.block_rows, indices.block_cols) = (size(block.0), size(block.1));
        indices.nnzb = size(col_indices.len());
        indices.row_offsets = row_offsets.as_ptr().cast();
        indices.col_indices = col_indices.as_ptr().cast();
        indices.index_type = I::RAW;
        // SAFETY: both arrays are as long as the shape says (a block outside 1..=256 is refused before they are read).
        unsafe { Pattern::from_indices(context, &indices) }
    }

    /// A pattern from what the C library takes: indices in device memory, deferred ones.
    ///
    /// Indices are deferred where `deferred` is not null: what writes them on a stream of the GPU need not be done yet, and nothing waits
    /// for it. It points to what is known of them before, which is copied: their stream, and figures as [`PatternInfo`] has them, about, by
    /// which the kernel is chosen.
    ///
    /// # Safety
    /// `indices` is as core.h describes it: its arrays are as long as the sizes say, in memory of the kind it names. `deferred` is null, or
    /// points to a [`sys::spk_deferred_indices`] with its size; the arrays then stay until the stream has come to them, and the stream until
    /// the pattern and its plans are gone.
    ///
    /// ```
    /// # use sparsek::sys;
    /// let context = sparsek::Context::new()?;
    /// let (offsets, columns) = ([0i32, 1], [0i32]);
    /// // SAFETY: zero is a value of every field.
    /// let mut indices: sys::spk_bsr_indices = unsafe { std::mem::zeroed() };
    /// indices.struct_size = size_of::<sys::spk_bsr_indices>();
    /// (indices.rows, indices.cols, indices.block_rows, indices.block_cols, indices.nnzb) = (8, 8, 8, 8, 1);
    /// (indices.row_offsets, indices.col_indices) = (offsets.as_ptr().cast(), columns.as_ptr().cast());
    /// // SAFETY: one block row and one block.
    /// let pattern = unsafe { sparsek::Pattern::from_indices(&context, &indices) }?;
    /// assert_eq!(pattern.nnzb(), 1);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    ///
    /// Deferred, on a GPU:
    ///
    /// ```no_run
    /// # use sparsek::{Context, Pattern, Result, sys};
    /// # use std::ffi::c_void;
    /// /// 64 blocks of 64 x 64, at most 16 in a row, which work on `stream` is to choose.
    /// unsafe fn chosen(context: &Context, offsets: *const i32, columns: *const i32, stream: *mut c_void) -> Result<Pattern> {
    ///     let struct_size = size_of::<sys::spk_deferred_indices>();
    ///     let known = sys::spk_deferred_indices { struct_size, stream, longest_row: 16, row_spread: 0.5, row_overlap: 0.0 };
    ///     let indices = sys::spk_bsr_indices {
    ///         struct_size: size_of::<sys::spk_bsr_indices>(),
    ///         rows: 1024,
    ///         cols: 1024,
    ///         block_rows: 64,
    ///         block_cols: 64,
    ///         nnzb: 64,
    ///         row_offsets: offsets.cast(),
    ///         col_indices: columns.cast(),
    ///         index_type: sys::SPK_INDEX_I32,
    ///         index_memory: sys::SPK_DEVICE,
    ///         deferred: &known,
    ///     };
    ///     // SAFETY: 17 and 64 indices, which stay until the stream has come to them, as the caller promises.
    ///     unsafe { Pattern::from_indices(context, &indices) }
    /// }
    /// ```
    pub unsafe fn from_indices(context: &Context, indices: &sys::spk_bsr_indices) -> Result<Pattern> {
        let mut raw = ptr::null_mut();
        // SAFETY: as the caller promises.
        context.check(unsafe { sys::spk_pattern_create(context.raw(), indices, &mut raw) })?;
        Ok(Pattern::own(context, raw, indices))
    }

    /// The pattern of a canonical BSR matrix, see [`Matrix::to_bsr`].
    ///
    /// ```
    /// use sparsek::{Context, Layout, Matrix, Pattern};
    /// let context = Context::new()?;
    /// let dense = Matrix::from_dense(&context, (4, 4), &[1f32; 16])?;
    /// let pattern = Pattern::from_matrix(&dense.to_bsr((2, 2), Layout::RowMajor)?)?;
    /// assert_eq!(pattern.nnzb(), 4);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn from_matrix(matrix: &Matrix) -> Result<Pattern> {
        let desc = matrix.desc();
        if desc.format != sys::SPK_BSR {
            return Err(Error::argument("the matrix is in another format: convert it with Matrix::to_bsr"));
        }
        let mut indices = sized!(spk_bsr_indices);
        (indices.rows, indices.cols, indices.nnzb) = (desc.rows, desc.cols, desc.nnz);
        (indices.block_rows, indices.block_cols) = (desc.block_rows, desc.block_cols);
        (indices.row_offsets, indices.col_indices) = (desc.row_offsets, desc.col_indices);
        indices.index_type = i64::RAW;
        // SAFETY: the matrix is alive, and has as many indices as its description says. Not spk_pattern_from_matrix, which would hold
        // values to the matrix's dtype: a plan's are typed here.
        unsafe { Pattern::from_indices(matrix.context(), &indices) }
    }

    /// Reads a Matrix Market file into blocks: the pattern, and the matrix with its values.
    ///
    /// ```
    /// let path = std::env::temp_dir().join(format!("sparsek-doc-{}.mtx", std::process::id()));
    /// std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n4 4 2\n1 1 5\n4 3 7\n").unwrap();
    /// let context = sparsek::Context::new()?;
    /// let (pattern, matrix) = sparsek::Pattern::from_matrix_market(&context, &path, (2, 2))?;
    /// assert_eq!((pattern.nnzb(), matrix.values::<f64>()?), (2, &[5., 0., 0., 0., 0., 0., 7., 0.][..]));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn from_matrix_market(
        context: &Context,
        path: impl AsRef<Path>,
        block: (usize, usize),
    ) -> Result<(Pattern, Matrix)> {
        let matrix = Matrix::read(context, path)?.to_bsr(block, Layout::RowMajor)?;
        Ok((Pattern::from_matrix(&matrix)?, matrix))
    }

    fn own(context: &Context, raw: *mut sys::spk_pattern, indices: &sys::spk_bsr_indices) -> Pattern {
        let inner = Inner {
            raw: NonNull::new(raw).expect("a pattern after success"),
            context: context.clone(),
            rows: indices.rows,
            cols: indices.cols,
            block_rows: indices.block_rows,
            block_cols: indices.block_cols,
            nnzb: indices.nnzb,
        };
        Pattern { inner: Arc::new(inner) }
    }

    /// The context it was made on.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let pattern = sparsek::Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// drop(context); // the pattern keeps it
    /// assert_eq!(pattern.context().device()?.kind, "cpu");
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Rows and columns.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Pattern::new(&context, (3, 2), (2, 2), &[0, 1, 1], &[0])?.shape(), (3, 2));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn shape(&self) -> (usize, usize) {
        (count(self.inner.rows), count(self.inner.cols))
    }

    /// Rows and columns of a block.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Pattern::new(&context, (3, 2), (2, 1), &[0, 1, 1], &[0])?.block(), (2, 1));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn block(&self) -> (usize, usize) {
        (count(self.inner.block_rows), count(self.inner.block_cols))
    }

    /// Stored blocks.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Pattern::new(&context, (3, 2), (2, 2), &[0, 1, 1], &[0])?.nnzb(), 1);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn nnzb(&self) -> usize {
        count(self.inner.nnzb)
    }

    /// Values of a matrix with this pattern: those of all stored blocks.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Pattern::new(&context, (3, 2), (2, 2), &[0, 1, 1], &[0])?.values_len(), 4);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn values_len(&self) -> usize {
        count(self.values_i64())
    }

    /// Figures: density, rows' lengths. Waits for the device where indices were deferred.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::Pattern::new(&context, (4, 4), (2, 2), &[0, 1, 1], &[0])?.info()?.empty_rows, 1);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn info(&self) -> Result<PatternInfo> {
        let mut info = sized!(spk_pattern_info);
        // SAFETY: the pattern is alive.
        self.context().check(unsafe { sys::spk_pattern_get_info(self.raw(), &mut info) })?;
        Ok(PatternInfo {
            shape: (count(info.rows), count(info.cols)),
            block: (count(info.block_rows), count(info.block_cols)),
            grid: (count(info.grid_rows), count(info.grid_cols)),
            nnzb: count(info.nnzb),
            density: info.density,
            empty_rows: count(info.empty_rows),
            longest_row: count(info.longest_row),
            row_spread: info.row_spread,
            row_overlap: info.row_overlap,
            bandwidth: info.bandwidth,
        })
    }

    pub(crate) fn raw(&self) -> *mut sys::spk_pattern {
        self.inner.raw.as_ptr()
    }

    /// Rows and columns as the library counts.
    pub(crate) fn sizes(&self) -> (i64, i64) {
        (self.inner.rows, self.inner.cols)
    }

    pub(crate) fn nnzb_i64(&self) -> i64 {
        self.inner.nnzb
    }

    pub(crate) fn values_i64(&self) -> i64 {
        // A pattern exists only where this is a size, of at most 2^62 bytes.
        self.inner.nnzb.saturating_mul(self.inner.block_rows).saturating_mul(self.inner.block_cols)
    }
}
