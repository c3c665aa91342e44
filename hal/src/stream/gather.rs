//! Copies of many ranges of host memory to one of the device, by plain copies.

use super::{Direction, HostRange, Stream, Transfer};
use crate::error::Result;

/// Ranges with fewer bytes are collected in host memory first: a call of the driver takes longer than a copy
/// of them.
const SMALL: usize = 64 << 10;
/// Bytes that are collected at most.
const COLLECTED: usize = 1 << 20;

/// Does what [`Stream::gather`] documents by [`Stream::transfer`], each large range by itself and small ones
/// together.
///
/// # Errors
/// As for [`Stream::gather`].
///
/// # Safety
/// As for [`Stream::gather`].
pub unsafe fn gather_by_transfers<S: Stream + ?Sized>(
    stream: &S,
    destination: u64,
    ranges: &[HostRange],
) -> Result<()> {
    let copy = |to: u64, from: u64, bytes: usize| {
        if bytes == 0 {
            return Ok(());
        }
        let transfer = Transfer::linear(Direction::HostToDevice, to, from, bytes, true);
        // SAFETY: the caller's promise; collected bytes stay until the call has waited for them.
        unsafe { stream.transfer(&transfer) }
    };
    let mut collected = Vec::new();
    let mut end = destination;
    for range in ranges {
        let begin = end - collected.len() as u64;
        let is_small = range.bytes < SMALL;
        if !is_small || collected.len() + range.bytes > COLLECTED {
            copy(begin, collected.as_ptr() as u64, collected.len())?;
            collected.clear();
        }
        if is_small && range.bytes > 0 {
            // SAFETY: the caller's promise.
            let bytes =
                unsafe { std::slice::from_raw_parts(range.address as *const u8, range.bytes) };
            collected.extend_from_slice(bytes);
        } else {
            copy(end, range.address, range.bytes)?;
        }
        end += range.bytes as u64;
    }
    copy(end - collected.len() as u64, collected.as_ptr() as u64, collected.len())
}
