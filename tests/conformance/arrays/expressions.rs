//! Expressions: operations that are computed together.

use super::random_expressions::{Combination, How, is_same};
use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::streams::random_streams::Random;
use gpuarray::function::{BinaryFunction, Reduction, UnaryFunction};
use gpuarray::memory::{Access, AccessGuard};
use gpuarray::recording::Session;
use gpuarray::{
    DType, DeviceArray, ErrorKind, Expression, ExpressionArgument, FusedBlock, IndexItem, Number,
    Order, Result, SliceBounds,
};

tests![
    reductions_have_the_values_of_those_of_arrays,
    reductions_need_no_memory_for_their_elements needs [Kernels],
    long_chains_are_computed_in_parts,
    an_array_that_is_written_was_read_before,
    freed_memory_was_read_before,
    expressions_are_captured,
    bad_arguments_are_refused_when_they_are_given,
    an_expression_can_overwrite_an_argument,
    a_lazy_value_is_computed_into_a_new_array,
];

/// The elements of these are read in every order that a backend has: along rows, across rows, by packs with a rest, at
/// addresses that are not aligned, and broadcast.
fn reductions_have_the_values_of_those_of_arrays(context: &Context) -> Outcome {
    let shapes: &[&[usize]] = &[&[70_001], &[33, 2050], &[2050, 33], &[4, 300, 5], &[3000, 3]];
    // A driver compiles two kernels for most cases. The numbers have no common divisor with those of the loops.
    let every = if context.takes_all() { 5 } else { 17 };
    let (mut random, mut cases) = (Random(7), 0);
    for shape in shapes {
        let count: usize = shape.iter().product();
        let floats = |random: &mut Random| -> Vec<f32> {
            (0..count).map(|_| random.below(2000) as f32 / 16.0 - 30.0).collect()
        };
        let (ndim, last) = (shape.len(), shape[shape.len() - 1]);
        let x = context.array(shape, &floats(&mut random))?.into_untyped();
        let row = context.array(&[last], &floats(&mut random)[..last])?.into_untyped();
        let mut longer = floats(&mut random);
        longer.push(1.0);
        let shifted = context.array(&[count + 1], &longer)?.into_untyped();
        let from_second = SliceBounds { start: Some(1), stop: None, step: None };
        let shape_of: Vec<isize> = shape.iter().map(|&extent| extent as isize).collect();
        let shifted = shifted.index(&[IndexItem::Slice(from_second)])?;
        let shifted = shifted.reshape(&shape_of, Order::C)?;
        let wide = x.astype(DType::Float64)?;
        let flipped = x.transpose(None)?;
        let pairs = [(&x, &x), (&x, &row), (&shifted, &x), (&wide, &x), (&flipped, &flipped)];
        for (a, b) in pairs {
            for function in [BinaryFunction::Multiply, BinaryFunction::Less] {
                let expression = || binary(function, a, b);
                let array = expression()?.evaluate()?;
                let combinations = [
                    Combination::Reduction(Reduction::Sum),
                    Combination::Reduction(Reduction::Maximum),
                    Combination::Reduction(Reduction::Any),
                    Combination::Variance,
                    Combination::Position(Reduction::Maximum),
                ];
                for combination in combinations {
                    let dtype = match combination {
                        Combination::Reduction(reduction) => reduction.numpy_compute(array.dtype()),
                        _ => array.dtype(),
                    };
                    for number in 0..1 << ndim {
                        let axes: Vec<isize> =
                            (0..ndim as isize).filter(|axis| number >> axis & 1 == 1).collect();
                        cases += 1;
                        if cases % every != 0 {
                            continue;
                        }
                        let how = How { combination, dtype, axes: Some(axes), keep_axes: false };
                        let expected = how.of_array(&array)?;
                        let result = how.of_expression(&expression()?)?;
                        assert!(
                            is_same(&result, &expected)?,
                            "{function:?} of {a:?} and {b:?}, {how:?}"
                        );
                    }
                }
            }
        }
    }
    Ok(())
}

fn reductions_need_no_memory_for_their_elements(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = context.array(&[4, 3], &[0.5f32; 12])?.into_untyped().on(&stream)?;
    let square = binary(BinaryFunction::Multiply, &x, &x)?;
    let session = Session::begin();
    let sum = square.reduce(Reduction::Sum, DType::Float32, Some(&[0]), false);
    let mean = square.mean(None, None, true);
    let variance = square.variance(None, None, false, 0.0);
    let position = square.position(Reduction::Maximum, None, false);
    let recording = session.finish();
    let own = recording.rows.iter().filter(|row| row.stream == stream.id());
    let told: Vec<_> = own.map(|row| (&*row.name, row.bytes)).collect();
    let sums = [("sum float32", 48 + 12), ("sum float32", 48 + 4), ("sum float32", 48 + 4)];
    assert_eq!(told[..3], sums);
    assert_eq!(told[3..], [("maximum float32", 48 + 8)]);
    assert_eq!(DeviceArray::<f32>::from_untyped(variance?)?.to_vec()?, [0.0]);
    assert_eq!(DeviceArray::<i64>::from_untyped(position?)?.to_vec()?, [0]);
    assert_eq!(DeviceArray::<f32>::from_untyped(sum?)?.to_vec()?, [1.0; 3]);
    assert_eq!(DeviceArray::<f32>::from_untyped(mean?)?.to_vec()?, [0.25]);
    // A value that the program keeps is stored when it is needed again.
    square.keep(true);
    let session = Session::begin();
    let again = square.reduce(Reduction::Maximum, DType::Float32, None, false);
    let recording = session.finish();
    let own = recording.rows.iter().filter(|row| row.stream == stream.id());
    let names: Vec<_> = own.map(|row| &*row.name).collect();
    assert_eq!(names, ["multiply float32", "maximum float32"]);
    assert_eq!(DeviceArray::<f32>::from_untyped(again?)?.to_vec()?, [0.25]);
    Ok(())
}

