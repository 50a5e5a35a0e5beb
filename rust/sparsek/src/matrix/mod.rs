//! Matrices in host memory: read, written, converted, pruned, generated.
mod view;

use crate::context::Context;
use crate::error::{Error, Result, c_path, c_text, check, text};
use crate::extent::check_length;
use crate::sys;
use crate::types::{Dtype, Element, Index, Layout, size, sized};
use std::path::Path;
use std::ptr::{self, NonNull};

/// How a matrix is stored.
///
/// ```
/// let context = sparsek::Context::new()?;
/// assert_eq!(sparsek::Matrix::from_dense(&context, (1, 2), &[1f32, 2.])?.format(), sparsek::Format::Dense);
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// All elements.
    Dense,
    /// Triplets.
    Coo,
    /// Rows of entries.
    Csr,
    /// Rows of blocks.
    Bsr,
}

/// What decides which blocks [`Matrix::prune`] keeps.
///
/// ```
/// let norm = sparsek::Norm::default();
/// assert_eq!(norm, sparsek::Norm::L2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Norm {
    /// The sum of magnitudes.
    L1,
    /// The root of the sum of squares.
    #[default]
    L2,
    /// The largest magnitude.
    Max,
}

/// Kinds of generated matrices, normally distributed; see [`Matrix::generate`].
///
/// ```
/// let context = sparsek::Context::new()?;
/// let banded = sparsek::Matrix::generate::<f32>(&context, sparsek::Generate::Banded, (64, 64), (8, 8), 0.2, 1)?;
/// assert_eq!(banded.format(), sparsek::Format::Bsr);
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generate {
    /// A set number of blocks; rows differ by at most one.
    Uniform,
    /// Uniformly random blocks, no limit on a row.
    Bernoulli,
    /// The blocks nearest the diagonal.
    Banded,
    /// A sliding window of whole rows.
    Window,
    /// Uniform, at and below the diagonal.
    Causal,
    /// Square groups along the diagonal.
    Diagonal,
    /// Rows' lengths by a power law.
    PowerLaw,
    /// Uniform over half of the rows.
    EmptyRows,
}

/// A matrix in host memory, of any format. It never changes.
///
/// ```
/// use sparsek::{Context, Layout, Matrix};
/// let context = Context::new()?;
/// let matrix = Matrix::from_triplets(&context, (4, 4), &[0i64, 3], &[1, 2], &[5f64, 7.])?;
/// let blocks = matrix.to_bsr((2, 2), Layout::RowMajor)?;
/// assert_eq!(blocks.values::<f64>()?, [0., 5., 0., 0., 0., 0., 7., 0.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct Matrix {
    raw: NonNull<sys::spk_matrix>,
    desc: sys::spk_matrix_desc,
    dtype: Dtype,
    context: Context,
}

// SAFETY: matrices are immutable, says sparsek.h.
unsafe impl Send for Matrix {}
// SAFETY: likewise.
unsafe impl Sync for Matrix {}

impl Drop for Matrix {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: this is the owner, and the context is alive.
        unsafe { sys::spk_matrix_destroy(&mut raw) };
    }
}

