//! Events as a Python class, and the time of work between two events.

use crate::current_device::current_device;
use crate::errors::{OrRaise, to_python};
use crate::fused_block::compute_pending;
use crate::integer::argument;
use crate::ipc;
use crate::numpy_array::type_name;
use crate::status;
use crate::stream::{PyStream, stream_argument};
use crate::synchronize::{interruptible, synchronize_event};
use gpuarray::{Device, Error, Event, EventOptions, Stream};
use hal::recording;
use hal::status::AtomicStatus;
use once_cell::sync::OnceCell;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};
use std::sync::Arc;

/// `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING`, `CU_EVENT_INTERPROCESS`.
const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

/// A mark in a stream's work, which can be queried, waited for and timed (`cuEventCreate`,
/// `hipEventCreateWithFlags`).
///
/// Parameters
/// ----------
/// flags : int. Values of `driver.event_flags`: BLOCKING_SYNC, DISABLE_TIMING and INTERPROCESS.
///
/// Raises
/// ------
/// ValueError
///     `flags` has other bits.
/// LogicError
///     INTERPROCESS was given without DISABLE_TIMING.
///
/// Examples
/// --------
/// >>> from pygpu import autoinit, driver, gpuarray
/// >>> start, end = driver.Event(), driver.Event()
/// >>> _ = start.record()
/// >>> a = gpuarray.zeros(1000)
/// >>> _ = end.record()
/// >>> end.synchronize().query()
/// True
/// >>> start.time_till(end) >= 0  # milliseconds
/// True
/// >>> end.time_since(start) == start.time_till(end)
/// True
#[pyclass(frozen, subclass, dict, weakref, name = "Event", module = "pygpu.driver")]
pub(crate) struct PyEvent {
    /// Set by `__init__`, which derived classes call with their own arguments.
    content: OnceCell<Content>,
}

struct Content {
    event: Arc<dyn Event>,
    device: Arc<dyn Device>,
    /// The device's epoch when the event was made.
    epoch: u64,
    status: AtomicStatus,
}

impl Content {
    fn new(event: Arc<dyn Event>, device: Arc<dyn Device>) -> Content {
        Content { event, epoch: device.epoch(), device, status: AtomicStatus::new() }
    }

    fn note<T>(&self, result: gpuarray::Result<T>) -> PyResult<T> {
        self.status.note(result).or_raise()
    }
}

impl PyEvent {
    fn content(&self) -> PyResult<&Content> {
        self.content
            .get()
            .ok_or_else(|| PyRuntimeError::new_err("Event.__init__ has not been called"))
    }

    /// Returns the backend's event.
    pub(crate) fn event(&self) -> PyResult<&dyn Event> {
        Ok(self.content()?.event.as_ref())
    }
}

