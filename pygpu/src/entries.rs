//! Sequences as arguments.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The entries of a sequence, as many as it actually yields. PyO3's `Vec` allocates as many as the sequence claims
/// to have, and panics if that exceeds the memory.
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
