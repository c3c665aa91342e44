//! Loops for integer division that round down. They avoid the processor's division where vectors do not
//! support it. Division by zero returns zero, and results that do not fit wrap.
//!
//! Division by a single number multiplies by its reciprocal (T. Granlund and P. L. Montgomery, *Division by
//! invariant integers using multiplication*, 1994, figure 4.1). Division of elements by elements uses
//! floating point if they have at most 32 bits.

use super::blocks::{Form, Kernel, Routine};
use super::bodies::{map_pairs, map_single, step_pairs};
use super::multiversion::{Loop, select_blocks};
use super::number::Number;
use hal::DType;
use hal::function::BinaryFunction;

/// An integer type whose elements are divided.
trait Integer: Number {
    /// A prepared divisor.
    type Divisor: Copy;

    /// Prepares a nonzero divisor.
    fn divisor(number: Self) -> Self::Divisor;
    /// Returns the quotient, rounded down.
    fn quotient(self, divisor: Self::Divisor) -> Self;
    /// Returns quotient and remainder of any two elements.
    fn divided(self, divisor: Self) -> (Self, Self);
    /// Returns `self - quotient * divisor`.
    fn rest(self, quotient: Self, divisor: Self) -> Self;
}

/// The multiplication that replaces the division by an unsigned number.
#[derive(Clone, Copy)]
struct Reciprocal<U> {
    multiplier: U,
    first: u32,
    second: u32,
}

/// The sign and the reciprocal of the magnitude of a signed divisor.
#[derive(Clone, Copy)]
struct SignedDivisor<U> {
    magnitude: Reciprocal<U>,
    is_negative: bool,
}

macro_rules! reciprocal {
    ($($unsigned:ident, $wide:ident;)*) => {
        $(
            impl Reciprocal<$unsigned> {
                #[inline(always)]
                fn new(divisor: $unsigned) -> Self {
                    // 2^log is the least power of two that is not less than the divisor.
                    let log = $unsigned::BITS - divisor.wrapping_sub(1).leading_zeros();
                    let excess = ((1 as $wide) << log) - divisor as $wide;
                    let multiplier = (excess << $unsigned::BITS) / divisor as $wide + 1;
                    Reciprocal {
                        multiplier: multiplier as $unsigned,
                        first: log.min(1),
                        second: log.saturating_sub(1),
                    }
                }

                #[inline(always)]
                fn quotient(self, number: $unsigned) -> $unsigned {
                    let product = self.multiplier as $wide * number as $wide;
                    let high = (product >> $unsigned::BITS) as $unsigned;
                    // The sum is the quotient before the last shift, and fits the type.
                    let half = number.wrapping_sub(high).wrapping_shr(self.first);
                    high.wrapping_add(half).wrapping_shr(self.second)
                }
            }
        )*
    };
}

reciprocal! {
    u8, u16;
    u16, u32;
    u32, u64;
    u64, u128;
}

/// Computes quotient and remainder of integers that the floating-point type represents exactly. Adding and
/// subtracting `1.5 * 2^(digits - 1)` rounds to the nearest integer, and leaves that integer in the low bits.
/// The divisor must not be zero.
macro_rules! divided_in {
    ($float:ident, $shift:literal, $x:expr, $y:expr) => {{
        const ROUND: $float = 1.5 * (1u64 << $shift) as $float;
        let (x, y) = ($x as $float, $y as $float);
        let nearest = (x / y + ROUND) - ROUND;
        let rest = x - nearest * y;
        let above = (rest != 0.0) & ((rest < 0.0) != (y < 0.0));
        let quotient = if above { nearest - 1.0 } else { nearest };
        let rest = if above { rest + y } else { rest };
        ((quotient + ROUND).to_bits(), (rest + ROUND).to_bits())
    }};
}

macro_rules! divided {
    (in $float:ident $shift:literal, $own:ident) => {
        #[inline(always)]
        fn divided(self, divisor: Self) -> (Self, Self) {
            let is_zero = divisor == 0;
            let other = if is_zero { 1 } else { divisor };
            let (quotient, rest) = divided_in!($float, $shift, self, other);
            let value = |bits| if is_zero { 0 } else { bits as $own };
            (value(quotient), value(rest))
        }
    };
    (exactly, $own:ident) => {
        #[inline(always)]
        fn divided(self, divisor: Self) -> (Self, Self) {
            (self.floor_divide(divisor), self.remainder(divisor))
        }
    };
}

macro_rules! unsigned {
    ($($own:ident, ($($how:tt)*);)*) => {
        $(
            impl Integer for $own {
                type Divisor = Reciprocal<$own>;

                #[inline(always)]
                fn divisor(number: Self) -> Self::Divisor {
                    Reciprocal::<$own>::new(number)
                }
                #[inline(always)]
                fn quotient(self, divisor: Self::Divisor) -> Self {
                    divisor.quotient(self)
                }
                divided!($($how)*, $own);
                #[inline(always)]
                fn rest(self, quotient: Self, divisor: Self) -> Self {
                    self.wrapping_sub(quotient.wrapping_mul(divisor))
                }
            }
        )*
    };
}

