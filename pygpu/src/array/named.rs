//! Functions of elements, under the names that the tables of functions define for Python.

use super::arguments::{
    elements, expect_array, expect_value, is_sequence, operand, optional_array,
};
use super::functions::unary_into;
use super::transfer::on_stream;
use super::{Any, GPUArray, Object, OptionalAny, fused, run_on, wrap_like};
use crate::fused_block;
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::{Argument, Array};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

/// Applies a function to corresponding elements, with the names of its arguments for messages. At least
/// one argument is an array.
pub(super) fn binary_into<'py>(
    function: BinaryFunction,
    [first, second]: [&str; 2],
    [a, b]: [&Bound<'py, PyAny>; 2],
    out: OptionalAny<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> Object<'py> {
    if is_sequence(a) || is_sequence(b) {
        return binary_into(function, [first, second], [&operand(a)?, &operand(b)?], out, stream);
    }
    let out = optional_array("out", out)?;
    if out.is_none()
        && fused_block::is_on_without([stream])
        && (a.is_instance_of::<GPUArray>() || b.is_instance_of::<GPUArray>())
        && let Some(pending) = fused::binary(function, [a, b])?
    {
        return Ok(pending);
    }
    let (left, right) = (expect_value(first, a)?, expect_value(second, b)?);
    if let Some(out) = out {
        let target = on_stream(out.get().array()?, stream)?;
        run_on(out, target.size(), || target.set_binary(function, left, right))?;
        return Ok(out.clone().into_any());
    }
    let like = a.cast().or_else(|_| b.cast()).map_err(|_| {
        PyTypeError::new_err(format!(
            "{first} and {second} are numbers; a GPUArray is needed as one of them"
        ))
    })?;
    // Results are allocated on the first array's stream.
    let stream = stream.filter(|stream| !stream.is_none());
    let moved = |argument| match (argument, stream) {
        (Argument::Array(array), Some(_)) => on_stream(array, stream).map(Some),
        _ => Ok(None),
    };
    let (x, y) = (moved(left)?, moved(right)?);
    let left = x.as_ref().map_or(left, Argument::Array);
    let right = y.as_ref().map_or(right, Argument::Array);
    let elements = elements(&left).max(elements(&right));
    let result = run_on(like, elements, || Array::binary(function, left, right))?;
    wrap_like(like, result, None)
}

/// Applies a function to each element; whether an argument is a stream or the output is decided by its
/// type.
fn elementwise<'a, 'py>(
    function: UnaryFunction,
    array: Any<'_, 'py>,
    stream_or_out: OptionalAny<'a, 'py>,
    mut out: OptionalAny<'a, 'py>,
    mut stream: OptionalAny<'a, 'py>,
) -> Object<'py> {
    let array = expect_array("array", array)?;
    if let Some(given) = stream_or_out.filter(|given| !given.is_none()) {
        let place = if given.is_instance_of::<GPUArray>() { &mut out } else { &mut stream };
        *place = Some(given);
    }
    unary_into(function, array, out, stream)
}

