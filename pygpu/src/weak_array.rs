//! A weak reference to the numpy array that an allocation of host memory was made for.

use crate::numpy_array::HostArray;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Arc, OnceLock};

/// Knows whether an array over an allocation is still alive. Views of the array keep it alive, so
/// once it is gone no array reaches the memory.
#[derive(Default)]
pub(crate) struct WeakArray {
    array: OnceLock<Py<PyWeakrefReference>>,
    holds: Arc<()>,
}

impl WeakArray {
    /// Remembers the array.
    pub(crate) fn set(&self, array: &HostArray<'_>) -> PyResult<()> {
        let reference = PyWeakrefReference::new(array)?.unbind();
        // Each allocation is made for one array.
        let _ = self.array.set(reference);
        Ok(())
    }

    /// Returns what counts as one more array, on the device, over the same memory.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.holds.clone()
    }

    /// True while an array is alive.
    pub(crate) fn is_alive(&self, py: Python<'_>) -> bool {
        Arc::strong_count(&self.holds) > 1
            || self.array.get().is_some_and(|reference| reference.bind(py).upgrade().is_some())
    }
}
