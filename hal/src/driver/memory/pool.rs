//! The driver's pool of stream-ordered memory, or plain allocation where there is none.

use super::free_list::{FreeList, GRANULE};
use crate::driver::calls::{Handle, PoolAccess, PoolProperties};
use crate::driver::context::Context;
use crate::driver::stream::PER_THREAD;
use crate::error::{Error, Result};
use crate::locks::{LEAF, POOL, Ranked};
use crate::status::Status;
use rustc_hash::FxHashSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `_RESERVED_MEM_CURRENT`, `_USED_MEM_CURRENT`; HIP's
/// are the same.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;

/// A device's pool.
#[derive(Debug, Default)]
pub(in crate::driver) struct Pool {
    /// The driver's pool, made at first use; none if the driver has none.
    handle: Ranked<Option<Option<Handle>>, POOL>,
    /// The same once known, for the warm path: 0 unknown, 1 none.
    known: AtomicU64,
    streams: Ranked<Vec<Weak<FreeList>>, LEAF>,
    /// What the driver's pool has given and not got back. CUDA keeps a pool and its memory over a
    /// reset of the context.
    taken: Ranked<FxHashSet<u64>, LEAF>,
    threshold: OnceLock<u64>,
}

impl Pool {
    /// True if the driver has a pool, as far as is known.
    pub(in crate::driver) fn is_pooled(&self) -> bool {
        self.known.load(Ordering::Acquire) > 1
    }

