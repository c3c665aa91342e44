//! Layers: wrappers that implement the same traits. [`intercept`] shows every call to an [`Interceptor`] first. Fault
//! injection, tracing and checking use this, for every backend.

mod device;
mod layer;
mod objects;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::poison::Unpoisoned as _;
use crate::status::{Api, AtomicStatus, Status};
pub use layer::{Call, Layered, StreamLayer};
use std::fmt;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// A function that runs before each intercepted call.
pub trait Interceptor: Send + Sync + Debug {
    /// Runs before the inner call. If it returns an error, that error is the call's result. The caller may hold
    /// locks of the memory that the call uses, so the implementation must not use a device.
    ///
    /// # Errors
    /// The error with which the intercepted call fails.
    fn before(&self, call: Call) -> Result<()>;
}

/// Returns `inner` wrapped so that `interceptor` sees every call of the backend and its objects first.
pub fn intercept(inner: Arc<dyn Backend>, interceptor: Arc<dyn Interceptor>) -> Arc<dyn Backend> {
    Arc::new(Intercepted { interceptor, inner, status: AtomicStatus::new() })
}

impl<T: ?Sized + Debug> Debug for Intercepted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intercepted({:?})", &self.inner)
    }
}

struct Intercepted<T: ?Sized> {
    interceptor: Arc<dyn Interceptor>,
    inner: Arc<T>,
    /// The status of the last call, real or injected.
    status: AtomicStatus,
}

impl<T: ?Sized> Intercepted<T> {
    fn wrap<U: ?Sized>(&self, inner: Arc<U>) -> Intercepted<U> {
        Intercepted { interceptor: self.interceptor.clone(), inner, status: AtomicStatus::new() }
    }

    fn call<R>(&self, call: Call, inner: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        self.status.during(|| {
            let verdict = self.interceptor.before(call);
            if verdict.is_err() && !call.releases() {
                return verdict.and_then(|()| inner(&self.inner));
            }
            let result = inner(&self.inner);
            verdict.and(result)
        })
    }
}

// Fault injection: the n-th call of a kind fails with a chosen error.

/// The call that fails, and its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// The number of calls of that kind that succeed first.
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
    /// Returns an injector that only counts calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the next fault, or none, and resets the counts.
    pub fn arm(&self, fault: Option<Fault>) {
        *self.lock() = State { fault, ..State::default() };
    }

    /// Returns the number of calls of a kind since [`FaultInjector::arm`].
    pub fn calls(&self, call: Call) -> usize {
        self.lock().calls[call as usize]
    }

    /// Returns the number of calls that were made to fail since [`FaultInjector::arm`]: 0 or 1.
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
