//! Layers: wrappers that implement the same traits. [`intercept`] shows every call to an [`Interceptor`] first. Fault
//! injection, tracing and checking use this, for every backend.

#![deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]

mod layer;

pub use layer::{Call, Layered, StreamLayer};

use crate::backend::Backend;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventOptions};
use crate::module::{
    Compiled, Kernel, KernelAttribute, LaunchConfig, LinkInput, LoadOptions, Module, ModuleSource,
    Parameter, SourceText,
};
use crate::poison::Unpoisoned as _;
use crate::properties::{
    DeviceAttribute, DeviceId, DeviceProperties, Features, IpcHandle, MemoryInfo, PinnedOptions,
};
use crate::status::{Api, AtomicStatus, Status};
use crate::stream::{Graph, Stream, StreamOptions};
use crate::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use layer::forward;
use std::any::Any;
use std::ffi::c_void;
use std::fmt::{self, Debug};
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

#[allow(clippy::missing_trait_methods, reason = "searches for devices use the intercepted devices")]
impl Backend for Intercepted<dyn Backend> {
    forward! {
        inner;
        fn name() -> &'static str;
        fn api() -> Api;
        fn version() -> Result<i32>;
        fn device_count() -> Result<usize>;
        fn profiler_start() -> Result<()>;
        fn profiler_stop() -> Result<()>;
        fn status_name(code: i32) -> Option<&'static str>;
        fn status_message(code: i32) -> Option<&'static str>;
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        let inner = self.call(Call::OpenDevice, |b| b.device(ordinal))?;
        Ok(Arc::new(self.wrap(inner)))
    }
}

// SAFETY: every call goes to the inner event.
unsafe impl Event for Intercepted<dyn Event> {
    forward! {
        inner;
        fn device_id() -> DeviceId;
        fn handle() -> u64;
        fn query() -> Result<bool> = Query;
        fn has_run() -> Result<bool> = Query;
        fn supports_queries() -> bool;
        fn synchronize() -> Result<()> = Synchronize;
        fn drain() -> Result<()> = Synchronize;
        fn elapsed_since(start: &dyn Event) -> Result<f32> = ElapsedTime;
        fn as_any() -> &dyn Any;
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }
}

impl Module for Intercepted<dyn Module> {
    forward! {
        inner;
        fn global(name: &str) -> Result<(u64, usize)> = Lookup;
        fn source() -> Option<&SourceText>;
        fn log() -> &str;
        fn as_any() -> &dyn Any;
    }

    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        let inner = self.call(Call::Lookup, |m| m.kernel(name))?;
        Ok(Arc::new(self.wrap(inner)))
    }
}

impl Kernel for Intercepted<dyn Kernel> {
    forward! {
        inner;
        fn name() -> &str;
        unsafe fn launch_raw(
            stream: &dyn Stream, config: &LaunchConfig, arguments: &[*mut c_void]
        ) -> Result<()> = Launch;
        unsafe fn launch_cooperative(
            stream: &dyn Stream, config: &LaunchConfig, arguments: &[*mut c_void]
        ) -> Result<()> = Launch;
        fn finish_launch(stream: &dyn Stream) -> Result<()>;
        fn parameters() -> Result<Option<&[Parameter]>>;
        fn attribute(attribute: KernelAttribute) -> Result<i32> = Lookup;
        fn set_attribute(attribute: KernelAttribute, value: i32) -> Result<()> = Configure;
        fn active_blocks(threads: u32, shared_bytes: usize) -> Result<u32> = Lookup;
        fn as_any() -> &dyn Any;
    }
}

// Intercepted streams and graphs.

impl Intercepted<dyn Stream> {
    /// Returns the intercepted stream as an object.
    fn into_stream(self) -> Arc<dyn Stream> {
        Arc::new(Layered(self))
    }
}

#[allow(clippy::missing_trait_methods, reason = "`id` and `device_id` are the inner stream's")]
// SAFETY: every call goes to the same inner stream, and `id` is that stream's.
unsafe impl StreamLayer for Intercepted<dyn Stream> {
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R {
        inner(self.inner.as_ref())
    }

