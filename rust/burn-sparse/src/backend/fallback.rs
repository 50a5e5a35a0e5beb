//! Products from standard operations: a sparse matrix is made dense. Its zeros are multiplied, so that what is not finite in an input spreads.
use crate::dense::DenseProduct;
use crate::ops::{Product, Side};
use crate::pattern::BsrPattern;
use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{IndexingUpdateOp, Shape, Slice, TensorData};
use sparsek::GroupAxis;

/// A X or X A^T, with bias and activation.
pub fn matmul<B: Backend>(
    values: FloatTensor<B>,
    input: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    product: Product,
) -> FloatTensor<B> {
    let output = product.output_shape(&input.shape());
    if let Err(why) = product.tuning.options() {
        panic!("block-sparse product: {why}"); // nothing is tuned here, and a wrong option is wrong all the same
    }
    let (inner, outer) = product.inner_and_outer();
    if let Some(bias) = &bias {
        product.check_bias(&bias.shape()).unwrap_or_else(|why| panic!("block-sparse product: {why}"));
    }
    let dense = dense::<B>(values, &product.pattern);
    let dense = if product.transpose { B::float_transpose(dense) } else { dense };
    let plain = match product.side {
        // Not every backend sums over nothing, or makes nothing.
        _ if inner == 0 || output.num_elements() == 0 => {
            B::float_zeros(output.clone(), &input.device(), input.dtype().into())
        }
        Side::Left => {
            let dims = input.shape().num_dims();
            let mut shape = vec![1; dims];
            shape[dims - 2..].copy_from_slice(&[outer, inner]);
            B::float_matmul(B::float_reshape(dense, Shape::from(shape)), input)
        }
        Side::Right => {
            let rows = input.shape().num_elements() / inner.max(1);
            let x = B::float_reshape(input, Shape::from([rows, inner]));
            B::float_matmul(x, B::float_transpose(dense))
        }
    };
    let mut result = B::float_reshape(plain, output.clone());
    if let Some(bias) = bias {
        let mut shape = vec![1; output.num_dims()];
        shape[output.num_dims() - 1] = outer;
        result = B::float_add(result, B::float_reshape(bias, Shape::from(shape)));
    }
    match product.activation {
        Some(activation) => activation.apply::<B>(result),
        None => result,
    }
}

/// A B; not every backend sums over nothing, or makes nothing.
fn product_of<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>, output: &Shape) -> FloatTensor<B> {
    match a.shape().num_elements() == 0 || output.num_elements() == 0 {
        true => B::float_zeros(output.clone(), &a.device(), a.dtype().into()),
        false => B::float_matmul(a, b),
    }
}

/// A product for each group, side by side; what is behind the last one is zero.
fn in_groups<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    product: &DenseProduct,
    output: &Shape,
) -> FloatTensor<B> {
    let axis = product.axis(&a.shape(), &b.shape()).expect("checked with the shape");
    let dims = output.num_dims();
    let (m, n, k) = (output[dims - 2], output[dims - 1], b.shape()[b.shape().num_dims() - 2]);
    let of_group = |tensor: &FloatTensor<B>, group: usize, shape: [usize; 2]| {
        let item = [Slice::from(group..group + 1), Slice::from(0..shape[0]), Slice::from(0..shape[1])];
        B::float_reshape(B::float_slice(tensor.clone(), &item), Shape::from(shape))
    };
    let (mut pieces, mut end) = (Vec::new(), 0);
    for (group, range) in product.ranges().enumerate() {
        end = range.end;
        if range.is_empty() && axis != GroupAxis::Depth {
            continue;
        }
        let cut = |tensor: &FloatTensor<B>, slices: [Slice; 2]| B::float_slice(tensor.clone(), &slices);
        let (one, other, shape) = match axis {
            GroupAxis::Rows => {
                let rows = cut(&a, [Slice::from(range.clone()), Slice::from(0..k)]);
                (rows, of_group(&b, group, [k, n]), [range.len(), n])
            }
            GroupAxis::Cols => {
                let columns = cut(&b, [Slice::from(0..k), Slice::from(range.clone())]);
                (of_group(&a, group, [m, k]), columns, [m, range.len()])
            }
            _ if range.is_empty() => {
                pieces.push(B::float_zeros(Shape::from([1, m, n]), &a.device(), a.dtype().into()));
                continue;
            }
            _ => {
                let columns = cut(&a, [Slice::from(0..m), Slice::from(range.clone())]);
                (columns, cut(&b, [Slice::from(range.clone()), Slice::from(0..n)]), [m, n])
            }
        };
        let made = product_of::<B>(one, other, &Shape::from(shape));
        let deep = axis == GroupAxis::Depth;
        pieces.push(if deep { B::float_reshape(made, Shape::from([1, m, n])) } else { made });
    }
    let rest = match axis {
        GroupAxis::Rows => [m - end, n],
        GroupAxis::Cols => [m, n - end],
        _ => [0, 0],
    };
    if rest.iter().product::<usize>() > 0 {
        pieces.push(B::float_zeros(Shape::from(rest), &a.device(), a.dtype().into()));
    }
    if output.num_elements() == 0 {
        return B::float_zeros(output.clone(), &a.device(), a.dtype().into());
    }
    B::float_cat(pieces, usize::from(axis == GroupAxis::Cols))
}

