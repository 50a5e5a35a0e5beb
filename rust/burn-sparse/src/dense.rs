//! Products of dense tensors.
#![allow(deprecated)] // the backend NdArray, which Burn means to drop
use crate::activation::Activation;
use crate::backend::fallback;
use crate::error::{Error, Result};
use crate::tuning::TuneConfig;
use burn::backend::backend_extension;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch};
use burn::tensor::{Shape, Tensor};
use sparsek::GroupAxis;
use std::sync::Arc;

/// A product of dense matrices: all of it but the numbers.
///
/// ```
/// use burn_sparse::{Activation, DenseProduct, TuneConfig};
/// let mut product = DenseProduct::new(TuneConfig::new());
/// product.activation = Some(Activation::Silu);
/// ```
#[derive(Clone, Debug)]
pub struct DenseProduct {
    /// What follows the product, and the bias.
    pub activation: Option<Activation>,
    /// How the kernel is chosen.
    pub tuning: TuneConfig,
    /// Where each group ends, see [`DenseProduct::in_groups`].
    pub ends: Option<Arc<[i32]>>,
}

impl DenseProduct {
    /// The plain product.
    ///
    /// ```
    /// use burn_sparse::{DenseProduct, TuneConfig};
    /// assert!(DenseProduct::new(TuneConfig::new()).activation.is_none());
    /// ```
    pub fn new(tuning: TuneConfig) -> DenseProduct {
        DenseProduct { activation: None, tuning, ends: None }
    }

    /// In groups that end there, ascending; the first begins at 0. Of `[m, k]` and `[groups, k, n]` they are rows of a, of
    /// `[groups, m, k]` and `[k, n]` columns of b, of `[m, k]` and `[k, n]` columns of a and rows of b, with a product for each.
    /// What lies behind the last end takes no part: the product is zero there.
    ///
    /// ```
    /// use burn_sparse::{DenseProduct, TuneConfig};
    /// let product = DenseProduct::new(TuneConfig::new()).in_groups(&[2, 2, 7])?;
    /// assert_eq!(product.output_shape(&[8, 4].into(), &[3, 4, 5].into()), [8, 5].into());
    /// assert_eq!(product.output_shape(&[8, 7].into(), &[7, 5].into()), [3, 8, 5].into());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn in_groups(mut self, ends: &[usize]) -> Result<DenseProduct> {
        let mut begin = 0;
        for (group, &end) in ends.iter().enumerate() {
            if end < begin || i32::try_from(end).is_err() {
                let limits = format!("it must be from {begin}, where the group begins, to {}", i32::MAX);
                return Err(Error::Argument(format!("ends[{group}] = {end}: {limits}")));
            }
            begin = end;
        }
        self.ends = Some(ends.iter().map(|&end| end as i32).collect());
        Ok(self)
    }

    /// The product's shape: of `[..., m, k]` and `[..., k, n]`, where leading dimensions of length 1 repeat, or in groups.
    ///
    /// # Panics
    /// Where the two do not fit.
    ///
    /// ```
    /// use burn_sparse::{DenseProduct, TuneConfig};
    /// let product = DenseProduct::new(TuneConfig::new());
    /// assert_eq!(product.output_shape(&[5, 2, 3].into(), &[1, 3, 4].into()), [5, 2, 4].into());
    /// ```
    pub fn output_shape(&self, a: &Shape, b: &Shape) -> Shape {
        let (of_a, of_b, dims) = (a.as_slice(), b.as_slice(), a.num_dims());
        let shapes = || format!("a is {of_a:?} and b {of_b:?}");
        assert!(dims >= 2 && of_b.len() >= 2, "{}: both must have two dimensions or more", shapes());
        let (rows, cols, k) = (of_a[dims - 2], of_b[of_b.len() - 1], of_a[dims - 1]);
        assert!(of_b[of_b.len() - 2] == k, "{}: b must have {k} rows, as a has columns", shapes());
        if let Some(ends) = &self.ends {
            let (matrices, size) = match self.axis(a, b) {
                Some(GroupAxis::Rows) => (of_b[0], rows),
                Some(GroupAxis::Cols) => (of_a[0], cols),
                Some(_) => (ends.len(), k),
                None => panic!("{}: groups are of two matrices, or of one and a matrix for each group", shapes()),
            };
            assert!(matrices == ends.len(), "{}: there are {} groups", shapes(), ends.len());
            let last = ends.last().map_or(0, |&end| end as usize);
            assert!(last <= size, "{}: the last group ends at {last}, the axis at {size}", shapes());
            return if (dims, of_b.len()) == (2, 2) { [matrices, rows, cols].into() } else { [rows, cols].into() };
        }
        assert!(of_b.len() == dims, "{}: they must have as many dimensions", shapes());
        let mut output = a.clone();
        for axis in 0..dims - 2 {
            let (one, other) = (of_a[axis], of_b[axis]);
            assert!(one == other || one == 1 || other == 1, "{}: axis {axis} differs", shapes());
            output[axis] = if one == 1 { other } else { one };
        }
        (output[dims - 2], output[dims - 1]) = (rows, cols);
        output
    }

    /// What groups cut, by the dimensions of the operands; none where they are no operands of groups.
    pub(crate) fn axis(&self, a: &Shape, b: &Shape) -> Option<GroupAxis> {
        match (a.num_dims(), b.num_dims()) {
            (2, 3) => Some(GroupAxis::Rows),
            (3, 2) => Some(GroupAxis::Cols),
            (2, 2) => Some(GroupAxis::Depth),
            _ => None,
        }
    }

    /// What each group has of the axis that is cut.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let ends: Vec<usize> = self.ends.iter().flat_map(|ends| ends.iter()).map(|&end| end as usize).collect();
        (0..ends.len()).map(move |group| if group == 0 { 0..ends[0] } else { ends[group - 1]..ends[group] })
    }

    /// Refuses a bias that is longer or shorter than a row of the product.
    pub(crate) fn check_bias(&self, bias: &Shape, output: &Shape) -> Result<()> {
        let (length, cols) = (bias.num_elements(), output[output.num_dims() - 1]);
        if self.ends.is_some() {
            return Err(Error::Argument("a bias of a product in groups, which takes none".into()));
        }
        match length == cols {
            true => Ok(()),
            false => Err(Error::Argument(format!("a bias of {length} for {cols} columns"))),
        }
    }
}

