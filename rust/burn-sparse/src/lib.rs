//! Block-sparse tensors and layers for [Burn](burn), multiplied by the kernel that measured fastest on this machine.
//!
//! A [`BsrTensor`] is a matrix of which only some blocks are stored. [`BsrGemm::auto_tuned`] multiplies it in place of Burn's
//! dense product; a [`SparseLinear`] learns one. The first products of a class of problems are made by a few
//! kernels in turn, until the fastest is known ([`TuneConfig`] may say otherwise), and the decision stays in a store on disk.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_sparse::{BsrGemm, BsrTensor, TuneConfig};
//!
//! let device = Device::flex();
//! // 4 x 6 in blocks of 2 x 3, of which two of four are stored.
//! let a = BsrTensor::from_triplets([4, 6], [2, 3], &[0, 1, 3], &[0, 2, 5], &[1f32, 2., 3.], &device)?;
//! let x = Tensor::<2>::from_data([[1f32], [2.], [3.], [4.], [5.], [6.]], &device);
//! let config = TuneConfig::new().with_budget(Some(0.2));
//! let y = BsrGemm::auto_tuned(&a, x, &config);
//! assert_eq!(y.into_data().try_into_vec::<f32>().unwrap(), [1., 6., 0., 18.]);
//! # Ok::<(), burn_sparse::Error>(())
//! ```
//!
//! [`gemm`] multiplies dense tensors in the same way, in place of Burn's own product. [`attention`] is softmax(scale Q K^T) V under a
//! mask of blocks, causality or a window, and keeps no matrix of queries x keys for its gradients.
//!
//! Layers are modules like Burn's own: optimizers train them, records hold them, pattern included.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_sparse::{Activation, SparseLinearConfig};
//! # use burn_sparse::{Effort, TuneConfig};
//!
//! let config = SparseLinearConfig::new(512, 256).with_block([32, 32]).with_density(0.25).with_activation(Some(Activation::Relu));
//! # let config = config.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
//! let layer = config.init(&Device::flex());
//! assert_eq!(layer.forward(Tensor::<2>::ones([8, 512], &Device::flex())).dims(), [8, 256]);
//! ```
//!
//! # Backends
//!
//! - **Flex** is what the library's kernels run on: they read and write its memory. Inputs are not copied where a leading
//!   dimension and a stride from item to item describe them: contiguous, transposed, sliced, expanded over leading dimensions.
//!   Others (flipped, every second column) are copied by Flex. Elements: f32, f64, f16, bf16; values and inputs of one type.
//! - **Autodiff** on any of them: gradients of values, input and bias. Second derivatives are refused.
//! - **CUDA** (feature `cuda`): the library's kernels on CubeCL's memory, [see there](#cuda).
//! - Others run the default bodies of [`BsrOps`], [`GemmOps`] and [`AttentionOps`]: a sparse matrix made dense, and multiplied by
//!   Burn; attention with the scores of all pairs. Right, and no faster. Each wants its feature of this crate: `ndarray`, `tch`,
//!   `wgpu`, `rocm`, `cpu`. A backend whose feature is off panics: Burn dispatches to listed backends alone.
//!
//! # CUDA
//!
//! This was compiled, and never run: it cannot be linked without a download of LLVM that its dependencies make. A product waits
//! for the device twice: CubeCL's stream cannot be had, so CubeCL is synchronised first, and the library's own stream before
//! the product is handed back. The feature takes `fusion` along. A product cannot be captured in a graph, as that refuses
//! synchronisation.
//!
//! # Threads
//!
//! All types are `Send` and `Sync` as Burn's are, and products of one matrix may run in many threads.

mod activation;
mod attention;
mod backend;
mod context;
mod dense;
mod error;
mod gemm;
mod linear;
mod ops;
mod param;
mod pattern;
mod prune;
mod tensor;
mod tuning;

pub use activation::Activation;
pub use attention::{Attention, AttentionOps, BlockMask, attention, attention_lse};
pub use burn;
pub use context::{host_context, set_host_context};
pub use dense::{DenseProduct, GemmOps, gemm, gemm_with, grouped_gemm};
pub use error::{Error, Result};
pub use gemm::BsrGemm;
pub use linear::{SparseLinear, SparseLinearConfig};
pub use ops::{BsrOps, Product, Side};
pub use param::BsrParam;
pub use pattern::BsrPattern;
pub use prune::{MaybeSparse, PruneConfig, Pruned, prune};
pub use sparsek;
pub use tensor::BsrTensor;
pub use tuning::{Effort, TuneConfig};

/// The README's program compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
