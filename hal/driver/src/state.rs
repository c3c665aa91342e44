//! What a device owns besides its context, and how all of it ends with a reset.

use super::blas::BlasHandle;
use super::builtin::Builtins;
use super::context::Context;
use super::managed::ManagedRanges;
use super::memory::DeviceAllocator;
use super::staging::Staging;
use super::stream::open_captures::OpenCaptures;
use hal::error::Result;
use hal::stream::unique_id;
use std::sync::Arc;

/// The memory, the loaded builtin kernels, the staging threads and the captures of one device.
/// Each knows the context, which is released when the last of them has gone.
#[derive(Debug)]
pub(super) struct DeviceState {
    pub(super) context: Arc<Context>,
    /// [`Stream::id`](hal::stream::StreamCore::id) of the default stream.
    pub(super) default_stream_id: u64,
    pub(super) memory: Arc<DeviceAllocator>,
    pub(super) managed: ManagedRanges,
    pub(super) builtins: Builtins,
    pub(super) blas: BlasHandle,
    pub(super) staging: Staging,
    pub(super) open_captures: OpenCaptures,
}

impl DeviceState {
    /// The state of a device on which nothing has run.
    pub(super) fn new(context: Context) -> Arc<DeviceState> {
        let context = Arc::new(context);
        let memory = Arc::new(DeviceAllocator::new(&context));
        context.on_loss(Arc::downgrade(&memory));
        Arc::new(DeviceState {
            builtins: Builtins::new(&context),
            blas: BlasHandle::default(),
            managed: ManagedRanges::default(),
            staging: Staging::new(&context),
            open_captures: OpenCaptures::new(&context, &memory),
            memory,
            default_stream_id: unique_id(),
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
            forgotten = Some(self.open_captures.forget());
            let managed = self.managed.save();
            move || {
                // At once, before something else is mapped there.
                self.managed.restore(managed);
                self.memory.pool.free_left(&left);
            }
        })
    }
}
