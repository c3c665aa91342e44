//! Host arrays as a kernel's arguments, copied to the device before it runs or back afterwards.

use crate::allocation::mem_alloc_ordered;
use crate::copies::{copy_to_device, copy_to_host, fill_memory};
use crate::numpy_array::host_memory_size;
use crate::owner::Filled;
use hal::poison::Unpoisoned as _;
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Mutex, MutexGuard};

/// Represents an array in host memory among a kernel's arguments. It is the base of :class:`In`, :class:`Out`,
/// :class:`InOut` and of a program's own handlers.
///
/// A subclass's ``pre_call`` is called before the kernel is launched, and its ``post_call``, if any, after the
/// kernel has run. The argument of both is the stream of the call, or None.
///
/// Parameters
/// ----------
/// ary : numpy.ndarray or buffer. The array, available as the attribute ``array``. The kernel's
///     argument is new device memory of its size, :meth:`get_device_alloc`.
///
/// Examples
/// --------
/// >>> class Zeros(driver.ArgumentHandler):
/// ...     def pre_call(self, stream):
/// ...         memory = self.get_device_alloc()
/// ...         driver.memset_d8(memory, 0, self.array.nbytes)
/// >>> handler = Zeros(np.ones(3, np.float32))
/// >>> handler.pre_call(None)
/// >>> driver.from_device_like(handler.get_device_alloc(), handler.array)
/// array([0., 0., 0.], dtype=float32)
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu.driver")]
pub(crate) struct ArgumentHandler {
    parts: Mutex<Parts>,
    filled: Filled,
}

#[derive(Default)]
struct Parts {
    array: Option<Py<PyAny>>,
    memory: Option<Py<PyAny>>,
}

impl ArgumentHandler {
    fn new() -> ArgumentHandler {
        ArgumentHandler { parts: Mutex::default(), filled: Filled::new() }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // Two references stay valid even if a thread panicked.
        self.parts.lock().unpoisoned()
    }

    /// Replaces a reference; the old one is dropped outside the lock.
    fn set(&self, value: Option<Py<PyAny>>, of: impl Fn(&mut Parts) -> &mut Option<Py<PyAny>>) {
        let old = std::mem::replace(of(&mut self.parts()), value);
        drop(old);
    }
}

#[pymethods]
impl ArgumentHandler {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.filled.is_set() {
            return Ok(());
        }
        // A thread that holds the lock does not run Python code.
        let Ok(parts) = self.parts.try_lock() else { return Ok(()) };
        visit.call(&parts.array)?;
        visit.call(&parts.memory)
    }

    fn __clear__(&self) {
        drop(std::mem::take(&mut *self.parts()));
    }

    /// A subclass may take other arguments, so only `__init__` examines them.
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(ary)")]
    fn py_new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> ArgumentHandler {
        ArgumentHandler::new()
    }

    fn __init__(&self, ary: Py<PyAny>) {
        self.set(Some(ary), |parts| &mut parts.array);
        self.set(None, |parts| &mut parts.memory);
    }

    /// The array in host memory.
    #[getter]
    fn array(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.parts().array.as_ref().map(|array| array.clone_ref(py)).ok_or_else(|| {
            PyAttributeError::new_err(
                "the handler has no attribute 'array' before ArgumentHandler.__init__ is called",
            )
        })
    }

    #[setter]
    fn set_array(&self, array: Py<PyAny>) {
        self.set(Some(array), |parts| &mut parts.array);
    }

    #[deleter(array)]
    fn delete_array(&self) {
        self.set(None, |parts| &mut parts.array);
    }

    /// The device memory; None before its first use.
    #[getter]
    fn dev_alloc(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.parts().memory.as_ref().map(|memory| memory.clone_ref(py))
    }

    #[setter]
    fn set_dev_alloc(&self, memory: Option<Py<PyAny>>) {
        self.set(memory, |parts| &mut parts.memory);
    }

    #[deleter(dev_alloc)]
    fn delete_dev_alloc(&self) {
        self.set(None, |parts| &mut parts.memory);
    }

    /// Returns the device memory for the kernel, which the first call allocates.
    fn get_device_alloc<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(memory) = this.dev_alloc(py) {
            return Ok(memory.into_bound(py));
        }
        let array = this.array(py)?.into_bound(py);
        let bytes = nbytes(&array)?;
        host_memory_size("ary", &array, slf.is_instance_of::<Out>())?;
        let memory = Bound::new(py, mem_alloc_ordered(py, bytes)?)?.into_any();
        this.set_dev_alloc(Some(memory.clone().unbind()));
        Ok(memory)
    }

    /// Called before the launch.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream or None. The stream of the call.
    #[allow(unused_variables, reason = "the name is the argument's")]
    fn pre_call(&self, stream: &Bound<'_, PyAny>) {}
}

