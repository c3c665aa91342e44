//! The decorated form of each object.

use super::{Call, Interceptor};
use crate::backend::Backend;
use crate::device::{
    Device, DeviceAttribute, DeviceId, DeviceProperties, IpcHandle, MemoryInfo, PinnedOptions,
};
use crate::driver::compiler::Compiled;
use crate::error::Result;
use crate::event::{Event, EventOptions};
use crate::module::{
    Kernel, KernelAttribute, LaunchConfig, LinkInput, LoadOptions, Module, ModuleSource, Parameter,
};
use crate::operation::Operation;
use crate::status::Api;
use crate::stream::{CaptureMode, Graph, PrefetchTarget, Stream, StreamOptions, Transfer};
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

pub(super) struct Decorated<T: ?Sized> {
    pub(super) interceptor: Arc<dyn Interceptor>,
    pub(super) inner: Arc<T>,
}

impl<T: ?Sized> Decorated<T> {
    fn wrap<U: ?Sized>(&self, inner: Arc<U>) -> Decorated<U> {
        Decorated { interceptor: self.interceptor.clone(), inner }
    }

    fn call<R>(&self, call: Call, inner: impl FnOnce(&T) -> Result<R>) -> Result<R> {
        let verdict = self.interceptor.before(call);
        if verdict.is_err() && !call.releases() {
            return verdict.and_then(|()| inner(&self.inner));
        }
        let result = inner(&self.inner);
        verdict.and(result)
    }
}

impl Backend for Decorated<dyn Backend> {
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
}

