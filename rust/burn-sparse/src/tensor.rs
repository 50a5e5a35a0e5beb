//! Sparse matrices.
use crate::context::host_context;
use crate::error::{Error, Result};
use crate::ops::{BsrOps, Product, Side};
use crate::pattern::BsrPattern;
use crate::tuning::TuneConfig;
use burn::backend::Dispatch;
use burn::tensor::{DType, Device, IndexingUpdateOp, Int, Tensor, TensorData, bf16, f16};
use sparsek::{Layout, Matrix, Norm};
use std::path::Path;

/// A matrix in blocks of which only some are stored (BSR): a [`BsrPattern`] and the blocks' values, a tensor of
/// `[blocks, rows, columns]` on any device. Gradients flow to the values as to any tensor.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_sparse::{BsrTensor, Effort, TuneConfig};
/// let device = Device::flex();
/// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[0, 3], &[5, 0], &[1f32, 2.], &device)?;
/// let a = a.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
/// let x = Tensor::<2>::ones([6, 1], &device);
/// assert_eq!(a.matmul(x).into_data().try_into_vec::<f32>().unwrap(), [1., 0., 0., 2.]);
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BsrTensor {
    pattern: BsrPattern,
    values: Tensor<3>,
    transposed: bool,
    tuning: TuneConfig,
}

/// Elements of host memory that a matrix can have.
trait Number: burn::tensor::Element + sparsek::Element {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for f16 {}
impl Number for bf16 {}

impl BsrTensor {
    /// A pattern with values for its blocks.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_sparse::{BsrPattern, BsrTensor};
    /// let pattern = BsrPattern::new([4, 4], [2, 2], &[0, 1, 2], &[1, 0])?;
    /// let values = Tensor::ones([2, 2, 2], &Device::flex());
    /// assert_eq!(BsrTensor::new(pattern.clone(), values)?.nnzb(), 2);
    /// assert!(BsrTensor::new(pattern, Tensor::ones([3, 2, 2], &Device::flex())).is_err());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn new(pattern: BsrPattern, values: Tensor<3>) -> Result<BsrTensor> {
        if values.dims() != pattern.values_shape() {
            let (has, needs) = (values.dims(), pattern.values_shape());
            return Err(Error::Argument(format!("values of {has:?}: the pattern needs {needs:?}")));
        }
        Ok(BsrTensor { pattern, values, transposed: false, tuning: TuneConfig::new() })
    }

