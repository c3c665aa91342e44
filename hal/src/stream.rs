//! Streams: queues of work that a device runs in order.

mod capture;
mod transfer;

pub use capture::{CaptureMode, Graph, StreamCapture};
pub use transfer::{
    Direction, HostRange, PrefetchTarget, StreamMemory, Transfer, copy_array_overlapping,
    gather_by_transfers, transfer_overlapping,
};

use crate::enumeration::setters;
use crate::error::{Error, ErrorKind, Result};
use crate::event::{Event, EventOptions};
use crate::interruption::call_in_stream;
use crate::operation::Operation;
use crate::poison::caught;
use crate::properties::DeviceId;
use crate::status::Status;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Returns a number for [`StreamCore::id`] that is unique in this process, also among destroyed streams.
pub fn unique_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// Options of a new stream.
///
/// A stream that does not wait for the default stream. Captures require such a stream:
///
/// ```
/// use gpuarray::StreamOptions;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
/// assert!(stream.options()?.non_blocking);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// True if the stream and the default stream do not wait for each other.
    pub non_blocking: bool,
    /// The priority, in the range of [`Device::priority_range`](crate::Device::priority_range); streams with
    /// smaller numbers run first.
    pub priority: i32,
}

setters! {
    StreamOptions:
    non_blocking: bool; priority: i32;
}

/// A queue of work that a device runs in order. Every method may be called from any thread.
///
/// The methods are in four traits. Every backend implements [`StreamCore`]. [`StreamMemory`], [`StreamCapture`] and
/// [`StreamState`] have default methods, for devices that lack a feature. A `dyn Stream` has all of them without an
/// import.
///
/// Calls that queue work return after it is queued, unless their documentation says that they wait. A failure of
/// queued work is reported by a later call.
///
/// Backends implement it; [`Layered`](crate::layers::Layered) does so for a stream that wraps another one. Arrays,
/// memory, kernels and programs call it, as `Arc<dyn Stream>` or `&dyn Stream`.
///
/// Two streams that work concurrently, where the second one waits for the first one's result:
///
/// ```
/// use gpuarray::{DeviceArray, EventOptions, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let first = device.create_stream(StreamOptions::default())?;
/// let second = device.create_stream(StreamOptions::default())?;
/// let x = DeviceArray::<f32>::ones_on(&device, &first, &[1000])?;
/// let y = DeviceArray::<f32>::ones_on(&device, &second, &[1000])?;
/// // The array is read on the second stream, which waits for the first one by itself.
/// let sum = (&x.on(&second)? + &y)?;
/// // An event orders work other than that of arrays.
/// let done = device.create_event(EventOptions::ORDERING)?;
/// second.record(done.as_ref())?;
/// first.wait_event(done.as_ref())?;
/// first.synchronize()?;
/// assert_eq!(sum.sum()?, 2000.0);
/// # Ok(())
/// # }
/// ```
///
/// # Safety
/// This trait does not have methods of its own. An implementation promises the following for the methods of all four
/// traits. Those traits are therefore safe to implement. Safe code of this crate relies on it.
/// - Work runs in the order in which it was queued, and after the events that the stream waits for.
/// - An allocation has the requested number of bytes, and shares none with another allocation that work queued so
///   far may use.
/// - [`StreamCore::execute`], [`StreamCore::transfer`] and the copies of [`StreamMemory`] read and write only their
///   elements.
/// - No other stream has the same [`StreamCore::id`].
/// - [`StreamCore::query`] and [`StreamState::has_run`] return true, and [`StreamCore::synchronize`] and (outside
///   captures) [`StreamState::drain`] return, only after all work queued before has finished or failed.
/// - [`StreamCapture::is_capturing`] returns true during every capture. Objects passed to
///   [`StreamCapture::keep_for_graph`] and [`StreamCapture::keep_object`] live as long as the graphs.
///
/// The default methods keep these promises if the required methods do.
pub unsafe trait Stream: StreamCore + StreamMemory + StreamCapture + StreamState {}

/// The methods of a [`Stream`] that every backend implements: identity, order, memory and work.
///
/// Backends implement it. Only generic code over a backend's own stream needs this trait; all other code uses a `dyn
/// Stream`.
///
/// A function that runs in the order of a stream; the program then waits for the stream:
///
/// ```
/// use gpuarray::StreamOptions;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default())?;
/// stream.queue_function(Box::new(|| Ok(())))?;
/// stream.synchronize()?;
/// assert!(stream.query()?);
/// # Ok(())
/// # }
/// ```
pub trait StreamCore: Send + Sync + Debug {
    /// Returns a number that is unique in this process, also among destroyed streams.
    fn id(&self) -> u64;

    /// Returns the identity of the stream's device.
    fn device_id(&self) -> DeviceId;

