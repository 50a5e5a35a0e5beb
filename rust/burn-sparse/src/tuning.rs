//! How kernels are chosen.
use crate::error::{Error, Result};
use burn::config::Config;
use sparsek::{TuneOptions, Tuning};
use std::time::Duration;

/// What is done for the first product of a class of problems.
///
/// ```
/// use burn_sparse::{Effort, TuneConfig};
/// let config = TuneConfig::new().with_effort(Effort::Estimate);
/// assert_eq!(config.effort, Effort::Estimate);
/// ```
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Measures nothing: the cost model chooses, or the store where it knows the class.
    Estimate,
    /// Nobody waits: the first products are made by a few kernels in turn, until the fastest is known. Their last bits may differ.
    InPlace,
    /// The first product waits and measures the most promising kernels, some seconds.
    Measure,
    /// The first product waits and measures all kernels with all their parameters.
    Exhaustive,
}

/// How the kernel of a product is chosen. A decision stays in a store on disk: the next process does not measure again.
///
/// ```
/// use burn_sparse::{Effort, TuneConfig};
/// let config = TuneConfig::new().with_effort(Effort::Measure).with_budget(Some(2.0)).with_assume_finite(true);
/// assert_eq!(config.budget, Some(2.0));
/// ```
#[derive(Config, Debug, Copy, PartialEq)]
pub struct TuneConfig {
    /// How much is done for a class that the store does not know.
    #[config(default = "Effort::InPlace")]
    pub effort: Effort,
    /// Seconds that [`Effort::Measure`] and [`Effort::Exhaustive`] may take, at most a day; none: the library's choice.
    /// Products refuse what is no such number.
    #[config(default = "None")]
    pub budget: Option<f64>,
    /// A promise: no value, input, bias or gradient is infinite or NaN, which allows more kernels.
    #[config(default = false)]
    pub assume_finite: bool,
}

impl Default for TuneConfig {
    fn default() -> Self {
        TuneConfig::new()
    }
}

impl TuneConfig {
    pub(crate) fn options(&self) -> Result<TuneOptions> {
        let options = match self.effort {
            Effort::Estimate => TuneOptions::new().estimate(),
            Effort::InPlace => TuneOptions::new(),
            Effort::Measure => TuneOptions::new().tuning(Tuning::Now),
            Effort::Exhaustive => TuneOptions::new().exhaustive(),
        };
        let Some(seconds) = self.budget else { return Ok(options) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(budget) => Ok(options.budget(budget)),
            Err(_) => {
                Err(Error::Argument(format!("budget = {seconds}: it must be a number of seconds, and not negative")))
            }
        }
    }
}
