//! How many elements an operand spans, so that no slice is shorter.
use crate::error::{Error, Result};
use crate::operands::Needed;
use crate::sys;

/// A strided dense operand as the library reads it.
#[derive(Clone, Copy)]
pub(crate) struct Strided {
    pub rows: i64,
    pub cols: i64,
    pub layout: sys::spk_layout,
    pub ld: i64,
    pub stride: i64,
}

impl Strided {
    /// Elements from the first to the last of `batch` items; `None` where that is no size. What the library refuses (a
    /// leading dimension under a line, a negative stride) may give anything.
    pub fn elements(self, batch: i64) -> Option<usize> {
        let (lines, length) =
            if self.layout == sys::SPK_ROW_MAJOR { (self.rows, self.cols) } else { (self.cols, self.rows) };
        if lines <= 0 || length <= 0 {
            return Some(0);
        }
        let ld = if self.ld != 0 { self.ld } else { length };
        let item = ld.checked_mul(lines - 1)?.checked_add(length)?;
        let stride = match self.stride {
            sys::SPK_STRIDE_SHARED => 0,
            0 => ld.checked_mul(lines)?,
            given => given,
        };
        items(item, stride, batch)
    }
}

/// An operand that has a matrix for each head: lines of `length` elements each.
#[derive(Clone, Copy)]
pub(crate) struct Headed {
    pub lines: i64,
    pub length: i64,
    pub ld: i64,
    pub heads: i64,
    pub head_stride: i64,
    pub stride: i64,
}

impl Headed {
    /// As [`Strided::elements`].
    pub fn elements(self, batch: i64) -> Option<usize> {
        if self.lines <= 0 || self.length <= 0 {
            return Some(0);
        }
        let heads = self.heads.max(1);
        let ld = if self.ld != 0 { self.ld } else { self.length };
        let lines = ld.checked_mul(self.lines)?;
        let head_stride = match self.head_stride {
            _ if heads == 1 => 0,
            0 => lines,
            given => given,
        };
        let matrix = ld.checked_mul(self.lines - 1)?.checked_add(self.length)?;
        let item = head_stride.checked_mul(heads - 1)?.checked_add(matrix)?;
        let stride = match self.stride {
            sys::SPK_STRIDE_SHARED => 0,
            0 => lines.max(head_stride.checked_mul(heads)?),
            given => given,
        };
        items(item, stride, batch)
    }
}

/// Elements of `batch` items of `item` elements, `stride` apart.
pub(crate) fn items(item: i64, stride: i64, batch: i64) -> Option<usize> {
    if item == 0 {
        return Some(0);
    }
    let all = stride.checked_mul(batch.max(1) - 1)?.checked_add(item)?;
    usize::try_from(all).ok()
}

/// Scale factors of `items` matrices of rows x cols, of which each has its own; of `blocks` stored blocks where each has one.
pub(crate) fn factors(scale: sys::spk_scale, [rows, cols]: [i64; 2], blocks: i64, items: i64) -> Needed {
    let along = |size: i64, tile: i64| match tile {
        sys::SPK_SCALE_ALL => i64::from(size > 0),
        _ if tile < 1 => 0, // the library refuses it
        _ => size / tile + i64::from(size % tile != 0),
    };
    let of_item = match scale.rows {
        sys::SPK_SCALE_BLOCK => Some(blocks),
        _ => along(rows, scale.rows).checked_mul(along(cols, scale.cols)),
    };
    let all = of_item.and_then(|of_item| of_item.checked_mul(items.max(1)));
    Needed::when(scale.rows != 0 || scale.cols != 0, all.and_then(|all| usize::try_from(all).ok()))
}

/// Refuses a slice that is too short.
#[inline]
pub(crate) fn check_length(name: &str, has: usize, needed: Option<usize>) -> Result<()> {
    match needed {
        Some(needed) if has >= needed => Ok(()),
        _ => Err(too_short(name, has, needed)),
    }
}

#[cold]
fn too_short(name: &str, has: usize, needed: Option<usize>) -> Error {
    match needed {
        Some(needed) => Error::argument(format!("{name} has {has} elements: the problem needs {needed}")),
        None => Error::argument(format!("{name}: the problem's sizes exceed what memory can hold")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(layout: sys::spk_layout, ld: i64, stride: i64, batch: i64) -> Option<usize> {
        Strided { rows: 3, cols: 5, layout, ld, stride }.elements(batch)
    }

    #[test]
    fn elements_reach_the_last_line_only() {
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 0, 0, 0), Some(15));
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 8, 0, 1), Some(21));
        assert_eq!(spans(sys::SPK_COL_MAJOR, 4, 0, 1), Some(19));
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 8, 0, 2), Some(24 + 21));
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 8, 100, 3), Some(200 + 21));
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 8, sys::SPK_STRIDE_SHARED, 3), Some(21));
    }

    #[test]
    fn elements_of_heads() {
        let tight = Headed { lines: 3, length: 5, ld: 0, heads: 4, head_stride: 0, stride: 0 };
        assert_eq!(tight.elements(2), Some(120));
        assert_eq!(Headed { heads: 0, ..tight }.elements(0), Some(15));
        assert_eq!(Headed { ld: 8, ..tight }.elements(2), Some(96 + 72 + 21));
        let by_rows = Headed { ld: 20, head_stride: 5, ..tight };
        assert_eq!(by_rows.elements(2), Some(120));
        assert_eq!(Headed { stride: 100, ..by_rows }.elements(2), Some(160));
        assert_eq!(Headed { stride: sys::SPK_STRIDE_SHARED, ..by_rows }.elements(7), Some(60));
        assert_eq!(Headed { lines: 0, ..by_rows }.elements(7), Some(0));
        for huge in [
            Headed { ld: i64::MAX, ..tight },
            Headed { head_stride: i64::MAX, ..tight },
            Headed { heads: i64::MAX, ..tight },
            Headed { stride: i64::MAX, ..tight },
        ] {
            assert_eq!(huge.elements(3), None);
        }
    }

    #[test]
    fn what_no_memory_holds_is_none() {
        assert_eq!(spans(sys::SPK_ROW_MAJOR, i64::MAX, 0, 1), None);
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 0, i64::MAX, 3), None);
        assert_eq!(spans(sys::SPK_ROW_MAJOR, 0, -5, 9), None);
        assert_eq!(
            Strided { rows: 0, cols: 5, layout: sys::SPK_ROW_MAJOR, ld: i64::MAX, stride: 0 }.elements(2),
            Some(0)
        );
    }
}
