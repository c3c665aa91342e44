//! Describes accesses and memory in error messages.

use super::block::{Access, Block, READ};
use super::shadow::{Earlier, Kind};
use super::{Allocation, heap};
use std::ops::Range;

/// The distance in bytes from which an address is unrelated to an allocation.
const FAR: usize = 1 << 20;

/// A description of the memory at an address.
pub(super) struct Nearest {
    pub(super) is_freed: bool,
    pub(super) text: String,
}

/// Describes an access, as in `thread (3, 0, 0) reads 4 bytes of freed memory in kernel.cu:7`. `what` is ` of
/// freed memory` or empty.
pub(super) fn describe_access(block: &Block, access: &Access, what: &str) -> String {
    let verb = if access.is(READ) { "reads" } else { "writes" };
    let Access { bytes, thread, place, .. } = *access;
    let line = block.launch().unit.lines.describe(place);
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{} {verb} {bytes} {unit}{what} in {line}", block.name_of(thread))
}

/// Describes an atomic operation at a misaligned address.
pub(super) fn describe_misaligned(block: &Block, access: &Access) -> String {
    let Access { address, bytes, thread, place, .. } = *access;
    let line = block.launch().unit.lines.describe(place);
    format!(
        "{} accesses {bytes} bytes at {address:#x} by an atomic operation, in {line}: the address \
         is not a multiple of {bytes}",
        block.name_of(thread)
    )
}

/// Describes an earlier access, as in `a write by thread (3, 0, 0) of block (1, 0, 0) in kernel.cu:7`.
pub(super) fn describe_earlier(block: &Block, earlier: &Earlier) -> String {
    let what = match earlier.kind {
        Kind::Read => "a read",
        Kind::Write => "a write",
        Kind::AtomicRead | Kind::AtomicWrite => "an atomic access",
    };
    let thread = block.name_of(earlier.event.thread);
    let of_block = block.name_of_block(earlier.event.block);
    let line = block.launch().unit.lines.describe(earlier.place);
    format!("{what} by {thread}{of_block} in {line}")
}

/// Describes an address relative to the nearest allocation.
pub(super) fn describe_address(block: &Block, address: usize) -> Option<Nearest> {
    let of_unit = || {
        let (range, name) = block.launch().unit.variable(address)?.clone();
        Some((range, format!("variable {}", plain(&name))))
    };
    let of_block = || {
        let (range, name) = block.shared_near(address)?;
        Some((range, format!("shared memory {}", plain(&name))))
    };
    if let Some((range, what)) = of_unit().or_else(of_block) {
        return Some(Nearest { is_freed: false, text: position(address, &range, &what) });
    }
    let nearest = heap::containing(address);
    let Allocation { range, is_live, description } =
        nearest.or_else(|| block.launch().checking.memory.nearest(address))?;
    let distance = range.start.saturating_sub(address).max(address.saturating_sub(range.end));
    if distance > FAR {
        return None;
    }
    let is_freed = !is_live && range.contains(&address);
    Some(Nearest { is_freed, text: position(address, &range, &description) })
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
