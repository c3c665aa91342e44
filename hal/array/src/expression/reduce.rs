//! Reductions of expressions: each element is computed when it is combined.

use super::Expression;
use super::evaluate::{Build, is_refused};
use crate::Array;
use crate::layout::{Layout, Order};
use crate::reduce::{
    Combined, check_not_empty, check_numeric, combined_elements, queue_reduction, reduced_axes,
    shape_without,
};
use crate::statistics::mean_types;
use hal::ErrorKind;
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::nonblocking;
use hal::operation::{Epilogue, Term};
use smallvec::SmallVec;

impl Expression {
    /// Combines the elements as [`Array::reduce`] does, without memory for the elements. The result is the same to the
    /// last bit.
    ///
    /// # Errors
    /// As for [`Array::reduce`] and [`Expression::evaluate`].
    ///
    /// # Examples
    /// ```
    /// use gpuarray::{DeviceArray, Expression, function::{BinaryFunction, Reduction}, DType};
    ///
    /// # fn main() -> gpuarray::Result<()> {
    /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
    /// let x = DeviceArray::from_slice(&device, &[1i64, 2, 3])?.into_untyped();
    /// let squares = Expression::binary(BinaryFunction::Multiply, (&x).into(), (&x).into())?;
    /// let sum = squares.reduce(Reduction::Sum, DType::Int64, None, false)?;
    /// assert_eq!(DeviceArray::<i64>::from_untyped(sum)?.to_vec()?, [14]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reduce(
        &self,
        reduction: Reduction,
        compute: DType,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        let how = (reduction, compute, Epilogue::Identity);
        let reduced = self.combine(how, axes, keep_axes, reduction.result(compute))?;
        reduced.map_or_else(|| self.evaluate()?.reduce(reduction, compute, axes, keep_axes), Ok)
    }

    /// Returns the mean of the elements as [`Array::mean`] does, without memory for the elements.
    ///
    /// # Errors
    /// As for [`Array::mean`] and [`Expression::evaluate`].
    pub fn mean(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        let (compute, result) = mean_types(self.dtype(), dtype);
        let count = combined_elements(self.layout(), axes)? as f64;
        let how = (Reduction::Sum, compute, Epilogue::Quotient(count));
        let mean = match compute.is_inexact() {
            true => self.combine(how, axes, keep_axes, result)?,
            false => None,
        };
        mean.map_or_else(|| self.evaluate()?.mean(dtype, axes, keep_axes), Ok)
    }

    /// Combines the elements in one operation. Returns `None` if the elements must be combined from a stored array: if
    /// they are stored already, are worth storing, or cannot be a part of the operation.
    fn combine(
        &self,
        how: (Reduction, DType, Epilogue),
        axes: Option<&[isize]>,
        keep_axes: bool,
        result: DType,
    ) -> Result<Option<Array>> {
        let (node, shape) = (&self.0, self.layout().shape());
        if node.is_done() || self.layout().size() == 0 {
            return Ok(None);
        }
        if !node.joins(shape) {
            match self.evaluate() {
                // Without memory for the elements, they are computed once more as a part of the reduction.
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
                stored => return stored.map(|_| None),
            }
        }
        let (reduction, compute, _) = how;
        check_numeric(self.dtype(), compute)?;
        let reduced = reduced_axes(self.layout(), axes)?;
        check_not_empty(shape, reduction, &reduced)?;
        let mut build = Build::new(shape);
        // Another thread may have computed the elements meanwhile.
        let Term::Step(last) = build.visit(node)? else { return Ok(None) };
        let values = build.values(last, self.layout())?;
        let shape = shape_without(shape, &reduced, keep_axes);
        let layout = Layout::contiguous(&shape, result.size(), Order::C)?;
        let output = Array::with_new_memory(&node.device, &node.stream, layout, result)?;
        let arrays: SmallVec<[&Array; 4]> = build.arrays().collect();
        match queue_reduction(
            how,
            &reduced,
            Combined::Values(self.layout(), values, &arrays),
            &output,
        ) {
            // Without a compiler, with too many axes for a kernel, or with strides that the backend does not combine.
            Err(error) if is_refused(error.kind()) => {
                nonblocking::before_waiting()?;
                Ok(None)
            }
            queued => {
                queued?;
                build.note_use();
                Ok(Some(output).filter(|_| build.is_current()))
            }
        }
    }
}
