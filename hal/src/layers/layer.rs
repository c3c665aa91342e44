//! The calls that layers see, and a stream that wraps another: all forwarding of stream calls is in this file.

use crate::enumeration::enumeration;
use crate::error::Result;
use crate::event::{Event, EventOptions};
use crate::memory::{Access, DeviceMemory, GraphObject, Use};
use crate::operation::Operation;
use crate::properties::DeviceId;
use crate::status::Status;
use crate::stream::{
    CaptureMode, Graph, HostRange, PrefetchTarget, Stream, StreamCapture, StreamCore, StreamMemory,
    StreamOptions, StreamState, Transfer,
};
use crate::texture::ArrayCopy;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

enumeration! {
/// The calls that an interceptor sees, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// Opening a device.
    OpenDevice,
    /// Reading the free and total memory.
    MemoryInfo,
    /// Creating a stream.
    CreateStream,
    /// Creating an event.
    CreateEvent,
    /// Allocating device memory, stream-ordered or not.
    Allocate,
    /// Freeing device memory.
    Free,
    /// Allocating page-locked memory.
    AllocatePinned,
    /// Freeing page-locked memory.
    FreePinned,
    /// Page-locking memory of the program.
    RegisterHost,
    /// Unregistering memory of the program.
    UnregisterHost,
    /// Loading a module.
    LoadModule,
    /// Looking up a kernel or a global of a module.
    Lookup,
    /// Waiting for a device, a stream or an event.
    Synchronize,
    /// Querying whether work has finished.
    Query,
    /// Recording an event.
    Record,
    /// Making a stream wait for an event.
    WaitEvent,
    /// Reading the time between events.
    ElapsedTime,
    /// Queueing a host function.
    HostFunction,
    /// Queueing a copy.
    Transfer,
    /// Queueing a fill.
    Fill,
    /// Queueing a builtin operation.
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
    /// Returns true if the call frees or ends something. Such a call is carried out even if it is made to fail,
    /// like a driver's call that reports an earlier failure.
    pub const fn releases(self) -> bool {
        matches!(self, Call::Free | Call::FreePinned | Call::UnregisterHost)
    }
}

/// Implements methods of a trait by the same methods of the inner object. A row `= Kind` makes the call visible as
/// `Call::Kind`. `inner` stands for an `Intercepted` object, `layer` for a `Layered` stream.
macro_rules! forward {
    ($of:ident;) => {};
    ($of:ident; fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?; $($rest:tt)*) => {
        fn $name(&self $(, $arg: $type)*) $(-> $result)? {
            forward!(@$of self, $name($($arg),*))
        }
        forward! { $of; $($rest)* }
    };
    ($of:ident; fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $call:ident; $($rest:tt)*) => {
        fn $name(&self $(, $arg: $type)*) -> $result {
            forward!(@$of self, Call::$call, |it| it.$name($($arg),*))
        }
        forward! { $of; $($rest)* }
    };
    ($of:ident; unsafe fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty = $call:ident; $($rest:tt)*) => {
        unsafe fn $name(&self $(, $arg: $type)*) -> $result {
            // SAFETY: the caller's promise is passed on.
            forward!(@$of self, Call::$call, |it| unsafe { it.$name($($arg),*) })
        }
        forward! { $of; $($rest)* }
    };
    (@inner $self:ident, $name:ident($($arg:ident),*)) => { $self.inner.$name($($arg),*) };
    (@inner $self:ident, $call:expr, $inner:expr) => { $self.call($call, $inner) };
    (@layer $self:ident, $name:ident($($arg:ident),*)) => { $self.0.with(|it| it.$name($($arg),*)) };
    (@layer $self:ident, $call:expr, $inner:expr) => { $self.0.call($call, $inner) };
}
pub(super) use forward;

/// The behaviour of a stream that wraps another one. [`Layered`] makes a [`Stream`] of it.
///
/// # Safety
/// Every call of [`StreamLayer::with`] and [`StreamLayer::call`] goes to the same stream, or to one
/// that waits for all earlier work of the previous ones. No other stream with its own work has the
/// same [`StreamLayer::id`].
pub unsafe trait StreamLayer: Send + Sync + Debug {
    /// Runs a call on the inner stream.
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R;

