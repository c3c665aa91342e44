//! The formats of texels, and the shapes of arrays.

use crate::enumeration::{enumeration, setters};
use crate::error::{Error, Result};

enumeration! {
/// The type of a channel of a texel.
///
/// The format of an image file's samples, by their bit depth:
///
/// ```
/// use gpuarray::texture::ChannelFormat;
///
/// # fn main() -> gpuarray::Result<()> {
/// let bits = 16;
/// let format = if bits == 8 { ChannelFormat::UInt8 } else { ChannelFormat::UInt16 };
/// assert_eq!(format.bytes() * 8, bits);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelFormat {
    /// Unsigned 8-bit integers.
    UInt8,
    /// Unsigned 16-bit integers.
    UInt16,
    /// Unsigned 32-bit integers.
    UInt32,
    /// Signed 8-bit integers.
    Int8,
    /// Signed 16-bit integers.
    Int16,
    /// Signed 32-bit integers.
    Int32,
    /// 16-bit floats, which kernels read as 32-bit floats.
    Half,
    /// 32-bit floats.
    Float,
}
}

impl ChannelFormat {
    /// Returns the number in `CUarray_format` and `hipArray_Format`.
    pub const fn number(self) -> u32 {
        match self {
            ChannelFormat::UInt8 => 0x01,
            ChannelFormat::UInt16 => 0x02,
            ChannelFormat::UInt32 => 0x03,
            ChannelFormat::Int8 => 0x08,
            ChannelFormat::Int16 => 0x09,
            ChannelFormat::Int32 => 0x0a,
            ChannelFormat::Half => 0x10,
            ChannelFormat::Float => 0x20,
        }
    }

    /// Returns the format with this number in `CUarray_format`.
    pub fn from_number(number: u32) -> Option<ChannelFormat> {
        ChannelFormat::ALL.into_iter().find(|format| format.number() == number)
    }

    /// Returns the bytes of a channel.
    pub const fn bytes(self) -> usize {
        match self {
            ChannelFormat::UInt8 | ChannelFormat::Int8 => 1,
            ChannelFormat::UInt16 | ChannelFormat::Int16 | ChannelFormat::Half => 2,
            ChannelFormat::UInt32 | ChannelFormat::Int32 | ChannelFormat::Float => 4,
        }
    }
}

/// The type of a texel.
///
/// Texels of four bytes, like `uchar4`; texels with three channels do not exist:
///
/// ```
/// use gpuarray::texture::{ChannelFormat, TexelFormat};
///
/// # fn main() -> gpuarray::Result<()> {
/// assert_eq!(TexelFormat::new(ChannelFormat::UInt8, 4)?.bytes(), 4);
/// assert!(TexelFormat::new(ChannelFormat::UInt8, 3).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TexelFormat {
    /// The type of each channel.
    pub channel: ChannelFormat,
    /// The number of channels: 1, 2 or 4.
    channels: u32,
}

impl TexelFormat {
    /// Returns the type of texels with 1, 2 or 4 channels.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of channels.
    pub fn new(channel: ChannelFormat, channels: u32) -> Result<TexelFormat> {
        if ![1, 2, 4].contains(&channels) {
            return Err(Error::invalid(
                "texel format",
                format!("num_channels is {channels}; allowed are 1, 2 and 4"),
            ));
        }
        Ok(TexelFormat { channel, channels })
    }

    /// Returns the number of channels.
    pub const fn channels(self) -> u32 {
        self.channels
    }

    /// Returns the bytes of a texel.
    pub const fn bytes(self) -> usize {
        self.channel.bytes() * self.channels as usize
    }
}

