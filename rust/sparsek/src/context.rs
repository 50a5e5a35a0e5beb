//! A device with its store of decisions.
use crate::error::{Error, Result, c_path, c_text, check, text};
use crate::sys;
use crate::types::{count, sized};
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;

type LogFunction = Box<dyn Fn(LogLevel, &str) + Send + Sync>;
type ProgressFunction = Box<dyn Fn(i64, i64, &str) + Send + Sync>;

/// How important a message of [`ContextBuilder::log`] is.
///
/// ```
/// let builder = sparsek::Context::builder().log(|level, message| eprintln!("{level:?}: {message}"));
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// Something does not work as it should.
    Warning,
    /// Good to know.
    Note,
}

/// A device with its store of decisions. Clones are the same context; patterns, plans and matrices keep it alive. It may be
/// used from many threads at once.
///
/// ```
/// let context = sparsek::Context::new()?;
/// assert_eq!(context.device()?.kind, "cpu");
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    raw: NonNull<sys::spk_context>,
    on_host: bool,
    _callbacks: Callbacks, // dropped after `raw` is destroyed
}

/// What the library has pointers to.
#[derive(Default)]
struct Callbacks {
    log: Option<Box<LogFunction>>,
    progress: Option<Box<ProgressFunction>>,
    #[cfg(feature = "rayon")]
    rayon: Option<Box<crate::parallel::Pool>>,
}

// SAFETY: sparsek.h allows a context to be used from many threads at once, and the callbacks are Send and Sync.
unsafe impl Send for Inner {}
// SAFETY: likewise.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: this is the owner, and all that was made from the context held a clone of it.
        unsafe { sys::spk_context_destroy(&mut raw) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("on_host", &self.inner.on_host).finish_non_exhaustive()
    }
}

/// Options of a [`Context`].
///
/// ```
/// let context = sparsek::Context::builder().threads(1).store_in_memory().build()?;
/// assert_eq!(context.store_path(), None);
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct ContextBuilder {
    device: Option<String>,
    store: Option<PathBuf>,
    threads: usize,
    callbacks: Callbacks,
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ContextBuilder");
        out.field("device", &self.device).field("store", &self.store).field("threads", &self.threads);
        let (log, progress) = (self.callbacks.log.is_some(), self.callbacks.progress.is_some());
        out.field("log", &log).field("progress", &progress).finish_non_exhaustive()
    }
}

impl ContextBuilder {
    /// `"cpu"`, `"cuda"` or `"cuda:1"`. Default: the CPU.
    ///
    /// ```
    /// let on_gpu = sparsek::Context::builder().device("cuda:0").build();
    /// if let Err(why) = on_gpu {
    ///     println!("no GPU here: {why}");
    /// }
    /// ```
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// The file of the store. Default: `$SPARSEK_STORE`, else in the user's cache folder.
    ///
    /// ```
    /// let path = std::env::temp_dir().join(format!("sparsek-doc-{}.db", std::process::id()));
    /// let context = sparsek::Context::builder().store(&path).build()?;
    /// assert_eq!(context.store_path(), Some(path.clone()));
    /// # drop(context);
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn store(mut self, path: impl Into<PathBuf>) -> Self {
        self.store = Some(path.into());
        self
    }

