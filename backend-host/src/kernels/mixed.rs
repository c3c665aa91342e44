//! Loops that compare signed integers with unsigned ones of the same width.

use super::kernel::Kernel;
use super::number::Truth;
use super::vector::{Loop, elements, places, select_variant};
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
    let given = |argument: u32| if repeated >> argument & 1 == 0 { length } else { 1 };
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe {
        (
            places::<Truth>(value, length),
            elements::<i64>(arguments[0], given(0)),
            elements::<u64>(arguments[1], given(1)),
        )
    };
    let (Some(&first_x), Some(&first_y)) = (x.first(), y.first()) else { return };
    match repeated & 3 {
        0 => {
            for ((value, &x), &y) in value.iter_mut().zip(x).zip(y) {
                value.write(apply(x, y));
            }
        }
        1 => {
            for (value, &y) in value.iter_mut().zip(y) {
                value.write(apply(first_x, y));
            }
        }
        2 => {
            for (value, &x) in value.iter_mut().zip(x) {
                value.write(apply(x, first_y));
            }
        }
        _ => {
            for value in value {
                value.write(apply(first_x, first_y));
            }
        }
    }
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
