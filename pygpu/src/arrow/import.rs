//! Imported structures, from other libraries.
//!
//! Counts, null pointers, the depth and the number of nodes are checked. As with every C interface,
//! the producer guarantees that pointers are valid.

use super::{ArrowArray, ArrowDeviceArray, ArrowSchema, DEPTH_LIMIT, Structure};
use crate::current_device::current_device;
use crate::errors::OrRaise;
use crate::stream::stream_argument;
use hal::recording;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;

/// Limits on imported data: children per node, nodes per tree, buffers per node, and bytes of texts
/// and metadata per node.
const CHILD_LIMIT: i64 = 1 << 20;
const NODE_LIMIT: usize = 1 << 20;
const BUFFER_LIMIT: i64 = 1 << 16;
const METADATA_LIMIT: usize = 1 << 24;

fn broken(problem: impl Into<String>) -> PyErr {
    PyBufferError::new_err(problem.into())
}

/// A structure that was moved out of its capsule. It is released when this is dropped.
struct Taken<T: Structure>(ManuallyDrop<T>);

impl<T: Structure> Drop for Taken<T> {
    fn drop(&mut self) {
        // SAFETY: the content was moved here, and is not used after this.
        unsafe { self.0.release() }
    }
}

fn take<T: Structure>(capsule: &Bound<'_, PyAny>) -> PyResult<Taken<T>> {
    let name = T::NAME.to_string_lossy();
    if capsule.cast::<PyCapsule>().is_err() {
        return Err(PyTypeError::new_err(format!(
            "the exporter returned an object of type {}; a capsule {name:?} is needed",
            capsule.get_type().name()?
        )));
    }
    // SAFETY: the object is a live capsule. A capsule of this name contains this structure, which its
    // destructor frees. The content is moved out, and marked as moved.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), T::NAME.as_ptr()) != 1 {
            return Err(broken(format!("the capsule is no {name:?}")));
        }
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()).cast::<T>();
        if !pointer.is_aligned() {
            return Err(broken("the capsule's structure is not aligned"));
        }
        if (*pointer).is_released() {
            return Err(broken(format!("the capsule {name:?} was consumed or released before")));
        }
        let taken = Taken(ManuallyDrop::new(pointer.read()));
        (*pointer).mark_moved();
        Ok(taken)
    }
}

/// The content of a consumed capsule "arrow_device_array". It is released when this is dropped.
#[pyclass(frozen, module = "pygpu._core")]
pub(crate) struct ArrowOwner {
    _array: Taken<ArrowDeviceArray>,
}

// SAFETY: the structure is read before the object is returned; its release may be called on any
// thread, as the interface requires.
unsafe impl Send for ArrowOwner {}
// SAFETY: as above; a shared reference gives no access.
unsafe impl Sync for ArrowOwner {}

/// Checks the children of a node, and returns them.
///
/// # Safety
/// `children` is null or points to `count` pointers.
unsafe fn children_of<'a, T>(count: i64, children: *mut *mut T) -> PyResult<Vec<&'a T>> {
    if !(0..=CHILD_LIMIT).contains(&count) {
        return Err(broken(format!("n_children is {count}; allowed are 0 to {CHILD_LIMIT}")));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    if children.is_null() || !children.is_aligned() {
        return Err(broken(format!("n_children is {count}, and children is {children:?}")));
    }
    // SAFETY: as the caller promises.
    let list = unsafe { std::slice::from_raw_parts(children, count as usize) };
    list.iter()
        .map(|&child| {
            if child.is_null() || !child.is_aligned() {
                return Err(broken(format!("a child is {child:?}")));
            }
            // SAFETY: a child is valid until its parent is released.
            Ok(unsafe { &*child })
        })
        .collect()
}

/// The remaining number of nodes.
struct Budget {
    nodes: usize,
}

impl Budget {
    fn spend(&mut self, depth: usize) -> PyResult<usize> {
        self.nodes =
            self.nodes.checked_sub(1).ok_or_else(|| broken("the type has too many nodes"))?;
        depth.checked_sub(1).ok_or_else(|| {
            broken(format!("the type is nested more than {DEPTH_LIMIT} levels deep"))
        })
    }
}

/// # Safety
/// `text` is null or ends with a NUL.
unsafe fn text<'a>(what: &str, text: *const c_char) -> PyResult<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| broken(format!("{what} is not UTF-8")))
}

