//! Conversion of Python's allocators to the core's.

use crate::allocation::{DeviceAllocation, address_of, known_memory_of};
use crate::errors::{raised_in_python, to_python};
use crate::owner::OwnerObject;
use crate::pool::{DeviceMemoryPool, PooledDeviceAllocation};
use gpuarray::memory::{Allocator, DeviceMemory, DevicePool};
use gpuarray::{Device, Error, Result, Stream};
use hal::nonblocking::before_waiting;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fmt, ptr};

/// The function `mem_alloc`. As an allocator, it stands for the core's own allocation.
static MEM_ALLOC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Stores the function object at import.
pub(crate) fn remember_mem_alloc(function: Bound<'_, PyAny>) {
    // A second import of the module keeps the first object.
    let _ = MEM_ALLOC.set(function.py(), function.unbind());
}

/// Returns the function `mem_alloc` as programs see it.
pub(crate) fn mem_alloc_object(py: Python<'_>) -> PyResult<Py<PyAny>> {
    match MEM_ALLOC.get(py) {
        Some(function) => Ok(function.clone_ref(py)),
        None => Ok(py.import("pygpu._core")?.getattr("mem_alloc")?.unbind()),
    }
}

/// The allocator of an array's results; empty if the stream allocates them.
#[derive(Default)]
pub(crate) struct ResultAllocator {
    /// The core's form of the allocator.
    pub(crate) allocator: Option<Arc<dyn Allocator>>,
    /// The pool, if the allocator is one.
    pub(crate) pool: Option<Arc<DevicePool>>,
    /// The Python callable, if the allocator is one.
    pub(crate) python: Option<Arc<PythonAllocator>>,
    /// The object that the program passed.
    pub(crate) object: Option<Py<PyAny>>,
}

impl ResultAllocator {
    /// Returns the allocator for an argument.
    pub(crate) fn from_argument(value: Option<&Bound<'_, PyAny>>) -> PyResult<ResultAllocator> {
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(ResultAllocator::default());
        };
        if MEM_ALLOC.get(value.py()).is_some_and(|own| own.is(value)) {
            return Ok(ResultAllocator::default());
        }
        let object = Some(value.clone().unbind());
        if let Some(pool) = pool_of(value)? {
            return Ok(ResultAllocator {
                allocator: Some(pool.clone()),
                pool: Some(pool),
                python: None,
                object,
            });
        }
        if !value.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "allocator is of type {}; a callable that takes a number of bytes is needed",
                value.get_type().name()?
            )));
        }
        Ok(ResultAllocator::python(value.clone().unbind(), value.py()))
    }

    /// Returns the allocator for a Python callable.
    pub(crate) fn python(callable: Py<PyAny>, py: Python<'_>) -> ResultAllocator {
        let object = Some(callable.clone_ref(py));
        let python = Arc::new(PythonAllocator { callable });
        ResultAllocator {
            allocator: Some(python.clone()),
            pool: None,
            python: Some(python),
            object,
        }
    }
}

/// Returns the pool if a callable is its method `allocate`; `None` for any other callable, such as a
/// method that a subclass overrides.
fn pool_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Arc<DevicePool>>> {
    let Ok(method) = value.cast::<PyCFunction>() else {
        return Ok(None);
    };
    // SAFETY: the object is a builtin function; the call returns a borrowed reference or null.
    let owner = unsafe {
        let owner = ffi::PyCFunction_GetSelf(method.as_ptr());
        Bound::from_borrowed_ptr_or_opt(value.py(), owner)
    };
    let Some(owner) = owner else {
        return Ok(None);
    };
    let Ok(pool) = owner.cast::<DeviceMemoryPool>() else {
        return Ok(None);
    };
    // SAFETY: the object is a builtin function.
    let function = unsafe { ffi::PyCFunction_GetFunction(method.as_ptr()) };
    let function = function.map_or(0, |function| function as usize);
    // The first time, the name identifies the method; later, its code is known.
    if function != ALLOCATE.load(Ordering::Relaxed) {
        if !value.getattr("__name__")?.eq("allocate")? {
            return Ok(None);
        }
        ALLOCATE.store(function, Ordering::Relaxed);
    }
    Ok(Some(pool.get().pool().clone()))
}

/// The code of the method `DeviceMemoryPool.allocate`.
static ALLOCATE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A Python callable that returns memory for a number of bytes.
pub(crate) struct PythonAllocator {
    pub(crate) callable: Py<PyAny>,
}

/// An object that a callable returned, and the memory that it stands for.
type Returned = (*const DeviceMemory, Py<PyAny>);

/// The number of returned objects that are kept until an array is made of their memory. Before that, an
/// operation allocates its result and perhaps an intermediate array.
const RECENT: usize = 8;

thread_local! {
    static RECENT_OBJECTS: RefCell<VecDeque<Returned>> = const { RefCell::new(VecDeque::new()) };
}

