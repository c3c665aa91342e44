//! Operands as they typically lie in memory.

use hal::dtype::DType;
use hal::operation::{Indexed, Operand};
use hal::scalar::Scalar;

/// How the arrays of an operation lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayLayout {
    /// One run of memory in each.
    Contiguous,
    /// The same, longer than 32-bit indices reach.
    LongContiguous,
    /// Every other element of a vector.
    Strided,
    /// Part of a matrix: its rows apart but whole packs of 16 bytes.
    AlignedRows,
    /// Part of a matrix: its rows apart and anywhere.
    UnalignedRows,
    /// Whole matrices, the input of this number transposed.
    Transposed(usize),
}

impl ArrayLayout {
    /// Returns the shape, and the operand of a number (0 is the output).
    pub(super) fn operand(self, dtype: DType, number: usize) -> (&'static [usize], Operand) {
        let (shape, elements): (&[usize], [isize; 2]) = match self {
            ArrayLayout::Contiguous => (&[4096], [1, 0]),
            ArrayLayout::LongContiguous => (&[1 << 32], [1, 0]),
            ArrayLayout::Strided => (&[4095], [1 + isize::from(number > 0), 0]),
            ArrayLayout::AlignedRows => (&[64, 64], [128, 1]),
            ArrayLayout::UnalignedRows => (&[63, 63], [127, 1]),
            ArrayLayout::Transposed(input) if number == input + 1 => (&[1024, 1024], [1, 1024]),
            ArrayLayout::Transposed(_) => (&[1024, 1024], [1024, 1]),
        };
        (shape, operand(dtype, &elements[..shape.len()]))
    }
}

/// Returns an operand at an address like those of allocations, its strides counted in elements.
pub(super) fn operand(dtype: DType, elements: &[isize]) -> Operand {
    let strides = elements.iter().map(|stride| stride * dtype.size() as isize).collect();
    Operand { address: 1 << 20, dtype, strides }
}

/// Returns a number of a type; which one does not matter.
pub(super) fn number(dtype: DType) -> Scalar {
    let zero = Scalar::new(false);
    // Only records have no numbers, and there are none here.
    zero.cast(dtype).unwrap_or(zero)
}

/// Returns the elements of a vector, or the rows of a matrix, that indices name.
pub(super) fn indexed(dtype: DType, indices: DType, axes: usize) -> Indexed {
    let (base, index_strides): (&[isize], &[isize]) =
        if axes == 1 { (&[0], &[1]) } else { (&[0, 1], &[1, 0]) };
    let row = if axes == 1 { 1 } else { 64 };
    Indexed {
        base: operand(dtype, base),
        indices: operand(indices, index_strides),
        axis_length: 4096,
        axis_stride: row * dtype.size() as isize,
    }
}
