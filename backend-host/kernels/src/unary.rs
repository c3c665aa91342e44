//! Loops that apply a function of one element.

use super::exponent::Parts as _;
use super::kernel::Kernel;
use super::math::{self, complex};
use super::multiversion::{Loop, elements, places, select_variant, step_single};
use super::number::{Convert, Number, Truth, with_kind, with_number};
use hal::function::UnaryFunction;
use hal::{Complex, DType, bf16, f16};

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

/// The same, where wider vectors do not pay.
///
/// # Safety
/// See [`Loop`].
unsafe fn stepped<T: Number, F: Unary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_single(value, arguments[0], repeated, length, F::apply) }
}

select_variant!(select_unary<T: Number, F: Unary<T>>, unary_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize), or stepped);

fn kernel_of<T: Number, F: Unary<T>>() -> Kernel {
    let run: Loop = if F::WIDE { select_unary::<T, F>() } else { stepped::<T, F> };
    Kernel { run, cheap: F::WIDE, in_place: true }
}

/// The type of a function's values on elements of a type.
pub(super) trait ValueOn<T: Number> {
    /// It.
    type Value: Number;
}

/// Values of the elements' own type.
pub(super) struct Own;
/// Values of the type of real and imaginary parts.
struct Part;
/// Truth values.
pub(super) struct Test;

impl<T: Number> ValueOn<T> for Own {
    type Value = T;
}
impl<T: Number> ValueOn<T> for Part {
    type Value = T::Real;
}
impl<T: Number> ValueOn<T> for Test {
    type Value = Truth;
}

/// Implements [`Unary`] for one function and some types: `$x` is the element as a `$through`.
macro_rules! implement {
    ($function:ident $wide:literal $value:ident; $($own:ty = $through:ty),*; |$x:ident| $body:expr) => {
        $(
            impl Unary<$own> for $function {
                const WIDE: bool = $wide;
                type Value = <$value as ValueOn<$own>>::Value;
                #[inline(always)]
                fn apply(x: $own) -> Self::Value {
                    let $x = x.convert::<$through>();
                    ($body).convert()
                }
            }
        )*
    };
}

/// The functions, one on a line: true if its loops become vector code, the type of its values,
/// and its value for every type, or for the kinds of types that it is defined for. Floating-point
/// numbers of half precision are computed in single precision (`float`), or all in double where the
/// function has no other (`precise`), complex ones in double. A loop written for one function
/// stands in [`math::kernel`] and takes precedence.
macro_rules! functions {
    ($(
        $function:ident $wide:literal $value:ident {
            $(every |$x:ident| $every:expr;)?
            $(whole |$i:ident| $whole:expr;)?
            $(float |$f:ident| $float:expr;)?
            $(precise |$p:ident| $precise:expr;)?
            $(complex |$z:ident| $complex:expr;)?
        }
    )*) => {
        $(
            struct $function;

            $(
                impl<T: Number> Unary<T> for $function {
                    const WIDE: bool = $wide;
                    type Value = <$value as ValueOn<T>>::Value;
                    #[inline(always)]
                    fn apply($x: T) -> Self::Value {
                        $every
                    }
                }
            )?
            $(implement!($function $wide $value; Truth = Truth, i8 = i8, i16 = i16, i32 = i32,
                i64 = i64, u8 = u8, u16 = u16, u32 = u32, u64 = u64; |$i| $whole);)?
            $(implement!($function $wide $value; f16 = f32, bf16 = f32, f32 = f32, f64 = f64; |$f| $float);)?
            $(implement!($function $wide $value; f16 = f64, bf16 = f64, f32 = f64, f64 = f64; |$p| $precise);)?
            $(implement!($function $wide $value; Complex<f32> = Complex<f64>,
                Complex<f64> = Complex<f64>; |$z| $complex);)?
        )*

        /// The plain loop of a function.
        fn plain(function: UnaryFunction, compute: DType) -> Option<Kernel> {
            match function {
                $(UnaryFunction::$function => {
                    let kernel = None;
                    $(let kernel = functions!(@ $every; kernel, with_number!(
                        compute, T => Some(kernel_of::<T, $function>()), else None));)?
                    $(let kernel = functions!(@ $whole; kernel, with_kind!(
                        whole compute, T => Some(kernel_of::<T, $function>())));)?
                    $(let kernel = functions!(@ $float; kernel, with_kind!(
                        float compute, T => Some(kernel_of::<T, $function>())));)?
                    $(let kernel = functions!(@ $precise; kernel, with_kind!(
                        float compute, T => Some(kernel_of::<T, $function>())));)?
                    $(let kernel = functions!(@ $complex; kernel, with_kind!(
                        complex compute, T => Some(kernel_of::<T, $function>())));)?
                    kernel
                })*
                _ => None,
            }
        }
    };
    // The kernel found so far or another one, in the repetition of a function's value.
    (@ $value:expr; $kernel:ident, $other:expr) => {
        $kernel.or_else(|| $other)
    };
}

