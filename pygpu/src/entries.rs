//! Sequences as arguments.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The entries of a sequence, of which there are as many as it gives: PyO3's `Vec` makes room for as many as it says
/// that it has, and panics where that is more than any memory.
pub(crate) struct Entries<T>(pub(crate) Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Entries<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("an argument is a text; a sequence is needed"));
        }
        let entries = value.try_iter()?.map(|entry| entry?.extract().map_err(Into::into));
        entries.collect::<PyResult<_>>().map(Entries)
    }
}
