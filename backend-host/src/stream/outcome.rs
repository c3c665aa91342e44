//! What a queued launch fails with, for the thread that waits for it.

use hal::poison::Unpoisoned as _;
use hal::{Error, Result};
use std::mem;
use std::sync::Mutex;

/// Between a launch that its thread waits for and its task. While the thread waits, the failure is its alone: nobody
/// else who waits for the stream reports it.
#[derive(Debug, Default)]
pub(super) struct Outcome(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Waited,
    Failed(Error),
    /// The thread waits no longer, or has what it waited for.
    Left,
}

impl Outcome {
    /// Called by the task. Returns what is to be reported in the usual way.
    pub(super) fn drain(&self, result: Result<()>) -> Result<()> {
        let mut state = self.0.lock().unpoisoned();
        match (&*state, result) {
            (State::Waited, Err(error)) => {
                *state = State::Failed(error);
                Ok(())
            }
            (_, result) => result,
        }
    }

    /// Called by the thread when it waits no longer. Returns what the launch has failed with.
    pub(super) fn leave(&self) -> Option<Error> {
        match mem::replace(&mut *self.0.lock().unpoisoned(), State::Left) {
            State::Failed(error) => Some(error),
            State::Waited | State::Left => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Result<()> {
        Err(Error::invalid("test", "on purpose"))
    }

    #[test]
    fn a_failure_is_reported_once() {
        let waited = Outcome::default();
        assert!(waited.drain(failure()).is_ok());
        assert!(waited.leave().is_some() && waited.leave().is_none());
        let left = Outcome::default();
        assert!(left.leave().is_none());
        assert!(left.drain(failure()).is_err());
    }
}
