//! Gradients against those of dense products.
mod common;
use burn::module::Param;
use burn::tensor::{DType, Device, Tensor, activation};
use burn_sparse::{Activation, BsrTensor, SparseLinear};
use common::{assert_near, estimate, numbers, sparse};

/// Compares all gradients of a weighted sum of the product with those through the dense matrix.
fn check<const D: usize>(
    a: &BsrTensor,
    x: Tensor<D>,
    tolerance: f32,
    sparse: impl Fn(&BsrTensor, Tensor<D>) -> Tensor<D>,
    dense: impl Fn(Tensor<2>, Tensor<D>) -> Tensor<D>,
) {
    let run = |through_dense: bool| {
        let (values, x) = (a.values().detach().require_grad(), x.clone().detach().require_grad());
        let a = a.clone().map_values(|_| values.clone());
        let y = if through_dense { dense(a.to_dense(), x.clone()) } else { sparse(&a, x.clone()) };
        let weights = numbers(y.dims(), &y.device()).cast(y.dtype());
        let grads = (y.clone() * weights).sum().backward();
        (y.detach(), values.grad(&grads).unwrap(), x.grad(&grads).unwrap())
    };
    let ((y, by_values, by_x), (dense_y, dense_by_values, dense_by_x)) = (run(false), run(true));
    assert_near(y, dense_y, tolerance);
    assert_near(by_values, dense_by_values, tolerance);
    assert_near(by_x, dense_by_x, tolerance);
}

#[test]
fn both_products_of_both_matrices() {
    let device = Device::flex().autodiff();
    for a in [sparse([70, 50], [16, 8], &device), sparse([50, 70], [8, 16], &device).transpose()] {
        check(&a, numbers([50, 9], &device), 1e-4, |a, x| a.matmul(x), |a, x| a.matmul(x));
        check(&a, numbers([9, 50], &device), 1e-4, |a, x| a.matmul_rows(x), |a, x| x.matmul(a.transpose()));
        let batched = |a: Tensor<2>, x: Tensor<3>| a.unsqueeze::<3>().matmul(x);
        check(&a, numbers([4, 50, 9], &device), 1e-4, |a, x| a.matmul(x), batched);
        let rows = |a: Tensor<2>, x: Tensor<3>| x.matmul(a.transpose().unsqueeze::<3>());
        check(&a, numbers([4, 9, 50], &device), 1e-4, |a, x| a.matmul_rows(x), rows);
    }
}

#[test]
fn element_types() {
    let device = Device::flex().autodiff();
    for (dtype, tolerance) in [(DType::F64, 1e-6), (DType::F16, 3e-2), (DType::BF16, 3e-1)] {
        let a = sparse([40, 24], [8, 8], &device).map_values(|values| values.cast(dtype));
        check(&a, numbers([24, 9], &device).cast(dtype), tolerance, |a, x| a.matmul(x), |a, x| a.matmul(x));
    }
}

#[test]
fn inputs_and_gradients_that_are_views() {
    let device = Device::flex().autodiff();
    let a = sparse([40, 24], [8, 8], &device);
    // A transposed input, and a product that is transposed after: its gradient comes as a view.
    let turned = |a: &BsrTensor, x: Tensor<2>| a.matmul(x.transpose()).transpose();
    check(&a, numbers([9, 24], &device), 1e-4, turned, |a, x| a.matmul(x.transpose()).transpose());
    let cut = |a: &BsrTensor, x: Tensor<2>| a.matmul(x.slice([0..24, 2..7])).slice([1..30, 0..3]);
    check(&a, numbers([24, 9], &device), 1e-4, cut, |a, x| a.matmul(x.slice([0..24, 2..7])).slice([1..30, 0..3]));
    let flipped = |a: &BsrTensor, x: Tensor<2>| a.matmul(x.flip([0])).flip([1]);
    check(&a, numbers([24, 9], &device), 1e-4, flipped, |a, x| a.matmul(x.flip([0])).flip([1]));
}

