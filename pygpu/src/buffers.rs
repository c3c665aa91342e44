//! Memory as Python buffers: memoryviews over device memory, and a base class for classes that export buffers.

use crate::deferred_drop::drop_unlocked;
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array;
use gpuarray::memory::DeviceMemory;
use gpuarray::{DType, Error};
use pyo3::exceptions::PyOverflowError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyMemoryView};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// The name of capsules that keep memory.
const HOLD: &CStr = c"pygpu.driver.memory";

/// Returns a memoryview over a part of an allocation, which it keeps alive.
pub(crate) fn view<'py>(
    py: Python<'py>,
    memory: &Arc<DeviceMemory>,
    size: usize,
    offset: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if offset.checked_add(size).is_none_or(|end| end > memory.bytes()) {
        return Err(to_python(Error::invalid(
            "as_buffer",
            format!(
                "size is {size} and offset {offset}; the size of the memory is {}",
                memory.bytes()
            ),
        )));
    }
    buffer(py, memory.address() + offset as u64, size, hold(py, memory)?)
}

/// Returns an object that prevents memory from being freed, returned to a pool or closed.
pub(crate) fn hold<'py>(
    py: Python<'py>,
    memory: &Arc<DeviceMemory>,
) -> PyResult<Bound<'py, PyAny>> {
    let hold = memory.lease().or_raise()?;
    let drop_hold = |hold, _| drop_unlocked(hold);
    Ok(PyCapsule::new_with_value_and_destructor(py, hold, HOLD, drop_hold)?.into_any())
}

/// Returns a memoryview over a range of addresses that `owner` keeps valid.
#[pyfunction]
#[pyo3(name = "address_as_buffer")]
pub(crate) fn buffer<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = argument::address)] address: u64,
    #[pyo3(from_py_with = argument::size)] size: usize,
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if isize::try_from(size).is_err() {
        return Err(PyOverflowError::new_err(format!(
            "size is {size}; allowed are up to {}",
            isize::MAX
        )));
    }
    let bytes = dtypes::to_numpy(py, DType::UInt8)?.into_bound(py);
    // SAFETY: the array only represents the range, which the owner keeps; code that reads through it is
    // responsible for that access.
    let array = unsafe {
        numpy_array::new_array(py, &bytes, &[size], &[1], address as *mut c_void, Some(owner))?
    };
    Ok(PyMemoryView::from(&array)?.into_any())
}

/// `Py_bf_getbuffer`.
const GET_BUFFER: c_int = 1;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut c_void, flags: c_int) -> c_int;
}

/// Exports the buffer of the object's attribute `_host`, which then owns the export.
unsafe extern "C" fn get_buffer(
    object: *mut ffi::PyObject,
    view: *mut c_void,
    flags: c_int,
) -> c_int {
    // SAFETY: the interpreter calls this with a live object and a `Py_buffer`, whose second field is
    // the owner: null if the call failed. `_host` is a new reference, and may in turn export its own
    // `_host`.
    unsafe {
        view.cast::<*mut ffi::PyObject>().add(1).write(null_mut());
        if ffi::Py_EnterRecursiveCall(c" while a buffer is lent".as_ptr()) != 0 {
            return -1;
        }
        let host = ffi::PyObject_GetAttrString(object, c"_host".as_ptr());
        let mut result = -1;
        if !host.is_null() {
            result = PyObject_GetBuffer(host, view, flags);
            ffi::Py_DECREF(host);
        }
        ffi::Py_LeaveRecursiveCall();
        result
    }
}

/// Returns the class `BufferExporter`: `memoryview(object)` is a view of the object's `_host`.
///
/// Python classes cannot define a buffer before Python 3.12, and PyO3 omits the slot for Python 3.10, whose stable ABI
/// lacks its name. The slot's number and the function that requests a buffer are the same there (`Include/typeslots.h`,
/// `Objects/typeslots.inc` and `Include/cpython/object.h` of CPython 3.10).
pub(crate) fn exporter(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let mut slots = [
        ffi::PyType_Slot { slot: GET_BUFFER, pfunc: get_buffer as *mut c_void },
        ffi::PyType_Slot { slot: 0, pfunc: null_mut() },
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"pygpu._core.BufferExporter".as_ptr(),
        basicsize: size_of::<ffi::PyObject>() as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE) as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification lives as long as the call, and ends with a slot of zeros; the name is
    // static. The result is a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&mut spec)) }
}

/// Returns the address of a list's entries for a C structure; null if it is empty.
pub(crate) fn pointers<T>(list: &mut [T]) -> *mut T {
    if list.is_empty() { null_mut() } else { list.as_mut_ptr() }
}
