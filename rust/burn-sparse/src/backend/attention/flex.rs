//! Flex: the library works on its memory. Q, K, V and the gradient by O are not copied where their rows are contiguous.
use super::problem::{self, Rows, shapes};
use crate::attention::{Attention, AttentionOps, Sizes};
use crate::backend::flex::{Number, contiguous, same_dtype, slice, tensor};
use crate::context::host_context;
use crate::error::{Error, Result};
use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, bf16, f16};
use sparsek::{AttentionArgs, AttentionBackwardArgs};

impl AttentionOps for Flex {
    fn sparse_attention(q: FlexTensor, k: FlexTensor, v: FlexTensor, attention: Attention) -> FlexTensor {
        forward(q, k, v, &attention, false).0
    }

    fn sparse_attention_lse(
        q: FlexTensor,
        k: FlexTensor,
        v: FlexTensor,
        attention: Attention,
    ) -> (FlexTensor, FlexTensor) {
        let (o, lse) = forward(q, k, v, &attention, true);
        (o, lse.expect("it was asked for"))
    }

    fn sparse_attention_backward(
        q: FlexTensor,
        k: FlexTensor,
        v: FlexTensor,
        o: FlexTensor,
        lse: FlexTensor,
        grad_o: FlexTensor,
        grad_lse: FlexTensor,
        attention: Attention,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let (inputs, results, grads) = ([q, k, v], [o, lse], [grad_o, grad_lse]);
        let made = match inputs[0].dtype() {
            DType::F32 => typed_backward::<f32>(inputs, results, grads, &attention),
            DType::F64 => typed_backward::<f64>(inputs, results, grads, &attention),
            DType::F16 => typed_backward::<f16>(inputs, results, grads, &attention),
            DType::BF16 => typed_backward::<bf16>(inputs, results, grads, &attention),
            other => Err(Error::Dtype(other)),
        };
        made.unwrap_or_else(|why| panic!("gradients of attention: {why}"))
    }
}

fn forward(
    q: FlexTensor,
    k: FlexTensor,
    v: FlexTensor,
    attention: &Attention,
    want_lse: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let made = match q.dtype() {
        DType::F32 => typed_forward::<f32>([q, k, v], attention, want_lse),
        DType::F64 => typed_forward::<f64>([q, k, v], attention, want_lse),
        DType::F16 => typed_forward::<f16>([q, k, v], attention, want_lse),
        DType::BF16 => typed_forward::<bf16>([q, k, v], attention, want_lse),
        other => Err(Error::Dtype(other)),
    };
    made.unwrap_or_else(|why| panic!("attention: {why}"))
}

/// The tensor and how its rows lie; a copy where the library cannot take it.
fn viewed(tensor: FlexTensor) -> (FlexTensor, Rows) {
    let rows = |tensor: &FlexTensor| Rows::of(tensor.layout().shape().as_slice(), tensor.layout().strides());
    if let Some(found) = rows(&tensor) {
        return (tensor, found);
    }
    let copy = tensor.to_contiguous();
    let found = rows(&copy).expect("rows of a contiguous tensor are contiguous");
    (copy, found)
}

fn elements<T: Number>(tensor: &FlexTensor) -> &[T] {
    let all = tensor.storage::<T>();
    &all[tensor.layout().start_offset().min(all.len())..]
}

/// Q, K and V as the library takes them, its problem, and the scale.
type Prepared = ([FlexTensor; 3], sparsek::Attention);

fn prepared(inputs: [FlexTensor; 3], attention: &Attention, sizes: &Sizes) -> Prepared {
    let [(q, of_q), (k, of_k), (v, of_v)] = inputs.map(viewed);
    let mask = attention.mask.as_ref().map(|mask| mask.pattern.inner());
    ([q, k, v], problem::attention(attention, sizes, mask, [of_q, of_k, of_v]))
}

fn sizes_of<T: Number>([q, k, v]: &[FlexTensor; 3], attention: &Attention) -> Result<Sizes> {
    for (name, tensor) in [("k", k), ("v", v)] {
        same_dtype::<T>(name, tensor, "q")?;
    }
    attention.sizes(q.layout().shape(), k.layout().shape(), v.layout().shape())
}

