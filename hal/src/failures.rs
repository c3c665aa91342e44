//! The failures of queued work, kept for backends until a call of the program reports them.

use crate::error::{Error, Result};
use crate::process::ProcessMutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of failures kept of destroyed queues. If a program never waits, later ones are dropped.
const MOST_OF_GONE: usize = 64;

/// The cause of a task's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A kernel. As on a GPU, its failure affects the whole device.
    Kernel,
    /// A host function, or the stream itself.
    Stream,
}

#[derive(Debug)]
struct Failure {
    queue: u64,
    position: u64,
    cause: Cause,
    error: Error,
    is_gone: bool,
}

/// The first failure of each queue of a device. Each is reported once.
///
/// A kernel's failure is reported by the first call that waits for any stream or event or queries it, so that no
/// program takes a partial result for a complete one. Any other failure is reported by the first call that waits
/// for its stream, for a later event, or for the device.
#[derive(Debug, Default)]
pub struct Failures {
    exist: AtomicBool,
    kept: ProcessMutex<Vec<Failure>>,
}

impl Failures {
    /// Stores the failure of the task at `position` of the queue with the number `queue`.
    pub fn keep(&self, queue: u64, position: u64, cause: Cause, error: Error) {
        log::warn!("work on a stream failed: {error}");
        let mut kept = self.kept.lock();
        if kept.iter().all(|it| (it.queue, it.cause) != (queue, cause)) {
            kept.push(Failure { queue, position, cause, error, is_gone: false });
        }
        self.exist.store(!kept.is_empty(), Ordering::Release);
    }

    /// Reports a failure of this queue.
    ///
    /// # Errors
    /// The failure of a task of this queue, else a kernel's failure on another queue.
    pub fn take(&self, queue: u64) -> Result<()> {
        self.take_up_to(queue, u64::MAX)
    }

    /// Reports a failure of this queue's tasks up to a position.
    ///
    /// # Errors
    /// The failure of one of these tasks, else any kernel's failure.
    pub fn take_up_to(&self, queue: u64, position: u64) -> Result<()> {
        self.take_of(|it| it.queue == queue && it.position <= position)
    }

    /// Reports the failure of a kernel.
    ///
    /// # Errors
    /// A kernel's failure, on this queue if there is one, else on another.
    pub fn take_of_kernel(&self, queue: u64) -> Result<()> {
        self.take_of(|it| it.queue == queue && it.cause == Cause::Kernel)
    }

    /// Reports a failure of any queue.
    ///
    /// # Errors
    /// The oldest failure.
    pub fn take_any(&self) -> Result<()> {
        self.take_of(|_| true)
    }

    fn take_of(&self, is_own: impl Fn(&Failure) -> bool) -> Result<()> {
        if !self.exist.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut kept = self.kept.lock();
        let own = kept.iter().position(is_own);
        let found = own.or_else(|| kept.iter().position(|it| it.cause == Cause::Kernel));
        let taken = found.map(|position| kept.remove(position));
        self.exist.store(!kept.is_empty(), Ordering::Release);
        taken.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Called when a queue is destroyed. Its failures stay, because later events and the device may still be
    /// waited for.
    pub fn forget(&self, queue: u64) {
        if !self.exist.load(Ordering::Acquire) {
            return;
        }
        let mut kept = self.kept.lock();
        let is_full = kept.iter().filter(|it| it.is_gone).count() >= MOST_OF_GONE;
        kept.retain(|it| it.queue != queue || !is_full);
        kept.iter_mut().filter(|it| it.queue == queue).for_each(|it| it.is_gone = true);
        self.exist.store(!kept.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::status::Status;
    use proptest::prelude::*;

    fn error(number: usize) -> Error {
        let status = Status::host(Status::LAUNCH_FAILED);
        Error::new(ErrorKind::LaunchFailed, status, "test", number.to_string())
    }

    /// A model of the reports: a plain list of failures.
    #[derive(Clone, Default)]
    struct Model(Vec<(u64, u64, Cause)>);

    impl Model {
        fn keep(&mut self, queue: u64, position: u64, cause: Cause) {
            if !self.0.iter().any(|it| (it.0, it.2) == (queue, cause)) {
                self.0.push((queue, position, cause));
            }
        }

        /// Takes the failure that a call reports: the first of its own, else the first of a kernel.
        fn take(&mut self, is_own: impl Fn(u64, u64, Cause) -> bool) -> Option<String> {
            let own = self.0.iter().position(|&(queue, at, cause)| is_own(queue, at, cause));
            let found = own.or(self.0.iter().position(|it| it.2 == Cause::Kernel))?;
            Some(self.0.remove(found).1.to_string())
        }
    }

    #[test]
    fn every_queue_reports_its_own_and_those_that_are_gone_fill_no_memory() {
        const MANY: u64 = 3 * MOST_OF_GONE as u64;
        for cause in [Cause::Kernel, Cause::Stream] {
            let failures = Failures::default();
            let keep = |queue| failures.keep(queue, 1, cause, error(queue as usize));
            (0..MANY).for_each(keep);
            for queue in (0..MANY).rev() {
                let failure = failures.take(queue).expect_err("one of its own");
                assert_eq!(failure.detail(), queue.to_string());
            }
            assert!(failures.take(0).is_ok());
            for queue in 0..MANY {
                keep(queue);
                failures.forget(queue);
            }
            let reported = (0..MANY).filter(|_| failures.take_any().is_err()).count();
            assert_eq!(reported, MOST_OF_GONE);
        }
    }

    proptest! {
        #[test]
        fn each_failure_is_reported_once(steps in prop::collection::vec((0..3u64, 0..7u8, 0..60u64), 0..60)) {
            let (failures, mut model) = (Failures::default(), Model::default());
            for (number, (queue, step, limit)) in steps.into_iter().enumerate() {
                let position = number as u64;
                let (taken, expected) = match step {
                    0 | 1 => {
                        let cause = if step == 0 { Cause::Kernel } else { Cause::Stream };
                        failures.keep(queue, position, cause, error(number));
                        model.keep(queue, position, cause);
                        continue;
                    }
                    2 => {
                        failures.forget(queue);
                        continue;
                    }
                    3 => (failures.take_of_kernel(queue), model.take(|it, _, cause| it == queue && cause == Cause::Kernel)),
                    4 => (failures.take(queue), model.take(|it, _, _| it == queue)),
                    5 => (failures.take_up_to(queue, limit), model.take(|it, at, _| it == queue && at <= limit)),
                    _ => (failures.take_any(), model.take(|_, _, _| true)),
                };
                prop_assert_eq!(taken.err().map(|error| error.detail().to_owned()), expected);
            }
        }
    }
}
