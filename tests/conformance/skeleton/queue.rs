//! The work of one stream: tasks that a thread runs in order.

use gpuarray::{Error, ErrorKind, Result, Status};
use hal::failures::{Cause, Failures};
use hal::interruption;
use hal::poison::Unpoisoned as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};

/// A piece of queued work.
pub(super) type Task = Box<dyn FnOnce() -> Result<()> + Send>;

/// The progress of a queue. The thread keeps it alive until all tasks have run.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of tasks that have been queued.
    queued: AtomicU64,
    /// The number of tasks that have run.
    done: Mutex<u64>,
    changed: Condvar,
    /// The failures of the tasks of all queues, and this queue's number among them.
    failures: Arc<Failures>,
    number: u64,
}

impl Progress {
    /// Returns the position after everything queued so far.
    pub(super) fn mark(self: &Arc<Self>) -> Mark {
        Mark { progress: self.clone(), position: self.queued.load(Ordering::SeqCst) }
    }
}

/// A position in the work of a queue.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    progress: Arc<Progress>,
    position: u64,
}

impl Mark {
    pub(super) fn is_reached(&self) -> bool {
        *self.progress.done.lock().unpoisoned() >= self.position
    }

    /// Waits for the mark; refused in a host function.
    pub(super) fn wait(&self) -> Result<()> {
        interruption::outside_functions("synchronize")?;
        self.wait_as_work();
        Ok(())
    }

    /// Reports the failure of a task before the mark, once.
    pub(super) fn take_failure(&self) -> Result<()> {
        self.progress.failures.take_up_to(self.progress.number, self.position)
    }

    /// Waits for the mark, as a task of another queue does.
    pub(super) fn wait_as_work(&self) {
        let done = self.progress.done.lock().unpoisoned();
        let changed = &self.progress.changed;
        drop(changed.wait_while(done, |done| *done < self.position).unpoisoned());
    }
}

/// A queue of tasks. Its thread ends when the queue is dropped and all tasks have run.
#[derive(Debug)]
pub(super) struct Queue {
    progress: Arc<Progress>,
    tasks: Mutex<mpsc::Sender<Task>>,
}

impl Queue {
    pub(super) fn new(failures: &Arc<Failures>) -> Result<Arc<Queue>> {
        let (sender, tasks) = mpsc::channel::<Task>();
        let (failures, number) = (failures.clone(), hal::stream::unique_id());
        let progress = Arc::new(Progress { failures, number, ..Progress::default() });
        let told = progress.clone();
        let work = move || {
            for task in tasks {
                let result = catch_unwind(AssertUnwindSafe(task)).unwrap_or_else(|_| {
                    let status = Status::host(Status::LAUNCH_FAILED);
                    Err(Error::new(ErrorKind::LaunchFailed, status, "stream", "a task panicked"))
                });
                let mut done = told.done.lock().unpoisoned();
                *done += 1;
                if let Err(error) = result {
                    told.failures.keep(told.number, *done, Cause::Stream, error);
                }
                told.changed.notify_all();
            }
        };
        std::thread::Builder::new()
            .spawn(work)
            .map_err(|error| Error::unavailable("create_stream", error.to_string()))?;
        Ok(Arc::new(Queue { progress, tasks: Mutex::new(sender) }))
    }

    /// Appends a task.
    pub(super) fn submit(&self, task: Task) {
        let tasks = self.tasks.lock().unpoisoned();
        self.progress.queued.fetch_add(1, Ordering::SeqCst);
        tasks.send(task).expect("the thread lives as long as the queue");
    }

    /// Returns the queue's progress, which may outlive the queue.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Returns the position after everything queued so far.
    pub(super) fn mark(&self) -> Mark {
        self.progress.mark()
    }

    /// Reports the failure of an earlier task, once.
    pub(super) fn take_failure(&self) -> Result<()> {
        self.progress.failures.take(self.progress.number)
    }
}