    /// Remembers the list of a stream, to give its blocks back when memory is short.
    pub(in crate::driver) fn remember(&self, blocks: Weak<FreeList>) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(blocks);
    }

    /// The streams' lists.
    fn lists(&self) -> Vec<Arc<FreeList>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The driver's pool; `None` if it has none.
    fn handle(&self, context: &Context) -> Result<Option<Handle>> {
        match self.known.load(Ordering::Acquire) {
            0 => self.open(context),
            1 => Ok(None),
            handle => Ok(Some(handle as Handle)),
        }
    }

    #[cold]
    fn open(&self, context: &Context) -> Result<Option<Handle>> {
        let mut slot = self.handle.lock();
        if let Some(known) = *slot {
            return Ok(known);
        }
        let handle = self.create(context)?;
        *slot = Some(handle);
        self.known.store(handle.map_or(1, |handle| handle as u64), Ordering::Release);
        Ok(handle)
    }

    fn create(&self, context: &Context) -> Result<Option<Handle>> {
        let calls = &context.driver.calls;
        let (Some(create), Some(_), Some(_)) =
            (calls.pool_create, calls.pool_allocate, calls.free_async)
        else {
            return Ok(None);
        };
        let properties = PoolProperties {
            allocation_type: 1,
            handle_types: 0,
            location_type: 1,
            location_id: context.device,
            win32_security: std::ptr::null_mut(),
            max_size: 0,
            reserved: [0; 56],
        };
        let mut handle = 0;
        // SAFETY: the description is of the driver's layout and outlives the call.
        let code = unsafe { create(&mut handle, &properties) };
        if code != Status::SUCCESS {
            // A device without pools says so here, with one of several numbers.
            let error = context.failed("pool_create", code);
            if context.is_lost() {
                return Err(error);
            }
            log::debug!("no memory pool: {error}");
            return Ok(None);
        }
        // Some runtimes have the calls but refuse the work: one small allocation tells.
        let (address, code) = self.take_from(context, handle, 0, GRANULE);
        if context.driver.is_unsupported(code) {
            if let Some(destroy) = calls.pool_destroy {
                // SAFETY: the pool was made here and is used by nobody.
                unsafe { destroy(handle) };
            }
            return Ok(None);
        }
        if code == Status::SUCCESS
            && let Some(free) = calls.free_async
        {
            // SAFETY: the address was allocated just now.
            context.check("free", unsafe { free(address, 0) })?;
        }
        let threshold = self.threshold.get().copied().unwrap_or(u64::MAX);
        self.set_threshold_of(context, handle, threshold)?;
        Ok(Some(handle))
    }

    fn set_threshold_of(&self, context: &Context, handle: Handle, bytes: u64) -> Result<()> {
        let Some(set) = context.driver.calls.pool_set_attribute else { return Ok(()) };
        let mut value = bytes;
        // SAFETY: this attribute is a u64.
        let code = unsafe { set(handle, RELEASE_THRESHOLD, (&raw mut value).cast::<c_void>()) };
        // A pool without the attribute keeps what it likes.
        if context.driver.is_unsupported(code) {
            return Ok(());
        }
        context.check("pool_set_attribute", code)
    }

    fn take_from(
        &self,
        context: &Context,
        pool: Handle,
        stream: Handle,
        bytes: usize,
    ) -> (u64, c_int) {
        let mut address = 0;
        let code = match context.driver.calls.pool_allocate {
            Some(allocate) => {
                // SAFETY: pool and stream are live; the address is written before the call returns.
                context.outside_captures(|| unsafe { allocate(&mut address, bytes, pool, stream) })
            }
            None => Status::NOT_SUPPORTED,
        };
        (address, code)
    }

    /// Memory from the driver, with its status. The context is current.
    pub(in crate::driver) fn take(
        &self,
        context: &Context,
        stream: Handle,
        bytes: usize,
    ) -> Result<(u64, c_int)> {
        if let Some(pool) = self.handle(context)? {
            let (address, code) = self.take_from(context, pool, stream, bytes);
            if code == Status::SUCCESS {
                self.taken.lock().insert(address);
            }
            return Ok((address, code));
        }
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        let code = context
            .outside_captures(|| unsafe { (context.driver.calls.allocate)(&mut address, bytes) });
        Ok((address, code))
    }

    /// Gives memory back to the driver behind the stream's work. The context is current.
    ///
    /// # Safety
    /// As for [`FreeList::free`].
    pub(in crate::driver) unsafe fn put(
        &self,
        context: &Context,
        stream: Handle,
        address: u64,
    ) -> Result<()> {
        let calls = &context.driver.calls;
        let pool = self.handle(context)?;
        if stream == PER_THREAD {
            // This may be another thread than the one whose stream the block was used on.
            // SAFETY: no argument.
            context.check("free", unsafe { (calls.synchronize)() })?;
        }
        // Before the driver may hand the address out again.
        let was_taken = self.taken.lock().remove(&address);
        let code = context.outside_captures(|| match (pool, calls.free_async) {
            // SAFETY: the caller's promise.
            (Some(_), Some(free)) => unsafe { free(address, stream) },
            // SAFETY: the caller's promise; the plain call waits for the device's work.
            _ => unsafe { (calls.free)(address) },
        });
        if code != Status::SUCCESS && was_taken {
            self.taken.lock().insert(address);
        }
        context.check("free", code)
    }

    /// Gives memory back to the driver behind all work of the device, on whichever stream. The
    /// context is current.
    ///
    /// # Safety
    /// The address is that of an allocation, which nobody uses any longer.
    pub(in crate::driver) unsafe fn put_behind_all(
        &self,
        context: &Context,
        address: u64,
    ) -> Result<()> {
        let calls = &context.driver.calls;
        if self.taken.lock().remove(&address) {
            // Freeing a pool's memory waits for nothing, unlike freeing plain memory.
            let _none_begins = context.captures.beginning.lock();
            if !context.has_captures() {
                // SAFETY: no argument.
                context.check("free", unsafe { (calls.synchronize)() })?;
            }
        }
        // SAFETY: the caller's promise.
        let code = context.outside_captures(|| unsafe { (calls.free)(address) });
        context.check("free", code)
    }

    /// Gives every unused byte back to the driver. Waits for the device's work.
    pub(in crate::driver) fn give_all_back(&self, context: &Context) -> Result<()> {
        // What one stream cannot give keeps none of the others.
        let mut result = Ok(());
        for stream in self.lists() {
            result = result.and(stream.give_back(context));
        }
        result?;
        let _scope = context.enter()?;
        {
            let _none_begins = context.captures.beginning.lock();
            if context.has_captures() {
                return Ok(());
            }
            // SAFETY: no argument.
            context.check("synchronize", unsafe { (context.driver.calls.synchronize)() })?;
        }
        self.trim_driver(context, 0)
    }

    fn trim_driver(&self, context: &Context, keep: usize) -> Result<()> {
        match (self.handle(context)?, context.driver.calls.pool_trim) {
            // SAFETY: the pool is live.
            (Some(pool), Some(trim)) => context.check("trim", unsafe { trim(pool, keep) }),
            _ => Ok(()),
        }
    }

    /// Gives unused memory back until the pool holds at most `keep` bytes.
    pub(in crate::driver) fn trim(&self, context: &Context, keep: usize) -> Result<()> {
        if keep == 0 {
            context.staging.release(context);
            return self.give_all_back(context);
        }
        let _scope = context.enter()?;
        self.trim_driver(context, keep)
    }

    /// Bytes that the driver's pool keeps when work is waited for.
    pub(in crate::driver) fn set_threshold(&self, context: &Context, bytes: u64) -> Result<()> {
        let _scope = context.enter()?;
        match self.handle(context)? {
            Some(pool) => self.set_threshold_of(context, pool, bytes),
            None => Err(Error::unsupported("set_release_threshold", "the driver has no pools")),
        }
    }

    /// Lets kernels of another device use the pool's memory.
    pub(in crate::driver) fn set_access(
        &self,
        context: &Context,
        device: c_int,
        allowed: bool,
    ) -> Result<()> {
        let _scope = context.enter()?;
        let (Some(pool), Some(set)) = (self.handle(context)?, context.driver.calls.pool_set_access)
        else {
            return Ok(());
        };
        let access = PoolAccess {
            location_type: 1,
            location_id: device,
            flags: if allowed { 3 } else { 0 },
        };
        // SAFETY: the description is of the driver's layout and outlives the call.
        context.check("pool_set_access", unsafe { set(pool, &access, 1) })
    }

    /// Bytes that the driver's pool holds but nobody uses. The context is current.
    pub(in crate::driver) fn unused(&self, context: &Context) -> usize {
        let pool = self.known.load(Ordering::Acquire);
        let Some(read) = context.driver.calls.pool_attribute.filter(|_| pool > 1) else {
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

    /// Freed bytes in the streams' lists and in the driver's pool. The context is current.
    pub(in crate::driver) fn kept(&self, context: &Context) -> usize {
        let lists: usize = self.lists().iter().map(|list| list.bytes()).sum();
        lists + self.unused(context)
    }

    /// Destroys the pool and forgets everything, since the device is about to be reset. Returns
    /// what the driver may still hold afterwards: a pool goes with the last of its memory.
    pub(in crate::driver) fn end(&self, context: &Context) -> Vec<u64> {
        let scope = if context.is_open() { context.enter().ok() } else { None };
        self.known.store(0, Ordering::Release);
        let handle = self.handle.lock().take().flatten();
        if let Some(pool) = handle.filter(|_| scope.is_some()) {
            self.destroy(context, pool);
        }
        for stream in self.lists() {
            stream.forget();
        }
        std::mem::take(&mut *self.taken.lock()).into_iter().collect()
    }

    /// Frees what a reset has left of a pool, as CUDA's driver does. The context is not open, and
    /// nobody can open it: no address is anybody else's.
    pub(in crate::driver) fn free_left(&self, context: &Context, addresses: &[u64]) {
        let (calls, vendor) = (&context.driver.calls, &context.driver.vendor);
        let Some(free) = calls.free_async.filter(|_| !addresses.is_empty()) else { return };
        let ((_, previous), (code, handle)) =
            (vendor.current(), vendor.retain_context(context.device));
        if code != Status::SUCCESS || vendor.set_current(handle) != Status::SUCCESS {
            // Whoever uses the device next is told.
            return;
        }
        for &address in addresses {
            // SAFETY: the driver refuses an address that the reset took.
            let code = unsafe { free(address, 0) };
            if code != Status::SUCCESS {
                vendor.forget_failure();
                log::debug!("{address:#x} went with the reset: status {code}");
            }
        }
        // SAFETY: no argument.
        unsafe { (calls.synchronize)() };
        vendor.set_current(previous);
        vendor.release_context(context.device);
    }

    fn destroy(&self, context: &Context, pool: Handle) {
        let Some(destroy) = context.driver.calls.pool_destroy else { return };
        // SAFETY: the pool was made here; memory of it that is still used stays valid.
        let code = unsafe { destroy(pool) };
        if code != Status::SUCCESS {
            log::warn!("destroying a memory pool failed: status {code}");
        }
    }

    /// Destroys the driver's pool, with the last of the context.
    pub(in crate::driver) fn close(&self, context: &Context) {
        let handle = self.handle.lock().take().flatten();
        if let Some(pool) = handle
            && let Ok(_scope) = context.enter()
        {
            self.destroy(context, pool);
        }
    }
}

/// The error for memory that there is not, with what is known.
#[cold]
pub(in crate::driver) fn out_of_memory(context: &Context, bytes: usize, code: c_int) -> Error {
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
            "{bytes} bytes were asked for on device {}:{}; {amounts}, after giving back what \
             the pool kept",
            context.driver.vendor.name(),
            context.ordinal
        ),
    )
}
