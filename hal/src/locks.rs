//! Mutexes with a place in the order in which locks are taken, which debug builds check.
//!
//! A thread that has a lock takes further ones of a higher rank only, so no two threads wait for
//! each other. Locks of one rank, of which a thread takes several, are taken in the order of the
//! addresses of what they protect. What each rank protects is in `docs/lifetimes.md`.

use crate::poison::Unpoisoned as _;
use crate::process::{self, ProcessRwLock};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// One launch of a graph at a time.
pub const LAUNCHING: u8 = 1;
/// Uses of one shared memory are ordered and queued. An operation on several memories has the locks
/// of all.
pub const ORDERING: u8 = 2;
/// Streams are made to wait for each other; alone: a capture begins or ends.
pub const CAPTURING: u8 = 3;
/// A builtin kernel is compiled or loaded; products of matrices are queued by the vendor's library.
pub const LOADING: u8 = 4;
/// A stream's freed blocks are given back on the stream.
pub const GIVING_BACK: u8 = 5;
/// A capture begins, or something is done that no capture may begin beside.
pub const BEGINNING: u8 = 6;
/// A context is opened or reset.
pub const OPENING: u8 = 7;
/// The driver's pool is made.
pub const POOL: u8 = 8;
/// An event is recorded, or a stream made to wait for it.
pub const MARKING: u8 = 9;
/// The driver adds something to a capture, or ends one.
pub const ADDING: u8 = 10;
/// The driver is asked about a capture, or begins or ends one.
pub const ASKING: u8 = 11;
/// The captures under way.
pub const CAPTURES: u8 = 12;
/// The memory of one capture.
pub const KEPT: u8 = 13;
/// Lists and counts, under which nothing else is called.
pub const LEAF: u8 = 14;

/// A mutex of a rank.
#[derive(Debug, Default)]
pub struct Ranked<T, const RANK: u8>(Mutex<T>);

impl<T, const RANK: u8> Ranked<T, RANK> {
    /// Returns a mutex of the value.
    pub const fn new(value: T) -> Self {
        Ranked(Mutex::new(value))
    }

    /// Locks. What the locks protect is valid after every step, so a panic elsewhere spoils
    /// nothing.
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        self.lock_at(0)
    }

    /// Locks, where a thread takes several locks of the rank: each at a greater address than those
    /// that it has.
    #[inline]
    pub fn lock_at(&self, address: usize) -> RankedGuard<'_, T> {
        let held = Held::new(RANK, address);
        RankedGuard { guard: self.0.lock().unpoisoned(), _held: held }
    }

    /// Locks if nobody else has; waits for nobody, so in any order.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value, which nobody else can lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unpoisoned()
    }
}

/// The value, until the guard is dropped.
#[derive(Debug)]
pub struct RankedGuard<'a, T> {
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

static CAPTURES_CHANGE: ProcessRwLock = ProcessRwLock::new();

/// No capture begins or ends meanwhile; other threads may have the same.
#[derive(Debug)]
pub(crate) struct NoCaptureBegins {
    /// `None` for a handler of a signal that has interrupted a kernel of its thread, under this lock. It cannot lock
    /// behind a capture that waits to begin, for that waits for the kernel.
    _own: Option<(RwLockReadGuard<'static, ()>, OfThread, Held)>,
}

impl NoCaptureBegins {
    pub(crate) fn lock() -> NoCaptureBegins {
        let lock = || {
            let held = Held::new(CAPTURING, 0);
            (CAPTURES_CHANGE.read(), OfThread::new(), held)
        };
        NoCaptureBegins { _own: (!OfThread::is_there()).then(lock) }
    }

    /// True if this thread has the lock.
    pub(crate) fn is_of_thread() -> bool {
        OfThread::is_there()
    }

