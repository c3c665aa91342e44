//! Arguments that describe an array's layout: shapes and memory orders.

use crate::errors::to_python;
use gpuarray::{Error, Order};
use hal::operation::Shape;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::SmallVec;

/// Parses an entry of the sequence `name`.
///
/// Raises `TypeError` for an entry that is not an integer, and `InvalidArgument` for one of more than 64
/// bits.
pub(crate) fn parse_entry(name: &'static str, value: &Bound<'_, PyAny>) -> PyResult<isize> {
    if let Ok(entry) = value.extract() {
        return Ok(entry);
    }
    let index = value.call_method0("__index__").map_err(|_| {
        PyTypeError::new_err(format!(
            "{name} has the entry {}; whole numbers are needed",
            value.repr().map_or_else(|_| "?".into(), |text| text.to_string())
        ))
    })?;
    index.extract().map_err(|_| {
        to_python(Error::invalid(
            name,
            format!("{name} has the entry {index}, which is larger than the address space"),
        ))
    })
}

/// Parses an extent.
fn parse_extent(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let extent = parse_entry("shape", value)?;
    usize::try_from(extent).map_err(|_| {
        to_python(Error::invalid(
            "shape",
            format!("negative dimensions are not allowed: shape has the entry {extent}"),
        ))
    })
}

/// Parses a shape: an integer, or a sequence of integers, which may be a numpy array.
pub(crate) fn parse_shape(value: &Bound<'_, PyAny>) -> PyResult<Shape> {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().map(|extent| parse_extent(&extent)).collect();
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(SmallVec::from_slice(&[parse_extent(value)?]));
    }
    if let Ok(array) = value.cast::<PyUntypedArray>()
        && array.ndim() == 0
    {
        return Ok(SmallVec::from_slice(&[parse_extent(&value.call_method0("item")?)?]));
    }
    match value.try_iter() {
        Ok(entries) => entries.map(|extent| parse_extent(&extent?)).collect(),
        Err(_) => Ok(SmallVec::from_slice(&[parse_extent(value)?])),
    }
}

/// Parses a shape for `reshape`, whose entries may be -1.
pub(crate) fn parse_new_shape(arguments: &Bound<'_, PyTuple>) -> PyResult<SmallVec<[isize; 4]>> {
    let first = if arguments.len() == 1 { Some(arguments.get_item(0)?) } else { None };
    let entry = |value: Bound<'_, PyAny>| parse_entry("shape", &value);
    match first {
        Some(only) if only.is_instance_of::<PyTuple>() || only.is_instance_of::<PyList>() => {
            only.try_iter()?.map(|value| entry(value?)).collect()
        }
        Some(only) if only.is_instance_of::<PyUntypedArray>() => {
            only.try_iter()?.map(|value| entry(value?)).collect()
        }
        _ => arguments.iter().map(entry).collect(),
    }
}

/// Returns the argument `order` as text, before it is compared with the orders that the function supports.
pub(crate) fn order_argument<'a>(order: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a str>> {
    order.extract().map_err(|_| match order.repr() {
        Ok(order) => {
            PyTypeError::new_err(format!("order is {order}; a string is needed, such as \"C\""))
        }
        Err(error) => error,
    })
}

/// Parses "C" or "F"; `None` means "C".
pub(crate) fn parse_order(order: Option<&str>) -> PyResult<Order> {
    match order {
        None | Some("C" | "c") => Ok(Order::C),
        Some("F" | "f") => Ok(Order::F),
        Some(order) => Err(refuse_order(order, "C and F")),
    }
}

/// Returns the error for an argument `order` that a function does not support.
pub(crate) fn refuse_order(order: &str, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("order is {order:?}; allowed are {allowed}"))
}
