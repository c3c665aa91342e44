//! Finds the allocation or variable that contains an address, if a kernel may access it.

use super::launch::{Allocation, Launch};
use super::memory::{containing, live};
use crate::abi;
use std::ops::Range;
use std::ptr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MemoryKind {
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
pub(crate) struct Memory {
    pub(crate) range: Range<usize>,
    pub(crate) kind: MemoryKind,
}

/// The memory of the thread that runs blocks.
pub(crate) struct Lookup {
    /// The shared variables, in the order of the unit's.
    pub(crate) shared: Vec<Memory>,
    /// The parameters of the launch, which the loop over threads reads.
    parameters: Range<usize>,
    /// The unit's thread-local memory of this thread.
    local: Range<usize>,
    /// The memory of the last accesses.
    recent: [Memory; 8],
    next_recent: usize,
}

impl Lookup {
    /// Creates the lookup for the calling thread, whose thread-local memory of the unit is at `local`.
    pub(crate) fn new(launch: &Launch<'_>, shape: &abi::Launch, local: usize) -> Lookup {
        let parameters = ptr::from_ref(shape) as usize;
        let shared = launch.unit.shared_variables().map(|it| {
            let start = local + it.range.start;
            let bytes = match it.is_dynamic {
                true => it.range.len().min(launch.checking.shared_bytes as usize),
                false => it.range.len(),
            };
            Memory { range: start..start + bytes, kind: MemoryKind::Shared }
        });
        Lookup {
            shared: shared.collect(),
            parameters: parameters..parameters + size_of::<abi::Launch>(),
            local: local..local + launch.unit.local_bytes,
            recent: Default::default(),
            next_recent: 0,
        }
    }

    /// Clears the cache of recent lookups after memory was freed.
    pub(crate) fn forget(&mut self) {
        self.recent = Default::default();
    }

    /// Returns the memory that contains an address, if a kernel may access it. `of_worker` finds the memory of the
    /// thread's worker.
    pub(crate) fn memory(
        &mut self,
        launch: &Launch<'_>,
        address: usize,
        of_worker: impl Fn(usize) -> Option<Range<usize>>,
    ) -> Option<Memory> {
        if let Some(known) = self.recent.iter().find(|it| it.range.contains(&address)) {
            return Some(known.clone());
        }
        let memory = match of_worker(address) {
            Some(range) => Memory { range, kind: MemoryKind::Own },
            None => self.look_up(launch, address)?,
        };
        self.recent[self.next_recent] = memory.clone();
        self.next_recent = (self.next_recent + 1) % self.recent.len();
        Some(memory)
    }

    fn look_up(&self, launch: &Launch<'_>, address: usize) -> Option<Memory> {
        let Launch { unit, own, checking, .. } = launch;
        if self.local.contains(&address) {
            return self.local_memory(launch, address);
        }
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
        if let Some(range) = checking.memory.live(address).or_else(|| live(address)) {
            return Some(Memory { range, kind: MemoryKind::Global });
        }
        let mut own = own.iter().chain([&self.parameters]);
        let range = own.find(|range| range.contains(&address))?.clone();
        Some(Memory { range, kind: MemoryKind::Own })
    }

    /// Returns shared memory, or a variable of the executor.
    fn local_memory(&self, launch: &Launch<'_>, address: usize) -> Option<Memory> {
        let shared = self.shared.iter().find(|memory| memory.range.contains(&address));
        shared.cloned().or_else(|| {
            let offset = address - self.local.start;
            let mut own = launch.unit.locals.iter().filter(|it| it.shared_name.is_empty());
            let found = own.find(|it| it.range.contains(&offset))?;
            let range = self.local.start + found.range.start..self.local.start + found.range.end;
            Some(Memory { range, kind: MemoryKind::Own })
        })
    }

    /// Returns the range and name of the shared variable that contains an address or precedes it, or of the
    /// first one.
    fn shared_near(&self, launch: &Launch<'_>, address: usize) -> Option<(Range<usize>, String)> {
        if !self.local.contains(&address) {
            return None;
        }
        let start = |(_, memory): &(_, &Memory)| memory.range.start;
        let shared = launch.unit.shared_variables().zip(&self.shared);
        let behind = shared.clone().filter(|it| start(it) <= address).max_by_key(start);
        let (local, memory) = behind.or_else(|| shared.min_by_key(start))?;
        Some((memory.range.clone(), local.shared_name.clone()))
    }

    /// Describes an address relative to the nearest allocation.
    pub(crate) fn describe(&self, launch: &Launch<'_>, address: usize) -> Option<Nearest> {
        let of_unit = || {
            let (range, name) = launch.unit.variable(address)?.clone();
            Some((range, format!("variable {}", plain(&name))))
        };
        let of_block = || {
            let (range, name) = self.shared_near(launch, address)?;
            Some((range, format!("shared memory {}", plain(&name))))
        };
        if let Some((range, what)) = of_unit().or_else(of_block) {
            return Some(Nearest { is_freed: false, text: position(address, &range, &what) });
        }
        let nearest = containing(address).or_else(|| launch.checking.memory.nearest(address))?;
        let Allocation { range, is_live, description } = nearest;
        let distance = range.start.saturating_sub(address).max(address.saturating_sub(range.end));
        if distance > FAR {
            return None;
        }
        let is_freed = !is_live && range.contains(&address);
        Some(Nearest { is_freed, text: position(address, &range, &description) })
    }
}

/// The distance in bytes from which an address is unrelated to an allocation.
const FAR: usize = 1 << 20;

/// A description of the memory at an address.
pub(crate) struct Nearest {
    pub(crate) is_freed: bool,
    pub(crate) text: String,
}

fn position(address: usize, range: &Range<usize>, what: &str) -> String {
    let Range { start, end } = *range;
    let bytes = end - start;
    let place = match address {
        _ if address < start => format!("{} bytes before the start of", start - address),
        _ if address >= end => format!("{} bytes behind the end of", address - end),
        _ => format!("offset {} of", address - start),
    };
    format!("{place} the {bytes} bytes at {start:#x}, {what}")
}

/// Returns the last part of a mangled name.
fn plain(name: &str) -> String {
    let mut rest = name;
    let mut last = None;
    while let Some(start) = rest.find(|it: char| it.is_ascii_digit()) {
        let digits =
            rest[start..].find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len() - start);
        let Ok(length) = rest[start..start + digits].parse::<usize>() else { break };
        let begin = start + digits;
        match rest.get(begin..begin + length) {
            Some(part) if length > 0 => {
                last = Some(part);
                rest = &rest[begin + length..];
            }
            _ => rest = &rest[begin..],
        }
    }
    match last {
        Some(part) if name.starts_with("_Z") => part.to_owned(),
        _ if name == crate::shared_memory::DYNAMIC_SHARED => "of dynamic size".to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_those_of_the_program() {
        assert_eq!(plain("_ZZ6kernelE4tile"), "tile");
        assert_eq!(plain("_ZL5table"), "table");
        assert_eq!(plain("numbers2"), "numbers2");
        assert_eq!(plain("_ZZ3sumIfEvPT_E5parts_0"), "parts");
        assert_eq!(plain("gpuarray_dynamic_shared"), "of dynamic size");
    }
}
