//! Streams that other libraries created.

use crate::owner::OwnerObject;
use gpuarray::{Device, DeviceId, EventOptions, Stream};
use hal::layers::{Layered, StreamLayer};
use hal::recording;
use pyo3::prelude::*;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// A stream that another library created, with the object that keeps it alive.
pub(crate) struct ExternalStream {
    inner: Arc<dyn Stream>,
    /// Represents the stream in memory that was used on it.
    proxy: Arc<Layered<StreamProxy>>,
    /// Declared after the streams, because fields are dropped in this order.
    owner: OnceLock<OwnerObject>,
}

impl ExternalStream {
    /// Returns the object for a stream of a device.
    pub(crate) fn new(inner: Arc<dyn Stream>, device: &Arc<dyn Device>) -> Layered<ExternalStream> {
        let (id, device) = (inner.id(), device.clone());
        let proxy = StreamProxy { id, target: RwLock::new(inner.clone()), device };
        let proxy = Arc::new(Layered(proxy));
        Layered(ExternalStream { inner, proxy, owner: OnceLock::new() })
    }

    /// Keeps `owner` alive as long as the stream; later owners are ignored.
    pub(crate) fn keep(&self, owner: &Bound<'_, PyAny>) {
        self.owner.get_or_init(|| OwnerObject::new(owner.clone().unbind()));
    }
}

impl Drop for ExternalStream {
    fn drop(&mut self) {
        if self.owner.get().is_some() && Arc::strong_count(&self.proxy) > 1 {
            self.proxy.0.redirect_to_default();
        }
    }
}

/// Represents an external stream in memory that was used on it. It does not refer to the stream's
/// owner, because an owner that has arrays would then never be freed.
///
/// When the stream is dropped, the default stream waits for its work, and the proxy forwards calls
/// to the default stream from then on.
struct StreamProxy {
    id: u64,
    /// Locked for reading while the stream is used, so that its owner is not dropped meanwhile.
    target: RwLock<Arc<dyn Stream>>,
    device: Arc<dyn Device>,
}

impl StreamProxy {
    fn target(&self) -> RwLockReadGuard<'_, Arc<dyn Stream>> {
        // The stream stays valid even if a thread panicked.
        self.target.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the default stream wait for the stream's work, and forwards to the default stream.
    fn redirect_to_default(&self) {
        let mut target = self.target.write().unwrap_or_else(PoisonError::into_inner);
        let default = self.device.default_stream();
        let order = || {
            let event = self.device.create_event(EventOptions::ORDERING)?;
            target.record(event.as_ref())?;
            recording::wait_event(default.as_ref(), event.as_ref())
        };
        if order().is_err() && target.synchronize().is_err() {
            log::warn!("an external stream is dropped, and waiting for its work failed");
        }
        *target = default;
    }
}

impl fmt::Debug for StreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamProxy({})", self.id)
    }
}

impl fmt::Debug for ExternalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalStream({:?})", self.inner)
    }
}

// SAFETY: every call goes to the same inner stream, and `id` is that stream's.
unsafe impl StreamLayer for ExternalStream {
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R {
        inner(self.inner.as_ref())
    }

    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }

    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.owner.get().map(|owner| owner as _)
    }

    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        self.owner.get().map(|_| self.proxy.clone() as _)
    }
}

// SAFETY: every call goes to the represented stream, and later to the default stream, which waits
// for that stream's work. The id is the represented stream's.
unsafe impl StreamLayer for StreamProxy {
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R {
        inner(self.target().as_ref())
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn device_id(&self) -> DeviceId {
        self.device.id()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
