//! How many elements the operands of attention have.
use super::generated::Extents;
use crate::call::Question;
use crate::extent::Headed;
use crate::operands::Needed;
use crate::sys;
use crate::types::size;

/// 1 / sqrt(depth), where none is given.
pub(in crate::attention) fn scale_of(given: Option<f64>, depth: i64) -> f64 {
    given.unwrap_or_else(|| if depth > 0 { 1.0 / (depth as f64).sqrt() } else { 1.0 })
}

impl Extents {
    #[inline]
    pub fn of(question: &Question<'_, sys::spk_attention>) -> Extents {
        let p = &question.problem;
        let heads = p.heads.max(1);
        let heads_kv = if p.heads_kv != 0 { p.heads_kv } else { heads };
        let depth_v = if p.depth_v != 0 { p.depth_v } else { p.depth };
        let elements = |(lines, heads, batch), length, ld, head_stride, stride| {
            Headed { lines: lines?, length, ld, heads, head_stride, stride }.elements(batch)
        };
        // All items share the pages.
        let of_pages = p.pages.checked_mul(p.page_keys);
        let keys = if p.page_keys > 0 { (of_pages, heads_kv, 1) } else { (Some(p.keys), heads_kv, p.batch) };
        let queries = (Some(p.queries), heads, p.batch);
        let lists = if p.sequences > 0 { p.sequences } else { p.batch.max(1) };
        let of_item = p.keys / p.page_keys.max(1) + i64::from(p.keys % p.page_keys.max(1) != 0);
        let (blocks, words) = question.pattern.map_or((0, 0), |mask| {
            let (rows, cols) = mask.block();
            (size(mask.nnzb()), size(rows * cols.div_ceil(32)))
        });
        let numbers =
            |asked, count: Option<i64>| Needed::when(asked, count.and_then(|count| usize::try_from(count).ok()));
        let needed = Needed::Elements;
        let lse = elements((Some(1), heads, p.batch), p.queries, 0, p.head_stride_lse, p.stride_lse);
        Extents {
            q: needed(elements(queries, p.depth, p.ldq, p.head_stride_q, p.stride_q)),
            k: needed(elements(keys, p.depth, p.ldk, p.head_stride_k, p.stride_k)),
            v: needed(elements(keys, depth_v, p.ldv, p.head_stride_v, p.stride_v)),
            o: needed(elements(queries, depth_v, p.ldo, p.head_stride_o, p.stride_o)),
            lse: Needed::when(p.want_lse != 0, lse),
            query_ends: numbers(p.sequences > 0, Some(p.sequences)),
            key_ends: numbers(p.sequences > 0 || p.key_lengths != 0, Some(lists)),
            page_table: numbers(p.page_keys > 0, of_item.checked_mul(lists)),
            tile_numbers: numbers(p.tiles > 0, Some(blocks)),
            tile_bits: numbers(p.tiles > 0, words.checked_mul(p.tiles)),
            depth: p.depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{Attention, Context, Diagonal, Pattern};

    fn assert_told(context: &Context, problem: &Attention) {
        let question = problem.question::<f32>(context).unwrap();
        question.assert_extents(Extents::of(&question).named());
    }

    #[test]
    fn the_library_tells_the_same() {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let mask = Pattern::new(&context, (6, 9), (2, 33), &[0, 1, 1, 2], &[0, 0]).unwrap();
        let plain = Attention::new(6, 9, 4).depth_v(3).want_lse();
        let heads = plain.clone().heads(4).heads_kv(2).batch(3);
        let spaced =
            heads.clone().ldq(10).ldk(11).ldv(12).ldo(13).head_stride_q(200).head_stride_k(201).head_stride_v(202);
        let spaced = spaced.head_stride_o(203).head_stride_lse(50).stride_q(1000).stride_k(1001).stride_v(1002);
        for problem in [
            Attention::new(6, 9, 4),
            Attention::new(0, 9, 4),
            plain.clone(),
            heads.clone(),
            spaced.stride_o(1003).stride_lse(300),
            heads.clone().rows_of_heads(),
            heads.clone().share_q().share_k().share_v(),
            heads.clone().key_lengths(),
            heads.clone().key_lengths().pages(4, 10),
            plain.clone().sequences(2),
            plain.clone().sequences(2).causal().diagonal(Diagonal::BottomRight).pages(2, 8),
            plain.clone().mask(&mask),
            plain.mask(&mask).tiles(5),
        ] {
            assert_told(&context, &problem);
        }
    }
}
