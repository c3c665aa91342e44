//! Loops that raise real numbers to a power.

use super::blocks::Kernel;
use super::bodies::step_pairs;
use super::float::Float;
use super::math::power::Real;
use super::multiversion::{Loop, operands, select_fused, select_variant};
use super::number::{Convert as _, Number, for_each, with_kind, with_number};
use hal::DType;
use hal::function::BinaryFunction;

/// The number of elements that are squared together.
const SIDE: usize = 64;

/// An exponent shared by all elements.
trait Exponent: Number {
    /// Returns its bits, or `None` if it is negative.
    fn bits(self) -> Option<u64>;
}

macro_rules! exponent {
    ([] $dtype:ident, $own:ty) => {
        impl Exponent for $own {
            #[inline(always)]
            fn bits(self) -> Option<u64> {
                u64::try_from(self).ok()
            }
        }
    };
}

for_each!(integer => exponent []);

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
    let exponent = unsafe { arguments[1].cast::<T>().read() };
    if repeated & 3 == 2
        && let Some(exponent) = exponent.bits()
    {
        // SAFETY: passed on to the caller.
        let (value, x, _) = unsafe { operands::<T, T, T>(value, arguments, repeated, length) };
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
    // SAFETY: passed on to the caller.
    unsafe { step_pairs(value, arguments, repeated, length, T::power) }
}

/// Raises several elements to a power by repeated squaring.
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

/// The number of floating-point elements computed in one step, and in the innermost loop.
const CHUNK: usize = 256;
const GROUP: usize = 32;

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn real_body<T: Float<Functions: Real>>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe { operands::<T, T, T>(value, arguments, repeated, length) };
    let (mut bases, mut exponents) =
        ([T::Functions::default(); CHUNK], [T::Functions::default(); CHUNK]);
    let mut values = [T::Functions::default(); CHUNK];
    for start in (0..length).step_by(CHUNK) {
        let count = CHUNK.min(length - start);
        for (numbers, given) in [(&mut bases, x), (&mut exponents, y)] {
            match given {
                [number] => numbers.fill(number.convert()),
                _ => T::load(&given[start..start + count], &mut numbers[..count]),
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
            place.write(number.convert());
        }
    }
}

select_fused!(select_real<T: Float<Functions: Real>>, real_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// Returns the loop of a power of real numbers, or `None` for other functions and types. For floating-point
/// numbers, the processor must have fused multiply-add.
pub(super) fn kernel(function: BinaryFunction, compute: DType) -> Option<Kernel> {
    if function != BinaryFunction::Power {
        return None;
    }
    let run = with_kind!(integer compute, T => Some(select_power::<T>()))
        .or_else(|| with_kind!(float compute, T => select_real::<T>()))?;
    Some(Kernel { run: run.into(), cheap: false, in_place: false })
}
