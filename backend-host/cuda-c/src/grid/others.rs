//! The threads that run blocks besides the one that launches, which waits for them.

use super::Grid;
use crate::error::{Error, Failure, FailureKind};
use crate::interruption::{self, PERIOD, this_thread};
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

/// The threads besides the one that launches.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// How many have been started and not ended.
    pub(super) count: usize,
    /// Those that run blocks.
    running: Vec<libc::pthread_t>,
}

impl Grid<'_> {
    pub(super) fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What another thread than the one that launches does, which has been counted.
    pub(super) fn work_beside(&self, blocks: Range<u64>) {
        self.others().running.push(this_thread());
        self.work(blocks);
        self.others().running.retain(|it| *it != this_thread());
        self.leave();
    }

    pub(super) fn leave(&self) {
        self.others().count -= 1;
        self.left.notify_all();
    }

    /// Waits until the other threads have ended. The program may end the launch meanwhile.
    pub(super) fn wait_for_others(&self) {
        if self.is_interrupted.is_none() {
            return;
        }
        let mut others = self.others();
        while others.count > 0 {
            let waited = self.left.wait_timeout(others, PERIOD);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            others = guard;
            if !waited.timed_out() {
                continue;
            }
            drop(others);
            if self.is_to_end() {
                self.stop(Error::Kernel(Failure {
                    kind: FailureKind::Interrupted,
                    message: format!("{} was interrupted", self.what()),
                }));
            }
            others = self.others();
            if self.is_stopped() {
                // They are in the list, and so have not ended.
                others.running.iter().for_each(|&it| interruption::signal(it));
            }
        }
    }
}
