//! Work that its program may end while it runs: for callers that have to look after something else
//! meanwhile, as Python's signals.

use crate::error::{Error, Result};
use std::cell::Cell;

/// Says whether work goes on: an error ends it, and is its result.
pub type Check = fn() -> Result<()>;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
    static IN_KERNEL: Cell<bool> = const { Cell::new(false) };
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
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            IN_KERNEL.set(self.0);
        }
    }
    let _reset = Reset(IN_KERNEL.replace(true));
    check()
}

/// True inside [`call_in_kernel`].
#[inline]
pub fn is_in_kernel() -> bool {
    IN_KERNEL.get()
}

/// Called before something waits.
///
/// # Errors
/// `InvalidArgument` inside [`call_in_kernel`].
#[inline]
pub fn before_waiting(call: &'static str) -> Result<()> {
    if is_in_kernel() { Err(refused(call)) } else { Ok(()) }
}

#[cold]
fn refused(call: &'static str) -> Error {
    Error::invalid(
        call,
        "a handler that interrupts a kernel on this thread waits for nothing: the kernel goes on when the \
         handler returns",
    )
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
    fn nothing_waits_in_the_check_of_a_kernel() {
        assert!(before_waiting("test").is_ok());
        assert!(call_in_kernel(|| before_waiting("test")).is_err());
        assert!(before_waiting("test").is_ok() && !is_in_kernel());
    }
}
