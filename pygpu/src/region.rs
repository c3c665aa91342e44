//! Device memory that is made otherwise than by the core's `DeviceMemory`: rows with a pitch,
//! memory shared with the host, memory of another process.

use gpuarray::memory::DeviceMemory;
use gpuarray::{Device, Error, Result, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a region ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Allocated here, to be freed.
    Allocated,
    /// Opened from another process's handle, to be closed.
    Imported,
}

/// A range of device memory that ends when it is told to, or with its last user.
pub(crate) struct Region {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
    origin: Origin,
    generation: u32,
    /// The device's when the range was made: a reset takes what is in its memory.
    epoch: u64,
    open: AtomicBool,
}

impl Region {
    /// Takes over a range that the device has just given, as memory that operations can use.
    pub(crate) fn adopt(
        device: &Arc<dyn Device>,
        address: u64,
        bytes: usize,
        origin: Origin,
    ) -> (Arc<DeviceMemory>, Arc<Region>) {
        let region = Arc::new(Region {
            device: device.clone(),
            address,
            bytes,
            origin,
            generation: process::generation(),
            epoch: device.epoch(),
            open: AtomicBool::new(true),
        });
        // SAFETY: the range is the region's, which the memory keeps.
        let memory =
            unsafe { DeviceMemory::foreign(device, address, bytes, Box::new(region.clone())) };
        (Arc::new(memory), region)
    }

    /// Ends the region now. Waits for the work that uses it.
    ///
    /// # Errors
    /// `InvalidHandle` if it has ended already.
    pub(crate) fn end(&self) -> Result<()> {
        if !self.open.swap(false, Ordering::AcqRel) {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        if process::is_exiting()
            || self.generation != process::generation()
            || self.epoch != self.device.epoch()
        {
            return Ok(());
        }
        match self.origin {
            // SAFETY: address and size are those of one allocation, which ends once; the
            // device waits for the work that uses it.
            Origin::Allocated => unsafe { self.device.free(self.address, self.bytes) },
            Origin::Imported => {
                // Where waiting fails, the context does no work any longer.
                let waited = self.device.synchronize();
                // SAFETY: the address is that of one import, which ends once; no work is left.
                let closed = unsafe { self.device.close_imported(self.address) };
                waited.and(closed)
            }
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if *self.open.get_mut()
            && let Err(error) = self.end()
        {
            log::warn!("freeing device memory failed: {error}");
        }
    }
}
