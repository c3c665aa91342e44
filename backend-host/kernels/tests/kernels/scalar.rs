//! Functions of single values, written for clarity: integers as 128-bit integers that wrap at the end, other
//! types as double-precision complex numbers.

use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::{Complex, DType, Kind, Scalar};

type C = Complex<f64>;

fn integer(value: &Scalar) -> i128 {
    match value.dtype() {
        DType::UInt64 => value.get::<u64>().expect("u64").into(),
        _ => value.cast(DType::Int64).expect("cast").get::<i64>().expect("i64").into(),
    }
}

fn complex(value: &Scalar) -> C {
    value.cast(DType::Complex128).expect("cast").get().expect("complex")
}

fn wrap(value: i128, dtype: DType) -> Scalar {
    if dtype == DType::Bool {
        return Scalar::new(value != 0);
    }
    Scalar::new(value as u64).cast(dtype).expect("cast")
}

fn number(value: C, dtype: DType) -> Scalar {
    Scalar::new(value).cast(dtype).expect("cast")
}

fn real(value: f64) -> C {
    Complex::new(value, 0.0)
}

/// Returns the value of a function of arguments in the computing type.
pub(super) fn apply(function: Function, compute: DType, arguments: &[Scalar]) -> Scalar {
    let result = function.result(compute);
    let exact = matches!(compute.kind(), Kind::Bool | Kind::Signed | Kind::Unsigned);
    match function {
        Function::Unary(UnaryFunction::Copy) => arguments[0],
        Function::Unary(function) if exact => {
            wrap(unary_integer(function, compute, integer(&arguments[0])), result)
        }
        Function::Unary(function) => {
            number(unary(function, compute.is_complex(), complex(&arguments[0])), result)
        }
        Function::Binary(function) | Function::CompareMixed(function) if exact => {
            let [x, y] = [&arguments[0], &arguments[1]].map(integer);
            wrap(binary_integer(function, compute, x, y), result)
        }
        Function::Binary(function) => {
            let [x, y] = [&arguments[0], &arguments[1]].map(complex);
            number(binary(function, compute.is_complex(), x, y), result)
        }
        Function::Select => arguments[if arguments[0].is_true() { 1 } else { 2 }],
        Function::SelectPositive => {
            let condition = complex(&arguments[0]);
            arguments[if less(real(0.0), condition) { 1 } else { 2 }]
        }
        Function::LinearCombination => {
            let binary = |function, x, y| apply(Function::Binary(function), compute, &[x, y]);
            let left = binary(BinaryFunction::Multiply, arguments[0], arguments[1]);
            let right = binary(BinaryFunction::Multiply, arguments[2], arguments[3]);
            binary(BinaryFunction::Add, left, right)
        }
        other => panic!("no reference for {other:?}"),
    }
}

fn unary_integer(function: UnaryFunction, compute: DType, x: i128) -> i128 {
    use UnaryFunction::*;
    match function {
        Negative => -x,
        Absolute => x.abs(),
        Sign => x.signum(),
        Imaginary | Fraction | IsNan | IsInfinite => 0,
        IsFinite => 1,
        SignBit => (x < 0).into(),
        Square => x.wrapping_mul(x),
        Reciprocal => {
            if x.abs() == 1 {
                x
            } else {
                0
            }
        }
        LogicalNot => (x == 0).into(),
        Invert if compute == DType::Bool => (x == 0).into(),
        Invert => !x,
        _ => x,
    }
}

/// Moves a number slightly up and to the right. Formulas that ignore the sign of zero then give the result on
/// the side of a branch cut where positive zeros are.
fn off_cut(z: C) -> C {
    let away = |part: f64| if part == 0.0 { 1e-30 } else { part };
    Complex::new(away(z.re), away(z.im))
}

