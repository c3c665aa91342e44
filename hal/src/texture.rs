//! Arrays for textures and surfaces, and the objects through which kernels access them.
//!
//! A [`TextureArray`] holds texels in a device-specific order; only copies ([`ArrayCopy`]) and kernels can
//! access them. A [`TextureObject`] is a number that a kernel passes to functions such as `tex2D`. It represents
//! an array or device memory, and the way in which it is read ([`Sampling`]). A [`SurfaceObject`] is such a
//! number for reading and writing an array without sampling.
//!
//! These owning types are in [`crate::memory`]. When they are dropped, they free what they own after all work of
//! the device. Kernels only get a number, from which the memory cannot be determined. So their reads are not
//! ordered after other streams' work, and a graph does not keep a texture alive.
//!
//! [`TextureArray`]: crate::memory::TextureArray
//! [`TextureObject`]: crate::memory::TextureObject
//! [`SurfaceObject`]: crate::memory::SurfaceObject

mod format;

use crate::enumeration::setters;
use crate::error::{Error, Result};
pub use format::{ArrayShape, ChannelFormat, TexelFormat};

/// The value that a texture read returns out of bounds. The numbers are the ones of `CUaddress_mode`.
///
/// A texture that repeats along x and ends with zeros along y:
///
/// ```
/// use gpuarray::texture::{AddressMode, Sampling};
///
/// # fn main() -> gpuarray::Result<()> {
/// let modes = [AddressMode::Wrap, AddressMode::Border, AddressMode::Clamp];
/// let sampling = Sampling::default().address(modes).normalized(true);
/// assert_eq!(sampling.effective_modes(), modes);
/// // Coordinates in texels do not repeat.
/// assert_eq!(sampling.normalized(false).effective_modes()[0], AddressMode::Clamp);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressMode {
    /// The array is repeated. Only for normalised coordinates; otherwise it means `Clamp`.
    Wrap = 0,
    /// The texel at the edge.
    #[default]
    Clamp = 1,
    /// The array is repeated, every second time in reverse. Only for normalised coordinates; otherwise it means
    /// `Clamp`.
    Mirror = 2,
    /// Zero.
    Border = 3,
}

impl AddressMode {
    /// Returns the mode with a number of `CUaddress_mode`.
    pub fn from_number(number: u32) -> Option<AddressMode> {
        use AddressMode as M;
        [M::Wrap, M::Clamp, M::Mirror, M::Border].into_iter().find(|mode| *mode as u32 == number)
    }
}

/// The way in which a texture is read.
///
/// Bytes of an image, interpolated and read as fractions, with coordinates from 0 to 1:
///
/// ```
/// use gpuarray::texture::{ChannelFormat, Sampling, TexelFormat};
///
/// # fn main() -> gpuarray::Result<()> {
/// let sampling = Sampling::default().linear(true).normalized(true);
/// let format = TexelFormat::new(ChannelFormat::UInt8, 4)?;
/// assert!(format.reads_as_float(&sampling));
/// assert!(!format.reads_as_float(&Sampling::default().as_integer(true)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sampling {
    /// The mode for reads out of bounds, along x, y and z.
    pub address: [AddressMode; 3],
    /// True for linear interpolation between texels, false for the texel that contains the coordinates.
    pub linear: bool,
    /// True if coordinates range from 0 to 1, regardless of the extents.
    pub normalized: bool,
    /// True to read integers unchanged; false to read 8-bit and 16-bit integers as fractions, from 0 to 1 if
    /// unsigned and from -1 to 1 if signed.
    pub as_integer: bool,
}

setters! {
    Sampling:
    address: [AddressMode; 3]; linear: bool; normalized: bool; as_integer: bool;
}

impl Sampling {
    /// `CU_TRSF_READ_AS_INTEGER` and `HIP_TRSF_READ_AS_INTEGER`.
    pub const READ_AS_INTEGER: u32 = 1;
    /// `CU_TRSF_NORMALIZED_COORDINATES` and `HIP_TRSF_NORMALIZED_COORDINATES`.
    pub const NORMALIZED: u32 = 2;

    /// Returns the modes that take effect: `Wrap` and `Mirror` mean `Clamp` if coordinates are not normalised.
    pub fn effective_modes(&self) -> [AddressMode; 3] {
        self.address.map(|mode| match mode {
            AddressMode::Border => mode,
            _ if self.normalized => mode,
            _ => AddressMode::Clamp,
        })
    }

    /// Returns the drivers' flags for these options.
    pub const fn flags(&self) -> u32 {
        let as_integer = if self.as_integer { Self::READ_AS_INTEGER } else { 0 };
        let normalized = if self.normalized { Self::NORMALIZED } else { 0 };
        as_integer | normalized
    }
}

