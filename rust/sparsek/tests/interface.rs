//! Callbacks, interruption, and what can be printed.
use sparsek::{
    Attention, Cancel, Context, DeviceBuffer, ErrorKind, Gemm, Matrix, Pattern, Provisional, Race, Sddmm, SddmmArgs,
    Spmm, SpmmArgs, TuneOptions, Tuning,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn diagonal(context: &Context) -> Pattern {
    Pattern::new(context, (64, 64), (32, 32), &[0, 1, 2], &[0, 1]).unwrap()
}

fn few() -> TuneOptions {
    TuneOptions::new().tuning(Tuning::Now).only("reference_spmm,spmm_portable").budget(Duration::from_millis(300))
}

#[test]
fn interrupted_tuning_tells_what_it_measured() {
    let handle = Arc::new(Mutex::new(None::<Context>));
    let (in_callback, calls) = (handle.clone(), AtomicUsize::new(0));
    let context = Context::builder().store_in_memory().threads(1).progress(move |_, _, _| {
        if calls.fetch_add(1, Ordering::Relaxed) == 3 {
            in_callback.lock().unwrap().as_ref().unwrap().interrupt();
        }
    });
    let context = context.build().unwrap();
    *handle.lock().unwrap() = Some(context.clone());
    let pattern = diagonal(&context);
    let patient = few().budget(Duration::from_secs(30)); // the interruption ends it, not the budget
    let error = pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &patient).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let report = error.partial_report().expect("three candidates were measured");
    assert_eq!(report.provisional, Some(Provisional::Interrupted));
    assert!(report.candidates.iter().any(|candidate| candidate.median_us > 0.0), "{report:?}");
    assert_eq!(error, error.clone());
    context.resume();
    let whole = pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &few()).unwrap();
    assert!(whole.chosen().is_some());
    assert!(pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &few().only("?")).unwrap_err().partial_report().is_none());
    *handle.lock().unwrap() = None; // the context has the callback, and the callback the context
}

#[test]
fn one_tuning_is_cancelled_and_no_other() {
    let cancel = Cancel::new();
    let (in_callback, calls) = (cancel.clone(), AtomicUsize::new(0));
    let context = Context::builder().store_in_memory().threads(1).progress(move |_, _, _| {
        if calls.fetch_add(1, Ordering::Relaxed) == 3 {
            in_callback.cancel();
        }
    });
    let pattern = diagonal(&context.build().unwrap());
    let patient = few().budget(Duration::from_secs(30)).cancel(&cancel);
    let error = pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &patient).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(error.partial_report().unwrap().provisional, Some(Provisional::Interrupted));
    assert!(cancel.is_cancelled());
    let still = pattern.plan_spmm::<f32, f32>(&Spmm::new(8), &patient).unwrap_err();
    assert_eq!(still.kind(), ErrorKind::Interrupted);
    assert!(pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &few()).unwrap().chosen().is_some());
}

#[test]
fn callbacks_may_not_use_the_library() {
    let handle = Arc::new(Mutex::new(None::<Pattern>));
    let (in_callback, refused) = (handle.clone(), Arc::new(AtomicUsize::new(0)));
    let count = refused.clone();
    let context = Context::builder().store_in_memory().threads(1).progress(move |_, _, _| {
        let pattern = in_callback.lock().unwrap().clone().unwrap();
        let error = pattern.plan_spmm::<f32, f32>(&Spmm::new(64), &few()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().contains("callback"), "{error}");
        assert!(Context::new().is_err());
        count.fetch_add(1, Ordering::Relaxed);
    });
    let pattern = diagonal(&context.build().unwrap());
    *handle.lock().unwrap() = Some(pattern.clone());
    pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &few()).unwrap();
    assert!(refused.load(Ordering::Relaxed) > 0);
    *handle.lock().unwrap() = None;
}

#[test]
fn a_panic_in_a_callback_goes_on_after_the_call() {
    let armed = Arc::new(AtomicBool::new(true));
    let panics = armed.clone();
    let context = Context::builder().store_in_memory().threads(1).progress(move |_, _, _| {
        if panics.load(Ordering::Relaxed) {
            panic!("enough");
        }
    });
    let pattern = diagonal(&context.build().unwrap());
    let tune = || pattern.tune_spmm::<f32, f32>(&Spmm::new(64), &few());
    let payload = catch_unwind(AssertUnwindSafe(tune)).expect_err("the callback's panic");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"enough"));
    armed.store(false, Ordering::Relaxed);
    tune().unwrap();
}

