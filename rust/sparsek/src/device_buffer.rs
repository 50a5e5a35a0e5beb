//! Memory of a context's device.
use crate::context::Context;
use crate::error::Result;
use crate::extent::check_length;
use crate::sys;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// Elements in the memory of a context's device (of a CPU: in host memory), for the functions that take pointers. It is
/// released when it is dropped: what still uses it must be done.
///
/// ```
/// let context = sparsek::Context::new()?;
/// let buffer = sparsek::DeviceBuffer::from_slice(&context, &[1f32, 2., 3.])?;
/// let mut back = [0f32; 3];
/// buffer.read(&mut back)?;
/// assert_eq!(back, [1., 2., 3.]);
/// # Ok::<(), sparsek::Error>(())
/// ```
pub struct DeviceBuffer<T> {
    context: Context,
    memory: *mut c_void,
    len: usize,
    types: PhantomData<T>,
}

// SAFETY: the owner of memory that no thread is bound to.
unsafe impl<T: Send> Send for DeviceBuffer<T> {}
// SAFETY: &self only reads.
unsafe impl<T: Sync> Sync for DeviceBuffer<T> {}

impl<T: crate::Element> DeviceBuffer<T> {
    /// A copy of a slice.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::DeviceBuffer::from_slice(&context, &[1f64; 5])?.len(), 5);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self> {
        let mut memory = ptr::null_mut();
        // SAFETY: the context is alive; the new memory has the bytes of the slice.
        unsafe {
            context.check(sys::spk_memory_allocate(context.raw(), size_of_val(values), &mut memory))?;
            let mut made = DeviceBuffer { context: context.clone(), memory, len: values.len(), types: PhantomData };
            made.write(values)?;
            Ok(made)
        }
    }

    /// Copies a slice into the first elements. What the device still does with them must be done
    /// ([`Context::synchronize`]), else the values are undefined.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let mut buffer = sparsek::DeviceBuffer::from_slice(&context, &[0f32; 2])?;
    /// buffer.write(&[1., 2.])?;
    /// assert!(buffer.write(&[0.; 3]).is_err());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        check_length("the buffer", self.len, Some(values.len()))?;
        let (from, bytes) = (values.as_ptr().cast(), size_of_val(values));
        // SAFETY: both have the bytes, and the buffer is not the slice.
        self.context.check(unsafe {
            sys::spk_memory_copy(self.context.raw(), self.memory, sys::SPK_DEVICE, from, sys::SPK_HOST, bytes)
        })
    }

    /// Copies the first elements into a slice. What makes them must be done ([`Context::synchronize`]), else the values are
    /// undefined.
    ///
    /// ```
    /// let context = sparsek::Context::new()?;
    /// let mut first = [0f32];
    /// sparsek::DeviceBuffer::from_slice(&context, &[4f32, 5.])?.read(&mut first)?;
    /// assert_eq!(first, [4.]);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn read(&self, values: &mut [T]) -> Result<()> {
        check_length("the buffer", self.len, Some(values.len()))?;
        let (to, bytes) = (values.as_mut_ptr().cast(), size_of_val(values));
        // SAFETY: as in write.
        self.context.check(unsafe {
            sys::spk_memory_copy(self.context.raw(), to, sys::SPK_HOST, self.memory, sys::SPK_DEVICE, bytes)
        })
    }
}

impl<T> DeviceBuffer<T> {
    /// Elements.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert_eq!(sparsek::DeviceBuffer::from_slice(&context, &[0f32; 7])?.len(), 7);
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.len
    }

    /// No elements.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert!(sparsek::DeviceBuffer::<f32>::from_slice(&context, &[])?.is_empty());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// To the first element, in the device's memory.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert!(!sparsek::DeviceBuffer::from_slice(&context, &[0f32])?.as_ptr().is_null());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn as_ptr(&self) -> *const T {
        self.memory.cast_const().cast()
    }

    /// To the first element, in the device's memory.
    ///
    /// ```
    /// # let context = sparsek::Context::new()?;
    /// assert!(!sparsek::DeviceBuffer::from_slice(&context, &[0f32])?.as_mut_ptr().is_null());
    /// # Ok::<(), sparsek::Error>(())
    /// ```
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.memory.cast()
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("DeviceBuffer");
        out.field("type", &std::any::type_name::<T>()).field("len", &self.len).field("memory", &self.memory).finish()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: this is the owner, and the context is alive.
        unsafe { sys::spk_memory_release(self.context.raw(), &mut self.memory) };
    }
}
