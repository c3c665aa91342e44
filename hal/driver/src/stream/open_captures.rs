//! The captures under way on one device: the memory that they use, allocate and free.
//!
//! They stay until the graph is gone ([`CapturedMemory`]).

use super::graph::attach;
use crate::calls::Handle;
use crate::context::{Context, lock};
use crate::memory::DeviceAllocator;
use hal::error::Result;
use hal::locks::{CAPTURES, LEAF, Ranked};
use hal::memory::{Access, CapturedMemory, DeviceMemory, GraphBlocks};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};

/// What captures of other libraries use, where the driver's graphs cannot keep it: the stream's
/// object does.
pub(super) type Unattached = Mutex<Vec<Arc<CapturedMemory>>>;

/// The captures under way on one device.
#[derive(Debug)]
pub(crate) struct OpenCaptures {
    context: Arc<Context>,
    blocks: Arc<GraphBlocks>,
    /// What each capture under way uses, by the capture's number.
    open: Ranked<HashMap<u64, OpenCapture>, CAPTURES>,
    /// What [`OpenCaptures::join`] has noted while captures were under way.
    joined: Ranked<HashSet<u64>, LEAF>,
}

/// A capture under way.
#[derive(Debug)]
enum OpenCapture {
    /// Begun here, on the stream of this number.
    Own(u64, Arc<CapturedMemory>),
    /// Begun by another library, whose graph keeps the memory; its end is not seen here.
    External(Weak<CapturedMemory>),
}

impl OpenCaptures {
    /// No captures.
    pub(crate) fn new(context: &Arc<Context>, memory: &Arc<DeviceAllocator>) -> OpenCaptures {
        OpenCaptures {
            context: context.clone(),
            blocks: Arc::new(GraphBlocks::new(memory.clone())),
            open: Ranked::default(),
            joined: Ranked::default(),
        }
    }

    fn new_memory(&self) -> Arc<CapturedMemory> {
        Arc::new(CapturedMemory::new(&self.blocks))
    }

    /// Notes a capture that was begun on the stream of this number.
    pub(super) fn begin(&self, stream: u64, capture: u64) {
        let own = OpenCapture::Own(stream, self.new_memory());
        self.open.lock().insert(capture, own);
    }

    /// Notes the numbers of a stream that has joined a capture, and of the default stream if that waits for it.
    pub(super) fn join(&self, streams: &[u64]) {
        self.joined.lock().extend(streams);
    }

    /// True if [`OpenCaptures::join`] has noted the stream of this number, and a capture may be under way.
    pub(super) fn has_joined(&self, stream: u64) -> bool {
        self.joined.lock().contains(&stream)
    }

    /// The number of the capture that was begun here on the stream of this number.
    pub(super) fn number_of(&self, stream: u64) -> Option<u64> {
        let is_own =
            |open: &OpenCapture| matches!(open, OpenCapture::Own(own, _) if *own == stream);
        self.open.lock().iter().find_map(|(number, open)| is_own(open).then_some(*number))
    }

    /// True if a capture was begun here.
    pub(super) fn is_own(&self, capture: u64) -> bool {
        matches!(self.open.lock().get(&capture), Some(OpenCapture::Own(..)))
    }

    /// Ends captures whose stream nobody has any longer but the memory that they keep.
    pub(crate) fn collect(&self) {
        if !self.context.capture_state.any() {
            return;
        }
        // Dropped behind the lock, and with it the stream, which ends the capture.
        let mut abandoned = Vec::new();
        for open in self.open.lock().values_mut() {
            if let OpenCapture::Own(stream, kept) = open
                && kept.is_abandoned(*stream)
            {
                abandoned.push(std::mem::replace(kept, self.new_memory()));
            }
        }
    }

    /// True if the capture may have recorded a use that one of this access has to be ordered with. What
    /// another library has captured is not known.
    pub(super) fn may_conflict(&self, capture: u64, memory: &DeviceMemory, access: Access) -> bool {
        match self.open.lock().get(&capture) {
            Some(OpenCapture::Own(_, kept)) => kept.conflicts(memory, access),
            _ => true,
        }
    }