    /// Runs a fallible call on the inner stream, or returns an error instead.
    ///
    /// # Errors
    /// The call's own, or the layer's.
    fn call<R>(
        &self,
        call: Call,
        inner: impl FnOnce(&(dyn Stream + 'static)) -> Result<R>,
    ) -> Result<R> {
        let _ = call;
        self.with(inner)
    }

    /// As [`Stream::id`](crate::stream::StreamCore::id).
    fn id(&self) -> u64 {
        self.with(|s| s.id())
    }

    /// As [`Stream::device_id`](crate::stream::StreamCore::device_id).
    fn device_id(&self) -> DeviceId {
        self.with(|s| s.device_id())
    }

    /// Returns the graph to pass to the program for a graph that the inner stream captured.
    fn layer_graph(&self, graph: Arc<dyn Graph>) -> Arc<dyn Graph> {
        graph
    }

    /// Returns the event to pass to the program for an event that the inner stream created.
    fn layer_event(&self, event: Arc<dyn Event>) -> Arc<dyn Event> {
        event
    }

    /// As [`Stream::last_status`](crate::stream::StreamCore::last_status).
    fn last_status(&self) -> Status {
        self.with(|s| s.last_status())
    }

    /// As [`Stream::as_any`](crate::stream::StreamCore::as_any).
    fn as_any(&self) -> &dyn Any;

    /// As [`Stream::for_memory`](crate::stream::StreamState::for_memory).
    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        None
    }

    /// As [`Stream::external_owner`](crate::stream::StreamState::external_owner).
    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// A stream made of a [`StreamLayer`].
#[derive(Debug)]
pub struct Layered<L>(pub L);

impl<L: StreamLayer> StreamCore for Layered<L> {
    forward! {
        layer;
        fn handle() -> u64;
        fn query() -> Result<bool> = Query;
        fn synchronize() -> Result<()> = Synchronize;
        fn record(event: &dyn Event) -> Result<()> = Record;
        fn wait_event(event: &dyn Event) -> Result<()> = WaitEvent;
        fn queue_function(
            function: Box<dyn FnOnce() -> Result<()> + Send>
        ) -> Result<()> = HostFunction;
        fn allocate(bytes: usize) -> Result<u64> = Allocate;
        unsafe fn free(address: u64, bytes: usize) -> Result<()> = Free;
        unsafe fn transfer(transfer: &Transfer) -> Result<()> = Transfer;
        unsafe fn fill(address: u64, value: u32, width: usize, count: usize) -> Result<()> = Fill;
        unsafe fn execute(operation: &Operation) -> Result<()> = Execute;
    }

    fn id(&self) -> u64 {
        self.0.id()
    }

    fn device_id(&self) -> DeviceId {
        self.0.device_id()
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        let event = self.0.call(Call::CreateEvent, |s| s.create_event(options))?;
        Ok(self.0.layer_event(event))
    }

    fn last_status(&self) -> Status {
        self.0.last_status()
    }

    fn as_any(&self) -> &dyn Any {
        self.0.as_any()
    }
}

impl<L: StreamLayer> StreamMemory for Layered<L> {
    forward! {
        layer;
        fn allocate_zeroed(bytes: usize) -> Result<Option<u64>> = Allocate;
        unsafe fn gather(destination: u64, ranges: &[HostRange]) -> Result<()> = Transfer;
        unsafe fn copy_array(copy: &ArrayCopy) -> Result<()> = Transfer;
        unsafe fn prefetch(address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> = Transfer;
    }
}

impl<L: StreamLayer> StreamCapture for Layered<L> {
    forward! {
        layer;
        fn begin_capture(mode: CaptureMode) -> Result<()> = Capture;
        fn abandon_capture() -> Result<()> = Capture;
        fn is_capturing() -> Result<bool>;
        fn keep_object(object: &GraphObject) -> Result<()>;
        fn keep_for_graph(uses: &[Use<'_>]) -> Result<()>;
        fn has_captured(memory: &DeviceMemory, access: Access) -> Result<bool>;
        fn check_before_capture() -> Result<()>;
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        let graph = self.0.call(Call::Capture, |s| s.end_capture())?;
        Ok(self.0.layer_graph(graph))
    }
}

impl<L: StreamLayer> StreamState for Layered<L> {
    forward! {
        layer;
        fn has_handle(handle: u64) -> bool;
        fn has_run() -> Result<bool> = Query;
        fn supports_queries() -> bool;
        fn wait_for_room();
        fn drain() -> Result<()> = Synchronize;
        fn check_epoch() -> Result<()>;
        fn options() -> Result<StreamOptions>;
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        self.0.for_memory()
    }

    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.external_owner()
    }
}

// SAFETY: every call goes to the inner stream or returns an error; the layer promises the rest.
unsafe impl<L: StreamLayer> Stream for Layered<L> {}
