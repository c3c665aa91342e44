//! Copies and fills on a driver's streams.

use super::DriverStream;
use crate::staging;
use crate::texture_calls::TextureCalls;
use hal::error::{Error, Result};
use hal::status::Status;
use hal::stream::{Direction, HostRange, StreamCore, Transfer};
use hal::texture::ArrayCopy;
use std::ffi::{c_int, c_void};

/// Queues a copy; waits if the transfer requests it or the memory requires it.
///
/// # Safety
/// As for [`Stream::transfer`](hal::stream::StreamCore::transfer).
pub(crate) unsafe fn copy(stream: &DriverStream, transfer: &Transfer) -> Result<()> {
    if transfer.width == 0 || transfer.height == 0 || transfer.depth == 0 {
        return Ok(());
    }
    if transfer.height == 1 && transfer.depth == 1 {
        // SAFETY: the caller's promise.
        return unsafe { linear(stream, transfer) };
    }
    let is_unread;
    {
        let _scope = stream.enter()?;
        let adding = stream.adding()?;
        // SAFETY: the caller's promise.
        let code = unsafe { rows(stream, transfer) };
        drop(adding);
        stream.context().check("transfer", code)?;
        let vendor = &stream.context().driver.vendor;
        // Memory in a captured copy is pinned.
        is_unread = transfer.direction == Direction::HostToDevice
            && !vendor.reads_rows_at_once()
            && !vendor.knows(transfer.source);
    }
    if transfer.wait || is_unread { stream.synchronize() } else { Ok(()) }
}

/// Queues a copy from or to an array; waits if the copy requests it or the memory requires it.
///
/// # Safety
/// As for [`Stream::copy_array`](hal::stream::StreamMemory::copy_array).
pub(crate) unsafe fn copy_array(stream: &DriverStream, copy: &ArrayCopy) -> Result<()> {
    let is_unread;
    {
        let context = stream.context();
        TextureCalls::of(context, "copy_array")?;
        let vendor = &context.driver.vendor;
        let _scope = stream.enter()?;
        let adding = stream.adding()?;
        // SAFETY: the caller's promise.
        let code = unsafe { vendor.copy_array(copy, stream.raw()) };
        drop(adding);
        context.check("copy_array", code)?;
        is_unread = copy
            .source
            .host()
            .is_some_and(|host| !vendor.reads_rows_at_once() && !vendor.knows(host));
    }
    if copy.wait || is_unread { stream.synchronize() } else { Ok(()) }
}

/// Queues a copy of one row.
///
/// # Safety
/// As for [`Stream::transfer`](hal::stream::StreamCore::transfer).
unsafe fn linear(stream: &DriverStream, transfer: &Transfer) -> Result<()> {
    let context = stream.context();
    let &Transfer { destination, source, width, wait, .. } = transfer;
    if staging::is_large(transfer) && {
        let _scope = stream.enter()?;
        // SAFETY: the caller's promise.
        unsafe { stream.device().staging.copy(stream.raw(), transfer)? }
    } {
        // The bytes have arrived, after all earlier work. Waiting for the stream again would be slow on the
        // default stream, which walks over all streams.
        return if wait { stream.take_failure() } else { Ok(()) };
    }
    let scope = stream.enter()?;
    let calls = &context.driver.calls;
    let handle = stream.raw();
    // On the legacy default stream, the synchronous call is cheaper than a queued copy and a wait.
    let at_once = wait && handle == 0;
    let (to_host, from_host) = (destination as *mut c_void, source as *const c_void);
    let adding = stream.adding()?;
    // SAFETY: the caller's promise.
    let code = unsafe {
        match transfer.direction {
            Direction::HostToDevice if at_once => {
                (calls.copy_to_device)(destination, from_host, width)
            }
            Direction::DeviceToHost if at_once => (calls.copy_to_host)(to_host, source, width),
            Direction::HostToDevice => {
                (calls.copy_to_device_async)(destination, from_host, width, handle)
            }
            Direction::DeviceToHost => (calls.copy_to_host_async)(to_host, source, width, handle),
            Direction::DeviceToDevice => {
                (calls.copy_on_device_async)(destination, source, width, handle)
            }
        }
    };
    drop(adding);
    context.check("transfer", code)?;
    drop(scope);
    if wait && (!at_once || transfer.direction == Direction::DeviceToDevice) {
        return stream.synchronize();
    }
    if wait { stream.take_failure() } else { Ok(()) }
}

