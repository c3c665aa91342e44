//! Host functions: functions of the program that streams run.

use super::Stream;
use crate::error::{Error, ErrorKind, Result};
use crate::interruption::call_in_stream;
use crate::poison::caught;
use crate::status::Status;

/// The return value of a host function: nothing, or a [`Result`] whose error is reported as a failure of queued work.
pub trait Outcome {
    /// Converts the value to a result of the work.
    ///
    /// # Errors
    /// The function's own error.
    fn into_result(self) -> Result<()>;
}

impl Outcome for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl Outcome for Result<()> {
    fn into_result(self) -> Result<()> {
        self
    }
}

/// A way to name the type `!` in stable Rust, for functions that never return.
#[allow(missing_docs, reason = "nobody can name it")]
pub trait Returned {
    type Type;
}

impl<T> Returned for fn() -> T {
    type Type = T;
}

impl Outcome for <fn() -> ! as Returned>::Type {
    fn into_result(self) -> Result<()> {
        self
    }
}

impl dyn Stream + '_ {
    /// Queues a function that runs on a host thread after all work queued so far (`cuLaunchHostFunc`,
    /// `hipLaunchHostFunc`). It returns nothing, or a [`Result`]. An error or a panic is a failure of the stream's
    /// work, which the next call that waits for the work reports once. Later work still runs.
    ///
    /// The function is part of the device's work. Calls in it that would wait for the device fail, such as
    /// [`Stream::synchronize`](crate::stream::StreamCore::synchronize) and copies from and to pageable memory. On CUDA
    /// and HIP, every call of the device fails inside the function. If the function drops memory, pinned memory or a
    /// copy in progress, another thread frees it after the device's work.
    ///
    /// ```
    /// use gpuarray::{Error, Result, Stream};
    ///
    /// fn queue(stream: &dyn Stream, status: fn() -> i32) -> Result<()> {
    ///     stream.host_function(|| println!("the work before has run"))?;
    ///     stream.host_function(move || match status() {
    ///         0 => Ok(()),
    ///         number => Err(Error::invalid("library", format!("the library returned {number}"))),
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// The driver's. The function is then dropped without being called.
    pub fn host_function<F, R>(&self, function: F) -> Result<()>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Outcome,
    {
        self.queue_function(Box::new(|| function().into_result()))
    }
}

/// Runs a host function as part of a stream's work: for backends.
///
/// # Errors
/// The function's own; `LaunchFailed` if it panics.
pub fn call_function(function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
    caught(|| call_in_stream(function)).unwrap_or_else(|| {
        let status = Status::host(Status::LAUNCH_FAILED);
        Err(Error::new(
            ErrorKind::LaunchFailed,
            status,
            "host_function",
            "the host function panicked",
        ))
    })
}
