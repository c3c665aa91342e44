//! Less common functions of numpy and C, on every kind of element.

use super::elementwise::{binary, pairs, unary};
use super::run;
use crate::harness::Memory;
use hal::function::{BinaryFunction, UnaryFunction};
use hal::operation::Description;
use hal::{Complex, bf16, f16};
use std::f64::consts::{LN_2, PI};

/// Values of the error functions and the gamma function to 16 digits (Abramowitz and Stegun,
/// tables 6.1, 7.1 and 7.3).
const PUBLISHED: [(UnaryFunction, f64, f64); 14] = [
    (UnaryFunction::Erf, 0.0, 0.0),
    (UnaryFunction::Erf, 0.5, 0.520_499_877_813_046_5),
    (UnaryFunction::Erf, -1.0, -0.842_700_792_949_714_9),
    (UnaryFunction::Erf, 2.0, 0.995_322_265_018_952_7),
    (UnaryFunction::Erf, f64::NEG_INFINITY, -1.0),
    (UnaryFunction::Erfc, 0.5, 0.479_500_122_186_953_5),
    (UnaryFunction::Erfc, 2.0, 0.004_677_734_981_047_266),
    (UnaryFunction::Gamma, 0.5, 1.772_453_850_905_516),
    (UnaryFunction::Gamma, 5.0, 24.0),
    (UnaryFunction::Gamma, -1.5, 2.363_271_801_207_355),
    (UnaryFunction::Gamma, -0.0, f64::NEG_INFINITY),
    (UnaryFunction::LogGamma, 0.5, 0.572_364_942_924_700_1),
    (UnaryFunction::LogGamma, 10.0, 12.801_827_480_081_47),
    (UnaryFunction::LogGamma, -1.0, f64::INFINITY),
];

/// The functions of one number, with an independent implementation of each.
const ONE: [(UnaryFunction, fn(f64) -> f64); 12] = [
    (UnaryFunction::Positive, |x| x),
    (UnaryFunction::Square, |x| x * x),
    (UnaryFunction::Reciprocal, |x| 1.0 / x),
    (UnaryFunction::Radians, |x| x * PI / 180.0),
    (UnaryFunction::Degrees, |x| x * 180.0 / PI),
    (UnaryFunction::Cbrt, |x| x.abs().powf(1.0 / 3.0).copysign(x)),
    (UnaryFunction::Exp2, |x| x.exp2()),
    (UnaryFunction::Expm1, |x| x.exp_m1()),
    (UnaryFunction::Log1p, |x| x.ln_1p()),
    (UnaryFunction::Asinh, |x| (x.abs() + (x * x + 1.0).sqrt()).ln().copysign(x)),
    (UnaryFunction::Acosh, |x| (x + (x * x - 1.0).sqrt()).ln()),
    (UnaryFunction::Atanh, |x| 0.5 * ((1.0 + x) / (1.0 - x)).ln()),
];

fn log_add_exp(x: f64, y: f64) -> f64 {
    match x.max(y) {
        larger if larger.is_infinite() => larger,
        larger => larger + ((x - larger).exp() + (y - larger).exp()).ln(),
    }
}

/// The functions of two numbers, with an independent implementation of each. The numbers do not
/// include NaN.
const TWO: [(BinaryFunction, fn(f64, f64) -> f64); 8] = [
    (BinaryFunction::Hypot, |x, y| (x * x + y * y).sqrt()),
    (BinaryFunction::CopySign, |x, y| if y.is_sign_negative() { -x.abs() } else { x.abs() }),
    (BinaryFunction::Heaviside, |x, y| match x {
        0.0 => y,
        x => (x + x.signum()).clamp(0.0, 1.0),
    }),
    (BinaryFunction::LogAddExp, log_add_exp),
    (BinaryFunction::LogAddExp2, |x, y| log_add_exp(x * LN_2, y * LN_2) / LN_2),
    (BinaryFunction::Fmin, |x, y| if y < x { y } else { x }),
    (BinaryFunction::Fmax, |x, y| if y > x { y } else { x }),
    (BinaryFunction::Atan2, f64::atan2),
];

const REALS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.875,
    -2.5,
    3.0,
    -3.5,
    7.25,
    11.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

