//! The operations that a backend supplies.
#![allow(deprecated)] // the backend NdArray, which Burn means to drop
use crate::activation::Activation;
use crate::backend::fallback;
use crate::error::{Error, Result};
use crate::pattern::BsrPattern;
use crate::tuning::TuneConfig;
use burn::backend::Backend;
use burn::backend::backend_extension;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

/// On which side of the dense operand the sparse matrix A stands.
///
/// ```
/// use burn_sparse::{BsrPattern, Product, Side};
/// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
/// assert_eq!(Product::new(pattern, Side::Right).inner_and_outer(), (6, 4));
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A X: X is `[..., k, n]`, the product `[..., m, n]`.
    Left,
    /// X A^T, what a linear layer computes: X is `[..., k]`, the product `[..., m]`.
    Right,
}

/// A product with a sparse matrix: all of it but the numbers.
///
/// ```
/// use burn_sparse::{BsrPattern, Product, Side, TuneConfig};
/// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
/// let product = Product::new(pattern, Side::Left).tuning(TuneConfig::new().with_assume_finite(true));
/// assert!(!product.transpose);
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Product {
    /// Where A's blocks are.
    pub pattern: BsrPattern,
    /// Whether A^T takes A's place.
    pub transpose: bool,
    /// Where A stands.
    pub side: Side,
    /// What follows the product, and the bias.
    pub activation: Option<Activation>,
    /// How the kernel is chosen.
    pub tuning: TuneConfig,
}

impl Product {
    /// The plain product.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, Product, Side};
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
    /// assert!(Product::new(pattern, Side::Left).activation.is_none());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn new(pattern: BsrPattern, side: Side) -> Product {
        Product { pattern, transpose: false, side, activation: None, tuning: TuneConfig::new() }
    }

    /// With another way to choose the kernel.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, Effort, Product, Side, TuneConfig};
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
    /// let product = Product::new(pattern, Side::Left).tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// assert_eq!(product.tuning.effort, Effort::Estimate);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn tuning(mut self, tuning: TuneConfig) -> Product {
        self.tuning = tuning;
        self
    }

    /// With A^T for A: the product that takes gradients back.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, Product, Side};
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
    /// assert_eq!(Product::new(pattern, Side::Left).transposed().inner_and_outer(), (4, 6));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn transposed(mut self) -> Product {
        self.transpose = !self.transpose;
        self
    }

    /// The lengths that the product sums over, and yields: k and m.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, Product, Side};
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
    /// assert_eq!(Product::new(pattern, Side::Left).inner_and_outer(), (6, 4));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn inner_and_outer(&self) -> (usize, usize) {
        let [rows, cols] = self.pattern.shape();
        if self.transpose { (rows, cols) } else { (cols, rows) }
    }

    /// The product's shape for an input of this one.
    ///
    /// # Panics
    /// Where the input does not fit the matrix.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, Product, Side};
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?;
    /// assert_eq!(Product::new(pattern, Side::Right).output_shape(&[8, 6].into()), [8, 4].into());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn output_shape(&self, input: &Shape) -> Shape {
        let (inner, outer) = self.inner_and_outer();
        let (axis, least) = match self.side {
            Side::Left => (input.num_dims().wrapping_sub(2), 2),
            Side::Right => (input.num_dims().wrapping_sub(1), 1),
        };
        let dims = input.as_slice();
        assert!(dims.len() >= least, "the input {dims:?} has fewer than {least} dimensions");
        assert!(dims[axis] == inner, "axis {axis} of the input {dims:?} is {}, the matrix needs {inner}", dims[axis]);
        let mut output = input.clone();
        output[axis] = outer;
        output
    }

    /// Refuses a bias that is longer or shorter than what it is added to.
    pub(crate) fn check_bias(&self, bias: &Shape) -> Result<()> {
        let ((_, outputs), length) = (self.inner_and_outer(), bias.num_elements());
        match length == outputs {
            true => Ok(()),
            false => Err(Error::Argument(format!("a bias of {length} for {outputs} outputs"))),
        }
    }
}

