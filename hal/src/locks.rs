//! Mutexes with a place in the order in which locks are taken, which debug builds check.
//!
//! A thread that has a lock takes further ones of a higher rank only, so no two threads wait for
//! each other. What each rank protects is in `docs/lifetimes.md`.

use crate::process::{ProcessGuard, ProcessLock};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One launch of a graph at a time.
pub(crate) const LAUNCHING: u8 = 1;
/// Uses of shared memory are ordered and queued.
pub(crate) const ORDERING: u8 = 2;
/// A builtin kernel is compiled or loaded.
pub(crate) const LOADING: u8 = 3;
/// The uses of one memory.
pub(crate) const USES: u8 = 4;
/// A stream's freed blocks are given back on the stream.
pub(crate) const GIVING_BACK: u8 = 5;
/// A capture begins, or something is done that no capture may begin beside.
pub(crate) const BEGINNING: u8 = 6;
/// A context is opened or reset.
pub(crate) const OPENING: u8 = 7;
/// The driver's pool is made.
pub(crate) const POOL: u8 = 8;
/// The captures under way.
pub(crate) const CAPTURES: u8 = 9;
/// The memory of one capture.
pub(crate) const KEPT: u8 = 10;
/// Lists and counts, under which nothing else is called.
pub(crate) const LEAF: u8 = 11;

/// A mutex of a rank.
#[derive(Debug, Default)]
pub(crate) struct Ranked<T, const RANK: u8>(Mutex<T>);

impl<T, const RANK: u8> Ranked<T, RANK> {
    pub(crate) const fn new(value: T) -> Self {
        Ranked(Mutex::new(value))
    }

    /// Locks. What the locks protect is valid after every step, so a panic elsewhere spoils
    /// nothing.
    #[inline]
    pub(crate) fn lock(&self) -> RankedGuard<'_, T> {
        let held = Held::new(RANK);
        RankedGuard { guard: self.0.lock().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Locks if nobody else has; waits for nobody, so in any order.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value, until the guard is dropped.
#[derive(Debug)]
pub(crate) struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A lock of the whole process, with its rank.
#[derive(Debug)]
pub(crate) struct Ordered {
    _guard: ProcessGuard,
    _held: Held,
}

impl Ordered {
    /// Takes the lock that orders uses of shared memory.
    pub(crate) fn lock(lock: &'static ProcessLock) -> Ordered {
        let held = Held::new(ORDERING);
        Ordered { _guard: lock.lock(), _held: held }
    }
}

/// Says that this thread has a lock of a rank, or waits for it.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    rank: u8,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks that this thread holds, each a bit.
    static RANKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl Held {
    #[cfg(debug_assertions)]
    fn new(rank: u8) -> Held {
        let held = RANKS.get();
        assert!(held >> rank == 0, "a lock of rank {rank} is taken under those of {held:#b}");
        RANKS.set(held | 1 << rank);
        Held { rank }
    }

    #[cfg(not(debug_assertions))]
    #[inline]
    fn new(_rank: u8) -> Held {
        Held {}
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        RANKS.set(RANKS.get() & !(1 << self.rank));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn locks_are_taken_in_their_order() {
        static USE: Ranked<i32, USES> = Ranked::new(1);
        static KEEP: Ranked<i32, KEPT> = Ranked::new(2);
        for _ in 0..2 {
            let first = USE.lock();
            let second = KEEP.lock();
            assert_eq!((*first, *second), (1, 2));
            // In any order again.
            drop(first);
            drop(second);
        }
        if cfg!(debug_assertions) {
            let wrong = catch_unwind(|| {
                let _second = KEEP.lock();
                drop(USE.lock());
            });
            assert!(wrong.is_err(), "the order is checked");
            let twice = catch_unwind(|| {
                let _first = USE.lock();
                drop(USE.lock());
            });
            assert!(twice.is_err(), "a thread would wait for itself");
            // What was held is held no longer.
            drop(USE.lock());
        }
    }
}
