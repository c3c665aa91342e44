//! Mean, variance and counts along axes.

use super::Array;
use super::reduce::{
    Combined, check_numeric, combined_elements, queue_reduction, reduced_axes, shape_without,
};
use crate::Number;
use crate::layout::Layout;
use hal::Scalar;
use hal::dtype::DType;
use hal::error::{Error, Result};
use hal::function::{BinaryFunction, Reduction, UnaryFunction};
use hal::operation::Epilogue;

/// Returns the types in which a mean of elements of `input` is computed and returned. By numpy's rule, integers and
/// truth values use `Float64`; 16-bit floats are computed in `Float32`.
pub(super) fn mean_types(input: DType, dtype: Option<DType>) -> (DType, DType) {
    match (dtype, input.is_inexact()) {
        (Some(dtype), _) => (dtype.working(), dtype),
        (None, true) => (input.working(), input),
        (None, false) => (DType::Float64, DType::Float64),
    }
}

/// Returns the number of combined elements, without the degrees of freedom.
pub(super) fn divisor(layout: &Layout, axes: Option<&[isize]>, degrees: f64) -> Result<f64> {
    Ok((combined_elements(layout, axes)? as f64 - degrees).max(0.0))
}

impl Array {
    /// Returns the mean of the elements along `axes` (all axes if `None`), in a new array without those axes, or with
    /// extent 1 there if `keep_axes`. The result has the type `dtype`. If `dtype` is `None`, the mean has the array's
    /// type if that is inexact, else `Float64`. The mean of no elements is NaN.
    ///
    /// # Errors
    /// As for [`Array::reduce`] with a sum.
    pub fn mean(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
    ) -> Result<Array> {
        let (compute, result) = mean_types(self.dtype, dtype);
        let count = combined_elements(self.layout(), axes)? as f64;
        if !compute.is_inexact() {
            let sum = self.reduce(Reduction::Sum, compute, axes, keep_axes)?;
            let by = Scalar::new(count).into();
            return Array::binary(BinaryFunction::Divide, (&sum).into(), by)?.astype(result);
        }
        let (quotient, along) = (Epilogue::Quotient(count), (axes, keep_axes));
        self.during(|| sum_with(self, quotient, compute, along, Combined::Elements(self), result))
    }

    /// Returns the variance of the elements along `axes` (all axes if `None`): the sum of the squared distances from
    /// their mean, divided by their number minus `degrees`. Axes and types are handled as in [`Array::mean`]; the
    /// variance of complex numbers is real unless `dtype` is complex. With at most `degrees` elements, the result is NaN or infinite.
    ///
    /// # Errors
    /// As for [`Array::mean`]; `InvalidType` if `dtype` is not an inexact type.
    pub fn variance(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        self.deviation(Epilogue::Quotient, dtype, (axes, keep_axes), degrees)
    }

    /// Returns the square root of [`Array::variance`].
    ///
    /// # Errors
    /// As for [`Array::variance`].
    pub fn standard_deviation(
        &self,
        dtype: Option<DType>,
        axes: Option<&[isize]>,
        keep_axes: bool,
        degrees: f64,
    ) -> Result<Array> {
        self.deviation(Epilogue::RootOfQuotient, dtype, (axes, keep_axes), degrees)
    }

    /// Returns the number of nonzero elements along `axes` (all axes if `None`), in a new array of `Int64`. Elements
    /// other than truth values are first compared with zero. That needs one byte of memory per element.
    ///
    /// # Errors
    /// As for [`Array::reduce`] with a sum.
    pub fn count_nonzero(&self, axes: Option<&[isize]>, keep_axes: bool) -> Result<Array> {
        self.during(|| {
            if self.dtype == DType::Bool {
                return self.reduce(Reduction::Sum, DType::Int64, axes, keep_axes);
            }
            let zero = Number::Bool(false).into();
            let differ = Array::binary(BinaryFunction::NotEqual, self.into(), zero)?;
            differ.reduce(Reduction::Sum, DType::Int64, axes, keep_axes)
        })
    }

    /// Returns the sum of squared deviations from the mean, after an epilogue: a function that is applied to the sum.
    /// `epilogue` receives the number of elements minus `degrees`.
    fn deviation(
        &self,
        epilogue: fn(f64) -> Epilogue,
        dtype: Option<DType>,
        (axes, keep_axes): (Option<&[isize]>, bool),
        degrees: f64,
    ) -> Result<Array> {
        if let Some(complex) = dtype.filter(|dtype| dtype.is_complex()) {
            let real = Some(complex.real());
            return self.deviation(epilogue, real, (axes, keep_axes), degrees)?.astype(complex);
        }
        self.during(|| {
            if let Some(dtype) = dtype.filter(|dtype| !dtype.is_inexact()) {
                return Err(Error::invalid_type(
                    "variance",
                    format!("dtype is {dtype}; a floating-point or complex dtype is needed"),
                ));
            }
            let (compute, result) = mean_types(self.dtype, dtype);
            let (compute, result) = (compute.real(), result.real());
            let divisor = divisor(self.layout(), axes, degrees)?;
            let along = (axes, keep_axes);
            if !self.dtype.is_complex() {
                let squares = Combined::SquaredDeviations(self);
                return sum_with(self, epilogue(divisor), compute, along, squares, result);
            }
            let quotient = Epilogue::Quotient(divisor);
            let [sum, other] = [self.real_view(), self.imaginary_view()?].map(|part| {
                let squares = Combined::SquaredDeviations(&part);
                sum_with(&part, quotient, compute, along, squares, compute)
            });
            let sum = sum?;
            sum.set_binary(BinaryFunction::Add, (&sum).into(), (&other?).into())?;
            if epilogue(divisor) != quotient {
                sum.set_unary(UnaryFunction::Sqrt, &sum)?;
            }
            if compute == result { Ok(sum) } else { sum.astype(result) }
        })
    }
}

/// Computes sums in the type `compute`, applies an epilogue to each, and returns them in a new array of type `result`.
fn sum_with(
    array: &Array,
    epilogue: Epilogue,
    compute: DType,
    (axes, keep_axes): (Option<&[isize]>, bool),
    combined: Combined<'_>,
    result: DType,
) -> Result<Array> {
    check_numeric(array.dtype, compute)?;
    let reduced = reduced_axes(array.layout(), axes)?;
    let output = array.new_result(&shape_without(array.shape(), &reduced, keep_axes), result)?;
    queue_reduction((Reduction::Sum, compute, epilogue), &reduced, combined, &output)?;
    Ok(output)
}
