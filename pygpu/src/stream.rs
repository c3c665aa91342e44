//! Streams and graphs as Python classes, and the streams of other libraries.

use crate::errors::{OrRaise, to_python};
use crate::event::PyEvent;
use crate::foreign::KeptStream;
use crate::integer::{argument, integer};
use crate::kept::Loan;
use crate::runtime::{Current, current};
use crate::status;
use gpuarray::hal::process::ProcessMutex;
use gpuarray::status::AtomicStatus;
use gpuarray::{CaptureMode, Device, DeviceId, Error, Graph, Stream, StreamOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use pyo3::{PyTraverseError, PyVisit};
use std::sync::{Arc, MutexGuard, Weak};

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles that stand for default streams.
pub(crate) const LEGACY: u64 = 1;
pub(crate) const PER_THREAD: u64 = 2;

/// A stream that was made for Python, for as long as objects of Python's stand for it. With the
/// last of them goes its capture, which nobody could end any longer: memory that it uses may keep
/// the stream itself.
struct Reachable {
    stream: Arc<dyn Stream>,
}

impl Drop for Reachable {
    fn drop(&mut self) {
        if self.stream.is_capturing().unwrap_or(false) {
            let stream = self.stream.clone();
            // What was captured goes, too. Whatever the driver says, there is nobody to tell.
            Python::try_attach(|py| py.detach(|| drop(stream.end_capture())));
        }
    }
}

/// A stream that Python has made or was given.
struct Known {
    stream: Weak<dyn Stream>,
    /// For one that was made here, what Python's objects share.
    reachable: Option<Weak<Reachable>>,
    /// The same, if another library made it.
    kept: Option<Weak<KeptStream>>,
    device: DeviceId,
    /// The device's at that time: a reset ends the stream, and another may get its handle.
    epoch: u64,
}

/// All of them, besides the default streams.
static KNOWN: ProcessMutex<Vec<Known>> = ProcessMutex::new(Vec::new);

fn registry() -> MutexGuard<'static, Vec<Known>> {
    KNOWN.lock()
}

fn remember(
    device: &dyn Device,
    stream: &Arc<dyn Stream>,
    reachable: Option<&Arc<Reachable>>,
    kept: Option<&Arc<KeptStream>>,
) {
    let new = Known {
        stream: Arc::downgrade(stream),
        reachable: reachable.map(Arc::downgrade),
        kept: kept.map(Arc::downgrade),
        device: device.id(),
        epoch: device.epoch(),
    };
    let mut known = registry();
    if known.len() == known.capacity() {
        known.retain(|known| known.stream.strong_count() > 0);
    }
    known.push(new);
}

/// The streams of a device that are in use, besides its default streams.
pub(crate) fn known(device: DeviceId) -> Vec<Arc<dyn Stream>> {
    let all = registry();
    let own = all.iter().filter(|known| known.device == device);
    own.filter_map(|known| known.stream.upgrade()).collect()
}

/// What all objects of Python's for a stream share, if the stream was made for Python.
fn reachable(stream: &Arc<dyn Stream>) -> Option<Arc<Reachable>> {
    let mut all = registry();
    let is_same = |known: &&mut Known| known.stream.as_ptr().addr() == Arc::as_ptr(stream).addr();
    let shared = all.iter_mut().find(is_same)?.reachable.as_mut()?;
    Some(shared.upgrade().unwrap_or_else(|| {
        let again = Arc::new(Reachable { stream: stream.clone() });
        *shared = Arc::downgrade(&again);
        again
    }))
}

/// The stream of a handle, and its object here if another library made it.
type Found = (Arc<dyn Stream>, Option<Arc<KeptStream>>);

/// A stream of a device by its handle.
fn find(device: &dyn Device, handle: u64) -> Option<Found> {
    let (id, epoch) = (device.id(), device.epoch());
    // Looked through behind the lock: the last reference to a stream drops its owner, too.
    let live: Vec<Found> = {
        let all = registry();
        let own = all.iter().filter(|known| known.device == id && known.epoch == epoch);
        own.filter_map(|known| {
            Some((known.stream.upgrade()?, known.kept.as_ref().and_then(Weak::upgrade)))
        })
        .collect()
    };
    live.into_iter().find(|(stream, _)| stream.has_handle(handle))
}

