//! Tests if queries of streams and events work: on some runtimes they return "not ready" forever.

use super::calls::{Handle, NO_TIMING, NON_BLOCKING};
use super::vendor::Driver;
use hal::status::Status;
use std::ffi::c_int;

/// The kinds of objects whose queries report completion after their work has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuerySupport {
    pub(super) streams: bool,
    pub(super) events: bool,
    /// True if queries of events that were never recorded report completion, as they should.
    pub(super) unrecorded: bool,
}

impl QuerySupport {
    /// Assumed after a failure, which the next call reports.
    pub(super) const UNKNOWN: QuerySupport =
        QuerySupport { streams: true, events: true, unrecorded: true };

    /// Queries idle objects of a device. The context is current.
    #[cold]
    pub(super) fn of(driver: &Driver, ordinal: usize) -> QuerySupport {
        let support = QuerySupport::try_queries(driver);
        let all = [support.streams, support.events, support.unrecorded];
        if all.contains(&false) {
            log::warn!(
                "device {}:{ordinal} answers queries of idle objects with \"not ready\" \
                 ({support:?}): waits for them cannot be interrupted",
                driver.vendor.name(),
            );
        }
        support
    }

    fn try_queries(driver: &Driver) -> QuerySupport {
        let (calls, mut support) = (&driver.calls, QuerySupport::UNKNOWN);
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
                return support;
            }
            support.streams = (calls.stream_query)(stream) != Status::NOT_READY;
            if !failed((calls.event_create)(&mut event, NO_TIMING)) {
                support.unrecorded = (calls.event_query)(event) != Status::NOT_READY;
                if !failed((calls.event_record)(event, stream))
                    && !failed((calls.event_synchronize)(event))
                {
                    support.events = (calls.event_query)(event) != Status::NOT_READY;
                }
                failed((calls.event_destroy)(event));
            }
            failed((calls.stream_destroy)(stream));
        }
        support
    }
}
