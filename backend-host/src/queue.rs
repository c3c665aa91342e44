//! The work of one stream: tasks that a thread of the stream runs in order, and counters by
//! which others wait for a place in that order.

use hal::failures::{Cause, Failures};
use hal::poison::{Unpoisoned as _, caught};
use hal::{Error, ErrorKind, Result, Status, backlog, interruption, process};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A piece of queued work. It fails by returning an error, which is kept until a call about the stream
/// reports it.
pub(crate) type Task = Box<dyn FnOnce() -> Result<()> + Send>;

/// As many waiting tasks as a queue should have: who adds more waits for room.
pub(crate) const LIMIT: u64 = 1024;
/// As many are left when the wait ends: few enough less that long tasks are not waited for long,
/// and so many less that the threads need not take turns for each task.
const ROOM: u64 = LIMIT - 32;
/// The time between two looks whether a wait is to be ended.
const PERIOD: Duration = Duration::from_millis(20);

/// What is queued on a device that may wait for a thread of the program, and who waits for room.
///
/// A task of this backend waits for tasks that were queued before it, and for nothing else: it
/// runs whatever the program's threads do, and waiting for room ends. A function of the program
/// may wait for the very thread that waits for room, so while one is queued or runs, on any
/// stream, nobody waits and queues grow as they must.
#[derive(Debug, Default)]
pub(crate) struct Room {
    functions: AtomicUsize,
    waiting: AtomicUsize,
}

