//! A weak reference to the numpy array that an allocation of host memory was made for.

use crate::numpy_array::HostArray;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use std::sync::{Arc, OnceLock};

/// Knows if an array over an allocation is still alive. Views keep their array alive, so once it is
/// gone, no array uses the memory.
#[derive(Default)]
pub(crate) struct WeakArray {
    array: OnceLock<Py<PyWeakrefReference>>,
    holds: Arc<()>,
}

impl WeakArray {
    /// Stores the array.
    pub(crate) fn set(&self, array: &HostArray<'_>) -> PyResult<()> {
        let reference = PyWeakrefReference::new(array)?.unbind();
        // Each allocation is made for one array.
        let _ = self.array.set(reference);
        Ok(())
    }

    /// Returns an object that counts as one additional array, on the device, over the same memory.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.holds.clone()
    }

    /// Returns true while an array is alive.
    pub(crate) fn is_alive(&self, py: Python<'_>) -> bool {
        Arc::strong_count(&self.holds) > 1
            || self.array.get().is_some_and(|reference| reference.bind(py).upgrade().is_some())
    }
}
