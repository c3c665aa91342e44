//! Copies from and to arrays.

use super::{ArrayShape, TexelFormat};
use crate::error::{Error, Result};

/// One side of a copy.
///
/// Rows of a larger image in memory, and the place in an array that they are copied to:
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
        /// Where the copied bytes begin: bytes in a row, rows, slices.
        origin: [usize; 3],
    },
    /// Memory of the host or the device.
    Memory {
        /// The address of the first byte that is copied.
        address: u64,
        /// The bytes from one row to the next.
        pitch: usize,
        /// The bytes from one slice to the next, a multiple of the pitch.
        slice: usize,
        /// True for memory of the host.
        is_host: bool,
    },
}

impl CopySide {
    /// Returns the address, if the side is memory of the host.
    pub fn host(&self) -> Option<u64> {
        match *self {
            CopySide::Memory { address, is_host: true, .. } => Some(address),
            _ => None,
        }
    }
}

/// A copy of `depth` slices of `height` rows of `width` bytes, of which at least one side is an array
/// (`cuMemcpy3DAsync`, `hipMemcpy3DAsync`).
///
/// Two rows of three texels go to an array and come back:
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
    /// What is written.
    pub destination: CopySide,
    /// What is read.
    pub source: CopySide,
    /// The number of bytes in a row.
    pub width: usize,
    /// The number of rows in a slice.
    pub height: usize,
    /// The number of slices.
    pub depth: usize,
    /// True if the call returns only when the bytes have arrived.
    pub wait: bool,
}

impl ArrayCopy {
    /// Checks that the copy stays inside an array, and copies whole texels of it. `name` is what the
    /// caller calls the array.
    ///
    /// # Errors
    /// `InvalidArgument` that says what the array holds.
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
                    "{name} has texels of {texel} bytes; the copy has {} bytes of a row from byte {} on",
                    self.width, origin[0]
                ),
            ));
        }
        Ok(())
    }

    /// Checks that texels of both sides have the same size, if both are arrays.
    ///
    /// # Errors
    /// `InvalidArgument` that says both sizes.
    pub fn check_sides(&self) -> Result<()> {
        match (self.source, self.destination) {
            (CopySide::Array { format: from, .. }, CopySide::Array { format: to, .. })
                if from.bytes() != to.bytes() =>
            {
                Err(Error::invalid(
                    "memcpy",
                    format!(
                        "src has texels of {} bytes and dst of {}; they must have the same size",
                        from.bytes(),
                        to.bytes()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}
