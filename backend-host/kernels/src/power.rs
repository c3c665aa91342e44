//! Loops that raise real numbers to a power.

use super::kernel::Kernel;
use super::math::power::Real;
use super::multiversion::{Loop, map_pairs, operands, select_fused, select_variant};
use super::number::Number;
use hal::function::BinaryFunction;
use hal::{DType, bf16, f16};

/// Elements that are squared side by side.
const SIDE: usize = 64;

/// An exponent that is the same for all elements.
trait Exponent: Number {
    /// Its bits; `None` if it is negative.
    fn bits(self) -> Option<u64>;
}

macro_rules! exponents {
    ($($own:ident)*) => {
        $(
            impl Exponent for $own {
                #[inline(always)]
                fn bits(self) -> Option<u64> {
                    u64::try_from(self).ok()
                }
            }
        )*
    };
}

exponents! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn power_body<T: Exponent>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe { operands::<T, T, T>(value, arguments, repeated, length) };
    if repeated & 3 == 2
        && let Some(exponent) = y.first().and_then(|exponent| exponent.bits())
    {
        for (value, x) in value.chunks_mut(SIDE).zip(x.chunks(SIDE)) {
            if let (Ok(value), Ok(x)) = (<&mut [_; SIDE]>::try_from(&mut *value), x.try_into()) {
                *value = powers::<T, SIDE>(x, exponent).map(std::mem::MaybeUninit::new);
            } else {
                for (value, &x) in value.iter_mut().zip(x) {
                    value.write(powers(&[x], exponent)[0]);
                }
            }
        }
        return;
    }
    map_pairs(value, x, y, repeated, |x, y| x.power(y));
}

/// Repeated squaring of elements side by side.
#[inline(always)]
fn powers<T: Number, const N: usize>(x: &[T; N], exponent: u64) -> [T; N] {
    let (mut base, mut exponent) = (*x, exponent);
    if exponent == 0 {
        return [T::from_u8(1); N];
    }
    while exponent & 1 == 0 {
        base.iter_mut().for_each(|base| *base = base.multiply(*base));
        exponent >>= 1;
    }
    let mut value = base;
    while exponent > 1 {
        base.iter_mut().for_each(|base| *base = base.multiply(*base));
        exponent >>= 1;
        if exponent & 1 == 1 {
            value.iter_mut().zip(&base).for_each(|(value, &base)| *value = value.multiply(base));
        }
    }
    value
}

select_variant!(select_power<T: Exponent>, power_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// Elements of floating-point types that are computed at a time, and of the innermost loop.
const CHUNK: usize = 256;
const GROUP: usize = 32;

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn real_body<T: Real>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe { operands::<T, T, T>(value, arguments, repeated, length) };
    let (mut bases, mut exponents) = ([T::default(); CHUNK], [T::default(); CHUNK]);
    let mut values = [T::default(); CHUNK];
    for start in (0..length).step_by(CHUNK) {
        let count = CHUNK.min(length - start);
        for (numbers, given) in [(&mut bases, x), (&mut exponents, y)] {
            match given {
                [number] => numbers.fill(*number),
                _ => numbers[..count].copy_from_slice(&given[start..start + count]),
            }
        }
        let used = count.div_ceil(GROUP) * GROUP;
        let arguments = bases[..used].as_chunks::<GROUP>().0.iter();
        let arguments = arguments.zip(exponents[..used].as_chunks::<GROUP>().0);
        for (values, (x, y)) in values.as_chunks_mut::<GROUP>().0.iter_mut().zip(arguments) {
            for index in 0..GROUP {
                values[index] = Real::power(x[index], y[index]);
            }
        }
        let pairs = || bases[..count].iter().zip(&exponents[..count]);
        if pairs().fold(false, |any, (&x, &y)| any | x.is_special(y)) {
            for (value, (&x, &y)) in values.iter_mut().zip(pairs()) {
                if x.is_special(y) {
                    *value = x.library_power(y);
                }
            }
        }
        for (place, &number) in value[start..start + count].iter_mut().zip(&values) {
            place.write(number);
        }
    }
}

select_fused!(select_real<T: Real>, real_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// The loop of a power of real numbers; none for other functions and types, and for numbers with
/// fractions on processors without fused multiply-add.
pub(super) fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    if function != BinaryFunction::Power {
        return None;
    }
    let run = match compute {
        DType::Int8 => select_power::<i8>(),
        DType::Int16 => select_power::<i16>(),
        DType::Int32 => select_power::<i32>(),
        DType::Int64 => select_power::<i64>(),
        DType::UInt8 => select_power::<u8>(),
        DType::UInt16 => select_power::<u16>(),
        DType::UInt32 => select_power::<u32>(),
        DType::UInt64 => select_power::<u64>(),
        DType::Float16 => select_real::<f16>()?,
        DType::BFloat16 => select_real::<bf16>()?,
        DType::Float32 => select_real::<f32>()?,
        DType::Float64 => select_real::<f64>()?,
        _ => return None,
    };
    Some(Kernel { run, cheap: false, in_place: false })
}
