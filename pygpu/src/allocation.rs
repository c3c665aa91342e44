//! Device memory as Python objects, and Python's allocators as those of the core.

use crate::errors::{OrRaise, raised_in_python};
use crate::runtime::current;
use gpuarray::memory::{Allocator, DeviceMemory};
use gpuarray::{Device, Result, Stream};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyFloat;
use std::fmt;
use std::sync::Arc;

/// Device memory that is freed behind the work that uses it when nothing refers to it any
/// longer, or when `free` is called.
#[pyclass(frozen, weakref, module = "pygpu.driver")]
pub(crate) struct DeviceAllocation {
    pub(crate) memory: Arc<DeviceMemory>,
}

#[pymethods]
impl DeviceAllocation {
    /// Frees the memory now, behind the work that uses it. Using it afterwards is an error.
    fn free(&self) -> PyResult<()> {
        self.memory.release().or_raise()
    }

    fn __int__(&self) -> u64 {
        self.memory.address()
    }

    fn __index__(&self) -> u64 {
        self.memory.address()
    }

    /// The number of bytes.
    #[getter]
    fn size(&self) -> usize {
        self.memory.bytes()
    }

    fn __hash__(&self) -> u64 {
        self.memory.address()
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> bool {
        let same = other
            .cast::<DeviceAllocation>()
            .is_ok_and(|other| Arc::ptr_eq(&self.memory, &other.get().memory));
        match operator {
            CompareOp::Eq => same,
            CompareOp::Ne => !same,
            _ => false,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<DeviceAllocation of {} bytes at {:#x}>",
            self.memory.bytes(),
            self.memory.address()
        )
    }
}

/// Allocates `bytes` bytes on the current device.
#[pyfunction]
pub(crate) fn mem_alloc(bytes: &Bound<'_, PyAny>) -> PyResult<DeviceAllocation> {
    let bytes = positive("bytes", bytes)?;
    let current = current()?;
    let memory = DeviceMemory::for_stream(&current.device, &current.stream, bytes).or_raise()?;
    Ok(DeviceAllocation { memory: Arc::new(memory) })
}

/// A number of bytes above zero.
fn positive(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number: i128 = value.extract().map_err(|_| {
        PyTypeError::new_err(format!("{name} is {value}; a whole number is needed"))
    })?;
    match usize::try_from(number) {
        Ok(number) if number > 0 && isize::try_from(number).is_ok() => Ok(number),
        _ => Err(crate::errors::to_python(gpuarray::Error::invalid(
            "mem_alloc",
            format!("{name} is {number}; a number above 0 is needed"),
        ))),
    }
}

/// The function `mem_alloc`, which as an allocator means the core's own allocation.
static MEM_ALLOC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Remembers the function object at import.
pub(crate) fn remember_mem_alloc(function: Bound<'_, PyAny>) {
    // A second import of the module keeps the first object.
    let _ = MEM_ALLOC.set(function.py(), function.unbind());
}

/// The function `mem_alloc` as programs see it.
pub(crate) fn mem_alloc_object(py: Python<'_>) -> PyResult<Py<PyAny>> {
    match MEM_ALLOC.get(py) {
        Some(function) => Ok(function.clone_ref(py)),
        None => Ok(py.import("pygpu._core")?.getattr("mem_alloc")?.unbind()),
    }
}

/// A Python callable that gives memory for a number of bytes.
pub(crate) struct PythonAllocator {
    pub(crate) callable: Py<PyAny>,
}

impl fmt::Debug for PythonAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonAllocator")
    }
}

impl PythonAllocator {
    /// The allocator for an argument: `None` for the core's own.
    pub(crate) fn from_argument(
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Arc<dyn Allocator>>> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        if MEM_ALLOC.get(value.py()).is_some_and(|own| own.is(value)) {
            return Ok(None);
        }
        if !value.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "allocator is of type {}; a callable that takes a number of bytes is needed",
                value.get_type().name()?
            )));
        }
        Ok(Some(Arc::new(PythonAllocator { callable: value.clone().unbind() })))
    }
}

impl Allocator for PythonAllocator {
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        Python::attach(|py| {
            let result = self.callable.bind(py).call1((bytes,));
            result.and_then(|object| adopt(device, &object, bytes))
        })
        .map_err(|exception| raised_in_python("allocator", exception))
    }
}

/// Memory that a Python object stands for, which is kept as long as the memory is used.
pub(crate) fn adopt(
    device: &Arc<dyn Device>,
    object: &Bound<'_, PyAny>,
    bytes: usize,
) -> PyResult<Arc<DeviceMemory>> {
    if let Ok(allocation) = object.cast::<DeviceAllocation>() {
        return Ok(allocation.get().memory.clone());
    }
    let address = address_of("allocator's result", object)?;
    let owner = Box::new(KeptObject(object.clone().unbind()));
    // SAFETY: whoever passes a raw address vouches for it, as with every GPU library; the
    // object that stands for the memory is kept.
    Ok(Arc::new(unsafe { DeviceMemory::foreign(device, address, bytes, owner) }))
}

/// A Python object that is kept alive, and let go only while Python runs.
pub(crate) struct KeptObject(#[allow(dead_code, reason = "held, not read")] pub(crate) Py<PyAny>);

/// The address that an object stands for: a whole number, or anything with `__int__` or
/// `__index__`.
pub(crate) fn address_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(allocation) = value.cast::<DeviceAllocation>() {
        return Ok(allocation.get().memory.address());
    }
    if let Ok(address) = value.extract::<u64>() {
        return Ok(address);
    }
    let refused = |_: PyErr| {
        let kind = value.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "{name} is of type {kind}; a device allocation or an address is needed"
        ))
    };
    // A number with a fraction has `__int__`, too, but is no address.
    if value.is_instance_of::<PyFloat>() {
        return Err(refused(PyTypeError::new_err(())));
    }
    value.call_method0("__int__").and_then(|number| number.extract::<u64>()).map_err(refused)
}
