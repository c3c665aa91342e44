//! Views by indices and slices, with Python's rules.

use super::{Layout, MAX_AXES, shape_text};
use hal::error::{Error, Result};
use hal::operation::{Shape, Strides};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A slice `start:stop:step` as in Python; `None` is an omitted part.
///
/// A slice that another language has parsed, here `[::-1]`:
///
/// ```
/// use gpuarray::{DeviceArray, SliceBounds};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let reversed = SliceBounds { start: None, stop: None, step: Some(-1) };
/// let x = DeviceArray::from_slice(&device, &[1, 2, 3])?;
/// assert_eq!(x.index(&[reversed.into()])?.to_vec()?, [3, 2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceBounds {
    /// The first index; counts from the end if negative.
    pub start: Option<isize>,
    /// The index after the last one; counts from the end if negative.
    pub stop: Option<isize>,
    /// The step; 1 if omitted, and never zero.
    pub step: Option<isize>,
}

/// One entry of an index expression.
///
/// The last column of a table, as a table of one column:
///
/// ```
/// use gpuarray::{DeviceArray, IndexItem, s};
///
/// # fn main() -> gpuarray::Result<()> {
/// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
/// let table = DeviceArray::from_shaped(&device, &[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// let column = table.index(&s![IndexItem::Ellipsis, -1, IndexItem::NewAxis])?;
/// assert_eq!(column.shape(), [2, 1]);
/// assert_eq!(column.to_vec()?, [3, 6]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexItem {
    /// One index. It removes the axis, and counts from the end if negative.
    At(isize),
    /// A range of an axis.
    Slice(SliceBounds),
    /// A new axis of extent 1.
    NewAxis,
    /// All axes without another entry; at most once.
    Ellipsis,
}

impl From<SliceBounds> for IndexItem {
    fn from(bounds: SliceBounds) -> Self {
        IndexItem::Slice(bounds)
    }
}

impl From<RangeFull> for SliceBounds {
    fn from(_: RangeFull) -> Self {
        SliceBounds::default()
    }
}

impl From<RangeFull> for IndexItem {
    fn from(range: RangeFull) -> Self {
        SliceBounds::from(range).into()
    }
}

/// Conversion of an index to `isize`. A value that does not fit becomes the largest or smallest `isize`, which is
/// outside every axis.
trait Place: Copy {
    fn place(self) -> isize;
}

/// Indices and ranges of integer types, including `i32`, the type of untyped literals.
macro_rules! indices {
    ($($index:ty),*) => {$(
        impl Place for $index {
            fn place(self) -> isize {
                isize::try_from(self).unwrap_or(isize::MAX)
            }
        }

        impl From<$index> for IndexItem {
            fn from(index: $index) -> Self {
                IndexItem::At(index.place())
            }
        }

        indices!(@ $index: Range |it| Some(it.start), Some(it.end));
        indices!(@ $index: RangeInclusive |it| Some(*it.start()), behind(*it.end()));
        indices!(@ $index: RangeFrom |it| Some(it.start), None::<$index>);
        indices!(@ $index: RangeTo |it| None::<$index>, Some(it.end));
        indices!(@ $index: RangeToInclusive |it| None::<$index>, behind(it.end));
    )*};
    (@ $index:ty: $range:ident |$it:ident| $start:expr, $stop:expr) => {
        impl From<$range<$index>> for SliceBounds {
            fn from($it: $range<$index>) -> Self {
                let (start, stop) = ($start.map(Place::place), $stop.map(Place::place));
                SliceBounds { start, stop, step: None }
            }
        }

        impl From<$range<$index>> for IndexItem {
            fn from(range: $range<$index>) -> Self {
                SliceBounds::from(range).into()
            }
        }
    };
}
indices!(i32, isize, usize);

/// Returns the index after an inclusive end; `None` for -1, the last element.
fn behind(end: impl Place) -> Option<isize> {
    Some(end.place()).filter(|it| *it != -1).map(|it| it.saturating_add(1))
}

