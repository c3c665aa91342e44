//! The elements of a reduction, as packed tiles of the type in which they are combined.

use super::blocks::{Routine, unsupported};
use super::cast;
use super::copy::{Place, pointer};
use super::function;
use super::fused::CompiledRow;
use super::indexed::{Picked, Picker};
use super::pairwise::Cell;
use super::strided::stride;
use super::tile::{self, BUFFER, InputOperand, Ready};
use super::values::{Values, Window};
use hal::function::{BinaryFunction, Function, Reduction};
use hal::operation::{ElementMap, Mapped, Operand, Reduce, Strides};
use hal::{DType, Result};
use std::mem::MaybeUninit;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Buffers for the elements of a tile.
#[derive(Debug)]
pub(super) struct Scratch {
    pub(super) tile: tile::Scratch,
    /// Values of a formula.
    window: Window,
}

impl Scratch {
    #[inline]
    pub(super) fn new() -> Scratch {
        Scratch { tile: tile::Scratch::new(), window: Window::default() }
    }
}

/// The source of the elements.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// An array, or the values of a formula at the places where they would be in an array at the address 0.
    Identity(InputOperand<'a>),
    /// The products of the elements of two arrays.
    Product(InputOperand<'a>, InputOperand<'a>, Routine),
    /// Elements selected by indices, and their conversion to the computing type.
    Picked(Picker<'a>, Option<Routine>),
    /// The squared distances between the elements of two arrays.
    SquaredDistance([InputOperand<'a>; 2], Squares),
    /// The positions at which the elements of two arrays are equal.
    Position([InputOperand<'a>; 2], Matches),
}

/// The loops that square a distance.
#[derive(Clone, Copy, Debug)]
struct Squares {
    subtract: Routine,
    multiply: Routine,
}

/// The loops that find matching elements and convert their positions.
#[derive(Clone, Copy, Debug)]
struct Matches {
    equal: Routine,
    /// For types with NaN: the loop that finds NaN.
    differ: Option<Routine>,
    /// Converts from `Int64` to the computing type.
    convert: Option<Routine>,
    /// The position that stands for an element that does not match.
    none: i64,
}

/// A position, in the first bytes, with the type in which positions are combined.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) number: Cell,
    pub(super) is_found: bool,
}

/// The elements of a reduction.
#[derive(Clone, Debug)]
pub(super) struct ReduceInput<'a> {
    source: Source<'a>,
    /// The values of a formula. They are the elements of the source's first array.
    values: Option<Values<'a>>,
    /// The increment of an element's position for an index along each axis.
    positions: Strides,
    /// Converts from the computing type to the type in which elements are combined.
    widen: Option<Routine>,
    compute: usize,
    working: usize,
}

impl<'a> ReduceInput<'a> {
    /// Creates the input of an operation, which is computed in its type and combined in another one. `about`
    /// has one element for each element of the output: the mean or the extreme value that elements are
    /// compared with.
    pub(super) fn new(
        operation: &'a Reduce,
        about: Option<&'a Operand>,
        row: Option<&'a CompiledRow>,
        working: DType,
    ) -> Result<Self> {
        let Reduce { reduction, compute, input, output, .. } = operation;
        let compute = *compute;
        let arithmetic = |function, dtype| {
            function::kernel(Function::Binary(function), dtype)
                .map(|kernel| kernel.run)
                .ok_or_else(|| unsupported(format!("{function:?} of dtype {dtype}")))
        };
        let mut positions = Strides::new();
        let mut values = None;
        if let Mapped::Formula(formula) = input {
            values = Some(Values::new(formula, row));
        }
        let source = match (input, input.elements(), about) {
            (_, Some((ElementMap::Identity, elements)), _) => {
                Source::Identity(InputOperand::new(elements, compute))
            }
            (Mapped::Product(first, second), ..) => {
                let multiply = arithmetic(BinaryFunction::Multiply, compute)?;
                let [first, second] =
                    [first, second].map(|operand| InputOperand::new(operand, compute));
                Source::Product(first, second, multiply)
            }
            (Mapped::Indexed(indexed), ..) => {
                Source::Picked(Picker::new(indexed), cast::conversion(indexed.base.dtype, compute))
            }
            (_, Some((ElementMap::SquaredDeviation, elements)), Some(about)) => {
                let both = [elements, about].map(|operand| InputOperand::new(operand, compute));
                let subtract = arithmetic(BinaryFunction::Subtract, compute)?;
                let multiply = arithmetic(BinaryFunction::Multiply, compute)?;
                Source::SquaredDistance(both, Squares { subtract, multiply })
            }
            (_, Some((ElementMap::Position, elements)), Some(value)) => {
                positions = output.strides.iter().map(|&stride| isize::from(stride == 0)).collect();
                let dtype = elements.dtype;
                let both = [elements, value].map(|operand| InputOperand::new(operand, dtype));
                let is_inexact = dtype.is_inexact();
                let differ = || arithmetic(BinaryFunction::NotEqual, dtype);
                let largest = if compute == DType::Int32 { i64::from(i32::MAX) } else { i64::MAX };
                let matches = Matches {
                    equal: arithmetic(BinaryFunction::Equal, dtype)?,
                    differ: is_inexact.then(differ).transpose()?,
                    convert: cast::conversion(DType::Int64, compute),
                    none: if *reduction == Reduction::Minimum { largest } else { !largest },
                };
                Source::Position(both, matches)
            }
            (input, ..) => return Err(unsupported(format!("a single pass over {input:?}"))),
        };
        let widen = cast::conversion(compute, working);
        let (compute, working) = (compute.size(), working.size());
        Ok(ReduceInput { source, values, positions, widen, compute, working })
    }

    /// Returns the addresses of the elements whose indices are all zero, and their position.
    pub(super) fn addresses(&self) -> [usize; 3] {
        match self.source {
            Source::Identity(first) => [first.address, 0, 0],
            Source::Product(first, second, _)
            | Source::SquaredDistance([first, second], _)
            | Source::Position([first, second], _) => [first.address, second.address, 0],
            Source::Picked(picker, _) => [picker.address, picker.indices.address, 0],
        }
    }

    /// Returns the strides that belong to the addresses.
    pub(super) fn strides(&self) -> [&[isize]; 3] {
        match self.source {
            Source::Identity(first) => [first.strides, &[], &[]],
            Source::Product(first, second, _)
            | Source::SquaredDistance([first, second], _)
            | Source::Position([first, second], _) => {
                [first.strides, second.strides, &self.positions]
            }
            Source::Picked(picker, _) => [picker.strides, picker.indices.strides, &[]],
        }
    }

    /// Returns the distance between elements along an axis, from which the reading order is chosen.
    pub(super) fn distance(&self, axis: usize) -> usize {
        let [first, second, _] = self.strides();
        stride(first, axis).unsigned_abs().max(stride(second, axis).unsigned_abs())
    }

    /// Returns the number of elements of a tile that fits the buffers.
    pub(super) fn capacity(&self) -> usize {
        let largest = match self.source {
            Source::Identity(first) => first.largest(),
            Source::Product(first, second, _) | Source::SquaredDistance([first, second], _) => {
                first.largest().max(second.largest())
            }
            Source::Position([first, _], _) => first.largest().max(size_of::<i64>()),
            Source::Picked(picker, _) => picker.size.max(picker.indices.largest()),
        };
        (BUFFER / largest.max(self.compute).max(self.working)).max(1)
    }

    /// Returns true if the elements along an axis can be combined in place.
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

    /// Returns the values of a formula, if the elements are those.
    pub(super) fn values(&self) -> Option<&Values<'a>> {
        self.values.as_ref()
    }

    /// Returns true if the elements are positions.
    pub(super) fn is_position(&self) -> bool {
        matches!(self.source, Source::Position(..))
    }

    /// Returns the position of the first match in a row, or the position that stands for none.
    ///
    /// # Safety
    /// The same as for [`ReduceInput::load`]; the elements are positions.
    pub(super) unsafe fn first_match(
        &self,
        [first_place, second_place, position]: [Place; 3],
        columns: usize,
        scratch: &mut Scratch,
    ) -> Match {
        let Source::Position(both, matches) = &self.source else {
            return Match { number: Cell([0; 16]), is_found: false };
        };
        let Scratch { tile, window } = scratch;
        let tile::Scratch { arguments: [one, two, three, four], staging, .. } = tile;
        let (flags, others) = (pointer(three.address()), pointer(four.address()));
        // SAFETY: passed on to the caller; buffers that the elements fit.
        let flags = unsafe {
            let extent = (1, columns);
            let x = match &self.values {
                None => both[0].load(first_place, extent, false, true, one, staging),
                Some(values) => {
                    let address = values.load(first_place, extent, window, one.address());
                    Ready::packed(address, columns, both[0].size)
                }
            };
            let y = both[1].load(second_place, (1, columns), false, true, two, staging);
            matches.find([x, y], flags, others, columns);
            from_raw_parts(flags, columns)
        };
        let place = first_flag(flags);
        let number = place.map_or(matches.none, |column| {
            position.address as i64 + column as i64 * position.column as i64
        });
        // In a little-endian number, these are the bytes of a narrower number.
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Match { number: Cell(bytes), is_found: place.is_some() }
    }

    /// Loads a tile into contiguous rows or, without `by_rows`, into one packed block.
    ///
    /// # Safety
    /// The elements must be readable. The tile must fit the buffers unless it can be used in place.
    pub(super) unsafe fn load(
        &self,
        [first_place, second_place, position]: [Place; 3],
        extent: (usize, usize),
        by_rows: bool,
        scratch: &mut Scratch,
    ) -> Ready {
        let Scratch { tile, window } = scratch;
        let tile::Scratch { arguments: [one, two, three, four], value, staging } = tile;
        let by_rows = by_rows && self.widen.is_none();
        let length = extent.0 * extent.1;
        let packed = |address, size: usize| Ready::packed(address, extent.1, size);
        // The values of a formula, in the type of the source's first array.
        let computed = self.values.as_ref().map(|values| {
            // SAFETY: passed on to the caller.
            unsafe { values.load(first_place, extent, window, three.address()) }
        });
        let ready = match &self.source {
            Source::Identity(argument) => match computed {
                // SAFETY: passed on to the caller.
                None => unsafe { argument.load(first_place, extent, by_rows, false, one, staging) },
                // SAFETY: packed values, which fit the buffer.
                Some(values) => unsafe { argument.converted(values, extent, one) },
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
                unsafe { multiply.call(pointer(target), &[x, y, x, y], 0, length) };
                packed(target, self.compute)
            }
            Source::SquaredDistance([first, second], squares) => {
                // SAFETY: passed on to the caller.
                let (x, y) = unsafe {
                    (
                        match computed {
                            None => first.load(first_place, extent, false, true, one, staging),
                            Some(values) => first.converted(values, extent, one),
                        },
                        second.load(second_place, extent, false, true, two, staging),
                    )
                };
                let (distance, target) = (pointer(four.address()), value.address());
                let repeated = u32::from(x.repeated) | u32::from(y.repeated) << 1;
                let [x, y] = [x, y].map(|ready| pointer(ready.address).cast_const());
                let d = distance.cast_const();
                // SAFETY: packed or repeated elements of the computing type, and buffers that they fit.
                unsafe {
                    squares.subtract.call(distance, &[x, y, x, y], repeated, length);
                    squares.multiply.call(pointer(target), &[d, d, d, d], 0, length);
                }
                packed(target, self.compute)
            }
            Source::Position([first, second], matches) => {
                // SAFETY: passed on to the caller.
                let (x, y) = unsafe {
                    (
                        match computed {
                            None => first.load(first_place, extent, false, true, one, staging),
                            Some(values) => first.converted(values, extent, one),
                        },
                        second.load(second_place, extent, false, true, two, staging),
                    )
                };
                let (flags, others) = (pointer(three.address()), pointer(four.address()));
                let target = value.address();
                // SAFETY: packed or repeated elements of the inputs' type, and buffers that they fit.
                unsafe {
                    matches.find([x, y], flags, others, length);
                    matches.number(flags, position, extent, pointer(target).cast());
                }
                match matches.convert {
                    None => packed(target, self.compute),
                    Some(convert) => {
                        let converted = one.address();
                        // SAFETY: packed numbers, which fit the buffer.
                        unsafe { cast::convert(convert, target, converted, length) };
                        packed(converted, self.compute)
                    }
                }
            }
            Source::Picked(picker, convert) => {
                let tile = Picked { base: first_place, indices: second_place, extent };
                let mut target = two.address();
                // SAFETY: passed on to the caller.
                unsafe {
                    let target = Place::packed(target, extent.1, picker.size);
                    picker.gather(&tile, target, one, staging);
                }
                if let Some(convert) = *convert {
                    let source = std::mem::replace(&mut target, value.address());
                    // SAFETY: packed elements, which fit the buffer.
                    unsafe { cast::convert(convert, source, target, length) };
                }
                packed(target, self.compute)
            }
        };
        let Some(widen) = self.widen else { return ready };
        // The values of a formula are in `three`.
        let target = four.address();
        // SAFETY: packed elements, which fit the buffer.
        unsafe { cast::convert(widen, ready.address, target, length) };
        packed(target, self.working)
    }
}

impl Matches {
    /// Finds the elements of `x` that equal the elements of `y`, or are NaN. The result has one byte per
    /// element.
    ///
    /// # Safety
    /// Both are packed, or one repeated element; `flags` and `others` have `length` bytes.
    unsafe fn find(&self, [x, y]: [Ready; 2], flags: *mut u8, others: *mut u8, length: usize) {
        let same = y.repeated;
        let repeated = [x.repeated, y.repeated].map(u32::from);
        let [x, y] = [x, y].map(|ready| pointer(ready.address).cast_const());
        let differ = |it: *const u8, repeated: u32, length| {
            let Some(differ) = self.differ else { return false };
            // SAFETY: passed on to the caller.
            unsafe { differ.call(others, &[it, it, it, it], repeated * 3, length) };
            true
        };
        // SAFETY: the loop has written the byte.
        if same && differ(y, 1, 1) && unsafe { others.read() } != 0 {
            // SAFETY: passed on to the caller; the other loop writes all bytes.
            unsafe {
                differ(x, repeated[0], length);
                others.copy_to_nonoverlapping(flags, length);
            }
            return;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.equal.call(flags, &[x, y, x, y], repeated[0] | repeated[1] << 1, length) };
        // If the minimum or maximum is not NaN, no element is NaN.
        if same || !differ(x, repeated[0], length) {
            return;
        }
        // SAFETY: both loops have written all bytes.
        let (flags, others) =
            unsafe { (from_raw_parts_mut(flags, length), from_raw_parts(others, length)) };
        for (flag, other) in flags.iter_mut().zip(others) {
            *flag |= other;
        }
    }

    /// Writes the positions of the elements that `flags` marks, and `none` for the others.
    ///
    /// # Safety
    /// `flags` and `numbers` have an entry for each element.
    unsafe fn number(
        &self,
        flags: *const u8,
        position: Place,
        (rows, columns): (usize, usize),
        numbers: *mut i64,
    ) {
        for row in 0..rows {
            let first = position.address as i64 + row as i64 * position.row as i64;
            let start = row * columns;
            // SAFETY: a row of the bytes, and of the numbers, which are written below.
            let (flags, numbers) = unsafe {
                (
                    from_raw_parts(flags.add(start), columns),
                    from_raw_parts_mut(numbers.add(start).cast::<MaybeUninit<i64>>(), columns),
                )
            };
            for (column, (number, &flag)) in numbers.iter_mut().zip(flags).enumerate() {
                let place = first + column as i64 * position.column as i64;
                number.write(if flag == 0 { self.none } else { place });
            }
        }
    }
}

/// Returns the index of the first byte that is not zero.
pub(super) fn first_flag(flags: &[u8]) -> Option<usize> {
    let (words, rest) = flags.as_chunks::<8>();
    // Most words have none, which is detected eight bytes at a time.
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        if word != 0 {
            return Some(8 * number + word.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|&flag| flag != 0).map(|place| flags.len() - rest.len() + place)
}
