//! Mutexes with a rank in a global lock order; debug builds check the order.
//!
//! A thread that holds a lock only takes further locks of a higher rank, so no two threads deadlock. If a thread
//! takes several locks of one rank, it takes them in the order of the addresses of the protected objects.
//! `docs/lifetimes.md` lists what each rank protects.

use crate::poison::Unpoisoned as _;
use crate::process::{self, ProcessRwLock};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// Launching a graph, one launch at a time.
pub const LAUNCHING: u8 = 1;
/// Ordering and queueing uses of one memory that several streams use. An operation on several memory objects holds the
/// locks of all.
pub const ORDERING: u8 = 2;
/// Making streams wait for each other. Held exclusively to begin or end a capture.
pub const CAPTURING: u8 = 3;
/// Compiling or loading a builtin kernel; queueing matrix products by the vendor's library.
pub const LOADING: u8 = 4;
/// Returning a stream's freed blocks on the stream.
pub const GIVING_BACK: u8 = 5;
/// Beginning a capture, or an action during which no capture may begin.
pub const BEGINNING: u8 = 6;
/// Opening or resetting a context.
pub const OPENING: u8 = 7;
/// Creating the driver's pool.
pub const POOL: u8 = 8;
/// Recording an event, or making a stream wait for it.
pub const MARKING: u8 = 9;
/// Adding something to a driver's capture, or ending one.
pub const ADDING: u8 = 10;
/// Asking the driver about a capture, or beginning or ending one.
pub const ASKING: u8 = 11;
/// The captures in progress.
pub const CAPTURES: u8 = 12;
/// The memory of one capture.
pub const KEPT: u8 = 13;
/// Lists and counts. Nothing else is called while this lock is held.
pub const LEAF: u8 = 14;

/// A mutex with a rank.
#[derive(Debug, Default)]
pub struct Ranked<T, const RANK: u8>(Mutex<T>);

impl<T, const RANK: u8> Ranked<T, RANK> {
    /// Returns a mutex that protects `value`.
    pub const fn new(value: T) -> Self {
        Ranked(Mutex::new(value))
    }

    /// Locks the mutex. The protected value is valid after every step, so a panic elsewhere does not poison it.
    #[inline]
    pub fn lock(&self) -> RankedGuard<'_, T> {
        self.lock_at(0)
    }

    /// Locks one of several mutexes of the same rank, each at a greater address than the ones that the thread
    /// already holds.
    #[inline]
    pub fn lock_at(&self, address: usize) -> RankedGuard<'_, T> {
        let held = Held::new(RANK, address);
        RankedGuard { guard: self.0.lock().unpoisoned(), _held: held }
    }

    /// Locks the mutex if it is free. This never waits, so any lock order is allowed.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value; the exclusive borrow guarantees that no one else holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unpoisoned()
    }
}

/// Access to the value until the guard is dropped.
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

/// A shared lock: no capture begins or ends while any thread holds it.
#[derive(Debug)]
pub(crate) struct NoCaptureBegins {
    /// `None` in a signal handler that has interrupted a kernel of this thread: the thread already holds the lock.
    /// Locking again could deadlock: a capture that waits to begin waits for the kernel.
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

    /// Returns true if this thread holds the lock.
    pub(crate) fn is_of_thread() -> bool {
        OfThread::is_there()
    }

    /// Locks without waiting for other threads; `None` if that is impossible.
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
    /// The process in which this thread holds [`NoCaptureBegins`]. A forked child does not hold it.
    static NO_CAPTURE_BEGINS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Marks that this thread holds [`NoCaptureBegins`], until it is dropped.
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

/// An exclusive lock: no stream is made to wait for another while it is held. Otherwise, calls that order work on a
/// stream could end a capture that began in between.
#[derive(Debug)]
pub struct NothingOrdered {
    _guard: RwLockWriteGuard<'static, ()>,
    _held: Held,
}

impl NothingOrdered {
    /// Waits until no stream is being made to wait for another, and locks. The caller holds no lock of this crate's
    /// memory.
    pub(crate) fn lock() -> NothingOrdered {
        let held = Held::new(CAPTURING, 0);
        NothingOrdered { _guard: CAPTURES_CHANGE.write(), _held: held }
    }
}

/// Marks that this thread holds a lock or waits for it.
#[derive(Debug)]
struct Held {
    #[cfg(debug_assertions)]
    place: (u8, usize),
}

#[cfg(debug_assertions)]
thread_local! {
    /// Rank and address of the locks that this thread holds, and the process id at the time. A forked child holds
    /// none.
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
        // Locks may be used while the thread's locals are being destroyed.
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
            // In any order.
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
            // The locks above have been released.
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
