//! Gradients.
use crate::attention::{Attention, AttentionOps};
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Backend, TensorMetadata};

/// What the gradients need: Q, K and V, and what came of them.
#[derive(Clone, Debug)]
struct Saved<B: Backend> {
    inputs: [NodeId; 3],
    o: FloatTensor<B>,
    lse: FloatTensor<B>,
    attention: Attention,
}

impl<B: AttentionOps> Saved<B> {
    fn backward(
        self,
        nodes: [Option<NodeId>; 3],
        [grad_o, grad_lse]: [FloatTensor<B>; 2],
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let [q, k, v] = self.inputs.map(|id| checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        let (of_q, of_k, of_v) =
            B::sparse_attention_backward(q, k, v, self.o, self.lse, grad_o, grad_lse, self.attention);
        for (node, grad) in nodes.into_iter().zip([of_q, of_k, of_v]) {
            if let Some(node) = node {
                grads.register::<B>(node, grad);
            }
        }
    }
}

/// O. Its LSE has a node of its own: where a loss depends on both, the gradients of both are added, as they are linear in the two.
#[derive(Debug)]
struct Attend;

impl<B: Backend + AttentionOps> Backward<B, 3> for Attend {
    type State = Saved<B>;

    fn backward(self, ops: Ops<Saved<B>, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (grad_o, lse) = (grads.consume::<B>(&ops.node), &ops.state.lse);
        let grad_lse = B::float_zeros(lse.shape(), &lse.device(), lse.dtype().into());
        let nodes = ops.parents.map(|node| node.map(|node| node.id));
        ops.state.backward(nodes, [grad_o, grad_lse], grads, checkpointer);
    }
}

#[derive(Debug)]
struct AttendLse;

impl<B: Backend + AttentionOps> Backward<B, 3> for AttendLse {
    type State = Saved<B>;

    fn backward(self, ops: Ops<Saved<B>, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let (grad_lse, o) = (grads.consume::<B>(&ops.node), &ops.state.o);
        let grad_o = B::float_zeros(o.shape(), &o.device(), o.dtype().into());
        let nodes = ops.parents.map(|node| node.map(|node| node.id));
        ops.state.backward(nodes, [grad_o, grad_lse], grads, checkpointer);
    }
}

impl<B: Backend + AttentionOps, C: CheckpointStrategy> AttentionOps for Autodiff<B, C> {
    fn sparse_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: Attention,
    ) -> FloatTensor<Self> {
        match Attend.prepare::<C>([q.node(), k.node(), v.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let inputs = [prep.checkpoint(&q), prep.checkpoint(&k), prep.checkpoint(&v)];
                let (q, k, v) = (q.into_primitive(), k.into_primitive(), v.into_primitive());
                let (o, lse) = B::sparse_attention_lse(q, k, v, attention.clone());
                prep.finish(Saved { inputs, o: o.clone(), lse, attention }, o)
            }
            OpsKind::UnTracked(prep) => {
                prep.finish(B::sparse_attention(q.into_primitive(), k.into_primitive(), v.into_primitive(), attention))
            }
        }
    }

    fn sparse_attention_lse(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let of_o = Attend.prepare::<C>([q.node(), k.node(), v.node()]).compute_bound().stateful();
        let of_lse = AttendLse.prepare::<C>([q.node(), k.node(), v.node()]).compute_bound().stateful();
        let run = |q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>| {
            B::sparse_attention_lse(q.into_primitive(), k.into_primitive(), v.into_primitive(), attention.clone())
        };
        match (of_o, of_lse) {
            (OpsKind::Tracked(mut prep), OpsKind::Tracked(mut prep_lse)) => {
                let inputs = [prep.checkpoint(&q), prep.checkpoint(&k), prep.checkpoint(&v)];
                let inputs_lse = [prep_lse.checkpoint(&q), prep_lse.checkpoint(&k), prep_lse.checkpoint(&v)];
                let (o, lse) = run(q, k, v);
                let saved = Saved { inputs, o: o.clone(), lse: lse.clone(), attention };
                let saved_lse = Saved { inputs: inputs_lse, ..saved.clone() };
                (prep.finish(saved, o), prep_lse.finish(saved_lse, lse))
            }
            (OpsKind::UnTracked(prep), OpsKind::UnTracked(prep_lse)) => {
                let (o, lse) = run(q, k, v);
                (prep.finish(o), prep_lse.finish(lse))
            }
            _ => unreachable!("both nodes have the same parents"),
        }
    }

    fn sparse_attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        o: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        grad_o: FloatTensor<Self>,
        grad_lse: FloatTensor<Self>,
        attention: Attention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let tensors = [q, k, v, o, lse, grad_o, grad_lse];
        assert!(
            !tensors.iter().any(|tensor| tensor.is_tracked()),
            "gradients of attention have no gradients themselves: second derivatives are not supported"
        );
        let [q, k, v, o, lse, grad_o, grad_lse] = tensors.map(|tensor| tensor.into_primitive());
        let (of_q, of_k, of_v) = B::sparse_attention_backward(q, k, v, o, lse, grad_o, grad_lse, attention);
        let made = |grad| <Self as AutodiffBackend>::from_inner(grad);
        (made(of_q), made(of_k), made(of_v))
    }
}
