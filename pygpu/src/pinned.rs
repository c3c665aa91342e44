//! Page-locked host memory, which devices copy to and from at full speed, as numpy arrays.

use crate::current_device::current_device;
use crate::deferred_drop::{self, DeferredDrop};
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array::{self, WeakArray};
use crate::owner::{Filled, OwnerObject, OwnerReference};
use crate::shape::{order_argument, parse_order, parse_shape};
use gpuarray::memory::{PinnedMemory, RegisteredMemory};
use gpuarray::{Device, Error, Layout, PinnedOptions};
use hal::poison::Unpoisoned as _;
use numpy::PyUntypedArrayMethods;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// `CU_MEMHOSTALLOC_PORTABLE`, `CU_MEMHOSTALLOC_DEVICEMAP`, `CU_MEMHOSTALLOC_WRITECOMBINED`; the
/// first two equal `CU_MEMHOSTREGISTER_PORTABLE` and `CU_MEMHOSTREGISTER_DEVICEMAP`.
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
    Ok(PinnedOptions::default()
        .portable(flags & PORTABLE != 0)
        .mapped(flags & MAPPED != 0)
        .write_combined(flags & WRITE_COMBINED != 0))
}

/// Converts values of `host_alloc_flags` to options.
pub(crate) fn alloc_options(name: &str, flags: u32) -> PyResult<PinnedOptions> {
    options(name, flags, PORTABLE | MAPPED | WRITE_COMBINED)
}

fn unlocked<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    // An `Option` stays valid even if a thread panicked.
    memory.lock().unpoisoned()
}

fn gone(call: &'static str) -> PyErr {
    to_python(Error::handle(call, "the page-locked memory was freed already"))
}

/// Page-locked host memory: the base of an array of `pagelocked_empty`, which keeps it alive.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.pagelocked_empty(3, np.float32).base
/// >>> memory.size
/// 12
/// >>> memory.get_flags(), memory.get_device_pointer() != 0
/// (0, True)
/// >>> memory.free()
#[pyclass(frozen, dict, weakref, module = "pygpu.driver")]
pub(crate) struct PagelockedHostAllocation {
    memory: Mutex<Option<DeferredDrop<PinnedMemory>>>,
    is_freed: AtomicBool,
    array: WeakArray,
    device: Arc<dyn Device>,
    flags: u32,
}

impl PagelockedHostAllocation {
    /// Returns an object that prevents the memory from being freed.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.array.hold()
    }

    fn pointer(&self, call: &'static str) -> PyResult<*mut u8> {
        let memory = unlocked(&self.memory);
        let memory = memory.as_ref().filter(|_| !self.is_freed.load(Ordering::Acquire));
        memory.map(|memory| memory.pointer()).ok_or_else(|| gone(call))
    }
}

#[pymethods]
impl PagelockedHostAllocation {
    /// The number of bytes; 0 after a free.
    #[getter]
    fn size(&self) -> usize {
        match self.is_freed.load(Ordering::Acquire) {
            true => 0,
            false => unlocked(&self.memory).as_ref().map_or(0, |memory| memory.len()),
        }
    }

    /// Frees the memory after the copies that are queued. If the numpy array over it still exists,
    /// the memory is freed with that array.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The memory was already freed.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_freed.swap(true, Ordering::AcqRel) {
            return Err(gone("free"));
        }
        if !self.array.is_alive(py) {
            let memory = unlocked(&self.memory).take();
            drop(memory);
        }
        Ok(())
    }

    /// Returns the flags that it was allocated with (`host_alloc_flags`).
    ///
    /// Returns
    /// -------
    /// int
    ///     Values of `host_alloc_flags`, added up.
    fn get_flags(&self) -> u32 {
        self.flags
    }

    fn __int__(&self) -> PyResult<u64> {
        Ok(self.pointer("int")? as u64)
    }

    /// Returns the address at which the device sees the memory.
    ///
    /// Returns
    /// -------
    /// int
    ///     The address.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The memory was freed.
    fn get_device_pointer(&self) -> PyResult<u64> {
        self.device.pinned_address(self.pointer("get_device_pointer")?).or_raise()
    }

    fn __repr__(&self) -> String {
        match self.pointer("repr") {
            Ok(pointer) => {
                format!("<PagelockedHostAllocation of {} bytes at {pointer:p}>", self.size())
            }
            Err(_) => "<PagelockedHostAllocation, freed>".into(),
        }
    }
}