    /// Locks if no thread would have to be waited for.
    pub(crate) fn try_lock() -> Option<NoCaptureBegins> {
        if OfThread::is_there() {
            return Some(NoCaptureBegins { _own: None });
        }
        let held = Held::new(CAPTURING, 0);
        let guard = CAPTURES_CHANGE.try_read()?;
        Some(NoCaptureBegins { _own: Some((guard, OfThread::new(), held)) })
    }
}

thread_local! {
    /// The process in which this thread has [`NoCaptureBegins`]: a forked child does not.
    static NO_CAPTURE_BEGINS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Says that this thread has [`NoCaptureBegins`], until it is dropped.
#[derive(Debug)]
struct OfThread;

impl OfThread {
    fn new() -> OfThread {
        let _ = NO_CAPTURE_BEGINS.try_with(|it| it.set(Some(process::generation())));
        OfThread
    }

    fn is_there() -> bool {
        let of = NO_CAPTURE_BEGINS.try_with(Cell::get);
        of.ok().flatten() == Some(process::generation())
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        let _ = NO_CAPTURE_BEGINS.try_with(|it| it.set(None));
    }
}

/// No stream is made to wait for another meanwhile: what is asked of a stream to order work behind
/// it would end a capture that had begun in between.
#[derive(Debug)]
pub struct NothingOrdered {
    _guard: RwLockWriteGuard<'static, ()>,
    _held: Held,
}

impl NothingOrdered {
    /// Locks when no stream is being made to wait for another. The caller has no lock of this crate's
    /// memory.
    pub(crate) fn lock() -> NothingOrdered {
        let held = Held::new(CAPTURING, 0);
        NothingOrdered { _guard: CAPTURES_CHANGE.write(), _held: held }
    }
}

/// Says that this thread has a lock, or waits for it.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    place: (u8, usize),
}

#[cfg(debug_assertions)]
thread_local! {
    /// Rank and address of the locks that this thread holds, and the process in which: a forked child holds none.
    static HELD: std::cell::RefCell<(u32, Vec<(u8, usize)>)> = const {
        std::cell::RefCell::new((0, Vec::new()))
    };
}

impl Held {
    #[cfg(debug_assertions)]
    fn new(rank: u8, address: usize) -> Held {
        let place = (rank, address);
        let _ = HELD.try_with(|held| {
            let (of, held) = &mut *held.borrow_mut();
            if *of != process::generation() {
                *of = process::generation();
                held.clear();
            }
            assert!(
                held.iter().all(|other| *other < place),
                "a lock of rank {rank} at {address:#x} is taken under those of {held:x?}"
            );
            held.push(place);
        });
        Held { place }
    }

    #[cfg(not(debug_assertions))]
    #[inline]
    fn new(_rank: u8, _address: usize) -> Held {
        Held {}
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        // Locks may be used while the thread's locals are taken down.
        let _ = HELD.try_with(|held| {
            let (_, held) = &mut *held.borrow_mut();
            if let Some(position) = held.iter().rposition(|other| *other == self.place) {
                held.swap_remove(position);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn locks_are_taken_in_their_order() {
        static USE: Ranked<i32, ORDERING> = Ranked::new(1);
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

    #[test]
    fn locks_of_one_rank_are_taken_in_the_order_of_their_addresses() {
        static LOW: Ranked<i32, ORDERING> = Ranked::new(1);
        static HIGH: Ranked<i32, ORDERING> = Ranked::new(2);
        for _ in 0..2 {
            let first = LOW.lock_at(8);
            let second = HIGH.lock_at(16);
            let _capturing = NoCaptureBegins::lock();
            drop(first);
            drop(second);
        }
        if cfg!(debug_assertions) {
            let wrong = catch_unwind(|| {
                let _second = HIGH.lock_at(16);
                drop(LOW.lock_at(8));
            });
            assert!(wrong.is_err(), "the order is checked");
            let twice = catch_unwind(|| {
                let _first = LOW.lock_at(8);
                drop(LOW.lock_at(8));
            });
            assert!(twice.is_err(), "a thread would wait for itself");
            let behind = catch_unwind(|| {
                let _capturing = NoCaptureBegins::lock();
                drop(LOW.lock_at(8));
            });
            assert!(behind.is_err(), "a memory's lock comes before that of captures");
            drop(LOW.lock_at(8));
        }
    }
}
