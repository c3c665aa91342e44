//! Device memory as Python objects.

use crate::buffers::view;
use crate::checks::note_allocation;
use crate::current_device::current_device;
use crate::deferred_drop::drop_unlocked;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array;
use crate::pool::PooledDeviceAllocation;
use crate::profile::at_line;
use gpuarray::Error;
use gpuarray::memory::{Allocation, DeviceMemory, Pitched};
use numpy::PyUntypedArray;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyException, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Device memory, as returned by `mem_alloc` and similar functions. It can be passed wherever an address of
/// device memory is expected. It is freed after the work that uses it, when `free` is called or when it is no
/// longer referenced.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.mem_alloc(24)
/// >>> driver.memcpy_htod(memory, np.arange(3))
/// >>> driver.from_device(int(memory) + 8, 2, np.int64)
/// array([1, 2])
/// >>> memory.free()
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu.driver")]
pub(crate) struct DeviceAllocation {
    memory: ManuallyDrop<Arc<DeviceMemory>>,
    /// The owner that frees the memory, unless the memory frees itself.
    allocation: Option<Allocation>,
    /// True if freeing the memory may wait for the device.
    waits: bool,
}

impl DeviceAllocation {
    /// Returns an object for memory that frees itself.
    pub(crate) fn new(memory: Arc<DeviceMemory>) -> DeviceAllocation {
        note_allocation(memory.address());
        DeviceAllocation { memory: ManuallyDrop::new(memory), allocation: None, waits: false }
    }

    /// Returns the memory.
    pub(crate) fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Returns an object for memory that is freed explicitly, after waiting for the device.
    pub(crate) fn of(allocation: Allocation) -> DeviceAllocation {
        let memory = ManuallyDrop::new(allocation.memory().clone());
        note_allocation(memory.address());
        DeviceAllocation { memory, allocation: Some(allocation), waits: true }
    }
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if self.waits {
            drop_unlocked((memory, self.allocation.take()));
        }
    }
}

impl DeviceAllocation {
    /// Returns the address; fails for memory that was freed or lost in a reset.
    fn address(&self) -> PyResult<u64> {
        self.memory.check().or_raise()?;
        self.memory.show_address().or_raise()?;
        Ok(self.memory.address())
    }

    /// Ends the device's use of the memory; the host keeps it until this object is dropped.
    pub(crate) fn retire(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.memory.release()).or_raise()
    }

    /// Like [`DeviceAllocation::free`], for retired memory.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        // May wait for the device.
        py.detach(|| self.allocation.as_ref().map_or(Ok(()), Allocation::end)).or_raise()
    }
}

#[pymethods]
impl DeviceAllocation {
    /// Frees the memory now, after the work that uses it. Using it afterwards is an error.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     A buffer of `as_buffer` still exists, or the memory was already freed.
    pub(crate) fn free(&self, py: Python<'_>) -> PyResult<()> {
        let _line = at_line(py);
        // After a failure that left the addresses allocated, continues from there.
        if !self.allocation.as_ref().is_some_and(Allocation::is_ending) {
            self.retire(py)?;
        }
        self.end(py)
    }

    fn __int__(&self) -> PyResult<u64> {
        self.address()
    }

    fn __index__(&self) -> PyResult<u64> {
        self.address()
    }

    /// The number of bytes.
    #[getter]
    fn size(&self) -> usize {
        self.memory.bytes()
    }

    /// Returns a buffer over a part of the memory, for libraries that take device addresses as buffers, such
    /// as MPI libraries.
    ///
    /// The memory stays allocated while the buffer exists. The host cannot read a GPU's memory through it.
    ///
    /// Parameters
    /// ----------
    /// size : int. The number of bytes.
    /// offset : int. The first byte.
    ///
    /// Returns
    /// -------
    /// memoryview
    ///     The buffer.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The part is not inside the memory, or the memory was freed.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import autoinit, driver
    /// >>> driver.mem_alloc(24).as_buffer(16, offset=8).nbytes
    /// 16
    #[pyo3(signature = (size, offset = 0))]
    fn as_buffer<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::size)] size: usize,
        #[pyo3(from_py_with = argument::offset)] offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        view(py, &self.memory, size, offset)
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

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let memory = slf.get().memory();
        let freed = if memory.is_allocated() { "" } else { ", freed" };
        Ok(format!(
            "<{} of {} bytes at {:#x}{freed}>",
            slf.get_type().name()?,
            memory.bytes(),
            memory.address()
        ))
    }
}

/// Allocates memory on the current device that every stream can use immediately, and that other processes can
/// open through its handle (`cuMemAlloc`, `hipMalloc`).
///
/// Parameters
/// ----------
/// bytes : int. The number of bytes, above zero.
///
/// Returns
/// -------
/// DeviceAllocation
///     The memory, its bytes undefined.
///
/// Raises
/// ------
/// TypeError
///     `bytes` is not an integer.
/// LogicError
///     `bytes` is not above zero.
/// MemoryError
///     Not enough memory is available.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.mem_alloc(100)
/// >>> memory.size
/// 100
#[pyfunction]
pub(crate) fn mem_alloc(bytes: &Bound<'_, PyAny>) -> PyResult<DeviceAllocation> {
    let _line = at_line(bytes.py());
    let bytes = positive("mem_alloc", "bytes", bytes)?;
    let memory = DeviceMemory::plain(&current_device()?.device, bytes).or_raise()?;
    note_allocation(memory.address());
    let memory = ManuallyDrop::new(Arc::new(memory));
    Ok(DeviceAllocation { memory, allocation: None, waits: true })
}

