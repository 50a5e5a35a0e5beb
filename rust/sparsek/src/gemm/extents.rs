//! How many elements a dense product's operands have.
use super::generated::Extents;
use crate::call::Question;
use crate::extent::{Strided, factors};
use crate::operands::Needed;
use crate::sys;

impl Extents {
    #[inline]
    pub fn of(question: &Question<'_, sys::spk_gemm>) -> Extents {
        let p = &question.problem;
        let (m, n, k) = (p.m, p.n, p.k);
        // Of the batch, or one for each group where this axis is cut.
        let items = |axis| match p.group_axis {
            sys::SPK_GROUP_NONE => p.batch,
            cut if cut == axis => p.groups,
            _ => 1,
        };
        let array = |trans, rows, cols| if trans == sys::SPK_TRANS { (cols, rows) } else { (rows, cols) };
        let (rows, cols) = array(p.trans_a, m, k);
        let a = Strided { rows, cols, layout: p.layout_a, ld: p.lda, stride: p.stride_a };
        let (rows, cols) = array(p.trans_b, k, n);
        let b = Strided { rows, cols, layout: p.layout_b, ld: p.ldb, stride: p.stride_b };
        let [items_a, items_b, items_d] = [sys::SPK_GROUP_COLS, sys::SPK_GROUP_ROWS, sys::SPK_GROUP_DEPTH].map(items);
        let like_d = |asked, ld, stride| {
            let array = Strided { rows: m, cols: n, layout: p.layout_d, ld, stride };
            Needed::when(asked, array.elements(items_d))
        };
        let (of_bias, own) = match p.bias {
            sys::SPK_BIAS_PER_ROW => (m, p.group_axis == sys::SPK_GROUP_COLS),
            _ => (n, p.group_axis == sys::SPK_GROUP_ROWS),
        };
        let bias = of_bias.checked_mul(if own { p.groups } else { 1 });
        let own = |items, stride| if stride == sys::SPK_STRIDE_SHARED { 1 } else { items };
        Extents {
            a: Needed::Elements(a.elements(items_a)),
            b: Needed::Elements(b.elements(items_b)),
            c: like_d(p.use_c != 0, p.ldc, p.stride_c),
            d: like_d(true, p.ldd, p.stride_d),
            bias: Needed::when(p.bias != sys::SPK_BIAS_NONE, bias.and_then(|bias| usize::try_from(bias).ok())),
            residual: like_d(p.residual != sys::SPK_RESIDUAL_NONE, p.ldr, p.stride_r),
            preact: like_d(p.keep_preact != 0, p.ldp, p.stride_p),
            offsets: Needed::when(p.groups != 0, usize::try_from(p.groups).ok()),
            scale_a: factors(p.scale_a, [m, k], 0, own(items_a, p.stride_a)),
            scale_b: factors(p.scale_b, [k, n], 0, own(items_b, p.stride_b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{Bias, Context, F8E5M2, Gemm, GroupAxis, Layout, Product, Scale};

    fn assert_told<A: Product<f32>>(problem: Gemm) {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let question = problem.question::<A, f32>(&context).unwrap();
        question.assert_extents(Extents::of(&question).named());
    }

    #[test]
    fn the_library_tells_the_same() {
        let whole = Gemm::new(5, 4, 7).use_c().bias(Bias::PerRow).residual().keep_preact();
        let spaced = whole.lda(20).ldb(21).ldc(22).ldd(23).ldr(24).ldp(25);
        let items = spaced.batch(3).stride_a(200).stride_b(201).stride_c(202).stride_d(203).stride_r(204).stride_p(205);
        let shared = whole.batch(3).share_a().share_b().share_c().share_residual();
        for problem in [Gemm::new(5, 4, 7), Gemm::new(5, 4, 0), whole, spaced, items, whole.batch(3), shared] {
            assert_told::<f32>(problem);
            assert_told::<f32>(problem.transpose_a().layout_b(Layout::ColMajor));
            assert_told::<f32>(problem.transpose_b().layout_a(Layout::ColMajor).layout_d(Layout::ColMajor));
        }
        for axis in [GroupAxis::Rows, GroupAxis::Cols, GroupAxis::Depth] {
            for bias in [Bias::PerRow, Bias::PerCol] {
                assert_told::<f32>(whole.groups(axis, 3).bias(bias));
            }
        }
    }

    #[test]
    fn and_of_scale_factors() {
        let scales = [Scale::Whole, Scale::PerRow, Scale::PerCol, Scale::Tile(2, 3)];
        for scale_a in scales {
            for scale_b in scales {
                let problem = Gemm::new(5, 4, 7).scale_a(scale_a).scale_b(scale_b);
                for problem in
                    [problem, problem.transpose_a().transpose_b(), problem.batch(3), problem.batch(3).share_a()]
                {
                    assert_told::<i8>(problem);
                    assert_told::<F8E5M2>(problem);
                }
            }
            for axis in [GroupAxis::Rows, GroupAxis::Cols, GroupAxis::Depth] {
                for scale in [Scale::Whole, Scale::PerRow, Scale::PerCol] {
                    assert_told::<i8>(Gemm::new(5, 4, 7).groups(axis, 3).scale_a(scale).scale_b(scale));
                }
            }
        }
    }
}
