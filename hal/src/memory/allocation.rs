//! Device memory that has an end of its own: rows with a pitch, memory that host and device share,
//! memory of another process.

use super::{AccessGuard, DeviceMemory};
use crate::device::{Device, IpcHandle};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Access;
use crate::process;
use crate::stream::{PrefetchTarget, Stream};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Waits for the work of a device before what the work may use ends. The inner result is of a device that
/// is lost, and does no work any longer.
///
/// # Errors
/// The device's refusal to wait: as inside a kernel, whose work may go on. What the work uses has to stay.
pub(crate) fn drain_for_end(device: &dyn Device) -> Result<Result<()>> {
    // A failure of the work is reported once; then the device waits, or is lost.
    match device.drain().or_else(|_| device.drain()) {
        Err(error) if error.kind() != ErrorKind::DeviceLost => Err(error),
        waited => Ok(waited),
    }
}

/// How a range ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Plain memory, allocated here, to be freed.
    Plain,
    /// Memory that host and device share, allocated here, to be freed.
    Managed,
    /// Opened from another process's handle, to be closed.
    Imported,
}

/// A range that the driver allocated or opened, to be freed or closed once.
struct Range {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
    origin: Origin,
    generation: u32,
    /// The device's when the range was made: a reset takes what is in its memory.
    epoch: u64,
    open: AtomicBool,
}

impl Range {
    fn end(&self) -> Result<()> {
        if !self.open.swap(false, Ordering::AcqRel) {
            return Err(Error::handle("free", "the memory was freed already"));
        }
        if process::is_exiting() || self.generation != process::generation() {
            return Ok(());
        }
        if self.epoch != self.device.epoch() {
            if self.origin == Origin::Managed {
                // SAFETY: the range ends once.
                unsafe { self.device.free_detached(self.address) };
            }
            return Ok(());
        }
        match self.origin {
            // SAFETY: address and size are those of one allocation, which ends once; the
            // device waits for the work that uses it.
            Origin::Plain | Origin::Managed => unsafe {
                self.device.free(self.address, self.bytes)
            },
            Origin::Imported => {
                let waited = drain_for_end(self.device.as_ref())
                    .inspect_err(|_| self.open.store(true, Ordering::Release))?;
                // SAFETY: the address is that of one import, which ends once; no work is left.
                let closed = unsafe { self.device.close_imported(self.address) };
                waited.and(closed)
            }
        }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        let same = || Range { device: self.device.clone(), open: AtomicBool::new(true), ..*self };
        if *self.open.get_mut() && !super::is_left(self.device.id(), same) {
            super::note_failed_free("device memory", self.end());
        }
    }
}

/// True if what keeps a memory is a range of plain memory.
pub(super) fn is_plain(owner: &(dyn Any + Send + Sync)) -> bool {
    owner.downcast_ref::<Arc<Range>>().is_some_and(|range| range.origin == Origin::Plain)
}

/// Device memory whose end waits for the device: when it is told to, or with its last user.
///
/// [`Pitched`], [`Managed`] and [`Imported`] are made of one.
///
/// Memory that ends when the program says so, although an array still refers to it:
///
/// ```
/// use gpuarray::{ErrorKind, memory::{Allocation, Managed}};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let allocation: Allocation = Managed::new(&device, 4096)?.into_allocation();
/// let memory = allocation.memory().clone();
/// allocation.free()?;
/// assert_eq!(memory.check().unwrap_err().kind(), ErrorKind::InvalidHandle);
/// # Ok(())
/// # }
/// ```
pub struct Allocation {
    /// In front of the range, which it keeps.
    memory: Arc<DeviceMemory>,
    range: Arc<Range>,
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocation({:?}, {:?})", self.memory, self.range.origin)
    }
}

impl Allocation {
    /// Takes over a range that the device has just returned.
    fn adopt(device: &Arc<dyn Device>, address: u64, bytes: usize, origin: Origin) -> Allocation {
        let range = Arc::new(Range {
            device: device.clone(),
            address,
            bytes,
            origin,
            generation: process::generation(),
            epoch: device.epoch(),
            open: AtomicBool::new(true),
        });
        // SAFETY: the range is allocated until its value goes, which the memory keeps.
        let memory = unsafe {
            DeviceMemory::from_raw_parts(device, address, bytes, Box::new(range.clone()))
        };
        Allocation { memory: Arc::new(memory), range }
    }