/// Allocates `bytes` bytes for work on the default stream from now on.
pub(crate) fn mem_alloc_ordered(py: Python<'_>, bytes: usize) -> PyResult<DeviceAllocation> {
    let _line = at_line(py);
    let current = current_device()?;
    let memory = DeviceMemory::for_stream(&current.device, &current.stream, bytes).or_raise()?;
    Ok(DeviceAllocation::new(Arc::new(memory)))
}

/// Allocates rows of device memory that are aligned for the device (`cuMemAllocPitch`, `hipMemAllocPitch`).
///
/// Parameters
/// ----------
/// width : int. The bytes of a row.
/// height : int. The number of rows.
/// access_size : {4, 8, 16}. The bytes that a kernel reads in one access.
///
/// Returns
/// -------
/// memory : DeviceAllocation
///     The memory, its bytes undefined.
/// pitch : int
///     The row pitch: bytes from the start of one row to the start of the next.
///
/// Raises
/// ------
/// LogicError
///     A size is not above zero, or `access_size` is another number.
/// MemoryError
///     Not enough memory is available.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> memory, pitch = driver.mem_alloc_pitch(100, 8, 4)
/// >>> pitch >= 100, pitch % 4
/// (True, 0)
#[pyfunction]
pub(crate) fn mem_alloc_pitch(
    width: &Bound<'_, PyAny>,
    height: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = argument::access_size)] access_size: usize,
) -> PyResult<(DeviceAllocation, usize)> {
    let _line = at_line(width.py());
    let width = positive("mem_alloc_pitch", "width", width)?;
    let height = positive("mem_alloc_pitch", "height", height)?;
    let rows = Pitched::new(&current_device()?.device, width, height, access_size).or_raise()?;
    let pitch = rows.pitch();
    Ok((DeviceAllocation::of(rows.into_allocation()), pitch))
}

/// Returns the allocation that contains an address (`cuMemGetAddressRange`, `hipMemGetAddressRange`).
///
/// Parameters
/// ----------
/// devptr : DeviceAllocation, GPUArray or int. An address of device memory.
///
/// Returns
/// -------
/// base : int
///     The base address of the allocation.
/// size : int
///     Its bytes.
///
/// Raises
/// ------
/// LogicError
///     The address is not in device memory.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.mem_alloc(100)
/// >>> driver.mem_get_address_range(int(memory) + 10) == (int(memory), 100)
/// True
#[pyfunction]
pub(crate) fn mem_get_address_range(devptr: &Bound<'_, PyAny>) -> PyResult<(u64, usize)> {
    if let Some(memory) = memory_of(devptr)? {
        return Ok((memory.address(), memory.bytes()));
    }
    current_device()?.device.address_range(address_of("devptr", devptr)?).or_raise()
}

/// Parses a number of bytes above zero.
pub(crate) fn positive(
    call: &'static str,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let number = value.call_method0("__index__").map_err(|_| {
        let text = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        PyTypeError::new_err(format!("{name} is {text}; a whole number is needed"))
    })?;
    match number.extract::<isize>() {
        Ok(number) if number > 0 => Ok(number as usize),
        _ => Err(to_python(Error::invalid(
            call,
            format!("{name} is {number}; allowed are 1 to {}", isize::MAX),
        ))),
    }
}

/// Returns the memory of an allocation, even if it was freed; `None` for any other object.
pub(crate) fn known_memory_of<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a Arc<DeviceMemory>> {
    if let Ok(allocation) = value.cast::<DeviceAllocation>() {
        return Some(allocation.get().memory());
    }
    value.cast::<PooledDeviceAllocation>().ok().map(|allocation| allocation.get().any_memory())
}

/// Returns the memory of an allocation; `None` for any other object.
///
/// Raises `LogicError` for memory that has been freed.
pub(crate) fn memory_of<'a>(
    value: &'a Bound<'_, PyAny>,
) -> PyResult<Option<&'a Arc<DeviceMemory>>> {
    if let Ok(allocation) = value.cast::<DeviceAllocation>() {
        allocation.get().memory().check().or_raise()?;
        return Ok(Some(allocation.get().memory()));
    }
    match value.cast::<PooledDeviceAllocation>() {
        Ok(allocation) => allocation.get().memory().map(Some),
        Err(_) => Ok(None),
    }
}

/// Returns the address that an object represents. The object must have `__index__` without being an array outside of host
/// memory, whose element is not an address, or `__int__` without being a number with a fraction.
///
/// Raises `TypeError` for any other object, with the exception of the object's method as its cause.
pub(crate) fn address_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Some(memory) = memory_of(value)? {
        return Ok(memory.address());
    }
    let py = value.py();
    // SAFETY: the object is live.
    let has_index = unsafe { ffi::PyIndex_Check(value.as_ptr()) } != 0;
    let number = if value.is_exact_instance_of::<PyInt>() {
        Ok(value.clone())
    } else if has_index
        && (value.is_instance_of::<PyUntypedArray>()
            || !value.get_type().hasattr("__array_function__")?)
    {
        value.call_method0("__index__")
    } else if value.hasattr("__int__")? && !value.hasattr("__float__")? {
        value.call_method0("__int__")
    } else {
        return Err(no_address(name, value));
    };
    let number = number.map_err(|cause| {
        // An interrupt does not come from the object.
        if !cause.is_instance_of::<PyException>(py) {
            return cause;
        }
        let error = no_address(name, value);
        error.set_cause(py, Some(cause));
        error
    })?;
    number.extract::<u64>().map_err(|cause| {
        if !number.is_instance_of::<PyInt>() {
            return no_address(name, value);
        }
        let error = PyOverflowError::new_err(format!("{name} is {number}; an address has 64 bits"));
        error.set_cause(py, Some(cause));
        error
    })
}

fn no_address(name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "{name} is of type {}; a device allocation or an address is needed{}",
        numpy_array::type_name(value),
        numpy_array::copy_hint(value)
    ))
}
