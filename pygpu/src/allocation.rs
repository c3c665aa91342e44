//! Device memory as Python objects.

use crate::array::GPUArray;
use crate::errors::{OrRaise, to_python};
use crate::pool::PooledDeviceAllocation;
use crate::region::{Origin, Region};
use crate::runtime::current;
use gpuarray::memory::DeviceMemory;
use gpuarray::{Device, Error};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Device memory that is freed behind the work that uses it when nothing refers to it any
/// longer, or when `free` is called.
#[pyclass(frozen, subclass, weakref, module = "pygpu.driver")]
pub(crate) struct DeviceAllocation {
    memory: ManuallyDrop<Arc<DeviceMemory>>,
    /// What ends the memory, if not the memory itself.
    region: Option<Arc<Region>>,
    /// True if freeing the memory may wait for the device.
    waits: bool,
}

impl DeviceAllocation {
    /// Memory that frees itself.
    pub(crate) fn new(memory: Arc<DeviceMemory>) -> DeviceAllocation {
        DeviceAllocation { memory: ManuallyDrop::new(memory), region: None, waits: false }
    }

    /// The memory.
    pub(crate) fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Takes over a range that the device has just given.
    pub(crate) fn adopt(
        device: &Arc<dyn Device>,
        address: u64,
        bytes: usize,
        origin: Origin,
    ) -> DeviceAllocation {
        let (memory, region) = Region::adopt(device, address, bytes, origin);
        let memory = ManuallyDrop::new(memory);
        DeviceAllocation { memory, region: Some(region), waits: true }
    }
}

impl Drop for DeviceAllocation {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if !self.waits {
            return;
        }
        let mut ends = Some((memory, self.region.take()));
        Python::try_attach(|py| py.detach(|| drop(ends.take())));
    }
}

#[pymethods]
impl DeviceAllocation {
    /// Frees the memory now, behind the work that uses it. Using it afterwards is an error.
    pub(crate) fn free(&self, py: Python<'_>) -> PyResult<()> {
        // May wait for the device.
        py.detach(|| {
            self.memory.release()?;
            self.region.as_ref().map_or(Ok(()), |region| region.end())
        })
        .or_raise()
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

    /// A memoryview of the memory for libraries that take device addresses as buffers. It does
    /// not keep the memory; a host cannot read a GPU's memory through it.
    #[pyo3(signature = (size, offset = 0))]
    fn as_buffer<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        if offset.checked_add(size).is_none_or(|end| end > self.memory.bytes()) {
            return Err(to_python(Error::invalid(
                "as_buffer",
                format!(
                    "size is {size} and offset {offset}; the memory has {} bytes",
                    self.memory.bytes()
                ),
            )));
        }
        buffer(py, self.memory.address() + offset as u64, size)
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

/// A memoryview over a range of addresses.
#[pyfunction]
#[pyo3(name = "address_as_buffer")]
pub(crate) fn buffer(py: Python<'_>, address: u64, size: usize) -> PyResult<Bound<'_, PyAny>> {
    const WRITABLE: i32 = 0x200; // PyBUF_WRITE
    let size = isize::try_from(size)
        .map_err(|_| PyOverflowError::new_err(format!("size is {size}; so many do not fit")))?;
    // SAFETY: the object only stands for the range; whoever reads through it vouches for it.
    unsafe {
        let view = ffi::PyMemoryView_FromMemory(address as *mut c_char, size, WRITABLE);
        Bound::from_owned_ptr_or_err(py, view)
    }
}

/// Allocates `bytes` bytes on the current device that every stream can use at once, and other
/// processes once they have its handle.
#[pyfunction]
pub(crate) fn mem_alloc(bytes: &Bound<'_, PyAny>) -> PyResult<DeviceAllocation> {
    let bytes = positive("mem_alloc", "bytes", bytes)?;
    let memory = DeviceMemory::plain(&current()?.device, bytes).or_raise()?;
    let memory = ManuallyDrop::new(Arc::new(memory));
    Ok(DeviceAllocation { memory, region: None, waits: true })
}

/// Allocates `bytes` bytes for work on the default stream from now on.
#[pyfunction]
pub(crate) fn mem_alloc_ordered(bytes: usize) -> PyResult<DeviceAllocation> {
    let current = current()?;
    let memory = DeviceMemory::for_stream(&current.device, &current.stream, bytes).or_raise()?;
    Ok(DeviceAllocation::new(Arc::new(memory)))
}

/// Allocates `height` rows of `width` bytes for elements of `access_size` bytes (4, 8 or 16);
/// gives the memory and the bytes from one row to the next.
#[pyfunction]
pub(crate) fn mem_alloc_pitch(
    width: &Bound<'_, PyAny>,
    height: &Bound<'_, PyAny>,
    access_size: usize,
) -> PyResult<(DeviceAllocation, usize)> {
    let width = positive("mem_alloc_pitch", "width", width)?;
    let height = positive("mem_alloc_pitch", "height", height)?;
    let device = current()?.device;
    let (address, pitch) = device.allocate_pitched(width, height, access_size).or_raise()?;
    let bytes = pitch.saturating_mul(height);
    Ok((DeviceAllocation::adopt(&device, address, bytes, Origin::Allocated), pitch))
}

/// Start and bytes of the allocation that an address lies in.
#[pyfunction]
pub(crate) fn mem_get_address_range(devptr: &Bound<'_, PyAny>) -> PyResult<(u64, usize)> {
    if let Some(memory) = memory_of(devptr)? {
        return Ok((memory.address(), memory.bytes()));
    }
    current()?.device.address_range(address_of("devptr", devptr)?).or_raise()
}

/// A number of bytes above zero.
pub(crate) fn positive(
    call: &'static str,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<usize> {
    let number: i128 = value.extract().map_err(|_| {
        PyTypeError::new_err(format!("{name} is {value}; a whole number is needed"))
    })?;
    match usize::try_from(number) {
        Ok(number) if number > 0 && isize::try_from(number).is_ok() => Ok(number),
        _ => Err(to_python(Error::invalid(
            call,
            format!("{name} is {number}; a number above 0 is needed"),
        ))),
    }
}

/// The memory of an allocation; `None` for anything else.
pub(crate) fn memory_of<'a>(
    value: &'a Bound<'_, PyAny>,
) -> PyResult<Option<&'a Arc<DeviceMemory>>> {
    if let Ok(allocation) = value.cast::<DeviceAllocation>() {
        return Ok(Some(allocation.get().memory()));
    }
    match value.cast::<PooledDeviceAllocation>() {
        Ok(allocation) => allocation.get().memory().map(Some),
        Err(_) => Ok(None),
    }
}

/// The address that an object stands for: anything with `__index__`, or with `__int__` unless it
/// is a number with a fraction.
pub(crate) fn address_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Some(memory) = memory_of(value)? {
        return Ok(memory.address());
    }
    // The number in an array without axes is no address.
    let is_array = value.is_instance_of::<GPUArray>();
    if !is_array && let Ok(address) = value.extract::<u64>() {
        return Ok(address);
    }
    let refused = |_: PyErr| {
        let kind = value.get_type().name().map_or_else(|_| "?".into(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "{name} is of type {kind}; a device allocation or an address is needed"
        ))
    };
    // A number with a fraction has `__int__`, too, but is no address.
    if value.hasattr("__float__")? {
        return Err(refused(PyTypeError::new_err(())));
    }
    value.call_method0("__int__").and_then(|number| number.extract::<u64>()).map_err(refused)
}
