//! Functions of single values, written for clarity: integers as 128-bit ones that wrap at
//! the end, the rest as complex numbers of double precision.

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

/// The value of a function of arguments of the computing type.
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
        Imaginary | Fraction | IsNan => 0,
        LogicalNot => (x == 0).into(),
        Invert if compute == DType::Bool => (x == 0).into(),
        Invert => !x,
        _ => x,
    }
}

/// The number a little above and to the right, so that formulas that ignore the sign of zero
/// come out on the side of a branch cut on which positive zeros are.
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
        Log2 => real(x.log2()),
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
        Rint => real(x.round_ties_even()),
        Mantissa => real(frexp().0),
        Exponent => real(frexp().1),
        IsNan => truth(z.re.is_nan() || z.im.is_nan()),
        _ => z,
    }
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
        Minimum => x.min(y),
        Maximum => x.max(y),
        LogicalAnd => truth(x != 0 && y != 0),
        LogicalOr => truth(x != 0 || y != 0),
        BitwiseAnd => x & y,
        BitwiseOr => x | y,
        BitwiseXor => x ^ y,
        // Beyond the number of bits nothing of the value is left but its sign.
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
        Minimum => {
            if less(y, x) {
                y
            } else {
                x
            }
        }
        Maximum => {
            if less(x, y) {
                y
            } else {
                x
            }
        }
        Ldexp if a == 0.0 => x,
        Ldexp => real(a * b.trunc().exp2()),
        Atan2 => real(a.atan2(b)),
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
