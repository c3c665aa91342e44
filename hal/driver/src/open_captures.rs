//! The captures in progress on one device, and the memory that they use, allocate and free. That memory stays
//! allocated until the graph is gone ([`CapturedMemory`]).

use crate::calls::Handle;
use crate::context::Context;
use crate::memory::DeviceAllocator;
use hal::error::Result;
use hal::locks::{CAPTURES, LEAF, Ranked};
use hal::memory::{Access, CapturedMemory, DeviceMemory, GraphBlocks};
use hal::poison::Unpoisoned as _;
use hal::process;
use hal::status::Status;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, Weak};

/// Memory of other libraries' captures, which the stream's object keeps if the driver's graphs cannot.
pub(crate) type Unattached = Mutex<Vec<Arc<CapturedMemory>>>;

/// The captures in progress on one device.
#[derive(Debug)]
pub(crate) struct OpenCaptures {
    context: Arc<Context>,
    blocks: Arc<GraphBlocks>,
    /// The captures, by number.
    open: Ranked<HashMap<u64, OpenCapture>, CAPTURES>,
    /// The streams that [`OpenCaptures::join`] recorded while captures were in progress.
    joined: Ranked<HashSet<u64>, LEAF>,
}

/// A capture in progress.
#[derive(Debug)]
enum OpenCapture {
    /// Begun here, on the stream with this number.
    Own(u64, Arc<CapturedMemory>),
    /// Begun by another library, whose graph keeps the memory. The end of the capture is not visible here.
    External(Weak<CapturedMemory>),
}

impl OpenCaptures {
    /// Returns an empty list of captures.
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

    /// Records a capture that was begun on the stream with this number.
    pub(crate) fn begin(&self, stream: u64, capture: u64) {
        let own = OpenCapture::Own(stream, self.new_memory());
        self.open.lock().insert(capture, own);
    }

    /// Records a stream that has joined a capture, and the default stream if that waits for this stream.
    pub(crate) fn join(&self, streams: &[u64]) {
        self.joined.lock().extend(streams);
    }

    /// Returns true if [`OpenCaptures::join`] recorded the stream, and a capture may be in progress.
    pub(crate) fn has_joined(&self, stream: u64) -> bool {
        self.joined.lock().contains(&stream)
    }

    /// Returns the number of the capture that was begun here on the stream with this number.
    pub(crate) fn number_of(&self, stream: u64) -> Option<u64> {
        let is_own =
            |open: &OpenCapture| matches!(open, OpenCapture::Own(own, _) if *own == stream);
        self.open.lock().iter().find_map(|(number, open)| is_own(open).then_some(*number))
    }

    /// Returns true if the capture was begun here.
    pub(crate) fn is_own(&self, capture: u64) -> bool {
        matches!(self.open.lock().get(&capture), Some(OpenCapture::Own(..)))
    }

    /// Ends captures whose stream is only referenced by the memory that they keep.
    pub(crate) fn collect(&self) {
        if !self.context.capture_state.any() {
            return;
        }
        // Dropped after the lock is released; dropping the stream ends the capture.
        let mut abandoned = Vec::new();
        for open in self.open.lock().values_mut() {
            if let OpenCapture::Own(stream, kept) = open
                && kept.is_abandoned(*stream)
            {
                abandoned.push(std::mem::replace(kept, self.new_memory()));
            }
        }
    }