fn typed_forward<T: Number>(
    inputs: [FlexTensor; 3],
    attention: &Attention,
    want_lse: bool,
) -> Result<(FlexTensor, Option<FlexTensor>)> {
    let sizes = sizes_of::<T>(&inputs, attention)?;
    let options = attention.tuning.options()?;
    let (shape, shape_lse) = shapes(&sizes);
    let rows = shape_lse.num_elements();
    let mut lse = vec![<T::Sum as Default>::default(); if want_lse { rows } else { 0 }];
    let mut o: Vec<T> = Vec::with_capacity(rows * sizes.depth_v);
    if rows > 0 {
        let ([q, k, v], problem) = prepared(inputs, attention, &sizes);
        let problem = if want_lse { problem.want_lse() } else { problem };
        let target = &mut o.spare_capacity_mut()[..rows * sizes.depth_v];
        let args = AttentionArgs::uninit(elements(&q), elements(&k), elements(&v), target);
        let args = args.scale(attention.scale_for(sizes.depth)).softcap(attention.softcap.unwrap_or(0.0));
        host_context()?.attention(&problem, args.lse(&mut lse), &options)?;
        // SAFETY: O is tight, so that attention that succeeded wrote all of its elements.
        unsafe { o.set_len(rows * sizes.depth_v) };
    }
    Ok((tensor(o, shape), want_lse.then(|| tensor(lse, shape_lse))))
}

fn typed_backward<T: Number>(
    inputs: [FlexTensor; 3],
    [o, lse]: [FlexTensor; 2],
    [grad_o, grad_lse]: [FlexTensor; 2],
    attention: &Attention,
) -> Result<(FlexTensor, FlexTensor, FlexTensor)> {
    let sizes = sizes_of::<T>(&inputs, attention)?;
    let options = attention.tuning.options()?;
    same_dtype::<T>("the gradient by the result", &grad_o, "q")?;
    let o = contiguous::<T>("the result", o)?;
    let (lse, grad_lse) = (contiguous::<T::Sum>("LSE", lse)?, contiguous::<T::Sum>("the gradient by LSE", grad_lse)?);
    let dims = [0, 1, 2].map(|i| inputs[i].layout().shape().clone());
    let mut grads = dims.clone().map(|shape| vec![T::default(); shape.num_elements()]);
    if lse.layout().num_elements() > 0 && sizes.keys > 0 {
        let ([q, k, v], problem) = prepared(inputs, attention, &sizes);
        let (grad_o, of_grad_o) = viewed(grad_o);
        let problem = problem::gradients(attention, &problem, of_grad_o);
        let [grad_q, grad_k, grad_v] = &mut grads;
        let args = AttentionBackwardArgs::new(
            [elements(&q), elements(&k), elements(&v)],
            (slice(&o), slice(&lse)),
            elements(&grad_o),
            [grad_q, grad_k, grad_v],
        );
        let args = args.scale(attention.scale_for(sizes.depth)).softcap(attention.softcap.unwrap_or(0.0));
        host_context()?.attention_backward(&problem, args.grad_lse(slice(&grad_lse)), &options)?;
    }
    let ([grad_q, grad_k, grad_v], [of_q, of_k, of_v]) = (grads, dims);
    Ok((tensor(grad_q, of_q), tensor(grad_k, of_k), tensor(grad_v, of_v)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::{Shape, TensorData};

    #[test]
    fn rows_that_are_contiguous_are_not_copied() {
        let numbers = TensorData::new(vec![0.5f32; 2 * 7 * 3 * 4], Shape::from([2, 7, 3, 4]));
        let whole = FlexTensor::from_data(numbers);
        let same = |view: FlexTensor| viewed(view).0.bytes().as_ptr() == whole.bytes().as_ptr();
        assert!(same(whole.clone()) && same(Flex::float_swap_dims(whole.clone(), 1, 2)));
        assert!(!same(Flex::float_swap_dims(whole.clone(), 2, 3)) && !same(Flex::float_flip(whole.clone(), &[2])));
    }
}
