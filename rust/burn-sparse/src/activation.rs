//! What may follow a product.
use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;
use burn::config::Config;

/// A function that is applied to a product element by element; where no gradient is wanted, kernels do it as they write.
///
/// ```
/// use burn_sparse::{Activation, SparseLinearConfig};
/// let config = SparseLinearConfig::new(64, 64).with_activation(Some(Activation::Relu));
/// assert_eq!(config.activation, Some(Activation::Relu));
/// ```
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x Phi(x)
    Gelu,
    /// The same with tanh in place of erf.
    GeluTanh,
    /// x sigmoid(x)
    Silu,
}

impl Activation {
    pub(crate) fn of_kernel(self) -> sparsek::Activation {
        match self {
            Activation::Relu => sparsek::Activation::Relu,
            Activation::Gelu => sparsek::Activation::GeluErf,
            Activation::GeluTanh => sparsek::Activation::GeluTanh,
            Activation::Silu => sparsek::Activation::Silu,
        }
    }

    /// By the backend's own operations.
    pub(crate) fn apply<B: Backend>(self, x: FloatTensor<B>) -> FloatTensor<B> {
        match self {
            Activation::Relu => B::relu(x),
            Activation::Gelu => B::gelu(x),
            Activation::Silu => B::float_mul(x.clone(), B::sigmoid(x)),
            Activation::GeluTanh => {
                // tanh(y) = 2 sigmoid(2 y) - 1, so x (1 + tanh(y)) / 2 = x sigmoid(2 y) with y = sqrt(2 / pi) (x + 0.044715 x^3)
                let square = B::float_mul(x.clone(), x.clone());
                let factor = B::float_add_scalar(B::float_mul_scalar(square, 0.044715.into()), 1.0.into());
                let twice = 2.0 * std::f64::consts::FRAC_2_PI.sqrt();
                let y = B::float_mul_scalar(B::float_mul(x.clone(), factor), twice.into());
                B::float_mul(x, B::sigmoid(y))
            }
        }
    }
}