    /// Returns true if the capture may have recorded a use that conflicts with this access. The uses in another
    /// library's capture are unknown.
    pub(crate) fn may_conflict(&self, capture: u64, memory: &DeviceMemory, access: Access) -> bool {
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

    /// Returns the memory list of the capture that a stream is part of; `None` if another thread has ended the
    /// capture meanwhile. The context is current.
    pub(crate) fn memory_of(
        &self,
        stream: Handle,
        unattached: &Unattached,
        capture: u64,
    ) -> Result<Option<Arc<CapturedMemory>>> {
        if let Some(known) = self.known(capture) {
            return Ok(Some(known));
        }
        // After taking this lock, a capture that was just beginning or ending here is either known or has
        // ended. Drivers do not support attaching an object to a capture that is ending.
        let _none_changes = self.context.capture_state.beginning.lock();
        if let Some(known) = self.known(capture) {
            return Ok(Some(known));
        }
        if self.context.capture_of(stream)? != Some(capture) {
            return Ok(None);
        }
        let kept = self.new_memory();
        if !attach(&self.context, stream, &kept)? {
            // The graph's end is not visible; the memory is freed with the stream's object at the earliest.
            unattached.lock().unpoisoned().push(kept.clone());
        }
        let mut open = self.open.lock();
        open.retain(|_, it| !matches!(it, OpenCapture::External(kept) if kept.strong_count() == 0));
        open.insert(capture, OpenCapture::External(Arc::downgrade(&kept)));
        Ok(Some(kept))
    }

    /// Allocates memory that belongs to both a capture and the object made of it; `None` if the capture has
    /// ended.
    pub(crate) fn allocate(
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
        // As with the driver's pool, no capture may begin or end meanwhile.
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

    /// Passes a block that is freed during a capture to the capture; returns false if the capture has ended.
    ///
    /// # Safety
    /// As for [`hal::stream::StreamCore::free`].
    pub(crate) unsafe fn keep(
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

    /// Removes one holder of the block; `None` if the block does not belong to a capture or graph.
    #[inline]
    pub(crate) fn release(&self, address: u64) -> Option<Result<()>> {
        self.blocks.release(address)
    }

    /// Ends a capture that was begun here, and returns the memory and objects that it uses.
    pub(crate) fn end(&self, capture: u64) -> Option<Arc<CapturedMemory>> {
        if !self.context.has_captures() {
            self.joined.lock().clear();
        }
        match self.open.lock().remove(&capture) {
            Some(OpenCapture::Own(_, kept)) => Some(kept),
            _ => None,
        }
    }

    /// Forgets everything, because the device is being reset. The result is dropped outside of locks, because
    /// destructors of foreign memory may do anything.
    #[must_use]
    pub(crate) fn forget(&self) -> impl Drop + use<> {
        self.context.capture_state.forget();
        self.blocks.forget();
        self.joined.lock().clear();
        std::mem::take(&mut *self.open.lock()).into_values().collect::<Vec<_>>()
    }
}

// Keeping the memory of another library's capture: its graph retains a user object, which the driver
// passes on to every executable graph, and destroys with the last of them.

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC` and `CU_GRAPH_USER_OBJECT_MOVE`; HIP's are the same.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
const MOVE: c_uint = 1;

/// Returns the graph of the capture that a stream is part of.
fn graph_of(context: &Context, stream: Handle) -> Option<Handle> {
    let info = context.driver.calls.capture_graph?;
    let (mut state, mut number, mut graph): (c_int, c_ulonglong, Handle) = (0, 0, 0);
    // SAFETY: the handle is a live stream; the results are written before the call returns, except
    // for the null pointers.
    let code = unsafe { info(stream, &mut state, &mut number, &mut graph, null_mut(), null_mut()) };
    (code == Status::SUCCESS && graph != 0).then_some(graph)
}

/// Makes the graph of the stream's capture keep `kept`. Returns false if the driver does not support
/// that. The context is current.
fn attach(context: &Context, stream: Handle, kept: &Arc<CapturedMemory>) -> Result<bool> {
    let calls = &context.driver.calls;
    let (Some(create), Some(retain)) = (calls.user_object_create, calls.graph_retain) else {
        return Ok(false);
    };
    let Some(graph) = graph_of(context, stream) else { return Ok(false) };
    let data = Box::into_raw(Box::new(kept.clone())).cast::<c_void>();
    let mut object = 0;
    // SAFETY: the function takes the box once, when the last graph is destroyed.
    let code = unsafe { create(&mut object, data, let_go, 1, NO_DESTRUCTOR_SYNC) };
    if code != Status::SUCCESS {
        // SAFETY: the driver did not take the box.
        drop(unsafe { Box::from_raw(data.cast::<Arc<CapturedMemory>>()) });
        return Ok(false);
    }
    let _adding = context.capture_state.adding();
    // SAFETY: both handles are live; the graph takes the only reference.
    let code = unsafe { retain(graph, object, 1, MOVE) };
    if code != Status::SUCCESS {
        // The object is never destroyed, so the memory is never freed. That is better than freeing it too
        // early.
        log::warn!("a graph does not retain the memory that it uses: status {code}");
    }
    Ok(true)
}

/// Releases the memory on another thread. The driver calls this when the last graph has been
/// destroyed, on a thread that must not call the driver.
unsafe extern "C" fn let_go(data: *mut c_void) {
    if process::is_exiting() {
        return;
    }
    let address = data as usize;
    let thread = std::thread::Builder::new().name("gpuarray graph".into());
    // SAFETY: the box was passed on once, when the object was created.
    let drop_kept = move || drop(unsafe { Box::from_raw(address as *mut Arc<CapturedMemory>) });
    if let Err(error) = thread.spawn(drop_kept) {
        // Nothing is freed then, because the closure only contains the address.
        log::warn!("no thread to free the memory of a graph: {error}");
    }
}
