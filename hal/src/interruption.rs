//! Work that its program may end while it runs: for callers that have to look after something else
//! meanwhile, as Python's signals. And code of the program that is itself a part of a device's work: handlers
//! that interrupt a kernel, and functions that a stream runs.

use crate::error::{Error, Result};
use std::cell::Cell;

/// Says whether work goes on: an error ends it, and is its result.
pub type Check = fn() -> Result<()>;

/// What the calling thread is in.
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
    /// Runs code that is in this place.
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

/// Returns the result of `work`, in which backends call `check` every so often on the calling thread, if
/// they run kernels on it.
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

/// Returns what the calling thread's work is to call, if it may be ended: for backends.
pub fn check() -> Option<Check> {
    CHECK.get()
}

/// Calls a check of a kernel that runs on this thread. What the kernel uses is ordered and queued until it
/// has run, so nothing that the check calls can wait for it: [`before_waiting`] refuses that.
///
/// # Errors
/// Those of the check.
pub fn call_in_kernel(check: Check) -> Result<()> {
    Place::Kernel.of(check)
}

/// Calls a function of the program that a stream runs as a part of its work. What waits for the device there would
/// wait for the function: [`before_waiting`] and [`outside_functions`] refuse it, and memory that is dropped is freed
/// by another thread.
pub fn call_in_stream<T>(function: impl FnOnce() -> T) -> T {
    Place::Function.of(function)
}

/// True inside [`call_in_kernel`].
#[inline]
pub fn is_in_kernel() -> bool {
    PLACE.get() == Place::Kernel
}

/// True inside [`call_in_stream`].
#[inline]
pub fn is_in_function() -> bool {
    PLACE.get() == Place::Function
}

/// False where [`before_waiting`] refuses.
#[inline]
pub(crate) fn may_wait() -> bool {
    PLACE.get() == Place::Program
}

/// Called before something waits.
///
/// # Errors
/// `InvalidArgument` inside [`call_in_kernel`] and [`call_in_stream`].
#[inline]
pub fn before_waiting(call: &'static str) -> Result<()> {
    if may_wait() { Ok(()) } else { Err(refused(call)) }
}

/// Called by what waits if it has to, so that in functions of streams it never does.
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
        "a handler that interrupts a kernel on this thread waits for nothing: the kernel goes on when the \
         handler returns"
    } else {
        "a function that a stream runs waits for nothing of the device: the stream goes on when the function \
         returns; wait before it is queued, or behind it"
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
