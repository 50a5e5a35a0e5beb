//! Attention on each backend.
mod autodiff;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod fallback;
mod flex;
mod problem;

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // as in the module above
mod ndarray {
    impl crate::attention::AttentionOps for burn::backend::NdArray {}
}
#[cfg(feature = "tch")]
mod libtorch {
    impl crate::attention::AttentionOps for burn::backend::LibTorch {}
}