/// Returns the entries of an index expression: indices, ranges with an optional step after `;`, and
/// [`IndexItem`]s.
///
/// ```
/// use gpuarray::{SliceBounds, s};
///
/// let rows = 1_usize..=4;
/// assert_eq!(s![rows, ..;2, -1].len(), 3);
/// assert_eq!(s![2..8;3], [SliceBounds { start: Some(2), stop: Some(8), step: Some(3) }.into()]);
/// ```
///
/// A single index does not take a step:
///
/// ```compile_fail,E0277
/// let items = gpuarray::s![3;2];
/// ```
#[macro_export]
macro_rules! s {
    (@ $item:expr) => { $crate::IndexItem::from($item) };
    (@ $item:expr; $step:expr) => {
        $crate::IndexItem::from($crate::SliceBounds::from($item).step_by($step))
    };
    ($($item:expr $(; $step:expr)?),* $(,)?) => { [$($crate::s!(@ $item $(; $step)?)),*] };
}

impl SliceBounds {
    /// Returns the slice with another step.
    #[must_use]
    pub const fn step_by(self, step: isize) -> SliceBounds {
        SliceBounds { step: Some(step), ..self }
    }

    /// Returns the first index, the number of indices and the step on an axis of `extent` elements.
    ///
    /// # Errors
    /// `InvalidArgument` for a step of zero; `Overflow` for an extent larger than any array's.
    pub fn resolve(self, extent: usize) -> Result<(usize, usize, isize)> {
        let step = self.step.unwrap_or(1);
        if step == 0 {
            return Err(Error::invalid("slice", "slice step cannot be zero"));
        }
        // Extents of arrays fit in isize, so the sums below fit, except for bounds far outside.
        let n = isize::try_from(extent).map_err(|_| {
            let what = format!("an axis of extent {extent} exceeds the address space");
            Error::overflow("slice", what)
        })?;
        let clamp = |bound: isize, low: isize, high: isize| {
            let bound = if bound < 0 { bound.saturating_add(n) } else { bound };
            bound.clamp(low, high)
        };
        let (start, stop) = if step > 0 {
            (self.start.map_or(0, |b| clamp(b, 0, n)), self.stop.map_or(n, |b| clamp(b, 0, n)))
        } else {
            (
                self.start.map_or(n - 1, |b| clamp(b, -1, n - 1)),
                self.stop.map_or(-1, |b| clamp(b, -1, n - 1)),
            )
        };
        let distance = if step > 0 { stop - start } else { start - stop };
        let count =
            if distance <= 0 { 0 } else { 1 + (distance as usize - 1) / step.unsigned_abs() };
        Ok((if count == 0 { 0 } else { start as usize }, count, step))
    }
}

