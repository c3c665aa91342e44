//! Finds the allocation or variable that contains an address, if a kernel may access it.

use super::block::Block;
use super::heap;
use super::launch::Launch;
use crate::worker::{self, Worker};
use std::ops::Range;
use std::ptr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// Memory that is not checked: stacks, and the parameters of the launch.
    #[default]
    Own,
    Shared,
    Global,
    /// Constant memory, and constants of the code.
    ReadOnly,
    /// Literals and tables without a known name.
    Literal,
}

/// Memory that may be accessed.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    pub(super) range: Range<usize>,
    pub(super) kind: MemoryKind,
}

pub(super) fn range_of<T>(value: &T) -> Range<usize> {
    let start = ptr::from_ref(value) as usize;
    start..start + size_of::<T>()
}

impl Launch<'_> {
    /// Returns the shared memory of the thread whose thread-local memory is at `local`.
    pub(super) fn shared(&self, local: usize) -> Vec<Memory> {
        let shared = self.unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let memories = shared.map(|it| {
            let start = local + it.range.start;
            let bytes = match it.is_dynamic {
                true => it.range.len().min(self.checking.shared_bytes as usize),
                false => it.range.len(),
            };
            Memory { range: start..start + bytes, kind: MemoryKind::Shared }
        });
        memories.collect()
    }
}

impl Block {
    /// Clears the cache of recent lookups after memory was freed.
    pub(super) fn forget(&mut self) {
        self.recent = Default::default();
    }

    /// Returns the memory that contains an address, if a kernel may access it.
    pub(super) fn memory(&mut self, worker: *mut Worker, address: usize) -> Option<Memory> {
        if let Some(known) = self.recent.iter().find(|it| it.range.contains(&address)) {
            return Some(known.clone());
        }
        let memory = self.look_up(worker, address)?;
        self.recent[self.next_recent] = memory.clone();
        self.next_recent = (self.next_recent + 1) % self.recent.len();
        Some(memory)
    }

    fn look_up(&self, worker: *mut Worker, address: usize) -> Option<Memory> {
        let own = |range| Memory { range, kind: MemoryKind::Own };
        let global = |range| Memory { range, kind: MemoryKind::Global };
        if let Some(range) = worker::memory_of(worker, address) {
            return Some(own(range));
        }
        if self.local.contains(&address) {
            return self.local_memory(address);
        }
        let Launch { unit, arguments, checking, .. } = self.launch();
        if let Some((variable, _)) = unit.variable(address) {
            let kind = match unit.is_read_only(address) {
                true => MemoryKind::ReadOnly,
                false => MemoryKind::Global,
            };
            return Some(Memory { range: variable.clone(), kind });
        }
        if unit.image.contains(&address) {
            let kind = match unit.is_read_only(address) {
                true => MemoryKind::Literal,
                false => MemoryKind::Own,
            };
            return Some(Memory { range: address..address + 1, kind });
        }
        let live = checking.memory.live(address).or_else(|| heap::live(address));
        live.map(global).or_else(|| {
            let executor = range_of(&super::CHECKED_EXECUTOR);
            let mut own_ranges = arguments.iter().chain([&self.grid, &executor]);
            own_ranges.find(|range| range.contains(&address)).cloned().map(own)
        })
    }

    /// Returns shared memory, or a variable of the executor.
    fn local_memory(&self, address: usize) -> Option<Memory> {
        let shared = self.shared.iter().find(|memory| memory.range.contains(&address));
        shared.cloned().or_else(|| {
            let offset = address - self.local.start;
            let mut own = self.launch().unit.locals.iter().filter(|it| it.shared_name.is_empty());
            let found = own.find(|it| it.range.contains(&offset))?;
            let range = self.local.start + found.range.start..self.local.start + found.range.end;
            Some(Memory { range, kind: MemoryKind::Own })
        })
    }

    /// Returns the range and name of the shared variable that contains an address or precedes it, or of the
    /// first one.
    pub(super) fn shared_near(&self, address: usize) -> Option<(Range<usize>, String)> {
        if !self.local.contains(&address) {
            return None;
        }
        let locals = self.launch().unit.locals.iter().filter(|it| !it.shared_name.is_empty());
        let start = |(_, memory): &(_, &Memory)| memory.range.start;
        let shared = locals.zip(&self.shared);
        let behind = shared.clone().filter(|it| start(it) <= address).max_by_key(start);
        let (local, memory) = behind.or_else(|| shared.min_by_key(start))?;
        Some((memory.range.clone(), local.shared_name.clone()))
    }
}
