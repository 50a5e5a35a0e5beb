//! How many elements a product's operands have.
use super::generated::Extents;
use crate::call::Question;
use crate::extent::{Strided, factors, items};
use crate::operands::Needed;
use crate::pattern::Pattern;
use crate::sys;

impl Extents {
    #[inline]
    pub fn of(question: &Question<'_, sys::spk_spmm>) -> Extents {
        let (p, pattern) = (&question.problem, question.pattern);
        let (rows, cols) = pattern.map_or((0, 0), Pattern::sizes);
        let (m, k) = if p.trans_a == sys::SPK_TRANS { (cols, rows) } else { (rows, cols) };
        let (n, batch) = (p.n, p.batch);
        let like_d = |asked, ld, stride| {
            let array = Strided { rows: m, cols: n, layout: p.layout_d, ld, stride };
            Needed::when(asked, array.elements(batch))
        };
        let b = Strided { rows: k, cols: n, layout: p.layout_b, ld: p.ldb, stride: p.stride_b };
        let bias = if p.bias == sys::SPK_BIAS_PER_ROW { m } else { n };
        let blocks = pattern.map_or(0, Pattern::nnzb_i64);
        let own = |is_shared| if is_shared { 1 } else { batch };
        Extents {
            values: Needed::Elements(items(pattern.map_or(0, Pattern::values_i64), p.stride_a, batch)),
            b: Needed::Elements(b.elements(batch)),
            c: like_d(p.use_c != 0, p.ldc, p.stride_c),
            d: like_d(true, p.ldd, p.stride_d),
            bias: Needed::when(p.bias != sys::SPK_BIAS_NONE, usize::try_from(bias).ok()),
            residual: like_d(p.residual != sys::SPK_RESIDUAL_NONE, p.ldr, p.stride_r),
            preact: like_d(p.keep_preact != 0, p.ldp, p.stride_p),
            scale_a: factors(p.scale_a, [m, k], blocks, own(p.stride_a == 0)),
            scale_b: factors(p.scale_b, [k, n], 0, own(p.stride_b == sys::SPK_STRIDE_SHARED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{Bias, Context, F8E4M3, Layout, Pattern, Product, Scale, Spmm};

    /// 5 x 7 in blocks of 2 x 3, four of them.
    fn assert_told<A: Product<f32>>(problem: Spmm) {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let pattern = Pattern::new(&context, (5, 7), (2, 3), &[0, 2, 3, 4], &[0, 2, 1, 0]).unwrap();
        let question = problem.question::<A, f32>(&pattern).unwrap();
        question.assert_extents(Extents::of(&question).named());
    }

    #[test]
    fn the_library_tells_the_same() {
        let whole = Spmm::new(4).use_c().bias(Bias::PerRow).residual().keep_preact();
        let spaced = whole.ldb(9).ldc(10).ldd(11).ldr(12).ldp(13).layout_b(Layout::ColMajor);
        let items = spaced.batch(3).stride_b(100).stride_c(101).stride_d(102).stride_r(103).stride_p(104);
        for problem in [Spmm::new(4), whole, spaced, items, whole.batch(3), Spmm::new(0), whole.batch(2).stride_a(30)] {
            assert_told::<f32>(problem);
            assert_told::<f32>(problem.transpose_a().bias(Bias::PerCol).layout_d(Layout::ColMajor));
        }
        assert_told::<f32>(whole.batch(3).share_b().share_c().share_residual());
    }

    #[test]
    fn and_of_scale_factors() {
        let scales = [Scale::Whole, Scale::PerRow, Scale::PerCol, Scale::Tile(2, 3), Scale::PerBlock];
        for scale_a in scales {
            for scale_b in &scales[..4] {
                let problem = Spmm::new(4).scale_a(scale_a).scale_b(*scale_b);
                for problem in
                    [problem, problem.transpose_a(), problem.batch(3), problem.batch(3).stride_a(24).share_b()]
                {
                    assert_told::<i8>(problem);
                    assert_told::<F8E4M3>(problem);
                }
            }
        }
        assert_told::<i8>(Spmm::new(0).scale_a(Scale::PerRow).scale_b(Scale::PerCol));
    }
}
