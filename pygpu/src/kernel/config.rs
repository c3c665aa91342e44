//! How many threads a launch has, as Python gives it.

use super::arguments::long;
use crate::errors::to_python;
use gpuarray::{Error, LaunchConfig};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// A launch of `grid` blocks of `block` threads.
pub(super) fn config(
    grid: &Bound<'_, PyAny>,
    block: &Bound<'_, PyAny>,
    shared_bytes: u32,
) -> PyResult<LaunchConfig> {
    Ok(LaunchConfig { grid: extents("grid", grid)?, block: extents("block", block)?, shared_bytes })
}

/// One to three extents; those left out are 1.
fn extents(name: &str, value: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let mut result = [1; 3];
    match value.cast::<PyTuple>() {
        Ok(tuple) => fill(name, tuple, &mut result)?,
        Err(_) => match value.cast::<PyList>() {
            Ok(list) => fill(name, &list.to_tuple(), &mut result)?,
            Err(_) => {
                let kind = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "{name} is of type {kind}; a tuple of one to three whole numbers is needed"
                )));
            }
        },
    }
    Ok(result)
}

fn fill(name: &str, values: &Bound<'_, PyTuple>, result: &mut [u32; 3]) -> PyResult<()> {
    if values.is_empty() || values.len() > result.len() {
        return Err(to_python(Error::invalid(
            "launch",
            format!("{name} has {} entries; allowed are one to three", values.len()),
        )));
    }
    for (value, extent) in values.iter_borrowed().zip(result) {
        let number = long(value).map_err(|_| {
            PyTypeError::new_err(format!("{name} has the entry {}; whole numbers are needed", &*value))
        })?;
        *extent = u32::try_from(number).map_err(|_| {
            PyOverflowError::new_err(format!("{name} has the entry {number}, which does not fit"))
        })?;
    }
    Ok(())
}
