//! Results taken apart: a value and a status.

use super::Status;
use crate::error::Result;

/// The status style: what every [`Result`] of this library also is.
///
/// ```
/// use gpuarray_hal::{Error, Result, Status, StatusExt};
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
