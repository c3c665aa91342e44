//! The driver's pool of stream-ordered memory, or plain allocation where there is none.

use crate::calls::{Handle, PER_THREAD, PoolAccess, PoolProperties};
use crate::context::Context;
use crate::errors::Driver;
use hal::error::{Error, Result};
use hal::locks::{LEAF, POOL, Ranked};
use hal::status::Status;
use rustc_hash::FxHashSet;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `_RESERVED_MEM_CURRENT`, `_USED_MEM_CURRENT`; HIP's
/// are the same.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;

/// The least block, which the drivers' alignment makes sensible.
pub(super) const GRANULE: usize = 512;

/// A device's pool.
#[derive(Debug)]
pub(crate) struct Pool {
    context: Arc<Context>,
    /// The driver's pool, made at first use; none if the driver has none.
    handle: Ranked<Option<Option<Handle>>, POOL>,
    /// The same once known, for the warm path: 0 unknown, 1 none.
    known: AtomicU64,
    /// What the driver's pool has given and not got back. CUDA keeps a pool and its memory over a
    /// reset of the context.
    taken: Ranked<FxHashSet<u64>, LEAF>,
    /// The same from before a reset by another library, to be freed with the next request.
    left: Ranked<Vec<u64>, LEAF>,
    has_left: AtomicBool,
    /// The release threshold of the next driver's pool.
    threshold: AtomicU64,
}

impl Pool {
    /// The pool of a device, not made yet.
    pub(super) fn new(context: &Arc<Context>) -> Pool {
        Pool {
            context: context.clone(),
            handle: Ranked::default(),
            known: AtomicU64::new(0),
            taken: Ranked::default(),
            left: Ranked::default(),
            has_left: AtomicBool::new(false),
            threshold: AtomicU64::new(u64::MAX),
        }
    }

