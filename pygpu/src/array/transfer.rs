//! Transfers between numpy arrays and device arrays.

use super::host_copies::{fetch, store};
use super::{Content, GPUArray, wrap_new};
use crate::allocator::ResultAllocator;
use crate::current_device::{CurrentDevice, current_device};
use crate::errors::OrRaise;
use crate::numpy_array::{self, HostArray};
use crate::profile::at_line;
use crate::stream::stream_argument;
use crate::synchronize::run;
use gpuarray::{Array, DType};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// Returns the array with its operations on the stream of an argument.
pub(crate) fn on_stream(array: &Array, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
    match stream.filter(|stream| !stream.is_none()) {
        None => Ok(array.clone()),
        Some(stream) => {
            let stream = stream_argument(Some(stream), &current_device()?)?;
            array.on(&stream).or_raise()
        }
    }
}

/// Copies a numpy array or a device array to the device, with its axes in the same memory order.
#[pyfunction]
#[pyo3(signature = (ary, allocator = None, stream = None, wait = true))]
pub(crate) fn to_gpu<'py>(
    py: Python<'py>,
    ary: &Bound<'py, PyAny>,
    allocator: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
    wait: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let _line = at_line(py);
    let from = Source::new(ary)?;
    let (descr, dtype, layout) = match &from {
        Source::Host(array) => {
            let (descr, dtype) = numpy_array::dtype_of(array)?;
            (descr, dtype, numpy_array::dense_like(array, dtype.size())?)
        }
        Source::Device(content) => {
            let (array, dtype) = (&content.array, content.array.dtype());
            let layout = array.layout().dense_like(dtype.size()).or_raise()?;
            (content.descr.bind(py).clone(), dtype, layout)
        }
    };
    let result_allocator = ResultAllocator::from_argument(allocator)?;
    let CurrentDevice { device, stream: default } = current_device()?;
    let array = match &result_allocator.allocator {
        Some(own) if layout.size() > 0 => own
            .allocate(&device, &default, layout.extent().end)
            .and_then(|memory| Array::from_memory(memory, layout, dtype, default.clone())),
        _ => Array::with_new_memory(&device, &default, layout, dtype),
    };
    let array = array.or_raise()?.with_allocator(result_allocator.allocator.clone());
    from.store_in(py, &on_stream(&array, stream)?, wait)?;
    wrap_new(py, array, descr.unbind(), result_allocator)
}

