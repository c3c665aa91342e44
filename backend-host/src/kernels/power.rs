//! Loops that raise integers to a power.

use super::kernel::Kernel;
use super::number::Number;
use super::vector::{Loop, elements, places, select_variant};
use hal::DType;
use hal::function::BinaryFunction;

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
    let given = |argument: u32| if repeated >> argument & 1 == 0 { length } else { 1 };
    // SAFETY: passed on to the caller.
    let (value, x, y) = unsafe {
        (
            places::<T>(value, length),
            elements::<T>(arguments[0], given(0)),
            elements::<T>(arguments[1], given(1)),
        )
    };
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
    let last = |elements: &[T]| elements.len() - 1;
    for (index, value) in value.iter_mut().enumerate() {
        value.write(x[index.min(last(x))].power(y[index.min(last(y))]));
    }
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

/// The loop of a power of integers; none for other functions and types.
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
        _ => return None,
    };
    Some(Kernel { run, cheap: false, in_place: false })
}
