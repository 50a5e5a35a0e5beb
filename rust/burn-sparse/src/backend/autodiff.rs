//! Gradients.
use crate::dense::{DenseProduct, GemmOps};
use crate::ops::{BsrOps, Product};
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::Shape;

/// What the gradients need of the product: its operands, where the other one is tracked.
#[derive(Clone, Debug)]
struct Saved {
    values: Option<NodeId>,
    input: Option<NodeId>,
    product: Product,
}

impl Saved {
    /// The gradients by values and input.
    fn backward<B: BsrOps>(
        self,
        grad: FloatTensor<B>,
        [by_values, by_input]: [Option<NodeId>; 2],
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let values = self.values.map(|id| checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        let input = self.input.map(|id| checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        if let (Some(node), Some(input)) = (by_values, input) {
            grads.register::<B>(node, B::bsr_values_grad(grad.clone(), input, self.product.clone()));
        }
        if let (Some(node), Some(values)) = (by_input, values) {
            grads.register::<B>(node, B::bsr_matmul(values, grad, self.product.transposed()));
        }
    }
}

#[derive(Debug)]
struct Matmul;

impl<B: Backend + BsrOps> Backward<B, 2> for Matmul {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        ops.state.backward::<B>(grad, ops.parents.map(|node| node.map(|node| node.id)), grads, checkpointer);
    }
}

#[derive(Debug)]
struct Linear;

impl<B: Backend + BsrOps> Backward<B, 3> for Linear {
    type State = Saved;

    fn backward(self, ops: Ops<Saved, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let [values, input, bias] = ops.parents.map(|node| node.map(|node| node.id));
        if let Some(node) = bias {
            let (_, outer) = ops.state.product.inner_and_outer();
            let rows = grad.shape().num_elements() / outer.max(1);
            let each = B::float_reshape(grad.clone(), Shape::from([rows, outer]));
            grads.register::<B>(node, B::float_reshape(B::float_sum_dim(each, 0), Shape::from([outer])));
        }
        ops.state.backward::<B>(grad, [values, input], grads, checkpointer);
    }
}

impl<B: Backend + BsrOps, C: CheckpointStrategy> BsrOps for Autodiff<B, C> {
    fn bsr_matmul(values: FloatTensor<Self>, input: FloatTensor<Self>, mut product: Product) -> FloatTensor<Self> {
        let activation = product.activation.take();
        let (values_tracked, input_tracked) = (values.is_tracked(), input.is_tracked());
        let guards = [values.node(), input.node()];
        let plain = match Matmul.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let (of_values, of_input) =
                    (input_tracked.then(|| prep.checkpoint(&values)), values_tracked.then(|| prep.checkpoint(&input)));
                let state = Saved { values: of_values, input: of_input, product: product.clone() };
                prep.finish(state, B::bsr_matmul(values.into_primitive(), input.into_primitive(), product))
            }
            OpsKind::UnTracked(prep) => {
                prep.finish(B::bsr_matmul(values.into_primitive(), input.into_primitive(), product))
            }
        };
        activation.map_or(plain.clone(), |activation| activation.apply::<Self>(plain))
    }

    fn bsr_linear(
        values: FloatTensor<Self>,
        input: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        mut product: Product,
    ) -> FloatTensor<Self> {
        let activation = product.activation.take();
        let (values_tracked, input_tracked) = (values.is_tracked(), input.is_tracked());
        let guards = [values.node(), input.node(), bias.node()];
        let run = |values: FloatTensor<Self>, input: FloatTensor<Self>, product| {
            B::bsr_linear(values.into_primitive(), input.into_primitive(), bias.into_primitive(), product)
        };
        let plain = match Linear.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let (of_values, of_input) =
                    (input_tracked.then(|| prep.checkpoint(&values)), values_tracked.then(|| prep.checkpoint(&input)));
                let state = Saved { values: of_values, input: of_input, product: product.clone() };
                prep.finish(state, run(values, input, product))
            }
            OpsKind::UnTracked(prep) => prep.finish(run(values, input, product)),
        };
        match activation {
            Some(activation) => activation.apply::<Self>(plain),
            None => plain,
        }
    }

    fn bsr_values_grad(grad: FloatTensor<Self>, input: FloatTensor<Self>, product: Product) -> FloatTensor<Self> {
        assert!(
            !grad.is_tracked() && !input.is_tracked(),
            "a gradient by a sparse matrix's values has no gradient itself: second derivatives are not supported"
        );
        <Self as burn::backend::AutodiffBackend>::from_inner(B::bsr_values_grad(
            grad.into_primitive(),
            input.into_primitive(),
            product,
        ))
    }
}

/// What the gradients need of a dense product: its operands, where the other one is tracked, and their shapes.
#[derive(Clone, Debug)]
struct SavedDense {
    a: Option<NodeId>,
    b: Option<NodeId>,
    shapes: [Shape; 2],
    product: DenseProduct,
}

/// With the last two axes swapped.
fn turned<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let dims = tensor.shape().num_dims();
    B::float_swap_dims(tensor, dims - 2, dims - 1)
}