/// Returns a numpy array with undefined elements in page-locked memory (`cuMemHostRegister`,
/// `hipHostRegister`). Devices copy to and from it at full speed while the host does other work.
/// After a reset of the device, the memory still exists, but is no longer page-locked.
///
/// Parameters
/// ----------
/// shape : int or sequence of int. The extents of the axes.
/// dtype : dtype. The type of the elements, which are plain bytes.
/// order : {"C", "F"}. The memory order.
/// mem_flags : int. Values of `driver.host_alloc_flags`.
///
/// Returns
/// -------
/// numpy.ndarray
///     An array whose `base` is a `PagelockedHostAllocation`, which owns the memory.
///
/// Raises
/// ------
/// TypeError
///     The elements are not plain bytes, for example Python objects.
/// ValueError
///     An extent is negative, or `order` is another name.
/// LogicError
///     `mem_flags` has other bits.
/// MemoryError
///     Not enough memory is available.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> a = driver.pagelocked_empty((2, 3), np.float32)
/// >>> a.shape, type(a.base).__name__
/// ((2, 3), 'PagelockedHostAllocation')
#[pyfunction]
#[pyo3(signature = (shape, dtype, order = "C", mem_flags = 0))]
pub(crate) fn pagelocked_empty<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    #[pyo3(from_py_with = argument::mem_flags)] mem_flags: u32,
) -> PyResult<numpy_array::HostArray<'py>> {
    let options = alloc_options("mem_flags", mem_flags)?;
    let (descr, itemsize) = dtypes::parse_for_host(dtype)?;
    let shape = parse_shape(shape)?;
    let layout = Layout::contiguous(&shape, itemsize, parse_order(order)?).or_raise()?;
    if layout.size() == 0 {
        return numpy_array::empty(py, &descr, &layout);
    }
    let device = current_device()?.device;
    let bytes = layout.nbytes();
    let make = || PinnedMemory::with_options(&device, bytes, options);
    let memory = deferred_drop::retry(py, make)?.or_raise()?;
    let pointer = memory.pointer();
    let allocation = PagelockedHostAllocation {
        memory: Mutex::new(Some(DeferredDrop::new(&device, memory))),
        is_freed: AtomicBool::new(false),
        array: WeakArray::default(),
        device,
        flags: mem_flags,
    };
    let owner = Bound::new(py, allocation)?;
    // SAFETY: the owner has as many bytes as the layout.
    unsafe { owner.get().array.over(&owner, &descr, &layout, pointer) }
}

/// A registration, and the array that owns the memory.
type Registration = (RegisteredMemory<'static>, OwnerObject);

/// Host memory of the program that is page-locked while this object exists, or until `unregister`
/// is called: the base of an array of `register_host_memory`.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> a = driver.aligned_zeros(1024, np.float32)
/// >>> registration = driver.register_host_memory(a).base
/// >>> registration.base is a
/// True
/// >>> registration.unregister()
#[pyclass(frozen, dict, weakref, module = "pygpu.driver")]
pub(crate) struct RegisteredHostMemory {
    /// The array whose memory is registered. It is dropped before the registration, which keeps the
    /// array as long as necessary.
    base: OwnerReference,
    memory: Mutex<Option<DeferredDrop<Registration>>>,
    device: Arc<dyn Device>,
    filled: Filled,
    /// One additional reference for each device array that is made with this object.
    holds: Arc<()>,
}

impl RegisteredHostMemory {
    /// Returns an object that prevents the end of the registration.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.holds.clone()
    }
}