/// Returns the Python name of a parameter, which may be a reserved word in Rust.
const fn parameter(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Defines the function of one row, if Python has a name for it.
macro_rules! function {
    (unary [$($doc:literal)+] $variant:ident cumath $python:ident) => {
        $(#[doc = $doc])+
        ///
        /// Parameters
        /// ----------
        /// array : GPUArray. The elements. Integers are computed as floating-point numbers if the
        ///     result has fractions.
        /// stream_or_out : Stream or GPUArray, optional. Either `stream` or `out`.
        /// out : GPUArray, optional. Receives the result.
        /// stream : Stream, optional. The stream on which the work is queued.
        ///
        /// Returns
        /// -------
        /// GPUArray
        ///     The values, of the shape of `array`, in a new array or in `out`.
        ///
        /// Raises
        /// ------
        /// TypeError
        ///     `array` is not a GPUArray, or the function is not defined for its dtype.
        /// ValueError
        ///     The shape does not broadcast to the shape of `out`.
        ///
        /// Examples
        /// --------
        /// >>> from pygpu import cumath, gpuarray
        #[doc = concat!(">>> cumath.", stringify!($python), "(gpuarray.ones(2)).shape")]
        /// (2,)
        #[pyfunction]
        #[pyo3(signature = (array, stream_or_out = None, *, out = None, stream = None))]
        pub(super) fn $python<'py>(
            array: Any<'_, 'py>,
            stream_or_out: OptionalAny<'_, 'py>,
            out: OptionalAny<'_, 'py>,
            stream: OptionalAny<'_, 'py>,
        ) -> Object<'py> {
            elementwise(UnaryFunction::$variant, array, stream_or_out, out, stream)
        }
    };
    (unary [$($doc:literal)+] $variant:ident gpuarray $python:ident) => {
        $(#[doc = $doc])+
        #[pyfunction]
        #[pyo3(signature = (x, out = None, stream = None))]
        pub(super) fn $python<'py>(
            x: Any<'_, 'py>,
            out: OptionalAny<'_, 'py>,
            stream: OptionalAny<'_, 'py>,
        ) -> Object<'py> {
            unary_into(UnaryFunction::$variant, expect_array("x", x)?, out, stream)
        }
    };
    (binary [$($doc:literal)+] $variant:ident cumath $python:ident $x:ident r#mod) => {
        function!(named [$($doc)+] $variant $python $x r#mod [stringify!($x), ", mod"]);
    };
    (binary [$($doc:literal)+] $variant:ident cumath $python:ident $x:ident $y:ident) => {
        function!(named [$($doc)+] $variant $python $x $y [stringify!($x), ", ", stringify!($y)]);
    };
    (named [$($doc:literal)+] $variant:ident $python:ident $x:ident $y:ident [$($name:tt)+]) => {
        $(#[doc = $doc])+
        ///
        /// Parameters
        /// ----------
        #[doc = concat!($($name)+, " : GPUArray or number")]
        ///     `x` and `y` above. At least one is an array; the shapes are broadcast.
        /// stream : Stream, optional
        ///     The stream on which the work is queued.
        /// out : GPUArray, optional
        ///     Receives the result.
        ///
        /// Returns
        /// -------
        /// GPUArray
        ///     The values, of the shape that the arguments broadcast to, in a new array or in `out`.
        ///
        /// Raises
        /// ------
        /// TypeError
        ///     No argument is an array, or the function is not defined for the dtypes.
        /// ValueError
        ///     The shapes do not broadcast, to each other or to the shape of `out`.
        ///
        /// Examples
        /// --------
        /// >>> from pygpu import cumath, gpuarray
        #[doc = concat!(">>> cumath.", stringify!($python), "(gpuarray.arange(2), 1).shape")]
        /// (2,)
        #[pyfunction]
        #[pyo3(signature = ($x, $y, stream = None, *, out = None))]
        pub(super) fn $python<'py>(
            $x: Any<'_, 'py>,
            $y: Any<'_, 'py>,
            stream: OptionalAny<'_, 'py>,
            out: OptionalAny<'_, 'py>,
        ) -> Object<'py> {
            const NAMES: [&str; 2] = [parameter(stringify!($x)), parameter(stringify!($y))];
            binary_into(BinaryFunction::$variant, NAMES, [$x, $y], out, stream)
        }
    };
    (binary [$($doc:literal)+] $variant:ident gpuarray $python:ident $x:ident $y:ident) => {
        $(#[doc = $doc])+
        ///
        /// At least one argument is an array; the other may be a number. `stream` is the stream on
        /// which the work is queued, and `out` receives the result if given.
        #[pyfunction]
        #[pyo3(signature = ($x, $y, out = None, stream = None))]
        pub(super) fn $python<'py>(
            $x: Any<'_, 'py>,
            $y: Any<'_, 'py>,
            out: OptionalAny<'_, 'py>,
            stream: OptionalAny<'_, 'py>,
        ) -> Object<'py> {
            const NAMES: [&str; 2] = [parameter(stringify!($x)), parameter(stringify!($y))];
            binary_into(BinaryFunction::$variant, NAMES, [$x, $y], out, stream)
        }
    };
    ($arity:ident [$($doc:literal)+] $variant:ident) => {};
}

/// Applies two functions to each element, and returns both results as a tuple.
fn pair<'py>(
    functions: [UnaryFunction; 2],
    array: Any<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let array = expect_array("arg", array)?;
    let [first, second] = functions.map(|function| unary_into(function, array, None, stream));
    Ok((first?, second?))
}

