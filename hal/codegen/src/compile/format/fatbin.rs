//! What nvcc packs for several devices: a header, then entries of cubins and PTX. NVIDIA does not
//! document it; the layout is the one that cuobjdump prints and that tools written against it use.

use super::{Checked, elf, number, part};

pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

const HEADER: u64 = 16;
/// Of an entry's header: what says how large the entry is.
const ENTRY: u64 = 16;

/// Checks that the entries fill the body: a driver goes from one to the next.
pub(super) fn check(bytes: &[u8]) -> Checked {
    let cut = || "is a fatbin cut short".to_owned();
    // Bytes of the header (16 bits), of what follows (64).
    let (header, body) = number(bytes, 6, 2).zip(number(bytes, 8, 8)).ok_or_else(cut)?;
    if header < HEADER {
        return Err("is a damaged fatbin: its header has no room".into());
    }
    let mut rest = part(bytes, header, body).ok_or_else(cut)?;
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let damaged = || format!("is a damaged fatbin: entry {index} does not lie inside");
        // Bytes of the entry's header (32 bits), of its code (64).
        let (header, size) = number(rest, 4, 4).zip(number(rest, 8, 8)).ok_or_else(damaged)?;
        let whole = header.checked_add(size).filter(|_| header >= ENTRY).ok_or_else(damaged)?;
        let entry = part(rest, 0, whole).ok_or_else(damaged)?;
        let code = &entry[header as usize..];
        if code.starts_with(elf::MAGIC) {
            elf::check(code).map_err(|what| format!("is a fatbin whose entry {index} {what}"))?;
        }
        rest = &rest[entry.len()..];
    }
    Ok(())
}
