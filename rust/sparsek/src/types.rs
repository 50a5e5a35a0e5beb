//! Element types and small enumerations.
use crate::sys;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i8 {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// The type of matrix elements, by name.
///
/// ```
/// use sparsek::{Dtype, Element};
/// assert_eq!(<half::bf16 as Element>::DTYPE, Dtype::Bf16);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dtype {
    /// float32
    F32,
    /// float64
    F64,
    /// float16
    F16,
    /// bfloat16
    Bf16,
    /// float8 with three bits behind the point and no infinity (OFP8's E4M3). No [`Element`] has it: a matrix of it is
    /// read after [`Matrix::cast`](crate::Matrix::cast).
    F8E4M3,
    /// float8 with two bits behind the point (OFP8's E5M2); likewise.
    F8E5M2,
    /// int8
    I8,
}

impl Dtype {
    pub(crate) fn raw(self) -> sys::spk_dtype {
        match self {
            Dtype::F32 => sys::SPK_F32,
            Dtype::F64 => sys::SPK_F64,
            Dtype::F16 => sys::SPK_F16,
            Dtype::Bf16 => sys::SPK_BF16,
            Dtype::F8E4M3 => sys::SPK_F8E4M3,
            Dtype::F8E5M2 => sys::SPK_F8E5M2,
            Dtype::I8 => sys::SPK_INT8,
        }
    }

    /// None: a type that only a newer library's matrices have.
    pub(crate) fn from_raw(raw: sys::spk_dtype) -> Option<Dtype> {
        use Dtype::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8};
        [F32, F64, F16, Bf16, F8E4M3, F8E5M2, I8].into_iter().find(|dtype| dtype.raw() == raw)
    }
}

/// A type of matrix elements: `f32`, `f64`, [`half::f16`], [`half::bf16`]; and `i8`, of which a
/// [`Matrix`](crate::Matrix) may be, but no [`Product`].
///
/// ```
/// fn bytes<T: sparsek::Element>() -> usize {
///     size_of::<T>()
/// }
/// assert_eq!(bytes::<half::f16>(), 2);
/// ```
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Its name.
    const DTYPE: Dtype;
    /// What its sums are kept in: `f64` for `f64`, else `f32`.
    type Sum: Element;
}
impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
    type Sum = f32;
}
impl Element for f64 {
    const DTYPE: Dtype = Dtype::F64;
    type Sum = f64;
}
impl Element for f16 {
    const DTYPE: Dtype = Dtype::F16;
    type Sum = f32;
}
impl Element for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
    type Sum = f32;
}
impl Element for i8 {
    const DTYPE: Dtype = Dtype::I8;
    type Sum = f32;
}

/// Element types whose products may be written as `D`: each as itself, 16-bit ones as `f32`, too. Not `i8`: what
/// multiplies eight-bit elements, and their scale factors, is in [`sys`] alone.
///
/// ```
/// fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<half::f16, half::f16>();
/// products::<half::f16, f32>();
/// ```
///
/// ```compile_fail
/// # fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<f32, f64>();
/// ```
///
/// ```compile_fail
/// # fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<i8, f32>();
/// ```
pub trait Product<D: Element>: Element {}
impl Product<f32> for f32 {}
impl Product<f64> for f64 {}
impl Product<f16> for f16 {}
impl Product<f32> for f16 {}
impl Product<bf16> for bf16 {}
impl Product<f32> for bf16 {}

/// A type of indices: `i32` and `i64`.
///
/// ```
/// fn indices<I: sparsek::Index>(_: &[I]) {}
/// indices(&[1i32, 2]);
/// ```
pub trait Index: sealed::Sealed + Copy + Send + Sync + 'static {
    #[doc(hidden)]
    const RAW: sys::spk_index_type;
}
impl Index for i32 {
    const RAW: sys::spk_index_type = sys::SPK_INDEX_I32;
}
impl Index for i64 {
    const RAW: sys::spk_index_type = sys::SPK_INDEX_I64;
}

/// The order of elements in an array.
///
/// ```
/// assert_eq!(sparsek::Layout::default(), sparsek::Layout::RowMajor);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// Rows lie one after the other.
    #[default]
    RowMajor,
    /// Columns lie one after the other.
    ColMajor,
}

impl Layout {
    pub(crate) fn raw(self) -> sys::spk_layout {
        match self {
            Layout::RowMajor => sys::SPK_ROW_MAJOR,
            Layout::ColMajor => sys::SPK_COL_MAJOR,
        }
    }
}

/// What is added to each row or column before the activation.
///
/// ```
/// let problem = sparsek::Spmm::new(16).bias(sparsek::Bias::PerRow);
/// # let _ = problem;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bias {
    /// One value for each row of the product.
    PerRow,
    /// One value for each column of the product.
    PerCol,
}

/// What is applied to each element of the product.
///
/// ```
/// let problem = sparsek::Spmm::new(16).activation(sparsek::Activation::Silu);
/// # let _ = problem;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x/2 (1 + erf(x / sqrt 2))
    GeluErf,
    /// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    GeluTanh,
    /// x / (1 + exp(-x))
    Silu,
}

impl Activation {
    pub(crate) fn raw(self) -> sys::spk_activation {
        match self {
            Activation::Relu => sys::SPK_ACT_RELU,
            Activation::GeluErf => sys::SPK_ACT_GELU_ERF,
            Activation::GeluTanh => sys::SPK_ACT_GELU_TANH,
            Activation::Silu => sys::SPK_ACT_SILU,
        }
    }
}

/// The version of the C library.
///
/// ```
/// assert!(sparsek::version().starts_with("0.2."));
/// ```
pub fn version() -> String {
    // SAFETY: a static string.
    unsafe { crate::error::text(sys::spk_version()) }
}

/// The version of the C library as one number, to compare: 200 is 0.2.0, 10302 is 1.3.2.
///
/// ```
/// assert!(sparsek::version_number() >= sparsek::sys::SPK_VERSION_NUMBER);
/// ```
pub fn version_number() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { sys::spk_version_number() }
}

/// A struct of the library with its size and zeros.
macro_rules! sized {
    ($name:ident) => {{
        // SAFETY: these are C structs of numbers, pointers and optional functions: zero is a value of each.
        let mut made: sparsek_sys::$name = unsafe { std::mem::zeroed() };
        made.struct_size = size_of::<sparsek_sys::$name>();
        made
    }};
    // What belongs to an operation says which.
    ($name:ident, $operation:ident) => {{
        let mut made = crate::types::sized!($name);
        made.operation = sparsek_sys::$operation;
        made
    }};
}
pub(crate) use sized;

/// A size for the library; what exceeds its type exceeds its limits, too.
pub(crate) fn size(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count from the library, which is never negative.
pub(crate) fn count(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}
