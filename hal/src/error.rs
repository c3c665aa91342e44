//! The error type of every fallible call.

use crate::status::{AtomicStatus, Status};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Classifies a failure, for programs that handle kinds of failures differently.
///
/// A program that falls back to the host if no NVIDIA GPU can be used:
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
    /// An index is out of range for its axis.
    IndexOutOfRange,
    /// A size or an address does not fit its integer.
    Overflow,
    /// Not enough memory on the device or the host.
    OutOfMemory,
    /// A backend cannot be opened here: no library, no symbol, no device.
    BackendUnavailable,
    /// The backend or the device does not support this.
    Unsupported,
    /// A handle of an object that no longer exists, or of another process.
    InvalidHandle,
    /// Work is still in progress.
    NotReady,
    /// A compiler or loader refused a kernel's source or code.
    CompileFailed,
    /// A kernel could not be started, or failed while it ran.
    LaunchFailed,
    /// The device or its context cannot be used any longer.
    DeviceLost,
    /// Any other failure of the driver.
    Driver,
}

/// A failed call: the kind of the failure, the status with the driver's own number, the name of the call, and a
/// message.
///
/// `Display` shows the message alone, a sentence. If only the driver's number is known, the message begins with the
/// name of the call: `allocate failed: out of memory`.
///
/// A failed call names the value and the allowed values:
///
/// ```
/// use gpuarray::{DeviceArray, ErrorKind};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let values = [1.0f32, 2.0, 3.0];
/// let error = DeviceArray::from_shaped(&device, &[2, 2], &values).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// assert_eq!(error.to_string(), "values has length 3, which does not fill shape (2, 2)");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    status: Status,
    call: Cow<'static, str>,
    detail: Cow<'static, str>,
    log: Option<Arc<str>>,
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// The result of every fallible call.
///
/// A program's own functions return this error, and pass failures on with `?`:
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
        Error { kind, status, call: call.into(), detail: detail.into(), log: None }
    }

    /// Returns an `InvalidArgument` error. `detail` names the argument, its value and the allowed values.
    pub fn invalid(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidArgument, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// Returns an `InvalidType` error. `detail` names the argument, its type and the allowed types.
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

    /// Returns an `Unsupported` error. `detail` names the feature that the backend or device lacks.
    pub fn unsupported(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Unsupported, Status::host(Status::NOT_SUPPORTED), call, detail)
    }

    /// Returns a `BackendUnavailable` error. `detail` lists the attempts.
    pub fn unavailable(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::BackendUnavailable, Status::host(Status::NO_DEVICE), call, detail)
    }

    /// Returns an `InvalidHandle` error. `detail` names the object that no longer exists.
    pub fn handle(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidHandle, Status::host(Status::INVALID_HANDLE), call, detail)
    }

    /// Returns the error with a compiler's whole log, of which the message is a part.
    #[must_use]
    pub fn with_log(self, log: &str) -> Self {
        Error { log: Some(log.into()), ..self }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the status: the driver's number, or the number that this library's own check uses.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the name of the call that failed.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Returns the message.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Adds the line of the program, such as `program.py:12`, that asked for an operation which has failed later.
    #[must_use]
    pub fn asked_at(mut self, line: &str) -> Error {
        self.detail = format!("{} (asked for at {line})", self.detail).into();
        self
    }

    /// Returns the whole log of the compiler that failed; empty if there is none, or if the message is the log.
    pub fn log(&self) -> &str {
        self.log.as_deref().unwrap_or_default()
    }
}

// Conversions between errors, results and statuses.

/// Returns the kind of a status number that both vendors share.
pub fn common_kind(code: i32) -> ErrorKind {
    match code {
        Status::INVALID_VALUE | Status::INVALID_DEVICE | Status::NOT_FOUND => {
            ErrorKind::InvalidArgument
        }
        Status::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        Status::NOT_INITIALIZED | Status::DEINITIALIZED | 201 | 709 | Status::INVALID_HANDLE => {
            ErrorKind::InvalidHandle
        }
        Status::NO_DEVICE | 34 | 35 | 802 | 803 | 804 => ErrorKind::BackendUnavailable,
        200 | 209 | 218 | 222 | 223 | Status::INVALID_SOURCE | 302 | 303 => {
            ErrorKind::CompileFailed
        }
        Status::NOT_READY => ErrorKind::NotReady,
        Status::NOT_SUPPORTED => ErrorKind::Unsupported,
        Status::LAUNCH_OUT_OF_RESOURCES | 702 | 703 | 720 => ErrorKind::LaunchFailed,
        Status::ILLEGAL_ADDRESS | 710 | 714..=719 | 721 => ErrorKind::LaunchFailed,
        712 | 713 | 704 | 705 | 217 | 900..=908 => ErrorKind::InvalidArgument,
        _ => ErrorKind::Driver,
    }
}

