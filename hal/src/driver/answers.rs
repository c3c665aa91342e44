//! Whether queries of streams and events end: there are runtimes whose never say yes.

use super::calls::{Handle, NO_TIMING, NON_BLOCKING};
use super::errors::Driver;
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
    pub(super) const UNKNOWN: Answers = Answers { streams: true, events: true, unrecorded: true };

    /// What queries of a device's idle objects say. The context is current.
    #[cold]
    pub(super) fn of(driver: &Driver, ordinal: usize) -> Answers {
        let answers = Answers::try_queries(driver);
        let all = [answers.streams, answers.events, answers.unrecorded];
        if all.contains(&false) {
            log::warn!(
                "device {}:{ordinal} answers queries of idle objects with \"not ready\" \
                 ({answers:?}): waits for them cannot be interrupted",
                driver.vendor.name(),
            );
        }
        answers
    }

    fn try_queries(driver: &Driver) -> Answers {
        let (calls, mut answers) = (&driver.calls, Answers::UNKNOWN);
        let failed = |code: c_int| match code {
            Status::SUCCESS => false,
            _ => {
                driver.vendor.forget_failure();
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
            if !failed((calls.event_create)(&mut event, NO_TIMING)) {
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
