//! Graphs: captured work that is queued again at each launch.

use crate::capture::Node;
use crate::device::HostDevice;
use crate::memory::Memory;
use crate::stream::HostStream;
use hal::memory::{BlockOwner, CapturedMemory, GraphUses};
use hal::stream::StreamState;
use hal::{Error, Graph, Result, Stream, process};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

impl BlockOwner for Memory {
    fn epoch(&self) -> u64 {
        process::generation().into()
    }

    fn is_alive(&self, epoch: u64) -> bool {
        !process::is_exiting() && self.epoch() == epoch
    }

    unsafe fn free_block(&self, address: u64, bytes: usize) -> Result<()> {
        // Queued work of a graph holds its blocks, and a memory object frees its own block after all uses.
        // SAFETY: the caller's promise.
        unsafe { self.free(address, bytes) };
        Ok(())
    }
}

/// The nodes and memory that a launch needs until it has run.
pub(crate) struct GraphWork {
    nodes: Vec<Node>,
    #[allow(dead_code, reason = "held for the blocks that were allocated or freed in the capture")]
    memory: Arc<CapturedMemory>,
}

impl GraphWork {
    /// Runs the nodes in order, until one fails.
    pub(crate) fn run(&self) -> Result<()> {
        self.nodes.iter().try_for_each(|node| node())
    }
}

/// Captured work that can be launched.
pub(crate) struct HostGraph {
    device: Arc<HostDevice>,
    generation: u32,
    uses: GraphUses,
    work: Arc<GraphWork>,
}

impl fmt::Debug for HostGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostGraph({} nodes)", self.work.nodes.len())
    }
}

impl HostGraph {
    /// Creates a graph from the nodes of a capture and the memory that it keeps.
    pub(crate) fn new(
        device: &Arc<HostDevice>,
        nodes: Vec<Node>,
        memory: Arc<CapturedMemory>,
    ) -> HostGraph {
        HostGraph {
            device: device.clone(),
            generation: process::generation(),
            uses: GraphUses::take(Some(&memory)),
            work: Arc::new(GraphWork { nodes, memory }),
        }
    }

    /// In a forked child, a thread of the parent may have been launching the graph.
    fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::handle(
            "launch_graph",
            "the graph was made by the parent process; capture a new one after a fork",
        ))
    }
}

impl Graph for HostGraph {
    fn node_count(&self) -> usize {
        self.work.nodes.len()
    }

    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        self.check_process()?;
        let own = HostStream::of("launch_graph", stream.as_ref(), self.device.id())?;
        own.check_launch()?;
        own.wait_for_room();
        self.uses.launch(stream, || own.launch_graph(&self.work))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