fn binary<'a>(
    function: BinaryFunction,
    a: impl Into<ExpressionArgument<'a>>,
    b: impl Into<ExpressionArgument<'a>>,
) -> Result<Expression> {
    Expression::binary(function, a.into(), b.into())
}

fn long_chains_are_computed_in_parts(context: &Context) -> Outcome {
    let x = context.array(&[5], &[0i64, 1, 2, 3, 4])?.into_untyped();
    let mut chain = binary(BinaryFunction::Add, &x, Number::Integer(1))?;
    for _ in 0..2000 {
        chain = binary(BinaryFunction::Add, &chain, &x)?;
    }
    let values = DeviceArray::<i64>::from_untyped(chain.evaluate()?)?.to_vec()?;
    assert_eq!(values, [0i64, 1, 2, 3, 4].map(|x| x * 2001 + 1));
    // Each step uses the one before twice.
    let mut power = binary(BinaryFunction::Add, &x, &x)?;
    for _ in 0..40 {
        power = binary(BinaryFunction::Add, &power, &power)?;
    }
    let values = DeviceArray::<i64>::from_untyped(power.evaluate()?)?.to_vec()?;
    assert_eq!(values, [0i64, 1, 2, 3, 4].map(|x| x << 41));
    Ok(())
}

fn an_array_that_is_written_was_read_before(context: &Context) -> Outcome {
    let x = context.array(&[3], &[1i32, 2, 3])?;
    let block = FusedBlock::new();
    let array = x.untyped().clone();
    let twice = binary(BinaryFunction::Add, &array, &array)?;
    let more = binary(BinaryFunction::Add, &twice, &array)?;
    for expression in [&twice, &more] {
        expression.keep(true);
        assert!(block.add(expression));
    }
    // A view, on another stream.
    let other = array.index(&[IndexItem::At(0)])?.on(&context.stream()?)?;
    other.fill(Number::Integer(100).to_scalar(DType::Int32)?)?;
    let later = binary(BinaryFunction::Add, &more, &array)?;
    assert!(block.add(&later));
    let values = |it: &Expression| DeviceArray::<i32>::from_untyped(it.evaluate()?)?.to_vec();
    assert_eq!(values(&more)?, [3, 6, 9]);
    assert_eq!(values(&later)?, [103, 8, 12]);
    assert_eq!(values(&twice)?, [2, 4, 6]);
    // A value that was computed for the program, which writes it then.
    let value = binary(BinaryFunction::Add, &array, &array)?;
    let next = binary(BinaryFunction::Add, &value, Number::Integer(1))?;
    assert!(block.add(&value) && block.add(&next));
    next.keep(true);
    value.evaluate()?.fill(Number::Integer(0).to_scalar(DType::Int32)?)?;
    assert_eq!(values(&next)?, [201, 5, 7]);
    // An expression that nothing refers to is not computed.
    let idle = binary(BinaryFunction::Add, &array, &array)?;
    assert!(block.add(&idle));
    drop(idle);
    block.compute()?;
    Ok(())
}

fn freed_memory_was_read_before(context: &Context) -> Outcome {
    let x = context.array(&[3], &[1i32, 2, 3])?.into_untyped();
    let block = FusedBlock::new();
    let twice = binary(BinaryFunction::Add, &x, &x)?;
    let sum = binary(BinaryFunction::Add, &twice, &x)?;
    sum.keep(true);
    assert!(block.add(&twice) && block.add(&sum));
    x.memory().release()?;
    assert_eq!(DeviceArray::<i32>::from_untyped(sum.evaluate()?)?.to_vec()?, [3, 6, 9]);
    let late = binary(BinaryFunction::Add, &x, Number::Integer(1))?;
    assert!(!block.add(&late), "the memory was freed");
    assert_eq!(late.evaluate().unwrap_err().kind(), ErrorKind::InvalidHandle);
    // While memory is being used, a write may be on its way.
    let used = context.array(&[1], &[1i32])?.into_untyped();
    let guard = AccessGuard::acquire(used.stream(), &[(used.memory(), Access::Write)])?;
    assert!(!block.add(&binary(BinaryFunction::Add, &used, &used)?));
    drop(guard);
    assert!(block.add(&binary(BinaryFunction::Add, &used, &used)?));
    // Memory that other code may write by its address is read at once.
    let lent = context.array(&[1], &[1i32])?.into_untyped();
    let lease = lent.memory().lease()?;
    assert!(!block.add(&binary(BinaryFunction::Add, &lent, &lent)?));
    drop(lease);
    assert!(block.add(&binary(BinaryFunction::Add, &lent, &lent)?));
    Ok(())
}

