//! Compares powers of integers with repeated wrapping multiplication, and powers of floating-point numbers
//! with the system's library in double precision.
//!
//! Double precision has a separate reference in `tests/python/array/test_accuracy.py`.

use super::functions::{error, nearest};
use gpuarray_host_kernels::loops::kernel;
use hal::function::{BinaryFunction, Function};
use hal::{Element, f16};

fn run<T: Element + Default>(x: &[T], exponent: &[T]) -> Vec<T> {
    let mut value = vec![T::default(); x.len()];
    let repeated = if exponent.len() == 1 { 2 } else { 0 };
    let (x_start, exponents) = (x.as_ptr().cast(), exponent.as_ptr().cast());
    let kernel = kernel(Function::Binary(BinaryFunction::Power), T::DTYPE).expect("a loop");
    let arguments = [x_start, exponents, x_start, x_start];
    // SAFETY: the loop is given this many elements, and the value does not overlap the arguments.
    unsafe { kernel.run.call(value.as_mut_ptr().cast(), &arguments, repeated, x.len()) };
    value
}

macro_rules! check {
    ($($name:ident: $type:ident;)*) => {
        $(
            #[test]
            fn $name() {
                let x: Vec<$type> = (0..200u64)
                    .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) as $type)
                    .chain([0, 1, 2, 3, $type::MIN, $type::MAX])
                    .collect();
                let mut expected = vec![1; x.len()];
                for exponent in 0..=70 {
                    let given = exponent as $type;
                    assert_eq!(run(&x, &[given]), expected, "{exponent}");
                    assert_eq!(run(&x, &vec![given; x.len()]), expected, "{exponent}, elements");
                    for (value, &x) in expected.iter_mut().zip(&x) {
                        *value = value.wrapping_mul(x);
                    }
                }
            }
        )*
    };
}

check! {
    bytes: i8;
    words: i16;
    double_words: i32;
    quad_words: i64;
    unsigned_bytes: u8;
    unsigned_words: u16;
    unsigned_double_words: u32;
    unsigned_quad_words: u64;
}

#[test]
fn negative_exponents_are_those_of_one_and_minus_one() {
    let x = [0, 1, -1, 2, -7];
    assert_eq!(run::<i32>(&x, &[-3]), [0, 1, -1, 0, 0]);
    assert_eq!(run::<i32>(&x, &[-2]), [0, 1, 1, 0, 0]);
}

/// Returns numbers of every magnitude and sign, and special ones.
fn singles() -> Vec<f32> {
    let patterns = (0..=u32::MAX).step_by(9_999_991).map(f32::from_bits);
    let special = [0.0, -0.0, f32::INFINITY, -f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-45];
    let small = (-20..20).flat_map(|n| [n as f32, n as f32 + 0.5, 1.0 + n as f32 * 1e-4]);
    patterns.chain(special).chain(small).collect()
}

#[test]
fn single_precision() {
    let bases = singles();
    for exponent in singles().into_iter().chain([0.1, 1.0 / 3.0, 7.25, 16_777_217.0, 1e30]) {
        let repeated = run(&bases, &[exponent]);
        assert_eq!(run(&bases, &vec![exponent; bases.len()]).len(), repeated.len());
        for (&base, got) in bases.iter().zip(repeated) {
            let exact = f64::from(base).powf(exponent.into());
            let error = error(got, exact);
            assert!(error < 2.0, "{base:e} ** {exponent:e}: {got:e}, not {exact:e}, {error} ulp");
        }
    }
}

#[test]
fn every_combination_of_repeated_arguments_and_every_length() {
    let all: Vec<f64> = (1..600).map(|n| f64::from(n) * 0.037).collect();
    for length in (1..80).chain([255, 256, 257, 511, 513]) {
        let (x, y) = (&all[..length], &all[all.len() - length..]);
        let expected: Vec<f64> = x.iter().zip(y).map(|(x, y)| x.powf(*y)).collect();
        let near = |got: &[f64], expected: &[f64]| {
            let pairs = got.iter().zip(expected);
            got.len() == expected.len() && { pairs }.all(|(x, y)| (x - y).abs() <= 4e-16 * y)
        };
        assert!(near(&run(x, y), &expected), "{length}");
        let expected: Vec<f64> = x.iter().map(|x| x.powf(3.5)).collect();
        assert!(near(&run(x, &[3.5]), &expected), "{length}, one exponent");
    }
}

#[test]
fn half_precision_is_rounded_exactly() {
    let bases: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for exponent in [-3.0, -0.5, 0.0, 0.3, 1.0, 2.0, 2.5, 3.0, 11.0, 1e4, f32::INFINITY, f32::NAN] {
        let exponent = f16::from_f32(exponent);
        for (base, got) in bases.iter().zip(run(&bases, &[exponent])) {
            let expected = nearest(base.to_f64().powf(exponent.to_f64()));
            let same = got.to_bits() == expected.to_bits();
            assert!(
                same || (got.is_nan() && expected.is_nan()),
                "{base} ** {exponent}: {got}, expected {expected}"
            );
        }
    }
}