/// Products of dense matrices by the library, as an extension of Burn's backends. The default bodies are Burn's own products.
///
/// ```
/// use burn::{backend::{Dispatch, Flex}, tensor::{Device, Tensor}};
/// use burn_sparse::{DenseProduct, GemmOps, TuneConfig};
/// let device = Device::flex();
/// let a = Tensor::<2>::from_data([[1f32, 2.], [3., 4.]], &device).into_dispatch();
/// let b = Tensor::<2>::from_data([[1f32], [1.]], &device).into_dispatch();
/// let config = TuneConfig::new().with_budget(Some(0.2));
/// let product = <Dispatch as GemmOps>::gemm(a, b, DenseProduct::new(config));
/// assert_eq!(Tensor::<2>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [3., 7.]);
/// # fn supplies<B: GemmOps>() {}
/// # supplies::<Flex>();
/// ```
#[backend_extension(
    Flex,
    NdArray: cfg(feature = "ndarray"),
    LibTorch: cfg(feature = "tch"),
    Cube: cfg(feature = "cube"),
    Autodiff,
    Fusion: cfg(feature = "fusion")
)]
pub trait GemmOps: Backend {
    /// A B, with the activation.
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{DenseProduct, Effort, GemmOps, TuneConfig};
    /// # let device = Device::flex();
    /// let ones = Tensor::<3>::ones([2, 3, 4], &device).into_dispatch();
    /// let twos = (Tensor::<3>::ones([1, 4, 5], &device) * 2.0).into_dispatch();
    /// # let config = TuneConfig::new().with_effort(Effort::Estimate);
    /// let product = <Dispatch as GemmOps>::gemm(ones, twos, DenseProduct::new(config));
    /// assert_eq!(Tensor::<3>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [8.; 30]);
    /// ```
    #[fusion(dtype = a, shape = product.output_shape(a, b))]
    fn gemm(a: FloatTensor<Self>, b: FloatTensor<Self>, product: DenseProduct) -> FloatTensor<Self> {
        fallback::gemm::<Self>(a, b, None, product)
    }

    /// A B + bias, with the activation; the bias has an element for each column.
    ///
    /// ```
    /// # use burn::{backend::Dispatch, tensor::{Device, Tensor}};
    /// # use burn_sparse::{DenseProduct, Effort, GemmOps, TuneConfig};
    /// # let device = Device::flex();
    /// let ones = Tensor::<2>::ones([2, 2], &device).into_dispatch();
    /// let bias = Tensor::<1>::from_data([10f32, 20.], &device).into_dispatch();
    /// # let config = TuneConfig::new().with_effort(Effort::Estimate);
    /// let product = <Dispatch as GemmOps>::gemm_bias(ones.clone(), ones, bias, DenseProduct::new(config));
    /// assert_eq!(Tensor::<2>::from_dispatch(product).into_data().try_into_vec::<f32>().unwrap(), [12., 22., 12., 22.]);
    /// ```
    #[fusion(dtype = a, shape = product.output_shape(a, b))]
    fn gemm_bias(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        product: DenseProduct,
    ) -> FloatTensor<Self> {
        fallback::gemm::<Self>(a, b, Some(bias), product)
    }
}

