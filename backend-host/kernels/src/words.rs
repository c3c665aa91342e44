//! Sorts real numbers of every type as integers in the same order.
//!
//! The sort of integers disregards the order of equal ones. Zeros of both signs compare equal, and so do NaNs with
//! different bits; their original order is restored afterwards. To sort indices, each integer is joined with its index.

use super::merge::memory;
use super::multiversion::select_variant;
use super::number::{Convert as _, Number, Truth, for_each};
use super::parallel::Workers;
use super::quicksort::{self, Word};
use hal::Result;
use hal::dtype::narrow::Narrow;

/// The number of elements from which a row is sorted by several threads.
pub(super) const LONG: usize = 1 << 16;

/// An element with an integer that has its place in numpy's order: NaN is last, and zeros are equal.
pub(super) trait Ordered: Number {
    /// The integer, of 32 or 64 bits.
    type Word: Word;

    /// Returns the integer of an element: `Word::MAX` for NaN.
    fn word(self) -> Self::Word;
    /// Returns the element of an integer: zero without a sign, and any NaN.
    fn of_word(word: Self::Word) -> Self;
    /// Returns true if [`Ordered::of_word`] may return another element: for negative zero and NaN.
    #[inline(always)]
    fn is_ambiguous(self) -> bool {
        false
    }
}

/// Integers, by an exclusive or that orders unsigned integers of the word's size as signed ones.
macro_rules! integers {
    ($($integer:ident $word:ident $flip:expr;)*) => {$(
        impl Ordered for $integer {
            type Word = $word;

            #[inline(always)]
            fn word(self) -> $word {
                self as $word ^ $flip
            }
            #[inline(always)]
            fn of_word(word: $word) -> Self {
                (word ^ $flip) as $integer
            }
        }
    )*};
}
integers! {
    i8 i32 0;
    u8 i32 0;
    i16 i32 0;
    u16 i32 0;
    i32 i32 0;
    u32 i32 i32::MIN;
    i64 i64 0;
    u64 i64 i64::MIN;
}

impl Ordered for Truth {
    type Word = i32;

    #[inline(always)]
    fn word(self) -> i32 {
        self.get().into()
    }
    #[inline(always)]
    fn of_word(word: i32) -> Self {
        Truth::new(word != 0)
    }
}

/// Floating-point numbers, whose sign and magnitude become a negative or positive magnitude.
macro_rules! floats {
    ([$word:ident, $unsigned:ident, $bits:ident, $of_bits:ident] $dtype:ident, $float:ty) => {
        impl Ordered for $float {
            type Word = $word;

            #[inline(always)]
            fn word(self) -> $word {
                let sign = Number::negative(<$float>::from_u8(0)).$bits();
                let bits = self.$bits();
                let magnitude = $word::from_ne_bytes($unsigned::from(bits & !sign).to_ne_bytes());
                // All bits of a negative number.
                let negative = -$word::from(bits & sign != 0);
                if Number::is_nan(self) { $word::MAX } else { (magnitude ^ negative) - negative }
            }
            #[inline(always)]
            fn of_word(word: $word) -> Self {
                let sign = Number::negative(<$float>::from_u8(0)).$bits();
                let magnitude = word.unsigned_abs() as _;
                <$float>::$of_bits(if word < 0 { magnitude | sign } else { magnitude })
            }
            #[inline(always)]
            fn is_ambiguous(self) -> bool {
                let sign = Number::negative(<$float>::from_u8(0)).$bits();
                Number::is_nan(self) | (self.$bits() == sign)
            }
        }
    };
}
floats!([i32, u32, to_bits, from_bits] Float32, f32);
floats!([i64, u64, to_bits, from_bits] Float64, f64);
for_each!(narrow => floats [i32, u32, bits, of_bits]);

/// The number of elements from which a row may be sorted by counting.
const FEWEST: usize = 256;
/// The most values that are counted.
const MOST_VALUES: u64 = 1 << 16;

/// Memory that rows use in turn.
#[derive(Debug, Default)]
pub(super) struct Space<W> {
    words: Vec<W>,
    joined: Vec<i64>,
}

/// Returns a count of zero for each value.
fn zeros(values: usize) -> Result<Vec<usize>> {
    let mut counts = memory(values, 1)?;
    counts.resize(values, 0);
    Ok(counts)
}

/// Returns two rows of integers of a vector, which grows if necessary.
fn two_rows<W: Word>(space: &mut Vec<W>, length: usize) -> Result<(&mut [W], &mut [W])> {
    if space.len() < 2 * length {
        *space = memory(length, 2)?;
        space.resize(2 * length, W::default());
    }
    Ok(space[..2 * length].split_at_mut(length))
}