#[test]
fn with_gradient_checkpointing() {
    let device = Device::flex().autodiff().gradient_checkpointing();
    let a = sparse([40, 24], [8, 8], &device);
    let twice = |a: &BsrTensor, x: Tensor<2>| a.matmul(activation::relu(x.clone()) + x.exp());
    check(&a, numbers([24, 9], &device), 1e-4, twice, |a, x| a.matmul(activation::relu(x.clone()) + x.exp()));
}

type After = fn(Tensor<2>) -> Tensor<2>;

#[test]
fn layers_with_bias_and_activation() {
    let device = Device::flex().autodiff();
    let a = sparse([40, 24], [8, 8], &device);
    let after: [(Option<Activation>, After); 5] = [
        (None, |y| y),
        (Some(Activation::Relu), activation::relu),
        (Some(Activation::Gelu), activation::gelu),
        (Some(Activation::GeluTanh), activation::gelu_approximate),
        (Some(Activation::Silu), activation::silu),
    ];
    for (activation, apply) in after {
        let bias = numbers([40], &device).require_grad();
        let layer = SparseLinear::from_parts(a.clone(), Some(Param::from_tensor(bias.clone()))).unwrap();
        let layer = layer.with_activation(activation).with_tuning(estimate());
        let x = numbers([9, 24], &device);
        let expected =
            |x: Tensor<2>| apply(x.matmul(layer.weight.val().to_dense().transpose()) + bias.clone().unsqueeze::<2>());
        let (y, dense_y) = (layer.forward(x.clone()), expected(x.clone()));
        assert_near(y.clone(), dense_y.clone(), 1e-4);
        // Without autodiff the kernel applies bias and activation itself.
        let inference = burn::module::Module::valid(&layer);
        assert_near(inference.forward(x.inner()), dense_y.clone().inner(), 1e-4);

        let weights = numbers([9, 40], &device);
        let (grads, dense_grads) = ((y * weights.clone()).sum().backward(), (dense_y * weights).sum().backward());
        let own = layer.bias.as_ref().unwrap().val();
        assert_near(own.grad(&grads).unwrap(), bias.grad(&dense_grads).unwrap(), 1e-4);
        let values = layer.weight.values().val();
        assert_near(values.grad(&grads).unwrap(), values.grad(&dense_grads).unwrap(), 1e-4);
    }
}

#[test]
fn what_is_not_tracked_gets_no_gradient() {
    let device = Device::flex().autodiff();
    let a = sparse([40, 24], [8, 8], &device);
    let x = numbers([24, 9], &device).require_grad();
    let grads = a.matmul(x.clone()).sum().backward();
    assert!(x.grad(&grads).is_some() && a.values().grad(&grads).is_none());
    let a = a.map_values(|values| values.require_grad());
    let grads = a.matmul(x.detach()).sum().backward();
    assert!(a.values().grad(&grads).is_some());
}

#[cfg(feature = "ndarray")]
#[test]
#[allow(deprecated)] // as in products.rs
fn a_backend_from_standard_operations() {
    let device = Device::ndarray().autodiff();
    let a = sparse([70, 50], [16, 8], &device).map_values(|values| values.require_grad());
    for side_by_side in [false, true] {
        let x = if side_by_side { numbers([9, 50], &device) } else { numbers([50, 9], &device) }.require_grad();
        let (y, dense) = match side_by_side {
            true => (a.matmul_rows(x.clone()), x.clone().matmul(a.to_dense().transpose())),
            false => (a.matmul(x.clone()), a.to_dense().matmul(x.clone())),
        };
        let (grads, dense) = (y.powi_scalar(2).sum().backward(), dense.powi_scalar(2).sum().backward());
        assert_near(a.values().grad(&grads).unwrap(), a.values().grad(&dense).unwrap(), 1e-2);
        assert_near(x.grad(&grads).unwrap(), x.grad(&dense).unwrap(), 1e-2);
    }
}
