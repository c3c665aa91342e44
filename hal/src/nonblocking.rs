//! Work that is first tried without waiting, for callers that hold a lock that others need, such as
//! Python's interpreter lock.
//!
//! The first try ends without an effect as soon as the work would take long or wait for another thread: when code has
//! to be compiled or loaded, or streams have to be ordered. The caller then releases its lock and repeats the work.
//! After part of the work has been queued, the rest may wait, because repeating that part would queue it twice.

use crate::error::{Error, Result};
use std::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The thread may wait.
    Patient,
    /// The thread runs work that must not wait, and has not queued any of it yet.
    Trying,
    /// The work would have had to wait.
    GivenUp,
}

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Patient) };
}

/// Returns the result of `work`; `None` if it would have had to wait, in which case nothing was
/// done.
#[inline]
pub fn try_without_waiting<T>(work: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
    struct Reset(State);
    impl Drop for Reset {
        fn drop(&mut self) {
            STATE.set(self.0);
        }
    }
    let _reset = Reset(STATE.replace(State::Trying));
    let result = work();
    (result.is_ok() || STATE.get() != State::GivenUp).then_some(result)
}

/// Returns an error if the work must not wait and has not queued anything yet. Called before every wait.
pub fn before_waiting() -> Result<()> {
    if STATE.get() == State::Patient { Ok(()) } else { Err(give_up()) }
}

#[cold]
fn give_up() -> Error {
    STATE.set(State::GivenUp);
    Error::unsupported("try_without_waiting", "the work would have to wait")
}

/// Records that work has been queued: the rest of the work may wait.
#[inline]
pub(crate) fn queued() {
    if STATE.get() == State::Trying {
        STATE.set(State::Patient);
    }
}

pub mod backlog {
    //! A count of the queues that are full, so that callers know to wait before they add work.
    //!
    //! Drivers bound their queues themselves. A backend that queues work in this process reports here when
    //! a queue becomes full and when it has room again. Callers that hold a lock of their own, such as
    //! Python's, then know when [`Stream::wait_for_room`](crate::stream::StreamState::wait_for_room) may
    //! block.

    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The number of full queues. A forked child inherits it, and then expects to wait more often than it
    /// does.
    static FULL: AtomicUsize = AtomicUsize::new(0);

    /// Returns true if any queue is full.
    #[inline]
    pub fn exists() -> bool {
        FULL.load(Ordering::Relaxed) > 0
    }

    /// Reports that a queue became full.
    pub fn begin() {
        FULL.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports that a full queue has room again.
    pub fn end() {
        FULL.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_before_the_first_wait() {
        let mut done = 0;
        assert!(before_waiting().is_ok(), "otherwise everything may wait");
        let tried = try_without_waiting(|| {
            before_waiting()?;
            done += 1;
            Ok(())
        });
        assert!(tried.is_none() && done == 0);
        assert!(before_waiting().is_ok());
        assert!(matches!(try_without_waiting(|| Ok(5)), Some(Ok(5))));
    }

    #[test]
    fn nothing_is_done_twice() {
        let tried = try_without_waiting(|| {
            queued();
            before_waiting()?;
            Ok(7)
        });
        assert!(matches!(tried, Some(Ok(7))));
        // An error of the work itself is its result.
        let failed = try_without_waiting(|| Err::<(), _>(Error::invalid("test", "on purpose")));
        assert!(failed.is_some_and(|result| result.is_err()));
    }
}
