//! Loops that apply a function of two elements.

use super::divisor::Divisors as _;
use super::exponent::Parts as _;
use super::kernel::Kernel;
use super::multiversion::{
    Loop, elements, map_pairs, operands, select_masked, select_variant, step_pairs,
};
use super::neighbour::Neighbour as _;
use super::number::{Convert as _, Number, Truth, for_each, with_kind, with_number};
use super::sums::Sums as _;
use super::unary::{Own, Stepped, Test, ValueOn, Vector, through};
use super::{divide, power};
use hal::DType;
use hal::function::BinaryFunction;

/// What the loop of a function is compiled to: a type, so that no variant is compiled that is not used.
trait Code<T: Number, F: Binary<T>> {
    /// See [`Kernel::cheap`].
    const CHEAP: bool = true;
    /// The loop.
    fn select() -> Loop;
}

/// As [`Vector`], and AVX-512 has instructions for it that older processors lack, as it has for
/// values that are narrower than the elements.
struct Masked;

impl<T: Number, F: Binary<T>> Code<T, F> for Stepped {
    const CHEAP: bool = false;
    fn select() -> Loop {
        stepped::<T, F>
    }
}

impl<T: Number, F: Binary<T>> Code<T, F> for Vector {
    fn select() -> Loop {
        select_wide::<T, F>()
    }
}

impl<T: Number, F: Binary<T>> Code<T, F> for Masked {
    fn select() -> Loop {
        // Bytes that become bytes need no masks.
        if size_of::<T>() == 1 { select_wide::<T, F>() } else { select_masked_wide::<T, F>() }
    }
}

/// A function of two elements.
trait Binary<T: Number>: Sized {
    /// What a loop over it is compiled to.
    type Code: Code<T, Self>;
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
    // SAFETY: passed on to the caller.
    unsafe { step_pairs(value, [arguments[0], arguments[1]], repeated, length, F::apply) }
}

select_variant!(select_wide<T: Number, F: Binary<T>>, wide_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize), or stepped);

