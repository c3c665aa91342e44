//! Element-wise kernels against Rust's arithmetic.

use super::run;
use crate::harness::Memory;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Description, Elementwise, Input};
use hal::{Complex, DType, Element, Scalar, f16};

pub(crate) fn binary<T: Element, R: Element>(
    function: BinaryFunction,
    x: &Memory<T>,
    y: &Memory<T>,
    out: &Memory<R>,
) -> Description {
    Description::Elementwise(Elementwise {
        function: Function::Binary(function),
        compute: T::DTYPE,
        shape: [x.values().len()][..].into(),
        inputs: [Input::Array(x.operand(&[1])), Input::Array(y.operand(&[1]))]
            .into_iter()
            .collect(),
        output: out.operand(&[1]),
    })
}

pub(crate) fn unary<T: Element, R: Element>(
    function: UnaryFunction,
    x: &Memory<T>,
    out: &Memory<R>,
) -> Description {
    Description::Elementwise(Elementwise {
        function: Function::Unary(function),
        compute: T::DTYPE,
        shape: [x.values().len()][..].into(),
        inputs: [Input::Array(x.operand(&[1]))].into_iter().collect(),
        output: out.operand(&[1]),
    })
}

/// Returns all pairs of the values.
pub(crate) fn pairs<T: Element>(values: &[T]) -> (Memory<T>, Memory<T>) {
    let x: Vec<T> = values.iter().flat_map(|&x| vec![x; values.len()]).collect();
    let y: Vec<T> = values.iter().flat_map(|_| values.to_vec()).collect();
    (Memory::new(&x), Memory::new(&y))
}

macro_rules! integer_test {
    ($name:ident, $T:ty, $values:expr) => {
        #[test]
        fn $name() {
            use BinaryFunction::*;
            let values: Vec<$T> = $values;
            let (x, y) = pairs(&values);
            let wide = |x: $T| x as i128;
            let in_range = move |y: $T| (0..i128::from(<$T>::BITS)).contains(&wide(y));
            let floor = |x: $T, y: $T| {
                if y == 0 {
                    0
                } else {
                    wide(x).div_euclid(wide(y))
                        - i128::from(y < 0 as $T && wide(x).rem_euclid(wide(y)) != 0)
                }
            };
            let table: Vec<(BinaryFunction, Box<dyn Fn($T, $T) -> $T>)> = vec![
                (Add, Box::new(|x, y| x.wrapping_add(y))),
                (Subtract, Box::new(|x, y| x.wrapping_sub(y))),
                (Multiply, Box::new(|x, y| x.wrapping_mul(y))),
                (FloorDivide, Box::new(move |x, y| floor(x, y) as $T)),
                (
                    Remainder,
                    Box::new(
                        move |x, y| {
                            if y == 0 { 0 } else { (wide(x) - floor(x, y) * wide(y)) as $T }
                        },
                    ),
                ),
                (Fmod, Box::new(|x, y| if y == 0 { 0 } else { x.wrapping_rem(y) })),
                (
                    Power,
                    Box::new(move |x, y| {
                        if y < 0 as $T {
                            match wide(x) {
                                1 => 1,
                                -1 => {
                                    if y & 1 == 0 {
                                        1
                                    } else {
                                        x
                                    }
                                }
                                _ => 0,
                            }
                        } else {
                            let (mut result, mut square, mut left) = (1 as $T, x, y as u64);
                            while left > 0 {
                                if left & 1 == 1 {
                                    result = result.wrapping_mul(square);
                                }
                                square = square.wrapping_mul(square);
                                left >>= 1;
                            }
                            result
                        }
                    }),
                ),
                (Minimum, Box::new(|x, y| x.min(y))),
                (Maximum, Box::new(|x, y| x.max(y))),
                (BitwiseAnd, Box::new(|x, y| x & y)),
                (BitwiseOr, Box::new(|x, y| x | y)),
                (BitwiseXor, Box::new(|x, y| x ^ y)),
                (LeftShift, Box::new(move |x, y| if in_range(y) { x << y } else { 0 })),
                (
                    RightShift,
                    Box::new(move |x, y| match in_range(y) {
                        true => x >> y,
                        false => (wide(x) >> 64) as $T,
                    }),
                ),
            ];
            let outs: Vec<Memory<$T>> =
                table.iter().map(|_| Memory::zeros(values.len().pow(2))).collect();
            let mut operations: Vec<Description> =
                table.iter().zip(&outs).map(|((f, _), out)| binary(*f, &x, &y, out)).collect();
            let less = Memory::<bool>::zeros(values.len().pow(2));
            operations.push(binary(Less, &x, &y, &less));
            let [negative, absolute, sign, invert] =
                std::array::from_fn(|_| Memory::<$T>::zeros(values.len().pow(2)));
            operations.push(unary(UnaryFunction::Negative, &x, &negative));
            operations.push(unary(UnaryFunction::Absolute, &x, &absolute));
            operations.push(unary(UnaryFunction::Sign, &x, &sign));
            operations.push(unary(UnaryFunction::Invert, &x, &invert));
            if !run(&operations) {
                return;
            }
            let (x, y) = (x.values(), y.values());
            for ((function, expected), out) in table.iter().zip(&outs) {
                for (i, got) in out.values().into_iter().enumerate() {
                    assert_eq!(got, expected(x[i], y[i]), "{function:?}({}, {})", x[i], y[i]);
                }
            }
            for i in 0..x.len() {
                assert_eq!(less.at(i), x[i] < y[i]);
                assert_eq!(negative.at(i), (0 as $T).wrapping_sub(x[i]));
                let down = if x[i] < 0 as $T { (0 as $T).wrapping_sub(x[i]) } else { x[i] };
                assert_eq!(absolute.at(i), down);
                assert_eq!(wide(sign.at(i)), wide(x[i]).signum());
                assert_eq!(invert.at(i), !x[i]);
            }
        }
    };
}

