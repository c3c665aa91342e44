//! numpy's universal functions on the device, by their names in the tables of functions.

use super::arguments::{expect_array, expect_value};
use super::functions::unary_into;
use super::named::binary_into;
use super::reductions::PyReduction;
use gpuarray::function::{BinaryFunction, Reduction, UnaryFunction};
use gpuarray::{Argument, DType, Kind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The device function for numpy's function of the same name.
#[pyclass(frozen, module = "pygpu._core", name = "UniversalFunction")]
pub(crate) struct UniversalFunction {
    function: Arity,
    /// The reduction of the function's `reduce` and `accumulate` in numpy, if any.
    #[pyo3(get)]
    reduction: Option<PyReduction>,
}

#[derive(Clone, Copy)]
enum Arity {
    Unary(UnaryFunction),
    Binary(BinaryFunction),
}

#[pymethods]
impl UniversalFunction {
    /// Applies the function to the elements, in a new array or in `out`.
    ///
    /// Parameters
    /// ----------
    /// *operands : GPUArray or number
    ///     The function's arguments; at least one is an array, unless `out` is given.
    /// out : GPUArray, optional. Receives the result.
    #[pyo3(signature = (*operands, out = None))]
    fn __call__<'py>(
        &self,
        operands: &Bound<'py, PyTuple>,
        out: Given<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (self.function, operands.len()) {
            (Arity::Unary(function), 1) => {
                let operand = operands.get_item(0)?;
                unary_into(function, expect_array("operand", &operand)?, out, None)
            }
            (Arity::Binary(function), 2) => {
                let (x1, x2) = (operands.get_item(0)?, operands.get_item(1)?);
                if function == BinaryFunction::Ldexp {
                    check_exponent(&x2)?;
                }
                binary_into(function, ["x1", "x2"], [&x1, &x2], out, None)
            }
            (arity, given) => {
                let takes = if matches!(arity, Arity::Unary(_)) { 1 } else { 2 };
                Err(PyTypeError::new_err(format!(
                    "the number of operands is {given}; {takes} is needed"
                )))
            }
        }
    }
}

/// Refuses exponents that numpy's `ldexp` refuses. As in PyCUDA, exponents of `cumath` may have
/// fractions.
fn check_exponent(exponent: &Bound<'_, PyAny>) -> PyResult<()> {
    let value = expect_value("x2", exponent)?;
    let dtype = match value {
        Argument::Array(array) => array.dtype(),
        Argument::Scalar(scalar) => scalar.dtype(),
        Argument::Number(number) => number.default_dtype(),
    };
    match dtype.kind() {
        Kind::Bool | Kind::Signed => Ok(()),
        Kind::Unsigned if dtype != DType::UInt64 || matches!(value, Argument::Number(_)) => Ok(()),
        _ => Err(PyTypeError::new_err(format!(
            "x2 has dtype {dtype}; np.ldexp takes exponents of a dtype that fits int64, and \
             cumath.ldexp all real ones"
        ))),
    }
}

/// Returns the reduction that combines elements by `function`.
fn reduction_by(function: BinaryFunction) -> Option<PyReduction> {
    match function {
        // Their value is a truth value for all types of elements.
        BinaryFunction::LogicalOr => Some(PyReduction::Any),
        BinaryFunction::LogicalAnd => Some(PyReduction::All),
        _ => {
            let combines = |reduction: &Reduction| {
                let is_logical = matches!(reduction, Reduction::Any | Reduction::All);
                !is_logical && reduction.combine() == function
            };
            Reduction::ALL.into_iter().find(combines).map(PyReduction::of)
        }
    }
}

/// Returns the functions by numpy's names.
pub(crate) fn universal_functions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let functions = PyDict::new(py);
    for function in UnaryFunction::ALL {
        if let Some(name) = function.properties().numpy {
            let function = Arity::Unary(function);
            functions
                .set_item(name, Py::new(py, UniversalFunction { function, reduction: None })?)?;
        }
    }
    for function in BinaryFunction::ALL {
        if let Some(name) = function.properties().numpy {
            let reduction = reduction_by(function);
            let function = Arity::Binary(function);
            functions.set_item(name, Py::new(py, UniversalFunction { function, reduction })?)?;
        }
    }
    Ok(functions)
}