fn expressions_are_captured(context: &Context) -> Outcome {
    let stream = context.stream()?;
    let x = context.array(&[3], &[1f32, 2.0, 3.0])?.into_untyped().on(&stream)?;
    let result = x.empty_like(DType::Float32)?;
    let expression = || {
        let square = binary(BinaryFunction::Multiply, &x, &x)?;
        binary(BinaryFunction::Subtract, &square, Number::Float(0.5))
    };
    // The kernel is loaded before the capture.
    expression()?.evaluate_into(&result)?;
    stream.begin_capture(gpuarray::CaptureMode::ThreadLocal)?;
    let captured = expression().and_then(|it| it.evaluate_into(&result));
    let graph = stream.end_capture()?;
    captured?;
    x.fill(gpuarray::Scalar::new(3f32))?;
    // SAFETY: the graph's arrays live.
    unsafe { graph.launch(&stream)? };
    assert_eq!(DeviceArray::<f32>::from_untyped(result)?.to_vec()?, [8.5; 3]);
    Ok(())
}

fn bad_arguments_are_refused_when_they_are_given(context: &Context) -> Outcome {
    let x = context.array(&[3], &[1i8, 2, 3])?.into_untyped();
    let y = context.array(&[2], &[1i8, 2])?.into_untyped();
    let kind = |it: Result<Expression>| it.unwrap_err().kind();
    assert_eq!(kind(binary(BinaryFunction::Add, &x, &y)), ErrorKind::InvalidArgument);
    assert_eq!(kind(binary(BinaryFunction::Add, &x, Number::Integer(1000))), ErrorKind::Overflow);
    let numbers = binary(BinaryFunction::Add, Number::Integer(1), Number::Integer(1));
    assert_eq!(kind(numbers), ErrorKind::InvalidType);
    let root = Expression::unary(UnaryFunction::Sqrt, (&x).into())?;
    let bits = binary(BinaryFunction::BitwiseAnd, &root, &x);
    assert_eq!(kind(bits), ErrorKind::InvalidType);
    for other in context.other_devices()? {
        let far = DeviceArray::from_slice(&other, &[1i8, 2, 3])?.into_untyped();
        assert_eq!(kind(binary(BinaryFunction::Add, &root, &far)), ErrorKind::InvalidArgument);
    }
    assert_eq!(root.evaluate_into(&x).unwrap_err().kind(), ErrorKind::InvalidType);
    Ok(())
}

fn an_expression_can_overwrite_an_argument(context: &Context) -> Outcome {
    let x = context.array(&[6], &[1i32, 2, 3, 4, 5, 6])?.into_untyped();
    let double = binary(BinaryFunction::Add, &x, &x)?;
    binary(BinaryFunction::Add, &double, &x)?.evaluate_into(&x)?;
    let values = || DeviceArray::<i32>::from_untyped(x.clone())?.to_vec();
    assert_eq!(values()?, [3, 6, 9, 12, 15, 18]);
    // Shifted by one element.
    let part = |from, to| {
        x.index(&[IndexItem::Slice(SliceBounds { start: Some(from), stop: Some(to), step: None })])
    };
    let (low, high) = (part(0, 5)?, part(1, 6)?);
    let double = binary(BinaryFunction::Add, &low, &low)?;
    binary(BinaryFunction::Add, &double, Number::Integer(1))?.evaluate_into(&high)?;
    assert_eq!(values()?, [3, 7, 13, 19, 25, 31]);
    // Into another type, and into a larger shape.
    let wide = context.array(&[2, 6], &[0f64; 12])?.into_untyped();
    let sum = binary(BinaryFunction::Add, &x, &x)?;
    binary(BinaryFunction::Add, &sum, &x)?.evaluate_into(&wide)?;
    let rows = DeviceArray::<f64>::from_untyped(wide)?.to_vec()?;
    assert_eq!(rows[..6], [9.0, 21.0, 39.0, 57.0, 75.0, 93.0]);
    assert_eq!(rows[..6], rows[6..]);
    Ok(())
}

fn a_lazy_value_is_computed_into_a_new_array(context: &Context) -> Outcome {
    let x = context.array(&[3], &[1i32, 2, 3])?;
    x.lazy().eval()?.fill(7)?;
    assert_eq!(x.to_vec()?, [1, 2, 3]);
    let sum = x.lazy() + 1;
    let twice = sum.clone() * 2;
    sum.clone().eval()?.fill(0)?;
    assert_eq!(sum.eval()?.to_vec()?, [2, 3, 4]);
    assert_eq!(twice.eval()?.to_vec()?, [4, 6, 8]);
    Ok(())
}
