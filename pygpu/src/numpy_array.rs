//! numpy arrays as host memory: address, layout and dtype of an argument, and new arrays.

use crate::dtypes;
use crate::errors::OrRaise;
use gpuarray::layout::dense_layout;
use gpuarray::{Error, Layout};
use hal::operation::Strides;
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NpyTypes, PY_ARRAY_API, get_type_object, npy_intp};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use std::ffi::c_void;
use std::ptr::null_mut;

/// A numpy array.
pub(crate) type HostArray<'py> = Bound<'py, PyUntypedArray>;

/// The name of an object's class, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}

/// What errors add where a numpy array was given in place of memory of the device.
pub(crate) fn copy_hint(value: &Bound<'_, PyAny>) -> &'static str {
    match value.is_instance_of::<PyUntypedArray>() {
        true => "; gpuarray.to_gpu copies a numpy array to the device",
        false => "",
    }
}

/// The address of an array's first element. The program can give an array other memory at any time, and the
/// address is that of freed memory then: no code of Python may run between this and the last use.
pub(crate) fn data(array: &HostArray<'_>) -> *mut u8 {
    // SAFETY: the object is a live numpy array, whose structure has this field.
    unsafe { (*array.as_array_ptr()).fields.data.cast() }
}

/// The object that an array's memory belongs to, if it is not the array's own. The program can give the
/// array another one at any time.
pub(crate) fn base<'py>(array: &HostArray<'py>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: the object is a live numpy array, whose base is an object or null.
    unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), (*array.as_array_ptr()).fields.base) }
}

/// True if the program may write the array.
pub(crate) fn is_writable(array: &HostArray<'_>) -> bool {
    // SAFETY: as above.
    unsafe { (*array.as_array_ptr()).fields.flags & NPY_ARRAY_WRITEABLE != 0 }
}

/// Bytes of all elements.
fn nbytes(array: &HostArray<'_>) -> usize {
    array.len() * itemsize(array)
}

/// Bytes per element.
pub(crate) fn itemsize(array: &HostArray<'_>) -> usize {
    array.dtype().itemsize()
}

/// The object as a numpy array; numpy's scalars become arrays without axes.
///
/// Raises `TypeError` that names the argument for anything else.
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

/// True for objects such as `numpy.float32(1)`.
pub(crate) fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    use pyo3::sync::PyOnceLock;
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    let generic = GENERIC
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("generic")?.unbind()))?;
    value.is_instance(generic.bind(py))
}

/// The layout without gaps whose axes follow each other as the array's do.
pub(crate) fn dense_like(array: &HostArray<'_>, itemsize: usize) -> PyResult<Layout> {
    let strides = Strides::from_slice(array.strides());
    dense_layout(array.shape(), &[&strides], itemsize).or_raise()
}

/// True if both have the same strides wherever an axis has more than one element.
fn same_order(array: &HostArray<'_>, layout: &Layout) -> bool {
    let axes = array.shape().iter().zip(array.strides()).zip(layout.strides());
    layout.size() == 0 || axes.into_iter().all(|((&extent, a), b)| extent == 1 || a == b)
}

fn changed() -> PyErr {
    PyRuntimeError::new_err("the numpy array was changed by code that ran during the copy")
}

/// Raises `RuntimeError` unless an array has the shape of a layout and elements of so many bytes: code of
/// the program, such as an allocator, may have changed it since that was looked at.
pub(crate) fn check_shape(array: &HostArray<'_>, layout: &Layout, size: usize) -> PyResult<()> {
    match array.shape() == layout.shape() && itemsize(array) == size {
        true => Ok(()),
        false => Err(changed()),
    }
}

/// As [`data`], for an array whose elements, of `size` bytes, lie in memory as the layout says.
///
/// Raises `RuntimeError` if they do no longer, or if they are to be written and cannot.
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

/// A new array, its elements undefined, with the shape and strides of a layout without gaps.
pub(crate) fn empty<'py>(
    py: Python<'py>,
    descr: &Bound<'py, PyArrayDescr>,
    layout: &Layout,
) -> PyResult<HostArray<'py>> {
    // SAFETY: without data numpy allocates as many bytes as the elements have, which the
    // strides of a layout without gaps stay inside.
    unsafe { new_array(py, descr, layout.shape(), layout.strides(), null_mut(), None) }
}

/// # Safety
/// `data`, if not null, is memory that the strides stay inside, alive as long as `base`.
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
    // SAFETY: the pointers are to as many numbers as there are axes; the call takes over the
    // reference to the dtype; the base's reference is taken over likewise.
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

/// The array itself if its elements, of `size` bytes, lie in memory as the layout says, else a copy that does.
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

/// True if bytes can be moved between the array and a layout without gaps as one block.
pub(crate) fn is_arranged(array: &HostArray<'_>, layout: &Layout) -> bool {
    same_order(array, layout)
}

/// numpy's assignment `to[...] = from`.
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
    /// Raises `RuntimeError` if the object has other memory by now: code of the program that has run since,
    /// such as the `__index__` of another argument, may have seen to that.
    pub(crate) fn check(&self) -> PyResult<()> {
        match data(&self.owner) == self.pointer && extent(&self.owner)? >= self.bytes {
            true => Ok(()),
            false => Err(changed()),
        }
    }
}

/// The bytes from an array's first element to the end of its last.
///
/// Raises `ValueError` if an element lies before the first.
fn extent(array: &HostArray<'_>) -> PyResult<usize> {
    let strides = Strides::from_slice(array.strides());
    let layout = Layout::with_strides(array.shape(), &strides, 0, itemsize(array)).or_raise()?;
    Ok(layout.extent().end)
}

/// The object as an array whose bytes may be copied: a numpy array, one of numpy's scalars, or
/// anything with Python's buffer protocol.
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
    // What the scalar was made to is a copy of it.
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

/// The bytes of an object with the buffer protocol.
fn of_buffer<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<HostArray<'py>> {
    let py = value.py();
    let view = PyMemoryView::from(value).map_err(|error| {
        let refused = PyTypeError::new_err(format!(
            "{name} is of type {}; a numpy array or an object with the buffer protocol is needed",
            value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
        ));
        refused.set_cause(py, Some(error));
        refused
    })?;
    let format: String = view.getattr("format")?.extract()?;
    // The names of a record's fields stand between colons.
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

/// The bytes of host memory for a copy; raises what the copy would, before anything is done for it.
#[pyfunction]
pub(crate) fn host_memory_size(
    name: &str,
    value: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<usize> {
    block(name, value, writable).map(|block| block.bytes)
}

/// The bytes of an object for a copy of raw memory: a numpy array in C or Fortran order, or anything
/// with Python's buffer protocol. A program that copies an array of other axes, as an image whose channels
/// it has moved, would not find its elements in the order that it means.
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

/// The bytes from an object's first element to its last: a numpy array, which may have gaps
/// but no negative strides, or anything with Python's buffer protocol.
pub(crate) fn reach<'py>(
    name: &str,
    value: &Bound<'py, PyAny>,
    writable: bool,
) -> PyResult<HostRange<'py>> {
    let array = raw(name, value, writable)?;
    Ok(HostRange { pointer: data(&array), bytes: extent(&array)?, owner: array })
}

/// The dtype of an array as the core's, with numpy's object for it.
pub(crate) fn dtype_of<'py>(
    array: &HostArray<'py>,
) -> PyResult<(Bound<'py, PyArrayDescr>, gpuarray::DType)> {
    let descr = array.dtype();
    let dtype = dtypes::from_numpy(&descr)?;
    Ok((descr, dtype))
}

/// Refuses arrays of different shapes.
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