    /// True if the driver has a pool, as far as is known.
    pub(crate) fn is_pooled(&self) -> bool {
        self.known.load(Ordering::Acquire) > 1
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// False if the driver has no pool, as far as is known before the first use.
    pub(crate) fn may_be_pooled(&self) -> bool {
        let calls = &self.context.driver.calls;
        self.known.load(Ordering::Acquire) != 1
            && calls.pool_create.is_some()
            && calls.pool_allocate.is_some()
            && calls.free_async.is_some()
    }

    /// The driver's pool; `None` if it has none.
    fn handle(&self) -> Result<Option<Handle>> {
        match self.known.load(Ordering::Acquire) {
            0 => self.open(),
            1 => Ok(None),
            handle => Ok(Some(handle as Handle)),
        }
    }

    #[cold]
    fn open(&self) -> Result<Option<Handle>> {
        let mut slot = self.handle.lock();
        if let Some(known) = *slot {
            return Ok(known);
        }
        let handle = self.context.outside_captures(|| self.create())?;
        *slot = Some(handle);
        self.known.store(handle.map_or(1, |handle| handle as u64), Ordering::Release);
        Ok(handle)
    }

    fn create(&self) -> Result<Option<Handle>> {
        let calls = &self.context.driver.calls;
        let (Some(create), Some(_), Some(_)) =
            (calls.pool_create, calls.pool_allocate, calls.free_async)
        else {
            return Ok(None);
        };
        let properties = PoolProperties {
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: self.context.device,
            win32_security: std::ptr::null_mut(),
            max_size: 0,
            reserved: [0; 56],
        };
        let mut handle = 0;
        // SAFETY: the description is of the driver's layout and outlives the call.
        let code = unsafe { create(&mut handle, &properties) };
        if code != Status::SUCCESS {
            // A device without pools says so here, with one of several numbers.
            let error = self.context.failed("pool_create", code);
            if self.context.is_lost() {
                return Err(error);
            }
            log::debug!("no memory pool: {error}");
            return Ok(None);
        }
        self.set_threshold_of(handle, self.threshold.load(Ordering::Relaxed))?;
        Ok(Some(handle))
    }

    fn set_threshold_of(&self, handle: Handle, bytes: u64) -> Result<()> {
        let Some(set) = self.context.driver.calls.pool_set_attribute else { return Ok(()) };
        let mut value = bytes;
        // SAFETY: this attribute is a u64.
        let code = unsafe { set(handle, RELEASE_THRESHOLD, (&raw mut value).cast::<c_void>()) };
        // A pool without the attribute keeps what it likes.
        if self.context.driver.is_unsupported(code) {
            return Ok(());
        }
        self.context.check("pool_set_attribute", code)
    }

    fn take_from(&self, pool: Handle, stream: Handle, bytes: usize) -> (u64, c_int) {
        let mut address = 0;
        let code = match self.context.driver.calls.pool_allocate {
            Some(allocate) => {
                // SAFETY: pool and stream are live; the address is written before the call returns.
                self.context
                    .outside_captures(|| unsafe { allocate(&mut address, bytes, pool, stream) })
            }
            None => Status::NOT_SUPPORTED,
        };
        (address, code)
    }

    /// Memory from the driver, with its status. The context is current.
    pub(crate) fn take(&self, stream: Handle, bytes: usize) -> Result<(u64, c_int)> {
        if self.has_left.load(Ordering::Acquire) && !self.context.capture_state.are_possible() {
            self.free_behind(&self.take_left());
        }
        if let Some(pool) = self.handle()? {
            let (address, code) = self.take_from(pool, stream, bytes);
            if code == Status::SUCCESS {
                self.taken.lock().insert(address);
            }
            if !self.context.driver.is_unsupported(code) || !self.taken.lock().is_empty() {
                return Ok((address, code));
            }
            self.give_up(pool);
        }
        Ok(self.take_plain(bytes))
    }

    /// Leaves what the driver's pool has given to the next request, which frees it.
    pub(super) fn leave(&self) {
        let taken = std::mem::take(&mut *self.taken.lock());
        self.left.lock().extend(taken);
        self.has_left.store(true, Ordering::Release);
    }

    fn take_left(&self) -> Vec<u64> {
        self.has_left.store(false, Ordering::Release);
        std::mem::take(&mut *self.left.lock())
    }

    /// Does without a pool: some runtimes have the calls and refuse the work.
    #[cold]
    fn give_up(&self, pool: Handle) {
        let mut slot = self.handle.lock();
        // Another thread may have been faster. The pool, which has no memory, is not destroyed: one may be
        // using its handle.
        if *slot == Some(Some(pool)) {
            *slot = Some(None);
            self.known.store(1, Ordering::Release);
        }
    }

    /// Memory of no pool, with the driver's status. The context is current.
    pub(super) fn take_plain(&self, bytes: usize) -> (u64, c_int) {
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        let code = self.context.outside_captures(|| unsafe {
            (self.context.driver.calls.allocate)(&mut address, bytes)
        });
        (address, code)
    }

    /// Gives memory back to the driver behind the stream's work. The context is current.
    ///
    /// # Safety
    /// As for `FreeList::free`.
    pub(crate) unsafe fn put(&self, stream: Handle, address: u64) -> Result<()> {
        let calls = &self.context.driver.calls;
        let pool = self.handle()?;
        if stream == PER_THREAD {
            // This may be another thread than the one whose stream the block was used on.
            // SAFETY: no argument.
            self.context.check("free", unsafe { (calls.synchronize)() })?;
        }
        // Before the driver may hand the address out again.
        let was_taken = self.taken.lock().remove(&address);
        let code = self.context.outside_captures(|| match (pool, calls.free_async) {
            // SAFETY: the caller's promise.
            (Some(_), Some(free)) if was_taken => unsafe { free(address, stream) },
            // SAFETY: the caller's promise; the plain call waits for the device's work.
            _ => unsafe { (calls.free)(address) },
        });
        if code != Status::SUCCESS && was_taken {
            self.taken.lock().insert(address);
        }
        self.context.check("free", code)
    }

    /// Waits for the work of the device, while captures go on. The context is current.
    pub(crate) fn drain(&self) -> Result<()> {
        let context = &self.context;
        let none_begins = context.capture_state.beginning.lock();
        if !context.has_captures() {
            // SAFETY: no argument.
            return context.check("synchronize", unsafe { (context.driver.calls.synchronize)() });
        }
        drop(none_begins);
        // To ask for the device would end them. A free of plain memory waits for it, too.
        let (address, code) = self.take_plain(1);
        context.check("synchronize", code)?;
        // SAFETY: the memory has just been allocated.
        let free = || unsafe { (context.driver.calls.free)(address) };
        context.check("synchronize", context.outside_captures(free))
    }

    /// Gives memory back to the driver behind all work of the device, on whichever stream. The
    /// context is current.
    ///
    /// # Safety
    /// The address is that of an allocation, which nobody uses any longer.
    pub(crate) unsafe fn put_behind_all(&self, address: u64) -> Result<()> {
        let calls = &self.context.driver.calls;
        if self.taken.lock().remove(&address) {
            // Freeing a pool's memory waits for nothing, unlike freeing plain memory.
            self.drain()?;
        }
        // SAFETY: the caller's promise.
        let code = self.context.outside_captures(|| unsafe { (calls.free)(address) });
        self.context.check("free", code)
    }

    /// Gives the driver what its pool does not use. Waits for the device's work, and does nothing
    /// while a stream captures.
    pub(super) fn give_unused_back(&self) -> Result<()> {
        let _scope = self.context.enter()?;
        {
            let _none_begins = self.context.capture_state.beginning.lock();
            if self.context.has_captures() {
                return Ok(());
            }
            let synchronize = self.context.driver.calls.synchronize;
            // SAFETY: no argument.
            self.context.check("synchronize", unsafe { synchronize() })?;
        }
        self.trim_driver(0)
    }

    fn trim_driver(&self, keep: usize) -> Result<()> {
        match (self.handle()?, self.context.driver.calls.pool_trim) {
            // SAFETY: the pool is live.
            (Some(pool), Some(trim)) => self.context.check("trim", unsafe { trim(pool, keep) }),
            _ => Ok(()),
        }
    }

    /// Gives unused memory back until the pool holds at most `keep` bytes.
    pub(crate) fn trim(&self, keep: usize) -> Result<()> {
        let _scope = self.context.enter()?;
        self.trim_driver(keep)
    }

    /// Bytes that the driver's pool keeps when work is waited for.
    pub(crate) fn set_threshold(&self, bytes: u64) -> Result<()> {
        let _scope = self.context.enter()?;
        match self.handle()? {
            Some(pool) => {
                self.set_threshold_of(pool, bytes)?;
                self.threshold.store(bytes, Ordering::Relaxed);
                Ok(())
            }
            None => Err(Error::unsupported("set_release_threshold", "the driver has no pools")),
        }
    }

    /// Lets kernels of another device use the pool's memory.
    pub(crate) fn set_access(&self, device: c_int, allowed: bool) -> Result<()> {
        let _scope = self.context.enter()?;
        let (Some(pool), Some(set)) = (self.handle()?, self.context.driver.calls.pool_set_access)
        else {
            return Ok(());
        };
        let access = PoolAccess {
            location_type: 1,
            location_id: device,
            flags: if allowed { 3 } else { 0 },
        };
        // SAFETY: the description is of the driver's layout and outlives the call.
        self.context.check("pool_set_access", unsafe { set(pool, &access, 1) })
    }

    /// Bytes that the driver's pool holds but nobody uses. The context is current.
    pub(crate) fn unused(&self) -> usize {
        let pool = self.known.load(Ordering::Acquire);
        let Some(read) = self.context.driver.calls.pool_attribute.filter(|_| pool > 1) else {
            return 0;
        };
        let value = |attribute| {
            let mut value = 0_u64;
            // SAFETY: these attributes are u64s.
            let code =
                unsafe { read(pool as Handle, attribute, (&raw mut value).cast::<c_void>()) };
            (code == Status::SUCCESS).then_some(value)
        };
        match (value(RESERVED), value(USED)) {
            (Some(reserved), Some(used)) => reserved.saturating_sub(used) as usize,
            _ => 0,
        }
    }

    /// Destroys the pool and forgets everything, since the device is about to be reset. Returns
    /// what the driver may still hold afterwards: a pool goes with the last of its memory.
    pub(crate) fn end(&self) -> Vec<u64> {
        let scope = if self.context.is_open() { self.context.enter().ok() } else { None };
        self.known.store(0, Ordering::Release);
        let handle = self.handle.lock().take().flatten();
        if let Some(pool) = handle.filter(|_| scope.is_some()) {
            self.destroy(pool);
        }
        let mut left = self.take_left();
        left.extend(std::mem::take(&mut *self.taken.lock()));
        left
    }

    /// Frees what a reset has left of a pool, as CUDA's driver does. The context is not open, and
    /// nobody can open it: no address is anybody else's.
    pub(crate) fn free_left(&self, addresses: &[u64]) {
        let (calls, vendor) = (&self.context.driver.calls, &self.context.driver.vendor);
        if calls.free_async.is_none() || addresses.is_empty() {
            return;
        }
        let ((_, previous), (code, handle)) =
            (vendor.current(), vendor.retain_context(self.context.device));
        if code != Status::SUCCESS || vendor.set_current(handle) != Status::SUCCESS {
            // Whoever uses the device next is told.
            return;
        }
        self.free_behind(addresses);
        // SAFETY: no argument.
        unsafe { (calls.synchronize)() };
        vendor.set_current(previous);
        vendor.release_context(self.context.device);
    }

    /// Frees what a reset has left. The context is current.
    fn free_behind(&self, addresses: &[u64]) {
        let Driver { calls, vendor, .. } = &*self.context.driver;
        for &address in addresses {
            // SAFETY: the driver refuses an address that the reset took.
            let code = calls.free_async.map_or(Status::SUCCESS, |free| unsafe { free(address, 0) });
            if code != Status::SUCCESS {
                vendor.forget_failure();
                log::debug!("{address:#x} went with the reset: status {code}");
            }
        }
    }

    fn destroy(&self, pool: Handle) {
        let Some(destroy) = self.context.driver.calls.pool_destroy else { return };
        // SAFETY: the pool was made here; memory of it that is still used stays valid.
        let code = unsafe { destroy(pool) };
        if code != Status::SUCCESS {
            log::warn!("destroying a memory pool failed: status {code}");
        }
    }
}

impl Drop for Pool {
    /// Destroys the driver's pool.
    fn drop(&mut self) {
        if !self.context.is_open() || !self.context.is_alive(self.context.epoch()) {
            return;
        }
        let handle = self.handle.lock().take().flatten();
        if let Some(pool) = handle
            && let Ok(_scope) = self.context.enter()
        {
            self.destroy(pool);
        }
    }
}

/// The error for memory that there is not, with what is known.
#[cold]
pub(crate) fn out_of_memory(context: &Context, bytes: usize, code: c_int) -> Error {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are written before the call returns; the context is current.
    let known = unsafe { (context.driver.calls.memory_info)(&mut free, &mut total) };
    let amounts = match known {
        Status::SUCCESS => format!("{free} of {total} bytes are free"),
        _ => "the driver does not say how many are free".to_owned(),
    };
    context.driver.error_with(
        "allocate",
        code,
        &format!(
            "out of memory: {bytes} bytes were asked for on device {}:{}; {amounts}, after giving \
             back what the pool kept",
            context.driver.vendor.name(),
            context.ordinal
        ),
    )
}
