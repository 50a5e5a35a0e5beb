//! Products against the oracle.
mod common;

use common::{Number, assert_near, context, estimate, numbers};
use half::{bf16, f16};
use sparsek::{Activation, Bias, Context, Generate, Layout, Matrix, Pattern, Product, Sddmm, SddmmArgs};
use sparsek::{Spmm, SpmmArgs, TuneOptions, Tuning};

fn pattern(context: &Context, shape: (usize, usize), block: (usize, usize)) -> Pattern {
    Pattern::from_matrix(&Matrix::generate::<f32>(context, Generate::Bernoulli, shape, block, 0.4, 3).unwrap()).unwrap()
}

fn plain<A: Number + Product<D>, D: Number>(transpose: bool) {
    let context = context();
    let pattern = pattern(&context, (70, 50), (16, 8));
    let (m, k) = if transpose { (50, 70) } else { (70, 50) };
    let n = 19;
    let mut problem = Spmm::new(n);
    if transpose {
        problem = problem.transpose_a();
    }
    let (values, b): (Vec<A>, Vec<A>) = (numbers(pattern.values_len(), 1), numbers(k * n, 2));
    let mut d = vec![D::default(); m * n];
    let exact = pattern.oracle_spmm(&problem, SpmmArgs::new(&values, &b, &mut d)).unwrap();
    pattern.matmul(&problem, SpmmArgs::new(&values, &b, &mut d), &estimate()).unwrap();
    assert_near(d, &exact);
}

#[test]
fn element_types_and_transposes() {
    for transpose in [false, true] {
        plain::<f32, f32>(transpose);
        plain::<f64, f64>(transpose);
        plain::<f16, f16>(transpose);
        plain::<f16, f32>(transpose);
        plain::<bf16, bf16>(transpose);
        plain::<bf16, f32>(transpose);
    }
}

#[test]
fn layouts_and_leading_dimensions() {
    let context = context();
    let pattern = pattern(&context, (32, 48), (8, 8));
    let n = 5;
    let problem = Spmm::new(n).layout_b(Layout::ColMajor).ldb(50).layout_d(Layout::ColMajor).ldd(40);
    let values = numbers::<f32>(pattern.values_len(), 1);
    let b = numbers::<f32>(50 * 4 + 48, 2);
    let mut d = vec![9f32; 40 * 4 + 32];
    let exact = pattern.oracle_spmm(&problem, SpmmArgs::new(&values, &b, &mut d)).unwrap();
    pattern.plan_spmm(&problem, &estimate()).unwrap().run(SpmmArgs::new(&values, &b, &mut d)).unwrap();
    let columns = (0..32).flat_map(|row| (0..n).map(move |col| col * 40 + row));
    assert_near(columns.map(|at| d[at]), &exact);
    assert!((0..4).all(|col| d[col * 40 + 32..col * 40 + 40] == [9f32; 8]), "between the columns nothing is written");
}

#[test]
fn epilogue() {
    let context = context();
    let pattern = pattern(&context, (32, 32), (8, 8));
    let n = 6;
    let problem = Spmm::new(n).use_c().bias(Bias::PerRow).activation(Activation::Silu).residual().keep_preact();
    let [values, b] = [pattern.values_len(), 32 * n].map(|count| numbers::<f64>(count, count));
    let (c, bias, residual) = (numbers::<f64>(32 * n, 3), numbers::<f64>(32, 4), numbers::<f64>(32 * n, 5));
    let (mut d, mut preact) = (vec![0f64; 32 * n], vec![0f64; 32 * n]);
    let args = SpmmArgs::new(&values, &b, &mut d).alpha(2.0).c(&c, -1.0).bias(&bias).residual(&residual);
    let plan = pattern.plan_spmm(&problem, &estimate()).unwrap();
    plan.run(args.preact(&mut preact)).unwrap();

    let mut product = vec![0f64; 32 * n];
    let product = pattern.oracle_spmm(&Spmm::new(n), SpmmArgs::new(&values, &b, &mut product)).unwrap();
    let before: Vec<f64> = (0..32 * n).map(|i| 2.0 * product[i] - c[i] + bias[i / n]).collect();
    let after: Vec<f64> = (0..32 * n).map(|i| before[i] / (1.0 + (-before[i]).exp()) + residual[i]).collect();
    assert_near(preact.iter().copied(), &before);
    assert_near(d.iter().copied(), &after);

    // C or the residual in place.
    let mut in_place = c.clone();
    let args = SpmmArgs::new(&values, &b, &mut in_place).alpha(2.0).c_in_place(-1.0).bias(&bias).residual(&residual);
    plan.run(args.preact(&mut preact)).unwrap();
    assert_near(in_place, &after);
    let mut in_place = residual.clone();
    let args = SpmmArgs::new(&values, &b, &mut in_place).alpha(2.0).c(&c, -1.0).bias(&bias).residual_in_place();
    plan.run(args.preact(&mut preact)).unwrap();
    assert_near(in_place, &after);

    // A factor, in place.
    let problem = Spmm::new(n).activation(Activation::Relu).factor();
    let after: Vec<f64> = (0..32 * n).map(|i| product[i].max(0.0) * residual[i]).collect();
    let mut in_place = residual.clone();
    let args = SpmmArgs::new(&values, &b, &mut in_place).residual_in_place();
    pattern.plan_spmm(&problem, &estimate()).unwrap().run(args).unwrap();
    assert_near(in_place, &after);
}

