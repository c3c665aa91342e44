//! Exported structures, for other libraries.

use super::{ArrowArray, ArrowDeviceArray, ArrowSchema, DEPTH_LIMIT, new_capsule};
use crate::array::GPUArray;
use crate::buffers::pointers;
use crate::entries::Entries;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

/// The data that an exported type points to. Each child has separate content, because a consumer may
/// keep a child and release its parent.
struct SchemaContent {
    format: CString,
    name: CString,
    metadata: Option<Vec<u8>>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

impl Drop for SchemaContent {
    fn drop(&mut self) {
        for child in self.children.drain(..).chain([self.dictionary]) {
            // SAFETY: a child comes from a box, or is null; a consumer that has moved its content has
            // set its `release` to null.
            unsafe { free_child(child, |child: &mut ArrowSchema| child.release) }
        }
    }
}

/// The data that an exported column points to.
struct ArrayContent {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    /// The event handle that `sync_event` points to.
    event: *mut c_void,
    /// Keeps the memory of the buffers, and the event, alive.
    keeper: Option<Py<PyAny>>,
}

impl Drop for ArrayContent {
    fn drop(&mut self) {
        for child in self.children.drain(..).chain([self.dictionary]) {
            // SAFETY: as for `SchemaContent`.
            unsafe { free_child(child, |child: &mut ArrowArray| child.release) }
        }
        // Without an interpreter, the memory is leaked until the end of the process.
        let mut keeper = self.keeper.take();
        Python::try_attach(|py| {
            if let Some(keeper) = keeper.take() {
                keeper.drop_ref(py);
            }
        });
        std::mem::forget(keeper);
    }
}

type Release<T> = Option<unsafe extern "C" fn(*mut T)>;

/// Releases and frees a child.
///
/// # Safety
/// `child` is null or comes from `Box::into_raw`, and is not used again.
unsafe fn free_child<T>(child: *mut T, release: impl Fn(&mut T) -> Release<T>) {
    if child.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    let mut child = unsafe { Box::from_raw(child) };
    if let Some(release) = release(&mut child) {
        // SAFETY: the content has not been moved or released.
        unsafe { release(&raw mut *child) }
    }
}

/// `ArrowSchema::release` of exported types.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: a consumer calls this with a structure of this file. A second call finds the content
    // gone.
    unsafe {
        let content = std::mem::replace(&mut (*schema).private_data, null_mut());
        (*schema).release = None;
        if !content.is_null() {
            drop(Box::from_raw(content.cast::<SchemaContent>()));
        }
    }
}

/// `ArrowArray::release` of exported columns.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as for `release_schema`.
    unsafe {
        let content = std::mem::replace(&mut (*array).private_data, null_mut());
        (*array).release = None;
        if !content.is_null() {
            drop(Box::from_raw(content.cast::<ArrayContent>()));
        }
    }
}

fn too_deep() -> PyErr {
    PyBufferError::new_err(format!("the type is nested more than {DEPTH_LIMIT} levels deep"))
}

fn text(name: &str, value: String) -> PyResult<CString> {
    CString::new(value).map_err(|_| PyValueError::new_err(format!("{name} contains a NUL")))
}

/// Format, name, metadata, flags, children, dictionary.
type SchemaParts<'py> = (
    String,
    String,
    Option<Entries<u8>>,
    i64,
    Entries<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

fn build_schema(tree: &Bound<'_, PyAny>, depth: usize) -> PyResult<ArrowSchema> {
    if depth == 0 {
        return Err(too_deep());
    }
    let (format, name, metadata, flags, Entries(children), dictionary): SchemaParts<'_> =
        tree.extract()?;
    let (format, name) = (text("the format", format)?, text("the field's name", name)?);
    let dictionary = dictionary.map(|tree| build_schema(&tree, depth - 1)).transpose()?;
    let mut content = Box::new(SchemaContent {
        format,
        name,
        metadata: metadata.map(|Entries(bytes)| bytes),
        children: Vec::with_capacity(children.len()),
        dictionary: dictionary.map_or(null_mut(), |schema| Box::into_raw(Box::new(schema))),
    });
    for child in children {
        content.children.push(Box::into_raw(Box::new(build_schema(&child, depth - 1)?)));
    }
    Ok(ArrowSchema {
        format: content.format.as_ptr(),
        name: content.name.as_ptr(),
        metadata: content.metadata.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast::<c_char>()),
        flags,
        n_children: content.children.len() as i64,
        children: pointers(&mut content.children),
        dictionary: content.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(content).cast(),
    })
}

