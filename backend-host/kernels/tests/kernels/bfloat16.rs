//! Tests all 65,536 values of bfloat16, bit by bit.

use super::run;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Elementwise, Input, Operand};
use hal::{DType, Element, bf16, f16};

/// Returns the values of a function of arrays, computed in the type of the first one unless it is a copy.
fn values<T: Element, R: Element>(
    function: Function,
    compute: DType,
    arguments: &[&[T]],
) -> Vec<R> {
    let length = arguments[0].len();
    let mut values = vec![R::ZERO; length];
    let operand = |address: usize, dtype: DType| Operand {
        address: address as u64,
        dtype,
        strides: [dtype.size() as isize][..].into(),
    };
    let inputs = arguments
        .iter()
        .map(|argument| Input::Array(operand(argument.as_ptr().expose_provenance(), T::DTYPE)))
        .collect();
    let output = operand(values.as_mut_ptr().expose_provenance(), R::DTYPE);
    let shape = [length][..].into();
    let operation = Elementwise { function, compute, shape, inputs, output };
    run(&operation.into());
    values
}

fn cast<T: Element, R: Element>(numbers: &[T]) -> Vec<R> {
    values(Function::Unary(UnaryFunction::Copy), R::DTYPE, &[numbers])
}

fn every() -> Vec<bf16> {
    (0..=u16::MAX).map(bf16::from_bits).collect()
}

/// Returns the value of a bit pattern: one sign bit, eight exponent bits, seven fraction bits.
fn value(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 7 & 0xff), f64::from(bits & 0x7f));
    sign * match (exponent, fraction) {
        (0xff, 0.0) => f64::INFINITY,
        (0xff, _) => f64::NAN,
        (0, fraction) => fraction * 2f64.powi(-133),
        (exponent, fraction) => (128.0 + fraction) * 2f64.powi(exponent - 134),
    }
}

/// Returns the bits of the nearest number, ties to even. They are found by binary search, since numbers with
/// the same sign are ordered by their bits.
fn nearest(number: f64) -> u16 {
    if number.is_nan() {
        return 0x7fc0;
    }
    let sign = u16::from(number.is_sign_negative()) << 15;
    let size = number.abs();
    // The first pattern that is too large; infinity stands for 2^128 here.
    let at = |bits: u16| if bits == 0x7f80 { 2f64.powi(128) } else { value(bits) };
    let (mut low, mut high) = (0u16, 0x7f80u16);
    if size >= at(high) {
        return sign | high;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if at(middle) <= size { low = middle } else { high = middle }
    }
    let (below, above) = (size - at(low), at(high) - size);
    let is_above = above < below || (above == below && high & 1 == 0);
    sign | if is_above { high } else { low }
}

fn assert_same(got: bf16, expected: u16, what: impl std::fmt::Display) {
    let expected = bf16::from_bits(expected);
    let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
    assert!(same, "{what}: {got} ({:#x}), expected {expected}", got.to_bits());
}

#[test]
fn every_value_widens_exactly() {
    let every = every();
    let (single, double): (Vec<f32>, Vec<f64>) = (cast(&every), cast(&every));
    for (bits, (single, double)) in (0..=u16::MAX).zip(single.into_iter().zip(double)) {
        let expected = value(bits);
        assert!(double.to_bits() == expected.to_bits() || (double.is_nan() && expected.is_nan()));
        assert!(f64::from(single) == double || (single.is_nan() && double.is_nan()), "{bits:#x}");
    }
}

#[test]
fn single_precision_rounds_to_the_nearest() {
    // Between two consecutive numbers: both ends, the midpoint, and their neighbours.
    let nudges = [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff];
    let numbers: Vec<f32> = (0..=u16::MAX)
        .flat_map(|bits| nudges.map(|nudge| f32::from_bits(u32::from(bits) << 16 | nudge)))
        .collect();
    let narrow: Vec<bf16> = cast(&numbers);
    for (&x, &got) in numbers.iter().zip(&narrow) {
        assert_same(got, nearest(x.into()), format_args!("{x:e}"));
        assert_eq!(got.is_sign_negative(), x.is_sign_negative());
    }
    // Double precision is first converted to single precision.
    let doubles: Vec<f64> = numbers.iter().map(|&x| f64::from(x)).collect();
    let narrow_double: Vec<bf16> = cast(&doubles);
    assert!(narrow.iter().zip(&narrow_double).all(|(x, y)| x.to_bits() == y.to_bits()));
    let twice = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    assert_eq!(cast::<f64, bf16>(&[twice])[0].to_bits(), 0x3f80);
}