functions! {
    Copy true Own { every |x| x.convert(); }
    Negative true Own { every |x| x.negative(); }
    Absolute true Part { every |x| x.absolute(); }
    Sign true Own { every |x| x.sign(); }
    Conjugate true Own { every |x| x.conjugate(); }
    Real true Part { every |x| x.real(); }
    Imaginary true Part { every |x| x.imaginary(); }
    LogicalNot true Test { every |x| Truth::new(!x.is_true()); }
    Invert true Own { every |x| x.invert(); }
    Sqrt true Own { float |x| x.sqrt(); complex |z| complex::sqrt(z); }
    Exp false Own { float |x| x.exp(); complex |z| complex::exp(z); }
    Log false Own { float |x| x.ln(); complex |z| complex::log(z); }
    Log2 false Own { float |x| x.log2(); complex |z| complex::log2(z); }
    Log10 false Own { float |x| x.log10(); complex |z| complex::log10(z); }
    Sin false Own { float |x| x.sin(); complex |z| complex::sin(z); }
    Cos false Own { float |x| x.cos(); complex |z| complex::cos(z); }
    Tan false Own { float |x| x.tan(); complex |z| complex::tan(z); }
    Asin false Own { float |x| x.asin(); complex |z| complex::asin(z); }
    Acos false Own { float |x| x.acos(); complex |z| complex::acos(z); }
    Atan false Own { float |x| x.atan(); complex |z| complex::atan(z); }
    Sinh false Own { float |x| x.sinh(); complex |z| complex::sinh(z); }
    Cosh false Own { float |x| x.cosh(); complex |z| complex::cosh(z); }
    Tanh false Own { float |x| x.tanh(); complex |z| complex::tanh(z); }
    Floor true Own { whole |x| x; float |x| x.floor(); }
    Ceil true Own { whole |x| x; float |x| x.ceil(); }
    Trunc true Own { whole |x| x; float |x| x.trunc(); }
    Fraction true Own { whole |x| x.subtract(x); float |x| x.fraction(); }
    Rint true Own { float |x| x.round_ties_even(); complex |z| complex::rint(z); }
    Mantissa true Own { float |x| x.frexp().0; }
    Exponent true Own { float |x| x.frexp().1; }
    IsNan true Test { every |x| Truth::new(x.is_nan()); }
    IsInfinite true Test { every |x| Truth::new(x.is_infinite()); }
    // The difference is zero, or NaN for what is not finite.
    IsFinite true Test { every |x| Truth::new(!x.subtract(x).is_nan()); }
    SignBit true Test {
        whole |x| Truth::new(x.less(x.subtract(x)));
        float |x| Truth::new(x.is_sign_negative());
    }
    Positive true Own { every |x| x; }
    Square true Own { every |x| x.multiply(x); }
    Reciprocal true Own { every |x| T::from_u8(1).divide(x); }
    Radians true Own { float |x| x.to_radians(); }
    Degrees true Own { float |x| x.to_degrees(); }
    Cbrt false Own { float |x| x.cbrt(); }
    Exp2 false Own { float |x| x.exp2(); complex |z| complex::exp2(z); }
    Expm1 false Own { float |x| x.exp_m1(); complex |z| complex::exp_m1(z); }
    Log1p false Own { float |x| x.ln_1p(); complex |z| complex::ln_1p(z); }
    Asinh false Own { precise |x| libm::asinh(x); complex |z| complex::asinh(z); }
    // libm's has numbers for some arguments far below its domain.
    Acosh false Own {
        precise |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
        complex |z| complex::acosh(z);
    }
    Atanh false Own { precise |x| libm::atanh(x); complex |z| complex::atanh(z); }
    Erf false Own { precise |x| libm::erf(x); }
    Erfc false Own { precise |x| libm::erfc(x); }
    Gamma false Own { precise |x| libm::tgamma(x); }
    LogGamma false Own { precise |x| libm::lgamma(x); }
}

/// The loop of a function of one element; none for records and functions that this backend
/// does not know.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    math::kernel(function, compute).or_else(|| plain(function, compute))
}
