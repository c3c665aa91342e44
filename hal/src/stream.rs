//! Streams: queues of work that a device runs in order.

use crate::device::DeviceId;
use crate::error::Result;
use crate::event::Event;
use crate::operation::Operation;
use std::any::Any;
use std::fmt::Debug;

/// How a stream is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// True if the stream and the default stream do not wait for each other.
    pub non_blocking: bool,
    /// Smaller numbers run first where the device distinguishes them.
    pub priority: i32,
}

/// Between which memories a transfer copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
    /// Inside one device.
    DeviceToDevice,
}

/// A copy of `depth * height` rows of `width` bytes; one row is a plain copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Between which memories.
    pub direction: Direction,
    /// Address of the first byte written.
    pub destination: u64,
    /// Address of the first byte read.
    pub source: u64,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice.
    pub height: usize,
    /// Slices.
    pub depth: usize,
    /// Bytes from one row written to the next.
    pub destination_pitch: usize,
    /// Bytes from one row read to the next.
    pub source_pitch: usize,
    /// Bytes from one slice written to the next.
    pub destination_slice: usize,
    /// Bytes from one slice read to the next.
    pub source_slice: usize,
    /// True if the call returns only when the bytes have arrived.
    pub wait: bool,
}

impl Transfer {
    /// A plain copy of `bytes` bytes.
    pub const fn linear(
        direction: Direction,
        destination: u64,
        source: u64,
        bytes: usize,
        wait: bool,
    ) -> Self {
        Transfer {
            direction,
            destination,
            source,
            width: bytes,
            height: 1,
            depth: 1,
            destination_pitch: bytes,
            source_pitch: bytes,
            destination_slice: bytes,
            source_slice: bytes,
            wait,
        }
    }
}

/// A queue of work that a device runs in order. Every method may be called from any thread.
///
/// Calls that queue work return when it is queued, unless their documentation says that they
/// wait; a failure of queued work is reported by a later call.
pub trait Stream: Send + Sync + Debug {
    /// A number that no other stream of this process has or had.
    fn id(&self) -> u64;

    /// The device it belongs to.
    fn device_id(&self) -> DeviceId;

    /// The driver's handle; 0 for the default stream.
    fn handle(&self) -> u64;

    /// True once all work queued so far has run.
    fn query(&self) -> Result<bool>;

    /// Waits until all work queued so far has run.
    fn synchronize(&self) -> Result<()>;

    /// Marks this place in the stream's work.
    fn record(&self, event: &dyn Event) -> Result<()>;

    /// Work queued from now on runs after the work before the event's mark.
    fn wait_event(&self, event: &dyn Event) -> Result<()>;

    /// Runs a function on a thread of the host when all work queued so far has run. It must
    /// not call the device.
    fn host_function(&self, function: Box<dyn FnOnce() + Send>) -> Result<()>;

    /// Allocates memory for work that is queued on this stream from now on.
    ///
    /// # Errors
    /// `OutOfMemory` that says how much was asked, is used and is available.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees what [`Stream::allocate`] gave once the work queued so far has run.
    ///
    /// # Safety
    /// `address` and `bytes` are those of one call to `allocate` on a stream of this device,
    /// not freed since; other streams' work that uses the memory is ordered before this.
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()>;

    /// Queues a copy.
    ///
    /// # Safety
    /// Every byte that the transfer names is allocated, on the side that the direction says,
    /// until the copy has run, and nothing else accesses those bytes meanwhile.
    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()>;

    /// Queues a fill of `count` elements of `width` bytes (1, 2 or 4) with the lowest bytes
    /// of `value`.
    ///
    /// # Errors
    /// `InvalidArgument` for another width or an address that is no multiple of it.
    ///
    /// # Safety
    /// As for [`Stream::transfer`].
    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()>;

    /// Queues a builtin operation.
    ///
    /// # Safety
    /// The operation is as [`crate::operation`] demands, and its addresses stay allocated
    /// until it has run.
    unsafe fn execute(&self, operation: &Operation) -> Result<()>;

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}
