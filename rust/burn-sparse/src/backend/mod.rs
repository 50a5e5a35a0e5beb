//! The operations on each backend.
pub(crate) mod attention;
mod autodiff;
#[cfg(feature = "cube")]
mod cube;
#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod fallback;
mod flex;
mod problem;
mod strided;

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // Burn means to drop it; while it is there, it works
mod ndarray {
    impl crate::ops::BsrOps for burn::backend::NdArray {}
    impl crate::dense::GemmOps for burn::backend::NdArray {}
}
#[cfg(feature = "tch")]
mod libtorch {
    impl crate::ops::BsrOps for burn::backend::LibTorch {}
    impl crate::dense::GemmOps for burn::backend::LibTorch {}
}
