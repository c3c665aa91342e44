//! Elementwise functions of one and two operands.

use crate::context::{Context, counting};
use crate::harness::{Outcome, tests};
use crate::reference::{Reference, assert_near, for_every_type, samples};
use gpuarray::array::Bits;
use gpuarray::array::functions;
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::{Array, Complex, DeviceArray, Element, Number, Scalar, Status, StatusExt};

tests![
    arithmetic_agrees_with_the_reference_in_every_type,
    arithmetic_works_at_every_length,
    division_and_remainder_follow_the_sign_of_the_divisor,
    division_of_integers_by_zero_gives_zero,
    real_functions_agree_with_the_reference,
    functions_of_two_floats_agree_with_the_reference,
    bits_are_combined_in_every_integer_type,
    bits_are_shifted_in_every_integer_type,
    comparisons_give_truth_values,
    minimum_and_maximum_pass_nan_on,
    complex_functions_agree_with_the_reference,
    integers_wrap_around,
    selection_picks_where_the_criterion_holds,
    a_linear_combination_is_rounded_after_each_step,
    operators_of_typed_arrays_agree_with_the_functions,
    powers_with_simple_exponents_are_exact,
    a_large_sum_of_arrays_is_right_everywhere,
    the_last_status_is_that_of_the_last_operation,
];

fn arithmetic_agrees_with_the_reference_in_every_type(context: &Context) -> Outcome {
    fn check<T: Reference>(context: &Context) -> Outcome {
        let (a, b) = (samples::<T>(0, 120), samples::<T>(50, 120));
        let (x, y) = (context.array(&[120], &a)?, context.array(&[120], &b)?);
        let reference =
            |f: fn(T, T) -> T| -> Vec<T> { a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect() };
        assert_near(&x.zip(functions::Add, &y)?.to_vec()?, &reference(T::plus));
        assert_near(&x.zip(functions::Multiply, &y)?.to_vec()?, &reference(T::times));
        let mut z = x.copy()?;
        z.update(functions::Add, &y)?;
        assert_near(&z.to_vec()?, &reference(T::plus));
        z.update(functions::Multiply, &x)?;
        let expected: Vec<T> =
            reference(T::plus).iter().zip(&a).map(|(&s, &a)| s.times(a)).collect();
        assert_near(&z.to_vec()?, &expected);
        z.fill(T::ONE)?;
        assert_eq!(z.to_vec()?, vec![T::ONE; 120]);
        Ok(())
    }
    for_every_type!(context from 2, check(context));
    Ok(())
}

fn arithmetic_works_at_every_length(context: &Context) -> Outcome {
    let all = context.array(&[300], &samples::<f32>(0, 300))?;
    let host = all.to_vec()?;
    for length in (0..70isize).chain([127, 128, 129, 255, 256, 257]) {
        for start in [0isize, 1, 3] {
            let part = all.index(&[(start..start + length).into()])?;
            let range = start as usize..(start + length) as usize;
            let expected: Vec<f32> = host[range].iter().map(|x| x + 2.5).collect();
            assert_eq!((&part + 2.5)?.to_vec()?, expected);
        }
    }
    Ok(())
}

/// Applies a function to two slices of numbers of one type.
pub(crate) fn apply<T: Element, U: Element>(
    context: &Context,
    function: BinaryFunction,
    a: &[T],
    b: &[T],
) -> gpuarray::Result<Vec<U>> {
    let (x, y) = (context.array(&[a.len()], a)?, context.array(&[b.len()], b)?);
    let result = Array::binary(function, x.untyped().into(), y.untyped().into())?;
    DeviceArray::<U>::from_untyped(result)?.to_vec()
}

