//! Detects memory that has never been written: it still contains the pattern that it was filled with.
//!
//! This works without tracking the host's writes, whether they are copies, fills or operations.

use std::mem::MaybeUninit;
use std::ops::Range;

/// Eight bytes that programs are unlikely to write in a row, even four of them.
const PATTERN: [u8; 8] = [0xe5, 0xc3, 0x9b, 0x6d, 0xb7, 0xd9, 0xa3, 0xf1];

/// The number of pattern bytes around an access that rule out a coincidence.
const EVIDENCE: usize = 4;

/// Fills memory with a pattern, so that checks detect a kernel that reads it.
///
/// # Safety
/// The range can be written, and nothing else uses it.
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

/// Returns true if all bytes of an access are as [`fill_uninitialised`] left them. `memory` is the
/// surrounding range that may be read.
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