    /// The blocks of a dense matrix that have the largest norm: the share `density` of all. It carries no gradient.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_sparse::BsrTensor;
    /// let dense = Tensor::<2>::from_data([[1f32, 0., 9., 9.], [0., 0., 9., 9.]], &Device::flex());
    /// let a = BsrTensor::from_dense(dense, [2, 2], 0.5)?;
    /// assert_eq!(a.to_dense().into_data().try_into_vec::<f32>().unwrap(), [0., 0., 9., 9., 0., 0., 9., 9.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_dense(dense: Tensor<2>, block: [usize; 2], density: f64) -> Result<BsrTensor> {
        let device = dense.device();
        let matrix = host_matrix(dense)?.prune(block.into(), density, Norm::L2)?;
        BsrTensor::from_matrix(&matrix, block, &device)
    }

    /// The blocks of a dense matrix that hold a non-zero. It carries no gradient.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_sparse::BsrTensor;
    /// let dense = Tensor::<2>::from_data([[1f32, 0., 0., 0.], [0., 0., 0., 0.]], &Device::flex());
    /// assert_eq!(BsrTensor::from_nonzero_blocks(dense, [2, 2])?.nnzb(), 1);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_nonzero_blocks(dense: Tensor<2>, block: [usize; 2]) -> Result<BsrTensor> {
        let device = dense.device();
        BsrTensor::from_matrix(&host_matrix(dense)?, block, &device)
    }

    /// From the rows, columns and values of entries, in any order; those of one place are summed.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1, 1], &[0, 0], &[1f64, 2.], &Device::flex())?;
    /// assert_eq!(a.to_dense().into_data().try_into_vec::<f64>().unwrap(), [0., 0., 3., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_triplets<T: sparsek::Element>(
        shape: [usize; 2],
        block: [usize; 2],
        rows: &[i64],
        cols: &[i64],
        values: &[T],
        device: &Device,
    ) -> Result<BsrTensor> {
        let matrix = Matrix::from_triplets(host_context()?, shape.into(), rows, cols, values)?;
        BsrTensor::from_matrix(&matrix, block, device)
    }

    /// Of a file: Matrix Market, DLMC `.smtx`, `.npy` or `.safetensors`.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// let path = std::env::temp_dir().join(format!("burn-sparse-{}.mtx", std::process::id()));
    /// std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n4 4 1\n3 4 2.5\n").unwrap();
    /// let a = burn_sparse::BsrTensor::from_file(&path, [2, 2], &Device::flex())?;
    /// assert_eq!((a.shape(), a.nnzb()), ([4, 4], 1));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>, block: [usize; 2], device: &Device) -> Result<BsrTensor> {
        BsrTensor::from_matrix(&Matrix::read(host_context()?, path)?, block, device)
    }

    /// Of the library's matrix in any format; its elements' type stays.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::{BsrTensor, host_context, sparsek::{Generate, Matrix}};
    /// let matrix = Matrix::generate::<f32>(host_context()?, Generate::Uniform, (64, 64), (16, 16), 0.25, 1)?;
    /// assert_eq!(BsrTensor::from_matrix(&matrix, [16, 16], &Device::flex())?.density(), 0.25);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_matrix(matrix: &Matrix, block: [usize; 2], device: &Device) -> Result<BsrTensor> {
        let blocks = matrix.to_bsr(block.into(), Layout::RowMajor)?.canonicalize()?;
        let pattern = BsrPattern::from_matrix(&blocks)?;
        let values = match blocks.dtype() {
            sparsek::Dtype::F32 => data::<f32>(&blocks, &pattern),
            sparsek::Dtype::F64 => data::<f64>(&blocks, &pattern),
            sparsek::Dtype::F16 => data::<f16>(&blocks, &pattern),
            sparsek::Dtype::Bf16 => data::<bf16>(&blocks, &pattern),
            other => Err(Error::Argument(format!("a matrix of {other:?}: f32, f64, f16 and bf16 are multiplied"))),
        }?;
        let dtype = values.dtype();
        BsrTensor::new(pattern, Tensor::from_data(values, (device, dtype)))
    }

    /// With another way to choose kernels.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// use burn_sparse::{BsrTensor, TuneConfig};
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1], &[0], &[3f32], &Device::flex())?;
    /// let a = a.with_tuning(TuneConfig::new().with_budget(Some(0.5)));
    /// assert_eq!(a.tuning().budget, Some(0.5));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn with_tuning(mut self, tuning: TuneConfig) -> BsrTensor {
        self.tuning = tuning;
        self
    }

    /// How kernels are chosen.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::{BsrTensor, TuneConfig};
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1], &[0], &[3f32], &Device::flex())?;
    /// assert_eq!(a.tuning(), &TuneConfig::new());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn tuning(&self) -> &TuneConfig {
        &self.tuning
    }

    /// With other values in the same blocks: what `change` makes of them, as `Tensor::require_grad` or a cast.
    ///
    /// # Panics
    /// Where it changes their shape.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1], &[0], &[3f32], &Device::flex())?;
    /// let a = a.map_values(|values| values * 2);
    /// assert_eq!(a.to_dense().into_data().try_into_vec::<f32>().unwrap(), [0., 0., 6., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn map_values(mut self, change: impl FnOnce(Tensor<3>) -> Tensor<3>) -> BsrTensor {
        self.values = change(self.values);
        assert_eq!(self.values.dims(), self.pattern.values_shape(), "the values' shape changed");
        self
    }

    /// The values: `[blocks, rows, columns]`, in the order of the pattern's coordinates.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[1], &[0], &[3f32], &Device::flex())?;
    /// assert_eq!(a.values().into_data().try_into_vec::<f32>().unwrap(), [0., 0., 3., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn values(&self) -> Tensor<3> {
        self.values.clone()
    }

    /// Where the stored blocks are, before any transposition.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 2], &[1], &[5], &[3f32], &Device::flex())?;
    /// assert_eq!(a.pattern().coordinates().next(), Some((0, 2)));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn pattern(&self) -> &BsrPattern {
        &self.pattern
    }

    /// Rows and columns.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f32], &Device::flex())?;
    /// assert_eq!((a.shape(), a.clone().transpose().shape()), ([4, 6], [6, 4]));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn shape(&self) -> [usize; 2] {
        self.turned(self.pattern.shape())
    }

    /// Rows and columns of a block.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f32], &Device::flex())?;
    /// assert_eq!((a.block(), a.clone().transpose().block()), ([2, 3], [3, 2]));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn block(&self) -> [usize; 2] {
        self.turned(self.pattern.block())
    }

    /// Stored blocks.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1, 3], &[5, 0], &[3f32, 4.], &Device::flex())?;
    /// assert_eq!(a.nnzb(), 2);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn nnzb(&self) -> usize {
        self.pattern.nnzb()
    }

    /// The share of blocks that are stored.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1, 3], &[5, 0], &[3f32, 4.], &Device::flex())?;
    /// assert_eq!(a.density(), 0.5);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn density(&self) -> f64 {
        self.pattern.density()
    }

    /// Where the values are.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f32], &Device::flex())?;
    /// assert_eq!(a.device(), Device::flex());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.values.device()
    }

    /// The values' type.
    ///
    /// ```
    /// # use burn::tensor::{DType, Device};
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f64], &Device::flex())?;
    /// assert_eq!(a.dtype(), DType::F64);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// Transposed: a note, no work; its products run kernels for transposed matrices.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1], &[0], &[3f32], &Device::flex())?;
    /// assert_eq!(a.transpose().to_dense().into_data().try_into_vec::<f32>().unwrap(), [0., 3., 0., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn transpose(mut self) -> BsrTensor {
        self.transposed = !self.transposed;
        self
    }

    /// With its zeros. Gradients flow through it.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::BsrTensor;
    /// let a = BsrTensor::from_triplets([2, 2], [1, 1], &[1], &[0], &[3f32], &Device::flex())?;
    /// assert_eq!(a.to_dense().into_data().try_into_vec::<f32>().unwrap(), [0., 0., 3., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn to_dense(&self) -> Tensor<2> {
        let ([down, across], [height, width]) = (self.pattern.grid(), self.pattern.block());
        let (device, [rows, cols]) = (self.device(), self.pattern.shape());
        if rows == 0 || cols == 0 {
            return Tensor::zeros(self.shape(), (&device, self.dtype())); // to reshape a length of 0 is to keep one
        }
        let none = Tensor::<2>::zeros([down * across, height * width], (&device, self.dtype()));
        let places: Vec<i32> = self.pattern.coordinates().map(|(row, col)| (row * across + col) as i32).collect();
        let places = Tensor::<1, Int>::from_data(TensorData::new(places, [self.nnzb()]), &device);
        let stored = self.values().reshape([self.nnzb(), height * width]);
        let blocks =
            none.select_assign(0, places, stored, IndexingUpdateOp::Add).reshape([down, across, height, width]);
        let whole = blocks.permute([0, 2, 1, 3]).reshape([down * height, across * width]);
        let dense = whole.slice([0..rows, 0..cols]);
        if self.transposed { dense.transpose() } else { dense }
    }

    /// The product with `[..., k, n]`: `[..., m, n]`.
    ///
    /// # Panics
    /// Where shapes or types of elements do not fit, and where the library cannot multiply, with its message.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// # use burn_sparse::{BsrTensor, Effort, TuneConfig};
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f32], &Device::flex())?;
    /// # let a = a.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let x = Tensor::<4>::ones([7, 5, 6, 2], &Device::flex());
    /// assert_eq!(a.matmul(x).dims(), [7, 5, 4, 2]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn matmul<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.product(x, Side::Left)
    }

    /// The product of rows, `[..., k]`, with the transposed matrix: `[..., m]`, as a linear layer has it.
    ///
    /// # Panics
    /// As [`BsrTensor::matmul`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// # use burn_sparse::{BsrTensor, Effort, TuneConfig};
    /// let a = BsrTensor::from_triplets([4, 6], [2, 3], &[1], &[5], &[3f32], &Device::flex())?;
    /// # let a = a.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let x = Tensor::<1>::ones([6], &Device::flex());
    /// assert_eq!(a.matmul_rows(x).into_data().try_into_vec::<f32>().unwrap(), [0., 3., 0., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn matmul_rows<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.product(x, Side::Right)
    }

    fn product<const D: usize>(&self, x: Tensor<D>, side: Side) -> Tensor<D> {
        let product = Product::new(self.pattern.clone(), side).tuning(self.tuning);
        let product = if self.transposed { product.transposed() } else { product };
        let (values, x) = (self.values().into_dispatch(), x.into_dispatch());
        Tensor::from_dispatch(<Dispatch as BsrOps>::bsr_matmul(values, x, product))
    }

    fn turned(&self, [rows, cols]: [usize; 2]) -> [usize; 2] {
        if self.transposed { [cols, rows] } else { [rows, cols] }
    }
}

fn data<T: Number>(blocks: &Matrix, pattern: &BsrPattern) -> Result<TensorData> {
    Ok(TensorData::new(blocks.values::<T>()?.to_vec(), pattern.values_shape()))
}

/// A dense tensor as the library's matrix.
fn host_matrix(dense: Tensor<2>) -> Result<Matrix> {
    fn copy<T: Number>(data: &TensorData, [rows, cols]: [usize; 2]) -> Result<Matrix> {
        let values = data.as_slice::<T>().expect("a tensor's data have its type");
        Ok(Matrix::from_dense(host_context()?, (rows, cols), values)?)
    }
    let (shape, data) = (dense.dims(), dense.into_data());
    match data.dtype() {
        DType::F32 => copy::<f32>(&data, shape),
        DType::F64 => copy::<f64>(&data, shape),
        DType::F16 => copy::<f16>(&data, shape),
        DType::BF16 => copy::<bf16>(&data, shape),
        other => Err(Error::Dtype(other)),
    }
}