fn division_and_remainder_follow_the_sign_of_the_divisor(context: &Context) -> Outcome {
    use BinaryFunction::{Divide, FloorDivide, Fmod, Remainder};
    let (a, b) = ([7, -7, 7, -7, 6, 0], [3, 3, -3, -3, 3, 5]);
    assert_eq!(apply::<i32, i32>(context, FloorDivide, &a, &b)?, [2, -3, -3, 2, 2, 0]);
    assert_eq!(apply::<i32, i32>(context, Remainder, &a, &b)?, [1, 2, -2, -1, 0, 0]);
    assert_eq!(apply::<i32, i32>(context, Fmod, &a, &b)?, [1, -1, 1, -1, 0, 0]);
    let quotients: Vec<f64> = a.iter().zip(b).map(|(&a, b)| f64::from(a) / f64::from(b)).collect();
    assert_eq!(apply::<i32, f64>(context, Divide, &a, &b)?, quotients);
    let (a, b) = (a.map(|x| f64::from(x) + 0.5), b.map(f64::from));
    assert_eq!(apply::<f64, f64>(context, FloorDivide, &a, &b)?, [2., -3., -3., 2., 2., 0.]);
    assert_eq!(apply::<f64, f64>(context, Remainder, &a, &b)?, [1.5, 2.5, -1.5, -0.5, 0.5, 0.5]);
    assert_eq!(apply::<f64, f64>(context, Fmod, &a, &b)?, [1.5, -0.5, 1.5, -0.5, 0.5, 0.5]);
    Ok(())
}

fn division_of_integers_by_zero_gives_zero(context: &Context) -> Outcome {
    use BinaryFunction::{FloorDivide, Fmod, Remainder};
    for function in [FloorDivide, Remainder, Fmod] {
        assert_eq!(apply::<i64, i64>(context, function, &[5, -5, 0], &[0; 3])?, [0; 3]);
        assert_eq!(apply::<u8, u8>(context, function, &[5, 255, 0], &[0; 3])?, [0; 3]);
        // The one quotient that overflows wraps, and must not trap.
        let remainder = apply::<i32, i32>(context, function, &[i32::MIN], &[-1])?;
        assert_eq!(remainder, [if function == FloorDivide { i32::MIN } else { 0 }]);
    }
    Ok(())
}

fn real_functions_agree_with_the_reference(context: &Context) -> Outcome {
    use UnaryFunction::*;
    type Table = [(UnaryFunction, fn(f64) -> f64, f64, f64); 37];
    const TABLE: Table = [
        (Positive, |x| x, -4.0, 4.0),
        (Square, |x| x * x, -4.0, 4.0),
        (Reciprocal, |x| 1.0 / x, 0.25, 4.0),
        (Radians, f64::to_radians, -4.0, 4.0),
        (Degrees, f64::to_degrees, -4.0, 4.0),
        (Trunc, f64::trunc, -4.0, 4.0),
        (Cbrt, f64::cbrt, -4.0, 4.0),
        (Exp2, f64::exp2, -4.0, 4.0),
        (Expm1, f64::exp_m1, -4.0, 4.0),
        (Log1p, f64::ln_1p, -0.9, 50.0),
        (Asinh, f64::asinh, -4.0, 4.0),
        (Acosh, f64::acosh, 1.5, 50.0),
        (Atanh, f64::atanh, -0.9, 0.9),
        (Copy, |x| x, -4.0, 4.0),
        (Negative, |x| -x, -4.0, 4.0),
        (Absolute, f64::abs, -4.0, 4.0),
        (Sign, |x| if x == 0.0 { 0.0 } else { x.signum() }, -4.0, 4.0),
        (Conjugate, |x| x, -4.0, 4.0),
        (Real, |x| x, -4.0, 4.0),
        (Imaginary, |_| 0.0, -4.0, 4.0),
        (Sqrt, f64::sqrt, 0.0, 50.0),
        (Exp, f64::exp, -4.0, 4.0),
        (Log, f64::ln, 0.01, 50.0),
        (Log2, f64::log2, 0.01, 50.0),
        (Log10, f64::log10, 0.01, 50.0),
        (Sin, f64::sin, -9.0, 9.0),
        (Cos, f64::cos, -9.0, 9.0),
        (Tan, f64::tan, -1.5, 1.5),
        (Asin, f64::asin, -1.0, 1.0),
        (Acos, f64::acos, -1.0, 1.0),
        (Atan, f64::atan, -9.0, 9.0),
        (Sinh, f64::sinh, -4.0, 4.0),
        (Cosh, f64::cosh, -4.0, 4.0),
        (Tanh, f64::tanh, -4.0, 4.0),
        (Floor, f64::floor, -4.0, 4.0),
        (Ceil, f64::ceil, -4.0, 4.0),
        (Rint, f64::round_ties_even, -4.0, 4.0),
    ];
    for (number, (function, reference, low, high)) in TABLE.into_iter().enumerate() {
        let values: Vec<f64> = (0..=64).map(|i| low + (high - low) * f64::from(i) / 64.0).collect();
        let expected: Vec<f64> = values.iter().map(|&x| reference(x)).collect();
        let found = context.array(&[65], &values)?.untyped().unary(function)?;
        let found = DeviceArray::<f64>::from_untyped(found)?.to_vec()?;
        for ((x, a), b) in values.iter().zip(&found).zip(&expected) {
            assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{function:?}({x}) = {a}, not {b}");
        }
        if !context.takes(number) {
            continue;
        }
        let single: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let found = context.array(&[65], &single)?.untyped().unary(function)?;
        let found = DeviceArray::<f32>::from_untyped(found)?.to_vec()?;
        for (&x, &a) in single.iter().zip(&found) {
            let b = reference(f64::from(x));
            let limit = 1e-6 * b.abs().max(1.0);
            assert!((f64::from(a) - b).abs() <= limit, "{function:?}({x}f32) = {a}, not {b}");
        }
    }
    let parts = context.array(&[4], &[10.0, -0.75, 0.0, 1.0])?;
    assert_eq!(parts.mantissa()?.to_vec()?, [0.625, -0.75, 0.0, 0.5]);
    assert_eq!(parts.exponent()?.to_vec()?, [4.0, 0.0, 0.0, 1.0]);
    assert_eq!(parts.trunc()?.to_vec()?, [10.0, 0.0, 0.0, 1.0]);
    let odd = context.array(&[3], &[f64::NAN, 1.0, f64::INFINITY])?;
    assert_eq!(odd.is_nan()?.to_vec()?, [true, false, false]);
    Ok(())
}