integer_test!(int8, i8, vec![-128, -127, -7, -2, -1, 0, 1, 2, 3, 7, 100, 127]);
integer_test!(int32, i32, vec![i32::MIN, -70000, -7, -2, -1, 0, 1, 2, 3, 7, 70000, i32::MAX]);
integer_test!(int64, i64, vec![i64::MIN, -1 << 40, -7, -1, 0, 1, 2, 3, 7, 1 << 40, i64::MAX]);
integer_test!(uint16, u16, vec![0, 1, 2, 3, 7, 250, 32768, 65535]);
integer_test!(uint64, u64, vec![0, 1, 2, 3, 7, 250, 1 << 63, u64::MAX]);

/// Returns numpy's division of floating-point numbers by its documentation: the quotient rounded
/// down, and the remainder with the divisor's sign.
fn divmod(x: f64, y: f64) -> (f64, f64) {
    if y == 0.0 {
        return (x / y, x % y);
    }
    let mut rest = x % y;
    let mut quotient = (x - rest) / y;
    if rest == 0.0 {
        rest = 0_f64.copysign(y);
    } else if (y < 0.0) != (rest < 0.0) {
        rest += y;
        quotient -= 1.0;
    }
    let quotient = if quotient == 0.0 { 0_f64.copysign(x / y) } else { quotient.round() };
    (quotient, rest)
}

const REALS: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    -3.5,
    7.25,
    -0.001,
    1e-30,
    1e30,
    -1e30,
    100.0,
    0.99,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn same(got: f64, expected: f64, tolerance: f64) -> bool {
    (got.is_nan() && expected.is_nan())
        || got == expected
        || (got - expected).abs() <= tolerance * expected.abs()
}

