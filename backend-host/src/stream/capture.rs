//! Capturing on streams: starting a capture, recording work, and ending the capture.

use super::graph::{GraphWork, HostGraph};
use super::{HostStream, Kind};
use crate::capture::{Capture, CaptureSlot, CapturedMark, Node, Refusal};
use crate::event::HostEvent;
use crate::transfer;
use hal::submission::{begin_when_drained, end_unordered};
use hal::{CaptureMode, Error, Result, Transfer, interruption, nonblocking};
use std::sync::Arc;

impl HostStream {
    /// Returns the capture in which the stream takes part.
    #[inline]
    pub(super) fn capture(&self) -> Option<Arc<Capture>> {
        match &self.kind {
            Kind::Default => None,
            Kind::Own { capture, .. } => capture.get(),
        }
    }

    /// Records work if the stream captures. Returns the work if it has to be queued instead.
    ///
    /// # Errors
    /// `InvalidArgument` for the default stream, while a stream that it waits for captures.
    fn record_work(&self, call: &'static str, work: Node) -> Result<Option<Node>> {
        if matches!(self.kind, Kind::Default) {
            self.device.engine().captures.check_default(call)?;
        }
        match self.capture() {
            Some(capture) => capture.add(call, self.id, work),
            None => Ok(Some(work)),
        }
    }