/// Returns the bytes of a field's metadata: a count of pairs, then each key and value preceded by its
/// size. All numbers have 32 bits.
///
/// # Safety
/// `metadata` is null or has this form.
unsafe fn metadata_of<'a>(metadata: *const c_char) -> PyResult<Option<&'a [u8]>> {
    if metadata.is_null() {
        return Ok(None);
    }
    let start = metadata.cast::<u8>();
    let number = |at: usize| {
        // SAFETY: as the caller promises.
        let value = unsafe { start.add(at).cast::<i32>().read_unaligned() };
        usize::try_from(value)
            .ok()
            .filter(|&value| value <= METADATA_LIMIT)
            .ok_or_else(|| broken(format!("the metadata has the size or count {value}")))
    };
    let mut bytes = 4;
    for _ in 0..2 * number(0)? {
        bytes += 4 + number(bytes)?;
        if bytes > METADATA_LIMIT {
            return Err(broken(format!("the metadata has more than {METADATA_LIMIT} bytes")));
        }
    }
    // SAFETY: the sizes have just been read.
    Ok(Some(unsafe { std::slice::from_raw_parts(start, bytes) }))
}

/// # Safety
/// The structure is valid, except for the properties that are checked here.
unsafe fn read_schema<'py>(
    py: Python<'py>,
    schema: &ArrowSchema,
    depth: usize,
    budget: &mut Budget,
) -> PyResult<Bound<'py, PyAny>> {
    let depth = budget.spend(depth)?;
    if schema.release.is_none() {
        return Err(broken("a type was released"));
    }
    // SAFETY: the texts and metadata are valid until the structure is released.
    let (format, name, metadata) = unsafe {
        (
            text("the format", schema.format)?.ok_or_else(|| broken("the format is null"))?,
            text("the field's name", schema.name)?.unwrap_or(""),
            metadata_of(schema.metadata)?.map(|bytes| PyBytes::new(py, bytes)),
        )
    };
    // SAFETY: the pointers are valid unless they are null.
    let children = unsafe { children_of(schema.n_children, schema.children)? };
    let children = children.into_iter().map(|child| {
        // SAFETY: as for the parent.
        unsafe { read_schema(py, child, depth, budget) }
    });
    let children = children.collect::<PyResult<Vec<_>>>()?;
    // SAFETY: as above.
    let dictionary = unsafe { schema.dictionary.as_ref() }
        .map(|dictionary| {
            // SAFETY: as above.
            unsafe { read_schema(py, dictionary, depth, budget) }
        })
        .transpose()?;
    let tree = (format, name, metadata, schema.flags, children, dictionary);
    Ok(tree.into_pyobject(py)?.into_any())
}