impl Room {
    /// Counts a function of the program, until it has run; true if somebody waits for room and
    /// has to look again ([`Queue::look_again`]).
    pub(crate) fn begin_function(&self) -> bool {
        self.functions.fetch_add(1, Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Takes the function away.
    pub(crate) fn end_function(&self) {
        self.functions.fetch_sub(1, Ordering::SeqCst);
    }

    /// True while a function of the program is queued or runs.
    pub(crate) fn has_functions(&self) -> bool {
        self.functions.load(Ordering::SeqCst) > 0
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

/// A function of the program that is queued or runs; whatever becomes of it, it is taken away.
pub(crate) struct Counted(Arc<Room>);

impl Counted {
    /// Stands for a function that [`Room::begin_function`] has counted.
    pub(crate) fn new(room: Arc<Room>) -> Counted {
        Counted(room)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.end_function();
    }
}

struct State {
    tasks: VecDeque<Task>,
    has_worker: bool,
}

/// Tasks in order, and how many of them have run.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Told when [`ROOM`] tasks are left.
    has_room: Condvar,
    submitted: AtomicU64,
    completed: AtomicU64,
    generation: u32,
    /// Counts the tasks of all queues of a kind that are still to run.
    pending: Arc<AtomicUsize>,
    /// What the queue's failures are kept under.
    number: u64,
    /// Those of the device, whose kernels run on all queues.
    failures: Arc<Failures>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({} of {} done)", self.completed(), self.submitted())
    }
}

impl Queue {
    pub(crate) fn new(pending: Arc<AtomicUsize>, failures: Arc<Failures>) -> Arc<Queue> {
        Arc::new(Queue {
            state: Mutex::new(State { tasks: VecDeque::new(), has_worker: false }),
            changed: Condvar::new(),
            has_room: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            generation: process::generation(),
            pending,
            number: hal::stream::unique_id(),
            failures,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    pub(crate) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// True if nothing is queued or running.
    pub(crate) fn is_idle(&self) -> bool {
        self.completed() == self.submitted()
    }

    /// The place behind everything queued so far.
    pub(crate) fn mark(self: &Arc<Self>) -> Mark {
        Mark { queue: self.clone(), position: self.submitted() }
    }

    /// In a forked child the threads of the parent are gone, and what they held is lost.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::handle(
            "stream",
            "the stream was made by the parent process; make a new one after a fork",
        ))
    }

    /// Reports the failure of an earlier task, once, or that of a kernel on another queue.
    pub(crate) fn take_failure(&self) -> Result<()> {
        self.failures.take(self.number)
    }

    /// Reports the failure of a kernel, once.
    pub(crate) fn take_kernel_failure(&self) -> Result<()> {
        self.failures.take_of_kernel(self.number)
    }

    /// Keeps the failure of a kernel among the tasks.
    pub(crate) fn keep_kernel_failure(&self, error: Error) {
        self.keep(Cause::Kernel, error);
    }

    /// Keeps the failure of the task that runs.
    fn keep(&self, cause: Cause, error: Error) {
        self.failures.keep(self.number, self.completed() + 1, cause, error);
    }

    /// Puts a task behind all others and makes sure that a thread runs it.
    pub(crate) fn submit(self: &Arc<Self>, task: Task) -> Result<()> {
        self.check_process()?;
        let mut state = self.lock();
        if !state.has_worker {
            let queue = self.clone();
            std::thread::Builder::new()
                .name("pygpu stream".into())
                .spawn(move || queue.work())
                .map_err(|error| {
                    Error::new(
                        ErrorKind::OutOfMemory,
                        Status::host(Status::OUT_OF_MEMORY),
                        "stream",
                        format!("no thread for the stream could be started: {error}"),
                    )
                })?;
            state.has_worker = true;
        }
        state.tasks.push_back(task);
        self.pending.fetch_add(1, Ordering::AcqRel);
        self.submitted.fetch_add(1, Ordering::AcqRel);
        if self.backlog() == LIMIT {
            backlog::begin();
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn backlog(&self) -> u64 {
        self.submitted().saturating_sub(self.completed())
    }

    /// Waits until there is room, while no function of the program is queued.
    pub(crate) fn wait_for_room(&self, room: &Room) {
        if self.backlog() < LIMIT || self.generation != process::generation() {
            return;
        }
        room.waiting.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        while self.backlog() > ROOM && !room.has_functions() {
            state = self.has_room.wait(state).unpoisoned();
        }
        drop(state);
        room.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets everybody in [`Queue::wait_for_room`] look again.
    pub(crate) fn look_again(&self) {
        // Under the lock, so that nobody looks, misses this, and then waits.
        let _state = self.lock();
        self.has_room.notify_all();
    }

    /// Runs tasks until there are none and nobody but this thread knows the queue.
    fn work(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                drop(state);
                let result = caught(task).unwrap_or_else(|| {
                    Err(Error::new(
                        ErrorKind::LaunchFailed,
                        Status::host(Status::LAUNCH_FAILED),
                        "stream",
                        "a queued function panicked",
                    ))
                });
                if let Err(error) = result {
                    self.keep(Cause::Stream, error);
                }
                state = self.lock();
                // Whoever sees the task completed finds it pending no longer.
                self.pending.fetch_sub(1, Ordering::AcqRel);
                let full = self.backlog() == LIMIT;
                self.completed.fetch_add(1, Ordering::AcqRel);
                if full {
                    backlog::end();
                }
                self.changed.notify_all();
                if self.backlog() == ROOM {
                    self.has_room.notify_all();
                }
                continue;
            }
            // The worker's own reference and those of marks keep the queue alive, but only a
            // stream submits: `retire` tells when it is gone.
            if !state.has_worker {
                return;
            }
            state = self.changed.wait(state).unpoisoned();
        }
    }

    /// Lets the worker end when it has run what is queued.
    pub(crate) fn retire(&self) {
        if self.generation != process::generation() {
            return;
        }
        self.lock().has_worker = false;
        self.changed.notify_all();
    }

    fn wait_until(&self, position: u64) -> Result<()> {
        if self.completed() >= position {
            return Ok(());
        }
        self.check_process()?;
        interruption::before_waiting("synchronize")?;
        let mut state = self.lock();
        while self.completed() < position {
            state = self.changed.wait(state).unpoisoned();
        }
        Ok(())
    }

    /// As [`Queue::wait_until`], until `check` fails, which is called under no lock of the queue.
    fn wait_checking(&self, position: u64, check: interruption::Check) -> Result<()> {
        while self.completed() < position {
            self.check_process()?;
            interruption::before_waiting("synchronize")?;
            check()?;
            let is_before = |_: &mut State| self.completed() < position;
            drop(self.changed.wait_timeout_while(self.lock(), PERIOD, is_before));
        }
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.failures.forget(self.number);
    }
}

/// A place in the work of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    queue: Arc<Queue>,
    position: u64,
}

impl Mark {
    /// True once everything before the place has run.
    pub(crate) fn is_reached(&self) -> bool {
        self.queue.completed() >= self.position
    }

    /// Reports the failure of a kernel of the device, once.
    pub(crate) fn take_kernel_failure(&self) -> Result<()> {
        self.queue.take_kernel_failure()
    }

    /// Reports the failure of a task before the place, once, or that of a kernel.
    pub(crate) fn take_failure(&self) -> Result<()> {
        self.queue.failures.take_up_to(self.queue.number, self.position)
    }

    /// Waits for that.
    pub(crate) fn wait(&self) -> Result<()> {
        self.queue.wait_until(self.position)
    }

    /// Waits for that in a call that may end before: where the thread's work is
    /// [interruptible](interruption).
    pub(crate) fn wait_interruptibly(&self) -> Result<()> {
        match interruption::check() {
            Some(check) => self.queue.wait_checking(self.position, check),
            None => self.wait(),
        }
    }
}

#[cfg(test)]
mod tests;
