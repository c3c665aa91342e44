//! Loops that compare signed and unsigned integers of the same width.

use super::blocks::{Form, Kernel, Routine};
use super::bodies::{map_pairs, step_pairs};
use super::multiversion::{Loop, select_blocks};
use super::number::Truth;
use hal::function::BinaryFunction;
use std::cmp::Ordering;

/// A comparison.
trait Comparison {
    /// Returns the value for arguments with this order.
    fn holds(order: Ordering) -> bool;
}

#[inline(always)]
fn apply<F: Comparison>(x: i64, y: u64) -> Truth {
    // An unsigned number beyond the range of the signed type is greater than all signed numbers.
    let order = if (y as i64) < 0 { Ordering::Less } else { x.cmp(&(y as i64)) };
    Truth::new(F::holds(order))
}

/// # Safety
/// See [`map_pairs`].
#[inline(always)]
unsafe fn body<F: Comparison>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { map_pairs(value, arguments, repeated, blocks, apply::<F>) }
}

/// # Safety
/// See [`Loop`]; the elements are `i64` in the first argument and `u64` in the second.
unsafe fn stepped<F: Comparison>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_pairs(value, arguments, repeated, length, apply::<F>) }
}

select_blocks!(select<F: Comparison>, body);

macro_rules! comparisons {
    ($($name:ident $holds:ident;)*) => {
        $(
            struct $name;

            impl Comparison for $name {
                #[inline(always)]
                fn holds(order: Ordering) -> bool {
                    order.$holds()
                }
            }
        )*

        /// Returns the loop of a comparison, or `None` for other functions.
        pub(super) fn kernel(function: BinaryFunction) -> Option<Kernel> {
            let (elements, blocks) = match function {
                $(BinaryFunction::$name => (stepped::<$name> as Loop, select::<$name>()),)*
                _ => return None,
            };
            let run = Routine::new(elements, (blocks, Form::Blocks), size_of::<Truth>(), &[size_of::<u64>(); 2]);
            Some(Kernel { run, cheap: true, in_place: false })
        }
    };
}

comparisons! {
    Equal is_eq;
    NotEqual is_ne;
    Less is_lt;
    LessEqual is_le;
    Greater is_gt;
    GreaterEqual is_ge;
}
