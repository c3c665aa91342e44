//! Capturing the work of a stream.

use super::DriverStream;
use super::graph::DriverGraph;
use crate::driver::errors::optional;
use crate::error::{Error, Result};
use crate::memory::CapturedMemory;
use crate::queueing::begin_alone;
use crate::status::Status;
use crate::stream::{CaptureMode, Stream, Transfer};
use std::ffi::c_int;
use std::sync::Arc;

/// `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED` and `_WRONG_THREAD`; HIP's are the same.
const UNMATCHED: c_int = 903;
const WRONG_THREAD: c_int = 908;

impl DriverStream {
    /// The number of the capture that the stream is part of.
    pub(in crate::driver) fn capture_number(&self) -> Result<Option<u64>> {
        if !self.may_capture() || self.is_elsewhere() {
            return Ok(None);
        }
        if self.context().driver.calls.capture_info.is_none() {
            return Ok(self.context().capture_state.is_announced(self.id()).then_some(0));
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

    pub(in crate::driver) fn begin(&self, mode: CaptureMode) -> Result<()> {
        let begin = optional!(self.context().driver, capture_begin, "begin_capture")?;
        let mode = match mode {
            CaptureMode::Global => 0,
            CaptureMode::ThreadLocal => 1,
            CaptureMode::Relaxed => 2,
        };
        if self.is_default() {
            return Err(Error::invalid(
                "begin_capture",
                "the default stream cannot capture; create_stream makes one that can",
            ));
        }
        self.refuse_in_capture("begin_capture", "end_capture comes first")?;
        self.device().open_captures.collect();
        self.settle_before_capture("begin_capture")?;
        let context = self.context();
        let blocking = !self.options()?.non_blocking;
        let is_first = context.capture_state.announce(self.id(), blocking);
        // Work that other threads are queueing on the stream is not part of the capture.
        let ordering = begin_alone(self.id());
        let beginning = context.capture_state.beginning.lock();
        let begun = self.enter().and_then(|_scope| {
            // SAFETY: the handle is a live stream.
            let begin = || unsafe { begin(self.raw(), mode) };
            context.check("begin_capture", context.asking(begin))
        });
        if let Err(error) = begun {
            if is_first {
                context.capture_state.withdraw(self.id());
            }
            return Err(error);
        }
        match self.capture_number() {
            Ok(number) => {
                self.device().open_captures.begin(self.id(), number.unwrap_or(0));
                Ok(())
            }
            Err(error) => {
                drop((beginning, ordering));
                self.abandon();
                Err(error)
            }
        }
    }

    /// Waits for the work of the stream, and of the default stream, before the stream captures: captured
    /// work cannot wait for work outside the capture.
    pub(in crate::driver) fn settle_before_capture(&self, call: &'static str) -> Result<()> {
        let context = self.context();
        let _scope = self.enter()?;
        // While another capture bars it, the default stream has no work.
        let default = (!context.default_is_barred()).then_some(0);
        for stream in default.into_iter().chain([self.raw()]) {
            // SAFETY: the handles are live streams.
            let wait = || unsafe { (context.driver.calls.stream_synchronize)(stream) };
            context.check(call, context.outside_captures(wait))?;
        }
        Ok(())
    }

    pub(in crate::driver) fn end(&self) -> Result<DriverGraph> {
        let end = optional!(self.context().driver, capture_end, "end_capture")?;
        let number = self.capture_number()?.ok_or_else(|| {
            Error::invalid("end_capture", "the stream does not capture: begin_capture comes first")
        })?;
        // Drivers do not expect that one thread ends a capture to which another one adds work.
        let ordering = begin_alone(self.id());
        let ending = self.context().capture_state.beginning.lock();
        let scope = self.enter()?;
        let mut graph = 0;
        // SAFETY: the stream is live; the handle is written before the call returns.
        let code = self.context().asking(|| unsafe { end(self.raw(), &mut graph) });
        let result = self.context().check("end_capture", code);
        if matches!(code, WRONG_THREAD | UNMATCHED) {
            // The capture goes on: its origin is another stream or thread.
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

    pub(in crate::driver) fn refuse_in_capture(
        &self,
        call: &'static str,
        reason: &str,
    ) -> Result<()> {
        if self.capture_number()?.is_some() {
            return Err(Error::invalid(call, format!("the stream captures: {reason}")));
        }
        Ok(())
    }

    /// Refuses a copy that a graph could not repeat.
    pub(in crate::driver) fn check_captured_transfer(&self, transfer: &Transfer) -> Result<()> {
        match transfer.unrepeatable(|host| self.context().driver.vendor.knows(host)) {
            Some(reason) => self.refuse_in_capture("transfer", reason),
            None => Ok(()),
        }
    }

    /// Ends a capture that its stream does not outlive.
    pub(in crate::driver) fn drop_capture(&self) -> Result<()> {
        let context = self.context();
        if !context.capture_state.is_announced(self.id()) {
            return Ok(());
        }
        let number = self.capture_number()?.unwrap_or(0);
        self.abandon();
        drop(self.device().open_captures.end(number));
        Ok(())
    }
}
