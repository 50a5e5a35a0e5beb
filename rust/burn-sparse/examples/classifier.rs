//! A classifier with block-sparse layers, trained by Burn's own training loop: `cargo run --release --features train --example classifier [EPOCHS]`.
//!
//! The data set is made, the same every time: a digit as a seven-segment display shows it, 16 x 16, moved by up to two pixels, every pixel's
//! brightness off by up to 0.3; 8,000 to learn from, 1,000 to validate with. A record is saved and loaded into a new model at the end.
use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::lr_scheduler::constant::ConstantLr;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn::train::metric::{AccuracyMetric, LossMetric};
use burn::train::{ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep};
use burn_sparse::{Activation, Effort, SparseLinear, SparseLinearConfig, TuneConfig};

const SIDE: usize = 16;

/// Which segments (top, upper left, upper right, middle, lower left, lower right, bottom) a digit lights.
const SEGMENTS: [&str; 10] = ["abcefg", "cf", "acdeg", "acdfg", "bcdf", "abdfg", "abdefg", "acf", "abcdefg", "abcdfg"];

#[derive(Clone, Debug)]
struct Image {
    pixels: Vec<f32>,
    digit: i32,
}

/// Numbers in 0..1, splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() * limit as f32) as usize
    }
}

fn draw(random: &mut Random) -> Image {
    let digit = random.below(10);
    let (down, right) = (random.below(5), random.below(5));
    let mut pixels = vec![0f32; SIDE * SIDE];
    let mut light = |row: usize, col: usize| pixels[(row + down) * SIDE + col + right] = 1.0;
    for segment in SEGMENTS[digit].chars() {
        match segment {
            'a' => (1..7).for_each(|col| light(0, col)),
            'b' => (1..5).for_each(|row| light(row, 0)),
            'c' => (1..5).for_each(|row| light(row, 7)),
            'd' => (1..7).for_each(|col| light(5, col)),
            'e' => (6..10).for_each(|row| light(row, 0)),
            'f' => (6..10).for_each(|row| light(row, 7)),
            _ => (1..7).for_each(|col| light(10, col)),
        }
    }
    pixels.iter_mut().for_each(|pixel| *pixel += 0.6 * random.next() - 0.3);
    Image { pixels, digit: digit as i32 }
}

#[derive(Clone, Debug)]
struct Batch {
    images: Tensor<2>,
    digits: Tensor<1, Int>,
}

#[derive(Clone)]
struct Batches;

impl Batcher<Image, Batch> for Batches {
    fn batch(&self, items: Vec<Image>, device: &Device) -> Batch {
        let pixels: Vec<f32> = items.iter().flat_map(|item| item.pixels.iter().copied()).collect();
        let digits: Vec<i32> = items.iter().map(|item| item.digit).collect();
        let images = Tensor::from_data(TensorData::new(pixels, [items.len(), SIDE * SIDE]), device);
        Batch { images, digits: Tensor::from_data(TensorData::new(digits, [items.len()]), device) }
    }
}

/// Two sparse layers and a small dense one.
#[derive(Module, Debug)]
struct Classifier {
    first: SparseLinear,
    second: SparseLinear,
    last: Linear,
}

impl Classifier {
    fn new(seed: u64, device: &Device) -> Classifier {
        let tuning = TuneConfig::new().with_effort(Effort::Estimate); // small products: measuring them would take longer
        let layer = |inputs, outputs, seed| {
            let config =
                SparseLinearConfig::new(inputs, outputs).with_block([16, 16]).with_density(0.25).with_seed(seed);
            config.with_activation(Some(Activation::Relu)).with_tuning(tuning).init(device)
        };
        let first = layer(SIDE * SIDE, 256, seed);
        Classifier { first, second: layer(256, 128, seed + 1), last: LinearConfig::new(128, 10).init(device) }
    }

    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        self.last.forward(self.second.forward(self.first.forward(images)))
    }

    fn classify(&self, batch: Batch) -> ClassificationOutput {
        let output = self.forward(batch.images);
        let loss = CrossEntropyLossConfig::new().init(&output.device());
        let loss = loss.forward(output.clone(), batch.digits.clone());
        ClassificationOutput { loss, output, targets: batch.digits }
    }

    /// The share of images that it names right.
    fn accuracy(&self, images: &[Image], device: &Device) -> f64 {
        let batch = Batches.batch(images.to_vec(), device);
        let named = self.forward(batch.images).argmax(1).reshape([images.len()]);
        let right = named.equal(batch.digits).int().sum().into_scalar::<i64>();
        right as f64 / images.len() as f64
    }
}

impl TrainStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        let item = self.classify(batch);
        TrainOutput::new(self, item.loss.backward(), item)
    }
}

impl InferenceStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

fn main() {
    let epochs = std::env::args().nth(1).map_or(6, |epochs| epochs.parse().expect("a number of epochs"));
    let device = Device::flex();
    device.seed(1);
    let mut random = Random(2026);
    let mut images = |count: usize| (0..count).map(|_| draw(&mut random)).collect::<Vec<_>>();
    let (to_learn, to_validate) = (images(8000), images(1000));
    let loader = |items: &[Image]| {
        let builder = DataLoaderBuilder::new(Batches).batch_size(100).shuffle(1).num_workers(0);
        builder.build(InMemDataset::new(items.to_vec()))
    };

    let model = Classifier::new(1, &device.clone().autodiff());
    println!("{model}");
    let folder = std::env::temp_dir().join(format!("burn-sparse-classifier-{}", std::process::id()));
    let training = SupervisedTraining::new(&folder, loader(&to_learn), loader(&to_validate))
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .num_epochs(epochs)
        .with_default_checkpointers()
        .summary();
    let trained = training.launch(Learner::new(model, AdamConfig::new().init(), ConstantLr::new(1e-3))).model;

    let record = folder.join("classifier.bpk");
    let accuracy = trained.accuracy(&to_validate, &device);
    trained.save_file(&record).expect("a record is saved");
    let loaded = Classifier::new(99, &device).load_file(&record); // other blocks, until it is loaded
    assert_eq!(loaded.accuracy(&to_validate, &device), accuracy, "the record brings the same model back");
    std::fs::remove_dir_all(folder).expect("its own folder");
    println!("{:.1} % of {} images named right", 100.0 * accuracy, to_validate.len());
    assert!(epochs < 6 || accuracy > 0.9, "it learns");
}
