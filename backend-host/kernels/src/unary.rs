//! Loops that apply a function of one element.

use super::blocks::{Form, Kernel, Routine};
use super::bodies::{map_single, step_single, zip_single};
use super::exponent::Parts as _;
use super::math::{self, complex};
use super::multiversion::{Loop, select_blocks};
use super::number::{Convert as _, Number, Truth, for_each, with_kind, with_number};
use hal::function::UnaryFunction;
use hal::{Complex, DType};

/// A function of one element.
trait Unary<T: Number>: Sized {
    /// The strategy by which a loop over the function is compiled.
    type Code: Code<T, Self>;
    /// The type of the value.
    type Value: Number;
    /// Returns the value of the function.
    fn apply(x: T) -> Self::Value;
}

/// # Safety
/// See [`map_single`] or [`zip_single`], depending on the form.
#[inline(always)]
unsafe fn unary_body<T: Number, F: Unary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        if const { matches!(F::Code::FORM, Form::Arrays) } {
            zip_single(value, arguments, blocks, F::apply);
        } else {
            map_single(value, arguments, repeated, blocks, F::apply);
        }
    }
}

/// # Safety
/// See [`Loop`].
unsafe fn stepped<T: Number, F: Unary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_single(value, arguments, repeated, length, F::apply) }
}

select_blocks!(select_unary<T: Number, F: Unary<T>>, unary_body);

/// The strategy by which the loop of a function is compiled. It is a type, so that unused variants are not
/// compiled.
trait Code<T: Number, F: Unary<T>> {
    /// See [`Kernel::cheap`].
    const CHEAP: bool;
    /// The form of the loop.
    const FORM: Form = Form::of::<T, F::Value>();
    /// Returns the loop over blocks, or `None` if the function costs more than the loop overhead.
    fn select() -> Option<Loop>;
}

/// One loop for all combinations of repeated arguments, because the function costs more than the loop
/// overhead.
pub(super) struct Stepped;
/// Vectorised code, for each level of the processor.
pub(super) struct Vector;

/// Like [`Vector`], by a loop over arrays: a block has so few `f64` elements that it would not be vectorised.
struct Arrays;

impl<T: Number, F: Unary<T>> Code<T, F> for Arrays {
    const CHEAP: bool = true;
    const FORM: Form = Form::Arrays;
    fn select() -> Option<Loop> {
        select_unary::<T, F>()
    }
}

impl<T: Number, F: Unary<T>> Code<T, F> for Stepped {
    const CHEAP: bool = false;
    fn select() -> Option<Loop> {
        None
    }
}

impl<T: Number, F: Unary<T>> Code<T, F> for Vector {
    const CHEAP: bool = true;
    fn select() -> Option<Loop> {
        select_unary::<T, F>()
    }
}

fn kernel_of<T: Number, F: Unary<T>>() -> Kernel {
    let blocks = (F::Code::select(), F::Code::FORM);
    let run = Routine::new(stepped::<T, F>, blocks, size_of::<F::Value>(), &[size_of::<T>()]);
    Kernel { run, cheap: F::Code::CHEAP, in_place: true }
}

/// The type of a function's values on elements of a type.
pub(super) trait ValueOn<T: Number> {
    /// The type.
    type Value: Number;
}

/// Values of the elements' own type.
pub(super) struct Own;
/// Values of the type of the real and imaginary parts.
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

/// Implements [`Unary`] for one function and one type. `$x` is the element in the type that [`through`]
/// names.
macro_rules! implement {
    ([$function:ident $code:ident $value:ident $through:ident |$x:ident| $body:expr]
     $dtype:ident, $own:ty) => {
        impl Unary<$own> for $function {
            type Code = $code;
            type Value = <$value as ValueOn<$own>>::Value;
            #[inline(always)]
            fn apply(x: $own) -> Self::Value {
                let $x = x.convert::<through!($through $own)>();
                ($body).convert()
            }
        }
    };
}

/// The type in which a function of elements is computed: the type itself (`Own`), double precision
/// (`Double`), or an associated type of [`Number`] or [`Float`](super::float::Float).
macro_rules! through {
    (Own $own:ty) => { $own };
    (Double $own:ty) => { f64 };
    (DoubleComplex $own:ty) => { Complex<f64> };
    (Precise $own:ty) => { <$own as $crate::float::Float>::Precise };
    ($type:ident $own:ty) => { <$own as $crate::number::Number>::$type };
}
pub(super) use through;

