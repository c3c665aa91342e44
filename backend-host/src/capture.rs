//! Captures: streams record work instead of running it.
//!
//! A capture begins on one stream. Another stream joins it by waiting for an event that was recorded in it. A
//! node is a task that can run repeatedly. For each stream, the capture tracks the nodes that its next node
//! depends on; at the end, these nodes show if all streams have been joined. A graph runs its nodes in
//! recording order, which respects all dependencies.

mod refusal;

pub(crate) use refusal::Refusal;

use hal::memory::{Access, CapturedMemory, DeviceMemory, GraphBlocks, Use};
use hal::poison::Unpoisoned as _;
use hal::process::ProcessMutex;
use hal::submission::Announcement;
use hal::{CaptureMode, Error, Result};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};

/// A recorded task.
pub(crate) type Node = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Bars the default stream, until this is dropped, because a stream that it waits for captures. The capturing
/// stream counts as a stream with work, so that the default stream does not run work immediately.
struct Barred {
    pending: Arc<AtomicUsize>,
    count: Arc<AtomicUsize>,
}

impl Drop for Barred {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The nodes and dependencies recorded so far.
pub(crate) struct Recording {
    nodes: Vec<Node>,
    memory: Arc<CapturedMemory>,
    /// The nodes that each node depends on.
    dependencies: Vec<Vec<usize>>,
    /// The nodes that the next node of each stream depends on, by the stream's number.
    frontiers: HashMap<u64, Vec<usize>>,
    is_invalid: bool,
    barred: Vec<Barred>,
    _announcement: Announcement,
}

impl Recording {
    fn new(blocks: &Arc<GraphBlocks>) -> Recording {
        Recording {
            nodes: Vec::new(),
            memory: Arc::new(CapturedMemory::new(blocks)),
            dependencies: Vec::new(),
            frontiers: HashMap::new(),
            is_invalid: false,
            barred: Vec::new(),
            _announcement: Announcement::new(),
        }
    }

    /// Returns the nodes of a capture that has ended on the stream `origin`, and the memory that it keeps.
    ///
    /// # Errors
    /// `InvalidArgument` if the capture became invalid, or if a stream has not been joined.
    pub(crate) fn finish(self, origin: u64) -> Result<(Vec<Node>, Arc<CapturedMemory>)> {
        if self.is_invalid {
            return Err(Refusal::Invalidated.of("end_capture"));
        }
        if !self.is_joined(origin) {
            return Err(Refusal::Unjoined.of("end_capture"));
        }
        Ok((self.nodes, self.memory))
    }

    /// Returns true if the work of `origin` depends on the last node of every stream.
    fn is_joined(&self, origin: u64) -> bool {
        let mut is_reached = vec![false; self.nodes.len()];
        let mut left = self.frontiers.get(&origin).cloned().unwrap_or_default();
        while let Some(node) = left.pop() {
            if !std::mem::replace(&mut is_reached[node], true) {
                left.extend(&self.dependencies[node]);
            }
        }
        self.frontiers.values().flatten().all(|node| is_reached[*node])
    }
}

/// A capture.
pub(crate) struct Capture {
    /// The number of the stream on which the capture began.
    origin: u64,
    /// The only thread that may end it; `None` if any thread may.
    thread: Option<ThreadId>,
    /// `None` once the capture has ended.
    recording: Mutex<Option<Recording>>,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture(of stream {})", self.origin)
    }
}