fn unary(function: UnaryFunction, is_complex: bool, z: C) -> C {
    use UnaryFunction::*;
    let x = z.re;
    let truth = |value: bool| real(f64::from(u8::from(value)));
    let frexp = || {
        if x == 0.0 {
            return (0.0, 0.0);
        }
        let exponent = x.abs().log2().floor() + 1.0;
        (x / exponent.exp2(), exponent)
    };
    let either = |of_real: fn(f64) -> f64, of_complex: fn(C) -> C| {
        if is_complex { of_complex(z) } else { real(of_real(x)) }
    };
    match function {
        Negative => -z,
        Absolute => real(z.norm()),
        Sign => real(if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else {
            x
        }),
        Conjugate => z.conj(),
        Real => real(z.re),
        Imaginary => real(z.im),
        LogicalNot => truth(z.re == 0.0 && z.im == 0.0),
        Sqrt => either(f64::sqrt, C::sqrt),
        Exp => either(f64::exp, C::exp),
        Log => either(f64::ln, C::ln),
        Log2 => either(f64::log2, |z| C::ln(z) / real(std::f64::consts::LN_2)),
        Log10 => either(f64::log10, C::log10),
        Sin => either(f64::sin, C::sin),
        Cos => either(f64::cos, C::cos),
        Tan => either(f64::tan, C::tan),
        Asin => either(f64::asin, |z| C::asin(off_cut(z))),
        Acos => either(f64::acos, |z| C::acos(off_cut(z))),
        Atan => either(f64::atan, |z| C::atan(off_cut(z))),
        Sinh => either(f64::sinh, C::sinh),
        Cosh => either(f64::cosh, C::cosh),
        Tanh => either(f64::tanh, C::tanh),
        Floor => real(x.floor()),
        Ceil => real(x.ceil()),
        Trunc => real(x.trunc()),
        Fraction => real((x % 1.0).copysign(x)),
        Rint => {
            either(f64::round_ties_even, |z| C::new(z.re.round_ties_even(), z.im.round_ties_even()))
        }
        Mantissa => real(frexp().0),
        Exponent => real(frexp().1),
        IsNan => truth(z.re.is_nan() || z.im.is_nan()),
        IsInfinite => truth(z.re.is_infinite() || z.im.is_infinite()),
        IsFinite => truth(z.re.is_finite() && z.im.is_finite()),
        SignBit => truth(x.is_sign_negative()),
        Square => z * z,
        Reciprocal => either(|x| 1.0 / x, |z| C::new(1.0, 0.0) / z),
        Radians => real(x * std::f64::consts::PI / 180.0),
        Degrees => real(x * 180.0 / std::f64::consts::PI),
        Cbrt => real(x.abs().powf(1.0 / 3.0).copysign(x)),
        Exp2 => either(f64::exp2, |z| (z * std::f64::consts::LN_2).exp()),
        Expm1 => either(f64::exp_m1, |z| z.exp() - 1.0),
        Log1p => either(f64::ln_1p, |z| (z + 1.0).ln()),
        Asinh => either(f64::asinh, |z| C::asinh(off_cut(z))),
        Acosh => either(f64::acosh, |z| C::acosh(off_cut(z))),
        Atanh if z.im == 0.0 && x.abs() == 1.0 => C::new(x * f64::INFINITY, z.im),
        Atanh => either(f64::atanh, |z| C::atanh(off_cut(z))),
        Erf => real(1.0 - complementary_error(x)),
        Erfc => real(complementary_error(x)),
        Gamma => real(lanczos(x)),
        LogGamma => real(log_gamma(x)),
        _ => z,
    }
}

/// One minus the error function: by its Taylor series near zero, otherwise by the continued fraction
/// (Abramowitz and Stegun, 7.1.5 and 7.1.14).
fn complementary_error(x: f64) -> f64 {
    if x.abs() < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return 1.0 - sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let size = x.abs();
    let fraction = (1..200).rev().fold(size, |rest, n| size + 0.5 * f64::from(n) / rest);
    let value = (-x * x).exp() / fraction * 0.5 * std::f64::consts::FRAC_2_SQRT_PI;
    if x < 0.0 { 2.0 - value } else { value }
}

