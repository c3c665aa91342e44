//! Capturing the work of a stream.

use super::DriverStream;
use super::graph::DriverGraph;
use crate::calls::Handle;
use crate::errors::optional;
use crate::event::DriverEvent;
use hal::error::{Error, Result};
use hal::locks::NothingOrdered;
use hal::memory::{CapturedMemory, GraphUses};
use hal::status::Status;
use hal::stream::{CaptureMode, StreamCore, StreamState};
use hal::submission::{
    Announcement, begin_alone, beside_captures, drain_alone, is_inside, outside_guards,
};
use smallvec::SmallVec;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED` and `_WRONG_THREAD`; HIP's are the same.
const UNMATCHED: c_int = 903;
const WRONG_THREAD: c_int = 908;

/// Shorter waits beside captures poll without sleeping.
const SPIN: Duration = Duration::from_micros(200);
/// The longest sleep between two polls.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

impl DriverStream {
    /// The number of the capture that the stream is part of.
    pub(crate) fn capture_number(&self) -> Result<Option<u64>> {
        if !self.may_capture() || self.is_elsewhere() {
            return Ok(None);
        }
        if self.context().driver.calls.capture_info.is_none() {
            return Ok(self.device().open_captures.number_of(self.id()));
        }
        let number = {
            let _scope = self.enter()?;
            self.context().capture_of(self.raw())?
        };
        // Drivers have no number for a capture that has become invalid.
        Ok(match number {
            Some(0) => Some(self.device().open_captures.number_of(self.id()).unwrap_or(0)),
            number => number,
        })
    }

    /// What keeps things for the graph of the capture that the stream is part of.
    pub(super) fn captured_memory(&self) -> Result<Option<Arc<CapturedMemory>>> {
        let Some(capture) = self.capture_number()? else { return Ok(None) };
        let _scope = self.enter()?;
        let captures = &self.device().open_captures;
        captures.memory_of(self.handle, &self.unattached, capture)
    }

    pub(crate) fn begin(&self, mode: CaptureMode) -> Result<()> {
        let begin = optional!(self.context().driver, capture_begin, "begin_capture")?;
        let mode = match mode {
            CaptureMode::Global => 0,
            CaptureMode::ThreadLocal => 1,
            CaptureMode::Relaxed => 2,
        };
        if self.is_default() {
            return Err(Error::invalid(
                "begin_capture",
                "the default stream cannot capture; make another stream, which can",
            ));
        }
        let refuse = || self.refuse_in_capture("begin_capture", "end its capture first");
        refuse()?;
        outside_guards("begin_capture")?;
        self.device().open_captures.collect();
        let context = self.context();
        let blocking = !self.options()?.non_blocking;
        let mut announced = context.capture_state.announce();
        let alone = self.drain_alone("begin_capture")?;
        let beginning = context.capture_state.beginning.lock();
        // Another thread may have been faster.
        refuse()?;
        if blocking {
            announced.bar_default();
        }
        {
            let _scope = self.enter()?;
            // SAFETY: the handle is a live stream.
            let begin = || unsafe { begin(self.raw(), mode) };
            context.check("begin_capture", context.asking(begin))?;
        }
        context.capture_state.add(self.id(), announced);
        match self.capture_number() {
            Ok(number) => {
                // One that is spoilt already, or of a driver that does not say, has a number here alone.
                let number = number.filter(|it| *it != 0).unwrap_or(u64::MAX - self.id());
                self.device().open_captures.begin(self.id(), number);
                Ok(())
            }
            Err(error) => {
                drop((beginning, alone));
                self.abandon();
                Err(error)
            }
        }
    }

    /// Waits for the work of the stream before it captures or joins a capture, and for that of the default stream
    /// if that waits for it: captured work cannot wait for work outside, nor can the default stream meanwhile.
    /// Returns the lock under which nobody queues more on them. The caller has announced the capture, and looks
    /// under the lock whether the stream captures by now: then nothing was waited for.
    fn drain_alone(&self, call: &'static str) -> Result<NothingOrdered> {
        let (_scope, concerned) = (self.enter()?, self.and_those_that_wait());
        let wait = || self.wait_for(&concerned, call);
        let has_settled = || {
            if self.capture_number()?.is_some() {
                return Ok(true);
            }
            // Where queries never tell, this waits.
            match self.supports_queries() {
                true => self.has_settled(&concerned, call),
                false => wait().map(|()| true),
            }
        };
        drain_alone(|stream| concerned.contains(&stream), has_settled, wait)
    }

    /// The driver's handles of this stream and the default stream, as far as they may have work: while another
    /// capture bars it, the default stream has none.
    fn handles(&self, concerned: &[u64]) -> impl Iterator<Item = Handle> {
        let default = concerned.len() > 1 && !self.context().default_is_barred();
        default.then_some(0).into_iter().chain([self.raw()])
    }

    fn has_settled(&self, concerned: &[u64], call: &'static str) -> Result<bool> {
        let context = self.context();
        for stream in self.handles(concerned) {
            // SAFETY: the handles are live streams.
            let query = || unsafe { (context.driver.calls.stream_query)(stream) };
            match context.outside_captures(query) {
                Status::NOT_READY => return Ok(false),
                code => context.check(call, code)?,
            }
        }
        Ok(true)
    }

    fn wait_for(&self, concerned: &[u64], call: &'static str) -> Result<()> {
        if self.supports_queries() {
            return self.poll(|| {
                // Another thread has begun a capture, which the caller finds under the lock.
                Ok(self.capture_number()?.is_some() || self.has_settled(concerned, call)?)
            });
        }
        let context = self.context();
        for stream in self.handles(concerned) {
            // SAFETY: the handles are live streams.
            let wait = || unsafe { (context.driver.calls.stream_synchronize)(stream) };
            context.check(call, context.outside_captures(wait))?;
        }
        Ok(())
    }

    /// Asks until the answer is true, each time while no capture of the stream begins or ends: drivers crash where
    /// a call finds that a stream captures, and another thread ends the capture meanwhile. A call that waits
    /// would keep captures from ending for as long.
    pub(super) fn poll(&self, is_done: impl Fn() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        loop {
            let queueing = beside_captures(self.id());
            if is_done()? {
                return Ok(());
            }
            drop(queueing);
            match begun.elapsed() {
                short if short < SPIN => std::thread::yield_now(),
                long => std::thread::sleep((long / 64).min(LONGEST_SLEEP)),
            }
        }
    }

    /// Returns the lock under which the capture of this stream ends: no other thread is queueing on a stream that
    /// may be part of it, nor on the default stream if that waits for one. The caller has no lock.
    fn end_alone(&self) -> NothingOrdered {
        let own = self.and_those_that_wait();
        begin_alone(|stream| {
            own.contains(&stream) || self.device().open_captures.has_joined(stream)
        })
    }

    /// This stream's number, and that of the default stream if that waits for it.
    fn and_those_that_wait(&self) -> SmallVec<[u64; 2]> {
        let default = (!self.is_surely_non_blocking()).then_some(self.device().default_stream_id);
        [self.id()].into_iter().chain(default).collect()
    }

    /// Waits for a mark in captured work: the stream becomes part of the capture, if it is not yet. That is to
    /// begin one.
    pub(super) fn join(&self, event: &DriverEvent) -> Result<()> {
        let context = self.context();
        if is_inside() {
            // What orders streams finds none that captures beside one that does not.
            self.check_in_capture()?;
            return event.wait_on(context, self.raw(), (true, true)).map(drop);
        }
        // The default stream cannot join, which the driver says.
        let joins = !self.is_default();
        let _announced = joins.then(Announcement::new);
        let alone = joins.then(|| self.drain_alone("wait_event")).transpose()?;
        let beginning = context.capture_state.beginning.lock();
        event.wait_on(context, self.raw(), (true, true))?;
        self.device().open_captures.join(&self.and_those_that_wait());
        drop(beginning);
        // Before other threads look.
        self.expose_if_captured()?;
        drop(alone);
        Ok(())
    }

    fn check_in_capture(&self) -> Result<()> {
        match self.capture_number()? {
            Some(_) => Ok(()),
            None => Err(Error::invalid(
                "wait_event",
                "a capture began while work was ordered behind its stream",
            )),
        }
    }

    /// An event may be of a capture of another library, which the stream is part of then.
    pub(super) fn expose_if_captured(&self) -> Result<()> {
        let context = self.context();
        if context.capture_state.any_exposed()
            && !self.is_exposed()
            && !self.is_default()
            && context.capture_of(self.raw())?.is_some()
        {
            self.expose();
        }
        Ok(())
    }

    pub(crate) fn end(&self) -> Result<DriverGraph> {
        let end = optional!(self.context().driver, capture_end, "end_capture")?;
        let number = || {
            self.capture_number()?.ok_or_else(|| {
                let detail = "the stream does not capture; begin a capture first";
                Error::invalid("end_capture", detail)
            })
        };
        number()?;
        outside_guards("end_capture")?;
        // Drivers do not expect that one thread ends a capture to which another one adds work, and crash.
        let _announcement = Announcement::new();
        let ordering = self.end_alone();
        let ending = self.context().capture_state.beginning.lock();
        // Another thread may have ended the capture, and begun the next one.
        let number = number()?;
        let scope = self.enter()?;
        let mut graph = 0;
        // SAFETY: the stream is live; the handle is written before the call returns.
        let code = self.context().asking(|| unsafe { end(self.raw(), &mut graph) });
        let result = self.context().check("end_capture", code);
        // The capture's origin is another stream or thread. Drivers need not let it go on then.
        let may_go_on = matches!(code, WRONG_THREAD | UNMATCHED);
        if may_go_on && self.capture_number().is_ok_and(|number| number.is_some()) {
            return Err(self.context().failed("end_capture", code));
        }
        drop(scope);
        self.context().capture_state.withdraw(self.id());
        let kept = self.device().open_captures.end(number);
        drop(ending);
        // What is dropped with a graph that cannot be made may be ordered.
        drop(ordering);
        // Made before the result is looked at: its end frees the memory of a failed capture.
        let made = DriverGraph::new(self.context(), self.epoch, graph, kept);
        result?;
        made
    }

    /// Ends a capture of which nothing is wanted.
    fn abandon(&self) {
        // No other thread ends it between its look and its call.
        let _ending = self.context().capture_state.beginning.lock();
        self.context().capture_state.withdraw(self.id());
        let calls = &self.context().driver.calls;
        let Ok(_scope) = self.enter() else { return };
        let mut graph = 0;
        if let Some(end) = calls.capture_end {
            // SAFETY: the stream is live; the handle is written before the call returns.
            let code = self.context().asking(|| unsafe { end(self.raw(), &mut graph) });
            if let (Status::SUCCESS, Some(destroy)) = (code, calls.graph_destroy) {
                // SAFETY: nobody else has the graph.
                unsafe { destroy(graph) };
            }
        }
    }

    pub(crate) fn refuse_in_capture(&self, call: &'static str, reason: &str) -> Result<()> {
        if self.capture_number()?.is_some() {
            return Err(Error::invalid(call, format!("the stream captures: {reason}")));
        }
        Ok(())
    }

    /// Refuses a copy that a graph could not repeat, for whatever reason.
    pub(crate) fn check_captured_copy(
        &self,
        call: &'static str,
        reason: Option<&str>,
    ) -> Result<()> {
        reason.map_or(Ok(()), |reason| self.refuse_in_capture(call, reason))
    }

    /// Ends a capture that its stream does not outlive.
    pub(crate) fn drop_capture(&self) -> Result<()> {
        let context = self.context();
        if !context.capture_state.has_begun(self.id()) {
            return Ok(());
        }
        let announcement = Announcement::new();
        let alone = self.end_alone();
        let number = self.capture_number()?.unwrap_or(0);
        self.abandon();
        let kept = self.device().open_captures.end(number);
        drop((alone, announcement));
        drop((GraphUses::take(kept.as_deref()), kept));
        Ok(())
    }
}

#[cfg(test)]
#[path = "capture/tests.rs"]
mod tests;