impl Matrix {
    /// Reads `.mtx`, `.smtx`, `.npy` or `.safetensors`, by content and extension.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let error = sparsek::Matrix::read(&context, "/there/is/no.mtx").err().unwrap();
    /// assert_eq!(error.kind(), sparsek::ErrorKind::Io);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn read(context: &Context, path: impl AsRef<Path>) -> Result<Matrix> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path lives during the call; NULL stands for the default options.
        Matrix::own(context, |out| unsafe { sys::spk_matrix_read(context.raw(), path.as_ptr(), ptr::null(), out) })
    }

    /// Reads one of the tensors of a `.safetensors` file: a dense one, or a block-sparse matrix.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let path = std::env::temp_dir().join(format!("sparsek-doc-tensor-{}.safetensors", std::process::id()));
    /// sparsek::Matrix::from_dense(&context, (2, 1), &[1f32, 2.])?.write(&path)?;
    /// assert_eq!(sparsek::Matrix::read_tensor(&context, &path, "matrix")?.values::<f32>()?, [1., 2.]);
    /// let error = sparsek::Matrix::read_tensor(&context, &path, "mat").err().unwrap();
    /// assert!(error.to_string().contains("'matrix'"), "{error}");
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn read_tensor(context: &Context, path: impl AsRef<Path>, tensor: &str) -> Result<Matrix> {
        let (path, tensor) = (c_path(path.as_ref())?, c_text("tensor", tensor)?);
        let mut options = sized!(spk_read_options);
        options.tensor = tensor.as_ptr();
        // SAFETY: path, options and name live during the call.
        Matrix::own(context, |out| unsafe { sys::spk_matrix_read(context.raw(), path.as_ptr(), &options, out) })
    }

    /// Writes by extension: at any moment the path holds the old file or the whole new one.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let path = std::env::temp_dir().join(format!("sparsek-doc-{}.npy", std::process::id()));
    /// sparsek::Matrix::from_dense(&context, (2, 1), &[1f32, 2.])?.write(&path)?;
    /// assert_eq!(sparsek::Matrix::read(&context, &path)?.values::<f32>()?, [1., 2.]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        let context = self.context.raw();
        // SAFETY: the path lives during the call, and the matrix is alive.
        self.context.check(unsafe { sys::spk_matrix_write(context, self.raw(), path.as_ptr(), ptr::null()) })
    }

    /// A dense matrix, row-major.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// assert!(sparsek::Matrix::from_dense(&context, (2, 2), &[1f32; 3]).is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn from_dense<T: Element>(context: &Context, shape: (usize, usize), values: &[T]) -> Result<Matrix> {
        check_length("values", values.len(), shape.0.checked_mul(shape.1))?;
        let mut desc = description::<T>(shape, sys::SPK_DENSE, values);
        desc.nnz = size(shape.0 * shape.1);
        // SAFETY: the values are as many as the shape says.
        Matrix::own(context, |out| unsafe { sys::spk_matrix_create(context.raw(), &desc, out) })
    }

    /// From the rows, columns and values of entries, in any order; those of one place are summed on conversion.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// assert!(sparsek::Matrix::from_triplets(&context, (2, 2), &[2i32], &[0], &[1f32]).is_err()); // there is no row 2
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn from_triplets<I: Index, T: Element>(
        context: &Context,
        shape: (usize, usize),
        rows: &[I],
        cols: &[I],
        values: &[T],
    ) -> Result<Matrix> {
        if rows.len() != cols.len() || rows.len() != values.len() {
            let (rows, cols, values) = (rows.len(), cols.len(), values.len());
            return Err(Error::argument(format!("{rows} row indices, {cols} column indices and {values} values")));
        }
        let mut desc = description::<T>(shape, sys::SPK_COO, values);
        desc.nnz = size(values.len());
        desc.index_type = I::RAW;
        (desc.row_indices, desc.col_indices) = (rows.as_ptr().cast(), cols.as_ptr().cast());
        // SAFETY: all arrays have nnz elements.
        Matrix::own(context, |out| unsafe { sys::spk_matrix_create(context.raw(), &desc, out) })
    }

    /// A matrix in blocks with normally distributed values, the same on every machine for one seed.
    ///
    /// ```
    /// use sparsek::{Context, Generate, Matrix};
    /// let context = Context::new()?;
    /// let matrix = Matrix::generate::<f32>(&context, Generate::Uniform, (128, 128), (32, 32), 0.25, 1)?;
    /// assert_eq!(matrix.values::<f32>()?.len(), 4 * 32 * 32);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn generate<T: Element>(
        context: &Context,
        kind: Generate,
        shape: (usize, usize),
        block: (usize, usize),
        density: f64,
        seed: u64,
    ) -> Result<Matrix> {
        let mut options = sized!(spk_generate);
        options.generator = match kind {
            Generate::Uniform => sys::SPK_GEN_UNIFORM,
            Generate::Bernoulli => sys::SPK_GEN_BERNOULLI,
            Generate::Banded => sys::SPK_GEN_BANDED,
            Generate::Window => sys::SPK_GEN_WINDOW,
            Generate::Causal => sys::SPK_GEN_CAUSAL,
            Generate::Diagonal => sys::SPK_GEN_DIAGONAL,
            Generate::PowerLaw => sys::SPK_GEN_POWER_LAW,
            Generate::EmptyRows => sys::SPK_GEN_EMPTY_ROWS,
        };
        (options.rows, options.cols) = (size(shape.0), size(shape.1));
        (options.block_rows, options.block_cols) = (size(block.0), size(block.1));
        (options.density, options.seed, options.dtype) = (density, seed, T::DTYPE.raw());
        // SAFETY: plain numbers.
        Matrix::own(context, |out| unsafe { sys::spk_matrix_generate(context.raw(), &options, out, ptr::null_mut()) })
    }

    /// In blocks: any format, explicit zeros kept, of a dense one the blocks that hold a non-zero.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let dense = sparsek::Matrix::from_dense(&context, (3, 3), &[1f32, 0., 0., 0., 0., 0., 0., 0., 2.])?;
    /// assert_eq!(dense.to_bsr((2, 2), sparsek::Layout::RowMajor)?.col_indices(), [0, 1]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn to_bsr(&self, block: (usize, usize), layout: Layout) -> Result<Matrix> {
        let (context, rows, cols) = (self.context.raw(), size(block.0), size(block.1));
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_to_bsr(context, self.raw(), rows, cols, layout.raw(), out) })
    }

    /// Dense.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let matrix = sparsek::Matrix::from_triplets(&context, (2, 2), &[1i32], &[0], &[3f32])?;
    /// assert_eq!(matrix.to_dense(sparsek::Layout::RowMajor)?.values::<f32>()?, [0., 0., 3., 0.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn to_dense(&self, layout: Layout) -> Result<Matrix> {
        let context = self.context.raw();
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_to_dense(context, self.raw(), layout.raw(), out) })
    }

    /// Transposed.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let matrix = sparsek::Matrix::from_dense(&context, (1, 2), &[3f32, 4.])?;
    /// assert_eq!(matrix.transpose()?.shape(), (2, 1));
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn transpose(&self) -> Result<Matrix> {
        let context = self.context.raw();
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_transpose(context, self.raw(), out) })
    }

    /// With other elements, rounded to the nearest.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let matrix = sparsek::Matrix::from_dense(&context, (1, 2), &[3f64, 4.])?;
    /// assert_eq!(matrix.cast(sparsek::Dtype::F32)?.values::<f32>()?, [3., 4.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn cast(&self, dtype: Dtype) -> Result<Matrix> {
        let context = self.context.raw();
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_cast(context, self.raw(), dtype.raw(), out) })
    }

    /// Sorts the blocks (entries) of each row and sums those of one place.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let twice = sparsek::Matrix::from_triplets(&context, (1, 1), &[0i32, 0], &[0, 0], &[1f32, 2.])?;
    /// assert_eq!(twice.canonicalize()?.values::<f32>()?, [3.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn canonicalize(&self) -> Result<Matrix> {
        let context = self.context.raw();
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_canonicalize(context, self.raw(), out) })
    }

    /// Keeps the share `density` of blocks that have the largest norm, in blocks.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let dense = sparsek::Matrix::from_dense(&context, (1, 4), &[1f32, -5., 2., 3.])?;
    /// let kept = dense.prune((1, 1), 0.5, sparsek::Norm::L2)?;
    /// assert_eq!(kept.values::<f32>()?, [-5., 3.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn prune(&self, block: (usize, usize), density: f64, norm: Norm) -> Result<Matrix> {
        let (context, rows, cols) = (self.context.raw(), size(block.0), size(block.1));
        let norm = match norm {
            Norm::L1 => sys::SPK_NORM_L1,
            Norm::L2 => sys::SPK_NORM_L2,
            Norm::Max => sys::SPK_NORM_MAX,
        };
        // SAFETY: the matrix is alive.
        self.derive(|out| unsafe { sys::spk_matrix_prune(context, self.raw(), rows, cols, density, norm, out) })
    }
}

