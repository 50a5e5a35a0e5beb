//! Products against Burn's dense ones.
mod common;
use burn::tensor::{DType, Device, Tensor};
use burn_sparse::{BsrGemm, BsrPattern, BsrTensor, Effort, TuneConfig, host_context};
use common::{assert_near, estimate, numbers, sparse};
use sparsek::{Dtype, Matrix};

/// Both products of the matrix and of its transposed one.
fn check(a: &BsrTensor, left: &dyn Fn([usize; 2]) -> Tensor<2>, tolerance: f32) {
    for a in [a.clone(), a.clone().transpose()] {
        let (dense, [m, k]) = (a.to_dense(), a.shape());
        assert_eq!(dense.dims(), [m, k]);
        let x = left([k, 19]);
        assert_near(a.matmul(x.clone()), dense.clone().matmul(x), tolerance);
        let rows = left([19, k]);
        assert_near(a.matmul_rows(rows.clone()), rows.matmul(dense.transpose()), tolerance);
    }
}

#[test]
fn element_types() {
    let device = Device::flex();
    for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-6), (DType::F16, 3e-2), (DType::BF16, 2e-1)] {
        let a = sparse([70, 50], [16, 8], &device).map_values(|values| values.cast(dtype));
        assert_eq!(a.dtype(), dtype);
        check(&a, &|shape| numbers(shape, &device).cast(dtype), tolerance);
    }
}

#[test]
fn eight_bit_elements_are_refused() {
    common::setup();
    let integers = Matrix::from_dense(host_context().unwrap(), (2, 2), &[1i8; 4]).unwrap();
    for dtype in [Dtype::I8, Dtype::F8E4M3, Dtype::F8E5M2] {
        let matrix = integers.cast(dtype).unwrap();
        let error = BsrTensor::from_matrix(&matrix, [2, 2], &Device::flex()).unwrap_err();
        assert!(error.to_string().contains(&format!("{dtype:?}")), "{error}");
    }
}

#[test]
fn budgets_that_are_no_time_are_refused() {
    let a = sparse([8, 8], [4, 4], &Device::flex());
    let product = |seconds| {
        let a = a.clone().with_tuning(estimate().with_budget(Some(seconds)));
        let product = || a.matmul(numbers([8, 2], &Device::flex())).dims();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(product))
    };
    assert_eq!(product(0.5).unwrap(), [8, 2]);
    for seconds in [f64::NAN, -1.0, f64::INFINITY, 1e6] {
        let payload = product(seconds).expect_err("no budget");
        let message = payload.downcast_ref::<String>().unwrap();
        assert!(message.contains("budget"), "{message}");
    }
}

#[test]
fn inputs_of_any_strides() {
    let device = Device::flex();
    let a = sparse([70, 50], [16, 8], &device);
    check(&a, &|[rows, cols]| numbers([cols, rows], &device).transpose(), 1e-4);
    check(&a, &|[rows, cols]| numbers([rows + 3, cols + 5], &device).slice([2..rows + 2, 1..cols + 1]), 1e-4);
    check(&a, &|shape| numbers(shape, &device).flip([0]), 1e-4);
    check(&a, &|shape| numbers(shape, &device).flip([1]), 1e-4);
    check(&a, &|[rows, cols]| numbers([1, cols], &device).expand([rows, cols]), 1e-4);
    check(&a, &|[rows, cols]| numbers([rows, 1], &device).expand([rows, cols]), 1e-4);
}

#[test]
fn leading_dimensions() {
    let device = Device::flex();
    for a in [sparse([40, 24], [8, 8], &device), sparse([24, 40], [8, 8], &device).transpose()] {
        let dense = a.to_dense();
        let batched = |x: Tensor<4>| dense.clone().reshape([1, 1, 40, 24]).matmul(x);
        let x = numbers([2, 3, 24, 5], &device);
        assert_near(a.matmul(x.clone()), batched(x.clone()), 1e-4);
        let turned = numbers([2, 3, 5, 24], &device).swap_dims(2, 3);
        assert_near(a.matmul(turned.clone()), batched(turned), 1e-4);
        let shuffled = numbers([3, 2, 24, 5], &device).swap_dims(0, 1);
        assert_near(a.matmul(shuffled.clone()), batched(shuffled), 1e-4);
        let expanded = numbers([1, 1, 24, 5], &device).expand([2, 3, 24, 5]);
        assert_near(a.matmul(expanded.clone()), batched(expanded), 1e-4);
        let side_by_side = numbers([24, 6, 5], &device).swap_dims(0, 1).reshape([2, 3, 24, 5]);
        assert_near(a.matmul(side_by_side.clone()), batched(side_by_side), 1e-4);

        let rows = numbers([2, 3, 24], &device);
        let expected = rows.clone().reshape([6, 24]).matmul(dense.clone().transpose()).reshape([2, 3, 40]);
        assert_near(a.matmul_rows(rows), expected, 1e-4);
        let row = numbers([24], &device);
        let expected = row.clone().reshape([1, 24]).matmul(dense.clone().transpose()).reshape([40]);
        assert_near(a.matmul_rows(row), expected, 1e-4);
    }
}

