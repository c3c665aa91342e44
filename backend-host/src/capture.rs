//! Captures: work that streams record instead of running it.
//!
//! A capture begins on one stream. Others take part in it from when they wait for an event that was
//! recorded in it. A node is work as a stream would queue it, but for that it can run again and again.
//! What each stream's next node depends on tells at the end whether all streams have been joined; a
//! graph runs its nodes in the order of their recording, which respects every dependency.

mod refusal;

pub(crate) use refusal::Refusal;

use crate::engine::Engine;
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

/// Recorded work.
pub(crate) type Node = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// The default stream waits for a stream that captures, until this is dropped. The stream counts as
/// one that has work, so that no work of the default stream runs at once.
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

/// What has been recorded so far.
pub(crate) struct Recording {
    nodes: Vec<Node>,
    memory: Arc<CapturedMemory>,
    /// The nodes that each node comes behind.
    dependencies: Vec<Vec<usize>>,
    /// The nodes that the next one of each stream comes behind, by the stream's number.
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

    /// The work of a capture that has ended on the stream of this number, and what it keeps.
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

    /// True if the last node of every stream is one that the stream's work comes behind.
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

/// One capture.
pub(crate) struct Capture {
    /// The number of the stream that it began on.
    origin: u64,
    /// The only thread that may end it; `None` for any.
    thread: Option<ThreadId>,
    /// `None` once it has ended.
    recording: Mutex<Option<Recording>>,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture(of stream {})", self.origin)
    }
}

impl Capture {
    /// A capture that is about to begin on a stream.
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

    /// Changes the recording of a capture that goes on and is valid.
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

    /// Records work of a stream that takes part, or returns the work if the capture has ended.
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

    /// The place behind what a stream has recorded so far.
    pub(crate) fn mark(self: &Arc<Self>, call: &'static str, stream: u64) -> Result<CapturedMark> {
        let nodes = self
            .change(call, |recording| recording.frontiers.get(&stream).cloned())?
            .unwrap_or_default();
        Ok(CapturedMark { capture: self.clone(), nodes })
    }

    /// Lets a stream take part: its next node comes behind `nodes`, too.
    fn join(&self, call: &'static str, stream: u64, nodes: &[usize]) -> Result<()> {
        self.change(call, |recording| {
            let frontier = recording.frontiers.entry(stream).or_default();
            frontier.extend(nodes);
            frontier.sort_unstable();
            frontier.dedup();
        })
    }

    /// Refuses the default stream's work until the end: it waits for a stream that takes part.
    pub(crate) fn bar_default(&self, engine: &Engine) {
        if let Some(recording) = &mut *self.lock() {
            let (pending, count) = (&engine.blocking_pending, &engine.captures.barring);
            pending.fetch_add(1, Ordering::AcqRel);
            count.fetch_add(1, Ordering::AcqRel);
            recording.barred.push(Barred { pending: pending.clone(), count: count.clone() });
        }
    }

    /// Makes the capture invalid, and returns the error of the call that did.
    pub(crate) fn spoil(&self, call: &'static str, refusal: Refusal) -> Error {
        if let Some(recording) = &mut *self.lock() {
            recording.is_invalid = true;
        }
        refusal.of(call)
    }

    /// Keeps memory for the graph; false if the capture has ended.
    pub(crate) fn keep(&self, keep: impl FnOnce(&CapturedMemory)) -> bool {
        let recording = self.lock();
        recording.as_ref().map(|it| keep(&it.memory)).is_some()
    }

    /// Keeps what an operation uses for the graph, unless the capture has ended.
    pub(crate) fn keep_uses(&self, uses: &[Use<'_>]) {
        self.keep(|memory| memory.add_uses(uses));
    }

    /// True if recorded work uses memory in a way that a use of this access has to be ordered with.
    pub(crate) fn conflicts(&self, memory: &DeviceMemory, access: Access) -> bool {
        self.lock().as_ref().is_some_and(|it| it.memory.conflicts(memory, access))
    }

    /// Checks that the calling thread may end the capture on a stream.
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

    /// Ends the capture, and returns what was recorded; `None` if another thread has ended it. The
    /// caller drops it under no lock, for its memory goes on streams.
    pub(crate) fn end(&self) -> Option<Recording> {
        self.lock().take()
    }

    /// Takes the memory of a capture whose stream only that memory keeps.
    fn take_abandoned(&self, blocks: &Arc<GraphBlocks>) -> Option<Arc<CapturedMemory>> {
        let mut recording = self.lock();
        let memory = &mut recording.as_mut()?.memory;
        let fresh = || Arc::new(CapturedMemory::new(blocks));
        memory.is_abandoned(self.origin).then(|| std::mem::replace(memory, fresh()))
    }
}

/// A place in captured work, which an event was recorded at.
#[derive(Clone, Debug)]
pub(crate) struct CapturedMark {
    capture: Arc<Capture>,
    nodes: Vec<usize>,
}

impl CapturedMark {
    pub(crate) fn capture(&self) -> &Arc<Capture> {
        &self.capture
    }

    /// Checks that the capture goes on and is valid.
    pub(crate) fn check(&self, call: &'static str) -> Result<()> {
        self.capture.change(call, |_| ())
    }

    /// Makes the work of a stream come behind the mark.
    pub(crate) fn join(&self, call: &'static str, stream: u64) -> Result<()> {
        self.capture.join(call, stream, &self.nodes)
    }

    /// The error of whoever waits for the mark, which ends the capture.
    pub(crate) fn spoil(&self, call: &'static str) -> Error {
        self.capture.spoil(call, Refusal::CapturedEvent)
    }
}

/// The capture that a stream takes part in, if any. A forked child has none of its parent's.
#[derive(Debug, Default)]
pub(crate) struct CaptureSlot {
    /// False if there is none.
    may_be_set: AtomicBool,
    capture: ProcessMutex<Option<Arc<Capture>>>,
}

impl CaptureSlot {
    /// The capture, if it goes on.
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

    /// Sets the capture; false if another one goes on.
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

/// The captures under way.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    open: Mutex<Vec<Arc<Capture>>>,
    /// The number of `open`: 0 nearly always.
    count: AtomicUsize,
    /// The number of streams that capture and that the default stream waits for.
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

    /// True while the default stream waits for a stream that captures.
    pub(crate) fn bars_default(&self) -> bool {
        self.barring.load(Ordering::Acquire) > 0
    }

    /// Refuses work of the default stream while it waits for a stream that captures, whose capture
    /// that ends.
    pub(crate) fn check_default(&self, call: &'static str) -> Result<()> {
        if !self.bars_default() {
            return Ok(());
        }
        let bars = |recording: &Recording| !recording.barred.is_empty();
        self.spoil(call, Refusal::Implicit, bars)
    }

    /// Refuses to wait for the device while a stream captures, which ends the captures.
    pub(crate) fn check_device(&self, call: &'static str) -> Result<()> {
        if self.any() { self.spoil(call, Refusal::Unsupported, |_| true) } else { Ok(()) }
    }

    /// Makes captures invalid; an error if there are such.
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

    /// Ends captures whose stream nobody has any longer but the memory that they keep.
    pub(crate) fn collect(&self, blocks: &Arc<GraphBlocks>) {
        if !self.any() {
            return;
        }
        let open = self.open.lock().unpoisoned();
        let abandoned: Vec<_> = open.iter().filter_map(|it| it.take_abandoned(blocks)).collect();
        // Dropped behind the lock, and with it the stream, which ends the capture.
        drop(open);
        drop(abandoned);
    }
}

#[cfg(test)]
mod tests;
