//! How many elements the operands of attention's gradients have.
use super::generated::{Extents, forward_of};
use crate::attention::generated::Extents as Forward;
use crate::call::Question;
use crate::extent::Headed;
use crate::operands::Needed;
use crate::sys;

impl Extents {
    pub fn of(question: &Question<'_, sys::spk_attention_backward>) -> Extents {
        let p = &question.problem;
        let (context, pattern, mut problem) = (question.context, question.pattern, forward_of(p));
        problem.want_lse = 1;
        let forward = Forward::of(&Question { context, pattern, problem });
        let heads = p.heads.max(1);
        let heads_kv = if p.heads_kv != 0 { p.heads_kv } else { heads };
        let depth_v = if p.depth_v != 0 { p.depth_v } else { p.depth };
        let elements = |lines, heads, length, ld, head_stride, stride| {
            Headed { lines, length, ld, heads, head_stride, stride }.elements(p.batch)
        };
        let needed = Needed::Elements;
        let grad_lse = elements(1, heads, p.queries, 0, p.head_stride_grad_lse, p.stride_grad_lse);
        Extents {
            q: forward.q,
            k: forward.k,
            v: forward.v,
            o: forward.o,
            lse: forward.lse,
            query_ends: forward.query_ends,
            key_ends: forward.key_ends,
            tile_numbers: forward.tile_numbers,
            tile_bits: forward.tile_bits,
            grad_o: needed(elements(p.queries, heads, depth_v, p.ld_grad_o, p.head_stride_grad_o, p.stride_grad_o)),
            grad_lse: Needed::when(p.use_grad_lse != 0, grad_lse),
            grad_q: needed(elements(p.queries, heads, p.depth, p.ld_grad_q, p.head_stride_grad_q, p.stride_grad_q)),
            grad_k: needed(elements(p.keys, heads_kv, p.depth, p.ld_grad_k, p.head_stride_grad_k, p.stride_grad_k)),
            grad_v: needed(elements(p.keys, heads_kv, depth_v, p.ld_grad_v, p.head_stride_grad_v, p.stride_grad_v)),
            depth: p.depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{Attention, AttentionBackward, Context, Pattern};

    fn assert_told(context: &Context, problem: &AttentionBackward) {
        let question = problem.question::<f32>(context).unwrap();
        question.assert_extents(Extents::of(&question).named());
    }

    #[test]
    fn the_library_tells_the_same() {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let mask = Pattern::new(&context, (6, 9), (2, 33), &[0, 1, 1, 2], &[0, 0]).unwrap();
        let plain = Attention::new(6, 9, 4).depth_v(3);
        let heads = plain.clone().heads(4).heads_kv(2).batch(3);
        let spaced = heads.backward().use_grad_lse().ld_grad_o(10).ld_grad_q(11).ld_grad_k(12).ld_grad_v(13);
        let spaced = spaced.head_stride_grad_o(200).head_stride_grad_lse(20).head_stride_grad_q(201);
        let spaced = spaced.stride_grad_o(1000).stride_grad_lse(100).stride_grad_q(1001).stride_grad_v(1002);
        for problem in [
            plain.backward(),
            plain.backward().use_grad_lse(),
            heads.backward().use_grad_lse(),
            spaced,
            heads.clone().rows_of_heads().backward(),
            heads.backward().use_grad_lse().share_grad_o().share_grad_lse(),
            heads.key_lengths().backward(),
            plain.clone().sequences(2).backward(),
            plain.mask(&mask).tiles(5).backward(),
        ] {
            assert_told(&context, &problem);
        }
    }
}
