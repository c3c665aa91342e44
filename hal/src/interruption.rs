//! Work that its program may end while it runs: for callers that have to look after something else
//! meanwhile, as Python's signals.

use crate::error::Result;
use std::cell::Cell;

/// Says whether work goes on: an error ends it, and is its result.
pub type Check = fn() -> Result<()>;

thread_local! {
    static CHECK: Cell<Option<Check>> = const { Cell::new(None) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_knows_its_check() {
        assert!(check().is_none());
        let inside = interruptible(|| Ok(()), || check().is_some());
        assert!(inside && check().is_none());
    }
}
