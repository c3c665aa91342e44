//! The threads that perform the copies of all callers.
//!
//! A copy is divided into parts of at most a chunk. A free thread takes the next part of the copy
//! whose turn it is. A thread holds a chunk only while the device copies to or from it, so copies
//! cannot block each other.

use super::buffers::{Failure, Part, SLOTS, Sizes, StagingBuffers};
use crate::calls::Handle;
use crate::vendor::Driver;
use hal::poison::{Unpoisoned as _, caught};
use hal::status::Status;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

/// A caller's copy.
#[derive(Debug)]
struct Job {
    /// The part that no thread has taken yet.
    rest: Part,
    /// The maximum number of bytes of a part.
    part: usize,
    /// The bytes that threads have taken and not finished.
    busy: usize,
    failure: Option<Failure>,
}

impl Job {
    fn is_done(&self) -> bool {
        self.busy == 0 && self.rest.bytes == 0
    }
}

#[derive(Debug, Default)]
struct State {
    /// The copies in the order of their turns.
    jobs: VecDeque<Job>,
    last_number: u64,
    /// The number of threads that have not ended.
    threads: usize,
    /// Set when the threads must end: true if they free their objects.
    closing: Option<bool>,
}

impl State {
    fn take_part(&mut self) -> Option<Part> {
        let index = self.jobs.iter().position(|job| job.rest.bytes > 0)?;
        let mut job = self.jobs.remove(index)?;
        let part = job.rest.split(job.part);
        job.busy += part.bytes;
        self.jobs.push_back(job);
        Some(part)
    }
}

/// The next action of a thread that asks for a part.
enum Next {
    Part(Part),
    Nothing,
    Close,
}

/// The copying threads of a device, for as long as its context lives.
#[derive(Debug)]
pub(super) struct Workers {
    driver: Arc<Driver>,
    context: Handle,
    pub(super) epoch: u64,
    sizes: Sizes,
    state: Mutex<State>,
    /// Signalled when a part is available, or when the threads must end.
    work: Condvar,
    /// Signalled when a copy is done, or when a thread has ended.
    done: Condvar,
}

