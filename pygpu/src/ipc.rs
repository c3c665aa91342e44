//! Sharing of memory with other processes.

use crate::allocation::{DeviceAllocation, address_of};
use crate::current_device::current_device;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use gpuarray::memory::Imported;
use gpuarray::{Error, IpcHandle};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, the only existing flag.
const LAZY_ENABLE_PEER_ACCESS: u32 = 1;

/// Returns the bytes of a handle.
pub(crate) fn to_object<'py>(py: Python<'py>, handle: &IpcHandle) -> Bound<'py, PyByteArray> {
    PyByteArray::new(py, &handle.0)
}

/// Returns the handle in a bytearray, or in bytes.
pub(crate) fn parse(call: &'static str, value: &Bound<'_, PyAny>) -> PyResult<IpcHandle> {
    let bytes = match value.cast::<PyByteArray>() {
        Ok(array) => array.to_vec(),
        Err(_) => value
            .cast::<PyBytes>()
            .map_err(|_| {
                to_python(Error::invalid_type(call, "handle must be a bytearray or bytes"))
            })?
            .as_bytes()
            .to_vec(),
    };
    let handle = <[u8; 64]>::try_from(bytes.as_slice()).map_err(|_| {
        to_python(Error::invalid(call, format!("handle has length {}; 64 is needed", bytes.len())))
    })?;
    Ok(IpcHandle(handle))
}

/// Returns a handle with which other processes open memory of `mem_alloc` as an `IPCMemoryHandle`
/// (`cuIpcGetMemHandle`, `hipIpcGetMemHandle`). Waits for the device's work. To share arrays, use `pygpu.ipc`.
///
/// Parameters
/// ----------
/// devptr : DeviceAllocation, GPUArray or int
///     An address in the memory. The handle is for the whole allocation.
///
/// Returns
/// -------
/// bytearray
///     64 octets.
///
/// Raises
/// ------
/// LogicError
///     The memory cannot be shared: it is stream-ordered, belongs to a pool, or comes from another
///     process. Memory of arrays is stream-ordered, unless the environment has
///     ``PYGPU_ARRAY_MEMORY=plain``.
/// Unsupported
///     The device cannot share memory.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.mem_alloc(100)
/// >>> len(driver.mem_get_ipc_handle(memory))
/// 64
#[pyfunction]
pub(crate) fn mem_get_ipc_handle<'py>(
    py: Python<'py>,
    devptr: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let address = address_of("devptr", devptr)?;
    let device = current_device()?.device;
    let handle = device.export_memory(address).or_raise()?;
    // Nothing orders the other process's uses after the work of this one.
    crate::synchronize::synchronize_device(py, &device)?;
    Ok(to_object(py, &handle))
}

/// Device memory that another process has exported (`cuIpcOpenMemHandle`, `hipIpcOpenMemHandle`). It is closed
/// by `close`, or when it is no longer referenced. Otherwise, it behaves like `DeviceAllocation`.
///
/// Parameters
/// ----------
/// handle : bytearray or bytes. The result of `mem_get_ipc_handle` in the other process.
/// flags : int. 1, `driver.ipc_mem_flags.LAZY_ENABLE_PEER_ACCESS`.
///
/// Raises
/// ------
/// LogicError
///     The handle is invalid, comes from this process (on CUDA and HIP), or the other process
///     has freed the memory.
/// Unsupported
///     The device cannot share memory.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver
/// >>> driver.IPCMemoryHandle(bytearray(3))
/// Traceback (most recent call last):
///     ...
/// pygpu._errors.InvalidArgument: handle has length 3; 64 is needed
#[pyclass(frozen, extends = DeviceAllocation, module = "pygpu.driver")]
pub(crate) struct IPCMemoryHandle;

#[pymethods]
impl IPCMemoryHandle {
    #[new]
    #[pyo3(signature = (handle, flags = 1))]
    fn new(
        py: Python<'_>,
        handle: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = argument::flags)] flags: u32,
    ) -> PyResult<PyClassInitializer<IPCMemoryHandle>> {
        let handle = parse("IPCMemoryHandle", handle)?;
        if flags != LAZY_ENABLE_PEER_ACCESS {
            return Err(to_python(Error::invalid(
                "IPCMemoryHandle",
                format!("flags is {flags}; allowed is 1 (lazy peer access)"),
            )));
        }
        let device = current_device()?.device;
        // SAFETY: the program orders the work of the processes, as the documentation of `pygpu.ipc` requires.
        let opened = py.detach(|| unsafe { Imported::open(&device, &handle) }).or_raise()?;
        let allocation = DeviceAllocation::of(opened.into_allocation());
        Ok(PyClassInitializer::from(allocation).add_subclass(IPCMemoryHandle))
    }

    /// Ends the use of the memory (`cuIpcCloseMemHandle`, `hipIpcCloseMemHandle`), after the work that uses
    /// it.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The memory was already closed, or a buffer of `as_buffer` still exists.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().free(slf.py())
    }
}
