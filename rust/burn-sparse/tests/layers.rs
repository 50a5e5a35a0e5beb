//! Layers: training, records, pruning.
mod common;
use burn::config::Config;
use burn::module::{Module, Param, ParamGroup};
use burn::nn::{Linear, LinearConfig, LinearLayout};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::{Device, Tensor};
use burn_sparse::{
    Activation, BsrPattern, BsrTensor, MaybeSparse, PruneConfig, SparseLinear, SparseLinearConfig, prune,
};
use common::{assert_near, estimate, numbers};
use std::panic::AssertUnwindSafe;

fn config(inputs: usize, outputs: usize) -> SparseLinearConfig {
    common::setup();
    SparseLinearConfig::new(inputs, outputs).with_block([8, 8]).with_density(0.5).with_tuning(estimate())
}

#[derive(Module, Debug)]
struct Mlp {
    inner: SparseLinear,
    outer: SparseLinear,
}

impl Mlp {
    fn new(seed: u64, device: &Device) -> Mlp {
        let inner = config(24, 32).with_seed(seed).with_activation(Some(Activation::Gelu)).init(device);
        Mlp { inner, outer: config(32, 16).with_seed(seed + 1).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.outer.forward(self.inner.forward(x))
    }
}

/// The loss before and after learning what the teacher says.
fn train(
    teacher: &Mlp,
    mut mlp: Mlp,
    mut optimizer: ModuleOptimizer,
    rate: f64,
    steps: usize,
    device: &Device,
) -> (f32, f32, Mlp) {
    let x = numbers([64, 24], device);
    let wanted = teacher.forward(x.clone()).detach();
    let loss = |mlp: &Mlp| (mlp.forward(x.clone()) - wanted.clone()).powi_scalar(2).mean();
    let first = loss(&mlp).into_scalar::<f32>();
    for _ in 0..steps {
        let grads = GradientsParams::from_grads(loss(&mlp).backward(), &mlp);
        mlp = optimizer.step(rate, mlp, grads);
    }
    (first, loss(&mlp).into_scalar::<f32>(), mlp)
}

#[test]
fn optimizers_train_it() {
    let device = Device::flex().autodiff();
    let (teacher, mlp) = (Mlp::new(1, &device), Mlp::new(1, &device));
    let pattern = mlp.inner.weight.pattern().clone();
    let (first, last, mlp) = train(&teacher, mlp, AdamConfig::new().init(), 1e-2, 200, &device);
    assert!(last < 0.2 * first, "{first} -> {last}");
    assert_eq!(mlp.inner.weight.pattern(), &pattern);
    let (first, last, _) = train(&teacher, Mlp::new(1, &device), SgdConfig::new().init(), 0.5, 100, &device);
    assert!(last < 0.9 * first, "{first} -> {last}");
}

#[test]
fn a_layer_begins_as_its_density_asks() {
    let device = Device::flex();
    let layer = config(512, 256).with_density(0.25).init(&device);
    let values = layer.weight.values().val();
    // Kaiming with the inputs that an output has: uniform within sqrt(1 / 128).
    let limit = (1.0f32 / 128.0).sqrt();
    let largest = values.clone().abs().max().into_scalar::<f32>();
    assert!(largest <= limit && largest > 0.95 * limit, "{largest} of {limit}");
    assert_eq!(layer.num_params(), 32 * 64 / 4 * 64 + 256);
    assert_eq!(
        config(64, 64).with_seed(3).init(&device).weight.pattern(),
        config(64, 64).with_seed(3).init(&device).weight.pattern()
    );
    assert_ne!(
        config(64, 64).with_seed(3).init(&device).weight.pattern(),
        config(64, 64).with_seed(4).init(&device).weight.pattern()
    );
}

#[test]
fn a_config_is_written_and_read() {
    let written = config(24, 32).with_activation(Some(Activation::Silu));
    let path = std::env::temp_dir().join(format!("burn-sparse-config-{}.json", std::process::id()));
    written.save(&path).unwrap();
    let read = SparseLinearConfig::load(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!((read.block, read.activation, read.tuning), (written.block, written.activation, written.tuning));
}

#[test]
fn records_bring_values_and_pattern() {
    let device = Device::flex();
    let (saved, other) = (Mlp::new(1, &device), Mlp::new(5, &device));
    assert_ne!(saved.inner.weight.pattern(), other.inner.weight.pattern());
    let x = numbers([9, 24], &device);
    let expected = saved.forward(x.clone());

    let bytes = saved.clone().into_record().into_bytes().unwrap();
    let loaded = other.clone().load_record(ModuleRecord::from_bytes(bytes).unwrap());
    assert_near(loaded.forward(x.clone()), expected.clone(), 0.0);
    assert_eq!(loaded.inner.weight.pattern(), saved.inner.weight.pattern());
    assert_eq!(loaded.inner.weight.values().id, saved.inner.weight.values().id);

    let path = std::env::temp_dir().join(format!("burn-sparse-record-{}.bpk", std::process::id()));
    saved.save_file(&path).unwrap();
    let loaded = other.load_file(&path);
    assert_near(loaded.forward(x), expected, 0.0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn training_goes_on_from_a_record() {
    let device = Device::flex().autodiff();
    let teacher = Mlp::new(1, &device);
    let (_, half, mlp) = train(&teacher, Mlp::new(1, &device), AdamConfig::new().init(), 1e-2, 60, &device);
    let record = mlp.valid().into_record();
    let (first, last, _) =
        train(&teacher, Mlp::new(9, &device).load_record(record), AdamConfig::new().init(), 1e-2, 60, &device);
    assert!((first - half).abs() < 1e-6 && last < half, "{half}, {first} -> {last}");
}

/// Loads a record and expects an error that says so much; the module stays what it was.
#[track_caller]
fn refused(layer: &SparseLinear, record: ModuleRecord, message: &str) {
    let (device, pattern) = (Device::flex(), layer.weight.pattern().clone());
    let before = layer.forward(Tensor::<2>::ones([2, 24], &device));
    match layer.clone().try_load_record(record) {
        Err(RecordError::Validation(why)) => assert!(why.contains(message), "{why}"),
        other => panic!("no refusal: {other:?}"),
    }
    assert_eq!(layer.weight.pattern(), &pattern);
    assert_near(layer.forward(Tensor::<2>::ones([2, 24], &device)), before, 0.0);
}

#[test]
fn a_wrong_record_is_an_error_and_changes_nothing() {
    let device = Device::flex();
    let layer = config(24, 32).init(&device);
    refused(&layer, config(24, 32).with_density(0.25).init(&device).into_record(), "shape mismatch");
    refused(
        &layer,
        config(24, 32).with_block([8, 4]).with_density(0.25).init(&device).into_record(),
        "weight.values: shape mismatch",
    );
    refused(
        &layer,
        config(32, 24).with_bias(false).init(&device).into_record(),
        "of a matrix of 24 x 32, the module's are 32 x 24",
    );
    refused(&layer, LinearConfig::new(24, 32).init(&device).into_record(), "weight.pattern");
}

/// Values stay in their blocks: a pattern alone is refused, and values alone go to the module's own.
#[test]
fn a_pattern_comes_with_its_values() {
    let device = Device::flex();
    let (layer, other) = (config(24, 32).init(&device), config(24, 32).with_seed(5).init(&device));
    assert_ne!(layer.weight.pattern(), other.weight.pattern());
    let part = |path: &str| other.clone().into_record_group(ParamGroup::from_path(path));
    assert_eq!(part("weight.pattern").len(), 1);
    refused(&layer, part("weight.pattern"), "weight.pattern is taken only together with its values");
    refused(&layer, part("weight.pattern").allow_partial(true), "Unused tensors: [\"weight.pattern\"]");
    let loaded = layer.clone().load_record(part("weight.values").allow_partial(true));
    assert_eq!(loaded.weight.pattern(), layer.weight.pattern());
    assert_near(loaded.weight.values().val(), other.weight.values().val(), 0.0);
    // Nothing of the weight: it stays.
    let loaded = layer.clone().load_record(part("bias").allow_partial(true));
    assert_near(loaded.weight.val().to_dense(), layer.weight.val().to_dense(), 0.0);
}

#[test]
fn a_bias_of_another_length_is_refused() {
    for device in [Device::flex(), Device::flex().autodiff()] {
        for length in [16, 64] {
            let mut layer = config(24, 32).init(&device);
            layer.bias = Some(Param::from_tensor(numbers([length], &device)));
            let x = numbers([4, 24], &device);
            let why = std::panic::catch_unwind(AssertUnwindSafe(|| layer.forward(x))).unwrap_err();
            let why = why.downcast::<String>().unwrap();
            assert!(why.contains(&format!("a bias of {length} for 32 outputs")), "{why}");
        }
    }
}

/// A record whose pattern is none: a module of the same names and shapes writes it.
#[test]
fn a_pattern_that_is_none_is_an_error() {
    #[derive(Module, Debug)]
    struct Weight {
        pattern: Param<Tensor<2, burn::tensor::Int>>,
        values: Param<Tensor<3>>,
    }
    #[derive(Module, Debug)]
    struct Forged {
        weight: Weight,
    }
    common::setup();
    let device = Device::flex();
    let pattern = BsrPattern::new([32, 24], [8, 8], &[0, 1, 2, 2, 2], &[2, 0]).unwrap();
    let weight = BsrTensor::new(pattern, numbers([2, 8, 8], &device)).unwrap().with_tuning(estimate());
    let layer = SparseLinear::from_parts(weight, None).unwrap();
    let forged = |places: [[i64; 2]; 2]| {
        let pattern = Param::initialized(
            burn::module::ParamId::new(),
            Tensor::from_data([[32, 24], [8, 8], places[0], places[1]], &device),
        );
        Forged { weight: Weight { pattern, values: Param::from_tensor(Tensor::zeros([2, 8, 8], &device)) } }
    };
    refused(&layer, forged([[0, 0], [4, 0]]).into_record(), "there is no block row 4: there are 4");
    refused(&layer, forged([[0, 0], [-1, 0]]).into_record(), "there is no block row -1");
    refused(&layer, forged([[0, 0], [i64::from(i32::MAX), 0]]).into_record(), "there is no block row");
    refused(&layer, forged([[1, 0], [0, 0]]).into_record(), "do not ascend");
    refused(&layer, forged([[0, 1], [0, 1]]).into_record(), "do not ascend");
    refused(&layer, forged([[0, 0], [0, 3]]).into_record(), "does not fit");
    // A record that may be partial loads in spite of it, but not as if nothing had been there.
    let partial = forged([[0, 0], [4, 0]]).into_record().allow_partial(true);
    let loaded = layer.clone().try_load_record(partial).unwrap();
    let why = std::panic::catch_unwind(AssertUnwindSafe(|| loaded.weight.val())).unwrap_err();
    assert!(why.downcast::<String>().unwrap().contains("there is no block row 4"));
    let loaded = layer.load_record(forged([[0, 0], [3, 2]]).into_record());
    assert_eq!(loaded.weight.pattern().coordinates().collect::<Vec<_>>(), [(0, 0), (3, 2)]);
}

#[test]
fn a_dense_layer_keeps_its_largest_blocks() {
    common::setup();
    let device = Device::flex();
    for layout in [LinearLayout::Row, LinearLayout::Col] {
        let dense = LinearConfig::new(24, 40).with_layout(layout).init(&device);
        let all = SparseLinear::from_linear(&dense, [8, 8], 1.0).unwrap().with_tuning(estimate());
        let x = numbers([9, 24], &device);
        assert_near(all.forward(x.clone()), dense.forward(x), 1e-5);
    }
    let linear = LinearConfig::new(24, 40).init(&device);
    assert!(SparseLinear::from_linear(&linear, [8, 8], -0.5).is_err());
    assert!(SparseLinear::from_linear(&linear, [0, 8], 0.5).is_err());
}

#[derive(Module, Debug)]
struct Net {
    first: Linear,
    stack: Vec<MaybeSparse>,
    last: Option<MaybeSparse>,
}

impl Net {
    fn new(device: &Device) -> Net {
        let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(device);
        let stack = vec![MaybeSparse::from(layer(32, 32)), MaybeSparse::from(layer(32, 32))];
        Net { first: layer(24, 32), stack, last: Some(MaybeSparse::from(layer(32, 8))) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.stack.iter().fold(self.first.forward(x), |x, layer| layer.forward(x));
        self.last.as_ref().map_or(x.clone(), |last| last.forward(x))
    }
}

#[test]
fn pruning_converts_what_may_be_sparse() {
    common::setup();
    let device = Device::flex().autodiff();
    let keep = |density| PruneConfig::new([8, 8], density).with_tuning(estimate());
    let (net, x) = (Net::new(&device), numbers([5, 24], &device));
    let (whole, pruned) = prune(net.clone(), &keep(1.0)).unwrap();
    assert_eq!(pruned.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(), ["stack.0", "stack.1", "last"]);
    assert_near(whole.forward(x.clone()), net.forward(x.clone()), 1e-5);

    let (half, pruned) = prune(net.clone(), &keep(0.5).with_least_features(16)).unwrap();
    assert_eq!(pruned.iter().map(|p| p.nnzb).collect::<Vec<_>>(), [8, 8]);
    assert!(half.stack.iter().all(MaybeSparse::is_sparse) && !half.last.as_ref().unwrap().is_sparse());
    let (_, none) = prune(half.clone(), &keep(0.5).with_least_features(16)).unwrap();
    assert!(none.is_empty());
    let grads = GradientsParams::from_grads(half.forward(x.clone()).sum().backward(), &half);
    assert_eq!(grads.len(), 8);

    let (again, _) = prune(Net::new(&device), &keep(0.5).with_least_features(16)).unwrap();
    let again = again.load_record(half.clone().into_record());
    assert_near(again.forward(x.clone()), half.forward(x.clone()), 0.0);
    assert!(Net::new(&device).try_load_record(half.into_record()).is_err());

    assert!(prune(net.clone(), &keep(2.0)).is_err());
    // What failed leaves nothing behind: mapping converts nothing afterwards.
    assert!(!net.set_require_grad(true).stack[0].is_sparse());
}
