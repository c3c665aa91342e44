//! The structures of Arrow's C data interface and C device data interface, in capsules.
//!
//! `pygpu.arrow` interprets the structures. This module creates, reads and releases them, so that a
//! release works on any thread and during interpreter shutdown. The layouts follow Arrow's
//! specification "C device data interface", version 1.

mod export;
mod import;

pub(crate) use export::*;
pub(crate) use import::*;

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_void};

const SCHEMA_NAME: &CStr = c"arrow_schema";
const DEVICE_ARRAY_NAME: &CStr = c"arrow_device_array";

/// The maximum depth of nested types.
const DEPTH_LIMIT: usize = 64;

/// `struct ArrowSchema`: a type. It is released if `release` is null.
#[repr(C)]
pub(super) struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`: a column. It is released if `release` is null.
#[repr(C)]
pub(super) struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowDeviceArray`: a column with its device. `sync_event` is null, or points to the event
/// after which the buffers are valid.
#[repr(C)]
pub(super) struct ArrowDeviceArray {
    array: ArrowArray,
    device_id: i64,
    device_type: i32,
    sync_event: *mut c_void,
    reserved: [i64; 3],
}

/// A structure of either interface; the contents of both are released in the same way.
pub(super) trait Structure: Sized {
    const NAME: &'static CStr;

    /// Releases the content, unless it was already released.
    ///
    /// # Safety
    /// The structure belongs to the interface, and nothing else uses it meanwhile.
    unsafe fn release(&mut self);

    /// Returns true if the content has been released or moved away.
    fn is_released(&self) -> bool;

    /// Marks the content as moved away.
    fn mark_moved(&mut self);
}

impl Structure for ArrowSchema {
    const NAME: &'static CStr = SCHEMA_NAME;

    unsafe fn release(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as the caller promises.
            unsafe { release(self) }
        }
    }

    fn is_released(&self) -> bool {
        self.release.is_none()
    }

    fn mark_moved(&mut self) {
        self.release = None;
    }
}

impl Structure for ArrowDeviceArray {
    const NAME: &'static CStr = DEVICE_ARRAY_NAME;

    unsafe fn release(&mut self) {
        if let Some(release) = self.array.release {
            // SAFETY: as the caller promises.
            unsafe { release(&mut self.array) }
        }
    }

    fn is_released(&self) -> bool {
        self.array.release.is_none()
    }

    fn mark_moved(&mut self) {
        self.array.release = None;
    }
}

/// The capsule's destructor, which frees the structure, and its content unless a consumer has taken
/// it.
unsafe extern "C" fn drop_capsule<T: Structure>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule of `new_capsule`, whose pointer comes from a
    // box.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()).cast::<T>();
        if pointer.is_null() {
            ffi::PyErr_Clear();
            return;
        }
        let mut structure = Box::from_raw(pointer);
        structure.release();
    }
}

/// Returns a capsule that owns a structure.
fn new_capsule<T: Structure>(py: Python<'_>, structure: T) -> PyResult<Bound<'_, PyAny>> {
    let pointer = Box::into_raw(Box::new(structure));
    // SAFETY: the pointer is not null, and the name is static. The result is a new reference, or null
    // with an exception, in which case the structure is freed here.
    unsafe {
        let object = ffi::PyCapsule_New(pointer.cast(), T::NAME.as_ptr(), Some(drop_capsule::<T>));
        if object.is_null() {
            Box::from_raw(pointer).release();
        }
        Bound::from_owned_ptr_or_err(py, object)
    }
}