select_masked!(select_masked_wide<T: Number, F: Binary<T>>, wide_body, select_wide, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

fn kernel_of<T: Number, F: Binary<T>>() -> Kernel {
    Kernel { run: F::Code::select(), cheap: F::Code::CHEAP, in_place: true }
}

/// Implements [`Binary`] for one function and one type: the elements are given as a [`through`].
macro_rules! implement {
    ([$function:ident $code:ident $value:ident $through:ident |$x:ident, $y:ident| $body:expr]
     $dtype:ident, $own:ty) => {
        impl Binary<$own> for $function {
            type Code = $code;
            type Value = <$value as ValueOn<$own>>::Value;
            #[inline(always)]
            fn apply(x: $own, y: $own) -> Self::Value {
                let $x = x.convert::<through!($through $own)>();
                let $y = y.convert::<through!($through $own)>();
                ($body).convert()
            }
        }
    };
}

/// The functions, one on a line: its [`Code`], the type of its values, and its value for every
/// type, for integers (`integer`), or for floating-point numbers, computed in their working type
/// (`float`), in a wider one where they would be rounded twice (`precise`), or as they are (`exact`). A loop written for one function ([`divide`], [`power`]) takes precedence.
macro_rules! functions {
    ($(
        $function:ident $code:ident $value:ident {
            $(every |$x:ident, $y:ident| $every:expr;)?
            $(integer |$i:ident, $j:ident| $integer:expr;)?
            $(float |$f:ident, $g:ident| $float:expr;)?
            $(precise |$p:ident, $q:ident| $precise:expr;)?
            $(exact |$e:ident, $d:ident| $exact:expr;)?
        }
    )*) => {
        $(
            struct $function;

            $(
                impl<T: Number> Binary<T> for $function {
                    type Code = $code;
                    type Value = <$value as ValueOn<T>>::Value;
                    #[inline(always)]
                    fn apply($x: T, $y: T) -> Self::Value {
                        $every
                    }
                }
            )?
            $(for_each!(integer => implement [$function $code $value Own |$i, $j| $integer]);)?
            $(for_each!(float => implement [$function $code $value Working |$f, $g| $float]);)?
            $(for_each!(float => implement [$function $code $value Precise |$p, $q| $precise]);)?
            $(for_each!(float => implement [$function $code $value Own |$e, $d| $exact]);)?
        )*

        /// The plain loop of a function.
        fn plain(function: BinaryFunction, compute: DType) -> Option<Kernel> {
            match function {
                $(BinaryFunction::$function => {
                    $(return functions!(@ $every;
                        with_number!(compute, T => Some(kernel_of::<T, $function>()), else None));)?
                    $(return functions!(@ $integer;
                        with_kind!(integer compute, T => Some(kernel_of::<T, $function>())));)?
                    $(return functions!(@ $float;
                        with_kind!(float compute, T => Some(kernel_of::<T, $function>())));)?
                    $(return functions!(@ $precise;
                        with_kind!(float compute, T => Some(kernel_of::<T, $function>())));)?
                    $(return functions!(@ $exact;
                        with_kind!(float compute, T => Some(kernel_of::<T, $function>())));)?
                })*
                _ => None,
            }
        }
    };
    // An expression in the repetition of a function's value.
    (@ $value:expr; $expression:expr) => {
        $expression
    };
}

functions! {
    Add Vector Own { every |x, y| x.add(y); }
    Subtract Vector Own { every |x, y| x.subtract(y); }
    Multiply Vector Own { every |x, y| x.multiply(y); }
    Divide Vector Own { every |x, y| x.divide(y); }
    FloorDivide Stepped Own { every |x, y| x.floor_divide(y); }
    Remainder Stepped Own { every |x, y| x.remainder(y); }
    Fmod Stepped Own { every |x, y| x.fmod(y); }
    Power Stepped Own { every |x, y| x.power(y); }
    Minimum Vector Own { every |x, y| x.minimum(y); }
    Maximum Vector Own { every |x, y| x.maximum(y); }
    Ldexp Masked Own { float |x, y| x.ldexp(y); }
    Atan2 Stepped Own { precise |x, y| x.atan2(y); }
    Hypot Stepped Own { precise |x, y| x.hypot(y); }
    CopySign Vector Own { float |x, y| x.copysign(y); }
    NextAfter Stepped Own { exact |x, y| x.next_after(y); }
    Heaviside Vector Own { float |x, y| x.heaviside(y); }
    LogAddExp Stepped Own { precise |x, y| x.log_add_exp(y); }
    LogAddExp2 Stepped Own { precise |x, y| x.log_add_exp2(y); }
    Fmin Vector Own { every |x, y| if x.less_equal(y) | y.is_nan() { x } else { y }; }
    Fmax Vector Own { every |x, y| if y.less_equal(x) | y.is_nan() { x } else { y }; }
    Gcd Stepped Own { integer |x, y| x.gcd(y); }
    Lcm Stepped Own { integer |x, y| x.lcm(y); }
    LogicalXor Masked Test { every |x, y| Truth::new(x.is_true() ^ y.is_true()); }
    LogicalAnd Masked Test { every |x, y| Truth::new(x.is_true() & y.is_true()); }
    LogicalOr Masked Test { every |x, y| Truth::new(x.is_true() | y.is_true()); }
    BitwiseAnd Vector Own { every |x, y| x.bit_and(y); }
    BitwiseOr Vector Own { every |x, y| x.bit_or(y); }
    BitwiseXor Vector Own { every |x, y| x.bit_xor(y); }
    LeftShift Vector Own { every |x, y| x.left_shift(y); }
    RightShift Vector Own { every |x, y| x.right_shift(y); }
    Equal Masked Test { every |x, y| Truth::new(x.equal(y)); }
    NotEqual Masked Test { every |x, y| Truth::new(!x.equal(y)); }
    Less Masked Test { every |x, y| Truth::new(x.less(y)); }
    LessEqual Masked Test { every |x, y| Truth::new(x.less_equal(y)); }
    Greater Masked Test { every |x, y| Truth::new(y.less(x)); }
    GreaterEqual Masked Test { every |x, y| Truth::new(y.less_equal(x)); }
}

/// The loop of a function of two elements; none for records and functions that this backend
/// does not know.
pub(super) fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    divide::kernel(function, compute)
        .or_else(|| power::kernel(function, compute))
        .or_else(|| plain(function, compute))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a loop makes of `x` and `y`; with `in_place` the values lie where `x` lies.
    fn values(run: Loop, x: &[i16], y: &[i16], repeated: u32, in_place: bool) -> Vec<i16> {
        let mut own = x.to_vec();
        let mut value = vec![0_i16; 37];
        let place = if in_place { own.as_mut_ptr() } else { value.as_mut_ptr() }.cast::<u8>();
        let first = if in_place { place.cast_const() } else { x.as_ptr().cast() };
        let arguments = [first, y.as_ptr().cast(), first, first];
        // SAFETY: all have 37 elements, or one where they are repeated.
        unsafe { run(place, &arguments, repeated, 37) };
        if in_place { own } else { value }
    }

    #[test]
    fn compact_loops_compute_what_vector_loops_do() {
        let [x, y] = [7, -11].map(|it: i16| (0..37).map(|i| it.wrapping_mul(i * 977)).collect());
        let (x, y): (Vec<i16>, Vec<i16>) = (x, y);
        for repeated in 0..4 {
            let expected: Vec<i16> = (0..37)
                .map(|i| {
                    let at = |argument: u32| if repeated >> argument & 1 == 1 { 0 } else { i };
                    x[at(0)].wrapping_sub(y[at(1)])
                })
                .collect();
            for run in [stepped::<i16, Subtract> as Loop, select_wide::<i16, Subtract>()] {
                assert_eq!(values(run, &x, &y, repeated, false), expected, "{repeated}");
                if repeated & 1 == 0 {
                    assert_eq!(values(run, &x, &y, repeated, true), expected, "{repeated}");
                }
            }
        }
    }
}