/// The functions, one per line: the [`Code`], the type of the values, and the value for every type, or for
/// the kinds of types for which it is defined. Floating-point numbers are computed in their working type
/// (`float`), or all in double precision if the function is only implemented there (`precise`); complex
/// numbers are computed in double precision. A specialised loop in [`math::kernel`] takes precedence.
macro_rules! functions {
    ($(
        $function:ident $code:ident $value:ident {
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
                    type Code = $code;
                    type Value = <$value as ValueOn<T>>::Value;
                    #[inline(always)]
                    fn apply($x: T) -> Self::Value {
                        $every
                    }
                }
            )?
            $(for_each!(whole => implement [$function $code $value Own |$i| $whole]);)?
            $(for_each!(float => implement [$function $code $value Working |$f| $float]);)?
            $(for_each!(float => implement [$function $code $value Double |$p| $precise]);)?
            $(for_each!(complex => implement [$function $code $value DoubleComplex |$z| $complex]);)?
        )*

        /// Returns the plain loop of a function.
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
    // Returns the kernel found so far or another one, in the repetition of a function's value.
    (@ $value:expr; $kernel:ident, $other:expr) => {
        $kernel.or_else(|| $other)
    };
}

functions! {
    Copy Vector Own { every |x| x.convert(); }
    Negative Vector Own { every |x| x.negative(); }
    Absolute Vector Part { every |x| x.absolute(); }
    Sign Arrays Own { every |x| x.sign(); }
    Conjugate Vector Own { every |x| x.conjugate(); }
    Real Vector Part { every |x| x.real(); }
    Imaginary Vector Part { every |x| x.imaginary(); }
    LogicalNot Vector Test { every |x| Truth::new(!x.is_true()); }
    Invert Vector Own { every |x| x.invert(); }
    Sqrt Vector Own { float |x| x.sqrt(); complex |z| complex::sqrt(z); }
    Exp Stepped Own { float |x| x.exp(); complex |z| complex::exp(z); }
    Log Stepped Own { float |x| x.ln(); complex |z| complex::log(z); }
    Log2 Stepped Own { float |x| x.log2(); complex |z| complex::log2(z); }
    Log10 Stepped Own { float |x| x.log10(); complex |z| complex::log10(z); }
    Sin Stepped Own { float |x| x.sin(); complex |z| complex::sin(z); }
    Cos Stepped Own { float |x| x.cos(); complex |z| complex::cos(z); }
    Tan Stepped Own { float |x| x.tan(); complex |z| complex::tan(z); }
    Asin Stepped Own { float |x| x.asin(); complex |z| complex::asin(z); }
    Acos Stepped Own { float |x| x.acos(); complex |z| complex::acos(z); }
    Atan Stepped Own { float |x| x.atan(); complex |z| complex::atan(z); }
    Sinh Stepped Own { float |x| x.sinh(); complex |z| complex::sinh(z); }
    Cosh Stepped Own { float |x| x.cosh(); complex |z| complex::cosh(z); }
    Tanh Stepped Own { float |x| x.tanh(); complex |z| complex::tanh(z); }
    Floor Vector Own { whole |x| x; float |x| x.floor(); }
    Ceil Vector Own { whole |x| x; float |x| x.ceil(); }
    Trunc Vector Own { whole |x| x; float |x| x.trunc(); }
    Fraction Vector Own { whole |x| x.subtract(x); float |x| x.fraction(); }
    Rint Vector Own { float |x| x.round_ties_even(); complex |z| complex::rint(z); }
    Mantissa Arrays Own { float |x| x.frexp().0; }
    Exponent Arrays Own { float |x| x.frexp().1; }
    IsNan Vector Test { every |x| Truth::new(x.is_nan()); }
    IsInfinite Vector Test { every |x| Truth::new(x.is_infinite()); }
    // The difference is zero, or NaN if the number is not finite.
    IsFinite Vector Test { every |x| Truth::new(!x.subtract(x).is_nan()); }
    SignBit Vector Test {
        whole |x| Truth::new(x.less(x.subtract(x)));
        float |x| Truth::new(x.is_sign_negative());
    }
    Positive Vector Own { every |x| x; }
    Square Vector Own { every |x| x.multiply(x); }
    Reciprocal Vector Own { every |x| x.reciprocal(); }
    Radians Vector Own { float |x| x.to_radians(); }
    Degrees Vector Own { float |x| x.to_degrees(); }
    Cbrt Stepped Own { float |x| x.cbrt(); }
    Exp2 Stepped Own { float |x| x.exp2(); complex |z| complex::exp2(z); }
    Expm1 Stepped Own { float |x| x.exp_m1(); complex |z| complex::exp_m1(z); }
    Log1p Stepped Own { float |x| x.ln_1p(); complex |z| complex::ln_1p(z); }
    Asinh Stepped Own { precise |x| libm::asinh(x); complex |z| complex::asinh(z); }
    // libm's version returns numbers for some arguments far below its domain.
    Acosh Stepped Own {
        precise |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) };
        complex |z| complex::acosh(z);
    }
    Atanh Stepped Own { precise |x| libm::atanh(x); complex |z| complex::atanh(z); }
    Erf Stepped Own { precise |x| libm::erf(x); }
    Erfc Stepped Own { precise |x| libm::erfc(x); }
    Gamma Stepped Own { precise |x| libm::tgamma(x); }
    LogGamma Stepped Own { precise |x| libm::lgamma(x); }
}

/// Returns the loop of a function of one element, or `None` for records and functions that this backend does
/// not support.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    math::kernel(function, compute).or_else(|| plain(function, compute))
}
