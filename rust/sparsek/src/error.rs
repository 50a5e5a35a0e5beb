//! Errors: the library's status and its message.
use crate::report::Report;
use crate::sys;
use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// What kind of failure it was.
///
/// ```
/// let error = sparsek::Context::builder().device("abacus").build().unwrap_err();
/// assert_eq!(error.kind(), sparsek::ErrorKind::Argument);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A caller's argument is wrong.
    Argument,
    /// There is not enough memory.
    OutOfMemory,
    /// Legal, but this build, device or version does not do it.
    Unsupported,
    /// A device or library is not there.
    Unavailable,
    /// The operating system refused a file operation.
    Io,
    /// A file is malformed.
    Format,
    /// No eligible kernel is left.
    NoCandidate,
    /// The store does not know this class of problems, and tuning was forbidden.
    UnknownClass,
    /// [`Context::interrupt`](crate::Context::interrupt) was called, or [`Cancel::cancel`](crate::Cancel::cancel).
    Interrupted,
    /// The disk is full.
    NoSpace,
    /// A defect in sparsek.
    Internal,
}

/// A failure: its kind, and the library's message with the argument, the value and the limit.
///
/// ```
/// let context = sparsek::Context::builder().store_in_memory().build()?;
/// let error = sparsek::Pattern::new(&context, (4, 4), (2, 2), &[0i32, 1, 1], &[7]).unwrap_err();
/// assert!(error.to_string().contains("7"), "{error}");
/// # Ok::<(), sparsek::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    report: Option<Arc<Report>>,
}

/// By kind and message.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.kind == other.kind && self.message == other.message
    }
}
impl Eq for Error {}

/// What every function that can fail returns.
///
/// ```
/// fn threads() -> sparsek::Result<usize> {
///     Ok(sparsek::Context::builder().threads(1).build()?.device()?.threads)
/// }
/// assert_eq!(threads(), Ok(1));
/// ```
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kind of failure.
    ///
    /// ```
    /// let error = sparsek::Context::builder().device("abacus").build().unwrap_err();
    /// assert_eq!(error.kind(), sparsek::ErrorKind::Argument);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What a tuning or a race that was interrupted had measured, if anything. The next one of the class goes on from there.
    ///
    /// ```
    /// # use sparsek::{Context, ErrorKind, Pattern, Spmm, TuneOptions};
    /// # let context = Context::builder().store_in_memory().build()?;
    /// # let pattern = Pattern::new(&context, (2, 2), (2, 2), &[0, 1], &[0])?;
    /// match pattern.tune_spmm::<f32, f32>(&Spmm::new(4), &TuneOptions::new().only("reference_spmm")) {
    ///     Ok(report) => println!("{}", report.summary),
    ///     Err(why) if why.kind() == ErrorKind::Interrupted => println!("so far: {:?}", why.partial_report()),
    ///     Err(why) => return Err(why),
    /// }
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn partial_report(&self) -> Option<&Report> {
        self.report.as_deref()
    }

    pub(crate) fn with_report(mut self, report: Report) -> Error {
        self.report = Some(Arc::new(report));
        self
    }

    pub(crate) fn argument(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Argument, message: message.into(), report: None }
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Unsupported, message: message.into(), report: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn kind_of(status: sys::spk_status) -> ErrorKind {
    match status {
        sys::SPK_ERR_ARGUMENT => ErrorKind::Argument,
        sys::SPK_ERR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        sys::SPK_ERR_UNSUPPORTED => ErrorKind::Unsupported,
        sys::SPK_ERR_UNAVAILABLE => ErrorKind::Unavailable,
        sys::SPK_ERR_IO => ErrorKind::Io,
        sys::SPK_ERR_FORMAT => ErrorKind::Format,
        sys::SPK_ERR_NO_CANDIDATE => ErrorKind::NoCandidate,
        sys::SPK_ERR_UNKNOWN_CLASS => ErrorKind::UnknownClass,
        sys::SPK_ERR_INTERRUPTED => ErrorKind::Interrupted,
        sys::SPK_ERR_NO_SPACE => ErrorKind::NoSpace,
        _ => ErrorKind::Internal,
    }
}

thread_local! {
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// Runs a callback of the caller's, which must not unwind into the library: what it panics with goes on in [`check`].
pub(crate) fn keep_panic(callback: impl FnOnce()) {
    let pending = PANIC.take();
    if pending.is_some() {
        return PANIC.set(pending); // the first one counts
    }
    if let Err(payload) = catch_unwind(AssertUnwindSafe(callback)) {
        PANIC.set(Some(payload));
    }
}

/// The status of a call that this thread just made on `context` (NULL: that of creation).
#[inline]
pub(crate) fn check(status: sys::spk_status, context: *const sys::spk_context) -> Result<()> {
    if let Some(payload) = PANIC.take() {
        resume_unwind(payload);
    }
    if status == sys::SPK_OK { Ok(()) } else { Err(failure(status, context)) }
}

#[cold]
fn failure(status: sys::spk_status, context: *const sys::spk_context) -> Error {
    // SAFETY: the context is alive or NULL, and the message is copied before this thread calls again.
    let mut message = unsafe { text(sys::spk_last_error(context)) };
    if message.is_empty() {
        // SAFETY: a static string for every status.
        message = unsafe { text(sys::spk_status_name(status)) };
    }
    Error { kind: kind_of(status), message, report: None }
}

/// A copy of a C string; empty for NULL.
///
/// # Safety
/// `pointer` is NULL or a string that lives during the call.
pub(crate) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Text for the library, which cannot hold a zero byte.
pub(crate) fn c_text(name: &str, value: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(value).map_err(|why| Error::argument(format!("{name} has a zero byte at {}", why.nul_position())))
}

/// A path for the library.
pub(crate) fn c_path(path: &std::path::Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    c_text("path", path.as_os_str().as_bytes())
}