/// A queue of work that the device runs in order.
#[pyclass(frozen, weakref, name = "Stream", module = "pygpu.driver")]
pub(crate) struct PyStream {
    /// What keeps a foreign stream alive. Before the stream, since fields are dropped in this
    /// order.
    loan: Option<Loan>,
    _reachable: Option<Arc<Reachable>>,
    pub(crate) stream: Arc<dyn Stream>,
    status: AtomicStatus,
}

impl PyStream {
    fn new_object(stream: Arc<dyn Stream>, reachable: Option<Arc<Reachable>>) -> PyStream {
        let loan = Loan::of(stream.foreign_owner());
        PyStream { loan, _reachable: reachable, stream, status: AtomicStatus::new() }
    }

    fn note<T>(&self, result: gpuarray::Result<T>) -> PyResult<T> {
        self.status.note(result).or_raise()
    }
}

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (flags = 0, priority = 0))]
    fn new(
        #[pyo3(from_py_with = argument::flags)] flags: u32,
        #[pyo3(from_py_with = argument::priority)] priority: i32,
    ) -> PyResult<Self> {
        if flags & !NON_BLOCKING != 0 {
            return Err(PyValueError::new_err(format!(
                "flags is {flags}; allowed are 0 and 1 (non-blocking)"
            )));
        }
        let options = StreamOptions { non_blocking: flags & NON_BLOCKING != 0, priority };
        let device = current()?.device;
        let stream = device.create_stream(options).or_raise()?;
        let reachable = Arc::new(Reachable { stream: stream.clone() });
        remember(device.as_ref(), &stream, Some(&reachable), None);
        Ok(PyStream::new_object(stream, Some(reachable)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let uses = Arc::strong_count(&self.stream);
        self.loan.as_ref().map_or(Ok(()), |loan| loan.traverse(&visit, uses))
    }

    /// A stream that another library made: its handle, or an object that has
    /// `__cuda_stream__`. Handle 0 and 1 are the default stream, 2 is the default stream of
    /// each thread, and the object is that thread's alone. `owner`, or that object, is kept as long
    /// as this one and arrays whose stream it is; memory that the stream was used on is then ordered
    /// behind its work.
    #[staticmethod]
    #[pyo3(signature = (handle, owner = None))]
    fn from_handle(
        handle: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyStream> {
        let current = current()?;
        let stream = match handle.cast::<PyInt>() {
            Ok(number) => by_handle(&current, number.extract()?, owner)?,
            Err(_) => stream_argument(Some(handle), &current)?,
        };
        let reachable = reachable(&stream);
        Ok(PyStream::new_object(stream, reachable))
    }

    /// Version of the protocol, and the handle, as other libraries ask for them.
    fn __cuda_stream__(&self) -> (u32, u64) {
        (0, self.stream.handle())
    }

    /// Waits until all work queued so far has run.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        self.note(crate::wait::for_stream(py, self.stream.as_ref())?)
    }

    /// True once all work queued so far has run.
    fn is_done(&self) -> PyResult<bool> {
        self.note(self.stream.query())
    }

    /// Work queued from now on runs after the work before the event's mark.
    fn wait_for_event(&self, event: &Bound<'_, PyEvent>) -> PyResult<()> {
        self.note(self.stream.wait_event(event.get().event.as_ref()))
    }

    /// Starts to record work instead of running it. `mode` says which calls that a recording
    /// cannot have are refused meanwhile: those of any thread ("global"), of this thread
    /// ("thread_local"), or none ("relaxed"). Nothing may wait for the stream until
    /// `end_capture`.
    #[pyo3(signature = (mode = "thread_local"))]
    fn begin_capture(&self, py: Python<'_>, mode: &str) -> PyResult<()> {
        let mode = match mode {
            "global" => CaptureMode::Global,
            "thread_local" => CaptureMode::ThreadLocal,
            "relaxed" => CaptureMode::Relaxed,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "mode is {mode:?}; allowed are \"global\", \"thread_local\" and \"relaxed\""
                )));
            }
        };
        self.note(py.detach(|| self.stream.begin_capture(mode)))
    }

    /// Ends the recording and returns what was recorded.
    fn end_capture(&self, py: Python<'_>) -> PyResult<PyGraph> {
        Ok(PyGraph { graph: self.note(py.detach(|| self.stream.end_capture()))? })
    }

    /// True between `begin_capture` and `end_capture`.
    fn is_capturing(&self) -> PyResult<bool> {
        self.note(self.stream.is_capturing())
    }

    /// The driver's handle.
    #[getter]
    fn handle(&self) -> u64 {
        self.stream.handle()
    }

    /// Smaller numbers run first where the device distinguishes them.
    #[getter]
    fn priority(&self) -> PyResult<i32> {
        Ok(self.note(self.stream.options())?.priority)
    }

    /// The flags that the stream was made with.
    #[getter]
    fn flags(&self) -> PyResult<u32> {
        Ok(if self.note(self.stream.options())?.non_blocking { NON_BLOCKING } else { 0 })
    }

    /// The status of the last call.
    #[getter]
    fn last_status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        status::object(py, self.status.load())
    }

    fn __repr__(&self) -> String {
        format!("<Stream {} of {}>", self.stream.handle(), self.stream.device_id())
    }
}

