//! Every pair of element types: promotion, casts, and operations with numbers.

use crate::context::Context;
use crate::harness::{Outcome, tests};
use gpuarray::function::BinaryFunction;
use gpuarray::{Array, Complex, DType, DeviceArray, Number, Order, Scalar};

tests![
    types_are_promoted_as_numpy_does,
    a_number_takes_the_type_of_the_array,
    casts_between_all_types_keep_small_numbers,
];

/// Returns the pairs of dtypes that `Context::takes` selects twice. Each dtype occurs as the first
/// and as the second element of a pair.
fn pairs_of_dtypes(context: &Context) -> impl Iterator<Item = (DType, DType)> {
    let numbered = || DType::ALL.into_iter().enumerate();
    let pairs = numbered().flat_map(move |(i, a)| numbered().map(move |(j, b)| ((i, j), (a, b))));
    let takes = |(i, j): (usize, usize)| context.takes(i + j) && context.takes((i + j) / 3 + j);
    pairs.filter(move |(numbers, _)| takes(*numbers)).map(|(_, pair)| pair)
}

fn types_are_promoted_as_numpy_does(context: &Context) -> Outcome {
    for (a, b) in pairs_of_dtypes(context) {
        let one = |dtype| -> gpuarray::Result<Array> {
            Array::full(&context.device, &[2], Scalar::new(1u8).cast(dtype)?, Order::C)
        };
        let (x, y) = (one(a)?, one(b)?);
        let sum = Array::binary(BinaryFunction::Add, (&x).into(), (&y).into())?;
        assert_eq!(sum.dtype(), a.promote(b)?, "{a} + {b}");
        let expected = if sum.dtype() == DType::Bool { 1.0 } else { 2.0 };
        let sum = DeviceArray::<f64>::from_untyped(sum.astype(DType::Float64)?)?;
        assert_eq!(sum.to_vec()?, [expected; 2], "{a} + {b}");
    }
    Ok(())
}

fn a_number_takes_the_type_of_the_array(context: &Context) -> Outcome {
    let bytes = context.array(&[2], &[250u8, 1])?;
    let sum = |array: &Array, number| {
        Array::binary(BinaryFunction::Add, array.into(), Number::into(number))
    };
    let whole = sum(bytes.untyped(), Number::Integer(10))?;
    assert_eq!(DeviceArray::<u8>::from_untyped(whole)?.to_vec()?, [4, 11]);
    let halves = sum(bytes.untyped(), Number::Float(0.5))?;
    assert_eq!(DeviceArray::<f64>::from_untyped(halves)?.to_vec()?, [250.5, 1.5]);
    let single = context.array(&[1], &[1.0f32])?;
    assert_eq!(sum(single.untyped(), Number::Float(1e-3))?.dtype(), DType::Float32);
    let complex = sum(single.untyped(), Number::Complex(Complex::new(0.0, 1.0)))?;
    assert_eq!(complex.dtype(), DType::Complex64);
    // Comparing with a number outside the dtype's range returns a result.
    let larger =
        Array::binary(BinaryFunction::Less, bytes.untyped().into(), Number::Integer(300).into())?;
    assert_eq!(DeviceArray::<bool>::from_untyped(larger)?.to_vec()?, [true, true]);
    Ok(())
}

fn casts_between_all_types_keep_small_numbers(context: &Context) -> Outcome {
    let numbers = context.array(&[3, 2], &[0u8, 1, 5, 100, 126, 7])?;
    for (from, to) in pairs_of_dtypes(context) {
        let source = numbers.untyped().astype(from)?;
        let back = DeviceArray::<u8>::from_untyped(source.astype(to)?.astype(DType::UInt8)?)?;
        let expected = match from == DType::Bool || to == DType::Bool {
            true => vec![0, 1, 1, 1, 1, 1],
            false => vec![0, 1, 5, 100, 126, 7],
        };
        assert_eq!(back.to_vec()?, expected, "{from} to {to}");
    }
    let floats = context.array(&[3], &[1.9f64, -1.9, 0.4])?;
    assert_eq!(floats.cast::<i32>()?.to_vec()?, [1, -1, 0]);
    assert_eq!(floats.cast::<bool>()?.to_vec()?, [true; 3]);
    assert_eq!(context.array(&[2], &[300i32, -1])?.cast::<u8>()?.to_vec()?, [44, 255]);
    Ok(())
}
