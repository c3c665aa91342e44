//! Broadcasting, and the memory order of results.

use super::{Layout, checked_size, shape_text};
use hal::error::{Error, Result};
use hal::iteration::memory_order;
use hal::operation::{Shape, Strides};
use smallvec::SmallVec;

impl Layout {
    /// Returns a layout that repeats the elements to a larger shape, by numpy's broadcasting rule.
    ///
    /// # Errors
    /// `InvalidArgument` that names both shapes if they do not fit.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout> {
        let refused = || {
            Error::invalid(
                "broadcast",
                format!(
                    "operands could not be broadcast together: shape {} does not fit shape {}",
                    shape_text(&self.shape),
                    shape_text(shape)
                ),
            )
        };
        let added = shape.len().checked_sub(self.ndim()).ok_or_else(refused)?;
        checked_size(shape, self.itemsize)?;
        let mut strides: Strides = SmallVec::from_elem(0, shape.len());
        for axis in 0..self.ndim() {
            match (self.shape[axis], shape[added + axis]) {
                (from, to) if from == to => strides[added + axis] = self.strides[axis],
                (1, _) => {}
                _ => return Err(refused()),
            }
        }
        Ok(Layout {
            shape: Shape::from_slice(shape),
            strides,
            offset: self.offset,
            itemsize: self.itemsize,
        })
    }
}

/// Returns the shape that both shapes broadcast to.
///
/// # Errors
/// `InvalidArgument` that names both shapes if they do not fit.
pub fn broadcast_shapes(a: &[usize], b: &[usize]) -> Result<Shape> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut shape = Shape::from_slice(long);
    let added = long.len() - short.len();
    for (axis, &extent) in short.iter().enumerate() {
        let place = &mut shape[added + axis];
        match (*place, extent) {
            (x, y) if x == y => {}
            (1, y) => *place = y,
            (_, 1) => {}
            _ => {
                return Err(Error::invalid(
                    "broadcast",
                    format!(
                        "operands could not be broadcast together with shapes {} {}",
                        shape_text(a),
                        shape_text(b)
                    ),
                ));
            }
        }
    }
    Ok(shape)
}

/// Returns the layout of a result without gaps, its axes ordered in memory as those of the operands
/// are (numpy's order "K"): an axis lies outside another unless every operand that moves along both
/// has the smaller stride there; the C order wins where operands disagree.
///
/// # Errors
/// `Overflow` if the result does not fit the address space.
pub fn dense_layout(shape: &[usize], operands: &[&Strides], itemsize: usize) -> Result<Layout> {
    checked_size(shape, itemsize)?;
    let axes = memory_order(shape, operands);
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let mut step = itemsize as isize;
    for &axis in axes.iter().rev() {
        strides[axis] = step;
        step *= shape[axis].max(1) as isize;
    }
    Ok(Layout { shape: Shape::from_slice(shape), strides, offset: 0, itemsize })
}
