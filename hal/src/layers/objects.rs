//! Intercepted backends, events, modules and kernels.

use crate::backend::Backend;
use crate::device::Device;
use crate::error::Result;
use crate::event::Event;
use crate::layers::layer::forward;
use crate::layers::{Call, Intercepted, Layered, StreamLayer};
use crate::module::{Kernel, KernelAttribute, LaunchConfig, Module, Parameter, SourceText};
use crate::properties::DeviceId;
use crate::status::{Api, Status};
use crate::stream::{Graph, Stream};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// Searches for devices use the trait's default methods, over the intercepted devices.
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

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
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

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
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

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
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
    pub(super) fn into_stream(self) -> Arc<dyn Stream> {
        Arc::new(Layered(self))
    }
}

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

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
impl Graph for Intercepted<dyn Graph> {
    forward! {
        inner;
        fn node_count() -> usize;
        unsafe fn launch(stream: &Arc<dyn Stream>) -> Result<()> = Launch;
        fn as_any() -> &dyn Any;
    }
}