fn functions_of_two_floats_agree_with_the_reference(context: &Context) -> Outcome {
    use BinaryFunction::*;
    type Table = [(BinaryFunction, fn(f64, f64) -> f64); 16];
    const TABLE: Table = [
        (Hypot, f64::hypot),
        (CopySign, f64::copysign),
        (NextAfter, |x, y| if x < y { x.next_up() } else { x.next_down() }),
        (Heaviside, |x, y| if x == 0.0 { y } else { f64::from(u8::from(x > 0.0)) }),
        (LogAddExp, |x, y| (x.exp() + y.exp()).ln()),
        (LogAddExp2, |x, y| (x.exp2() + y.exp2()).log2()),
        (Fmin, f64::min),
        (Fmax, f64::max),
        (Subtract, |x, y| x - y),
        (Divide, |x, y| x / y),
        (Power, f64::powf),
        (Minimum, f64::min),
        (Maximum, f64::max),
        (Atan2, f64::atan2),
        (Ldexp, |x, y| x * y.trunc().exp2()),
        (Fmod, |x, y| x % y),
    ];
    let a: Vec<f64> = (0..50).map(|i| 0.125 + f64::from(i) / 7.0).collect();
    let b: Vec<f64> = (0..50).map(|i| 3.25 - f64::from(i) / 9.0).collect();
    for (function, reference) in TABLE {
        let expected: Vec<f64> = a.iter().zip(&b).map(|(&x, &y)| reference(x, y)).collect();
        assert_near(&apply::<f64, f64>(context, function, &a, &b)?, &expected);
    }
    Ok(())
}

