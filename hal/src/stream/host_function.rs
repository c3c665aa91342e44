//! Functions of the program that streams run.

use super::Stream;
use crate::error::{Error, ErrorKind, Result};
use crate::interruption::call_in_stream;
use crate::poison::caught;
use crate::status::Status;

/// What a host function returns: nothing, or a [`Result`] whose error is reported as a failure of queued work.
pub trait Outcome {
    /// Returns the result of the work.
    ///
    /// # Errors
    /// What the function has failed with.
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

/// The type of a function that does not return, by the only name that it has in stable Rust.
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
    /// Queues a function that runs on a host thread when all work queued so far has run
    /// (`cuLaunchHostFunc`, `hipLaunchHostFunc`). It returns nothing, or a [`Result`]: an error, and a panic, is
    /// a failure of the stream's work, which the next call that waits for it reports once. The work
    /// behind it runs.
    ///
    /// The function is a part of the device's work. What would wait for that, such as
    /// [`Stream::synchronize`](crate::stream::StreamCore::synchronize) and copies from and to pageable memory, is an error in it; on CUDA and HIP so is
    /// every call of the device. Memory, pinned memory and copies under way that are dropped in it
    /// are freed by another thread, once the device's work has run.
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
    /// The driver's; the function is dropped without being called then.
    pub fn host_function<F, R>(&self, function: F) -> Result<()>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Outcome,
    {
        self.queue_function(Box::new(|| function().into_result()))
    }
}

/// Runs a function of the program as a part of a stream's work: for backends.
///
/// # Errors
/// The function's own; `LaunchFailed` if it panics.
pub fn call_function(function: Box<dyn FnOnce() -> Result<()> + Send>) -> Result<()> {
    caught(|| call_in_stream(function)).unwrap_or_else(|| {
        let status = Status::host(Status::LAUNCH_FAILED);
        Err(Error::new(ErrorKind::LaunchFailed, status, "host_function", "the function panicked"))
    })
}