/// A B of dense matrices, with bias and activation.
pub fn gemm<B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    product: DenseProduct,
) -> FloatTensor<B> {
    let output = product.output_shape(&a.shape(), &b.shape());
    if let Err(why) = product.tuning.options() {
        panic!("dense product: {why}");
    }
    let (dims, dtype) = (output.num_dims(), a.dtype());
    assert!(b.dtype() == dtype, "dense product: a of {dtype:?} and b of {:?}", b.dtype());
    let mut result =
        if product.ends.is_some() { in_groups::<B>(a, b, &product, &output) } else { product_of::<B>(a, b, &output) };
    if let Some(bias) = bias {
        product.check_bias(&bias.shape(), &output).unwrap_or_else(|why| panic!("dense product: {why}"));
        let mut shape = vec![1; dims];
        shape[dims - 1] = output[dims - 1];
        result = B::float_add(result, B::float_reshape(bias, Shape::from(shape)));
    }
    match product.activation {
        Some(activation) => activation.apply::<B>(result),
        None => result,
    }
}

/// The gradient of the plain product by its values.
pub fn values_grad<B: Backend>(grad: FloatTensor<B>, input: FloatTensor<B>, product: Product) -> FloatTensor<B> {
    let (inner, outer) = product.inner_and_outer();
    let [rows, cols] = product.pattern.shape();
    if rows == 0 || cols == 0 || input.shape().num_elements() == 0 || grad.shape().num_elements() == 0 {
        let none = Shape::from(product.pattern.values_shape());
        return B::float_zeros(none, &input.device(), input.dtype().into());
    }
    let of_a = match product.side {
        Side::Left => {
            let shape = input.shape();
            let n = shape[shape.num_dims() - 1];
            let items = shape.num_elements() / (inner * n).max(1);
            let g = B::float_reshape(grad, Shape::from([items, outer, n]));
            let x = B::float_reshape(input, Shape::from([items, inner, n]));
            let each = B::float_matmul(g, B::float_transpose(x));
            B::float_reshape(B::float_sum_dim(each, 0), Shape::from([outer, inner]))
        }
        Side::Right => {
            let count = input.shape().num_elements() / inner.max(1);
            let g = B::float_reshape(grad, Shape::from([count, outer]));
            let x = B::float_reshape(input, Shape::from([count, inner]));
            B::float_matmul(B::float_transpose(g), x)
        }
    };
    let of_a = if product.transpose { B::float_transpose(of_a) } else { of_a };
    let ([down, across], [height, width]) = (product.pattern.grid(), product.pattern.block());
    let (device, dtype) = (of_a.device(), of_a.dtype());
    let whole = B::float_zeros(Shape::from([down * height, across * width]), &device, dtype.into());
    let padded = B::float_slice_assign(whole, &[Slice::from(0..rows), Slice::from(0..cols)], of_a);
    let blocks = B::float_permute(B::float_reshape(padded, Shape::from([down, height, across, width])), &[0, 2, 1, 3]);
    let blocks = B::float_reshape(blocks, Shape::from([down * across, height * width]));
    let stored = B::float_select(blocks, 0, places::<B>(&product.pattern, &device));
    B::float_reshape(stored, Shape::from(product.pattern.values_shape()))
}

/// The matrix with its zeros.
pub fn dense<B: Backend>(values: FloatTensor<B>, pattern: &BsrPattern) -> FloatTensor<B> {
    let ([down, across], [height, width]) = (pattern.grid(), pattern.block());
    let (device, dtype) = (values.device(), values.dtype());
    if down == 0 || across == 0 {
        return B::float_zeros(Shape::from(pattern.shape()), &device, dtype.into());
    }
    let none = B::float_zeros(Shape::from([down * across, height * width]), &device, dtype.into());
    let stored = B::float_reshape(values, Shape::from([pattern.nnzb(), height * width]));
    let all = B::float_select_assign(none, 0, places::<B>(pattern, &device), stored, IndexingUpdateOp::Add);
    let blocks = B::float_permute(B::float_reshape(all, Shape::from([down, across, height, width])), &[0, 2, 1, 3]);
    let whole = B::float_reshape(blocks, Shape::from([down * height, across * width]));
    let [rows, cols] = pattern.shape();
    B::float_slice(whole, &[Slice::from(0..rows), Slice::from(0..cols)])
}

/// Which of the grid's blocks are stored.
fn places<B: Backend>(pattern: &BsrPattern, device: &Device<B>) -> IntTensor<B> {
    let across = pattern.grid()[1];
    let places: Vec<i32> = pattern.coordinates().map(|(row, column)| (row * across + column) as i32).collect();
    let count = places.len();
    B::int_from_data(TensorData::new(places, [count]), device)
}
