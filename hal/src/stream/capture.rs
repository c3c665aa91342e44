//! Captures of a stream's work: how they begin and end, what they refuse, and the graph that they make.

use super::Stream;
use crate::error::{Error, Result};
use crate::memory::{Access, DeviceMemory, GraphObject, Use};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Says which calls the driver refuses while a stream captures: those that a capture cannot
/// contain, such as plain allocations. The values are those of `CUstreamCaptureMode`.
///
/// A capture that leaves other threads alone; the work runs only when the graph is launched:
///
/// ```
/// use gpuarray::{CaptureMode, DeviceArray, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
/// let mut x = DeviceArray::<f32>::ones_on(&device, &stream, &[2])?;
/// stream.begin_capture(CaptureMode::ThreadLocal)?;
/// x.mul_assign(2.0)?;
/// let graph = stream.end_capture()?;
/// assert_eq!(x.to_vec()?, [1.0, 1.0]);
/// assert!(graph.node_count() > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// The calls of every thread are refused.
    Global,
    /// This thread may not; others are free.
    #[default]
    ThreadLocal,
    /// No call is refused.
    Relaxed,
}

/// Captures of a [`Stream`]'s work into a [`Graph`], for devices with
/// [`Feature::Graphs`](crate::Feature::Graphs). By the bodies here a stream never captures.
///
/// A backend with graphs implements it. Programs begin and end captures; memory and kernels ask, and keep
/// what captured work needs.
/// A program that queues work asks whether that work runs or is recorded:
///
/// ```
/// use gpuarray::StreamOptions;
/// use gpuarray::CaptureMode;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default())?;
/// stream.begin_capture(CaptureMode::default())?;
/// assert!(stream.is_capturing()?);
/// stream.abandon_capture()?;
/// assert!(!stream.is_capturing()?);
/// # Ok(())
/// # }
/// ```
pub trait StreamCapture {
    /// Begins a capture: from now on the stream records work instead of running it
    /// (`cuStreamBeginCapture`, `hipStreamBeginCapture`). Until [`StreamCapture::end_capture`] nothing may
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
    /// Those of [`StreamCapture::end_capture`].
    fn abandon_capture(&self) -> Result<()> {
        self.end_capture().map(drop)
    }

    /// Returns true between [`StreamCapture::begin_capture`] and [`StreamCapture::end_capture`], and while the
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
}

/// Captured work that can be launched any number of times.
///
/// Programs get a graph from [`StreamCapture::end_capture`], launch it in place of the calls that they captured, and drop it.
/// Backends with graphs implement the trait, and keep with the graph all memory that its work uses.
///
/// One step of a loop, captured once and run three times:
///
/// ```
/// use gpuarray::{CaptureMode, DeviceArray, StreamOptions};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let stream = device.create_stream(StreamOptions::default().non_blocking(true))?;
/// let mut x = DeviceArray::<f32>::ones_on(&device, &stream, &[2])?;
/// stream.begin_capture(CaptureMode::default())?;
/// x.mul_assign(2.0)?;
/// let step = stream.end_capture()?;
/// for _ in 0..3 {
///     // SAFETY: the work is that of arrays, whose memory the graph keeps.
///     unsafe { step.launch(&stream)? };
/// }
/// assert_eq!(x.to_vec()?, [8.0, 8.0]);
/// # Ok(())
/// # }
/// ```
pub trait Graph: Send + Sync + Debug {
    /// Returns the number of nodes in the graph (`cuGraphGetNodes`, `hipGraphGetNodes`).
    fn node_count(&self) -> usize;

    /// Queues all of the captured work on `stream`, behind other streams' work on the memory that
    /// it uses (`cuGraphLaunch`, `hipGraphLaunch`). The graph keeps that memory. Launches from
    /// several threads run one after another.
    ///
    /// # Errors
    /// The driver's; `InvalidArgument` for a stream of another device.
    ///
    /// # Safety
    /// Memory that the captured work uses by its address alone stays allocated until the work has
    /// run, and nothing else accesses it meanwhile. The same holds for memory of work that another
    /// thread queued on the stream while the capture began: it is not known whether the graph keeps
    /// that.
    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()>;

    /// Returns the backend's own object, inside all decorators.
    fn as_any(&self) -> &dyn Any;
}
