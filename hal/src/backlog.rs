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