/// Sorts integers, with several threads if there are many.
fn sort_words<W: Word>(row: &mut [W], other: &mut [W], workers: &Workers<'_>) {
    if row.len() < LONG {
        quicksort::sort(row, other, W::steps(), None);
    } else {
        workers.scope(|scope| quicksort::sort(row, other, W::steps(), scope));
    }
}

/// Sorts the elements of one row into another.
///
/// # Errors
/// `OutOfMemory` if the system cannot provide memory for the integers.
///
/// # Safety
/// Both rows must have this number of elements. They are the same or do not overlap.
pub(super) unsafe fn sort<T: Ordered>(
    from: *const T,
    to: *mut T,
    length: usize,
    space: &mut Space<T::Word>,
    workers: &Workers<'_>,
) -> Result<()> {
    // SAFETY: passed on to the caller; the slice is not used after the first write.
    let elements = unsafe { std::slice::from_raw_parts(from, length) };
    let kept;
    if let Some((least, values)) = few_values(elements) {
        kept = ambiguous(elements)?;
        let mut counts = zeros(values)?;
        let place = |element: &T| element.word().distance(least) as usize;
        elements.iter().for_each(|element| counts[place(element)] += 1);
        let mut to = to;
        for (above, count) in (0..).zip(counts) {
            // A range of words would overflow after the greatest integer.
            let word = least.wide().wrapping_add(above);
            // SAFETY: as many elements in total as the row has.
            unsafe {
                std::slice::from_raw_parts_mut(to, count).fill(T::of_word(T::Word::of_wide(word)));
                to = to.add(count);
            }
        }
    } else {
        let (row, other) = two_rows(&mut space.words, length)?;
        let mut any = false;
        // SAFETY: both have this length, and the selected functions are for this processor.
        unsafe { to_words::<T>()(elements, row, &mut any) };
        kept = if any { ambiguous(elements)? } else { Vec::new() };
        sort_words(row, other, workers);
        // SAFETY: as above.
        unsafe { from_words::<T>()(row, to) };
    }
    if !kept.is_empty() {
        // SAFETY: passed on to the caller; all elements have been written.
        restore(unsafe { std::slice::from_raw_parts_mut(to, length) }, &kept);
    }
    Ok(())
}

/// Returns the least word and the number of words up to the greatest one, if there are so few that counting is faster
/// than sorting.
fn few_values<T: Ordered>(row: &[T]) -> Option<(T::Word, usize)> {
    let most = MOST_VALUES.min(row.len() as u64);
    let few = |row| {
        let mut ends = [T::Word::MAX; 2];
        // SAFETY: there are elements, and the selected function is for this processor.
        unsafe { least_and_greatest::<T>()(row, &mut ends) };
        let values = ends[1].distance(ends[0]).saturating_add(1);
        (values <= most).then_some((ends[0], values as usize))
    };
    // Most rows are refused for their first elements.
    row.get(..FEWEST).and_then(few).and_then(|_| few(row))
}

select_variant! {
    /// Returns the loop that finds the least and the greatest word.
    least_and_greatest<T: Ordered>, least_and_greatest_loop, unsafe fn(&[T], &mut [T::Word; 2]),
    (row: &[T], ends: &mut [T::Word; 2])
}

/// # Safety
/// There is at least one element. (Functions for one processor have an unsafe type.)
#[inline(always)]
unsafe fn least_and_greatest_loop<T: Ordered>(row: &[T], ends: &mut [T::Word; 2]) {
    let first = row[0].word();
    *ends = row.iter().fold([first; 2], |[least, greatest], element| {
        [least.min(element.word()), greatest.max(element.word())]
    });
}

select_variant! {
    /// Returns the loop that computes the words of elements, and whether any are ambiguous.
    to_words<T: Ordered>, to_words_loop, unsafe fn(&[T], &mut [T::Word], &mut bool),
    (elements: &[T], words: &mut [T::Word], any: &mut bool)
}

select_variant! {
    /// Returns the loop that writes the elements of words.
    from_words<T: Ordered>, from_words_loop, unsafe fn(&[T::Word], *mut T),
    (words: &[T::Word], to: *mut T)
}

/// # Safety
/// None: functions for one processor have an unsafe type.
#[inline(always)]
unsafe fn to_words_loop<T: Ordered>(elements: &[T], words: &mut [T::Word], any: &mut bool) {
    let mut found = false;
    for (word, element) in words.iter_mut().zip(elements) {
        *word = element.word();
        found |= element.is_ambiguous();
    }
    *any = found;
}

