//! Tracks the stream that each thread is queueing work on, for captures that are about to begin.
//!
//! An operation first checks whether its stream captures, and then queues its work. If a capture began in between, it
//! would contain the work, but its graph would not keep the memory that the work uses. So each thread stores the stream
//! in its own cell before it checks for captures, and a capture announces itself before it reads the cells. Therefore
//! at least one of the two sees the other. A capture waits for the threads that are queueing on its stream. A thread
//! that sees an announcement stores the stream under the lock that captures take to begin, so the capture has either
//! begun or will wait for the thread.
//!
//! This makes checking for a capture and acting on the result atomic: work is captured and its memory kept, or
//! neither; an event is marked as captured exactly if it is. A capture begins on a stream, or a stream joins one,
//! only if no cell names the stream and its queued work has finished. Both are checked under the same lock.
//!
//! The cost per operation is two stores and a fence, and no lock that another thread may hold.

use crate::error::{Error, Result};
use crate::locks::{NoCaptureBegins, NothingOrdered};
use crate::nonblocking;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

/// The number of streams that may capture now: streams that have captured, and streams whose handle is known to other
/// libraries. It is 0 in most programs, where the check costs one load per operation.
static MAY_CAPTURE: AtomicUsize = AtomicUsize::new(0);

/// Returns true if any stream of this process may capture.
#[inline]
pub fn some_may_capture() -> bool {
    MAY_CAPTURE.load(Ordering::Relaxed) > 0
}

/// Counts a stream that may capture, until the value is dropped.
#[derive(Debug)]
pub struct MayCapture(());

impl MayCapture {
    /// Counts a stream that may capture from now on.
    pub fn begin() -> MayCapture {
        MAY_CAPTURE.fetch_add(1, Ordering::AcqRel);
        MayCapture(())
    }
}

