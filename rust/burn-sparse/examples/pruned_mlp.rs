//! Inference of an MLP, dense and with a tenth of its blocks: `cargo run --release --example pruned_mlp [FEATURES]`.
//!
//! The weights are random, as only the time is of interest; what pruning does to a model's answers is for its training to mend.
use burn::module::Module;
use burn::nn::LinearConfig;
use burn::tensor::{Device, Distribution, Tensor, activation};
use burn_sparse::{MaybeSparse, PruneConfig, TuneConfig, prune};
use std::time::Instant;

#[derive(Module, Debug)]
struct Mlp {
    wide: MaybeSparse,
    narrow: MaybeSparse,
}

impl Mlp {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.narrow.forward(activation::gelu(self.wide.forward(x)))
    }
}

/// The median of eleven runs in milliseconds, after two that do not count.
fn median_ms(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..13)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed().as_secs_f64() * 1e3
        })
        .skip(2)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> burn_sparse::Result<()> {
    let features = std::env::args().nth(1).map_or(1024, |features| features.parse().expect("a number of features"));
    let device = Device::flex();
    let layer = |inputs, outputs| MaybeSparse::from(LinearConfig::new(inputs, outputs).init(&device));
    let dense = Mlp { wide: layer(features, 4 * features), narrow: layer(4 * features, features) };
    let config = PruneConfig::new([32, 32], 0.1).with_tuning(TuneConfig::new().with_assume_finite(true));
    let (sparse, pruned) = prune(dense.clone(), &config)?;
    for layer in &pruned {
        println!("{}: {:?}, {} blocks remain", layer.path, layer.shape, layer.nnzb);
    }

    println!("rows   dense ms   sparse ms   times");
    for rows in [1, 16, 256] {
        let x = Tensor::<2>::random([rows, features], Distribution::Uniform(-1.0, 1.0), &device);
        sparse.forward(x.clone()); // measures once for each class of problems
        let dense_ms = median_ms(|| drop(dense.forward(x.clone())));
        let sparse_ms = median_ms(|| drop(sparse.forward(x.clone())));
        println!("{rows:4} {dense_ms:10.2} {sparse_ms:11.2} {:7.1}", dense_ms / sparse_ms);
    }
    Ok(())
}
