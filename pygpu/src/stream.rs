//! Streams as a Python class, and streams of other libraries.

use crate::current_device::{CurrentDevice, current_device, enter_stream, leave_stream};
use crate::errors::{OrRaise, to_python};
use crate::external_stream::ExternalStream;
use crate::fused_block::compute_pending;
use crate::integer::{argument, integer};
use crate::owner::{Filled, OwnerReference};
use crate::status;
use crate::stream_registry::{self, CaptureGuard};
use crate::synchronize::synchronize_stream;
use gpuarray::{Error, Stream, StreamOptions};
use hal::status::AtomicStatus;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::sync::Arc;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles of default streams.
pub(crate) const LEGACY: u64 = 1;
pub(crate) const PER_THREAD: u64 = 2;

/// A queue of work that the device runs in order (`cuStreamCreateWithPriority`,
/// `hipStreamCreateWithPriority`).
///
/// In the block of `with stream:`, the thread's calls without a `stream` argument use this stream: new arrays,
/// copies, kernels. PyCUDA's streams have neither `priority` nor such a block.
///
/// Parameters
/// ----------
/// flags : int
///     1 for a stream that is independent of the default stream: neither waits for the other; else 0.
/// priority : int. Work of streams with lower numbers runs sooner; 0 is the default.
///
/// Raises
/// ------
/// ValueError
///     `flags` has other bits.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver, gpuarray
/// >>> stream = driver.Stream()
/// >>> a = gpuarray.zeros(1000)
/// >>> _ = a.fill(7, stream=stream)
/// >>> stream.synchronize()
/// >>> stream.is_done()
/// True
/// >>> with stream:
/// ...     c = gpuarray.ones(3) + 1
/// >>> c.get()
/// array([2., 2., 2.])
/// >>> other, event = driver.Stream.from_handle(stream.handle), driver.Event()
/// >>> _ = event.record(stream)
/// >>> driver.Stream().wait_for_event(event)
/// >>> b = gpuarray.zeros(3).on(stream)
/// >>> stream.synchronize()
/// >>> stream.begin_capture()
/// >>> b += 1
/// >>> stream.is_capturing()
/// True
/// >>> graph = stream.end_capture()
/// >>> graph.launch(stream)
/// >>> b.get()
/// array([1., 1., 1.])
#[pyclass(frozen, subclass, dict, weakref, name = "Stream", module = "pygpu.driver")]
pub(crate) struct PyStream {
    /// Keeps the owner of an external stream alive. Declared before the stream, because fields are dropped
    /// in this order.
    owner: Option<OwnerReference>,
    _capture_guard: Option<Arc<CaptureGuard>>,
    pub(crate) stream: Arc<dyn Stream>,
    status: AtomicStatus,
    filled: Filled,
}

impl PyStream {
    fn new_object(stream: Arc<dyn Stream>, capture_guard: Option<Arc<CaptureGuard>>) -> PyStream {
        let owner = OwnerReference::of(stream.external_owner());
        PyStream {
            owner,
            _capture_guard: capture_guard,
            stream,
            status: AtomicStatus::new(),
            filled: Filled::new(),
        }
    }

    pub(crate) fn note<T>(&self, result: gpuarray::Result<T>) -> PyResult<T> {
        self.status.note(result).or_raise()
    }

    /// Returns the driver's handle, for other libraries and for calls that find the stream by it.
    fn checked_handle(&self) -> PyResult<u64> {
        self.note(self.stream.check_epoch())?;
        Ok(self.stream.handle())
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
        let options =
            StreamOptions::default().non_blocking(flags & NON_BLOCKING != 0).priority(priority);
        let device = current_device()?.device;
        let stream = device.create_stream(options).or_raise()?;
        let capture_guard = stream_registry::register_own(device.as_ref(), &stream);
        Ok(PyStream::new_object(stream, Some(capture_guard)))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if !self.filled.is_set() {
            return Ok(());
        }
        let uses = Arc::strong_count(&self.stream);
        self.owner.as_ref().map_or(Ok(()), |owner| owner.traverse(&visit, uses))
    }

