//! CUDA: the library's kernels on CubeCL's memory. Never run, see the crate's documentation.
//!
//! CubeCL's memory is of the device's primary context, which the library uses, too. Its stream cannot be had: it is synchronised before the library
//! starts, and the library's stream before CubeCL goes on.
use super::problem::{self, Sampled};
use super::strided::View;
use crate::context::device_context;
use crate::dense::DenseProduct;
use crate::error::{Error, Result};
use crate::ops::{Product, Side};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, Shape, bf16, f16};
use burn_cubecl::cubecl::cuda::CudaRuntime;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use cubecl_runtime::runtime::Runtime;
use sparsek::{GemmPointers, SddmmPointers, SpmmPointers};
use std::ptr::{null, null_mut};

type Server = <CudaRuntime as Runtime>::Server;

/// The device, where it is CUDA's and the library multiplies such elements.
pub fn index_of(tensor: &CubeTensor) -> Option<usize> {
    let multiplied = matches!(tensor.dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    match &tensor.device {
        CubeDevice::Cuda(device) if multiplied => Some(device.index),
        _ => None,
    }
}

/// A X or X A^T, with bias and activation.
pub fn matmul(
    index: usize,
    values: CubeTensor,
    input: CubeTensor,
    bias: Option<CubeTensor>,
    product: &Product,
) -> CubeTensor {
    let result = match input.dtype {
        DType::F32 => typed_matmul::<f32>(index, values, input, bias, product),
        DType::F64 => typed_matmul::<f64>(index, values, input, bias, product),
        DType::F16 => typed_matmul::<f16>(index, values, input, bias, product),
        DType::BF16 => typed_matmul::<bf16>(index, values, input, bias, product),
        other => Err(Error::Dtype(other)),
    };
    result.unwrap_or_else(|why| panic!("block-sparse product: {why}"))
}

/// A B of dense matrices, with bias and activation.
pub fn gemm(
    index: usize,
    a: CubeTensor,
    b: CubeTensor,
    bias: Option<CubeTensor>,
    product: &DenseProduct,
) -> CubeTensor {
    let result = match a.dtype {
        DType::F32 => typed_gemm::<f32>(index, a, b, bias, product),
        DType::F64 => typed_gemm::<f64>(index, a, b, bias, product),
        DType::F16 => typed_gemm::<f16>(index, a, b, bias, product),
        DType::BF16 => typed_gemm::<bf16>(index, a, b, bias, product),
        other => Err(Error::Dtype(other)),
    };
    result.unwrap_or_else(|why| panic!("dense product: {why}"))
}

/// The gradient by values.
pub fn values_grad(index: usize, grad: CubeTensor, input: CubeTensor, product: &Product) -> CubeTensor {
    let result = match input.dtype {
        DType::F32 => typed_values_grad::<f32>(index, grad, input, product),
        DType::F64 => typed_values_grad::<f64>(index, grad, input, product),
        DType::F16 => typed_values_grad::<f16>(index, grad, input, product),
        DType::BF16 => typed_values_grad::<bf16>(index, grad, input, product),
        other => Err(Error::Dtype(other)),
    };
    result.unwrap_or_else(|why| panic!("gradient of a block-sparse product by its values: {why}"))
}

fn typed_matmul<T: sparsek::Product<T>>(
    index: usize,
    values: CubeTensor,
    input: CubeTensor,
    bias: Option<CubeTensor>,
    product: &Product,
) -> Result<CubeTensor> {
    let shape = product.output_shape(&input.shape());
    let (values, input) = (tight("values", values, input.dtype)?, into_contiguous(input));
    let bias = bias.map(|bias| tight("bias", bias, input.dtype)).transpose()?;
    bias.iter().try_for_each(|bias| product.check_bias(&bias.shape()))?;
    let output = empty(&input, shape.clone());
    if shape.num_elements() == 0 {
        return Ok(output);
    }
    let spmm = problem::spmm(product, view(&input, product.side), &shape, bias.is_some());
    let pattern = product.pattern.on_device(index)?;
    let operands = Operands::of([Some(&values), Some(&input), bias.as_ref(), Some(&output)], &input.device)?;
    let [values, b, bias, d] = operands.pointers;
    let mut pointers = SpmmPointers::<T>::new(values.cast(), b.cast(), d.cast());
    pointers.bias = bias.cast();
    // SAFETY: all are tight arrays of the problem's sizes on this device, nobody else writes them, and they are held until the library's stream is done.
    unsafe {
        pattern.matmul_pointers(&spmm, &pointers, null_mut(), &product.tuning.options()?)?;
        pattern.context().synchronize(null_mut())?;
    }
    drop(operands.held);
    Ok(output)
}

fn typed_gemm<T: sparsek::Product<T>>(
    index: usize,
    a: CubeTensor,
    b: CubeTensor,
    bias: Option<CubeTensor>,
    product: &DenseProduct,
) -> Result<CubeTensor> {
    let shape = product.output_shape(&a.shape(), &b.shape());
    let k = a.shape()[shape.num_dims() - 1];
    let dtype = a.dtype;
    let (a, b) = (repeated(a, &shape), repeated(tight("b", b, dtype)?, &shape));
    let bias = bias.map(|bias| tight("bias", bias, dtype)).transpose()?;
    bias.iter().try_for_each(|bias| product.check_bias(&bias.shape(), &shape))?;
    let options = product.tuning.options()?;
    let output = empty(&a, shape.clone());
    if shape.num_elements() == 0 {
        return Ok(output);
    }
    let gemm = problem::gemm(product, (view(&a, Side::Left), view(&b, Side::Left), k), None, &shape, bias.is_some());
    let context = device_context(index)?;
    let operands = Operands::of([Some(&a), Some(&b), bias.as_ref(), Some(&output)], &a.device)?;
    let [from_a, from_b, bias, d] = operands.pointers;
    let mut pointers = GemmPointers::<T>::new(from_a.cast(), from_b.cast(), d.cast());
    pointers.bias = bias.cast();
    // SAFETY: as above.
    unsafe {
        context.gemm_pointers(&gemm, &pointers, null_mut(), &options)?;
        context.synchronize(null_mut())?;
    }
    drop(operands.held);
    Ok(output)
}

/// An operand of a dense product without gaps: one item for all, or one for each of the product's.
fn repeated(operand: CubeTensor, output: &Shape) -> CubeTensor {
    let own = operand.shape();
    if !problem::repeats_in_part(&own, output) {
        return into_contiguous(operand);
    }
    let (dims, mut whole) = (output.num_dims(), output.clone());
    (whole[dims - 2], whole[dims - 1]) = (own[dims - 2], own[dims - 1]);
    into_contiguous(<CubeBackend as burn::backend::ops::FloatTensorOps<CubeBackend>>::float_expand(operand, whole))
}

fn typed_values_grad<T: sparsek::Product<T>>(
    index: usize,
    grad: CubeTensor,
    input: CubeTensor,
    product: &Product,
) -> Result<CubeTensor> {
    let shape = input.shape();
    product.output_shape(&shape);
    let (grad, input) = (tight("the gradient", grad, input.dtype)?, into_contiguous(input));
    if shape.num_elements() == 0 || grad.shape().num_elements() == 0 || product.pattern.nnzb() == 0 {
        let none = Shape::from(product.pattern.values_shape());
        return Ok(<CubeBackend as burn::backend::ops::FloatTensorOps<CubeBackend>>::float_zeros(
            none,
            &input.device,
            input.dtype.into(),
        ));
    }
    let output = empty(&input, Shape::from(product.pattern.values_shape()));
    let Sampled { problem, x, y, x_is_grad } =
        problem::sddmm(product, view(&grad, product.side), view(&input, product.side), &shape);
    let pattern = product.pattern.on_device(index)?;
    let operands = Operands::of([Some(&grad), Some(&input), None, Some(&output)], &input.device)?;
    let [grad, input, _, d] = operands.pointers;
    let (x_base, y_base) = if x_is_grad { (grad, input) } else { (input, grad) };
    for item in 0..x.items.max(y.items) {
        let problem = if item == 0 { problem } else { problem.use_c() };
        let plan = pattern.plan_sddmm::<T, T>(&problem, &product.tuning.options()?)?;
        let at = |base: *mut T, view: View| base.wrapping_add(item * view.stride).cast_const();
        let mut pointers = SddmmPointers::<T>::new(at(x_base.cast(), x), at(y_base.cast(), y), d.cast());
        if item > 0 {
            (pointers.c, pointers.beta) = (d.cast_const().cast(), 1.0);
        }
        // SAFETY: as above.
        unsafe {
            plan.run_pointers(&pointers, null_mut())?;
            pattern.context().synchronize(null_mut())?;
        }
    }
    drop(operands.held);
    Ok(output)
}

/// Arrays on the device, after CubeCL's work on them is done. CubeCL keeps the memory while they are held.
pub(super) struct Operands<const N: usize> {
    pub pointers: [*mut u8; N],
    pub held: Vec<Box<dyn std::any::Any>>,
}

impl<const N: usize> Operands<N> {
    pub fn of(tensors: [Option<&CubeTensor>; N], device: &CubeDevice) -> Result<Operands<N>> {
        let refused = |why: &dyn std::fmt::Debug| Error::Argument(format!("CubeCL: {why:?}"));
        let mut operands = Operands { pointers: [null::<u8>().cast_mut(); N], held: Vec::new() };
        for (pointer, tensor) in operands.pointers.iter_mut().zip(tensors) {
            let Some(tensor) = tensor else { continue };
            let memory = tensor.client.get_resource::<Server>(tensor.handle.clone()).map_err(|why| refused(&why))?;
            *pointer = memory.resource().ptr as *mut u8;
            operands.held.push(Box::new(memory));
        }
        CubeBackend::sync(device).map_err(|why| refused(&why))?;
        Ok(operands)
    }
}

fn empty(like: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, like.dtype)
}

/// An operand of the input's type, without gaps.
pub(super) fn tight(name: &str, tensor: CubeTensor, dtype: DType) -> Result<CubeTensor> {
    if tensor.dtype != dtype {
        return Err(Error::Argument(format!("{name} of {:?} and an input of {dtype:?}", tensor.dtype)));
    }
    Ok(into_contiguous(tensor))
}

/// How a contiguous tensor lies.
fn view(tensor: &CubeTensor, side: Side) -> View {
    let shape = tensor.shape();
    let mut strides = vec![1isize; shape.num_dims()];
    for axis in (1..shape.num_dims()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    let found = match side {
        Side::Left => View::matrices(shape.as_slice(), &strides),
        Side::Right => View::rows(shape.as_slice(), &strides),
    };
    found.expect("a contiguous tensor has a leading dimension")
}
