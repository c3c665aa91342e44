//! Elementary functions as vector code, for processors with fused multiply-add.
//!
//! Written here because no library fits: the Rust port of SLEEF needs a nightly compiler, SLEEF
//! itself CMake and minutes, and libmvec is only in glibc and promises 4 ulp. Errors are below
//! 1 ulp in double precision and below 2 ulp in single; binary16 is rounded exactly, bfloat16 is
//! computed in single precision.
//! Arguments that are too large for the argument reductions go to the system's library, as do
//! all where the processor has no fused multiply-add.

mod coefficients;
pub(super) mod complex;
mod double;
mod modulus;
mod ordinary;
pub(super) mod power;
mod precision;
mod single;
mod table;

use super::kernel::Kernel;
use super::multiversion::{Loop, elements, places, select_fused};
use hal::function::UnaryFunction;
use hal::{DType, bf16, f16};
use precision::Precision;
use table::Table;

/// A function of one number.
trait Elementary {
    /// The largest finite argument that [`Elementary::single`] takes.
    const SINGLE_LIMIT: f32 = f32::MAX;
    /// The largest finite argument that [`Elementary::double`] takes.
    const DOUBLE_LIMIT: f64 = f64::MAX;
    /// The first and the last argument that [`Elementary::ordinary_single`] takes, if it is
    /// another function than [`Elementary::single`].
    const ORDINARY_SINGLE: Option<(f32, f32)> = None;
    /// The first and the last argument that [`Elementary::ordinary_double`] takes, if it is
    /// another function than [`Elementary::double`].
    const ORDINARY_DOUBLE: Option<(f64, f64)> = None;
    /// The value with an error below 2 ulp, for ordinary arguments.
    fn ordinary_single(x: f32) -> f32 {
        Self::single(x)
    }
    /// The value with an error below 1 ulp, for ordinary arguments.
    fn ordinary_double(x: f64) -> f64 {
        Self::double(x)
    }
    /// The value with an error below 2 ulp.
    fn single(x: f32) -> f32;
    /// The value with an error below 1 ulp.
    fn double(x: f64) -> f64;
    /// The value for arguments beyond the limits.
    fn library(x: f64) -> f64;
    /// The table of the values in half precision.
    fn table() -> &'static Table;
}

/// Elements that are computed at a time: what fits the nearest cache, and a whole number of
/// groups.
const CHUNK: usize = 256;
/// Elements of the innermost loop: enough vectors to hide the latency of the arithmetic.
const GROUP: usize = 32;

/// Replaces arguments by values; `used` are whole groups.
#[inline(always)]
fn evaluate<T: Precision, F: Elementary>(given: &[T], numbers: &mut [T::Working; CHUNK]) {
    let count = given.len();
    T::load(given, &mut numbers[..count]);
    let is_ordinary = T::are_ordinary::<F>(&numbers[..count]);
    let used = &mut numbers[..count.div_ceil(GROUP) * GROUP];
    if is_ordinary {
        for group in used.as_chunks_mut::<GROUP>().0 {
            for x in group {
                *x = T::evaluate_ordinary::<F>(*x);
            }
        }
        return;
    }
    let beyond = used.iter().fold(false, |any, x| any | T::is_beyond::<F>(*x));
    for group in used.as_chunks_mut::<GROUP>().0 {
        for x in group {
            *x = T::evaluate::<F>(*x);
        }
    }
    if beyond {
        T::correct::<F>(given, &mut numbers[..count]);
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn elementary_body<T: Precision, F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let mut numbers = [T::Working::default(); CHUNK];
    let is_repeated = repeated & 1 == 1;
    let mut start = 0;
    while start < length {
        let count = CHUNK.min(length - start);
        let (given, offset) = if is_repeated { (1, 0) } else { (count, start) };
        // SAFETY: passed on to the caller; read before the values are written, which may lie
        // in the same place.
        unsafe {
            let given = elements::<T>(arguments[0].cast::<T>().add(offset).cast(), given);
            evaluate::<T, F>(given, &mut numbers);
        }
        if is_repeated {
            numbers = [numbers[0]; CHUNK];
        }
        // SAFETY: passed on to the caller.
        let values = unsafe { places::<T>(value.cast::<T>().add(start).cast(), count) };
        T::store(&numbers[..count], values);
        start += count;
    }
}

select_fused!(select_elementary<T: Precision, F: Elementary>, elementary_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// # Safety
/// See [`Loop`].
unsafe fn half_library<F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe { table::library_loop(F::library, value, arguments, repeated, length) }
}

/// # Safety
/// See [`Loop`].
unsafe fn half_body<F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let compute = select_elementary::<f16, F>().unwrap_or(half_library::<F>);
    // SAFETY: passed on to the caller.
    unsafe { F::table().run(compute, value, arguments, repeated, length) }
}

