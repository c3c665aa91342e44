//! Functions that panic, and locks whose holder has panicked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LockResult, PoisonError};

/// Returns what a function returns; `None` if it panics. What it panicked with is dropped; if that panics in
/// turn, what comes of it is not dropped but forgotten.
///
/// ```
/// use gpuarray_hal::poison::caught;
///
/// assert_eq!(caught(|| 5), Some(5));
/// assert_eq!(caught(|| panic!("on purpose")), None::<i32>);
/// ```
pub fn caught<T>(function: impl FnOnce() -> T) -> Option<T> {
    let cause = match catch_unwind(AssertUnwindSafe(function)) {
        Ok(value) => return Some(value),
        Err(cause) => cause,
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(cause))) {
        std::mem::forget(second);
    }
    None
}

/// Takes what a lock protects, whether a thread has panicked with the lock held or not.
///
/// Every lock of this project protects a value that is valid after each step, so a panic elsewhere
/// spoils nothing, and a device is not lost for it.
///
/// ```
/// use gpuarray_hal::poison::Unpoisoned as _;
/// use std::sync::Mutex;
///
/// let count = Mutex::new(1);
/// *count.lock().unpoisoned() += 1;
/// assert_eq!(count.into_inner().unpoisoned(), 2);
/// ```
pub trait Unpoisoned {
    /// A guard, or the value itself.
    type Value;

    /// Returns the guard or the value of a lock, poisoned or not.
    fn unpoisoned(self) -> Self::Value;
}

impl<T> Unpoisoned for LockResult<T> {
    type Value = T;

    #[inline]
    fn unpoisoned(self) -> T {
        self.unwrap_or_else(PoisonError::into_inner)
    }
}
