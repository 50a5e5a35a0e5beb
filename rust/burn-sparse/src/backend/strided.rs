//! Strided views as the library takes them: a leading dimension, and a stride from item to item.
use sparsek::Layout;

/// Items of a dense matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub layout: Layout,
    pub ld: usize,
    pub items: usize,
    /// From one item to the next; 0: all are the same one.
    pub stride: usize,
}

/// Several dimensions as one, where their strides allow it: its length and its stride.
fn collapse(dims: &[usize], strides: &[isize]) -> Option<(usize, isize)> {
    let mut one = (1, 0);
    for (&length, &stride) in dims.iter().zip(strides).rev().filter(|&(&length, _)| length != 1) {
        one = match one {
            (1, _) => (length, stride),
            (count, step) if stride == step * count as isize => (count * length, step),
            _ => return None,
        };
    }
    Some(one)
}

/// A matrix of these lengths and strides as lines at a leading dimension.
fn lines((rows, by_row): (usize, isize), (cols, by_col): (usize, isize)) -> Option<(Layout, usize)> {
    // A dimension of length 1 has no stride to speak of, nor have rows without elements.
    let by_col = if cols <= 1 { 1 } else { by_col };
    let row_ld = if rows <= 1 || cols == 0 { cols.max(1) as isize } else { by_row };
    if by_col == 1 && row_ld >= cols.max(1) as isize {
        return Some((Layout::RowMajor, row_ld as usize));
    }
    let by_row = if rows <= 1 { 1 } else { by_row };
    if by_row == 1 && by_col >= rows.max(1) as isize {
        return Some((Layout::ColMajor, by_col as usize));
    }
    None
}

impl View {
    /// Of `[..., rows, columns]`: the leading dimensions are items.
    pub fn matrices(dims: &[usize], strides: &[isize]) -> Option<View> {
        let split = dims.len() - 2;
        let (items, stride) = collapse(&dims[..split], &strides[..split])?;
        let (layout, ld) = lines((dims[split], strides[split]), (dims[split + 1], strides[split + 1]))?;
        Some(View { layout, ld, items, stride: usize::try_from(stride).ok()? })
    }

    /// Of `[..., columns]`: the leading dimensions are the rows of one matrix.
    pub fn rows(dims: &[usize], strides: &[isize]) -> Option<View> {
        let split = dims.len() - 1;
        let rows = collapse(&dims[..split], &strides[..split])?;
        let (layout, ld) = lines(rows, (dims[split], strides[split]))?;
        Some(View { layout, ld, items: 1, stride: 0 })
    }

    /// The transposed matrix in the same memory.
    pub fn transposed(self) -> View {
        let layout = if self.layout == Layout::RowMajor { Layout::ColMajor } else { Layout::RowMajor };
        View { layout, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(layout: Layout, ld: usize, items: usize, stride: usize) -> Option<View> {
        Some(View { layout, ld, items, stride })
    }

    #[test]
    fn matrices_of_any_strides() {
        let (row, col) = (Layout::RowMajor, Layout::ColMajor);
        assert_eq!(View::matrices(&[3, 4], &[4, 1]), view(row, 4, 1, 0));
        assert_eq!(View::matrices(&[3, 4], &[9, 1]), view(row, 9, 1, 0)); // a slice of columns
        assert_eq!(View::matrices(&[3, 4], &[1, 3]), view(col, 3, 1, 0)); // transposed
        assert_eq!(View::matrices(&[3, 4], &[1, 8]), view(col, 8, 1, 0));
        assert_eq!(View::matrices(&[3, 4], &[-4, 1]), None); // flipped
        assert_eq!(View::matrices(&[3, 4], &[0, 1]), None); // one row for all
        assert_eq!(View::matrices(&[3, 4], &[8, 2]), None); // every second column
        assert_eq!(View::matrices(&[1, 4], &[0, 1]), view(row, 4, 1, 0));
        assert_eq!(View::matrices(&[3, 1], &[5, 7]), view(row, 5, 1, 0));
        assert_eq!(View::matrices(&[1, 4], &[0, 5]), view(col, 5, 1, 0));
        assert_eq!(View::matrices(&[3, 0], &[0, 1]), view(row, 1, 1, 0)); // rows without elements
    }

    #[test]
    fn leading_dimensions() {
        let row = Layout::RowMajor;
        assert_eq!(View::matrices(&[2, 5, 3, 4], &[60, 12, 4, 1]), view(row, 4, 10, 12));
        assert_eq!(View::matrices(&[2, 5, 3, 4], &[0, 0, 4, 1]), view(row, 4, 10, 0)); // expanded
        assert_eq!(View::matrices(&[2, 5, 3, 4], &[0, 12, 4, 1]), None);
        assert_eq!(View::matrices(&[2, 1, 3, 4], &[12, 99, 4, 1]), view(row, 4, 2, 12));
        assert_eq!(View::matrices(&[2, 3, 4], &[-12, 4, 1]), None);
        assert_eq!(View::matrices(&[2, 3, 4], &[4, 8, 1]), view(row, 8, 2, 4)); // items side by side in each line
        assert_eq!(View::rows(&[2, 5, 4], &[20, 4, 1]), view(row, 4, 1, 0));
        assert_eq!(View::rows(&[2, 5, 4], &[40, 4, 1]), None);
        assert_eq!(View::rows(&[4], &[1]), view(row, 4, 1, 0));
        assert_eq!(View::rows(&[2, 5, 0], &[0, 0, 1]), view(row, 1, 1, 0));
        assert_eq!(View::rows(&[2, 5, 4], &[5, 1, 10]), view(Layout::ColMajor, 10, 1, 0));
    }
}
