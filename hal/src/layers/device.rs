//! Intercepted devices.

use super::{Call, Intercepted};
use crate::device::Device;
use crate::error::Result;
use crate::event::{Event, EventOptions};
use crate::features::Features;
use crate::module::Compiled;
use crate::module::{LinkInput, LoadOptions, Module, ModuleSource};
use crate::properties::{
    DeviceAttribute, DeviceId, DeviceProperties, IpcHandle, MemoryInfo, PinnedOptions,
};
use crate::stream::{Stream, StreamOptions};
use crate::texture::{ArrayShape, Sampling, TextureHandle, TextureResource};
use std::any::Any;
use std::sync::Arc;

#[deny(
    clippy::missing_trait_methods,
    reason = "a method that is not passed on would be the trait's own"
)]
// SAFETY: every call goes to the inner device, and its results are passed on.
unsafe impl Device for Intercepted<dyn Device> {
    fn id(&self) -> DeviceId {
        self.inner.id()
    }

    fn properties(&self) -> &DeviceProperties {
        self.inner.properties()
    }

    fn attribute(&self, attribute: DeviceAttribute) -> Result<i32> {
        self.inner.attribute(attribute)
    }

    fn features(&self) -> Features {
        self.inner.features()
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.call(Call::MemoryInfo, |d| d.memory_info())
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

    unsafe fn free_detached(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free_detached(address) }
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

    fn create_array(&self, shape: &ArrayShape) -> Result<u64> {
        self.call(Call::Allocate, |d| d.create_array(shape))
    }

    unsafe fn create_texture(
        &self,
        resource: &TextureResource,
        sampling: &Sampling,
    ) -> Result<u64> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Allocate, |d| unsafe { d.create_texture(resource, sampling) })
    }

    unsafe fn create_surface(&self, array: u64) -> Result<u64> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Allocate, |d| unsafe { d.create_surface(array) })
    }

    unsafe fn destroy_texture(&self, kind: TextureHandle, handle: u64) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Free, |d| unsafe { d.destroy_texture(kind, handle) })
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

    fn compile(&self, text: &str, name: &str, options: &[&str]) -> Result<Compiled> {
        self.call(Call::Compile, |d| d.compile(text, name, options))
    }

    fn compiler(&self) -> Result<String> {
        self.call(Call::Compile, |d| d.compiler())
    }

    fn link(&self, inputs: &[LinkInput<'_>], options: &LoadOptions) -> Result<Compiled> {
        self.call(Call::Compile, |d| d.link(inputs, options))
    }

    fn synchronize(&self) -> Result<()> {
        self.call(Call::Synchronize, |d| d.synchronize())
    }

    fn drain(&self) -> Result<()> {
        self.call(Call::Synchronize, |d| d.drain())
    }

    fn shares_streams(&self) -> bool {
        self.inner.shares_streams()
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

    unsafe fn transfer_peer(
        &self,
        stream: &dyn Stream,
        destination: u64,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Transfer, |d| unsafe {
            d.transfer_peer(stream, destination, source, source_device, bytes)
        })
    }

    fn kept_memory(&self) -> Result<usize> {
        self.inner.kept_memory()
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

    fn context_handle(&self) -> Result<u64> {
        self.call(Call::Configure, |d| d.context_handle())
    }

    fn make_current(&self) -> Result<()> {
        self.call(Call::Configure, |d| d.make_current())
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }

    unsafe fn reset(&self) -> Result<()> {
        // SAFETY: the caller's promise is passed on.
        self.call(Call::Configure, |d| unsafe { d.reset() })
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
