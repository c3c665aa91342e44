//! Runs one block at a time: the operating-system threads that run the blocks of a cooperative
//! launch take turns.

use std::sync::{Condvar, Mutex, PoisonError};

/// The right to run, granted in the order of requests.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    state: Mutex<Tickets>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Tickets {
    next: u64,
    serving: u64,
}

impl Turn {
    /// Waits for the turn.
    pub(crate) fn take(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = state.next;
        state.next += 1;
        while state.serving != own {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the turn.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.serving += 1;
        drop(state);
        self.changed.notify_all();
    }
}