impl TexelFormat {
    /// Returns true if a kernel reads floats: the array's own, or fractions.
    pub const fn reads_as_float(self, sampling: &Sampling) -> bool {
        match self.channel {
            ChannelFormat::Half | ChannelFormat::Float => true,
            ChannelFormat::UInt32 | ChannelFormat::Int32 => false,
            _ => !sampling.as_integer,
        }
    }
}

/// The array or memory that a texture reads.
///
/// Elements of an array, read by `tex1Dfetch`; the texture keeps the array's memory alive:
///
/// ```
/// use gpuarray::DeviceArray;
/// use gpuarray::texture::{ChannelFormat, Sampling, TexelFormat, TextureObject, TextureResource};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let x = DeviceArray::<f32>::ones(&device, &[256])?;
/// let format = TexelFormat::new(ChannelFormat::Float, 1)?;
/// let resource = TextureResource::Linear { address: x.as_device_pointer(), bytes: 1024, format };
/// let memory = x.untyped().memory().clone();
/// // SAFETY: the object keeps the memory.
/// let texture =
///     unsafe { TextureObject::new(&device, &resource, &Sampling::default(), Box::new(memory))? };
/// assert_eq!(resource.range(), Some((x.as_device_pointer(), 1024)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureResource {
    /// An array, by its handle.
    Array {
        /// The return value of [`Device::create_array`](crate::Device::create_array).
        array: u64,
        /// The number of coordinates for reading it: 1 to 3, not counting layers.
        axes: usize,
        /// The type of its texels.
        format: TexelFormat,
    },
    /// Device memory, which `tex1Dfetch` reads by texel number.
    Linear {
        /// The address of the first texel.
        address: u64,
        /// The number of bytes.
        bytes: usize,
        /// The type of the texels.
        format: TexelFormat,
    },
    /// Rows in device memory.
    Pitched {
        /// The address of the first texel.
        address: u64,
        /// The number of texels per row.
        width: usize,
        /// The number of rows.
        height: usize,
        /// The row pitch in bytes.
        pitch: usize,
        /// The type of the texels.
        format: TexelFormat,
    },
}

impl TextureResource {
    /// Returns the type of the texels.
    pub const fn format(&self) -> TexelFormat {
        match *self {
            TextureResource::Array { format, .. }
            | TextureResource::Linear { format, .. }
            | TextureResource::Pitched { format, .. } => format,
        }
    }

    /// Returns the number of coordinates in which a texture samples; 0 for memory whose texels are read by
    /// number.
    pub const fn axes(&self) -> usize {
        match *self {
            TextureResource::Array { axes, .. } => axes,
            TextureResource::Linear { .. } => 0,
            TextureResource::Pitched { .. } => 2,
        }
    }

    /// Returns the range of device memory that is read; `None` for an array.
    pub const fn range(&self) -> Option<(u64, usize)> {
        match *self {
            TextureResource::Array { .. } => None,
            TextureResource::Linear { address, bytes, .. } => Some((address, bytes)),
            TextureResource::Pitched { address, width, height, pitch, format } => Some((
                address,
                pitch
                    .saturating_mul(height.saturating_sub(1))
                    .saturating_add(width.saturating_mul(format.bytes())),
            )),
        }
    }

    /// Checks for requests that no device supports.
    ///
    /// # Errors
    /// `InvalidArgument` for an interpolation of integers, memory without texels, an address that is not a
    /// multiple of the texel size, and a pitch shorter than a row.
    pub fn check(&self, sampling: &Sampling) -> Result<()> {
        let format = self.format();
        let refused = |what: String| Err(Error::invalid("create_texture", what));
        if sampling.linear && !format.reads_as_float(sampling) {
            return refused(format!(
                "linear is true for texels of {:?} that are read as integers; floats, and integers of \
                 8 and 16 bits that are read as fractions, can be interpolated",
                format.channel
            ));
        }
        let Some((address, bytes)) = self.range() else { return Ok(()) };
        let texel = format.bytes();
        if bytes < texel {
            return refused(format!("the size of the memory is {bytes}; a texel has size {texel}"));
        }
        if !address.is_multiple_of(texel as u64) {
            return refused(format!(
                "address is {address:#x}; a multiple of the size of a texel, {texel}, is needed"
            ));
        }
        if let TextureResource::Pitched { width, height, pitch, .. } = *self
            && (width == 0 || height == 0 || pitch < width.saturating_mul(texel))
        {
            return refused(format!(
                "height is {height}, width {width} and pitch {pitch}; at least 1 of each is needed, and \
                 pitch {texel} for a texel"
            ));
        }
        Ok(())
    }
}

/// The kind of object that a device's handle represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureHandle {
    /// An array.
    Array,
    /// A texture object.
    Texture,
    /// A surface object.
    Surface,
}

// Copies from and to arrays.

