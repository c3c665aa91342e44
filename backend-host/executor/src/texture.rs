//! What texture and surface objects stand for.

/// What a kernel gets the address of as a `cudaTextureObject_t` or `cudaSurfaceObject_t`: texels in
/// memory, and how they are read (`Texture` of `include/gpuarray_abi.h`).
///
/// Kernels read and write no byte outside of what the extents and pitches say.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// The address of the first texel.
    pub texels: u64,
    /// Texels of a row, at least 1.
    pub width: u64,
    /// Rows, at least 1.
    pub height: u64,
    /// Slices or layers, at least 1.
    pub slices: u64,
    /// Bytes from one row to the next.
    pub row_pitch: u64,
    /// Bytes from one slice to the next.
    pub slice_pitch: u64,
    /// The type of a channel, as `CUarray_format` numbers them.
    pub format: u32,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// What is read outside of the bounds along x, y and z, as `CUaddress_mode` numbers it.
    pub address: [u32; 3],
    /// 1 for interpolation between texels, 0 for the texel that coordinates are in.
    pub linear: u32,
    /// 1 if coordinates run from 0 to 1.
    pub normalized: u32,
    /// 1 if integers of 8 and 16 bits are read as fractions.
    pub fractions: u32,
}
