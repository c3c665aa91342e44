//! The error type of every fallible call.

use crate::status::Status;
use std::borrow::Cow;

/// What went wrong, in a form that programs can decide on.
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

/// A failed call: what kind of failure, the driver's own number, the call, and the details.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {detail} [{status}]")]
pub struct Error {
    kind: ErrorKind,
    status: Status,
    call: Cow<'static, str>,
    detail: Cow<'static, str>,
}

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with the status that the driver or the check gave.
    pub fn new(
        kind: ErrorKind,
        status: Status,
        call: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Error { kind, status, call: call.into(), detail: detail.into() }
    }

    /// An argument's value is not allowed; `detail` names it, its value and what is allowed.
    pub fn invalid(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidArgument, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// An argument's type or dtype is not allowed.
    pub fn invalid_type(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidType, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// An index lies outside its axis.
    pub fn index(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::IndexOutOfRange, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// A size or address does not fit.
    pub fn overflow(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Overflow, Status::host(Status::INVALID_VALUE), call, detail)
    }

    /// The backend or device does not offer this.
    pub fn unsupported(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::Unsupported, Status::host(Status::NOT_SUPPORTED), call, detail)
    }

    /// A backend cannot be opened; `detail` lists what was tried.
    pub fn unavailable(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::BackendUnavailable, Status::host(Status::NO_DEVICE), call, detail)
    }

    /// A handle of an object that is gone.
    pub fn handle(call: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Error::new(ErrorKind::InvalidHandle, Status::host(Status::INVALID_HANDLE), call, detail)
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The number that the driver, or this library's check, gave.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The call that failed.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// The sentence that says what was wrong.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}
