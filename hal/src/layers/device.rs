//! Intercepted devices.

use super::layer::forward;
use super::{Call, Intercepted};
use crate::device::Device;
use crate::error::Result;
use crate::event::{Event, EventOptions};
use crate::features::Features;
use crate::module::{Compiled, LinkInput, LoadOptions, Module, ModuleSource};
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
