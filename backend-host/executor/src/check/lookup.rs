//! The memory that an address lies in, as far as a kernel may access it.

use super::block::Block;
use super::heap;
use super::launch::Launch;
use crate::worker::{self, Worker};
use std::ops::Range;
use std::ptr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RegionKind {
    /// Memory that is not looked at: stacks, the launch itself.
    #[default]
    Own,
    Shared,
    Global,
    /// Constant memory, and constants of the code.
    ReadOnly,
    /// Literals and tables, which no name is known of.
    Literal,
}

/// Memory that may be accessed.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) range: Range<usize>,
    pub(super) kind: RegionKind,
}

pub(super) fn range_of<T>(value: &T) -> Range<usize> {
    let start = ptr::from_ref(value) as usize;
    start..start + size_of::<T>()
}

impl Launch<'_> {
    /// The shared memory of the thread whose thread-local memory is at `local`.
    pub(super) fn shared(&self, local: usize) -> Vec<Region> {
        let shared = self.unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let regions = shared.map(|it| {
            let start = local + it.range.start;
            let bytes = match it.is_dynamic {
                true => it.range.len().min(self.checking.shared_bytes as usize),
                false => it.range.len(),
            };
            Region { range: start..start + bytes, kind: RegionKind::Shared }
        });
        regions.collect()
    }
}

impl Block {
    /// Memory was freed: what was known of it is to be looked up again.
    pub(super) fn forget(&mut self) {
        self.recent = Default::default();
    }

    /// The memory that an address lies in, if a kernel may access it.
    pub(super) fn region(&mut self, worker: *mut Worker, address: usize) -> Option<Region> {
        if let Some(known) = self.recent.iter().find(|it| it.range.contains(&address)) {
            return Some(known.clone());
        }
        let region = self.look_up(worker, address)?;
        self.recent[self.next_recent] = region.clone();
        self.next_recent = (self.next_recent + 1) % self.recent.len();
        Some(region)
    }

    fn look_up(&self, worker: *mut Worker, address: usize) -> Option<Region> {
        let own = |range| Region { range, kind: RegionKind::Own };
        let global = |range| Region { range, kind: RegionKind::Global };
        if let Some(range) = worker::memory_of(worker, address) {
            return Some(own(range));
        }
        if self.local.contains(&address) {
            return self.local_region(address);
        }
        let Launch { unit, arguments, checking, .. } = self.launch();
        if let Some((variable, _)) = unit.variable(address) {
            let kind = match unit.is_read_only(address) {
                true => RegionKind::ReadOnly,
                false => RegionKind::Global,
            };
            return Some(Region { range: variable.clone(), kind });
        }
        if unit.image.contains(&address) {
            let kind = match unit.is_read_only(address) {
                true => RegionKind::Literal,
                false => RegionKind::Own,
            };
            return Some(Region { range: address..address + 1, kind });
        }
        let live = checking.memory.live(address).or_else(|| heap::live(address));
        live.map(global).or_else(|| {
            let executor = range_of(&super::CHECKED_EXECUTOR);
            let mut own_ranges = arguments.iter().chain([&self.grid, &executor]);
            own_ranges.find(|range| range.contains(&address)).cloned().map(own)
        })
    }

    /// Shared memory, or a variable of the executor's own.
    fn local_region(&self, address: usize) -> Option<Region> {
        let shared = self.shared.iter().find(|region| region.range.contains(&address));
        shared.cloned().or_else(|| {
            let offset = address - self.local.start;
            let mut own = self.launch().unit.locals.iter().filter(|it| it.shared_name.is_empty());
            let found = own.find(|it| it.range.contains(&offset))?;
            let range = self.local.start + found.range.start..self.local.start + found.range.end;
            Some(Region { range, kind: RegionKind::Own })
        })
    }

    /// The shared variable that an address lies in, or behind, or in front of the first of them, and its name.
    pub(super) fn shared_near(&self, address: usize) -> Option<(Range<usize>, String)> {
        if !self.local.contains(&address) {
            return None;
        }
        let locals = self.launch().unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let start = |(_, region): &(_, &Region)| region.range.start;
        let shared = locals.zip(&self.shared);
        let behind = shared.clone().filter(|it| start(it) <= address).max_by_key(start);
        let (local, region) = behind.or_else(|| shared.min_by_key(start))?;
        Some((region.range.clone(), local.shared_name.clone()))
    }
}
