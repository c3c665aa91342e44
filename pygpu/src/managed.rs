//! Managed memory, which host and device share.

use crate::allocation::{DeviceAllocation, address_of};
use crate::current_device::current_device;
use crate::deferred_drop;
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array::{HostArray, WeakArray};
use crate::profile::at_line;
use crate::shape::{order_argument, parse_order, parse_shape};
use crate::stream::stream_argument;
use gpuarray::memory::Managed;
use gpuarray::{Error, Layout, PrefetchTarget};
use pyo3::prelude::*;

/// `CU_MEM_ATTACH_GLOBAL`, `CU_MEM_ATTACH_HOST`, `CU_MEM_ATTACH_SINGLE`.
const GLOBAL: u32 = 1;
const HOST: u32 = 2;
const SINGLE: u32 = 4;

/// Managed memory, which host and device share: the base of an array of `managed_empty`, which
/// keeps it alive. Otherwise, it behaves like `DeviceAllocation`.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> memory = driver.managed_empty(3, np.float32).base
/// >>> isinstance(memory, driver.DeviceAllocation)
/// True
/// >>> memory.attach(driver.mem_attach_flags.HOST)
/// >>> driver.Context.synchronize()
/// >>> memory.get_device_pointer() == int(memory)
/// True
/// >>> memory.free()
#[pyclass(frozen, extends = DeviceAllocation, module = "pygpu.driver")]
#[derive(Default)]
pub(crate) struct ManagedAllocation {
    array: WeakArray,
}

#[pymethods]
impl ManagedAllocation {
    /// Returns the address of the memory, for the device and for the host.
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
    fn get_device_pointer(slf: &Bound<'_, Self>) -> PyResult<u64> {
        address_of("the allocation", slf.as_any())
    }

    /// Ends the device's use of the memory, and frees it after the work that uses it. If the numpy
    /// array over it still exists, the memory is freed with that array.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     A buffer of `as_buffer` still exists, or the memory was already freed.
    fn free(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, allocation) = (slf.py(), slf.as_super().get());
        allocation.retire(py)?;
        if slf.get().array.is_alive(py) {
            return Ok(());
        }
        allocation.end(py)
    }

    /// Says where the memory is used next (`cuMemPrefetchAsync`, `hipMemPrefetchAsync`).
    ///
    /// After the work queued on `stream`, the memory migrates to the host
    /// (`mem_attach_flags.HOST`), to the device (`SINGLE`), or to wherever it is accessed
    /// (`GLOBAL`). Both may use it in any case; in PyCUDA, the flags also forbid uses.
    ///
    /// Parameters
    /// ----------
    /// mem_flags : mem_attach_flags. The side that uses it next.
    /// stream : Stream, optional
    ///     The stream on which the migration is queued; the default stream if omitted.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     `mem_flags` is another number, or the memory was freed.
    #[pyo3(signature = (mem_flags, stream = None))]
    fn attach(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = argument::mem_flags)] mem_flags: u32,
        stream: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let stream = stream_argument(stream, &current_device()?)?;
        let target = match mem_flags {
            GLOBAL => return Ok(()),
            HOST => PrefetchTarget::Host,
            SINGLE => PrefetchTarget::Device,
            _ => {
                return Err(to_python(Error::invalid(
                    "attach",
                    format!(
                        "mem_flags is {mem_flags}; allowed are 1 (global), 2 (host), 4 (single)"
                    ),
                )));
            }
        };
        let memory = slf.as_super().get().memory();
        // SAFETY: the range is managed memory, which is freed after the stream's work.
        unsafe { stream.prefetch(memory.address(), memory.bytes(), target) }.or_raise()
    }
}

/// Returns a numpy array with undefined elements in managed memory, which host and device share
/// (`cuMemAllocManaged`, `hipMallocManaged`).
///
/// The array's `base` is a `ManagedAllocation`, which owns the memory. Other arguments are as in
/// :func:`pagelocked_empty`.
///
/// Parameters
/// ----------
/// mem_flags : int. A value of `driver.mem_attach_flags`: GLOBAL, HOST, or 0.
///
/// Raises
/// ------
/// LogicError
///     `mem_flags` is another value.
/// MemoryError
///     Not enough memory is available.
/// Unsupported
///     The device does not support managed memory.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, driver
/// >>> a = driver.managed_empty((2, 3), np.float32, mem_flags=driver.mem_attach_flags.GLOBAL)
/// >>> driver.Context.synchronize()
/// >>> a[...] = 1
/// >>> a.base.get_device_pointer() == a.ctypes.data
/// True
#[pyfunction]
#[pyo3(signature = (shape, dtype, order = "C", mem_flags = 0))]
pub(crate) fn managed_empty<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    #[pyo3(from_py_with = argument::mem_flags)] mem_flags: u32,
) -> PyResult<HostArray<'py>> {
    // The initial location; the memory migrates to the side that accesses it anyway.
    if ![0, GLOBAL, HOST].contains(&mem_flags) {
        return Err(to_python(Error::invalid(
            "managed_empty",
            format!("mem_flags is {mem_flags}; allowed are 1 (global) and 2 (host)"),
        )));
    }
    let (descr, itemsize) = dtypes::parse_for_host(dtype)?;
    let shape = parse_shape(shape)?;
    let layout = Layout::contiguous(&shape, itemsize, parse_order(order)?).or_raise()?;
    let device = current_device()?.device;
    let bytes = layout.nbytes().max(1);
    let _line = at_line(py);
    let memory = deferred_drop::retry(py, || Managed::new(&device, bytes))?.or_raise()?;
    let data = memory.pointer();
    let allocation = DeviceAllocation::of(memory.into_allocation());
    let managed = PyClassInitializer::from(allocation).add_subclass(ManagedAllocation::default());
    let owner = Bound::new(py, managed)?;
    // SAFETY: the owner has at least as many bytes as the layout, which the host can use.
    unsafe { owner.get().array.over(&owner, &descr, &layout, data) }
}
