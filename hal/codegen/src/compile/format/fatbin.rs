//! Fat binaries, in which nvcc packs code for several devices: a header, then entries of cubins and
//! PTX. NVIDIA does not document the format; this is the layout that cuobjdump prints and that
//! other tools use.

use super::{Checked, elf, number, part};

pub(super) const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

const HEADER: u64 = 16;
/// The first bytes of an entry's header, which contain the entry's size.
const ENTRY: u64 = 16;

/// Checks that the entries fill the body, because a driver walks from one entry to the next.
pub(super) fn check(bytes: &[u8]) -> Checked {
    let cut = || "is a fatbin cut short".to_owned();
    // The sizes of the header (16 bits) and of the rest (64 bits).
    let (header, body) = number(bytes, 6, 2).zip(number(bytes, 8, 8)).ok_or_else(cut)?;
    if header < HEADER {
        return Err("is a damaged fatbin: its header has no room".into());
    }
    let mut rest = part(bytes, header, body).ok_or_else(cut)?;
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let damaged = || format!("is a damaged fatbin: entry {index} is not inside the file");
        // The sizes of the entry's header (32 bits) and of its code (64 bits).
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
