//! Gather and scatter by arrays of indices; concatenation of arrays.

use crate::Array;
use crate::layout::{IndexItem, Layout, Order, SliceBounds, shape_text};
use crate::promote::check_same_kind;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{BinaryFunction, Reduction};
use hal::memory::{Access, AccessGuard, wait_before_copy};
use hal::operation::{Gather, Input, Nonzero, Operation, Scatter, Shape, Strides};
use hal::recording::{self, Work};
use hal::scalar::Scalar;
use smallvec::SmallVec;

impl Array {
    /// Returns the elements at `indices` along `axis`, in a new array. Its shape is this array's shape with that
    /// axis replaced by the shape of `indices`.
    ///
    /// A negative index counts from the end. An index outside the axis reads zero, because a device cannot
    /// report an error.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidType` unless the indices are integers;
    /// `OutOfMemory`.
    pub fn take(&self, indices: &Array, axis: isize) -> Result<Array> {
        self.during(|| {
            let axis = self.layout.normalize_axis(axis)?;
            let output = self.new_result(&self.taken_shape(indices, axis), self.dtype)?;
            self.take_checked(indices, axis, &output)?;
            Ok(output)
        })
    }

    /// Like [`Array::take`], but stores the elements in `output`, converted to the dtype of `output`.
    ///
    /// # Errors
    /// As for [`Array::take`]; `InvalidArgument` for an output of another shape or one that overlaps an input;
    /// `InvalidType` if the elements cannot be cast to the output's type (numpy's rule `same_kind`).
    pub fn take_into(&self, indices: &Array, axis: isize, output: &Array) -> Result<()> {
        self.during(|| {
            let axis = self.layout.normalize_axis(axis)?;
            let expected = self.taken_shape(indices, axis);
            check_same_kind(self.dtype, output.dtype)?;
            output.check_apart(self)?;
            output.check_apart(indices)?;
            if output.shape() != &expected[..] {
                return Err(Error::invalid(
                    "out",
                    format!(
                        "out has shape {}; the result has shape {}",
                        shape_text(output.shape()),
                        shape_text(&expected)
                    ),
                ));
            }
            self.take_checked(indices, axis, output)
        })
    }

    fn taken_shape(&self, indices: &Array, axis: usize) -> Shape {
        let shape = self.shape();
        shape[..axis].iter().chain(indices.shape()).chain(&shape[axis + 1..]).copied().collect()
    }

    fn take_checked(&self, indices: &Array, axis: usize, output: &Array) -> Result<()> {
        let source = self.indexed(indices, axis)?;
        if output.size() == 0 {
            return Ok(());
        }
        let operation = Operation::new(Gather {
            shape: Shape::from_slice(output.shape()),
            source,
            output: output.operand(Strides::from_slice(output.strides()), 0),
        })?;
        output.queue(&operation, &[self, indices])
    }

    /// Stores the elements of `values`, broadcast, at `indices` along `axis`. An index outside the axis is
    /// ignored. If an index occurs more than once, one of the values wins.
    ///
    /// # Errors
    /// As for [`Array::take`]; `InvalidArgument` if the values' shape does not fit or they overlap this array;
    /// `InvalidType` if they cannot be cast to this array's type (numpy's rule `same_kind`).
    pub fn put(&self, indices: &Array, values: &Array, axis: isize) -> Result<()> {
        self.during(|| {
            let axis = self.layout.normalize_axis(axis)?;
            let shape = self.taken_shape(indices, axis);
            check_same_kind(values.dtype, self.dtype)?;
            self.check_apart(values)?;
            self.check_apart(indices)?;
            let from = values.layout.broadcast_to(&shape)?;
            let target = self.indexed(indices, axis)?;
            if shape.contains(&0) {
                return Ok(());
            }
            let operation = Operation::new(Scatter {
                shape,
                input: Input::Array(values.operand(Strides::from_slice(from.strides()), 0)),
                target,
            })?;
            let uses: SmallVec<[_; 3]> = SmallVec::from_slice(&[
                (&self.memory, Access::Write),
                (&values.memory, Access::Read),
                (&indices.memory, Access::Read),
            ]);
            self.stream().wait_for_room();
            let _guard = AccessGuard::acquire(self.stream(), &uses)?;
            // SAFETY: layouts are inside their memory and do not overlap, shapes agree, the operation checks the
            // indices, and the guard orders the work.
            let execute = || unsafe { self.stream().execute(&operation) };
            recording::queued(self.stream().as_ref(), || Work::operation(&operation), execute)
        })
    }

    /// Returns the indices of the nonzero elements, in ascending order, as `dtype`: int32 or int64. The array is
    /// read as one-dimensional in C order.
    ///
    /// The elements are counted first, and the call waits for the count. If another thread writes to the array
    /// meanwhile, fewer indices may be found; the remaining elements of the result are then undefined.
    ///
    /// # Errors
    /// `InvalidType` for records, for another dtype, and for int32 if an index may not fit; `OutOfMemory`; a
    /// failure of queued work.
    pub fn nonzero(&self, dtype: DType) -> Result<Array> {
        self.during(|| {
            let mask = match self.dtype {
                DType::Bool => self.in_c_order()?,
                _ => {
                    let zero = Scalar::new(false).cast(self.dtype)?;
                    Array::binary(BinaryFunction::NotEqual, self.into(), zero.into())?
                        .in_c_order()?
                }
            };
            self.found(&mask, None, dtype)
        })
    }

