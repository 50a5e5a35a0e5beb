//! Dense products and attention against Burn's own, with their gradients.
mod attention;
mod common;
use burn::tensor::{DType, Device, Tensor, activation};
use burn_sparse::{Activation, gemm, gemm_with, grouped_gemm};
use common::{assert_near, estimate, numbers, setup};

fn product<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    setup();
    gemm(a, b, &estimate())
}

#[test]
fn element_types() {
    let device = Device::flex();
    for (dtype, tolerance) in [(DType::F32, 1e-4), (DType::F64, 1e-6), (DType::F16, 3e-2), (DType::BF16, 2e-1)] {
        for (m, n, k) in [(1, 1, 1), (17, 19, 33), (64, 32, 48), (5, 1, 9), (1, 7, 9)] {
            let (a, b) = (numbers([m, k], &device).cast(dtype), numbers([k, n], &device).cast(dtype));
            let got = product(a.clone(), b.clone());
            assert_eq!(got.dtype(), dtype);
            assert_near(got, a.matmul(b), tolerance);
        }
    }
}

#[test]
fn operands_of_any_strides() {
    let device = Device::flex();
    let (whole_a, whole_b) = (numbers([20, 30], &device), numbers([30, 40], &device));
    let of_a = [
        whole_a.clone(),
        numbers([30, 20], &device).transpose(),
        numbers([25, 40], &device).slice([3..23, 5..35]),
        whole_a.clone().flip([0]),
        numbers([1, 30], &device).expand([20, 30]),
    ];
    let of_b = [
        whole_b.clone(),
        numbers([40, 30], &device).transpose(),
        numbers([33, 44], &device).slice([1..31, 2..42]),
        whole_b.clone().flip([1]),
        numbers([30, 1], &device).expand([30, 40]),
    ];
    for a in &of_a {
        for b in &of_b {
            assert_near(product(a.clone(), b.clone()), a.clone().matmul(b.clone()), 1e-4);
        }
    }
}

#[test]
fn batches() {
    let device = Device::flex();
    for (of_a, of_b) in [([2, 3], [2, 3]), ([2, 3], [1, 1]), ([1, 1], [2, 3]), ([2, 1], [1, 3]), ([1, 3], [2, 3])] {
        let a = numbers([of_a[0], of_a[1], 5, 7], &device);
        let b = numbers([of_b[0], of_b[1], 7, 4], &device);
        assert_near(product(a.clone(), b.clone()), a.matmul(b), 1e-4);
    }
    let (a, b) = (numbers([5, 4, 7], &device).swap_dims(0, 1), numbers([4, 7, 3], &device));
    assert_near(product(a.clone(), b.clone()), a.matmul(b), 1e-4);
}

#[test]
fn empty_ones() {
    let device = Device::flex();
    assert_eq!(product(numbers([0, 4], &device), numbers([4, 3], &device)).dims(), [0, 3]);
    assert_eq!(product(numbers([4, 2], &device), numbers([2, 0], &device)).dims(), [4, 0]);
    setup();
    let bias = numbers([3], &device);
    let of_nothing =
        gemm_with(numbers([2, 0], &device), numbers([0, 3], &device), Some(bias.clone()), None, &estimate());
    assert_near(of_nothing, bias.unsqueeze::<2>().expand([2, 3]), 1e-6);
}

type Activated = fn(Tensor<3>) -> Tensor<3>;
const ACTIVATIONS: [(Option<Activation>, Activated); 4] = [
    (None, |y| y),
    (Some(Activation::Relu), activation::relu),
    (Some(Activation::Gelu), activation::gelu),
    (Some(Activation::Silu), activation::silu),
];

/// Compares the product and all gradients of a weighted sum of it with those of Burn's own product.
fn check(of_a: [usize; 3], of_b: [usize; 3], bias: bool, after: (Option<Activation>, Activated), device: &Device) {
    setup();
    let run = |own: bool| {
        let a = numbers(of_a, device).require_grad();
        let b = numbers(of_b, device).require_grad();
        let c = numbers([of_b[2]], device).require_grad();
        // Transposed and back, so that operands and gradients come as views.
        let (x, w) = (a.clone().swap_dims(1, 2).swap_dims(1, 2), b.clone());
        let y = match (own, bias) {
            (true, false) if after.0.is_none() => gemm(x, w, &estimate()),
            (true, _) => gemm_with(x, w, bias.then(|| c.clone()), after.0, &estimate()),
            (false, true) => after.1(x.matmul(w) + c.clone().unsqueeze::<3>()),
            (false, false) => after.1(x.matmul(w)),
        };
        let weights = numbers(y.dims(), device);
        let grads = (y.clone().swap_dims(1, 2) * weights.swap_dims(1, 2)).sum().backward();
        let of_bias = bias.then(|| c.grad(&grads).unwrap());
        (y.detach(), a.grad(&grads).unwrap(), b.grad(&grads).unwrap(), of_bias)
    };
    let (mine, theirs) = (run(true), run(false));
    assert_near(mine.0, theirs.0, 1e-4);
    assert_near(mine.1, theirs.1, 1e-4);
    assert_near(mine.2, theirs.2, 1e-4);
    if let (Some(mine), Some(theirs)) = (mine.3, theirs.3) {
        assert_near(mine, theirs, 1e-4);
    }
}

