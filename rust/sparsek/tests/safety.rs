//! Safe code cannot make the library read or write what is not its own.
use sparsek::{
    Bias, Context, DeviceBuffer, ErrorKind, Generate, Layout, Matrix, Pattern, Report, Result, Sddmm, SddmmArgs,
};
use sparsek::{SddmmPlan, Spmm, SpmmArgs, SpmmPlan, TuneOptions};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

fn context() -> Context {
    Context::builder().store_in_memory().threads(2).build().unwrap()
}

/// 4 x 6 in blocks of 2 x 3, three of them.
fn pattern() -> Pattern {
    Pattern::new(&context(), (4, 6), (2, 3), &[0, 2, 3], &[0, 1, 1]).unwrap()
}

fn estimate() -> TuneOptions {
    TuneOptions::new().estimate()
}

#[track_caller]
fn refused(result: Result<()>, part: &str) {
    let error = result.expect_err("it must be refused");
    assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn short_operands_are_refused() {
    let pattern = pattern();
    let problem = Spmm::new(2).use_c().bias(Bias::PerCol).residual().keep_preact();
    let lengths = [18, 12, 8, 8, 2, 8, 8];
    let names = ["values", "b ", "d ", "c ", "bias", "residual", "preact"];
    let plan = pattern.plan_spmm::<f32, f32>(&problem, &estimate()).unwrap();
    let run = |lengths: [usize; 7], at_once: bool| {
        let [values, b, mut d, c, bias, residual, mut preact] = lengths.map(|length| vec![1f32; length]);
        let args = SpmmArgs::new(&values, &b, &mut d).c(&c, 1.0).bias(&bias).residual(&residual).preact(&mut preact);
        if at_once { pattern.matmul(&problem, args, &estimate()) } else { plan.run(args) }
    };
    for at_once in [false, true] {
        run(lengths, at_once).unwrap();
        for i in 0..lengths.len() {
            let mut short = lengths;
            short[i] -= 1;
            refused(run(short, at_once), names[i]);
        }
    }
    let mut d = [0f32; 8];
    refused(plan.run(SpmmArgs::new(&[1.; 18], &[1.; 12], &mut d)), "c has 0"); // what the problem has must be given
}

#[test]
fn strides_and_leading_dimensions_count() {
    let pattern = pattern();
    let (values, b) = (vec![1f32; 18], vec![1f32; 1000]);
    let run =
        |problem: Spmm, d: usize| pattern.matmul(&problem, SpmmArgs::new(&values, &b, &mut vec![0.; d]), &estimate());
    run(Spmm::new(2).ldd(10), 32).unwrap();
    refused(run(Spmm::new(2).ldd(10), 31), "needs 32");
    run(Spmm::new(2).layout_d(Layout::ColMajor).ldd(10), 14).unwrap();
    refused(run(Spmm::new(2).layout_d(Layout::ColMajor).ldd(10), 13), "needs 14");
    run(Spmm::new(2).batch(3).stride_d(20), 48).unwrap();
    refused(run(Spmm::new(2).batch(3).stride_d(20), 47), "needs 48");
    refused(run(Spmm::new(2).batch(3), 23), "needs 24");
    refused(run(Spmm::new(2).batch(3).stride_a(18), 24), "values");
    for huge in [usize::MAX, usize::MAX / 2, 1 << 62, 1 << 40] {
        assert!(run(Spmm::new(huge), 100).is_err());
        assert!(run(Spmm::new(2).ldb(huge), 100).is_err());
        assert!(run(Spmm::new(2).batch(huge), 100).is_err());
        assert!(run(Spmm::new(2).batch(2).stride_d(huge), 100).is_err());
        assert!(run(Spmm::new(2).batch(2).stride_a(huge), 100).is_err());
        let mut d = [0f32; 100];
        let args = SpmmArgs::new(&values, &b, &mut d);
        assert!(pattern.oracle_spmm(&Spmm::new(2).batch(huge), args).is_err());
    }
    refused(run(Spmm::new(2).ldd(1), 100), "ldd");
    refused(run(Spmm::new(2).batch(2).stride_d(3), 100), "stride_d");
}

#[test]
fn sddmm_operands_are_checked_too() {
    let pattern = pattern();
    let problem = Sddmm::new(5).use_c();
    let run = |x: usize, y: usize, d: usize, c: usize| {
        let (x, y, c) = (vec![1f64; x], vec![1f64; y], vec![1f64; c]);
        pattern.matmul_sampled(&problem, SddmmArgs::new(&x, &y, &mut vec![0.; d]).c(&c, 1.0), &estimate())
    };
    run(20, 30, 18, 18).unwrap();
    refused(run(19, 30, 18, 18), "x has");
    refused(run(20, 29, 18, 18), "y has");
    refused(run(20, 30, 17, 18), "d has");
    refused(run(20, 30, 18, 17), "c has");
}

#[test]
fn indices_are_checked() {
    let context = context();
    let make = |offsets: &[i32], columns: &[i32]| Pattern::new(&context, (4, 6), (2, 3), offsets, columns).map(drop);
    make(&[0, 2, 3], &[0, 1, 1]).unwrap();
    refused(make(&[0, 2], &[0, 1]), "row_offsets has 2");
    refused(make(&[], &[]), "row_offsets has 0");
    refused(make(&[0, 2, 4], &[0, 1, 1]), "");
    refused(make(&[0, 2, 3], &[0, 2, 1]), "");
    refused(make(&[0, 2, 3], &[0, -1, 1]), "");
    refused(make(&[1, 2, 3], &[0, 1, 1]), "");
    for block in [(0, 3), (257, 3), (usize::MAX, 3), (2, 0), (2, 300)] {
        assert!(Pattern::new(&context, (4, 6), block, &[0i32, 2, 3], &[0, 1, 1]).is_err());
    }
    for shape in [(usize::MAX, 6), (4, usize::MAX), (0, 6)] {
        assert!(Pattern::new(&context, shape, (2, 3), &[0i32, 2, 3], &[0, 1, 1]).is_err());
    }
    let short = Matrix::from_triplets(&context, (4, 4), &[1i32, 2], &[1], &[1f32, 2.]).map(drop);
    refused(short, "2 row indices, 1 column indices");
    assert!(Matrix::from_dense(&context, (usize::MAX, 2), &[1f32]).is_err());
}

#[test]
fn owners_keep_what_they_need() {
    let plan: SpmmPlan<f32> = {
        let context = context();
        let pattern = Pattern::new(&context, (4, 6), (2, 3), &[0, 2, 3], &[0, 1, 1]).unwrap();
        drop(context);
        pattern.plan_spmm(&Spmm::new(1), &estimate()).unwrap()
    };
    let mut d = [0f32; 4];
    plan.run(SpmmArgs::new(&[1.; 18], &[1.; 6], &mut d)).unwrap();
    assert_eq!(d, [6., 6., 3., 3.]);
    let matrix = Matrix::generate::<f64>(&context(), Generate::Uniform, (8, 8), (2, 2), 0.5, 1).unwrap();
    assert_eq!(Pattern::from_matrix(&matrix).unwrap().values_len(), matrix.values::<f64>().unwrap().len());
    let buffer = DeviceBuffer::from_slice(&context(), &[1f32, 2.]).unwrap();
    let mut back = [0f32; 2];
    buffer.read(&mut back).unwrap();
    assert_eq!(back, [1., 2.]);
}

#[test]
fn static_values_stay() {
    let pattern = pattern();
    let mut plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(1).static_values(true), &estimate()).unwrap();
    let mut d = [0f32; 4];
    refused(plan.run(SpmmArgs::new(&[1.; 18], &[1.; 6], &mut d)), "update_values");
    refused(plan.update_values(vec![1f32; 17]), "values has 17");
    plan.update_values(vec![2f32; 18]).unwrap(); // the array is the plan's now
    plan.run(SpmmArgs::new(&[], &[1.; 6], &mut d)).unwrap();
    assert_eq!(d, [12., 12., 6., 6.]);
    let shared: Arc<[f32]> = vec![1f32; 18].into();
    plan.update_values(shared.clone()).unwrap();
    assert_eq!(Arc::strong_count(&shared), 2);
    plan.run(SpmmArgs::new(&[], &[1.; 6], &mut d)).unwrap();
    assert_eq!(d, [6., 6., 3., 3.]);
    drop(plan);
    assert_eq!(Arc::strong_count(&shared), 1);
    let mut other = pattern.plan_spmm::<f32, f32>(&Spmm::new(1), &estimate()).unwrap();
    refused(other.update_values(vec![2f32; 18]), "static_values");
    let mut d = [0f32; 4];
    let args = SpmmArgs::new(&[1.; 18], &[1.; 6], &mut d);
    refused(pattern.matmul(&Spmm::new(1).static_values(true), args, &estimate()), "static_values");
}

