//! Errors.
use burn::tensor::DType;
use std::fmt;

/// A failure that is no programming error of the caller's caller: a file, a shape, a share.
///
/// ```
/// use burn_sparse::{BsrTensor, burn::tensor::Device};
/// let error = BsrTensor::from_file("no-such-file.mtx", [32, 32], &Device::flex()).unwrap_err();
/// assert!(error.to_string().contains("no-such-file.mtx"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The library refused; its message names the argument, the value and the limit.
    Sparsek(sparsek::Error),
    /// An argument of this crate is wrong.
    Argument(String),
    /// Elements of this type are not multiplied.
    Dtype(DType),
}

/// What functions that can fail return.
///
/// ```
/// use burn_sparse::{BsrTensor, burn::tensor::Device};
/// fn blocks() -> burn_sparse::Result<usize> {
///     Ok(BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[1f32], &Device::flex())?.nnzb())
/// }
/// assert_eq!(blocks(), Ok(1));
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<sparsek::Error> for Error {
    fn from(error: sparsek::Error) -> Error {
        Error::Sparsek(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sparsek(error) => error.fmt(f),
            Error::Argument(message) => f.write_str(message),
            Error::Dtype(dtype) => write!(f, "{dtype:?} is not multiplied: only f32, f64, f16 and bf16 are"),
        }
    }
}

impl std::error::Error for Error {}
