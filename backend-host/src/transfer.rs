//! Copies and fills of bytes.

use crate::device::HostDevice;
use hal::{Direction, Error, HostRange, Result, Transfer};
use rayon_core::ThreadPool;
use std::sync::Arc;

/// The size from which a copy is split over threads.
const PARALLEL: usize = 4 << 20;
const PIECE: usize = 1 << 20;

/// Returns true if the host side of a copy is pageable memory: the program may change or free it as soon as
/// the call returns.
pub(crate) fn touches_pageable(transfer: &Transfer, device: &HostDevice) -> bool {
    let host = match transfer.direction {
        Direction::HostToDevice => transfer.source,
        Direction::DeviceToHost => transfer.destination,
        Direction::DeviceToDevice => return false,
    };
    !device.is_pinned(host as usize, transfer.width)
}

/// Performs a copy.
///
/// # Safety
/// The same as for [`hal::stream::StreamCore::transfer`].
pub(crate) unsafe fn copy(transfer: &Transfer, pool: &dyn Fn() -> Option<Arc<ThreadPool>>) {
    if transfer.height == 1 && transfer.depth == 1 {
        let row = HostRange { address: transfer.source, bytes: transfer.width };
        // SAFETY: the caller's promise.
        return unsafe { gather(transfer.destination, &[row], pool) };
    }
    for slice in 0..transfer.depth {
        for row in 0..transfer.height {
            let to = slice * transfer.destination_slice + row * transfer.destination_pitch;
            let from = slice * transfer.source_slice + row * transfer.source_pitch;
            // SAFETY: the caller's promise for every row.
            unsafe {
                copy_row(
                    transfer.destination + to as u64,
                    transfer.source + from as u64,
                    transfer.width,
                );
            }
        }
    }
}

/// Copies ranges into one row, one after another.
///
/// # Safety
/// The same as for [`hal::stream::StreamMemory::gather`].
pub(crate) unsafe fn gather(
    destination: u64,
    ranges: &[HostRange],
    pool: &dyn Fn() -> Option<Arc<ThreadPool>>,
) {
    let mut end = destination;
    let mut place = |range: &HostRange| {
        let to = end;
        end += range.bytes as u64;
        (to, *range)
    };
    let bytes: usize = ranges.iter().map(|range| range.bytes).sum();
    let Some(pool) = (bytes >= PARALLEL).then(pool).flatten() else {
        for (to, range) in ranges.iter().map(place) {
            // SAFETY: the caller's promise for every range.
            unsafe { copy_row(to, range.address, range.bytes) };
        }
        return;
    };
    pool.scope(|scope| {
        for (to, range) in ranges.iter().map(&mut place) {
            for start in (0..range.bytes).step_by(PIECE) {
                let length = PIECE.min(range.bytes - start);
                let (to, from) = (to + start as u64, range.address + start as u64);
                // SAFETY: the pieces are inside the ranges and do not overlap.
                scope.spawn(move |_| unsafe { copy_row(to, from, length) });
            }
        }
    });
}

/// # Safety
/// Both ranges are allocated.
unsafe fn copy_row(to: u64, from: u64, bytes: usize) {
    // SAFETY: the caller's promise; `copy` allows ranges that overlap.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
}

/// Refuses a fill that [`fill`] cannot perform.
pub(crate) fn check_fill(address: u64, width: usize) -> Result<()> {
    if !matches!(width, 1 | 2 | 4) {
        return Err(Error::invalid("fill", format!("width is {width}; allowed are 1, 2 and 4")));
    }
    if !address.is_multiple_of(width as u64) {
        return Err(Error::invalid(
            "fill",
            format!("address is {address:#x}; a multiple of the width {width} is needed"),
        ));
    }
    Ok(())
}

/// Fills `count` elements of `width` bytes.
///
/// # Safety
/// The same as for [`hal::stream::StreamCore::fill`]; [`check_fill`] has passed.
pub(crate) unsafe fn fill(address: u64, value: u32, width: usize, count: usize) {
    // SAFETY: the caller's promise; addresses are aligned for the width.
    unsafe {
        match width {
            1 => (address as *mut u8).write_bytes(value as u8, count),
            2 => std::slice::from_raw_parts_mut(address as *mut u16, count).fill(value as u16),
            _ => std::slice::from_raw_parts_mut(address as *mut u32, count).fill(value),
        }
    }
}
