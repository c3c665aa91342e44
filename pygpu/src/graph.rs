//! Graphs and captures of streams.

use crate::current_device::current_device;
use crate::errors::OrRaise;
use crate::fused_block::compute_pending;
use crate::profile::at_line;
use crate::stream::{PyStream, stream_argument};
use crate::synchronize::interruptible;
use gpuarray::{CaptureMode, Graph};
use hal::recording::{self, Kind, Work};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Recorded work that can be launched repeatedly (`cuGraphInstantiate`, `hipGraphInstantiate`).
/// `Stream.capture` records it.
///
/// The graph keeps the memory of the arrays and allocations that the work uses, even if they are
/// freed. A launch is ordered after other work on that memory. The program must keep memory that
/// was passed to a kernel as a plain address. PyCUDA does not have this class.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver, gpuarray
/// >>> stream = driver.Stream()
/// >>> x = gpuarray.zeros(3, "i4").on(stream)
/// >>> stream.synchronize()
/// >>> with stream.capture() as graph:
/// ...     x += 1
/// >>> for _ in range(5):
/// ...     graph.launch(stream)
/// >>> stream.synchronize()
/// >>> x
/// array([5, 5, 5], dtype=int32)
#[pyclass(frozen, weakref, name = "Graph", module = "pygpu.driver")]
pub(crate) struct PyGraph {
    /// Empty until the capture ends.
    graph: OnceLock<Arc<dyn Graph>>,
}

impl PyGraph {
    pub(crate) fn recorded(graph: Arc<dyn Graph>) -> Self {
        PyGraph { graph: graph.into() }
    }

    fn graph(&self) -> PyResult<&Arc<dyn Graph>> {
        self.graph.get().ok_or_else(|| {
            PyValueError::new_err("the capture of this graph has not ended, or was dropped")
        })
    }
}

#[pymethods]
impl PyGraph {
    fn __repr__(&self) -> String {
        match self.graph.get() {
            Some(graph) => format!("<Graph of {} nodes>", graph.node_count()),
            None => "<Graph without a finished capture>".into(),
        }
    }

    /// Queues all of the recorded work (`cuGraphLaunch`).
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional. The stream; the default stream if omitted.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The capture of the graph has not ended.
    #[pyo3(signature = (stream = None))]
    fn launch(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let graph = self.graph()?;
        let stream = stream_argument(stream, &current_device()?)?;
        let _line = at_line(py);
        let work = || Work::new(Kind::Graph, "graph");
        // SAFETY: the program is responsible for the memory, as the class documents.
        let launch = || interruptible(|| unsafe { graph.launch(&stream) });
        py.detach(|| recording::queued(stream.as_ref(), work, launch)).or_raise()
    }

    /// The number of recorded nodes.
    #[getter]
    fn node_count(&self) -> PyResult<usize> {
        Ok(self.graph()?.node_count())
    }
}

/// The context manager of `Stream.capture`, which begins and ends a capture.
///
/// It can be used for several captures in sequence; each `with` statement binds a new `Graph`.
/// PyCUDA does not have this class.
///
/// Examples
/// --------
/// >>> from pygpu import driver, gpuarray
/// >>> stream = driver.Stream()
/// >>> x = gpuarray.zeros(3, "i4").on(stream)
/// >>> stream.synchronize()
/// >>> with stream.capture() as graph:
/// ...     x += 1
/// >>> graph.node_count
/// 1
#[pyclass(frozen, name = "Capture", module = "pygpu.driver")]
pub(crate) struct PyCapture {
    stream: Py<PyStream>,
    mode: String,
    /// The graph of the `with` statement whose body is running.
    graph: Mutex<Option<Py<PyGraph>>>,
}

impl PyCapture {
    pub(crate) fn new(stream: &Bound<'_, PyStream>, mode: &str) -> Self {
        PyCapture { stream: stream.clone().unbind(), mode: mode.into(), graph: Mutex::new(None) }
    }
}