#[test]
fn nothing_to_multiply() {
    let device = Device::flex();
    let a = sparse([40, 24], [8, 8], &device);
    assert_eq!(a.matmul(Tensor::<2>::zeros([24, 0], &device)).dims(), [40, 0]);
    assert_eq!(a.matmul(Tensor::<3>::zeros([0, 24, 5], &device)).dims(), [0, 40, 5]);
    assert_eq!(a.matmul_rows(Tensor::<2>::zeros([0, 24], &device)).dims(), [0, 40]);
    let pattern = BsrPattern::new([40, 24], [8, 8], &[0; 6], &[]).unwrap();
    let empty = BsrTensor::new(pattern, Tensor::zeros([0, 8, 8], &device)).unwrap().with_tuning(estimate());
    assert_near(empty.matmul(numbers([24, 5], &device)), Tensor::zeros([40, 5], &device), 0.0);
    assert_near(empty.to_dense(), Tensor::zeros([40, 24], &device), 0.0);
}

/// A matrix without columns or without rows: what there is of the product is zero.
fn empty_sides(device: &Device) {
    common::setup();
    for (shape, offsets) in [([32, 0], vec![0; 5]), ([0, 24], vec![0])] {
        let pattern = BsrPattern::new(shape, [8, 8], &offsets, &[]).unwrap();
        let a = BsrTensor::new(pattern, Tensor::zeros([0, 8, 8], device)).unwrap().with_tuning(estimate());
        for a in [a.clone(), a.transpose()] {
            let [m, k] = a.shape();
            assert_eq!(a.to_dense().dims(), [m, k]);
            assert_near(a.matmul(Tensor::<2>::ones([k, 3], device)), Tensor::zeros([m, 3], device), 0.0);
            assert_near(a.matmul_rows(Tensor::<1>::ones([k], device)), Tensor::zeros([m], device), 0.0);
            assert_near(a.matmul_rows(Tensor::<2>::ones([3, k], device)), Tensor::zeros([3, m], device), 0.0);
            assert_near(a.matmul_rows(Tensor::<3>::ones([2, 3, k], device)), Tensor::zeros([2, 3, m], device), 0.0);
        }
    }
}

#[test]
fn an_empty_matrix() {
    empty_sides(&Device::flex());
    empty_sides(&Device::flex().autodiff());
}

#[test]
fn a_measured_product() {
    let device = Device::flex();
    let (a, x) = (sparse([64, 64], [32, 32], &device), numbers([64, 8], &device));
    let product =
        BsrGemm::auto_tuned(&a, x.clone(), &TuneConfig::new().with_effort(Effort::Measure).with_budget(Some(0.1)));
    assert_near(product, a.to_dense().matmul(x), 1e-4);
}

#[test]
fn what_was_dense_keeps_its_largest_blocks() {
    common::setup();
    let device = Device::flex();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let dense = numbers([40, 30], &device).cast(dtype);
        let all = BsrTensor::from_dense(dense.clone(), [16, 8], 1.0).unwrap();
        assert_eq!((all.dtype(), all.nnzb()), (dtype, 12));
        assert_near(all.to_dense(), dense.clone(), 0.0);
        let half = BsrTensor::from_dense(dense.transpose(), [8, 16], 0.5).unwrap();
        assert_eq!((half.shape(), half.nnzb()), ([30, 40], 6));
    }
}

#[test]
#[should_panic(expected = "axis 0 of the input [23, 4] is 23, the matrix needs 24")]
fn an_input_of_another_length() {
    let device = Device::flex();
    sparse([40, 24], [8, 8], &device).matmul(Tensor::<2>::zeros([23, 4], &device));
}

#[test]
#[should_panic(expected = "values of F32 and an input of F64")]
fn an_input_of_another_type() {
    let device = Device::flex();
    sparse([40, 24], [8, 8], &device).matmul(numbers([24, 4], &device).cast(DType::F64));
}

#[test]
fn many_threads_at_once() {
    let device = Device::flex();
    let (a, x) = (sparse([128, 96], [16, 16], &device), numbers([96, 31], &device));
    let expected = a.to_dense().matmul(x.clone());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert_near(a.matmul(x.clone()), expected.clone(), 1e-4)));
        }
    });
}

#[cfg(feature = "ndarray")]
#[test]
#[allow(deprecated)] // Burn means to drop this backend: while it is there, it stands for those without kernels of ours
fn a_backend_from_standard_operations() {
    let device = Device::ndarray();
    let a = sparse([70, 50], [16, 8], &device);
    check(&a, &|shape| numbers(shape, &device), 1e-4);
    let x = numbers([2, 3, 50, 4], &device);
    let expected = a.to_dense().reshape([1, 1, 70, 50]).matmul(x.clone());
    assert_near(a.matmul(x), expected, 1e-4);
    empty_sides(&device);
}