/// The source of a copy.
enum Source<'a, 'py> {
    Host(HostArray<'py>),
    Device(&'a Content),
}

impl<'a, 'py> Source<'a, 'py> {
    fn new(ary: &'a Bound<'py, PyAny>) -> PyResult<Source<'a, 'py>> {
        match ary.cast::<GPUArray>() {
            Ok(array) => Ok(Source::Device(array.get().content()?)),
            Err(_) => Ok(Source::Host(numpy_array::expect_array("ary", ary)?)),
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Source::Host(array) => array.shape(),
            Source::Device(content) => content.array.shape(),
        }
    }

    fn dtype(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        match self {
            Source::Host(array) => array.dtype(),
            Source::Device(content) => content.descr.bind(py).clone(),
        }
    }

    fn store_in(&self, py: Python<'py>, array: &Array, wait: bool) -> PyResult<()> {
        match self {
            Source::Host(from) => store(py, array, from, wait),
            Source::Device(from) => run(py, array.size(), || array.assign(&from.array)),
        }
    }
}

fn asynchronous(async_: bool, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let Some(kwargs) = kwargs else {
        return Ok(async_);
    };
    let mut result = async_;
    for (name, value) in kwargs {
        // PyCUDA's name for this argument, before it became a keyword of Python.
        if name.eq("async")? {
            result = value.is_truthy()?;
        } else {
            return Err(PyTypeError::new_err(format!("unexpected keyword argument '{name}'")));
        }
    }
    Ok(result)
}

fn check_dtype(content: &Content, other: &Bound<'_, PyArrayDescr>) -> PyResult<bool> {
    let own = content.descr.bind(other.py());
    if own.is_equiv_to(other) {
        return Ok(true);
    }
    // The device treats all records of the same size alike.
    let is_record = matches!(content.array.dtype(), DType::Opaque(_));
    Ok(is_record && own.as_any().eq(other.as_any())?)
}

#[pymethods]
impl GPUArray {
    /// Sets the elements from a numpy array, or from another device array.
    ///
    /// Parameters
    /// ----------
    /// ary : numpy.ndarray or GPUArray
    ///     The source, with the same number of elements and the same dtype.
    /// async_ : bool, optional. True to return after the copy is queued. Then `ary` must be
    ///     page-locked for the copy to overlap, and must not change until the copy has run.
    /// stream : Stream, optional. The stream on which the copy is queued.
    /// **kwargs : bool. `async`, the name of `async_` before it became a keyword of Python.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `ary` is neither a numpy array nor a GPUArray.
    /// ValueError
    ///     `ary` has another size or dtype.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import gpuarray
    /// >>> a = gpuarray.zeros(3, np.float32)
    /// >>> a.set(np.ones(3, np.float32))
    /// >>> a.get()
    /// array([1., 1., 1.], dtype=float32)
    #[pyo3(signature = (ary, async_ = false, stream = None, **kwargs))]
    fn set(
        &self,
        py: Python<'_>,
        ary: &Bound<'_, PyAny>,
        async_: bool,
        stream: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let async_ = asynchronous(async_, kwargs)?;
        let content = self.content()?;
        let from = Source::new(ary)?;
        let (shape, given, dtype) = (content.array.shape(), from.shape(), from.dtype(py));
        if given.iter().product::<usize>() != content.array.size() {
            return Err(numpy_array::same_size_error(
                "ary and self must be the same size",
                shape,
                given,
            ));
        }
        if !check_dtype(content, &dtype)? {
            return Err(PyValueError::new_err(format!(
                "ary and self must have the same dtype; they have {dtype} and {}",
                content.descr.bind(py)
            )));
        }
        let array = on_stream(&content.array, stream)?;
        if given == shape {
            return from.store_in(py, &array, !async_);
        }
        warn::<PyUserWarning>(py, c"Setting array from one with different shape.")?;
        let ary = ary.call_method1("reshape", (shape,))?;
        Source::new(&ary)?.store_in(py, &array, !async_)
    }

    /// Queues a copy from a numpy array, like `set` with `async_=True`.
    ///
    /// Parameters
    /// ----------
    /// ary : numpy.ndarray
    ///     The source, with the same number of elements and the same dtype, in page-locked memory if
    ///     the copy is to overlap with other work. It must not change until the copy has run.
    /// stream : Stream, optional. The stream on which the copy is queued.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `ary` is not a numpy array.
    /// ValueError
    ///     `ary` has another size or dtype.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import driver, gpuarray
    /// >>> stream, host = driver.Stream(), driver.pagelocked_zeros(3, np.float32)
    /// >>> a = gpuarray.empty(3, np.float32)
    /// >>> a.set_async(host, stream)
    /// >>> stream.synchronize()
    #[pyo3(signature = (ary, stream = None))]
    fn set_async(
        &self,
        py: Python<'_>,
        ary: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.set(py, ary, true, stream, None)
    }

    /// Returns the elements as a numpy array.
    ///
    /// Parameters
    /// ----------
    /// ary : numpy.ndarray, optional
    ///     Receives the elements and is returned; it has the same number of elements and the same
    ///     dtype. If omitted, a new array with the same memory order is created.
    /// pagelocked : bool, optional. True for a new array in page-locked memory.
    /// async_ : bool, optional. True to return after the copy is queued.
    /// stream : Stream, optional. The stream on which the copy is queued.
    /// **kwargs : bool. `async`, the name of `async_` before it became a keyword of Python.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     The new array, or `ary`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `ary` has another size, or is read-only.
    /// TypeError
    ///     `ary` is not a numpy array, or has another dtype.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import gpuarray
    /// >>> gpuarray.arange(3).get()
    /// array([0, 1, 2])
    #[pyo3(signature = (ary = None, pagelocked = false, async_ = false, stream = None, **kwargs))]
    pub(crate) fn get<'py>(
        &self,
        py: Python<'py>,
        ary: Option<&Bound<'py, PyAny>>,
        pagelocked: bool,
        async_: bool,
        stream: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<HostArray<'py>> {
        let async_ = asynchronous(async_, kwargs)?;
        let content = self.content()?;
        let array = on_stream(&content.array, stream)?;
        let Some(ary) = ary.filter(|ary| !ary.is_none()) else {
            let layout = array.layout().dense_like(array.dtype().size()).or_raise()?;
            let to = if pagelocked {
                let (shape, descr) = (self.shape_object(py)?, content.descr.bind(py));
                let order = if layout.is_c_contiguous() { "C" } else { "F" };
                crate::pinned::pagelocked_empty(py, &shape, descr, Some(order), 0)?
            } else {
                numpy_array::empty(py, content.descr.bind(py), &layout)?
            };
            fetch(py, &array, &to, !async_)?;
            return Ok(to);
        };
        let given = numpy_array::expect_array("ary", ary)?;
        if given.len() != array.size() {
            return Err(numpy_array::same_size_error(
                "self and ary must be the same size",
                array.shape(),
                given.shape(),
            ));
        }
        if !check_dtype(content, &given.dtype())? {
            return Err(PyTypeError::new_err(format!(
                "self and ary must have the same dtype; they have {} and {}",
                content.descr.bind(py),
                given.dtype()
            )));
        }
        if !numpy_array::is_writable(&given) {
            return Err(PyValueError::new_err("ary is read-only; it cannot receive data"));
        }
        if given.shape() == array.shape() {
            fetch(py, &array, &given, !async_)?;
            return Ok(given);
        }
        warn::<PyDeprecationWarning>(py, c"get() between arrays of different shape is deprecated")?;
        let to = reshaped(&given, array.shape())?;
        if !same_memory(&to, &given) {
            return Err(PyValueError::new_err(
                "ary cannot be given the shape of self without a copy; pass an array of that shape",
            ));
        }
        fetch(py, &array, &to, !async_)?;
        Ok(to)
    }

    /// Queues a copy into a numpy array and returns that array, like `get` with `async_=True`.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional. The stream on which the copy is queued.
    /// ary : numpy.ndarray, optional
    ///     Receives the elements; it has the same number of elements and the same dtype, in
    ///     page-locked memory if the copy is to overlap with other work. If omitted, a new array in
    ///     ordinary memory is created; a copy to such memory is done when the call returns.
    ///
    /// Returns
    /// -------
    /// numpy.ndarray
    ///     The new array, or `ary`. In page-locked memory, the elements are valid after the stream's
    ///     work has run.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `ary` has another size, or is read-only.
    /// TypeError
    ///     `ary` is not a numpy array, or has another dtype.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import driver, gpuarray
    /// >>> stream, host = driver.Stream(), driver.pagelocked_empty(3, np.int64)
    /// >>> _ = gpuarray.arange(3).get_async(stream, host)
    /// >>> stream.synchronize()
    /// >>> host
    /// array([0, 1, 2])
    #[pyo3(signature = (stream = None, ary = None))]
    fn get_async<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        ary: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<HostArray<'py>> {
        self.get(py, ary, false, true, stream, None)
    }