/// Returns the bytes of an array.
fn nbytes(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    let bytes = array.getattr(intern!(array.py(), "nbytes")).map_err(|error| {
        if !error.is_instance_of::<PyAttributeError>(array.py()) {
            return error;
        }
        PyTypeError::new_err(format!(
            "could not determine array length of '{}': unsupported array type or not an array; \
             numpy.array(x, dtype) makes one",
            array.get_type()
        ))
    })?;
    bytes.extract()
}

/// An array in host memory that a kernel reads.
///
/// Parameters
/// ----------
/// ary : numpy.ndarray or buffer. The contiguous array.
///
/// Examples
/// --------
/// >>> from pygpu import compiler
/// >>> module = compiler.SourceModule(
/// ...     "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
/// ... )
/// >>> twice = module.get_function("twice")
/// >>> twice(driver.In(np.ones(3, np.float32)), block=(3, 1, 1))
/// >>> driver.In(np.ones(3, np.float32)).pre_call(None)  # what a call does first
#[pyclass(frozen, subclass, extends = ArgumentHandler, module = "pygpu.driver")]
pub(crate) struct In;

#[pymethods]
impl In {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(ary)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<In> {
        PyClassInitializer::from(ArgumentHandler::new()).add_subclass(In)
    }

    /// Copies the array to the device.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream or None. The stream of the call, which the copy does not wait for.
    #[allow(unused_variables, reason = "the name is the argument's")]
    fn pre_call(slf: &Bound<'_, Self>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        copy_in(slf.as_super())
    }
}

/// An array in host memory that a kernel writes. Elements that the kernel does not write become zero.
///
/// Parameters
/// ----------
/// ary : numpy.ndarray or buffer. The contiguous array.
///
/// Examples
/// --------
/// >>> from pygpu import compiler
/// >>> module = compiler.SourceModule(
/// ...     "__global__ void set_two(float *x) { x[threadIdx.x] = 2; }"
/// ... )
/// >>> set_two = module.get_function("set_two")
/// >>> a = np.zeros(3, np.float32)
/// >>> set_two(driver.Out(a), block=(3, 1, 1))
/// >>> a
/// array([2., 2., 2.], dtype=float32)
#[pyclass(frozen, subclass, extends = ArgumentHandler, module = "pygpu.driver")]
pub(crate) struct Out;

#[pymethods]
impl Out {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs), text_signature = "(ary)")]
    fn new(
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Out> {
        PyClassInitializer::from(ArgumentHandler::new()).add_subclass(Out)
    }

    /// Fills the device memory with zeros.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream or None. The stream of the call.
    ///
    /// Examples
    /// --------
    /// >>> handler = driver.Out(np.ones(3, np.float32))
    /// >>> handler.pre_call(None)
    /// >>> handler.post_call(None)
    /// >>> handler.array
    /// array([0., 0., 0.], dtype=float32)
    fn pre_call(slf: &Bound<'_, Self>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        clear(slf.as_super(), stream)
    }

    /// Copies the result to the array.
    ///
    /// Parameters
    /// ----------
    /// stream : Stream or None. The stream of the call.
    #[allow(unused_variables, reason = "the name is the argument's")]
    fn post_call(slf: &Bound<'_, Self>, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        copy_out(slf.as_super())
    }
}

/// Returns the memory of a handler and its array. The memory comes from the method, which a subclass may
/// override.
fn ends<'py>(
    handler: &Bound<'py, ArgumentHandler>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let py = handler.py();
    let memory = handler.call_method0(intern!(py, "get_device_alloc"))?;
    Ok((memory, handler.get().array(py)?.into_bound(py)))
}

fn copy_in(handler: &Bound<'_, ArgumentHandler>) -> PyResult<()> {
    let (memory, array) = ends(handler)?;
    copy_to_device(handler.py(), &memory, &array, None, true)
}

