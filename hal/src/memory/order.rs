//! The rule by which uses of one memory on several streams are ordered.
//!
//! A stream runs its work in the order in which it was queued. Between streams:
//!
//! - a read runs after the last write queued before it;
//! - a write runs after the last write queued before it, and after all reads since;
//! - freeing the memory counts as a write.
//!
//! [`Uses`] holds the state needed for that, and [`ByteRanges`] group the bytes that were used in the same way:
//! disjoint parts of one memory are not ordered with each other. Neither calls a device, so the tests can check
//! every sequence of uses.

use crate::stream::Stream;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// The way in which an operation uses memory.
///
/// A read waits only for writes, so that two streams may read at the same time:
///
/// ```
/// use gpuarray::{StreamOptions, memory::{Access, AccessGuard, DeviceMemory}};
/// use std::sync::Arc;
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let first = device.default_stream();
/// let second = device.create_stream(StreamOptions::default())?;
/// let memory = Arc::new(DeviceMemory::for_stream(&device, &first, 64)?);
/// for stream in [&first, &second] {
///     let _guard = AccessGuard::acquire(stream, &[(&memory, Access::Read)])?;
///     // The work that reads is queued on the stream while the guard lives.
/// }
/// assert!(!memory.is_used_only_on(first.as_ref()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The bytes are only read.
    Read,
    /// Some of the bytes are written.
    Write,
}

/// A short list of streams.
pub(super) type Streams<S> = SmallVec<[S; 2]>;

/// A queue with an identity.
pub(super) trait Queue: Clone {
    /// Returns a number unique to this queue.
    fn id(&self) -> u64;
}

impl Queue for Arc<dyn Stream> {
    #[inline]
    fn id(&self) -> u64 {
        self.as_ref().id()
    }
}

/// The uses of one memory after which later uses have to be ordered.
///
/// Every stream in `readers`, except the writer itself, has waited for the writer since the last write. The writer is
/// in `readers` if it has read the memory after another stream used it, because the other stream's wait does not cover
/// that read.
#[derive(Clone, Debug)]
pub(super) struct Uses<S> {
    /// The stream of the last write.
    writer: S,
    /// Streams that have read since.
    readers: Streams<S>,
    /// Streams that used the memory in a capture, before a write outside of it.
    captured: Streams<S>,
}

impl<S: Queue> Uses<S> {
    /// Returns the state of memory that only one stream has used so far.
    fn of(stream: S) -> Uses<S> {
        Uses { writer: stream, readers: SmallVec::new(), captured: SmallVec::new() }
    }

    fn has_read(&self, stream: u64) -> bool {
        self.readers.iter().any(|reader| reader.id() == stream)
    }

    /// Returns the streams that a use on `stream` has to wait for.
    fn behind(&self, stream: &S, access: Access) -> Streams<S> {
        let (user, writer) = (stream.id(), self.writer.id());
        let mut behind = Streams::new();
        // A reader has already waited for the writer.
        let waits_for_writer = user != writer && !self.has_read(user);
        if waits_for_writer {
            behind.push(self.writer.clone());
        }
        if access == Access::Write {
            let others = self.readers.iter().filter(|reader| {
                reader.id() != user && !(waits_for_writer && reader.id() == writer)
            });
            behind.extend(others.cloned());
        }
        behind
    }

    /// Records a use on `stream`, after the stream has been ordered after [`Uses::behind`]. Streams that no longer
    /// matter are moved to `forgotten`.
    fn add(&mut self, stream: &S, access: Access, forgotten: &mut Streams<S>) {
        let user = stream.id();
        match access {
            Access::Write => {
                if user != self.writer.id() {
                    forgotten.push(std::mem::replace(&mut self.writer, stream.clone()));
                }
                forgotten.extend(self.readers.drain(..));
            }
            // A later stream waits for everything that the writer has queued until then.
            Access::Read if user == self.writer.id() && self.readers.is_empty() => {}
            Access::Read => {
                if !self.has_read(user) {
                    self.readers.push(stream.clone());
                }
            }
        }
    }

