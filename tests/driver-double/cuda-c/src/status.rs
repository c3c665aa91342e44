//! The statuses that the functions return.

use crate::Sink;
use host_executor::{Error, FailureKind, Result};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

const OK: c_int = 0;
const REFUSED: c_int = 1;
const FAILED: c_int = 2;
const ADDRESS: c_int = 3;
const ASSERT: c_int = 4;
const TRAP: c_int = 5;

fn of(error: &Error) -> c_int {
    match error {
        Error::Refused(_) | Error::NotAUnit(_) => REFUSED,
        Error::Kernel(failure) => match failure.kind {
            FailureKind::Address => ADDRESS,
            FailureKind::Assert => ASSERT,
            _ => TRAP,
        },
        _ => FAILED,
    }
}

/// Returns the result of `body`, or `None` for a panic: panics must not cross the C interface.
pub(crate) fn unpanicking<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).ok()
}

/// Runs `body`, and returns its status. An error's text is written to the log.
pub(crate) fn status(log: Sink, body: impl FnOnce() -> Result<()>) -> c_int {
    match unpanicking(body) {
        Some(Ok(())) => OK,
        Some(Err(error)) => {
            log.put(error.to_string().as_bytes());
            of(&error)
        }
        None => FAILED,
    }
}
