//! Layouts: the positions of an array's elements in memory, as shape, signed strides in bytes, and
//! offset.
//!
//! All arithmetic is checked: in every layout, the product of the extents and the distances between
//! addresses fit in `isize`.

mod index;
mod reshape;
#[cfg(test)]
mod tests;

pub use index::{IndexItem, SliceBounds, normalize_axis};
pub use reshape::{broadcast_shapes, dense_layout};

use hal::dtype::DType;
use hal::error::{Error, Result};
pub use hal::operation::shape_text;
use hal::operation::{Shape, Strides};
use smallvec::SmallVec;
use std::fmt;
use std::ops::Range;

/// The maximum number of axes, the same as numpy's.
pub const MAX_AXES: usize = 64;

/// The order of axes in memory.
///
/// The distance in bytes from one element to the next along each axis:
///
/// ```
/// use gpuarray::{Layout, Order};
///
/// # fn main() -> gpuarray::Result<()> {
/// assert_eq!(Layout::contiguous(&[2, 3], 4, Order::C)?.strides(), [12, 4]);
/// assert_eq!(Layout::contiguous(&[2, 3], 4, Order::F)?.strides(), [4, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Row-major: the last axis is the fastest.
    C,
    /// Column-major: the first axis is the fastest.
    F,
}

/// Shape, strides and offset of an array's elements in its memory.
///
/// A view of every second column. It starts where the table starts, and copies nothing:
///
/// ```
/// use gpuarray::{Layout, Order, s};
///
/// # fn main() -> gpuarray::Result<()> {
/// let table = Layout::contiguous(&[3, 6], 8, Order::C)?;
/// let columns = table.index(&s![.., ..;2])?;
/// assert_eq!(columns.shape(), [3, 3]);
/// assert_eq!((columns.strides(), columns.offset()), (&[48, 16][..], 0));
/// assert!(!columns.is_c_contiguous());
/// # Ok(())
/// # }
/// ```
#[derive(PartialEq, Eq)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
    itemsize: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        // `clone` of a `SmallVec` copies element by element.
        let (shape, strides) = (Shape::from_slice(&self.shape), Strides::from_slice(&self.strides));
        Layout { shape, strides, offset: self.offset, itemsize: self.itemsize }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Layout(shape={}, strides={:?}, offset={}, itemsize={})",
            shape_text(&self.shape),
            &self.strides[..],
            self.offset,
            self.itemsize
        )
    }
}

/// Returns the number of elements of a shape.
///
/// # Errors
/// `Overflow` if the number of bytes exceeds `isize::MAX`, `InvalidArgument` for more than
/// [`MAX_AXES`] axes.
#[inline]
pub fn checked_size(shape: &[usize], itemsize: usize) -> Result<usize> {
    if shape.len() > MAX_AXES {
        return Err(Error::invalid(
            "layout",
            format!("shape has {} axes; at most {MAX_AXES} are allowed", shape.len()),
        ));
    }
    let too_large = || {
        Error::overflow(
            "layout",
            format!(
                "shape {} of {itemsize}-byte elements is larger than the address space",
                shape_text(shape)
            ),
        )
    };
    let fits = |bytes: &usize| isize::try_from(*bytes).is_ok();
    // numpy refuses a product that overflows even if another extent is zero.
    let mut bytes = Some(itemsize.max(1)).filter(fits).ok_or_else(too_large)?;
    for &extent in shape {
        bytes = bytes.checked_mul(extent.max(1)).filter(fits).ok_or_else(too_large)?;
    }
    Ok(shape.iter().product())
}

impl Layout {
    /// Returns a contiguous layout.
    ///
    /// # Errors
    /// As for [`checked_size`].
    #[inline]
    pub fn contiguous(shape: &[usize], itemsize: usize, order: Order) -> Result<Layout> {
        checked_size(shape, itemsize)?;
        Ok(Self::contiguous_unchecked(Shape::from_slice(shape), itemsize, order))
    }

