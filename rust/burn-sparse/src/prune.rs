//! Dense layers that become sparse.
use crate::error::Result;
use crate::linear::SparseLinear;
use crate::tuning::TuneConfig;
use burn::config::Config;
use burn::module::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use std::cell::RefCell;

/// A linear layer, dense until [`prune`] makes it sparse: what a module has in place of `Linear` where it shall be pruned, as
/// the type of a field cannot change.
///
/// ```
/// use burn::{nn::LinearConfig, tensor::{Device, Tensor}};
/// use burn_sparse::MaybeSparse;
/// let layer = MaybeSparse::from(LinearConfig::new(64, 32).init(&Device::flex()));
/// assert!(!layer.is_sparse());
/// assert_eq!(layer.forward(Tensor::<2>::ones([3, 64], &Device::flex())).dims(), [3, 32]);
/// ```
#[derive(Clone, Debug)]
pub enum MaybeSparse {
    /// Not pruned.
    Dense(Linear),
    /// Pruned.
    Sparse(SparseLinear),
}

/// What [`prune`] keeps.
///
/// ```
/// use burn_sparse::PruneConfig;
/// let config = PruneConfig::new([32, 32], 0.1).with_least_features(128);
/// assert_eq!(config.density, 0.1);
/// ```
#[derive(Config, Debug, PartialEq)]
pub struct PruneConfig {
    /// Rows (outputs) and columns (inputs) of a block.
    pub block: [usize; 2],
    /// The share of blocks to keep in each layer: those of the largest norm.
    pub density: f64,
    /// Layers of fewer inputs or outputs stay dense.
    #[config(default = 0)]
    pub least_features: usize,
    /// How kernels of the sparse layers are chosen.
    #[config(default = "TuneConfig::new()")]
    pub tuning: TuneConfig,
}

/// A layer that became sparse.
///
/// ```
/// use burn::{nn::LinearConfig, tensor::Device};
/// use burn_sparse::{MaybeSparse, PruneConfig, prune};
/// let layer = MaybeSparse::from(LinearConfig::new(64, 32).init(&Device::flex()));
/// let (_, pruned) = prune(vec![layer], &PruneConfig::new([16, 16], 0.5))?;
/// assert_eq!((pruned[0].path.as_str(), pruned[0].shape, pruned[0].nnzb), ("0", [32, 64], 4));
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Where it is in the module: `"encoder.3"`.
    pub path: String,
    /// Outputs and inputs.
    pub shape: [usize; 2],
    /// Blocks that it kept.
    pub nnzb: usize,
}

