//! A weak reference to the numpy array that an allocation of host memory was made for.

use crate::numpy_array::HostArray;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::sync::OnceLock;

/// Knows whether the array over an allocation is still alive. Views of the array keep it alive, so
/// once it is gone no array reaches the memory.
#[derive(Default)]
pub(crate) struct WeakArray(OnceLock<Py<PyWeakrefReference>>);

impl WeakArray {
    /// Remembers the array.
    pub(crate) fn set(&self, array: &HostArray<'_>) -> PyResult<()> {
        let reference = PyWeakrefReference::new(array)?.unbind();
        // Each allocation is made for one array.
        let _ = self.0.set(reference);
        Ok(())
    }

    /// True while the array is alive.
    pub(crate) fn is_alive(&self, py: Python<'_>) -> bool {
        self.0.get().is_some_and(|reference| reference.bind(py).upgrade().is_some())
    }
}
