//! Stream-ordered memory: the driver's pool, and in front of it a list of freed blocks for
//! each stream, because a call of the driver costs more than most of the work on small arrays.
//!
//! A block that is freed on a stream may be used again by later work of the same stream at
//! once. Blocks up to [`LARGEST_KEPT`] are kept so, up to [`MOST_KEPT`] bytes a stream; larger
//! ones go back to the driver's pool. A driver without pools gets plain allocation behind the
//! same lists, which then keep blocks of every size.

use super::calls::{Handle, PoolAccess, PoolProperties};
use super::context::{Context, lock};
use crate::error::{Error, ErrorKind, Result};
use crate::status::Status;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The largest block that a stream keeps when the driver has a pool.
const LARGEST_KEPT: usize = 1 << 20;
/// The most bytes that a stream keeps.
const MOST_KEPT: usize = 64 << 20;
/// The same without a pool, where giving memory back waits for the device.
const MOST_KEPT_PLAIN: usize = 512 << 20;
/// The least block, which the drivers' alignment makes sensible.
const GRANULE: usize = 512;
/// Classes of sizes up to [`LARGEST_KEPT`], four for each doubling.
const CLASSES: usize = 4 * (LARGEST_KEPT / GRANULE).ilog2() as usize + 1;

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, `_RESERVED_MEM_CURRENT`, `_USED_MEM_CURRENT`; HIP's
/// are the same.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const USED: c_int = 7;

/// The class of a size and the bytes of its blocks; sizes above [`LARGEST_KEPT`] have none.
#[inline]
fn class(bytes: usize) -> Option<(usize, usize)> {
    let granules = bytes.div_ceil(GRANULE).max(1);
    if granules > LARGEST_KEPT / GRANULE {
        return None;
    }
    if granules <= 4 {
        // 1, 2, 3, 4 granules: classes 0, 4, 6, 8 would leave holes; they are counted alike.
        let index = [0, 4, 6, 8][granules - 1];
        return Some((index, granules * GRANULE));
    }
    let doubling = (granules - 1).ilog2() as usize;
    let step = 1 << (doubling - 2);
    let quarters = granules.div_ceil(step);
    // Quarters 5 to 8 of the doubling.
    Some((4 * doubling + quarters - 4, quarters * step * GRANULE))
}

/// The bytes that an allocation really gets.
fn rounded(bytes: usize) -> usize {
    match class(bytes) {
        Some((_, bytes)) => bytes,
        None => bytes.checked_next_multiple_of(LARGEST_KEPT).unwrap_or(bytes),
    }
}

#[derive(Debug)]
struct Lists {
    small: [Vec<u64>; CLASSES],
    /// Larger blocks by size; used only without a pool.
    large: BTreeMap<usize, Vec<u64>>,
    bytes: usize,
}

/// The blocks that were freed on one stream and not given back.
#[derive(Debug)]
pub(super) struct FreeBlocks {
    stream: Handle,
    lists: Mutex<Lists>,
}

/// A device's pool.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The driver's pool, made at first use; none if the driver has none.
    handle: Mutex<Option<Option<Handle>>>,
    /// The same once known, for the warm path: 0 unknown, 1 none.
    known: AtomicU64,
    streams: Mutex<Vec<Weak<FreeBlocks>>>,
    threshold: OnceLock<u64>,
}

