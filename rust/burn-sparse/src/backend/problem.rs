//! A product as the library's problem.
use super::strided::View;
use crate::dense::DenseProduct;
use crate::ops::{Product, Side};
use burn::tensor::Shape;
use sparsek::{Bias, Gemm, GroupAxis, Layout, Sddmm, Spmm};

/// The product of an input that lies so, into a tight result of that shape, which is not empty.
pub fn spmm(product: &Product, input: View, output: &Shape, bias: bool) -> Spmm {
    let mut spmm = match product.side {
        Side::Left => {
            let columns = output[output.num_dims() - 1];
            let spmm = Spmm::new(columns).layout_b(input.layout).ldb(input.ld).batch(input.items);
            // To the library a stride of 0 is a tight one.
            if input.items > 1 && input.stride == 0 { spmm.share_b() } else { spmm.stride_b(input.stride) }
        }
        Side::Right => {
            let rows = output.num_elements() / product.inner_and_outer().1;
            // y = x A^T is y^T = A x^T, and what is row-major is column-major transposed.
            Spmm::new(rows).layout_b(input.transposed().layout).ldb(input.ld).layout_d(Layout::ColMajor)
        }
    };
    if product.transpose {
        spmm = spmm.transpose_a();
    }
    if bias {
        spmm = spmm.bias(Bias::PerRow);
    }
    spmm = spmm.assume_finite(product.tuning.assume_finite);
    match product.activation {
        Some(activation) => spmm.activation(activation.of_kernel()),
        None => spmm,
    }
}

/// The gradient by values: X and Y, where they lie, and whether X is the gradient (else it is the input).
pub struct Sampled {
    pub problem: Sddmm,
    pub x: View,
    pub y: View,
    pub x_is_grad: bool,
}

/// From a gradient and an input that lie so; the input's shape is this one.
pub fn sddmm(product: &Product, grad: View, input: View, shape: &Shape) -> Sampled {
    // Of A X it is G X^T, of X A^T it is G^T X; of a transposed A, what that is transposed.
    let (k, grad, input) = match product.side {
        Side::Left => (shape[shape.num_dims() - 1], grad, input.transposed()),
        Side::Right => (shape.num_elements() / product.inner_and_outer().0, grad.transposed(), input),
    };
    let x_is_grad = !product.transpose;
    let (x, y) = if x_is_grad { (grad, input) } else { (input.transposed(), grad.transposed()) };
    let problem = Sddmm::new(k).layout_x(x.layout).ldx(x.ld).layout_y(y.layout).ldy(y.ld);
    Sampled { problem: problem.assume_finite(product.tuning.assume_finite), x, y, x_is_grad }
}

/// The product of dense matrices that lie so, over `k`, into a tight result of that shape, which is not empty; in groups along
/// an axis, if any.
pub fn gemm(
    product: &DenseProduct,
    (a, b, k): (View, View, usize),
    axis: Option<GroupAxis>,
    output: &Shape,
    bias: bool,
) -> Gemm {
    let dims = output.num_dims();
    let mut gemm = Gemm::new(output[dims - 2], output[dims - 1], k);
    gemm = gemm.layout_a(a.layout).lda(a.ld).layout_b(b.layout).ldb(b.ld);
    let items = a.items.max(b.items);
    if let (Some(axis), Some(ends)) = (axis, &product.ends) {
        gemm = gemm.groups(axis, ends.len());
    } else if items > 1 {
        gemm = gemm.batch(items);
        // To the library a stride of 0 is a tight one.
        gemm = if a.items == 1 { gemm.share_a() } else { gemm };
        gemm = if b.items == 1 { gemm.share_b() } else { gemm };
    }
    if a.items > 1 {
        gemm = if a.stride == 0 { gemm.share_a() } else { gemm.stride_a(a.stride) };
    }
    if b.items > 1 {
        gemm = if b.stride == 0 { gemm.share_b() } else { gemm.stride_b(b.stride) };
    }
    if bias {
        gemm = gemm.bias(Bias::PerCol);
    }
    gemm = gemm.assume_finite(product.tuning.assume_finite);
    match product.activation {
        Some(activation) => gemm.activation(activation.of_kernel()),
        None => gemm,
    }
}

/// Whether an operand of the product must be expanded: some of its leading dimensions repeat, and some do not.
pub fn repeats_in_part(operand: &Shape, output: &Shape) -> bool {
    let lead = ..output.num_dims() - 2;
    let (own, whole) = (&operand.as_slice()[lead], &output.as_slice()[lead]);
    own != whole && own.iter().any(|&length| length != 1)
}