/// The stream of an argument: a `Stream`, a handle, an object that has `__cuda_stream__`; the
/// default stream for `None` and 0.
#[inline]
pub(crate) fn stream_argument(
    value: Option<&Bound<'_, PyAny>>,
    current: &Current,
) -> PyResult<Arc<dyn Stream>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(current.stream.clone());
    };
    if let Ok(stream) = value.cast::<PyStream>() {
        return Ok(stream.get().stream.clone());
    }
    foreign_argument(value, current)
}

#[cold]
fn foreign_argument(value: &Bound<'_, PyAny>, current: &Current) -> PyResult<Arc<dyn Stream>> {
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? {
        return by_handle(current, integer("stream", value)?, None);
    }
    if let Some(protocol) = value.getattr_opt("__cuda_stream__")? {
        // A method as the protocol says; some libraries have an attribute.
        let pair = if protocol.is_callable() { protocol.call0()? } else { protocol };
        let Ok([version, handle]) = pair.extract::<[Bound<'_, PyAny>; 2]>() else {
            return Err(PyTypeError::new_err(format!(
                "stream has a __cuda_stream__ of {}; a pair (version, handle) is needed",
                pair.repr()?
            )));
        };
        let version: u32 = integer("the version in stream's __cuda_stream__", &version)?;
        let handle = integer("the handle in stream's __cuda_stream__", &handle)?;
        if version != 0 {
            return Err(to_python(Error::unsupported(
                "stream",
                format!("stream has version {version} of __cuda_stream__; 0 is known"),
            )));
        }
        return by_handle(current, handle, Some(value));
    }
    Err(PyTypeError::new_err(format!(
        "stream is of type {}; a Stream, a handle, an object with __cuda_stream__ or None is needed",
        value.get_type().name()?
    )))
}

/// The stream with a handle, which `owner` keeps alive.
pub(crate) fn by_handle(
    current: &Current,
    handle: u64,
    owner: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<dyn Stream>> {
    if handle == 0 || handle == LEGACY {
        return Ok(current.stream.clone());
    }
    let device = &current.device;
    if let Some((stream, kept)) = find(device.as_ref(), handle) {
        if let (Some(kept), Some(owner)) = (kept, owner) {
            kept.keep(owner);
        }
        return Ok(stream);
    }
    // SAFETY: whoever passes a handle vouches for it, as with every GPU library; an owner is
    // kept with it.
    let inner = unsafe { device.stream_from_handle(handle) }.or_raise()?;
    let kept = Arc::new(KeptStream::new(inner, device));
    if let Some(owner) = owner {
        kept.keep(owner);
    }
    let stream: Arc<dyn Stream> = kept.clone();
    // Each thread has its own stream under this handle.
    if handle != PER_THREAD {
        remember(device.as_ref(), &stream, None, Some(&kept));
    }
    Ok(stream)
}

/// Recorded work that can be launched again and again.
///
/// The graph keeps the memory of the arrays and allocations that the work uses, even if they are
/// freed, and a launch is ordered behind other work on it. Memory that a kernel was given as a plain
/// address is the program's to keep.
#[pyclass(frozen, weakref, name = "Graph", module = "pygpu.driver")]
pub(crate) struct PyGraph {
    graph: Arc<dyn Graph>,
}

#[pymethods]
impl PyGraph {
    fn __repr__(&self) -> String {
        format!("<Graph of {} nodes>", self.graph.node_count())
    }

    /// Queues all of the recorded work.
    #[pyo3(signature = (stream = None))]
    fn launch(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let stream = stream_argument(stream, &current()?)?;
        // SAFETY: the program vouches for the memory, as the class documents.
        py.detach(|| unsafe { self.graph.launch(&stream) }).or_raise()
    }

    /// The number of recorded nodes.
    #[getter]
    fn node_count(&self) -> usize {
        self.graph.node_count()
    }
}
