//! Mean, variance and counts along axes.

use super::Array;
use super::reduce::Combined;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::{BinaryFunction, Reduction, UnaryFunction};
use crate::{Number, Scalar};

/// The type that a mean of elements of `input` is computed in, and that of the result, by numpy's
/// rule: integers and truth values in `Float64`, numbers of 16 bits in `Float32`.
fn mean_types(input: DType, dtype: Option<DType>) -> (DType, DType) {
    match (dtype, input.is_inexact()) {
        (Some(dtype), _) => (dtype.working(), dtype),
        (None, true) => (input.working(), input),
        (None, false) => (DType::Float64, DType::Float64),
    }
}

impl Array {
    /// Returns the mean of the elements along `axes` (all axes without it), in a new array without
    /// those axes, or with extent 1 there if `keep_axes`. The result has the type `dtype`; without
    /// one, that of the array if it is inexact, else `Float64`. The mean of no elements is NaN.
    ///
    /// # Errors
    /// Those of [`Array::reduce`] for a sum.
    pub fn mean(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        let (compute, result) = mean_types(self.dtype, dtype);
        let sum = self.reduce(Reduction::Sum, compute, axes, keep_axes)?;
        sum.divided(self.combined(axes)? as f64, result)
    }

    /// Returns the variance of the elements along `axes` (all axes without it): the sum of the
    /// squared distances from their mean, divided by their number less `degrees`. Axes and types
    /// are those of [`Array::mean`]; of complex numbers the variance is real. Without more than `degrees` elements the result is NaN or infinite.
    ///
    /// # Errors
    /// Those of [`Array::mean`]; `InvalidType` if `dtype` is no inexact type.
    pub fn variance(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        if let Some(dtype) = dtype.filter(|dtype| !dtype.is_inexact()) {
            return Err(Error::invalid_type(
                "variance",
                format!("dtype is {dtype}; a floating-point or complex dtype is needed"),
            ));
        }
        let (compute, result) = mean_types(self.dtype, dtype);
        let squares = self.squared_deviations(compute.real(), axes, keep_axes)?;
        squares.divided((self.combined(axes)? as f64 - degrees).max(0.0), result.real())
    }

    /// Returns the square root of [`Array::variance`].
    ///
    /// # Errors
    /// Those of [`Array::variance`].
    pub fn standard_deviation(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        let variance = self.variance(dtype, axes, keep_axes, degrees)?;
        variance.set_unary(UnaryFunction::Sqrt, &variance)?;
        Ok(variance)
    }

    /// Returns the number of elements along `axes` (all axes without it) that are not zero, in a new
    /// array of `Int64`. Elements that are no truth values are compared first, which needs a byte
    /// each.
    ///
    /// # Errors
    /// Those of [`Array::reduce`] for a sum.
    pub fn count_nonzero(&self, axes: Option<&[isize]>, keep_axes: bool) -> Result<Array> {
        if self.dtype == DType::Bool {
            return self.reduce(Reduction::Sum, DType::Int64, axes, keep_axes);
        }
        let zero = Number::Bool(false).into();
        let differ = Array::binary(BinaryFunction::NotEqual, self.into(), zero)?;
        differ.reduce(Reduction::Sum, DType::Int64, axes, keep_axes)
    }

    /// The sum along `axes` of the squares of the elements' deviations from their mean.
    fn squared_deviations(
        &self,
        compute: DType,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        if self.dtype.is_complex() {
            let sum = self.real_view().squared_deviations(compute, axes, keep_axes)?;
            let other = self.imaginary_view()?.squared_deviations(compute, axes, keep_axes)?;
            sum.set_binary(BinaryFunction::Add, (&sum).into(), (&other).into())?;
            return Ok(sum);
        }
        let reduced = self.reduced_axes(axes)?;
        let output = self.new_result(&self.shape_without(&reduced, keep_axes), compute)?;
        let how = (Reduction::Sum, compute);
        self.queue_reduction(how, &reduced, Combined::SquaredDeviations, &output)?;
        Ok(output)
    }

    /// The elements of this new array divided by a number, as elements of `dtype`.
    fn divided(self, by: f64, dtype: DType) -> Result<Array> {
        let divide = BinaryFunction::Divide;
        if self.dtype.kind() < Kind::Float {
            return Array::binary(divide, (&self).into(), Scalar::new(by).into())?.astype(dtype);
        }
        self.set_binary(divide, (&self).into(), Number::Float(by).into())?;
        if self.dtype == dtype { Ok(self) } else { self.astype(dtype) }
    }
}
