//! Delivers the failure of a queued launch to the thread that waits for it.

use hal::poison::Unpoisoned as _;
use hal::{Error, Result};
use std::mem;
use std::sync::Mutex;

/// Connects a launch with its task, while a thread waits for the launch. While the thread waits, only
/// that thread reports the failure, and no other thread that waits for the stream.
#[derive(Debug, Default)]
pub(super) struct Outcome(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Waited,
    Failed(Error),
    /// The thread no longer waits, or has the result.
    Left,
}

impl Outcome {
    /// Called by the task. Returns the result to be reported in the usual way.
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

    /// Called by the thread when it stops waiting. Returns the failure of the launch.
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
