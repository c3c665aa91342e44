//! Conversion of the core's errors to the Python exceptions that PyCUDA and numpy raise.

use gpuarray::{Error, ErrorKind, Status};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::cell::RefCell;

static EXCEPTIONS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

thread_local! {
    /// An exception that Python code, such as an allocator, raised inside a call of the core.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Stores a Python exception, and returns an error that represents it in the core.
pub(crate) fn raised_in_python(call: &'static str, exception: PyErr) -> Error {
    let error = Error::new(
        ErrorKind::Driver,
        Status::host(Status::UNKNOWN),
        call,
        format!("Python raised {exception}"),
    );
    // The previous exception is dropped after the borrow ends, because dropping it may run code of the
    // program.
    let before = RAISED.replace(Some(exception));
    drop(before);
    error
}

/// Returns the Python exception for an error of the core.
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
            exception.setattr("status_name", error.status().name().unwrap_or_default())?;
            exception.setattr("call", error.call())?;
            exception.setattr("detail", error.detail())?;
            if !error.log().is_empty() {
                exception.setattr("stderr", error.log())?;
            }
            Ok(PyErr::from_value(exception))
        };
        match exceptions.and_then(build) {
            Ok(exception) => exception,
            Err(_) => PyRuntimeError::new_err(error.to_string()),
        }
    })
}

/// Returns the class in `pygpu._errors` for an error: PyCUDA's class for the driver's number, or a class
/// derived from it.
fn class_name(error: &Error) -> &'static str {
    let code = error.status().code;
    // PyCUDA's rule: launches that failed, or that exceeded resources or time.
    let is_of_launch =
        matches!(code, Status::LAUNCH_FAILED | Status::LAUNCH_OUT_OF_RESOURCES | 702 | 703);
    match error.kind() {
        ErrorKind::InvalidArgument => "InvalidArgument",
        ErrorKind::InvalidType => "InvalidType",
        ErrorKind::IndexOutOfRange if error.call() == "axis" => "AxisOutOfRange",
        ErrorKind::IndexOutOfRange => "IndexOutOfRange",
        // For a size that is too large, numpy raises ValueError for a shape and OverflowError for a number.
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
            // PyCUDA's rule for code that the driver refuses to load.
            209 => "CodeForOtherDevices",
            200 | 218 | 222 | 223 | 300 | 302 | 303 => "InvalidCode",
            _ => "CompileError",
        },
        _ => match code {
            // Failed memory, a missing file, and unknown errors.
            214 | 301 | Status::UNKNOWN => "RuntimeError",
            _ => "DriverRefusal",
        },
    }
}

/// Allows `?` on results of the core in functions that Python calls.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for gpuarray::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_python)
    }
}