    #[inline]
    fn contiguous_unchecked(shape: Shape, itemsize: usize, order: Order) -> Layout {
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        let mut step = itemsize as isize;
        let mut place = |axis: usize| {
            strides[axis] = step;
            step *= shape[axis].max(1) as isize;
        };
        match order {
            Order::C => (0..shape.len()).rev().for_each(&mut place),
            Order::F => (0..shape.len()).for_each(&mut place),
        }
        Layout { shape, strides, offset: 0, itemsize }
    }

    /// Returns a layout with the given strides (in bytes) and offset.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of strides differs from the number of axes, or if elements
    /// have negative offsets; `Overflow` if a distance does not fit.
    pub fn with_strides(
        shape: &[usize],
        strides: &[isize],
        offset: usize,
        itemsize: usize,
    ) -> Result<Layout> {
        checked_size(shape, itemsize)?;
        if shape.len() != strides.len() {
            return Err(Error::invalid(
                "layout",
                format!(
                    "strides {strides:?} and shape {} have different lengths",
                    shape_text(shape)
                ),
            ));
        }
        let layout = Layout {
            shape: Shape::from_slice(shape),
            strides: Strides::from_slice(strides),
            offset,
            itemsize,
        };
        layout.checked_extent()?;
        Ok(layout)
    }

    /// Returns the layout of an array with one element and no axes.
    pub(crate) fn scalar(itemsize: usize) -> Layout {
        Self::contiguous_unchecked(Shape::new(), itemsize, Order::C)
    }

    /// Returns a contiguous layout for elements of `itemsize` bytes, in the memory order of this
    /// layout (numpy's order "K").
    ///
    /// # Errors
    /// `Overflow` if the larger elements do not fit the address space.
    pub fn dense_like(&self, itemsize: usize) -> Result<Layout> {
        // The strides of an array without elements must not affect the test for contiguity.
        if self.ndim() == 1 || (self.size() > 0 && self.is_c_contiguous()) {
            return Self::contiguous(&self.shape, itemsize, Order::C);
        }
        dense_layout(&self.shape, &[&self.strides], itemsize)
    }

    /// Returns the shape: the extent of each axis.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the strides in bytes.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Returns the offset in bytes of the element whose indices are all zero.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes per element.
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the total bytes of all elements, without gaps.
    pub fn nbytes(&self) -> usize {
        self.size() * self.itemsize
    }