#[test]
fn other_types_go_by_way_of_single_precision() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    for (half, got) in halves.iter().zip(cast::<f16, bf16>(&halves)) {
        assert_same(got, nearest(half.to_f64()), half);
    }
    let whole: Vec<i32> = (-70_000..70_000).chain([i32::MIN, i32::MAX]).collect();
    for (&whole, got) in whole.iter().zip(cast::<i32, bf16>(&whole)) {
        assert_same(got, nearest((whole as f32).into()), whole);
    }
    let every = every();
    for (bits, got) in (0..=u16::MAX).zip(cast::<bf16, i64>(&every)) {
        assert!(value(bits).is_nan() || got == value(bits) as i64, "{bits:#x}: {got}");
    }
    for (bits, got) in (0..=u16::MAX).zip(cast::<bf16, bool>(&every)) {
        assert_eq!(got, value(bits) != 0.0, "{bits:#x}");
    }
}

type Reference<R> = fn(f64, f64) -> R;

const ARITHMETIC: [(BinaryFunction, Reference<f64>); 4] = [
    (BinaryFunction::Add, |a, b| a + b),
    (BinaryFunction::Subtract, |a, b| a - b),
    (BinaryFunction::Multiply, |a, b| a * b),
    (BinaryFunction::Divide, |a, b| a / b),
];

const COMPARISONS: [(BinaryFunction, Reference<bool>); 4] = [
    (BinaryFunction::Less, |a, b| a < b),
    (BinaryFunction::GreaterEqual, |a, b| a >= b),
    (BinaryFunction::Equal, |a, b| a == b),
    (BinaryFunction::NotEqual, |a, b| a != b),
];

#[test]
fn arithmetic_is_rounded_once() {
    let x = every();
    for other in [0x0001, 0x3f80, 0x3fc1, 0xc0a3, 0x7f7f, 0x8080, 0xff80, 0x7fc0] {
        let y = vec![bf16::from_bits(other); x.len()];
        let b = value(other);
        // Double precision represents sums to the last relevant bit, products exactly, and quotients closely
        // enough.
        for (function, expected) in ARITHMETIC {
            let got: Vec<bf16> = values(Function::Binary(function), DType::BFloat16, &[&x, &y]);
            for (bits, got) in (0..=u16::MAX).zip(got) {
                let expected = nearest(f64::from(expected(value(bits), b) as f32));
                assert_same(got, expected, format_args!("{function:?} {bits:#x} {other:#x}"));
            }
        }
        for (function, expected) in COMPARISONS {
            let got: Vec<bool> = values(Function::Binary(function), DType::BFloat16, &[&x, &y]);
            for (bits, got) in (0..=u16::MAX).zip(got) {
                assert_eq!(got, expected(value(bits), b), "{function:?} {bits:#x} {other:#x}");
            }
        }
    }
}

#[test]
fn signs_and_tests_are_those_of_the_bits() {
    let x = every();
    let unary =
        |function| -> Vec<bf16> { values(Function::Unary(function), DType::BFloat16, &[&x]) };
    let test =
        |function| -> Vec<bool> { values(Function::Unary(function), DType::BFloat16, &[&x]) };
    let (negative, absolute) = (unary(UnaryFunction::Negative), unary(UnaryFunction::Absolute));
    let [nan, infinite, finite, sign] = [
        UnaryFunction::IsNan,
        UnaryFunction::IsInfinite,
        UnaryFunction::IsFinite,
        UnaryFunction::SignBit,
    ]
    .map(test);
    for bits in 0..=u16::MAX {
        let index = usize::from(bits);
        assert_eq!(negative[index].to_bits(), bits ^ 0x8000);
        assert_eq!(absolute[index].to_bits(), bits & 0x7fff);
        let expected = value(bits);
        let tests = [nan[index], infinite[index], finite[index], sign[index]];
        let wanted =
            [expected.is_nan(), expected.is_infinite(), expected.is_finite(), bits >> 15 == 1];
        assert_eq!(tests, wanted, "{bits:#x}");
    }
}

#[test]
fn elementary_functions_are_those_of_single_precision_rounded() {
    let x = every();
    type One = fn(f64) -> f64;
    let references: [(UnaryFunction, One); 8] = [
        (UnaryFunction::Sqrt, f64::sqrt),
        (UnaryFunction::Exp, f64::exp),
        (UnaryFunction::Log, f64::ln),
        (UnaryFunction::Sin, f64::sin),
        (UnaryFunction::Tanh, f64::tanh),
        (UnaryFunction::Cbrt, f64::cbrt),
        (UnaryFunction::Expm1, f64::exp_m1),
        (UnaryFunction::Floor, f64::floor),
    ];
    for (function, reference) in references {
        let got: Vec<bf16> = values(Function::Unary(function), DType::BFloat16, &[&x]);
        for (bits, got) in (0..=u16::MAX).zip(got) {
            let expected = nearest(reference(value(bits)));
            // An error of two units in the last place of single precision moves a value across at most one
            // midpoint between two numbers.
            let near = got.to_bits().abs_diff(expected) <= 1;
            let exact = bf16::from_bits(expected);
            assert!(
                near || (got.is_nan() && exact.is_nan()),
                "{function:?} {bits:#x}: {got}, expected {exact}"
            );
        }
    }
}
