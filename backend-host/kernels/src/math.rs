//! Vectorised elementary functions for processors with fused multiply-add.
//!
//! They are written here because no library fits: the Rust port of SLEEF needs a nightly compiler, SLEEF
//! itself needs CMake and minutes to build, and libmvec exists only in glibc and guarantees only 4 ulp.
//! Errors are below 1 ulp in double precision and below 2 ulp in single precision. Types stored in few bits
//! are computed in one of the two, as [`Narrow::Functions`] specifies; binary16 results are correctly
//! rounded. Arguments that are too large for the argument reductions use the system's library. So do all
//! arguments if the processor does not have fused multiply-add.

mod coefficients;
pub(super) mod complex;
mod double;
mod modulus;
mod ordinary;
pub(super) mod power;
mod precision;
mod single;
mod table;

use super::blocks::Kernel;
use super::float::Float;
use super::multiversion::{Loop, elements, places, select_fused};
use super::number::{Convert as _, for_each, with_kind, with_number};
use hal::DType;
#[cfg(doc)]
use hal::dtype::narrow::Narrow;
use hal::function::UnaryFunction;
use precision::{Elementary, Precision};
use table::Tabled;

/// The number of elements computed in one step: it fits the first-level cache, and is a multiple of the group
/// size.
const CHUNK: usize = 256;
/// The number of elements in the innermost loop: enough vectors to hide the latency of the arithmetic.
const GROUP: usize = 32;

/// Replaces arguments by values. Only whole groups are computed. The value of an element depends on nothing but the
/// element.
#[inline(always)]
fn evaluate<T: Computed, F: Elementary>(given: &[T], numbers: &mut [T::Functions; CHUNK]) {
    let count = given.len();
    T::load(given, &mut numbers[..count]);
    let is_ordinary = T::Functions::are_ordinary::<F>(&numbers[..count]);
    let used = &mut numbers[..count.div_ceil(GROUP) * GROUP];
    if is_ordinary {
        for group in used.as_chunks_mut::<GROUP>().0 {
            for x in group {
                *x = x.evaluate_ordinary::<F>();
            }
        }
        return;
    }
    let beyond = used.iter().fold(false, |any, x| any | x.is_beyond::<F>());
    for group in used.as_chunks_mut::<GROUP>().0 {
        for x in group {
            let ordinary = x.evaluate_ordinary::<F>();
            let is_ordinary = T::Functions::are_ordinary::<F>(&[*x]);
            *x = if is_ordinary { ordinary } else { x.evaluate::<F>() };
        }
    }
    if beyond {
        correct::<T, F>(given, numbers);
    }
}

/// Computes again those values whose arguments are too large.
#[cold]
fn correct<T: Computed, F: Elementary>(given: &[T], numbers: &mut [T::Functions; CHUNK]) {
    for (number, x) in numbers.iter_mut().zip(given) {
        let x = x.convert::<T::Functions>();
        if x.is_beyond::<F>() {
            *number = x.library::<F>();
        }
    }
}

/// # Safety
/// See [`Loop`].
#[inline(always)]
unsafe fn elementary_body<T: Computed, F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let mut numbers = [T::Functions::default(); CHUNK];
    let is_repeated = repeated & 1 == 1;
    let mut start = 0;
    while start < length {
        let count = CHUNK.min(length - start);
        let (given, offset) = if is_repeated { (1, 0) } else { (count, start) };
        // SAFETY: passed on to the caller; the arguments are read before the values, which may overwrite
        // them.
        unsafe {
            let given = elements::<T>(arguments[0].cast::<T>().add(offset).cast(), given);
            evaluate::<T, F>(given, &mut numbers);
        }
        if is_repeated {
            numbers = [numbers[0]; CHUNK];
        }
        // SAFETY: passed on to the caller.
        let values = unsafe { places::<T>(value.cast::<T>().add(start).cast(), count) };
        for (value, number) in values.iter_mut().zip(&numbers[..count]) {
            value.write(number.convert());
        }
        start += count;
    }
}

select_fused!(select_elementary<T: Computed, F: Elementary>, elementary_body, Loop,
    (value: *mut u8, arguments: &[*const u8; 4], repeated: u32, length: usize));

/// # Safety
/// See [`Loop`].
unsafe fn tabled_body<T: Tabled + Computed, F: Elementary>(
    value: *mut u8,
    arguments: &[*const u8; 4],
    repeated: u32,
    length: usize,
) {
    let compute = select_elementary::<T, F>().unwrap_or(table::library_loop::<T, F>);
    // SAFETY: passed on to the caller.
    unsafe { T::table::<F>().run(compute, value, arguments, repeated, length) }
}

/// A type with loops of elementary functions.
trait Computed: Float<Functions: Precision> {
    /// Returns the loop of a function, or `None` if the processor does not have fused multiply-add.
    fn elementary<F: Elementary>() -> Option<Loop>;
}

/// A precision in which functions of types stored in few bits are computed.
trait OfNarrow: Precision {
    /// Returns the loop of a function for such a type.
    fn narrow_loop<T: Tabled + Computed, F: Elementary>() -> Option<Loop>;
}

impl Computed for f32 {
    fn elementary<F: Elementary>() -> Option<Loop> {
        select_elementary::<f32, F>()
    }
}

impl OfNarrow for f32 {
    fn narrow_loop<T: Tabled + Computed, F: Elementary>() -> Option<Loop> {
        select_elementary::<T, F>()
    }
}

impl Computed for f64 {
    fn elementary<F: Elementary>() -> Option<Loop> {
        select_elementary::<f64, F>()
    }
}

impl OfNarrow for f64 {
    /// A table, because the values have to be correctly rounded.
    fn narrow_loop<T: Tabled + Computed, F: Elementary>() -> Option<Loop> {
        Some(tabled_body::<T, F>)
    }
}

macro_rules! narrow {
    ([] $dtype:ident, $rust:ty) => {
        impl Computed for $rust {
            fn elementary<F: Elementary>() -> Option<Loop> {
                <Self as Float>::Functions::narrow_loop::<$rust, F>()
            }
        }
    };
}

for_each!(narrow => narrow []);

/// Defines the items of [`Elementary`] about ordinary arguments of one type.
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
                const FUNCTION: UnaryFunction = UnaryFunction::$function;
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
            }
        )*

        fn of_type<T: Computed>(function: UnaryFunction) -> Option<Loop> {
            match function {
                $(UnaryFunction::$function => T::elementary::<$function>(),)*
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
    // Beyond these bounds the error comes too close to 1 ulp.
    Tanh tanh tanh { ordinary! { f64 ordinary_double ordinary::tanh, -17.0, 17.0 } };
}

/// Returns the loop of an elementary function of real numbers, or `None` for other functions and types.
/// Without fused multiply-add, only types with tables have such loops.
pub(super) fn kernel(function: UnaryFunction, compute: DType) -> Option<Kernel> {
    if compute.is_complex() {
        return modulus::kernel(function, compute);
    }
    let run = with_kind!(float compute, T => of_type::<T>(function))?;
    Some(Kernel { run: run.into(), cheap: false, in_place: true })
}
