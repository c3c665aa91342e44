//! Sorting of rows, and the indices that sort them.

use super::copy::pointer;
use super::parallel::Workers;
use super::unsupported;
use hal::operation::Sort;
use hal::{Complex, DType, Result, bf16, f16};
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;

/// Rows of at least so many elements are sorted by several threads each.
const LONG: usize = 1 << 16;

/// An element as it lies in memory, and its place in the order.
trait Sortable: Copy + Send + Sync {
    fn order(&self, other: &Self) -> Ordering;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Sortable for $type {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Sortable for $type {
            fn order(&self, other: &Self) -> Ordering {
                // Neither less nor greater nor equal: one is NaN, which is last.
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        }
        impl Sortable for Complex<$type> {
            fn order(&self, other: &Self) -> Ordering {
                let nan = |z: &Self| (z.re.is_nan(), z.im.is_nan());
                let parts = || self.re.order(&other.re).then_with(|| self.im.order(&other.im));
                nan(self).cmp(&nan(other)).then_with(parts)
            }
        }
    )*};
}
floats!(f32 f64);

macro_rules! halves {
    ($($type:ty)*) => {$(
        impl Sortable for $type {
            fn order(&self, other: &Self) -> Ordering {
                self.to_f32().order(&other.to_f32())
            }
        }
    )*};
}
halves!(f16 bf16);

/// A truth value: any byte but zero is true.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Truth(u8);

impl Sortable for Truth {
    fn order(&self, other: &Self) -> Ordering {
        (self.0 != 0).cmp(&(other.0 != 0))
    }
}

/// Executes a sort.
///
/// # Errors
/// `Unsupported` for a dtype without an order.
///
/// # Safety
/// See [`hal::operation`].
pub(super) unsafe fn run(operation: &Sort, workers: &Workers<'_>) -> Result<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        match operation.input.dtype {
            DType::Bool => sort::<Truth>(operation, workers),
            DType::UInt8 => sort::<u8>(operation, workers),
            DType::UInt16 => sort::<u16>(operation, workers),
            DType::UInt32 => sort::<u32>(operation, workers),
            DType::UInt64 => sort::<u64>(operation, workers),
            DType::Int8 => sort::<i8>(operation, workers),
            DType::Int16 => sort::<i16>(operation, workers),
            DType::Int32 => sort::<i32>(operation, workers),
            DType::Int64 => sort::<i64>(operation, workers),
            DType::Float16 => sort::<f16>(operation, workers),
            DType::BFloat16 => sort::<bf16>(operation, workers),
            DType::Float32 => sort::<f32>(operation, workers),
            DType::Float64 => sort::<f64>(operation, workers),
            DType::Complex64 => sort::<Complex<f32>>(operation, workers),
            DType::Complex128 => sort::<Complex<f64>>(operation, workers),
            other => return Err(unsupported(format!("a sort of dtype {other}"))),
        }
    }
    Ok(())
}

/// # Safety
/// See [`hal::operation`]; elements are of type `T`.
unsafe fn sort<T: Sortable>(operation: &Sort, workers: &Workers<'_>) {
    let Sort { rows, length, indices, input, output } = operation;
    let pool = (*length >= LONG).then(|| workers.pool()).flatten();
    let row = |row: usize| {
        let from = pointer(input.address as usize).cast::<T>().wrapping_add(row * length);
        if !indices {
            let to = pointer(output.address as usize).cast::<T>().wrapping_add(row * length);
            // SAFETY: a row of the input, and one of the output, which are the same or apart.
            let elements = unsafe {
                std::ptr::copy(from, to, *length);
                std::slice::from_raw_parts_mut(to, *length)
            };
            return match &pool {
                Some(pool) => pool.install(|| elements.par_sort_by(T::order)),
                None => elements.sort_by(T::order),
            };
        }
        let to = pointer(output.address as usize).cast::<i64>().wrapping_add(row * length);
        // SAFETY: a row of the input, and one of the output, apart; indices need no initial value.
        let (keys, found) = unsafe {
            for index in 0..*length {
                to.wrapping_add(index).write(index as i64);
            }
            let found = std::slice::from_raw_parts_mut(to, *length);
            (std::slice::from_raw_parts(from, *length), found)
        };
        let order = |a: &i64, b: &i64| keys[*a as usize].order(&keys[*b as usize]);
        match &pool {
            Some(pool) => pool.install(|| found.par_sort_by(order)),
            None => found.sort_by(order),
        }
    };
    if pool.is_some() {
        return (0..*rows).for_each(row);
    }
    // A comparison for each element and doubling of the length.
    let work = rows * length * (1 + length.checked_ilog2().unwrap_or(0) as usize);
    workers.split(*rows, 1, work, &|range| range.for_each(row));
}