impl Workers {
    /// Starts the threads, which create their own objects.
    pub(super) fn start(
        driver: &Arc<Driver>,
        context: Handle,
        epoch: u64,
        sizes: Sizes,
    ) -> Arc<Workers> {
        let workers = Arc::new(Workers {
            driver: driver.clone(),
            context,
            epoch,
            sizes,
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        for _ in 0..sizes.threads {
            let own = workers.clone();
            workers.state.lock().unpoisoned().threads += 1;
            let thread = thread::Builder::new().name("pygpu-staging".to_owned());
            // The thread's handle is not kept: a forked child must not use it, and `close` counts
            // the threads instead.
            if let Err(error) = thread.spawn(move || own.serve()) {
                log::debug!("a staging thread could not be started: {error}");
                workers.state.lock().unpoisoned().threads -= 1;
            }
        }
        workers
    }

    /// Performs a copy and waits for it. The number in `copy` is ignored.
    ///
    /// # Safety
    /// The bytes are allocated on both sides, work that uses them has finished, and nothing else
    /// accesses them until the call returns.
    pub(super) unsafe fn run(&self, copy: Part) -> Result<(), Failure> {
        let mut state = self.state.lock().unpoisoned();
        if state.threads == 0 || state.closing.is_some() {
            return Err(Failure::NoThreads);
        }
        state.last_number += 1;
        let number = state.last_number;
        let rest = Part { job: number, ..copy };
        let part = self.sizes.part(copy.bytes);
        state.jobs.push_back(Job { rest, part, busy: 0, failure: None });
        for _ in 0..state.threads.min(copy.bytes / part + 1) {
            self.work.notify_one();
        }
        loop {
            let own = state.jobs.iter().position(|job| job.rest.job == number && job.is_done());
            if let Some(job) = own.and_then(|index| state.jobs.remove(index)) {
                return job.failure.map_or(Ok(()), Err);
            }
            state = wait(&self.done, state);
        }
    }

    /// Ends the threads after the copies in progress, and waits for that. They free their objects
    /// if `free` is true.
    pub(super) fn close(&self, free: bool) {
        let mut state = self.state.lock().unpoisoned();
        state.closing = Some(free);
        self.work.notify_all();
        while state.threads > 0 {
            state = wait(&self.done, state);
        }
    }

    /// The main function of a thread.
    fn serve(&self) {
        if let Some(exchange) = self.driver.calls.capture_exchange_mode {
            // Captures elsewhere do not concern this thread: 2 is the relaxed mode.
            let mut mode = 2;
            // SAFETY: the previous mode is written to the same place.
            unsafe { exchange(&mut mode) };
        }
        let made = guarded(|| {
            self.enter()?;
            StagingBuffers::new(&self.driver, self.sizes.chunk)
        });
        match made {
            Ok(mut buffers) => {
                let free = self.copy_parts(&mut buffers);
                if free && guarded(|| self.enter()).is_ok() {
                    buffers.free(&self.driver);
                }
            }
            Err(failure) => log::debug!("a staging thread has no memory or stream: {failure:?}"),
        }
        self.leave();
    }

    /// Copies until the workers are closed; returns true if the buffers are to be freed.
    fn copy_parts(&self, buffers: &mut StagingBuffers) -> bool {
        for slot in (0..SLOTS).cycle() {
            if let Some(part) = buffers.take(slot) {
                let finished = guarded(|| {
                    self.enter()?;
                    // SAFETY: the caller waits until this part is reported.
                    unsafe { buffers.finish(&self.driver, slot, part) }
                });
                if finished.is_err() {
                    buffers.wait(&self.driver);
                }
                self.report(part, finished);
            }
            let part = match self.next(buffers.is_idle()) {
                Next::Part(part) => part,
                Next::Nothing => continue,
                Next::Close => break,
            };
            let started = guarded(|| {
                self.enter()?;
                // SAFETY: the caller waits until this part is reported; it is at most a chunk.
                unsafe { buffers.start(&self.driver, slot, part) }
            });
            if started.is_err() {
                buffers.wait(&self.driver);
                self.report(part, started);
            }
        }
        self.state.lock().unpoisoned().closing != Some(false)
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<(), Failure> {
        let vendor = &self.driver.vendor;
        if vendor.current() == (Status::SUCCESS, self.context) {
            return Ok(());
        }
        match vendor.set_current(self.context) {
            Status::SUCCESS => Ok(()),
            code => Err(Failure::Code(code)),
        }
    }

    /// Returns the next part; waits for one if `may_wait`.
    fn next(&self, may_wait: bool) -> Next {
        let mut state = self.state.lock().unpoisoned();
        loop {
            if let Some(part) = state.take_part() {
                return Next::Part(part);
            }
            if !may_wait {
                return Next::Nothing;
            }
            if state.closing.is_some() {
                return Next::Close;
            }
            state = wait(&self.work, state);
        }
    }

    /// Counts a part as finished. A failure ends its copy on every thread.
    fn report(&self, part: Part, result: Result<(), Failure>) {
        let mut state = self.state.lock().unpoisoned();
        if let Some(job) = state.jobs.iter_mut().find(|job| job.rest.job == part.job) {
            job.busy -= part.bytes;
            if let Err(failure) = result {
                job.failure.get_or_insert(failure);
                job.rest.bytes = 0;
            }
            if job.is_done() {
                self.done.notify_all();
            }
        }
    }

    /// Counts the thread as ended. After the last one, copies that have not begun fail.
    fn leave(&self) {
        let mut state = self.state.lock().unpoisoned();
        state.threads -= 1;
        if state.threads == 0 {
            for job in state.jobs.iter_mut().filter(|job| job.rest.bytes > 0) {
                job.failure.get_or_insert(Failure::NoThreads);
                job.rest.bytes = 0;
            }
        }
        self.done.notify_all();
    }
}

/// Runs a call, and converts a panic to a failure.
fn guarded<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    caught(call).unwrap_or(Err(Failure::Panicked))
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition.wait(state).unpoisoned()
}

#[cfg(test)]
mod tests {
    use super::super::buffers::HostSide;
    use super::*;
    use hal::stream::Direction;

    #[test]
    fn copies_take_turns() {
        let mut state = State::default();
        for job in [1, 2] {
            let rest = Part {
                direction: Direction::HostToDevice,
                device: 0,
                host: HostSide::Row(0),
                bytes: 192,
                job,
            };
            state.jobs.push_back(Job { rest, part: 64, busy: 0, failure: None });
        }
        let turns: Vec<_> = std::iter::from_fn(|| state.take_part()).map(|it| it.job).collect();
        assert_eq!(turns, [1, 2, 1, 2, 1, 2]);
    }
}