#[test]
fn many_threads_share_a_plan_and_a_context() {
    let context = context();
    let matrix = Matrix::generate::<f32>(&context, Generate::Uniform, (128, 128), (16, 16), 0.3, 5).unwrap();
    let pattern = Pattern::from_matrix(&matrix).unwrap();
    let values = matrix.values::<f32>().unwrap();
    let plan = pattern.plan_spmm::<f32, f32>(&Spmm::new(32), &estimate()).unwrap();
    let b: Vec<f32> = (0..128 * 32).map(|i| (i % 13) as f32).collect();
    let mut exact = vec![0f32; 128 * 32];
    plan.run(SpmmArgs::new(values, &b, &mut exact)).unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                start.wait();
                for round in 0..50 {
                    let mut d = vec![0f32; 128 * 32];
                    let args = SpmmArgs::new(values, &b, &mut d);
                    if round % 2 == 0 { plan.run(args) } else { pattern.matmul(&Spmm::new(32), args, &estimate()) }
                        .unwrap();
                    assert_eq!(d, exact);
                    // Each thread has messages of its own.
                    let error =
                        plan.run(SpmmArgs::new(values, &b, &mut d[round..])).err().map(|error| error.to_string());
                    let expected =
                        (round > 0).then(|| format!("d has {} elements: the problem needs 4096", 4096 - round));
                    assert_eq!(error, expected);
                }
            });
        }
    });
}