macro_rules! signed {
    ($($own:ident, $unsigned:ident, ($($how:tt)*);)*) => {
        $(
            impl Integer for $own {
                type Divisor = SignedDivisor<$unsigned>;

                #[inline(always)]
                fn divisor(number: Self) -> Self::Divisor {
                    SignedDivisor {
                        magnitude: Reciprocal::<$unsigned>::new(number.unsigned_abs()),
                        is_negative: number < 0,
                    }
                }
                /// Rounded down, `-n / d` is `!((n - 1) / d)`.
                #[inline(always)]
                fn quotient(self, divisor: Self::Divisor) -> Self {
                    let (below, magnitude) = if divisor.is_negative {
                        (self > 0, if self > 0 { self - 1 } else { self.wrapping_neg() })
                    } else {
                        (self < 0, if self < 0 { !self } else { self })
                    };
                    let quotient = divisor.magnitude.quotient(magnitude as $unsigned) as $own;
                    if below { !quotient } else { quotient }
                }
                divided!($($how)*, $own);
                #[inline(always)]
                fn rest(self, quotient: Self, divisor: Self) -> Self {
                    self.wrapping_sub(quotient.wrapping_mul(divisor))
                }
            }
        )*
    };
}

unsigned! {
    u8, (in f32 23);
    u16, (in f32 23);
    u32, (in f64 52);
    u64, (exactly);
}

signed! {
    i8, u8, (in f32 23);
    i16, u16, (in f32 23);
    i32, u32, (in f64 52);
    i64, u64, (exactly);
}

/// Returns the quotient, or the remainder.
#[inline(always)]
fn divided<T: Integer, const REMAINDER: bool>(x: T, y: T) -> T {
    if REMAINDER { x.divided(y).1 } else { x.divided(y).0 }
}

/// # Safety
/// See [`map_pairs`].
#[inline(always)]
unsafe fn body<T: Integer, const REMAINDER: bool>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller; a repeated argument is a block.
    let number = unsafe { arguments[1].cast::<T>().read() };
    if repeated & 3 == 2 && number.is_true() {
        let divisor = T::divisor(number);
        let apply = |x: T| {
            let quotient = x.quotient(divisor);
            if REMAINDER { x.rest(quotient, number) } else { quotient }
        };
        // SAFETY: passed on to the caller.
        return unsafe { map_single(value, arguments, 0, blocks, apply) };
    }
    // SAFETY: passed on to the caller.
    unsafe { map_pairs(value, arguments, repeated, blocks, divided::<T, REMAINDER>) }
}

/// # Safety
/// See [`map_pairs`].
#[inline(always)]
unsafe fn quotient_body<T: Integer>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { body::<T, false>(value, arguments, repeated, blocks) }
}

/// # Safety
/// See [`map_pairs`].
#[inline(always)]
unsafe fn remainder_body<T: Integer>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    blocks: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { body::<T, true>(value, arguments, repeated, blocks) }
}

select_blocks!(select_quotient<T: Integer>, quotient_body);
select_blocks!(select_remainder<T: Integer>, remainder_body);

/// # Safety
/// See [`Loop`].
unsafe fn stepped<T: Integer, const REMAINDER: bool>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { step_pairs(value, arguments, repeated, length, divided::<T, REMAINDER>) }
}

/// Returns the loop of an integer division that rounds down, or `None` for other functions and types.
pub fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    let is_remainder = match function {
        BinaryFunction::FloorDivide => false,
        BinaryFunction::Remainder => true,
        _ => return None,
    };
    fn select<T: Integer>(is_remainder: bool) -> Routine {
        let (elements, blocks) = if is_remainder {
            (stepped::<T, true> as Loop, select_remainder::<T>())
        } else {
            (stepped::<T, false> as Loop, select_quotient::<T>())
        };
        Routine::new(elements, (blocks, Form::Blocks), size_of::<T>(), &[size_of::<T>(); 2])
    }
    let run = match compute {
        DType::Int8 => select::<i8>(is_remainder),
        DType::Int16 => select::<i16>(is_remainder),
        DType::Int32 => select::<i32>(is_remainder),
        DType::Int64 => select::<i64>(is_remainder),
        DType::UInt8 => select::<u8>(is_remainder),
        DType::UInt16 => select::<u16>(is_remainder),
        DType::UInt32 => select::<u32>(is_remainder),
        DType::UInt64 => select::<u64>(is_remainder),
        _ => return None,
    };
    Some(Kernel { run, cheap: true, in_place: true })
}