    /// Returns a stream that another library created.
    ///
    /// Handles 0 and 1 are the default stream. Handle 2 is the per-thread default stream, and its object
    /// belongs to the calling thread. PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// handle : int or object. The stream's handle, or an object that has `__cuda_stream__`.
    /// owner : object, optional
    ///     An object that keeps the stream alive; `handle` by default if it is an object. It is kept as
    ///     long as this object and the arrays on the stream. Memory that was used on the stream is then
    ///     ordered after its work. Without an owner, the program must keep the stream alive.
    ///
    /// Returns
    /// -------
    /// Stream
    ///     The stream.
    ///
    /// Raises
    /// ------
    /// Unsupported
    ///     The device cannot use such a stream; the host cannot use streams of other libraries.
    /// LogicError
    ///     `handle` is a number that cannot be a stream's. Other invalid handles are undefined behaviour of
    ///     the driver.
    /// TypeError
    ///     `handle` is neither an integer nor such an object.
    /// OverflowError
    ///     `handle` is negative, or has more than 64 bits.
    #[staticmethod]
    #[pyo3(signature = (handle, owner = None))]
    fn from_handle(
        handle: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyStream> {
        let current = current_device()?;
        let stream = match handle.cast::<PyInt>() {
            Ok(number) => by_handle(&current, number.extract()?, owner)?,
            Err(_) => stream_argument(Some(handle), &current)?,
        };
        let capture_guard = stream_registry::capture_guard(&stream);
        Ok(PyStream::new_object(stream, capture_guard))
    }

    /// Returns the version of the protocol and the handle, as other libraries expect them.
    fn __cuda_stream__(&self) -> PyResult<(u32, u64)> {
        Ok((0, self.checked_handle()?))
    }

    /// Waits until all work queued so far has finished.
    ///
    /// Raises
    /// ------
    /// Error
    ///     Queued work has failed, or the stream captures.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        compute_pending(py)?;
        self.note(synchronize_stream(py, self.stream.as_ref())?)
    }

    /// Returns True if all work queued so far has finished (`cuStreamQuery`, `hipStreamQuery`).
    ///
    /// Returns
    /// -------
    /// bool
    ///     True if it has finished; False while the stream captures.
    ///
    /// Raises
    /// ------
    /// Error
    ///     Queued work has failed.
    fn is_done(&self) -> PyResult<bool> {
        self.note(self.stream.query())
    }

    /// The driver's handle; LogicError after a reset of the device, which destroys the stream.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        self.checked_handle()
    }

    /// The priority; smaller numbers run first if the device supports priorities.
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

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        enter_stream(&slf.get().stream)?;
        Ok(slf.clone())
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        leave_stream()
    }

    fn __repr__(&self) -> String {
        format!("<Stream {} of {}>", self.stream.handle(), self.stream.device_id())
    }
}

/// Returns the stream of an argument: a `Stream`, a handle, or an object with `__cuda_stream__`; the current
/// stream for `None`, and the default one for 0.
#[inline]
pub(crate) fn stream_argument(
    value: Option<&Bound<'_, PyAny>>,
    current: &CurrentDevice,
) -> PyResult<Arc<dyn Stream>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(current.stream.clone());
    };
    if let Ok(stream) = value.cast::<PyStream>() {
        return Ok(stream.get().stream.clone());
    }
    external_argument(value, current)
}

#[cold]
fn external_argument(
    value: &Bound<'_, PyAny>,
    current: &CurrentDevice,
) -> PyResult<Arc<dyn Stream>> {
    if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? {
        return by_handle(current, integer("stream", value)?, None);
    }
    if let Some(protocol) = value.getattr_opt("__cuda_stream__")? {
        // The protocol specifies a method, but some libraries have an attribute.
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

/// Returns the stream with a handle, which `owner` keeps alive.
pub(crate) fn by_handle(
    current: &CurrentDevice,
    handle: u64,
    owner: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<dyn Stream>> {
    let device = &current.device;
    if handle == 0 || handle == LEGACY {
        return Ok(device.default_stream());
    }
    if let Some((stream, external)) = stream_registry::find(device.as_ref(), handle) {
        if let (Some(external), Some(owner)) = (external, owner) {
            external.0.keep(owner);
        }
        return Ok(stream);
    }
    if owner.is_none() && stream_registry::was_taken(device.as_ref(), handle) {
        return Err(to_python(Error::handle(
            "stream",
            format!(
                "stream is {handle:#x}, the handle of a stream from before device {} was reset; create the \
                 stream again, or pass the object of a new one that has this handle",
                device.id()
            ),
        )));
    }
    // SAFETY: as with every GPU library, code that passes a handle is responsible for it; an owner is kept
    // with it.
    let inner = unsafe { device.stream_from_handle(handle) }.or_raise()?;
    let external = Arc::new(ExternalStream::new(inner, device));
    if let Some(owner) = owner {
        external.0.keep(owner);
    }
    // Each thread has a different stream under this handle.
    if handle != PER_THREAD {
        stream_registry::register_external(device.as_ref(), &external);
    }
    Ok(external)
}
