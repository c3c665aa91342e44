//! Handling of functions that panic, and of locks whose holder has panicked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{LockResult, PoisonError};

/// Calls a function and returns its result; `None` if it panics. The panic's payload is dropped. If dropping
/// it panics in turn, the second payload is leaked.
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

/// Returns the guard or the value of a lock, even if a thread panicked while it held the lock.
///
/// Every lock of this project protects a value that is valid after each step. A panic elsewhere therefore
/// leaves a valid value, and the device stays usable.
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
