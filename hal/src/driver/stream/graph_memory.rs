//! What captured work uses, kept until every graph that is made of it is gone.
//!
//! Of a capture that was begun here, the graph's object keeps it. One that another library began is
//! asked of the driver, and a user object on the driver's graph keeps it: the driver hands that on
//! to every executable graph, and ends it with the last of them.

use crate::driver::calls::Handle;
use crate::driver::context::Context;
use crate::driver::memory::DeviceAllocator;
use crate::error::Result;
use crate::locks::{KEPT, LEAF, Ranked};
use crate::memory::{GraphHold, Use};
use crate::process;
use crate::status::Status;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC` and `CU_GRAPH_USER_OBJECT_MOVE`; HIP's are the same.
const NO_DESTRUCTOR_SYNC: c_uint = 1;
const MOVE: c_uint = 1;

/// The blocks of one device that belong to captures and graphs.
#[derive(Debug)]
pub(super) struct GraphBlocks {
    context: Arc<Context>,
    memory: Arc<DeviceAllocator>,
    /// How many hold each block: the graph, and the object that stands for it.
    holders: Ranked<HashMap<u64, u32>, LEAF>,
    /// The number of blocks in `holders`: 0 nearly always.
    count: AtomicUsize,
}

impl GraphBlocks {
    pub(super) fn new(context: &Arc<Context>, memory: &Arc<DeviceAllocator>) -> GraphBlocks {
        let (context, memory) = (context.clone(), memory.clone());
        GraphBlocks { context, memory, holders: Ranked::default(), count: AtomicUsize::new(0) }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// True if the block belongs to a capture or graph: then this ends one of its holders.
    #[inline]
    pub(super) fn release(&self, address: u64) -> Option<Result<()>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.release_one(address)
    }

    fn release_one(&self, address: u64) -> Option<Result<()>> {
        let mut all = self.holders.lock();
        let holders = all.get_mut(&address)?;
        *holders -= 1;
        if *holders > 0 {
            return Some(Ok(()));
        }
        all.remove(&address);
        self.count.store(all.len(), Ordering::Release);
        drop(all);
        // SAFETY: nobody holds the block.
        let free = |_| unsafe { self.memory.pool.put_behind_all(address) };
        Some(self.context.enter().and_then(free))
    }

    /// Forgets every block, since the device is being reset.
    pub(super) fn forget(&self) {
        self.holders.lock().clear();
        self.count.store(0, Ordering::Release);
    }
}

/// The memory of one capture.
#[derive(Debug)]
pub(in crate::driver) struct GraphMemory {
    device: Arc<GraphBlocks>,
    epoch: u64,
    /// Blocks that were allocated or freed while it went on.
    blocks: Ranked<Vec<u64>, LEAF>,
    /// What its operations use, by the object's address.
    memory: Ranked<HashMap<usize, GraphHold>, KEPT>,
}

impl GraphMemory {
    pub(super) fn new(device: &Arc<GraphBlocks>) -> Arc<GraphMemory> {
        Arc::new(GraphMemory {
            device: device.clone(),
            epoch: device.context.epoch(),
            blocks: Ranked::default(),
            memory: Ranked::default(),
        })
    }

    /// Keeps a block that so many hold from now on.
    pub(super) fn hold(&self, address: u64, holders: u32) {
        self.blocks.lock().push(address);
        let mut all = self.device.holders.lock();
        all.insert(address, holders);
        self.device.count.store(all.len(), Ordering::Release);
    }

    /// Remembers what an operation uses.
    pub(super) fn add_uses(&self, uses: &[Use<'_>]) {
        let mut all = self.memory.lock();
        for &(memory, access) in uses {
            match all.entry(Arc::as_ptr(memory) as usize) {
                Entry::Occupied(mut known) => known.get_mut().add(access),
                Entry::Vacant(new) => drop(new.insert(GraphHold::new(memory, access))),
            }
        }
    }

    /// True if nothing but this keeps the stream that captures: its program has dropped it.
    pub(super) fn is_abandoned(&self, stream: u64) -> bool {
        let all = self.memory.lock();
        let references = all.values().find_map(|hold| hold.strong_count(stream));
        let own = || all.values().map(|hold| hold.sole_references(stream)).sum::<usize>();
        references.is_some_and(|references| references == own())
    }

    /// Everything that the captured work uses, once the capture has ended.
    pub(super) fn take_uses(&self) -> Vec<GraphHold> {
        std::mem::take(&mut *self.memory.lock()).into_values().collect()
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        if !self.device.context.is_alive(self.epoch) {
            return;
        }
        for address in std::mem::take(self.blocks.get_mut()) {
            // One that cannot be freed keeps none of the others.
            if let Some(Err(error)) = self.device.release_one(address) {
                log::warn!("freeing the memory of a capture failed: {error}");
            }
        }
    }
}

/// The state of the capture that a stream is part of, its number and its graph.
fn graph_of(context: &Context, stream: Handle) -> Option<Handle> {
    let info = context.driver.calls.capture_graph?;
    let (mut state, mut number, mut graph): (c_int, c_ulonglong, Handle) = (0, 0, 0);
    // SAFETY: the handle is a live stream; the results are written before the call returns, those
    // without a place not at all.
    let code = unsafe { info(stream, &mut state, &mut number, &mut graph, null_mut(), null_mut()) };
    (code == Status::SUCCESS && graph != 0).then_some(graph)
}

/// Has the graph of the capture that a stream is part of keep `kept`. False if the driver cannot
/// do that. The context is current.
pub(super) fn attach(context: &Context, stream: Handle, kept: &Arc<GraphMemory>) -> Result<bool> {
    let calls = &context.driver.calls;
    let (Some(create), Some(retain)) = (calls.user_object_create, calls.graph_retain) else {
        return Ok(false);
    };
    let Some(graph) = graph_of(context, stream) else { return Ok(false) };
    let data = Box::into_raw(Box::new(kept.clone())).cast::<c_void>();
    let mut object = 0;
    // SAFETY: the function takes the box when the last graph goes, once.
    let code = unsafe { create(&mut object, data, let_go, 1, NO_DESTRUCTOR_SYNC) };
    if code != Status::SUCCESS {
        // SAFETY: the driver did not take the box.
        drop(unsafe { Box::from_raw(data.cast::<Arc<GraphMemory>>()) });
        return Ok(false);
    }
    // SAFETY: both handles are live; the graph takes over the only reference.
    let code = unsafe { retain(graph, object, 1, MOVE) };
    if code != Status::SUCCESS {
        // The object, which nobody ends, keeps the memory for ever: better than too short.
        log::warn!("a graph does not take what it must keep: status {code}");
    }
    Ok(true)
}

/// Called by the driver when the last graph has gone, on a thread that must not call the driver:
/// another one lets the memory go.
unsafe extern "C" fn let_go(data: *mut c_void) {
    if process::is_exiting() {
        return;
    }
    let address = data as usize;
    let thread = std::thread::Builder::new().name("gpuarray graph".into());
    // SAFETY: the box was handed over when the object was made, once.
    let drop_kept = move || drop(unsafe { Box::from_raw(address as *mut Arc<GraphMemory>) });
    if let Err(error) = thread.spawn(drop_kept) {
        // Nothing is freed then, since the closure has only the address.
        log::warn!("no thread to free the memory of a graph: {error}");
    }
}