fn bits_are_combined_in_every_integer_type(context: &Context) -> Outcome {
    use BinaryFunction::{BitwiseAnd, BitwiseOr, BitwiseXor};
    fn check<T>(context: &Context, a: T, b: T) -> Outcome
    where
        T: Bits
            + std::ops::BitAnd<Output = T>
            + std::ops::BitOr<Output = T>
            + std::ops::BitXor<Output = T>
            + std::ops::Not<Output = T>,
    {
        assert_eq!(apply::<T, T>(context, BitwiseAnd, &[a], &[b])?, [a & b]);
        assert_eq!(apply::<T, T>(context, BitwiseOr, &[a], &[b])?, [a | b]);
        assert_eq!(apply::<T, T>(context, BitwiseXor, &[a], &[b])?, [a ^ b]);
        assert_eq!(context.array(&[1], &[a])?.map(functions::Invert)?.to_vec()?, [!a]);
        Ok(())
    }
    check(context, true, false)?;
    check(context, 0x1234_5678i32, -3)?;
    check(context, 0xa5u8, 0x0f)?;
    if context.takes_all() {
        check(context, 0x55i8, -3)?;
        check(context, 0x1234i16, -3)?;
        check(context, 0x1234_5678_9abc_def0i64, -3)?;
        check(context, 0xa5a5u16, 0x0ff0)?;
        check(context, 0xa5a5_5a5au32, 0x0ff0_f00f)?;
        check(context, 0xa5a5_5a5a_a5a5_5a5au64, u64::MAX << 7)?;
    }
    Ok(())
}

/// As in numpy, only the sign is left after a shift by a negative count, or by the number of bits
/// or more.
fn bits_are_shifted_in_every_integer_type(context: &Context) -> Outcome {
    use BinaryFunction::{LeftShift, RightShift};
    macro_rules! check {
        ($($integer:ty)*) => {
            $({
                let bits = <$integer>::BITS as $integer;
                let places = [0, 1, bits - 1, bits, <$integer>::MAX, <$integer>::MIN];
                for x in [<$integer>::MIN, 0, 1, 0x55, <$integer>::MAX] {
                    let sign = if x < 1 && x != 0 { !0 } else { 0 };
                    // For an unsigned type, MIN is zero, which is a shift by zero places.
                    let below = <$integer>::MIN == 0;
                    let left = [x, x << 1, x << (bits - 1), 0, 0, if below { x } else { 0 }];
                    let right =
                        [x, x >> 1, x >> (bits - 1), sign, sign, if below { x } else { sign }];
                    let xs = [x; 6];
                    assert_eq!(apply::<_, $integer>(context, LeftShift, &xs, &places)?, left);
                    assert_eq!(apply::<_, $integer>(context, RightShift, &xs, &places)?, right);
                }
            })*
        };
    }
    check!(i8 i64 u16 u32);
    if context.takes_all() {
        check!(i16 i32 u8 u64);
    }
    Ok(())
}

fn comparisons_give_truth_values(context: &Context) -> Outcome {
    use BinaryFunction::*;
    fn check<T: Reference>(context: &Context) -> Outcome {
        let (low, high) = (T::ZERO, T::ONE);
        let (a, b) = ([low, high, low, high], [low, low, high, high]);
        for (function, expected) in [
            (Equal, [true, false, false, true]),
            (NotEqual, [false, true, true, false]),
            (Less, [false, false, true, false]),
            (LessEqual, [true, false, true, true]),
            (Greater, [false, true, false, false]),
            (GreaterEqual, [true, true, false, true]),
            (LogicalAnd, [false, false, false, true]),
            (LogicalOr, [false, true, true, true]),
        ] {
            assert_eq!(apply::<T, bool>(context, function, &a, &b)?, expected, "{function:?}");
        }
        Ok(())
    }
    for_every_type!(context from 0, check(context));
    let nan = [f64::NAN];
    assert_eq!(apply::<f64, bool>(context, Equal, &nan, &nan)?, [false]);
    assert_eq!(apply::<f64, bool>(context, NotEqual, &nan, &nan)?, [true]);
    assert_eq!(apply::<f64, bool>(context, LessEqual, &nan, &[1.0])?, [false]);
    Ok(())
}

fn minimum_and_maximum_pass_nan_on(context: &Context) -> Outcome {
    let (a, b) = ([f32::NAN, 1.0, 2.0], [0.0, f32::NAN, 1.0]);
    for (function, last) in [(BinaryFunction::Minimum, 1.0), (BinaryFunction::Maximum, 2.0)] {
        assert_near(&apply::<f32, f32>(context, function, &a, &b)?, &[f32::NAN, f32::NAN, last]);
    }
    let array = context.array(&[3], &a)?;
    assert!(array.min()?.is_nan() && array.max()?.is_nan());
    Ok(())
}

