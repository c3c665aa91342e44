//! Capturing the work of a stream, and graphs of captured work.

use crate::calls::Handle;
use crate::context::Context;
use crate::event::DriverEvent;
use crate::stream::DriverStream;
use crate::vendor::optional;
use hal::error::{Error, Result};
use hal::locks::NothingOrdered;
use hal::memory::{CapturedMemory, GraphUses, is_left};
use hal::status::Status;
use hal::stream::{CaptureMode, Graph, Stream, StreamCore, StreamState};
use hal::submission::{
    Announcement, begin_alone, beside_captures, drain_alone, is_inside, outside_guards,
};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED` and `_WRONG_THREAD`; HIP's are the same.
const UNMATCHED: c_int = 903;
const WRONG_THREAD: c_int = 908;

/// While captures are possible, shorter waits poll without sleeping.
const SPIN: Duration = Duration::from_micros(200);
/// The longest sleep between two polls.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

impl DriverStream {
    /// Returns the number of the capture that the stream is part of.
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
        // Drivers do not report the number of an invalidated capture.
        Ok(match number {
            Some(0) => Some(self.device().open_captures.number_of(self.id()).unwrap_or(0)),
            number => number,
        })
    }

    /// Returns the list of objects kept for the graph of the stream's capture.
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
                "the default stream cannot capture; make another stream for it",
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
        // Another thread may have begun a capture first.
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
                // An invalidated capture, or a driver that does not report numbers, gets a number for use here
                // only.
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

    /// Waits for the work of the stream before the stream begins or joins a capture, and for the default stream's
    /// work if that waits for this stream. Neither captured work nor, meanwhile, the default stream can wait for
    /// work outside the capture. Returns the lock under which nothing is queued on either. The caller has
    /// announced the capture. If the stream captures by now, which the caller checks under the lock, nothing was
    /// waited for.
    fn drain_alone(&self, call: &'static str) -> Result<NothingOrdered> {
        let (_scope, concerned) = (self.enter()?, self.and_those_that_wait());
        let wait = || self.wait_for(&concerned, call);
        let is_drained = || {
            if self.capture_number()?.is_some() {
                return Ok(true);
            }
            // If queries never report completion, this waits instead.
            match self.supports_queries() {
                true => self.is_drained(&concerned, call),
                false => wait().map(|()| true),
            }
        };
        drain_alone(|stream| concerned.contains(&stream), is_drained, wait)
    }

    /// Returns the driver's handles of this stream and the default stream, as far as they may have work. The
    /// default stream has none while another capture bars it.
    fn handles(&self, concerned: &[u64]) -> impl Iterator<Item = Handle> {
        let default = concerned.len() > 1 && !self.context().default_is_barred();
        default.then_some(0).into_iter().chain([self.raw()])
    }

    fn is_drained(&self, concerned: &[u64], call: &'static str) -> Result<bool> {
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
                // Another thread may have begun a capture, which the caller finds under the lock.
                Ok(self.capture_number()?.is_some() || self.is_drained(concerned, call)?)
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

    /// Polls `is_done` until it returns true. Captures of the stream neither begin nor end during a call, because
    /// drivers crash if a capture ends on another thread while a call checks for it. A call that waited would
    /// prevent captures from ending for as long.
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
    /// may be part of it, or on the default stream if that waits for such a stream. The caller holds no lock.
    fn end_alone(&self) -> NothingOrdered {
        let own = self.and_those_that_wait();
        begin_alone(|stream| {
            own.contains(&stream) || self.device().open_captures.has_joined(stream)
        })
    }

    /// Returns this stream's number, and the default stream's if it waits for this stream.
    fn and_those_that_wait(&self) -> SmallVec<[u64; 2]> {
        let default = (!self.is_surely_non_blocking()).then_some(self.device().default_stream_id);
        [self.id()].into_iter().chain(default).collect()
    }

    /// Waits for an event that marks captured work. The stream thereby joins the capture if it is not part of it
    /// yet, which is like beginning one.
    pub(super) fn join(&self, event: &DriverEvent) -> Result<()> {
        let context = self.context();
        if is_inside() {
            // Inside a guard, a wait for an event must not make a stream join a capture.
            self.check_in_capture()?;
            return event.wait_on(context, self.raw(), (true, true)).map(drop);
        }
        // The default stream cannot join; the driver reports the error.
        let joins = !self.is_default();
        let _announced = joins.then(Announcement::new);
        let alone = joins.then(|| self.drain_alone("wait_event")).transpose()?;
        let beginning = context.capture_state.beginning.lock();
        event.wait_on(context, self.raw(), (true, true))?;
        self.device().open_captures.join(&self.and_those_that_wait());
        drop(beginning);
        // Before other threads check the stream.
        self.expose_if_captured()?;
        drop(alone);
        Ok(())
    }

    fn check_in_capture(&self) -> Result<()> {
        match self.capture_number()? {
            Some(_) => Ok(()),
            None => Err(Error::invalid(
                "wait_event",
                "a capture began on the stream while another stream was made to wait for it",
            )),
        }
    }

    /// An event may belong to another library's capture, which the stream is then part of.
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
        // Drivers crash if one thread ends a capture while another adds work to it.
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
        // The capture began on another stream or thread. Drivers may let it continue.
        let may_go_on = matches!(code, WRONG_THREAD | UNMATCHED);
        if may_go_on && self.capture_number().is_ok_and(|number| number.is_some()) {
            return Err(self.context().failed("end_capture", code));
        }
        drop(scope);
        self.context().capture_state.withdraw(self.id());
        let kept = self.device().open_captures.end(number);
        drop(ending);
        // If the graph cannot be created, dropping the captured objects may need to order streams.
        drop(ordering);
        // Created before the result is checked: dropping it frees the memory of a failed capture.
        let made = DriverGraph::new(self.context(), self.epoch, graph, kept);
        result?;
        made
    }

    /// Ends a capture and discards its result.
    fn abandon(&self) {
        // No other thread may end the capture between the check and the call.
        let _ending = self.context().capture_state.beginning.lock();
        self.context().capture_state.withdraw(self.id());
        let calls = &self.context().driver.calls;
        let Ok(_scope) = self.enter() else { return };
        let mut graph = 0;
        if let Some(end) = calls.capture_end {
            // SAFETY: the stream is live; the handle is written before the call returns.
            let code = self.context().asking(|| unsafe { end(self.raw(), &mut graph) });
            if let (Status::SUCCESS, Some(destroy)) = (code, calls.graph_destroy) {
                // SAFETY: the graph has no other references.
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

    /// Refuses a copy that a graph could not repeat, with the given reason.
    pub(crate) fn check_captured_copy(
        &self,
        call: &'static str,
        reason: Option<&str>,
    ) -> Result<()> {
        reason.map_or(Ok(()), |reason| self.refuse_in_capture(call, reason))
    }

    /// Ends a capture because its stream is being dropped.
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
mod tests;

// Graphs: captured work that can be launched.

/// Captured work that can be launched.
#[derive(Debug)]
pub(crate) struct DriverGraph {
    context: Arc<Context>,
    epoch: u64,
    graph: Handle,
    executable: Handle,
    nodes: usize,
    /// The memory and objects that the work uses.
    uses: GraphUses,
    #[allow(dead_code, reason = "held for the blocks that were allocated during the capture")]
    kept: Option<Arc<CapturedMemory>>,
}

impl DriverGraph {
    /// Instantiates captured work, and takes ownership of the objects that the capture keeps.
    pub(crate) fn new(
        context: &Arc<Context>,
        epoch: u64,
        graph: Handle,
        kept: Option<Arc<CapturedMemory>>,
    ) -> Result<DriverGraph> {
        let mut made = DriverGraph {
            context: context.clone(),
            epoch,
            graph,
            executable: 0,
            nodes: 0,
            uses: GraphUses::take(kept.as_deref()),
            kept,
        };
        let driver = &context.driver;
        let _scope = context.enter()?;
        let instantiate = optional!(driver, graph_instantiate, "end_capture")?;
        if let Some(nodes) = driver.calls.graph_nodes {
            // SAFETY: without an array, the call only returns the number.
            let count = || unsafe { nodes(graph, null_mut(), &mut made.nodes) };
            context.check("end_capture", context.outside_captures(count))?;
        }
        // SAFETY: the graph is live; the handle is written before the call returns.
        let instantiate = || unsafe { instantiate(&mut made.executable, graph, 0) };
        context.check("end_capture", context.outside_captures(instantiate))?;
        Ok(made)
    }
}

impl Drop for DriverGraph {
    fn drop(&mut self) {
        let context = &self.context;
        if !context.is_alive(self.epoch) {
            return;
        }
        // The driver refuses to destroy a graph inside a host function.
        let (uses, kept) = (&mut self.uses, &mut self.kept);
        let (graph, executable, nodes) = (self.graph, self.executable, self.nodes);
        let same = || DriverGraph {
            context: context.clone(),
            epoch: self.epoch,
            graph,
            executable,
            nodes,
            uses: std::mem::replace(uses, GraphUses::take(None)),
            kept: kept.take(),
        };
        if is_left(context.device_id(), same) {
            return;
        }
        let destroy = || {
            let _scope = context.enter()?;
            let calls = &context.driver.calls;
            let mut result = Ok(());
            for (destroy, handle) in
                [(calls.graph_exec_destroy, self.executable), (calls.graph_destroy, self.graph)]
            {
                if let Some(destroy) = destroy.filter(|_| handle != 0) {
                    // SAFETY: the handle is live and has no other references; the driver keeps
                    // everything that a launch in progress needs.
                    let destroy = || unsafe { destroy(handle) };
                    let code = context.outside_captures(destroy);
                    result = result.and(context.check("destroy_graph", code));
                }
            }
            result
        };
        if let Err(error) = destroy() {
            log::warn!("destroying a graph failed: {error}");
        }
    }
}

impl Graph for DriverGraph {
    fn node_count(&self) -> usize {
        self.nodes
    }

    unsafe fn launch(&self, stream: &Arc<dyn Stream>) -> Result<()> {
        let own = DriverStream::own(stream.as_ref(), &self.context)?;
        let launch = optional!(self.context.driver, graph_launch, "launch_graph")?;
        self.context.check_epoch(self.epoch)?;
        self.uses.launch(stream, || {
            // A graph that contained this launch would not keep the objects of this graph.
            own.refuse_in_capture("launch_graph", "a launch of a graph cannot be captured")?;
            let _scope = own.enter()?;
            // SAFETY: both handles are live, and no other thread launches the graph now. The work is
            // ordered; the caller's promise covers the rest.
            let code = unsafe { launch(self.executable, own.raw()) };
            self.context.check("launch_graph", code)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