impl Layout {
    /// Returns the view that an index expression selects; omitted axes stay whole.
    ///
    /// # Errors
    /// `IndexOutOfRange` for too many entries, a second ellipsis, an index outside its axis or
    /// more than [`MAX_AXES`] axes; `InvalidArgument` for a slice step of zero.
    pub fn index(&self, items: &[IndexItem]) -> Result<Layout> {
        let consumed =
            items.iter().filter(|i| matches!(i, IndexItem::At(_) | IndexItem::Slice(_))).count();
        if consumed > self.ndim() {
            return Err(Error::index(
                "index",
                format!(
                    "too many indices: array is {}-dimensional, but {consumed} were indexed",
                    self.ndim()
                ),
            ));
        }
        let whole = self.ndim() - consumed;
        let mut shape = Shape::new();
        let mut strides = Strides::new();
        // Strides of an empty array may have any value, in which case the sum is not used.
        let mut offset = self.offset as isize;
        let mut axis = 0;
        let mut seen_ellipsis = false;
        for item in items {
            match *item {
                IndexItem::At(index) => {
                    offset = offset.wrapping_add(self.element_offset(axis, index)?);
                    axis += 1;
                }
                IndexItem::Slice(bounds) => {
                    let (start, count, step) = bounds.resolve(self.shape[axis])?;
                    // With at most one element, the stride is never walked.
                    let stride = self.strides[axis].saturating_mul(step);
                    let moved = self.strides[axis].wrapping_mul(start as isize);
                    offset = offset.wrapping_add(moved);
                    shape.push(count);
                    strides.push(stride);
                    axis += 1;
                }
                IndexItem::NewAxis => {
                    shape.push(1);
                    strides.push(0);
                }
                IndexItem::Ellipsis => {
                    if seen_ellipsis {
                        return Err(Error::index("index", "more than one ellipsis in an index"));
                    }
                    seen_ellipsis = true;
                    shape.extend_from_slice(&self.shape[axis..axis + whole]);
                    strides.extend_from_slice(&self.strides[axis..axis + whole]);
                    axis += whole;
                }
            }
        }
        shape.extend_from_slice(&self.shape[axis..]);
        strides.extend_from_slice(&self.strides[axis..]);
        if shape.len() > MAX_AXES {
            return Err(Error::index(
                "index",
                format!("the result has ndim {}; at most {MAX_AXES} is allowed", shape.len()),
            ));
        }
        let empty = shape.contains(&0);
        Ok(Layout {
            shape,
            strides,
            offset: if empty { self.offset } else { offset as usize },
            itemsize: self.itemsize,
        })
    }

    fn element_offset(&self, axis: usize, index: isize) -> Result<isize> {
        let extent = self.shape[axis];
        let wrapped = if index < 0 { index.saturating_add(extent as isize) } else { index };
        if wrapped < 0 || wrapped as usize >= extent {
            return Err(Error::index(
                "index",
                format!("index {index} is out of bounds for axis {axis} with size {extent}"),
            ));
        }
        Ok(wrapped.wrapping_mul(self.strides[axis]))
    }

    /// Returns the number of an axis. A negative `axis` counts from the end.
    ///
    /// # Errors
    /// `IndexOutOfRange` if the axis does not exist.
    pub fn normalize_axis(&self, axis: isize) -> Result<usize> {
        normalize_axis(axis, self.ndim())
    }

    /// Returns the view with its axes in another order.
    ///
    /// # Errors
    /// `InvalidArgument` unless `axes` names every axis once.
    pub fn permute(&self, axes: &[usize]) -> Result<Layout> {
        let mut seen = [false; MAX_AXES];
        let fits = axes.len() == self.ndim()
            && axes.iter().all(|&a| a < self.ndim() && !std::mem::replace(&mut seen[a], true));
        if !fits {
            return Err(Error::invalid(
                "transpose",
                format!(
                    "axes {} don't match an array of shape {}",
                    shape_text(axes),
                    shape_text(&self.shape)
                ),
            ));
        }
        Ok(Layout {
            shape: axes.iter().map(|&a| self.shape[a]).collect(),
            strides: axes.iter().map(|&a| self.strides[a]).collect(),
            offset: self.offset,
            itemsize: self.itemsize,
        })
    }

    /// Returns the view with its axes in reverse order.
    pub fn reversed_axes(&self) -> Layout {
        Layout {
            shape: self.shape.iter().rev().copied().collect(),
            strides: self.strides.iter().rev().copied().collect(),
            offset: self.offset,
            itemsize: self.itemsize,
        }
    }
}

/// Returns the number of an axis among `ndim`. A negative `axis` counts from the end.
///
/// # Errors
/// `IndexOutOfRange` if the axis does not exist.
pub fn normalize_axis(axis: isize, ndim: usize) -> Result<usize> {
    let wrapped = if axis < 0 { axis.saturating_add(ndim as isize) } else { axis };
    usize::try_from(wrapped).ok().filter(|&a| a < ndim).ok_or_else(|| {
        Error::index("axis", format!("axis {axis} is out of bounds for array of dimension {ndim}"))
    })
}