    /// Returns the memory, for arrays and copies.
    pub fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Ends the device's use of the memory; the addresses stay allocated until [`Allocation::end`] or
    /// until the object is dropped. Later uses return `InvalidHandle`.
    ///
    /// # Errors
    /// `InvalidHandle` if it was retired already, or while an
    /// [`AddressLease`](super::AddressLease) lives.
    pub fn retire(&self) -> Result<()> {
        self.memory.release()
    }

    /// Frees the addresses of memory that was retired, once the device's work has run; waits for
    /// that. While a graph uses the memory, the last of graph and object frees it instead.
    ///
    /// # Errors
    /// `InvalidHandle` if they were freed already or the memory is not retired; the driver's error.
    pub fn end(&self) -> Result<()> {
        if self.memory.is_allocated() {
            return Err(Error::handle("free", "the memory is still in use"));
        }
        if self.memory.is_held_by_graph() {
            return Ok(());
        }
        self.range.end()
    }

    /// Frees the memory now, behind the work that uses it; waits for that.
    ///
    /// # Errors
    /// As for [`Allocation::retire`] and [`Allocation::end`]. After an error of the latter it can be called again.
    pub fn free(&self) -> Result<()> {
        if !self.is_ending() {
            self.retire()?;
        }
        self.end()
    }

    /// True if the memory was retired, and its addresses are still to be freed.
    pub fn is_ending(&self) -> bool {
        !self.memory.is_allocated() && self.range.open.load(Ordering::Acquire)
    }
}

/// Rows of device memory, each aligned for fast access: `cuMemAllocPitch`, `hipMemAllocPitch`.
///
/// An image of rows that each begin at an aligned address, as a strided array:
///
/// ```
/// use gpuarray::{Array, DType, Layout, memory::Pitched};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let rows = Pitched::new(&device, 100 * 4, 3, 4)?;
/// let layout = Layout::with_strides(&[3, 100], &[rows.pitch() as isize, 4], 0, 4)?;
/// let memory = rows.allocation().memory().clone();
/// let image = Array::from_memory(memory, layout, DType::Float32, device.default_stream())?;
/// assert!(rows.pitch() >= 400);
/// assert_eq!(image.shape(), [3, 100]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pitched {
    allocation: Allocation,
    pitch: usize,
}

impl Pitched {
    /// Allocates `height` rows of `width` bytes for elements of `element` bytes (4, 8 or 16).
    ///
    /// # Errors
    /// `InvalidArgument` for an extent of zero or another element; `OutOfMemory`.
    pub fn new(
        device: &Arc<dyn Device>,
        width: usize,
        height: usize,
        element: usize,
    ) -> Result<Pitched> {
        for (name, extent) in [("width", width), ("height", height)] {
            positive("allocate_pitched", name, extent)?;
        }
        let (address, pitch) = device.allocate_pitched(width, height, element)?;
        let bytes = pitch.saturating_mul(height);
        Ok(Pitched { allocation: Allocation::adopt(device, address, bytes, Origin::Plain), pitch })
    }

    /// Returns the row pitch: bytes from the start of a row to that of the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// Returns the memory of all rows.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Returns the memory of all rows, without the pitch.
    pub fn into_allocation(self) -> Allocation {
        self.allocation
    }
}

/// Memory that host and device share, and that moves to whoever touches it:
/// `cuMemAllocManaged`, `hipMallocManaged`. After [`Device::reset`] its addresses hold the same bytes, in ordinary
/// memory, for the host alone (on Linux).
///
/// The host reads what a stream has filled, without a copy:
///
/// ```
/// use gpuarray::memory::{Access, AccessGuard, Managed};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.default_stream();
/// let managed = Managed::new(&device, 16)?;
/// let memory = managed.allocation().memory();
/// let guard = AccessGuard::acquire(&stream, &[(memory, Access::Write)])?;
/// // SAFETY: the memory has 16 bytes, and the guard orders the fill.
/// unsafe { stream.fill(memory.address(), 7, 1, 16)? };
/// drop(guard);
/// stream.synchronize()?;
/// // SAFETY: no work uses the memory any longer.
/// assert_eq!(unsafe { std::slice::from_raw_parts(managed.pointer(), 16) }, [7; 16]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Managed {
    allocation: Allocation,
}

