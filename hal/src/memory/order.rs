//! The rule by which uses of one memory on several streams are ordered.
//!
//! A stream runs its work in the order in which it was queued. Between streams:
//!
//! - a read runs after the last write queued before it;
//! - a write runs after the last write queued before it, and after all reads since;
//! - freeing the memory counts as a write.
//!
//! [`Uses`] is what has to be remembered for that. It calls no device, so the tests can check
//! every sequence of uses.

use crate::stream::Stream;
use smallvec::SmallVec;
use std::sync::Arc;

/// How an operation uses a memory.
///
/// A read waits for writes alone, so that two streams may read at the same time:
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
    /// The bytes stay as they are.
    Read,
    /// Some of the bytes change.
    Write,
}

/// A few streams.
pub(super) type Streams<S> = SmallVec<[S; 2]>;

/// A queue that can be told from others.
pub(super) trait Queue: Clone {
    /// A number that no other queue has.
    fn id(&self) -> u64;
}

impl Queue for Arc<dyn Stream> {
    #[inline]
    fn id(&self) -> u64 {
        self.as_ref().id()
    }
}

/// The uses of one memory that later uses have to be ordered behind.
///
/// Every stream in `readers`, apart from the writer itself, has waited for the writer since
/// the last write. The writer is among them if it has read after another stream came: that
/// stream's wait does not cover the read.
#[derive(Clone, Debug)]
pub(super) struct Uses<S> {
    /// The stream of the last write.
    writer: S,
    /// Streams that have read since.
    readers: Streams<S>,
    /// Streams that have used the memory in a capture, before a write beside it.
    captured: Streams<S>,
}

impl<S: Queue> Uses<S> {
    /// Memory that so far only one stream has used, in any way.
    pub(super) fn of(stream: S) -> Uses<S> {
        Uses { writer: stream, readers: SmallVec::new(), captured: SmallVec::new() }
    }

    fn has_read(&self, stream: u64) -> bool {
        self.readers.iter().any(|reader| reader.id() == stream)
    }

    /// The streams whose work so far a use on `stream` has to wait for.
    pub(super) fn behind(&self, stream: &S, access: Access) -> Streams<S> {
        let (user, writer) = (stream.id(), self.writer.id());
        let mut behind = Streams::new();
        // A reader has waited for the writer already.
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

    /// Remembers a use on `stream`, which has been ordered behind [`Uses::behind`]. What is
    /// forgotten for it goes into `forgotten`.
    pub(super) fn add(&mut self, stream: &S, access: Access, forgotten: &mut Streams<S>) {
        let user = stream.id();
        match access {
            Access::Write => {
                if user != self.writer.id() {
                    forgotten.push(std::mem::replace(&mut self.writer, stream.clone()));
                }
                forgotten.extend(self.readers.drain(..));
            }
            // Whoever comes later waits for all that the writer has queued until then.
            Access::Read if user == self.writer.id() && self.readers.is_empty() => {}
            Access::Read => {
                if !self.has_read(user) {
                    self.readers.push(stream.clone());
                }
            }
        }
    }

    /// Remembers streams that were forgotten for a write beside their capture: what is captured later
    /// comes behind them.
    pub(super) fn keep_captured(&mut self, forgotten: &[S], is_capturing: impl Fn(&S) -> bool) {
        for stream in forgotten.iter().filter(|it| is_capturing(it)) {
            if self.captured.iter().all(|it| it.id() != stream.id()) {
                self.captured.push(stream.clone());
            }
        }
    }

    /// Streams that a captured use comes behind, too.
    pub(super) fn captured(&self) -> Streams<S> {
        self.captured.clone()
    }

    /// Forgets them: their captures have ended, or a captured write has come behind them.
    pub(super) fn forget_captured(
        &mut self,
        goes_on: impl Fn(&S) -> bool,
        forgotten: &mut Streams<S>,
    ) {
        if self.captured.is_empty() {
            return;
        }
        let (left, gone) = self.captured.drain(..).partition(goes_on);
        self.captured = left;
        forgotten.extend::<Streams<S>>(gone);
    }

    /// Forgets readers that need not be waited for.
    pub(super) fn forget_readers(
        &mut self,
        is_done: impl Fn(&S) -> bool,
        forgotten: &mut Streams<S>,
    ) {
        let mut position = 0;
        while position < self.readers.len() {
            if is_done(&self.readers[position]) {
                forgotten.push(self.readers.swap_remove(position));
            } else {
                position += 1;
            }
        }
    }

    /// The stream of the last write.
    pub(super) fn writer(&self) -> &S {
        &self.writer
    }

    /// How often a stream is remembered.
    pub(super) fn references(&self, stream: u64) -> usize {
        self.all(stream).count()
    }

    /// The stream of a number, if it is remembered.
    pub(super) fn find(&self, stream: u64) -> Option<&S> {
        self.all(stream).next()
    }

    fn all(&self, stream: u64) -> impl Iterator<Item = &S> {
        let all = std::iter::once(&self.writer).chain(&self.readers).chain(&self.captured);
        all.filter(move |it| it.id() == stream)
    }

    /// The stream of the last write, and those that have used the memory since or in a capture.
    pub(super) fn into_parts(mut self) -> (S, Streams<S>) {
        self.readers.append(&mut self.captured);
        (self.writer, self.readers)
    }
}

#[cfg(test)]
#[path = "order/tests.rs"]
mod tests;