/// Length, null count, offset, addresses of the buffers, children, dictionary.
type ArrayParts<'py> =
    (i64, i64, i64, Entries<usize>, Entries<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

fn build_array(
    tree: &Bound<'_, PyAny>,
    keeper: &Bound<'_, PyAny>,
    event: usize,
    depth: usize,
) -> PyResult<ArrowArray> {
    if depth == 0 {
        return Err(too_deep());
    }
    let (length, null_count, offset, Entries(buffers), Entries(children), dictionary): ArrayParts<
        '_,
    > = tree.extract()?;
    let dictionary = dictionary.map(|tree| build_array(&tree, keeper, 0, depth - 1)).transpose()?;
    let mut content = Box::new(ArrayContent {
        buffers: buffers.into_iter().map(|address| address as *const c_void).collect(),
        children: Vec::with_capacity(children.len()),
        dictionary: dictionary.map_or(null_mut(), |array| Box::into_raw(Box::new(array))),
        event: event as *mut c_void,
        keeper: Some(keeper.clone().unbind()),
    });
    for child in children {
        let child = build_array(&child, keeper, 0, depth - 1)?;
        content.children.push(Box::into_raw(Box::new(child)));
    }
    Ok(ArrowArray {
        length,
        null_count,
        offset,
        n_buffers: content.buffers.len() as i64,
        n_children: content.children.len() as i64,
        buffers: pointers(&mut content.buffers),
        children: pointers(&mut content.children),
        dictionary: content.dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(content).cast(),
    })
}

/// Creates the capsule "arrow_schema" of a type.
///
/// Parameters
/// ----------
/// schema : tuple
///     Format, name, metadata or None, flags, list of children, and the type of the dictionary or None.
#[pyfunction]
pub(crate) fn arrow_schema_capsule<'py>(schema: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    new_capsule(schema.py(), build_schema(schema, DEPTH_LIMIT)?)
}

/// Creates the capsule "arrow_device_array" of a column.
///
/// Parameters
/// ----------
/// array : tuple. Length, null count, offset, list of the buffers' addresses, list of children, and
///     the dictionary or None.
/// keeper : object
///     Keeps the memory and the event alive. The last of the column's structures releases it.
/// device : tuple of int. Arrow's type and number of the device.
/// event : int. The driver's handle of the event after which the buffers are valid; 0 for none.
#[pyfunction]
pub(crate) fn arrow_device_array_capsule<'py>(
    array: &Bound<'py, PyAny>,
    keeper: &Bound<'py, PyAny>,
    device: (i32, i64),
    event: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let array = build_array(array, keeper, event, DEPTH_LIMIT)?;
    let sync_event = if event == 0 {
        null_mut()
    } else {
        // SAFETY: `build_array` has just made the content, which stays at its address.
        unsafe { (&raw mut (*array.private_data.cast::<ArrayContent>()).event).cast() }
    };
    let (device_type, device_id) = device;
    let structure =
        ArrowDeviceArray { array, device_id, device_type, sync_event, reserved: [0; 3] };
    new_capsule(keeper.py(), structure)
}

#[pymethods]
impl GPUArray {
    /// Exports a one-dimensional array by the Arrow C device data interface, without a copy; see
    /// `pygpu.arrow.DeviceColumn.from_gpuarray`.
    #[pyo3(signature = (requested_schema = None, **kwargs))]
    fn __arrow_c_device_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let exchange = slf.py().import("pygpu.arrow._exchange")?;
        exchange.getattr("export_array")?.call((slf, requested_schema), kwargs)
    }
}
