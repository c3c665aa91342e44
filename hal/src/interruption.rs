//! Code of the program that runs inside a device's work, and work that the program may interrupt.
//!
//! A caller that has to handle something else during long work, such as Python's signals, may end that work.
//! While a kernel is interrupted, the handler is part of the device's work, and so is a function that a stream
//! runs. Such code must not wait for the device, because the device waits for it.

use crate::error::{Error, Result};
use std::cell::Cell;

/// Returns `Ok` to continue the work; an error ends the work and becomes the result of the work.
pub type Check = fn() -> Result<()>;

/// The kind of code that the calling thread runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Program,
    Kernel,
    Function,
}

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
    static PLACE: Cell<Place> = const { Cell::new(Place::Program) };
}

impl Place {
    /// Runs `code` as this kind.
    fn of<T>(self, code: impl FnOnce() -> T) -> T {
        struct Reset(Place);
        impl Drop for Reset {
            fn drop(&mut self) {
                PLACE.set(self.0);
            }
        }
        let _reset = Reset(PLACE.replace(self));
        code()
    }
}

/// Returns the result of `work`. Backends that run kernels on the calling thread call `check` there at intervals.
pub fn interruptible<T>(check: Check, work: impl FnOnce() -> T) -> T {
    struct Reset(Option<Check>);
    impl Drop for Reset {
        fn drop(&mut self) {
            CHECK.set(self.0);
        }
    }
    let _reset = Reset(CHECK.replace(Some(check)));
    work()
}

/// Returns the check of the calling thread's work, if that work may be interrupted: for backends.
pub fn check() -> Option<Check> {
    CHECK.get()
}

/// Calls a check while a kernel runs on this thread. Memory of the kernel stays locked until the kernel has run, so
/// the check must not wait for it: [`before_waiting`] refuses that.
///
/// # Errors
/// The check's.
pub fn call_in_kernel(check: Check) -> Result<()> {
    Place::Kernel.of(check)
}

/// Calls a function of the program as part of a stream's work. Waiting for the device there would wait for the
/// function itself: [`before_waiting`] and [`outside_functions`] refuse it, and memory that is dropped is freed by
/// another thread.
pub fn call_in_stream<T>(function: impl FnOnce() -> T) -> T {
    Place::Function.of(function)
}

/// Returns true inside [`call_in_kernel`].
#[inline]
pub fn is_in_kernel() -> bool {
    PLACE.get() == Place::Kernel
}

/// Returns true inside [`call_in_stream`].
#[inline]
pub fn is_in_function() -> bool {
    PLACE.get() == Place::Function
}

/// Returns false if [`before_waiting`] would refuse.
#[inline]
pub(crate) fn may_wait() -> bool {
    PLACE.get() == Place::Program
}

/// Checks that the calling thread may wait. Called before every wait.
///
/// # Errors
/// `InvalidArgument` inside [`call_in_kernel`] and [`call_in_stream`].
#[inline]
pub fn before_waiting(call: &'static str) -> Result<()> {
    if may_wait() { Ok(()) } else { Err(refused(call)) }
}

/// Checks that the calling thread is outside host functions. Called by functions that may have to wait.
///
/// # Errors
/// `InvalidArgument` inside [`call_in_stream`].
#[inline]
pub fn outside_functions(call: &'static str) -> Result<()> {
    if is_in_function() { Err(refused(call)) } else { Ok(()) }
}

#[cold]
fn refused(call: &'static str) -> Error {
    let detail = if is_in_kernel() {
        "a handler that interrupts a kernel on this thread cannot wait, because the kernel goes \
         on when the handler returns"
    } else {
        "a function that a stream runs cannot wait for the device, because the stream goes on \
         when the function \
         returns; wait before it is queued, or after it"
    };
    Error::invalid(call, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_knows_its_check() {
        assert!(check().is_none());
        let inside = interruptible(|| Ok(()), || check().is_some());
        assert!(inside && check().is_none());
    }

    #[test]
    fn nothing_waits_in_the_check_of_a_kernel_or_in_a_function_of_a_stream() {
        assert!(before_waiting("test").is_ok() && outside_functions("test").is_ok());
        assert!(call_in_kernel(|| before_waiting("test")).is_err());
        let (waits, may) = call_in_stream(|| (before_waiting("test"), outside_functions("test")));
        assert!(waits.is_err() && may.is_err());
        assert!(before_waiting("test").is_ok() && !is_in_kernel());
    }
}
