//! Positions in the work of streams: marks and events, and how streams wait for them.

use super::{HostStream, Kind};
use crate::event::{HostEvent, Pending, Record};
use crate::queue::{Counted, Mark};
use hal::{Result, interruption};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

impl HostStream {
    pub(super) fn mark(&self) -> Mark {
        self.queue().mark()
    }

    /// Waits for the queued work, and for all work that the queued work waits for.
    pub(super) fn wait(&self) -> Result<()> {
        if matches!(self.kind, Kind::Default) {
            for mark in self.device.engine().marks(true) {
                mark.wait()?;
            }
        }
        self.mark().wait()
    }

    /// Counts a task that may wait for a thread of the program. Until it has run, no thread waits for room.
    pub(super) fn count_function(&self) -> Counted {
        let room = self.device.engine().room.clone();
        if room.begin_function() {
            self.device.engine().look_again();
        }
        Counted::new(room)
    }

    /// Records an event after the queued work, or in captured work.
    pub(super) fn record_event(&self, event: &HostEvent) -> Result<()> {
        if self.record_captured(event)? {
            return Ok(());
        }
        let at_once = match &self.kind {
            Kind::Default => self.is_clear_default(),
            Kind::Own { queue, blocking, .. } => {
                let waits = || {
                    interruption::is_in_kernel() || !self.device.engine().default_queue.is_idle()
                };
                queue.is_idle() && !(*blocking && waits())
            }
        };
        if at_once {
            event.set_reached(self.mark());
            return Ok(());
        }
        if let Some(shared) = event.shared() {
            let (number, shared) = (shared.begin(), shared.clone());
            return self.submit(Box::new(move || {
                shared.reach(number);
                Ok(())
            }));
        }
        let time = Arc::new(OnceLock::new());
        let reached = time.clone();
        self.submit(Box::new(move || {
            reached.get_or_init(Instant::now);
            Ok(())
        }))?;
        event.set_queued(Record { time, mark: self.mark() });
        Ok(())
    }

    /// Makes later work wait for an event. If the event was recorded in a capture, the work becomes part of
    /// it.
    pub(super) fn wait_for_event(&self, event: &HostEvent) -> Result<()> {
        let pending = event.pending();
        if let Some(Pending::Captured(mark)) = &pending {
            return self.join(mark);
        }
        self.check_isolation(event)?;
        match pending {
            Some(Pending::Here(mark)) => self.submit(Box::new(move || mark.wait())),
            Some(pending) => {
                // The other process may itself wait for a thread of this process.
                let counted = self.count_function();
                self.submit(Box::new(move || {
                    let _counted = counted;
                    pending.wait()
                }))
            }
            None => Ok(()),
        }
    }
}
