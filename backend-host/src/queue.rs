//! The work of one stream: tasks that a thread of the stream runs in order, and counters by which others wait
//! for a position in that order.

use hal::failures::{Cause, Failures};
use hal::poison::{Unpoisoned as _, caught};
use hal::{Error, ErrorKind, Result, Status, backlog, interruption, process};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A queued task. If it returns an error, the error is kept until a call about the stream reports it.
pub(crate) type Task = Box<dyn FnOnce() -> Result<()> + Send>;

/// The intended maximum number of pending tasks in a queue. A thread that adds more waits for room.
pub(crate) const LIMIT: u64 = 1024;
/// The number of pending tasks at which the wait ends. It is close enough to the limit that a thread does not
/// wait long for long tasks, and far enough from it that the threads need not switch for each task.
const ROOM: u64 = LIMIT - 32;
/// The interval at which a waiting thread checks if it should stop waiting.
const PERIOD: Duration = Duration::from_millis(20);

/// Tracks the functions of the program that are queued on a device, and the threads that wait for room.
///
/// A task of this backend waits only for tasks that were queued before it. It therefore makes progress
/// whatever the program's threads do, and waiting for room always ends. A function of the program may wait
/// for the very thread that waits for room. While such a function is queued or running on any stream, no
/// thread waits for room, and queues may grow beyond the limit.
#[derive(Debug, Default)]
pub(crate) struct Room {
    functions: AtomicUsize,
    waiting: AtomicUsize,
}

impl Room {
    /// Counts a function of the program until it has run. Returns true if a thread waits for room and has to
    /// check again ([`Queue::look_again`]).
    pub(crate) fn begin_function(&self) -> bool {
        self.functions.fetch_add(1, Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Removes the function from the count.
    pub(crate) fn end_function(&self) {
        self.functions.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns true while a function of the program is queued or running.
    pub(crate) fn has_functions(&self) -> bool {
        self.functions.load(Ordering::SeqCst) > 0
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

/// Counts a queued or running function of the program until it is dropped.
pub(crate) struct Counted(Arc<Room>);

impl Counted {
    /// Wraps a function that [`Room::begin_function`] has counted.
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

/// Tasks in order, and the number of them that have run.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Notified when [`ROOM`] tasks are left.
    has_room: Condvar,
    submitted: AtomicU64,
    completed: AtomicU64,
    generation: u32,
    /// The number of pending tasks in all queues of the same kind.
    pending: Arc<AtomicUsize>,
    /// The number under which the queue's failures are kept.
    number: u64,
    /// The failures of the device, because its kernels run on all queues.
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

    /// Returns true if nothing is queued or running.
    pub(crate) fn is_idle(&self) -> bool {
        self.completed() == self.submitted()
    }

    /// Returns the position after everything queued so far.
    pub(crate) fn mark(self: &Arc<Self>) -> Mark {
        Mark { queue: self.clone(), position: self.submitted() }
    }

    /// A forked child does not have its parent's threads; locks that those threads held stay locked.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::handle(
            "stream",
            "the stream was made by the parent process; make a new one after a fork",
        ))
    }

    /// Reports the failure of an earlier task, or of a kernel on another queue. Each failure is reported
    /// once.
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

    /// Keeps the failure of the running task.
    fn keep(&self, cause: Cause, error: Error) {
        self.failures.keep(self.number, self.completed() + 1, cause, error);
    }

    /// Appends a task and makes sure that a thread runs it.
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

    /// Waits until there is room, unless a function of the program is queued.
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

    /// Makes all threads in [`Queue::wait_for_room`] check again.
    pub(crate) fn look_again(&self) {
        // Notify under the lock. Otherwise a thread could check, miss the notification, and then wait.
        let _state = self.lock();
        self.has_room.notify_all();
    }

    /// Runs tasks until the queue is empty and the stream has been dropped.
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
                // A thread that sees the task as completed must not still see it as pending.
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
            // References of the worker and of marks keep the queue alive, but only a stream submits
            // tasks. `retire` is called when the stream is dropped.
            if !state.has_worker {
                return;
            }
            state = self.changed.wait(state).unpoisoned();
        }
    }

    /// Lets the worker end after it has run the queued tasks.
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

    /// Like [`Queue::wait_until`], but ends when `check` fails. `check` is called without holding a lock of
    /// the queue.
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

/// A position in the work of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    queue: Arc<Queue>,
    position: u64,
}

impl Mark {
    /// Returns true once everything before the position has run.
    pub(crate) fn is_reached(&self) -> bool {
        self.queue.completed() >= self.position
    }

    /// Reports the failure of a kernel of the device, once.
    pub(crate) fn take_kernel_failure(&self) -> Result<()> {
        self.queue.take_kernel_failure()
    }

    /// Reports the failure of a task before the position, or of a kernel. Each failure is reported once.
    pub(crate) fn take_failure(&self) -> Result<()> {
        self.queue.failures.take_up_to(self.queue.number, self.position)
    }

    /// Waits until the position is reached.
    pub(crate) fn wait(&self) -> Result<()> {
        self.queue.wait_until(self.position)
    }

    /// Waits until the position is reached. The wait may end earlier if the thread's work is
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
