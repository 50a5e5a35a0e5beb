//! What runs read and write: whether the problem has it, and how long it must be.
use crate::error::{Error, Result};
use crate::extent::check_length;
use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;

/// Elements that the problem asks an operand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    /// It has no such operand: what was given is left out, as its length means nothing.
    Absent,
    /// `None`: more than memory holds.
    Elements(Option<usize>),
}

impl Needed {
    pub fn when(asked: bool, elements: Option<usize>) -> Needed {
        if asked { Needed::Elements(elements) } else { Needed::Absent }
    }

    /// Refuses a slice that is too short.
    #[inline]
    pub fn check(self, name: &str, has: usize) -> Result<()> {
        match self {
            Needed::Absent => Ok(()),
            Needed::Elements(needed) => check_length(name, has, needed),
        }
    }
}

/// What is read, for the library. No slice is an empty one.
#[inline]
pub(crate) fn input<T>(name: &str, slice: Option<&[T]>, needed: Needed) -> Result<*const c_void> {
    if needed == Needed::Absent {
        return Ok(ptr::null());
    }
    let slice = slice.unwrap_or_default();
    needed.check(name, slice.len())?;
    Ok(slice.as_ptr().cast())
}

/// What is written, likewise.
#[inline]
pub(crate) fn output<T>(name: &str, slice: Option<&mut [T]>, needed: Needed) -> Result<*mut c_void> {
    if needed == Needed::Absent {
        return Ok(ptr::null_mut());
    }
    let slice = slice.unwrap_or_default();
    needed.check(name, slice.len())?;
    Ok(slice.as_mut_ptr().cast())
}

/// What may be the same array as the target, such as C.
#[derive(Clone, Copy)]
pub(crate) enum Addend<'a, D> {
    None,
    Slice(&'a [D]),
    InPlace,
}

/// Where the result goes.
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

    /// For the library.
    #[inline]
    pub fn pointer(&mut self, name: &str, needed: Needed) -> Result<*mut c_void> {
        needed.check(name, self.len())?;
        Ok(match self {
            Target::Slice(slice) => slice.as_mut_ptr().cast(),
            Target::Uninit(slice) => slice.as_mut_ptr().cast(),
        })
    }
}

impl<D> Addend<'_, D> {
    /// For the library; `to` is the pointer to the target, which has as many elements as are needed.
    #[inline]
    pub fn pointer(self, name: &str, target: &Target<'_, D>, to: *mut c_void, needed: Needed) -> Result<*const c_void> {
        if needed == Needed::Absent {
            return Ok(ptr::null());
        }
        let (pointer, has) = match (self, target) {
            (Addend::None, _) => (ptr::null(), 0),
            (Addend::Slice(slice), _) => (slice.as_ptr().cast(), slice.len()),
            (Addend::InPlace, Target::Slice(_)) => (to.cast_const(), target.len()),
            (Addend::InPlace, Target::Uninit(_)) => {
                return Err(Error::argument(format!("{name} cannot be a D that was never written")));
            }
        };
        needed.check(name, has)?;
        Ok(pointer)
    }
}

/// A slice as its length.
impl<D> fmt::Debug for Addend<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Addend::None => f.write_str("None"),
            Addend::Slice(slice) => slice.len().fmt(f),
            Addend::InPlace => f.write_str("d"),
        }
    }
}
