//! Which stream each thread is queueing work on, for captures that are about to begin.
//!
//! An operation looks up whether its stream captures, and then queues its work. A capture that began
//! in between would contain the work, and its graph would not keep the memory that the work uses. So
//! a thread stores the stream in a cell of its own before it looks up captures, and a capture is
//! announced before it looks into the cells: one of the two sees the other. A capture waits for the
//! threads that are queueing on its stream. A thread that sees an announcement stores the stream
//! under the lock that captures take to begin, so the capture has begun, or will wait for it.
//!
//! What a stream is asked to do, and what is noted of it, is one step so: its work is captured and kept,
//! or neither; an event is marked as captured if it is. A capture begins on a stream, or a stream joins
//! one, only when no cell names the stream, and when what was queued on it has run, which is asked under
//! the same lock.
//!
//! This costs an operation two stores and a fence, and no lock of another thread.

use crate::error::{Error, Result};
use crate::locks::{NoCaptureBegins, NothingOrdered};
use crate::nonblocking;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

/// The number of streams that may capture now: those that have captured, and those whose handle
/// other libraries know. 0 in most programs, which then pay one load for an operation.
static MAY_CAPTURE: AtomicUsize = AtomicUsize::new(0);

/// True if a stream of this process may capture.
#[inline]
pub fn some_may_capture() -> bool {
    MAY_CAPTURE.load(Ordering::Relaxed) > 0
}

/// Counts a stream that may capture, until the value is dropped.
#[derive(Debug)]
pub struct MayCapture(());

impl MayCapture {
    /// Says so from now on.
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

/// Says that a stream captures, or is about to. A backend makes it before [`begin_when_settled`], and keeps it
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

/// What one thread may be queueing on at once and have its place for each.
const PLACES: usize = 4;

/// The streams that one thread is queueing on: one, but for work that is queued while other work is. Cells are
/// never freed: one that a thread has left is used by the next thread, so there are as many as threads were
/// queueing at once. There is no lock that a forked child could find locked; what they hold there of threads of the
/// parent, [`forget_threads_of_parent`] clears.
#[derive(Debug, Default)]
struct Cell {
    /// [`Stream::id`](crate::stream::StreamCore::id) each; 0 for none. Written by the cell's thread alone.
    streams: [AtomicU64; PLACES],
    /// How many more streams, which may be any. Written by the cell's thread alone.
    others: AtomicU64,
    is_taken: AtomicBool,
    next: AtomicPtr<Cell>,
}

impl Cell {
    /// True if the thread may be queueing on a stream that is `concerned`.
    fn holds(&self, concerned: impl Fn(u64) -> bool) -> bool {
        let stream = |place: &AtomicU64| place.load(Ordering::Acquire);
        self.others.load(Ordering::Acquire) > 0
            || self.streams.iter().map(stream).any(|it| it != 0 && concerned(it))
    }

    /// Stores a stream where none is; returns the place, [`PLACES`] if all are taken.
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

/// Forgets what threads of a parent process were queueing, which do not exist in a forked child: called there, before
/// anything else runs. Their cells stay taken.
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
        // Of guards that were forgotten, too.
        self.0.clear();
        self.0.is_taken.store(false, Ordering::Release);
    }
}

thread_local! {
    static TAKEN: Taken = Taken::new();
}

/// Says that this thread is queueing work on a stream, until it is dropped.
#[derive(Debug)]
pub struct SubmissionGuard {
    /// Where in the cell.
    place: u8,
    /// The cell, where the thread ends and has none of its own any longer: in destructors of its values, which
    /// begin no capture of the stream while they queue on it, since they would wait for themselves.
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

    /// Starts to queue on a stream. Captures of it that have not begun wait from now on.
    ///
    /// # Errors
    /// Those of [`nonblocking::before_waiting`], if a capture is just beginning or ending.
    #[inline]
    pub(crate) fn on(stream: u64) -> Result<SubmissionGuard> {
        let queueing = SubmissionGuard::store(stream);
        // [`begin_alone`] has its fence between the announcement and the look into the cells.
        fence(Ordering::SeqCst);
        if ANNOUNCED.load(Ordering::Relaxed) == 0 {
            Ok(queueing)
        } else {
            queueing.announced(stream)
        }
    }