/// The gamma function by the Lanczos approximation with g = 7 and nine terms, and by the reflection formula
/// below one half.
fn lanczos(x: f64) -> f64 {
    use std::f64::consts::PI;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x > 171.7 {
        return f64::INFINITY;
    }
    if x < 0.5 {
        if x.fract() == 0.0 {
            return if x == 0.0 { 1.0 / x } else { f64::NAN };
        }
        return PI / ((PI * x).sin() * lanczos(1.0 - x));
    }
    let x = x - 1.0;
    let terms = TERMS[1..].iter().enumerate();
    let sum = terms.fold(TERMS[0], |sum, (i, term)| sum + term / (x + 1.0 + i as f64));
    let t = x + 7.5;
    (2.0 * PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum
}

/// The logarithm of the absolute value of the gamma function. For large numbers it uses Stirling's series.
fn log_gamma(x: f64) -> f64 {
    if x <= 0.0 && x.fract() == 0.0 {
        return f64::INFINITY;
    }
    if x > 100.0 {
        let constant = (2.0 * std::f64::consts::PI).ln() / 2.0;
        return (x - 0.5) * x.ln() - x + constant + 1.0 / (12.0 * x);
    }
    lanczos(x).abs().ln()
}

/// The greatest common divisor.
fn common_divisor(x: i128, y: i128) -> i128 {
    let (mut x, mut y) = (x.abs(), y.abs());
    while x != 0 && y != 0 {
        if x > y { x %= y } else { y %= x }
    }
    x + y
}

fn binary_integer(function: BinaryFunction, compute: DType, x: i128, y: i128) -> i128 {
    use BinaryFunction::*;
    let truth = i128::from;
    let bits = compute.size() as i128 * 8;
    let modulus = 1i128 << bits;
    let of_bool = compute == DType::Bool;
    match function {
        Add if of_bool => x | y,
        Add => x + y,
        Subtract => x - y,
        Multiply => x.wrapping_mul(y),
        FloorDivide | Remainder | Fmod if y == 0 => 0,
        FloorDivide => {
            (x - x.rem_euclid(y.abs()) - if y < 0 && x.rem_euclid(y.abs()) != 0 { y } else { 0 })
                / y
        }
        Remainder => {
            let rest = x.rem_euclid(y.abs());
            if y < 0 && rest != 0 { rest + y } else { rest }
        }
        Fmod => x % y,
        Power if y < 0 => match x {
            1 => 1,
            -1 => {
                if y % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        },
        Power => {
            // Modular exponentiation, bit by bit from the top.
            let base = x.rem_euclid(modulus) as u128;
            let wrap = |value: u128| value & (modulus as u128 - 1);
            let times = |x: u128, y: u128| wrap(x.wrapping_mul(y));
            let bits = 128 - y.leading_zeros();
            (0..bits).rev().fold(1, |value, bit| {
                let square = times(value, value);
                if y >> bit & 1 == 1 { times(square, base) } else { square }
            }) as i128
        }
        Minimum | Fmin => x.min(y),
        Maximum | Fmax => x.max(y),
        Gcd => common_divisor(x, y),
        Lcm if x == 0 || y == 0 => 0,
        Lcm => (x / common_divisor(x, y)).abs().wrapping_mul(y.abs()),
        LogicalXor => truth((x != 0) != (y != 0)),
        LogicalAnd => truth(x != 0 && y != 0),
        LogicalOr => truth(x != 0 || y != 0),
        BitwiseAnd => x & y,
        BitwiseOr => x | y,
        BitwiseXor => x ^ y,
        // Beyond the number of bits, only the sign of the value is left.
        LeftShift if (0..bits).contains(&y) => x << y,
        LeftShift => 0,
        RightShift if (0..bits).contains(&y) => x >> y,
        RightShift => -i128::from(x < 0),
        Equal => truth(x == y),
        NotEqual => truth(x != y),
        Less => truth(x < y),
        LessEqual => truth(x <= y),
        Greater => truth(x > y),
        GreaterEqual => truth(x >= y),
        other => panic!("no reference for {other:?} of integers"),
    }
}

fn less(x: C, y: C) -> bool {
    x.re < y.re || (x.re == y.re && x.im < y.im)
}

fn binary(function: BinaryFunction, is_complex: bool, x: C, y: C) -> C {
    use BinaryFunction::*;
    let truth = |value: bool| real(f64::from(u8::from(value)));
    let (a, b) = (x.re, y.re);
    let zero = real(0.0);
    match function {
        Add => x + y,
        Subtract => x - y,
        Multiply => x * y,
        Divide if !is_complex => real(a / b),
        Divide if y == zero => Complex::new(x.re / 0.0, x.im / 0.0),
        Divide => x / y,
        FloorDivide if b == 0.0 => real(a / b),
        FloorDivide => real((a / b).floor()),
        Remainder => real(a - (a / b).floor() * b),
        Fmod => real(a - (a / b).trunc() * b),
        Power if !is_complex => real(a.powf(b)),
        Power if y == zero => real(1.0),
        Power if x == zero && y.re > 0.0 => zero,
        Power if x == zero => Complex::new(f64::NAN, f64::NAN),
        Power => (x.ln() * y).exp(),
        Minimum | Fmin => {
            if less(y, x) {
                y
            } else {
                x
            }
        }
        Maximum | Fmax => {
            if less(x, y) {
                y
            } else {
                x
            }
        }
        Ldexp if a == 0.0 => x,
        Ldexp => real(a * b.trunc().exp2()),
        Atan2 => real(a.atan2(b)),
        Hypot => real((a * a + b * b).sqrt()),
        CopySign => real(a.abs() * if b.is_sign_negative() { -1.0 } else { 1.0 }),
        Heaviside if a == 0.0 => y,
        Heaviside => real(if a > 0.0 { 1.0 } else { 0.0 }),
        LogAddExp => real((a.exp() + b.exp()).ln()),
        LogAddExp2 => real((a.exp2() + b.exp2()).log2()),
        // The comparison tolerates a difference of one unit in the last place; `functions` tests the bits.
        NextAfter => x,
        LogicalXor => truth((x != zero) != (y != zero)),
        LogicalAnd => truth(x != zero && y != zero),
        LogicalOr => truth(x != zero || y != zero),
        Equal => truth(x == y),
        NotEqual => truth(x != y),
        Less => truth(less(x, y)),
        LessEqual => truth(less(x, y) || x == y),
        Greater => truth(less(y, x)),
        GreaterEqual => truth(less(y, x) || x == y),
        other => panic!("no reference for {other:?} of inexact numbers"),
    }
}
