//! Strided iteration over the axes of several arrays together.

use hal::operation::Shape;

/// Returns the number of elements of a shape, saturating.
pub(super) fn count(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |all, &n| all.saturating_mul(n)) }
}

/// Returns the stride of an axis, or zero for an array without strides, which is one repeated element.
#[inline(always)]
pub(super) fn stride(strides: &[isize], axis: usize) -> isize {
    strides.get(axis).copied().unwrap_or(0)
}

/// Returns the address of element `index` along an axis with this stride.
#[inline(always)]
pub(super) fn offset(address: usize, index: usize, stride: isize) -> usize {
    address.wrapping_add((index as isize).wrapping_mul(stride) as usize)
}

/// Calls `body` with the addresses for every index of `shape`. The last axis varies fastest. An empty shape
/// has one index, and a shape with an axis of length zero does not have any.
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

/// Returns the shape with the given axes reduced to one index.
pub(super) fn without(shape: &[usize], axes: &[Option<usize>]) -> Shape {
    let mut rest = Shape::from_slice(shape);
    for &axis in axes.iter().flatten() {
        rest[axis] = 1;
    }
    rest
}

/// Returns the axis along which to divide work: the outermost one with enough indices, otherwise the longest
/// one.
pub(super) fn widest(shape: &[usize]) -> usize {
    let enough = shape.iter().position(|&length| length >= 32);
    let longest = || (0..shape.len()).max_by_key(|&axis| shape[axis]);
    enough.or_else(longest).unwrap_or(0)
}
