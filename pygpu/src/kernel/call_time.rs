//! Timing of work on a stream.

use crate::errors::OrRaise;
use crate::synchronize;
use gpuarray::{Device, Event, EventOptions, Stream};
use pyo3::prelude::*;
use std::sync::Arc;

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
        synchronize::synchronize_event(py, self.end.as_ref())?.or_raise()?;
        let milliseconds = self.end.elapsed_since(self.start.as_ref()).or_raise()?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}
