//! Flex: the library works on its memory. Inputs are not copied where a leading dimension describes them.
use super::problem::{self, Sampled};
use super::strided::View;
use crate::context::host_context;
use crate::dense::{DenseProduct, GemmOps};
use crate::error::{Error, Result};
use crate::ops::{BsrOps, Product, Side};
use burn::backend::Flex;
use burn::backend::flex::{FlexTensor, Layout as FlexLayout};
use burn::backend::ops::FloatTensorOps;
use burn::tensor::{Bytes, DType, Element, Shape, bf16, f16};
use bytemuck::Pod;
use sparsek::{GemmArgs, SddmmArgs, SpmmArgs};

/// Elements that Flex stores and the library multiplies.
pub trait Number: Element + Pod + sparsek::Element<Sum: Element + Pod> + sparsek::Product<Self> {}
impl Number for f32 {}
impl Number for f64 {}
impl Number for f16 {}
impl Number for bf16 {}

impl BsrOps for Flex {
    fn bsr_matmul(values: FlexTensor, input: FlexTensor, product: Product) -> FlexTensor {
        matmul(values, input, None, &product)
    }

    fn bsr_linear(values: FlexTensor, input: FlexTensor, bias: FlexTensor, product: Product) -> FlexTensor {
        matmul(values, input, Some(bias), &product)
    }

    fn bsr_values_grad(grad: FlexTensor, input: FlexTensor, product: Product) -> FlexTensor {
        let result = match input.dtype() {
            DType::F32 => values_grad::<f32>(grad, input, &product),
            DType::F64 => values_grad::<f64>(grad, input, &product),
            DType::F16 => values_grad::<f16>(grad, input, &product),
            DType::BF16 => values_grad::<bf16>(grad, input, &product),
            other => Err(Error::Dtype(other)),
        };
        result.unwrap_or_else(|why| panic!("gradient of a block-sparse product by its values: {why}"))
    }
}

impl GemmOps for Flex {
    fn gemm(a: FlexTensor, b: FlexTensor, product: DenseProduct) -> FlexTensor {
        gemm(a, b, None, &product)
    }

    fn gemm_bias(a: FlexTensor, b: FlexTensor, bias: FlexTensor, product: DenseProduct) -> FlexTensor {
        gemm(a, b, Some(bias), &product)
    }
}

fn gemm(a: FlexTensor, b: FlexTensor, bias: Option<FlexTensor>, product: &DenseProduct) -> FlexTensor {
    let result = match a.dtype() {
        DType::F32 => typed_gemm::<f32>(a, b, bias, product),
        DType::F64 => typed_gemm::<f64>(a, b, bias, product),
        DType::F16 => typed_gemm::<f16>(a, b, bias, product),
        DType::BF16 => typed_gemm::<bf16>(a, b, bias, product),
        other => Err(Error::Dtype(other)),
    };
    result.unwrap_or_else(|why| panic!("dense product: {why}"))
}

fn typed_gemm<T: Number>(
    a: FlexTensor,
    b: FlexTensor,
    bias: Option<FlexTensor>,
    product: &DenseProduct,
) -> Result<FlexTensor> {
    let (of_a, of_b) = (a.layout().shape(), b.layout().shape());
    let shape = product.output_shape(of_a, of_b);
    let (axis, k) = (product.ends.as_ref().and_then(|_| product.axis(of_a, of_b)), of_a[of_a.num_dims() - 1]);
    same_dtype::<T>("b", &b, "an input")?;
    let bias = bias.map(|bias| contiguous::<T>("bias", bias)).transpose()?;
    bias.iter().try_for_each(|bias| product.check_bias(bias.layout().shape(), &shape))?;
    let options = product.tuning.options()?;
    let (elements, ends) = (shape.num_elements(), product.ends.as_deref());
    if elements == 0 || ends.is_some_and(<[i32]>::is_empty) {
        return Ok(FlexTensor::zeros(shape, T::dtype()));
    }
    let ((a, of_a), (b, of_b)) = match ends {
        Some(_) => (viewed(a, Side::Left), viewed(b, Side::Left)),
        None => (item_views(a, &shape), item_views(b, &shape)),
    };
    let gemm = problem::gemm(product, (of_a, of_b, k), axis, &shape, bias.is_some());
    let start = |tensor: &FlexTensor| tensor.layout().start_offset();
    let (from_a, from_b) = (&a.storage::<T>()[start(&a)..], &b.storage::<T>()[start(&b)..]);
    if let Some(ends) = ends {
        let mut d = vec![T::default(); elements]; // what lies behind the last group is not written
        host_context()?.gemm(&gemm, GemmArgs::new(from_a, from_b, &mut d).offsets(ends), &options)?;
        return Ok(tensor(d, shape));
    }
    let mut d: Vec<T> = Vec::with_capacity(elements);
    let mut args = GemmArgs::uninit(from_a, from_b, &mut d.spare_capacity_mut()[..elements]);
    if let Some(bias) = &bias {
        args = args.bias(slice(bias));
    }
    host_context()?.gemm(&gemm, args, &options)?;
    // SAFETY: D is tight, so that a product that succeeded wrote all of its elements.
    unsafe { d.set_len(elements) };
    Ok(tensor(d, shape))
}