impl Managed {
    /// Allocates `bytes` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for zero bytes; `Unsupported` where the device has no managed memory;
    /// `OutOfMemory`.
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Managed> {
        positive("allocate_managed", "bytes", bytes)?;
        let address = device.allocate_managed(bytes)?;
        Ok(Managed { allocation: Allocation::adopt(device, address, bytes, Origin::Managed) })
    }

    /// Returns the base address on the host, which is that on the device, too. Whoever reads or
    /// writes through it waits first for the work that uses the memory.
    pub fn pointer(&self) -> *mut u8 {
        self.allocation.memory.address() as *mut u8
    }

    /// Queues the move of all bytes to the stream's device or to the host, behind the work that
    /// uses them: `cuMemPrefetchAsync`, `hipMemPrefetchAsync`.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed; `Unsupported` where the driver cannot move it.
    pub fn prefetch(&self, stream: &Arc<dyn Stream>, to: PrefetchTarget) -> Result<()> {
        let memory = &self.allocation.memory;
        super::same_device(memory.device(), stream.as_ref())?;
        let _guard = AccessGuard::acquire(stream, &[(memory, Access::Read)])?;
        // SAFETY: the range is managed memory, which is freed behind this use.
        unsafe { stream.prefetch(memory.address(), memory.bytes(), to) }
    }

    /// Returns the memory.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Returns the memory as an ordinary allocation, for arrays and copies.
    pub fn into_allocation(self) -> Allocation {
        self.allocation
    }
}

/// Memory that another process exported with [`Device::export_memory`]; closed at the end:
/// `cuIpcOpenMemHandle`, `hipIpcOpenMemHandle`.
///
/// Opening is `unsafe`, since other processes use the memory:
///
/// ```compile_fail,E0133
/// # use gpuarray::{Device, IpcHandle, Result, memory::Imported};
/// # use std::sync::Arc;
/// fn open(device: &Arc<dyn Device>, handle: &IpcHandle) -> Result<Imported> {
///     Imported::open(device, handle)
/// }
/// ```
///
/// A process opens what another one has sent, and is refused its own memory:
///
/// ```
/// use gpuarray::memory::{DeviceMemory, Imported};
/// use gpuarray::{ErrorKind, IpcHandle};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let memory = Arc::new(DeviceMemory::plain(&device, 1 << 16)?);
/// let message: [u8; 64] = device.export_memory(memory.address())?.0;
/// // SAFETY: nobody writes the memory until the end.
/// let opened = unsafe { Imported::open(&device, &IpcHandle(message)) };
/// assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidArgument);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Imported {
    allocation: Allocation,
}

impl Imported {
    /// Opens the memory of a handle. Where the driver does not tell its size, that is 0, and the
    /// memory serves by its address alone.
    ///
    /// # Errors
    /// `Unsupported` where the device shares none; the driver's error for a handle that is none.
    ///
    /// # Safety
    /// Until the memory is closed, nobody writes a byte of it while this object's work uses the byte, and nobody
    /// uses a byte while this object's work writes it. This concerns the exporting process, other processes
    /// that opened the handle, and other objects of this process that did: each opening orders its own uses only.
    /// Order the others by interprocess events, or by messages after the work has run.
    /// The exporter keeps the memory allocated until then.
    pub unsafe fn open(device: &Arc<dyn Device>, handle: &IpcHandle) -> Result<Imported> {
        let address = device.import_memory(handle)?;
        let bytes = device
            .address_range(address)
            .map_or(0, |(start, bytes)| (start + bytes as u64).saturating_sub(address) as usize);
        Ok(Imported { allocation: Allocation::adopt(device, address, bytes, Origin::Imported) })
    }

    /// Returns the memory.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Returns the memory as an ordinary allocation, for arrays and copies.
    pub fn into_allocation(self) -> Allocation {
        self.allocation
    }
}

fn positive(call: &'static str, name: &str, value: usize) -> Result<()> {
    match value {
        0 => Err(Error::invalid(call, format!("{name} is 0; at least 1 is needed"))),
        _ => Ok(()),
    }
}
