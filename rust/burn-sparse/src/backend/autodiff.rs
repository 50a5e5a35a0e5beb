//! Gradients.
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
