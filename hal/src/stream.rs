//! Streams: queues of work that a device runs in order.

mod gather;
mod graph;
mod host_function;
mod overlap;
mod transfer;

pub use gather::gather_by_transfers;
pub use graph::{CaptureMode, Graph};
pub use host_function::{Outcome, call_function};
pub use overlap::{copy_array_overlapping, transfer_overlapping};
pub(crate) use transfer::unrepeatable;
pub use transfer::{Direction, HostRange, Transfer};

use crate::device::{Device, DeviceId};
use crate::enumeration::setters;
use crate::error::{Error, Result};
use crate::event::{Event, EventOptions};
use crate::memory::{Access, DeviceMemory, GraphObject, Use};
use crate::operation::Operation;
use crate::status::Status;
use crate::texture::ArrayCopy;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Returns a number for [`Stream::id`] that no stream of this process has or had.
pub fn unique_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Options of a new stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// True if the stream and the default stream do not wait for each other.
    pub non_blocking: bool,
    /// The priority, in the range of [`Device::priority_range`]; streams with smaller numbers run
    /// first.
    pub priority: i32,
}

setters! {
    StreamOptions:
    non_blocking: bool; priority: i32;
}

/// Names the side that managed memory migrates to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchTarget {
    /// The device of the stream.
    Device,
    /// The host.
    Host,
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
    /// Returns a number that no other stream of this process has or had.
    fn id(&self) -> u64;

    /// Returns the identity of the stream's device.
    fn device_id(&self) -> DeviceId;

    /// Returns the driver's handle; 0 for the default stream. Whoever has the handle may begin a
    /// capture. So from this call on the library asks the driver whether the stream captures.
    fn handle(&self) -> u64;

    /// Returns true if the driver's handle of the stream is `handle`. Unlike [`Stream::handle`]
    /// this does not make the handle known outside.
    fn has_handle(&self, handle: u64) -> bool {
        self.handle() == handle
    }

    /// Returns true if all work queued so far has run (`cuStreamQuery`, `hipStreamQuery`).
    ///
    /// # Errors
    /// A failure of that work, but for that of a host function, which is left to a call that waits; the
    /// driver's, while the stream captures.
    fn query(&self) -> Result<bool>;

    /// Returns what [`Stream::query`] does, but for a failure of the work that is reported once: it is left
    /// to a call of the program.
    ///
    /// # Errors
    /// As for [`Stream::query`].
    fn has_run(&self) -> Result<bool> {
        self.query()
    }

    /// Returns false on runtimes where [`Stream::query`] never returns true, however much time
    /// passes. There only [`Stream::synchronize`] tells when work is done.
    fn supports_queries(&self) -> bool {
        true
    }

    /// Waits until all work queued so far has run (`cuStreamSynchronize`, `hipStreamSynchronize`).
    ///
    /// # Errors
    /// A failure of that work, for example `LaunchFailed` or `DeviceLost`; the driver's, while the
    /// stream captures; `InvalidArgument` in a host function.
    fn synchronize(&self) -> Result<()>;

    /// Waits as [`Stream::synchronize`] does, for what the library itself orders or frees. A failure of the work
    /// that is reported once is left to a call of the program. While the stream captures, all that can be
    /// waited for has run.
    ///
    /// # Errors
    /// The driver's, where it cannot wait.
    fn drain(&self) -> Result<()> {
        if self.is_capturing()? { Ok(()) } else { self.synchronize() }
    }

    /// Creates an event of the stream's device, which alone the stream records: see [`Device::create_event`].
    ///
    /// # Errors
    /// As for [`Device::create_event`].
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;

    /// Records an event behind the work queued so far (`cuEventRecord`, `hipEventRecord`). The
    /// event is complete when that work has run.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another device; else the driver's.
    fn record(&self, event: &dyn Event) -> Result<()>;

    /// Makes work that is queued from now on wait for an event, on the device and not on the host
    /// (`cuStreamWaitEvent`, `hipStreamWaitEvent`). An event that was never recorded is not waited
    /// for.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another backend or opening, or one that a stream of another device
    /// has recorded in a capture; else the driver's.
    fn wait_event(&self, event: &dyn Event) -> Result<()>;

    /// Queues a function as [`host_function`](#method.host_function) documents, which calls this. A backend runs it
    /// by [`call_function`], and keeps what that returns until somebody waits for it.
    ///
    /// # Errors
    /// The driver's; the function is dropped without being called then.
    fn queue_function(&self, function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()>;

    /// Allocates `bytes` bytes in the stream's order, for work that is queued on the stream from
    /// now on, and returns the address (`cuMemAllocFromPoolAsync`, `hipMallocFromPoolAsync`).
    ///
    /// # Errors
    /// `OutOfMemory` that says how many bytes were requested, are in use and are available.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Allocates memory whose bytes are zero, if that costs less than filling it; returns `None`
    /// otherwise. The memory is freed like that of [`Stream::allocate`].
    ///
    /// # Errors
    /// Those of [`Stream::allocate`].
    fn allocate_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let _ = bytes;
        Ok(None)
    }

    /// Frees memory of [`Stream::allocate`] in the stream's order: once the work queued so far has
    /// run (`cuMemFreeAsync`, `hipFreeAsync`).
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// `address` and `bytes` are those of one call to `allocate` on a stream of this device, and
    /// the memory has not been freed since. Other streams' work that uses it is ordered before this
    /// call.
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()>;

    /// Queues a copy. A copy from or to pageable host memory has arrived when the call returns. Bytes
    /// that are both read and written are read first ([`transfer_overlapping`]).
    ///
    /// # Errors
    /// The driver's; `LaunchFailed` or `DeviceLost` from earlier work that the call waited for.
    ///
    /// # Safety
    /// Every byte that the transfer names is allocated, on the side that the direction says, until
    /// the copy has run, and nothing else accesses those bytes meanwhile.
    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()>;

    /// Copies ranges of host memory to the device, where they lie one behind the other from
    /// `destination` on. They have arrived when the call returns.
    ///
    /// # Errors
    /// As for [`Stream::transfer`]; some ranges may have been copied then.
    ///
    /// # Safety
    /// The ranges can be read, as many bytes are allocated at `destination`, and nothing else accesses
    /// them until the call returns.
    unsafe fn gather(&self, destination: u64, ranges: &[HostRange]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { gather_by_transfers(self, destination, ranges) }
    }

    /// Queues a copy from or to an array for textures (`cuMemcpy3DAsync`). A copy from or to
    /// pageable host memory has arrived when the call returns. Texels that are both read and written
    /// are read first ([`copy_array_overlapping`]).
    ///
    /// # Errors
    /// `Unsupported` where the device has no textures; else as for [`Stream::transfer`].
    ///
    /// # Safety
    /// As for [`Stream::transfer`]; the copy has passed [`ArrayCopy::check`] for each array, which is
    /// one of this device.
    unsafe fn copy_array(&self, copy: &ArrayCopy) -> Result<()> {
        let _ = copy;
        Err(Error::unsupported("copy_array", "the backend has no textures"))
    }

    /// Queues a fill of `count` elements of `width` bytes (1, 2 or 4) with the lowest bytes of
    /// `value` (`cuMemsetD8Async` to `cuMemsetD32Async`, `hipMemsetD8Async` to
    /// `hipMemsetD32Async`).
    ///
    /// # Errors
    /// `InvalidArgument` for another width, or for an address that is not a multiple of it.
    ///
    /// # Safety
    /// As for [`Stream::transfer`].
    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()>;

    /// Queues a copy of `bytes` bytes from one device's memory to another's (`cuMemcpyPeerAsync`,
    /// `hipMemcpyPeerAsync`). The stream belongs to one of the two devices. Bytes that are both read and
    /// written are read first.
    ///
    /// # Errors
    /// `Unsupported` where the backend has one device only.
    ///
    /// # Safety
    /// As for [`Stream::transfer`]; `destination` is memory of `destination_device` and `source` of
    /// `source_device`.
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

    /// Queues the migration of managed memory to the stream's device or to the host
    /// (`cuMemPrefetchAsync`, `hipMemPrefetchAsync`).
    ///
    /// # Errors
    /// `Unsupported` where the backend has no managed memory to migrate.
    ///
    /// # Safety
    /// The range is managed memory and stays allocated until the migration is done.
    unsafe fn prefetch(&self, address: u64, bytes: usize, to: PrefetchTarget) -> Result<()> {
        let _ = (address, bytes, to);
        Err(Error::unsupported("prefetch", "the backend has no managed memory to move"))
    }

    /// Begins a capture: from now on the stream records work instead of running it
    /// (`cuStreamBeginCapture`, `hipStreamBeginCapture`). Until [`Stream::end_capture`] nothing may
    /// wait for this stream. Memory that is allocated or freed on it meanwhile lives as long as the
    /// graph.
    ///
    /// # Errors
    /// `Unsupported` where the driver has no graphs; `InvalidArgument` for the default stream; the
    /// driver's, for a stream that captures already.
    fn begin_capture(&self, mode: CaptureMode) -> Result<()> {
        let _ = mode;
        Err(Error::unsupported("begin_capture", "the backend has no graphs"))
    }

    /// Ends the capture and returns the captured work as a graph that is ready to be launched
    /// (`cuStreamEndCapture`, `hipStreamEndCapture`).
    ///
    /// # Errors
    /// The driver's, if the capture became invalid. The stream then works again.
    fn end_capture(&self) -> Result<Arc<dyn Graph>> {
        Err(Error::unsupported("end_capture", "the backend has no graphs"))
    }

    /// Ends a capture that nobody will end, and drops what it has recorded. Where the backend can, from any
    /// thread.
    ///
    /// # Errors
    /// Those of [`Stream::end_capture`].
    fn abandon_capture(&self) -> Result<()> {
        self.end_capture().map(drop)
    }

    /// Returns true between [`Stream::begin_capture`] and [`Stream::end_capture`], and while the
    /// stream is part of a capture that another library began (`cuStreamGetCaptureInfo`,
    /// `hipStreamGetCaptureInfo`).
    ///
    /// # Errors
    /// The driver's.
    fn is_capturing(&self) -> Result<bool> {
        Ok(false)
    }

    /// Keeps an object until every graph that is made of the capture under way is gone: what captured work
    /// needs besides memory of the device. Does nothing on a stream that does not capture. The caller
    /// holds an [`AccessGuard`](crate::memory::AccessGuard) of the work, so that no capture begins or ends.
    ///
    /// # Errors
    /// The driver's, if it cannot tell whether the stream captures.
    fn keep_object(&self, object: &GraphObject) -> Result<()> {
        let _ = object;
        Ok(())
    }

    /// Keeps memory until every graph that is made of the capture under way is gone. Does nothing
    /// on a stream that does not capture. The caller holds an
    /// [`AccessGuard`](crate::memory::AccessGuard) for the uses.
    ///
    /// # Errors
    /// The driver's, if it cannot tell whether the stream captures.
    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        let _ = uses;
        Ok(())
    }

    /// Returns true if the capture under way may have recorded a use of the memory that one of this access
    /// has to be ordered with.
    ///
    /// # Errors
    /// The driver's, if it cannot tell whether the stream captures.
    fn has_captured(&self, memory: &DeviceMemory, access: Access) -> Result<bool> {
        let _ = (memory, access);
        self.is_capturing()
    }

    /// Checks that all work queued before the capture under way has run.
    ///
    /// # Errors
    /// `InvalidArgument` if that is not known, because another library began the capture.
    fn check_before_capture(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that no reset of the device has destroyed the stream.
    ///
    /// # Errors
    /// `InvalidHandle` if one has.
    fn check_epoch(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the options that the stream was created with. For a stream of another library the
    /// driver is asked (`cuStreamGetFlags`, `cuStreamGetPriority`; `hipStreamGetFlags`,
    /// `hipStreamGetPriority`).
    ///
    /// # Errors
    /// The driver's.
    fn options(&self) -> Result<StreamOptions> {
        Ok(StreamOptions::default())
    }

    /// Waits while so much work is queued that the queue should not grow. Returns at once if the
    /// wait could be for the calling thread itself. Callers that queue work call this first, and
    /// hold no lock meanwhile.
    fn wait_for_room(&self) {}

    /// Queues a builtin operation.
    ///
    /// # Errors
    /// `Unsupported` where there is no code for the operation and no compiler; `OutOfMemory` for
    /// scratch memory; else the driver's.
    ///
    /// # Safety
    /// The operation satisfies what [`crate::operation`] requires, and its addresses stay allocated
    /// until it has run.
    unsafe fn execute(&self, operation: &Operation) -> Result<()>;

    /// Returns the status of the last call on this stream; success if there was none. Allocating
    /// and freeing memory do not change it, because objects do that by themselves.
    fn last_status(&self) -> Status;

    /// Returns the backend's own object, inside all decorators.
    fn as_any(&self) -> &dyn Any;

    /// Returns the object by which memory refers to the stream, if that is another one: one that
    /// does not keep the stream's owner alive. It has the same id.
    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        None
    }

    /// Returns the owner that keeps the stream alive, if another library created it.
    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}
