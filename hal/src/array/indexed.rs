//! Gather and scatter by arrays of indices.

use super::Array;
use super::promote::check_same_kind;
use crate::error::{Error, Result};
use crate::layout::shape_text;
use crate::memory::{Access, AccessGuard};
use crate::operation::{Gather, Input, Operation, Scatter, Shape, Strides};
use smallvec::SmallVec;

impl Array {
    /// Returns the elements that `indices` names along `axis`, in a new array: this array's shape
    /// with that axis replaced by the shape of `indices`.
    ///
    /// A negative index counts from the end; one outside the axis reads zero, because a
    /// device cannot refuse it.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidType` unless the indices
    /// are integers; `OutOfMemory`.
    pub fn take(&self, indices: &Array, axis: isize) -> Result<Array> {
        self.note((|| {
            let axis = self.layout.normalize_axis(axis)?;
            let output = self.new_result(&self.taken_shape(indices, axis), self.dtype)?;
            self.take_checked(indices, axis, &output)?;
            Ok(output)
        })())
    }

    /// Stores the elements that [`Array::take`] picks in `output`, converted to its dtype.
    ///
    /// # Errors
    /// Those of [`Array::take`]; `InvalidArgument` for an output of another shape or one that
    /// overlaps an input; `InvalidType` if the elements do not fit the output's type within
    /// its kind.
    pub fn take_into(&self, indices: &Array, axis: isize, output: &Array) -> Result<()> {
        self.note((|| {
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
        })())
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

    /// Stores the elements of `values`, broadcast, at the places that `indices` names along
    /// `axis`. An index outside the axis is passed over; where a place is named more than
    /// once, one of the values wins.
    ///
    /// # Errors
    /// Those of [`Array::take`]; `InvalidArgument` if the values' shape does not fit or they overlap
    /// this array; `InvalidType` if they do not fit this array's type within its kind.
    pub fn put(&self, indices: &Array, values: &Array, axis: isize) -> Result<()> {
        self.note((|| {
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
            // SAFETY: layouts lie inside their memories and overlap not, shapes agree, indices
            // are checked by the operation, and the guard orders the work.
            unsafe { self.stream().execute(&operation) }
        })())
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
