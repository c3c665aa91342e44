//! Loops that convert contiguous elements from one type to another.

use super::copy::pointer;
use super::multiversion::{Loop, elements, places, select_masked, select_variant, step_single};
use super::number::{Number, Truth, with_kind, with_number};
use hal::DType;

/// The values of a function of the elements of one argument.
///
/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn map<S, D: Copy>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
    function: impl Fn(S) -> D,
) where
    S: Copy + 'static,
{
    let given = if repeated & 1 == 1 { 1 } else { length };
    // SAFETY: passed on to the caller.
    let (value, source) =
        unsafe { (places::<D>(value, length), elements::<S>(arguments[0], given)) };
    if repeated & 1 == 1 {
        let result = function(source[0]);
        for value in value {
            value.write(result);
        }
    } else {
        for (value, &element) in value.iter_mut().zip(source) {
            value.write(function(element));
        }
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn convert_body<S: Number, D: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { map::<S, D>(value, arguments, repeated, length, |element| element.convert()) }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn positive_body<S: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let zero = S::from_u8(0);
    let positive = |element| Truth::new(zero.less(element));
    // SAFETY: passed on to the caller.
    unsafe { map::<S, Truth>(value, arguments, repeated, length, positive) }
}

/// # Safety
/// See [`Loop`].
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for old x86 processors"))]
unsafe fn stepped<S: Number, D: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let convert = |element: S| -> D { element.convert() };
    // SAFETY: passed on to the caller.
    unsafe { step_single(value, arguments[0], repeated, length, convert) }
}

select_variant!(select_convert<S: Number, D: Number>, convert_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize), or stepped);
select_variant!(select_positive<S: Number>, positive_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

select_masked!(select_narrowing<S: Number, D: Number>, convert_body, select_convert, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// Converts packed elements.
///
/// # Safety
/// There must be `length` elements of the loop's types at the addresses, aligned and apart.
pub(super) unsafe fn convert(conversion: Loop, source: usize, target: usize, length: usize) {
    let source = pointer(source).cast_const();
    let arguments = [source, source, source, source];
    // SAFETY: passed on to the caller; a conversion has one argument.
    unsafe { conversion(pointer(target), &arguments, 0, length) }
}

/// The loop that converts between two types; none where an element stays as it is, or for
/// records, which the array layer never converts.
pub fn conversion(from: DType, to: DType) -> Option<Loop> {
    if from == to {
        return None;
    }
    if from.is_inexact() && !to.is_inexact() && to.size() < from.size() {
        return with_kind!(inexact from, S => with_kind!(whole to, D => Some(select_narrowing::<S, D>())));
    }
    with_number!(from, S => with_number!(to, D => Some(select_convert::<S, D>()), else None), else None)
}

/// The loop that tells which elements are greater than zero.
pub(super) fn positive(from: DType) -> Option<Loop> {
    with_number!(from, S => Some(select_positive::<S>()), else None)
}
