//! The threads and queues of a process, and functions that wait for queued work.

use crate::capture::Captures;
use crate::queue::{Mark, Queue, Room};
use hal::failures::Failures;
use hal::poison::Unpoisoned as _;
use hal::{Result, process};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The threads and queues of one process. A forked child creates its own.
pub(crate) struct Engine {
    generation: u32,
    /// Work of the default stream that could not run immediately.
    pub(crate) default_queue: Arc<Queue>,
    /// The number of pending tasks on streams that the default stream waits for, plus the number of such
    /// streams that capture.
    pub(crate) blocking_pending: Arc<AtomicUsize>,
    default_pending: Arc<AtomicUsize>,
    /// Held while work of the default stream runs, directly or from its queue.
    pub(crate) turn: Arc<Mutex<()>>,
    other_pending: Arc<AtomicUsize>,
    /// Determines if a thread may wait for room in a queue.
    pub(crate) room: Arc<Room>,
    pub(crate) failures: Arc<Failures>,
    /// The active captures.
    pub(crate) captures: Captures,
    streams: Mutex<Vec<(bool, Weak<Queue>)>>,
    pool: OnceLock<Option<Arc<ThreadPool>>>,
}

impl Engine {
    pub(crate) fn new() -> Engine {
        let default_pending = Arc::new(AtomicUsize::new(0));
        let failures = Arc::new(Failures::default());
        Engine {
            generation: process::generation(),
            default_queue: Queue::new(default_pending.clone(), failures.clone()),
            blocking_pending: Arc::default(),
            default_pending,
            turn: Arc::default(),
            other_pending: Arc::default(),
            room: Arc::default(),
            failures,
            captures: Captures::default(),
            streams: Mutex::default(),
            pool: OnceLock::new(),
        }
    }

    /// Returns true if work of the default stream may run immediately, because nothing that it has to wait
    /// for is queued.
    pub(crate) fn default_is_clear(&self) -> bool {
        self.default_pending.load(Ordering::Acquire) == 0
            && self.blocking_pending.load(Ordering::Acquire) == 0
    }

    /// Returns true if all work of the default stream has run, and all work that the stream waits for.
    pub(crate) fn default_has_run(&self) -> bool {
        // The work before the capture has run, and no work can be queued meanwhile.
        self.default_is_clear() || self.captures.bars_default()
    }

    /// Returns true if no stream has queued work.
    pub(crate) fn is_clear(&self) -> bool {
        self.default_is_clear() && self.other_pending.load(Ordering::Acquire) == 0
    }

    /// Queues work after `marks`, and after the kernel that a signal handler has interrupted on the calling
    /// thread. That kernel is work of the default stream that is not in the queue.
    pub(crate) fn behind_interrupted(
        &self,
        marks: Vec<Mark>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        let turn = self.turn.clone();
        self.default_queue.submit(Box::new(move || {
            drop(turn.lock().unpoisoned());
            marks.iter().try_for_each(Mark::wait)?;
            work();
            Ok(())
        }))
    }

    /// Returns true unless the process has been forked since.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == process::generation()
    }

    /// Waits until all queued work has run. Each stream reports its own failures.
    pub(crate) fn wait(&self) -> Result<()> {
        for mark in self.marks(false) {
            mark.wait()?;
        }
        self.default_queue.mark().wait()
    }

    /// Returns a pool of this number of threads for large operations; the first call starts the pool.
    /// Returns `None` for a single thread, or if the system cannot start more threads.
    pub(crate) fn pool(&self, threads: usize) -> Option<Arc<ThreadPool>> {
        let start = || {
            if threads < 2 {
                return None;
            }
            let built = ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("pygpu kernel {index}"))
                .build();
            built
                .inspect_err(|error| log::warn!("no threads for large operations: {error}"))
                .ok()
                .map(Arc::new)
        };
        self.pool.get_or_init(start).clone()
    }

    /// Returns marks for streams that still have work. If `blocking_only` is true, only blocking streams
    /// count.
    pub(crate) fn marks(&self, blocking_only: bool) -> Vec<Mark> {
        let mut streams = self.streams.lock().unpoisoned();
        streams.retain(|(_, queue)| queue.strong_count() > 0);
        streams
            .iter()
            .filter(|(blocking, _)| *blocking || !blocking_only)
            .filter_map(|(_, queue)| queue.upgrade())
            .filter(|queue| !queue.is_idle())
            .map(|queue| queue.mark())
            .collect()
    }

    /// Wakes threads that wait for room in a queue, so that they check again.
    pub(crate) fn look_again(&self) {
        self.default_queue.look_again();
        let queues: Vec<_> = self
            .streams
            .lock()
            .unpoisoned()
            .iter()
            .filter_map(|(_, queue)| queue.upgrade())
            .collect();
        for queue in queues {
            queue.look_again();
        }
    }

    pub(crate) fn new_queue(&self, blocking: bool) -> Arc<Queue> {
        let pending = if blocking { &self.blocking_pending } else { &self.other_pending };
        let queue = Queue::new(pending.clone(), self.failures.clone());
        let mut streams = self.streams.lock().unpoisoned();
        if streams.len() == streams.capacity() {
            // A weak reference to a dropped stream keeps the stream's memory allocated. Such references are
            // removed before the list grows; the list grows enough to keep the cost per stream constant.
            streams.retain(|(_, queue)| queue.strong_count() > 0);
            let live = streams.len();
            streams.reserve(live.max(16));
        }
        streams.push((blocking, Arc::downgrade(&queue)));
        queue
    }
}
