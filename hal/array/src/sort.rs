//! Sorting along an axis.

use super::Array;
use super::layout::{Layout, Order};
use super::promote::Number;
use hal::dtype::DType;
use hal::error::Result;
use hal::function::BinaryFunction;
use hal::operation::{Operation, Shape, Sort, Strides};
use smallvec::SmallVec;

impl Array {
    /// Returns the elements in ascending order along an axis, in a new array with the same order of axes in memory.
    /// The sort is stable; NaN is last.
    ///
    /// Complex numbers are ordered by their real parts, then by their imaginary parts. Among complex numbers with a
    /// NaN, the ones whose real part is a number come first.
    ///
    /// # Errors
    /// `IndexOutOfRange` for an axis that does not exist; `InvalidType` for records; `OutOfMemory`.
    pub fn sort(&self, axis: isize) -> Result<Array> {
        self.sorted(axis, false)
    }

    /// Returns the indices that sort along an axis, by the order of [`Array::sort`], as an int64 array in C order.
    ///
    /// # Errors
    /// As for [`Array::sort`].
    pub fn argsort(&self, axis: isize) -> Result<Array> {
        self.sorted(axis, true)
    }

    fn sorted(&self, axis: isize, indices: bool) -> Result<Array> {
        self.during(|| {
            let axis = self.layout.normalize_axis(axis)?;
            let last = self.ndim() - 1;
            let mut order: SmallVec<[usize; 4]> =
                (0..self.ndim()).filter(|&it| it != axis).collect();
            order.push(axis);
            // The inverse of the permutation that moves the axis to the end.
            let mut back: SmallVec<[usize; 4]> = (0..last).collect();
            back.insert(axis, last);
            let mut input = self.transpose(Some(&order))?.in_c_order()?;
            if self.dtype == DType::Bool && !indices {
                // Truth values are sorted by their bytes, which may differ from 0 and 1.
                let zero = Number::Bool(false).into();
                input = Array::binary(BinaryFunction::NotEqual, (&input).into(), zero)?;
            }
            let length = self.shape()[axis];
            let output =
                input.new_result(input.shape(), if indices { DType::Int64 } else { self.dtype })?;
            let rows = |array: &Array| {
                let size = array.dtype.size() as isize;
                array.operand(Strides::from_slice(&[size * length as isize, size]), 0)
            };
            let outer: Shape = input.shape()[..last].into();
            let operation = Operation::new(Sort {
                rows: outer.iter().product(),
                length,
                indices,
                input: rows(&input),
                output: rows(&output),
            })?;
            if output.size() > 0 {
                output.queue(&operation, &[&input])?;
            }
            let sorted = output.transpose(Some(&back))?;
            // As in numpy, elements are in the memory order of the array, indices in C order.
            let layout = match indices {
                true => Layout::contiguous(self.shape(), sorted.dtype.size(), Order::C)?,
                false => self.layout.dense_like(sorted.dtype.size())?,
            };
            if sorted.layout.strides() == layout.strides() {
                return Ok(sorted);
            }
            let result = sorted.new_array(layout, sorted.dtype)?;
            result.assign(&sorted)?;
            Ok(result)
        })
    }
}