    /// Refuses an implicit conversion to a numpy array; use `get` to copy to the host.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     Always.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        &self,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (dtype, copy);
        Err(PyTypeError::new_err(
            "a GPUArray does not become a numpy array by itself: a.get() copies it to the host. \
             Functions on the \
             device are Python's operators (a + b for numpy.add(a, b)), pygpu.cumath (cumath.exp(a) for \
             numpy.exp(a)) and pygpu.gpuarray (gpuarray.sum(a) for numpy.sum(a))",
        ))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.get(py, None, false, false, None, None)?.str()?.to_string())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.get(py, None, false, false, None, None)?.repr()?.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let py = slf.py();
        let rebuild = py.import("pygpu.gpuarray")?.getattr("_rebuild")?;
        let data = slf.get().get(py, None, false, false, None, None)?;
        let class: Bound<'_, PyType> = slf.get_type();
        Ok((rebuild, (class, data).into_pyobject(py)?.into_any()))
    }
}

impl GPUArray {
    fn shape_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pyo3::types::PyTuple::new(py, self.array()?.shape())?.into_any())
    }
}

/// Returns the elements of a host array with another shape.
pub(super) fn reshaped<'py>(array: &HostArray<'py>, shape: &[usize]) -> PyResult<HostArray<'py>> {
    let shape = pyo3::types::PyTuple::new(array.py(), shape)?;
    Ok(array.call_method1("reshape", (shape,))?.cast_into()?)
}

fn same_memory(a: &HostArray<'_>, b: &HostArray<'_>) -> bool {
    numpy_array::data(a) == numpy_array::data(b)
}

fn warn<W: pyo3::type_object::PyTypeInfo>(py: Python<'_>, text: &std::ffi::CStr) -> PyResult<()> {
    PyErr::warn(py, &py.get_type::<W>(), text, 2)
}
