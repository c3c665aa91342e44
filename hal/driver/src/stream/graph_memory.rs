//! How a driver's graph keeps the memory of a capture that another library began: by a user object,
//! which the driver hands on to every executable graph, and ends with the last of them.

use crate::calls::Handle;
use crate::context::Context;
use crate::memory::DeviceAllocator;
use hal::error::Result;
use hal::memory::{BlockOwner, CapturedMemory};
use hal::process;
use hal::status::Status;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

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
    // SAFETY: the function takes the box when the last graph goes, once.
    let code = unsafe { create(&mut object, data, let_go, 1, NO_DESTRUCTOR_SYNC) };
    if code != Status::SUCCESS {
        // SAFETY: the driver did not take the box.
        drop(unsafe { Box::from_raw(data.cast::<Arc<CapturedMemory>>()) });
        return Ok(false);
    }
    let _adding = context.capture_state.adding();
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
    let drop_kept = move || drop(unsafe { Box::from_raw(address as *mut Arc<CapturedMemory>) });
    if let Err(error) = thread.spawn(drop_kept) {
        // Nothing is freed then, since the closure has only the address.
        log::warn!("no thread to free the memory of a graph: {error}");
    }
}
