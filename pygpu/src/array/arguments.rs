//! Arguments of array functions, as Python passes them.

use super::{GPUArray, to_gpu};
use crate::dtypes;
use crate::errors::OrRaise;
use crate::numpy_array;
use gpuarray::{Argument, Complex, DType, IndexItem, Number, Scalar, SliceBounds};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyComplex, PyEllipsis, PyFloat, PyInt, PyList, PyRange, PySlice, PyTuple,
};
use smallvec::SmallVec;

/// Returns a lower bound of the number of elements that an operation on the argument visits.
pub(super) fn elements(argument: &Argument<'_>) -> usize {
    match argument {
        Argument::Array(array) => array.size(),
        _ => 1,
    }
}

/// Returns the value of an operand; `None` for an object that is neither an array nor a number.
///
/// Raises `TypeError` for numpy arrays, which have to be copied to the device first. Exceptions are numpy
/// arrays with one element and at most one axis, which count as the element.
pub(crate) fn parse_value<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<Argument<'a>>> {
    if let Ok(array) = value.cast::<GPUArray>() {
        return Ok(Some(array.get().array()?.into()));
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Ok(Some(Number::Float(number.value()).into()));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Some(Number::Bool(flag.is_true()).into()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Some(whole_number(value)?.into()));
    }
    if let Ok(number) = value.cast_exact::<PyComplex>() {
        let number = Complex::new(number.real(), number.imag());
        return Ok(Some(Number::Complex(number).into()));
    }
    parse_numpy_value(value)
}

/// Returns a Python integer of any size as a number.
fn whole_number(value: &Bound<'_, PyAny>) -> PyResult<Number> {
    if let Ok(number) = value.extract::<i128>() {
        return Ok(Number::Integer(number));
    }
    let nearest = match value.extract::<f64>() {
        Ok(nearest) => nearest,
        Err(_) if value.lt(0)? => f64::NEG_INFINITY,
        Err(_) => f64::INFINITY,
    };
    Ok(Number::Huge(nearest))
}

#[cold]
fn parse_numpy_value<'a>(value: &Bound<'_, PyAny>) -> PyResult<Option<Argument<'a>>> {
    let is_array = value.is_instance_of::<PyUntypedArray>();
    if is_array || numpy_array::is_numpy_scalar(value)? {
        let array = numpy_array::expect_array("operand", value)?;
        if array.len() != 1 || array.ndim() > 1 {
            return Err(PyTypeError::new_err(
                "operand is a numpy array; send it to the device first (gpuarray.to_gpu)",
            ));
        }
        return Ok(Some(scalar_of(&array)?.into()));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Some(Number::Float(number.value()).into()));
    }
    Ok(None)
}

/// Returns a list, a tuple or a range as a device array, converted by numpy; `None` for any other object.
///
/// A sequence of other elements is refused unless it is compared for equality.
#[cold]
pub(super) fn sequence<'py>(
    value: &Bound<'py, PyAny>,
    is_equality: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !is_sequence(value) {
        return Ok(None);
    }
    let py = value.py();
    let array = py.import("numpy")?.call_method1("asarray", (value,))?;
    // Text and Python objects cannot be on a device, and are not equal to any number.
    let dtype = array.getattr("dtype")?;
    if matches!(dtype.getattr("kind")?.extract()?, 'O' | 'S' | 'U') {
        return match is_equality {
            true => Ok(None),
            false => Err(PyTypeError::new_err(format!(
                "operand has elements of dtype {dtype}; numbers are needed"
            ))),
        };
    }
    to_gpu(py, &array, None, None, true).map(Some)
}

/// Returns true for a list, a tuple or a range, which numpy takes for an array.
pub(super) fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PyRange>()
}

/// Returns the value itself, or a list, a tuple or a range as a device array.
pub(super) fn operand<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    Ok(sequence(value, false)?.unwrap_or_else(|| value.clone()))
}

/// Returns the element of a numpy array with one element.
pub(crate) fn scalar_of(array: &numpy_array::HostArray<'_>) -> PyResult<Scalar> {
    let (_, dtype) = numpy_array::dtype_of(array)?;
    // SAFETY: the array's one element has this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(numpy_array::data(array), dtype.size()) };
    Scalar::from_bytes(dtype, bytes).or_raise()
}