    /// Keeps decisions only as long as the context lives.
    ///
    /// ```
    /// assert!(sparsek::Context::builder().store_in_memory().build()?.store_path().is_none());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn store_in_memory(self) -> Self {
        self.store(PathBuf::new())
    }

    /// Host threads. Default (0): `$OMP_NUM_THREADS`, else the processors this process may run on.
    ///
    /// ```
    /// assert_eq!(sparsek::Context::builder().threads(3).build()?.device()?.threads, 3);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Gets warnings and notes. It must not use the library, whose functions fail in it
    /// ([`ErrorKind::Argument`](crate::ErrorKind::Argument)), but [`Context::interrupt`]. A panic in it goes on when the
    /// library's function returns.
    ///
    /// ```
    /// let builder = sparsek::Context::builder().log(|_, message| eprintln!("{message}"));
    /// # let _ = builder;
    /// ```
    pub fn log(mut self, log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.callbacks.log = Some(Box::new(Box::new(log)));
        self
    }

    /// Gets the progress of tuning and reading: steps done, their number, what is being done. Its time does not count as
    /// measuring. It must not use the library, and may panic, as [`ContextBuilder::log`] says.
    ///
    /// ```
    /// let builder = sparsek::Context::builder().progress(|done, total, what| eprintln!("{done}/{total} {what}"));
    /// # let _ = builder;
    /// ```
    pub fn progress(mut self, progress: impl Fn(i64, i64, &str) + Send + Sync + 'static) -> Self {
        self.callbacks.progress = Some(Box::new(Box::new(progress)));
        self
    }

    /// Runs kernels on the threads of a rayon pool. [`ContextBuilder::threads`] defaults to those of the pool.
    ///
    /// ```
    /// let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    /// let context = sparsek::Context::builder().rayon(pool.into()).build()?;
    /// assert_eq!(context.device()?.threads, 2);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    #[cfg(feature = "rayon")]
    pub fn rayon(mut self, pool: Arc<rayon::ThreadPool>) -> Self {
        self.callbacks.rayon = Some(Box::new(crate::parallel::Pool::new(pool)));
        self
    }

    /// Opens the device and the store.
    ///
    /// ```
    /// let context = sparsek::Context::builder().build()?;
    /// # let _ = context;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn build(self) -> Result<Context> {
        let device = self.device.map(|device| c_text("device", device)).transpose()?;
        let store = self.store.map(|path| c_path(&path)).transpose()?;
        let mut options = sized!(spk_context_options);
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        options.device = pointer(&device);
        options.store_path = pointer(&store);
        options.threads = c_int::try_from(self.threads).unwrap_or(c_int::MAX);
        if let Some(log) = &self.callbacks.log {
            options.log = Some(call_log);
            options.log_user = ptr::from_ref::<LogFunction>(log).cast_mut().cast();
        }
        if let Some(progress) = &self.callbacks.progress {
            options.progress = Some(call_progress);
            options.progress_user = ptr::from_ref::<ProgressFunction>(progress).cast_mut().cast();
        }
        #[cfg(feature = "rayon")]
        if let Some(pool) = &self.callbacks.rayon {
            pool.fill(&mut options);
        }
        let mut raw = ptr::null_mut();
        // SAFETY: what the options point to lives during the call; the callbacks move into the owner, their boxes stay where
        // they are.
        check(unsafe { sys::spk_context_create(&options, &mut raw) }, ptr::null())?;
        let raw = NonNull::new(raw).expect("a context after success");
        let mut inner = Inner { raw, on_host: false, _callbacks: self.callbacks };
        let mut info = sized!(spk_device_info);
        // SAFETY: the context is alive.
        check(unsafe { sys::spk_context_get_device(raw.as_ptr(), &mut info) }, raw.as_ptr())?;
        // SAFETY: a string that lives as long as the context.
        inner.on_host = unsafe { text(info.kind) } == "cpu";
        Ok(Context { inner: Arc::new(inner) })
    }
}

unsafe extern "C" fn call_log(user: *mut c_void, level: c_int, message: *const c_char) {
    // SAFETY: user is the box in Callbacks, which outlives the context; the message lives during the call.
    let (log, message) = unsafe { (&*user.cast::<LogFunction>(), CStr::from_ptr(message)) };
    let level = if level <= 1 { LogLevel::Warning } else { LogLevel::Note };
    crate::error::keep_panic(|| log(level, &message.to_string_lossy()));
}

unsafe extern "C" fn call_progress(user: *mut c_void, done: i64, total: i64, what: *const c_char) {
    // SAFETY: as in call_log.
    let (progress, what) = unsafe { (&*user.cast::<ProgressFunction>(), text(what)) };
    crate::error::keep_panic(|| progress(done, total, &what));
}

/// What a device is.
///
/// ```
/// let device = sparsek::Context::new()?.device()?;
/// println!("{} with {} threads: {}", device.name, device.threads, device.isa.join(" "));
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Device {
    /// `"cpu"` or `"cuda"`.
    pub kind: String,
    /// The processor's or the GPU's model.
    pub name: String,
    /// Host threads; of a GPU those that prepare and compile.
    pub threads: usize,
    /// What the processor and the system offer: `"avx2"`, `"sm_90a"`.
    pub isa: Vec<String>,
    /// Data caches: per core (of a GPU per multiprocessor), per core (shared), shared (0). 0: unknown.
    pub cache_bytes: [u64; 3],
    /// Memory of the device.
    pub memory_bytes: u64,
    /// Multiprocessors of a GPU.
    pub processors: usize,
    /// Of a GPU's multiprocessors, at one of the last samples of tuning, or now; 0: unknown.
    #[serde(default)]
    pub clock_mhz: f64,
    /// Of a GPU, likewise.
    #[serde(default)]
    pub power_w: f64,
    /// Of a GPU: candidates proved by committed runs on its architecture and driver, which may run where there is no prover.
    #[serde(default)]
    pub proved_candidates: usize,
}