#[test]
fn gradients() {
    for device in [Device::flex().autodiff(), Device::flex().autodiff().gradient_checkpointing()] {
        for after in ACTIVATIONS {
            for bias in [false, true] {
                check([1, 9, 7], [1, 7, 5], bias, after, &device);
                check([3, 9, 7], [3, 7, 5], bias, after, &device);
            }
        }
        check([3, 9, 7], [1, 7, 5], true, ACTIVATIONS[0], &device);
        check([1, 9, 7], [3, 7, 5], true, ACTIVATIONS[0], &device);
    }
}

#[test]
fn gradients_of_one_operand() {
    let device = Device::flex().autodiff();
    let (a, b) = (numbers([4, 3], &device), numbers([3, 5], &device).require_grad());
    let grads = product(a.clone(), b.clone()).sum().backward();
    assert!(a.grad(&grads).is_none());
    assert_near(b.grad(&grads).unwrap(), a.transpose().matmul(Tensor::ones([4, 5], &device)).inner(), 1e-5);
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)]
#[test]
fn through_another_backend() {
    let device = Device::ndarray().autodiff();
    for after in ACTIVATIONS {
        check([3, 9, 7], [1, 7, 5], true, after, &device);
    }
}

/// Group by group, by Burn.
fn in_groups(a: &Tensor<2>, b: &Tensor<3>, ends: &[usize]) -> Tensor<2> {
    let ([m, _], [_, k, n]) = (a.dims(), b.dims());
    let (mut pieces, mut begin) = (Vec::new(), 0);
    for (group, &end) in ends.iter().enumerate() {
        if end > begin {
            let expert = b.clone().slice([group..group + 1, 0..k, 0..n]).reshape([k, n]);
            pieces.push(a.clone().slice([begin..end, 0..k]).matmul(expert));
        }
        begin = end;
    }
    if begin < m {
        pieces.push(Tensor::zeros([m - begin, n], &a.device()));
    }
    Tensor::cat(pieces, 0)
}

fn check_groups(ends: &[usize], after: (Option<Activation>, fn(Tensor<2>) -> Tensor<2>), device: &Device) {
    setup();
    let run = |own: bool| {
        let a = numbers([12, 7], device).require_grad();
        let b = numbers([ends.len(), 5, 7], device).require_grad();
        let experts = b.clone().swap_dims(1, 2); // as a linear layer has its weights
        let y = match own {
            true => grouped_gemm(a.clone(), experts, ends, after.0, &estimate()),
            false => after.1(in_groups(&a, &experts, ends)),
        };
        let weights = numbers(y.dims(), device);
        let grads = (y.clone() * weights).sum().backward();
        (y.detach(), a.grad(&grads).unwrap(), b.grad(&grads).unwrap())
    };
    let (mine, theirs) = (run(true), run(false));
    assert_near(mine.0, theirs.0, 1e-4);
    assert_near(mine.1, theirs.1, 1e-4);
    assert_near(mine.2, theirs.2, 1e-4);
}

#[test]
fn groups() {
    let device = Device::flex().autodiff();
    for ends in [&[3, 3, 8, 12][..], &[0, 5], &[12], &[2, 2, 2, 9]] {
        check_groups(ends, (None, |y| y), &device);
        check_groups(ends, (Some(Activation::Silu), activation::silu), &device);
    }
    setup();
    let (a, none) = (numbers([4, 3], &Device::flex()), Tensor::<3>::zeros([2, 3, 5], &Device::flex()));
    assert_eq!(grouped_gemm(a.clone(), none, &[0, 0], None, &estimate()).into_data().iter::<f32>().sum::<f32>(), 0.0);
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)]
#[test]
fn groups_through_another_backend() {
    for ends in [&[3, 3, 8, 12][..], &[0, 5], &[12], &[2, 2, 2, 9]] {
        check_groups(ends, (Some(Activation::Silu), activation::silu), &Device::ndarray().autodiff());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    setup();
    let device = Device::flex();
    let refused = |run: &dyn Fn() -> Tensor<2>, part: &str| {
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it must be refused");
        let message = payload.downcast_ref::<String>().unwrap();
        assert!(message.contains(part), "{message}");
    };
    let a = || numbers([4, 3], &device);
    refused(&|| product(a(), a()), "b must have 3 rows");
    refused(&|| product(a(), numbers([3, 5], &device).cast(DType::F64)), "b of F64");
    let bias = || Some(numbers([4], &device));
    refused(&|| gemm_with(a(), numbers([3, 5], &device), bias(), None, &estimate()), "a bias of 4 for 5 columns");
    let budget = estimate().with_budget(Some(-1.0));
    refused(&|| gemm(a(), numbers([3, 5], &device), &budget), "budget");
    let experts = || numbers([2, 3, 5], &device);
    refused(&|| grouped_gemm(a(), experts(), &[3, 2], None, &estimate()), "ends[1] = 2");
    refused(&|| grouped_gemm(a(), experts(), &[3, 5], None, &estimate()), "the last group ends at 5, the axis at 4");
    refused(&|| grouped_gemm(a(), experts(), &[1, 2, 4], None, &estimate()), "there are 3 groups");
    let batches = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        product(numbers([2, 4, 3], &device), numbers([3, 3, 5], &device))
    }));
    assert!(batches.is_err());
}
