//! Descriptions of arrays for textures, texture objects and surface objects, for both vendors' drivers.

use hal::texture::{ArrayShape, Sampling, TextureResource};
use std::ffi::{c_int, c_uint};

/// The shape of an array: `CUDA_ARRAY3D_DESCRIPTOR` and `HIP_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ArrayDescription {
    /// The number of texels per row.
    pub width: usize,
    /// The number of rows; 0 for an array with one axis.
    pub height: usize,
    /// The number of slices or layers; 0 for an array without them.
    pub depth: usize,
    /// The type of a channel.
    pub format: c_uint,
    /// The number of channels per texel.
    pub channels: c_uint,
    /// The uses of the array.
    pub flags: c_uint,
}

/// The resource of an object: the common first fields of `CUDA_RESOURCE_DESC` and
/// `HIP_RESOURCE_DESC`, which contain unions. For an array, also the first fields of
/// `hipResourceDesc`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ResourceDescription {
    /// 0: an array, 2: linear memory, 3: pitched memory.
    pub kind: c_uint,
    /// The array's handle, or the memory's address.
    pub object: u64,
    /// The type of a channel, for memory.
    pub format: c_uint,
    /// The number of channels per texel, for memory.
    pub channels: c_uint,
    /// For linear memory, its bytes; for pitched memory, the texels per row, the rows, and the row
    /// pitch in bytes.
    pub extent: [usize; 3],
    /// Zeros.
    pub reserved: [u64; 11],
    /// 0.
    pub flags: c_uint,
}

/// The sampling of a texture: `CUDA_TEXTURE_DESC` and `HIP_TEXTURE_DESC`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TextureDescription {
    /// The modes for reads out of bounds, along x, y and z.
    pub address: [c_uint; 3],
    /// 1 for interpolation.
    pub filter: c_uint,
    /// The flags of [`Sampling::flags`].
    pub flags: c_uint,
    /// 0.
    pub anisotropy: c_uint,
    /// Zeros: mipmaps are not supported.
    pub mipmaps: [u32; 4],
    /// The value of reads out of bounds with `AddressMode::Border`.
    pub border: [f32; 4],
    /// Zeros.
    pub reserved: [c_int; 12],
}

/// Another view of an array's texels: `CUDA_RESOURCE_VIEW_DESC` and `HIP_RESOURCE_VIEW_DESC`. It is
/// not used: a null pointer is passed.
#[derive(Debug)]
#[repr(C)]
pub struct ViewDescription([u64; 14]);

impl ArrayDescription {
    pub(super) fn of(shape: &ArrayShape) -> ArrayDescription {
        ArrayDescription {
            width: shape.width,
            height: shape.height,
            depth: shape.depth,
            format: shape.format.channel.number(),
            channels: shape.format.channels(),
            flags: shape.flags(),
        }
    }
}

impl ResourceDescription {
    pub(super) fn of_array(array: u64) -> ResourceDescription {
        ResourceDescription { object: array, ..ResourceDescription::default() }
    }

    pub(super) fn of(resource: &TextureResource) -> ResourceDescription {
        let format = resource.format();
        let of_memory = |kind, object, extent| ResourceDescription {
            kind,
            object,
            format: format.channel.number(),
            channels: format.channels(),
            extent,
            ..ResourceDescription::default()
        };
        match *resource {
            TextureResource::Array { array, .. } => ResourceDescription::of_array(array),
            TextureResource::Linear { address, bytes, .. } => of_memory(2, address, [bytes, 0, 0]),
            TextureResource::Pitched { address, width, height, pitch, .. } => {
                of_memory(3, address, [width, height, pitch])
            }
        }
    }
}

impl TextureDescription {
    pub(super) fn of(sampling: &Sampling) -> TextureDescription {
        TextureDescription {
            address: sampling.address.map(|mode| mode as c_uint),
            filter: sampling.linear.into(),
            flags: sampling.flags(),
            ..TextureDescription::default()
        }
    }
}