fn clear(handler: &Bound<'_, ArgumentHandler>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let (memory, array) = ends(handler)?;
    fill_memory(handler.py(), &memory, 0, 1, nbytes(&array)?, stream)
}

fn copy_out(handler: &Bound<'_, ArgumentHandler>) -> PyResult<()> {
    let (memory, array) = ends(handler)?;
    copy_to_host(handler.py(), &array, &memory, None, true)
}

/// Adds the class `InOut`, which derives from both; classes defined in Rust can only have one base.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = in_out(module.py())?;
    module.add("InOut", class)
}

fn in_out(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let members = PyDict::new(py);
        members.set_item("__doc__", IN_OUT)?;
        members.set_item("__module__", "pygpu.driver")?;
        members.set_item("__slots__", PyTuple::empty(py))?;
        let bases = (py.get_type::<In>(), py.get_type::<Out>());
        let class = py.get_type::<PyType>().call1(("InOut", bases, members))?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    })?;
    Ok(class.bind(py))
}

const IN_OUT: &str = "An array in host memory that a kernel reads and writes.

Parameters
----------
ary : numpy.ndarray or buffer
    The array, contiguous.

Examples
--------
>>> from pygpu import compiler
>>> module = compiler.SourceModule(
...     \"__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\"
... )
>>> a = np.ones(3, np.float32)
>>> module.get_function(\"twice\")(driver.InOut(a), block=(3, 1, 1))
>>> a
array([2., 2., 2.], dtype=float32)
>>> driver.InOut(a).post_call(None)  # what a call does afterwards
";

/// A handler among the arguments of a call.
pub(super) struct Handler<'py> {
    object: Bound<'py, ArgumentHandler>,
    kind: Kind,
}

/// The class that defines a handler's methods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    In,
    Out,
    InOut,
    /// A subclass that the program defines.
    Derived,
}

impl<'py> Handler<'py> {
    /// Returns the handler, if an object is one.
    pub(super) fn of(value: &Bound<'py, PyAny>) -> PyResult<Option<Handler<'py>>> {
        let Ok(object) = value.cast::<ArgumentHandler>() else { return Ok(None) };
        let kind = if value.is_exact_instance_of::<In>() {
            Kind::In
        } else if value.is_exact_instance_of::<Out>() {
            Kind::Out
        } else if value.get_type().is(in_out(value.py())?) {
            Kind::InOut
        } else {
            Kind::Derived
        };
        Ok(Some(Handler { object: object.clone(), kind }))
    }

    /// Returns the array whose elements the kernel receives; `None` for a program's class, which may pass others.
    pub(super) fn array(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.kind {
            Kind::Derived => Ok(None),
            _ => self.object.get().array(py).map(Some),
        }
    }

    /// Returns the kernel's argument.
    pub(super) fn memory(&self) -> PyResult<Bound<'py, PyAny>> {
        match self.kind {
            Kind::Derived => self.object.call_method0("get_device_alloc"),
            _ => ArgumentHandler::get_device_alloc(&self.object),
        }
    }

    /// Returns true for a handler that copies during the call, which a graph would not repeat.
    pub(super) fn copies(&self) -> bool {
        self.object.is_instance_of::<In>() || self.object.is_instance_of::<Out>()
    }

    pub(super) fn before(&self, stream: Option<&Bound<'py, PyAny>>) -> PyResult<()> {
        match self.kind {
            Kind::In | Kind::InOut => copy_in(&self.object),
            Kind::Out => clear(&self.object, stream),
            Kind::Derived => self.object.call_method1("pre_call", (stream,)).map(drop),
        }
    }

    /// Returns true if there is something to do after the kernel has run.
    pub(super) fn has_after(&self) -> PyResult<bool> {
        match self.kind {
            Kind::In => Ok(false),
            Kind::Out | Kind::InOut => Ok(true),
            Kind::Derived => self.object.hasattr("post_call"),
        }
    }

    pub(super) fn after(&self, stream: Option<&Bound<'py, PyAny>>) -> PyResult<()> {
        match self.kind {
            Kind::In => Ok(()),
            Kind::Out | Kind::InOut => copy_out(&self.object),
            Kind::Derived => self.object.call_method1("post_call", (stream,)).map(drop),
        }
    }
}
