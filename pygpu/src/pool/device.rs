//! Pools of device memory as Python objects. A Python object reports its end with a `Ticket`; a
//! block whose last user was another object is found by searching.

use super::pool_members;
use crate::buffers::view;
use crate::current_device::current_device;
use crate::deferred_drop::drop_unlocked;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::profile::at_line;
use gpuarray::Error;
use gpuarray::memory::DeviceMemory;
use hal::memory::pool::{DevicePool, PoolCounts};
use pyo3::prelude::*;
use std::sync::Arc;

/// Dropped after an object's reference to memory. Its pool then checks whether that was the last
/// reference. Memory whose free may wait for the device is freed without Python's lock.
pub(crate) struct Ticket {
    pool: Option<Arc<DevicePool>>,
    address: u64,
    waits: Option<Arc<DeviceMemory>>,
}

impl Ticket {
    /// Returns the ticket of an object that refers to `memory`, from a pool or not.
    #[inline]
    pub(crate) fn new(pool: Option<&Arc<DevicePool>>, memory: &Arc<DeviceMemory>) -> Ticket {
        let waits = (pool.is_none() && memory.waits_when_freed()).then(|| memory.clone());
        Ticket { pool: pool.cloned(), address: memory.address(), waits }
    }

    /// Returns the pool.
    pub(crate) fn pool(&self) -> Option<&Arc<DevicePool>> {
        self.pool.as_ref()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.drain(self.address);
        }
        if let Some(memory) = self.waits.take()
            && Arc::strong_count(&memory) == 1
        {
            drop_unlocked(memory);
        }
    }
}

/// Device memory of a pool, which `DeviceMemoryPool.allocate` returns. It returns to the pool,
/// after the work that uses it, when it is no longer referenced or when `free` is called.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, tools
/// >>> pool = tools.DeviceMemoryPool()
/// >>> memory = pool.allocate(100)
/// >>> memory.size, pool.active_blocks
/// (100, 1)
/// >>> memory.free()
/// >>> pool.active_blocks, pool.held_blocks
/// (0, 1)
/// >>> pool.stop_holding()
#[pyclass(frozen, dict, weakref, module = "pygpu.tools")]
pub(crate) struct PooledDeviceAllocation {
    memory: Arc<DeviceMemory>,
    size: usize,
    /// Declared after the reference to the memory, because fields are dropped in this order.
    ticket: Ticket,
}

impl PooledDeviceAllocation {
    /// Returns the object for a block of a pool that is in use for `size` bytes.
    pub(crate) fn new(
        pool: &Arc<DevicePool>,
        memory: Arc<DeviceMemory>,
        size: usize,
    ) -> PooledDeviceAllocation {
        let ticket = Ticket::new(Some(pool), &memory);
        PooledDeviceAllocation { memory, size, ticket }
    }

    /// Returns the memory, unless it was returned to the pool.
    pub(crate) fn memory(&self) -> PyResult<&Arc<DeviceMemory>> {
        if self.memory.is_allocated() {
            return Ok(&self.memory);
        }
        Err(to_python(Error::handle("free", "the memory was returned to its pool")))
    }

    /// Returns the memory, even if it was returned to the pool.
    pub(crate) fn any_memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }
}

#[pymethods]
impl PooledDeviceAllocation {
    /// Returns the memory to the pool now. Using it afterwards is an error, also for arrays in it.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     A buffer of `as_buffer` still exists, or the memory was already returned.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        self.memory()?;
        match self.ticket.pool() {
            // May wait for the device, if the pool does not keep blocks.
            Some(pool) => py.detach(|| pool.recall(&self.memory)).or_raise(),
            None => py.detach(|| self.memory.release()).or_raise(),
        }
    }

    fn __int__(&self) -> PyResult<u64> {
        let memory = self.memory()?;
        memory.show_address().or_raise()?;
        Ok(memory.address())
    }

    fn __index__(&self) -> PyResult<u64> {
        self.__int__()
    }

    fn __len__(&self) -> usize {
        self.size
    }

    /// The requested number of bytes.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// Returns a buffer over a part of the memory. While it exists, the block is not reused.
    ///
    /// Arguments are as in :meth:`driver.DeviceAllocation.as_buffer`.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import autoinit, tools
    /// >>> pool = tools.DeviceMemoryPool()
    /// >>> pool.allocate(24).as_buffer(16, offset=8).nbytes
    /// 16
    #[pyo3(signature = (size, offset = 0))]
    fn as_buffer<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = argument::size)] size: usize,
        #[pyo3(from_py_with = argument::offset)] offset: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        view(py, self.memory()?, size, offset)
    }

    fn __repr__(&self) -> String {
        let freed = if self.memory.is_allocated() { "" } else { ", given back" };
        let address = self.memory.address();
        format!("<PooledDeviceAllocation of {} bytes at {address:#x}{freed}>", self.size)
    }
}

/// A pool of device memory: freed blocks are kept for later requests of their size.
///
/// Memory may be used on any stream: the next user's work is ordered after the earlier users' work,
/// which in PyCUDA is up to the program. All memory of a pool belongs to one device, the device of
/// the first request. Its method `allocate` is an allocator for arrays.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, gpuarray, tools
/// >>> pool = tools.DeviceMemoryPool()
/// >>> a = gpuarray.zeros(100, "f4", allocator=pool.allocate)
/// >>> pool.active_blocks, pool.active_bytes
/// (1, 400)
/// >>> del a
/// >>> pool.held_blocks
/// 1
/// >>> pool.free_held()
/// >>> block = pool.allocate(100)
/// >>> pool.alloc_size(pool.bin_number(100)) >= 100  # bytes
/// True
/// >>> pool.stop_holding()
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu.tools")]
pub(crate) struct DeviceMemoryPool {
    pool: Arc<DevicePool>,
}

impl DeviceMemoryPool {
    pub(crate) fn pool(&self) -> &Arc<DevicePool> {
        &self.pool
    }

    fn counts(&self) -> PoolCounts {
        self.pool.counts()
    }
}

#[pymethods]
impl DeviceMemoryPool {
    #[new]
    fn new() -> DeviceMemoryPool {
        DeviceMemoryPool { pool: Arc::new(DevicePool::dropping_with(drop_unlocked)) }
    }

    fn __repr__(&self) -> String {
        format!("<DeviceMemoryPool: {}>", self.counts())
    }

    /// Returns memory on the current device: a kept block if one fits.
    ///
    /// Parameters
    /// ----------
    /// size : int. The required number of bytes.
    ///
    /// Returns
    /// -------
    /// PooledDeviceAllocation
    ///     The memory.
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     Not enough memory is available, even after the kept blocks are freed.
    /// LogicError
    ///     The pool's memory belongs to another device.
    fn allocate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::integer::argument::size)] size: usize,
    ) -> PyResult<PooledDeviceAllocation> {
        let device = current_device()?.device;
        let _line = at_line(py);
        let memory = match self.pool.find(&device, size).or_raise()? {
            Some(memory) => memory,
            None => py.detach(|| self.pool.make(&device, size)).or_raise()?,
        };
        Ok(PooledDeviceAllocation::new(&self.pool, memory, size))
    }
}

pool_members!(DeviceMemoryPool);