    /// Returns the driver's handle; 0 for the default stream. A program that has the handle may begin a capture with
    /// it, so after this call the library always queries the driver for captures of the stream.
    fn handle(&self) -> u64;

    /// Returns true if all work queued so far has finished (`cuStreamQuery`, `hipStreamQuery`). Returns false while the
    /// stream captures.
    ///
    /// # Errors
    /// A failure of that work, except a host function's failure: a waiting call reports that one.
    fn query(&self) -> Result<bool>;

    /// Waits until all work queued so far has finished (`cuStreamSynchronize`, `hipStreamSynchronize`).
    ///
    /// # Errors
    /// A failure of that work, for example `LaunchFailed` or `DeviceLost`; the driver's, while the stream captures;
    /// `InvalidArgument` inside a host function.
    fn synchronize(&self) -> Result<()>;

    /// Creates an event of the stream's device for use on this stream only: see
    /// [`Device::create_event`](crate::Device::create_event).
    ///
    /// # Errors
    /// As for [`Device::create_event`](crate::Device::create_event).
    fn create_event(&self, options: EventOptions) -> Result<Arc<dyn Event>>;

    /// Records an event after the work queued so far (`cuEventRecord`, `hipEventRecord`). The event is complete when
    /// that work has finished.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another device; else the driver's.
    fn record(&self, event: &dyn Event) -> Result<()>;

    /// Makes work that is queued from now on wait for an event, on the device and not on the host
    /// (`cuStreamWaitEvent`, `hipStreamWaitEvent`). An event that was never recorded has no effect.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of another backend or opening, or one that a stream of another device
    /// has recorded in a capture; else the driver's.
    fn wait_event(&self, event: &dyn Event) -> Result<()>;

    /// Queues a function; `host_function` of `dyn Stream` calls this and documents it. A backend runs the function
    /// with [`call_function`], and keeps a failure until a caller waits for it.
    ///
    /// # Errors
    /// The driver's. The function is then dropped without being called.
    fn queue_function(&self, function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()>;

    /// Allocates `bytes` bytes in the stream's order, for work that is queued on the stream from
    /// now on, and returns the address (`cuMemAllocFromPoolAsync`, `hipMallocFromPoolAsync`).
    ///
    /// # Errors
    /// `OutOfMemory` with the bytes that were requested, are in use and are available.
    fn allocate(&self, bytes: usize) -> Result<u64>;

    /// Frees memory of [`StreamCore::allocate`] in the stream's order, after the work queued so far
    /// (`cuMemFreeAsync`, `hipFreeAsync`).
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// `address` and `bytes` belong to one call to `allocate` on a stream of this device, and the memory has not
    /// been freed since. Other streams' work that uses it is ordered before this call.
    unsafe fn free(&self, address: u64, bytes: usize) -> Result<()>;

    /// Queues a copy. A copy from or to pageable host memory has finished when the call returns. Overlapping bytes
    /// are read before they are written ([`transfer_overlapping`]).
    ///
    /// # Errors
    /// The driver's; `LaunchFailed` or `DeviceLost` from earlier work that the call waited for.
    ///
    /// # Safety
    /// Every byte of the transfer is allocated, on the side that the direction names, until the copy has run, and
    /// nothing else accesses those bytes meanwhile.
    unsafe fn transfer(&self, transfer: &Transfer) -> Result<()>;

    /// Queues a fill of `count` elements of `width` bytes (1, 2 or 4) with the lowest bytes of
    /// `value` (`cuMemsetD8Async` to `cuMemsetD32Async`, `hipMemsetD8Async` to
    /// `hipMemsetD32Async`).
    ///
    /// # Errors
    /// `InvalidArgument` for another width, or for an address that is not a multiple of it.
    ///
    /// # Safety
    /// As for [`StreamCore::transfer`].
    unsafe fn fill(&self, address: u64, value: u32, width: usize, count: usize) -> Result<()>;

    /// Queues a builtin operation.
    ///
    /// # Errors
    /// `Unsupported` if neither code for the operation nor a compiler is available; `OutOfMemory` for scratch
    /// memory; else the driver's.
    ///
    /// # Safety
    /// The operation satisfies the requirements of [`crate::operation`], and its addresses stay allocated until it
    /// has run.
    unsafe fn execute(&self, operation: &Operation) -> Result<()>;

    /// Returns the status of the last call on this stream; success if there was none. Allocating and freeing memory
    /// do not change it, because objects do so implicitly.
    fn last_status(&self) -> Status;

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}

/// The properties of a [`Stream`] that the library relies on: how it may wait, and what keeps it valid.
///
/// A backend overrides a default method if its streams behave differently. Memory, events and captures call the
/// methods; programs call [`StreamState::options`].
///
/// The options that a stream was created with:
///
/// ```
/// use gpuarray::StreamOptions;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
/// assert!(stream.options()?.non_blocking);
/// # Ok(())
/// # }
/// ```
pub trait StreamState: StreamCore + StreamCapture {
    /// Returns true if the driver's handle of the stream is `handle`. Unlike [`StreamCore::handle`], this does not
    /// pass the handle to the program.
    fn has_handle(&self, handle: u64) -> bool {
        self.handle() == handle
    }

