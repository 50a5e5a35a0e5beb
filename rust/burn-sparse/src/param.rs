//! Sparse matrices as parameters.
use crate::error::{Error, Result};
use crate::pattern::BsrPattern;
use crate::tensor::BsrTensor;
use burn::module::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};
use burn::module::{Param, ParamId};
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const TYPE: &str = "Struct:BsrParam";

/// A sparse matrix that a module learns: a field of modules as Burn's `Param` is. Optimizers see its values alone. Records hold
/// its pattern, too, and loading brings it back.
///
/// A record fits where shape, block and number of stored blocks are the same. Where it does not, or its pattern is none,
/// loading is an error, and the module that one cloned before is as it was. A pattern is taken only together with its values:
/// alone, in a record that may be partial, it is an unused tensor, which is an error again. Values alone go to the module's own
/// blocks. A record that may be partial and brings values with a pattern that is none loads, but its values are lost: using
/// those of the loaded module panics and says why.
///
/// A mapper of one's own brings values as Burn's do, by `Param::transform_for_load`.
///
/// ```
/// use burn::{module::Module, tensor::Device};
/// use burn_sparse::{BsrParam, BsrTensor};
/// let device = Device::flex();
/// let saved = BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[7f32], &device)?;
/// let other = BsrTensor::from_triplets([4, 4], [2, 2], &[3], &[0], &[0f32], &device)?;
///
/// let record = BsrParam::from_tensor(saved).into_record();
/// let loaded = BsrParam::from_tensor(other).load_record(record);
/// assert_eq!(loaded.pattern().coordinates().next(), Some((0, 1)));
/// # Ok::<(), burn_sparse::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BsrParam {
    values: Param<Tensor<3>>,
    pattern: BsrPattern,
    pattern_id: ParamId,
}

impl BsrParam {
    /// The parameter of a matrix; not of a transposed one, whose blocks lie otherwise.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_sparse::{BsrParam, BsrTensor};
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[7f32], &Device::flex())?;
    /// assert_eq!(BsrParam::from_tensor(a).pattern().nnzb(), 1);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn from_tensor(tensor: BsrTensor) -> BsrParam {
        let pattern = tensor.pattern().clone();
        BsrParam::from_values(pattern, Param::from_tensor(tensor.values()))
    }

    /// With values that are made when they are first used.
    pub(crate) fn from_values(pattern: BsrPattern, values: Param<Tensor<3>>) -> BsrParam {
        BsrParam { values, pattern, pattern_id: ParamId::new() }
    }

    /// Where the stored blocks are.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::{BsrParam, BsrTensor};
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[7f32], &Device::flex())?;
    /// assert_eq!(BsrParam::from_tensor(a).pattern().block(), [2, 2]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn pattern(&self) -> &BsrPattern {
        &self.pattern
    }

    /// The values' parameter.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::{BsrParam, BsrTensor};
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[7f32], &Device::flex())?;
    /// assert_eq!(BsrParam::from_tensor(a).values().dims(), [1, 2, 2]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn values(&self) -> &Param<Tensor<3>> {
        &self.values
    }

    /// The matrix.
    ///
    /// ```
    /// # use burn::tensor::Device;
    /// # use burn_sparse::{BsrParam, BsrTensor};
    /// let a = BsrTensor::from_triplets([4, 4], [2, 2], &[0], &[3], &[7f32], &Device::flex())?;
    /// assert_eq!(BsrParam::from_tensor(a).val().shape(), [4, 4]);
    /// # Ok::<(), burn_sparse::Error>(())
    /// ```
    pub fn val(&self) -> BsrTensor {
        BsrTensor::new(self.pattern.clone(), self.values.val()).expect("values keep the pattern's shape")
    }

    fn with_values(self, values: Param<Tensor<3>>) -> BsrParam {
        BsrParam { values, ..self }
    }

    /// The pattern as records hold it: rows and columns of the matrix, of a block, then the place of every block.
    fn pattern_param(&self) -> Param<Tensor<2, Int>> {
        let (pattern, device) = (self.pattern.clone(), self.values.lazy_device());
        let shape = [2 + pattern.nnzb(), 2];
        let init = move |device: &Device, _: bool| {
            let places = pattern.coordinates().map(<[usize; 2]>::from);
            let pairs = [pattern.shape(), pattern.block()].into_iter().chain(places);
            let numbers: Vec<i64> = pairs.flatten().map(|number| number as i64).collect();
            Tensor::from_data(TensorData::new(numbers, shape), device)
        };
        Param::uninitialized(self.pattern_id, init, device, false, shape.into())
    }

    /// The pattern that a record brought.
    fn read_pattern(&self, numbers: Tensor<2, Int>) -> Result<BsrPattern> {
        let numbers = numbers.try_into_vec_as::<i64>().map_err(|why| Error::Argument(format!("{why:?}")))?;
        let mut pairs = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        let (shape, block) = (self.pattern.shape(), self.pattern.block());
        for (what, own) in [("a matrix", shape), ("blocks", block)] {
            let (rows, cols) = pairs.next().unwrap_or_default();
            if (rows, cols) != (own[0] as i64, own[1] as i64) {
                let [height, width] = own;
                return Err(Error::Argument(format!(
                    "of {what} of {rows} x {cols}, the module's are {height} x {width}"
                )));
            }
        }
        BsrPattern::from_coordinates(shape, block, &pairs.collect::<Vec<_>>())
    }
}

