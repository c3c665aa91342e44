//! Fault injection for tests (feature `testing`): `pygpu._core._testing`, which released wheels do
//! not contain.

use gpuarray::{Backend, ErrorKind};
use hal::layers::{Call, Fault, FaultInjector, intercept};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// The injector of the backend; `None` if the variable was not set at the first use.
static INJECTOR: OnceLock<Option<Arc<FaultInjector>>> = OnceLock::new();

/// The environment variable that makes every call counted and, on demand, fail.
const FAULTS_VARIABLE: &str = "PYGPU_FAULT_INJECTION";

/// Adds the module `_testing`, without naming it in `__all__`.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let testing = PyModule::new(module.py(), "_testing")?;
    testing.add_function(wrap_pyfunction!(inject_fault, &testing)?)?;
    testing.add_function(wrap_pyfunction!(fault_calls, &testing)?)?;
    module.setattr("_testing", testing)
}

/// Returns the backend with its calls counted if the variable is set, else the backend itself.
pub(crate) fn watched(opened: Arc<dyn Backend>) -> Arc<dyn Backend> {
    match installed() {
        Some(injector) => intercept(opened, injector.clone()),
        None => opened,
    }
}

fn installed() -> Option<&'static Arc<FaultInjector>> {
    let is_set = || std::env::var_os(FAULTS_VARIABLE).is_some_and(|value| !value.is_empty());
    INJECTOR.get_or_init(|| is_set().then(|| Arc::new(FaultInjector::new()))).as_ref()
}

fn injector() -> PyResult<&'static Arc<FaultInjector>> {
    installed().ok_or_else(|| {
        PyRuntimeError::new_err(format!(
            "{FAULTS_VARIABLE} was not set when the backend was opened"
        ))
    })
}

fn call_by_name(name: &str) -> PyResult<Call> {
    Call::ALL.into_iter().find(|call| format!("{call:?}") == name).ok_or_else(|| {
        PyValueError::new_err(format!("call is {name:?}; allowed are {:?}", Call::ALL))
    })
}

/// Makes the call of a kind after `after` others fail; with `None`, calls are only counted.
#[pyfunction]
#[pyo3(signature = (call, after = 0, out_of_memory = false))]
fn inject_fault(call: Option<&str>, after: usize, out_of_memory: bool) -> PyResult<()> {
    let (kind, code) =
        if out_of_memory { (ErrorKind::OutOfMemory, 2) } else { (ErrorKind::Driver, 999) };
    let fault =
        call.map(|name| Ok::<_, PyErr>(Fault { call: call_by_name(name)?, after, kind, code }));
    injector()?.arm(fault.transpose()?);
    Ok(())
}

/// Returns the calls since `inject_fault`, as pairs of kind and count, and the number of injected
/// failures.
#[pyfunction]
fn fault_calls() -> PyResult<(Vec<(String, usize)>, usize)> {
    let injector = injector()?;
    let counts = Call::ALL.into_iter().map(|call| (format!("{call:?}"), injector.calls(call)));
    Ok((counts.filter(|(_, count)| *count > 0).collect(), injector.injected()))
}
