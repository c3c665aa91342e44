//! A backend whose device has another number: it serves as the second device of backends that have
//! only one.

use gpuarray::{
    Api, Backend, Device, DeviceId, Event, EventOptions, Features, PinnedOptions, Result, Stream,
    StreamOptions,
};
use hal::layers::{Layered, StreamLayer};
use hal::properties::{DeviceAttribute, DeviceProperties, MemoryInfo};
use std::any::Any;
use std::sync::Arc;

/// An object that claims to belong to a device with another number.
#[derive(Debug)]
pub(crate) struct Renamed<T: ?Sized> {
    ordinal: usize,
    inner: Arc<T>,
}

impl Renamed<dyn Backend> {
    /// Returns the backend `inner` with its device numbered `ordinal`.
    pub(crate) fn backend(inner: Arc<dyn Backend>, ordinal: usize) -> Arc<dyn Backend> {
        Arc::new(Renamed { ordinal, inner })
    }
}

impl Backend for Renamed<dyn Backend> {
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
        Ok(Arc::new(Renamed { ordinal: self.ordinal, inner: self.inner.device(ordinal)? }))
    }

    fn status_name(&self, code: i32) -> Option<&'static str> {
        self.inner.status_name(code)
    }

    fn status_message(&self, code: i32) -> Option<&'static str> {
        self.inner.status_message(code)
    }
}

// SAFETY: every call goes to the inner object; only the device's identity differs.
unsafe impl Device for Renamed<dyn Device> {
    fn id(&self) -> DeviceId {
        DeviceId { ordinal: self.ordinal, ..self.inner.id() }
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
        self.inner.memory_info()
    }

    fn default_stream(&self) -> Arc<dyn Stream> {
        Arc::new(Layered(Renamed { ordinal: self.ordinal, inner: self.inner.default_stream() }))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Arc<dyn Stream>> {
        let inner = self.inner.create_stream(options)?;
        Ok(Arc::new(Layered(Renamed { ordinal: self.ordinal, inner })))
    }

    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>> {
        self.inner.create_event(options)
    }

    fn allocate(&self, bytes: usize) -> Result<u64> {
        self.inner.allocate(bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise, here and below.
        unsafe { self.inner.free(address, bytes) }
    }

    fn kept_memory(&self) -> Result<usize> {
        self.inner.kept_memory()
    }

    fn can_access(&self, address: u64, bytes: usize) -> bool {
        self.inner.can_access(address, bytes)
    }

    fn allocate_pinned(&self, bytes: usize, options: PinnedOptions) -> Result<*mut u8> {
        self.inner.allocate_pinned(bytes, options)
    }

    unsafe fn free_pinned(&self, pointer: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.free_pinned(pointer, bytes) }
    }

    fn pinned_address(&self, pointer: *mut u8) -> Result<u64> {
        self.inner.pinned_address(pointer)
    }

    unsafe fn register_host(
        &self,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.register_host(pointer, bytes, options) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    unsafe fn unregister_host(&self, pointer: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.unregister_host(pointer) }
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.synchronize()
    }
}

// SAFETY: every call goes to the one inner stream, and returns that stream's number.
unsafe impl StreamLayer for Renamed<dyn Stream> {
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R {
        inner(self.inner.as_ref())
    }

    fn device_id(&self) -> DeviceId {
        DeviceId { ordinal: self.ordinal, ..self.inner.device_id() }
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}
