//! Values at the edges of the types, compared with numpy's results.

use super::arrays::{Array, Order, read};
use super::run;
use hal::dtype::narrow::Narrow;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Description, Elementwise, Input, Shape};
use hal::{Complex, DType, Element, Scalar, f16};

fn values<T: Element, R: Element>(function: Function, arguments: &[&[T]]) -> Vec<R> {
    let length = arguments[0].len();
    let mut inputs: Vec<Array> = arguments
        .iter()
        .map(|values| {
            Array::of(&values.iter().map(|&value| Scalar::new(value)).collect::<Vec<_>>())
        })
        .collect();
    let mut output = Array::zeros(R::DTYPE, &[length], Order::Rows);
    let output = output.operand();
    run(&Description::Elementwise(Elementwise {
        function,
        compute: T::DTYPE,
        shape: Shape::from_slice(&[length]),
        inputs: inputs.iter_mut().map(|array| Input::Array(array.operand())).collect(),
        output: output.clone(),
    }));
    let size = R::DTYPE.size();
    (0..length)
        .filter_map(|index| read(output.address + (index * size) as u64, R::DTYPE).get())
        .collect()
}

fn binary<T: Element>(function: BinaryFunction, x: &[T], y: &[T]) -> Vec<T> {
    values(Function::Binary(function), &[x, y])
}

fn unary<T: Element>(function: UnaryFunction, x: &[T]) -> Vec<T> {
    values(Function::Unary(function), &[x])
}

/// Compares bit by bit; all NaNs are equal.
fn assert_same(got: &[f64], expected: &[f64]) {
    let bits = |values: &[f64]| -> Vec<u64> {
        values.iter().map(|v| if v.is_nan() { f64::NAN } else { *v }.to_bits()).collect()
    };
    assert_eq!(bits(got), bits(expected), "{got:?} instead of {expected:?}");
}

#[test]
fn integers_wrap_and_divide_by_zero() {
    let (x, y) = ([i32::MIN, i32::MIN, 5, -7, 7, -7], [-1, 0, 0, 2, -2, -2]);
    assert_eq!(binary(BinaryFunction::FloorDivide, &x, &y), [i32::MIN, 0, 0, -4, -4, 3]);
    assert_eq!(binary(BinaryFunction::Remainder, &x, &y), [0, 0, 0, 1, -1, -1]);
    assert_eq!(binary(BinaryFunction::Fmod, &x, &y), [0, 0, 0, -1, 1, -1]);
    assert_eq!(binary(BinaryFunction::Add, &[i8::MAX, i8::MIN], &[1, -1]), [i8::MIN, i8::MAX]);
    assert_eq!(unary(UnaryFunction::Absolute, &[i64::MIN, -3]), [i64::MIN, 3]);
    assert_eq!(unary(UnaryFunction::Negative, &[1u8, 0]), [255, 0]);
    assert_eq!(
        binary(BinaryFunction::Power, &[2i8, 3, -1, -1, 0, 2], &[7, 5, -3, -2, -1, -1]),
        [-128, -13, -1, 1, 0, 0]
    );
}

#[test]
fn float_division_at_the_edges() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let x = [1.0, -1.0, 0.0, -0.0, inf, 1.0, -1.0, 7.5, -7.5, 1.0];
    let y = [0.0, 0.0, 0.0, 3.0, 2.0, inf, inf, -2.0, 2.0, 0.1];
    let floor = binary(BinaryFunction::FloorDivide, &x, &y);
    assert_same(&floor, &[inf, -inf, nan, -0.0, nan, 0.0, -1.0, -4.0, -4.0, 9.0]);
    let rest = binary(BinaryFunction::Remainder, &x, &y);
    assert_same(&rest[..9], &[nan, nan, nan, 0.0, nan, 1.0, inf, -0.5, 0.5]);
    assert!((rest[9] - 0.1).abs() < 1e-12);
}

#[test]
fn not_a_number_is_passed_on() {
    let (x, y) = ([f64::NAN, 1.0, 2.0], [1.0, f64::NAN, 3.0]);
    assert_same(&binary(BinaryFunction::Minimum, &x, &y), &[f64::NAN, f64::NAN, 2.0]);
    assert_same(&binary(BinaryFunction::Maximum, &x, &y), &[f64::NAN, f64::NAN, 3.0]);
    assert_same(&unary(UnaryFunction::Sign, &[f64::NAN, -0.0, -3.0]), &[f64::NAN, 0.0, -1.0]);
    for (function, expected) in [
        (BinaryFunction::Equal, false),
        (BinaryFunction::NotEqual, true),
        (BinaryFunction::Less, false),
        (BinaryFunction::GreaterEqual, false),
    ] {
        let got: Vec<bool> = values(Function::Binary(function), &[&x[..2], &y[..2]]);
        assert_eq!(got, [expected; 2], "{function:?}");
    }
}

#[test]
fn floats_become_integers_as_on_x86() {
    let copy = Function::Unary(UnaryFunction::Copy);
    let x = [-1.5, 300.7, 1e30, f64::NAN];
    assert_eq!(values::<f64, u8>(copy, &[&x])[..2], [255, 44]);
    assert_eq!(values::<f64, i8>(copy, &[&x])[..2], [-1, 44]);
    assert_eq!(values::<f64, u32>(copy, &[&x])[..2], [u32::MAX, 300]);
    assert_eq!(values::<f64, u64>(copy, &[&x])[..3], [u64::MAX, 300, u64::MAX]);
    assert_eq!(values::<f64, i64>(copy, &[&x])[..3], [-1, 300, i64::MAX]);
}