    /// Queues work, or records it if the stream captures.
    pub(super) fn queue_work(
        &self,
        call: &'static str,
        work: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<()> {
        match self.record_work(call, Box::new(work))? {
            Some(work) => self.submit(work),
            None => Ok(()),
        }
    }

    /// Queues a launch, or records it if the stream captures. The next call that waits or queries reports the
    /// failure of a queued launch.
    pub(super) fn queue_launch(
        &self,
        work: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) -> Result<()> {
        let Some(work) = self.record_work("launch", Box::new(work))? else { return Ok(()) };
        let queue = Arc::downgrade(self.queue());
        self.submit(Box::new(move || {
            // The queue outlives its tasks.
            if let (Err(error), Some(queue)) = (work(), queue.upgrade()) {
                queue.keep_kernel_failure(error);
            }
            Ok(())
        }))
    }

    /// Refuses an operation that a graph cannot repeat, while the stream captures.
    pub(super) fn refuse_in_capture(&self, call: &'static str, reason: &str) -> Result<()> {
        match self.capture() {
            Some(_) => Err(Error::invalid(call, format!("the stream captures: {reason}"))),
            None => Ok(()),
        }
    }

    /// Refuses a copy that a graph could not repeat.
    pub(super) fn check_captured_transfer(&self, transfer: &Transfer) -> Result<()> {
        if self.capture().is_none() {
            return Ok(());
        }
        let is_page_locked = |host: u64| {
            !transfer::touches_pageable(transfer, &self.device)
                || self.device.has_memory(host, transfer.width)
        };
        match transfer.unrepeatable(is_page_locked) {
            Some(reason) => self.refuse_in_capture("transfer", reason),
            None => Ok(()),
        }
    }

    /// Refuses to wait for the stream while it captures, or while the default stream waits for a stream that
    /// captures. The capture becomes invalid.
    pub(super) fn check_wait(&self, call: &'static str) -> Result<()> {
        match (&self.kind, self.capture()) {
            (Kind::Default, _) => self.device.engine().captures.check_default(call),
            (_, Some(capture)) => Err(capture.spoil(call, Refusal::Unsupported)),
            _ => Ok(()),
        }
    }

    /// Joins a capture. Captured work cannot wait for work outside of the capture, so this first waits for
    /// the work queued on the stream and, if the stream is blocking, on the default stream.
    fn enter(&self, call: &'static str, slot: &CaptureSlot, capture: &Arc<Capture>) -> Result<()> {
        interruption::before_waiting(call)?;
        let default = &self.device.engine().default_queue;
        let blocking = matches!(self.kind, Kind::Own { blocking: true, .. });
        let both = [self.id, self.device.default_stream_id()];
        let concerned = if blocking { &both } else { &both[..1] };
        let is_drained = || Ok(self.queue().is_idle() && (!blocking || default.is_idle()));
        let wait = || {
            if blocking {
                default.mark().wait_interruptibly()?;
            }
            self.mark().wait_interruptibly()
        };
        begin_when_drained(
            call,
            |stream| concerned.contains(&stream),
            is_drained,
            wait,
            || {
                if !slot.set(capture) {
                    return Err(Error::invalid(call, "the stream captures already"));
                }
                if blocking {
                    let engine = self.device.engine();
                    capture.bar_default(&engine.captures, &engine.blocking_pending);
                }
                Ok(())
            },
        )
    }

    pub(super) fn begin(&self, mode: CaptureMode) -> Result<()> {
        let Kind::Own { queue, capture: slot, .. } = &self.kind else {
            return Err(Error::invalid(
                "begin_capture",
                "the default stream cannot capture; make another stream for it",
            ));
        };
        queue.check_process()?;
        interruption::before_waiting("begin_capture")?;
        self.refuse_in_capture("begin_capture", "end its capture first")?;
        let engine = self.device.engine();
        engine.captures.collect(self.device.graph_blocks());
        self.mark().wait_interruptibly()?;
        queue.take_failure()?;
        let capture = Capture::new(self.id, mode, self.device.graph_blocks());
        self.enter("begin_capture", slot, &capture)?;
        engine.captures.add(&capture);
        Ok(())
    }

    pub(super) fn end(&self) -> Result<HostGraph> {
        let capture = self.capture().ok_or_else(|| {
            Error::invalid("end_capture", "the stream does not capture; begin a capture first")
        })?;
        capture.check_end(self.id)?;
        interruption::before_waiting("end_capture")?;
        // If the graph cannot be created, dropping the captured objects may order work, but only after this.
        let ended = end_unordered("end_capture", || {
            let ended = capture.end();
            self.device.engine().captures.remove(&capture);
            ended
        })?;
        let ended = ended.ok_or_else(|| Refusal::Invalidated.of("end_capture"))?;
        let (nodes, memory) = ended.finish(self.id)?;
        Ok(HostGraph::new(&self.device, nodes, memory))
    }

    /// Ends a capture whose stream is being dropped, or that no object of the program can end. If the capture
    /// began on another stream, it can no longer be joined.
    pub(super) fn abandon(&self) {
        let Some(capture) = self.capture() else { return };
        if capture.origin() == self.id {
            let ended = capture.end();
            self.device.engine().captures.remove(&capture);
            drop(ended);
        } else {
            capture.spoil("destroy_stream", Refusal::Unjoined);
        }
    }

    /// Frees memory together with the graph that is created from the capture.
    ///
    /// # Safety
    /// The same as for [`hal::stream::StreamCore::free`].
    pub(super) unsafe fn free_captured(
        &self,
        capture: &Capture,
        address: u64,
        bytes: usize,
    ) -> Result<()> {
        if let Some(done) = self.device.graph_blocks().release(address) {
            return done;
        }
        // SAFETY: the caller's promise.
        let is_kept = capture.keep(|memory| unsafe { memory.keep_freed(address, bytes) });
        // SAFETY: the caller's promise; the capture has just ended, and nothing was queued since.
        if is_kept { Ok(()) } else { unsafe { self.device.free_ordered(address, bytes) } }
    }

    /// Records an event in captured work. Returns false if the stream does not capture.
    pub(super) fn record_captured(&self, event: &HostEvent) -> Result<bool> {
        let Some(capture) = self.capture() else { return Ok(false) };
        event.set_captured(capture.mark("record", self.id)?)?;
        Ok(true)
    }

    /// Makes later work depend on a mark in captured work. The stream becomes part of that capture.
    pub(super) fn join(&self, mark: &CapturedMark) -> Result<()> {
        let call = "wait_event";
        let Kind::Own { capture: slot, .. } = &self.kind else {
            return Err(mark.capture().spoil(call, Refusal::Implicit));
        };
        match slot.get() {
            Some(own) if Arc::ptr_eq(&own, mark.capture()) => {}
            Some(own) => {
                mark.capture().spoil(call, Refusal::Merge);
                return Err(own.spoil(call, Refusal::Merge));
            }
            None => {
                mark.check(call)?;
                self.enter(call, slot, mark.capture())?;
            }
        }
        mark.join(call, self.id)
    }

    /// Refuses to make captured work wait for an event of other work.
    pub(super) fn check_isolation(&self, event: &HostEvent) -> Result<()> {
        match self.capture() {
            // An event that was never recorded does not have to be waited for.
            Some(capture) if event.is_recorded() => {
                Err(capture.spoil("wait_event", Refusal::Isolation))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a graph may be launched on the stream.
    pub(crate) fn check_launch(&self) -> Result<()> {
        self.status.during(|| {
            if let Kind::Own { queue, .. } = &self.kind {
                queue.check_process()?;
            }
            interruption::before_waiting("launch_graph")?;
            self.refuse_in_capture("launch_graph", "a launch of a graph cannot be captured")
        })
    }

    /// Runs a graph immediately, or queues it.
    pub(crate) fn launch_graph(&self, work: &Arc<GraphWork>) -> Result<()> {
        self.status.during(|| {
            if let Some(_turn) = self.at_once() {
                // Its kernels may run for any length of time.
                nonblocking::before_waiting()?;
                return work.run();
            }
            let work = work.clone();
            self.queue_launch(move || work.run())
        })
    }
}