    /// Like [`StreamCore::query`], but does not consume a pending error: a later call of the program reports it.
    ///
    /// # Errors
    /// As for [`StreamCore::query`].
    fn has_run(&self) -> Result<bool> {
        self.query()
    }

    /// Returns false on runtimes where [`StreamCore::query`] never returns true, no matter how much time passes.
    /// There, only [`StreamCore::synchronize`] shows that work is done.
    fn supports_queries(&self) -> bool {
        true
    }

    /// Waits like [`StreamCore::synchronize`], before the library orders or frees something. A one-time failure of
    /// the work stays pending: a later call of the program reports it. Returns immediately while the stream captures.
    ///
    /// # Errors
    /// The driver's error, if the driver cannot wait.
    fn drain(&self) -> Result<()> {
        if self.is_capturing()? { Ok(()) } else { self.synchronize() }
    }

    /// Checks that no reset of the device has destroyed the stream.
    ///
    /// # Errors
    /// `InvalidHandle` if a reset has destroyed it.
    fn check_epoch(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the options that the stream was created with. For a stream of another library, the
    /// driver returns them (`cuStreamGetFlags`, `cuStreamGetPriority`; `hipStreamGetFlags`,
    /// `hipStreamGetPriority`).
    ///
    /// # Errors
    /// The driver's.
    fn options(&self) -> Result<StreamOptions> {
        Ok(StreamOptions::default())
    }

    /// Waits while the queue is too full to grow. Returns immediately if the queue may be waiting for the calling
    /// thread. Callers that queue work call this first, without holding a lock.
    fn wait_for_room(&self) {}

    /// Returns the object by which memory should refer to the stream, if it is not this one: an object with the same
    /// id that does not keep the stream's owner alive.
    fn for_memory(&self) -> Option<Arc<dyn Stream>> {
        None
    }

    /// Returns the owner that keeps the stream alive, if another library created it.
    fn external_owner(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

// Host functions: functions of the program that streams run.

/// The return value of a host function: nothing, or a [`Result`] whose error is reported as a failure of queued work.
pub trait Outcome {
    /// Converts the value to a result of the work.
    ///
    /// # Errors
    /// The function's own error.
    fn into_result(self) -> Result<()>;
}

impl Outcome for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl Outcome for Result<()> {
    fn into_result(self) -> Result<()> {
        self
    }
}

/// A way to name the type `!` in stable Rust, for functions that never return.
#[allow(missing_docs, reason = "nobody can name it")]
pub trait Returned {
    type Type;
}

impl<T> Returned for fn() -> T {
    type Type = T;
}

impl Outcome for <fn() -> ! as Returned>::Type {
    fn into_result(self) -> Result<()> {
        self
    }
}

impl dyn Stream + '_ {
    /// Queues a function that runs on a host thread after all work queued so far (`cuLaunchHostFunc`,
    /// `hipLaunchHostFunc`). It returns nothing, or a [`Result`]. An error or a panic is a failure of the stream's
    /// work. The next call that waits for the work reports it once. Later work still runs.
    ///
    /// The function is part of the device's work. Calls in it that would wait for the device fail, such as
    /// [`Stream::synchronize`](crate::stream::StreamCore::synchronize) and copies from and to pageable memory. On CUDA
    /// and HIP, every call of the device fails inside the function. If the function drops memory, pinned memory or a
    /// copy in progress, another thread frees it after the device's work.
    ///
    /// ```
    /// use gpuarray::{Error, Result, Stream};
    ///
    /// fn queue(stream: &dyn Stream, status: fn() -> i32) -> Result<()> {
    ///     stream.host_function(|| println!("the work before has run"))?;
    ///     stream.host_function(move || match status() {
    ///         0 => Ok(()),
    ///         number => Err(Error::invalid("library", format!("the library returned {number}"))),
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// The driver's. The function is then dropped without being called.
    pub fn host_function<F, R>(&self, function: F) -> Result<()>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Outcome,
    {
        self.queue_function(Box::new(|| function().into_result()))
    }
}

/// Runs a host function as part of a stream's work: for backends.
///
/// # Errors
/// The function's own; `LaunchFailed` if it panics.
pub fn call_function(function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
    caught(|| call_in_stream(function)).unwrap_or_else(|| {
        let status = Status::host(Status::LAUNCH_FAILED);
        Err(Error::new(
            ErrorKind::LaunchFailed,
            status,
            "host_function",
            "the host function panicked",
        ))
    })
}