/// # Safety
/// As for `read_schema`.
unsafe fn read_array<'py>(
    py: Python<'py>,
    array: &ArrowArray,
    depth: usize,
    budget: &mut Budget,
) -> PyResult<Bound<'py, PyAny>> {
    let depth = budget.spend(depth)?;
    if array.release.is_none() {
        return Err(broken("a column was released"));
    }
    let (length, null_count, offset) = (array.length, array.null_count, array.offset);
    if length < 0 || offset < 0 || null_count < -1 || null_count > length {
        return Err(broken(format!(
            "length is {length}, offset {offset} and null_count {null_count}"
        )));
    }
    if length.checked_add(offset).is_none() {
        return Err(broken(format!("length {length} and offset {offset} do not fit")));
    }
    let count = array.n_buffers;
    if !(0..=BUFFER_LIMIT).contains(&count) {
        return Err(broken(format!("n_buffers is {count}; allowed are 0 to {BUFFER_LIMIT}")));
    }
    if count > 0 && (array.buffers.is_null() || !array.buffers.is_aligned()) {
        return Err(broken(format!("n_buffers is {count}, and buffers is {:?}", array.buffers)));
    }
    let buffers: Vec<usize> = if count == 0 {
        Vec::new()
    } else {
        // SAFETY: the list is valid and has this many entries.
        let list = unsafe { std::slice::from_raw_parts(array.buffers, count as usize) };
        list.iter().map(|&buffer| buffer as usize).collect()
    };
    // SAFETY: the pointers are valid unless they are null.
    let children = unsafe { children_of(array.n_children, array.children)? };
    let children = children.into_iter().map(|child| {
        // SAFETY: as for the parent.
        unsafe { read_array(py, child, depth, budget) }
    });
    let children = children.collect::<PyResult<Vec<_>>>()?;
    // SAFETY: as above.
    let dictionary = unsafe { array.dictionary.as_ref() }
        .map(|dictionary| {
            // SAFETY: as above.
            unsafe { read_array(py, dictionary, depth, budget) }
        })
        .transpose()?;
    let tree = (length, null_count, offset, buffers, children, dictionary);
    Ok(tree.into_pyobject(py)?.into_any())
}

/// Consumes a capsule "arrow_schema", and returns format, name, metadata, flags, children and
/// dictionary.
///
/// Raises BufferError for a structure that is released or breaks the interface's rules.
#[pyfunction]
pub(crate) fn arrow_schema<'py>(capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let schema = take::<ArrowSchema>(capsule)?;
    // SAFETY: the structure is valid until it is released, at the end of this function.
    unsafe { read_schema(capsule.py(), &schema.0, DEPTH_LIMIT, &mut Budget { nodes: NODE_LIMIT }) }
}

/// The owner; length, null count, offset, addresses of the buffers, children and dictionary; the type
/// and number of the device; the handle of the event, or 0.
type DeviceArrayParts<'py> = (ArrowOwner, Bound<'py, PyAny>, (i32, i64), usize);

/// Consumes a capsule "arrow_device_array". The first returned object owns its content.
///
/// Raises BufferError for a structure that is released or breaks the interface's rules.
#[pyfunction]
pub(crate) fn arrow_device_array<'py>(
    capsule: &Bound<'py, PyAny>,
) -> PyResult<DeviceArrayParts<'py>> {
    let taken = take::<ArrowDeviceArray>(capsule)?;
    let structure = &*taken.0;
    let mut budget = Budget { nodes: NODE_LIMIT };
    // SAFETY: the structure is valid until it is released.
    let tree = unsafe { read_array(capsule.py(), &structure.array, DEPTH_LIMIT, &mut budget)? };
    let event = structure.sync_event.cast::<*mut c_void>();
    if !event.is_aligned() {
        return Err(broken(format!("sync_event is {event:?}")));
    }
    // SAFETY: a pointer that is not null points to an event's handle.
    let event = if event.is_null() { 0 } else { unsafe { event.read() as usize } };
    let device = (structure.device_type, structure.device_id);
    Ok((ArrowOwner { _array: taken }, tree, device, event))
}

/// Makes a stream wait for an event of another library, given by its handle.
///
/// The event must be alive during the call.
#[pyfunction]
pub(crate) fn wait_for_external_event(
    handle: u64,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let current = current_device()?;
    let stream = stream_argument(stream, &current)?;
    // SAFETY: as with every GPU library, code that passes a handle is responsible for it.
    let event = unsafe { current.device.event_from_handle(handle) }.or_raise()?;
    recording::wait_event(stream.as_ref(), event.as_ref()).or_raise()
}