    #[cold]
    fn announced(self, stream: u64) -> Result<SubmissionGuard> {
        // No thread waits for the lock with its stream in the cell: whoever has the lock looks there.
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

    /// Starts to queue on a stream. The caller has [`NoCaptureBegins`].
    pub(crate) fn under_lock(stream: u64) -> SubmissionGuard {
        SubmissionGuard::store(stream)
    }
}

/// True while this thread queues an operation.
pub fn is_inside() -> bool {
    TAKEN.try_with(|taken| taken.0.holds(|_| true)).unwrap_or(false)
}

/// True while no capture of a stream can begin for what this thread does: it queues an operation on the stream,
/// or has the lock against captures.
pub fn keeps_captures_from(stream: u64) -> bool {
    NoCaptureBegins::is_of_thread()
        || TAKEN.try_with(|taken| taken.0.holds(|it| it == stream)).unwrap_or(false)
}

/// Keeps captures of a stream from beginning while the thread looks whether it captures, and then records an
/// event or queues a function on it. `None` where none can begin ([`keeps_captures_from`]). It waits for calls of
/// the driver that are short.
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

/// The longest pause between two looks into the cells.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Asks until the answer is true; false if that takes longer.
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

/// Refuses to begin or end a capture, and to wait for a lock of memory, on a thread that has an
/// [`AccessGuard`](crate::memory::AccessGuard): it would wait for itself.
///
/// # Errors
/// `InvalidArgument`.
#[inline]
pub fn outside_guards(call: &'static str) -> Result<()> {
    if is_inside() || NoCaptureBegins::is_of_thread() { Err(inside_guard(call)) } else { Ok(()) }
}

#[cold]
fn inside_guard(call: &'static str) -> Error {
    let detail = "this thread has an AccessGuard, for which the call would wait for ever: drop the guard first";
    Error::invalid(call, detail)
}

/// Returns the lock under which a stream begins to capture, joins a capture, or ends one, when no other thread
/// is queueing on a stream that is `concerned`, which is asked under the lock: that one, with it the default
/// stream if that waits for it, and all streams of a capture that ends. The caller has announced the capture, and
/// has no lock.
///
/// Threads that go on queueing are held off for longer and longer: none begins to while this has the lock.
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
        // Whoever is queueing may wait for its bytes, and for another thread that waits for the lock.
        drop(lock);
        std::thread::sleep(patience.min(LONGEST_PAUSE));
        patience = patience * 2 + Duration::from_micros(1);
    }
}

/// Returns the lock of [`begin_alone`] when what was queued on the streams `has_settled`, which is asked under the
/// lock. Between two looks it is waited for without the lock by `wait`. Others may queue more meanwhile, and are
/// held off for longer and longer.
///
/// # Errors
/// Those of what is called.
pub fn drain_alone(
    concerned: impl Fn(u64) -> bool,
    has_settled: impl Fn() -> Result<bool>,
    wait: impl Fn() -> Result<()>,
) -> Result<NothingOrdered> {
    let mut patience = Duration::ZERO;
    loop {
        let alone = begin_alone(&concerned);
        if comes_within(patience, &has_settled)? {
            return Ok(alone);
        }
        drop(alone);
        // Whoever the work waits for goes on meanwhile.
        wait()?;
        patience = patience * 2 + Duration::from_micros(50);
    }
}

/// Begins a capture of a stream, or lets one join: runs `begin` while no other thread is queueing on a stream that is
/// `concerned`, and when `has_settled` says that what was queued there has run. `wait` waits for that. The
/// caller has announced the capture. For backends.
///
/// # Errors
/// Those of what is called; `InvalidArgument` on a thread that has an
/// [`AccessGuard`](crate::memory::AccessGuard).
pub fn begin_when_settled<T>(
    call: &'static str,
    concerned: impl Fn(u64) -> bool,
    has_settled: impl Fn() -> Result<bool>,
    wait: impl Fn() -> Result<()>,
    begin: impl FnOnce() -> Result<T>,
) -> Result<T> {
    outside_guards(call)?;
    let _alone = drain_alone(concerned, has_settled, wait)?;
    begin()
}

/// Ends a capture to which other threads may still add work: runs `end` while no stream is made to wait for another.
/// For backends.
///
/// # Errors
/// `InvalidArgument` on a thread that has an [`AccessGuard`](crate::memory::AccessGuard).
pub fn end_unordered<T>(call: &'static str, end: impl FnOnce() -> T) -> Result<T> {
    outside_guards(call)?;
    let _ordering = NothingOrdered::lock();
    Ok(end())
}

#[cfg(test)]
#[path = "submission/tests.rs"]
mod tests;
