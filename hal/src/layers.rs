//! Decorators: the same traits over an inner implementation, with an [`Interceptor`] that
//! sees every call first. One mechanism provides fault injection, tracing and checking for every
//! backend.

mod device;
mod fault;
mod layer;
mod objects;
mod stream;

pub use fault::{Fault, FaultInjector};
pub use layer::{Layered, StreamLayer};

use crate::backend::Backend;
use crate::enumeration::enumeration;
use crate::error::Result;
use crate::status::AtomicStatus;
use std::fmt::{self, Debug};
use std::sync::Arc;

enumeration! {
/// The calls that a decorator sees, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// Opening a device.
    OpenDevice,
    /// Reading how much memory there is.
    MemoryInfo,
    /// Making a stream.
    CreateStream,
    /// Making an event.
    CreateEvent,
    /// Allocating device memory, ordered with a stream or not.
    Allocate,
    /// Freeing device memory.
    Free,
    /// Allocating page-locked memory.
    AllocatePinned,
    /// Freeing page-locked memory.
    FreePinned,
    /// Page-locking memory of the program.
    RegisterHost,
    /// Ending that.
    UnregisterHost,
    /// Loading a module.
    LoadModule,
    /// Looking up a kernel or a global of a module.
    Lookup,
    /// Waiting for a device, a stream or an event.
    Synchronize,
    /// Asking whether work has run.
    Query,
    /// Recording an event.
    Record,
    /// Making a stream wait for an event.
    WaitEvent,
    /// Reading the time between events.
    ElapsedTime,
    /// SubmissionGuard a function of the host.
    HostFunction,
    /// SubmissionGuard a copy.
    Transfer,
    /// SubmissionGuard a fill.
    Fill,
    /// SubmissionGuard a builtin operation.
    Execute,
    /// Launching a kernel or a graph.
    Launch,
    /// Compiling or linking code.
    Compile,
    /// Beginning or ending a capture.
    Capture,
    /// Sharing memory or events with another process.
    Share,
    /// Changing a device's context: limits, peers, pool, reset.
    Configure,
}
}

impl Call {
    /// Returns true if the call frees or ends something: it is carried out even when it is made to
    /// fail, as a driver that reports an earlier failure does.
    pub const fn releases(self) -> bool {
        matches!(self, Call::Free | Call::FreePinned | Call::UnregisterHost)
    }
}

/// What a decorator does at each call.
pub trait Interceptor: Send + Sync + Debug {
    /// Is called before the inner call. An error is returned in place of that call's result. The caller may have
    /// locks of the memory that the call uses: what is called here uses no device.
    ///
    /// # Errors
    /// Whatever the decorated call is to fail with.
    fn before(&self, call: Call) -> Result<()>;
}

/// Returns the backend `inner` with an interceptor before every call of it and its objects.
pub fn decorate(inner: Arc<dyn Backend>, interceptor: Arc<dyn Interceptor>) -> Arc<dyn Backend> {
    Arc::new(Decorated { interceptor, inner, status: AtomicStatus::new() })
}

impl<T: ?Sized + Debug> Debug for Decorated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decorated({:?})", &self.inner)
    }
}

struct Decorated<T: ?Sized> {
    interceptor: Arc<dyn Interceptor>,
    inner: Arc<T>,
    /// Of the last call, whether it was made or made to fail.
    status: AtomicStatus,
}

impl<T: ?Sized> Decorated<T> {
    fn wrap<U: ?Sized>(&self, inner: Arc<U>) -> Decorated<U> {
        Decorated { interceptor: self.interceptor.clone(), inner, status: AtomicStatus::new() }
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
