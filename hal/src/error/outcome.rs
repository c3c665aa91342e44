//! Errors and results as statuses, and statuses as errors.

use super::{Error, ErrorKind, Result};
use crate::status::{AtomicStatus, Status};

/// Returns the kind of a status number that both vendors have.
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
    /// Returns `Ok` for success, else an error with this status.
    ///
    /// # Errors
    /// One with this status, of the kind that the number means.
    pub fn check(self, call: &'static str) -> Result<()> {
        if self.is_success() {
            return Ok(());
        }
        let detail = match self.message() {
            "" => format!("the call returned {self}"),
            message => message.into(),
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

    /// Makes a call, and sets its status.
    ///
    /// # Errors
    /// The call's own.
    #[inline]
    pub fn during<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.note(call())
    }
}

/// The status style: what every [`Result`] of this library also is.
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

    #[test]
    fn a_status_becomes_an_error_of_the_kind_that_it_means() {
        assert!(Status::OK.check("call").is_ok());
        let error = Status::hip(2).check("call").expect_err("a failure");
        assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
        assert_eq!(Status::from(&error), Status::hip(2));
        let unknown = Status::cuda(4321).check("call").expect_err("a failure");
        assert_eq!(unknown.detail(), "the call returned status 4321 of Cuda");
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