impl Status {
    /// Returns `Ok` for success, else an error with this status. Its message names the call and the meaning of the
    /// number.
    ///
    /// # Errors
    /// An error with this status, of the kind that the number means.
    pub fn check(self, call: impl Into<Cow<'static, str>>) -> Result<()> {
        if self.is_success() {
            return Ok(());
        }
        let call = call.into();
        let detail = match (self.message(), self.name()) {
            ("", Some(name)) => format!("{call} failed: the status is {name}"),
            ("", None) => format!("{call} failed: the status is {}, which has no name", self.code),
            (message, _) => format!("{call} failed: {message}"),
        };
        Err(Error::new(common_kind(self.code), self, call, detail))
    }
}

impl From<&Error> for Status {
    fn from(error: &Error) -> Status {
        error.status()
    }
}

impl AtomicStatus {
    /// Sets the status of a result, and returns the result.
    ///
    /// # Errors
    /// The result's own.
    #[inline]
    pub fn note<T>(&self, result: Result<T>) -> Result<T> {
        self.store(result.as_ref().map_or_else(Status::from, |_| Status::OK));
        result
    }

    /// Runs `call`, and stores its status.
    ///
    /// # Errors
    /// The call's own.
    #[inline]
    pub fn during<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.note(call())
    }
}

/// Access to any [`Result`] of this library as a status.
///
/// ```
/// use gpuarray::{Error, Result, Status, StatusExt};
///
/// let found: Result<usize> = Ok(3);
/// assert_eq!(found.split(), (Some(3), Status::OK));
///
/// let failed: Result<usize> = Err(Error::invalid("call", "shape is (-1,); allowed are 0 and up"));
/// assert_eq!(failed.status().code, Status::INVALID_VALUE);
/// let (count, status) = failed.split_or_default();
/// assert_eq!(count, 0);
/// assert!(!status.is_success());
/// ```
pub trait StatusExt<T> {
    /// Returns the status of the call, success included.
    fn status(&self) -> Status;

    /// Returns the value, if there is one, and the status.
    fn split(self) -> (Option<T>, Status);

    /// Returns the value, or its type's default, and the status.
    fn split_or_default(self) -> (T, Status)
    where
        T: Default;
}

impl<T> StatusExt<T> for Result<T> {
    fn status(&self) -> Status {
        self.as_ref().map_or_else(Status::from, |_| Status::OK)
    }

    fn split(self) -> (Option<T>, Status) {
        let status = self.status();
        (self.ok(), status)
    }

    fn split_or_default(self) -> (T, Status)
    where
        T: Default,
    {
        let status = self.status();
        (self.unwrap_or_default(), status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Api;

    #[test]
    fn an_error_is_shown_as_one_sentence() {
        let sentence = "index 10 is out of bounds for axis 0 with size 6";
        for error in [
            Error::index("index", sentence),
            Error::new(ErrorKind::IndexOutOfRange, Status::cuda(1), "index", sentence),
        ] {
            assert_eq!((error.to_string().as_str(), error.call()), (sentence, "index"));
        }
        // A number alone does not say which call failed.
        for (status, sentence) in [
            (Status::cuda(2), "allocate failed: out of memory"),
            (Status::hip(4321), "allocate failed: the status is 4321, which has no name"),
            (Status::new(Api::Nvrtc, 6), "allocate failed: the status is NVRTC_ERROR_COMPILATION"),
        ] {
            let error = status.check("allocate").expect_err("a failure");
            assert_eq!((error.to_string().as_str(), error.status()), (sentence, status));
        }
    }

    #[test]
    fn a_status_becomes_an_error_of_the_kind_that_it_means() {
        assert!(Status::OK.check("call").is_ok());
        let error = Status::hip(2).check("call").expect_err("a failure");
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
        assert_eq!(Status::from(&error), Status::hip(2));
    }

    #[test]
    fn an_object_keeps_the_status_of_its_last_call() {
        let last = AtomicStatus::new();
        assert!(last.note(Status::cuda(700).check("call")).is_err());
        assert_eq!(last.load(), Status::cuda(700));
        assert!(last.note(Ok(())).is_ok());
        assert!(last.load().is_success());
    }
}