#[test]
fn interrupted_tuning_leaks_no_report() {
    let context = context();
    let pattern = Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1]).unwrap();
    context.interrupt();
    let error = pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &TuneOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    context.resume();
    pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &TuneOptions::new().only("reference_spmm")).unwrap();
}

#[test]
fn callbacks_live_as_long_as_the_context() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let context = Context::builder().store_in_memory();
    let context = context
        .progress(move |_, _, _| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    let pattern = Pattern::new(&context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1]).unwrap();
    drop(context);
    pattern.tune_spmm::<f32, f32>(&Spmm::new(8), &TuneOptions::new().only("reference_spmm,spmm_portable")).unwrap();
    assert!(calls.load(Ordering::Relaxed) > 0);
    drop(pattern);
    assert_eq!(Arc::strong_count(&calls), 1, "the context is gone, and its callbacks with it");
}

#[test]
fn text_with_a_zero_byte_is_refused() {
    refused(Context::builder().device("c\0pu").build().map(drop), "zero byte at 1");
    refused(Matrix::read(&context(), "a\0b").map(drop), "zero byte");
    let options = TuneOptions::new().only("a\0");
    refused(pattern().plan_spmm::<f32, f32>(&Spmm::new(1), &options).map(drop), "only has a zero byte");
}

#[test]
fn empty_problems_do_nothing() {
    let context = context();
    let empty = Pattern::new(&context, (4, 4), (2, 2), &[0i32, 0, 0], &[]).unwrap();
    let mut d = [1f32; 8];
    empty.matmul(&Spmm::new(2), SpmmArgs::new(&[], &[f32::NAN; 8], &mut d), &estimate()).unwrap();
    assert_eq!(d, [0f32; 8]);
    let nothing = Pattern::new(&context, (0, 0), (2, 2), &[0i32], &[]).unwrap();
    nothing.matmul::<f32, f32>(&Spmm::new(2), SpmmArgs::new(&[], &[], &mut []), &estimate()).unwrap();
    assert_eq!(empty.oracle_spmm::<f32, f32>(&Spmm::new(0), SpmmArgs::new(&[], &[], &mut [])).unwrap(), []);
}

/// Who may go to other threads is part of the interface.
#[test]
fn send_and_sync() {
    fn both<T: Send + Sync>() {}
    both::<Context>();
    both::<Pattern>();
    both::<SpmmPlan<f32>>();
    both::<SddmmPlan<f32>>();
    both::<DeviceBuffer<f32>>();
    both::<Report>();
    both::<Matrix>();
}

#[cfg(feature = "rayon")]
#[test]
fn rayon_runs_the_kernels() {
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap());
    let context = Context::builder().store_in_memory().rayon(pool.clone()).build().unwrap();
    assert_eq!(context.device().unwrap().threads, 3);
    let matrix = Matrix::generate::<f32>(&context, Generate::Uniform, (512, 512), (32, 32), 0.3, 5).unwrap();
    let pattern = Pattern::from_matrix(&matrix).unwrap();
    let values = matrix.values::<f32>().unwrap();
    let b: Vec<f32> = (0..512 * 64).map(|i| (i % 7) as f32).collect();
    let product = || {
        let mut d = vec![0f32; 512 * 64];
        pattern.matmul(&Spmm::new(64), SpmmArgs::new(values, &b, &mut d), &estimate()).unwrap();
        d
    };
    let alone = product();
    let (left, right) = pool.install(|| rayon::join(product, product));
    assert!(left == alone && right == alone);
    let options = TuneOptions::new().budget(std::time::Duration::from_millis(50));
    let tune = || pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &options).unwrap().class_key;
    let (left, right) = pool.install(|| rayon::join(tune, tune));
    assert_eq!(left, right);
}

#[test]
fn a_product_that_nobody_wrote_is_no_operand() {
    let context = Context::builder().store_in_memory().build().unwrap();
    let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0]).unwrap();
    let (values, b, options) = ([1f32; 4], [1f32; 2], TuneOptions::new().estimate());
    let mut d = Vec::<f32>::with_capacity(2);
    let args = SpmmArgs::uninit(&values, &b, &mut d.spare_capacity_mut()[..2]).c_in_place(1.0);
    let error = pattern.matmul(&Spmm::new(1).use_c(), args, &options).unwrap_err();
    assert!(error.to_string().contains("c cannot be a D that was never written"), "{error}");
    let args = SpmmArgs::uninit(&values, &b, &mut d.spare_capacity_mut()[..2]).residual_in_place();
    assert!(pattern.matmul(&Spmm::new(1).residual(), args, &options).is_err());
    let args = SpmmArgs::uninit(&values, &b, &mut d.spare_capacity_mut()[..1]);
    assert!(pattern.matmul(&Spmm::new(1), args, &options).is_err());
}