impl Device for Decorated<dyn Device> {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }

    fn properties(&self) -> &DeviceProperties {
        self.inner.properties()
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        self.inner.attribute(attribute)
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.call(Call::MemoryInfo, |d| d.memory_info())
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        Arc::new(self.wrap(self.inner.default_stream()))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        let inner = self.call(Call::CreateStream, |d| d.create_stream(options))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        let inner = self.call(Call::CreateEvent, |d| d.create_event(options))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.call(Call::Allocate, |d| d.allocate(bytes))
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Free, |d| unsafe { d.free(address, bytes) })
    }

    fn can_access(&self, address: u64, bytes: usize) -> bool {
        self.inner.can_access(address, bytes)
    }

    fn allocate_pitched(
        &self,
        width: usize,
        height: usize,
        element: usize,
    ) -> Result<(u64, usize)> {
        self.call(Call::Allocate, |d| d.allocate_pitched(width, height, element))
    }

    fn allocate_managed(&self, bytes: usize) -> Result<u64> {
        self.call(Call::Allocate, |d| d.allocate_managed(bytes))
    }

    fn allocate_pinned(&self, bytes: usize, options: PinnedOptions) -> Result<*mut u8> {
        self.call(Call::AllocatePinned, |d| d.allocate_pinned(bytes, options))
    }

    fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        self.call(Call::Lookup, |d| d.pinned_address(pointer))
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::FreePinned, |d| unsafe { d.free_pinned(pointer, bytes) })
    }

    unsafe fn register_host(
        &self,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::RegisterHost, |d| unsafe { d.register_host(pointer, bytes, options) })
    }

    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::UnregisterHost, |d| unsafe { d.unregister_host(pointer) })
    }

    fn load_module(
        &self,
        source: &ModuleSource<'_>,
        options: &LoadOptions,
    ) -> Result<Arc<dyn Module>> {
        let inner = self.call(Call::LoadModule, |d| d.load_module(source, options))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        self.call(Call::Compile, |d| d.compile(text, name, options))
    }

    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        self.call(Call::Compile, |d| d.link(inputs, options))
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |d| d.synchronize())
    }

    unsafe fn stream_from_handle(&self, handle: u64) -> Result<Arc<dyn Stream>> {
        // SAFETY: the caller's promise is passed on.
        let inner = self.call(Call::CreateStream, |d| unsafe { d.stream_from_handle(handle) })?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn priority_range(&self) -> Result<(i32, i32)> {
        self.inner.priority_range()
    }

    fn address_range(&self, address: u64) -> Result<(u64, usize)> {
        self.call(Call::Lookup, |d| d.address_range(address))
    }

    fn can_access_peer(&self, other: &dyn Device) -> Result<bool> {
        self.call(Call::Configure, |d| d.can_access_peer(other))
    }

    fn enable_peer_access(&self, other: &dyn Device) -> Result<()> {
        self.call(Call::Configure, |d| d.enable_peer_access(other))
    }

    fn disable_peer_access(&self, other: &dyn Device) -> Result<()> {
        self.call(Call::Configure, |d| d.disable_peer_access(other))
    }

    fn trim_memory(&self, keep: usize) -> Result<()> {
        self.call(Call::Configure, |d| d.trim_memory(keep))
    }

    fn set_release_threshold(&self, bytes: usize) -> Result<()> {
        self.call(Call::Configure, |d| d.set_release_threshold(bytes))
    }

    fn export_memory(&self, address: u64) -> Result<IpcHandle> {
        self.call(Call::Share, |d| d.export_memory(address))
    }

    fn import_memory(&self, handle: &IpcHandle) -> Result<u64> {
        self.call(Call::Share, |d| d.import_memory(handle))
    }

    unsafe fn close_imported(&self, address: u64) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Share, |d| unsafe { d.close_imported(address) })
    }

    fn export_event(&self, event: &dyn Event) -> Result<IpcHandle> {
        self.call(Call::Share, |d| d.export_event(event))
    }

    fn import_event(&self, handle: &IpcHandle) -> Result<Arc<dyn Event>> {
        let inner = self.call(Call::Share, |d| d.import_event(handle))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn limit(&self, limit: i32) -> Result<usize> {
        self.call(Call::Configure, |d| d.limit(limit))
    }

    fn set_limit(&self, limit: i32, value: usize) -> Result<()> {
        self.call(Call::Configure, |d| d.set_limit(limit, value))
    }

    fn make_current(&self) -> Result<()> {
        self.call(Call::Configure, |d| d.make_current())
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    fn reset(&self) -> Result<()> {
        self.call(Call::Configure, |d| d.reset())
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Stream for Decorated<dyn Stream> {
    fn id(&self) -> u64 {
        self.inner.id()
    }

    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn handle(&self) -> u64 {
        self.inner.handle()
    }

    fn query(&self) -> Result<bool> {
        self.call(Call::Query, |s| s.query())
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |s| s.synchronize())
    }

    fn record(&self, event: &dyn Event) -> Result<()> {
        self.call(Call::Record, |s| s.record(event))
    }

    fn wait_event(&self, event: &dyn Event) -> Result<()> {
        self.call(Call::WaitEvent, |s| s.wait_event(event))
    }

    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()> {
        self.call(Call::HostFunction, |s| s.host_function(function))
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.call(Call::Allocate, |s| s.allocate(bytes))
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Free, |s| unsafe { s.free(address, bytes) })
    }

    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe { s.transfer(transfer) })
    }

    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Fill, |s| unsafe { s.fill(address, value, width, count) })
    }

    unsafe fn transfer_peer(
        &self,
        destination: u64,
        destination_device: &dyn Device,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe {
            s.transfer_peer(destination, destination_device, source, source_device, bytes)
        })
    }

    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |s| unsafe { s.prefetch(address, bytes, to) })
    }

    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        self.call(Call::Capture, |s| s.begin_capture(mode))
    }

    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        let inner = self.call(Call::Capture, |s| s.end_capture())?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn is_capturing(&self) -> Result<bool> {
        self.inner.is_capturing()
    }

    fn options(&self) -> Result<StreamOptions> {
        self.inner.options()
    }

    unsafe fn execute(&self, operation: &Operation) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Execute, |s| unsafe { s.execute(operation) })
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Graph for Decorated<dyn Graph> {
    fn node_count(&self) -> usize {
        self.inner.node_count()
    }

    unsafe fn launch(&self, stream: &dyn Stream) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Launch, |g| unsafe { g.launch(stream) })
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Event for Decorated<dyn Event> {
    fn device_id(&self) -> DeviceId {
        self.inner.device_id()
    }

    fn handle(&self) -> u64 {
        self.inner.handle()
    }

    fn query(&self) -> Result<bool> {
        self.call(Call::Query, |e| e.query())
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |e| e.synchronize())
    }

    fn elapsed_since(&self, start: &dyn Event) -> Result<f32> {
        self.call(Call::ElapsedTime, |e| e.elapsed_since(start))
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Module for Decorated<dyn Module> {
    fn kernel(&self, name: &str) -> Result<Arc<dyn Kernel>> {
        let inner = self.call(Call::Lookup, |m| m.kernel(name))?;
        Ok(Arc::new(self.wrap(inner)))
    }

    fn global(&self, name: &str) -> Result<(u64, usize)> {
        self.call(Call::Lookup, |m| m.global(name))
    }

    fn log(&self) -> &str {
        self.inner.log()
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Kernel for Decorated<dyn Kernel> {
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
