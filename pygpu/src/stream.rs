//! Streams and events as PyCUDA has them.

use crate::errors::OrRaise;
use crate::runtime::{Current, current};
use gpuarray::{Event, EventOptions, Status, Stream, StreamOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING`, `CU_EVENT_INTERPROCESS`.
const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// A queue of work that the device runs in order.
#[pyclass(frozen, weakref, name = "Stream", module = "pygpu.driver")]
pub(crate) struct PyStream {
    pub(crate) stream: Arc<dyn Stream>,
    status: AtomicI32,
}

fn note<T>(status: &AtomicI32, result: gpuarray::Result<T>) -> PyResult<T> {
    let code = result.as_ref().map_or_else(|error| error.status().code, |_| Status::SUCCESS);
    status.store(code, Ordering::Relaxed);
    result.or_raise()
}

#[pymethods]
impl PyStream {
    #[new]
    #[pyo3(signature = (flags = 0, priority = 0))]
    fn new(flags: u32, priority: i32) -> PyResult<Self> {
        if flags & !NON_BLOCKING != 0 {
            return Err(PyValueError::new_err(format!(
                "flags is {flags}; allowed are 0 and 1 (non-blocking)"
            )));
        }
        let options = StreamOptions { non_blocking: flags & NON_BLOCKING != 0, priority };
        let stream = current()?.device.create_stream(options).or_raise()?;
        Ok(PyStream { stream, status: AtomicI32::new(Status::SUCCESS) })
    }

    /// Waits until all work queued so far has run.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        let result = py.detach(|| self.stream.synchronize());
        note(&self.status, result)
    }

    /// True once all work queued so far has run.
    fn is_done(&self) -> PyResult<bool> {
        note(&self.status, self.stream.query())
    }

    /// Work queued from now on runs after the work before the event's mark.
    fn wait_for_event(&self, event: &Bound<'_, PyEvent>) -> PyResult<()> {
        note(&self.status, self.stream.wait_event(event.get().event.as_ref()))
    }

    /// The driver's handle.
    #[getter]
    fn handle(&self) -> u64 {
        self.stream.handle()
    }

    /// The status code of the last call.
    #[getter]
    fn last_status(&self) -> i32 {
        self.status.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("<Stream {} of {}>", self.stream.handle(), self.stream.device_id())
    }
}

/// The stream of an argument; the default stream for `None` and 0.
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
    if value.extract::<u64>().is_ok_and(|handle| handle == 0) {
        return Ok(current.stream.clone());
    }
    Err(PyTypeError::new_err(format!(
        "stream is of type {}; a Stream or None is needed",
        value.get_type().name()?
    )))
}

/// A mark in a stream's work that can be asked for, waited for and timed.
#[pyclass(frozen, weakref, name = "Event", module = "pygpu.driver")]
pub(crate) struct PyEvent {
    pub(crate) event: Arc<dyn Event>,
    status: AtomicI32,
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (flags = 0))]
    fn new(flags: u32) -> PyResult<Self> {
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
            return Err(PyValueError::new_err(format!(
                "flags is {flags}; allowed are combinations of 1 (blocking), 2 (no timing) and 4 \
                 (interprocess)"
            )));
        }
        if flags & INTERPROCESS != 0 {
            return Err(crate::errors::to_python(gpuarray::Error::unsupported(
                "Event",
                "interprocess events are not part of this version",
            )));
        }
        let options = EventOptions {
            timing: flags & DISABLE_TIMING == 0,
            blocking: flags & BLOCKING_SYNC != 0,
        };
        let event = current()?.device.create_event(options).or_raise()?;
        Ok(PyEvent { event, status: AtomicI32::new(Status::SUCCESS) })
    }

    /// Marks this place in the work of a stream.
    #[pyo3(signature = (stream = None))]
    fn record<'py>(
        slf: Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let this = slf.get();
        let stream = stream_argument(stream, &current()?)?;
        note(&this.status, stream.record(this.event.as_ref()))?;
        Ok(slf)
    }

    /// Waits until all work before the mark has run.
    fn synchronize(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get();
        let result = slf.py().detach(|| this.event.synchronize());
        note(&this.status, result)?;
        Ok(slf)
    }

    /// True once all work before the mark has run.
    fn query(&self) -> PyResult<bool> {
        note(&self.status, self.event.query())
    }

    /// Milliseconds from another event to this one.
    fn time_since(&self, event: &Bound<'_, PyEvent>) -> PyResult<f32> {
        note(&self.status, self.event.elapsed_since(event.get().event.as_ref()))
    }

    /// Milliseconds from this event to another one.
    fn time_till(&self, event: &Bound<'_, PyEvent>) -> PyResult<f32> {
        note(&self.status, event.get().event.elapsed_since(self.event.as_ref()))
    }

    /// The driver's handle.
    #[getter]
    fn handle(&self) -> u64 {
        self.event.handle()
    }

    /// The status code of the last call.
    #[getter]
    fn last_status(&self) -> i32 {
        self.status.load(Ordering::Relaxed)
    }
}
