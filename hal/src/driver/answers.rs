//! Whether queries of streams and events end: there are runtimes whose never say yes.

use super::calls::Handle;
use super::context::Context;
use super::stream::NON_BLOCKING;
use crate::status::Status;
use std::ffi::c_int;

/// What of a context says yes once its work has run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    pub(super) streams: bool,
    pub(super) events: bool,
    /// Events that were never recorded, which count as complete.
    pub(super) unrecorded: bool,
}

impl Answers {
    /// Where nothing was found out: a failure is for whoever asks next.
    const UNKNOWN: Answers = Answers { streams: true, events: true, unrecorded: true };
}

impl Context {
    /// What queries say where there is nothing to wait for; tried once.
    pub(super) fn answers(&self) -> Answers {
        *self.answers.get_or_init(|| {
            let answers = self.outside_captures(|| self.try_queries());
            let all = [answers.streams, answers.events, answers.unrecorded];
            if all.contains(&false) {
                log::warn!(
                    "device {}:{} answers queries of idle objects with \"not ready\" ({answers:?}): \
                     waits for them cannot be interrupted",
                    self.driver.vendor.name(),
                    self.ordinal
                );
            }
            answers
        })
    }

    #[cold]
    fn try_queries(&self) -> Answers {
        let Ok(_scope) = self.enter() else { return Answers::UNKNOWN };
        let (calls, mut answers) = (&self.driver.calls, Answers::UNKNOWN);
        let failed = |code: c_int| match code {
            Status::SUCCESS => false,
            _ => {
                self.driver.vendor.forget_failure();
                true
            }
        };
        let (mut stream, mut event): (Handle, Handle) = (0, 0);
        // SAFETY: the handles are written before the calls return, used while they are live, and
        // destroyed once.
        unsafe {
            if failed((calls.stream_create)(&mut stream, NON_BLOCKING, 0)) {
                return answers;
            }
            answers.streams = (calls.stream_query)(stream) != Status::NOT_READY;
            if !failed((calls.event_create)(&mut event, super::event::NO_TIMING)) {
                answers.unrecorded = (calls.event_query)(event) != Status::NOT_READY;
                if !failed((calls.event_record)(event, stream))
                    && !failed((calls.event_synchronize)(event))
                {
                    answers.events = (calls.event_query)(event) != Status::NOT_READY;
                }
                failed((calls.event_destroy)(event));
            }
            failed((calls.stream_destroy)(stream));
        }
        answers
    }
}