#[pymethods]
impl PyCapture {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyGraph>> {
        let graph = Py::new(py, PyGraph { graph: OnceLock::new() })?;
        self.stream.get().begin_capture(py, &self.mode)?;
        let entered = Some(graph.clone_ref(py));
        let mut current = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, entered);
        // Dropping them may run code of the program, which may use this object.
        drop(current);
        drop(before);
        Ok(graph)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let current = || self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        let graph = current().take();
        let graph = graph.ok_or_else(|| PyRuntimeError::new_err("the capture was not entered"))?;
        let finished = self.stream.get().finish_capture(py);
        if finished.is_err() && self.stream.get().is_capturing().unwrap_or(false) {
            // Another thread, or the stream on which it began, has to end it.
            *current() = Some(graph);
            return finished.map(|_| false);
        }
        if error.is_none() {
            // Each `with` statement creates a new graph object.
            let _ = graph.get().graph.set(finished?);
        }
        Ok(false)
    }
}

fn capture_mode(mode: &str) -> PyResult<CaptureMode> {
    match mode {
        "global" => Ok(CaptureMode::Global),
        "thread_local" => Ok(CaptureMode::ThreadLocal),
        "relaxed" => Ok(CaptureMode::Relaxed),
        _ => Err(PyValueError::new_err(format!(
            "mode is {mode:?}; allowed are \"global\", \"thread_local\" and \"relaxed\""
        ))),
    }
}

impl PyStream {
    /// Ends a capture of the stream.
    pub(crate) fn finish_capture(&self, py: Python<'_>) -> PyResult<Arc<dyn Graph>> {
        // The capture ends in any case.
        let computed = compute_pending(py);
        let graph = self.note(py.detach(|| self.stream.end_capture()))?;
        computed.map(|()| graph)
    }
}

#[pymethods]
impl PyStream {
    /// Begins to record work instead of running it (`cuStreamBeginCapture`).
    ///
    /// PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// mode : {"thread_local", "global", "relaxed"}, optional
    ///     Calls that a capture cannot contain are refused meanwhile: on this thread, on all threads,
    ///     or never. Do not wait for the stream until `end_capture`.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `mode` is another name.
    /// pygpu.driver.Error
    ///     The stream already captures, or is the default stream.
    #[pyo3(signature = (mode = "thread_local"))]
    pub(crate) fn begin_capture(&self, py: Python<'_>, mode: &str) -> PyResult<()> {
        let mode = capture_mode(mode)?;
        compute_pending(py)?;
        self.note(py.detach(|| interruptible(|| self.stream.begin_capture(mode))))
    }

    /// Ends the recording and returns the recorded work (`cuStreamEndCapture`).
    ///
    /// PyCUDA does not have this method.
    ///
    /// Returns
    /// -------
    /// Graph
    ///     The recorded work.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The stream does not capture, or the queued work cannot be recorded.
    fn end_capture(&self, py: Python<'_>) -> PyResult<PyGraph> {
        Ok(PyGraph::recorded(self.finish_capture(py)?))
    }

    /// Records the work that the body of a `with` statement queues on this stream.
    ///
    /// Operations are queued on the stream of their arrays: create these on the stream, or use
    /// `GPUArray.on`. The recording ends with the body. If the body raises an exception, the recording is
    /// dropped. PyCUDA does not have this method.
    ///
    /// Parameters
    /// ----------
    /// mode : {"thread_local", "global", "relaxed"}, optional. Calls that a capture cannot contain
    ///     are refused meanwhile: on this thread, on all threads, or never.
    ///
    /// Returns
    /// -------
    /// pygpu.driver.Capture
    ///     A context manager; its `with` statement binds the `Graph`, which can be launched after
    ///     the body.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     `mode` is another name.
    /// pygpu.driver.Error
    ///     Raised by the `with` statement: the stream already captures, is the default stream, or the
    ///     queued work cannot be recorded.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import driver, gpuarray
    /// >>> stream = driver.Stream()
    /// >>> x = gpuarray.arange(3).on(stream)
    /// >>> stream.synchronize()
    /// >>> with stream.capture() as graph:
    /// ...     x += 1
    /// >>> graph.launch(stream)
    /// >>> graph.launch(stream)
    /// >>> x.get()
    /// array([2, 3, 4])
    #[pyo3(signature = (mode = "thread_local"))]
    fn capture(slf: &Bound<'_, Self>, mode: &str) -> PyResult<PyCapture> {
        capture_mode(mode)?;
        Ok(PyCapture::new(slf, mode))
    }

    /// Returns True between `begin_capture` and `end_capture`.
    ///
    /// PyCUDA does not have this method.
    ///
    /// Returns
    /// -------
    /// bool
    ///     True if work is being recorded.
    pub(crate) fn is_capturing(&self) -> PyResult<bool> {
        self.note(self.stream.is_capturing())
    }
}