/// Copies ranges of host memory through the device's chunks, if that is faster. Returns true after the bytes
/// have arrived; false if nothing was copied.
///
/// # Safety
/// As for [`Stream::gather`](hal::stream::StreamMemory::gather).
pub(crate) unsafe fn gather(
    stream: &DriverStream,
    destination: u64,
    ranges: &[HostRange],
) -> Result<bool> {
    if ranges.len() < 2 || !staging::is_large_gather(ranges.iter().map(|range| range.bytes).sum()) {
        return Ok(false);
    }
    let is_copied = {
        let _scope = stream.enter()?;
        // SAFETY: the caller's promise.
        unsafe { stream.device().staging.gather(stream.raw(), destination, ranges)? }
    };
    if is_copied {
        stream.take_failure()?;
    }
    Ok(is_copied)
}

/// Queues several rows in as few driver calls as possible: the driver's description requires slice strides
/// that are multiples of the row pitch.
///
/// # Safety
/// As for [`Stream::transfer`](hal::stream::StreamCore::transfer). The context is current.
unsafe fn rows(stream: &DriverStream, transfer: &Transfer) -> c_int {
    let vendor = &stream.context().driver.vendor;
    let whole = |slice: usize, pitch: usize| pitch != 0 && slice.is_multiple_of(pitch);
    if transfer.depth == 1
        || (whole(transfer.destination_slice, transfer.destination_pitch)
            && whole(transfer.source_slice, transfer.source_pitch))
    {
        // SAFETY: the caller's promise.
        return unsafe { vendor.copy_rows(transfer, stream.raw()) };
    }
    for slice in 0..transfer.depth {
        let part = Transfer {
            destination: transfer.destination + (slice * transfer.destination_slice) as u64,
            source: transfer.source + (slice * transfer.source_slice) as u64,
            depth: 1,
            destination_slice: transfer.destination_pitch * transfer.height,
            source_slice: transfer.source_pitch * transfer.height,
            ..*transfer
        };
        // SAFETY: the caller's promise holds for every slice.
        let code = unsafe { vendor.copy_rows(&part, stream.raw()) };
        if code != Status::SUCCESS {
            return code;
        }
    }
    Status::SUCCESS
}

/// Queues a fill.
///
/// # Safety
/// As for [`Stream::fill`](hal::stream::StreamCore::fill).
pub(crate) unsafe fn fill(
    stream: &DriverStream,
    address: u64,
    value: u32,
    width: usize,
    count: usize,
) -> Result<()> {
    if ![1, 2, 4].contains(&width) {
        return Err(Error::invalid("fill", format!("width is {width}; allowed are 1, 2 and 4")));
    }
    if !address.is_multiple_of(width as u64) {
        return Err(Error::invalid(
            "fill",
            format!("address is {address:#x}; a multiple of the width {width} is needed"),
        ));
    }
    if count == 0 {
        return Ok(());
    }
    let _scope = stream.enter()?;
    let calls = &stream.context().driver.calls;
    let handle = stream.raw();
    let _adding = stream.adding()?;
    // SAFETY: the caller's promise.
    let code = unsafe {
        match width {
            1 => (calls.fill_8)(address, value as u8, count, handle),
            2 => (calls.fill_16)(address, value as u16, count, handle),
            _ => (calls.fill_32)(address, value, count, handle),
        }
    };
    stream.context().check("fill", code)
}
