//! What the tests of products share.
use half::{bf16, f16};
use sparsek::{Context, Element, TuneOptions};

pub trait Number: Element {
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    const TOLERANCE: f64;
}
macro_rules! number {
    ($type:ty, $tolerance:expr, $of:expr, $wide:expr) => {
        impl Number for $type {
            fn of(value: f64) -> Self {
                $of(value)
            }
            fn wide(self) -> f64 {
                $wide(self)
            }
            const TOLERANCE: f64 = $tolerance;
        }
    };
}
number!(f32, 1e-4, |v| v as f32, f64::from);
number!(f64, 1e-12, |v| v, |v| v);
number!(f16, 2e-2, f16::from_f64, f16::to_f64);
number!(bf16, 1e-1, bf16::from_f64, bf16::to_f64);

/// Small numbers that repeat late.
pub fn numbers<T: Number>(count: usize, seed: usize) -> Vec<T> {
    (0..count).map(|i| T::of((((i + seed) * 7919) % 1009) as f64 / 1009.0 - 0.5)).collect()
}

pub fn context() -> Context {
    Context::builder().store_in_memory().threads(2).build().unwrap()
}

pub fn estimate() -> TuneOptions {
    TuneOptions::new().estimate()
}

#[track_caller]
pub fn assert_near<T: Number>(got: impl IntoIterator<Item = T>, exact: &[f64]) {
    let got: Vec<T> = got.into_iter().collect();
    assert_eq!(got.len(), exact.len());
    for (i, (&got, &exact)) in got.iter().zip(exact).enumerate() {
        assert!(
            (got.wide() - exact).abs() <= T::TOLERANCE * (1.0 + exact.abs()),
            "element {i}: {got:?}, exact {exact}"
        );
    }
}
