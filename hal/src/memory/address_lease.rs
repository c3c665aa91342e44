//! Uses of memory by its address, which keep it allocated. Every export of memory to other libraries and
//! processes takes such a hold.

use super::{DeviceMemory, Owner, usage};
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No hold can be taken any longer.
const RELEASED: u32 = u32::MAX;

/// Keeps memory for a use by its address, which no stream knows of. As long as it lives, the memory
/// is neither freed nor handed out anew.
///
/// Memory is not freed while another library uses its address:
///
/// ```
/// use gpuarray::memory::DeviceMemory;
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let memory = Arc::new(DeviceMemory::plain(&device, 64)?);
/// let lease = memory.hold()?;
/// assert!(memory.release().is_err());
/// drop(lease);
/// memory.release()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AddressLease(Arc<DeviceMemory>);

impl Drop for AddressLease {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::Release);
    }
}

impl DeviceMemory {
    /// Returns a hold that keeps the memory allocated for uses by its address, which no stream
    /// knows of.
    ///
    /// # Errors
    /// `InvalidHandle` if it was freed already, or is plain memory of a parent process.
    pub fn hold(self: &Arc<Self>) -> Result<AddressLease> {
        if self.is_inherited() {
            self.check_inherited()?;
        }
        if let Owner::Whole(whole) = &self.owner {
            return whole.hold();
        }
        let more = |holds| if holds == RELEASED { None } else { Some(holds + 1) };
        self.holds
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .map_err(|_| usage::freed(self))?;
        Ok(AddressLease(self.clone()))
    }

    /// Lets no hold be taken from now on.
    ///
    /// # Errors
    /// `InvalidHandle` while one lives, or if this has been called.
    pub(super) fn end_holds(&self) -> Result<()> {
        let exchanged =
            self.holds.compare_exchange(0, RELEASED, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => Ok(()),
            Err(RELEASED) => Err(Error::handle("free", "the memory was freed already")),
            Err(holds) => Err(Error::handle(
                "free",
                format!(
                    "the memory at {:#x} is still used by its address: drop its exports first (buffers, arrays of \
                     other libraries, handles for other processes; {holds} in all)",
                    self.address
                ),
            )),
        }
    }
}
