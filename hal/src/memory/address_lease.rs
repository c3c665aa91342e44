//! Leases: they keep memory allocated while other code uses it by its address. Every export of memory to other
//! libraries and processes takes a lease.

use crate::error::{Error, Result};
use crate::memory::{Access, DeviceMemory, Owner, usage};
use crate::{interruption, nonblocking, submission};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No further lease can be taken.
const RELEASED: u32 = u32::MAX;

/// Keeps memory allocated while something uses it by its address, because no stream tracks such a use. While
/// the lease lives, the memory is neither freed nor reused.
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
/// let lease = memory.lease()?;
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
        self.0.leases.fetch_sub(1, Ordering::Release);
    }
}

impl DeviceMemory {
    /// Returns a lease that keeps the memory allocated while something uses it by its address.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was already freed, or is plain memory of a parent process.
    pub fn lease(self: &Arc<Self>) -> Result<AddressLease> {
        if self.is_inherited() {
            self.check_inherited()?;
        }
        if let Owner::Whole(whole) = &self.owner {
            return whole.lease();
        }
        let more = |leases| if leases == RELEASED { None } else { Some(leases + 1) };
        self.leases
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, more)
            .map_err(|_| usage::freed(self))?;
        let lease = AddressLease(self.clone());
        // After the lease began: from then on, no work that reads the memory is deferred.
        self.queue_deferred()?;
        Ok(lease)
    }

    /// Prevents further leases.
    ///
    /// # Errors
    /// `InvalidHandle` while a lease lives, or if this has been called before.
    pub(super) fn end_leases(&self) -> Result<()> {
        let exchanged =
            self.leases.compare_exchange(0, RELEASED, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => Ok(()),
            Err(RELEASED) => Err(Error::handle("free", "the memory was freed already")),
            Err(leases) => Err(Error::handle(
                "free",
                format!(
                    "the memory at {:#x} is still used by its address: drop its exports first (buffers, arrays of \
                     other libraries, handles for other processes; {leases} in all)",
                    self.address
                ),
            )),
        }
    }
}

// Uses of memory by the host through its address, which exclude the work of streams.

/// Keeps streams from using memory that the host reads or writes through its address, such as managed memory. While it
/// lives, conflicting operations fail, and the memory is not freed.
///
/// The host may read while streams read:
///
/// ```
/// use gpuarray::{ErrorKind, memory::{Access, AccessGuard, Managed}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let managed = Managed::new(&device, 16)?;
/// let (memory, stream) = (managed.allocation().memory(), device.default_stream());
/// let reads = memory.access_from_host(Access::Read)?;
/// assert!(AccessGuard::acquire(&stream, &[(memory, Access::Read)]).is_ok());
/// let refused = AccessGuard::acquire(&stream, &[(memory, Access::Write)]);
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
/// drop(reads);
/// assert!(AccessGuard::acquire(&stream, &[(memory, Access::Write)]).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HostAccess {
    memory: Arc<DeviceMemory>,
    access: Access,
    /// Dropped last.
    _lease: AddressLease,
}

impl Drop for HostAccess {
    fn drop(&mut self) {
        self.memory.whole().usage.leave_host(self.access);
    }
}

impl DeviceMemory {
    /// Begins a use of the memory by the host, and waits for the work that conflicts with it. With
    /// [`Access::Write`], all operations then fail until the object is dropped; with [`Access::Read`], only
    /// those that write. This applies to the whole memory, even if called on a part.
    ///
    /// # Errors
    /// `InvalidArgument` while the host already uses the memory (except that several may read), inside a host
    /// function, and while this thread has an [`AccessGuard`](super::AccessGuard) for it; `InvalidHandle` if the
    /// memory was freed, or belongs to a parent process; a failure of the work that was waited for.
    pub fn access_from_host(self: &Arc<Self>, access: Access) -> Result<HostAccess> {
        nonblocking::before_waiting()?;
        interruption::before_waiting("memory")?;
        submission::outside_guards("memory")?;
        self.check()?;
        if self.is_inherited() {
            let detail = "the memory was allocated by a parent process; allocate it in this one";
            return Err(Error::handle("memory", detail));
        }
        let lease = self.lease()?;
        let streams = self.whole().usage.enter_host(self, access)?;
        let begun = HostAccess { memory: self.clone(), access, _lease: lease };
        for stream in streams {
            // Captured work does not run, so it cannot be waited for.
            match stream.is_capturing()? {
                true => stream.check_before_capture()?,
                false => stream.synchronize()?,
            }
        }
        Ok(begun)
    }
}
