//! The descriptions behind texture and surface objects.

/// Texels in memory and how they are read (`Texture` of `include/gpuarray_abi.h`). A kernel receives the
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
