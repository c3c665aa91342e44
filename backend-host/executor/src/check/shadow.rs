//! Shadow memory: the last accesses to each piece of memory, in which a new access finds those it races with.
//!
//! A piece is four bytes, or one byte on pages with single-byte accesses. Of plain writes only the last one
//! is kept, because it is ordered after the earlier ones. The same holds for atomic writes, since each one
//! has seen the one before. Of reads, all unordered ones are kept, with one entry for up to 32 lanes that
//! read at the same time; of other blocks, only a few entries are kept.

use super::knowledge::Event;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const PAGE: usize = 4096;
const WORD: usize = 4;
/// The number of lanes that one entry covers.
const GROUP: u32 = 32;
/// The maximum number of other blocks' entries that a page's list keeps, and of all its entries.
const MOST_FOREIGN: usize = 2;
const MOST_ENTRIES: usize = 64;

/// The kind of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Read,
    AtomicRead,
    AtomicWrite,
    Write,
}

impl Kind {
    /// Returns true if two unordered accesses of different threads are a race.
    fn conflicts(self, other: Kind) -> bool {
        let is_plain = |kind| matches!(kind, Kind::Read | Kind::Write);
        let writes = |kind| matches!(kind, Kind::AtomicWrite | Kind::Write);
        (is_plain(self) || is_plain(other)) && (writes(self) || writes(other))
    }
}

/// A new access of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) event: Event,
    pub(crate) kind: Kind,
    pub(crate) place: u32,
    /// True for a write whose value the thread derived from the value that it compares with.
    pub(crate) compares: bool,
}

/// An earlier access that races with a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) event: Event,
    pub(crate) kind: Kind,
    pub(crate) place: u32,
}

/// Accesses of the lanes of one group at the same time. Without lanes, the entry is unused.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    block: u32,
    time: u32,
    lanes: u32,
    place: u32,
    group: u16,
    kind: Kind,
}

impl Entry {
    fn of(new: &New) -> Entry {
        let Event { block, thread, time } = new.event;
        Entry {
            block,
            time,
            lanes: 1 << (thread % GROUP),
            place: new.place,
            group: (thread / GROUP) as u16,
            kind: new.kind,
        }
    }

    fn events(self) -> impl Iterator<Item = Event> {
        let lanes = (0..GROUP).filter(move |lane| self.lanes >> lane & 1 != 0);
        lanes.map(move |lane| Event {
            block: self.block,
            thread: u32::from(self.group) * GROUP + lane,
            time: self.time,
        })
    }

    /// Removes the accesses that an atomic write has seen: earlier atomic writes, which the variable itself
    /// orders, and atomic reads of its own thread, from which the value may be derived. A write that compares
    /// has also seen the plain reads.
    fn is_seen_by(&mut self, new: &New) {
        let fresh = Entry::of(new);
        match self.kind {
            Kind::AtomicWrite => self.lanes = 0,
            Kind::AtomicRead | Kind::Read
                if (self.kind == Kind::AtomicRead || new.compares)
                    && (self.block, self.group) == (fresh.block, fresh.group) =>
            {
                self.lanes &= !fresh.lanes;
            }
            _ => {}
        }
    }

    /// Returns the first access of the entry that is not ordered before the new one.
    fn unordered(self, is_before: &impl Fn(Event) -> bool) -> Option<Earlier> {
        let event = self.events().find(|event| !is_before(*event))?;
        Some(Earlier { event, kind: self.kind, place: self.place })
    }
}

/// A piece of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Entry,
    /// The first entry that is not a plain write. The page's list holds the others.
    other: Entry,
    has_more: bool,
}

#[derive(Debug)]
struct Page {
    /// The number of bytes in a piece.
    piece: usize,
    cells: Vec<Cell>,
    more: HashMap<u32, Vec<Entry>, Multiply>,
}

impl Page {
    fn new() -> Page {
        Page { piece: WORD, cells: vec![Cell::default(); PAGE / WORD], more: HashMap::default() }
    }

    /// Splits the pieces into single bytes, because one byte is accessed alone.
    fn split(&mut self) {
        let copies = |cell: &Cell| [*cell; WORD];
        self.cells = self.cells.iter().flat_map(copies).collect();
        let more = std::mem::take(&mut self.more).into_iter();
        let split = |(index, list): (u32, Vec<Entry>)| {
            (0..WORD as u32).map(move |byte| (index * WORD as u32 + byte, list.clone()))
        };
        self.more = more.flat_map(split).collect();
        self.piece = 1;
    }

    /// Returns an earlier access to a piece that races with a new one.
    fn race(&self, index: usize, new: &New, is_before: &impl Fn(Event) -> bool) -> Option<Earlier> {
        let cell = &self.cells[index];
        let more = if cell.has_more { self.more.get(&(index as u32)) } else { None };
        let all = [&cell.write, &cell.other].into_iter().chain(more.into_iter().flatten());
        all.filter(|entry| entry.lanes != 0 && new.kind.conflicts(entry.kind))
            .find_map(|entry| entry.unordered(is_before))
    }

