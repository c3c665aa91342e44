//! Queues that hold so much waiting work that whoever adds more should wait first.
//!
//! Drivers bound their queues themselves. A backend that queues in this process says here when a
//! queue becomes full and when it has room again, so that callers that hold a lock of their own
//! (Python's) know when [`Stream::wait_for_room`](crate::stream::StreamState::wait_for_room) may wait.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Full queues. A forked child inherits the number, and is told to expect waits too often then.
static FULL: AtomicUsize = AtomicUsize::new(0);

/// Returns true if some queue is full.
#[inline]
pub fn exists() -> bool {
    FULL.load(Ordering::Relaxed) > 0
}

/// Says that a queue became full.
pub fn begin() {
    FULL.fetch_add(1, Ordering::Relaxed);
}

/// Says that a queue that was full has room.
pub fn end() {
    FULL.fetch_sub(1, Ordering::Relaxed);
}
