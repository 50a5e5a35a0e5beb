//! How many elements the operands have.
use super::generated::Extents;
use crate::call::Question;
use crate::extent::{Strided, factors, items};
use crate::operands::Needed;
use crate::pattern::Pattern;
use crate::sys;

impl Extents {
    #[inline]
    pub fn of(question: &Question<'_, sys::spk_sddmm>) -> Extents {
        let (p, pattern) = (&question.problem, question.pattern);
        let (m, n) = pattern.map_or((0, 0), Pattern::sizes);
        let (k, batch) = (p.k, p.batch);
        let x = Strided { rows: m, cols: k, layout: p.layout_x, ld: p.ldx, stride: p.stride_x };
        let y = Strided { rows: k, cols: n, layout: p.layout_y, ld: p.ldy, stride: p.stride_y };
        let item = pattern.map_or(0, Pattern::values_i64);
        let values = |stride: i64| match stride {
            sys::SPK_STRIDE_SHARED => items(item, 0, batch),
            0 => items(item, item, batch),
            given => items(item, given, batch),
        };
        let own = |stride| if stride == sys::SPK_STRIDE_SHARED { 1 } else { batch };
        Extents {
            x: Needed::Elements(x.elements(batch)),
            y: Needed::Elements(y.elements(batch)),
            c: Needed::when(p.use_c != 0, values(p.stride_c)),
            d: Needed::Elements(values(p.stride_d)),
            scale_x: factors(p.scale_x, [m, k], 0, own(p.stride_x)),
            scale_y: factors(p.scale_y, [k, n], 0, own(p.stride_y)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Extents;
    use crate::{Context, Layout, Pattern, Product, Scale, Sddmm};

    fn assert_told<X: Product<f32>>(problem: Sddmm) {
        let context = Context::builder().store_in_memory().threads(1).build().unwrap();
        let pattern = Pattern::new(&context, (5, 7), (2, 3), &[0, 2, 3, 4], &[0, 2, 1, 0]).unwrap();
        let question = problem.question::<X, f32>(&pattern).unwrap();
        question.assert_extents(Extents::of(&question).named());
    }

    #[test]
    fn the_library_tells_the_same() {
        let whole = Sddmm::new(4).use_c();
        let spaced = whole.ldx(9).ldy(10).batch(3).stride_x(100).stride_y(101).stride_c(102).stride_d(103);
        for problem in [Sddmm::new(4), Sddmm::new(0), whole, spaced, whole.batch(3), whole.batch(3).share_x().share_y()]
        {
            assert_told::<f32>(problem);
            assert_told::<f32>(problem.layout_y(Layout::ColMajor).block_layout(Layout::ColMajor));
        }
    }

    #[test]
    fn and_of_scale_factors() {
        for scale in [Scale::Whole, Scale::PerRow, Scale::PerCol, Scale::Tile(2, 3)] {
            let problem = Sddmm::new(4).scale_x(scale).scale_y(scale);
            for problem in [problem, problem.batch(3), problem.batch(3).share_x()] {
                assert_told::<i8>(problem);
            }
        }
    }
}
