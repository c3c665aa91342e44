//! Loops that compare signed integers with unsigned ones of the same width.

use super::kernel::Kernel;
use super::multiversion::{Loop, map_pairs, operands, select_variant};
use super::number::Truth;
use hal::function::BinaryFunction;
use std::cmp::Ordering;

/// A comparison.
trait Comparison {
    /// Its value for arguments of this order.
    fn holds(order: Ordering) -> bool;
}

/// # Safety
/// See [`Loop`]; the first argument is of `i64`, the second of `u64`.
#[inline(always)]
unsafe fn body<F: Comparison>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let apply = |x: i64, y: u64| {
        // An unsigned number beyond the signed type lies above all of its values.
        let order = if (y as i64) < 0 { Ordering::Less } else { x.cmp(&(y as i64)) };
        Truth::new(F::holds(order))
    };
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe { operands(value, arguments, repeated, length) };
    map_pairs(value, x, y, repeated, apply);
}

select_variant!(select<F: Comparison>, body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

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

        /// The loop of a comparison; none for other functions.
        pub(super) fn kernel(function: BinaryFunction) -> Option<Kernel> {
            let run = match function {
                $(BinaryFunction::$name => select::<$name>(),)*
                _ => return None,
            };
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
