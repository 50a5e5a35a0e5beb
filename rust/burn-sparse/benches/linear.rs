//! A linear layer's forward pass, 4096 to 4096 features, 256 rows, a tenth of the blocks: `SparseLinear` beside Burn's `Linear`, both on Flex, and
//! the library's own call for the same problem; then what a call costs beside the product, on one block.
//! `bench/burn.py` runs it and writes the results down.
use burn::module::{Initializer, Module};
use burn::nn::LinearConfig;
use burn::tensor::{Device, Distribution, Tensor};
use burn_sparse::{SparseLinear, SparseLinearConfig, TuneConfig, host_context};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};
use sparsek::{Bias, Layout, Spmm, SpmmArgs, TuneOptions, Tuning};
use std::hint::black_box;
use std::time::{Duration, Instant};

const FEATURES: usize = 4096;
const ROWS: usize = 256;

fn layer(features: usize, block: usize, density: f64) -> SparseLinear {
    let config = SparseLinearConfig::new(features, features).with_block([block, block]).with_density(density);
    let config = config.with_tuning(TuneConfig::new().with_assume_finite(true));
    config.with_initializer(Initializer::Uniform { min: -1.0, max: 1.0 }).init(&Device::flex())
}

/// The layer, and what it calls: the product of the same numbers, from slices to a slice.
fn beside_the_library(group: &mut BenchmarkGroup<'_, WallTime>, layer: &SparseLinear, rows: usize) {
    let (weight, device) = (layer.weight.val(), Device::flex());
    let [outputs, inputs] = weight.shape();
    let x = Tensor::<2>::random([rows, inputs], Distribution::Uniform(-1.0, 1.0), &device);
    let numbers = |data: burn::tensor::TensorData| data.try_into_vec::<f32>().expect("f32");
    let (values, b) = (numbers(weight.values().into_data()), numbers(x.clone().into_data()));
    let bias = numbers(layer.bias.as_ref().expect("a layer with bias").val().into_data());
    let mut d = vec![0f32; rows * outputs];
    let problem = Spmm::new(rows).layout_b(Layout::ColMajor).layout_d(Layout::ColMajor).bias(Bias::PerRow);
    let problem = problem.assume_finite(true);
    let options = TuneOptions::new().tuning(Tuning::Now);
    let pattern = weight.pattern().inner();
    pattern.tune_spmm::<f32, f32>(&problem, &options).expect("the class is measured");
    let plan = pattern.plan_spmm::<f32, f32>(&problem, &options).expect("a plan");
    eprintln!("chosen: {}", plan.info().expect("of a plan").choice);

    group.bench_function("sparse_linear", |bench| bench.iter(|| black_box(layer.forward(x.clone()))));
    group.bench_function("library", |bench| {
        bench.iter(|| plan.run(SpmmArgs::new(&values, &b, black_box(&mut d)).bias(&bias)).expect("a product"));
    });
    let ratio = paired(
        || drop(black_box(layer.forward(x.clone()))),
        || plan.run(SpmmArgs::new(&values, &b, black_box(&mut d)).bias(&bias)).expect("a product"),
    );
    eprintln!("over the library: {ratio:.4}");
}

/// The median over rounds of the first's time over the second's: they take turns, so that what else the machine does meets both.
fn paired(mut first: impl FnMut(), mut second: impl FnMut()) -> f64 {
    let mut ratios: Vec<f64> = (0..101)
        .map(|round| {
            let seconds = |call: &mut dyn FnMut()| {
                let begin = Instant::now();
                call();
                begin.elapsed().as_secs_f64()
            };
            if round % 2 == 0 {
                seconds(&mut first) / seconds(&mut second)
            } else {
                let below = seconds(&mut second);
                seconds(&mut first) / below
            }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn forward(criterion: &mut Criterion) {
    eprintln!("{}", serde_json::to_string(&host_context().unwrap().device().unwrap()).unwrap());
    let device = Device::flex();
    for block in [32, 64] {
        let mut group = criterion.benchmark_group(format!("forward_b{block}"));
        group.measurement_time(Duration::from_secs(5)).sample_size(50);
        beside_the_library(&mut group, &layer(FEATURES, block, 0.1), ROWS);
        let dense = LinearConfig::new(FEATURES, FEATURES).init(&device).valid();
        let x = Tensor::<2>::random([ROWS, FEATURES], Distribution::Uniform(-1.0, 1.0), &device);
        group.bench_function("burn_linear", |bench| bench.iter(|| black_box(dense.forward(x.clone()))));
        group.finish();
    }
}

fn call(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("call");
    beside_the_library(&mut group, &layer(32, 32, 1.0), 1);
    group.finish();
}

criterion_group!(benches, forward, call);
criterion_main!(benches);
