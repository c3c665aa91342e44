//! numpy arrays as host memory: address, layout and dtype of an argument, and creation of arrays.

use crate::dtypes;
use crate::errors::OrRaise;
use gpuarray::layout::dense_layout;
use gpuarray::{Error, Layout};
use hal::operation::Strides;
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, get_type_object, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyWeakrefMethods, PyWeakrefReference};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

/// A numpy array.
pub(crate) type HostArray<'py> = Bound<'py, PyUntypedArray>;

/// Returns the name of an object's class, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// Returns the hint that errors add if a numpy array was passed instead of device memory.
pub(crate) fn copy_hint(value: &Bound<'_, PyAny>) -> &'static str {
    match value.is_instance_of::<PyUntypedArray>() {
        true => "; gpuarray.to_gpu copies a numpy array to the device",
        false => "",
    }
}

/// Returns the address of an array's first element. The program can give an array other memory at any time,
/// which frees the memory at this address: no Python code may run between this call and the last use.
pub(crate) fn data(array: &HostArray<'_>) -> *mut u8 {
    // SAFETY: the object is a live numpy array, whose structure has this field.
    unsafe { (*array.as_array_ptr()).fields.data.cast() }
}

/// Returns the object that owns an array's memory, unless the array itself does. The program can replace it at
/// any time.
pub(crate) fn base<'py>(array: &HostArray<'py>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the object is a live numpy array, whose base is an object or null.
    unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), (*array.as_array_ptr()).fields.base) }
}

/// Returns true if the program may write to the array.
pub(crate) fn is_writable(array: &HostArray<'_>) -> bool {
    // SAFETY: as above.
    unsafe { (*array.as_array_ptr()).fields.flags & NPY_ARRAY_WRITEABLE != 0 }
}

/// Returns the bytes of all elements.
fn nbytes(array: &HostArray<'_>) -> usize {
    array.len() * itemsize(array)
}

/// Returns the bytes per element.
pub(crate) fn itemsize(array: &HostArray<'_>) -> usize {
    array.dtype().itemsize()
}

/// Returns the object as a numpy array; numpy scalars become arrays without axes.
///
/// Raises `TypeError` that names the argument for any other object.
pub(crate) fn expect_array<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<HostArray<'py>> {
    if let Ok(array) = value.cast::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    if is_numpy_scalar(value)? {
        let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
        return Ok(array.cast_into::<PyUntypedArray>()?);
    }
    Err(PyTypeError::new_err(format!(
        "{name} is of type {}; a numpy array is needed",
        value.get_type().name()?
    )))
}

/// Returns true for objects such as `numpy.float32(1)`.
pub(crate) fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    use pyo3::sync::PyOnceLock;
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let generic = GENERIC
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("generic")?.unbind()))?;
    value.is_instance(generic.bind(py))
}

/// Returns the contiguous layout with its axes in the array's memory order.
pub(crate) fn dense_like(array: &HostArray<'_>, itemsize: usize) -> PyResult<Layout> {
    let strides = Strides::from_slice(array.strides());
    dense_layout(array.shape(), &[&strides], itemsize).or_raise()
}

/// Returns true if both have the same strides along each axis with more than one element.
fn same_order(array: &HostArray<'_>, layout: &Layout) -> bool {
    let axes = array.shape().iter().zip(array.strides()).zip(layout.strides());
    layout.size() == 0 || axes.into_iter().all(|((&extent, a), b)| extent == 1 || a == b)
}

fn changed() -> PyErr {
    PyRuntimeError::new_err("the numpy array was changed by code that ran during the copy")
}

/// Raises `RuntimeError` unless an array has the shape of a layout and elements of `size` bytes. Code of the
/// program, such as an allocator, may have changed the array since the last check.
pub(crate) fn check_shape(array: &HostArray<'_>, layout: &Layout, size: usize) -> PyResult<()> {
    match array.shape() == layout.shape() && itemsize(array) == size {
        true => Ok(()),
        false => Err(changed()),
    }
}

/// Like [`data`], for an array whose elements, of `size` bytes, are arranged as in the layout.
///
/// Raises `RuntimeError` if they no longer are, or if they are to be written and the array is read-only.
pub(crate) fn data_as(
    array: &HostArray<'_>,
    layout: &Layout,
    size: usize,
    writable: bool,
) -> PyResult<*mut u8> {
    check_shape(array, layout, size)?;
    match same_order(array, layout) && (!writable || is_writable(array)) {
        true => Ok(data(array)),
        false => Err(changed()),
    }
}