/// `[..., m, k]` times `[..., k, n]` by the kernel that measured fastest on this machine for this class of problems, in place of
/// `a.matmul(b)`. Leading dimensions of length 1 repeat. Gradients flow to both.
///
/// # Panics
/// Where shapes or types of elements do not fit, and where the library cannot multiply, with its message.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_sparse::{Effort, TuneConfig, gemm};
/// let device = Device::flex();
/// let a = Tensor::<2>::random([64, 96], Distribution::Default, &device);
/// let b = Tensor::<2>::random([96, 8], Distribution::Default, &device);
/// let config = TuneConfig::new().with_effort(Effort::Estimate); // or: measure, which is the default
/// let product = gemm(a.clone(), b.clone(), &config);
/// product.into_data().assert_approx_eq::<f32>(&a.matmul(b).into_data(), Default::default());
/// ```
pub fn gemm<const D: usize>(a: Tensor<D>, b: Tensor<D>, config: &TuneConfig) -> Tensor<D> {
    let product = DenseProduct::new(*config);
    Tensor::from_dispatch(<Dispatch as GemmOps>::gemm(a.into_dispatch(), b.into_dispatch(), product))
}

/// As [`gemm`], with a bias for each column, if any, and an activation: in one pass where no gradient is wanted.
///
/// # Panics
/// As [`gemm`].
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_sparse::{Activation, Effort, TuneConfig, gemm_with};
/// let device = Device::flex();
/// let x = Tensor::<2>::from_data([[1f32, -4.]], &device);
/// let bias = Tensor::<1>::from_data([1f32, 2.], &device);
/// let config = TuneConfig::new().with_effort(Effort::Estimate);
/// let y = gemm_with(x, Tensor::eye(2, &device), Some(bias), Some(Activation::Relu), &config);
/// assert_eq!(y.into_data().try_into_vec::<f32>().unwrap(), [2., 0.]);
/// ```
pub fn gemm_with<const D: usize>(
    a: Tensor<D>,
    b: Tensor<D>,
    bias: Option<Tensor<1>>,
    activation: Option<Activation>,
    config: &TuneConfig,
) -> Tensor<D> {
    let product = DenseProduct { activation, ..DenseProduct::new(*config) };
    let (a, b) = (a.into_dispatch(), b.into_dispatch());
    Tensor::from_dispatch(match bias {
        None => <Dispatch as GemmOps>::gemm(a, b, product),
        Some(bias) => <Dispatch as GemmOps>::gemm_bias(a, b, bias.into_dispatch(), product),
    })
}

/// Rows in groups, each multiplied with a matrix of its own, `[m, k]` times `[groups, k, n]`, and an activation: the layers of a
/// mixture of experts, tokens sorted by expert. Group `i` has the rows from `ends[i - 1]` (the first: 0) to `ends[i]`, or none;
/// what lies behind the last end is zero. Gradients flow to both. Not on CUDA, where it is one product of Burn's for each group.
///
/// # Panics
/// As [`gemm`], and where the ends do not ascend or exceed the rows.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_sparse::{Effort, TuneConfig, grouped_gemm};
/// let device = Device::flex();
/// let tokens = Tensor::<2>::from_data([[1f32], [2.], [3.], [4.]], &device);
/// let experts = Tensor::<3>::from_data([[[10f32]], [[0.]], [[100.]]], &device);
/// let config = TuneConfig::new().with_effort(Effort::Estimate);
/// let y = grouped_gemm(tokens, experts, &[1, 1, 3], None, &config);
/// assert_eq!(y.into_data().try_into_vec::<f32>().unwrap(), [10., 200., 300., 0.]);
/// ```
pub fn grouped_gemm(
    a: Tensor<2>,
    b: Tensor<3>,
    ends: &[usize],
    activation: Option<Activation>,
    config: &TuneConfig,
) -> Tensor<2> {
    let product = DenseProduct { activation, ..DenseProduct::new(*config) };
    let product = product.in_groups(ends).unwrap_or_else(|why| panic!("dense product: {why}"));
    Tensor::from_dispatch(<Dispatch as GemmOps>::gemm(a.into_dispatch(), b.into_dispatch(), product))
}
