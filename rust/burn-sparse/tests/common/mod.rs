//! What the tests share.
#![allow(dead_code)] // each test program uses some of it
use burn::tensor::{DType, Device, Distribution, Tensor, TensorData, Tolerance};
use burn_sparse::{BsrTensor, Effort, TuneConfig, host_context, set_host_context};
use sparsek::{Context, Generate, Matrix};

/// No test touches the user's store or measures.
pub fn setup() {
    let context = Context::builder().store_in_memory().threads(2).build().unwrap();
    let _ = set_host_context(context); // another test of this program may have been first
}

pub fn estimate() -> TuneConfig {
    TuneConfig::new().with_effort(Effort::Estimate)
}

pub fn sparse(shape: [usize; 2], block: [usize; 2], device: &Device) -> BsrTensor {
    setup();
    let (shape, block_size) = (shape.into(), block.into());
    let matrix =
        Matrix::generate::<f32>(host_context().unwrap(), Generate::Bernoulli, shape, block_size, 0.4, 7).unwrap();
    BsrTensor::from_matrix(&matrix, block, device).unwrap().with_tuning(estimate())
}

/// Numbers around zero, the same every time.
pub fn numbers<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5).collect();
    Tensor::from_data(TensorData::new(numbers, shape), device)
}

pub fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), device)
}

#[track_caller]
pub fn assert_near<const D: usize>(got: Tensor<D>, expected: Tensor<D>, tolerance: f32) {
    assert_eq!(got.dims(), expected.dims());
    let (got, expected) = (got.cast(DType::F32).into_data(), expected.cast(DType::F32).into_data());
    got.assert_approx_eq::<f32>(&expected, Tolerance::absolute(tolerance));
}