/// An operand of a dense product: one item for all, or one for each of the product's.
fn item_views(operand: FlexTensor, output: &Shape) -> (FlexTensor, View) {
    if !problem::repeats_in_part(operand.layout().shape(), output) {
        return viewed(operand, Side::Left);
    }
    let (own, dims) = (operand.layout().shape(), output.num_dims());
    let mut whole = output.clone();
    (whole[dims - 2], whole[dims - 1]) = (own[dims - 2], own[dims - 1]);
    viewed(Flex::float_expand(operand, whole), Side::Left)
}

fn matmul(values: FlexTensor, input: FlexTensor, bias: Option<FlexTensor>, product: &Product) -> FlexTensor {
    let result = match input.dtype() {
        DType::F32 => typed_matmul::<f32>(values, input, bias, product),
        DType::F64 => typed_matmul::<f64>(values, input, bias, product),
        DType::F16 => typed_matmul::<f16>(values, input, bias, product),
        DType::BF16 => typed_matmul::<bf16>(values, input, bias, product),
        other => Err(Error::Dtype(other)),
    };
    result.unwrap_or_else(|why| panic!("block-sparse product: {why}"))
}

fn typed_matmul<T: Number>(
    values: FlexTensor,
    input: FlexTensor,
    bias: Option<FlexTensor>,
    product: &Product,
) -> Result<FlexTensor> {
    let shape = product.output_shape(input.layout().shape());
    let values = contiguous::<T>("values", values)?;
    let bias = bias.map(|bias| contiguous::<T>("bias", bias)).transpose()?;
    bias.iter().try_for_each(|bias| product.check_bias(bias.layout().shape()))?;
    let elements = shape.num_elements();
    if elements == 0 {
        return Ok(FlexTensor::zeros(shape, T::dtype()));
    }
    let (input, view) = viewed(input, product.side);
    let spmm = problem::spmm(product, view, &shape, bias.is_some());
    let mut d: Vec<T> = Vec::with_capacity(elements);
    let b = &input.storage::<T>()[input.layout().start_offset()..];
    let mut args = SpmmArgs::uninit(slice(&values), b, &mut d.spare_capacity_mut()[..elements]);
    if let Some(bias) = &bias {
        args = args.bias(slice(bias));
    }
    product.pattern.inner().matmul(&spmm, args, &product.tuning.options()?)?;
    // SAFETY: D is tight, so that a product that succeeded wrote all of its elements.
    unsafe { d.set_len(elements) };
    Ok(tensor(d, shape))
}

fn values_grad<T: Number>(grad: FlexTensor, input: FlexTensor, product: &Product) -> Result<FlexTensor> {
    product.output_shape(input.layout().shape());
    same_dtype::<T>("the gradient", &grad, "an input")?;
    let shape = Shape::from(product.pattern.values_shape());
    let mut d = vec![T::default(); shape.num_elements()];
    if d.is_empty() || input.layout().num_elements() == 0 || grad.layout().num_elements() == 0 {
        return Ok(tensor(d, shape));
    }
    let dims = input.layout().shape().clone();
    let ((grad, of_grad), (input, of_input)) = (viewed(grad, product.side), viewed(input, product.side));
    let Sampled { problem, x, y, x_is_grad } = problem::sddmm(product, of_grad, of_input, &dims);
    let (x_tensor, y_tensor) = if x_is_grad { (&grad, &input) } else { (&input, &grad) };
    let options = product.tuning.options()?;
    for item in 0..x.items.max(y.items) {
        let of = |tensor: &FlexTensor, view: View| tensor.layout().start_offset() + item * view.stride;
        let (x_at, y_at) = (of(x_tensor, x), of(y_tensor, y));
        let (x, y) = (&x_tensor.storage::<T>()[x_at..], &y_tensor.storage::<T>()[y_at..]);
        // The first item writes, the others add to it.
        let (problem, args) = match item {
            0 => (problem, SddmmArgs::new(x, y, &mut d)),
            _ => (problem.use_c(), SddmmArgs::new(x, y, &mut d).c_in_place(1.0)),
        };
        product.pattern.inner().matmul_sampled(&problem, args, &options)?;
    }
    Ok(tensor(d, shape))
}