/// Summed over the leading dimensions that repeated an operand of this shape.
fn summed<B: Backend>(mut grad: FloatTensor<B>, shape: &Shape) -> FloatTensor<B> {
    if grad.shape() == *shape {
        return grad;
    }
    for axis in 0..shape.num_dims() - 2 {
        if shape[axis] == 1 && grad.shape()[axis] != 1 {
            grad = B::float_sum_dim(grad, axis);
        }
    }
    grad
}

/// The items of a batch as more rows of one matrix.
fn as_rows<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let (shape, dims) = (tensor.shape(), tensor.shape().num_dims());
    let mut rows = Shape::from(vec![1; dims]);
    rows[dims - 1] = shape[dims - 1];
    rows[dims - 2] = shape.as_slice()[..dims - 1].iter().product();
    B::float_reshape(tensor, rows)
}

impl SavedDense {
    /// The gradients by A and B.
    fn backward<B: GemmOps>(
        self,
        grad: FloatTensor<B>,
        [by_a, by_b]: [Option<NodeId>; 2],
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let a = self.a.map(|id| checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        let b = self.b.map(|id| checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        let [of_a, of_b] = &self.shapes;
        if let (Some(node), Some(b)) = (by_a, b) {
            let made = B::gemm(grad.clone(), turned::<B>(b), self.product.clone());
            grads.register::<B>(node, summed::<B>(made, of_a));
        }
        if let (Some(node), Some(a)) = (by_b, a) {
            let lead = ..of_b.num_dims() - 2;
            let one = self.product.ends.is_none() && of_b.as_slice()[lead].iter().all(|&length| length == 1);
            let whole = one && a.shape().as_slice()[lead] == grad.shape().as_slice()[lead];
            let (a, grad) = if whole { (as_rows::<B>(a), as_rows::<B>(grad)) } else { (a, grad) };
            grads.register::<B>(node, summed::<B>(B::gemm(turned::<B>(a), grad, self.product), of_b));
        }
    }
}

#[derive(Debug)]
struct Gemm;

impl<B: Backend + GemmOps> Backward<B, 2> for Gemm {
    type State = SavedDense;

    fn backward(self, ops: Ops<SavedDense, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        ops.state.backward::<B>(grad, ops.parents.map(|node| node.map(|node| node.id)), grads, checkpointer);
    }
}

#[derive(Debug)]
struct GemmBias;

impl<B: Backend + GemmOps> Backward<B, 3> for GemmBias {
    type State = SavedDense;

    fn backward(self, ops: Ops<SavedDense, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let [a, b, bias] = ops.parents.map(|node| node.map(|node| node.id));
        if let Some(node) = bias {
            let dims = grad.shape().num_dims();
            let columns = grad.shape()[dims - 1];
            let sums = B::float_sum_dim(as_rows::<B>(grad.clone()), dims - 2);
            grads.register::<B>(node, B::float_reshape(sums, Shape::from([columns])));
        }
        ops.state.backward::<B>(grad, [a, b], grads, checkpointer);
    }
}

impl<B: Backend + GemmOps, C: CheckpointStrategy> GemmOps for Autodiff<B, C> {
    fn gemm(a: FloatTensor<Self>, b: FloatTensor<Self>, mut product: DenseProduct) -> FloatTensor<Self> {
        let activation = product.activation.take();
        let (a_tracked, b_tracked) = (a.is_tracked(), b.is_tracked());
        let plain = match Gemm.prepare::<C>([a.node(), b.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let shapes = [a.shape(), b.shape()];
                let (of_a, of_b) = (b_tracked.then(|| prep.checkpoint(&a)), a_tracked.then(|| prep.checkpoint(&b)));
                let state = SavedDense { a: of_a, b: of_b, shapes, product: product.clone() };
                prep.finish(state, B::gemm(a.into_primitive(), b.into_primitive(), product))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::gemm(a.into_primitive(), b.into_primitive(), product)),
        };
        match activation {
            Some(activation) => activation.apply::<Self>(plain),
            None => plain,
        }
    }

    fn gemm_bias(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        mut product: DenseProduct,
    ) -> FloatTensor<Self> {
        let activation = product.activation.take();
        let (a_tracked, b_tracked) = (a.is_tracked(), b.is_tracked());
        let guards = [a.node(), b.node(), bias.node()];
        let run = |a: FloatTensor<Self>, b: FloatTensor<Self>, product| {
            B::gemm_bias(a.into_primitive(), b.into_primitive(), bias.into_primitive(), product)
        };
        let plain = match GemmBias.prepare::<C>(guards).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let shapes = [a.shape(), b.shape()];
                let (of_a, of_b) = (b_tracked.then(|| prep.checkpoint(&a)), a_tracked.then(|| prep.checkpoint(&b)));
                let state = SavedDense { a: of_a, b: of_b, shapes, product: product.clone() };
                prep.finish(state, run(a, b, product))
            }
            OpsKind::UnTracked(prep) => prep.finish(run(a, b, product)),
        };
        match activation {
            Some(activation) => activation.apply::<Self>(plain),
            None => plain,
        }
    }
}
