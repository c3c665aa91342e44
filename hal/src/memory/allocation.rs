//! Device memory that the program can free explicitly: pitched rows, managed memory, and memory of another
//! process.

use super::{AccessGuard, DeviceMemory};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Access;
use crate::process;
use crate::properties::IpcHandle;
use crate::recording;
use crate::stream::{PrefetchTarget, Stream};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Waits for a device's work before memory that the work may use is freed. The inner error is from a lost device,
/// which does not work any longer.
///
/// # Errors
/// The device's refusal to wait, for example inside a kernel. Its work may continue, so the memory has to stay.
pub(crate) fn drain_for_end(device: &dyn Device) -> Result<Result<()>> {
    // The first call may report a failure of the work. After that, the device either waits or is lost.
    match device.drain().or_else(|_| device.drain()) {
        Err(error) if error.kind() != ErrorKind::DeviceLost => Err(error),
        waited => Ok(waited),
    }
}

/// The way in which a range is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Plain memory, allocated here, to be freed.
    Plain,
    /// Memory that host and device share, allocated here, to be freed.
    Managed,
    /// Memory opened from another process's handle, to be closed.
    Imported,
}

/// A range that the driver allocated or opened, to be freed or closed once.
struct Range {
    device: Arc<dyn Device>,
    address: u64,
    bytes: usize,
    origin: Origin,
    generation: u32,
    /// The device's epoch when the range was made. A reset destroys all memory of earlier epochs.
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
                // SAFETY: the range is freed only once.
                unsafe { self.device.free_detached(self.address) };
            }
            return Ok(());
        }
        match self.origin {
            Origin::Plain | Origin::Managed => {
                let freed = (self.address, self.bytes);
                // SAFETY: address and size belong to one allocation, which is freed only once; the device waits for
                // the work that uses it.
                recording::freed(self.device.id(), freed, || unsafe {
                    self.device.free(self.address, self.bytes)
                })
            }
            Origin::Imported => {
                let waited = drain_for_end(self.device.as_ref())
                    .inspect_err(|_| self.open.store(true, Ordering::Release))?;
                // SAFETY: the address belongs to one import, which is closed only once; no work is left.
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

/// Returns true if the owner of a memory is a range of plain memory.
pub(super) fn is_plain(owner: &(dyn Any + Send + Sync)) -> bool {
    owner.downcast_ref::<Arc<Range>>().is_some_and(|range| range.origin == Origin::Plain)
}

/// Device memory that can be freed explicitly, or else is freed with its last user. Freeing it waits for the
/// device.
///
/// [`Pitched`], [`Managed`] and [`Imported`] contain one.
///
/// Memory that the program frees although an array still refers to it:
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
    /// Declared before the range, because this keeps the range alive.
    memory: Arc<DeviceMemory>,
    range: Arc<Range>,
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocation({:?}, {:?})", self.memory, self.range.origin)
    }
}

impl Allocation {
    /// Takes ownership of a range that the device has just returned.
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
        // SAFETY: the range stays allocated until its value is dropped, and the memory keeps that value.
        let memory = unsafe {
            DeviceMemory::from_raw_parts(device, address, bytes, Box::new(range.clone()))
        };
        Allocation { memory: Arc::new(memory), range }
    }

    /// Returns the memory, for arrays and copies.
    pub fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Ends the device's use of the memory. The addresses stay allocated until [`Allocation::end`] is called or
    /// the object is dropped. Later uses return `InvalidHandle`.
    ///
    /// # Errors
    /// `InvalidHandle` if it was retired already, or while an
    /// [`AddressLease`](super::AddressLease) lives.
    pub fn retire(&self) -> Result<()> {
        self.memory.release()
    }

    /// Waits for the device's work, and then frees the addresses of retired memory. If a graph uses the memory, it
    /// is freed when both the graph and this object are gone.
    ///
    /// # Errors
    /// `InvalidHandle` if the addresses were already freed or the memory is not retired; the driver's error.
    pub fn end(&self) -> Result<()> {
        if self.memory.is_allocated() {
            return Err(Error::handle("free", "the memory is still in use"));
        }
        if self.memory.is_held_by_graph() {
            return Ok(());
        }
        self.range.end()
    }

    /// Frees the memory now, and waits for the work that uses it.
    ///
    /// # Errors
    /// As for [`Allocation::retire`] and [`Allocation::end`]. After an error of `end`, it can be called again.
    pub fn free(&self) -> Result<()> {
        if !self.is_ending() {
            self.retire()?;
        }
        self.end()
    }

    /// Returns true if the memory was retired but its addresses are not freed yet.
    pub fn is_ending(&self) -> bool {
        !self.memory.is_allocated() && self.range.open.load(Ordering::Acquire)
    }
}

