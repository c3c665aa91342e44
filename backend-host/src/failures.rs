//! What queued work has failed with, until a call of the program reports it.

use hal::process::ProcessMutex;
use hal::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// As many failures of queues that are gone are kept at most. A program that never waits hears of no more.
const MOST_OF_GONE: usize = 64;

/// What made a task fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A kernel. Its failure is the device's, as on a GPU.
    Kernel,
    /// A function of the program, or the stream itself.
    Stream,
}

#[derive(Debug)]
struct Failure {
    queue: u64,
    cause: Cause,
    error: Error,
    /// The queue is gone, so a call about another one reports it.
    is_gone: bool,
}

/// The failures of a device's queued work, of each queue the first. Each is reported once, by the first
/// call that waits for work or asks whether it has run: that of a kernel by such a call about any
/// stream or event, so that no program reads what the kernel left half done and takes it for a result;
/// any other by a call that waits for its stream.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    exist: AtomicBool,
    kept: ProcessMutex<Vec<Failure>>,
}

impl Failures {
    /// Keeps the failure of a task of the queue of this number.
    pub(crate) fn keep(&self, queue: u64, cause: Cause, error: Error) {
        log::warn!("work on a stream failed: {error}");
        let mut kept = self.kept.lock();
        if kept.iter().all(|it| (it.queue, it.cause) != (queue, cause)) {
            kept.push(Failure { queue, cause, error, is_gone: false });
        }
        self.exist.store(!kept.is_empty(), Ordering::Release);
    }

    /// Reports a failure of this queue, else that of a kernel on another one.
    pub(crate) fn take(&self, queue: u64) -> Result<()> {
        self.take_of(queue, &[Cause::Kernel, Cause::Stream])
    }

    /// Reports the failure of a kernel, one on this queue before those of others.
    pub(crate) fn take_of_kernel(&self, queue: u64) -> Result<()> {
        self.take_of(queue, &[Cause::Kernel])
    }

    fn take_of(&self, queue: u64, causes: &[Cause]) -> Result<()> {
        if !self.exist.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut kept = self.kept.lock();
        let own = kept.iter().position(|it| it.queue == queue && causes.contains(&it.cause));
        let found = own.or_else(|| kept.iter().position(|it| it.cause == Cause::Kernel));
        let taken = found.map(|position| kept.remove(position));
        self.exist.store(!kept.is_empty(), Ordering::Release);
        taken.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// Forgets what only a call about this queue, which is gone, would report.
    pub(crate) fn forget(&self, queue: u64) {
        if !self.exist.load(Ordering::Acquire) {
            return;
        }
        let mut kept = self.kept.lock();
        let is_full = kept.iter().filter(|it| it.is_gone).count() >= MOST_OF_GONE;
        kept.retain(|it| it.queue != queue || (it.cause == Cause::Kernel && !is_full));
        kept.iter_mut().filter(|it| it.queue == queue).for_each(|it| it.is_gone = true);
        self.exist.store(!kept.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::{ErrorKind, Status};
    use proptest::prelude::*;

    fn error(number: usize) -> Error {
        let status = Status::host(Status::LAUNCH_FAILED);
        Error::new(ErrorKind::LaunchFailed, status, "test", number.to_string())
    }

    /// What a call reports, without a list of failures in common.
    #[derive(Clone, Default)]
    struct Model {
        kernels: Vec<(u64, String)>,
        functions: [Option<String>; 3],
    }

    impl Model {
        fn keep(&mut self, queue: u64, cause: Cause, what: String) {
            match cause {
                Cause::Kernel if self.kernels.iter().any(|it| it.0 == queue) => {}
                Cause::Kernel => self.kernels.push((queue, what)),
                Cause::Stream => drop(self.functions[queue as usize].get_or_insert(what)),
            }
        }

        /// All that the call may report: which of a stream's own two is open.
        fn may_take(&self, queue: u64, of_kernel: bool) -> Vec<Option<String>> {
            let own = self.kernels.iter().find(|it| it.0 == queue).map(|it| it.1.clone());
            let function = self.functions[queue as usize].clone().filter(|_| !of_kernel);
            let first = self.kernels.first().map(|it| it.1.clone());
            match (own, function) {
                (None, None) => vec![first],
                (own, function) => [own, function].into_iter().filter(Option::is_some).collect(),
            }
        }

        fn took(&mut self, what: &str) {
            self.kernels.retain(|it| it.1 != what);
            for function in &mut self.functions {
                *function = function.take().filter(|it| it != what);
            }
        }
    }

    #[test]
    fn every_queue_reports_its_own_and_those_that_are_gone_fill_no_memory() {
        const MANY: u64 = 3 * MOST_OF_GONE as u64;
        let failures = Failures::default();
        let keep = |queue| failures.keep(queue, Cause::Kernel, error(queue as usize));
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
        let reported = (0..MANY).filter(|_| failures.take(MANY).is_err()).count();
        assert_eq!(reported, MOST_OF_GONE);
    }

    proptest! {
        #[test]
        fn each_failure_is_reported_once(steps in prop::collection::vec((0..3u64, 0..5u8), 0..60)) {
            let (failures, mut model) = (Failures::default(), Model::default());
            for (number, (queue, step)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        let cause = if step == 0 { Cause::Kernel } else { Cause::Stream };
                        failures.keep(queue, cause, error(number));
                        model.keep(queue, cause, number.to_string());
                    }
                    2 => {
                        failures.forget(queue);
                        model.functions[queue as usize] = None;
                    }
                    _ => {
                        let of_kernel = step == 3;
                        let taken = if of_kernel { failures.take_of_kernel(queue) } else { failures.take(queue) };
                        let taken = taken.err().map(|error| error.detail().to_owned());
                        let may = model.may_take(queue, of_kernel);
                        prop_assert!(may.contains(&taken), "{taken:?} and not one of {may:?}");
                        taken.iter().for_each(|it| model.took(it));
                    }
                }
            }
        }
    }
}
