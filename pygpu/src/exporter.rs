//! A base class for Python classes that export memory as buffers.
//!
//! Python classes cannot define a buffer before Python 3.12, and PyO3 omits the slot for Python 3.10,
//! whose stable ABI lacks its name. The slot's number and the function that requests a buffer are the
//! same there (`Include/typeslots.h`, `Objects/typeslots.inc` and `Include/cpython/object.h` of
//! CPython 3.10).

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

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
pub(crate) fn class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
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