/// What an implementation of [`Elementary`] says of ordinary arguments of one type.
macro_rules! ordinary {
    (@range f32 $first:expr, $last:expr) => {
        const ORDINARY_SINGLE: Option<(f32, f32)> = Some(($first, $last));
    };
    (@range f64 $first:expr, $last:expr) => {
        const ORDINARY_DOUBLE: Option<(f64, f64)> = Some(($first, $last));
    };
    ($type:ident $name:ident $function:path, $first:expr, $last:expr) => {
        ordinary! { @range $type $first, $last }
        #[inline(always)]
        fn $name(x: $type) -> $type {
            $function(x)
        }
    };
}

macro_rules! functions {
    ($($function:ident $name:ident $library:ident $({ $($limit:tt)* })?;)*) => {
        $(
            struct $function;

            impl Elementary for $function {
                $($($limit)*)?
                #[inline(always)]
                fn single(x: f32) -> f32 {
                    single::$name(x)
                }
                #[inline(always)]
                fn double(x: f64) -> f64 {
                    double::$name(x)
                }
                fn library(x: f64) -> f64 {
                    x.$library()
                }
                fn table() -> &'static Table {
                    static TABLE: Table = Table::new();
                    &TABLE
                }
            }
        )*

        fn of_type<T: Precision>(function: UnaryFunction) -> Option<Loop> {
            match function {
                $(UnaryFunction::$function => select_elementary::<T, $function>(),)*
                _ => None,
            }
        }

        fn of_half(function: UnaryFunction) -> Option<Loop> {
            match function {
                $(UnaryFunction::$function => Some(half_body::<$function>),)*
                _ => None,
            }
        }
    };
}

functions! {
    Exp exp exp { ordinary! { f64 ordinary_double ordinary::exp, -708.0, 708.0 } };
    Log log ln {
        ordinary! { f32 ordinary_single single::ordinary_log, f32::MIN_POSITIVE, f32::MAX }
        ordinary! { f64 ordinary_double ordinary::log, f64::MIN_POSITIVE, f64::MAX }
    };
    Log2 log2 log2 {
        ordinary! { f32 ordinary_single single::ordinary_log2, f32::MIN_POSITIVE, f32::MAX }
        ordinary! { f64 ordinary_double ordinary::log2, f64::MIN_POSITIVE, f64::MAX }
    };
    Log10 log10 log10 {
        ordinary! { f32 ordinary_single single::ordinary_log10, f32::MIN_POSITIVE, f32::MAX }
        ordinary! { f64 ordinary_double ordinary::log10, f64::MIN_POSITIVE, f64::MAX }
    };
    Sin sin sin { const SINGLE_LIMIT: f32 = 1e9; const DOUBLE_LIMIT: f64 = 1e6; };
    Cos cos cos { const SINGLE_LIMIT: f32 = 1e9; const DOUBLE_LIMIT: f64 = 1e6; };
    Tan tan tan { const SINGLE_LIMIT: f32 = 1e9; const DOUBLE_LIMIT: f64 = 1e6; };
    Asin asin asin;
    Acos acos acos;
    Atan atan atan;
    Sinh sinh sinh {
        ordinary! { f32 ordinary_single single::ordinary_sinh, -87.0, 87.0 }
        ordinary! { f64 ordinary_double ordinary::sinh, -708.0, 708.0 }
    };
    Cosh cosh cosh {
        ordinary! { f32 ordinary_single single::ordinary_cosh, -87.0, 87.0 }
        ordinary! { f64 ordinary_double ordinary::cosh, -708.0, 708.0 }
    };
    // Beyond the bounds the error comes too close to 1 ulp.
    Tanh tanh tanh { ordinary! { f64 ordinary_double ordinary::tanh, -17.0, 17.0 } };
}

/// The loop of an elementary function of real numbers; none for other functions and types, and
/// for all but binary16 on processors without fused multiply-add.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    let run = match compute {
        DType::Complex64 | DType::Complex128 => return modulus::kernel(function, compute),
        DType::Float16 => of_half(function),
        DType::BFloat16 => of_type::<bf16>(function),
        DType::Float32 => of_type::<f32>(function),
        DType::Float64 => of_type::<f64>(function),
        _ => None,
    }?;
    Some(Kernel { run, cheap: false, in_place: true })
}
