//! Loops that apply a function of one element.

use super::kernel::Kernel;
use super::math;
use super::number::{Convert, Number, Truth, with_number};
use super::vector::{Loop, elements, places, select_variant};
use hal::DType;
use hal::function::UnaryFunction;

/// A function of one element.
trait Unary<T: Number> {
    /// True if a loop over it becomes vector code, so that a variant for wider vectors pays.
    const WIDE: bool;
    /// The type of the value.
    type Value: Number;
    /// The value.
    fn apply(x: T) -> Self::Value;
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn unary_body<T: Number, F: Unary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    if repeated & 1 == 0 && value.cast_const() == arguments[0] {
        // SAFETY: passed on to the caller, who gives values of the type of the elements.
        let values = unsafe { std::slice::from_raw_parts_mut(value.cast::<T>(), length) };
        values.iter_mut().for_each(|value| *value = F::apply(*value).convert());
        return;
    }
    // SAFETY: passed on to the caller.
    let value = unsafe { places::<F::Value>(value, length) };
    let given = if repeated & 1 == 1 { 1 } else { length };
    // SAFETY: passed on to the caller.
    let x = unsafe { elements::<T>(arguments[0], given) };
    if repeated & 1 == 1 {
        let Some(&x) = x.first() else { return };
        let result = F::apply(x);
        for value in value {
            value.write(result);
        }
    } else {
        for (value, &x) in value.iter_mut().zip(x) {
            value.write(F::apply(x));
        }
    }
}

/// # Safety
/// See [`Loop`].
unsafe fn unary_plain<T: Number, F: Unary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { unary_body::<T, F>(value, arguments, repeated, length) }
}

select_variant!(select_unary<T: Number, F: Unary<T>>, unary_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

fn kernel_of<T: Number, F: Unary<T>>() -> Kernel {
    let run: Loop = if F::WIDE { select_unary::<T, F>() } else { unary_plain::<T, F> };
    Kernel { run, cheap: F::WIDE, in_place: true }
}

macro_rules! functions {
    ($($function:ident $wide:literal $value:ty, |$x:ident| $body:expr;)*) => {
        $(
            struct $function;

            impl<T: Number> Unary<T> for $function {
                const WIDE: bool = $wide;
                type Value = $value;
                #[inline(always)]
                fn apply($x: T) -> $value {
                    $body
                }
            }
        )*

        fn of_type<T: Number>(function: UnaryFunction) -> Option<Kernel> {
            match function {
                $(UnaryFunction::$function => Some(kernel_of::<T, $function>()),)*
                _ => None,
            }
        }
    };
}

functions! {
    Copy true T, |x| x.convert();
    Negative true T, |x| x.negative();
    Absolute true T::Real, |x| x.absolute();
    Sign true T, |x| x.sign();
    Conjugate true T, |x| x.conjugate();
    Real true T::Real, |x| x.real();
    Imaginary true T::Real, |x| x.imaginary();
    LogicalNot true Truth, |x| Truth::new(!x.is_true());
    Invert true T, |x| x.invert();
    Sqrt true T, |x| x.sqrt();
    Exp false T, |x| x.exp();
    Log false T, |x| x.log();
    Log2 false T, |x| x.log2();
    Log10 false T, |x| x.log10();
    Sin false T, |x| x.sin();
    Cos false T, |x| x.cos();
    Tan false T, |x| x.tan();
    Asin false T, |x| x.asin();
    Acos false T, |x| x.acos();
    Atan false T, |x| x.atan();
    Sinh false T, |x| x.sinh();
    Cosh false T, |x| x.cosh();
    Tanh false T, |x| x.tanh();
    Floor true T, |x| x.floor();
    Ceil true T, |x| x.ceil();
    Trunc true T, |x| x.trunc();
    Fraction true T, |x| x.fraction();
    Rint true T, |x| x.rint();
    Mantissa true T, |x| x.mantissa();
    Exponent true T, |x| x.exponent();
    IsNan true Truth, |x| Truth::new(x.is_nan());
}

/// The loop of a function of one element; none for records and functions that this backend
/// does not know.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    if let Some(kernel) = math::kernel(function, compute) {
        return Some(kernel);
    }
    with_number!(compute, T => of_type::<T>(function), else None)
}
