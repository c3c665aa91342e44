//! Errors of the elementary functions, compared with the system's library in double precision.
//!
//! Double precision has a separate reference in `tests/python/array/test_accuracy.py`.

use gpuarray_host_kernels::loops::{conversion, kernel};
use hal::function::{Function, UnaryFunction};
use hal::{DType, f16};

type Reference = fn(f64) -> f64;

const FUNCTIONS: [(UnaryFunction, Reference); 13] = [
    (UnaryFunction::Exp, f64::exp),
    (UnaryFunction::Log, f64::ln),
    (UnaryFunction::Log2, f64::log2),
    (UnaryFunction::Log10, f64::log10),
    (UnaryFunction::Sin, f64::sin),
    (UnaryFunction::Cos, f64::cos),
    (UnaryFunction::Tan, f64::tan),
    (UnaryFunction::Asin, f64::asin),
    (UnaryFunction::Acos, f64::acos),
    (UnaryFunction::Atan, f64::atan),
    (UnaryFunction::Sinh, f64::sinh),
    (UnaryFunction::Cosh, f64::cosh),
    (UnaryFunction::Tanh, f64::tanh),
];

/// The error bound in single precision, in units in the last place.
const SINGLE_BOUND: f64 = 2.0;

fn values<T: Copy>(function: UnaryFunction, dtype: DType, arguments: &[T]) -> Vec<T> {
    let kernel = kernel(Function::Unary(function), dtype).expect("a kernel");
    let mut values = arguments.to_vec();
    let argument = arguments.as_ptr().cast();
    // SAFETY: both sides have this many elements of the dtype.
    unsafe { kernel.run.call(values.as_mut_ptr().cast(), &[argument; 4], 0, arguments.len()) };
    values
}

/// Returns the nearest half-precision number. `f16::from_f64` may round through single precision.
pub(super) fn nearest(value: f64) -> f16 {
    let guess = f16::from_f64(value);
    if guess == f16::ZERO {
        // Above half of the smallest number, it is the smallest number.
        let above = value.abs() > 2f64.powi(-25);
        return f16::from_bits(guess.to_bits() | u16::from(above));
    }
    if !guess.is_finite() {
        return guess;
    }
    let distance = |number: &f16| (number.to_f64() - value).abs();
    let neighbours = [guess.to_bits() - 1, guess.to_bits(), guess.to_bits() + 1];
    let finite = neighbours.map(f16::from_bits).into_iter().filter(|number| number.is_finite());
    let rank = |number: &f16| (distance(number), number.to_bits() & 1);
    let nearer = |x: &f16, y: &f16| {
        let (x, y) = (rank(x), rank(y));
        x.0.total_cmp(&y.0).then(x.1.cmp(&y.1))
    };
    finite.min_by(nearer).expect("the guess")
}

#[test]
fn half_precision_is_rounded_exactly() {
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for (function, reference) in FUNCTIONS {
        // First computed individually, then looked up.
        let parts = all.chunks(1000).flat_map(|part| values(function, DType::Float16, part));
        let computed: Vec<f16> = parts.collect();
        let looked_up = values(function, DType::Float16, &all);
        for (index, x) in all.iter().enumerate() {
            let expected = nearest(reference(x.to_f64()));
            for got in [computed[index], looked_up[index]] {
                let same = got.to_bits() == expected.to_bits();
                assert!(
                    same || (got.is_nan() && expected.is_nan()),
                    "{function:?} of {x}: {got}, expected {expected}"
                );
            }
        }
    }
}

#[test]
fn casts_to_half_precision_round_once() {
    let middles = (0..0x7bff).map(|bits| {
        let [low, high] = [bits, bits + 1].map(|bits| f16::from_bits(bits).to_f64());
        0.5 * (low + high)
    });
    let around = middles.flat_map(|middle| [middle.next_down(), middle, middle.next_up()]);
    let numbers: Vec<f64> = around.flat_map(|number| [number, -number]).collect();
    let convert = conversion(DType::Float64, DType::Float16);
    let mut halves = vec![f16::ZERO; numbers.len()];
    let argument = numbers.as_ptr().cast();
    // SAFETY: as many elements of the dtypes on both sides.
    unsafe {
        convert.expect("a loop").call(halves.as_mut_ptr().cast(), &[argument; 4], 0, numbers.len());
    }
    for (number, got) in numbers.into_iter().zip(halves) {
        assert_eq!(got.to_bits(), nearest(number).to_bits(), "{number:e}");
    }
}

/// Returns the error in units in the last place, or NaN if special values differ.
pub(super) fn error(got: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if got.is_nan() || rounded.is_nan() || got.is_infinite() || rounded.is_infinite() {
        return if got == rounded || (got.is_nan() && rounded.is_nan()) { 0.0 } else { f64::NAN };
    }
    if got == 0.0 && rounded == 0.0 && got.is_sign_negative() != rounded.is_sign_negative() {
        return f64::NAN;
    }
    let exponent = (rounded.abs().to_bits() >> 23).max(1) as i32 - 150;
    (f64::from(got) - expected).abs() / 2f64.powi(exponent)
}

#[allow(clippy::print_stdout, reason = "the search reports the largest errors")]
fn check_function(function: UnaryFunction, reference: Reference, step: usize) {
    const PART: usize = 1 << 16;
    let mut worst = (0.0, 0.0);
    let mut patterns = (0..=u32::MAX).step_by(step);
    loop {
        let part: Vec<f32> = patterns.by_ref().take(PART).map(f32::from_bits).collect();
        if part.is_empty() {
            break;
        }
        for (&x, got) in part.iter().zip(values(function, DType::Float32, &part)) {
            let error = error(got, reference(f64::from(x)));
            assert!(error < SINGLE_BOUND, "{function:?} of {x:e}: {got:e}, {error} ulp");
            if error > worst.0 {
                worst = (error, x);
            }
        }
    }
    println!("{function:?}: at most {:.4} ulp, at {:e}", worst.0, worst.1);
}

fn check_single(step: usize) {
    std::thread::scope(|scope| {
        for (function, reference) in FUNCTIONS {
            scope.spawn(move || check_function(function, reference, step));
        }
    });
}

#[test]
fn single_precision_in_steps() {
    check_single(8191);
}

/// `cargo test --release -p gpuarray-backend-host every_single -- --ignored --nocapture` prints the largest
/// errors, in about half an hour on one core.
#[test]
#[ignore = "all 2^32 numbers take half an hour of one core's time"]
fn every_single_precision_number() {
    check_single(1);
}