macro_rules! float_test {
    ($name:ident, $T:ty, $from:expr, $tolerance:expr) => {
        #[test]
        fn $name() {
            use UnaryFunction::{IsFinite, IsInfinite, IsNan, SignBit};
            let close = |got: $T, wanted: f64, rough: f64| {
                let (got, wanted) = (f64::from(got), f64::from($from(wanted)));
                (got.is_nan() && wanted.is_nan())
                    || got == wanted
                    || (got - wanted).abs() <= rough * $tolerance * wanted.abs().max(1e-2)
            };
            let values = REALS.map($from);
            let (x, y) = pairs(&values);
            let single = Memory::new(&values);
            let published = PUBLISHED.map(|(function, x, _)| (function, Memory::new(&[$from(x)])));
            let odd = REALS.iter().chain(&[f64::NAN, -f64::NAN]).map(|&x| $from(x));
            let odd = Memory::new(&odd.collect::<Vec<$T>>());
            let tests = [IsFinite, IsInfinite, IsNan, SignBit];
            let truths = tests.map(|_| Memory::<bool>::zeros(odd.values().len()));
            let singles = ONE.map(|_| Memory::<$T>::zeros(values.len()));
            let doubles = TWO.map(|_| Memory::<$T>::zeros(x.values().len()));
            let known = PUBLISHED.map(|_| Memory::<$T>::zeros(1));
            let next = Memory::<$T>::zeros(x.values().len());
            let mut operations: Vec<Description> = Vec::new();
            let outs = ONE.iter().zip(&singles);
            operations.extend(outs.map(|((function, _), out)| unary(*function, &single, out)));
            let outs = TWO.iter().zip(&doubles);
            operations.extend(outs.map(|((function, _), out)| binary(*function, &x, &y, out)));
            let outs = published.iter().zip(&known);
            operations.extend(outs.map(|((function, x), out)| unary(*function, x, out)));
            let outs = tests.iter().zip(&truths);
            operations.extend(outs.map(|(function, out)| unary(*function, &odd, out)));
            operations.push(binary(BinaryFunction::NextAfter, &x, &y, &next));
            if !run(&operations) {
                return;
            }
            for ((function, expected), out) in ONE.iter().zip(&singles) {
                for (&x, got) in values.iter().zip(out.values()) {
                    let wanted = expected(f64::from(x));
                    assert!(close(got, wanted, 1.0), "{function:?}({x}): {got}, not {wanted}");
                }
            }
            for ((function, expected), out) in TWO.iter().zip(&doubles) {
                for ((&x, &y), got) in x.values().iter().zip(&y.values()).zip(out.values()) {
                    let wanted = expected(f64::from(x), f64::from(y));
                    let infinite = *function == BinaryFunction::Heaviside && x.is_infinite();
                    let wanted = if infinite && x > $from(0.0) { 1.0 } else { wanted };
                    assert!(close(got, wanted, 1.0), "{function:?}({x}, {y}): {got}, {wanted}");
                }
            }
            for ((function, x, wanted), out) in PUBLISHED.iter().zip(&known) {
                let got = out.at(0);
                assert!(close(got, *wanted, 2.0), "{function:?}({x}): {got}, not {wanted}");
            }
            for (i, x) in odd.values().into_iter().enumerate() {
                let got = truths.each_ref().map(|out| out.at(i));
                let x = f64::from(x);
                let wanted = [x.is_finite(), x.is_infinite(), x.is_nan(), x.is_sign_negative()];
                assert_eq!(got, wanted, "{x}");
            }
            for ((&x, &y), got) in x.values().iter().zip(&y.values()).zip(next.values()) {
                // The result is adjacent to `x`, in the direction of `y`.
                let (from, to, got) = (f64::from(x), f64::from(y), f64::from(got));
                if x == y {
                    assert_eq!(got.to_bits(), to.to_bits());
                    continue;
                }
                let middle = f64::from($from((from + got) / 2.0));
                assert!(from < got && got <= to || from > got && got >= to, "{from} {to}: {got}");
                assert!(middle == from || middle == got || from.is_infinite(), "{from}: {got}");
            }
        }
    };
}

float_test!(float64, f64, |x: f64| x, 4e-15);
float_test!(float32, f32, |x: f64| x as f32, 2e-6);
float_test!(float16, f16, f16::from_f64, 4e-3);
float_test!(bfloat16, bf16, |x: f64| bf16::from_f32(x as f32), 3.2e-2);

fn common_divisor(x: i128, y: i128) -> i128 {
    if y == 0 { x.abs() } else { common_divisor(y, x % y) }
}

macro_rules! integer_test {
    ($name:ident, $T:ty, $values:expr) => {
        #[test]
        fn $name() {
            use BinaryFunction::{Fmax, Fmin, Gcd, Lcm, LogicalXor};
            use UnaryFunction::{IsFinite, IsInfinite, Positive, Reciprocal, SignBit, Square};
            let values: Vec<$T> = $values;
            let (x, y) = pairs(&values);
            let [gcd, lcm, least, most, square, reciprocal, positive] =
                std::array::from_fn(|_| Memory::<$T>::zeros(values.len().pow(2)));
            let [either, sign, finite, infinite] =
                std::array::from_fn(|_| Memory::<bool>::zeros(values.len().pow(2)));
            if !run(&[
                binary(Gcd, &x, &y, &gcd),
                binary(Lcm, &x, &y, &lcm),
                binary(Fmin, &x, &y, &least),
                binary(Fmax, &x, &y, &most),
                binary(LogicalXor, &x, &y, &either),
                unary(Square, &x, &square),
                unary(Reciprocal, &x, &reciprocal),
                unary(Positive, &x, &positive),
                unary(SignBit, &x, &sign),
                unary(IsFinite, &x, &finite),
                unary(IsInfinite, &x, &infinite),
            ]) {
                return;
            }
            for i in 0..values.len().pow(2) {
                let (x, y) = (x.at(i), y.at(i));
                let divisor = common_divisor(x as i128, y as i128);
                assert_eq!(gcd.at(i), divisor as $T, "{x} {y}");
                let multiple = (x as i128 / divisor.max(1)).abs().wrapping_mul((y as i128).abs());
                assert_eq!(lcm.at(i), multiple as $T, "{x} {y}");
                assert_eq!((least.at(i), most.at(i)), (x.min(y), x.max(y)));
                assert_eq!(either.at(i), (x != 0) != (y != 0));
                assert_eq!((square.at(i), positive.at(i)), (x.wrapping_mul(x), x));
                assert_eq!(reciprocal.at(i), if (x as i128).abs() == 1 { x } else { 0 });
                assert_eq!(sign.at(i), (x as i128) < 0);
                assert_eq!((finite.at(i), infinite.at(i)), (true, false));
            }
        }
    };
}

