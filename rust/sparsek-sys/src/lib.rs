//! Bindings to the C library [sparsek](https://docs.rs/sparsek): every function, type and constant of `sparsek/sparsek.h`,
//! under its C name. The headers describe them; they come with this crate, in `sparsek/include`. What is `static inline` there (the
//! calls of one operation, `spk_plan_create_spmm` and so on, and `spk_spmm_args_make`) is not here: take `spk_plan_create`,
//! `spk_plan_run` and `spk_compute`. The crate `sparsek` is the safe interface.
//!
//! ```
//! use std::ffi::CStr;
//! // SAFETY: it takes nothing and returns a static string.
//! let version = unsafe { CStr::from_ptr(sparsek_sys::spk_version()) };
//! assert_eq!(version.to_str(), Ok("0.2.0"));
//! ```
//!
//! # Where the library comes from
//!
//! 1. `SPARSEK_ROOT`, the prefix of an installation;
//! 2. else what `pkg-config` finds, of the same minor version;
//! 3. else the C sources in this crate, built with CMake (3.25 or newer) and GCC and linked statically. They need SQLite,
//!    Jansson and zlib with their headers (`libsqlite3-dev libjansson-dev zlib1g-dev`). `SPARSEK_SYSTEM=1` in the environment forbids
//!    this step.
//!
//! Running on a GPU wants the helper `sparsek-prover` too, which only an installation has: of the bundled library those
//! candidates run there that need no proving, or name the helper in `SPARSEK_PROVER`.
#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]

#[rustfmt::skip]
mod bindings;
pub use bindings::*;

/// What a batch's input that all items share has as its stride.
pub const SPK_STRIDE_SHARED: i64 = -1;

/// A side of a tile of scale factors: all that there are along that axis.
pub const SPK_SCALE_ALL: i64 = -1;

/// Both sides of a tile of scale factors: a factor for each stored block of SpMM's A.
pub const SPK_SCALE_BLOCK: i64 = -2;

/// The version of the headers as one number, to compare with [`spk_version_number`], the library's.
///
/// ```
/// // SAFETY: it takes nothing.
/// assert!(unsafe { sparsek_sys::spk_version_number() } >= sparsek_sys::SPK_VERSION_NUMBER);
/// ```
pub const SPK_VERSION_NUMBER: std::ffi::c_int =
    (SPK_VERSION_MAJOR * 10000 + SPK_VERSION_MINOR * 100 + SPK_VERSION_PATCH) as std::ffi::c_int;

/// The README's program compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
