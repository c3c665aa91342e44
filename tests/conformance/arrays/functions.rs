//! Functions with published values, and functions that treat floats and integers differently.

use crate::arrays::elementwise::apply;
use crate::context::Context;
use crate::harness::{Outcome, tests};
use gpuarray::function::{BinaryFunction, UnaryFunction};
use gpuarray::{DeviceArray, Element};

tests![
    error_and_gamma_functions_have_published_values,
    classes_of_floats_are_told_apart,
    divisors_and_multiples_are_common,
];

/// Applies a function whose values have the type of the argument.
fn mapped<T: Element>(array: &DeviceArray<T>, function: UnaryFunction) -> gpuarray::Result<Vec<T>> {
    DeviceArray::from_untyped(array.untyped().unary(function)?)?.to_vec()
}

/// The values come from Abramowitz and Stegun, tables 6.1 and 7.1.
fn error_and_gamma_functions_have_published_values(context: &Context) -> Outcome {
    use UnaryFunction::{Erf, Erfc, Gamma, LogGamma};
    let published: [(UnaryFunction, [f64; 3], [f64; 3]); 4] = [
        (
            Erf,
            [0.5, -1.0, 2.0],
            [0.520_499_877_813_047, -0.842_700_792_949_715, 0.995_322_265_018_953],
        ),
        (Erfc, [0.5, 2.0, -8.0], [0.479_500_122_186_953, 0.004_677_734_981_047_266, 2.0]),
        (Gamma, [0.5, 5.0, -1.5], [1.772_453_850_905_516, 24.0, 2.363_271_801_207_355]),
        (LogGamma, [0.5, 2.0, 10.0], [0.572_364_942_924_700, 0.0, 12.801_827_480_081_469]),
    ];
    for (function, arguments, values) in published {
        let array = context.array(&[3], &arguments)?;
        for (a, b) in mapped(&array, function)?.into_iter().zip(values) {
            assert!((a - b).abs() <= 1e-14 * b.abs().max(0.01), "{function:?}: {a}, not {b}");
        }
        let single = mapped(&array.cast::<f32>()?, function)?;
        for (a, b) in single.into_iter().zip(values) {
            assert!((f64::from(a) - b).abs() <= 2e-6 * b.abs().max(0.01), "{function:?}: {a}, {b}");
        }
    }
    // The gamma function of integers is computed in double precision.
    let factorials = context.array(&[3], &[1u8, 5, 11])?.untyped().unary(Gamma)?;
    let factorials = DeviceArray::<f64>::from_untyped(factorials)?.to_vec()?;
    for (a, b) in factorials.into_iter().zip([1.0, 24.0, 3_628_800.0]) {
        assert!((a - b).abs() <= 1e-14 * b, "{a}, not {b}");
    }
    Ok(())
}

fn classes_of_floats_are_told_apart(context: &Context) -> Outcome {
    use UnaryFunction::{IsFinite, IsInfinite, IsNan, SignBit};
    let values = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0, 1.5, -f64::MIN_POSITIVE];
    let array = context.array(&[6], &values)?;
    type Test = fn(f64) -> bool;
    let tests: [(UnaryFunction, Test); 4] = [
        (IsFinite, f64::is_finite),
        (IsInfinite, f64::is_infinite),
        (IsNan, f64::is_nan),
        (SignBit, f64::is_sign_negative),
    ];
    for (function, test) in tests {
        let found = DeviceArray::<bool>::from_untyped(array.untyped().unary(function)?)?;
        assert_eq!(found.to_vec()?, values.map(test), "{function:?}");
    }
    let whole = context.array(&[2], &[-3i16, 3])?;
    for (function, expected) in [(IsFinite, [true; 2]), (SignBit, [true, false])] {
        let found = DeviceArray::<bool>::from_untyped(whole.untyped().unary(function)?)?;
        assert_eq!(found.to_vec()?, expected, "{function:?}");
    }
    Ok(())
}

fn divisors_and_multiples_are_common(context: &Context) -> Outcome {
    use BinaryFunction::{Gcd, Lcm, LogicalXor};
    let (a, b) = ([12, -12, 0, 7, 0, 1 << 20], [18, 8, 5, 13, 0, 1 << 14]);
    assert_eq!(apply::<i32, i32>(context, Gcd, &a, &b)?, [6, 4, 5, 1, 0, 1 << 14]);
    assert_eq!(apply::<i32, i32>(context, Lcm, &a, &b)?, [36, 24, 0, 91, 0, 1 << 20]);
    let either = apply::<i32, bool>(context, LogicalXor, &a, &b)?;
    assert_eq!(either, [false, false, true, false, false, false]);
    Ok(())
}
