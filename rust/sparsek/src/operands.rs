//! What products write to, and what they add.
use crate::error::{Error, Result};
use crate::extent::check_length;
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

/// C or the residual of a product, which may be D.
#[derive(Clone, Copy)]
pub(crate) enum Addend<'a, D> {
    None,
    Slice(&'a [D]),
    InPlace,
}

/// Where the product goes.
pub(crate) enum Target<'a, D> {
    Slice(&'a mut [D]),
    Uninit(&'a mut [MaybeUninit<D>]),
}

impl<D> Target<'_, D> {
    pub fn len(&self) -> usize {
        match self {
            Target::Slice(slice) => slice.len(),
            Target::Uninit(slice) => slice.len(),
        }
    }

    pub fn pointer(&mut self) -> *mut c_void {
        match self {
            Target::Slice(slice) => slice.as_mut_ptr().cast(),
            Target::Uninit(slice) => slice.as_mut_ptr().cast(),
        }
    }
}

impl<D> Addend<'_, D> {
    /// For the library; `d` is the pointer to the target, which has as many elements as are needed.
    pub fn pointer(
        self,
        name: &str,
        target: &Target<'_, D>,
        d: *mut c_void,
        needed: Option<usize>,
    ) -> Result<*const c_void> {
        let (pointer, has) = match (self, target) {
            (Addend::None, _) => (ptr::null(), 0),
            (Addend::Slice(slice), _) => (slice.as_ptr().cast(), slice.len()),
            (Addend::InPlace, Target::Slice(_)) => (d.cast_const(), target.len()),
            (Addend::InPlace, Target::Uninit(_)) => {
                return Err(Error::argument(format!("{name} cannot be a D that was never written")));
            }
        };
        check_length(name, has, needed)?;
        Ok(pointer)
    }
}

/// A slice as its length.
impl<D> fmt::Debug for Addend<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Addend::None => f.write_str("none"),
            Addend::Slice(slice) => slice.len().fmt(f),
            Addend::InPlace => f.write_str("d"),
        }
    }
}
