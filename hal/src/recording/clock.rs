//! The device's clock: when work began and ended, with one event for most calls.
//!
//! An event after each call says when its work ended. Work begins when the stream's previous work ends or, on an idle
//! stream, when it is queued. The device's time of the queueing follows from the host's time: a *marker* is an event
//! before the work of a call, and an idle stream reaches it within microseconds of the host's call.
//!
//! A call has a marker of its own if its beginning does not follow otherwise: its stream is not the device's last one,
//! or was made to wait for other work; the stream is idle, and the clocks were compared more than [`PERIOD`] ago; or
//! streams cannot be asked whether they are idle. Markers between two comparisons belong to one segment. In a segment,
//! the difference of the clocks is the least that lets no event precede its recording.

use super::LIMIT;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::properties::DeviceId;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, OnceLock};

/// The nanoseconds after which the clocks are compared again.
pub(super) const PERIOD: u64 = 20_000_000;
/// The nanoseconds after which a busy stream is asked again whether it is idle.
const RETRY: u64 = 1_000_000;
/// The nanoseconds after which a marker is too old: the driver's times are `f32` milliseconds.
const OLDEST: u64 = 1_000_000_000;

/// An event before the work of a call, from which the events of later calls count.
#[derive(Debug)]
pub(super) struct Marker {
    event: Arc<dyn Event>,
    /// The host's time before the event was recorded.
    host: u64,
    segment: u32,
    /// True if an idle stream began the segment.
    is_compared: bool,
    /// The device's time, once it has been read.
    time: OnceLock<i64>,
}

/// The events of a call.
#[derive(Debug)]
pub(super) struct Timing {
    pub(super) marker: Arc<Marker>,
    /// True if the marker is directly before the work.
    pub(super) is_own: bool,
    pub(super) end: Arc<dyn Event>,
}

/// The device's times of a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    segment: u32,
    is_compared: bool,
    /// True if the marker is the call's own.
    is_own: bool,
    /// The times of device and host at the marker.
    marker: (i64, u64),
    end: i64,
}

impl Timing {
    /// Returns the times of finished work. The marker has been read.
    ///
    /// # Errors
    /// As for [`Event::elapsed_since`].
    pub(super) fn times(&self) -> Result<Times> {
        let &Marker { ref event, host, segment, is_compared, ref time } = self.marker.as_ref();
        let time = *time.get().ok_or_else(|| Error::handle("profile", "the marker has no time"))?;
        let end = time + between(event, &self.end)?;
        let (is_own, marker) = (self.is_own, (time, host));
        Ok(Times { segment, is_compared, is_own, marker, end })
    }

    /// Returns the events that no other call needs.
    pub(super) fn into_events(self) -> impl Iterator<Item = Arc<dyn Event>> {
        Arc::into_inner(self.marker).map(|marker| marker.event).into_iter().chain([self.end])
    }
}

/// Returns the nanoseconds between two events.
fn between(start: &Arc<dyn Event>, end: &Arc<dyn Event>) -> Result<i64> {
    Ok((f64::from(end.elapsed_since(start.as_ref())?) * 1e6) as i64)
}

/// The events that a call needs.
#[derive(Debug)]
pub(super) struct Plan {
    /// The last marker, if the call needs none of its own.
    pub(super) marker: Option<Arc<Marker>>,
    /// True if the clocks are to be compared if the stream is idle.
    pub(super) compares: bool,
}

/// The markers of one device.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    last: Option<Arc<Marker>>,
    /// The current segment, and whether an idle stream began it.
    segment: (u32, bool),
    /// The host's time from which on the clocks are to be compared.
    next: u64,
    stream: u64,
    /// The streams that were made to wait since their last call.
    waiting: Vec<u64>,
    unread: VecDeque<Arc<Marker>>,
    /// The last marker whose time is known.
    read: Option<Arc<Marker>>,
}

impl Clocks {
    /// Plans the events of a call at the host's time `now`. With `is_asked`, a stream can be asked if it is idle.
    pub(super) fn plan(&mut self, now: u64, stream: u64, is_asked: bool) -> Plan {
        let same = mem::replace(&mut self.stream, stream) == stream;
        let position = self.waiting.iter().position(|&it| it == stream);
        let waited = position.map(|it| self.waiting.swap_remove(it)).is_some();
        let follows = same && !waited && is_asked;
        let is_new = |marker: &&Arc<Marker>| now.saturating_sub(marker.host) < OLDEST;
        let marker = self.last.as_ref().filter(|_| follows).filter(is_new).cloned();
        // After another stream's work, an idle stream may still have to wait for it: a default stream waits for others.
        Plan { marker, compares: same && is_asked && now >= self.next }
    }

    /// Notes that the stream was busy when the clocks were to be compared.
    pub(super) fn postpone(&mut self, now: u64) {
        self.next = self.next.max(now + RETRY);
    }

