//! Products of elements of eight bits with scale factors.
use sparsek::half::{bf16, f16};
use sparsek::{
    Context, Dtype, Element, ErrorKind, F8E4M3, F8E5M2, Gemm, GemmArgs, GemmPointers, GroupAxis, Layout, Matrix,
    Pattern, Product, Scale, Sddmm, SddmmArgs, Spmm, SpmmArgs, TuneOptions,
};

fn context() -> Context {
    Context::builder().store_in_memory().threads(1).build().unwrap()
}

fn estimate() -> TuneOptions {
    TuneOptions::new().estimate()
}

const A: [i8; 12] = [1, -2, 3, 4, 5, -6, 7, 8, -9, 10, 11, 12]; // 3 x 4
const B: [i8; 8] = [2, 1, -3, 5, 4, 0, 1, -7]; // 4 x 2

fn exact(scale_a: impl Fn(usize, usize) -> f32, scale_b: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let at = |i: usize, j: usize| {
        let term = |k: usize| f32::from(A[i * 4 + k]) * scale_a(i, k) * f32::from(B[k * 2 + j]) * scale_b(k, j);
        (0..4).map(term).sum()
    };
    (0..3).flat_map(|i| (0..2).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect()
}

#[track_caller]
fn assert_near(d: &[f32], exact: &[f32]) {
    assert_eq!(d.len(), exact.len());
    assert!(d.iter().zip(exact).all(|(d, exact)| (d - exact).abs() <= 1e-4 * exact.abs().max(1.0)), "{d:?} {exact:?}");
}

/// A number of this type for each of these whole numbers.
fn cast<T: Element>(context: &Context, dtype: Dtype, values: &[i8]) -> Vec<T> {
    let wide: Vec<f32> = values.iter().map(|&value| f32::from(value)).collect();
    let matrix = Matrix::from_dense(context, (1, values.len()), &wide).unwrap();
    matrix.cast(dtype).unwrap().values::<T>().unwrap().to_vec()
}

#[test]
fn gemm_with_factors() {
    let context = context();
    let run = |scale_a: Scale, a: &[f32], scale_b: Scale, b: &[f32]| {
        let problem = Gemm::new(3, 2, 4).scale_a(scale_a).scale_b(scale_b);
        let mut d = [0f32; 6];
        context.gemm(&problem, GemmArgs::new(&A, &B, &mut d).scale_a(a).scale_b(b), &estimate()).unwrap();
        let plan = context.plan_gemm::<i8, f32>(&problem, &estimate()).unwrap();
        let mut again = [0f32; 6];
        plan.run(GemmArgs::new(&A, &B, &mut again).scale_a(a).scale_b(b)).unwrap();
        assert_eq!(d, again);
        let mut pointers = GemmPointers::new(A.as_ptr(), B.as_ptr(), again.as_mut_ptr());
        (pointers.scale_a, pointers.scale_b) = (a.as_ptr(), b.as_ptr());
        // SAFETY: A is 3 x 4, B is 4 x 2, and so are the factors that the run before this one checked.
        unsafe { plan.run_pointers(&pointers, std::ptr::null_mut()) }.unwrap();
        assert_eq!(d, again);
        let oracle = context.oracle_gemm(&problem, GemmArgs::new(&A, &B, &mut again).scale_a(a).scale_b(b)).unwrap();
        assert_near(&d, &oracle.iter().map(|&value| value as f32).collect::<Vec<_>>());
        d
    };
    let (rows, cols) = ([0.5, 2.0, 3.0], [4.0, 0.25]);
    assert_near(&run(Scale::PerRow, &rows, Scale::PerCol, &cols), &exact(|i, _| rows[i], |_, j| cols[j]));
    assert_near(&run(Scale::Whole, &[0.5], Scale::Whole, &[3.0]), &exact(|_, _| 0.5, |_, _| 3.0));
    let (tiles, depth) = ([1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0, 0.5]);
    let scaled = run(Scale::Tile(2, 3), &tiles, Scale::PerRow, &depth);
    assert_near(&scaled, &exact(|i, k| tiles[i / 2 * 2 + k / 3], |k, _| depth[k]));
}

#[test]
fn every_type_of_eight_bits() {
    fn product<A: Product<D>, D: Element>(context: &Context, dtype: Dtype) -> Vec<D> {
        let (a, b, mut d) = (cast::<A>(context, dtype, &A), cast::<A>(context, dtype, &B), vec![D::default(); 6]);
        let problem = Gemm::new(3, 2, 4).scale_a(Scale::PerRow);
        let args = GemmArgs::new(&a, &b, &mut d).scale_a(&[0.5, 2.0, 3.0]);
        context.gemm(&problem, args, &estimate()).unwrap();
        d
    }
    let context = context();
    let exact = exact(|i, _| [0.5, 2.0, 3.0][i], |_, _| 1.0);
    assert_near(&product::<i8, f32>(&context, Dtype::I8), &exact);
    assert_near(&product::<F8E4M3, f32>(&context, Dtype::F8E4M3), &exact); // these numbers have four bits at most
    let halves: Vec<f32> = product::<F8E4M3, f16>(&context, Dtype::F8E4M3).iter().map(|d| d.to_f32()).collect();
    assert_near(&halves, &exact);
    let brief = product::<i8, bf16>(&context, Dtype::I8);
    assert!(brief.iter().zip(&exact).all(|(d, exact)| (d.to_f32() - exact).abs() <= exact.abs() / 128.0), "{brief:?}");
    let coarse = product::<F8E5M2, f32>(&context, Dtype::F8E5M2);
    assert!(coarse.iter().all(|d| d.is_finite()) && coarse != exact);
}

#[test]
fn sparse_products_with_factors() {
    let context = context();
    let pattern = Pattern::new(&context, (3, 4), (1, 2), &[0, 2, 3, 3], &[0, 1, 1]).unwrap();
    let values = [1i8, -2, 3, 4, 7, 8]; // rows 0 and, in the last two columns, 1 of A
    let mut d = [9f32; 6];
    let (blocks, factor) = ([2.0, 0.5, 3.0], [10.0]);
    let problem = Spmm::new(2).scale_a(Scale::PerBlock).scale_b(Scale::Whole);
    let args = SpmmArgs::new(&values, &B, &mut d).scale_a(&blocks).scale_b(&factor);
    pattern.matmul(&problem, args, &estimate()).unwrap();
    // Row 0: 2 ((1, -2) (2, 1; -3, 5)) + 0.5 ((3, 4) (4, 0; 1, -7)); row 1: 3 ((7, 8) (4, 0; 1, -7)).
    assert_near(&d, &[10. * (16. + 8.), 10. * (-18. - 14.), 10. * 108., 10. * -168., 0., 0.]);

    let mut at = [0f32; 6];
    let problem = Sddmm::new(2).layout_y(Layout::ColMajor).scale_x(Scale::PerRow).scale_y(Scale::PerCol);
    let (x, y) = ([1i8, 2, 3, 4, 5, 6], [1i8, 0, 0, 1, 2, 2, 1, 1]); // 3 x 2, and four columns of two
    let args = SddmmArgs::new(&x, &y, &mut at).scale_x(&[1., 10., 100.]).scale_y(&[1., 2., 3., 4.]);
    pattern.matmul_sampled(&problem, args, &estimate()).unwrap();
    assert_near(&at, &[1., 4., 18., 12., 420., 280.]);
}

#[test]
fn factors_are_checked() {
    #[track_caller]
    fn refused(result: sparsek::Result<()>, kind: ErrorKind, part: &str) {
        let error = result.expect_err("it must be refused");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let context = context();
    let run = |problem: Gemm, scale_a: &[f32]| {
        let mut d = [0f32; 6];
        context.gemm(&problem, GemmArgs::new(&A, &B, &mut d).scale_a(scale_a), &estimate())
    };
    let problem = Gemm::new(3, 2, 4);
    run(problem, &[]).unwrap(); // those that the problem does not ask for do not matter
    refused(
        run(problem.scale_a(Scale::PerRow), &[1.0; 2]),
        ErrorKind::Argument,
        "scale_a has 2 elements: the problem needs 3",
    );
    refused(run(problem.scale_a(Scale::PerBlock), &[1.0; 9]), ErrorKind::Argument, "no stored blocks");
    refused(run(problem.scale_a(Scale::Tile(0, 3)), &[1.0; 9]), ErrorKind::Argument, "1 element or more");
    for huge in [usize::MAX, 1 << 62] {
        run(problem.scale_a(Scale::Tile(huge, huge)), &[1.0]).unwrap();
        assert!(run(problem.batch(huge).scale_a(Scale::PerRow), &[1.0; 9]).is_err());
    }
    refused(
        run(problem.groups(GroupAxis::Rows, 1).scale_a(Scale::Tile(2, 1)), &[1.0; 8]),
        ErrorKind::Argument,
        "offsets has 0",
    );
    let (a, b, mut d) = ([1f32; 12], [1f32; 8], [0f32; 6]);
    let args = GemmArgs::new(&a, &b, &mut d).scale_a(&[1.0]);
    refused(
        context.gemm(&problem.scale_a(Scale::Whole), args, &estimate()),
        ErrorKind::Unsupported,
        "scale_a with f32",
    );
}

/// Two zeros would tell the library that there are no factors.
#[test]
fn tiles_of_nothing_are_refused() {
    let context = context();
    for scale in [Scale::Tile(0, 0), Scale::Tile(0, 2), Scale::Tile(2, 0)] {
        let (problem, mut d) = (Gemm::new(3, 2, 4).scale_a(scale), [0f32; 6]);
        let error = context.gemm(&problem, GemmArgs::new(&A, &B, &mut d).scale_a(&[2.0; 12]), &estimate()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().contains("= 0: a factor covers 1 element or more"), "{error}");
    }
}
