//! Errors of the core as the Python exceptions that PyCUDA and numpy raise.

use gpuarray::{Error, ErrorKind, Status};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::cell::RefCell;

static EXCEPTIONS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

thread_local! {
    /// An exception that Python code raised inside a call of the core, such as an allocator's.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps a Python exception while an error of the core stands for it.
pub(crate) fn raised_in_python(call: &'static str, exception: PyErr) -> Error {
    let error = Error::new(
        ErrorKind::Driver,
        Status::host(Status::UNKNOWN),
        call,
        format!("Python raised {exception}"),
    );
    // The one before goes when nothing is borrowed any longer: that may run code of the program.
    let before = RAISED.replace(Some(exception));
    drop(before);
    error
}

/// The Python exception for an error of the core.
pub(crate) fn to_python(error: Error) -> PyErr {
    if let Some(exception) = RAISED.take() {
        return exception;
    }
    Python::attach(|py| {
        let exceptions = EXCEPTIONS.get_or_try_init(py, || {
            Ok::<_, PyErr>(PyModule::import(py, "pygpu._errors")?.unbind())
        });
        let build = |module: &Py<PyModule>| {
            let class = module.bind(py).getattr(class_name(&error))?;
            let exception = class.call1((error.to_string(),))?;
            exception.setattr("status", error.status().code)?;
            exception.setattr("call", error.call())?;
            exception.setattr("detail", error.detail())?;
            Ok(PyErr::from_value(exception))
        };
        match exceptions.and_then(build) {
            Ok(exception) => exception,
            Err(_) => PyRuntimeError::new_err(error.to_string()),
        }
    })
}

/// The class in `pygpu._errors` for an error. It is PyCUDA's for the driver's number, or derives from that.
fn class_name(error: &Error) -> &'static str {
    let code = error.status().code;
    // PyCUDA's rule: launches that failed, that ran out of resources or of time.
    let is_of_launch =
        matches!(code, Status::LAUNCH_FAILED | Status::LAUNCH_OUT_OF_RESOURCES | 702 | 703);
    match error.kind() {
        ErrorKind::InvalidArgument => "InvalidArgument",
        ErrorKind::InvalidType => "InvalidType",
        ErrorKind::IndexOutOfRange if error.call() == "axis" => "AxisOutOfRange",
        ErrorKind::IndexOutOfRange => "IndexOutOfRange",
        // numpy refuses a shape that is too large with ValueError, a number with OverflowError.
        ErrorKind::Overflow if error.call() == "scalar" => "NumberOverflow",
        ErrorKind::Overflow => "InvalidArgument",
        ErrorKind::OutOfMemory => "MemoryError",
        ErrorKind::BackendUnavailable => match code {
            34 | 35 | 802..=804 => "UnusableDriver",
            _ => "BackendUnavailable",
        },
        ErrorKind::Unsupported => "Unsupported",
        ErrorKind::InvalidHandle => "LogicError",
        ErrorKind::NotReady => "NotReady",
        ErrorKind::LaunchFailed if is_of_launch => "LaunchError",
        ErrorKind::LaunchFailed => "KernelFault",
        ErrorKind::DeviceLost if is_of_launch => "DeviceLostInLaunch",
        ErrorKind::DeviceLost => "DeviceLost",
        ErrorKind::CompileFailed if error.call() == "compile" => "CompileError",
        ErrorKind::CompileFailed => match code {
            // PyCUDA's rule for code that the driver does not load.
            209 => "CodeForOtherDevices",
            200 | 218 | 222 | 223 | 300 | 302 | 303 => "InvalidCode",
            _ => "CompileError",
        },
        _ => match code {
            // Memory that failed, a file that is not there, and what has no reason.
            214 | 301 | Status::UNKNOWN => "RuntimeError",
            _ => "DriverRefusal",
        },
    }
}

/// `?` for results of the core in functions that Python calls.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for gpuarray::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