/// Returns a new array with undefined elements, and the shape and strides of a contiguous layout.
pub(crate) fn empty<'py>(
    py: Python<'py>,
    descr: &Bound<'py, PyArrayDescr>,
    layout: &Layout,
) -> PyResult<HostArray<'py>> {
    // SAFETY: without data, numpy allocates the bytes of all elements, and the strides of a contiguous layout
    // stay inside them.
    unsafe { new_array(py, descr, layout.shape(), layout.strides(), null_mut(), None) }
}

/// # Safety
/// `data`, if not null, is memory that the strides stay inside, and that lives as long as `base`.
pub(crate) unsafe fn new_array<'py>(
    py: Python<'py>,
    descr: &Bound<'py, PyArrayDescr>,
    shape: &[usize],
    strides: &[isize],
    data: *mut c_void,
    base: Option<Bound<'py, PyAny>>,
) -> PyResult<HostArray<'py>> {
    let mut dims: Vec<npy_intp> = shape.iter().map(|&extent| extent as npy_intp).collect();
    let mut strides: Vec<npy_intp> = strides.iter().map(|&stride| stride as npy_intp).collect();
    // SAFETY: the pointers are to as many numbers as there are axes; the call takes ownership of the
    // references to the dtype and to the base.
    unsafe {
        let object = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            descr.clone().into_ptr().cast(),
            dims.len() as i32,
            dims.as_mut_ptr(),
            strides.as_mut_ptr(),
            data,
            if data.is_null() { 0 } else { NPY_ARRAY_WRITEABLE },
            null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, object)?;
        if let Some(base) = base
            && PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) != 0
        {
            return Err(PyErr::fetch(py));
        }
        Ok(array.cast_into_unchecked())
    }
}

/// Returns the array itself if its elements, of `size` bytes, are arranged as in the layout, else a copy that
/// is.
pub(crate) fn arranged<'py>(
    array: &HostArray<'py>,
    layout: &Layout,
    size: usize,
) -> PyResult<HostArray<'py>> {
    check_shape(array, layout, size)?;
    if same_order(array, layout) {
        return Ok(array.clone());
    }
    let copy = empty(array.py(), &array.dtype(), layout)?;
    copy_into(&copy, array)?;
    Ok(copy)
}

/// Returns true if bytes can be moved between the array and a contiguous layout as one block.
pub(crate) fn is_arranged(array: &HostArray<'_>, layout: &Layout) -> bool {
    same_order(array, layout)
}

/// Executes numpy's assignment `to[...] = from`.
pub(crate) fn copy_into(to: &HostArray<'_>, from: &HostArray<'_>) -> PyResult<()> {
    // SAFETY: both are live numpy arrays.
    let status =
        unsafe { PY_ARRAY_API.PyArray_CopyInto(to.py(), to.as_array_ptr(), from.as_array_ptr()) };
    if status == 0 { Ok(()) } else { Err(PyErr::fetch(to.py())) }
}

/// A range of host memory that an object of the program owns.
pub(crate) struct HostRange<'py> {
    pub(crate) pointer: *mut u8,
    pub(crate) bytes: usize,
    /// Keeps the memory alive, unless the program gives the array other memory.
    owner: HostArray<'py>,
}

impl HostRange<'_> {
    /// Raises `RuntimeError` if the object has other memory by now. Code of the program that has run since,
    /// such as the `__index__` of another argument, may have replaced it.
    pub(crate) fn check(&self) -> PyResult<()> {
        match data(&self.owner) == self.pointer && extent(&self.owner)? >= self.bytes {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// Returns the bytes from an array's first element to the end of its last.
///
/// Raises `ValueError` if an element comes before the first in memory.
fn extent(array: &HostArray<'_>) -> PyResult<usize> {
    let strides = Strides::from_slice(array.strides());
    let layout = Layout::with_strides(array.shape(), &strides, 0, itemsize(array)).or_raise()?;
    Ok(layout.extent().end)
}

/// Returns the object as an array whose bytes may be copied: a numpy array, a numpy scalar, or any object with
/// Python's buffer protocol.
///
/// Raises `TypeError` for elements that are Python objects, whose bytes are pointers, and
/// `ValueError` for a destination that cannot be written.
fn raw<'py>(name: &str, value: &Bound<'py, PyAny>, writable: bool) -> PyResult<HostArray<'py>> {
    let is_scalar = is_numpy_scalar(value)?;
    let array = if is_scalar || value.cast::<PyUntypedArray>().is_ok() {
        expect_array(name, value)?
    } else {
        of_buffer(name, value)?
    };
    if array.dtype().has_object() {
        return Err(holds_objects(name, &array.dtype().str()?.to_string()));
    }
    // A scalar was converted to a copy.
    if writable && (is_scalar || !is_writable(&array)) {
        return Err(PyValueError::new_err(format!(
            "{name} is read-only (of type {}); it cannot receive data",
            value.get_type().name()?
        )));
    }
    Ok(array)
}