/// One side of a copy.
///
/// Rows of a larger image in memory, and their destination in an array:
///
/// ```
/// use gpuarray::texture::{ArrayShape, ChannelFormat, CopySide, TexelFormat, TextureArray};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let format = TexelFormat::new(ChannelFormat::UInt8, 1)?;
/// let array = TextureArray::new(&device, ArrayShape::new(64, 64, 0, format))?;
/// let image = vec![0u8; 640 * 480];
/// let address = image.as_ptr() as u64;
/// let rows = CopySide::Memory { address, pitch: 640, slice: 640 * 480, is_host: true };
/// let place = CopySide::Array { array: array.handle()?, format, origin: [16, 8, 0] };
/// assert_eq!((rows.host(), place.host()), (Some(address), None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySide {
    /// An array.
    Array {
        /// The handle.
        array: u64,
        /// The type of its texels.
        format: TexelFormat,
        /// The start of the copied bytes: bytes in a row, rows, slices.
        origin: [usize; 3],
    },
    /// Host or device memory.
    Memory {
        /// The address of the first byte that is copied.
        address: u64,
        /// The row pitch in bytes.
        pitch: usize,
        /// The bytes from one slice to the next, a multiple of the pitch.
        slice: usize,
        /// True for host memory.
        is_host: bool,
    },
}

impl CopySide {
    /// Returns the address if the side is host memory.
    pub fn host(&self) -> Option<u64> {
        match *self {
            CopySide::Memory { address, is_host: true, .. } => Some(address),
            _ => None,
        }
    }
}

/// A copy of `depth` slices of `height` rows of `width` bytes, where at least one side is an array
/// (`cuMemcpy3DAsync`, `hipMemcpy3DAsync`).
///
/// Two rows of three texels, copied to an array and back:
///
/// ```
/// use gpuarray::texture::{ArrayCopy, ArrayShape, ChannelFormat, CopySide, TexelFormat, TextureArray};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let format = TexelFormat::new(ChannelFormat::UInt8, 1)?;
/// let array = TextureArray::new(&device, ArrayShape::new(3, 2, 0, format))?;
/// let inside = CopySide::Array { array: array.handle()?, format, origin: [0; 3] };
/// let at = |address| CopySide::Memory { address, pitch: 3, slice: 6, is_host: true };
/// let (sent, mut back) = ([1u8, 2, 3, 4, 5, 6], [0u8; 6]);
/// let (from, to) = (at(sent.as_ptr() as u64), at(back.as_mut_ptr() as u64));
/// let up = ArrayCopy { destination: inside, source: from, width: 3, height: 2, depth: 1, wait: true };
/// let down = ArrayCopy { destination: to, source: inside, ..up };
/// for copy in [up, down] {
///     copy.check("image", array.shape(), [0; 3])?;
///     // SAFETY: memory and array have six texels, which nothing else uses.
///     unsafe { device.default_stream().copy_array(&copy)? };
/// }
/// assert_eq!(back, sent);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayCopy {
    /// The destination.
    pub destination: CopySide,
    /// The source.
    pub source: CopySide,
    /// The number of bytes in a row.
    pub width: usize,
    /// The number of rows in a slice.
    pub height: usize,
    /// The number of slices.
    pub depth: usize,
    /// True if the call returns only after the bytes have arrived.
    pub wait: bool,
}

impl ArrayCopy {
    /// Checks that the copy stays inside an array, and copies whole texels of it. Messages call the array
    /// `name`.
    ///
    /// # Errors
    /// `InvalidArgument` that names the array's extents.
    pub fn check(&self, name: &str, shape: &ArrayShape, origin: [usize; 3]) -> Result<()> {
        let [width, height, depth] = shape.extents();
        let texel = shape.format.bytes();
        let holds = [width.saturating_mul(texel), height, depth];
        let copied = [self.width, self.height, self.depth];
        for (axis, what) in ["bytes of a row", "rows", "slices"].into_iter().enumerate() {
            let end = origin[axis].checked_add(copied[axis]);
            if end.is_none_or(|end| end > holds[axis]) {
                return Err(Error::invalid(
                    "memcpy",
                    format!(
                        "{name} holds {} {what}; the copy has {} from {} on",
                        holds[axis], copied[axis], origin[axis]
                    ),
                ));
            }
        }
        if !origin[0].is_multiple_of(texel) || !self.width.is_multiple_of(texel) {
            return Err(Error::invalid(
                "memcpy",
                format!(
                    "{name} has texels of size {texel}; the copy has a width of {} in bytes from byte {} on",
                    self.width, origin[0]
                ),
            ));
        }
        Ok(())
    }

    /// Checks that texels of both sides have the same size, if both are arrays.
    ///
    /// # Errors
    /// `InvalidArgument` that names both sizes.
    pub fn check_sides(&self) -> Result<()> {
        match (self.source, self.destination) {
            (CopySide::Array { format: from, .. }, CopySide::Array { format: to, .. })
                if from.bytes() != to.bytes() =>
            {
                Err(Error::invalid(
                    "memcpy",
                    format!(
                        "src has texels of size {} and dst of {}; they must be the same",
                        from.bytes(),
                        to.bytes()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