/// Returns the argument `event`.
pub(crate) fn event_argument<'a, 'py>(
    value: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyEvent>> {
    value.cast().map_err(|_| {
        let kind = type_name(value);
        PyTypeError::new_err(format!("event is of type {kind}; an Event is needed"))
    })
}

#[pymethods]
impl PyEvent {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        PyEvent { content: OnceCell::new() }
    }

    #[pyo3(signature = (flags = 0))]
    fn __init__(&self, #[pyo3(from_py_with = argument::flags)] flags: u32) -> PyResult<()> {
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
            return Err(PyValueError::new_err(format!(
                "flags is {flags}; allowed are combinations of 1 (blocking), 2 (no timing) and 4 \
                 (interprocess)"
            )));
        }
        let options = EventOptions::default()
            .timing(flags & DISABLE_TIMING == 0)
            .blocking(flags & BLOCKING_SYNC != 0)
            .interprocess(flags & INTERPROCESS != 0);
        if options.interprocess && options.timing {
            return Err(to_python(Error::invalid(
                "Event",
                format!("flags is {flags}; interprocess (4) also needs no timing (2)"),
            )));
        }
        let device = current_device()?.device;
        let event = device.create_event(options).or_raise()?;
        self.content
            .set(Content::new(event, device))
            .map_err(|_| PyRuntimeError::new_err("Event.__init__ was called a second time"))
    }

    fn __repr__(&self) -> PyResult<String> {
        let event = self.event()?;
        Ok(format!("<Event {:#x} of {}>", event.handle(), event.device_id()))
    }

    /// Records the event: marks the end of a stream's queued work (`cuEventRecord`,
    /// `hipEventRecord`).
    ///
    /// Parameters
    /// ----------
    /// stream : Stream, optional. The stream; the default stream if omitted.
    ///
    /// Returns
    /// -------
    /// Event
    ///     The event itself.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `stream` is not a stream.
    /// Error
    ///     The driver refuses it, for example for a stream of another device than the event's.
    #[pyo3(signature = (stream = None))]
    fn record<'py>(
        slf: Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        compute_pending(slf.py())?;
        let this = slf.get().content()?;
        let stream = stream_argument(stream, &current_device()?)?;
        this.note(stream.record(this.event.as_ref()))?;
        Ok(slf)
    }

    /// Waits until all work before the mark has finished (`cuEventSynchronize`,
    /// `hipEventSynchronize`).
    ///
    /// Returns
    /// -------
    /// Event
    ///     The event itself.
    ///
    /// Raises
    /// ------
    /// Error
    ///     Work that was queued before the mark has failed.
    fn synchronize(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get().content()?;
        this.note(synchronize_event(slf.py(), this.event.as_ref())?)?;
        Ok(slf)
    }

    /// Returns True if all work before the mark has finished (`cuEventQuery`, `hipEventQuery`).
    ///
    /// Returns
    /// -------
    /// bool
    ///     Also True for an event that was never recorded.
    ///
    /// Raises
    /// ------
    /// Error
    ///     Work that was queued before the mark has failed.
    fn query(&self) -> PyResult<bool> {
        let this = self.content()?;
        this.note(this.event.query())
    }

    /// Returns the time from another event to this one (`cuEventElapsedTime`,
    /// `hipEventElapsedTime`).
    ///
    /// Parameters
    /// ----------
    /// event : Event. The earlier event.
    ///
    /// Returns
    /// -------
    /// float
    ///     Milliseconds.
    ///
    /// Raises
    /// ------
    /// Error
    ///     Either event was not recorded, has not been reached, or was made with DISABLE_TIMING.
    fn time_since(&self, event: &Bound<'_, PyAny>) -> PyResult<f32> {
        let this = self.content()?;
        this.note(this.event.elapsed_since(event_argument(event)?.get().event()?))
    }

    /// Returns the time from this event to a later one, in milliseconds (`cuEventElapsedTime`,
    /// `hipEventElapsedTime`). Arguments are as in :meth:`time_since`.
    ///
    /// Raises
    /// ------
    /// Error
    ///     As for `time_since`.
    fn time_till(&self, event: &Bound<'_, PyAny>) -> PyResult<f32> {
        let this = self.content()?;
        this.note(event_argument(event)?.get().event()?.elapsed_since(this.event.as_ref()))
    }

    /// Returns the handle with which other processes can open an event made with `INTERPROCESS`
    /// (`cuIpcGetEventHandle`, `hipIpcGetEventHandle`).
    ///
    /// Returns
    /// -------
    /// bytearray
    ///     64 octets.
    ///
    /// Raises
    /// ------
    /// Error
    ///     The event was made without `INTERPROCESS`, or the device cannot share events.
    ///
    /// Examples
    /// --------
    /// >>> from pygpu import autoinit, driver
    /// >>> flags = driver.event_flags.INTERPROCESS | driver.event_flags.DISABLE_TIMING
    /// >>> len(driver.Event(flags).ipc_handle())  # for driver.Event.from_ipc_handle(handle)
    /// 64
    fn ipc_handle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        let this = self.content()?;
        let handle = this.note(this.device.export_event(this.event.as_ref()))?;
        Ok(ipc::to_object(py, &handle))
    }

    /// Returns the event that another process exported (`cuIpcOpenEventHandle`,
    /// `hipIpcOpenEventHandle`).
    ///
    /// Parameters
    /// ----------
    /// handle : bytearray or bytes. The result of `ipc_handle` in the other process.
    ///
    /// Returns
    /// -------
    /// Event
    ///     The event.
    ///
    /// Raises
    /// ------
    /// LogicError
    ///     The handle does not belong to a live event.
    #[staticmethod]
    fn from_ipc_handle(handle: &Bound<'_, PyAny>) -> PyResult<PyEvent> {
        let handle = ipc::parse("from_ipc_handle", handle)?;
        let device = current_device()?.device;
        let event = device.import_event(&handle).or_raise()?;
        Ok(PyEvent { content: OnceCell::with_value(Content::new(event, device)) })
    }

    /// The driver's handle; LogicError after a reset of the device, which destroys the event.
    #[getter]
    fn handle(&self) -> PyResult<u64> {
        let Content { event, device, epoch, .. } = self.content()?;
        if device.epoch() != *epoch {
            let detail = format!(
                "the event is from before device {} was reset, which destroyed it; create it again",
                device.id()
            );
            return Err(to_python(Error::handle("event", detail)));
        }
        Ok(event.handle())
    }

    /// The status of the last call.
    #[getter]
    fn last_status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        status::object(py, self.content()?.status.load())
    }
}

/// Two events around work on a stream, for its time.
#[pyclass(frozen, module = "pygpu.driver")]
pub(crate) struct CallTime {
    start: Arc<dyn Event>,
    end: Arc<dyn Event>,
}

impl CallTime {
    /// Queues work on a stream between two events; also returns the result of `work`.
    pub(crate) fn of<T>(
        device: &dyn Device,
        stream: &dyn Stream,
        work: impl FnOnce() -> PyResult<T>,
    ) -> PyResult<(T, CallTime)> {
        let event = || device.create_event(EventOptions::default());
        let (start, end) = (event().or_raise()?, event().or_raise()?);
        stream.record(start.as_ref()).or_raise()?;
        let result = work()?;
        stream.record(end.as_ref()).or_raise()?;
        Ok((result, CallTime { start, end }))
    }
}

#[pymethods]
impl CallTime {
    /// Waits for the work, and returns its time in seconds.
    fn __call__(&self, py: Python<'_>) -> PyResult<f64> {
        synchronize_event(py, self.end.as_ref())?.or_raise()?;
        let milliseconds = self.end.elapsed_since(self.start.as_ref()).or_raise()?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

#[pymethods]
impl PyStream {
    /// Makes work that is queued from now on run after the work before the event (`cuStreamWaitEvent`,
    /// `hipStreamWaitEvent`). The call does not wait.
    ///
    /// Parameters
    /// ----------
    /// event : Event. The event.
    ///
    /// Raises
    /// ------
    /// TypeError
    ///     `event` is not an event.
    fn wait_for_event(&self, py: Python<'_>, event: &Bound<'_, PyAny>) -> PyResult<()> {
        let event = event_argument(event)?.get().event()?;
        // A stream that joins a capture through the event first waits for its earlier work.
        self.note(
            py.detach(|| interruptible(|| recording::wait_event(self.stream.as_ref(), event))),
        )
    }
}
