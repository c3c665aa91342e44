//! Exchange of arrays by DLPack, with both kinds of capsules: before and since version 1.
//!
//! The structures follow `dlpack.h`, version 1.1. `pygpu._exchange.protocols` interprets the arguments
//! of `__dlpack__`.

use super::GPUArray;
use crate::buffers::{hold, pointers};
use crate::errors::OrRaise;
use crate::synchronize::{synchronize_stream, wait_before_copy};
use array::layout::MAX_AXES;
use gpuarray::memory::Access;
use hal::memory::AddressLease;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};

const NAME: &CStr = c"dltensor";
const USED_NAME: &CStr = c"used_dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";
const USED_VERSIONED_NAME: &CStr = c"used_dltensor_versioned";

/// The major version that is supported.
const MAJOR_VERSION: u32 = 1;

/// `DLPACK_FLAG_BITMASK_READ_ONLY` and `DLPACK_FLAG_BITMASK_IS_COPIED`.
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`. Strides are in elements; null means C order.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// An exported structure, and the objects that live as long.
struct Export<T> {
    managed: T,
    kept: Kept,
}

/// The data that an exported structure points to, and the array.
struct Kept {
    // The structure points to the contents of both.
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    /// The consumer uses the memory by its address; meanwhile, `free` is an error.
    _hold: AddressLease,
    array: Py<GPUArray>,
}

/// Frees the box that `T::context` refers to.
///
/// # Safety
///
/// `context` is from `Box::into_raw` of an `Export<T>`, and is not used again.
unsafe fn free<T>(context: *mut c_void) {
    // SAFETY: as the caller promises.
    let export = unsafe { Box::from_raw(context.cast::<Export<T>>()) };
    let Export { kept: Kept { array, .. }, .. } = *export;
    // Without an interpreter, the array is leaked until the end of the process.
    let mut array = Some(array);
    Python::try_attach(|py| {
        if let Some(array) = array.take() {
            array.drop_ref(py);
        }
    });
    std::mem::forget(array);
}

unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: a consumer calls this once, with the structure that holds this function.
    unsafe { free::<Managed>((*managed).context) }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as for `delete`.
    unsafe { free::<ManagedVersioned>((*managed).context) }
}

/// The capsule's destructor, which frees a structure that was not consumed.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule of `export`; a consumer renames it. The
    // structure is valid until its deleter is called.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED_NAME.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED_NAME.as_ptr()).cast());
        }
    }
}

/// Creates the capsule of an array.
///
/// Parameters
/// ----------
/// array : GPUArray. The array, which is kept alive, and its memory allocated, until the consumer
///     frees the capsule's structure.
/// device : tuple of int. DLPack's type and number of the device.
/// dtype : tuple of int. DLPack's code and bits of the elements.
/// strides : sequence of int. Strides in elements.
/// version : tuple of int or None
///     The version in the capsule, with major number 1; None for the older kind of capsule.
/// is_copied : bool. True if the memory is not shared.
#[pyfunction]
pub(crate) fn dlpack_capsule<'py>(
    array: &Bound<'py, GPUArray>,
    device: (i32, i32),
    dtype: (u8, u8),
    mut strides: Vec<i64>,
    version: Option<(u32, u32)>,
    is_copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let inner = array.get().array()?;
    let mut shape: Vec<i64> = inner.layout().shape().iter().map(|&extent| extent as i64).collect();
    if strides.len() != shape.len() {
        return Err(PyBufferError::new_err("one stride is needed for each axis"));
    }
    let hold = inner.memory().lease().or_raise()?;
    let tensor = Tensor {
        data: if inner.size() == 0 { null_mut() } else { inner.address() as *mut c_void },
        device_type: device.0,
        device_id: device.1,
        ndim: shape.len() as i32,
        dtype: DataType { code: dtype.0, bits: dtype.1, lanes: 1 },
        shape: pointers(&mut shape),
        strides: pointers(&mut strides),
        byte_offset: 0,
    };
    let array = array.clone().unbind();
    let kept = Kept { _shape: shape, _strides: strides, _hold: hold, array };
    let context = null_mut();
    if let Some((major, minor)) = version {
        let flags = if is_copied { IS_COPIED } else { 0 };
        let deleter = Some(delete_versioned as unsafe extern "C" fn(*mut ManagedVersioned));
        let managed = ManagedVersioned { major, minor, context, deleter, flags, tensor };
        export(py, managed, |it| &mut it.context, kept, VERSIONED_NAME)
    } else {
        let deleter = Some(delete as unsafe extern "C" fn(*mut Managed));
        export(py, Managed { tensor, context, deleter }, |it| &mut it.context, kept, NAME)
    }
}

/// Waits until all work queued on an array has finished, for a consumer that does not support streams.
#[pyfunction]
pub(crate) fn wait_for_array(array: &Bound<'_, GPUArray>) -> PyResult<()> {
    let (py, array) = (array.py(), array.get().array()?);
    let stream = array.stream();
    if stream.is_capturing().or_raise()? {
        // Captured work does not run, so the wait is refused.
        return synchronize_stream(py, stream.as_ref())?.or_raise();
    }
    if !array.memory().is_allocated() {
        return Ok(());
    }
    // The consumer may also write.
    wait_before_copy(py, stream, &[(array.memory(), Access::Write)])
}

/// Returns an object that stands for an export of an array's memory by its address: while it lives, the memory
/// cannot be freed, given back to its pool or closed.
///
/// Raises `LogicError` for memory that has ended already.
#[pyfunction]
pub(crate) fn hold_memory<'py>(array: &Bound<'py, GPUArray>) -> PyResult<Bound<'py, PyAny>> {
    hold(array.py(), array.get().array()?.memory())
}

/// Ends the uses of an array's memory that another library allocated; its own is left alone.
///
/// Raises `LogicError` while an export of the memory lives, and if it has ended already.
#[pyfunction]
pub(crate) fn end_foreign_memory(py: Python<'_>, array: &Bound<'_, GPUArray>) -> PyResult<()> {
    let memory = array.get().array()?.memory().clone();
    match memory.external_owner() {
        Some(_) => py.detach(|| memory.release()).or_raise(),
        None => Ok(()),
    }
}

/// Returns the capsule of a structure; `context` returns the field for the object that lives as long.
fn export<'py, T>(
    py: Python<'py>,
    managed: T,
    context: fn(&mut T) -> &mut *mut c_void,
    kept: Kept,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    let export = Box::into_raw(Box::new(Export { managed, kept }));
    // SAFETY: `export` is live; if the capsule is created, it takes ownership.
    unsafe {
        *context(&mut (*export).managed) = export.cast();
        let made = capsule(py, (&raw mut (*export).managed).cast(), name);
        if made.is_err() {
            drop(Box::from_raw(export));
        }
        made
    }
}

/// Creates a capsule whose destructor is `drop_capsule`.
///
/// # Safety
///
/// `pointer` points to a structure of the kind that `name` denotes, and nothing else frees it.
unsafe fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut c_void,
    name: &'static CStr,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the pointer is not null, and the name is static. The result is a new reference, or null
    // with an exception.
    unsafe {
        let object = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// The structure of a consumed capsule. It is freed when this is dropped.
#[pyclass(frozen, module = "pygpu._core")]
pub(crate) struct DLPackTensor {
    pointer: Structure,
}

enum Structure {
    Managed(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: only `dlpack_tensor` reads the structure, before it returns the object; its deleter may be
// called on any thread, as DLPack requires.
unsafe impl Send for DLPackTensor {}
// SAFETY: as above; a shared reference gives no access.
unsafe impl Sync for DLPackTensor {}

impl Drop for DLPackTensor {
    fn drop(&mut self) {
        // SAFETY: the structure was taken from its capsule, so nothing else calls its deleter.
        unsafe {
            match self.pointer {
                Structure::Managed(pointer) => {
                    if let Some(deleter) = (*pointer.as_ptr()).deleter {
                        deleter(pointer.as_ptr());
                    }
                }
                Structure::Versioned(pointer) => {
                    if let Some(deleter) = (*pointer.as_ptr()).deleter {
                        deleter(pointer.as_ptr());
                    }
                }
            }
        }
    }
}

/// The owner, address, shape, strides in elements (if any), code, bits and lanes of the elements,
/// device, and true if the memory is read-only.
type TensorParts = (DLPackTensor, u64, Vec<i64>, Option<Vec<i64>>, (u8, u8, u16), (i32, i32), bool);

/// Consumes a capsule. The first returned object owns its structure.
///
/// Raises BufferError for a capsule of a later major version, for one that was already consumed, and
/// for a tensor that has axes but lacks a shape.
#[pyfunction]
pub(crate) fn dlpack_tensor(capsule: &Bound<'_, PyAny>) -> PyResult<TensorParts> {
    if capsule.cast::<PyCapsule>().is_err() {
        return Err(PyTypeError::new_err("__dlpack__ returned no capsule"));
    }
    let object = capsule.as_ptr();
    let has_name = |name: &CStr| {
        // SAFETY: the object is a live capsule, and the interpreter is attached.
        unsafe { ffi::PyCapsule_IsValid(object, name.as_ptr()) == 1 }
    };
    let take = |name: &CStr, used: &'static CStr| {
        // SAFETY: the capsule has this name, so its pointer is not null; the new name is static.
        unsafe {
            let pointer = ffi::PyCapsule_GetPointer(object, name.as_ptr());
            ffi::PyCapsule_SetName(object, used.as_ptr());
            NonNull::new(pointer)
        }
    };
    let broken = || PyBufferError::new_err("the capsule holds no structure");
    if has_name(VERSIONED_NAME) {
        // SAFETY: a capsule of this name contains this structure, whose first fields are the same in
        // all versions.
        let major = unsafe {
            let pointer = ffi::PyCapsule_GetPointer(object, VERSIONED_NAME.as_ptr());
            (*pointer.cast::<ManagedVersioned>()).major
        };
        if major != MAJOR_VERSION {
            return Err(PyBufferError::new_err(format!(
                "the capsule has version {major} of DLPack; {MAJOR_VERSION} is known"
            )));
        }
        let pointer = take(VERSIONED_NAME, USED_VERSIONED_NAME).ok_or_else(broken)?.cast();
        let owner = DLPackTensor { pointer: Structure::Versioned(pointer) };
        // SAFETY: the structure is valid until its deleter is called, and has this major version.
        let managed: &ManagedVersioned = unsafe { pointer.as_ref() };
        let is_read_only = managed.flags & READ_ONLY != 0;
        // SAFETY: as above.
        return unsafe { parts(owner, &managed.tensor, is_read_only) };
    }
    if has_name(NAME) {
        let pointer = take(NAME, USED_NAME).ok_or_else(broken)?.cast();
        let owner = DLPackTensor { pointer: Structure::Managed(pointer) };
        // SAFETY: the structure is valid until its deleter is called.
        let managed: &Managed = unsafe { pointer.as_ref() };
        // SAFETY: as above.
        return unsafe { parts(owner, &managed.tensor, false) };
    }
    Err(PyBufferError::new_err("the capsule is not a tensor of DLPack, or was consumed before"))
}

/// Reads a tensor.
///
/// # Safety
///
/// `tensor` is valid: its shape, and its strides if any, have an entry for each axis.
unsafe fn parts(owner: DLPackTensor, tensor: &Tensor, is_read_only: bool) -> PyResult<TensorParts> {
    let refused = |what: String| PyBufferError::new_err(format!("the capsule's tensor has {what}"));
    let ndim = usize::try_from(tensor.ndim)
        .ok()
        .filter(|&ndim| ndim <= MAX_AXES)
        .ok_or_else(|| refused(format!("ndim {}; allowed are 0 to {MAX_AXES}", tensor.ndim)))?;
    let list = |pointer: *mut i64| {
        if ndim == 0 {
            return Vec::new();
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(pointer, ndim) }.to_vec()
    };
    if ndim > 0 && tensor.shape.is_null() {
        return Err(refused(format!("ndim {ndim} and no shape")));
    }
    let strides = (!tensor.strides.is_null()).then(|| list(tensor.strides));
    let DataType { code, bits, lanes } = tensor.dtype;
    let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
    let device = (tensor.device_type, tensor.device_id);
    Ok((owner, address, list(tensor.shape), strides, (code, bits, lanes), device, is_read_only))
}

#[pymethods]
impl GPUArray {
    /// The number of the array's device.
    #[getter]
    fn _ordinal(&self) -> PyResult<usize> {
        Ok(self.array()?.device().id().ordinal)
    }
}