impl Matrix {
    fn own(context: &Context, make: impl FnOnce(*mut *mut sys::spk_matrix) -> sys::spk_status) -> Result<Matrix> {
        let mut raw = ptr::null_mut();
        check(make(&mut raw), context.raw())?;
        let raw = NonNull::new(raw).expect("a matrix after success");
        let mut matrix = Matrix { raw, desc: sized!(spk_matrix_desc), dtype: Dtype::F32, context: context.clone() };
        // SAFETY: the matrix is alive; what it hands out stays as long as it.
        context.check(unsafe { sys::spk_matrix_view(raw.as_ptr(), &mut matrix.desc) })?;
        matrix.dtype = Dtype::from_raw(matrix.desc.dtype)
            .ok_or_else(|| Error::unsupported(format!("{matrix:?}: this crate does not know its elements' type")))?;
        Ok(matrix)
    }

    fn derive(&self, make: impl FnOnce(*mut *mut sys::spk_matrix) -> sys::spk_status) -> Result<Matrix> {
        Matrix::own(&self.context, make)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn raw(&self) -> *const sys::spk_matrix {
        self.raw.as_ptr()
    }

    pub(crate) fn desc(&self) -> &sys::spk_matrix_desc {
        &self.desc
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: a static string.
        let dtype = unsafe { text(sys::spk_dtype_name(self.desc.dtype)) };
        write!(f, "{:?} {dtype} {:?} in blocks of {:?}", self.format(), self.shape(), self.block())
    }
}

fn description<T: Element>(shape: (usize, usize), format: sys::spk_format, values: &[T]) -> sys::spk_matrix_desc {
    let mut desc = sized!(spk_matrix_desc);
    (desc.format, desc.dtype) = (format, T::DTYPE.raw());
    (desc.rows, desc.cols) = (size(shape.0), size(shape.1));
    (desc.block_rows, desc.block_cols) = (1, 1);
    desc.values = values.as_ptr().cast();
    desc
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that the library's matrices have is one here, of the same name.
    #[test]
    fn no_type_is_unknown() {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let matrix = Matrix::from_dense(&context, (1, 1), &[1f32]).unwrap();
        let mut known = 0;
        for dtype in (1..64).map(sys::spk_dtype) {
            // SAFETY: the matrix is alive.
            match matrix.derive(|out| unsafe { sys::spk_matrix_cast(context.raw(), matrix.raw(), dtype, out) }) {
                Ok(cast) => {
                    // SAFETY: a static string.
                    let name = unsafe { text(sys::spk_dtype_name(dtype)) };
                    assert_eq!(serde_json::to_value(cast.dtype()).unwrap(), name);
                    assert_eq!(cast.dtype().raw(), dtype);
                    known += 1;
                }
                Err(error) => assert!(error.to_string().contains("matrices hold"), "{error}"),
            }
        }
        assert!(known >= 7, "{known}");
    }
}