    fn checked_extent(&self) -> Result<Range<usize>> {
        let too_far = || {
            Error::overflow(
                "layout",
                format!(
                    "strides {:?} of shape {} reach further than the address space",
                    &self.strides[..],
                    shape_text(&self.shape)
                ),
            )
        };
        if self.shape.contains(&0) {
            return Ok(self.offset..self.offset);
        }
        let (mut low, mut high) =
            (self.offset as i128, self.offset as i128 + self.itemsize as i128);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent as i128 - 1) * stride as i128;
            if reach < 0 { low += reach } else { high += reach }
        }
        if high - low > isize::MAX as i128 || high > isize::MAX as i128 {
            return Err(too_far());
        }
        if low < 0 {
            return Err(Error::invalid(
                "layout",
                format!(
                    "strides {:?} of shape {} with offset {} reach byte {} from the start of the memory",
                    &self.strides[..],
                    shape_text(&self.shape),
                    self.offset,
                    low
                ),
            ));
        }
        Ok(low as usize..high as usize)
    }

    /// Returns the range of bytes in the memory that the elements span; empty if there are no
    /// elements.
    pub fn extent(&self) -> Range<usize> {
        if self.shape.contains(&0) {
            return self.offset..self.offset;
        }
        // Layouts whose extent does not fit are not created, so each partial sum fits as well.
        let (mut low, mut high) = (self.offset, self.offset.wrapping_add(self.itemsize));
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent as isize).wrapping_sub(1).wrapping_mul(stride);
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.wrapping_add_signed(reach);
        }
        low..high
    }

    /// Checks that every element is inside a memory of `bytes` bytes.
    ///
    /// # Errors
    /// `InvalidArgument` that names strides, shape and size if an element is outside.
    pub fn check_within(&self, bytes: usize) -> Result<()> {
        let extent = self.checked_extent()?;
        if extent.end > bytes && !extent.is_empty() {
            return Err(Error::invalid(
                "layout",
                format!(
                    "strides {:?} of shape {} with offset {} need size {}; the memory has {bytes}",
                    &self.strides[..],
                    shape_text(&self.shape),
                    self.offset,
                    extent.end
                ),
            ));
        }
        Ok(())
    }

    /// Checks that this layout has the item size of `dtype`, and that each element is aligned.
    ///
    /// # Errors
    /// `InvalidArgument` that names the item size, or the stride or offset that is not a multiple of
    /// the alignment.
    #[inline]
    pub fn check_dtype(&self, dtype: DType) -> Result<()> {
        if self.itemsize != dtype.size() {
            return Err(Error::invalid(
                "layout",
                format!("a layout of {}-byte elements does not fit {dtype}", self.itemsize),
            ));
        }
        let align = dtype.alignment();
        if align == 1 {
            return Ok(());
        }
        if !self.offset.is_multiple_of(align) {
            return Err(Error::invalid(
                "layout",
                format!(
                    "offset {} is not a multiple of {align}, the alignment of {dtype}",
                    self.offset
                ),
            ));
        }
        let moves = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        for (_, &stride) in moves {
            if stride % align as isize != 0 {
                return Err(Error::invalid(
                    "layout",
                    format!(
                        "stride {stride} is not a multiple of {align}, the alignment of {dtype}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns true if the elements are contiguous with the last axis fastest.
    #[inline]
    pub fn is_c_contiguous(&self) -> bool {
        // Every operation checks every operand, and most operands have one axis.
        match (&self.shape[..], &self.strides[..]) {
            (&[extent], &[stride]) => extent <= 1 || stride == self.itemsize as isize,
            _ => self.is_dense((0..self.ndim()).rev()),
        }
    }

    /// Returns true if the elements are contiguous with the first axis fastest.
    pub fn is_f_contiguous(&self) -> bool {
        self.is_dense(0..self.ndim())
    }

    /// Returns true if the elements are contiguous in the given order.
    pub fn is_contiguous(&self, order: Order) -> bool {
        match order {
            Order::C => self.is_c_contiguous(),
            Order::F => self.is_f_contiguous(),
        }
    }

    fn is_dense(&self, axes: impl Iterator<Item = usize>) -> bool {
        let mut expected = self.itemsize as isize;
        let mut dense = true;
        for axis in axes {
            match self.shape[axis] {
                0 => return true,
                1 => {}
                extent => {
                    dense &= self.strides[axis] == expected;
                    expected = expected.wrapping_mul(extent as isize);
                }
            }
        }
        dense
    }

    /// Returns true if the elements fill one block of memory without gaps or repeats, with any order
    /// of axes and the lowest address first.
    #[inline]
    pub fn is_packed(&self) -> bool {
        if self.is_c_contiguous() {
            return true;
        }
        let mut axes: SmallVec<[usize; 8]> =
            (0..self.ndim()).filter(|&a| self.shape[a] != 1).collect();
        axes.sort_by_key(|&axis| self.strides[axis]);
        self.is_dense(axes.into_iter())
    }

    /// Returns true if two different indices may name the same element.
    pub fn may_repeat(&self) -> bool {
        if self.is_c_contiguous() || self.shape.contains(&0) {
            return false;
        }
        let mut axes: SmallVec<[usize; 8]> =
            (0..self.ndim()).filter(|&a| self.shape[a] > 1).collect();
        axes.sort_by_key(|&axis| self.strides[axis].unsigned_abs());
        let mut reach = self.itemsize;
        for axis in axes {
            let step = self.strides[axis].unsigned_abs();
            if step < reach {
                return true;
            }
            reach += step * (self.shape[axis] - 1);
        }
        false
    }

    /// Returns true if elements of both layouts, in the same memory, may share bytes. Only the
    /// ranges from first to last byte are compared, so interleaved layouts count as overlapping.
    pub fn overlaps(&self, other: &Layout) -> bool {
        let (a, b) = (self.extent(), other.extent());
        !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
    }
}
