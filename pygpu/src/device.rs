//! Devices: their properties, and their settings for a thread.

use crate::current_device::{self, CurrentDevice, backend, current_device};
use crate::errors::OrRaise;
use crate::integer::argument;
use gpuarray::{Device, DeviceAttribute};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// Returns every backend and, if it is not available, the reason.
///
/// Returns
/// -------
/// list of dict
///     For each backend its `name`; `available`, True or False; the `version` of its driver, or
///     None; `devices`, a list of dictionaries with `ordinal`, `name`, `pci_bus_id`,
///     `compute_capability` and `total_memory` in bytes; and the `reason` if it is not available,
///     else None.
///
/// Examples
/// --------
/// >>> import pygpu
/// >>> [backend["name"] for backend in pygpu.backends()]
/// ['cuda', 'hip', 'host']
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

/// Returns the number of devices.
#[pyfunction]
pub(crate) fn device_count() -> PyResult<usize> {
    backend()?.device_count().or_raise()
}

/// Returns the version of the driver.
#[pyfunction]
pub(crate) fn driver_version() -> PyResult<i32> {
    backend()?.version().or_raise()
}

fn handle(ordinal: usize) -> PyResult<Arc<dyn Device>> {
    Ok(current_device::device(ordinal)?.device)
}

/// Returns the name, bus id, compute capability and bytes of memory of a device.
#[pyfunction]
pub(crate) fn device_properties(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<(String, String, (u32, u32), usize)> {
    let CurrentDevice { device, .. } = current_device::device(ordinal)?;
    let p = device.properties();
    Ok((p.name.clone(), p.pci_bus_id.clone(), p.compute_capability, p.total_memory))
}

/// Returns the number of the device with a PCI bus id, or with a UUID (`GPU-...`).
#[pyfunction]
pub(crate) fn device_by_name(name: &str) -> PyResult<usize> {
    let backend = backend()?;
    let device = match name.starts_with("GPU-") {
        true => backend.device_by_uuid(name),
        false => backend.device_by_pci_bus_id(name),
    };
    Ok(device.or_raise()?.id().ordinal)
}

/// Returns the device's UUID as text; `None` if it lacks one.
#[pyfunction]
pub(crate) fn device_uuid(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<Option<String>> {
    Ok(handle(ordinal)?.properties().uuid_text())
}

/// Returns the compilers' name of the device; empty for the host.
#[pyfunction]
pub(crate) fn device_architecture(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<String> {
    Ok(handle(ordinal)?.properties().architecture.clone())
}

/// Returns the number of this thread's device, and its number of resets: code that was compiled before a
/// reset is invalid.
#[pyfunction]
pub(crate) fn current_device_key() -> PyResult<(usize, u64)> {
    let current = current_device()?.device;
    Ok((current.id().ordinal, current.epoch()))
}

/// Returns the least and the greatest priority of a device's streams.
#[pyfunction]
pub(crate) fn stream_priority_range(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<(i32, i32)> {
    handle(ordinal)?.priority_range().or_raise()
}

/// Destroys everything on a device.
#[pyfunction]
pub(crate) fn reset_device(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<()> {
    let device = handle(ordinal)?;
    // SAFETY: as documented, and as in every GPU library, the program's earlier objects become invalid.
    py.detach(|| unsafe { device.reset() }).or_raise()
}

/// Returns true if kernels on one device could use the other's memory.
#[pyfunction]
pub(crate) fn can_access_peer(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
    #[pyo3(from_py_with = argument::other)] other: usize,
) -> PyResult<bool> {
    handle(ordinal)?.can_access_peer(handle(other)?.as_ref()).or_raise()
}

/// Allows kernels on the current device to use another device's memory, or forbids it.
#[pyfunction]
pub(crate) fn set_peer_access(
    #[pyo3(from_py_with = argument::other)] other: usize,
    enabled: bool,
) -> PyResult<()> {
    let (device, other) = (current_device()?.device, handle(other)?);
    match enabled {
        true => device.enable_peer_access(other.as_ref()),
        false => device.disable_peer_access(other.as_ref()),
    }
    .or_raise()
}

/// Returns a numbered limit of the current device.
#[pyfunction]
pub(crate) fn get_limit(#[pyo3(from_py_with = argument::limit)] limit: i32) -> PyResult<usize> {
    current_device()?.device.limit(limit).or_raise()
}

/// Returns the driver's handle of a device's context.
#[pyfunction]
pub(crate) fn context_handle(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
) -> PyResult<u64> {
    handle(ordinal)?.context_handle().or_raise()
}

/// Sets a numbered limit of the current device.
#[pyfunction]
pub(crate) fn set_limit(
    #[pyo3(from_py_with = argument::limit)] limit: i32,
    #[pyo3(from_py_with = argument::value)] value: usize,
) -> PyResult<()> {
    current_device()?.device.set_limit(limit, value).or_raise()
}

/// Releases unused memory of the current device's pool until it holds at most `keep` bytes.
#[pyfunction]
pub(crate) fn trim_memory(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::keep)] keep: usize,
) -> PyResult<()> {
    let device = current_device()?.device;
    py.detach(|| device.trim_memory(keep)).or_raise()
}

/// Starts or ends the recording of an attached profiler.
#[pyfunction]
pub(crate) fn set_profiling(enabled: bool) -> PyResult<()> {
    match enabled {
        true => backend()?.profiler_start(),
        false => backend()?.profiler_stop(),
    }
    .or_raise()
}

/// Returns a numbered attribute of a device.
#[pyfunction]
pub(crate) fn device_attribute(
    #[pyo3(from_py_with = argument::ordinal)] ordinal: usize,
    #[pyo3(from_py_with = argument::attribute)] attribute: i32,
) -> PyResult<i32> {
    handle(ordinal)?.attribute(DeviceAttribute(attribute)).or_raise()
}

/// Returns the number of the current device.
#[pyfunction]
pub(crate) fn current_ordinal() -> PyResult<usize> {
    Ok(current_device()?.device.id().ordinal)
}

/// Waits for all work of the current device.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>) -> PyResult<()> {
    crate::fused_block::compute_pending(py)?;
    crate::synchronize::synchronize_device(py, &current_device()?.device)
}

/// Returns the bytes of freed memory that the current device keeps for later allocations.
#[pyfunction]
pub(crate) fn kept_memory() -> PyResult<usize> {
    current_device()?.device.kept_memory().or_raise()
}

/// Returns the free and total memory of the current device (`cuMemGetInfo`, `hipMemGetInfo`).
///
/// Returns
/// -------
/// free : int
///     The free bytes.
/// total : int
///     The total bytes.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> free, total = driver.mem_get_info()
/// >>> 0 <= free <= total
/// True
#[pyfunction]
pub(crate) fn mem_get_info() -> PyResult<(usize, usize)> {
    let info = current_device()?.device.memory_info().or_raise()?;
    Ok((info.free, info.total))
}
