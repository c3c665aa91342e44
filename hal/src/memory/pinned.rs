//! Host memory that devices copy to and from at full speed.

use super::{is_left, note_failed_free};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::process;
use crate::properties::PinnedOptions;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Page-locked host memory, zeroed when it is allocated. After a reset of the device, it is ordinary memory with
/// the same bytes.
///
/// Bytes that devices copy at full speed, read and written as a slice:
///
/// ```
/// use gpuarray::memory::PinnedMemory;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut memory = PinnedMemory::new(&device, 8)?;
/// memory[..2].copy_from_slice(&[1, 2]);
/// assert_eq!(memory[..], [1, 2, 0, 0, 0, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
pub struct PinnedMemory {
    device: Arc<dyn Device>,
    pointer: *mut u8,
    bytes: usize,
    generation: u32,
}

// SAFETY: the object owns the bytes it points to; shared references only read them.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// Allocates `bytes` bytes.
    ///
    /// # Errors
    /// `OutOfMemory` if not enough memory is available.
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<PinnedMemory> {
        Self::with_options(device, bytes, PinnedOptions { portable: true, ..Default::default() })
    }

    /// Allocates `bytes` bytes with the given options.
    ///
    /// # Errors
    /// `OutOfMemory` if not enough memory is available.
    pub fn with_options(
        device: &Arc<dyn Device>,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<PinnedMemory> {
        let generation = process::generation();
        let pointer = if bytes == 0 {
            std::ptr::dangling_mut()
        } else {
            let pointer = device.allocate_pinned(bytes, options)?;
            // SAFETY: the allocation has this size, and nothing else refers to it yet.
            unsafe { pointer.write_bytes(0, bytes) };
            pointer
        };
        Ok(PinnedMemory { device: device.clone(), pointer, bytes, generation })
    }

    /// Returns the device that the memory was allocated for.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the address of the first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

impl Deref for PinnedMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the object owns this many initialised bytes.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }
}

impl DerefMut for PinnedMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the object owns this many initialised bytes, and is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

impl fmt::Debug for PinnedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedMemory({} bytes)", self.bytes)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        if self.bytes == 0
            || process::is_exiting()
            || self.generation != process::generation()
            || is_left(self.device.id(), || PinnedMemory { device: self.device.clone(), ..*self })
        {
            return;
        }
        // SAFETY: pointer and size belong to the allocation, which ends here; only unsafe calls make transfers
        // that outlive a borrow.
        note_failed_free("pinned memory", unsafe {
            self.device.free_pinned(self.pointer, self.bytes)
        });
    }
}

/// Host memory of the program, page-locked while this object lives.
///
/// A program's own buffer, page-locked for many copies:
///
/// ```
/// use gpuarray::memory::RegisteredMemory;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let mut frame = vec![0u8; 1 << 16];
/// // SAFETY: the object is dropped before the vector.
/// let registered = unsafe { RegisteredMemory::new(&device, &mut frame)? };
/// assert_ne!(device.pinned_address(registered.pointer())?, 0);
/// drop(registered);
/// frame[0] = 1;
/// # Ok(())
/// # }
/// ```
pub struct RegisteredMemory<'a> {
    device: Arc<dyn Device>,
    pointer: *mut u8,
    bytes: usize,
    generation: u32,
    epoch: u64,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: the object represents an exclusive borrow of plain bytes.
unsafe impl Send for RegisteredMemory<'_> {}
// SAFETY: as above.
unsafe impl Sync for RegisteredMemory<'_> {}

impl<'a> RegisteredMemory<'a> {
    /// Page-locks a slice.
    ///
    /// # Errors
    /// `InvalidArgument` if it is empty; the driver's error if it overlaps a range that is
    /// registered already.
    ///
    /// # Safety
    /// The object is dropped before the slice's memory is freed: forgetting it
    /// ([`std::mem::forget`]) ends the borrow and leaves the registration.
    pub unsafe fn new(
        device: &Arc<dyn Device>,
        memory: &'a mut [u8],
    ) -> Result<RegisteredMemory<'a>> {
        // SAFETY: the slice is borrowed while the object lives, and the caller promises to drop the object.
        unsafe {
            Self::from_raw(device, memory.as_mut_ptr(), memory.len(), PinnedOptions::default())
        }
    }

    /// Page-locks a range of memory.
    ///
    /// # Errors
    /// As for [`RegisteredMemory::new`].
    ///
    /// # Safety
    /// The range stays allocated while the object lives.
    pub unsafe fn from_raw(
        device: &Arc<dyn Device>,
        pointer: *mut u8,
        bytes: usize,
        options: PinnedOptions,
    ) -> Result<RegisteredMemory<'a>> {
        if bytes == 0 || pointer.is_null() {
            return Err(Error::invalid(
                "register_host",
                format!(
                    "the range has size {bytes} at {pointer:p}; a size above 0 and an address \
                     other than null are needed"
                ),
            ));
        }
        let generation = process::generation();
        // SAFETY: the caller's promise.
        unsafe { device.register_host(pointer, bytes, options)? };
        let (epoch, borrowed) = (device.epoch(), PhantomData);
        Ok(RegisteredMemory { device: device.clone(), pointer, bytes, generation, epoch, borrowed })
    }

    /// Returns the address of the first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for RegisteredMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegisteredMemory({} bytes)", self.bytes)
    }
}

impl Drop for RegisteredMemory<'_> {
    fn drop(&mut self) {
        if process::is_exiting()
            || self.generation != process::generation()
            || self.device.epoch() != self.epoch
        {
            return;
        }
        // SAFETY: this object registered the range; only unsafe calls make transfers that outlive a borrow.
        note_failed_free("registered memory", unsafe { self.device.unregister_host(self.pointer) });
    }
}
