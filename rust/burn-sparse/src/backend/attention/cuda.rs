//! CUDA: the library's kernels on CubeCL's memory, as products have it. Never run, see the crate's documentation.
use super::fallback;
use super::problem::{self, Rows, shapes};
use crate::attention::{Attention, Sizes};
use crate::backend::cuda::{Operands, tight};
use crate::context::device_context;
use crate::error::{Error, Result};
use burn::backend::TensorMetadata;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{DType, Shape, bf16, f16};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use sparsek::{AttentionBackwardPointers, AttentionPointers};
use std::ptr::null_mut;

/// O and LSE; the latter is not computed unless it is wanted.
pub fn forward(
    index: usize,
    inputs: [CubeTensor; 3],
    attention: &Attention,
    want_lse: bool,
) -> (CubeTensor, CubeTensor) {
    let made = match inputs[0].dtype {
        DType::F32 => typed_forward::<f32>(index, inputs, attention, want_lse),
        DType::F64 => typed_forward::<f64>(index, inputs, attention, want_lse),
        DType::F16 => typed_forward::<f16>(index, inputs, attention, want_lse),
        DType::BF16 => typed_forward::<bf16>(index, inputs, attention, want_lse),
        other => Err(Error::Dtype(other)),
    };
    made.unwrap_or_else(|why| panic!("attention: {why}"))
}

/// The gradients by Q, K and V.
pub fn backward(
    index: usize,
    inputs: [CubeTensor; 3],
    results: [CubeTensor; 2],
    grads: [CubeTensor; 2],
    attention: &Attention,
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let made = match inputs[0].dtype {
        DType::F32 => typed_backward::<f32>(index, inputs, results, grads, attention),
        DType::F64 => typed_backward::<f64>(index, inputs, results, grads, attention),
        DType::F16 => typed_backward::<f16>(index, inputs, results, grads, attention),
        DType::BF16 => typed_backward::<bf16>(index, inputs, results, grads, attention),
        other => Err(Error::Dtype(other)),
    };
    made.unwrap_or_else(|why| panic!("gradients of attention: {why}"))
}

fn empty(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

fn zeros(like: &CubeTensor, shape: Shape) -> CubeTensor {
    CubeBackend::float_zeros(shape, &like.device, like.dtype.into())
}

/// The inputs without gaps, and the library's problem.
fn prepared(
    index: usize,
    [q, k, v]: [CubeTensor; 3],
    attention: &Attention,
) -> Result<([CubeTensor; 3], Sizes, sparsek::Attention)> {
    let dtype = q.dtype;
    let inputs = [into_contiguous(q), tight("k", k, dtype)?, tight("v", v, dtype)?];
    let sizes = attention.sizes(&inputs[0].shape(), &inputs[1].shape(), &inputs[2].shape())?;
    let mask = attention.mask.as_ref().map(|mask| mask.pattern.on_device(index)).transpose()?;
    let problem = problem::attention(attention, &sizes, mask.as_ref(), [Rows::tight(); 3]);
    Ok((inputs, sizes, problem))
}

fn typed_forward<T: sparsek::Element>(
    index: usize,
    inputs: [CubeTensor; 3],
    attention: &Attention,
    want_lse: bool,
) -> Result<(CubeTensor, CubeTensor)> {
    let ([q, k, v], sizes, problem) = prepared(index, inputs, attention)?;
    let options = attention.tuning.options()?;
    let (shape, shape_lse) = shapes(&sizes);
    let lse = empty(&q, shape_lse, fallback::sum_type(q.dtype));
    let o = empty(&q, shape, q.dtype);
    if o.shape().num_elements() == 0 {
        return Ok((o, lse));
    }
    let problem = if want_lse { problem.want_lse() } else { problem };
    let operands = Operands::of([&q, &k, &v, &o, &lse].map(Some), &q.device)?;
    let [from_q, from_k, from_v, to_o, to_lse] = operands.pointers;
    let mut pointers = AttentionPointers::<T>::new(from_q.cast(), from_k.cast(), from_v.cast(), to_o.cast());
    pointers.lse = if want_lse { to_lse.cast() } else { null_mut() };
    (pointers.scale, pointers.softcap) = (attention.scale, attention.softcap.unwrap_or(0.0));
    let context = device_context(index)?;
    // SAFETY: all are tight arrays of the problem's sizes on this device, nobody else writes them, and they are held until the library's stream is done.
    unsafe {
        context.attention_pointers(&problem, &pointers, null_mut(), &options)?;
        context.synchronize(null_mut())?;
    }
    drop(operands.held);
    Ok((o, lse))
}

fn typed_backward<T: sparsek::Element>(
    index: usize,
    inputs: [CubeTensor; 3],
    [o, lse]: [CubeTensor; 2],
    [grad_o, grad_lse]: [CubeTensor; 2],
    attention: &Attention,
) -> Result<(CubeTensor, CubeTensor, CubeTensor)> {
    let ([q, k, v], sizes, problem) = prepared(index, inputs, attention)?;
    let (dtype, options) = (q.dtype, attention.tuning.options()?);
    let (o, grad_o) = (tight("the result", o, dtype)?, tight("the gradient by the result", grad_o, dtype)?);
    let wide = fallback::sum_type(dtype);
    let (lse, grad_lse) = (tight("LSE", lse, wide)?, tight("the gradient by LSE", grad_lse, wide)?);
    if o.shape().num_elements() == 0 || sizes.keys == 0 {
        return Ok((zeros(&q, q.shape()), zeros(&k, k.shape()), zeros(&v, v.shape())));
    }
    let problem = problem::gradients(attention, &problem, Rows::tight());
    let [to_q, to_k, to_v] = [&q, &k, &v].map(|input| empty(input, input.shape(), dtype));
    let tensors = [&q, &k, &v, &o, &lse, &grad_o, &grad_lse, &to_q, &to_k, &to_v];
    let operands = Operands::of(tensors.map(Some), &q.device)?;
    let [from_q, from_k, from_v, from_o, from_lse, by_o, by_lse, grad_q, grad_k, grad_v] = operands.pointers;
    let mut forward = AttentionPointers::<T>::new(from_q.cast(), from_k.cast(), from_v.cast(), from_o.cast());
    forward.lse = from_lse.cast();
    (forward.scale, forward.softcap) = (attention.scale, attention.softcap.unwrap_or(0.0));
    let grads = [grad_q.cast(), grad_k.cast(), grad_v.cast()];
    let mut pointers = AttentionBackwardPointers::<T>::of(&forward, by_o.cast(), grads);
    pointers.grad_lse = by_lse.cast();
    let context = device_context(index)?;
    // SAFETY: as above.
    unsafe {
        context.attention_backward_pointers(&problem, &pointers, null_mut(), &options)?;
        context.synchronize(null_mut())?;
    }
    drop(operands.held);
    Ok((to_q, to_k, to_v))
}
