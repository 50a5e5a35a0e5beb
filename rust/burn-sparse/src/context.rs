//! The library's context, one for the process.
use crate::error::{Error, Result};
use sparsek::Context;
use std::sync::OnceLock;
#[cfg(feature = "cuda")]
use std::sync::{Mutex, PoisonError};

static HOST: OnceLock<Context> = OnceLock::new();

/// The context that patterns are made in: the CPU, with the user's store of decisions, unless [`set_host_context`] came first.
///
/// ```
/// assert_eq!(burn_sparse::host_context()?.device()?.kind, "cpu");
/// # Ok::<(), burn_sparse::Error>(())
/// ```
pub fn host_context() -> Result<&'static Context> {
    if let Some(context) = HOST.get() {
        return Ok(context);
    }
    let made = Context::new()?;
    Ok(HOST.get_or_init(|| made))
}

/// Gives the process another context for the CPU, before the first pattern is made: with its own store, its number of
/// threads or a thread pool.
///
/// ```standalone_crate
/// let context = sparsek::Context::builder().store_in_memory().threads(2).build()?;
/// burn_sparse::set_host_context(context.clone())?;
/// assert!(burn_sparse::set_host_context(context).is_err()); // there is one already
/// # Ok::<(), burn_sparse::Error>(())
/// ```
pub fn set_host_context(context: Context) -> Result<()> {
    let kind = context.device()?.kind;
    if kind != "cpu" {
        return Err(Error::Argument(format!("the host's context must be of the CPU, not of {kind}")));
    }
    HOST.set(context).map_err(|_| Error::Argument("the process has a context already".into()))
}

/// The context of a GPU, made when it is first asked for.
#[cfg(feature = "cuda")]
pub(crate) fn device_context(index: usize) -> Result<Context> {
    static DEVICES: Mutex<Vec<(usize, Context)>> = Mutex::new(Vec::new());
    let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, context)) = devices.iter().find(|(known, _)| *known == index) {
        return Ok(context.clone());
    }
    let context = Context::builder().device(format!("cuda:{index}")).build()?;
    devices.push((index, context.clone()));
    Ok(context)
}
