//! Views of the same elements with another shape or element size.

use crate::layout::{Layout, Order, checked_size, shape_text};
use hal::error::{Error, Result};
use hal::iteration::memory_order;
use hal::operation::{Shape, Strides};
use smallvec::SmallVec;

impl Layout {
    /// Resolves one extent of `-1` so that the number of elements stays the same.
    ///
    /// # Errors
    /// `InvalidArgument` that names the shapes if the number of elements cannot stay the
    /// same, an extent is below -1, or more than one is -1.
    pub fn resolve_shape(&self, shape: &[isize]) -> Result<Shape> {
        let size = self.size();
        let refused = |why: &str| {
            Error::invalid(
                "reshape",
                format!(
                    "cannot reshape array of size {size} into shape {}: {why}",
                    shape_text(shape)
                ),
            )
        };
        let mut unknown = None;
        let mut known = 1usize;
        let mut resolved = Shape::new();
        for (axis, &extent) in shape.iter().enumerate() {
            match extent {
                -1 if unknown.is_some() => {
                    return Err(refused("can only specify one unknown dimension"));
                }
                -1 => {
                    unknown = Some(axis);
                    resolved.push(1);
                }
                extent => {
                    let extent = usize::try_from(extent)
                        .map_err(|_| refused("extents must not be negative"))?;
                    known = known.checked_mul(extent).ok_or_else(|| refused("it is too large"))?;
                    resolved.push(extent);
                }
            }
        }
        match unknown {
            Some(axis) if known != 0 && size.is_multiple_of(known) => resolved[axis] = size / known,
            None if known == size => {}
            _ => return Err(refused("total size of new array must be unchanged")),
        }
        checked_size(&resolved, self.itemsize)?;
        Ok(resolved)
    }

    /// Returns the view with another shape of the same number of elements, read and laid out in
    /// `order`; `None` if only a copy can have that shape.
    ///
    /// # Errors
    /// `InvalidArgument` if the number of elements differs.
    pub fn reshape(&self, shape: &[usize], order: Order) -> Result<Option<Layout>> {
        let size = checked_size(shape, self.itemsize)?;
        if size != self.size() {
            return Err(Error::invalid(
                "reshape",
                format!(
                    "cannot reshape array of shape {} into shape {}: total size of new array \
                     must be unchanged",
                    shape_text(&self.shape),
                    shape_text(shape)
                ),
            ));
        }
        if size == 0 || self.is_contiguous(order) {
            let mut layout =
                Layout::contiguous_unchecked(Shape::from_slice(shape), self.itemsize, order);
            layout.offset = self.offset;
            return Ok(Some(layout));
        }
        let strides = match order {
            Order::C => {
                let old: Axes = self.axes().collect();
                split(&old, shape.iter().copied()).map(|s| s.into_iter().collect())
            }
            Order::F => {
                let old: Axes = self.axes().rev().collect();
                split(&old, shape.iter().rev().copied()).map(|s| s.into_iter().rev().collect())
            }
        };
        Ok(strides.map(|strides: Strides| Layout {
            shape: Shape::from_slice(shape),
            strides,
            offset: self.offset,
            itemsize: self.itemsize,
        }))
    }