/// Returns significands in [0.5, 1) and exponents with `arg == significand * 2**exponent`.
///
/// Parameters
/// ----------
/// arg : GPUArray. The elements.
/// stream : Stream, optional. The stream on which the work is queued.
///
/// Returns
/// -------
/// tuple of GPUArray
///     The two results, with the shape of `arg`, in the dtype of the elements; float64 for integers.
///
/// Raises
/// ------
/// TypeError
///     `arg` is not a GPUArray, or its elements are complex or records.
///
/// Examples
/// --------
/// >>> from pygpu import cumath, gpuarray
/// >>> [part.get() for part in cumath.frexp(gpuarray.ones(1))]
/// [array([0.5]), array([1.])]
#[pyfunction]
#[pyo3(signature = (arg, stream = None))]
fn frexp<'py>(
    arg: Any<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    pair([UnaryFunction::Mantissa, UnaryFunction::Exponent], arg, stream)
}

/// Returns fractions and whole parts, both with the sign of `arg`. The fraction of an infinity is zero.
///
/// Arguments are as in :func:`frexp`.
///
/// Examples
/// --------
/// >>> from pygpu import cumath, gpuarray
/// >>> [part.get() for part in cumath.modf(gpuarray.ones(1) * 2.5)]
/// [array([0.5]), array([2.])]
#[pyfunction]
#[pyo3(signature = (arg, stream = None))]
fn modf<'py>(
    arg: Any<'_, 'py>,
    stream: OptionalAny<'_, 'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    pair([UnaryFunction::Fraction, UnaryFunction::Trunc], arg, stream)
}

/// A Python module under construction.
struct Functions<'py> {
    module: Bound<'py, PyModule>,
    by_name: Bound<'py, PyDict>,
}

impl<'py> Functions<'py> {
    fn new(py: Python<'py>, module: &str) -> PyResult<Self> {
        Ok(Functions { module: PyModule::new(py, module)?, by_name: PyDict::new(py) })
    }

    fn add(&self, function: Bound<'py, PyCFunction>) -> PyResult<()> {
        self.by_name.set_item(function.getattr("__name__")?, function)
    }
}

/// Adds the function of one row to the module for it.
macro_rules! add {
    ($cumath:ident, $gpuarray:ident, $arity:ident: cumath $python:ident) => {
        $cumath.add(wrap_pyfunction!($arity::$python, &$cumath.module)?)?
    };
    ($cumath:ident, $gpuarray:ident, $arity:ident: gpuarray $python:ident) => {
        $gpuarray.add(wrap_pyfunction!($arity::$python, &$gpuarray.module)?)?
    };
    ($cumath:ident, $gpuarray:ident, $arity:ident:) => {};
}

macro_rules! unary_rows {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal ($($rule:ident),*) $(= $numpy:literal)?
            $(-> $module:ident($python:ident))?;
    )*) => {
        mod unary {
            use super::*;
            $(function!(unary [$($doc)+] $variant $($module $python)?);)*
        }

        fn add_unary(cumath: &Functions<'_>, gpuarray: &Functions<'_>) -> PyResult<()> {
            $(add!(cumath, gpuarray, unary: $($module $python)?);)*
            Ok(())
        }
    };
}
hal::unary_functions!(unary_rows);

macro_rules! binary_rows {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal ($($rule:ident),*) $(= $numpy:literal)?
            $(-> $module:ident($python:ident($x:ident, $y:ident)))?;
    )*) => {
        mod binary {
            use super::*;
            $(function!(binary [$($doc)+] $variant $($module $python $x $y)?);)*
        }

        fn add_binary(cumath: &Functions<'_>, gpuarray: &Functions<'_>) -> PyResult<()> {
            $(add!(cumath, gpuarray, binary: $($module $python)?);)*
            Ok(())
        }
    };
}
hal::binary_functions!(binary_rows);

/// Returns the functions of the modules `cumath` and `gpuarray`, by module and function name.
pub(crate) fn named_functions(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let cumath = Functions::new(py, "pygpu.cumath")?;
    let gpuarray = Functions::new(py, "pygpu.gpuarray")?;
    add_unary(&cumath, &gpuarray)?;
    add_binary(&cumath, &gpuarray)?;
    cumath.add(wrap_pyfunction!(frexp, &cumath.module)?)?;
    cumath.add(wrap_pyfunction!(modf, &cumath.module)?)?;
    let modules = PyDict::new(py);
    modules.set_item("cumath", cumath.by_name)?;
    modules.set_item("gpuarray", gpuarray.by_name)?;
    Ok(modules)
}
