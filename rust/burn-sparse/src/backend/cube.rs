//! CubeCL: on CUDA the library's kernels, on other runtimes standard operations.
use super::fallback;
use crate::dense::{DenseProduct, GemmOps};
use crate::ops::{BsrOps, Product};
use burn_cubecl::CubeBackend;
use burn_cubecl::tensor::CubeTensor;

impl BsrOps for CubeBackend {
    fn bsr_matmul(values: CubeTensor, input: CubeTensor, product: Product) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let Some(index) = super::cuda::index_of(&input) {
            return super::cuda::matmul(index, values, input, None, &product);
        }
        fallback::matmul::<Self>(values, input, None, product)
    }

    fn bsr_linear(values: CubeTensor, input: CubeTensor, bias: CubeTensor, product: Product) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let Some(index) = super::cuda::index_of(&input) {
            return super::cuda::matmul(index, values, input, Some(bias), &product);
        }
        fallback::matmul::<Self>(values, input, Some(bias), product)
    }

    fn bsr_values_grad(grad: CubeTensor, input: CubeTensor, product: Product) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let Some(index) = super::cuda::index_of(&input) {
            return super::cuda::values_grad(index, grad, input, &product);
        }
        fallback::values_grad::<Self>(grad, input, product)
    }
}

impl GemmOps for CubeBackend {
    fn gemm(a: CubeTensor, b: CubeTensor, product: DenseProduct) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let (Some(index), None) = (super::cuda::index_of(&a), &product.ends) {
            return super::cuda::gemm(index, a, b, None, &product);
        }
        fallback::gemm::<Self>(a, b, None, product)
    }

    fn gemm_bias(a: CubeTensor, b: CubeTensor, bias: CubeTensor, product: DenseProduct) -> CubeTensor {
        #[cfg(feature = "cuda")]
        if let Some(index) = super::cuda::index_of(&a) {
            return super::cuda::gemm(index, a, b, Some(bias), &product);
        }
        fallback::gemm::<Self>(a, b, Some(bias), product)
    }
}
