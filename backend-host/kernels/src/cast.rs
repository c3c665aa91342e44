//! Loops that convert contiguous elements from one type to another.

use super::blocks::{Form, Routine};
use super::bodies::{map_single, step_single, zip_single};
use super::copy::pointer;
use super::multiversion::{Loop, select_blocks};
use super::number::{Number, Truth, with_kind, with_number};
use hal::DType;

/// A function of one element.
trait Cast<S: Number, D: Number> {
    /// Returns the value.
    fn apply(element: S) -> D;
}

/// Converts the element to another type.
struct Conversion;

impl<S: Number, D: Number> Cast<S, D> for Conversion {
    #[inline(always)]
    fn apply(element: S) -> D {
        element.convert()
    }
}

/// Tests if the element is greater than zero.
struct Positive;

impl<S: Number> Cast<S, Truth> for Positive {
    #[inline(always)]
    fn apply(element: S) -> Truth {
        Truth::new(S::from_u8(0).less(element))
    }
}

/// Returns the form of the loop. Conversions that round to types stored in few bits also run over arrays,
/// which is up to 1.5 times as fast.
const fn form<S: Number, D: Number>() -> Form {
    if size_of::<D>() != size_of::<D::Working>() { Form::Arrays } else { Form::of::<S, D>() }
}

/// # Safety
/// See [`map_single`] or [`zip_single`], depending on the form.
#[inline(always)]
unsafe fn body<F: Cast<S, D>, S: Number, D: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        if const { matches!(form::<S, D>(), Form::Arrays) } {
            zip_single(value, arguments, blocks, F::apply);
        } else {
            map_single(value, arguments, repeated, blocks, F::apply);
        }
    }
}

/// # Safety
/// See [`Loop`].
unsafe fn stepped<F: Cast<S, D>, S: Number, D: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_single(value, arguments, repeated, length, F::apply) }
}

select_blocks!(select_usual<F: Cast<S, D>, S: Number, D: Number>, body);
select_blocks!(select_narrowing<F: Cast<S, D>, S: Number, D: Number>, body, masked select_usual);

fn routine_of<F: Cast<S, D>, S: Number, D: Number>(blocks: Option<Loop>) -> Routine {
    Routine::new(stepped::<F, S, D>, (blocks, form::<S, D>()), size_of::<D>(), &[size_of::<S>()])
}

fn converting<S: Number, D: Number>() -> Routine {
    routine_of::<Conversion, S, D>(select_usual::<Conversion, S, D>())
}

fn narrowing<S: Number, D: Number>() -> Routine {
    routine_of::<Conversion, S, D>(select_narrowing::<Conversion, S, D>())
}

/// Converts packed elements.
///
/// # Safety
/// There must be `length` elements of the routine's types at the addresses, aligned and without overlap.
pub(super) unsafe fn convert(conversion: Routine, source: usize, target: usize, length: usize) {
    let source = pointer(source).cast_const();
    let arguments = [source, source, source, source];
    // SAFETY: passed on to the caller; a conversion has one argument.
    unsafe { conversion.call(pointer(target), &arguments, 0, length) }
}

/// Returns a conversion between two types. Returns `None` if the types are the same, or for records, which
/// the array layer never converts.
pub fn conversion(from: DType, to: DType) -> Option<Routine> {
    if from == to {
        return None;
    }
    if from.is_inexact() && !to.is_inexact() && to.size() < from.size() {
        return with_kind!(inexact from, S => with_kind!(whole to, D => Some(narrowing::<S, D>())));
    }
    with_number!(from, S => with_number!(to, D => Some(converting::<S, D>()), else None), else None)
}

/// Returns the routine that tests if elements are greater than zero.
pub(super) fn positive(from: DType) -> Option<Routine> {
    fn of<S: Number>() -> Routine {
        routine_of::<Positive, S, Truth>(select_usual::<Positive, S, Truth>())
    }
    with_number!(from, S => Some(of::<S>()), else None)
}
