//! Graphs: captured work that can be launched.

use crate::calls::Handle;
use crate::context::Context;
use crate::memory::DeviceAllocator;
use crate::stream::DriverStream;
use crate::vendor::optional;
use hal::error::Result;
use hal::memory::{BlockOwner, CapturedMemory, GraphUses, is_left};
use hal::process;
use hal::status::Status;
use hal::stream::{Graph, Stream};
use std::any::Any;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
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
                    // SAFETY: the handle is live and has no other references; the driver keeps what
                    // a launch in progress needs.
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

// Keeping the memory of another library's capture: its graph retains a user object, which the driver
// passes on to every executable graph, and destroys with the last of them.

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC` and `CU_GRAPH_USER_OBJECT_MOVE`; HIP's are the same.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
const MOVE: c_uint = 1;

impl BlockOwner for DeviceAllocator {
    fn epoch(&self) -> u64 {
        self.pool.context().epoch()
    }

    fn is_alive(&self, epoch: u64) -> bool {
        self.pool.context().is_alive(epoch)
    }

    unsafe fn free_block(&self, address: u64, _bytes: usize) -> Result<()> {
        let _scope = self.pool.context().enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.pool.put_behind_all(address) }
    }
}

/// Returns the graph of the capture that a stream is part of.
fn graph_of(context: &Context, stream: Handle) -> Option<Handle> {
    let info = context.driver.calls.capture_graph?;
    let (mut state, mut number, mut graph): (c_int, c_ulonglong, Handle) = (0, 0, 0);
    // SAFETY: the handle is a live stream; the results are written before the call returns, except
    // for the null pointers.
    let code = unsafe { info(stream, &mut state, &mut number, &mut graph, null_mut(), null_mut()) };
    (code == Status::SUCCESS && graph != 0).then_some(graph)
}

/// Makes the graph of the stream's capture keep `kept`. Returns false if the driver does not support
/// that. The context is current.
pub(super) fn attach(
    context: &Context,
    stream: Handle,
    kept: &Arc<CapturedMemory>,
) -> Result<bool> {
    let calls = &context.driver.calls;
    let (Some(create), Some(retain)) = (calls.user_object_create, calls.graph_retain) else {
        return Ok(false);
    };
    let Some(graph) = graph_of(context, stream) else { return Ok(false) };
    let data = Box::into_raw(Box::new(kept.clone())).cast::<c_void>();
    let mut object = 0;
    // SAFETY: the function takes the box once, when the last graph is destroyed.
    let code = unsafe { create(&mut object, data, let_go, 1, NO_DESTRUCTOR_SYNC) };
    if code != Status::SUCCESS {
        // SAFETY: the driver did not take the box.
        drop(unsafe { Box::from_raw(data.cast::<Arc<CapturedMemory>>()) });
        return Ok(false);
    }
    let _adding = context.capture_state.adding();
    // SAFETY: both handles are live; the graph takes the only reference.
    let code = unsafe { retain(graph, object, 1, MOVE) };
    if code != Status::SUCCESS {
        // The object, which is never destroyed, keeps the memory forever, which is better than too
        // short.
        log::warn!("a graph does not take what it must keep: status {code}");
    }
    Ok(true)
}

/// Releases the memory on another thread. The driver calls this when the last graph has been
/// destroyed, on a thread that must not call the driver.
unsafe extern "C" fn let_go(data: *mut c_void) {
    if process::is_exiting() {
        return;
    }
    let address = data as usize;
    let thread = std::thread::Builder::new().name("gpuarray graph".into());
    // SAFETY: the box was passed on once, when the object was created.
    let drop_kept = move || drop(unsafe { Box::from_raw(address as *mut Arc<CapturedMemory>) });
    if let Err(error) = thread.spawn(drop_kept) {
        // Nothing is freed then, because the closure only contains the address.
        log::warn!("no thread to free the memory of a graph: {error}");
    }
}
