//! A pool of device memory.
//!
//! A block stays the same `DeviceMemory` for all its users, so it remembers which streams have
//! used it: whoever gets it next is ordered behind them without anybody waiting. It is free as
//! soon as the pool alone refers to it. The Python objects over a block say when they go
//! (`Ticket`); a block whose last user was no Python object is found by looking.

use super::bins::{Bins, bin_number, block_size};
use super::pool_members;
use crate::allocation::view;
use crate::discard::drop_unlocked;
use crate::errors::{OrRaise, to_python};
use crate::integer::argument;
use crate::runtime::current;
use gpuarray::memory::{Allocator, DeviceMemory};
use gpuarray::process::ProcessMutex;
use gpuarray::{Device, DeviceId, Error, ErrorKind, Result, Stream};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, MutexGuard};

/// Spreads addresses over a table: they are multiples of large powers of two.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // Fibonacci hashing: the odd number nearest to 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

struct Active {
    memory: Arc<DeviceMemory>,
    size: usize,
}

struct State {
    bins: Bins<Arc<DeviceMemory>>,
    active: HashMap<u64, Active, BuildHasherDefault<AddressHasher>>,
    device: Option<DeviceId>,
    /// Requests since the active blocks were looked through that no held block could serve.
    misses: usize,
}

/// Blocks of one device's memory.
pub(crate) struct DevicePool {
    /// A forked child starts with a pool of no blocks: its parent's are out of its reach.
    state: ProcessMutex<State>,
}

impl fmt::Debug for DevicePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let (held, active) = (state.bins.held_blocks, state.bins.active_blocks);
        write!(f, "DevicePool({held} blocks held, {active} in use)")
    }
}

impl State {
    fn new() -> State {
        State { bins: Bins::new(), active: HashMap::default(), device: None, misses: 0 }
    }

    fn give_out(&mut self, memory: &Arc<DeviceMemory>, size: usize) {
        let active = Active { memory: memory.clone(), size };
        self.active.insert(memory.address(), active);
    }

    /// Takes back the blocks that nobody refers to any longer; gives those to be freed.
    #[must_use]
    fn collect(&mut self) -> Vec<Arc<DeviceMemory>> {
        self.misses = 0;
        let unused = self.active.extract_if(|_, active| Arc::get_mut(&mut active.memory).is_some());
        let unused: Vec<_> = unused.collect();
        let back = |(_, it): (u64, Active)| self.bins.give_back(it.memory, it.size);
        unused.into_iter().filter_map(back).collect()
    }
}