impl Capture {
    /// Creates a capture for a stream.
    pub(crate) fn new(origin: u64, mode: CaptureMode, blocks: &Arc<GraphBlocks>) -> Arc<Capture> {
        Arc::new(Capture {
            origin,
            thread: (mode != CaptureMode::Relaxed).then(|| thread::current().id()),
            recording: Mutex::new(Some(Recording::new(blocks))),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recording>> {
        self.recording.lock().unpoisoned()
    }

    /// Modifies the recording of a capture that is active and valid.
    fn change<T>(&self, call: &'static str, change: impl FnOnce(&mut Recording) -> T) -> Result<T> {
        match &mut *self.lock() {
            Some(recording) if !recording.is_invalid => Ok(change(recording)),
            Some(_) => Err(Refusal::Invalidated.of(call)),
            None => Err(Error::invalid(call, "the capture has ended")),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().is_none()
    }

    pub(crate) fn origin(&self) -> u64 {
        self.origin
    }

    /// Records a node of a participating stream. Returns the node if the capture has ended.
    pub(crate) fn add(&self, call: &'static str, stream: u64, node: Node) -> Result<Option<Node>> {
        match &mut *self.lock() {
            None => Ok(Some(node)),
            Some(recording) if recording.is_invalid => Err(Refusal::Invalidated.of(call)),
            Some(recording) => {
                let number = recording.nodes.len();
                recording.nodes.push(node);
                let frontier = recording.frontiers.entry(stream).or_default();
                recording.dependencies.push(std::mem::replace(frontier, vec![number]));
                Ok(None)
            }
        }
    }

    /// Returns the position after everything that a stream has recorded so far.
    pub(crate) fn mark(self: &Arc<Self>, call: &'static str, stream: u64) -> Result<CapturedMark> {
        let nodes = self
            .change(call, |recording| recording.frontiers.get(&stream).cloned())?
            .unwrap_or_default();
        Ok(CapturedMark { capture: self.clone(), nodes })
    }

    /// Lets a stream take part: its next node also depends on `nodes`.
    fn join(&self, call: &'static str, stream: u64, nodes: &[usize]) -> Result<()> {
        self.change(call, |recording| {
            let frontier = recording.frontiers.entry(stream).or_default();
            frontier.extend(nodes);
            frontier.sort_unstable();
            frontier.dedup();
        })
    }

    /// Refuses work on the default stream until the capture ends, because it waits for a participating
    /// stream. The capture counts in `pending` meanwhile.
    pub(crate) fn bar_default(&self, captures: &Captures, pending: &Arc<AtomicUsize>) {
        if let Some(recording) = &mut *self.lock() {
            let count = &captures.barring;
            pending.fetch_add(1, Ordering::AcqRel);
            count.fetch_add(1, Ordering::AcqRel);
            recording.barred.push(Barred { pending: pending.clone(), count: count.clone() });
        }
    }

    /// Invalidates the capture, and returns the error for the call that made it invalid.
    pub(crate) fn spoil(&self, call: &'static str, refusal: Refusal) -> Error {
        if let Some(recording) = &mut *self.lock() {
            recording.is_invalid = true;
        }
        refusal.of(call)
    }

    /// Keeps memory for the graph. Returns false if the capture has ended.
    pub(crate) fn keep(&self, keep: impl FnOnce(&CapturedMemory)) -> bool {
        let recording = self.lock();
        recording.as_ref().map(|it| keep(&it.memory)).is_some()
    }

    /// Keeps the memory that an operation uses, unless the capture has ended.
    pub(crate) fn keep_uses(&self, uses: &[Use<'_>]) {
        self.keep(|memory| memory.add_uses(uses));
    }

    /// Returns true if the recorded work uses memory in a way that conflicts with this access.
    pub(crate) fn conflicts(&self, memory: &DeviceMemory, access: Access) -> bool {
        self.lock().as_ref().is_some_and(|it| it.memory.conflicts(memory, access))
    }

    /// Checks that the calling thread may end the capture on this stream.
    pub(crate) fn check_end(&self, stream: u64) -> Result<()> {
        if stream != self.origin {
            return Err(self.spoil("end_capture", Refusal::Unmatched));
        }
        match self.thread {
            Some(thread) if thread != thread::current().id() => {
                Err(Refusal::WrongThread.of("end_capture"))
            }
            _ => Ok(()),
        }
    }

    /// Ends the capture, and returns the recording. Returns `None` if another thread has ended it. The caller
    /// must drop the recording without holding a lock, because that frees memory on streams.
    pub(crate) fn end(&self) -> Option<Recording> {
        self.lock().take()
    }

    /// Takes the memory of a capture if only that memory keeps the capture's stream alive.
    fn take_abandoned(&self, blocks: &Arc<GraphBlocks>) -> Option<Arc<CapturedMemory>> {
        let mut recording = self.lock();
        let memory = &mut recording.as_mut()?.memory;
        let fresh = || Arc::new(CapturedMemory::new(blocks));
        memory.is_abandoned(self.origin).then(|| std::mem::replace(memory, fresh()))
    }
}

/// A position in captured work at which an event was recorded.
#[derive(Clone, Debug)]
pub(crate) struct CapturedMark {
    capture: Arc<Capture>,
    nodes: Vec<usize>,
}

impl CapturedMark {
    pub(crate) fn capture(&self) -> &Arc<Capture> {
        &self.capture
    }

    /// Checks that the capture is active and valid.
    pub(crate) fn check(&self, call: &'static str) -> Result<()> {
        self.capture.change(call, |_| ())
    }

    /// Makes later work of a stream depend on the mark.
    pub(crate) fn join(&self, call: &'static str, stream: u64) -> Result<()> {
        self.capture.join(call, stream, &self.nodes)
    }

    /// Invalidates the capture, and returns the error for a call that waits for the mark.
    pub(crate) fn spoil(&self, call: &'static str) -> Error {
        self.capture.spoil(call, Refusal::CapturedEvent)
    }
}

/// The capture in which a stream takes part, if any. A forked child does not inherit it.
#[derive(Debug, Default)]
pub(crate) struct CaptureSlot {
    /// False if the stream does not capture.
    may_be_set: AtomicBool,
    capture: ProcessMutex<Option<Arc<Capture>>>,
}

impl CaptureSlot {
    /// Returns the capture, if it is active.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<Capture>> {
        if self.may_be_set.load(Ordering::Acquire) { self.look() } else { None }
    }

    #[cold]
    fn look(&self) -> Option<Arc<Capture>> {
        let mut capture = self.capture.lock();
        if capture.as_ref().is_some_and(|it| it.has_ended()) {
            *capture = None;
        }
        if capture.is_none() {
            self.may_be_set.store(false, Ordering::Release);
        }
        capture.clone()
    }

    /// Sets the capture. Returns false if another one is active.
    pub(crate) fn set(&self, new: &Arc<Capture>) -> bool {
        let mut capture = self.capture.lock();
        if capture.as_ref().is_some_and(|it| !it.has_ended()) {
            return false;
        }
        *capture = Some(new.clone());
        self.may_be_set.store(true, Ordering::Release);
        true
    }
}

/// The active captures.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    open: Mutex<Vec<Arc<Capture>>>,
    /// The length of `open`, which is almost always 0.
    count: AtomicUsize,
    /// The number of capturing streams for which the default stream waits.
    barring: Arc<AtomicUsize>,
}

impl Captures {
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Arc<Capture>>) -> T) -> T {
        let mut open = self.open.lock().unpoisoned();
        let result = change(&mut open);
        self.count.store(open.len(), Ordering::Release);
        result
    }

    fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub(crate) fn add(&self, capture: &Arc<Capture>) {
        self.change(|open| open.push(capture.clone()));
    }

    pub(crate) fn remove(&self, capture: &Arc<Capture>) {
        self.change(|open| open.retain(|it| !Arc::ptr_eq(it, capture)));
    }

    /// Returns true while the default stream waits for a capturing stream.
    pub(crate) fn bars_default(&self) -> bool {
        self.barring.load(Ordering::Acquire) > 0
    }

    /// Refuses work on the default stream while it waits for a capturing stream. The call invalidates those
    /// captures.
    pub(crate) fn check_default(&self, call: &'static str) -> Result<()> {
        if !self.bars_default() {
            return Ok(());
        }
        let bars = |recording: &Recording| !recording.barred.is_empty();
        self.spoil(call, Refusal::Implicit, bars)
    }

    /// Refuses to synchronise the device while a stream captures. The call invalidates the captures.
    pub(crate) fn check_device(&self, call: &'static str) -> Result<()> {
        if self.any() { self.spoil(call, Refusal::Unsupported, |_| true) } else { Ok(()) }
    }

    /// Invalidates matching captures. Returns an error if there were any.
    fn spoil(
        &self,
        call: &'static str,
        refusal: Refusal,
        which: impl Fn(&Recording) -> bool,
    ) -> Result<()> {
        let mut result = Ok(());
        for capture in &*self.open.lock().unpoisoned() {
            if let Some(recording) = &mut *capture.lock()
                && which(recording)
            {
                recording.is_invalid = true;
                result = Err(refusal.of(call));
            }
        }
        result
    }

    /// Ends captures whose stream is only kept alive by their own memory.
    pub(crate) fn collect(&self, blocks: &Arc<GraphBlocks>) {
        if !self.any() {
            return;
        }
        let open = self.open.lock().unpoisoned();
        let abandoned: Vec<_> = open.iter().filter_map(|it| it.take_abandoned(blocks)).collect();
        // Drop the memory after releasing the lock. This drops the stream, which ends the capture.
        drop(open);
        drop(abandoned);
    }
}

#[cfg(test)]
mod tests;
