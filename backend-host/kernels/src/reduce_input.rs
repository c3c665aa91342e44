//! The elements of a reduction, as packed tiles of the type that they are combined in.

use super::cast;
use super::copy::{Place, pointer};
use super::indexed::{Picked, Picker};
use super::kernel;
use super::multiversion::Loop;
use super::strided::stride;
use super::tile::{Argument, BUFFER, Ready, Scratch};
use super::unsupported;
use hal::function::{BinaryFunction, Function};
use hal::operation::Mapped;
use hal::{DType, Result};

/// Where the elements come from.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// An array.
    Identity(Argument<'a>),
    /// The products of two arrays' elements.
    Product(Argument<'a>, Argument<'a>, Loop),
    /// Elements named by indices, and how they become the computing type.
    Picked(Picker<'a>, Option<Loop>),
}

/// The elements of a reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReduceInput<'a> {
    source: Source<'a>,
    /// From the computing type to the one that elements are combined in.
    widen: Option<Loop>,
    compute: usize,
    working: usize,
}

impl<'a> ReduceInput<'a> {
    /// The elements of `mapped`, computed in one type and combined in another.
    pub(super) fn new(mapped: &'a Mapped, compute: DType, working: DType) -> Result<Self> {
        let source = match mapped {
            Mapped::Identity(operand) => Source::Identity(Argument::new(operand, compute)),
            Mapped::Product(first, second) => {
                let multiply = kernel::kernel(Function::Binary(BinaryFunction::Multiply), compute)
                    .ok_or_else(|| unsupported(format!("products of dtype {compute}")))?;
                let [first, second] =
                    [first, second].map(|operand| Argument::new(operand, compute));
                Source::Product(first, second, multiply.run)
            }
            Mapped::Indexed(indexed) => {
                Source::Picked(Picker::new(indexed), cast::conversion(indexed.base.dtype, compute))
            }
        };
        let widen = cast::conversion(compute, working);
        Ok(ReduceInput { source, widen, compute: compute.size(), working: working.size() })
    }

    /// The addresses of the elements whose indices are all zero.
    pub(super) fn addresses(&self) -> [usize; 2] {
        match self.source {
            Source::Identity(first) => [first.address, 0],
            Source::Product(first, second, _) => [first.address, second.address],
            Source::Picked(picker, _) => [picker.address, picker.indices.address],
        }
    }

    /// The strides that belong to the addresses.
    pub(super) fn strides(&self) -> [&'a [isize]; 2] {
        match self.source {
            Source::Identity(first) => [first.strides, &[]],
            Source::Product(first, second, _) => [first.strides, second.strides],
            Source::Picked(picker, _) => [picker.strides, picker.indices.strides],
        }
    }

    /// The distance of the elements along an axis, to judge in which order to read them.
    pub(super) fn distance(&self, axis: usize) -> usize {
        let [first, second] = self.strides().map(|strides| stride(strides, axis).unsigned_abs());
        first.max(second)
    }

    /// The number of elements of a tile that fits the buffers.
    pub(super) fn capacity(&self) -> usize {
        let largest = match self.source {
            Source::Identity(first) => first.largest(),
            Source::Product(first, second, _) => first.largest().max(second.largest()),
            Source::Picked(picker, _) => picker.size.max(picker.indices.largest()),
        };
        (BUFFER / largest.max(self.compute).max(self.working)).max(1)
    }

    /// True if the elements along an axis lie in memory as they are combined.
    pub(super) fn is_direct(&self, axis: usize) -> bool {
        match self.source {
            Source::Identity(first) => {
                first.convert.is_none()
                    && self.widen.is_none()
                    && stride(first.strides, axis) == first.size as isize
            }
            _ => false,
        }
    }

    /// Brings a tile into contiguous rows, or, without `by_rows`, into one packed block.
    ///
    /// # Safety
    /// The elements must be readable; the tile must fit the buffers unless all of it is
    /// direct.
    pub(super) unsafe fn load(
        &self,
        [first_place, second_place]: [Place; 2],
        extent: (usize, usize),
        by_rows: bool,
        scratch: &mut Scratch,
    ) -> Ready {
        let Scratch { arguments: [one, two, three, _], value, staging } = scratch;
        let by_rows = by_rows && self.widen.is_none();
        let length = extent.0 * extent.1;
        let packed = |address, size: usize| Ready {
            address,
            row: (extent.1 * size) as isize,
            repeated: false,
            packed: true,
        };
        let ready = match &self.source {
            // SAFETY: passed on to the caller.
            Source::Identity(argument) => unsafe {
                argument.load(first_place, extent, by_rows, false, one, staging)
            },
            Source::Product(first, second, multiply) => {
                // SAFETY: passed on to the caller.
                let [x, y] = unsafe {
                    [
                        first.load(first_place, extent, false, false, one, staging),
                        second.load(second_place, extent, false, false, two, staging),
                    ]
                }
                .map(|ready| pointer(ready.address).cast_const());
                let target = value.address();
                // SAFETY: packed elements of the computing type, which fit the buffer.
                unsafe { multiply(pointer(target), &[x, y, x, y], 0, length) };
                packed(target, self.compute)
            }
            Source::Picked(picker, convert) => {
                let tile = Picked { base: first_place, indices: second_place, extent };
                let mut target = two.address();
                // SAFETY: passed on to the caller.
                unsafe { picker.gather(&tile, target, one, staging) };
                if let Some(convert) = *convert {
                    let source = std::mem::replace(&mut target, value.address());
                    // SAFETY: packed elements, which fit the buffer.
                    unsafe { cast::convert(convert, source, target, length) };
                }
                packed(target, self.compute)
            }
        };
        let Some(widen) = self.widen else { return ready };
        let target = three.address();
        // SAFETY: packed elements, which fit the buffer.
        unsafe { cast::convert(widen, ready.address, target, length) };
        packed(target, self.working)
    }
}