    /// Records an access to a piece.
    fn note(&mut self, index: usize, new: &New, is_before: &impl Fn(Event) -> bool) {
        let cell = &mut self.cells[index];
        if new.kind == Kind::Write {
            if cell.has_more {
                self.more.remove(&(index as u32));
            }
            *cell = Cell { write: Entry::of(new), ..Cell::default() };
            return;
        }
        if cell.other.lanes == 0 {
            cell.other = Entry::of(new);
            return;
        }
        if new.kind == Kind::AtomicWrite {
            cell.other.is_seen_by(new);
            if cell.has_more {
                let more = self.more.entry(index as u32).or_default();
                more.iter_mut().for_each(|entry| entry.is_seen_by(new));
                more.retain(|entry| entry.lanes != 0);
            }
            if cell.other.lanes == 0 {
                cell.other = Entry::of(new);
                return;
            }
        }
        if merge(&mut cell.other, new, is_before) {
            return;
        }
        cell.has_more = true;
        let more = self.more.entry(index as u32).or_default();
        if more.iter_mut().any(|entry| merge(entry, new, is_before)) {
            return;
        }
        let mut foreign = 0;
        more.retain(|entry| {
            foreign += usize::from(entry.block != new.event.block);
            entry.block == new.event.block || foreign <= MOST_FOREIGN
        });
        if more.len() < MOST_ENTRIES {
            more.push(Entry::of(new));
        }
    }
}

/// Records an access in an entry of the same kind. The entry must have the same time, or be ordered before
/// the access. Returns false if it does not match.
fn merge(entry: &mut Entry, new: &New, is_before: &impl Fn(Event) -> bool) -> bool {
    let fresh = Entry::of(new);
    if entry.kind != fresh.kind {
        return false;
    }
    let is_of_group = (entry.block, entry.group) == (fresh.block, fresh.group);
    if is_of_group && entry.time == fresh.time {
        entry.lanes |= fresh.lanes;
        entry.place = fresh.place;
        return true;
    }
    let is_replaced = entry.events().all(is_before);
    if is_replaced {
        *entry = fresh;
    }
    is_replaced
}

/// Hashes the numbers of pages and pieces. Nobody can choose keys to cause collisions.
type Multiply = BuildHasherDefault<Multiplied>;

#[derive(Clone, Copy, Debug, Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The hash table uses both ends of the result: one for the position, the other to distinguish keys.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

/// The accesses to some memory.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    pages: HashMap<usize, Box<Page>, Multiply>,
}

impl Shadow {
    /// Checks and records an access to `bytes` bytes.
    pub(crate) fn access(
        &mut self,
        address: usize,
        bytes: usize,
        new: &New,
        is_before: impl Fn(Event) -> bool,
    ) -> Option<Earlier> {
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let page = self.pages.entry(at / PAGE).or_insert_with(|| Box::new(Page::new()));
            let last = end.min((at / PAGE + 1) * PAGE);
            if page.piece == WORD && (at % WORD != 0 || last % WORD != 0) {
                page.split();
            }
            let pieces = at % PAGE / page.piece..(last - at / PAGE * PAGE) / page.piece;
            for index in pieces {
                if let Some(race) = page.race(index, new, &is_before) {
                    return Some(race);
                }
                page.note(index, new, &is_before);
            }
            at = last;
        }
        None
    }

    /// Forgets all accesses.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Kind, New, Shadow};

    fn new(thread: u32, time: u32, kind: Kind) -> New {
        New { event: Event { block: 1, thread, time }, kind, place: 7, compares: false }
    }

    #[test]
    fn bytes_of_a_word_are_told_apart() {
        let mut shadow = Shadow::default();
        let own = |thread: u32| move |event: Event| event.thread == thread;
        for thread in 0..8 {
            let write = new(thread, 1, Kind::Write);
            assert_eq!(shadow.access(0x1ffc + thread as usize, 1, &write, own(thread)), None);
        }
        let read = new(3, 1, Kind::Read);
        let race = shadow.access(0x1ffc, 8, &read, own(3)).expect("of the first byte");
        assert_eq!((race.event.thread, race.kind, race.place), (0, Kind::Write, 7));
        assert_eq!(shadow.access(0x1fff, 1, &read, own(3)), None);
    }

    #[test]
    fn every_reader_is_remembered() {
        let readers = |order: [u32; 3]| {
            let mut shadow = Shadow::default();
            for thread in order {
                let read = new(thread, 1, Kind::Read);
                assert_eq!(shadow.access(64, 4, &read, |event| event.thread == thread), None);
            }
            shadow
        };
        for order in [[1, 40, 70], [70, 1, 40], [40, 70, 1]] {
            for unknown in order {
                let write = new(99, 2, Kind::Write);
                let is_before = |event: Event| event.thread != unknown;
                let race = readers(order).access(64, 4, &write, is_before).expect("a race");
                assert_eq!((race.event.thread, race.kind), (unknown, Kind::Read));
            }
        }
    }

    #[test]
    fn atomic_operations_race_with_others_only() {
        let mut shadow = Shadow::default();
        let mut access = |thread, kind| shadow.access(8, 4, &new(thread, 1, kind), |_| false);
        assert_eq!(access(1, Kind::AtomicWrite), None);
        assert_eq!(access(2, Kind::AtomicWrite), None);
        assert_eq!(access(3, Kind::AtomicRead), None);
        assert_eq!(access(4, Kind::Read).map(|it| it.kind), Some(Kind::AtomicWrite));
    }
}