/// Rows of device memory, each aligned for fast access: `cuMemAllocPitch`, `hipMemAllocPitch`.
///
/// An image whose rows each begin at an aligned address, as a strided array:
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
    /// `InvalidArgument` for an extent of zero or another element size; `OutOfMemory`.
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
        recording::allocated(device.id(), bytes, || Ok(address))?;
        Ok(Pitched { allocation: Allocation::adopt(device, address, bytes, Origin::Plain), pitch })
    }

    /// Returns the row pitch: the number of bytes from the start of one row to the start of the next.
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

/// Managed memory. Host and device share it, and it migrates to the side that accesses it (`cuMemAllocManaged`,
/// `hipMallocManaged`). After [`Device::reset`], its addresses hold the same bytes as ordinary memory, for the
/// host only (on Linux).
///
/// The host reads a stream's results without a copy:
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
    /// `InvalidArgument` for zero bytes; `Unsupported` if the device does not support managed memory;
    /// `OutOfMemory`.
    pub fn new(device: &Arc<dyn Device>, bytes: usize) -> Result<Managed> {
        positive("allocate_managed", "bytes", bytes)?;
        let allocate = || device.allocate_managed(bytes);
        let address = recording::allocated(device.id(), bytes, allocate)?;
        Ok(Managed { allocation: Allocation::adopt(device, address, bytes, Origin::Managed) })
    }

    /// Returns the base address. It is the same on host and device. Before reading or writing through it, wait for
    /// the work that uses the memory.
    pub fn pointer(&self) -> *mut u8 {
        self.allocation.memory.address() as *mut u8
    }

    /// Queues the migration of all bytes to the stream's device or to the host, after the work that uses them:
    /// `cuMemPrefetchAsync`, `hipMemPrefetchAsync`.
    ///
    /// # Errors
    /// `InvalidHandle` if the memory was freed; `Unsupported` if the driver cannot migrate it.
    pub fn prefetch(&self, stream: &Arc<dyn Stream>, to: PrefetchTarget) -> Result<()> {
        let memory = &self.allocation.memory;
        super::same_device(memory.device(), stream.as_ref())?;
        let _guard = AccessGuard::acquire(stream, &[(memory, Access::Read)])?;
        // SAFETY: the range is managed memory, which is freed after this use.
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

/// Memory that another process exported with [`Device::export_memory`]. It is closed when it is freed or dropped:
/// `cuIpcOpenMemHandle`, `hipIpcOpenMemHandle`.
///
/// Opening is `unsafe`, because other processes use the memory:
///
/// ```compile_fail,E0133
/// # use gpuarray::{Device, IpcHandle, Result, memory::Imported};
/// # use std::sync::Arc;
/// fn open(device: &Arc<dyn Device>, handle: &IpcHandle) -> Result<Imported> {
///     Imported::open(device, handle)
/// }
/// ```
///
/// A process can open another process's memory, but not its own:
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
    /// Opens the memory of a handle. If the driver cannot report the size of the memory, the size is 0 and the
    /// memory can only be used through its address.
    ///
    /// # Errors
    /// `Unsupported` if the device cannot share memory; the driver's error for an invalid handle.
    ///
    /// # Safety
    /// Until the memory is closed, no byte is written elsewhere while this object's work uses it, and no byte is
    /// used elsewhere while this object's work writes it. This applies to the exporting process, to other
    /// processes that opened the handle, and to other objects of this process that did, because each opening
    /// orders only its own uses. Order the others with interprocess events, or with messages after the work has
    /// run. The exporter keeps the memory allocated until then.
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
