//! Loops that combine elements into fewer ones: whole blocks, rows, and running values.

use super::multiversion::{elements, select_masked, select_variant};
use super::number::{Number, with_number};
use hal::DType;
use hal::function::Reduction;

/// A way to combine two elements into one.
trait Combine<T: Number> {
    /// True if the combination propagates NaN.
    const NAN_WINS: bool;
    /// Returns the combination of two elements.
    fn apply(x: T, y: T) -> T;
    /// Returns the combination with an element that is not NaN: one instruction for floats.
    fn apply_number(x: T, y: T) -> T;
}

macro_rules! combinations {
    ($($name:ident, $method:ident, $nan:literal, |$x:ident, $y:ident| $number:expr;)*) => {
        $(
            struct $name;

            impl<T: Number> Combine<T> for $name {
                const NAN_WINS: bool = $nan && matches!(T::DTYPE, DType::Float32 | DType::Float64);
                #[inline(always)]
                fn apply(x: T, y: T) -> T {
                    x.$method(y)
                }
                #[inline(always)]
                fn apply_number($x: T, $y: T) -> T {
                    $number
                }
            }
        )*
    };
}

combinations! {
    Sum, add, false, |x, y| x.add(y);
    Product, multiply, false, |x, y| x.multiply(y);
    Minimum, minimum, true, |x, y| if y.less(x) { y } else { x };
    Maximum, maximum, true, |x, y| if x.less(y) { y } else { x };
}

/// The loops of one reduction of one element type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combiner {
    /// Combines one or more contiguous elements into one. The arguments are the elements, the length and the
    /// result.
    pub(super) whole: unsafe fn(*const u8, usize, *mut u8),
    /// The number of elements of which `whole` makes one partial result. It combines the partial results
    /// pairwise.
    pub(super) block: usize,
    /// Combines each element of the second array into the corresponding element of the first one. The last
    /// argument is the length.
    pub(super) rows: unsafe fn(*mut u8, *const u8, usize),
    /// Computes running values down the columns of packed rows: see [`Running`].
    pub(super) running: unsafe fn(Running),
}

/// The arguments of a loop that computes running values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    /// The elements, row after row.
    pub(super) source: *const u8,
    /// The values. They may overwrite the elements.
    pub(super) target: *mut u8,
    /// One element per column: the value of all rows before, which is updated.
    pub(super) carry: *mut u8,
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of columns.
    pub(super) columns: usize,
    /// True if a value excludes the element in its own row.
    pub(super) exclusive: bool,
}

/// Combines up to sixteen rounds of `LANES` elements, each lane separately, and then the lanes pairwise. This
/// is as exact as pairwise summation by blocks of 128 in eight lanes.
#[inline(always)]
fn block<T: Number, C: Combine<T>, const LANES: usize>(data: &[T]) -> T {
    let (rounds, rest) = data.as_chunks::<LANES>();
    let Some((&first, rounds)) = rounds.split_first() else {
        return short::<T, C>(rest);
    };
    let mut lanes = first;
    if C::NAN_WINS {
        // All bits set is a NaN, and selecting it takes a single instruction.
        // SAFETY: every bit pattern is a value of the type, which has at most 16 bytes.
        let marked: T = unsafe { std::mem::transmute_copy(&[u8::MAX; 16]) };
        let mut marks = [T::from_u8(0); LANES];
        for round in rounds {
            for ((lane, mark), &element) in lanes.iter_mut().zip(&mut marks).zip(round) {
                *lane = C::apply_number(*lane, element);
                *mark = if element.is_nan() { marked } else { *mark };
            }
        }
        if marks.iter().fold(false, |any, mark| any | mark.is_nan())
            && let Some(&nan) = data.iter().find(|element| element.is_nan())
        {
            return nan;
        }
    } else {
        for round in rounds {
            for (lane, &element) in lanes.iter_mut().zip(round) {
                *lane = C::apply(*lane, element);
            }
        }
    }
    for (lane, &element) in lanes.iter_mut().zip(rest) {
        *lane = C::apply(*lane, element);
    }
    // Each step writes to the other array. In place, a minimum would become a conditional store, and the
    // loads of the next step would have to wait for it.
    let mut other = lanes;
    let (mut from, mut to) = (&mut lanes, &mut other);
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        let (left, right) = from.split_at(width);
        for ((target, &x), &y) in to.iter_mut().zip(left).zip(right) {
            *target = C::apply(x, y);
        }
        std::mem::swap(&mut from, &mut to);
    }
    from[0]
}

/// Combines fewer than 64 elements in up to four lanes.
#[inline(always)]
fn short<T: Number, C: Combine<T>>(data: &[T]) -> T {
    let (rounds, rest) = data.as_chunks::<4>();
    let head = rounds.split_first().map(|(&first, rounds)| {
        let lanes = rounds.iter().fold(first, |mut lanes, round| {
            for (lane, &element) in lanes.iter_mut().zip(round) {
                *lane = C::apply(*lane, element);
            }
            lanes
        });
        C::apply(C::apply(lanes[0], lanes[1]), C::apply(lanes[2], lanes[3]))
    });
    let tail =
        rest.split_first().map(|(&first, rest)| rest.iter().fold(first, |x, &y| C::apply(x, y)));
    match (head, tail) {
        (Some(head), Some(tail)) => C::apply(head, tail),
        (Some(value), None) | (None, Some(value)) => value,
        (None, None) => T::from_u8(0),
    }
}

