//! The launch configuration, as Python passes it.

use super::arguments::long;
use crate::errors::to_python;
use gpuarray::{Error, LaunchConfig};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Returns the configuration of `grid` blocks (one if omitted) of `block` threads.
pub(super) fn config(
    grid: Option<&Bound<'_, PyAny>>,
    block: &Bound<'_, PyAny>,
    shared_bytes: u32,
) -> PyResult<LaunchConfig> {
    let grid = grid.map_or(Ok([1; 3]), |grid| extents("grid", grid))?;
    Ok(LaunchConfig::new(grid, extents("block", block)?).shared_bytes(shared_bytes))
}

/// Parses one to three extents; the omitted ones are 1.
#[inline]
fn extents(name: &str, value: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    if value.is_exact_instance_of::<PyTuple>()
        && let Ok(tuple) = value.cast::<PyTuple>()
    {
        return read(name, tuple);
    }
    if let Ok(list) = value.cast::<PyList>() {
        return read(name, &list.to_tuple());
    }
    let kind = value.get_type().name()?;
    let tuple = value.cast::<PyTuple>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{name} is of type {kind}; a tuple of one to three whole numbers is needed"
        ))
    })?;
    read(name, tuple)
}

#[inline]
fn read(name: &str, values: &Bound<'_, PyTuple>) -> PyResult<[u32; 3]> {
    let mut result = [1; 3];
    let count = values.len();
    if count == 0 || count > result.len() {
        return Err(to_python(Error::invalid(
            "launch",
            format!("{name} has length {count}; allowed are one to three entries"),
        )));
    }
    for (value, extent) in values.iter_borrowed().zip(&mut result) {
        let number = long(value).map_err(|_| {
            PyTypeError::new_err(format!(
                "{name} has the entry {}; whole numbers are needed",
                &*value
            ))
        })?;
        *extent = u32::try_from(number).map_err(|_| {
            PyOverflowError::new_err(format!(
                "{name} has the entry {number}; allowed are 1 to {}",
                u32::MAX
            ))
        })?;
    }
    Ok(result)
}
