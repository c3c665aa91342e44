//! A pool of page-locked memory.

use super::bins::{Bins, bin_number, block_size};
use super::pool_members;
use crate::array::{parse_order, parse_shape};
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::host::{self, HostArray};
use crate::pinned;
use crate::runtime::current;
use gpuarray::memory::PinnedMemory;
use gpuarray::{Error, ErrorKind, Layout, PinnedOptions, Result};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a pool's page-locked memory is made.
#[pyclass(frozen, module = "pygpu.tools")]
pub(crate) struct PageLockedAllocator {
    options: PinnedOptions,
}

#[pymethods]
impl PageLockedAllocator {
    #[new]
    #[pyo3(signature = (flags = 0))]
    fn new(flags: u32) -> PyResult<PageLockedAllocator> {
        Ok(PageLockedAllocator { options: pinned::alloc_options("flags", flags)? })
    }
}

type HostBins = Mutex<Bins<PinnedMemory>>;

fn lock(bins: &HostBins) -> MutexGuard<'_, Bins<PinnedMemory>> {
    // The bins are valid after every step, so a panic elsewhere spoils nothing.
    bins.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps freed page-locked memory for the next request of its size.
///
/// As with all page-locked memory, an array must be kept until the copies queued from and to
/// it have run.
#[pyclass(frozen, subclass, weakref, module = "pygpu.tools")]
pub(crate) struct PageLockedMemoryPool {
    bins: Arc<HostBins>,
    options: PinnedOptions,
}

impl PageLockedMemoryPool {
    fn counts<T>(&self, read: impl FnOnce(&Bins<PinnedMemory>) -> T) -> T {
        read(&lock(&self.bins))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Bins<PinnedMemory>) -> T) -> T {
        change(&mut lock(&self.bins))
    }

    fn take(&self, size: usize) -> PyResult<PinnedMemory> {
        if let Some(memory) = lock(&self.bins).take(size) {
            return Ok(memory);
        }
        let too_large = || to_python(Error::overflow("allocate", format!("size is {size}")));
        let bytes = block_size(bin_number(size)).ok_or_else(too_large)?;
        let device = current()?.device;
        let make =
            || -> Result<PinnedMemory> { PinnedMemory::with_options(&device, bytes, self.options) };
        let memory = loop {
            match make() {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    let Some(largest) = lock(&self.bins).take_largest() else {
                        return Err(to_python(error));
                    };
                    drop(largest);
                }
                made => break made.or_raise()?,
            }
        };
        lock(&self.bins).add(size, bytes);
        Ok(memory)
    }
}

#[pymethods]
impl PageLockedMemoryPool {
    #[new]
    #[pyo3(signature = (allocator = None))]
    fn new(allocator: Option<&Bound<'_, PageLockedAllocator>>) -> PageLockedMemoryPool {
        let options = allocator.map_or_else(PinnedOptions::default, |it| it.get().options);
        PageLockedMemoryPool { bins: Arc::new(Mutex::new(Bins::new())), options }
    }

    /// A numpy array, its elements undefined, in page-locked memory.
    #[pyo3(signature = (shape, dtype, order = "C"))]
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        order: &str,
    ) -> PyResult<HostArray<'py>> {
        let (descr, element) = dtypes::parse(dtype)?;
        let layout = Layout::contiguous(&parse_shape(shape)?, element.size(), parse_order(order)?)
            .or_raise()?;
        let size = layout.nbytes();
        let memory = self.take(size)?;
        let pointer = memory.pointer();
        let allocation =
            PooledHostAllocation { block: Mutex::new(Some(memory)), size, bins: self.bins.clone() };
        let owner = Bound::new(py, allocation)?.into_any();
        // SAFETY: the block has as many bytes as the layout, and stays with the owner.
        unsafe {
            host::new_array(
                py,
                &descr,
                layout.shape(),
                layout.strides(),
                pointer.cast(),
                Some(owner),
            )
        }
    }
}

pool_members!(PageLockedMemoryPool);

/// Page-locked memory of a pool, given back when no array uses it any longer.
#[pyclass(frozen, weakref, module = "pygpu.tools")]
pub(crate) struct PooledHostAllocation {
    block: Mutex<Option<PinnedMemory>>,
    size: usize,
    bins: Arc<HostBins>,
}

impl PooledHostAllocation {
    fn give_back(&self) -> bool {
        let block = self.block.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(block) = block else {
            return false;
        };
        let unwanted = lock(&self.bins).give_back(block, self.size);
        drop(unwanted);
        true
    }
}

impl Drop for PooledHostAllocation {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[pymethods]
impl PooledHostAllocation {
    /// Gives the memory back to the pool now. Arrays over it must not be used any longer.
    fn free(&self) -> PyResult<()> {
        if self.give_back() {
            return Ok(());
        }
        Err(to_python(Error::handle("free", "the memory was given back to its pool")))
    }

    fn __len__(&self) -> usize {
        self.size
    }
}
