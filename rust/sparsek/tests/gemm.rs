//! Dense products, with groups and without, against the formula.
mod common;

use common::{Number, assert_near, context, estimate, numbers};
use half::{bf16, f16};
use sparsek::{Activation, Bias, Context, ErrorKind, Gemm, GemmArgs, GemmPlan, GroupAxis, Layout, Product, Result};
use sparsek::{TuneOptions, Tuning};

/// The place of an element in a matrix of this leading dimension.
fn at(layout: Layout, ld: usize, row: usize, col: usize) -> usize {
    if layout == Layout::RowMajor { row * ld + col } else { col * ld + row }
}

/// a b of tight row-major matrices.
fn formula(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize)) -> Vec<f64> {
    let element = |row: usize, col: usize| (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
    (0..m * n).map(|i| element(i / n, i % n)).collect()
}

fn wide<T: Number>(values: &[T]) -> Vec<f64> {
    values.iter().map(|&value| value.wide()).collect()
}

fn plain<A: Number + Product<D>, D: Number>() {
    let context = context();
    for (m, n, k) in [(1, 1, 1), (7, 19, 33), (64, 48, 32), (5, 1, 40), (1, 40, 5), (3, 4, 0), (0, 3, 2), (3, 0, 2)] {
        let (a, b): (Vec<A>, Vec<A>) = (numbers(m * k, 1), numbers(k * n, 2));
        let exact = formula(&wide(&a), &wide(&b), (m, n, k));
        let mut d = vec![D::of(9.0); m * n];
        let oracle = context.oracle_gemm(&Gemm::new(m, n, k), GemmArgs::new(&a, &b, &mut d)).unwrap();
        assert_near(oracle, &exact);
        context.gemm(&Gemm::new(m, n, k), GemmArgs::new(&a, &b, &mut d), &estimate()).unwrap();
        assert_near(d, &exact);
    }
}

#[test]
fn element_types() {
    plain::<f32, f32>();
    plain::<f64, f64>();
    plain::<f16, f16>();
    plain::<f16, f32>();
    plain::<bf16, bf16>();
    plain::<bf16, f32>();
}

#[test]
fn layouts_transposes_and_leading_dimensions() {
    let context = context();
    let (m, n, k) = (9, 5, 7);
    let (row, col) = (Layout::RowMajor, Layout::ColMajor);
    for trans in [(false, false), (true, false), (false, true), (true, true)] {
        for layouts in [(row, row, row), (col, row, row), (row, col, row), (col, col, col), (row, row, col)] {
            let (lda, ldb, ldd) = (11, 12, 10);
            let mut problem = Gemm::new(m, n, k).layout_a(layouts.0).layout_b(layouts.1).layout_d(layouts.2);
            problem = problem.lda(lda).ldb(ldb).ldd(ldd);
            problem = if trans.0 { problem.transpose_a() } else { problem };
            problem = if trans.1 { problem.transpose_b() } else { problem };
            let (a, b) = (numbers::<f64>(lda * lda, 1), numbers::<f64>(ldb * ldb, 2));
            let place = |layout, ld, flipped, i, j| if flipped { at(layout, ld, j, i) } else { at(layout, ld, i, j) };
            let dense_a: Vec<f64> = (0..m * k).map(|i| a[place(layouts.0, lda, trans.0, i / k, i % k)]).collect();
            let dense_b: Vec<f64> = (0..k * n).map(|i| b[place(layouts.1, ldb, trans.1, i / n, i % n)]).collect();
            let mut d = vec![f64::NAN; ldd * ldd];
            context.gemm(&problem, GemmArgs::new(&a, &b, &mut d), &estimate()).unwrap();
            let got = (0..m * n).map(|i| d[at(layouts.2, ldd, i / n, i % n)]);
            assert_near(got, &formula(&dense_a, &dense_b, (m, n, k)));
            assert_eq!(d.iter().filter(|value| !value.is_nan()).count(), m * n, "nothing else is written");
        }
    }
}

#[test]
fn epilogue() {
    let context = context();
    let (m, n, k) = (12, 10, 6);
    let problem = Gemm::new(m, n, k).use_c().bias(Bias::PerRow).activation(Activation::Silu).residual().keep_preact();
    let [a, b, c, residual] = [m * k, k * n, m * n, m * n].map(|count| numbers::<f64>(count, count));
    let bias = numbers::<f64>(m, 4);
    let before: Vec<f64> =
        formula(&a, &b, (m, n, k)).iter().enumerate().map(|(i, x)| 2.0 * x - c[i] + bias[i / n]).collect();
    let after: Vec<f64> = (0..m * n).map(|i| before[i] / (1.0 + (-before[i]).exp()) + residual[i]).collect();
    let plan = context.plan_gemm(&problem, &estimate()).unwrap();
    let (mut d, mut preact) = (vec![0f64; m * n], vec![0f64; m * n]);
    let args = GemmArgs::new(&a, &b, &mut d).alpha(2.0).c(&c, -1.0).bias(&bias).residual(&residual);
    plan.run(args.preact(&mut preact)).unwrap();
    assert_near(preact.iter().copied(), &before);
    assert_near(d, &after);

    // C or the residual in place.
    let mut in_place = c.clone();
    let args = GemmArgs::new(&a, &b, &mut in_place).alpha(2.0).c_in_place(-1.0).bias(&bias).residual(&residual);
    plan.run(args.preact(&mut preact)).unwrap();
    assert_near(in_place, &after);
    let mut in_place = residual.clone();
    let args = GemmArgs::new(&a, &b, &mut in_place).residual_in_place();
    context.gemm(&Gemm::new(m, n, k).activation(Activation::Relu).factor(), args, &estimate()).unwrap();
    let product = formula(&a, &b, (m, n, k));
    let after: Vec<f64> = (0..m * n).map(|i| product[i].max(0.0) * residual[i]).collect();
    assert_near(in_place, &after);
}

#[test]
fn batches() {
    let context = context();
    let ((m, n, k), items) = ((6, 5, 4), 3);
    let (a, b) = (numbers::<f32>(m * k * items, 1), numbers::<f32>(k * n * items, 2));
    for (problem, own_a, own_b) in [
        (Gemm::new(m, n, k).batch(items), 1, 1),
        (Gemm::new(m, n, k).batch(items).share_a(), 0, 1),
        (Gemm::new(m, n, k).batch(items).stride_a(m * k).share_b(), 1, 0),
    ] {
        let mut d = vec![0f32; m * n * items];
        context.gemm(&problem, GemmArgs::new(&a, &b, &mut d), &estimate()).unwrap();
        let exact = (0..items).flat_map(|item| {
            let (a, b) = (&a[own_a * item * m * k..][..m * k], &b[own_b * item * k * n..][..k * n]);
            formula(&wide(a), &wide(b), (m, n, k))
        });
        assert_near(d, &exact.collect::<Vec<_>>());
    }
}

/// What a group has of a row-major matrix: rows, or columns.
fn cut(matrix: &[f64], cols: usize, range: std::ops::Range<usize>, of_rows: bool) -> Vec<f64> {
    if of_rows {
        return matrix[range.start * cols..range.end * cols].to_vec();
    }
    matrix.chunks(cols).flat_map(|line| line[range.clone()].to_vec()).collect()
}

fn ranges(ends: &[i32]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let starts = [0].into_iter().chain(ends.to_vec()).map(|start| usize::try_from(start).unwrap());
    starts.zip(ends.to_vec()).map(|(start, end)| start..usize::try_from(end).unwrap())
}

#[test]
fn groups() {
    let context = context();
    let (m, n, k) = (12, 12, 12);
    for ends in [vec![3, 3, 8, 11], vec![0, 12], vec![12], vec![0, 0, 0]] {
        let groups = ends.len();
        let many = numbers::<f64>(m * n * groups, 3);
        let (a, b) = (numbers::<f64>(m * k, 1), numbers::<f64>(k * n, 2));

        let mut d = vec![7f64; m * n]; // what is behind the last group stays
        let problem = Gemm::new(m, n, k).groups(GroupAxis::Rows, groups);
        context.gemm(&problem, GemmArgs::new(&a, &many, &mut d).offsets(&ends), &estimate()).unwrap();
        let mut exact = vec![7f64; m * n];
        for (group, range) in ranges(&ends).enumerate() {
            let height = range.len();
            let part = formula(&cut(&a, k, range.clone(), true), &many[group * k * n..][..k * n], (height, n, k));
            exact[range.start * n..range.end * n].copy_from_slice(&part);
        }
        assert_near(d, &exact);

        let mut d = vec![7f64; m * n];
        let problem = Gemm::new(m, n, k).groups(GroupAxis::Cols, groups);
        let plan: GemmPlan<f64> = context.plan_gemm(&problem, &estimate()).unwrap();
        plan.run(GemmArgs::new(&many, &b, &mut d).offsets(&ends)).unwrap();
        let mut exact = vec![7f64; m * n];
        for (group, range) in ranges(&ends).enumerate() {
            let width = range.len();
            let part = formula(&many[group * m * k..][..m * k], &cut(&b, n, range.clone(), false), (m, width, k));
            for (i, value) in part.iter().enumerate() {
                exact[i / width * n + range.start + i % width] = *value;
            }
        }
        assert_near(d, &exact);

        let mut d = vec![7f64; groups * m * n];
        let problem = Gemm::new(m, n, k).groups(GroupAxis::Depth, groups);
        let oracle = context.oracle_gemm(&problem, GemmArgs::new(&a, &b, &mut d).offsets(&ends)).unwrap();
        context.gemm(&problem, GemmArgs::new(&a, &b, &mut d).offsets(&ends), &estimate()).unwrap();
        let exact: Vec<f64> = ranges(&ends)
            .flat_map(|range| {
                let parts = (cut(&a, k, range.clone(), false), cut(&b, n, range.clone(), true));
                formula(&parts.0, &parts.1, (m, n, range.len()))
            })
            .collect();
        assert_near(d, &exact);
        assert_near(oracle, &exact);
    }
}

#[test]
fn bias_of_groups() {
    let context = context();
    let (ends, a, experts, bias) = ([1, 3], [1f32, 2., 3.], [1f32, 10.], [0.5f32, -0.5]);
    let mut d = [0f32; 3];
    let problem = Gemm::new(3, 1, 1).groups(GroupAxis::Rows, 2).bias(Bias::PerCol);
    let args = GemmArgs::new(&a, &experts, &mut d).offsets(&ends).bias(&bias);
    context.gemm(&problem, args, &estimate()).unwrap();
    assert_eq!(d, [1.5, 19.5, 29.5]);
    let args = GemmArgs::new(&a, &experts, &mut d).offsets(&ends).bias(&bias[..1]);
    refused(context.gemm(&problem, args, &estimate()), "bias has 1 elements: the problem needs 2");
}

#[track_caller]
fn refused(result: Result<()>, part: &str) {
    let error = result.expect_err("it must be refused");
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn short_operands_are_refused() {
    let context = context();
    let problem = Gemm::new(3, 2, 4).groups(GroupAxis::Depth, 5).use_c().bias(Bias::PerCol).residual().keep_preact();
    let lengths = [12, 8, 30, 30, 2, 30, 30];
    let names = ["a ", "b ", "d ", "c ", "bias", "residual", "preact"];
    let plan = context.plan_gemm::<f32, f32>(&problem, &estimate()).unwrap();
    let run = |lengths: [usize; 7], offsets: &[i32], at_once: bool| {
        let [a, b, mut d, c, bias, residual, mut preact] = lengths.map(|length| vec![1f32; length]);
        let args = GemmArgs::new(&a, &b, &mut d).c(&c, 1.0).bias(&bias).residual(&residual).preact(&mut preact);
        let args = args.offsets(offsets);
        if at_once { context.gemm(&problem, args, &estimate()) } else { plan.run(args) }
    };
    let ends = [1, 1, 2, 4, 4];
    for at_once in [false, true] {
        run(lengths, &ends, at_once).unwrap();
        for i in 0..lengths.len() {
            let mut short = lengths;
            short[i] -= 1;
            refused(run(short, &ends, at_once), names[i]);
        }
        refused(run(lengths, &ends[..4], at_once), "offsets has 4 elements: the problem needs 5");
        refused(run(lengths, &[1, 1, 2, 4, 5], at_once), "offsets[4] = 5");
        refused(run(lengths, &[1, 0, 2, 4, 4], at_once), "offsets[1] = 0");
        refused(run(lengths, &[-1, 0, 2, 4, 4], at_once), "offsets[0] = -1");
    }
}

#[test]
fn sizes_that_no_memory_holds_are_refused() {
    let context = context();
    let (a, b) = (vec![1f32; 100], vec![1f32; 100]);
    let run = |problem: Gemm| context.gemm(&problem, GemmArgs::new(&a, &b, &mut [0f32; 100]), &estimate());
    run(Gemm::new(3, 3, 3).ldd(10)).unwrap();
    refused(run(Gemm::new(3, 3, 3).ldd(2)), "ldd");
    refused(run(Gemm::new(3, 3, 3).batch(20)), "needs 180");
    refused(run(Gemm::new(3, 3, 3).batch(2).groups(GroupAxis::Rows, 2)), "offsets has 0");
    for huge in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 40] {
        assert!(run(Gemm::new(huge, 3, 3)).is_err());
        assert!(run(Gemm::new(3, huge, 3)).is_err());
        assert!(run(Gemm::new(3, 3, huge)).is_err());
        assert!(run(Gemm::new(3, 3, 3).lda(huge)).is_err());
        assert!(run(Gemm::new(3, 3, 3).batch(huge)).is_err());
        assert!(run(Gemm::new(3, 3, 3).batch(2).stride_b(huge)).is_err());
        assert!(run(Gemm::new(3, 3, 3).groups(GroupAxis::Cols, huge)).is_err());
        let mut d = [0f32; 100];
        let args = GemmArgs::new(&a, &b, &mut d);
        assert!(context.oracle_gemm(&Gemm::new(3, 3, 3).batch(huge), args).is_err());
    }
    assert!(context.plan_gemm::<f32, f32>(&Gemm::new(3, 3, 3).groups(GroupAxis::Rows, 0), &estimate()).is_err());
}

#[test]
fn a_d_that_was_never_written() {
    let context = context();
    let mut d = Vec::<f32>::with_capacity(4);
    let problem = Gemm::new(2, 2, 1).use_c();
    let args = GemmArgs::uninit(&[1., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..4]).c_in_place(1.0);
    refused(context.gemm(&problem, args, &estimate()), "c cannot be a D that was never written");
    let args = GemmArgs::uninit(&[1., 2.], &[3., 4.], &mut d.spare_capacity_mut()[..4]);
    context.gemm(&Gemm::new(2, 2, 1), args, &estimate()).unwrap();
    // SAFETY: all four were written.
    unsafe { d.set_len(4) };
    assert_eq!(d, [3., 4., 6., 8.]);
}

#[test]
fn plans_run_in_many_threads_and_outlive_their_context() {
    let plan = {
        let context: Context = context();
        context.plan_gemm::<f64, f64>(&Gemm::new(20, 30, 40), &estimate()).unwrap()
    };
    let (a, b) = (numbers::<f64>(20 * 40, 1), numbers::<f64>(40 * 30, 2));
    let exact = formula(&a, &b, (20, 30, 40));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut d = vec![0f64; 20 * 30];
                for _ in 0..20 {
                    plan.run(GemmArgs::new(&a, &b, &mut d)).unwrap();
                }
                assert_near(d, &exact);
            });
        }
    });
    assert!(format!("{plan:?}").starts_with("GemmPlan { choice: "), "{plan:?}");
}

#[test]
fn tuned_once_then_from_the_store() {
    let context = context();
    let options = TuneOptions::new().tuning(Tuning::Now).budget(std::time::Duration::from_millis(100));
    for problem in [Gemm::new(64, 48, 80), Gemm::new(64, 48, 80).groups(GroupAxis::Rows, 4)] {
        let report = context.tune_gemm::<f32, f32>(&problem, &options).unwrap();
        assert!(!report.from_store && report.chosen().unwrap().median_us > 0.0);
        let again = context.explain_gemm::<f32, f32>(&problem, &TuneOptions::new()).unwrap();
        assert!(again.from_store);
        assert_eq!(again.class_key, report.class_key);
        let plan = context.plan_gemm::<f32, f32>(&problem, &TuneOptions::new().tuning(Tuning::AheadEach)).unwrap();
        assert_eq!(plan.info().unwrap().kernel, report.chosen().unwrap().name);
        assert!(!context.list_gemm::<f32, f32>(&problem, &TuneOptions::new()).unwrap().candidates.is_empty());
    }
}