#[test]
fn half_precision_conversions_are_those_of_ieee_754() {
    for bits in 0..=u16::MAX {
        let value = f16::from_bits(bits);
        let wide = value.widen();
        assert!(wide.to_bits() == value.to_f32().to_bits() || value.is_nan(), "{bits:#x}");
        assert_eq!(wide.is_nan(), value.is_nan());
        // Also between two values, where rounding decides.
        for nudge in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff] {
            let single = f32::from_bits(wide.to_bits() | nudge);
            let expected = f16::from_f32(single);
            let got = f16::narrow(single);
            assert!(got == expected || (got.is_nan() && expected.is_nan()), "{single}");
        }
    }
}

#[test]
fn the_fraction_has_the_sign_of_the_number() {
    let x = [3.5, -3.5, 3.0, -3.0, -0.0, f64::INFINITY, f64::NEG_INFINITY];
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let expected = [0.5, -0.5, 0.0, -0.0, -0.0, 0.0, -0.0];
    assert_eq!(bits(&unary(UnaryFunction::Fraction, &x)), bits(&expected));
    assert!(unary(UnaryFunction::Fraction, &[f64::NAN])[0].is_nan());
}

#[test]
fn fractions_and_exponents() {
    let x = [1.0, -0.75, 0.0, 5e-324, f64::MAX, f64::INFINITY];
    assert_same(
        &unary(UnaryFunction::Mantissa, &x),
        &[0.5, -0.75, 0.0, 0.5, 1.0 - f64::EPSILON / 2.0, f64::INFINITY],
    );
    assert_same(&unary(UnaryFunction::Exponent, &x), &[1.0, 0.0, 0.0, -1073.0, 1024.0, 0.0]);
    let (x, y) = ([0.5, 0.5, 1.0, 1.0, -1.0], [1025.0, 1024.0, -1074.0, -1080.0, 2.9]);
    let expected = [f64::INFINITY, 2f64.powi(1023), 5e-324, 0.0, -4.0];
    assert_same(&binary(BinaryFunction::Ldexp, &x, &y), &expected);
}

#[test]
fn complex_numbers_at_the_edges() {
    let c = Complex::<f64>::new;
    let large: Vec<f64> =
        values(Function::Unary(UnaryFunction::Absolute), &[&[c(3e300, 4e300), c(3e-300, 4e-300)]]);
    assert!((large[0] / 5e300 - 1.0).abs() < 1e-15 && (large[1] / 5e-300 - 1.0).abs() < 1e-15);
    let quotient = binary(BinaryFunction::Divide, &[c(1e300, 1e300)], &[c(1e300, 1e300)]);
    assert_eq!(quotient, [c(1.0, 0.0)]);
    let power = binary(
        BinaryFunction::Power,
        &[c(0.0, 0.0), c(0.0, 0.0), c(1.0, 2.0), c(1.0, 2.0), c(0.0, 1.0)],
        &[c(0.0, 0.0), c(2.0, 0.0), c(3.0, 0.0), c(1.0, 0.0), c(-2.0, 0.0)],
    );
    assert_eq!(power, [c(1.0, 0.0), c(0.0, 0.0), c(-11.0, -2.0), c(1.0, 2.0), c(-1.0, 0.0)]);
    let tanh = unary(UnaryFunction::Tanh, &[c(1000.0, 1.0), c(-1000.0, 0.0)]);
    assert_eq!([tanh[0].re, tanh[1].re], [1.0, -1.0]);
    let asin = unary(UnaryFunction::Asin, &[c(1e-20, 0.0), c(2.0, 0.0)]);
    assert_eq!(asin[0], c(1e-20, 0.0));
    assert!((asin[1].im.abs() - 1.3169578969248166).abs() < 1e-14);
    assert_eq!(
        unary(UnaryFunction::Sqrt, &[c(-4.0, 0.0), c(-4.0, -0.0)]),
        [c(0.0, 2.0), c(0.0, -2.0)]
    );
    let smallest = binary(BinaryFunction::Minimum, &[c(1.0, 2.0)], &[c(1.0, 1.0)]);
    assert_eq!(smallest, [c(1.0, 1.0)]);
}

#[test]
fn no_dtype_panics_at_its_extremes() {
    for dtype in DType::ALL {
        for function in BinaryFunction::ALL {
            let Ok(signature) = function.signature(dtype) else { continue };
            let extremes: Vec<Scalar> = [f64::MIN, -1.0, 0.0, 1.0, f64::MAX, f64::NAN]
                .map(|value| Scalar::new(value).cast(dtype).expect("cast"))
                .to_vec();
            let pairs = extremes.iter().flat_map(|&x| extremes.iter().map(move |&y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (mut left, mut right) = (Array::of(&x), Array::of(&y));
            let mut output = Array::zeros(signature.result, &[36], Order::Rows);
            run(&Description::Elementwise(Elementwise {
                function: Function::Binary(function),
                compute: signature.compute,
                shape: Shape::from_slice(&[36]),
                inputs: [&mut left, &mut right]
                    .map(|array| Input::Array(array.operand()))
                    .into_iter()
                    .collect(),
                output: output.operand(),
            }));
        }
    }
}
