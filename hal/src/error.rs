//! The error type of every fallible call.

mod outcome;

pub use outcome::{StatusExt, common_kind};

use crate::status::{Api, Status};
use std::borrow::Cow;
use std::fmt;

/// Classifies a failure, for programs that decide on it.
///
/// A program that falls back to the host where no NVIDIA GPU can be used:
///
/// ```
/// use gpuarray::{Choice, ErrorKind};
///
/// # fn main() -> gpuarray::Result<()> {
/// let backend = match gpuarray::open(Choice::Cuda) {
///     Err(error) if error.kind() == ErrorKind::BackendUnavailable => gpuarray::open(Choice::Host),
///     opened => opened,
/// }?;
/// assert!(backend.device_count()? > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument's value is not allowed.
    InvalidArgument,
    /// An argument's type or dtype is not allowed.
    InvalidType,
    /// An index lies outside its axis.
    IndexOutOfRange,
    /// A size or an address does not fit its integer.
    Overflow,
    /// Not enough memory on the device or the host.
    OutOfMemory,
    /// A backend cannot be opened here: no library, no symbol, no device.
    BackendUnavailable,
    /// The backend or the device does not offer this.
    Unsupported,
    /// A handle of an object that is gone, or of another process.
    InvalidHandle,
    /// Work is still under way.
    NotReady,
    /// A kernel's source or code was refused by a compiler or loader.
    CompileFailed,
    /// A kernel could not be started, or failed while it ran.
    LaunchFailed,
    /// The device or its context cannot be used any longer.
    DeviceLost,
    /// A failure of the driver that has no kind of its own.
    Driver,
}

/// A failed call: the kind of the failure, the status with the driver's own number, the name of the
/// call, and a sentence about it.
///
/// It is shown as that sentence. A driver's refusal has the call in front: its own words may not say what failed.
///
/// A failed call names the value and what would be allowed:
///
/// ```
/// use gpuarray::{DeviceArray, ErrorKind};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let values = [1.0f32, 2.0, 3.0];
/// let error = DeviceArray::from_shaped(&device, &[2, 2], &values).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert_eq!(error.to_string(), "3 values do not fill shape (2, 2)");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    status: Status,
    call: Cow<'static, str>,
    detail: Cow<'static, str>,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status.api {
            Api::Host => f.write_str(&self.detail),
            _ => write!(f, "{}: {}", self.call, self.detail),
        }
    }
}

/// The result of every fallible call.
///
/// A program's own functions return it, and pass failures on with `?`:
///
/// ```
/// use gpuarray::{Choice, DeviceArray, Result};
///
/// # fn main() -> gpuarray::Result<()> {
/// fn total(values: &[f32]) -> Result<f32> {
///     let device = gpuarray::open(Choice::Host)?.device(0)?;
///     DeviceArray::from_slice(&device, values)?.sum()
/// }
/// assert_eq!(total(&[1.0, 2.0])?, 3.0);
/// # Ok(())
/// # }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error of `kind` with the status of the driver or of the check that failed.
    pub fn new(
        kind: ErrorKind,
        status: Status,
        call: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error { kind, status, call: call.into(), detail: detail.into() }
    }

    /// Returns an `InvalidArgument` error. `detail` names the argument, its value and what is
    /// allowed.
    pub fn invalid(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidArgument, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// Returns an `InvalidType` error. `detail` names the argument, its type and what is allowed.
    pub fn invalid_type(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidType, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// Returns an `IndexOutOfRange` error. `detail` names the index, the axis and its extent.
    pub fn index(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::IndexOutOfRange, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// Returns an `Overflow` error. `detail` names the sizes that do not fit.
    pub fn overflow(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Overflow, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// Returns an `Unsupported` error. `detail` says what the backend or the device does not offer.
    pub fn unsupported(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Unsupported, Status::host(Status::NOT_SUPPORTED), call, detail)
    }

    /// Returns a `BackendUnavailable` error. `detail` lists what was tried.
    pub fn unavailable(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::BackendUnavailable, Status::host(Status::NO_DEVICE), call, detail)
    }

    /// Returns an `InvalidHandle` error. `detail` names the object that is gone.
    pub fn handle(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidHandle, Status::host(Status::INVALID_HANDLE), call, detail)
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the status: the number that the driver returned, or that this library's check stands
    /// for.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the name of the call that failed.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Returns the sentence that says what was wrong.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_as_one_sentence() {
        let own = Error::index("index", "index 10 is out of bounds for axis 0 with size 6");
        assert_eq!(own.to_string(), own.detail());
        // A driver's words alone may not say what it refused.
        let detail = "there is not enough memory (CUDA_ERROR_OUT_OF_MEMORY)";
        let driver = Error::new(ErrorKind::OutOfMemory, Status::cuda(2), "allocate", detail);
        assert_eq!(driver.to_string(), format!("allocate: {detail}"));
        assert_eq!((driver.call(), driver.status().code), ("allocate", 2));
    }
}
