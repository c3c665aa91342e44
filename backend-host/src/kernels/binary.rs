//! Loops that apply a function of two elements.

use super::kernel::Kernel;
use super::number::{Number, Truth, with_number};
use super::vector::{Loop, elements, map_pairs, operands, places, select_masked, select_variant};
use super::{divide, power};
use hal::DType;
use hal::function::BinaryFunction;

/// A function of two elements.
trait Binary<T: Number> {
    /// True if a loop over it becomes vector code, so that a variant for wider vectors and
    /// one for each repeated argument pay.
    const WIDE: bool;
    /// True if AVX-512 has instructions for it that older processors lack.
    const MASKED: bool;
    /// The type of the value.
    type Value: Number;
    /// The value.
    fn apply(x: T, y: T) -> Self::Value;
}

/// Replaces each element by its value with the other argument's, an array or one element.
///
/// # Safety
/// See [`Loop`], and the value must have the type of the elements.
#[inline(always)]
unsafe fn in_place<T: Number, V: Number>(
    values: *mut u8,
    other: *const u8,
    is_array: bool,
    length: usize,
    apply: impl Fn(T, T) -> V,
) {
    let same = is_array && values.cast_const() == other;
    // SAFETY: passed on to the caller.
    let values = unsafe { std::slice::from_raw_parts_mut(values.cast::<T>(), length) };
    if same {
        values.iter_mut().for_each(|value| *value = apply(*value, *value).convert());
        return;
    }
    // SAFETY: passed on to the caller; apart from the values.
    let other = unsafe { elements::<T>(other, if is_array { length } else { 1 }) };
    match other.first() {
        Some(&first) if !is_array => {
            values.iter_mut().for_each(|value| *value = apply(*value, first).convert());
        }
        _ => {
            for (value, &other) in values.iter_mut().zip(other) {
                *value = apply(*value, other).convert();
            }
        }
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn wide_body<T: Number, F: Binary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let array = |argument: u32| repeated >> argument & 1 == 0;
    if array(0) && value.cast_const() == arguments[0] {
        // SAFETY: passed on to the caller.
        return unsafe { in_place(value, arguments[1], array(1), length, F::apply) };
    }
    if array(1) && value.cast_const() == arguments[1] {
        // SAFETY: passed on to the caller.
        return unsafe { in_place(value, arguments[0], array(0), length, |y, x| F::apply(x, y)) };
    }
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe { operands::<T, T, F::Value>(value, arguments, repeated, length) };
    map_pairs(value, x, y, repeated, F::apply);
}

/// One loop for all combinations, where the function costs more than the steps.
///
/// # Safety
/// See [`Loop`].
unsafe fn stepped<T: Number, F: Binary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let step = |argument: u32| usize::from(repeated >> argument & 1 == 0);
    let (step_x, step_y) = (step(0), step(1));
    // SAFETY: passed on to the caller.
    let value = unsafe { places::<F::Value>(value, length) };
    for (index, value) in value.iter_mut().enumerate() {
        // SAFETY: the index is less than the length, and stays 0 where there is one element.
        let (x, y) = unsafe {
            (
                *arguments[0].cast::<T>().add(index * step_x),
                *arguments[1].cast::<T>().add(index * step_y),
            )
        };
        value.write(F::apply(x, y));
    }
}

select_variant!(select_wide<T: Number, F: Binary<T>>, wide_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

select_masked!(select_masked_wide<T: Number, F: Binary<T>>, wide_body, select_wide, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

fn kernel_of<T: Number, F: Binary<T>>() -> Kernel {
    let run: Loop = match F::WIDE {
        true if F::MASKED => select_masked_wide::<T, F>(),
        true => select_wide::<T, F>(),
        false => stepped::<T, F>,
    };
    Kernel { run, cheap: F::WIDE, in_place: F::WIDE }
}

macro_rules! functions {
    ($($function:ident $wide:literal $value:ty $([$masked:literal])?, |$x:ident, $y:ident| $body:expr;)*) => {
        $(
            struct $function;

            impl<T: Number> Binary<T> for $function {
                const WIDE: bool = $wide;
                const MASKED: bool = $($masked ||)? size_of::<$value>() < size_of::<T>();
                type Value = $value;
                #[inline(always)]
                fn apply($x: T, $y: T) -> $value {
                    $body
                }
            }
        )*

        fn of_type<T: Number>(function: BinaryFunction) -> Option<Kernel> {
            match function {
                $(BinaryFunction::$function => Some(kernel_of::<T, $function>()),)*
                _ => None,
            }
        }
    };
}

functions! {
    Add true T, |x, y| x.add(y);
    Subtract true T, |x, y| x.subtract(y);
    Multiply true T, |x, y| x.multiply(y);
    Divide true T, |x, y| x.divide(y);
    FloorDivide false T, |x, y| x.floor_divide(y);
    Remainder false T, |x, y| x.remainder(y);
    Fmod false T, |x, y| x.fmod(y);
    Power false T, |x, y| x.power(y);
    Minimum true T, |x, y| x.minimum(y);
    Maximum true T, |x, y| x.maximum(y);
    Ldexp true T [true], |x, y| x.ldexp(y);
    Atan2 false T, |x, y| x.atan2(y);
    LogicalAnd true Truth, |x, y| Truth::new(x.is_true() & y.is_true());
    LogicalOr true Truth, |x, y| Truth::new(x.is_true() | y.is_true());
    BitwiseAnd true T, |x, y| x.bit_and(y);
    BitwiseOr true T, |x, y| x.bit_or(y);
    BitwiseXor true T, |x, y| x.bit_xor(y);
    LeftShift true T, |x, y| x.left_shift(y);
    RightShift true T, |x, y| x.right_shift(y);
    Equal true Truth, |x, y| Truth::new(x.equal(y));
    NotEqual true Truth, |x, y| Truth::new(!x.equal(y));
    Less true Truth, |x, y| Truth::new(x.less(y));
    LessEqual true Truth, |x, y| Truth::new(x.less_equal(y));
    Greater true Truth, |x, y| Truth::new(y.less(x));
    GreaterEqual true Truth, |x, y| Truth::new(y.less_equal(x));
}

/// The loop of a function of two elements; none for records and functions that this backend
/// does not know.
pub(super) fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    divide::kernel(function, compute)
        .or_else(|| power::kernel(function, compute))
        .or_else(|| with_number!(compute, T => of_type::<T>(function), else None))
}
