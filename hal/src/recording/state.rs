//! The recorder's state: recorded calls, and the events that give their times.

use super::clock::{Call, Clocks, Marker, Times, Timing};
use super::work::{Kind, Work};
use super::{LIMIT, here};
use crate::dtype::DType;
use crate::event::Event;
use crate::module::LaunchConfig;
use crate::properties::DeviceId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// The number of calls whose events may be unread before finished ones are read.
const UNREAD: u64 = 1 << 13;
/// The number of calls whose events are read at a time.
const BATCH: usize = 1 << 8;
/// The number of names that are found by their addresses.
const NAMES: usize = 1 << 6;

/// A recorded call. It fits two cache lines.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) dtype: Option<DType>,
    pub(super) name: u32,
    pub(super) line: u32,
    pub(super) thread: u32,
    /// The position of the device in [`State::devices`].
    pub(super) device: Option<u16>,
    /// The launch configuration of a kernel.
    pub(super) launch: LaunchConfig,
    pub(super) bytes: u64,
    pub(super) stream: u64,
    /// The beginning and the end on the host.
    pub(super) host: (u64, u64),
    pub(super) more: More,
}

/// The part of a call's record that depends on its kind.
#[derive(Debug)]
pub(super) enum More {
    Nothing,
    /// The bytes that are allocated after the call, minus those when recording began.
    InUse(i64),
    Unread(Timing),
    Times(Times),
}

const _: () = assert!(size_of::<Entry>() <= 128);

impl Entry {
    /// Returns the call's times, if it has device times.
    pub(super) fn call(&self) -> Option<Call<'_>> {
        match (&self.more, self.device) {
            (More::Times(times), Some(device)) => {
                Some(Call { device, stream: self.stream, host: self.host, times })
            }
            _ => None,
        }
    }

    fn take_timing(&mut self) -> Option<Timing> {
        match mem::replace(&mut self.more, More::Nothing) {
            More::Unread(timing) => Some(timing),
            other => {
                self.more = other;
                None
            }
        }
    }
}

/// The memory of one device.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) in_use: i64,
    pub(super) peak: i64,
    /// The bytes and the line of each live allocation.
    pub(super) live: FxHashMap<u64, (u64, u32)>,
}

/// The clocks, events and memory of one device.
#[derive(Debug)]
pub(super) struct OfDevice {
    pub(super) id: DeviceId,
    pub(super) clocks: Clocks,
    /// Events for reuse.
    pub(super) spare: Vec<Arc<dyn Event>>,
    pub(super) memory: Memory,
}

/// Everything that is recorded.
#[derive(Debug)]
pub(super) struct State {
    pub(super) sessions: usize,
    /// The number of the first entry that is kept.
    first: u64,
    pub(super) entries: VecDeque<Entry>,
    /// The number of the first entry whose events may be unread.
    unread: u64,
    /// The number of the entry at which finished events are read next.
    due: u64,
    numbers: FxHashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// The addresses and the numbers of names that were used lately.
    names: [(usize, u32); NAMES],
    pub(super) devices: Vec<OfDevice>,
    /// Events of devices that were reset. Dropping them may call the driver, so they are kept until the session ends.
    forgotten: Vec<Arc<dyn Event>>,
}

