//! Where the stored blocks are, on the host.
use crate::context::host_context;
use crate::error::{Error, Result};
use sparsek::{Context, Matrix, Pattern};
use std::fmt;
use std::sync::Arc;

/// The places of a matrix's stored blocks, sorted by row, then by column. It is shared: a clone costs nothing.
///
/// ```
/// use burn_sparse::BsrPattern;
/// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 2, 3], &[0, 1, 1])?;
/// assert_eq!(pattern.coordinates().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 1)]);
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone)]
pub struct BsrPattern {
    inner: Arc<Inner>,
}

struct Inner {
    pattern: Pattern,
    offsets: Vec<i64>,
    columns: Vec<i64>,
    #[cfg(feature = "cuda")]
    devices: std::sync::Mutex<Vec<(usize, Pattern)>>,
}

impl PartialEq for BsrPattern {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        let same = || (self.shape(), self.block()) == (other.shape(), other.block());
        Arc::ptr_eq(&self.inner, &other.inner) || (same() && a.offsets == b.offsets && a.columns == b.columns)
    }
}

impl fmt::Debug for BsrPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.inner.pattern)
    }
}

impl BsrPattern {
    /// From where block rows begin among the blocks, and the blocks' columns, ascending in each row.
    ///
    /// ```
    /// use burn_sparse::BsrPattern;
    /// assert!(BsrPattern::new([4, 4], [2, 2], &[0, 1, 2], &[0, 7]).is_err()); // there is no block column 7
    /// ```
    pub fn new(shape: [usize; 2], block: [usize; 2], row_offsets: &[i64], col_indices: &[i64]) -> Result<BsrPattern> {
        BsrPattern::in_context(host_context()?, shape, block, row_offsets.to_vec(), col_indices.to_vec())
    }

    fn in_context(
        context: &Context,
        shape: [usize; 2],
        block: [usize; 2],
        offsets: Vec<i64>,
        columns: Vec<i64>,
    ) -> Result<BsrPattern> {
        let pattern = Pattern::new(context, shape.into(), block.into(), &offsets, &columns)?;
        let ascends = |row: &[i64]| columns[row[0] as usize..row[1] as usize].is_sorted_by(|a, b| a < b);
        if let Some(row) = offsets.windows(2).position(|row| !ascends(row)) {
            return Err(Error::Argument(format!("the columns of block row {row} do not ascend")));
        }
        Ok(BsrPattern {
            inner: Arc::new(Inner {
                pattern,
                offsets,
                columns,
                #[cfg(feature = "cuda")]
                devices: Default::default(),
            }),
        })
    }

    /// That of a matrix in blocks.
    ///
    /// ```
    /// use burn_sparse::{BsrPattern, host_context, sparsek::{Generate, Matrix}};
    /// let matrix = Matrix::generate::<f32>(host_context()?, Generate::Diagonal, (8, 8), (2, 2), 0.25, 1)?;
    /// assert_eq!(BsrPattern::from_matrix(&matrix)?.nnzb(), 4);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_matrix(matrix: &Matrix) -> Result<BsrPattern> {
        let (offsets, columns) = (matrix.row_offsets().to_vec(), matrix.col_indices().to_vec());
        BsrPattern::new(matrix.shape().into(), matrix.block().into(), &offsets, &columns)
    }

    /// From the blocks' rows and columns, which must ascend.
    pub(crate) fn from_coordinates(shape: [usize; 2], block: [usize; 2], places: &[(i64, i64)]) -> Result<BsrPattern> {
        let grid_rows = if block[0] == 0 { 0 } else { shape[0].div_ceil(block[0]) };
        let mut offsets = vec![0i64; grid_rows + 1];
        for &(row, _) in places {
            let count = usize::try_from(row).ok().and_then(|row| offsets.get_mut(row.checked_add(1)?));
            *count.ok_or_else(|| Error::Argument(format!("there is no block row {row}: there are {grid_rows}")))? += 1;
        }
        if !places.is_sorted_by(|a, b| a < b) {
            return Err(Error::Argument("the blocks' places do not ascend".into()));
        }
        for row in 0..grid_rows {
            offsets[row + 1] += offsets[row];
        }
        let columns: Vec<i64> = places.iter().map(|&(_, column)| column).collect();
        BsrPattern::new(shape, block, &offsets, &columns)
    }

    /// Rows and columns of the matrix.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?.shape(), [4, 6]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn shape(&self) -> [usize; 2] {
        self.inner.pattern.shape().into()
    }

    /// Rows and columns of a block.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?.block(), [2, 3]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn block(&self) -> [usize; 2] {
        self.inner.pattern.block().into()
    }

    /// Blocks down and across, stored or not.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([5, 6], [2, 3], &[0, 1, 1, 1], &[0])?.grid(), [3, 2]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn grid(&self) -> [usize; 2] {
        let ([rows, cols], block) = (self.shape(), self.block());
        [rows.div_ceil(block[0]), cols.div_ceil(block[1])]
    }

    /// Stored blocks.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?.nnzb(), 1);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn nnzb(&self) -> usize {
        self.inner.columns.len()
    }

    /// The share of blocks that are stored.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?.density(), 0.25);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn density(&self) -> f64 {
        let [rows, cols] = self.grid();
        self.nnzb() as f64 / ((rows * cols).max(1)) as f64
    }

    /// Row and column of each stored block, in their order.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// let pattern = BsrPattern::new([4, 6], [2, 3], &[0, 0, 2], &[0, 1])?;
    /// assert_eq!(pattern.coordinates().collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn coordinates(&self) -> impl Iterator<Item = (usize, usize)> {
        let Inner { offsets, columns, .. } = &*self.inner;
        let rows = offsets.windows(2).enumerate();
        rows.flat_map(move |(row, span)| (span[0]..span[1]).map(move |at| (row, columns[at as usize] as usize)))
    }

    /// The library's own.
    ///
    /// ```
    /// # use burn_sparse::BsrPattern;
    /// assert_eq!(BsrPattern::new([4, 6], [2, 3], &[0, 1, 1], &[0])?.inner().info()?.empty_rows, 1);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn inner(&self) -> &Pattern {
        &self.inner.pattern
    }

    /// The same for a GPU, made when it is first asked for.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_device(&self, index: usize) -> Result<Pattern> {
        let mut devices = self.inner.devices.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, pattern)) = devices.iter().find(|(known, _)| *known == index) {
            return Ok(pattern.clone());
        }
        let context = crate::context::device_context(index)?;
        let (shape, block) = (self.shape().into(), self.block().into());
        let pattern = Pattern::new(&context, shape, block, &self.inner.offsets, &self.inner.columns)?;
        devices.push((index, pattern.clone()));
        Ok(pattern)
    }

    /// The shape of a matrix's values: blocks, and the rows and columns of each.
    pub(crate) fn values_shape(&self) -> [usize; 3] {
        let [rows, cols] = self.block();
        [self.nnzb(), rows, cols]
    }
}
