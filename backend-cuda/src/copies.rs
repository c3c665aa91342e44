//! Copies of rows and slices between memory and arrays (`cuMemcpy3DAsync`).

use crate::table::OwnCalls;
use cudarc::driver::sys::{self, CUDA_MEMCPY3D, CUmemorytype};
use driver::calls::Handle;
use hal::texture::{ArrayCopy, CopySide};
use hal::{Direction, Transfer};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// One side of a copy, in the driver's terms.
struct Side {
    kind: CUmemorytype,
    origin: [usize; 3],
    host: *mut c_void,
    device: u64,
    array: sys::CUarray,
    pitch: usize,
    /// The number of rows from one slice to the next.
    height: usize,
}

impl Side {
    fn of(side: &CopySide) -> Side {
        match *side {
            CopySide::Array { array, origin, .. } => Side {
                kind: CUmemorytype::CU_MEMORYTYPE_ARRAY,
                origin,
                host: null_mut(),
                device: 0,
                array: array as sys::CUarray,
                pitch: 0,
                height: 0,
            },
            CopySide::Memory { address, pitch, slice, is_host } => Side {
                kind: match is_host {
                    true => CUmemorytype::CU_MEMORYTYPE_HOST,
                    false => CUmemorytype::CU_MEMORYTYPE_DEVICE,
                },
                origin: [0; 3],
                host: address as *mut c_void,
                device: address,
                array: null_mut(),
                pitch,
                height: slice.checked_div(pitch).unwrap_or(0),
            },
        }
    }
}

/// Queues a copy.
///
/// # Safety
/// As for [`hal::stream::StreamMemory::copy_array`].
pub(crate) unsafe fn copy(calls: &OwnCalls, copy: &ArrayCopy, stream: Handle) -> c_int {
    let (from, to) = (Side::of(&copy.source), Side::of(&copy.destination));
    let description = CUDA_MEMCPY3D {
        srcXInBytes: from.origin[0],
        srcY: from.origin[1],
        srcZ: from.origin[2],
        srcLOD: 0,
        srcMemoryType: from.kind,
        srcHost: from.host,
        srcDevice: from.device,
        srcArray: from.array,
        reserved0: null_mut(),
        srcPitch: from.pitch,
        srcHeight: from.height,
        dstXInBytes: to.origin[0],
        dstY: to.origin[1],
        dstZ: to.origin[2],
        dstLOD: 0,
        dstMemoryType: to.kind,
        dstHost: to.host,
        dstDevice: to.device,
        dstArray: to.array,
        reserved1: null_mut(),
        dstPitch: to.pitch,
        dstHeight: to.height,
        WidthInBytes: copy.width,
        Height: copy.height,
        Depth: copy.depth,
    };
    // SAFETY: the caller's promise; the driver reads the description before it returns.
    unsafe { (calls.copy_3d)(&description, stream) }
}

/// Queues a copy of rows in memory.
///
/// # Safety
/// As for [`hal::stream::StreamCore::transfer`].
pub(crate) unsafe fn rows(calls: &OwnCalls, transfer: &Transfer, stream: Handle) -> c_int {
    let (destination_height, source_height) = transfer.slice_heights();
    let side = |address, pitch, height: usize, is_host| CopySide::Memory {
        address,
        pitch,
        slice: height * pitch,
        is_host,
    };
    let &Transfer { direction, width, height, depth, wait, .. } = transfer;
    let destination = side(
        transfer.destination,
        transfer.destination_pitch,
        destination_height,
        direction == Direction::DeviceToHost,
    );
    let source = side(
        transfer.source,
        transfer.source_pitch,
        source_height,
        direction == Direction::HostToDevice,
    );
    // SAFETY: the caller's promise.
    unsafe { copy(calls, &ArrayCopy { destination, source, width, height, depth, wait }, stream) }
}