/// The shape of an array, and its uses.
///
/// Eight layers of 64 times 32 floats, which surfaces write:
///
/// ```
/// use gpuarray::texture::{ArrayShape, ChannelFormat, TexelFormat};
///
/// # fn main() -> gpuarray::Result<()> {
/// let format = TexelFormat::new(ChannelFormat::Float, 1)?;
/// let shape = ArrayShape::new(64, 32, 8, format).layered(true).surface(true);
/// assert_eq!(shape.bytes()?, 64 * 32 * 8 * 4);
/// assert_eq!(shape.axes(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrayShape {
    /// The number of texels per row.
    pub width: usize,
    /// The number of rows; 0 for an array with one axis.
    pub height: usize,
    /// The number of slices or layers; 0 for an array with one or two axes.
    pub depth: usize,
    /// True if the slices are layers, which are not interpolated.
    pub layered: bool,
    /// True if the slices are the six faces of a cube, in the order +x, -x, +y, -y, +z, -z; with
    /// `layered`, of one cube after another.
    pub cubemap: bool,
    /// True if surfaces can read and write the array.
    pub surface: bool,
    /// True if `tex2Dgather` can read the array.
    pub gather: bool,
    /// The type of the texels.
    pub format: TexelFormat,
}

setters! {
    ArrayShape:
    width: usize; height: usize; depth: usize; format: TexelFormat; layered: bool; cubemap: bool; surface: bool; gather: bool;
}

impl ArrayShape {
    /// Returns a shape without layers, faces and surfaces. Missing axes have the extent 0.
    pub const fn new(width: usize, height: usize, depth: usize, format: TexelFormat) -> ArrayShape {
        let (layered, cubemap, surface, gather) = (false, false, false, false);
        ArrayShape { width, height, depth, layered, cubemap, surface, gather, format }
    }

    /// `CUDA_ARRAY3D_LAYERED` and `hipArrayLayered`.
    pub const LAYERED: u32 = 1;
    /// `CUDA_ARRAY3D_SURFACE_LDST` and `hipArraySurfaceLoadStore`.
    pub const SURFACE: u32 = 2;
    /// `CUDA_ARRAY3D_CUBEMAP` and `hipArrayCubemap`.
    pub const CUBEMAP: u32 = 4;
    /// `CUDA_ARRAY3D_TEXTURE_GATHER` and `hipArrayTextureGather`.
    pub const GATHER: u32 = 8;

    /// Returns the drivers' flags for the array's uses.
    pub const fn flags(&self) -> u32 {
        let layered = if self.layered { Self::LAYERED } else { 0 };
        let surface = if self.surface { Self::SURFACE } else { 0 };
        let cubemap = if self.cubemap { Self::CUBEMAP } else { 0 };
        let gather = if self.gather { Self::GATHER } else { 0 };
        layered | surface | cubemap | gather
    }

    /// Returns the number of axes along which a texture over the array is read: 1 to 3. Layers and cube
    /// faces do not count.
    pub const fn axes(&self) -> usize {
        let is_deep = self.depth > 0 && !self.layered && !self.cubemap;
        1 + (self.height > 0) as usize + is_deep as usize
    }

    /// Returns the extents in texels, rows and slices, at least 1 each.
    pub fn extents(&self) -> [usize; 3] {
        [self.width, self.height, self.depth].map(|extent| extent.max(1))
    }

    /// Returns the bytes of all texels.
    ///
    /// # Errors
    /// `InvalidArgument` for an array without texels, with slices but no rows, or without the layers or
    /// square faces that it declares; `Overflow` if the size exceeds the address range.
    pub fn bytes(&self) -> Result<usize> {
        let extents = (self.width, self.height, self.depth);
        let refused = |what: &str| {
            Err(Error::invalid(
                "create_array",
                format!("width, height, depth are {extents:?}; {what}"),
            ))
        };
        if self.width == 0 {
            return refused("width must be at least 1");
        }
        if self.layered && self.depth == 0 {
            return refused("an array with layers has at least 1 in depth");
        }
        let has_faces = self.depth > 0 && self.depth.is_multiple_of(6);
        if self.cubemap && (self.width != self.height || !has_faces) {
            return refused("a cubemap has square faces, and 6 of them in depth");
        }
        if self.cubemap && !self.layered && self.depth != 6 {
            return refused("a cubemap without layers has 6 in depth");
        }
        if self.depth > 0 && self.height == 0 && !self.layered {
            return refused("an array with slices has at least 1 row");
        }
        let product = |bytes: usize, extent: usize| bytes.checked_mul(extent);
        self.extents().into_iter().try_fold(self.format.bytes(), product).ok_or_else(|| {
            Error::overflow("create_array", format!("width, height, depth are {extents:?}"))
        })
    }
}
