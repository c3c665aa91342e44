//! Graphs: captured work that is ready to be launched.

use super::DriverStream;
use crate::calls::Handle;
use crate::context::Context;
use crate::errors::optional;
use hal::error::Result;
use hal::memory::{CapturedMemory, GraphUses};
use hal::stream::{Graph, Stream};
use std::any::Any;
use std::ptr::null_mut;
use std::sync::Arc;

/// Work that was captured, ready to be launched.
#[derive(Debug)]
pub(crate) struct DriverGraph {
    context: Arc<Context>,
    epoch: u64,
    graph: Handle,
    executable: Handle,
    nodes: usize,
    /// The memory that it uses.
    uses: GraphUses,
    #[allow(dead_code, reason = "held for the blocks that were allocated during the capture")]
    kept: Option<Arc<CapturedMemory>>,
}

impl DriverGraph {
    /// Makes captured work ready, and takes over what the capture keeps.
    pub(crate) fn new(
        context: &Arc<Context>,
        epoch: u64,
        graph: Handle,
        kept: Option<Arc<CapturedMemory>>,
    ) -> Result<DriverGraph> {
        let mut made = DriverGraph {
            context: context.clone(),
            epoch,
            graph,
            executable: 0,
            nodes: 0,
            uses: GraphUses::take(kept.as_deref()),
            kept,
        };
        let driver = &context.driver;
        let _scope = context.enter()?;
        let instantiate = optional!(driver, graph_instantiate, "end_capture")?;
        if let Some(nodes) = driver.calls.graph_nodes {
            // SAFETY: without an array the call returns the number only.
            let count = || unsafe { nodes(graph, null_mut(), &mut made.nodes) };
            context.check("end_capture", context.outside_captures(count))?;
        }
        // SAFETY: the graph is live; the handle is written before the call returns.
        let instantiate = || unsafe { instantiate(&mut made.executable, graph, 0) };
        context.check("end_capture", context.outside_captures(instantiate))?;
        Ok(made)
    }
}

impl Drop for DriverGraph {
    fn drop(&mut self) {
        let context = &self.context;
        if !context.is_alive(self.epoch) {
            return;
        }
        let destroy = || {
            let _scope = context.enter()?;
            let calls = &context.driver.calls;
            let mut result = Ok(());
            for (destroy, handle) in
                [(calls.graph_exec_destroy, self.executable), (calls.graph_destroy, self.graph)]
            {
                if let Some(destroy) = destroy.filter(|_| handle != 0) {
                    // SAFETY: the handle is live and nobody can reach it any longer; the
                    // driver keeps what a launch under way needs.
                    let destroy = || unsafe { destroy(handle) };
                    let code = context.outside_captures(destroy);
                    result = result.and(context.check("destroy_graph", code));
                }
            }
            result
        };
        if let Err(error) = destroy() {
            log::warn!("destroying a graph failed: {error}");
        }
    }
}

impl Graph for DriverGraph {
    fn node_count(&self) -> usize {
        self.nodes
    }

    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        let own = DriverStream::own(stream.as_ref(), &self.context)?;
        let launch = optional!(self.context.driver, graph_launch, "launch_graph")?;
        self.context.check_epoch(self.epoch)?;
        self.uses.launch(stream, || {
            // What the graph keeps would not be kept for the one that contains it.
            own.refuse_in_capture("launch_graph", "a launch of a graph cannot be captured")?;
            let _scope = own.enter()?;
            // SAFETY: both handles are live, and no other thread launches the graph now; the work is
            // ordered, and the caller's promise covers what is not known of it.
            let code = unsafe { launch(self.executable, own.raw()) };
            self.context.check("launch_graph", code)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
