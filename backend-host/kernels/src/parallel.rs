//! Divides work among the cores.

use rayon_core::ThreadPool;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The work, in elements of a cheap loop, below which waking other threads costs more than it saves.
const WORTHWHILE: usize = 1 << 17;

/// The source of threads, which is called if there is enough work for them.
pub(super) struct Workers<'a> {
    source: &'a (dyn Fn() -> Option<Arc<ThreadPool>> + Sync),
}

impl fmt::Debug for Workers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

impl<'a> Workers<'a> {
    /// Creates workers from a function that returns a thread pool.
    pub(super) fn new(source: &'a (dyn Fn() -> Option<Arc<ThreadPool>> + Sync)) -> Self {
        Workers { source }
    }

    /// Calls `part` for ranges that together cover `0..length`. Several threads are used if `work`, in
    /// elements of a cheap loop, is large enough. Inner bounds are multiples of `granularity`.
    #[inline]
    pub(super) fn split(
        &self,
        length: usize,
        granularity: usize,
        work: usize,
        part: &(dyn Fn(Range<usize>) + Sync),
    ) {
        if work < WORTHWHILE || length <= granularity {
            part(0..length);
        } else {
            self.split_among_threads(length, granularity, work, part);
        }
    }

    /// Returns the number of threads.
    pub(super) fn threads(&self) -> usize {
        (self.source)().map_or(1, |pool| pool.current_num_threads())
    }

    /// Calls `body` with a scope in which several threads run, or `None` if there is only one thread, and
    /// waits for all that it has started.
    pub(super) fn scope<'scope, R>(
        &self,
        body: impl FnOnce(Option<&rayon_core::Scope<'scope>>) -> R,
    ) -> R {
        match (self.source)() {
            Some(pool) if pool.current_num_threads() > 1 => {
                pool.in_place_scope(|scope| body(Some(scope)))
            }
            _ => body(None),
        }
    }

    #[inline(never)]
    fn split_among_threads(
        &self,
        length: usize,
        granularity: usize,
        work: usize,
        part: &(dyn Fn(Range<usize>) + Sync),
    ) {
        let pool = match (self.source)() {
            Some(pool) if pool.current_num_threads() > 1 => pool,
            _ => return part(0..length),
        };
        // Several parts per thread compensate for threads that other programs delay.
        let parts = (pool.current_num_threads() * 4).min((work / (WORTHWHILE / 4)).max(2));
        let step = length.div_ceil(parts).next_multiple_of(granularity.max(1));
        pool.in_place_scope(|scope| halve(scope, 0..length.div_ceil(step), (step, length), part));
    }
}

/// Calls `part` for parts of `step` indices. The calling thread passes on the later half of what it has, again and
/// again: waking a thread takes as long as a short part, and threads that are awake wake others.
fn halve<'scope>(
    scope: &rayon_core::Scope<'scope>,
    mut parts: Range<usize>,
    (step, length): (usize, usize),
    part: &'scope (dyn Fn(Range<usize>) + Sync),
) {
    while parts.len() > 1 {
        let middle = parts.start + parts.len() / 2;
        let later = middle..parts.end;
        scope.spawn(move |scope| halve(scope, later, (step, length), part));
        parts.end = middle;
    }
    part(parts.start * step..length.min((parts.start + 1) * step));
}