#[test]
fn batches() {
    let context = context();
    let pattern = pattern(&context, (24, 24), (8, 8));
    let (n, items) = (4, 3);
    let values = numbers::<f32>(pattern.values_len() * items, 1);
    let b = numbers::<f32>(24 * n * items, 2);
    let mut d = vec![0f32; 24 * n * items];
    for problem in [
        Spmm::new(n).batch(items),
        Spmm::new(n).batch(items).stride_a(pattern.values_len()),
        Spmm::new(n).batch(items).stride_a(pattern.values_len()).share_b(),
    ] {
        let exact = pattern.oracle_spmm(&problem, SpmmArgs::new(&values, &b, &mut d)).unwrap();
        pattern.matmul(&problem, SpmmArgs::new(&values, &b, &mut d), &estimate()).unwrap();
        assert_near(d.iter().copied(), &exact);
    }
}

#[test]
fn sddmm_is_the_gradient_of_the_values() {
    // The product is linear in the values: sum(G * (A B)) = sum(values * sddmm(G, B^T)).
    let context = context();
    let pattern = pattern(&context, (32, 48), (8, 16));
    let n = 7;
    let values = numbers::<f64>(pattern.values_len(), 1);
    let (b, g) = (numbers::<f64>(48 * n, 2), numbers::<f64>(32 * n, 3));
    let mut product = vec![0f64; 32 * n];
    pattern.matmul(&Spmm::new(n), SpmmArgs::new(&values, &b, &mut product), &estimate()).unwrap();
    let mut gradient = vec![0f64; pattern.values_len()];
    let problem = Sddmm::new(n).layout_y(Layout::ColMajor); // B read as its transpose
    pattern.matmul_sampled(&problem, SddmmArgs::new(&g, &b, &mut gradient), &estimate()).unwrap();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    assert_near([dot(&g, &product)], &[dot(&values, &gradient)]);

    // Added to what is there, in a batch with one Y.
    let x = numbers::<f64>(2 * 32 * n, 4);
    let mut twice = [gradient.clone(), gradient.clone()].concat();
    let problem = problem.batch(2).share_y().use_c();
    let plan = pattern.plan_sddmm(&problem, &estimate()).unwrap();
    plan.run(SddmmArgs::new(&x, &b, &mut twice).c_in_place(1.0)).unwrap();
    let mut second = vec![0f64; pattern.values_len()];
    let single = Sddmm::new(n).layout_y(Layout::ColMajor);
    pattern.matmul_sampled(&single, SddmmArgs::new(&x[32 * n..], &b, &mut second), &estimate()).unwrap();
    let exact: Vec<f64> = second.iter().zip(&gradient).map(|(a, b)| a + b).collect();
    assert_near(twice[pattern.values_len()..].iter().copied(), &exact);
}

#[test]
fn tuned_once_then_from_the_store() {
    let context = context();
    let pattern = pattern(&context, (256, 256), (32, 32));
    let options = TuneOptions::new().tuning(Tuning::Now).budget(std::time::Duration::from_millis(100));
    let problem = Spmm::new(64);
    let report = pattern.tune_spmm::<f32, f32>(&problem, &options).unwrap();
    assert!(!report.from_store && report.chosen().unwrap().median_us > 0.0);
    let again = pattern.explain_spmm::<f32, f32>(&problem, &TuneOptions::new()).unwrap();
    assert!(again.from_store);
    assert_eq!(again.class_key, report.class_key);
    let plan =
        pattern.plan_spmm::<f32, f32>(&problem, &TuneOptions::new().tuning(Tuning::AheadEach)).unwrap().info().unwrap();
    assert!(plan.from_store);
    assert_eq!(plan.kernel, report.chosen().unwrap().name);
    let pinned = TuneOptions::new().choice(plan.choice.clone());
    assert_eq!(pattern.plan_spmm::<f32, f32>(&problem, &pinned).unwrap().info().unwrap().choice, plan.choice);
}
