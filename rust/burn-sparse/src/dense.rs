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

/// A product of dense matrices: all of it but the numbers.
///
/// ```
/// use burn_sparse::{Activation, DenseProduct, TuneConfig};
/// let mut product = DenseProduct::new(TuneConfig::new());
/// product.activation = Some(Activation::Silu);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DenseProduct {
    /// What follows the product, and the bias.
    pub activation: Option<Activation>,
    /// How the kernel is chosen.
    pub tuning: TuneConfig,
}

impl DenseProduct {
    /// The plain product.
    ///
    /// ```
    /// use burn_sparse::{DenseProduct, TuneConfig};
    /// assert!(DenseProduct::new(TuneConfig::new()).activation.is_none());
    /// ```
    pub fn new(tuning: TuneConfig) -> DenseProduct {
        DenseProduct { activation: None, tuning }
    }

    /// The shape of `[..., m, k]` times `[..., k, n]`, where leading dimensions of length 1 repeat.
    ///
    /// # Panics
    /// Where the two do not fit.
    ///
    /// ```
    /// use burn_sparse::DenseProduct;
    /// assert_eq!(DenseProduct::output_shape(&[5, 2, 3].into(), &[1, 3, 4].into()), [5, 2, 4].into());
    /// ```
    pub fn output_shape(a: &Shape, b: &Shape) -> Shape {
        let (of_a, of_b, dims) = (a.as_slice(), b.as_slice(), a.num_dims());
        assert!(
            dims >= 2 && b.num_dims() == dims,
            "a is {of_a:?} and b {of_b:?}: both must have two dimensions, or as many more"
        );
        let (rows, cols, k) = (of_a[dims - 2], of_b[dims - 1], of_a[dims - 1]);
        assert!(of_b[dims - 2] == k, "a is {of_a:?} and b {of_b:?}: b must have {k} rows, as a has columns");
        let mut output = a.clone();
        for axis in 0..dims - 2 {
            let (one, other) = (of_a[axis], of_b[axis]);
            assert!(one == other || one == 1 || other == 1, "a is {of_a:?} and b {of_b:?}: axis {axis} differs");
            output[axis] = if one == 1 { other } else { one };
        }
        (output[dims - 2], output[dims - 1]) = (rows, cols);
        output
    }

    /// Refuses a bias that is longer or shorter than a row of the product.
    pub(crate) fn check_bias(bias: &Shape, output: &Shape) -> Result<()> {
        let (length, cols) = (bias.num_elements(), output[output.num_dims() - 1]);
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
    #[fusion(dtype = a, shape = DenseProduct::output_shape(a, b))]
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
    #[fusion(dtype = a, shape = DenseProduct::output_shape(a, b))]
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
    let product = DenseProduct { activation, tuning: *config };
    let (a, b) = (a.into_dispatch(), b.into_dispatch());
    Tensor::from_dispatch(match bias {
        None => <Dispatch as GemmOps>::gemm(a, b, product),
        Some(bias) => <Dispatch as GemmOps>::gemm_bias(a, b, bias.into_dispatch(), product),
    })
}
