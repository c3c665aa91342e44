//! The loop of any function, and those of the functions of three and four elements.

use super::multiversion::{Loop, elements, places, select_variant};
use super::number::{Number, Truth, with_number};
use super::{binary, mixed, unary};
use hal::DType;
use hal::function::Function;

/// A loop and what is known of its cost.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The loop.
    pub run: Loop,
    /// True if memory rather than arithmetic limits it.
    pub cheap: bool,
    /// True if an argument whose type is that of the value may be the value's own elements.
    pub in_place: bool,
}

/// The weight of an element of a loop that is limited by arithmetic.
const EXPENSIVE: usize = 8;

impl Kernel {
    /// The work of so many elements, counted in elements of a cheap loop.
    #[inline]
    pub(super) fn work(&self, elements: usize) -> usize {
        if self.cheap { elements } else { elements.saturating_mul(EXPENSIVE) }
    }
}

/// # Safety
/// See [`Loop`]; the first argument is of [`Truth`].
#[inline(always)]
unsafe fn select_body<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let step = |argument: u32| usize::from(repeated >> argument & 1 == 0);
    let (step_condition, step_x, step_y) = (step(0), step(1), step(2));
    if repeated == 0 {
        // SAFETY: passed on to the caller.
        let (value, condition, x, y) = unsafe {
            (
                places::<T>(value, length),
                elements::<Truth>(arguments[0], length),
                elements::<T>(arguments[1], length),
                elements::<T>(arguments[2], length),
            )
        };
        for (((value, &condition), &x), &y) in value.iter_mut().zip(condition).zip(x).zip(y) {
            value.write((if condition.get() { x } else { y }).convert());
        }
        return;
    }
    // SAFETY: passed on to the caller.
    let value = unsafe { places::<T>(value, length) };
    for (index, value) in value.iter_mut().enumerate() {
        // SAFETY: the index is less than the length, and stays 0 where there is one element.
        let (condition, x, y) = unsafe {
            (
                *arguments[0].cast::<Truth>().add(index * step_condition),
                *arguments[1].cast::<T>().add(index * step_x),
                *arguments[2].cast::<T>().add(index * step_y),
            )
        };
        value.write((if condition.get() { x } else { y }).convert());
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn combination_body<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // The usual case: numbers times arrays.
    if repeated == 0b0101 {
        // SAFETY: passed on to the caller.
        let (value, a, x, b, y) = unsafe {
            (
                places::<T>(value, length),
                *arguments[0].cast::<T>(),
                elements::<T>(arguments[1], length),
                *arguments[2].cast::<T>(),
                elements::<T>(arguments[3], length),
            )
        };
        for ((value, &x), &y) in value.iter_mut().zip(x).zip(y) {
            value.write(T::linear_combination(a, x, b, y));
        }
        return;
    }
    let step = |argument: u32| usize::from(repeated >> argument & 1 == 0);
    let steps = [step(0), step(1), step(2), step(3)];
    // SAFETY: passed on to the caller.
    let value = unsafe { places::<T>(value, length) };
    for (index, value) in value.iter_mut().enumerate() {
        // SAFETY: the index is less than the length, and stays 0 where there is one element.
        let [a, x, b, y] = std::array::from_fn(|argument| unsafe {
            *arguments[argument].cast::<T>().add(index * steps[argument])
        });
        value.write(T::linear_combination(a, x, b, y));
    }
}

select_variant!(select_select<T: Number>, select_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));
select_variant!(select_combination<T: Number>, combination_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// The loop of a function; none for records and functions that this backend does not know.
///
/// The condition of a selection is a truth value: the caller converts it.
pub fn kernel(function: Function, compute: DType) -> Option<Kernel> {
    match function {
        Function::Unary(function) => unary::kernel(function, compute),
        Function::Binary(function) => binary::kernel(function, compute),
        Function::CompareMixed(function) => mixed::kernel(function),
        Function::Select | Function::SelectPositive => {
            with_number!(compute, T => Some(Kernel { run: select_select::<T>(), cheap: true, in_place: false }),
                else None)
        }
        Function::LinearCombination => {
            with_number!(compute, T => Some(Kernel { run: select_combination::<T>(), cheap: true, in_place: false }),
                else None)
        }
        _ => None,
    }
}