#[test]
fn float64() {
    use BinaryFunction::*;
    use UnaryFunction::*;
    let (x, y) = pairs(&REALS);
    let nan_first = |x: f64, y: f64, z: f64| if x.is_nan() || y.is_nan() { f64::NAN } else { z };
    let two: Vec<(BinaryFunction, Box<dyn Fn(f64, f64) -> f64>)> = vec![
        (Add, Box::new(|x, y| x + y)),
        (Divide, Box::new(|x, y| x / y)),
        (FloorDivide, Box::new(|x, y| divmod(x, y).0)),
        (Remainder, Box::new(|x, y| divmod(x, y).1)),
        (Fmod, Box::new(|x, y| x % y)),
        (Power, Box::new(f64::powf)),
        (Minimum, Box::new(move |x, y| nan_first(x, y, x.min(y)))),
        (Maximum, Box::new(move |x, y| nan_first(x, y, x.max(y)))),
        (Atan2, Box::new(f64::atan2)),
    ];
    let one: Vec<(UnaryFunction, fn(f64) -> f64)> = vec![
        (Negative, |x| -x),
        (Absolute, f64::abs),
        (Sqrt, f64::sqrt),
        (Exp, f64::exp),
        (Log, f64::ln),
        (Log2, f64::log2),
        (Log10, f64::log10),
        (Sin, f64::sin),
        (Cos, f64::cos),
        (Tan, f64::tan),
        (Asin, f64::asin),
        (Acos, f64::acos),
        (Atan, f64::atan),
        (Sinh, f64::sinh),
        (Cosh, f64::cosh),
        (Tanh, f64::tanh),
        (Floor, f64::floor),
        (Ceil, f64::ceil),
        (Trunc, f64::trunc),
        (Fraction, |x| if x.is_infinite() { 0f64.copysign(x) } else { x % 1.0 }),
        (Rint, f64::round_ties_even),
    ];
    let length = REALS.len().pow(2);
    let outs: Vec<Memory<f64>> = two.iter().map(|_| Memory::zeros(length)).collect();
    let singles: Vec<Memory<f64>> = one.iter().map(|_| Memory::zeros(length)).collect();
    let mut operations: Vec<Description> =
        two.iter().zip(&outs).map(|((f, _), out)| binary(*f, &x, &y, out)).collect();
    operations.extend(one.iter().zip(&singles).map(|((f, _), out)| unary(*f, &x, out)));
    let (mantissa, exponent, joined) =
        (Memory::zeros(length), Memory::zeros(length), Memory::<f64>::zeros(length));
    operations.push(unary(Mantissa, &x, &mantissa));
    operations.push(unary(Exponent, &x, &exponent));
    operations.push(binary(Ldexp, &mantissa, &exponent, &joined));
    if !run(&operations) {
        return;
    }
    let (x, y) = (x.values(), y.values());
    // All other results are exact, because IEEE 754 defines them.
    let libm = |transcendental| if transcendental { 1e-14 } else { 0.0 };
    for ((function, expected), out) in two.iter().zip(&outs) {
        let tolerance = libm(matches!(function, Power | Atan2));
        for (i, got) in out.values().into_iter().enumerate() {
            let wanted = expected(x[i], y[i]);
            assert!(
                same(got, wanted, tolerance),
                "{function:?}({}, {}): {got} {wanted}",
                x[i],
                y[i]
            );
        }
    }
    for ((function, expected), out) in one.iter().zip(&singles) {
        let exact =
            matches!(function, Negative | Absolute | Sqrt | Floor | Ceil | Trunc | Fraction | Rint);
        let tolerance = libm(!exact);
        for (i, got) in out.values().into_iter().enumerate() {
            assert!(same(got, expected(x[i]), tolerance), "{function:?}({}): {got}", x[i]);
        }
    }
    for i in 0..length {
        assert!(same(joined.at(i), x[i], 0.0), "{}", x[i]);
        let m: f64 = mantissa.at(i);
        assert!(x[i] == 0.0 || !x[i].is_finite() || (0.5..1.0).contains(&m.abs()));
    }
}

#[test]
fn float16_converts_and_rounds_as_the_standard_says() {
    let every: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let halves = Memory::new(&every);
    let (singles, doubles) = (Memory::<f32>::zeros(1 << 16), Memory::<f64>::zeros(1 << 16));
    // Around every half-precision number, and midway between neighbours.
    let fine: Vec<f64> = every
        .iter()
        .flat_map(|h| {
            let next = f16::from_bits(h.to_bits().wrapping_add(1)).to_f64();
            let middle = (h.to_f64() + next) / 2.0;
            [middle, f64::from_bits(middle.to_bits() + 1), middle * (1.0 + 1e-9)]
        })
        .collect();
    let coarse: Vec<f32> = fine.iter().map(|&x| x as f32).collect();
    let (fine_in, coarse_in) = (Memory::new(&fine), Memory::new(&coarse));
    let fine_out = Memory::<f16>::zeros(fine.len());
    let coarse_out = Memory::<f16>::zeros(fine.len());
    let sum = Memory::<f16>::zeros(1 << 16);
    let cast = |x: Input, length: usize, out| {
        Description::Elementwise(Elementwise {
            function: Function::Unary(UnaryFunction::Copy),
            compute: x.dtype(),
            shape: [length][..].into(),
            inputs: [x].into_iter().collect(),
            output: out,
        })
    };
    let input = |operand| Input::Array(operand);
    if !run(&[
        cast(input(halves.operand(&[1])), 1 << 16, singles.operand(&[1])),
        cast(input(halves.operand(&[1])), 1 << 16, doubles.operand(&[1])),
        cast(input(fine_in.operand(&[1])), fine.len(), fine_out.operand(&[1])),
        cast(input(coarse_in.operand(&[1])), fine.len(), coarse_out.operand(&[1])),
        binary(BinaryFunction::Add, &halves, &halves, &sum),
    ]) {
        return;
    }
    let same = |a: f16, b: f16| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    for (h, (single, double)) in every.iter().zip(singles.values().iter().zip(doubles.values())) {
        assert!(single.to_bits() == h.to_f32().to_bits() || (single.is_nan() && h.is_nan()));
        assert!(double.to_bits() == h.to_f64().to_bits() || (double.is_nan() && h.is_nan()));
    }
    for (x, got) in fine.iter().zip(fine_out.values()) {
        assert!(nearest(*x, got), "{x:e} became {got:e}");
    }
    for (x, got) in coarse.iter().zip(coarse_out.values()) {
        assert!(same(got, f16::from_f32(*x)), "{x:e} became {got:e}");
    }
    for (x, got) in every.iter().zip(sum.values()) {
        assert!(same(got, f16::from_f32(x.to_f32() * 2.0)), "{x} + {x} = {got}");
    }
}