    fn call<R>(
        &self,
        call: Call,
        inner: impl FnOnce(&(dyn Stream + 'static)) -> Result<R>,
    ) -> Result<R> {
        Intercepted::call(self, call, inner)
    }

    fn layer_graph(&self, graph: Arc<dyn Graph>) -> Arc<dyn Graph> {
        Arc::new(self.wrap(graph))
    }

    fn layer_event(&self, event: Arc<dyn Event>) -> Arc<dyn Event> {
        Arc::new(self.wrap(event))
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        Some(self.wrap(self.inner.for_memory()?).into_stream())
    }

    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.inner.external_owner()
    }
}

impl Graph for Intercepted<dyn Graph> {
    forward! {
        inner;
        fn node_count() -> usize;
        unsafe fn launch(stream: &Arc<dyn Stream>) -> Result<()> = Launch;
        fn as_any() -> &dyn Any;
    }
}

// SAFETY: every call goes to the inner device, and its results are passed on.
unsafe impl Device for Intercepted<dyn Device> {
    forward! {
        inner;
        fn id() -> DeviceId;
        fn properties() -> &DeviceProperties;
        fn attribute(attribute: DeviceAttribute) -> Result<i32>;
        fn features() -> Features;
        fn memory_info() -> Result<MemoryInfo> = MemoryInfo;
        fn allocate(bytes: usize) -> Result<u64> = Allocate;
        unsafe fn free(address: u64, bytes: usize) -> Result<()> = Free;
        fn can_access(address: u64, bytes: usize) -> bool;
        fn allocate_pitched(
            width: usize, height: usize, element: usize
        ) -> Result<(u64, usize)> = Allocate;
        fn allocate_managed(bytes: usize) -> Result<u64> = Allocate;
        fn allocate_pinned(
            bytes: usize, options: PinnedOptions
        ) -> Result<*mut u8> = AllocatePinned;
        fn pinned_address(pointer: *mut u8) -> Result<u64> = Lookup;
        unsafe fn free_pinned(pointer: *mut u8, bytes: usize) -> Result<()> = FreePinned;
        fn create_array(shape: &ArrayShape) -> Result<u64> = Allocate;
        unsafe fn create_texture(
            resource: &TextureResource, sampling: &Sampling
        ) -> Result<u64> = Allocate;
        unsafe fn create_surface(array: u64) -> Result<u64> = Allocate;
        unsafe fn destroy_texture(kind: TextureHandle, handle: u64) -> Result<()> = Free;
        unsafe fn register_host(
            pointer: *mut u8, bytes: usize, options: PinnedOptions
        ) -> Result<()> = RegisterHost;
        unsafe fn unregister_host(pointer: *mut u8) -> Result<()> = UnregisterHost;
        fn compile(text: &str, name: &str, options: &[&str]) -> Result<Compiled> = Compile;
        fn compiler() -> Result<String> = Compile;
        fn link(inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> = Compile;
        fn synchronize() -> Result<()> = Synchronize;
        fn drain() -> Result<()> = Synchronize;
        fn shares_streams() -> bool;
        fn priority_range() -> Result<(i32, i32)>;
        fn address_range(address: u64) -> Result<(u64, usize)> = Lookup;
        fn can_access_peer(other: &dyn Device) -> Result<bool> = Configure;
        fn enable_peer_access(other: &dyn Device) -> Result<()> = Configure;
        fn disable_peer_access(other: &dyn Device) -> Result<()> = Configure;
        unsafe fn transfer_peer(
            stream: &dyn Stream, destination: u64, source: u64, source_device: &dyn Device,
            bytes: usize
        ) -> Result<()> = Transfer;
        fn kept_memory() -> Result<usize>;
        fn trim_memory(keep: usize) -> Result<()> = Configure;
        fn set_release_threshold(bytes: usize) -> Result<()> = Configure;
        fn export_memory(address: u64) -> Result<IpcHandle> = Share;
        fn import_memory(handle: &IpcHandle) -> Result<u64> = Share;
        unsafe fn close_imported(address: u64) -> Result<()> = Share;
        fn export_event(event: &dyn Event) -> Result<IpcHandle> = Share;
        fn limit(limit: i32) -> Result<usize> = Configure;
        fn set_limit(limit: i32, value: usize) -> Result<()> = Configure;
        fn context_handle() -> Result<u64> = Configure;
        fn make_current() -> Result<()> = Configure;
        fn epoch() -> u64;
        unsafe fn reset() -> Result<()> = Configure;
        fn as_any() -> &dyn Any;
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        self.wrap(self.inner.default_stream()).into_stream()
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        let inner = self.call(Call::CreateStream, |d| d.create_stream(options))?;
        Ok(self.wrap(inner).into_stream())
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        let inner = self.call(Call::CreateEvent, |d| d.create_event(options))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    unsafe fn free_detached(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free_detached(address) }
    }

    unsafe fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        let inner = self.call(Call::LoadModule, |d| {
            // SAFETY: the caller's promise.
            unsafe { d.load_module(source, options) }
        })?;
        Ok(Arc::new(self.wrap(inner)))
    }

    unsafe fn stream_from_handle(&self, handle: u64) -> Result<Arc<dyn Stream>> {
        // SAFETY: the caller's promise is passed on.
        let inner = self.call(Call::CreateStream, |d| unsafe { d.stream_from_handle(handle) })?;
        Ok(self.wrap(inner).into_stream())
    }

    unsafe fn event_from_handle(&self, handle: u64) -> Result<Arc<dyn Event>> {
        // SAFETY: the caller's promise is passed on.
        let inner = self.call(Call::CreateEvent, |d| unsafe { d.event_from_handle(handle) })?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        let inner = self.call(Call::Share, |d| d.import_event(handle))?;
        Ok(Arc::new(self.wrap(inner)))
    }
}
