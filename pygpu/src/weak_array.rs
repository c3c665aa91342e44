//! A weak reference to the numpy array that an allocation of host memory was made for.

use crate::numpy_array::{HostArray, new_array};
use gpuarray::Layout;
use numpy::PyArrayDescr;
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
    /// Returns a new array over memory of `owner`, and stores a reference to it.
    ///
    /// # Safety
    /// `data` is memory that the layout stays inside, and that lives as long as `owner`.
    pub(crate) unsafe fn over<'py>(
        &self,
        owner: &Bound<'py, PyAny>,
        descr: &Bound<'py, PyArrayDescr>,
        layout: &Layout,
        data: *mut u8,
    ) -> PyResult<HostArray<'py>> {
        let (shape, strides, base) = (layout.shape(), layout.strides(), Some(owner.clone()));
        // SAFETY: as the caller promises.
        let array = unsafe { new_array(owner.py(), descr, shape, strides, data.cast(), base)? };
        // Each allocation is made for one array.
        let _ = self.array.set(PyWeakrefReference::new(&array)?.unbind());
        Ok(array)
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