/// Products with block-sparse matrices, as an extension of Burn's backends. The default bodies make the matrix dense and use
/// Burn's own operations: no faster than dense, and right for finite inputs. An infinity or NaN of the input meets the zeros
/// of absent blocks there, and makes NaN of elements of the product that no stored block touches; the library's kernels leave
/// those alone. Gradients by values are the same in both.
///
/// ```
/// use burn::{backend::{Dispatch, Flex}, tensor::{Device, Tensor}};
/// use burn_sparse::{BsrOps, BsrPattern, Product, Side};
/// let device = Device::flex();
/// let pattern = BsrPattern::new([2, 2], [2, 2], &[0, 1], &[0])?;
/// let values = Tensor::<3>::from_data([[[1f32, 2.], [3., 4.]]], &device).into_dispatch();
/// let input = Tensor::<2>::from_data([[1f32], [1.]], &device).into_dispatch();
/// let product = <Dispatch as BsrOps>::bsr_matmul(values, input, Product::new(pattern, Side::Left));
/// assert_eq!(Tensor::<2>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [3., 7.]);
/// # fn supplies<B: BsrOps>() {}
/// # supplies::<Flex>();
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[backend_extension(
    Flex,
    NdArray: cfg(feature = "ndarray"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff,
    Fusion: cfg(feature = "fusion")
)]
pub trait BsrOps: Backend {
    /// A X or X A^T, with the activation; `values` are `[blocks, rows, columns]`.
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{BsrOps, BsrPattern, Product, Side};
    /// # let device = Device::flex();
    /// # let pattern = BsrPattern::new([2, 2], [2, 2], &[0, 1], &[0])?;
    /// let values = Tensor::<3>::from_data([[[1f32, 2.], [3., 4.]]], &device).into_dispatch();
    /// let input = Tensor::<1>::from_data([1f32, 0.], &device).into_dispatch();
    /// let product = <Dispatch as BsrOps>::bsr_matmul(values, input, Product::new(pattern, Side::Right));
    /// assert_eq!(Tensor::<1>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [1., 3.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    #[fusion(dtype = input, shape = product.output_shape(input))]
    fn bsr_matmul(values: FloatTensor<Self>, input: FloatTensor<Self>, product: Product) -> FloatTensor<Self> {
        fallback::matmul::<Self>(values, input, None, product)
    }

    /// X A^T + bias, with the activation: of [`Side::Right`].
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{BsrOps, BsrPattern, Product, Side};
    /// # let device = Device::flex();
    /// # let pattern = BsrPattern::new([2, 2], [2, 2], &[0, 1], &[0])?;
    /// let values = Tensor::<3>::from_data([[[1f32, 2.], [3., 4.]]], &device).into_dispatch();
    /// let input = Tensor::<1>::from_data([1f32, 0.], &device).into_dispatch();
    /// let bias = Tensor::<1>::from_data([10f32, 20.], &device).into_dispatch();
    /// let product = <Dispatch as BsrOps>::bsr_linear(values, input, bias, Product::new(pattern, Side::Right));
    /// assert_eq!(Tensor::<1>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [11., 23.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    #[fusion(dtype = input, shape = product.output_shape(input))]
    fn bsr_linear(
        values: FloatTensor<Self>,
        input: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        product: Product,
    ) -> FloatTensor<Self> {
        fallback::matmul::<Self>(values, input, Some(bias), product)
    }

    /// The gradient of a plain product by its values, from that of the product: a product of two dense matrices at the stored
    /// blocks alone. What of an edge block lies beyond the matrix is zero.
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{BsrOps, BsrPattern, Product, Side};
    /// # let device = Device::flex();
    /// # let pattern = BsrPattern::new([2, 2], [2, 2], &[0, 1], &[0])?;
    /// let grad = Tensor::<1>::from_data([1f32, 10.], &device).into_dispatch();
    /// let input = Tensor::<1>::from_data([1f32, 2.], &device).into_dispatch();
    /// let values = <Dispatch as BsrOps>::bsr_values_grad(grad, input, Product::new(pattern, Side::Right));
    /// assert_eq!(Tensor::<3>::from_dispatch(values).into_data().try_into_vec::<f32>().unwrap(), [1., 2., 10., 20.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    #[fusion(dtype = input, shape = Shape::from(product.pattern.values_shape()))]
    fn bsr_values_grad(grad: FloatTensor<Self>, input: FloatTensor<Self>, product: Product) -> FloatTensor<Self> {
        fallback::values_grad::<Self>(grad, input, product)
    }
}