    /// Keeps streams that were forgotten because of a write outside their capture: later captured work is ordered
    /// after them.
    fn keep_captured(&mut self, forgotten: &[S], is_capturing: impl Fn(&S) -> bool) {
        for stream in forgotten.iter().filter(|it| is_capturing(it)) {
            if self.captured.iter().all(|it| it.id() != stream.id()) {
                self.captured.push(stream.clone());
            }
        }
    }

    /// Forgets streams that captured uses are ordered after: their captures have ended, or a captured write has
    /// been ordered after them.
    fn forget_captured(&mut self, goes_on: impl Fn(&S) -> bool, forgotten: &mut Streams<S>) {
        if self.captured.is_empty() {
            return;
        }
        let (left, gone) = self.captured.drain(..).partition(goes_on);
        self.captured = left;
        forgotten.extend::<Streams<S>>(gone);
    }

    /// Forgets readers that do not need to be waited for.
    fn forget_readers(&mut self, is_done: impl Fn(&S) -> bool, forgotten: &mut Streams<S>) {
        let mut position = 0;
        while position < self.readers.len() {
            if is_done(&self.readers[position]) {
                forgotten.push(self.readers.swap_remove(position));
            } else {
                position += 1;
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &S> {
        std::iter::once(&self.writer).chain(&self.readers).chain(&self.captured)
    }

    /// Returns true if later uses are ordered after the same streams as for `other`.
    fn is_like(&self, other: &Uses<S>) -> bool {
        self.readers.len() == other.readers.len()
            && self.all().map(S::id).eq(other.all().map(S::id))
    }

    /// Returns the stream of the last write, and the streams that have used the memory since or in a capture.
    fn into_parts(mut self) -> (S, Streams<S>) {
        self.readers.append(&mut self.captured);
        (self.writer, self.readers)
    }
}

/// The bytes of a memory that a use concerns.
pub(super) type Bytes = Range<usize>;

/// All bytes, also of memory of unknown size.
pub(super) const ALL: Bytes = 0..usize::MAX;

/// The uses of one memory, by ranges of its bytes. Most memory has one range. The uses of a part create more
/// ranges, and neighbours with equal uses are joined again.
#[derive(Clone, Debug)]
pub(super) struct ByteRanges<S> {
    /// The end and the uses of each range; the last range ends at `usize::MAX`.
    all: SmallVec<[(usize, Uses<S>); 1]>,
}

impl<S: Queue> ByteRanges<S> {
    /// Returns the state of memory that only one stream has used so far.
    pub(super) fn of(stream: S) -> ByteRanges<S> {
        ByteRanges { all: smallvec::smallvec![(ALL.end, Uses::of(stream))] }
    }

    /// Splits the ranges at a byte. Returns the number of the range that begins there; at the end of the memory,
    /// the number is one past the last range.
    fn cut(&mut self, at: usize) -> usize {
        let number = self.all.partition_point(|(end, _)| *end <= at);
        let start = number.checked_sub(1).map_or(0, |before| self.all[before].0);
        if start == at || at == ALL.end {
            return number;
        }
        let uses = self.all[number].1.clone();
        self.all.insert(number, (at, uses));
        number + 1
    }

    /// Returns the ranges of a use; none if the use is empty.
    fn cut_out(&mut self, bytes: &Bytes) -> Range<usize> {
        if bytes.is_empty() {
            return 0..0;
        }
        let first = self.cut(bytes.start);
        first..self.cut(bytes.end)
    }

    fn within(&mut self, bytes: &Bytes) -> impl Iterator<Item = &mut Uses<S>> {
        let ranges = self.cut_out(bytes);
        self.all[ranges].iter_mut().map(|(_, uses)| uses)
    }

    /// Returns the streams that a use on `stream` has to wait for.
    pub(super) fn behind(&mut self, bytes: &Bytes, stream: &S, access: Access) -> Streams<S> {
        let mut behind = Streams::new();
        self.within(bytes).for_each(|uses| add_new(&mut behind, uses.behind(stream, access)));
        behind
    }

    /// Records a use on `stream`, after the stream has been ordered after [`ByteRanges::behind`]. Streams that no
    /// longer matter are moved to `forgotten`. Streams for which `is_capturing` is true are also kept, because later
    /// captured uses are ordered after them.
    pub(super) fn add(
        &mut self,
        bytes: &Bytes,
        stream: &S,
        access: Access,
        is_capturing: impl Fn(&S) -> bool,
        forgotten: &mut Streams<S>,
    ) {
        for uses in self.within(bytes) {
            let known = forgotten.len();
            uses.add(stream, access, forgotten);
            uses.keep_captured(&forgotten[known..], &is_capturing);
        }
        self.join(bytes, forgotten);
    }

    /// Joins neighbours with equal uses, inside a range and at its ends.
    fn join(&mut self, bytes: &Bytes, forgotten: &mut Streams<S>) {
        let first = self.all.partition_point(|(end, _)| *end < bytes.start);
        let mut last =
            self.all.partition_point(|(end, _)| *end <= bytes.end).min(self.all.len() - 1);
        while last > first {
            last -= 1;
            if self.all[last].1.is_like(&self.all[last + 1].1) {
                let (_, uses) = self.all.remove(last);
                forgotten.extend(uses.all().cloned());
            }
        }
    }

    /// Returns the additional streams that a captured use is ordered after.
    pub(super) fn captured(&mut self, bytes: &Bytes) -> Streams<S> {
        let mut captured = Streams::new();
        self.within(bytes).for_each(|uses| add_new(&mut captured, uses.captured.clone()));
        captured
    }

    /// Forgets those streams: their captures have ended, or a captured write has been ordered after them.
    pub(super) fn forget_captured(
        &mut self,
        bytes: &Bytes,
        goes_on: impl Fn(&S) -> bool,
        forgotten: &mut Streams<S>,
    ) {
        self.within(bytes).for_each(|uses| uses.forget_captured(&goes_on, forgotten));
    }

    /// Forgets readers that do not need to be waited for. `is_done` receives a reader and the number of the
    /// memory's references to it.
    pub(super) fn forget_readers(
        &mut self,
        bytes: &Bytes,
        is_done: impl Fn(&S, usize) -> bool,
        forgotten: &mut Streams<S>,
    ) {
        let ranges = self.cut_out(bytes);
        let readers = self.all[ranges].iter().flat_map(|(_, uses)| &uses.readers);
        let done = readers.filter(|it| is_done(it, self.references(it.id()))).map(S::id);
        let done: SmallVec<[u64; 2]> = done.collect();
        if !done.is_empty() {
            let is_gone = |it: &S| done.contains(&it.id());
            self.within(bytes).for_each(|uses| uses.forget_readers(is_gone, forgotten));
        }
    }

    /// Returns the streams that a use outside any stream has to wait for.
    pub(super) fn last(&self, access: Access) -> Streams<S> {
        let mut last = Streams::new();
        for (_, uses) in &self.all {
            add_new(&mut last, [uses.writer.clone()]);
            if access == Access::Write {
                add_new(&mut last, uses.readers.clone());
            }
        }
        last
    }

    /// Returns the stream of a last write.
    pub(super) fn writer(&self) -> &S {
        &self.all[0].1.writer
    }

    /// Returns the number of references to a stream.
    pub(super) fn references(&self, stream: u64) -> usize {
        self.streams().filter(|it| it.id() == stream).count()
    }

    /// Returns the stream with this number, if the memory refers to it.
    pub(super) fn find(&self, stream: u64) -> Option<&S> {
        self.streams().find(|it| it.id() == stream)
    }

    fn streams(&self) -> impl Iterator<Item = &S> {
        self.all.iter().flat_map(|(_, uses)| uses.all())
    }

    /// Returns the stream of a last write, and all other streams that have used the memory since or in a capture,
    /// possibly with duplicates.
    pub(super) fn into_parts(self) -> (S, Streams<S>) {
        let writer = self.writer().clone();
        let mut others = Streams::new();
        for (_, uses) in self.all {
            let (writer, mut readers) = uses.into_parts();
            others.push(writer);
            others.append(&mut readers);
        }
        (writer, others)
    }
}

/// Adds the streams that are not in the list yet.
fn add_new<S: Queue>(list: &mut Streams<S>, streams: impl IntoIterator<Item = S>) {
    for stream in streams {
        if list.iter().all(|it| it.id() != stream.id()) {
            list.push(stream);
        }
    }
}

#[cfg(test)]
#[path = "order/tests.rs"]
mod tests;