    fn known(&self, capture: u64) -> Option<Arc<CapturedMemory>> {
        match self.open.lock().get(&capture)? {
            OpenCapture::Own(_, kept) => Some(kept.clone()),
            OpenCapture::External(kept) => kept.upgrade(),
        }
    }

    /// What keeps the memory of the capture that a stream is part of; `None` if another thread has ended it
    /// meanwhile. The context is current.
    pub(super) fn memory_of(
        &self,
        stream: Handle,
        unattached: &Unattached,
        capture: u64,
    ) -> Result<Option<Arc<CapturedMemory>>> {
        if let Some(known) = self.known(capture) {
            return Ok(Some(known));
        }
        // A capture that is just beginning or ending here is known, or has ended, when this lock is had.
        // Drivers do not expect that a capture ends to which something is attached.
        let _none_changes = self.context.capture_state.beginning.lock();
        if let Some(known) = self.known(capture) {
            return Ok(Some(known));
        }
        if self.context.capture_of(stream)? != Some(capture) {
            return Ok(None);
        }
        let kept = self.new_memory();
        if !attach(&self.context, stream, &kept)? {
            // Nothing tells when the graph goes: with the stream's object at the earliest.
            lock(unattached).push(kept.clone());
        }
        let mut open = self.open.lock();
        open.retain(|_, it| !matches!(it, OpenCapture::External(kept) if kept.strong_count() == 0));
        open.insert(capture, OpenCapture::External(Arc::downgrade(&kept)));
        Ok(Some(kept))
    }

    /// Memory that belongs to a capture and to the object that is made of it; `None` if the capture has
    /// ended.
    pub(super) fn allocate(
        &self,
        stream: Handle,
        unattached: &Unattached,
        capture: u64,
        bytes: usize,
    ) -> Result<Option<u64>> {
        let context = &self.context;
        let _scope = context.enter()?;
        let Some(kept) = self.memory_of(stream, unattached, capture)? else { return Ok(None) };
        let mut address = 0;
        // As the driver's pool is asked: not beside the beginning or end of a capture.
        let none_changes = context.capture_state.beginning.lock();
        // SAFETY: the address is written before the call returns.
        let code = context
            .outside_captures(|| unsafe { (context.driver.calls.allocate)(&mut address, bytes) });
        drop(none_changes);
        context.check("allocate", code)?;
        // SAFETY: the block has just been allocated.
        unsafe { kept.keep_allocated(address, bytes) };
        Ok(Some(address))
    }

    /// Hands a capture a block that its object frees while it goes on; false if it has ended.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamCore::free`].
    pub(super) unsafe fn keep(
        &self,
        stream: Handle,
        unattached: &Unattached,
        capture: u64,
        address: u64,
        bytes: usize,
    ) -> Result<bool> {
        let _scope = self.context.enter()?;
        let kept = self.memory_of(stream, unattached, capture)?;
        // SAFETY: the caller's promise.
        let keep = |kept: Arc<CapturedMemory>| unsafe { kept.keep_freed(address, bytes) };
        Ok(kept.map(keep).is_some())
    }

    /// True if the block belongs to a capture or graph: then this ends one of its holders.
    #[inline]
    pub(super) fn release(&self, address: u64) -> Option<Result<()>> {
        self.blocks.release(address)
    }

    /// Ends a capture that was begun here, and returns what it uses.
    pub(super) fn end(&self, capture: u64) -> Option<Arc<CapturedMemory>> {
        if !self.context.has_captures() {
            self.joined.lock().clear();
        }
        match self.open.lock().remove(&capture) {
            Some(OpenCapture::Own(_, kept)) => Some(kept),
            _ => None,
        }
    }

    /// Forgets everything, since the device is being reset. What is returned is dropped outside
    /// of locks: owners of foreign memory may do anything.
    #[must_use]
    pub(crate) fn forget(&self) -> impl Drop + use<> {
        self.context.capture_state.forget();
        self.blocks.forget();
        self.joined.lock().clear();
        std::mem::take(&mut *self.open.lock()).into_values().collect::<Vec<_>>()
    }
}
