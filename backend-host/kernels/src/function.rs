//! Chooses the loop of any function. Contains the loops of functions with three and four arguments.

use super::blocks::{Form, Kernel, Routine};
use super::bodies::{map_pairs, map_quadruples, map_triples, step_quadruples, step_triples};
#[cfg(doc)]
use super::multiversion::Loop;
use super::multiversion::select_blocks;
use super::number::{Number, Truth, with_number};
use super::{binary, mixed, unary};
use hal::DType;
use hal::function::Function;

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
/// See [`Loop`]; the elements of `arguments[0]` have the type [`Truth`].
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
    // SAFETY: passed on to the caller; a repeated argument is a block.
    unsafe {
        // The usual case: numbers times arrays. The largest type would not be vectorised.
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

/// Returns the loop of a function, or `None` for records and functions that this backend does not support.
///
/// The condition of a selection is a truth value; the caller converts it.
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