/// Returns the number of lanes of a block: as many as fit into eight vector registers, at most 64.
const fn lanes<T>() -> usize {
    match size_of::<T>() {
        ..=4 => 64,
        8 => 32,
        _ => 16,
    }
}

/// Returns the number of elements of a block.
const fn most<T>() -> usize {
    lanes::<T>() * 16
}

/// # Safety
/// See [`Combiner::whole`]; no more than sixteen rounds of elements.
#[inline(always)]
unsafe fn block_body<T: Number, C: Combine<T>>(data: *const u8, length: usize, result: *mut u8) {
    // SAFETY: passed on to the caller.
    let data = unsafe { elements::<T>(data, length) };
    let value = match lanes::<T>() {
        64 => block::<T, C, 64>(data),
        32 => block::<T, C, 32>(data),
        _ => block::<T, C, 16>(data),
    };
    // SAFETY: passed on to the caller.
    unsafe { result.cast::<T>().write(value) };
}

/// Combines blocks pairwise, in the order of a binary counter. The loop over a block is a separate function:
/// if it were inlined here, its lanes would not all stay in registers.
///
/// # Safety
/// See [`Combiner::whole`].
unsafe fn whole<T: Number, C: Combine<T>>(data: *const u8, length: usize, result: *mut u8) {
    let most = most::<T>();
    let block = if C::NAN_WINS { select_compared::<T, C>() } else { select_block::<T, C>() };
    if length <= most {
        // SAFETY: passed on to the caller.
        return unsafe { block(data, length, result) };
    }
    let mut levels = [T::from_u8(0); 64];
    let mut count = 0u64;
    for start in (0..length).step_by(most) {
        let mut value = T::from_u8(0);
        let part = data.wrapping_add(start * size_of::<T>());
        // SAFETY: some of the elements, and a value of their type.
        unsafe { block(part, most.min(length - start), (&raw mut value).cast()) };
        let complete = count.trailing_ones() as usize;
        for &level in &levels[..complete] {
            value = C::apply(level, value);
        }
        levels[complete & 63] = value;
        count += 1;
    }
    let lowest = count.trailing_zeros() as usize;
    let mut value = levels[lowest & 63];
    for (level, &other) in levels.iter().enumerate().skip(lowest + 1) {
        if count >> level & 1 == 1 {
            value = C::apply(other, value);
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { result.cast::<T>().write(value) };
}

/// # Safety
/// See [`Combiner::rows`]; the arrays must be disjoint.
#[inline(always)]
unsafe fn rows_body<T: Number, C: Combine<T>>(values: *mut u8, row: *const u8, length: usize) {
    // SAFETY: passed on to the caller.
    let (values, row) = unsafe {
        (std::slice::from_raw_parts_mut(values.cast::<T>(), length), elements::<T>(row, length))
    };
    for (value, &element) in values.iter_mut().zip(row) {
        *value = C::apply(*value, element);
    }
}

/// # Safety
/// See [`Running`].
#[inline(always)]
unsafe fn running_body<T: Number, C: Combine<T>>(running: Running) {
    let Running { source, target, carry, rows, columns, exclusive } = running;
    let (source, target, carry) = (source.cast::<T>(), target.cast::<T>(), carry.cast::<T>());
    let step = |before: T, index: usize| {
        // SAFETY: an element of a row, read before the value overwrites it.
        let after = C::apply(before, unsafe { *source.add(index) });
        // SAFETY: the place of the value of the element.
        unsafe { *target.add(index) = if exclusive { before } else { after } };
        after
    };
    if columns == 1 {
        // SAFETY: one column has one carried value.
        let last = (0..rows).fold(unsafe { *carry }, step);
        // SAFETY: as above.
        unsafe { *carry = last };
        return;
    }
    for row in 0..rows {
        for column in 0..columns {
            // SAFETY: one carried value for each column.
            let carry = unsafe { &mut *carry.add(column) };
            *carry = step(*carry, row * columns + column);
        }
    }
}

/// # Safety
/// See [`Running`].
unsafe fn running<T: Number, C: Combine<T>>(arguments: Running) {
    // SAFETY: passed on to the caller.
    unsafe { running_body::<T, C>(arguments) }
}

select_variant!(select_block<T: Number, C: Combine<T>>, block_body,
    unsafe fn(*const u8, usize, *mut u8), (data: *const u8, length: usize, result: *mut u8));
select_masked!(select_compared<T: Number, C: Combine<T>>, block_body, select_block,
    unsafe fn(*const u8, usize, *mut u8), (data: *const u8, length: usize, result: *mut u8));
select_variant!(select_rows<T: Number, C: Combine<T>>, rows_body,
    unsafe fn(*mut u8, *const u8, usize), (values: *mut u8, row: *const u8, length: usize));

fn combiner_of<T: Number, C: Combine<T>>() -> Combiner {
    Combiner {
        whole: whole::<T, C>,
        block: most::<T>(),
        rows: select_rows::<T, C>(),
        running: running::<T, C>,
    }
}

fn of_type<T: Number>(reduction: Reduction) -> Option<Combiner> {
    Some(match reduction {
        Reduction::Sum => combiner_of::<T, Sum>(),
        Reduction::Product => combiner_of::<T, Product>(),
        Reduction::Minimum => combiner_of::<T, Minimum>(),
        Reduction::Maximum => combiner_of::<T, Maximum>(),
        _ => return None,
    })
}

/// Returns the loops of a reduction that keeps the element type, or `None` for records.
pub(super) fn combiner(reduction: Reduction, dtype: DType) -> Option<Combiner> {
    with_number!(dtype, T => of_type::<T>(reduction), else None)
}
