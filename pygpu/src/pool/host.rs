//! A pool of page-locked memory.

use super::bins::{Bins, bin_number, block_size};
use super::pool_members;
use crate::array::{parse_order, parse_shape};
use crate::discard::{self, Discarded};
use crate::dtypes;
use crate::errors::{OrRaise, to_python};
use crate::host::{self, HostArray};
use crate::integer::argument;
use crate::pinned;
use crate::runtime::current;
use crate::tenant::Tenant;
use gpuarray::memory::PinnedMemory;
use gpuarray::process::{self, ProcessMutex};
use gpuarray::{Error, ErrorKind, Layout, PinnedOptions};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a pool's page-locked memory is made.
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
        let PinnedOptions { portable, mapped, write_combined } = self.options;
        format!(
            "<PageLockedAllocator(portable={}, mapped={}, write_combined={})>",
            u8::from(portable),
            u8::from(mapped),
            u8::from(write_combined)
        )
    }
}

type Block = Discarded<PinnedMemory>;
/// A forked child starts with a pool of no blocks: its parent's are out of its reach.
type HostBins = ProcessMutex<Bins<Block>>;

/// Keeps freed page-locked memory for the next request of its size.
///
/// A block goes back to the pool behind the copies that were queued when its array went.
#[pyclass(frozen, subclass, weakref, module = "pygpu.tools")]
pub(crate) struct PageLockedMemoryPool {
    bins: Arc<HostBins>,
    options: PinnedOptions,
}

impl PageLockedMemoryPool {
    fn counts<T>(&self, read: impl FnOnce(&Bins<Block>) -> T) -> T {
        read(&self.bins.lock())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Bins<Block>) -> T) -> T {
        change(&mut self.bins.lock())
    }

    fn take(&self, py: Python<'_>, size: usize) -> PyResult<Block> {
        if let Some(memory) = self.bins.lock().take(size) {
            return Ok(memory);
        }
        let too_large = || to_python(Error::overflow("allocate", format!("size is {size}")));
        let bytes = block_size(bin_number(size)).ok_or_else(too_large)?;
        let device = current()?.device;
        let make = || PinnedMemory::with_options(&device, bytes, self.options);
        let memory = loop {
            match discard::retry(py, make)? {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    let Some(largest) = self.bins.lock().take_largest() else {
                        return Err(to_python(error));
                    };
                    drop(largest);
                }
                made => break made.or_raise()?,
            }
        };
        self.bins.lock().add(size, bytes);
        Ok(Discarded::new(&device, memory))
    }
}

#[pymethods]
impl PageLockedMemoryPool {
    #[new]
    #[pyo3(signature = (allocator = None))]
    fn new(allocator: Option<&Bound<'_, PageLockedAllocator>>) -> PageLockedMemoryPool {
        let options = allocator.map_or_else(PinnedOptions::default, |it| it.get().options);
        PageLockedMemoryPool { bins: Arc::new(ProcessMutex::new(Bins::new)), options }
    }

    /// Returns a numpy array, its elements undefined, in page-locked memory.
    #[pyo3(signature = (shape, dtype, order = "C"))]
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        order: Option<&str>,
    ) -> PyResult<HostArray<'py>> {
        let (descr, element) = dtypes::parse(dtype)?;
        let layout = Layout::contiguous(&parse_shape(shape)?, element.size(), parse_order(order)?)
            .or_raise()?;
        let size = layout.nbytes();
        let block = self.take(py, size)?;
        let (pointer, device) = (block.pointer(), block.device().clone());
        let (bins, generation) = (self.bins.clone(), process::generation());
        let used = UsedBlock { block: Some(block), size, bins, generation };
        let allocation = PooledHostAllocation {
            block: Mutex::new(Some(Discarded::new(&device, used))),
            is_freed: AtomicBool::new(false),
            array: Tenant::default(),
            size,
        };
        let owner = Bound::new(py, allocation)?;
        let base = Some(owner.clone().into_any());
        // SAFETY: the block has as many bytes as the layout, and stays with the owner.
        let array = unsafe {
            host::new_array(py, &descr, layout.shape(), layout.strides(), pointer.cast(), base)?
        };
        owner.get().array.set(&array)?;
        Ok(array)
    }

    fn __repr__(&self) -> String {
        format!("<PageLockedMemoryPool: {}>", self.counts(|bins| bins.to_string()))
    }
}

pool_members!(PageLockedMemoryPool);

/// A block in use, which goes back to its pool when it is dropped.
struct UsedBlock {
    block: Option<Block>,
    size: usize,
    bins: Arc<HostBins>,
    generation: u32,
}

impl Drop for UsedBlock {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            return;
        }
        if let Some(block) = self.block.take() {
            let unwanted = self.bins.lock().give_back(block, self.size);
            // Not under the lock.
            drop(unwanted);
        }
    }
}

/// Page-locked memory of a pool, given back when no array uses it any longer.
#[pyclass(frozen, weakref, module = "pygpu.tools")]
pub(crate) struct PooledHostAllocation {
    /// Goes back behind the copies that are queued, which may still use it.
    block: Mutex<Option<Discarded<UsedBlock>>>,
    is_freed: AtomicBool,
    array: Tenant,
    size: usize,
}

#[pymethods]
impl PooledHostAllocation {
    /// Gives the memory back to the pool, behind the copies that are queued. Where the numpy
    /// array over it is still there, that keeps the memory until it goes, too.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_freed.swap(true, Ordering::AcqRel) {
            return Err(to_python(Error::handle("free", "the memory was given back to its pool")));
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
