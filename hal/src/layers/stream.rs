//! The decorated form of streams and graphs.

use super::{Call, Decorated, Layered, StreamLayer};
use crate::error::Result;
use crate::event::Event;
use crate::status::Status;
use crate::stream::{Graph, Stream};
use std::any::Any;
use std::sync::Arc;

impl Decorated<dyn Stream> {
    /// Returns the decorated stream as an object.
    pub(super) fn into_stream(self) -> Arc<dyn Stream> {
        Arc::new(Layered(self))
    }
}

// SAFETY: every call goes to the one stream inside, whose number it has.
unsafe impl StreamLayer for Decorated<dyn Stream> {
    fn with<R>(&self, inner: impl FnOnce(&(dyn Stream + 'static)) -> R) -> R {
        inner(self.inner.as_ref())
    }

    fn call<R>(
        &self,
        call: Call,
        inner: impl FnOnce(&(dyn Stream + 'static)) -> Result<R>,
    ) -> Result<R> {
        Decorated::call(self, call, inner)
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
impl Graph for Decorated<dyn Graph> {
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