fn holds_objects(name: &str, dtype: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{name} has dtype {dtype}: its elements are Python objects, whose bytes mean nothing on a \
         device"
    ))
}

/// Returns the bytes of an object with the buffer protocol.
fn of_buffer<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<HostArray<'py>> {
    let py = value.py();
    let view = PyMemoryView::from(value).map_err(|error| {
        let refused = PyTypeError::new_err(format!(
            "{name} is of type {}; a numpy array or an object with the buffer protocol is needed",
            type_name(value)
        ));
        refused.set_cause(py, Some(error));
        refused
    })?;
    let format: String = view.getattr("format")?.extract()?;
    // The names of a record's fields are between colons.
    if format.split(':').step_by(2).any(|part| part.contains('O')) {
        return Err(holds_objects(name, &format));
    }
    let bytes = py
        .import("numpy")?
        .call_method1("frombuffer", (view, dtypes::to_numpy(py, gpuarray::DType::UInt8)?))
        .map_err(|error| {
            let refused = PyValueError::new_err(format!("{name} is not contiguous; copy it first"));
            refused.set_cause(py, Some(error));
            refused
        })?;
    Ok(bytes.cast_into::<PyUntypedArray>()?)
}

/// Returns the bytes of host memory for a copy; raises the copy's errors before any work is done for it.
#[pyfunction]
pub(crate) fn host_memory_size(
    name: &str,
    value: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<usize> {
    block(name, value, writable).map(|block| block.bytes)
}

/// Returns the bytes of an object for a copy of raw memory: a numpy array in C or Fortran order, or any object
/// with Python's buffer protocol. Arrays with other orders of axes, such as an image with transposed channels,
/// are refused, because their elements would be copied in an unexpected order.
pub(crate) fn block<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    writable: bool,
) -> PyResult<HostRange<'py>> {
    let array = raw(name, value, writable)?;
    let strides = Strides::from_slice(array.strides());
    let layout = Layout::with_strides(array.shape(), &strides, 0, itemsize(&array));
    if !layout.is_ok_and(|layout| layout.is_c_contiguous() || layout.is_f_contiguous()) {
        return Err(PyValueError::new_err(format!(
            "{name} is not contiguous (shape {:?}, strides {:?}); copy it first",
            array.shape(),
            array.strides()
        )));
    }
    Ok(HostRange { pointer: data(&array), bytes: nbytes(&array), owner: array })
}

/// Returns the bytes from an object's first element to its last: a numpy array, which may have gaps but no
/// negative strides, or any object with Python's buffer protocol.
pub(crate) fn reach<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    writable: bool,
) -> PyResult<HostRange<'py>> {
    let array = raw(name, value, writable)?;
    Ok(HostRange { pointer: data(&array), bytes: extent(&array)?, owner: array })
}

/// Returns numpy's dtype object of an array, and the core's dtype.
pub(crate) fn dtype_of<'py>(
    array: &HostArray<'py>,
) -> PyResult<(Bound<'py, PyArrayDescr>, gpuarray::DType)> {
    let descr = array.dtype();
    let dtype = dtypes::from_numpy(&descr)?;
    Ok((descr, dtype))
}

/// Returns the error for arrays of different shapes.
pub(crate) fn same_size_error(what: &str, device: &[usize], host: &[usize]) -> PyErr {
    crate::errors::to_python(Error::invalid(
        "transfer",
        format!(
            "{what}: the device array has shape {}, the host array {}",
            gpuarray::layout::shape_text(device),
            gpuarray::layout::shape_text(host)
        ),
    ))
}

// A weak reference to the numpy array that an allocation of host memory was made for.

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