impl FreeBlocks {
    /// The list of a stream, known to the device's pool.
    pub(super) fn new(context: &Context, stream: Handle) -> Arc<FreeBlocks> {
        let lists =
            Lists { small: [const { Vec::new() }; CLASSES], large: BTreeMap::new(), bytes: 0 };
        let blocks = Arc::new(FreeBlocks { stream, lists: Mutex::new(lists) });
        let mut streams = lock(&context.pool.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&blocks));
        blocks
    }

    /// Memory for work that is queued on the stream from now on.
    #[inline]
    pub(super) fn allocate(&self, context: &Context, bytes: usize) -> Result<u64> {
        if let Some((class, size)) = class(bytes) {
            let mut lists = lock(&self.lists);
            if let Some(address) = lists.small[class].pop() {
                lists.bytes -= size;
                return Ok(address);
            }
        }
        self.allocate_new(context, bytes)
    }

    #[cold]
    fn allocate_new(&self, context: &Context, bytes: usize) -> Result<u64> {
        let size = rounded(bytes);
        {
            let mut lists = lock(&self.lists);
            if let Some(address) = lists.large.get_mut(&size).and_then(Vec::pop) {
                lists.bytes -= size;
                return Ok(address);
            }
        }
        let scope = context.enter()?;
        let (address, code) = context.pool.take(context, self.stream, size)?;
        if code == Status::SUCCESS {
            return Ok(address);
        }
        if context.driver.vendor.kind(code) != ErrorKind::OutOfMemory {
            return Err(context.failed("allocate", code));
        }
        drop(scope);
        context.pool.give_all_back(context)?;
        let _scope = context.enter()?;
        let (address, code) = context.pool.take(context, self.stream, size)?;
        match code {
            Status::SUCCESS => Ok(address),
            code if context.driver.vendor.kind(code) == ErrorKind::OutOfMemory => {
                Err(out_of_memory(context, bytes, code))
            }
            code => Err(context.failed("allocate", code)),
        }
    }

    /// Frees memory behind the work queued so far.
    ///
    /// # Safety
    /// Address and bytes are those of one allocation of this device's pool, not freed since,
    /// and work of other streams that uses the memory is ordered before this.
    #[inline]
    pub(super) unsafe fn free(&self, context: &Context, address: u64, bytes: usize) -> Result<()> {
        let pooled = context.pool.known.load(Ordering::Acquire) > 1;
        match class(bytes) {
            Some((class, size)) => {
                let mut lists = lock(&self.lists);
                if lists.bytes + size <= MOST_KEPT {
                    lists.bytes += size;
                    lists.small[class].push(address);
                    return Ok(());
                }
            }
            None if !pooled => {
                let size = rounded(bytes);
                let mut lists = lock(&self.lists);
                if lists.bytes + size <= MOST_KEPT_PLAIN {
                    lists.bytes += size;
                    lists.large.entry(size).or_default().push(address);
                    return Ok(());
                }
            }
            None => {}
        }
        let _scope = context.enter()?;
        // SAFETY: the caller's promise.
        unsafe { context.pool.put(context, self.stream, address) }
    }

    /// Gives all kept blocks back to the driver.
    pub(super) fn give_back(&self, context: &Context) -> Result<()> {
        let blocks: Vec<u64> = {
            let mut lists = lock(&self.lists);
            lists.bytes = 0;
            let large = std::mem::take(&mut lists.large);
            lists
                .small
                .iter_mut()
                .flat_map(std::mem::take)
                .chain(large.into_values().flatten())
                .collect()
        };
        if blocks.is_empty() {
            return Ok(());
        }
        let _scope = context.enter()?;
        let mut result = Ok(());
        for address in blocks {
            // SAFETY: the list owned the block, whose last use was on this stream.
            result = result.and(unsafe { context.pool.put(context, self.stream, address) });
        }
        result
    }

    /// Forgets all blocks: the device was reset.
    fn forget(&self) {
        let mut lists = lock(&self.lists);
        lists.small.iter_mut().for_each(Vec::clear);
        lists.large.clear();
        lists.bytes = 0;
    }
}