#[pymethods]
impl RegisteredHostMemory {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.filled.is_set() {
            return Ok(());
        }
        // After `unregister`, the deferred drop holds the reference.
        let is_registered = self.memory.try_lock().is_ok_and(|memory| memory.is_some());
        self.base.traverse(&visit, usize::from(is_registered))
    }

    /// The array whose memory is registered.
    #[getter]
    fn base(&self, py: Python<'_>) -> Py<PyAny> {
        self.base.object(py)
    }

    /// Ends the registration, after the queued copies have run. The array stays unchanged.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     An array on the device uses the memory.
    fn unregister(&self, py: Python<'_>) -> PyResult<()> {
        let arrays = Arc::strong_count(&self.holds) - 1;
        if arrays > 0 {
            return Err(to_python(Error::handle(
                "unregister",
                format!(
                    "arrays on the device ({arrays}) use the page-locked memory; drop them first"
                ),
            )));
        }
        let memory = unlocked(&self.memory).take();
        // Waits for the device.
        py.detach(|| drop(memory.map(DeferredDrop::into_inner)));
        Ok(())
    }

    /// Returns the address at which the device sees the memory.
    ///
    /// Returns
    /// -------
    /// int
    ///     The address.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The registration has ended, or was made without `mem_host_register_flags.DEVICEMAP`
    ///     on a device that needs it.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np
    /// >>> from pygpu import autoinit, driver
    /// >>> flags = driver.mem_host_register_flags.DEVICEMAP
    /// >>> locked = driver.register_host_memory(driver.aligned_zeros(1024, np.float32), flags)
    /// >>> locked.base.get_device_pointer() != 0
    /// True
    fn get_device_pointer(&self) -> PyResult<u64> {
        let pointer = unlocked(&self.memory).as_ref().map(|memory| memory.0.pointer());
        let pointer = pointer.ok_or_else(|| gone("get_device_pointer"))?;
        self.device.pinned_address(pointer).or_raise()
    }

    fn __repr__(&self) -> String {
        match unlocked(&self.memory).as_ref() {
            Some(memory) => format!(
                "<RegisteredHostMemory of {} bytes at {:p}>",
                memory.0.bytes(),
                memory.0.pointer()
            ),
            None => "<RegisteredHostMemory, unregistered>".into(),
        }
    }
}

/// Page-locks the memory of a numpy array (`cuMemHostRegister`, `hipHostRegister`).
///
/// Parameters
/// ----------
/// ary : numpy.ndarray. A contiguous array that can be written.
/// flags : int. Values of `driver.mem_host_register_flags`.
///
/// Returns
/// -------
/// numpy.ndarray
///     An array over the same memory whose `base` is a `RegisteredHostMemory`. The memory is
///     page-locked until that object is dropped or its `unregister` is called.
///
/// Raises
/// ------
/// TypeError
///     `ary` is not a numpy array.
/// LogicError
///     The memory is already page-locked, or `flags` has other bits.
/// ValueError
///     The array is not contiguous, or is read-only.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> a = driver.aligned_zeros(1024, np.float32)
/// >>> locked = driver.register_host_memory(a)
/// >>> locked.ctypes.data == a.ctypes.data
/// True
/// >>> locked.base.unregister()
#[pyfunction]
#[pyo3(signature = (ary, flags = 0))]
pub(crate) fn register_host_memory<'py>(
    py: Python<'py>,
    ary: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::flags)] flags: u32,
) -> PyResult<numpy_array::HostArray<'py>> {
    let options = options("flags", flags, PORTABLE | MAPPED)?;
    let array = numpy_array::expect_array("ary", ary)?;
    let block = numpy_array::block("ary", ary, true)?;
    let device = current_device()?.device;
    let (address, bytes) = (block.pointer as usize, block.bytes);
    // SAFETY: the object keeps the array, and so its memory, as long as the registration.
    let register =
        || unsafe { RegisteredMemory::from_raw(&device, address as *mut u8, bytes, options) };
    // The memory may have been registered before, by an array that was dropped.
    let memory = deferred_drop::retry(py, register)?.or_raise()?;
    let kept = OwnerObject::new(array.clone().into_any().unbind());
    let registration = RegisteredHostMemory {
        base: kept.reference(),
        memory: Mutex::new(Some(DeferredDrop::new(&device, (memory, kept)))),
        device,
        filled: Filled::new(),
        holds: Arc::default(),
    };
    let owner = Bound::new(py, registration)?.into_any();
    let (shape, strides) = (array.shape(), array.strides());
    // SAFETY: shape and strides come from the array whose memory the owner keeps.
    unsafe {
        numpy_array::new_array(
            py,
            &array.dtype(),
            shape,
            strides,
            block.pointer.cast(),
            Some(owner),
        )
    }
}