/// Like [`parse_value`], but any other object is a `TypeError` that names the argument.
pub(crate) fn expect_value<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<Argument<'a>> {
    parse_value(value)?.ok_or_else(|| {
        let kind = numpy_array::type_name(value);
        PyTypeError::new_err(format!("{name} is of type {kind}; a GPUArray or a number is needed"))
    })
}

/// Returns an argument that must be an array on the device.
pub(crate) fn expect_array<'a, 'py>(
    name: &str,
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, GPUArray>> {
    value.cast::<GPUArray>().map_err(|_| not_an_array(name, value, ""))
}

/// Like [`expect_array`], for an optional argument.
pub(crate) fn optional_array<'a, 'py>(
    name: &str,
    value: Option<&'a Bound<'py, PyAny>>,
) -> PyResult<Option<&'a Bound<'py, GPUArray>>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    value.cast::<GPUArray>().map(Some).map_err(|_| not_an_array(name, value, " or None"))
}

#[cold]
fn not_an_array(name: &str, value: &Bound<'_, PyAny>, or: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{name} is of type {}; a GPUArray{or} is needed{}",
        numpy_array::type_name(value),
        numpy_array::copy_hint(value)
    ))
}

/// Parses an index expression.
pub(crate) fn parse_index(index: &Bound<'_, PyAny>) -> PyResult<SmallVec<[IndexItem; 4]>> {
    match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|item| parse_index_item(&item)).collect(),
        Err(_) => Ok(SmallVec::from_slice(&[parse_index_item(index)?])),
    }
}

fn parse_index_item(item: &Bound<'_, PyAny>) -> PyResult<IndexItem> {
    if let Ok(slice) = item.cast::<PySlice>() {
        return Ok(IndexItem::Slice(slice_bounds(slice)?));
    }
    if item.is_instance_of::<PyBool>() {
        return Err(not_an_index(item));
    }
    if let Ok(index) = item.cast::<PyInt>() {
        return index.extract::<isize>().map(IndexItem::At).map_err(|_| {
            PyIndexError::new_err(format!("index {item} is out of bounds for any axis"))
        });
    }
    if item.is_none() {
        return Ok(IndexItem::NewAxis);
    }
    if item.is_instance_of::<PyEllipsis>() {
        return Ok(IndexItem::Ellipsis);
    }
    // Elements at an array of indices are copied, even if that array is without axes.
    let is_array = item.is_instance_of::<GPUArray>() || item.is_instance_of::<PyUntypedArray>();
    if !is_array && let Ok(index) = item.call_method0("__index__") {
        return Ok(IndexItem::At(index.extract()?));
    }
    Err(not_an_index(item))
}

/// Uses numpy's wording.
#[cold]
fn not_an_index(item: &Bound<'_, PyAny>) -> PyErr {
    PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices; the \
         index is of type {}",
        numpy_array::type_name(item)
    ))
}

/// Returns the bounds of a slice. An omitted bound becomes a value beyond every axis, which Python's rules
/// clip.
fn slice_bounds(slice: &Bound<'_, PySlice>) -> PyResult<SliceBounds> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: the object is a slice, and the pointers are to three numbers.
    let status = unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &mut start, &mut stop, &mut step) };
    if status != 0 {
        return Err(PyErr::fetch(slice.py()));
    }
    Ok(SliceBounds { start: Some(start), stop: Some(stop), step: Some(step) })
}

/// Refuses elements of another dtype if the device treats either dtype as bytes, such as records, dates and
/// text, because it cannot convert them. `name` is the argument that has the dtype `other`.
pub(super) fn check_records(
    name: &str,
    own: &Bound<'_, PyArrayDescr>,
    other: &Bound<'_, PyArrayDescr>,
) -> PyResult<()> {
    let is_bytes = |descr| Ok::<_, PyErr>(matches!(dtypes::from_numpy(descr)?, DType::Opaque(_)));
    if own.is_equiv_to(other) || own.as_any().eq(other.as_any())? || !is_bytes(own)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{name} has dtype {other}, where {own} is needed; convert its elements on the host"
    )))
}

/// Returns elements of the dtype `own`, such as a record, a date or an array of them, as an array of that
/// dtype. A device array is returned unchanged; numpy converts anything else.
pub(super) fn records_of<'py>(
    name: &str,
    own: &Bound<'py, PyArrayDescr>,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(array) = value.cast::<GPUArray>() {
        check_records(name, own, array.get().content()?.descr.bind(value.py()))?;
        return Ok(value.clone());
    }
    value.py().import("numpy")?.call_method1("asarray", (value, own))
}
