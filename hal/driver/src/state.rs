//! The objects that a device owns in addition to its context, and their end in a reset.

use crate::builtin::{BlasHandle, Builtins};
use crate::context::{Contents, Context};
use crate::memory::DeviceAllocator;
use crate::open_captures::OpenCaptures;
use crate::pages::ManagedRanges;
use crate::staging::Staging;
use hal::error::Result;
use hal::stream::unique_id;
use std::sync::Arc;

/// The memory, the loaded builtin kernels, the staging threads and the captures of one device. Each refers to the
/// context, which is released with the last of them.
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
    /// Returns the state of an unused device.
    pub(super) fn new(context: Context) -> Arc<DeviceState> {
        let context = Arc::new(context);
        let memory = Arc::new(DeviceAllocator::new(&context));
        let contents: Arc<dyn Contents> = memory.clone();
        context.on_loss(Arc::downgrade(&contents));
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

    /// Releases unused memory until the driver's pool holds at most `keep` bytes. If `keep` is 0, also releases
    /// the memory of the streams' lists and of staging.
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
                // Immediately, before anything else is mapped at these addresses.
                self.managed.restore(managed);
                self.memory.pool.free_left(&left);
            }
        })
    }
}
