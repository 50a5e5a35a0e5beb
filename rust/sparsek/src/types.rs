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
    impl Sealed for super::F8E4M3 {}
    impl Sealed for super::F8E5M2 {}
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
    /// float8 with three bits behind the point and no infinity (OFP8's E4M3): [`struct@F8E4M3`].
    F8E4M3,
    /// float8 with two bits behind the point (OFP8's E5M2): [`struct@F8E5M2`].
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

macro_rules! eight_bits {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The number with these bits.
            ///
            /// ```
            #[doc = concat!("assert_eq!(sparsek::", stringify!($name), "::from_bits(0x38).to_bits(), 0x38);")]
            /// ```
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// Its bits.
            ///
            /// ```
            #[doc = concat!("assert_eq!(sparsek::", stringify!($name), "::default().to_bits(), 0);")]
            /// ```
            pub const fn to_bits(self) -> u8 {
                self.0
            }
        }

        impl Element for $name {
            const DTYPE: Dtype = Dtype::$name;
            type Sum = f32;
        }
        impl Product<f32> for $name {}
        impl Product<f16> for $name {}
        impl Product<bf16> for $name {}
    };
}

eight_bits! {
    /// A float of a sign, four bits of exponent and three behind the point: OFP8's E4M3, up to 448, without infinity. It is its bits: two
    /// are equal where these are, and [`Matrix::cast`](crate::Matrix::cast) makes some of other numbers.
    ///
    /// ```
    /// let one = sparsek::F8E4M3::from_bits(0x38);
    /// # let _ = one;
    /// ```
    F8E4M3
}
eight_bits! {
    /// A float of a sign, five bits of exponent and two behind the point: OFP8's E5M2, up to 57344. It is its bits, as
    /// [`struct@F8E4M3`] is.
    ///
    /// ```
    /// let one = sparsek::F8E5M2::from_bits(0x3c);
    /// # let _ = one;
    /// ```
    F8E5M2
}

/// A type of matrix elements: `f32`, `f64`, [`half::f16`], [`half::bf16`], and of eight bits [`struct@F8E4M3`], [`struct@F8E5M2`] and `i8`.
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

/// Element types whose products may be written as `D`: each as itself, 16-bit ones as `f32`, too; those of eight bits as `f32`,
/// [`half::f16`] and [`half::bf16`], and [`Scale`] says what their scale factors cover.
///
/// ```
/// fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<half::f16, half::f16>();
/// products::<half::f16, f32>();
/// products::<i8, f32>();
/// ```
///
/// ```compile_fail
/// # fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<f32, f64>();
/// ```
///
/// ```compile_fail
/// # fn products<A: sparsek::Product<D>, D: sparsek::Element>() {}
/// products::<i8, i8>();
/// ```
pub trait Product<D: Element>: Element {}
impl Product<f32> for f32 {}
impl Product<f64> for f64 {}
impl Product<f16> for f16 {}
impl Product<f32> for f16 {}
impl Product<bf16> for bf16 {}
impl Product<f32> for bf16 {}
impl Product<f32> for i8 {}
impl Product<f16> for i8 {}
impl Product<bf16> for i8 {}

/// The tile of a matrix that one scale factor covers, for matrices of eight-bit elements: each element stands for itself times the
/// factor that covers it. Tiles are of A or B as the product takes them, after a transposition of A; one that the edge cuts has a factor
/// of its own.
///
/// ```
/// # use sparsek::{Context, Gemm, GemmArgs, Scale, TuneOptions};
/// # let context = Context::builder().store_in_memory().build()?;
/// // A is [[100, 0], [1, 1]], its rows times 0.5 and 3; B is [[2], [4]] times 10.
/// let problem = Gemm::new(2, 1, 2).scale_a(Scale::PerRow).scale_b(Scale::Whole);
/// let mut d = [0f32; 2];
/// let args = GemmArgs::new(&[100i8, 0, 1, 1], &[2, 4], &mut d).scale_a(&[0.5, 3.0]).scale_b(&[10.0]);
/// context.gemm(&problem, args, &TuneOptions::new().estimate())?;
/// assert_eq!(d, [1000., 180.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scale {
    /// One factor for the whole matrix.
    Whole,
    /// One for each row.
    PerRow,
    /// One for each column.
    PerCol,
    /// One for each tile of so many rows and columns.
    Tile(usize, usize),
    /// One for each stored block, of the sparse A of [`Spmm`](crate::Spmm) alone.
    PerBlock,
}

impl Scale {
    pub(crate) fn raw(self) -> sys::spk_scale {
        let (rows, cols) = match self {
            Scale::Whole => (sys::SPK_SCALE_ALL, sys::SPK_SCALE_ALL),
            Scale::PerRow => (1, sys::SPK_SCALE_ALL),
            Scale::PerCol => (sys::SPK_SCALE_ALL, 1),
            Scale::Tile(0, 0) => (0, 1), // to be refused: zeros alone say that there are no factors
            Scale::Tile(rows, cols) => (size(rows), size(cols)),
            Scale::PerBlock => (sys::SPK_SCALE_BLOCK, sys::SPK_SCALE_BLOCK),
        };
        sys::spk_scale { rows, cols }
    }
}

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

impl Bias {
    pub(crate) fn raw(self) -> sys::spk_bias {
        match self {
            Bias::PerRow => sys::SPK_BIAS_PER_ROW,
            Bias::PerCol => sys::SPK_BIAS_PER_COL,
        }
    }
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