#[test]
fn static_values_from_a_pointer_count() {
    let context = Context::builder().store_in_memory().threads(1).build().unwrap();
    let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0]).unwrap();
    let (problem, options) = (Spmm::new(1).static_values(true), TuneOptions::new().estimate());
    let mut plan = pattern.plan_spmm::<f32, f32>(&problem, &options).unwrap();
    let values = [1f32, 2., 3., 4.];
    let mut d = [0f32; 2];
    assert!(plan.run(SpmmArgs::new(&[], &[1., 1.], &mut d)).is_err()); // none yet
    // SAFETY: as many values as the pattern has, which live as long as the plan.
    unsafe { plan.update_values_pointer(values.as_ptr(), std::ptr::null_mut()) }.unwrap();
    plan.run(SpmmArgs::new(&[], &[1., 1.], &mut d)).unwrap();
    assert_eq!(d, [3., 7.]);
    plan.update_values([2f32, 0., 0., 2.]).unwrap();
    plan.run(SpmmArgs::new(&[], &[1., 1.], &mut d)).unwrap();
    assert_eq!(d, [2., 2.]);
}

#[test]
fn promises_are_of_the_problem() {
    let context = Context::builder().store_in_memory().threads(1).build().unwrap();
    let (pattern, options) = (diagonal(&context), few());
    for yes in [false, true] {
        let spmm = Spmm::new(8).assume_finite(yes).static_values(!yes);
        let sddmm = Sddmm::new(8).assume_finite(yes);
        let gemm = Gemm::new(8, 8, 8).assume_finite(yes);
        let attention = Attention::new(8, 8, 8).assume_finite(yes);
        // More is promised of the gradients: what the attention has is not taken over.
        let gradients = Attention::new(8, 8, 8).assume_finite(!yes).backward().assume_finite(yes);
        let spmm = pattern.list_spmm::<f32, f32>(&spmm, &options).unwrap().class_key;
        assert!(spmm.contains(&format!("static={}", i32::from(!yes))), "{spmm}");
        for key in [
            spmm,
            pattern.tune_sddmm::<f32, f32>(&sddmm, &options.clone().only("reference_sddmm")).unwrap().class_key,
            context.list_gemm::<f32, f32>(&gemm, &options).unwrap().class_key,
            context.list_attention::<f32>(&attention, &options).unwrap().class_key,
            context.list_attention_backward::<f32>(&gradients, &options).unwrap().class_key,
        ] {
            assert!(key.contains(&format!("finite={}", i32::from(yes))), "{key}");
        }
    }
}

#[test]
fn all_can_be_printed() {
    let builder = Context::builder().store_in_memory().threads(1).log(|_, _| {});
    assert!(format!("{builder:?}").contains("log: true"), "{builder:?}");
    let context = builder.build().unwrap();
    let (pattern, estimate) = (diagonal(&context), TuneOptions::new().estimate());
    let spmm = pattern.plan_spmm::<f32, f32>(&Spmm::new(2), &estimate).unwrap();
    assert!(format!("{spmm:?}").contains(&spmm.info().unwrap().choice), "{spmm:?}");
    let sddmm = pattern.plan_sddmm::<f32, f32>(&Sddmm::new(2), &estimate).unwrap();
    assert!(format!("{sddmm:?}").contains(&sddmm.info().unwrap().choice), "{sddmm:?}");
    let (values, b, mut d) = ([0f32; 3], [0f32; 4], [0f32; 5]);
    let printed = format!("{:?}", SpmmArgs::new(&values, &b, &mut d).c_in_place(1.0));
    assert!(printed.contains("values: 3, b: 4, d: 5, c: d"), "{printed}");
    let printed = format!("{:?}", SddmmArgs::new(&values, &b, &mut d).alpha(0.5));
    assert!(printed.contains("x: 3, y: 4, d: 5, c: None, alpha: 0.5"), "{printed}");
    let buffer = DeviceBuffer::from_slice(&context, &values).unwrap();
    assert!(format!("{buffer:?}").contains("len: 3"), "{buffer:?}");
}

#[test]
fn a_race_is_built_and_a_matrix_is_shared() {
    let context = Context::builder().store_in_memory().threads(1).build().unwrap();
    let race = Race::new().rounds(2).choice("reference_spmm").keep(true);
    let report = diagonal(&context).race_spmm::<f32, f32>(&Spmm::new(4), &few(), &race).unwrap();
    assert_eq!(report.chosen().unwrap().name, "reference_spmm");
    let device = context.device().unwrap();
    assert_eq!((device.clock_mhz, device.power_w, device.proved_candidates), (0.0, 0.0, 0)); // a GPU's
    let matrix = Matrix::from_dense(&context, (2, 2), &[1f32, 0., 0., 2.]).unwrap();
    let sums = std::thread::scope(|scope| {
        let sum =
            || matrix.to_bsr((1, 1), sparsek::Layout::RowMajor).unwrap().values::<f32>().unwrap().iter().sum::<f32>();
        [scope.spawn(sum), scope.spawn(sum)].map(|thread| thread.join().unwrap())
    });
    assert_eq!(sums, [3., 3.]);
}
