//! Fault injection: the n-th call of a kind fails with a chosen error.

use super::{Call, Interceptor};
use crate::error::{Error, ErrorKind, Result};
use crate::poison::Unpoisoned as _;
use crate::status::{Api, Status};
use std::sync::Mutex;

/// Which call is to fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// How many calls of that kind succeed first.
    pub after: usize,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// Its status code.
    pub code: i32,
}

#[derive(Debug, Default)]
struct State {
    calls: [usize; Call::ALL.len()],
    fault: Option<Fault>,
    injected: usize,
}

/// Counts calls by kind, and makes one of them fail.
#[derive(Debug, Default)]
pub struct FaultInjector {
    state: Mutex<State>,
}

impl FaultInjector {
    /// Returns an injector that only counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the fault to come, or none, and starts to count from zero.
    pub fn arm(&self, fault: Option<Fault>) {
        *self.lock() = State { fault, ..State::default() };
    }

    /// Returns the number of calls of a kind since [`FaultInjector::arm`].
    pub fn calls(&self, call: Call) -> usize {
        self.lock().calls[call as usize]
    }

    /// Returns how many calls were made to fail since [`FaultInjector::arm`]: one or none.
    pub fn injected(&self) -> usize {
        self.lock().injected
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl Interceptor for FaultInjector {
    fn before(&self, call: Call) -> Result<()> {
        let mut state = self.lock();
        let seen = state.calls[call as usize];
        state.calls[call as usize] += 1;
        match state.fault {
            Some(fault) if fault.call == call && fault.after == seen => {
                state.injected += 1;
                Err(Error::new(
                    fault.kind,
                    Status::new(Api::Host, fault.code),
                    format!("{call:?}"),
                    format!("injected failure of {call:?}, call {} of this kind", seen + 1),
                ))
            }
            _ => Ok(()),
        }
    }
}