/// The tensor and how the library sees it; a copy where it cannot.
fn viewed(tensor: FlexTensor, side: Side) -> (FlexTensor, View) {
    let view = |tensor: &FlexTensor| {
        let layout = tensor.layout();
        match side {
            Side::Left => View::matrices(layout.shape().as_slice(), layout.strides()),
            Side::Right => View::rows(layout.shape().as_slice(), layout.strides()),
        }
    };
    if let Some(found) = view(&tensor) {
        return (tensor, found);
    }
    let copy = tensor.to_contiguous();
    let found = view(&copy).expect("a contiguous tensor has a leading dimension");
    (copy, found)
}

/// Whether the tensor has the type of another one.
pub fn same_dtype<T: Element + Pod>(name: &str, tensor: &FlexTensor, other: &str) -> Result<()> {
    if tensor.dtype() == T::dtype() {
        return Ok(());
    }
    Err(Error::Argument(format!("{name} of {:?} and {other} of {:?}", tensor.dtype(), T::dtype())))
}

pub fn contiguous<T: Element + Pod>(name: &str, tensor: FlexTensor) -> Result<FlexTensor> {
    same_dtype::<T>(name, &tensor, "an input")?;
    Ok(if tensor.is_contiguous() { tensor } else { tensor.to_contiguous() })
}

pub fn slice<T: Element + Pod>(tensor: &FlexTensor) -> &[T] {
    tensor.as_slice().expect("contiguous, of this type")
}

pub fn tensor<T: Element + Pod>(elements: Vec<T>, shape: Shape) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(elements), FlexLayout::contiguous(shape), T::dtype())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::fallback;
    use crate::pattern::BsrPattern;
    use crate::tuning::{Effort, TuneConfig};
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::{Slice, TensorData, Tolerance};

    fn numbers(shape: &[usize]) -> FlexTensor {
        let count: usize = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5).collect();
        FlexTensor::from_data(TensorData::new(numbers, Shape::from(shape.to_vec())))
    }

    fn same_memory(a: &FlexTensor, b: &FlexTensor) -> bool {
        a.bytes().as_ptr() == b.bytes().as_ptr()
    }

    #[test]
    fn views_are_not_copied() {
        let whole = numbers(&[3, 20, 30]);
        let turned = Flex::float_swap_dims(whole.clone(), 1, 2);
        let cut = Flex::float_slice(whole.clone(), &[Slice::from(0..3), Slice::from(2..9), Slice::from(4..15)]);
        for view in [&whole, &turned, &cut] {
            let (used, found) = viewed(view.clone(), Side::Left);
            assert!(same_memory(&used, &whole) && found.items == 3, "{found:?}");
        }
        assert!(same_memory(&viewed(whole.clone(), Side::Right).0, &whole));
        let flipped = Flex::float_flip(whole.clone(), &[2]);
        assert!(!same_memory(&viewed(flipped, Side::Left).0, &whole));
    }

    #[test]
    fn standard_operations_agree() {
        let pattern = BsrPattern::new([7, 11], [3, 4], &[0, 2, 2, 4], &[0, 2, 1, 2]).unwrap();
        let near = |a: FlexTensor, b: FlexTensor| {
            a.into_data().assert_approx_eq::<f32>(&b.into_data(), Tolerance::absolute(1e-5));
        };
        for side in [Side::Left, Side::Right] {
            for transposed in [false, true] {
                let mut product = Product::new(pattern.clone(), side);
                product = product.tuning(TuneConfig::new().with_effort(Effort::Estimate));
                product = if transposed { product.transposed() } else { product };
                let (inner, outer) = product.inner_and_outer();
                let shape = |length| if side == Side::Left { [2, length, 5] } else { [2, 5, length] };
                let (values, input, grad) = (numbers(&[4, 3, 4]), numbers(&shape(inner)), numbers(&shape(outer)));
                near(
                    fallback::matmul::<Flex>(values.clone(), input.clone(), None, product.clone()),
                    Flex::bsr_matmul(values.clone(), input.clone(), product.clone()),
                );
                near(
                    fallback::values_grad::<Flex>(grad.clone(), input.clone(), product.clone()),
                    Flex::bsr_values_grad(grad, input.clone(), product.clone()),
                );
                if side == Side::Right {
                    for activation in [None, Some(crate::Activation::GeluTanh), Some(crate::Activation::Silu)] {
                        product.activation = activation;
                        let bias = numbers(&[outer]);
                        near(
                            fallback::matmul::<Flex>(
                                values.clone(),
                                input.clone(),
                                Some(bias.clone()),
                                product.clone(),
                            ),
                            Flex::bsr_linear(values.clone(), input.clone(), bias, product.clone()),
                        );
                    }
                }
            }
        }
    }
}