impl Drop for MayCapture {
    fn drop(&mut self) {
        MAY_CAPTURE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The number of [`Announcement`]s.
static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);

/// Announces that a stream captures or is about to. A backend creates it before [`begin_when_drained`], and keeps it
/// until the capture has ended.
#[derive(Debug)]
pub struct Announcement {
    _may_capture: MayCapture,
}

impl Announcement {
    /// Announces a capture.
    #[allow(clippy::new_without_default, reason = "it is made for what it does")]
    pub fn new() -> Announcement {
        ANNOUNCED.fetch_add(1, Ordering::AcqRel);
        Announcement { _may_capture: MayCapture::begin() }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        ANNOUNCED.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The number of streams that a thread can store in its cell at the same time.
const PLACES: usize = 4;

/// The streams that one thread is queueing on: usually one, more only if work is queued while other work is being
/// queued. Cells are never freed. The next new thread reuses the cell of a finished thread, so there are at most as
/// many cells as there were concurrent threads. Cells use no lock, because a lock could be held at a fork;
/// [`forget_threads_of_parent`] clears the entries of the parent's threads.
#[derive(Debug, Default)]
struct Cell {
    /// [`Stream::id`](crate::stream::StreamCore::id) of each; 0 for none. Only the cell's thread writes it.
    streams: [AtomicU64; PLACES],
    /// The number of further streams; their ids are not stored. Only the cell's thread writes it.
    others: AtomicU64,
    is_taken: AtomicBool,
    next: AtomicPtr<Cell>,
}

impl Cell {
    /// Returns true if the thread may be queueing on a stream for which `concerned` is true.
    fn holds(&self, concerned: impl Fn(u64) -> bool) -> bool {
        let stream = |place: &AtomicU64| place.load(Ordering::Acquire);
        self.others.load(Ordering::Acquire) > 0
            || self.streams.iter().map(stream).any(|it| it != 0 && concerned(it))
    }

    /// Stores a stream in a free entry; returns the entry's index, or [`PLACES`] if all are taken.
    #[inline]
    fn enter(&self, stream: u64) -> u8 {
        let [first, ..] = &self.streams;
        if first.load(Ordering::Relaxed) == 0 {
            first.store(stream, Ordering::Release);
            return 0;
        }
        self.enter_beside(stream)
    }

    #[cold]
    fn enter_beside(&self, stream: u64) -> u8 {
        let is_free = |place: &AtomicU64| place.load(Ordering::Relaxed) == 0;
        let place = self.streams.iter().position(is_free).unwrap_or(PLACES);
        match self.streams.get(place) {
            Some(free) => free.store(stream, Ordering::Release),
            None => {
                let others = self.others.load(Ordering::Relaxed);
                self.others.store(others + 1, Ordering::Release);
            }
        }
        place as u8
    }

    #[inline]
    fn leave(&self, place: u8) {
        let [first, ..] = &self.streams;
        if place == 0 { first.store(0, Ordering::Release) } else { self.leave_beside(place) }
    }

    #[cold]
    fn leave_beside(&self, place: u8) {
        match self.streams.get(usize::from(place)) {
            Some(taken) => taken.store(0, Ordering::Release),
            None => {
                let others = self.others.load(Ordering::Relaxed);
                self.others.store(others.saturating_sub(1), Ordering::Release);
            }
        }
    }

    fn clear(&self) {
        for place in &self.streams {
            place.store(0, Ordering::Release);
        }
        self.others.store(0, Ordering::Release);
    }
}

static CELLS: AtomicPtr<Cell> = AtomicPtr::new(ptr::null_mut());

fn cells() -> impl Iterator<Item = &'static Cell> {
    let next = |cell: *const Cell| {
        // SAFETY: null, or a cell, which is never freed.
        unsafe { cell.as_ref() }
    };
    std::iter::successors(next(CELLS.load(Ordering::Acquire)), move |cell| {
        next(cell.next.load(Ordering::Relaxed))
    })
}

/// Forgets the entries of the parent's threads, because these threads do not exist in a forked child. Called there
/// before anything else runs. Their cells stay taken.
pub(crate) fn forget_threads_of_parent() {
    cells().for_each(Cell::clear);
}

/// The calling thread's cell.
#[derive(Debug)]
struct Taken(&'static Cell);

impl Taken {
    #[cold]
    fn new() -> Taken {
        let take = |cell: &&Cell| !cell.is_taken.swap(true, Ordering::Acquire);
        if let Some(free) = cells().find(take) {
            return Taken(free);
        }
        let cell: &'static Cell =
            Box::leak(Box::new(Cell { is_taken: AtomicBool::new(true), ..Cell::default() }));
        let mut first = CELLS.load(Ordering::Acquire);
        loop {
            cell.next.store(first, Ordering::Relaxed);
            let place = ptr::from_ref(cell).cast_mut();
            match CELLS.compare_exchange(first, place, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Taken(cell),
                Err(other) => first = other,
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // This also clears the entries of leaked guards.
        self.0.clear();
        self.0.is_taken.store(false, Ordering::Release);
    }
}

thread_local! {
    static TAKEN: Taken = Taken::new();
}

/// Marks that this thread is queueing work on a stream, until it is dropped.
#[derive(Debug)]
pub struct SubmissionGuard {
    /// The place in the cell.
    place: u8,
    /// The cell, if the thread is ending and no longer has its own, in destructors of thread-local values. They must
    /// not begin a capture of the stream while they queue on it, since that would wait for themselves.
    last: Option<Taken>,
    /// The cell belongs to the thread.
    _thread: PhantomData<*const ()>,
}

impl SubmissionGuard {
    /// Stores the stream in the thread's cell.
    #[inline]
    fn store(stream: u64) -> SubmissionGuard {
        match TAKEN.try_with(|taken| taken.0.enter(stream)) {
            Ok(place) => SubmissionGuard { place, last: None, _thread: PhantomData },
            Err(_) => SubmissionGuard::store_last(stream),
        }
    }

    #[cold]
    fn store_last(stream: u64) -> SubmissionGuard {
        let cell = Taken::new();
        SubmissionGuard { place: cell.0.enter(stream), last: Some(cell), _thread: PhantomData }
    }

    /// Begins to queue on a stream. From now on, captures of it that have not begun wait.
    ///
    /// # Errors
    /// As for [`nonblocking::before_waiting`], if a capture is just beginning or ending.
    #[inline]
    pub(crate) fn on(stream: u64) -> Result<SubmissionGuard> {
        let queueing = SubmissionGuard::store(stream);
        // [`begin_alone`] has the matching fence between the announcement and the reads of the cells.
        fence(Ordering::SeqCst);
        if ANNOUNCED.load(Ordering::Relaxed) == 0 {
            Ok(queueing)
        } else {
            queueing.announced(stream)
        }
    }

    #[cold]
    fn announced(self, stream: u64) -> Result<SubmissionGuard> {
        // Clear the cell before waiting for the lock, because the lock's holder waits for the cells.
        drop(self);
        let _lock = match NoCaptureBegins::try_lock() {
            Some(lock) => lock,
            None => {
                nonblocking::before_waiting()?;
                NoCaptureBegins::lock()
            }
        };
        Ok(SubmissionGuard::under_lock(stream))
    }

    /// Begins to queue on a stream. The caller holds [`NoCaptureBegins`].
    pub(crate) fn under_lock(stream: u64) -> SubmissionGuard {
        SubmissionGuard::store(stream)
    }
}

/// Returns true while this thread queues an operation.
pub fn is_inside() -> bool {
    TAKEN.try_with(|taken| taken.0.holds(|_| true)).unwrap_or(false)
}

/// Returns true if no capture of the stream can begin because of this thread: it queues an operation on the stream,
/// or holds the lock against captures.
pub fn keeps_captures_from(stream: u64) -> bool {
    NoCaptureBegins::is_of_thread()
        || TAKEN.try_with(|taken| taken.0.holds(|it| it == stream)).unwrap_or(false)
}

/// Prevents captures of a stream from beginning while the thread checks whether it captures, and then records an
/// event or queues a function on it. `None` if none can begin already ([`keeps_captures_from`]). It waits only for
/// short calls of the driver.
pub fn beside_captures(stream: u64) -> Option<SubmissionGuard> {
    if keeps_captures_from(stream) {
        return None;
    }
    let queueing = SubmissionGuard::store(stream);
    fence(Ordering::SeqCst);
    if ANNOUNCED.load(Ordering::Relaxed) == 0 {
        return Some(queueing);
    }
    drop(queueing);
    let _lock = NoCaptureBegins::lock();
    Some(SubmissionGuard::under_lock(stream))
}

impl Drop for SubmissionGuard {
    #[inline]
    fn drop(&mut self) {
        match &self.last {
            None => drop(TAKEN.try_with(|taken| taken.0.leave(self.place))),
            Some(cell) => cell.0.leave(self.place),
        }
    }
}

/// The longest pause between two reads of the cells.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Polls until `is_done` returns true; returns false after `patience`.
fn comes_within(patience: Duration, is_done: impl Fn() -> Result<bool>) -> Result<bool> {
    let begun = Instant::now();
    while !is_done()? {
        if begun.elapsed() >= patience {
            return Ok(false);
        }
        std::thread::yield_now();
    }
    Ok(true)
}

/// Refuses to begin or end a capture, or to wait for a lock of memory, on a thread that holds an
/// [`AccessGuard`](crate::memory::AccessGuard), because it would wait for itself.
///
/// # Errors
/// `InvalidArgument` on such a thread.
#[inline]
pub fn outside_guards(call: &'static str) -> Result<()> {
    if is_inside() || NoCaptureBegins::is_of_thread() { Err(inside_guard(call)) } else { Ok(()) }
}

#[cold]
fn inside_guard(call: &'static str) -> Error {
    let detail = "this thread has an AccessGuard, for which the call would wait for ever: drop the guard first";
    Error::invalid(call, detail)
}

/// Waits until no other thread is queueing on a stream for which `concerned` is true, and returns the lock under
/// which a capture begins, ends, or is joined. The streams concerned are the capturing stream, the default stream if
/// it waits for that one, and all streams of a capture that ends. The caller has announced the capture, and holds no
/// lock.
///
/// If threads keep queueing, the lock is held for longer with each attempt: no thread can begin to queue while it is
/// held.
pub fn begin_alone(concerned: impl Fn(u64) -> bool) -> NothingOrdered {
    fence(Ordering::SeqCst);
    let own = TAKEN.try_with(|taken| ptr::from_ref(taken.0)).unwrap_or(ptr::null());
    let is_queueing = |cell: &Cell| !ptr::eq(cell, own) && cell.holds(&concerned);
    let mut patience = Duration::ZERO;
    loop {
        let lock = NothingOrdered::lock();
        if let Ok(true) = comes_within(patience, || Ok(!cells().any(is_queueing))) {
            return lock;
        }
        // A thread that is queueing may wait for its bytes, or for another thread that waits for the lock.
        drop(lock);
        std::thread::sleep(patience.min(LONGEST_PAUSE));
        patience = patience * 2 + Duration::from_micros(1);
    }
}

/// Returns the lock of [`begin_alone`] after the queued work of the streams has finished. `is_drained` checks this
/// under the lock. Between two checks, `wait` waits for the work without the lock. If other threads keep queueing,
/// the lock is held for longer with each attempt.
///
/// # Errors
/// The errors of `is_drained` and `wait`.
pub fn drain_alone(
    concerned: impl Fn(u64) -> bool,
    is_drained: impl Fn() -> Result<bool>,
    wait: impl Fn() -> Result<()>,
) -> Result<NothingOrdered> {
    let mut patience = Duration::ZERO;
    loop {
        let alone = begin_alone(&concerned);
        if comes_within(patience, &is_drained)? {
            return Ok(alone);
        }
        drop(alone);
        // Other threads, which the work may wait for, continue meanwhile.
        wait()?;
        patience = patience * 2 + Duration::from_micros(50);
    }
}

/// Begins a capture of a stream, or lets a stream join one. Runs `begin` when no other thread is queueing on a stream
/// for which `concerned` is true, and `is_drained` returns true: all work queued there has finished. `wait` waits
/// for that work. The caller has announced the capture. For backends.
///
/// # Errors
/// The errors of the three functions; `InvalidArgument` on a thread that holds an
/// [`AccessGuard`](crate::memory::AccessGuard).
pub fn begin_when_drained<T>(
    call: &'static str,
    concerned: impl Fn(u64) -> bool,
    is_drained: impl Fn() -> Result<bool>,
    wait: impl Fn() -> Result<()>,
    begin: impl FnOnce() -> Result<T>,
) -> Result<T> {
    outside_guards(call)?;
    let _alone = drain_alone(concerned, is_drained, wait)?;
    begin()
}

/// Ends a capture to which other threads may still add work: runs `end` while no stream is made to wait for another.
/// For backends.
///
/// # Errors
/// `InvalidArgument` on a thread that holds an [`AccessGuard`](crate::memory::AccessGuard).
pub fn end_unordered<T>(call: &'static str, end: impl FnOnce() -> T) -> Result<T> {
    outside_guards(call)?;
    let _ordering = NothingOrdered::lock();
    Ok(end())
}

#[cfg(test)]
#[path = "submission/tests.rs"]
mod tests;