fn complex_functions_agree_with_the_reference(context: &Context) -> Outcome {
    use UnaryFunction::*;
    type C = Complex<f64>;
    type Table = [(UnaryFunction, fn(C) -> C); 10];
    const TABLE: Table = [
        (Negative, |x| -x),
        (Conjugate, |x| x.conj()),
        (Sqrt, C::sqrt),
        (Exp, C::exp),
        (Log, C::ln),
        (Sin, C::sin),
        (Cos, C::cos),
        (Tan, C::tan),
        (Sinh, C::sinh),
        (Tanh, C::tanh),
    ];
    let values: Vec<C> =
        (0..40).map(|i| C::from_polar(0.2 + f64::from(i) / 20.0, f64::from(i))).collect();
    let array = context.array(&[40], &values)?;
    for (function, reference) in TABLE {
        let found = DeviceArray::<C>::from_untyped(array.untyped().unary(function)?)?.to_vec()?;
        for (&x, &a) in values.iter().zip(&found) {
            let b = reference(x);
            assert!((a - b).norm() <= 1e-13 * b.norm().max(1.0), "{function:?}({x}) = {a} not {b}");
        }
    }
    for (function, part) in
        [(Absolute, (|x| x.norm()) as fn(&C) -> f64), (Real, |x| x.re), (Imaginary, |x| x.im)]
    {
        let found = DeviceArray::<f64>::from_untyped(array.untyped().unary(function)?)?.to_vec()?;
        assert_near(&found, &values.iter().map(part).collect::<Vec<_>>());
    }
    let quotients = array.zip(functions::Divide, &(&array + C::new(3.0, 1.0))?)?.to_vec()?;
    let expected: Vec<C> = values.iter().map(|x| x / (x + C::new(3.0, 1.0))).collect();
    assert_near(&quotients, &expected);
    Ok(())
}

fn integers_wrap_around(context: &Context) -> Outcome {
    use BinaryFunction::{Add, Multiply, Power, Subtract};
    assert_eq!(apply::<i8, i8>(context, Add, &[i8::MAX], &[1])?, [i8::MIN]);
    assert_eq!(apply::<u16, u16>(context, Subtract, &[0], &[1])?, [u16::MAX]);
    assert_eq!(apply::<i64, i64>(context, Multiply, &[i64::MAX], &[2])?, [-2]);
    assert_eq!(apply::<u8, u8>(context, Power, &[3], &[7])?, [3u8.wrapping_pow(7)]);
    let lowest = context.array(&[1], &[i32::MIN])?;
    assert_eq!(lowest.map(functions::Negative)?.to_vec()?, [i32::MIN]);
    assert_eq!(lowest.map(functions::Absolute)?.to_vec()?, [i32::MIN]);
    Ok(())
}

fn selection_picks_where_the_criterion_holds(context: &Context) -> Outcome {
    let criterion = context.array(&[2, 1], &[true, false])?;
    let (a, b) = (context.array(&[3], &[1, 2, 3])?, context.array(&[3], &[-1, -2, -3])?);
    let picked = DeviceArray::select(&criterion, &a, &b)?;
    assert_eq!(picked.shape(), [2, 3]);
    assert_eq!(picked.to_vec()?, [1, 2, 3, -1, -2, -3]);
    let signed = context.array(&[3], &[-0.5f32, 0.0, 0.5])?;
    let positive = Array::select(signed.untyped(), a.untyped().into(), b.untyped().into(), true)?;
    assert_eq!(DeviceArray::<i32>::from_untyped(positive)?.to_vec()?, [-1, -2, 3]);
    let zero = Number::Integer(0).into();
    let nonzero = Array::select(signed.untyped(), a.untyped().into(), zero, false)?;
    assert_eq!(DeviceArray::<i32>::from_untyped(nonzero)?.to_vec()?, [1, 0, 3]);
    Ok(())
}

