//! Devices, pinned memory and raw copies for `pygpu.driver`.

use crate::allocation::{DeviceAllocation, address_of};
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::host;
use crate::runtime::{self, Current, backend, current};
use crate::stream::stream_argument;
use gpuarray::memory::{Access, AccessGuard, DeviceMemory, PinnedMemory, RegisteredMemory};
use gpuarray::{DeviceAttribute, Direction, Error, Layout, Stream, Transfer};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Arc, Mutex, PoisonError};

/// Every backend as a dictionary: name, available, version, devices, reason.
#[pyfunction]
pub(crate) fn backends(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for info in gpuarray::backends() {
        let entry = PyDict::new(py);
        entry.set_item("name", info.choice.name())?;
        entry.set_item("available", info.state.is_ok())?;
        let devices = PyList::empty(py);
        match info.state {
            Ok(opened) => {
                for (ordinal, properties) in opened.devices.iter().enumerate() {
                    let device = PyDict::new(py);
                    device.set_item("ordinal", ordinal)?;
                    device.set_item("name", &properties.name)?;
                    device.set_item("pci_bus_id", &properties.pci_bus_id)?;
                    device.set_item("compute_capability", properties.compute_capability)?;
                    device.set_item("total_memory", properties.total_memory)?;
                    devices.append(device)?;
                }
                entry.set_item("version", opened.version)?;
                entry.set_item("reason", py.None())?;
            }
            Err(error) => {
                entry.set_item("version", py.None())?;
                entry.set_item("reason", error.detail())?;
            }
        }
        entry.set_item("devices", devices)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Opens the backend.
#[pyfunction]
pub(crate) fn init() -> PyResult<()> {
    backend().map(|_| ())
}

/// The number of devices.
#[pyfunction]
pub(crate) fn device_count() -> PyResult<usize> {
    backend()?.device_count().or_raise()
}

/// The version of the driver.
#[pyfunction]
pub(crate) fn driver_version() -> PyResult<i32> {
    backend()?.version().or_raise()
}

/// Name, bus id, compute capability and bytes of memory of a device.
#[pyfunction]
pub(crate) fn device_properties(ordinal: usize) -> PyResult<(String, String, (u32, u32), usize)> {
    let Current { device, .. } = runtime::device(ordinal)?;
    let p = device.properties();
    Ok((p.name.clone(), p.pci_bus_id.clone(), p.compute_capability, p.total_memory))
}

/// A numbered property of a device.
#[pyfunction]
pub(crate) fn device_attribute(ordinal: usize, attribute: i32) -> PyResult<i32> {
    runtime::device(ordinal)?.device.attribute(DeviceAttribute(attribute)).or_raise()
}

/// The number of the current device.
#[pyfunction]
pub(crate) fn current_ordinal() -> PyResult<usize> {
    Ok(current()?.device.id().ordinal)
}

/// Waits for all work of the current device.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>) -> PyResult<()> {
    let current = current()?;
    py.detach(|| current.device.synchronize()).or_raise()
}

/// Free and total bytes of the current device.
#[pyfunction]
pub(crate) fn mem_get_info() -> PyResult<(usize, usize)> {
    let info = current()?.device.memory_info().or_raise()?;
    Ok((info.free, info.total))
}

/// The status code of the last free that failed.
#[pyfunction]
pub(crate) fn last_failed_free() -> i32 {
    gpuarray::memory::last_failed_free()
}

/// Page-locked host memory; numpy arrays over it keep it alive.
#[pyclass(frozen, weakref, module = "pygpu.driver")]
pub(crate) struct PagelockedHostAllocation {
    memory: PinnedMemory,
}

#[pymethods]
impl PagelockedHostAllocation {
    /// The number of bytes.
    #[getter]
    fn size(&self) -> usize {
        self.memory.len()
    }

    fn __int__(&self) -> u64 {
        self.memory.pointer() as u64
    }

    /// The address under which a device sees the memory.
    fn get_device_pointer(&self) -> u64 {
        self.memory.pointer() as u64
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
    let _ = mem_flags; // Portable, mapped, write-combined: hints that the backend may ignore.
    let (descr, element) = dtypes::parse(dtype)?;
    let shape = crate::array::parse_shape(shape)?;
    let layout =
        Layout::contiguous(&shape, element.size(), crate::array::parse_order(order)?).or_raise()?;
    if layout.size() == 0 {
        return host::empty(py, &descr, &layout);
    }
    let memory = PinnedMemory::new(&current()?.device, layout.nbytes()).or_raise()?;
    let pointer = memory.pointer();
    let owner = Bound::new(py, PagelockedHostAllocation { memory })?.into_any();
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
    /// The array whose memory is registered, which is kept alive.
    #[pyo3(get)]
    base: Py<PyUntypedArray>,
}

#[pymethods]
impl RegisteredHostMemory {
    /// Ends the registration.
    fn unregister(&self, py: Python<'_>) {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Waits for the device.
        py.detach(|| drop(memory));
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
    let _ = flags; // Hints that the backend may ignore.
    let array = host::expect_array("ary", ary)?;
    let block = host::block("ary", ary, true)?;
    let current = current()?;
    // SAFETY: the object keeps the array, and so its memory, as long as the registration.
    let memory = unsafe {
        RegisteredMemory::from_raw(&current.device, block.pointer, block.bytes).or_raise()?
    };
    let registration =
        RegisteredHostMemory { memory: Mutex::new(Some(memory)), base: array.clone().unbind() };
    let owner = Bound::new(py, registration)?.into_any();
    let (shape, strides) = (array.shape(), array.strides());
    // SAFETY: shape and strides are those of the array whose memory the owner keeps.
    unsafe {
        host::new_array(py, &array.dtype(), shape, strides, block.pointer.cast(), Some(owner))
    }
}

/// A place in device memory that an argument names: an allocation, or a raw address.
struct Place {
    address: u64,
    memory: Option<Arc<DeviceMemory>>,
}

impl Place {
    fn new(name: &str, value: &Bound<'_, PyAny>, bytes: usize) -> PyResult<Place> {
        let memory = value.cast::<DeviceAllocation>().ok().map(|a| a.get().memory.clone());
        if let Some(memory) = &memory
            && memory.bytes() < bytes
        {
            return Err(to_python(Error::invalid(
                "memcpy",
                format!("{name} has {} bytes; the copy has {bytes}", memory.bytes()),
            )));
        }
        let address = address_of(name, value)?;
        let device = &current()?.device;
        if memory.is_none() && bytes > 0 && !device.can_access(address, bytes) {
            return Err(to_python(Error::invalid(
                "memcpy",
                format!(
                    "{name} is {address:#x}, where device {} has no {bytes} bytes of memory",
                    device.id()
                ),
            )));
        }
        Ok(Place { address, memory })
    }

    fn access(&self, access: Access) -> Option<(&DeviceMemory, Access)> {
        self.memory.as_deref().map(|memory| (memory, access))
    }
}

fn queue(
    py: Python<'_>,
    stream: &Arc<dyn Stream>,
    uses: &[Option<(&DeviceMemory, Access)>],
    transfer: Transfer,
) -> PyResult<()> {
    if transfer.width == 0 {
        return Ok(());
    }
    py.detach(|| {
        let uses: Vec<_> = uses.iter().copied().flatten().collect();
        let _guard = AccessGuard::acquire(stream, &uses)?;
        // SAFETY: allocations are large enough and ordered by the guard; for raw addresses
        // the program vouches, as with every GPU library. Host memory is kept by the caller,
        // and by the backend's rule that pageable memory is copied before the call returns.
        unsafe { stream.transfer(&transfer) }
    })
    .or_raise()
}

/// Copies from host memory to device memory; with `wait`, returns when it has arrived.
#[pyfunction]
pub(crate) fn copy_to_device(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let block = host::block("src", src, false)?;
    let to = Place::new("dest", dest, block.bytes)?;
    let stream = stream_argument(stream, &current()?)?;
    let transfer = Transfer::linear(
        Direction::HostToDevice,
        to.address,
        block.pointer as u64,
        block.bytes,
        wait,
    );
    queue(py, &stream, &[to.access(Access::Write)], transfer)
}

/// Copies from device memory to host memory; with `wait`, returns when it has arrived.
#[pyfunction]
pub(crate) fn copy_to_host(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let block = host::block("dest", dest, true)?;
    let from = Place::new("src", src, block.bytes)?;
    let stream = stream_argument(stream, &current()?)?;
    let transfer = Transfer::linear(
        Direction::DeviceToHost,
        block.pointer as u64,
        from.address,
        block.bytes,
        wait,
    );
    queue(py, &stream, &[from.access(Access::Read)], transfer)
}

/// Copies inside device memory; with `wait`, returns when it has arrived.
#[pyfunction]
pub(crate) fn copy_on_device(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    size: usize,
    stream: Option<&Bound<'_, PyAny>>,
    wait: bool,
) -> PyResult<()> {
    let (to, from) = (Place::new("dest", dest, size)?, Place::new("src", src, size)?);
    let stream = stream_argument(stream, &current()?)?;
    let transfer =
        Transfer::linear(Direction::DeviceToDevice, to.address, from.address, size, wait);
    queue(py, &stream, &[to.access(Access::Write), from.access(Access::Read)], transfer)
}

/// Fills `count` elements of `width` bytes.
#[pyfunction]
pub(crate) fn fill_memory(
    py: Python<'_>,
    dest: &Bound<'_, PyAny>,
    value: u32,
    width: usize,
    count: usize,
    stream: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let bytes = count.checked_mul(width).ok_or_else(|| {
        to_python(Error::invalid("memset", format!("count is {count}; so many do not fit")))
    })?;
    let to = Place::new("dest", dest, bytes)?;
    let stream = stream_argument(stream, &current()?)?;
    if bytes == 0 {
        return Ok(());
    }
    py.detach(|| {
        let uses: Vec<_> = to.access(Access::Write).into_iter().collect();
        let _guard = AccessGuard::acquire(&stream, &uses)?;
        // SAFETY: as for `queue`.
        unsafe { stream.fill(to.address, value, width, count) }
    })
    .or_raise()
}
