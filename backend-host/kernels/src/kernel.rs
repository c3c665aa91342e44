//! The loop of any function, and those of the functions of three and four elements.

use super::blocks::{Form, Routine};
use super::bodies::{map_pairs, map_quadruples, map_triples, step_quadruples, step_triples};
#[cfg(doc)]
use super::multiversion::Loop;
use super::multiversion::select_blocks;
use super::number::{Number, Truth, with_number};
use super::{binary, mixed, unary};
use hal::DType;
use hal::function::Function;

/// A loop and what is known of its cost.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The loop.
    pub run: Routine,
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

#[inline(always)]
fn choose<T: Number>(condition: Truth, x: T, y: T) -> T {
    (if condition.get() { x } else { y }).convert()
}

/// # Safety
/// See [`map_triples`].
#[inline(always)]
unsafe fn select_body<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { map_triples(value, arguments, repeated, blocks, choose::<T>) }
}

/// # Safety
/// See [`Loop`]; the first argument is of [`Truth`].
unsafe fn select_stepped<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_triples(value, arguments, repeated, length, choose::<T>) }
}

/// # Safety
/// See [`map_quadruples`].
#[inline(always)]
unsafe fn combination_body<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller; what is repeated is a block.
    unsafe {
        // The usual case: numbers times arrays. Of the largest type no vectors would be made.
        if const { size_of::<T>() < 16 } && repeated == 0b0101 {
            let [a, x, b, y] = *arguments;
            let (a, b) = (a.cast::<T>().read(), b.cast::<T>().read());
            let combine = |x, y| T::linear_combination(a, x, b, y);
            return map_pairs(value, &[x, y, x, y], 0, blocks, combine);
        }
        map_quadruples(value, arguments, repeated, blocks, T::linear_combination);
    }
}

/// # Safety
/// See [`Loop`].
unsafe fn combination_stepped<T: Number>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_quadruples(value, arguments, repeated, length, T::linear_combination) }
}

select_blocks!(select_select<T: Number>, select_body);
select_blocks!(select_combination<T: Number>, combination_body);

fn selection_of<T: Number>() -> Routine {
    let size = size_of::<T>();
    let sizes = [size_of::<Truth>(), size, size];
    Routine::new(select_stepped::<T>, (select_select::<T>(), Form::Blocks), size, &sizes)
}

fn combination_of<T: Number>() -> Routine {
    let size = size_of::<T>();
    Routine::new(
        combination_stepped::<T>,
        (select_combination::<T>(), Form::Blocks),
        size,
        &[size; 4],
    )
}

/// The loop of a function; none for records and functions that this backend does not know.
///
/// The condition of a selection is a truth value: the caller converts it.
pub fn kernel(function: Function, compute: DType) -> Option<Kernel> {
    match function {
        Function::Unary(function) => unary::kernel(function, compute),
        Function::Binary(function) => binary::kernel(function, compute),
        Function::CompareMixed(function) => mixed::kernel(function),
        Function::Select | Function::SelectPositive => {
            let run = with_number!(compute, T => Some(selection_of::<T>()), else None)?;
            Some(Kernel { run, cheap: true, in_place: false })
        }
        Function::LinearCombination => {
            let run = with_number!(compute, T => Some(combination_of::<T>()), else None)?;
            Some(Kernel { run, cheap: true, in_place: false })
        }
    }
}