impl DevicePool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A block of at least `size` bytes that nobody uses, if there is one.
    fn find(&self, device: &Arc<dyn Device>, size: usize) -> Result<Option<Arc<DeviceMemory>>> {
        let mut state = self.lock();
        match state.device {
            None => state.device = Some(device.id()),
            Some(own) if own == device.id() => {}
            Some(own) => {
                return Err(Error::invalid(
                    "allocate",
                    format!(
                        "the pool has memory of device {own}, the current device is {}; each \
                         device needs a pool of its own",
                        device.id()
                    ),
                ));
            }
        }
        if let Some(memory) = state.bins.take(size) {
            state.give_out(&memory, size);
            return Ok(Some(memory));
        }
        state.misses += 1;
        // Looking costs a step for each active block, so it is done once for as many requests.
        if state.misses < state.active.len() / 4 {
            return Ok(None);
        }
        let unused = state.collect();
        let found = state.bins.take(size);
        if let Some(memory) = &found {
            state.give_out(memory, size);
        }
        drop(state);
        free_unwanted(unused);
        Ok(found)
    }

    /// A new block of at least `size` bytes; may wait for the device.
    fn make(&self, device: &Arc<dyn Device>, size: usize) -> Result<Arc<DeviceMemory>> {
        let too_large = || Error::overflow("allocate", format!("size is {size}"));
        let bytes = block_size(bin_number(size)).ok_or_else(too_large)?;
        let mut first = true;
        let memory = loop {
            match DeviceMemory::plain(device, bytes) {
                Ok(memory) => break Arc::new(memory),
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                    let unused = if std::mem::take(&mut first) {
                        let mut state = self.lock();
                        let mut unused = state.collect();
                        unused.extend(state.bins.take_largest());
                        unused
                    } else {
                        self.lock().bins.take_largest().into_iter().collect()
                    };
                    if unused.is_empty() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        };
        let mut state = self.lock();
        state.bins.add(size, bytes);
        state.give_out(&memory, size);
        Ok(memory)
    }

    /// Takes a block back if nobody refers to it any longer.
    fn settle(&self, address: u64) {
        let mut state = self.lock();
        let unused = state
            .active
            .get_mut(&address)
            .is_some_and(|active| Arc::get_mut(&mut active.memory).is_some());
        if unused {
            self.release(state, address);
        }
    }

    fn release(&self, mut state: MutexGuard<'_, State>, address: u64) {
        let Some(active) = state.active.remove(&address) else {
            return;
        };
        let unwanted = state.bins.give_back(active.memory, active.size);
        drop(state);
        free_unwanted(unwanted.into_iter().collect());
    }

    /// Takes a block back although somebody may still have its memory's object, whose use is an
    /// error from now on.
    fn recall(&self, memory: &DeviceMemory) -> Result<()> {
        let renewed = memory.reissue()?.map(Arc::new);
        let mut state = self.lock();
        let Some(active) = state.active.remove(&memory.address()) else {
            return Ok(());
        };
        let Some(renewed) = renewed else {
            // A graph uses the block, and its end frees it.
            state.bins.give_up(active.size);
            return Ok(());
        };
        let unwanted = state.bins.give_back(renewed, active.size);
        drop(state);
        free_unwanted(unwanted.into_iter().collect());
        Ok(())
    }

    /// The object for a block of this pool that is in use for `size` bytes.
    pub(crate) fn allocation(
        self: &Arc<Self>,
        memory: Arc<DeviceMemory>,
        size: usize,
    ) -> PooledDeviceAllocation {
        let ticket = Ticket::new(Some(self), &memory);
        PooledDeviceAllocation { memory, size, ticket }
    }
}

/// Frees blocks, which may wait for the device.
fn free_unwanted(blocks: Vec<Arc<DeviceMemory>>) {
    if !blocks.is_empty() {
        drop_unlocked(blocks);
    }
}

impl Drop for DevicePool {
    fn drop(&mut self) {
        let held = self.lock().bins.take_held();
        free_unwanted(held);
    }
}

// SAFETY: the pool makes its memory as allocations of its own, of the device asked for and at least
// as large; `find` returns a block that no object refers to any longer, as a new object.
unsafe impl Allocator for DevicePool {
    fn allocate(
        &self,
        device: &Arc<dyn Device>,
        _stream: &Arc<dyn Stream>,
        bytes: usize,
    ) -> Result<Arc<DeviceMemory>> {
        match self.find(device, bytes)? {
            Some(memory) => Ok(memory),
            None => self.make(device, bytes),
        }
    }
}

/// Dropped behind an object's reference to memory: its pool looks whether it was the last, and
/// memory whose end may wait for the device ends without Python's lock.
pub(crate) struct Ticket {
    pool: Option<Arc<DevicePool>>,
    address: u64,
    waits: Option<Arc<DeviceMemory>>,
}

impl Ticket {
    /// The ticket of an object that refers to `memory`, of a pool or not.
    #[inline]
    pub(crate) fn new(pool: Option<&Arc<DevicePool>>, memory: &Arc<DeviceMemory>) -> Ticket {
        let waits = (pool.is_none() && memory.waits_when_freed()).then(|| memory.clone());
        Ticket { pool: pool.cloned(), address: memory.address(), waits }
    }