impl Pool {
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
        let mut slot = lock(&self.handle);
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
            log::debug!("no memory pool: {}", context.driver.error("pool_create", code));
            return if context.driver.vendor.is_sticky(code) {
                Err(context.failed("pool_create", code))
            } else {
                Ok(None)
            };
        }
        // Some runtimes have the calls but refuse the work: one small allocation tells.
        let (address, code) = self.take_from(context, handle, 0, GRANULE);
        if code != Status::SUCCESS && context.driver.is_unsupported(code) {
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
            // SAFETY: pool and stream are live; the address is written before the call returns.
            Some(allocate) => unsafe { allocate(&mut address, bytes, pool, stream) },
            None => Status::NOT_SUPPORTED,
        };
        (address, code)
    }

    /// Memory from the driver, with its status. The context is current.
    fn take(&self, context: &Context, stream: Handle, bytes: usize) -> Result<(u64, c_int)> {
        if let Some(pool) = self.handle(context)? {
            return Ok(self.take_from(context, pool, stream, bytes));
        }
        let mut address = 0;
        // SAFETY: the address is written before the call returns.
        let code = unsafe { (context.driver.calls.allocate)(&mut address, bytes) };
        Ok((address, code))
    }

    /// Gives memory back to the driver behind the stream's work. The context is current.
    ///
    /// # Safety
    /// As for [`FreeBlocks::free`].
    unsafe fn put(&self, context: &Context, stream: Handle, address: u64) -> Result<()> {
        let calls = &context.driver.calls;
        let code = match (self.handle(context)?, calls.free_async) {
            // SAFETY: the caller's promise.
            (Some(_), Some(free)) => unsafe { free(address, stream) },
            // SAFETY: the caller's promise; the plain call waits for the device's work.
            _ => unsafe { (calls.free)(address) },
        };
        context.check("free", code)
    }

    /// Gives every unused byte back to the driver. Waits for the device's work.
    fn give_all_back(&self, context: &Context) -> Result<()> {
        let streams: Vec<_> = lock(&self.streams).iter().filter_map(Weak::upgrade).collect();
        for stream in streams {
            stream.give_back(context)?;
        }
        if context.capturing.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let _scope = context.enter()?;
        // SAFETY: no argument.
        context.check("synchronize", unsafe { (context.driver.calls.synchronize)() })?;
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
    pub(super) fn trim(&self, context: &Context, keep: usize) -> Result<()> {
        if keep == 0 {
            return self.give_all_back(context);
        }
        let _scope = context.enter()?;
        self.trim_driver(context, keep)
    }

    /// Bytes that the driver's pool keeps when work is waited for.
    pub(super) fn set_threshold(&self, context: &Context, bytes: u64) -> Result<()> {
        let _scope = context.enter()?;
        match self.handle(context)? {
            Some(pool) => self.set_threshold_of(context, pool, bytes),
            None => Err(Error::unsupported("set_release_threshold", "the driver has no pools")),
        }
    }

    /// Lets kernels of another device use the pool's memory.
    pub(super) fn set_access(&self, context: &Context, device: c_int, allowed: bool) -> Result<()> {
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
    pub(super) fn unused(&self, context: &Context) -> usize {
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

    /// Forgets everything: the device is being reset.
    pub(super) fn forget(&self) {
        *lock(&self.handle) = None;
        self.known.store(0, Ordering::Release);
        for stream in lock(&self.streams).iter().filter_map(Weak::upgrade) {
            stream.forget();
        }
    }

    /// Destroys the driver's pool, with the last of the context.
    pub(super) fn close(&self, context: &Context) {
        let handle = lock(&self.handle).take().flatten();
        if let (Some(pool), Some(destroy)) = (handle, context.driver.calls.pool_destroy)
            && let Ok(_scope) = context.enter()
        {
            // SAFETY: the pool was made here; memory of it that is still used stays valid.
            let code = unsafe { destroy(pool) };
            if code != Status::SUCCESS {
                log::warn!("destroying a memory pool failed: status {code}");
            }
        }
    }
}

/// The error for memory that there is not, with what is known.
#[cold]
pub(super) fn out_of_memory(context: &Context, bytes: usize, code: c_int) -> Error {
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

#[cfg(test)]
mod tests {
    use super::{CLASSES, GRANULE, LARGEST_KEPT, class};

    #[test]
    fn a_class_holds_what_it_is_asked_for_and_little_more() {
        let mut last = (0, 0);
        for bytes in 1..=LARGEST_KEPT {
            let (index, size) = class(bytes).expect("small enough to be kept");
            assert!(index < CLASSES && size >= bytes, "{bytes}: class {index} of {size}");
            assert!(size <= GRANULE.max(bytes + bytes / 4 + GRANULE), "{bytes}: {size}");
            assert!((index, size) >= last, "{bytes}: {index} of {size} after {last:?}");
            assert_eq!(index == last.0, size == last.1 || last.1 == 0, "{bytes}");
            assert_eq!(class(size), Some((index, size)));
            last = (index, size);
        }
        assert_eq!(class(LARGEST_KEPT + 1), None);
    }
}
