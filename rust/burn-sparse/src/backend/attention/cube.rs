//! CubeCL: on CUDA the library's kernels, on other runtimes standard operations.
use super::fallback;
use crate::attention::{Attention, AttentionOps};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

impl AttentionOps for CubeBackend {
    fn sparse_attention(q: CubeTensor, k: CubeTensor, v: CubeTensor, attention: Attention) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let Some(index) = crate::backend::cuda::index_of(&q) {
            return super::cuda::forward(index, [q, k, v], &attention, false).0;
        }
        fallback::forward::<Self>(q, k, v, &attention).0
    }

    fn sparse_attention_lse(
        q: CubeTensor,
        k: CubeTensor,
        v: CubeTensor,
        attention: Attention,
    ) -> (CubeTensor, CubeTensor) {
        #[cfg(feature = "cuda")]
        if let Some(index) = crate::backend::cuda::index_of(&q) {
            return super::cuda::forward(index, [q, k, v], &attention, true);
        }
        fallback::forward::<Self>(q, k, v, &attention)
    }

    fn sparse_attention_backward(
        q: CubeTensor,
        k: CubeTensor,
        v: CubeTensor,
        o: CubeTensor,
        lse: CubeTensor,
        grad_o: CubeTensor,
        grad_lse: CubeTensor,
        attention: Attention,
    ) -> (CubeTensor, CubeTensor, CubeTensor) {
        #[cfg(feature = "cuda")]
        if let Some(index) = crate::backend::cuda::index_of(&q) {
            return super::cuda::backward(index, [q, k, v], [o, lse], [grad_o, grad_lse], &attention);
        }
        fallback::backward::<Self>([q, k, v], [o, lse], [grad_o, grad_lse], &attention)
    }
}
