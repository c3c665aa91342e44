//! A pool of page-locked memory.

use super::pool_members;
use crate::current_device::current_device;
use crate::deferred_drop::{self, DeferredDrop};
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::numpy_array::{HostArray, WeakArray};
use crate::pinned;
use crate::shape::{order_argument, parse_order, parse_shape};
use gpuarray::memory::PinnedMemory;
use gpuarray::{Error, ErrorKind, Layout, PinnedOptions};
use hal::memory::pool::{PinnedPool, PoolCounts, PooledPinned};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An allocator for a pool's page-locked memory: an argument of `PageLockedMemoryPool`.
///
/// Parameters
/// ----------
/// flags : int. Values of `driver.host_alloc_flags`.
///
/// Raises
/// ------
/// LogicError
///     `flags` has other bits.
///
/// Examples
/// --------
/// >>> from pygpu import driver, tools
/// >>> tools.PageLockedAllocator(driver.host_alloc_flags.PORTABLE)
/// <PageLockedAllocator(portable=1, mapped=0, write_combined=0)>
#[pyclass(frozen, module = "pygpu.tools")]
pub(crate) struct PageLockedAllocator {
    options: PinnedOptions,
}

#[pymethods]
impl PageLockedAllocator {
    #[new]
    #[pyo3(signature = (flags = 0))]
    fn new(#[pyo3(from_py_with = argument::flags)] flags: u32) -> PyResult<PageLockedAllocator> {
        Ok(PageLockedAllocator { options: pinned::alloc_options("flags", flags)? })
    }

    fn __repr__(&self) -> String {
        let PinnedOptions { portable, mapped, write_combined, .. } = self.options;
        format!(
            "<PageLockedAllocator(portable={}, mapped={}, write_combined={})>",
            u8::from(portable),
            u8::from(mapped),
            u8::from(write_combined)
        )
    }
}

/// A pool of page-locked memory: freed blocks are kept for later requests of their size.
///
/// A block returns to the pool after the copies that were queued when its array was dropped. In
/// PyCUDA, the program has to wait for them.
///
/// Parameters
/// ----------
/// allocator : PageLockedAllocator, optional. Allocates the memory.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, tools
/// >>> pool = tools.PageLockedMemoryPool()
/// >>> a = pool.allocate((2, 3), np.float32)
/// >>> a.shape, pool.active_blocks
/// ((2, 3), 1)
/// >>> pool.stop_holding()
/// >>> pool.alloc_size(pool.bin_number(100)) >= 100  # bytes
/// True
/// >>> pool.free_held()
#[pyclass(frozen, subclass, dict, weakref, module = "pygpu.tools")]
pub(crate) struct PageLockedMemoryPool {
    pool: PinnedPool,
}

/// Frees blocks after the current work of their devices.
fn discard_blocks(blocks: Vec<PinnedMemory>) {
    for block in blocks {
        deferred_drop::drop_later(&block.device().clone(), block);
    }
}

impl PageLockedMemoryPool {
    fn counts(&self) -> PoolCounts {
        self.pool.counts()
    }

    fn take(&self, py: Python<'_>, size: usize) -> PyResult<PooledPinned> {
        if let Some(block) = self.pool.take(size) {
            return Ok(block);
        }
        let device = current_device()?.device;
        loop {
            match deferred_drop::retry(py, || self.pool.make(&device, size))? {
                Err(error)
                    if error.kind() == ErrorKind::OutOfMemory && self.pool.free_largest() => {}
                made => return made.or_raise(),
            }
        }
    }
}

#[pymethods]
impl PageLockedMemoryPool {
    #[new]
    #[pyo3(signature = (allocator = None))]
    fn new(allocator: Option<&Bound<'_, PageLockedAllocator>>) -> PageLockedMemoryPool {
        let options = allocator.map_or_else(PinnedOptions::default, |it| it.get().options);
        PageLockedMemoryPool { pool: PinnedPool::dropping_with(options, discard_blocks) }
    }

    /// Returns a numpy array with undefined elements in page-locked memory: a kept block, if one fits.
    ///
    /// Its `base` is a `PooledHostAllocation`. Arguments are as in :func:`driver.pagelocked_empty`.
    ///
    /// Raises
    /// ------
    /// MemoryError
    ///     Not enough memory is available, even after the kept blocks are freed.
    #[pyo3(signature = (shape, dtype, order = "C"))]
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = order_argument)] order: Option<&str>,
    ) -> PyResult<HostArray<'py>> {
        let (descr, element) = dtypes::parse(dtype)?;
        let layout = Layout::contiguous(&parse_shape(shape)?, element.size(), parse_order(order)?)
            .or_raise()?;
        let size = layout.nbytes();
        let block = self.take(py, size)?;
        let (pointer, device) = (block.memory().pointer(), block.memory().device().clone());
        let allocation = PooledHostAllocation {
            block: Mutex::new(Some(DeferredDrop::new(&device, block))),
            is_freed: AtomicBool::new(false),
            array: WeakArray::default(),
            size,
        };
        let owner = Bound::new(py, allocation)?;
        // SAFETY: the block has as many bytes as the layout, and stays with the owner.
        unsafe { owner.get().array.over(&owner, &descr, &layout, pointer) }
    }

    fn __repr__(&self) -> String {
        format!("<PageLockedMemoryPool: {}>", self.counts())
    }
}

pool_members!(PageLockedMemoryPool);

/// Page-locked memory of a pool: the base of an array of `PageLockedMemoryPool.allocate`. It
/// returns to the pool when no array uses it any longer, or when `free` is called.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> from pygpu import autoinit, tools
/// >>> pool = tools.PageLockedMemoryPool()
/// >>> len(pool.allocate(3, np.float32).base)
/// 12
/// >>> pool.stop_holding()
/// >>> array = pool.allocate(3, np.float32)
/// >>> array.base.free()
#[pyclass(frozen, dict, weakref, module = "pygpu.tools")]
pub(crate) struct PooledHostAllocation {
    /// Returns to the pool after the copies that are queued, which may still use it.
    block: Mutex<Option<DeferredDrop<PooledPinned>>>,
    is_freed: AtomicBool,
    array: WeakArray,
    size: usize,
}

impl PooledHostAllocation {
    /// Returns an object that prevents the memory from returning to the pool.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.array.hold()
    }
}

#[pymethods]
impl PooledHostAllocation {
    /// Returns the memory to the pool, after the copies that are queued. If the numpy array over it
    /// still exists, the memory is returned with that array.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The memory was already returned.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_freed.swap(true, Ordering::AcqRel) {
            return Err(to_python(Error::handle("free", "the memory was returned to its pool")));
        }
        if !self.array.is_alive(py) {
            let block = self.block.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(block);
        }
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.size
    }

    fn __repr__(&self) -> String {
        let freed = if self.is_freed.load(Ordering::Acquire) { ", given back" } else { "" };
        format!("<PooledHostAllocation of {} bytes{freed}>", self.size)
    }
}
