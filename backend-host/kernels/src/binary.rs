//! Loops that apply a function of two elements.

use super::blocks::{Form, Kernel, Routine};
use super::bodies::{map_numbers, map_pairs, step_pairs, zip_pairs};
use super::exponent::Parts as _;
use super::multiversion::{Loop, select_blocks};
use super::number::{Convert as _, Number, Truth, for_each, with_kind, with_number};
use super::pairs::{Divisors as _, Neighbour as _, Sums as _};
use super::unary::{Own, Stepped, Test, ValueOn, Vector, through};
use super::{divide, power};
use hal::DType;
use hal::function::BinaryFunction;

/// The strategy by which the loop of a function is compiled. It is a type, so that unused variants are not
/// compiled.
trait Code<T: Number, F: Binary<T>> {
    /// See [`Kernel::cheap`].
    const CHEAP: bool = true;
    /// True if the loop has a separate case for each repeated argument.
    const NUMBERS: bool = false;
    /// The form of the loop.
    const FORM: Form = if Self::NUMBERS { Form::Blocks } else { Form::of::<T, T>() };
    /// Returns the loop over blocks, or `None` if the function costs more than the loop overhead.
    fn select() -> Option<Loop>;
}

/// Like [`Vector`], but also by blocks for complex numbers: the function has few enough steps for the
/// compiler to vectorise them.
struct Arithmetic;

impl<T: Number, F: Binary<T>> Code<T, F> for Arithmetic {
    const FORM: Form = Form::Blocks;
    fn select() -> Option<Loop> {
        select_wide::<T, F>()
    }
}

/// Like [`Vector`], for functions with faster instructions for a vector and a number than for two vectors.
struct ByNumber;

/// Like [`Vector`], for functions that are faster with AVX-512: it has masks, and conversions to values
/// narrower than the elements.
struct Masked;

impl<T: Number, F: Binary<T>> Code<T, F> for Stepped {
    const CHEAP: bool = false;
    fn select() -> Option<Loop> {
        None
    }
}

impl<T: Number, F: Binary<T>> Code<T, F> for Vector {
    fn select() -> Option<Loop> {
        select_wide::<T, F>()
    }
}

impl<T: Number, F: Binary<T>> Code<T, F> for ByNumber {
    const NUMBERS: bool = true;
    fn select() -> Option<Loop> {
        select_wide::<T, F>()
    }
}

/// Combines [`Masked`] and [`ByNumber`].
struct MaskedByNumber;

impl<T: Number, F: Binary<T>> Code<T, F> for MaskedByNumber {
    const NUMBERS: bool = true;
    fn select() -> Option<Loop> {
        select_masked_wide::<T, F>()
    }
}

impl<T: Number, F: Binary<T>> Code<T, F> for Masked {
    fn select() -> Option<Loop> {
        // Byte values of byte elements need no masks.
        if size_of::<T>() == 1 { select_wide::<T, F>() } else { select_masked_wide::<T, F>() }
    }
}

/// A function of two elements.
trait Binary<T: Number>: Sized {
    /// The strategy by which a loop over the function is compiled.
    type Code: Code<T, Self>;
    /// The type of the value.
    type Value: Number;
    /// Returns the value of the function.
    fn apply(x: T, y: T) -> Self::Value;
}

/// Returns true if loops have a separate case for each repeated argument. Loops over bytes do not: they
/// compute so many elements in one step that reading the number again is as fast. Loops over types stored in
/// few bits do not either, because they would convert the number again.
const fn has_numbers<T: Number>() -> bool {
    size_of::<T>() == 1 || size_of::<T>() != size_of::<T::Working>()
}

/// # Safety
/// See [`map_pairs`] or [`zip_pairs`], depending on the form.
#[inline(always)]
unsafe fn body<T: Number, F: Binary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        if const { F::Code::NUMBERS || has_numbers::<T>() } {
            map_numbers(value, arguments, repeated, blocks, F::apply);
        } else if const { matches!(F::Code::FORM, Form::Arrays) } {
            zip_pairs(value, arguments, blocks, F::apply);
        } else {
            map_pairs(value, arguments, repeated, blocks, F::apply);
        }
    }
}

/// # Safety
/// See [`Loop`].
unsafe fn stepped<T: Number, F: Binary<T>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_pairs(value, arguments, repeated, length, F::apply) }
}

select_blocks!(select_wide<T: Number, F: Binary<T>>, body);
select_blocks!(select_masked_wide<T: Number, F: Binary<T>>, body, masked select_wide);

fn kernel_of<T: Number, F: Binary<T>>() -> Kernel {
    let blocks = (F::Code::select(), F::Code::FORM);
    let run = Routine::new(stepped::<T, F>, blocks, size_of::<F::Value>(), &[size_of::<T>(); 2]);
    Kernel { run, cheap: F::Code::CHEAP, in_place: true }
}

/// Implements [`Binary`] for one function and one type. The elements are passed as a [`through`].
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

/// The functions, one per line: the [`Code`], the type of the values, and the value for every type, for
/// integers (`integer`), or for floating-point numbers. Floating-point functions are computed in the working
/// type (`float`), in a wider type if they would otherwise be rounded twice (`precise`), or without
/// conversion (`exact`). A specialised loop ([`divide`], [`power`]) takes precedence.
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

        /// Returns the plain loop of a function.
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
    Add Arithmetic Own { every |x, y| x.add(y); }
    Subtract Arithmetic Own { every |x, y| x.subtract(y); }
    Multiply ByNumber Own { every |x, y| x.multiply(y); }
    Divide ByNumber Own { every |x, y| x.divide(y); }
    FloorDivide Stepped Own { every |x, y| x.floor_divide(y); }
    Remainder Stepped Own { every |x, y| x.remainder(y); }
    Fmod Stepped Own { every |x, y| x.fmod(y); }
    Power Stepped Own { every |x, y| x.power(y); }
    Minimum Vector Own { every |x, y| x.minimum(y); }
    Maximum Vector Own { every |x, y| x.maximum(y); }
    Ldexp MaskedByNumber Own { float |x, y| x.ldexp(y); }
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
    LeftShift ByNumber Own { every |x, y| x.left_shift(y); }
    RightShift ByNumber Own { every |x, y| x.right_shift(y); }
    Equal Masked Test { every |x, y| Truth::new(x.equal(y)); }
    NotEqual Masked Test { every |x, y| Truth::new(!x.equal(y)); }
    Less Masked Test { every |x, y| Truth::new(x.less(y)); }
    LessEqual Masked Test { every |x, y| Truth::new(x.less_equal(y)); }
    Greater Masked Test { every |x, y| Truth::new(y.less(x)); }
    GreaterEqual Masked Test { every |x, y| Truth::new(y.less_equal(x)); }
}

/// Returns the loop of a function of two elements, or `None` for records and functions that this backend does
/// not support.
pub(super) fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    divide::kernel(function, compute)
        .or_else(|| power::kernel(function, compute))
        .or_else(|| plain(function, compute))
}
