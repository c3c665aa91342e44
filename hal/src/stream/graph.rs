//! Captured work, and what a capture refuses.

use super::Stream;
use crate::error::Result;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Says which calls the driver refuses while a stream captures: those that a capture cannot
/// contain, such as plain allocations. The values are those of `CUstreamCaptureMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// The calls of every thread are refused.
    Global,
    /// This thread may not; others are free.
    #[default]
    ThreadLocal,
    /// No call is refused.
    Relaxed,
}

/// Captured work that can be launched any number of times.
pub trait Graph: Send + Sync + Debug {
    /// Returns the number of nodes in the graph (`cuGraphGetNodes`, `hipGraphGetNodes`).
    fn node_count(&self) -> usize;

    /// Queues all of the captured work on `stream`, behind other streams' work on the memory that
    /// it uses (`cuGraphLaunch`, `hipGraphLaunch`). The graph keeps that memory. Launches from
    /// several threads run one after another.
    ///
    /// # Errors
    /// The driver's; `InvalidArgument` for a stream of another device.
    ///
    /// # Safety
    /// Memory that the captured work uses by its address alone stays allocated until the work has
    /// run, and nothing else accesses it meanwhile. The same holds for memory of work that another
    /// thread queued on the stream while the capture began: it is not known whether the graph keeps
    /// that.
    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()>;

    /// Returns the backend's own object, inside all decorators.
    fn as_any(&self) -> &dyn Any;
}
