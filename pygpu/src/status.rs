//! Statuses as Python objects: `pygpu.Status` over the core's numbers and names.

use crate::current_device::opened_backend;
use crate::errors::{OrRaise, to_python};
use gpuarray::{Api, Error, Status};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the name of an interface in Python: its backend's or its compiler's name.
fn api_name(api: Api) -> &'static str {
    match api {
        Api::Cuda => "cuda",
        Api::Hip => "hip",
        Api::Nvrtc => "nvrtc",
        Api::Hiprtc => "hiprtc",
        _ => "host",
    }
}

fn status(api: &str, code: i32) -> PyResult<Status> {
    let known = Api::ALL.into_iter().find(|&known| api_name(known) == api);
    let api = known.ok_or_else(|| {
        let names = Api::ALL.map(api_name);
        to_python(Error::invalid("Status", format!("api is {api:?}; allowed are {names:?}")))
    })?;
    Ok(Status::new(api, code))
}

/// Returns the `pygpu.Status` for a status.
pub(crate) fn object(py: Python<'_>, status: Status) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("pygpu._status")?.getattr("Status")?.unbind())
    })?;
    class.bind(py).call1((status.code, api_name(status.api)))
}

/// Returns the name of a number, and its name in the vendor's runtime library; `None` for an
/// unnamed one.
#[pyfunction]
pub(crate) fn status_names(
    api: &str,
    code: i32,
) -> PyResult<(Option<&'static str>, Option<&'static str>)> {
    let status = status(api, code)?;
    Ok((status.name(), status.runtime_name()))
}

/// Returns the explanation of a number; the vendor's own if its backend is open and has one.
#[pyfunction]
pub(crate) fn status_message(api: &str, code: i32) -> PyResult<&'static str> {
    let status = status(api, code)?;
    let backend = opened_backend().filter(|backend| backend.api() == status.api);
    Ok(backend.and_then(|backend| backend.status_message(code)).unwrap_or(status.message()))
}

/// Raises the exception of a status, unless it is a success.
#[pyfunction]
#[pyo3(signature = (api, code, call, reason = None))]
pub(crate) fn check_status(
    api: &str,
    code: i32,
    call: &str,
    reason: Option<String>,
) -> PyResult<()> {
    let with_reason = |error: Error| {
        // The number is all that is known: no call has failed here.
        let meaning = error.detail().trim_start_matches(call).trim_start_matches(" failed: ");
        let reason = reason.unwrap_or_else(|| meaning.to_owned());
        Error::new(error.kind(), error.status(), call.to_owned(), reason)
    };
    status(api, code)?.check(call.to_owned()).map_err(with_reason).or_raise()
}