impl State {
    pub(super) fn new() -> State {
        let empty: Arc<str> = "".into();
        State {
            sessions: 0,
            first: 0,
            entries: VecDeque::new(),
            unread: 0,
            due: UNREAD,
            numbers: [(empty.clone(), 0)].into_iter().collect(),
            texts: vec![empty],
            names: [(0, 0); NAMES],
            devices: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// Begins a session; returns the number of its first entry.
    pub(super) fn begin(&mut self) -> u64 {
        self.sessions += 1;
        self.devices.iter_mut().for_each(|device| device.clocks.begin());
        self.next()
    }

    /// Ends a session. After the last one, returns the events and entries; the caller drops them without the lock.
    pub(super) fn end(&mut self) -> impl Sized + use<> {
        self.sessions -= 1;
        (self.sessions == 0).then(|| {
            self.first = self.next();
            self.unread = self.first;
            self.due = self.first + UNREAD;
            let events = (mem::take(&mut self.devices), mem::take(&mut self.forgotten));
            (mem::take(&mut self.entries), events)
        })
    }

    /// Returns the number of the next entry.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn text_number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let (shared, number): (Arc<str>, _) = (text.into(), self.texts.len() as u32);
        self.texts.push(shared.clone());
        self.numbers.insert(shared, number);
        number
    }

    /// Returns the number of a name. The name is usually at the same address as last time.
    fn name_number(&mut self, name: &str) -> u32 {
        let address = name.as_ptr().addr();
        let place = (address ^ address >> 6) % NAMES;
        let (known, number) = self.names[place];
        if known == address && *self.texts[number as usize] == *name {
            return number;
        }
        let number = self.text_number(name);
        self.names[place] = (address, number);
        number
    }

    pub(super) fn text(&self, number: u32) -> Arc<str> {
        self.texts.get(number as usize).unwrap_or(&self.texts[0]).clone()
    }

    /// Returns the position of a device.
    fn position(&mut self, id: DeviceId) -> usize {
        let known = self.devices.iter().position(|it| it.id == id);
        known.unwrap_or_else(|| {
            let (clocks, memory) = Default::default();
            self.devices.push(OfDevice { id, clocks, spare: Vec::new(), memory });
            self.devices.len() - 1
        })
    }

    pub(super) fn device(&mut self, id: DeviceId) -> &mut OfDevice {
        let position = self.position(id);
        &mut self.devices[position]
    }

    /// Returns true if events of many calls are unread.
    pub(super) fn has_many_unread(&self) -> bool {
        self.next() - self.unread >= 4 * BATCH as u64
    }

    /// Adds a call; returns true if finished events are to be read.
    pub(super) fn push(
        &mut self,
        work: Work<'_>,
        host: (u64, u64),
        (device, stream): (Option<DeviceId>, u64),
        address: Option<u64>,
        timing: Option<Timing>,
    ) -> bool {
        if self.sessions == 0 {
            return false;
        }
        let (name, (line, thread)) = (self.name_number(work.name), here());
        let device = device.map(|device| self.position(device));
        let more = match (timing, device, address) {
            (Some(timing), ..) => More::Unread(timing),
            (None, Some(device), Some(address)) => {
                let made = (work.bytes, line);
                More::InUse(self.devices[device].memory.note(work.kind, address, made))
            }
            _ => More::Nothing,
        };
        if self.entries.len() == LIMIT
            && let Some(mut gone) = self.entries.pop_front()
        {
            self.first += 1;
            self.unread = self.unread.max(self.first);
            gone.take_timing().into_iter().for_each(|timing| self.keep(timing));
        }
        self.entries.push_back(Entry {
            kind: work.kind,
            dtype: work.dtype,
            name,
            line,
            thread,
            device: device.map(|it| it as u16),
            launch: work.launch,
            bytes: work.bytes,
            stream,
            host,
            more,
        });
        self.next() >= self.due
    }

    /// Returns the numbers and events of the next unread entries from `next` to `last`, and moves `next` past them.
    pub(super) fn take_unread(&mut self, next: &mut u64, last: u64) -> Vec<(u64, Timing)> {
        let mut taken = Vec::new();
        *next = (*next).max(self.first);
        while *next < last && taken.len() < BATCH {
            let timing = self.entry(*next).and_then(Entry::take_timing);
            taken.extend(timing.map(|timing| (*next, timing)));
            *next += 1;
        }
        taken
    }

    /// Returns the oldest unread entries, except the newest `keep`.
    pub(super) fn take_oldest(&mut self, keep: u64) -> Vec<(u64, Timing)> {
        let (mut next, last) = (self.unread, self.next().saturating_sub(keep));
        let taken = self.take_unread(&mut next, last);
        self.unread = next;
        self.due = next + UNREAD;
        taken
    }

    /// Returns to entries their events, because these are not finished.
    pub(super) fn put_back(&mut self, events: impl Iterator<Item = (u64, Timing)>) {
        for (number, timing) in events {
            match self.entry(number) {
                Some(entry) => entry.more = More::Unread(timing),
                None => self.keep(timing),
            }
            self.unread = self.unread.min(number);
            self.due = self.next() + BATCH as u64;
        }
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let position = number.checked_sub(self.first)?;
        self.entries.get_mut(position as usize)
    }

    /// Stores the times of entries, and keeps their events for reuse. Returns events that are to be dropped without the
    /// lock.
    pub(super) fn set_times(
        &mut self,
        read: Vec<(u64, Timing, Option<Times>)>,
    ) -> impl Sized + use<> {
        let mut spoiled = Vec::new();
        for (number, timing, times) in read {
            if let (Some(entry), Some(times)) = (self.entry(number), times) {
                entry.more = More::Times(times);
            }
            if self.sessions > 0 && times.is_some() {
                self.keep(timing);
                continue;
            }
            if self.sessions > 0 {
                // The next work has a new marker, in case that the device was reset.
                self.device(timing.end.device_id()).clocks.forget();
            }
            spoiled.push(timing);
        }
        spoiled
    }

    /// Keeps the events of a call for reuse.
    pub(super) fn keep(&mut self, timing: Timing) {
        self.device(timing.end.device_id()).spare.extend(timing.into_events());
    }

    /// Counts a marker of a device as read.
    pub(super) fn pass(&mut self, id: DeviceId, marker: &Arc<Marker>) {
        let device = self.device(id);
        device.spare.extend(device.clocks.pass(marker));
    }

    /// Forgets the events of a device that was reset.
    pub(super) fn forget_device(&mut self, id: DeviceId) {
        let device = self.device(id);
        device.clocks.forget();
        let spare = mem::take(&mut device.spare);
        self.forgotten.extend(spare);
    }
}

impl Memory {
    /// Notes an allocation or a free; returns the bytes in use after it.
    fn note(&mut self, kind: Kind, address: u64, made: (u64, u32)) -> i64 {
        if kind == Kind::Allocate {
            self.in_use += made.0 as i64;
            self.peak = self.peak.max(self.in_use);
            self.live.insert(address, made);
        } else {
            self.in_use -= made.0 as i64;
            self.live.remove(&address);
        }
        self.in_use
    }
}
