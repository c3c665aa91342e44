//! Looking for faults of kernels: the setting, and the lines of the program that allocate.

use crate::current_device::backend;
use crate::errors::{OrRaise, to_python};
use gpuarray::checking::{self, Checks};
use gpuarray::{Array, Error};
use pyo3::prelude::*;

/// Says what launches look for from now on; returns what they looked for before.
#[pyfunction]
pub(crate) fn set_checks(kinds: &str) -> PyResult<String> {
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
    checking::set_origin(place);
    Ok(text(checking::set(checks)))
}

/// Returns what launches look for.
#[pyfunction]
pub(crate) fn get_checks() -> PyResult<String> {
    backend()?;
    Ok(text(checking::current()))
}

fn text(checks: Checks) -> String {
    match checks.is_none() {
        true => "none".to_owned(),
        false => checks.names().collect::<Vec<_>>().join(","),
    }
}

/// The line of the program that runs, for a thread that has Python's lock.
fn place() -> Option<String> {
    Python::attach(|py| {
        let place = py.import("pygpu._checking")?.getattr("place")?.call0()?;
        place.extract::<Option<String>>()
    })
    .inspect_err(|error| log::debug!("no line for an allocation: {error}"))
    .ok()?
}

/// Notes, if something is looked for, where the program is that has made an allocation. The thread has Python's
/// lock.
pub(crate) fn note_allocation(address: u64) {
    if !checking::current().is_none() {
        checking::set_origin(place);
        checking::note_origin(address);
    }
}

/// As [`note_allocation`], for the memory of an array.
pub(crate) fn note_array(array: &Array) {
    if !checking::current().is_none() {
        checking::note_array(array);
        note_allocation(array.memory().address());
    }
}