    /// Adds a marker that was recorded after the host's time `host`, on a stream that was idle or may have been busy.
    pub(super) fn add(&mut self, event: Arc<dyn Event>, host: u64, was_idle: bool) -> Arc<Marker> {
        if was_idle || self.last.is_none() {
            self.segment = (self.segment.0 + 1, was_idle);
        }
        match was_idle {
            true => self.next = host + PERIOD,
            false => self.postpone(host),
        }
        let ((segment, is_compared), time) = (self.segment, OnceLock::new());
        let marker = Arc::new(Marker { event, host, segment, is_compared, time });
        self.last = Some(marker.clone());
        if self.unread.len() == LIMIT {
            // Calls that count from it were dropped.
            self.unread.pop_front();
        }
        self.unread.push_back(marker.clone());
        marker
    }

    /// Notes that the stream's next work may have to wait for other work.
    pub(super) fn wait(&mut self, stream: u64) {
        if !self.waiting.contains(&stream) {
            self.waiting.push(stream);
        }
    }

    /// Begins a session: its first call compares the clocks.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Forgets the last marker, in case that the device was reset.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the last marker that was read, and the next one.
    pub(super) fn unread(&self) -> Option<(Option<Arc<Marker>>, Arc<Marker>)> {
        Some((self.read.clone(), self.unread.front()?.clone()))
    }

    /// Counts the first unread marker as read, if it is this one. Returns an event for reuse.
    pub(super) fn pass(&mut self, marker: &Arc<Marker>) -> Option<Arc<dyn Event>> {
        self.unread.front().filter(|it| Arc::ptr_eq(it, marker))?;
        let marker = self.unread.pop_front()?;
        Arc::into_inner(self.read.replace(marker)?).map(|old| old.event)
    }
}

impl Marker {
    pub(super) fn device_id(&self) -> DeviceId {
        self.event.device_id()
    }

    /// Returns true if the device's time is known.
    pub(super) fn is_read(&self) -> bool {
        self.time.get().is_some()
    }

    /// Sets the device's time, by the marker before. After a reset of the device, the host's clock says how much time
    /// has passed.
    ///
    /// # Errors
    /// `NotReady` if the device has not reached the marker.
    pub(super) fn read(&self, previous: Option<&Marker>) -> Result<()> {
        let time = match previous {
            None => 0,
            Some(previous) => {
                let passed = match between(&previous.event, &self.event) {
                    Err(error) if error.kind() == ErrorKind::NotReady => return Err(error),
                    passed => passed.unwrap_or(self.host as i64 - previous.host as i64),
                };
                previous.time.get().copied().unwrap_or_default() + passed
            }
        };
        self.time.get_or_init(|| time);
        Ok(())
    }
}

/// A call with device times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) device: u16,
    pub(super) stream: u64,
    /// The beginning and the end on the host.
    pub(super) host: (u64, u64),
    pub(super) times: &'a Times,
}

/// Computes when the work of calls began, on the host's clock.
#[derive(Debug)]
pub(super) struct Timeline {
    /// The host's time minus the device's, by device and segment.
    differences: HashMap<(u16, u32), i64>,
    /// The end of each stream's last work: by the device, and as shown.
    ends: HashMap<u64, (i64, i64)>,
}

impl Timeline {
    /// Compares the clocks by these calls.
    pub(super) fn of<'a>(calls: impl Iterator<Item = Call<'a>>) -> Timeline {
        let mut differences: HashMap<_, (i64, bool)> = HashMap::new();
        for Call { device, host, times, .. } in calls {
            let marker = times.marker.1 as i64 - times.marker.0;
            let least = marker.max(host.1 as i64 - times.end);
            let of = (device, times.segment);
            let (known, is_compared) = differences.entry(of).or_insert((least, times.is_compared));
            (*known, *is_compared) = (least.max(*known), times.is_compared);
        }
        // A busy stream began the others: their events say less than those of the next segment.
        let best = |(&(device, segment), &(known, is_compared)): (&(u16, u32), &(i64, bool))| {
            let next = differences.get(&(device, segment + 1)).filter(|_| !is_compared);
            ((device, segment), next.map_or(known, |next| next.0.max(known)))
        };
        let differences = differences.iter().map(best).collect();
        Timeline { differences, ends: HashMap::new() }
    }

    /// Returns when the work of the next call began, and how long it took. The calls come in the order of their ends.
    pub(super) fn place(&mut self, call: Call<'_>) -> (i64, i64) {
        let Call { device, stream, host, times } = call;
        let difference =
            self.differences.get(&(device, times.segment)).copied().unwrap_or_default();
        let (earlier, shown) = self.ends.get(&stream).copied().unwrap_or((i64::MIN, i64::MIN));
        let begun = if times.is_own { times.marker.0 } else { host.0 as i64 - difference };
        let begun = begun.max(earlier).min(times.end);
        let length = times.end - begun;
        let start = (begun + difference).max(shown);
        self.ends.insert(stream, (times.end.max(earlier), start + length));
        (start, length)
    }
}

#[cfg(test)]
mod tests;