/// Takes the object that a callable returned for this memory on this thread, and forgets all others.
pub(crate) fn take_object(memory: &Arc<DeviceMemory>) -> Option<Py<PyAny>> {
    let recent = RECENT_OBJECTS.take();
    recent.into_iter().rev().find(|it| ptr::eq(it.0, Arc::as_ptr(memory))).map(|it| it.1)
}

impl PythonAllocator {
    /// Calls the callable and returns the memory.
    fn call(&self, py: Python<'_>, device: &Arc<dyn Device>, bytes: usize) -> PyResult<Called> {
        let object = self.callable.bind(py).call1((bytes,))?;
        if known_memory_of(&object).is_none() && address_of("allocator's result", &object)? == 0 {
            return Ok(Called::Null(object.unbind()));
        }
        let memory = adopt(device, &object, bytes)?;
        let mut recent = RECENT_OBJECTS.take();
        recent.push_back((Arc::as_ptr(&memory), object.unbind()));
        let forgotten = if recent.len() > RECENT { recent.pop_front() } else { None };
        RECENT_OBJECTS.set(recent);
        // Dropping them may run code of the program, which may allocate.
        drop(forgotten);
        Ok(Called::Memory(memory))
    }

    /// Returns the memory that the callable returns for a number of bytes; the object itself if it
    /// represents the null address.
    pub(crate) fn memory_or_null(
        &self,
        py: Python<'_>,
        device: &Arc<dyn Device>,
        bytes: usize,
    ) -> PyResult<std::result::Result<Arc<DeviceMemory>, Py<PyAny>>> {
        Ok(match self.call(py, device, bytes)? {
            Called::Memory(memory) => Ok(memory),
            Called::Null(object) => Err(object),
        })
    }
}

/// The result of a callable.
enum Called {
    Memory(Arc<DeviceMemory>),
    /// An object that represents the null address.
    Null(Py<PyAny>),
}

impl fmt::Debug for PythonAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonAllocator")
    }
}

// SAFETY: `adopt` checks the device, size and accessibility of the callable's memory. Memory that this
// library tracks is returned as the object that orders its uses. As everywhere in Python, code that
// returns a raw address is responsible for its use; the owner is kept.
unsafe impl Allocator for PythonAllocator {
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        // The program sees each call, so the call is made only if its result is needed.
        before_waiting()?;
        Python::attach(|py| match self.call(py, device, bytes)? {
            Called::Memory(memory) => Ok(memory),
            Called::Null(object) => adopt(device, object.bind(py), bytes),
        })
        .map_err(|exception| raised_in_python("allocator", exception))
    }
}

/// Returns the memory that a Python object represents; the object is kept while the memory is used.
///
/// Raises `TypeError` for an object that does not represent memory, and `LogicError` for memory that is
/// freed, too small, or not memory of the device.
fn adopt(
    device: &Arc<dyn Device>,
    object: &Bound<'_, PyAny>,
    bytes: usize,
) -> PyResult<Arc<DeviceMemory>> {
    let refused = |what: String| {
        to_python(Error::invalid(
            "allocator",
            format!("allocator returned {what} when called with {bytes}"),
        ))
    };
    if let Some(memory) = known_memory_of(object) {
        let address = memory.address();
        if !memory.is_allocated() {
            return Err(refused(format!("memory at {address:#x} that has been freed")));
        }
        if memory.bytes() < bytes {
            return Err(refused(format!("memory of size {} at {address:#x}", memory.bytes())));
        }
        if memory.device().id() != device.id() {
            let other = memory.device().id();
            return Err(refused(format!(
                "memory of device {other}, not of device {}",
                device.id()
            )));
        }
        return Ok(memory.clone());
    }
    let address = address_of("allocator's result", object)?;
    if !device.can_access(address, bytes) {
        let id = device.id();
        return Err(refused(format!("memory at {address:#x} that device {id} does not have")));
    }
    let owner = Box::new(OwnerObject::new(object.clone().unbind()));
    // SAFETY: the device can access the range. As with every GPU library, code that passes a raw address
    // is responsible for its use. The object that represents the memory is kept.
    Ok(Arc::new(unsafe { DeviceMemory::from_raw_parts(device, address, bytes, owner) }))
}

/// Returns the object that represents an array's memory for programs; it may belong to a pool.
pub(crate) fn allocation_object(
    py: Python<'_>,
    memory: &Arc<DeviceMemory>,
    pool: Option<&Arc<DevicePool>>,
    bytes: usize,
) -> PyResult<Py<PyAny>> {
    let memory = memory.clone();
    Ok(match pool {
        Some(pool) => Py::new(py, PooledDeviceAllocation::new(pool, memory, bytes))?.into_any(),
        None => Py::new(py, DeviceAllocation::new(memory))?.into_any(),
    })
}