    fn axes(&self) -> impl DoubleEndedIterator<Item = (usize, isize)> + '_ {
        self.shape.iter().copied().zip(self.strides.iter().copied()).filter(|&(n, _)| n != 1)
    }

    /// Returns the view without leading axes of extent 1, but keeps at least `ndim` axes.
    pub fn trim_leading(&self, ndim: usize) -> Layout {
        let ones = self.shape.iter().take_while(|&&extent| extent == 1).count();
        let from = ones.min(self.ndim().saturating_sub(ndim));
        Layout {
            shape: Shape::from_slice(&self.shape[from..]),
            strides: Strides::from_slice(&self.strides[from..]),
            offset: self.offset,
            itemsize: self.itemsize,
        }
    }

    /// Returns a view without the axes of extent 1.
    pub fn squeeze(&self) -> Layout {
        let kept: Axes = self.axes().collect();
        Layout {
            shape: kept.iter().map(|a| a.0).collect(),
            strides: kept.iter().map(|a| a.1).collect(),
            offset: self.offset,
            itemsize: self.itemsize,
        }
    }

    /// Returns a view of the same bytes as elements of another size. The extent of the axis with
    /// the smallest stride (the last such axis) changes.
    ///
    /// # Errors
    /// `InvalidArgument` if the elements along that axis are not adjacent or do not fill
    /// whole new elements.
    pub fn with_itemsize(&self, itemsize: usize) -> Result<Layout> {
        if itemsize == self.itemsize {
            return Ok(self.clone());
        }
        let refused = |why: String| Error::invalid("view", why);
        let moving = (0..self.ndim()).filter(|&a| self.shape[a] > 1);
        let fastest =
            moving.min_by_key(|&a| (self.strides[a].unsigned_abs(), std::cmp::Reverse(a)));
        let Some(axis) = fastest.or(self.ndim().checked_sub(1)) else {
            return Err(refused(format!(
                "a view of an array without axes must keep the element size {}, not {itemsize}",
                self.itemsize
            )));
        };
        let (extent, stride) = (self.shape[axis], self.strides[axis]);
        if itemsize == 0 || self.itemsize == 0 {
            return Err(refused("elements of no bytes cannot be viewed as others".into()));
        }
        if extent > 1 && stride != self.itemsize as isize {
            return Err(refused(format!(
                "to view {}-byte elements as {itemsize}-byte ones they must be adjacent; axis \
                 {axis} has stride {stride}",
                self.itemsize
            )));
        }
        let bytes = extent * self.itemsize;
        if !bytes.is_multiple_of(itemsize) {
            return Err(refused(format!(
                "new type not compatible with array: axis {axis} has a size of {bytes} in bytes, \
                 not a multiple of the itemsize {itemsize}"
            )));
        }
        let mut layout = self.clone();
        layout.shape[axis] = bytes / itemsize;
        layout.strides[axis] = itemsize as isize;
        layout.itemsize = itemsize;
        // Axes of extent one are never walked, but numpy shows a stride that fits the new elements.
        for other in 0..self.ndim() {
            if self.shape[other] == 1
                && other != axis
                && layout.strides[other] == self.itemsize as isize
            {
                layout.strides[other] = itemsize as isize;
            }
        }
        Ok(layout)
    }

    /// Returns a view of a part of each element, `itemsize` bytes from `offset` bytes into the
    /// element (the real or imaginary parts of complex numbers, a field of a record).
    ///
    /// # Errors
    /// `InvalidArgument` if the part is not inside the element.
    pub fn part(&self, offset: usize, itemsize: usize) -> Result<Layout> {
        if offset.checked_add(itemsize).is_none_or(|end| end > self.itemsize) {
            return Err(Error::invalid(
                "view",
                format!(
                    "a part of size {itemsize} at offset {offset} is not inside a {}-byte element",
                    self.itemsize
                ),
            ));
        }
        // The sum can only saturate for an array without elements.
        Ok(Layout { offset: self.offset.saturating_add(offset), itemsize, ..self.clone() })
    }
}

type Axes = SmallVec<[(usize, isize); 4]>;

/// Splits and merges axes, given from the slowest to the fastest, so that the order of the elements
/// stays the same. Returns `None` if the elements would have to move.
fn split(old: &[(usize, isize)], new: impl Iterator<Item = usize>) -> Option<SmallVec<[isize; 4]>> {
    let new: Shape = new.collect();
    let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, new.len());
    let (mut i, mut j) = (0, 0);
    while i < old.len() {
        // One group: the smallest sets of old and new axes with the same number of elements.
        let (old_start, new_start) = (i, j);
        let (mut from, mut to) = (old[i].0, *new.get(j)?);
        i += 1;
        j += 1;
        while from != to {
            if to < from {
                to *= *new.get(j)?;
                j += 1;
            } else {
                from *= old.get(i)?.0;
                i += 1;
            }
        }
        let joins = old[old_start..i]
            .windows(2)
            .all(|w| w[1].1.checked_mul(w[1].0 as isize) == Some(w[0].1));
        if !joins {
            return None;
        }
        let mut step = old[i - 1].1;
        for axis in (new_start..j).rev() {
            strides[axis] = step;
            step = step.wrapping_mul(new[axis] as isize);
        }
    }
    // Only axes of extent one remain.
    let last = old.last().map_or(0, |axis| axis.1);
    strides[j..].fill(last);
    Some(strides)
}

// Broadcasting, and the memory order of results.

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

/// Returns the layout of a contiguous result, in the memory order of the operands (numpy's order
/// "K"). Of two axes, the outer one has the larger stride in every operand that is not broadcast
/// along either; if operands disagree, the C order is kept.
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
