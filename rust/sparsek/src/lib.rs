//! Block-sparse times dense matrix multiplication, chosen by measurement.
//!
//! A [`Pattern`] says where the stored blocks of a matrix lie. Its values are a slice, so that one pattern serves many: a
//! network's weights as they change, or a batch. [`Pattern::matmul`] multiplies by a dense matrix with the kernel that
//! measured fastest on this machine for this class of problems; the first calls of a class measure while they compute
//! ([`Tuning`]), and the decision stays in a store on disk.
//!
//! ```
//! use sparsek::{Activation, Context, Pattern, Spmm, SpmmArgs, TuneOptions};
//!
//! // A is 4 x 6 in blocks of 2 x 3: block row 0 holds blocks 0 and 1, block row 1 holds block 1 only.
//! let context = Context::builder().store_in_memory().build()?;
//! let pattern = Pattern::new(&context, (4, 6), (2, 3), &[0, 2, 3], &[0, 1, 1])?;
//! let values = [1., 2., 3., 4., 5., 6., 1., 0., 0., 0., 1., 0., 2., 0., 0., 0., 0., 2f32];
//! let b = [1., 1., 1., 2., 1., 3., 1., 4., 1., 5., 1., 6f32]; // 6 x 2
//! let mut d = [0f32; 4 * 2];
//!
//! let problem = Spmm::new(2).activation(Activation::Relu);
//! pattern.matmul(&problem, SpmmArgs::new(&values, &b, &mut d), &TuneOptions::new().estimate())?;
//! assert_eq!(d, [7., 18., 16., 37., 2., 8., 2., 12.]);
//! # Ok::<(), sparsek::Error>(())
//! ```
//!
//! [`Pattern::plan_spmm`] binds a problem once and for all, for many runs; [`Pattern::plan_sddmm`] is the product of two dense
//! matrices at the stored blocks, the gradient of the values. [`Context::gemm`] and [`Context::plan_gemm`] multiply dense
//! matrices, in groups, too. [`Context::attention`] and [`Context::plan_attention`] are softmax(scale Q K^T) V, with a
//! [`Pattern`] as a mask of blocks; [`Context::attention_backward`] gives its gradients. [`Matrix`] reads, writes, converts,
//! prunes and generates. [`Pattern::tune_spmm`] and [`Pattern::explain_spmm`] give the evidence as a [`Report`], which serde
//! writes.
//!
//! # Threads
//!
//! [`Context`], [`Pattern`], [`Matrix`] and plans are `Send` and `Sync`: the library allows their use from many threads at
//! once, and a plan that a second thread runs meanwhile takes a workspace of its own.
//!
//! # Memory
//!
//! Safe functions take slices and compute on the CPU; lengths are checked against the problem. For GPUs there are functions
//! that take pointers and a stream, which are unsafe, as nobody can check them; [`DeviceBuffer`] is memory of the device.
//!
//! # Features
//!
//! `rayon`: `ContextBuilder::rayon` runs kernels on the threads of a pool. Where the C library comes from is told by [`sys`].

mod attention;
mod call;
mod context;
mod device_buffer;
mod error;
mod extent;
mod gemm;
mod matrix;
mod operands;
#[cfg(feature = "rayon")]
mod parallel;
mod pattern;
mod plan;
mod report;
mod sddmm;
mod spmm;
mod tune;
mod types;

pub use attention::{Attention, AttentionArgs, AttentionPlan, AttentionPointers, Diagonal};
pub use attention::{AttentionBackward, AttentionBackwardArgs, AttentionBackwardPlan, AttentionBackwardPointers};
pub use context::{Context, ContextBuilder, Device, LogLevel};
pub use device_buffer::DeviceBuffer;
pub use error::{Error, ErrorKind, Result};
pub use gemm::{Gemm, GemmArgs, GemmPlan, GemmPointers, GroupAxis};
pub use half;
pub use matrix::{Format, Generate, Matrix, Norm};
pub use pattern::{Pattern, PatternInfo};
pub use plan::PlanInfo;
pub use report::{Candidate, CandidateStatus, KernelKind, Provisional, Report};
pub use sddmm::{Sddmm, SddmmArgs, SddmmPlan, SddmmPointers};
pub use sparsek_sys as sys;
pub use spmm::{Spmm, SpmmArgs, SpmmPlan, SpmmPointers};
pub use tune::{Cancel, Race, TuneOptions, Tuning};
pub use types::{
    Activation, Bias, Dtype, Element, F8E4M3, F8E5M2, Index, Layout, Product, Scale, version, version_number,
};

/// The README's program compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