impl Module for BsrParam {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.values.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        let values = self.values.clone().fork(device);
        self.with_values(values)
    }

    fn to_device(self, device: &Device) -> Self {
        let values = self.values.clone().to_device(device);
        self.with_values(values)
    }

    fn train(self) -> Self {
        let values = self.values.clone().train();
        self.with_values(values)
    }

    fn valid(&self) -> Self {
        self.clone().with_values(self.values.valid())
    }

    fn materialize(self) -> Self {
        let values = self.values.clone().materialize();
        self.with_values(values)
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visitor.enter_module("pattern", TYPE);
        visitor.visit_int(&self.pattern_param());
        visitor.exit_module("pattern", TYPE);
        visitor.enter_module("values", TYPE);
        self.values.visit(visitor);
        visitor.exit_module("values", TYPE);
    }

    fn map<Mapper: ModuleMapper>(mut self, mapper: &mut Mapper) -> Self {
        // Values first: a record's pattern that nobody asks for is an error of its own, one asked for is gone.
        let loaded = Arc::new(AtomicBool::new(false));
        let note = loaded.clone();
        let values = self.values.clone().load_mapper(move |values| {
            note.store(true, Relaxed);
            values
        });
        mapper.enter_module("values", TYPE);
        let values = Module::map(values, mapper);
        mapper.exit_module("values", TYPE);
        if !loaded.load(Relaxed) {
            refuse(mapper, "pattern is taken only together with its values", self.pattern_param());
            return self.with_values(values);
        }
        mapper.enter_module("pattern", TYPE);
        let mapped = mapper.map_int(self.pattern_param());
        mapper.exit_module("pattern", TYPE);
        // What was made already is what a record brought.
        if mapped.is_initialized() {
            match self.read_pattern(mapped.val()) {
                Ok(pattern) => {
                    self.pattern_id = mapped.id;
                    if pattern != self.pattern {
                        self.pattern = pattern;
                    }
                }
                Err(why) => {
                    let why = format!("the record's pattern does not fit: {why}");
                    refuse(mapper, &why, self.pattern_param());
                    let values = unusable(&self.values, why);
                    return self.with_values(values);
                }
            }
        }
        self.with_values(values)
    }
}

/// Tells a mapper that what it brought cannot be: as a parameter of that name, which a record does not have and which makes
/// loading fail with its name. Mapping has no result that could be an error.
fn refuse<Mapper: ModuleMapper>(mapper: &mut Mapper, why: &str, param: Param<Tensor<2, Int>>) {
    mapper.enter_module(why, TYPE);
    mapper.map_int(param);
    mapper.exit_module(why, TYPE);
}

/// Values that say why there are none when they are used. A record that may be partial loads in spite of a refusal, and what
/// it brought for this module is lost: nobody shall take the old values for it.
fn unusable(values: &Param<Tensor<3>>, why: String) -> Param<Tensor<3>> {
    let init = move |_: &Device, _: bool| -> Tensor<3> { panic!("{why}") };
    Param::uninitialized(values.id, init, values.lazy_device(), true, values.lazy_shape())
}

impl ModuleDisplayDefault for BsrParam {
    fn content(&self, content: Content) -> Option<Content> {
        let ([rows, cols], [height, width]) = (self.pattern.shape(), self.pattern.block());
        let (nnzb, share) = (self.pattern.nnzb(), 100.0 * self.pattern.density());
        content
            .add_formatted(&format!("{rows} x {cols}, {nnzb} blocks of {height} x {width} ({share:.1} %)"))
            .optional()
    }
}

impl ModuleDisplay for BsrParam {}
