//! Graphs: captured work that can be launched.

use crate::calls::Handle;
use crate::context::Context;
use crate::stream::DriverStream;
use crate::vendor::optional;
use hal::error::Result;
use hal::memory::{CapturedMemory, GraphUses, is_left};
use hal::stream::{Graph, Stream};
use std::any::Any;
use std::ptr::null_mut;
use std::sync::Arc;

/// Captured work that can be launched.
#[derive(Debug)]
pub(crate) struct DriverGraph {
    context: Arc<Context>,
    epoch: u64,
    graph: Handle,
    executable: Handle,
    nodes: usize,
    /// The memory and objects that the work uses.
    uses: GraphUses,
    #[allow(dead_code, reason = "held for the blocks that were allocated during the capture")]
    kept: Option<Arc<CapturedMemory>>,
}

impl DriverGraph {
    /// Instantiates captured work, and takes ownership of the objects that the capture keeps.
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
            // SAFETY: without an array, the call only returns the number.
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
        // The driver refuses to destroy a graph inside a host function.
        let (uses, kept) = (&mut self.uses, &mut self.kept);
        let (graph, executable, nodes) = (self.graph, self.executable, self.nodes);
        let same = || DriverGraph {
            context: context.clone(),
            epoch: self.epoch,
            graph,
            executable,
            nodes,
            uses: std::mem::replace(uses, GraphUses::take(None)),
            kept: kept.take(),
        };
        if is_left(context.device_id(), same) {
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
                    // SAFETY: the handle is live and has no other references; the driver keeps
                    // everything that a launch in progress needs.
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
            // A graph that contained this launch would not keep the objects of this graph.
            own.refuse_in_capture("launch_graph", "a launch of a graph cannot be captured")?;
            let _scope = own.enter()?;
            // SAFETY: both handles are live, and no other thread launches the graph now. The work is
            // ordered; the caller's promise covers the rest.
            let code = unsafe { launch(self.executable, own.raw()) };
            self.context.check("launch_graph", code)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
