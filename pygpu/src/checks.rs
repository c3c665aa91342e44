//! Checks of kernels: the setting, and the lines of the program that allocate.

use crate::current_device::backend;
use crate::errors::{OrRaise, to_python};
use crate::running_line::running_line;
use gpuarray::{Array, Error};
use hal::checking::{self, Checking, Checks};
use hal::poison::Unpoisoned as _;
use hal::recording::line_text;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Checks kernels for faults until `end` is called or the object is dropped.
#[pyclass(frozen, name = "Checking", module = "pygpu._core")]
pub(crate) struct PyChecking(Mutex<Option<Checking>>);

#[pymethods]
impl PyChecking {
    #[new]
    fn new(kinds: &str) -> PyResult<PyChecking> {
        let checks = Checks::parse(kinds).or_raise()?;
        let backend = backend()?.name();
        if backend != "host" && !checks.is_none() {
            return Err(to_python(Error::unsupported(
                "checking",
                format!(
                    "the backend {backend} looks for no faults of kernels; PYGPU_BACKEND=host does"
                ),
            )));
        }
        Ok(PyChecking(Mutex::new(Some(Checking::begin(checks)))))
    }

    /// Ends the checks.
    fn end(&self) {
        drop(self.0.lock().unpoisoned().take());
    }
}

/// Returns the line of the program that is running, on a thread that holds Python's lock.
fn place() -> Option<String> {
    let line = Python::attach(running_line);
    (line != 0).then(|| line_text(line).to_string())
}

/// Records the place in the program that made an allocation, if checks are on. The thread holds Python's lock.
pub(crate) fn note_allocation(address: u64) {
    if !checking::current().is_none() {
        checking::set_origin(place);
        checking::note_origin(address);
    }
}

/// Like [`note_allocation`], for the memory of an array.
pub(crate) fn note_array(array: &Array) {
    array.note_for_checks();
    note_allocation(array.memory().address());
}