fn a_linear_combination_is_rounded_after_each_step(context: &Context) -> Outcome {
    let (x, y) = (samples::<f32>(0, 100), samples::<f32>(7, 100));
    let (a, b) = (context.array(&[100], &x)?, context.array(&[100], &y)?);
    let scalar = |value: f32| Scalar::new(value).into();
    let combined =
        Array::linear_combination(scalar(0.1), a.untyped(), scalar(-3.3), b.untyped(), None)?;
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 0.1 * x + -3.3 * y).collect();
    assert_eq!(DeviceArray::<f32>::from_untyped(combined)?.to_vec()?, expected);
    let one = scalar(1.0);
    Array::linear_combination(one, a.untyped(), one, b.untyped(), Some(a.untyped()))?;
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
    assert_eq!(a.to_vec()?, expected, "the output may be one of the inputs");
    Ok(())
}

fn operators_of_typed_arrays_agree_with_the_functions(context: &Context) -> Outcome {
    let (a, b) = (context.array(&[3], &[1.5f64, -2.0, 9.0])?, context.array(&[3], &[2.0; 3])?);
    assert_eq!((&a + &b)?.to_vec()?, [3.5, 0.0, 11.0]);
    assert_eq!((&a - &b)?.to_vec()?, [-0.5, -4.0, 7.0]);
    assert_eq!((&a * &b)?.to_vec()?, [3.0, -4.0, 18.0]);
    assert_eq!((&a / &b)?.to_vec()?, [0.75, -1.0, 4.5]);
    assert_eq!((&a % &b)?.to_vec()?, [1.5, 0.0, 1.0]);
    assert_eq!((-&a)?.to_vec()?, [-1.5, 2.0, -9.0]);
    assert_eq!((&a - 1.0)?.to_vec()?, [0.5, -3.0, 8.0]);
    assert_eq!(a.zip(functions::Greater, &b)?.to_vec()?, [false, false, true]);
    Ok(())
}

fn powers_with_simple_exponents_are_exact(context: &Context) -> Outcome {
    let values = samples::<f64>(0, 41);
    let array = context.array(&[41], &values)?;
    let power = |exponent: f64| -> gpuarray::Result<Vec<f64>> {
        let scalar = Scalar::new(exponent).into();
        let result = Array::binary(BinaryFunction::Power, array.untyped().into(), scalar)?;
        DeviceArray::from_untyped(result)?.to_vec()
    };
    assert_eq!(power(1.0)?, values);
    assert_eq!(power(2.0)?, values.iter().map(|x| x * x).collect::<Vec<_>>());
    assert_eq!(power(0.0)?, [1.0; 41]);
    assert_near(&power(0.5)?, &values.iter().map(|x| x.sqrt()).collect::<Vec<_>>());
    assert_near(&power(3.0)?, &values.iter().map(|x| x * x * x).collect::<Vec<_>>());
    Ok(())
}

fn a_large_sum_of_arrays_is_right_everywhere(context: &Context) -> Outcome {
    let count = 1_000_003;
    let a = DeviceArray::<i32>::sequence(&context.device, 0, 1, count)?;
    let b = DeviceArray::<i32>::sequence(&context.device, 5, -3, count)?;
    let expected: Vec<i32> = counting(count).iter().map(|i| i + 5 - 3 * i).collect();
    assert!((&a + &b)?.to_vec()? == expected);
    let grid = a.index(&[(..1_000_000).into()])?.reshape(&[1000, 1000])?;
    let turned = (&grid + &grid.transpose(None)?)?.to_vec()?;
    for (index, &value) in turned.iter().enumerate() {
        let (row, column) = (index / 1000, index % 1000);
        assert_eq!(value as usize, index + column * 1000 + row);
    }
    Ok(())
}

fn the_last_status_is_that_of_the_last_operation(context: &Context) -> Outcome {
    let array = context.counting(&[3])?;
    let _sum = (&array + &array)?;
    assert_eq!(array.last_status(), Status::OK);
    let refused = &array + &context.counting(&[4])?;
    assert_eq!(array.last_status(), refused.status());
    assert_eq!(refused.split().1, Status::host(Status::INVALID_VALUE));
    let _sum = (&array + 1)?;
    assert_eq!(array.last_status(), Status::OK);
    Ok(())
}