impl Context {
    /// The CPU, with the user's store.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// # let _ = context;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn new() -> Result<Context> {
        Context::builder().build()
    }

    /// Options, to be set before [`ContextBuilder::build`].
    ///
    /// ```
    /// let context = sparsek::Context::builder().threads(2).build()?;
    /// # let _ = context;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// What the device is.
    ///
    /// ```
    /// assert!(sparsek::Context::new()?.device()?.threads >= 1);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn device(&self) -> Result<Device> {
        let mut info = sized!(spk_device_info);
        // SAFETY: the context is alive.
        self.check(unsafe { sys::spk_context_get_device(self.raw(), &mut info) })?;
        let isa = &info.isa[..usize::try_from(info.isa_count).unwrap_or(0).min(info.isa.len())];
        // SAFETY: the strings live as long as the context.
        let (kind, name, isa) =
            unsafe { (text(info.kind), text(info.name), isa.iter().map(|&name| text(name)).collect()) };
        Ok(Device {
            kind,
            name,
            threads: count(info.threads.into()),
            isa,
            cache_bytes: [info.l1_bytes, info.l2_bytes, info.l3_bytes].map(|bytes| u64::try_from(bytes).unwrap_or(0)),
            memory_bytes: u64::try_from(info.memory_bytes).unwrap_or(0),
            processors: count(info.processors.into()),
            clock_mhz: info.clock_mhz,
            power_w: info.power_w,
            proved_candidates: count(info.proved_candidates.into()),
        })
    }

    /// Asks running tuning on this context to stop at the next sample: it keeps what was measured and fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted), until [`Context::resume`].
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// context.interrupt();
    /// context.resume();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn interrupt(&self) {
        // SAFETY: the context is alive; allowed from any thread.
        unsafe { sys::spk_context_interrupt(self.raw()) };
    }

    /// Clears what [`Context::interrupt`] asked for.
    ///
    /// ```
    /// sparsek::Context::new()?.resume();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn resume(&self) {
        // SAFETY: the context is alive.
        unsafe { sys::spk_context_resume(self.raw()) };
    }

    /// Writes all that the store knows as JSON; the number of classes of problems.
    ///
    /// ```
    /// let context = sparsek::Context::builder().store_in_memory().build()?;
    /// let path = std::env::temp_dir().join(format!("sparsek-doc-export-{}.json", std::process::id()));
    /// assert_eq!(context.export_store(&path)?, 0); // nothing was learned yet
    /// assert_eq!(context.import_store(&path)?, 0);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn export_store(&self, path: impl AsRef<Path>) -> Result<u64> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path lives during the call.
        self.counted(|count| unsafe { sys::spk_store_export(self.raw(), path.as_ptr(), count) })
    }

    /// Takes the classes of an export: the newer entry of a class stays, but what is finished goes before what is provisional.
    /// The number of classes that were taken. A bad file changes nothing.
    ///
    /// ```
    /// let context = sparsek::Context::builder().store_in_memory().build()?;
    /// assert!(context.import_store("/there/is/no.json").is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn import_store(&self, path: impl AsRef<Path>) -> Result<u64> {
        let path = c_path(path.as_ref())?;
        // SAFETY: the path lives during the call.
        self.counted(|count| unsafe { sys::spk_store_import(self.raw(), path.as_ptr(), count) })
    }

    /// Forgets all that the store knows, which costs time and nothing else; the number of classes that went.
    ///
    /// ```
    /// let context = sparsek::Context::builder().store_in_memory().build()?;
    /// assert_eq!(context.clear_store()?, 0);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn clear_store(&self) -> Result<u64> {
        // SAFETY: the context is alive.
        self.counted(|count| unsafe { sys::spk_store_clear(self.raw(), count) })
    }

    fn counted(&self, call: impl FnOnce(*mut i64) -> sys::spk_status) -> Result<u64> {
        let mut count = 0;
        self.check(call(&mut count))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Where the store is; `None` in memory, where there is no file and none can be made, and once the file there has been refused
    /// (which its first use tells, through `log`).
    ///
    /// ```
    /// assert_eq!(sparsek::Context::builder().store_in_memory().build()?.store_path(), None);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn store_path(&self) -> Option<PathBuf> {
        // SAFETY: a string that lives as long as the context.
        let path = unsafe { text(sys::spk_store_path(self.raw())) };
        if path.is_empty() { None } else { Some(path.into()) }
    }

    /// Waits until what was put on a CUDA stream (null: the default one) of the device is done. On the CPU it always is, and
    /// the stream is not looked at.
    ///
    /// # Safety
    /// On a GPU `stream` is null or a stream of the device's primary context that exists.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// // SAFETY: the default stream always exists.
    /// unsafe { context.synchronize(std::ptr::null_mut()) }?;
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub unsafe fn synchronize(&self, stream: *mut c_void) -> Result<()> {
        // SAFETY: as the caller promises.
        self.check(unsafe { sys::spk_synchronize(self.raw(), stream) })
    }

    pub(crate) fn raw(&self) -> *mut sys::spk_context {
        self.inner.raw.as_ptr()
    }

    /// The status of a call that this thread just made on this context.
    #[inline]
    pub(crate) fn check(&self, status: sys::spk_status) -> Result<()> {
        check(status, self.raw())
    }

    /// Slices are host memory, which only the CPU reads.
    #[inline]
    pub(crate) fn check_host(&self) -> Result<()> {
        if self.inner.on_host {
            return Ok(());
        }
        Err(Error::unsupported("slices lie in host memory and the context is a GPU's: use the pointers' function"))
    }
}
