//! The last step of a reduction, applied to the values before they are stored.

use crate::copy::pointer;
use crate::number::Number;
use hal::operation::Epilogue;
use hal::{Complex, DType};

/// Applies the epilogue to `length` packed values of an inexact type at this address.
///
/// # Safety
/// The values must be at the address, aligned and of this type, and nothing else may access them.
pub(super) unsafe fn apply(epilogue: Epilogue, dtype: DType, address: usize, length: usize) {
    let by = epilogue.divisor();
    let root = match epilogue {
        Epilogue::Identity => return,
        Epilogue::Quotient(_) => false,
        Epilogue::RootOfQuotient(_) => true,
    };
    // SAFETY: passed on to the caller.
    unsafe {
        match dtype {
            DType::Float32 => replace(address, length, |sum: f32| {
                let quotient = sum / by as f32;
                if root { quotient.sqrt() } else { quotient }
            }),
            DType::Float64 => replace(address, length, |sum: f64| {
                let quotient = sum / by;
                if root { quotient.sqrt() } else { quotient }
            }),
            DType::Complex64 => {
                let by = Complex::new(by as f32, 0.0);
                replace(address, length, |sum: Complex<f32>| sum.divide(by));
            }
            DType::Complex128 => {
                let by = Complex::new(by, 0.0);
                replace(address, length, |sum: Complex<f64>| sum.divide(by));
            }
            // Sums of 16-bit floats have type `Float32`; other types do not have an epilogue.
            _ => {}
        }
    }
}

/// # Safety
/// The same as for [`apply`].
unsafe fn replace<T: Copy>(address: usize, length: usize, with: impl Fn(T) -> T) {
    // SAFETY: passed on to the caller.
    let values = unsafe { std::slice::from_raw_parts_mut(pointer(address).cast::<T>(), length) };
    for value in values {
        *value = with(*value);
    }
}
