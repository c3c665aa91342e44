//! Streams: queues of work that a device runs in order.

use crate::device::{Device, DeviceId};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::memory::Use;
use crate::operation::Operation;
use crate::status::Status;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The number of streams that may capture now: those that have captured, and those whose handle
/// other libraries know. 0 in most programs, which then pay one load for an operation.
static MAY_CAPTURE: AtomicUsize = AtomicUsize::new(0);

/// True if a stream of this process may capture.
#[inline]
pub(crate) fn some_may_capture() -> bool {
    MAY_CAPTURE.load(Ordering::Relaxed) > 0
}

/// Counts a stream that may capture, until the value is dropped.
#[derive(Debug)]
pub(crate) struct MayCapture(());

impl MayCapture {
    pub(crate) fn new() -> MayCapture {
        MAY_CAPTURE.fetch_add(1, Ordering::AcqRel);
        MayCapture(())
    }
}

impl Drop for MayCapture {
    fn drop(&mut self) {
        MAY_CAPTURE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A number for [`Stream::id`] that no stream of this process has or had.
pub fn unique_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

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
    /// True if the call returns only when the bytes have arrived. If it fails, too, nothing reads
    /// or writes the host's bytes once it has returned.
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

/// Where managed memory is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchTarget {
    /// The device of the stream.
    Device,
    /// The host.
    Host,
}

/// What other threads may do while a stream captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// No thread may make a call that a capture cannot have.
    Global,
    /// This thread may not; others are free.
    #[default]
    ThreadLocal,
    /// Every thread may.
    Relaxed,
}

/// Recorded work that can be launched again and again.
pub trait Graph: Send + Sync + Debug {
    /// The number of recorded nodes.
    fn node_count(&self) -> usize;

    /// Queues all of the recorded work, behind other streams' work on the memory that it uses.
    /// The graph keeps that memory; launches from several threads come one after another.
    ///
    /// # Safety
    /// Memory that the recorded work uses by its address alone is allocated until it has run, and
    /// nothing else accesses it meanwhile. So is the memory of work that another thread queued on
    /// the stream while the recording began: whether the graph keeps it is not known.
    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()>;

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;
}

/// A queue of work that a device runs in order. Every method may be called from any thread.
///
/// Calls that queue work return when it is queued, unless their documentation says that they
/// wait; a failure of queued work is reported by a later call.
///
/// # Safety
/// Safe code of this crate relies on what an implementation does:
/// - work runs in the order in which it was queued, and behind the events that were waited for;
/// - an allocation has as many bytes as were asked for, and shares none with another one that work
///   queued so far may use;
/// - [`Stream::execute`] and [`Stream::transfer`] read and write the operation's elements only;
/// - [`Stream::id`] is that of no other stream; [`Stream::query`] returns true, and
///   [`Stream::synchronize`] returns, only when all work queued before has run or failed.
pub unsafe trait Stream: Send + Sync + Debug {
    /// A number that no other stream of this process has or had.
    fn id(&self) -> u64;

    /// The device it belongs to.
    fn device_id(&self) -> DeviceId;

    /// The driver's handle; 0 for the default stream. Whoever has it may begin a capture, so
    /// from this call on the driver is asked whether the stream captures.
    fn handle(&self) -> u64;

    /// True if the handle is `handle`; tells nobody else what it is.
    fn has_handle(&self, handle: u64) -> bool {
        self.handle() == handle
    }

    /// True once all work queued so far has run.
    fn query(&self) -> Result<bool>;

    /// False if [`Stream::query`] never returns true, however much time passes: there are
    /// runtimes like that, where [`Stream::synchronize`] alone tells.
    fn supports_queries(&self) -> bool {
        true
    }

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

    /// Allocates memory whose bytes are zero, if that costs less than filling it; else `None`. It
    /// is freed as what [`Stream::allocate`] returns.
    ///
    /// # Errors
    /// As [`Stream::allocate`].
    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let _ = bytes;
        Ok(None)
    }

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

    /// Queues a copy from one device's memory to another's. The stream is of either device.
    ///
    /// # Errors
    /// `Unsupported` where the backend has one device only.
    ///
    /// # Safety
    /// As for [`Stream::transfer`]; `destination` is memory of `destination_device` and
    /// `source` of `source_device`.
    unsafe fn transfer_peer(
        &self,
        destination: u64,
        destination_device: &dyn Device,
        source: u64,
        source_device: &dyn Device,
        bytes: usize,
    ) -> Result<()> {
        let _ = (destination, destination_device, source, source_device, bytes);
        Err(Error::unsupported("transfer_peer", "the backend has no peer copies"))
    }

    /// Queues the move of managed memory to a device, or to the host.
    ///
    /// # Safety
    /// The range is managed memory and stays allocated until the move is done.
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        let _ = (address, bytes, to);
        Err(Error::unsupported("prefetch", "the backend has no managed memory to move"))
    }

    /// Starts to record work instead of running it. Until [`Stream::end_capture`] nothing may
    /// wait for this stream; memory that is allocated or freed on it meanwhile lives as long
    /// as the graph.
    ///
    /// # Errors
    /// `Unsupported` where the driver has no graphs; the driver's error for the default stream
    /// or one that captures already.
    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        let _ = mode;
        Err(Error::unsupported("begin_capture", "the backend has no graphs"))
    }

    /// Ends the recording and returns what was recorded, ready to be launched.
    ///
    /// # Errors
    /// The driver's, if the capture became invalid; the stream works again then.
    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        Err(Error::unsupported("end_capture", "the backend has no graphs"))
    }

    /// True between [`Stream::begin_capture`] and [`Stream::end_capture`].
    fn is_capturing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Keeps memory until every graph is gone that is made of the capture under way; nothing if
    /// the stream does not capture. The caller has an [`AccessGuard`](crate::memory::AccessGuard)
    /// for the uses.
    ///
    /// # Errors
    /// The driver's, if it cannot tell whether the stream captures.
    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        let _ = uses;
        Ok(())
    }

    /// Checks that nothing is left of the work that was queued before the capture under way.
    ///
    /// # Errors
    /// `InvalidArgument` if that is not known: another library began the capture.
    fn check_before_capture(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that no reset of the device has taken the stream.
    ///
    /// # Errors
    /// `InvalidHandle` if one has.
    fn check_epoch(&self) -> Result<()> {
        Ok(())
    }

    /// How the stream was made; for one that another library made, what the driver says.
    fn options(&self) -> Result<StreamOptions> {
        Ok(StreamOptions::default())
    }

    /// Waits while so much work is queued that the queue should not grow, unless that could be
    /// a wait for the calling thread itself. Callers that queue work call it first, and hold no
    /// lock meanwhile.
    fn wait_for_room(&self) {}

    /// Queues a builtin operation.
    ///
    /// # Safety
    /// The operation is as [`crate::operation`] demands, and its addresses stay allocated
    /// until it has run.
    unsafe fn execute(&self, operation: &Operation) -> Result<()>;

    /// The status of the last call that was made on this stream: success until one fails.
    /// Allocating and freeing memory leave it as it is, for objects do that by themselves.
    fn last_status(&self) -> Status;

    /// The object of the backend itself, behind all decorators.
    fn as_any(&self) -> &dyn Any;

    /// The stream as memory is to remember it, if that is another object: one that does not keep
    /// whatever keeps this one. It has the same id.
    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        None
    }

    /// What keeps the stream alive, if somebody else made it and it must be kept.
    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}