/// # Safety
/// There must be space for as many elements.
#[inline(always)]
unsafe fn from_words_loop<T: Ordered>(words: &[T::Word], to: *mut T) {
    for (place, word) in words.iter().enumerate() {
        // SAFETY: passed on to the caller.
        unsafe { to.add(place).write(T::of_word(*word)) };
    }
}

/// Returns the zeros and NaN of a row in their order.
fn ambiguous<T: Ordered>(row: &[T]) -> Result<Vec<T>> {
    let wanted = || row.iter().filter(|element| element.is_nan() | !element.is_true());
    if !row.iter().any(|element| element.is_ambiguous()) {
        return Ok(Vec::new());
    }
    let mut found = memory(wanted().count(), 1)?;
    found.extend(wanted());
    Ok(found)
}

/// Writes zeros and NaN to their places in a sorted row.
fn restore<T: Ordered>(row: &mut [T], ambiguous: &[T]) {
    let numbers = row.len() - ambiguous.iter().filter(|element| element.is_nan()).count();
    let (row, nan) = row.split_at_mut(numbers);
    let zeros = row.partition_point(|element| element.word().wide() < 0);
    let (mut nan, mut zeros) = (nan.iter_mut(), row[zeros..].iter_mut());
    for element in ambiguous {
        let place = if element.is_nan() { nan.next() } else { zeros.next() };
        if let Some(place) = place {
            *place = *element;
        }
    }
}

/// Calls `write` with each position of the sorted row and the index in `row` of the element there.
///
/// # Errors
/// `OutOfMemory` if the system cannot provide memory for the integers.
pub(super) fn indices<T: Ordered>(
    row: &[T],
    space: &mut Space<T::Word>,
    workers: &Workers<'_>,
    mut write: impl FnMut(usize, i64),
) -> Result<()> {
    if let Some((least, values)) = few_values(row) {
        let place = |element: &T| element.word().distance(least) as usize;
        // The number of lesser elements, for each value.
        let mut places = zeros(values + 1)?;
        row.iter().for_each(|element| places[place(element) + 1] += 1);
        (1..values).for_each(|value| places[value] += places[value - 1]);
        for (element, index) in row.iter().zip(0..) {
            let next = &mut places[place(element)];
            write(*next, index);
            *next += 1;
        }
        return Ok(());
    }
    let (joined, other) = two_rows(&mut space.joined, row.len())?;
    let bits = usize::BITS - row.len().saturating_sub(1).leading_zeros();
    joined.iter_mut().zip(0..).for_each(|(joined, index)| *joined = index);
    let word = |index: i64| row[index as usize].word().wide();
    join(joined, other, bits, &word, workers);
    joined.iter().enumerate().for_each(|(place, joined)| write(place, joined & mask(bits)));
    Ok(())
}

/// Returns the lowest bits.
fn mask(bits: u32) -> i64 {
    (1 << bits) - 1
}

/// Sorts indices, which are the lowest `bits` bits of integers, by words and indices. The upper bits are free
/// to use.
///
/// There, a word is represented by its distance from the least one, or as many upper bits of the distance as there
/// is space for. Indices that agree in these are then sorted by the rest of the distance in the same manner.
fn join(
    joined: &mut [i64],
    other: &mut [i64],
    bits: u32,
    word: &impl Fn(i64) -> i64,
    workers: &Workers<'_>,
) {
    let words = || joined.iter().map(|joined| word(joined & mask(bits)));
    let (least, greatest) = words().fold((i64::MAX, i64::MIN), |(least, greatest), word| {
        (least.min(word), greatest.max(word))
    });
    let needed = u64::BITS - greatest.distance(least).leading_zeros();
    let omitted = (needed + bits).saturating_sub(u64::BITS);
    for joined in &mut *joined {
        let index = *joined & mask(bits);
        let distance = word(index).distance(least) >> omitted;
        // The least integer is the first one, as the distance is not negative.
        *joined = (distance << bits) as i64 ^ index ^ i64::MIN;
    }
    sort_words(joined, other, workers);
    if omitted > 0 {
        let mut start = 0;
        for run in joined.chunk_by_mut(|x, y| x >> bits == y >> bits) {
            let other = &mut other[start..start + run.len()];
            start += run.len();
            if run.len() > 1 {
                join(run, other, bits, word, workers);
            }
        }
    }
}
