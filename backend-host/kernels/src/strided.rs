//! Strided iteration over the axes of several arrays at once.

use hal::operation::Shape;

/// The number of elements of a shape, saturating.
pub(super) fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |all, &n| all.saturating_mul(n)) }
}

/// The stride of an axis; zero for an array that has none, which is one repeated element.
#[inline(always)]
pub(super) fn stride(strides: &[isize], axis: usize) -> isize {
    strides.get(axis).copied().unwrap_or(0)
}

/// The address of element `index` along an axis of this stride.
#[inline(always)]
pub(super) fn offset(address: usize, index: usize, stride: isize) -> usize {
    address.wrapping_add((index as isize).wrapping_mul(stride) as usize)
}

/// Calls `body` with the addresses of every index of `shape`, the last axis running fastest.
/// An empty shape has one index; one with an axis of length zero has none.
pub(super) fn for_each<const N: usize>(
    shape: &[usize],
    strides: &[&[isize]; N],
    mut addresses: [usize; N],
    mut body: impl FnMut(&[usize; N]),
) {
    if shape.contains(&0) {
        return;
    }
    let mut index = Shape::from_elem(0, shape.len());
    loop {
        body(&addresses);
        let mut axis = shape.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            if index[axis] + 1 < shape[axis] {
                index[axis] += 1;
                for (address, strides) in addresses.iter_mut().zip(strides) {
                    *address = offset(*address, 1, stride(strides, axis));
                }
                break;
            }
            let back = std::mem::take(&mut index[axis]);
            for (address, strides) in addresses.iter_mut().zip(strides) {
                *address = offset(*address, back, stride(strides, axis).wrapping_neg());
            }
        }
    }
}

/// The shape with the given axes reduced to one index.
pub(super) fn without(shape: &[usize], axes: &[Option<usize>]) -> Shape {
    let mut rest = Shape::from_slice(shape);
    for &axis in axes.iter().flatten() {
        rest[axis] = 1;
    }
    rest
}

/// The axis along which to divide work: the outermost that has enough indices, else the
/// longest.
pub(super) fn widest(shape: &[usize]) -> usize {
    let enough = shape.iter().position(|&length| length >= 32);
    let longest = || (0..shape.len()).max_by_key(|&axis| shape[axis]);
    enough.or_else(longest).unwrap_or(0)
}