thread_local! {
    /// What `prune` is at in this thread. Burn's mappers are generic over parameters: that a layer changes as a whole cannot be
    /// asked of it through them.
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

struct Work {
    config: PruneConfig,
    path: Vec<String>,
    pruned: Result<Vec<Pruned>>,
}

/// Makes every [`MaybeSparse`] in a module sparse that is not yet, and says which. Plain `Linear`s stay as they are. To load
/// what was saved pruned, prune a new module alike first: the record brings pattern and values.
///
/// ```
/// use burn::{module::Module, nn::LinearConfig, tensor::Device};
/// use burn_sparse::{MaybeSparse, PruneConfig, prune};
///
/// #[derive(Module, Debug)]
/// struct Mlp {
///     inner: MaybeSparse,
///     outer: MaybeSparse,
/// }
///
/// let device = Device::flex();
/// let layer = |inputs, outputs| MaybeSparse::from(LinearConfig::new(inputs, outputs).init(&device));
/// let mlp = Mlp { inner: layer(256, 128), outer: layer(128, 10) };
/// let (mlp, pruned) = prune(mlp, &PruneConfig::new([32, 32], 0.25).with_least_features(32))?;
/// assert!(mlp.inner.is_sparse() && !mlp.outer.is_sparse());
/// assert_eq!((pruned.len(), pruned[0].path.as_str(), pruned[0].nnzb), (1, "inner", 8));
/// # Ok::<(), burn_sparse::Error>(())
/// ```
pub fn prune<M: Module>(module: M, config: &PruneConfig) -> Result<(M, Vec<Pruned>)> {
    /// Ends the work also where a module panics.
    struct End(Option<Work>);
    impl Drop for End {
        fn drop(&mut self) {
            WORK.set(self.0.take());
        }
    }
    let work = Work { config: config.clone(), path: Vec::new(), pruned: Ok(Vec::new()) };
    let end = End(WORK.replace(Some(work)));
    let module = module.map(&mut Walk);
    let pruned = WORK.take().expect("only the end takes it").pruned;
    drop(end);
    Ok((module, pruned?))
}

/// Changes no parameter; keeps where it is.
struct Walk;

impl ModuleMapper for Walk {
    fn enter_module(&mut self, name: &str, _: &str) {
        WORK.with_borrow_mut(|work| work.iter_mut().for_each(|work| work.path.push(name.to_string())));
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        WORK.with_borrow_mut(|work| work.iter_mut().for_each(|work| drop(work.path.pop())));
    }
}

impl Work {
    /// The layer pruned, or dense where it is small or an error came before.
    fn convert(&mut self, linear: Linear) -> MaybeSparse {
        let (Ok(pruned), config) = (&mut self.pruned, &self.config) else { return MaybeSparse::Dense(linear) };
        let [rows, cols] = linear.weight.lazy_shape().dims();
        if rows.min(cols) < config.least_features {
            return MaybeSparse::Dense(linear);
        }
        match SparseLinear::from_linear(&linear, config.block, config.density) {
            Ok(layer) => {
                let (shape, nnzb) = (layer.weight.pattern().shape(), layer.weight.pattern().nnzb());
                pruned.push(Pruned { path: self.path.join("."), shape, nnzb });
                MaybeSparse::Sparse(layer.with_tuning(config.tuning))
            }
            Err(why) => {
                self.pruned = Err(why);
                MaybeSparse::Dense(linear)
            }
        }
    }
}

impl MaybeSparse {
    /// Of `[..., d_input]`: `[..., d_output]`.
    ///
    /// # Panics
    /// As the layer that it is.
    ///
    /// ```
    /// # use burn::{nn::LinearConfig, tensor::{Device, Tensor}};
    /// # use burn_sparse::MaybeSparse;
    /// let layer = MaybeSparse::from(LinearConfig::new(64, 32).init(&Device::flex()));
    /// assert_eq!(layer.forward(Tensor::<3>::ones([2, 3, 64], &Device::flex())).dims(), [2, 3, 32]);
    /// ```
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        match self {
            MaybeSparse::Dense(linear) => linear.forward(input),
            MaybeSparse::Sparse(linear) => linear.forward(input),
        }
    }

    /// Whether it was pruned.
    ///
    /// ```
    /// # use burn::{nn::LinearConfig, tensor::Device};
    /// # use burn_sparse::{MaybeSparse, SparseLinear};
    /// let dense = LinearConfig::new(64, 32).init(&Device::flex());
    /// assert!(MaybeSparse::from(SparseLinear::from_linear(&dense, [16, 16], 0.25)?).is_sparse());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn is_sparse(&self) -> bool {
        matches!(self, MaybeSparse::Sparse(_))
    }
}

impl From<Linear> for MaybeSparse {
    fn from(linear: Linear) -> MaybeSparse {
        MaybeSparse::Dense(linear)
    }
}

impl From<SparseLinear> for MaybeSparse {
    fn from(linear: SparseLinear) -> MaybeSparse {
        MaybeSparse::Sparse(linear)
    }
}

/// Runs the same on the layer that it is.
macro_rules! each {
    ($self:expr, $layer:ident => $what:expr) => {
        match $self {
            MaybeSparse::Dense($layer) => MaybeSparse::Dense($what),
            MaybeSparse::Sparse($layer) => MaybeSparse::Sparse($what),
        }
    };
}

impl Module for MaybeSparse {
    fn collect_devices(&self, devices: Devices) -> Devices {
        match self {
            MaybeSparse::Dense(layer) => layer.collect_devices(devices),
            MaybeSparse::Sparse(layer) => layer.collect_devices(devices),
        }
    }

    fn fork(self, device: &Device) -> Self {
        each!(self, layer => layer.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        each!(self, layer => layer.to_device(device))
    }

    fn train(self) -> Self {
        each!(self, layer => layer.train())
    }

    fn valid(&self) -> Self {
        each!(self, layer => layer.valid())
    }

    fn materialize(self) -> Self {
        each!(self, layer => layer.materialize())
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        match self {
            MaybeSparse::Dense(layer) => layer.visit(visitor),
            MaybeSparse::Sparse(layer) => layer.visit(visitor),
        }
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        let layer = match self {
            MaybeSparse::Dense(linear) => WORK.with_borrow_mut(|work| match work {
                Some(work) => work.convert(linear),
                None => MaybeSparse::Dense(linear),
            }),
            sparse => sparse,
        };
        each!(layer, layer => layer.map(mapper))
    }
}

impl ModuleDisplayDefault for MaybeSparse {
    fn content(&self, content: Content) -> Option<Content> {
        match self {
            MaybeSparse::Dense(layer) => content.add_single(layer).optional(),
            MaybeSparse::Sparse(layer) => content.add_single(layer).optional(),
        }
    }
}

impl ModuleDisplay for MaybeSparse {}