integer_test!(int8, i8, vec![-128, -127, -12, -2, -1, 0, 1, 2, 8, 12, 100, 127]);
integer_test!(int64, i64, vec![i64::MIN, -(1 << 40), -6, -1, 0, 1, 9, 48, 1 << 40, i64::MAX]);
integer_test!(uint16, u16, vec![0, 1, 2, 3, 12, 250, 32768, 65535]);
integer_test!(uint64, u64, vec![0, 1, 2, 12, 1 << 63, u64::MAX]);

#[test]
fn truth_values() {
    let (x, y) = pairs(&[false, true]);
    let outs: [Memory<bool>; 6] = std::array::from_fn(|_| Memory::zeros(4));
    let [xor, least, most, sign, finite, infinite] = &outs;
    if !run(&[
        binary(BinaryFunction::LogicalXor, &x, &y, xor),
        binary(BinaryFunction::Fmin, &x, &y, least),
        binary(BinaryFunction::Fmax, &x, &y, most),
        unary(UnaryFunction::SignBit, &x, sign),
        unary(UnaryFunction::IsFinite, &x, finite),
        unary(UnaryFunction::IsInfinite, &x, infinite),
    ]) {
        return;
    }
    let wanted = [
        [false, true, true, false],
        [false, false, false, true],
        [false, true, true, true],
        [false; 4],
        [true; 4],
        [false; 4],
    ];
    assert_eq!(outs.map(|out| out.values()), wanted);
}

macro_rules! complex_test {
    ($name:ident, $R:ty, $tolerance:expr) => {
        #[test]
        fn $name() {
            use UnaryFunction::*;
            type C = Complex<$R>;
            let parts: [$R; 7] = [0.25, 1.0, -1.5, 0.3, -0.7, 2.5, 0.01];
            let mut values: Vec<C> =
                parts.iter().flat_map(|&re| parts.map(|im| C::new(re, im))).collect();
            values.push(C::new(1e-4, -1e-4));
            // Near the circle on which the real part of log1p is zero.
            values.push(C::new(-0.02, 0.199));
            let one: [(UnaryFunction, fn(C) -> C); 11] = [
                (Log1p, |z| (z + 1.0).ln()),
                (Expm1, |z| z.exp() - 1.0),
                (Exp2, |z| (z * LN_2 as $R).exp()),
                (Log2, |z| z.ln() / LN_2 as $R),
                (Rint, |z| C::new(z.re.round_ties_even(), z.im.round_ties_even())),
                (Square, |z| z * z),
                (Reciprocal, |z| C::new(1.0, 0.0) / z),
                (Positive, |z| z),
                (Asinh, C::asinh),
                (Acosh, C::acosh),
                (Atanh, C::atanh),
            ];
            let x = Memory::new(&values);
            let outs = one.map(|_| Memory::<C>::zeros(values.len()));
            let infinity = <$R>::INFINITY;
            let odd = [C::new(infinity, 0.0), C::new(<$R>::NAN, -infinity), C::new(0.0, <$R>::NAN)];
            let odd = Memory::new(&odd);
            let tests = [IsInfinite, IsFinite, IsNan];
            let truths = tests.map(|_| Memory::<bool>::zeros(3));
            let mut operations: Vec<Description> =
                one.iter().zip(&outs).map(|((f, _), out)| unary(*f, &x, out)).collect();
            operations.extend(tests.iter().zip(&truths).map(|(f, out)| unary(*f, &odd, out)));
            if !run(&operations) {
                return;
            }
            for ((function, expected), out) in one.iter().zip(&outs) {
                for (&z, got) in values.iter().zip(out.values()) {
                    let wanted = expected(z);
                    let difference = (got - wanted).norm();
                    let limit = $tolerance * wanted.norm().max(1.0);
                    assert!(difference <= limit, "{function:?}({z}): {got}, not {wanted}");
                }
            }
            let wanted = [[true, true, false], [false; 3], [false, true, true]];
            assert_eq!(truths.map(|out| out.values()), wanted);
        }
    };
}

complex_test!(complex64, f32, 4e-6);
complex_test!(complex128, f64, 1e-14);
