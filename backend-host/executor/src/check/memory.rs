//! Memory that nobody has written: its bytes are still those that it was filled with.
//!
//! No write of the host needs to be known for this, be it a copy, a fill, or an operation.

use std::mem::MaybeUninit;
use std::ops::Range;

/// Eight bytes that no program is likely to have in a row, nor four of them.
const PATTERN: [u8; 8] = [0xe5, 0xc3, 0x9b, 0x6d, 0xb7, 0xd9, 0xa3, 0xf1];

/// Bytes of the pattern around an access that tell it from a coincidence.
const EVIDENCE: usize = 4;

/// Fills memory so that a checked kernel that reads it is found.
///
/// # Safety
/// The range can be written, and nobody else uses it.
pub unsafe fn fill_uninitialised(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let memory = unsafe { std::slice::from_raw_parts_mut(memory.cast::<MaybeUninit<u8>>(), bytes) };
    let first = memory.as_ptr() as usize % 8;
    let mut pattern = PATTERN;
    pattern.rotate_left(first);
    for chunk in memory.chunks_mut(8) {
        for (byte, value) in chunk.iter_mut().zip(pattern) {
            byte.write(value);
        }
    }
}

/// True if all bytes of an access are as [`fill_uninitialised`] left them. `memory` are the addresses
/// around that may be read.
///
/// # Safety
/// The memory can be read.
pub(super) unsafe fn is_uninitialised(access: Range<usize>, memory: &Range<usize>) -> bool {
    // SAFETY: the caller's promise.
    let is_left = |address: usize| unsafe { *(address as *const u8) == PATTERN[address % 8] };
    if !access.clone().all(is_left) {
        return false;
    }
    let around = (access.start & !7).max(memory.start)..((access.end + 7) & !7).min(memory.end);
    around.filter(|&address| is_left(address)).take(EVIDENCE).count() == EVIDENCE
}
