//! Captures of a stream's work: how they begin and end, which calls they refuse, and the resulting graph.

use super::Stream;
use crate::error::{Error, Result};
use crate::memory::{Access, DeviceMemory, GraphObject, Use};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Determines which calls the driver refuses while a stream captures. Examples are plain allocations: a capture cannot
/// contain them. The values are the ones of `CUstreamCaptureMode`.
///
/// A capture that does not affect other threads. The work runs only when the graph is launched:
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
    /// Such calls are refused on every thread.
    Global,
    /// The driver refuses such calls on the capturing thread.
    #[default]
    ThreadLocal,
    /// No call is refused.
    Relaxed,
}

/// Captures of a [`Stream`]'s work into a [`Graph`], for devices with [`Feature::Graphs`](crate::Feature::Graphs). With
/// the default methods, a stream never captures.
///
/// A backend with graphs implements it. Programs begin and end captures. Memory and kernels check for a capture, and
/// keep the objects that captured work needs.
///
/// A check whether queued work runs or is recorded:
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
    /// Begins a capture: from now on, the stream records work instead of running it (`cuStreamBeginCapture`,
    /// `hipStreamBeginCapture`). Do not wait for this stream until [`StreamCapture::end_capture`]. Memory that is
    /// allocated or freed on it meanwhile lives as long as the graph.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not support graphs; `InvalidArgument` for the default stream; the driver's, for
    /// a stream that already captures.
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

    /// Ends a capture that the program will not end, and drops the recorded work. On backends that support it, this
    /// works from any thread.
    ///
    /// # Errors
    /// As for [`StreamCapture::end_capture`].
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

    /// Keeps an object that captured work needs in addition to device memory, until every graph made of the current
    /// capture is gone. Does nothing on a stream that does not capture. The caller holds an
    /// [`AccessGuard`](crate::memory::AccessGuard) for the work, so that no capture begins or ends.
    ///
    /// # Errors
    /// The driver's, if it cannot report whether the stream captures.
    fn keep_object(&self, object: &GraphObject) -> Result<()> {
        let _ = object;
        Ok(())
    }

    /// Keeps memory until every graph made of the current capture is gone. Does nothing on a stream that does not
    /// capture. The caller holds an [`AccessGuard`](crate::memory::AccessGuard) for the uses.
    ///
    /// # Errors
    /// The driver's, if it cannot report whether the stream captures.
    fn keep_for_graph(&self, uses: &[Use<'_>]) -> Result<()> {
        let _ = uses;
        Ok(())
    }

    /// Returns true if the current capture may have recorded a use of the memory that conflicts with this access.
    ///
    /// # Errors
    /// The driver's, if it cannot report whether the stream captures.
    fn has_captured(&self, memory: &DeviceMemory, access: Access) -> Result<bool> {
        let _ = (memory, access);
        self.is_capturing()
    }

    /// Checks that all work queued before the current capture has finished.
    ///
    /// # Errors
    /// `InvalidArgument` if that is unknown, because another library began the capture.
    fn check_before_capture(&self) -> Result<()> {
        Ok(())
    }
}

/// Captured work that can be launched any number of times.
///
/// Programs get a graph from [`StreamCapture::end_capture`] and launch it instead of the captured calls. Backends with
/// graphs implement the trait, and keep with the graph all memory that its work uses.
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

    /// Queues all of the captured work on `stream`, after other streams' work on the memory that it uses
    /// (`cuGraphLaunch`, `hipGraphLaunch`). The graph keeps that memory. Launches from several threads run one after
    /// another.
    ///
    /// # Errors
    /// The driver's; `InvalidArgument` for a stream of another device.
    ///
    /// # Safety
    /// Memory that the captured work uses only through its address stays allocated until the work has run, and nothing
    /// else accesses it meanwhile. The same holds for memory of work that another thread queued on the stream while the
    /// capture began, because the graph may not have recorded and kept it.
    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()>;

    /// Returns the backend's own object, inside all layers.
    fn as_any(&self) -> &dyn Any;
}
