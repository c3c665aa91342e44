//! Copies of rows and slices between memory and arrays (`hipMemcpy3DAsync`).

use crate::bindings as sys;
use crate::table::OwnCalls;
use driver::calls::Handle;
use hal::texture::{ArrayCopy, CopySide};
use hal::{Direction, Transfer};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// One side of a copy, in the runtime's terms.
struct Side {
    array: sys::hipArray_t,
    start: sys::hipPos,
    memory: sys::hipPitchedPtr,
}

const ORIGIN: sys::hipPos = sys::hipPos { x: 0, y: 0, z: 0 };
const NOWHERE: sys::hipPitchedPtr =
    sys::hipPitchedPtr { ptr: null_mut(), pitch: 0, xsize: 0, ysize: 0 };

impl Side {
    fn of_memory(address: u64, width: usize, pitch: usize, height: usize) -> Side {
        let ptr = address as *mut c_void;
        let memory = sys::hipPitchedPtr { ptr, pitch, xsize: width, ysize: height };
        Side { array: null_mut(), start: ORIGIN, memory }
    }

    /// Describes one side of a copy of rows of `width` bytes. In arrays, positions count texels.
    fn of(side: &CopySide, width: usize) -> Side {
        match *side {
            CopySide::Array { array, format, origin: [x, y, z] } => Side {
                array: array as sys::hipArray_t,
                start: sys::hipPos { x: x / format.bytes(), y, z },
                memory: NOWHERE,
            },
            CopySide::Memory { address, pitch, slice, .. } => {
                Side::of_memory(address, width, pitch, slice.checked_div(pitch).unwrap_or(0))
            }
        }
    }
}

/// Queues a copy of an extent.
///
/// # Safety
/// As for [`hal::stream::StreamCore::transfer`].
unsafe fn queue(
    calls: &OwnCalls,
    (to, from): (Side, Side),
    (width, height, depth): (usize, usize, usize),
    direction: Direction,
    stream: Handle,
) -> c_int {
    use sys::hipMemcpyKind as Kind;
    let description = sys::hipMemcpy3DParms {
        srcArray: from.array,
        srcPos: from.start,
        srcPtr: from.memory,
        dstArray: to.array,
        dstPos: to.start,
        dstPtr: to.memory,
        extent: sys::hipExtent { width, height, depth },
        kind: match direction {
            Direction::HostToDevice => Kind::hipMemcpyHostToDevice,
            Direction::DeviceToHost => Kind::hipMemcpyDeviceToHost,
            Direction::DeviceToDevice => Kind::hipMemcpyDeviceToDevice,
        },
    };
    // SAFETY: the caller's promise; the runtime reads the description before it returns.
    unsafe { (calls.copy_3d)(&description, stream) }
}

/// Queues a copy from or to an array, whose extent counts texels.
///
/// # Safety
/// As for [`hal::stream::StreamMemory::copy_array`].
pub(crate) unsafe fn copy(calls: &OwnCalls, copy: &ArrayCopy, stream: Handle) -> c_int {
    let sides = [&copy.destination, &copy.source];
    let texel = sides.into_iter().find_map(|side| match side {
        CopySide::Array { format, .. } => Some(format.bytes()),
        CopySide::Memory { .. } => None,
    });
    let is_host = |side: &CopySide| side.host().is_some();
    let direction = match (is_host(&copy.source), is_host(&copy.destination)) {
        (true, _) => Direction::HostToDevice,
        (false, true) => Direction::DeviceToHost,
        (false, false) => Direction::DeviceToDevice,
    };
    let [to, from] = sides.map(|side| Side::of(side, copy.width));
    let extent = (copy.width / texel.unwrap_or(1), copy.height, copy.depth);
    // SAFETY: the caller's promise.
    unsafe { queue(calls, (to, from), extent, direction, stream) }
}

/// Queues a copy of rows in memory.
///
/// # Safety
/// As for [`hal::stream::StreamCore::transfer`].
pub(crate) unsafe fn rows(calls: &OwnCalls, transfer: &Transfer, stream: Handle) -> c_int {
    let (destination_height, source_height) = transfer.slice_heights();
    let &Transfer { direction, width, height, depth, .. } = transfer;
    let (to, to_pitch) = (transfer.destination, transfer.destination_pitch);
    let (from, from_pitch) = (transfer.source, transfer.source_pitch);
    let sides = (
        Side::of_memory(to, width, to_pitch, destination_height),
        Side::of_memory(from, width, from_pitch, source_height),
    );
    // SAFETY: the caller's promise.
    unsafe { queue(calls, sides, (width, height, depth), direction, stream) }
}
