//! What a device owns besides its context, and how all of it ends with a reset.

use super::builtin::Builtins;
use super::context::Context;
use super::memory::DeviceMemory;
use super::staging::Staging;
use super::stream::captures::Captures;
use crate::error::Result;
use std::sync::Arc;

/// The memory, the loaded builtin kernels, the staging threads and the captures of one device.
/// Each knows the context, which is released when the last of them has gone.
#[derive(Debug)]
pub(super) struct DeviceState {
    pub(super) context: Arc<Context>,
    pub(super) memory: Arc<DeviceMemory>,
    pub(super) builtins: Builtins,
    pub(super) staging: Staging,
    pub(super) captures: Captures,
}

impl DeviceState {
    /// The state of a device on which nothing has run.
    pub(super) fn new(context: Context) -> Arc<DeviceState> {
        let context = Arc::new(context);
        let memory = Arc::new(DeviceMemory::new(&context));
        Arc::new(DeviceState {
            builtins: Builtins::new(&context),
            staging: Staging::new(&context),
            captures: Captures::new(&context, &memory),
            memory,
            context,
        })
    }

    /// Gives unused memory back until the driver's pool holds at most `keep` bytes; with 0 that of
    /// the streams' lists and of staging, too.
    pub(super) fn trim(&self, keep: usize) -> Result<()> {
        if keep > 0 {
            return self.memory.pool.trim(keep);
        }
        self.staging.release();
        self.memory.give_all_back()
    }

    /// Destroys everything in the context; the next call opens a new one.
    pub(super) fn reset(&self) -> Result<()> {
        // Dropped outside the context's lock.
        let mut forgotten = None;
        self.context.reset(|| {
            let left = self.memory.end();
            self.staging.close();
            self.builtins.forget();
            forgotten = Some(self.captures.forget());
            move || self.memory.pool.free_left(&left)
        })
    }
}
