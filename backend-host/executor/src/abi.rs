//! The Rust side of `include/gpuarray_abi.h`.

use std::ffi::{c_char, c_void};
use std::sync::atomic::AtomicBool;

pub(crate) const VERSION: u32 = 10;

pub(crate) type Lanes = u64;
pub(crate) type Combine = unsafe extern "C" fn(records: *const *mut c_void, lanes: Lanes);

/// Kinds of memory.
pub(crate) const GLOBAL: u32 = 0;
pub(crate) const LOCAL: u32 = 1;
pub(crate) const CONSTANT: u32 = 2;

pub(crate) const TRAP: u32 = 1;
pub(crate) const ASSERT: u32 = 2;
pub(crate) const ENDING: u32 = 4;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) barrier: unsafe extern "C" fn(u32, u32, u32, u32, *const c_char, u32) -> u32,
    pub(crate) rendezvous:
        unsafe extern "C" fn(u32, Lanes, *mut c_void, Option<Combine>, *const c_char, u32) -> Lanes,
    pub(crate) grid_barrier: unsafe extern "C" fn(u32, *const c_char, u32),
    pub(crate) print: unsafe extern "C" fn(*const c_char, u64),
    pub(crate) trap: unsafe extern "C" fn(u32, u32, *const c_char, *const c_char, u32) -> !,
    pub(crate) is_cooperative: extern "C" fn() -> u32,
    pub(crate) space_of: extern "C" fn(*const c_void) -> u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

impl Index {
    /// Returns the number of indices of an extent.
    pub(crate) fn count(self) -> u32 {
        self.x * self.y * self.z
    }
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) grid: Index,
    pub(crate) block: Index,
    pub(crate) arguments: *const *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) index: Index,
    pub(crate) count: u32,
    pub(crate) is_stopped: *const AtomicBool,
}

pub(crate) type Run = unsafe extern "C" fn(*const Launch, *mut Blocks, u32);
pub(crate) type RunRegions = unsafe extern "C" fn(*const Launch, *mut Blocks) -> bool;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) bytes: u32,
    pub(crate) alignment: u32,
    pub(crate) is_pointer: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) run: Option<Run>,
    pub(crate) regions: Option<RunRegions>,
    pub(crate) address: usize,
    pub(crate) name: *const c_char,
    pub(crate) parameters: *const Parameter,
    pub(crate) parameter_count: u32,
    pub(crate) most_threads: u32,
    pub(crate) least_blocks: u32,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) version: u32,
    pub(crate) warp_size: u32,
    pub(crate) executor: *mut *const Executor,
    pub(crate) local: unsafe extern "C" fn() -> *mut u8,
    /// The start and end of shared memory, relative to the address that `local` returns.
    pub(crate) shared_bounds: *mut [i64; 2],
}

/// A variable in constant memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constant {
    pub(crate) bytes: u64,
    pub(crate) alignment: u64,
    pub(crate) address: usize,
}

/// Texels in memory and how they are read (a texture or surface object). A kernel receives the
/// address as a `cudaTextureObject_t` or `cudaSurfaceObject_t`.
///
/// Kernels access only bytes within the extents and pitches.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// The address of the first texel.
    pub texels: u64,
    /// The number of texels in a row, at least 1.
    pub width: u64,
    /// The number of rows, at least 1.
    pub height: u64,
    /// The number of slices or layers, at least 1.
    pub slices: u64,
    /// The distance between rows in bytes.
    pub row_pitch: u64,
    /// The distance between slices in bytes.
    pub slice_pitch: u64,
    /// The type of a channel, as numbered by `CUarray_format`.
    pub format: u32,
    /// The number of channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// The behaviour outside of the bounds along x, y and z, as numbered by `CUaddress_mode`.
    pub address: [u32; 3],
    /// 1 to interpolate between texels, 0 to read the nearest texel.
    pub linear: u32,
    /// 1 if coordinates run from 0 to 1.
    pub normalized: u32,
    /// 1 if 8-bit and 16-bit integers are read as fractions.
    pub fractions: u32,
}
