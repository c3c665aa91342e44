//! The driver's pool of stream-ordered memory, or plain allocation if it does not have one.

use crate::calls::{Handle, PER_THREAD, PoolAccess, PoolProperties};
use crate::context::Context;
use crate::vendor::Driver;
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

/// The minimum block size, which suits the drivers' alignment.
pub(super) const GRANULE: usize = 512;

/// A device's pool.
#[derive(Debug)]
pub(crate) struct Pool {
    context: Arc<Context>,
    /// The driver's pool, created at first use; the inner `None` means that the driver does not support
    /// one.
    handle: Ranked<Option<Option<Handle>>, POOL>,
    /// A lock-free copy of `handle`: 0 unknown, 1 none, else the handle.
    known: AtomicU64,
    /// The addresses that the driver's pool has allocated and that are not freed. CUDA keeps a pool and
    /// its memory when the context is reset.
    taken: Ranked<FxHashSet<u64>, LEAF>,
    /// Addresses of `taken` that are left from before another library's reset; the next request frees them.
    left: Ranked<Vec<u64>, LEAF>,
    has_left: AtomicBool,
    /// The release threshold for the driver's pool that is created next.
    threshold: AtomicU64,
}

impl Pool {
    /// Returns the pool of a device, which is created at first use.
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

    /// Returns true if the driver is known to have a pool.
    pub(crate) fn is_pooled(&self) -> bool {
        self.known.load(Ordering::Acquire) > 1
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns false if the driver is known to lack a usable pool. This can be called before the first
    /// use.
    pub(crate) fn may_be_pooled(&self) -> bool {
        let calls = &self.context.driver.calls;
        self.known.load(Ordering::Acquire) != 1
            && calls.pool_create.is_some()
            && calls.pool_allocate.is_some()
            && calls.free_async.is_some()
    }

    /// Returns the driver's pool; `None` if it does not have one.
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
            // A device without pools reports it here, with one of several numbers.
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
        // A pool without the attribute decides by itself how much it keeps.
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

    /// Allocates memory from the driver; also returns its status. The context is current.
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

    /// Leaves the pool's addresses for the next request, which frees them.
    pub(super) fn leave(&self) {
        let taken = std::mem::take(&mut *self.taken.lock());
        self.left.lock().extend(taken);
        self.has_left.store(true, Ordering::Release);
    }

    fn take_left(&self) -> Vec<u64> {
        self.has_left.store(false, Ordering::Release);
        std::mem::take(&mut *self.left.lock())
    }

    /// Stops using a pool: some runtimes have the calls but cannot execute them.
    #[cold]
    fn give_up(&self, pool: Handle) {
        let mut slot = self.handle.lock();
        // Another thread may have done so already. The pool, which has no memory, is not destroyed,
        // because a thread may still be using its handle.
        if *slot == Some(Some(pool)) {
            *slot = Some(None);
            self.known.store(1, Ordering::Release);
        }
    }

    /// Allocates memory without a pool; also returns the driver's status. The context is current.
    pub(super) fn take_plain(&self, bytes: usize) -> (u64, c_int) {
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        let code = self.context.outside_captures(|| unsafe {
            (self.context.driver.calls.allocate)(&mut address, bytes)
        });
        (address, code)
    }

    /// Frees memory in the driver after the stream's work. The context is current.
    ///
    /// # Safety
    /// As for `FreeList::free`.
    pub(crate) unsafe fn put(&self, stream: Handle, address: u64) -> Result<()> {
        let calls = &self.context.driver.calls;
        let pool = self.handle()?;
        if stream == PER_THREAD {
            // The block may have been used on the default stream of another thread.
            // SAFETY: the call does not take arguments.
            self.context.check("free", unsafe { (calls.synchronize)() })?;
        }
        // Removed before the driver can allocate the address again.
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

    /// Waits for the work of the device without ending captures. The context is current.
    pub(crate) fn drain(&self) -> Result<()> {
        let context = &self.context;
        let none_begins = context.capture_state.beginning.lock();
        if !context.has_captures() {
            // SAFETY: the call does not take arguments.
            return context.check("synchronize", unsafe { (context.driver.calls.synchronize)() });
        }
        drop(none_begins);
        // A device-wide wait would end the captures. Freeing plain memory also waits for the device.
        let (address, code) = self.take_plain(1);
        context.check("synchronize", code)?;
        // SAFETY: the memory has just been allocated.
        let free = || unsafe { (context.driver.calls.free)(address) };
        context.check("synchronize", context.outside_captures(free))
    }

    /// Frees memory in the driver after all work of the device, on every stream. The context is current.
    ///
    /// # Safety
    /// The address belongs to an allocation that is no longer used.
    pub(crate) unsafe fn put_behind_all(&self, address: u64) -> Result<()> {
        let calls = &self.context.driver.calls;
        if self.taken.lock().remove(&address) {
            // Unlike freeing plain memory, freeing a pool's memory does not wait.
            self.drain()?;
        }
        // SAFETY: the caller's promise.
        let code = self.context.outside_captures(|| unsafe { (calls.free)(address) });
        self.context.check("free", code)
    }

    /// Releases the pool's unused memory to the driver, after waiting for the device's work. Does nothing
    /// while a stream captures.
    pub(super) fn give_unused_back(&self) -> Result<()> {
        let _scope = self.context.enter()?;
        {
            let _none_begins = self.context.capture_state.beginning.lock();
            if self.context.has_captures() {
                return Ok(());
            }
            let synchronize = self.context.driver.calls.synchronize;
            // SAFETY: the call does not take arguments.
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

    /// Releases unused memory until the pool holds at most `keep` bytes.
    pub(crate) fn trim(&self, keep: usize) -> Result<()> {
        let _scope = self.context.enter()?;
        self.trim_driver(keep)
    }

    /// Sets the number of bytes that the driver's pool keeps at a synchronization.
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

    /// Allows or forbids kernels of another device to use the pool's memory.
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

    /// Returns the bytes that the driver's pool holds without using them. The context is current.
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

    /// Destroys the pool and forgets everything, because the device is about to be reset. Returns the
    /// addresses that the driver may still hold afterwards: a pool lives until all of its memory is freed.
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

    /// Frees the addresses that a pool still holds after a reset, as CUDA's does. The context is not open
    /// and cannot be opened meanwhile, so no address belongs to a new allocation.
    pub(crate) fn free_left(&self, addresses: &[u64]) {
        let (calls, vendor) = (&self.context.driver.calls, &self.context.driver.vendor);
        if calls.free_async.is_none() || addresses.is_empty() {
            return;
        }
        let ((_, previous), (code, handle)) =
            (vendor.current(), vendor.retain_context(self.context.device));
        if code != Status::SUCCESS || vendor.set_current(handle) != Status::SUCCESS {
            // The next user of the device gets the error.
            return;
        }
        self.free_behind(addresses);
        // SAFETY: the call does not take arguments.
        unsafe { (calls.synchronize)() };
        vendor.set_current(previous);
        vendor.release_context(self.context.device);
    }

    /// Frees addresses that are left after a reset. The context is current.
    fn free_behind(&self, addresses: &[u64]) {
        let Driver { calls, vendor, .. } = &*self.context.driver;
        for &address in addresses {
            // SAFETY: the driver refuses an address that the reset destroyed.
            let code = calls.free_async.map_or(Status::SUCCESS, |free| unsafe { free(address, 0) });
            if code != Status::SUCCESS {
                vendor.forget_failure();
                log::debug!("the reset has freed {address:#x} already: status {code}");
            }
        }
    }

    fn destroy(&self, pool: Handle) {
        let Some(destroy) = self.context.driver.calls.pool_destroy else { return };
        // SAFETY: the pool was created here; memory of the pool that is in use stays valid.
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

/// Returns the error for an allocation that is too large, with the known sizes.
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
