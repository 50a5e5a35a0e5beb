//! The product in one call.
use crate::tensor::BsrTensor;
use crate::tuning::TuneConfig;
use burn::tensor::Tensor;

/// In place of a dense matrix product.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_sparse::{BsrGemm, BsrTensor, Effort, TuneConfig};
/// let device = Device::flex();
/// let dense = Tensor::<2>::random([64, 96], Distribution::Default, &device);
/// let b = Tensor::<2>::random([96, 8], Distribution::Default, &device);
///
/// let a = BsrTensor::from_dense(dense, [16, 16], 0.25)?;
/// let config = TuneConfig::new().with_effort(Effort::Estimate); // or: measure, which is the default
/// let product = BsrGemm::auto_tuned(&a, b.clone(), &config); // dense: a.matmul(b)
/// product.into_data().assert_approx_eq::<f32>(&a.to_dense().matmul(b).into_data(), Default::default());
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BsrGemm;

impl BsrGemm {
    /// A times `[..., k, n]` by the kernel that measured fastest on this machine for this class of problems. The first call of
    /// a class measures, as the config says; later calls and processes know the answer.
    ///
    /// # Panics
    /// As [`BsrTensor::matmul`].
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_sparse::{BsrGemm, BsrTensor, TuneConfig};
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[2], &[1], &[5f32], &Device::flex())?;
    /// let config = TuneConfig::new().with_budget(Some(0.2)).with_assume_finite(true);
    /// let product = BsrGemm::auto_tuned(&a, Tensor::<2>::ones([4, 1], &Device::flex()), &config);
    /// assert_eq!(product.into_data().try_into_vec::<f32>().unwrap(), [0., 0., 5., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn auto_tuned<const D: usize>(a: &BsrTensor, b: Tensor<D>, config: &TuneConfig) -> Tensor<D> {
        a.clone().with_tuning(*config).matmul(b)
    }
}
