//! Host memory that devices copy from and to at full speed, as numpy arrays.

use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::host;
use crate::runtime::current;
use gpuarray::memory::{PinnedMemory, RegisteredMemory};
use gpuarray::{Device, Error, Layout, PinnedOptions};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `CU_MEMHOSTALLOC_PORTABLE`, `CU_MEMHOSTALLOC_DEVICEMAP`, `CU_MEMHOSTALLOC_WRITECOMBINED`; the
/// first two are `CU_MEMHOSTREGISTER_PORTABLE` and `CU_MEMHOSTREGISTER_DEVICEMAP`, too.
const PORTABLE: u32 = 1;
const MAPPED: u32 = 2;
const WRITE_COMBINED: u32 = 4;

fn options(name: &str, flags: u32, allowed: u32) -> PyResult<PinnedOptions> {
    if flags & !allowed != 0 {
        let third = if allowed & WRITE_COMBINED == 0 { "" } else { ", 4 (write-combined)" };
        return Err(to_python(Error::invalid(
            "pagelocked memory",
            format!(
                "{name} is {flags}; allowed are combinations of 1 (portable), 2 (mapped){third}"
            ),
        )));
    }
    Ok(PinnedOptions {
        portable: flags & PORTABLE != 0,
        mapped: flags & MAPPED != 0,
        write_combined: flags & WRITE_COMBINED != 0,
    })
}

/// What `host_alloc_flags` mean.
pub(crate) fn alloc_options(name: &str, flags: u32) -> PyResult<PinnedOptions> {
    options(name, flags, PORTABLE | MAPPED | WRITE_COMBINED)
}

fn unlocked<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    // An object that is there or not is valid whatever failed elsewhere.
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

fn gone(call: &'static str) -> PyErr {
    to_python(Error::handle(call, "the page-locked memory was let go already"))
}

/// Page-locked host memory; numpy arrays over it keep it alive.
#[pyclass(frozen, weakref, module = "pygpu.driver")]
pub(crate) struct PagelockedHostAllocation {
    memory: Mutex<Option<PinnedMemory>>,
    device: Arc<dyn Device>,
    flags: u32,
}

impl PagelockedHostAllocation {
    fn pointer(&self, call: &'static str) -> PyResult<*mut u8> {
        unlocked(&self.memory).as_ref().map(PinnedMemory::pointer).ok_or_else(|| gone(call))
    }
}

#[pymethods]
impl PagelockedHostAllocation {
    /// The number of bytes; 0 once it is freed.
    #[getter]
    fn size(&self) -> usize {
        unlocked(&self.memory).as_ref().map_or(0, |memory| memory.len())
    }

    /// Frees the memory now. Arrays over it must not be used any longer.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        let memory = unlocked(&self.memory).take().ok_or_else(|| gone("free"))?;
        // May wait for the device.
        py.detach(|| drop(memory));
        Ok(())
    }

    /// The flags that it was allocated with.
    fn get_flags(&self) -> u32 {
        self.flags
    }

    fn __int__(&self) -> PyResult<u64> {
        Ok(self.pointer("int")? as u64)
    }

    /// The address under which the device sees the memory.
    fn get_device_pointer(&self) -> PyResult<u64> {
        self.device.pinned_address(self.pointer("get_device_pointer")?).or_raise()
    }
}

/// A numpy array in page-locked memory.
#[pyfunction]
#[pyo3(signature = (shape, dtype, order = "C", mem_flags = 0))]
pub(crate) fn pagelocked_empty<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    order: &str,
    mem_flags: u32,
) -> PyResult<host::HostArray<'py>> {
    let options = alloc_options("mem_flags", mem_flags)?;
    let (descr, element) = dtypes::parse(dtype)?;
    let shape = crate::array::parse_shape(shape)?;
    let layout =
        Layout::contiguous(&shape, element.size(), crate::array::parse_order(order)?).or_raise()?;
    if layout.size() == 0 {
        return host::empty(py, &descr, &layout);
    }
    let device = current()?.device;
    let memory =
        py.detach(|| PinnedMemory::with_options(&device, layout.nbytes(), options)).or_raise()?;
    let pointer = memory.pointer();
    let allocation =
        PagelockedHostAllocation { memory: Mutex::new(Some(memory)), device, flags: mem_flags };
    let owner = Bound::new(py, allocation)?.into_any();
    // SAFETY: the owner has as many bytes as the layout and lives as long as the array.
    unsafe {
        host::new_array(py, &descr, layout.shape(), layout.strides(), pointer.cast(), Some(owner))
    }
}

/// Host memory of the program, page-locked as long as this object lives or until
/// `unregister` is called.
#[pyclass(frozen, weakref, module = "pygpu.driver")]
pub(crate) struct RegisteredHostMemory {
    memory: Mutex<Option<RegisteredMemory<'static>>>,
    device: Arc<dyn Device>,
    /// The array whose memory is registered, which is kept alive.
    #[pyo3(get)]
    base: Py<PyUntypedArray>,
}

#[pymethods]
impl RegisteredHostMemory {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.base)
    }

    /// Ends the registration.
    fn unregister(&self, py: Python<'_>) {
        let memory = unlocked(&self.memory).take();
        // Waits for the device.
        py.detach(|| drop(memory));
    }

    /// The address under which the device sees the memory.
    fn get_device_pointer(&self) -> PyResult<u64> {
        let pointer = unlocked(&self.memory).as_ref().map(RegisteredMemory::pointer);
        let pointer = pointer.ok_or_else(|| gone("get_device_pointer"))?;
        self.device.pinned_address(pointer).or_raise()
    }
}

/// Page-locks the memory of a numpy array; gives an array over the same memory whose `base`
/// is the registration.
#[pyfunction]
#[pyo3(signature = (ary, flags = 0))]
pub(crate) fn register_host_memory<'py>(
    py: Python<'py>,
    ary: &Bound<'py, PyAny>,
    flags: u32,
) -> PyResult<host::HostArray<'py>> {
    let options = options("flags", flags, PORTABLE | MAPPED)?;
    let array = host::expect_array("ary", ary)?;
    let block = host::block("ary", ary, true)?;
    let device = current()?.device;
    // SAFETY: the object keeps the array, and so its memory, as long as the registration.
    let memory = unsafe {
        RegisteredMemory::from_raw(&device, block.pointer, block.bytes, options).or_raise()?
    };
    let registration = RegisteredHostMemory {
        memory: Mutex::new(Some(memory)),
        device,
        base: array.clone().unbind(),
    };
    let owner = Bound::new(py, registration)?.into_any();
    let (shape, strides) = (array.shape(), array.strides());
    // SAFETY: shape and strides are those of the array whose memory the owner keeps.
    unsafe {
        host::new_array(py, &array.dtype(), shape, strides, block.pointer.cast(), Some(owner))
    }
}