    /// The pool.
    pub(crate) fn pool(&self) -> Option<&Arc<DevicePool>> {
        self.pool.as_ref()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.settle(self.address);
        }
        if let Some(memory) = self.waits.take()
            && Arc::strong_count(&memory) == 1
        {
            drop_unlocked(memory);
        }
    }
}

/// Memory of a pool, given back when nothing refers to it any longer, or when `free` is called.
#[pyclass(frozen, weakref, module = "pygpu.tools")]
pub(crate) struct PooledDeviceAllocation {
    memory: Arc<DeviceMemory>,
    size: usize,
    /// Behind the reference to the memory, since fields are dropped in this order.
    ticket: Ticket,
}

impl PooledDeviceAllocation {
    /// The memory, unless it was given back.
    pub(crate) fn memory(&self) -> PyResult<&Arc<DeviceMemory>> {
        if self.memory.is_allocated() {
            return Ok(&self.memory);
        }
        Err(to_python(Error::handle("free", "the memory was given back to its pool")))
    }

    /// The memory, given back or not.
    pub(crate) fn any_memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }
}

#[pymethods]
impl PooledDeviceAllocation {
    /// Gives the memory back to the pool now. Using it afterwards is an error, for arrays in it,
    /// too.
    ///
    /// Raises LogicError while a buffer of `as_buffer` is alive, or if it was given back already.
    fn free(&self, py: Python<'_>) -> PyResult<()> {
        self.memory()?;
        match self.ticket.pool() {
            // May wait for the device, if the pool keeps no blocks.
            Some(pool) => py.detach(|| pool.recall(&self.memory)).or_raise(),
            None => py.detach(|| self.memory.release()).or_raise(),
        }
    }

    fn __int__(&self) -> PyResult<u64> {
        Ok(self.memory()?.address())
    }

    fn __index__(&self) -> PyResult<u64> {
        Ok(self.memory()?.address())
    }

    fn __len__(&self) -> usize {
        self.size
    }

    /// The number of bytes that were asked for.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// A memoryview of the memory, as that of `DeviceAllocation.as_buffer`.
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

/// Keeps freed device memory for the next request of its size.
///
/// Memory may be used on any stream: whoever gets it next is ordered behind its earlier users.
/// A pool has memory of one device, that of its first request.
#[pyclass(frozen, subclass, weakref, module = "pygpu.tools")]
pub(crate) struct DeviceMemoryPool {
    pool: Arc<DevicePool>,
}

impl DeviceMemoryPool {
    pub(crate) fn pool(&self) -> &Arc<DevicePool> {
        &self.pool
    }

    fn counts<T>(&self, read: impl FnOnce(&Bins<Arc<DeviceMemory>>) -> T) -> T {
        self.change(|bins| read(bins))
    }

    /// A change of the bins once every unused block is back.
    fn change<T>(&self, change: impl FnOnce(&mut Bins<Arc<DeviceMemory>>) -> T) -> T {
        let mut state = self.pool.lock();
        let unused = state.collect();
        let result = change(&mut state.bins);
        drop(state);
        free_unwanted(unused);
        result
    }
}

#[pymethods]
impl DeviceMemoryPool {
    #[new]
    fn new() -> DeviceMemoryPool {
        DeviceMemoryPool { pool: Arc::new(DevicePool { state: ProcessMutex::new(State::new) }) }
    }

    fn __repr__(&self) -> String {
        format!("<DeviceMemoryPool: {}>", self.counts(|bins| bins.to_string()))
    }

    /// Returns memory of at least `size` bytes on the current device: a kept block if one fits.
    fn allocate(&self, py: Python<'_>, size: usize) -> PyResult<PooledDeviceAllocation> {
        let device = current()?.device;
        let memory = match self.pool.find(&device, size).or_raise()? {
            Some(memory) => memory,
            None => py.detach(|| self.pool.make(&device, size)).or_raise()?,
        };
        Ok(self.pool.allocation(memory, size))
    }
}

pool_members!(DeviceMemoryPool);
