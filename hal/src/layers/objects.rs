//! Intercepted backends, events, modules and kernels.

use crate::backend::Backend;
use crate::device::Device;
use crate::error::Result;
use crate::event::Event;
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
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn api(&self) -> Api {
        self.inner.api()
    }

    fn version(&self) -> Result<i32> {
        self.inner.version()
    }

    fn device_count(&self) -> Result<usize> {
        self.inner.device_count()
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>> {
        let inner = self.call(Call::OpenDevice, |b| b.device(ordinal))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn profiler_start(&self) -> Result<()> {
        self.inner.profiler_start()
    }

    fn profiler_stop(&self) -> Result<()> {
        self.inner.profiler_stop()
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        self.inner.status_name(code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        self.inner.status_message(code)
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
// SAFETY: every call goes to the inner event.
unsafe impl Event for Intercepted<dyn Event> {
    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn handle(&self) -> u64 {
        self.inner.handle()
    }

    fn query(&self) -> Result<bool> {
        self.call(Call::Query, |e| e.query())
    }

    fn has_run(&self) -> Result<bool> {
        self.call(Call::Query, |e| e.has_run())
    }

    fn supports_queries(&self) -> bool {
        self.inner.supports_queries()
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |e| e.synchronize())
    }

    fn drain(&self) -> Result<()> {
        self.call(Call::Synchronize, |e| e.drain())
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.call(Call::ElapsedTime, |e| e.elapsed_since(start))
    }

    fn last_status(&self) -> Status {
        self.status.load()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
impl Module for Intercepted<dyn Module> {
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        let inner = self.call(Call::Lookup, |m| m.kernel(name))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn global(&self, name: &str) -> Result<(u64, usize)> {
        self.call(Call::Lookup, |m| m.global(name))
    }

    fn source(&self) -> Option<&SourceText> {
        self.inner.source()
    }

    fn log(&self) -> &str {
        self.inner.log()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
impl Kernel for Intercepted<dyn Kernel> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    unsafe fn launch_raw(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Launch, |k| unsafe { k.launch_raw(stream, config, arguments) })
    }

    unsafe fn launch_cooperative(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Launch, |k| unsafe { k.launch_cooperative(stream, config, arguments) })
    }

    fn finish_launch(&self, stream: &dyn Stream) -> Result<()> {
        self.inner.finish_launch(stream)
    }

    fn parameters(&self) -> Result<Option<&[Parameter]>> {
        self.inner.parameters()
    }

    fn attribute(&self, attribute: KernelAttribute) -> Result<i32> {
        self.call(Call::Lookup, |k| k.attribute(attribute))
    }

    fn set_attribute(&self, attribute: KernelAttribute, value: i32) -> Result<()> {
        self.call(Call::Configure, |k| k.set_attribute(attribute, value))
    }

    fn active_blocks(&self, threads: u32, shared_bytes: usize) -> Result<u32> {
        self.call(Call::Lookup, |k| k.active_blocks(threads, shared_bytes))
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
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
    fn node_count(&self) -> usize {
        self.inner.node_count()
    }

    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Launch, |g| unsafe { g.launch(stream) })
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