/// Returns true if `got` is the binary16 nearest to `x`, with ties to even.
fn nearest(x: f64, got: f16) -> bool {
    if !x.is_finite() || !got.is_finite() {
        // Infinity begins half a step beyond the largest number.
        return (x.is_nan() && got.is_nan())
            || (x.abs() >= 65520.0 && got.to_f64() == x.signum() * f64::INFINITY);
    }
    let distance = (got.to_f64() - x).abs();
    let even = got.to_bits() & 1 == 0;
    [got.to_bits().wrapping_add(1), got.to_bits().wrapping_sub(1)].into_iter().all(|bits| {
        let other = (f16::from_bits(bits).to_f64() - x).abs();
        other.is_nan() || distance < other || (distance == other && even)
    })
}

#[test]
fn conversions_selections_and_scalars() {
    let x: Vec<f32> = (0..37).map(|i| i as f32 * 1.75 - 20.0).collect();
    let floats = Memory::new(&x);
    let bytes = Memory::<i8>::zeros(37);
    let truths = Memory::<bool>::zeros(37);
    let complexes = Memory::<Complex<f64>>::zeros(37);
    let (chosen, positive) = (Memory::<f32>::zeros(37), Memory::<f32>::zeros(37));
    let (combined, filled) = (Memory::<f32>::zeros(37), Memory::<f16>::zeros(37));
    let make = |function, compute, inputs: &[Input], output| {
        Description::Elementwise(Elementwise {
            function,
            compute,
            shape: [37][..].into(),
            inputs: inputs.iter().cloned().collect(),
            output,
        })
    };
    let copy = Function::Unary(UnaryFunction::Copy);
    let array = |memory: &Memory<f32>| Input::Array(memory.operand(&[1]));
    let number = |value: f64| Input::Scalar(Scalar::new(value));
    if !run(&[
        make(copy, DType::Float32, &[array(&floats)], bytes.operand(&[1])),
        make(copy, DType::Float32, &[array(&floats)], truths.operand(&[1])),
        make(copy, DType::Float32, &[array(&floats)], complexes.operand(&[1])),
        make(
            Function::Select,
            DType::Float32,
            &[Input::Array(truths.operand(&[1])), array(&floats), number(9.0)],
            chosen.operand(&[1]),
        ),
        make(
            Function::SelectPositive,
            DType::Float32,
            &[Input::Array(bytes.operand(&[1])), number(1.5), array(&floats)],
            positive.operand(&[1]),
        ),
        make(
            Function::LinearCombination,
            DType::Float32,
            &[number(0.1), array(&floats), number(-0.3), array(&chosen)],
            combined.operand(&[1]),
        ),
        make(copy, DType::Float64, &[number(0.1)], filled.operand(&[1])),
    ]) {
        return;
    }
    for (i, x) in x.into_iter().enumerate() {
        assert_eq!(bytes.at(i), x as i8);
        assert_eq!(truths.at(i), x != 0.0);
        assert_eq!(complexes.at(i), Complex::new(f64::from(x), 0.0));
        let choice = if x != 0.0 { x } else { 9.0 };
        assert_eq!(chosen.at(i), choice);
        assert_eq!(positive.at(i), if x as i8 > 0 { 1.5 } else { x });
        assert_eq!(combined.at(i), 0.1_f32 * x + -0.3_f32 * choice);
        assert_eq!(filled.at(i), f16::from_f64(0.1));
    }
}