    /// Returns the elements at which `mask` is true, in C order, along one axis.
    ///
    /// The true elements are counted first, and the call waits for the count. If another thread writes to the
    /// mask meanwhile, fewer elements may be found; the remaining elements of the result are then undefined.
    ///
    /// # Errors
    /// `InvalidArgument` for a mask of another shape; `InvalidType` for a mask of a dtype other than bool;
    /// `OutOfMemory`; a failure of queued work.
    pub fn compress(&self, mask: &Array) -> Result<Array> {
        self.during(|| {
            if mask.shape() != self.shape() {
                return Err(Error::invalid(
                    "mask",
                    format!(
                        "mask has shape {}; the array has shape {}",
                        shape_text(mask.shape()),
                        shape_text(self.shape())
                    ),
                ));
            }
            if mask.dtype != DType::Bool {
                let detail = format!("mask is of dtype {}; it has to be of bool", mask.dtype);
                return Err(Error::invalid_type("mask", detail));
            }
            if matches!(self.dtype, DType::Opaque(_)) {
                let narrow = i32::try_from(self.size()).is_ok();
                let indices = mask.nonzero(if narrow { DType::Int32 } else { DType::Int64 })?;
                return self.in_c_order()?.reshape(&[-1], Order::C)?.take(&indices, 0);
            }
            self.found(&mask.in_c_order()?, Some(&self.in_c_order()?), self.dtype)
        })
    }

    /// Returns the indices of the true elements of a mask, or the elements of `values` there, as a new array on
    /// this array's stream. All arrays are contiguous in C order.
    fn found(&self, mask: &Array, values: Option<&Array>, dtype: DType) -> Result<Array> {
        let most = mask.count()?;
        let output = self.new_result(&[most], dtype)?;
        let run =
            |array: &Array| array.operand(Strides::from_slice(&[array.dtype.size() as isize]), 0);
        let operation = Operation::new(Nonzero {
            length: mask.size(),
            most,
            mask: run(mask),
            values: values.map(run),
            output: run(&output),
        })?;
        if most > 0 {
            let inputs: SmallVec<[&Array; 2]> = std::iter::once(mask).chain(values).collect();
            output.queue(&operation, &inputs)?;
        }
        Ok(output)
    }

    /// Returns the number of true elements. Waits until the device has counted them.
    fn count(&self) -> Result<usize> {
        let total = self.reduce(Reduction::Sum, DType::Int64, None, false)?;
        wait_before_copy(total.stream().as_ref())?;
        let mut count = 0_i64;
        // SAFETY: the variable has the size of the array's one element, and the call waits until the number has
        // arrived.
        unsafe { total.download((&raw mut count).cast(), true)? };
        Ok(count as usize)
    }

    fn check_apart(&self, other: &Array) -> Result<()> {
        self.check_same_device(other)?;
        if self.layout.may_repeat() {
            return Err(Error::invalid(
                "out",
                format!(
                    "out has shape {} and strides {:?}, which name some elements twice; each must be \
                     written once",
                    shape_text(self.shape()),
                    self.strides()
                ),
            ));
        }
        if self.overlaps(other) {
            return Err(Error::invalid(
                "out",
                "the output overlaps an input; copy one of them first",
            ));
        }
        Ok(())
    }
}

// Concatenation.

impl Array {
    /// Joins arrays along an existing axis, in a new array on the first one's stream and with its dtype.
    ///
    /// # Errors
    /// `InvalidArgument` if `arrays` is empty, or if another axis of an array differs from the first array's;
    /// `InvalidType` for an array of another dtype; `IndexOutOfRange` for an axis that does not exist;
    /// `OutOfMemory`.
    pub fn concatenate(arrays: &[&Array], axis: isize) -> Result<Array> {
        let Some((first, rest)) = arrays.split_first() else {
            let detail = "arrays is empty; at least one array is needed";
            return Err(Error::invalid("concatenate", detail));
        };
        first.during(|| {
            let axis = first.layout.normalize_axis(axis)?;
            let mut length = first.shape()[axis];
            for (number, array) in rest.iter().enumerate() {
                if array.dtype != first.dtype {
                    return Err(Error::invalid_type(
                        "concatenate",
                        format!("arrays[{}] is of {}, arrays[0] of {}", number + 1, array.dtype, first.dtype),
                    ));
                }
                let differs = |other: usize| array.shape()[other] != first.shape()[other];
                if array.ndim() != first.ndim() || (0..first.ndim()).any(|it| it != axis && differs(it)) {
                    return Err(Error::invalid(
                        "concatenate",
                        format!(
                            "arrays[{}] has shape {}, arrays[0] {}; they may differ in axis {axis} only",
                            number + 1,
                            shape_text(array.shape()),
                            shape_text(first.shape())
                        ),
                    ));
                }
                length = length.saturating_add(array.shape()[axis]);
            }
            let mut shape = first.shape().to_vec();
            shape[axis] = length;
            let layout = Layout::contiguous(&shape, first.dtype.size(), Order::C)?;
            let joined = first.new_array(layout, first.dtype)?;
            let mut items = vec![IndexItem::Slice(SliceBounds::default()); axis + 1];
            let mut start = 0;
            for array in arrays {
                let stop = start + array.shape()[axis];
                items[axis] = (start..stop).into();
                joined.index(&items)?.assign(array)?;
                start = stop;
            }
            Ok(joined)
        })
    }
}
