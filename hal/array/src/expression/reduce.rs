//! Reductions of expressions: each element is computed when it is combined.

use super::Expression;
use super::evaluate::{Build, is_refused};
use crate::Array;
use crate::layout::{Layout, Order};
use crate::reduce::{
    Combined, check_extreme, check_not_empty, check_numeric, combined_elements, queue_reduction,
    reduced_axes, shape_without,
};
use crate::statistics::{divisor, mean_types};
use hal::ErrorKind;
use hal::dtype::DType;
use hal::error::Result;
use hal::function::Reduction;
use hal::nonblocking;
use hal::operation::{ElementMap, Epilogue, Term};
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
        let (map, result) = (ElementMap::Identity, reduction.result(compute));
        let reduced = self.combine(how, map, axes, keep_axes, result)?;
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
            true => self.combine(how, ElementMap::Identity, axes, keep_axes, result)?,
            false => None,
        };
        mean.map_or_else(|| self.evaluate()?.mean(dtype, axes, keep_axes), Ok)
    }

    /// Returns the variance of the elements as [`Array::variance`] does, without memory for the elements. They may be
    /// computed twice.
    ///
    /// # Errors
    /// As for [`Array::variance`] and [`Expression::evaluate`].
    pub fn variance(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        let variance = self.deviation(Epilogue::Quotient, dtype, (axes, keep_axes), degrees)?;
        variance.map_or_else(|| self.evaluate()?.variance(dtype, axes, keep_axes, degrees), Ok)
    }

    /// Returns the square root of [`Expression::variance`].
    ///
    /// # Errors
    /// As for [`Expression::variance`].
    pub fn standard_deviation(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        let root = self.deviation(Epilogue::RootOfQuotient, dtype, (axes, keep_axes), degrees)?;
        let stored = || self.evaluate()?.standard_deviation(dtype, axes, keep_axes, degrees);
        root.map_or_else(stored, Ok)
    }

    /// Returns `None` for complex elements, whose parts are combined one after the other.
    fn deviation(
        &self,
        epilogue: fn(f64) -> Epilogue,
        dtype: Option<DType>,
        (axes, keep_axes): (Option<&[isize]>, bool),
        degrees: f64,
    ) -> Result<Option<Array>> {
        let is_real = |dtype: DType| dtype.is_inexact() && !dtype.is_complex();
        if self.dtype().is_complex() || !dtype.is_none_or(is_real) {
            return Ok(None);
        }
        let (compute, result) = mean_types(self.dtype(), dtype);
        let divisor = divisor(self.layout(), axes, degrees)?;
        let how = (Reduction::Sum, compute, epilogue(divisor));
        self.combine(how, ElementMap::SquaredDeviation, axes, keep_axes, result)
    }

    /// Returns the indices of the first minimum or maximum along an axis as [`Array::position`] does, without memory for
    /// the elements. They may be computed twice. If `axis` is `None`, the result is an index in C order of all elements.
    ///
    /// # Errors
    /// As for [`Array::position`] and [`Expression::evaluate`].
    pub fn position(
        &self,
        reduction: Reduction,
        axis: Option<isize>,
        keep_axes: bool,
    ) -> Result<Array> {
        check_extreme(reduction)?;
        let how = (reduction, self.dtype(), Epilogue::Identity);
        let flat = match axis {
            None => self.layout().reshape(&[self.layout().size()], Order::C)?,
            Some(_) => Some(self.layout().clone()),
        };
        let along = axis.unwrap_or(0);
        let (axes, keeps) = (&[along], keep_axes && axis.is_some());
        let found = match flat {
            Some(flat) => {
                self.combine_in(&flat, how, ElementMap::Position, Some(axes), keeps, DType::Int64)?
            }
            None => None,
        };
        let found = match (found, axis) {
            (Some(found), _) => found,
            (None, Some(_)) => self.evaluate()?.position(reduction, along, keeps)?,
            (None, None) => {
                let flat = self.evaluate()?.reshape(&[-1], Order::C)?;
                flat.position(reduction, along, keeps)?
            }
        };
        match keep_axes && axis.is_none() {
            true => found.reshape(&vec![1; self.layout().ndim()], Order::C),
            false => Ok(found),
        }
    }

    /// Combines the elements in one operation. Returns `None` if the elements must be combined from a stored array: if
    /// they are stored already, are worth storing, or cannot be a part of the operation.
    fn combine(
        &self,
        how: (Reduction, DType, Epilogue),
        map: ElementMap,
        axes: Option<&[isize]>,
        keep_axes: bool,
        result: DType,
    ) -> Result<Option<Array>> {
        self.combine_in(self.layout(), how, map, axes, keep_axes, result)
    }

    /// Like [`Expression::combine`], with a layout of the same elements in the same memory.
    fn combine_in(
        &self,
        layout: &Layout,
        how: (Reduction, DType, Epilogue),
        map: ElementMap,
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
        let reduced = reduced_axes(layout, axes)?;
        check_not_empty(layout.shape(), reduction, &reduced)?;
        let mut build = Build::new(shape);
        // Another thread may have computed the elements meanwhile.
        let Term::Step(last) = build.visit(node)? else { return Ok(None) };
        let values = build.values(last, map, self.layout())?;
        let shape = shape_without(layout.shape(), &reduced, keep_axes);
        let stored = Layout::contiguous(&shape, result.size(), Order::C)?;
        let output = Array::with_new_memory(&node.device, &node.stream, stored, result)?;
        let arrays: SmallVec<[&Array; 4]> = build.arrays().collect();
        match queue_reduction(how, &reduced, Combined::Values(layout, values, &arrays), &output) {
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
