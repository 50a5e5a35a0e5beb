//! Linear layers with sparse weights.
use crate::activation::Activation;
use crate::context::host_context;
use crate::error::{Error, Result};
use crate::ops::{BsrOps, Product, Side};
use crate::param::BsrParam;
use crate::pattern::BsrPattern;
use crate::tensor::BsrTensor;
use crate::tuning::TuneConfig;
use burn::backend::Dispatch;
use burn::config::Config;
use burn::module::{Content, DisplaySettings, Initializer, Module, ModuleDisplay, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use sparsek::{Generate, Matrix};

/// What a [`SparseLinear`] is made from.
///
/// ```
/// use burn::tensor::Device;
/// use burn_sparse::SparseLinearConfig;
/// let config = SparseLinearConfig::new(256, 128).with_block([32, 32]).with_density(0.25);
/// let layer = config.init(&Device::flex());
/// assert_eq!(layer.weight.pattern().nnzb(), 8);
/// ```
#[derive(Config, Debug)]
pub struct SparseLinearConfig {
    /// Input features.
    pub d_input: usize,
    /// Output features.
    pub d_output: usize,
    /// Rows (outputs) and columns (inputs) of a block.
    #[config(default = "[32, 32]")]
    pub block: [usize; 2],
    /// The share of blocks that are stored, placed at random.
    #[config(default = 0.1)]
    pub density: f64,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// What follows.
    #[config(default = "None")]
    pub activation: Option<Activation>,
    /// How kernels are chosen.
    #[config(default = "TuneConfig::new()")]
    pub tuning: TuneConfig,
    /// Of the places of the blocks: the same on every machine for one seed.
    #[config(default = 0)]
    pub seed: u64,
    /// How values begin; it is told how many inputs an output really has.
    #[config(default = "Initializer::KaimingUniform{gain:1.0/3f64.sqrt(), fan_out_only:false}")]
    pub initializer: Initializer,
}

impl SparseLinearConfig {
    /// The layer.
    ///
    /// # Panics
    /// Where [`SparseLinearConfig::try_init`] is an error.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::SparseLinearConfig;
    /// assert!(SparseLinearConfig::new(64, 64).with_bias(false).init(&Device::flex()).bias.is_none());
    /// ```
    pub fn init(&self, device: &Device) -> SparseLinear {
        self.try_init(device).unwrap_or_else(|why| panic!("SparseLinearConfig: {why}"))
    }

    /// The layer, or which setting is outside its limits.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::SparseLinearConfig;
    /// let error = SparseLinearConfig::new(64, 64).with_density(1.5).try_init(&Device::flex()).unwrap_err();
    /// assert!(error.to_string().contains("1.5"), "{error}");
    /// ```
    pub fn try_init(&self, device: &Device) -> Result<SparseLinear> {
        let (shape, block) = ((self.d_output, self.d_input), self.block.into());
        let places =
            Matrix::generate::<f32>(host_context()?, Generate::Uniform, shape, block, self.density, self.seed)?;
        let pattern = BsrPattern::from_matrix(&places)?;
        let share = |features: usize| Some(((features as f64 * pattern.density()).round() as usize).max(1));
        let (fan_in, fan_out) = (share(self.d_input), share(self.d_output));
        let values = self.initializer.init_with(pattern.values_shape(), fan_in, fan_out, device);
        let bias = self.bias.then(|| self.initializer.init_with([self.d_output], fan_in, fan_out, device));
        let (activation, tuning) = (self.activation, self.tuning);
        Ok(SparseLinear { weight: BsrParam::from_values(pattern, values), bias, activation, tuning })
    }
}

/// A linear layer of which only some blocks of weights exist: y = act(x W^T + b), with W of `[d_output, d_input]`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_sparse::{Effort, SparseLinearConfig, TuneConfig};
/// let config = SparseLinearConfig::new(64, 32).with_block([16, 16]).with_density(0.5);
/// let config = config.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
/// let layer = config.init(&Device::flex());
/// assert_eq!(layer.forward(Tensor::<3>::ones([2, 5, 64], &Device::flex())).dims(), [2, 5, 32]);
/// assert!(layer.to_string().contains("4 blocks of 16 x 16 (50.0 %)"), "{layer}");
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SparseLinear {
    /// W: `[d_output, d_input]`.
    pub weight: BsrParam,
    /// b: `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// What follows.
    #[module(skip)]
    pub activation: Option<Activation>,
    /// How kernels are chosen.
    #[module(skip)]
    pub tuning: TuneConfig,
}

impl SparseLinear {
    /// What remains of a dense layer with the share `density` of its blocks, those of the largest norm. The bias stays the same
    /// parameter.
    ///
    /// ```
    /// use burn::{nn::LinearConfig, tensor::Device};
    /// use burn_sparse::SparseLinear;
    /// let dense = LinearConfig::new(64, 32).init(&Device::flex());
    /// let layer = SparseLinear::from_linear(&dense, [16, 16], 0.25)?;
    /// assert_eq!((layer.weight.val().shape(), layer.weight.pattern().nnzb()), ([32, 64], 2));
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_linear(linear: &Linear, block: [usize; 2], density: f64) -> Result<SparseLinear> {
        let weight = linear.weight.val().detach().transpose(); // Burn keeps [d_input, d_output]
        SparseLinear::from_parts(BsrTensor::from_dense(weight, block, density)?, linear.bias.clone())
    }

    /// Of a matrix and a bias.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::{BsrTensor, SparseLinear};
    /// let weight = BsrTensor::from_triplets([4, 6], [2, 3], &[0], &[5], &[1f32], &Device::flex())?;
    /// assert!(SparseLinear::from_parts(weight, None)?.bias.is_none());
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_parts(weight: BsrTensor, bias: Option<Param<Tensor<1>>>) -> Result<SparseLinear> {
        let [outputs, _] = weight.pattern().shape();
        if weight.shape() != weight.pattern().shape() {
            return Err(Error::Argument("the weight is transposed: its blocks lie otherwise".into()));
        }
        if let Some(length) = bias.as_ref().map(|bias| bias.lazy_shape()[0]).filter(|&length| length != outputs) {
            return Err(Error::Argument(format!("a bias of {length} for {outputs} outputs")));
        }
        let tuning = *weight.tuning();
        Ok(SparseLinear { weight: BsrParam::from_tensor(weight), bias, activation: None, tuning })
    }

    /// With something after it.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// use burn_sparse::{Activation, SparseLinearConfig};
    /// let layer = SparseLinearConfig::new(64, 64).init(&Device::flex()).with_activation(Some(Activation::Gelu));
    /// assert_eq!(layer.activation, Some(Activation::Gelu));
    /// ```
    pub fn with_activation(mut self, activation: Option<Activation>) -> SparseLinear {
        self.activation = activation;
        self
    }

    /// With another way to choose kernels.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// use burn_sparse::{SparseLinearConfig, TuneConfig};
    /// let layer = SparseLinearConfig::new(64, 64).init(&Device::flex());
    /// assert!(layer.with_tuning(TuneConfig::new().with_assume_finite(true)).tuning.assume_finite);
    /// ```
    pub fn with_tuning(mut self, tuning: TuneConfig) -> SparseLinear {
        self.tuning = tuning;
        self
    }

    /// Of `[..., d_input]`: `[..., d_output]`.
    ///
    /// # Panics
    /// As [`BsrTensor::matmul`], and where the bias is not as long as the output.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_sparse::{BsrTensor, Effort, SparseLinear, TuneConfig};
    /// let weight = BsrTensor::from_triplets([4, 6], [2, 3], &[0], &[5], &[3f32], &Device::flex())?;
    /// let weight = weight.with_tuning(TuneConfig::new().with_effort(Effort::Estimate));
    /// let layer = SparseLinear::from_parts(weight, None)?;
    /// let y = layer.forward(Tensor::<1>::ones([6], &Device::flex()));
    /// assert_eq!(y.into_data().try_into_vec::<f32>().unwrap(), [3., 0., 0., 0.]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let mut product = Product::new(self.weight.pattern().clone(), Side::Right).tuning(self.tuning);
        product.activation = self.activation;
        let (values, input) = (self.weight.values().val().into_dispatch(), input.into_dispatch());
        Tensor::from_dispatch(match &self.bias {
            Some(bias) => <Dispatch as BsrOps>::bsr_linear(values, input, bias.val().into_dispatch(), product),
            None => <Dispatch as BsrOps>::bsr_matmul(values, input, product),
        })
    }
}

impl ModuleDisplay for SparseLinear {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new().with_new_line_after_attribute(false).optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let content = content.add("weight", &self.weight).add("bias", &self.bias.is_some());
        content.add_debug_attribute("activation", &self.activation).optional()
    }
}
