//! Random expressions, computed together and one function after the other.
//!
//! For a longer search:
//!
//! ```sh
//! GPUARRAY_EXPRESSIONS=100000 GPUARRAY_TEST_SECONDS=7200 \
//!   cargo test --release --test conformance -- expressions
//! ```
//!
//! `GPUARRAY_EXPRESSION_SEED` is the number of the first program; a failure prints the program's number.

use crate::context::Context;
use crate::harness::{Outcome, tests};
use crate::streams::random_streams::{Random, setting};
use gpuarray::function::{BinaryFunction, Reduction, UnaryFunction};
use gpuarray::memory::{Access, AccessGuard};
use gpuarray::recording::Session;
use gpuarray::{
    Argument, Array, DType, DeviceArray, ErrorKind, Expression, ExpressionArgument, FusedBlock,
    IndexItem, Kind, Number, Order, Result, SliceBounds,
};

tests![
    random_expressions_have_the_values_of_their_functions,
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

const DTYPES: [DType; 14] = [
    DType::Bool,
    DType::Int8,
    DType::UInt8,
    DType::Int16,
    DType::UInt16,
    DType::Int32,
    DType::UInt32,
    DType::Int64,
    DType::UInt64,
    DType::Float16,
    DType::Float32,
    DType::Float64,
    DType::Complex64,
    DType::Complex128,
];

/// A value of a program, in both forms.
struct Value {
    array: Array,
    /// `None` for an array that the program begins with.
    expression: Option<Expression>,
    /// True if the value has to be that of the time when it was asked for.
    is_kept: bool,
}

impl Value {
    fn argument(&self) -> ExpressionArgument<'_> {
        match &self.expression {
            Some(expression) => expression.into(),
            None => (&self.array).into(),
        }
    }
}

/// Returns the elements in C order as bytes.
fn bytes(array: &Array) -> Result<Vec<u8>> {
    let flat = array.copy()?.reshape(&[-1], Order::C)?.contiguous(Order::C)?;
    DeviceArray::<u8>::from_untyped(flat.view(DType::UInt8)?)?.to_vec()
}

/// Returns true if both have the same bits. A NaN equals any other NaN.
fn is_same(a: &Array, b: &Array) -> Result<bool> {
    if (a.dtype(), a.shape(), a.size() > 0 && a.strides() != b.strides())
        != (b.dtype(), b.shape(), false)
    {
        return Ok(false);
    }
    if a.size() == 0 {
        return Ok(true);
    }
    let (own, others) = (bytes(a)?, bytes(b)?);
    if own == others {
        return Ok(true);
    }
    let size = a.dtype().real().size();
    let is_nan = |bits: &[u8]| match a.dtype().real() {
        DType::Float16 => u16::from_ne_bytes(bits.try_into().unwrap()) & 0x7fff > 0x7c00,
        DType::Float32 => f32::from_ne_bytes(bits.try_into().unwrap()).is_nan(),
        DType::Float64 => f64::from_ne_bytes(bits.try_into().unwrap()).is_nan(),
        _ => false,
    };
    let mut pairs = own.chunks(size).zip(others.chunks(size));
    Ok(pairs.all(|(x, y)| x == y || is_nan(x) && is_nan(y)))
}

/// Returns an array of `dtype` that broadcasts to `shape`: of fewer axes, transposed, reversed, or with gaps.
fn leaf(context: &Context, random: &mut Random, shape: &[usize]) -> Result<Array> {
    let dtype = DTYPES[random.below(DTYPES.len())];
    let own: Vec<usize> = match random.below(6) {
        0 => shape.iter().map(|&extent| if random.below(2) == 0 { 1 } else { extent }).collect(),
        1 => shape[random.below(shape.len() + 1)..].to_vec(),
        _ => shape.to_vec(),
    };
    let form = random.below(5);
    let axes = own.len();
    let mut extents = own.clone();
    match form {
        1 if axes > 0 => extents[axes - 1] *= 2,
        2 => extents.reverse(),
        _ => {}
    }
    let count = extents.iter().product::<usize>();
    let number = |random: &mut Random| match random.below(12) {
        0 => 0.0,
        1 => -1.0,
        2 => f64::NAN,
        3 => f64::INFINITY,
        _ => random.below(4000) as f64 / 64.0 - 20.0,
    };
    let whole: Vec<i64> = (0..count).map(|_| random.below(200) as i64 - 60).collect();
    let floats: Vec<f64> = (0..count).map(|_| number(random)).collect();
    let made = if dtype.is_inexact() {
        context.array(&extents, &floats)?.into_untyped()
    } else {
        context.array(&extents, &whole)?.into_untyped()
    };
    let array = made.empty_like(dtype)?;
    array.assign(&made)?;
    let slice = |step| IndexItem::Slice(SliceBounds { start: None, stop: None, step: Some(step) });
    match form {
        1 if axes > 0 => array.index(&[IndexItem::Ellipsis, slice(2)]),
        2 => array.transpose(None),
        3 if axes > 0 => array.index(&[slice(-1)]),
        _ => Ok(array),
    }
}

#[derive(Clone, Copy, Debug)]
enum Combination {
    Reduction(Reduction),
    Mean,
    Variance,
    Deviation,
    Position(Reduction),
}

/// A reduction along axes. Positions are along the first of them.
#[derive(Debug)]
struct How {
    combination: Combination,
    dtype: DType,
    axes: Option<Vec<isize>>,
    keep_axes: bool,
}

impl How {
    fn of_array(&self, array: &Array) -> Result<Array> {
        let (axes, keeps) = (self.axes.as_deref(), self.keep_axes);
        match self.combination {
            Combination::Reduction(reduction) => array.reduce(reduction, self.dtype, axes, keeps),
            Combination::Mean => array.mean(None, axes, keeps),
            Combination::Variance => array.variance(None, axes, keeps, 1.0),
            Combination::Deviation => array.standard_deviation(None, axes, keeps, 0.0),
            Combination::Position(extreme) => match self.axis() {
                Some(axis) => array.position(extreme, axis, keeps),
                None => {
                    let found = array.reshape(&[-1], Order::C)?.position(extreme, 0, false)?;
                    let ones = vec![1; if keeps { array.shape().len() } else { 0 }];
                    found.reshape(&ones, Order::C)
                }
            },
        }
    }

    fn axis(&self) -> Option<isize> {
        self.axes.as_ref().and_then(|axes| axes.first().copied())
    }

    fn of_expression(&self, expression: &Expression) -> Result<Array> {
        let (axes, keeps) = (self.axes.as_deref(), self.keep_axes);
        match self.combination {
            Combination::Reduction(reduction) => {
                expression.reduce(reduction, self.dtype, axes, keeps)
            }
            Combination::Mean => expression.mean(None, axes, keeps),
            Combination::Variance => expression.variance(None, axes, keeps, 1.0),
            Combination::Deviation => expression.standard_deviation(None, axes, keeps, 0.0),
            Combination::Position(extreme) => expression.position(extreme, self.axis(), keeps),
        }
    }
}

fn reduction(random: &mut Random, array: &Array) -> How {
    let number = random.below(Reduction::ALL.len() + 5);
    let combination = match Reduction::ALL.get(number) {
        Some(&reduction) => Combination::Reduction(reduction),
        None => [
            Combination::Mean,
            Combination::Variance,
            Combination::Deviation,
            Combination::Position(Reduction::Minimum),
            Combination::Position(Reduction::Maximum),
        ][number - Reduction::ALL.len()],
    };
    let own = array.dtype();
    let dtype = match (random.below(3), combination) {
        (0, Combination::Reduction(reduction)) => reduction.numpy_compute(own),
        (1, _) if !own.is_complex() => DType::Float64,
        _ => own,
    };
    let ndim = array.shape().len();
    let axes: Vec<isize> = (0..ndim as isize).filter(|_| random.below(2) == 1).collect();
    let axes = Some(axes).filter(|axes| axes.len() < ndim);
    How { combination, dtype, axes, keep_axes: random.below(3) == 0 }
}

/// Runs a program. Returns a description of the first difference.
fn program(context: &Context, number: u64) -> Result<Option<String>> {
    let mut random = Random(number);
    let extents = [0, 1, 2, 3, 7, 16, 64, 129, 1000];
    let mut shape: Vec<usize> =
        (0..random.below(4)).map(|_| extents[1 + random.below(6)]).collect();
    match random.below(12) {
        0 => shape = vec![40_000],
        1 => shape = vec![3, 0],
        2 => shape = vec![1000, 129],
        _ => {}
    }
    let block = FusedBlock::new();
    let in_block = random.below(3) > 0;
    let mut values = Vec::new();
    for _ in 0..=random.below(3) {
        values.push(Value {
            array: leaf(context, &mut random, &shape)?,
            expression: None,
            is_kept: false,
        });
    }
    let bases = values.len();
    let mut has_written = false;
    let mut text = format!("{shape:?}");
    for _ in 0..=random.below(9) {
        let pick = |random: &mut Random| {
            let one = match random.below(2) {
                0 => random.below(values.len()),
                _ => values.len() - 1,
            };
            // After a write, a program can only use the values that it referred to before.
            if has_written && !values[one].is_kept { 0 } else { one }
        };
        let (a, b, c) = (pick(&mut random), pick(&mut random), pick(&mut random));
        let constant = match random.below(3) {
            0 => Number::Integer(random.below(9) as i128 - 2),
            1 => Number::Float(random.below(9) as f64 / 2.0 - 1.0),
            _ => Number::Bool(random.below(2) == 1),
        };
        let with_number = random.below(3) == 0;
        let number = Argument::from(constant);
        let second = if with_number { number } else { (&values[b].array).into() };
        let lazy =
            if with_number { ExpressionArgument::Value(number) } else { values[b].argument() };
        let (name, array, expression) = match random.below(11) {
            0..2 => {
                let function = UnaryFunction::ALL[random.below(UnaryFunction::ALL.len())];
                let array = values[a].array.unary(function);
                (
                    format!("{function:?}({a})"),
                    array,
                    Expression::unary(function, values[a].argument()),
                )
            }
            2 => {
                let array =
                    Array::select(&values[c].array, (&values[a].array).into(), second, b % 2 == 0);
                let lazily = Expression::select(
                    values[c].argument(),
                    values[a].argument(),
                    lazy,
                    b % 2 == 0,
                );
                (format!("select({c}, {a}, {second:?})"), array, lazily)
            }
            3 => {
                let dtype = DTYPES[random.below(DTYPES.len())];
                let is_exact = |dtype: DType| {
                    matches!(dtype.kind(), Kind::Bool | Kind::Signed | Kind::Unsigned)
                };
                // Floats outside the range of an integer type become any value.
                if is_exact(dtype) && !is_exact(values[a].array.dtype()) {
                    continue;
                }
                let array = values[a].array.empty_like(dtype)?;
                array.assign(&values[a].array)?;
                let lazily = Expression::cast(values[a].argument(), dtype);
                (format!("cast({a}, {dtype})"), Ok(array), lazily)
            }
            5 if values[a].expression.is_some() => {
                let value = &values[a];
                let how = reduction(&mut random, &value.array);
                text += &format!("; {how:?} of {a}");
                let lazily = value.expression.as_ref().map(|it| how.of_expression(it));
                match (how.of_array(&value.array), lazily) {
                    (Ok(array), Some(Ok(other))) if is_same(&array, &other)? => {}
                    (Err(one), Some(Err(other))) if one.kind() == other.kind() => {}
                    (one, other) => return Ok(Some(format!("{text}: {one:?} but {other:?}"))),
                }
                continue;
            }
            4 if in_block && random.below(3) == 0 => {
                // Arrays are written in the middle of a block.
                let target = random.below(bases);
                let array = &values[target].array;
                let one = Number::Bool(true).to_scalar(array.dtype())?;
                array.fill(one)?;
                has_written = true;
                text += &format!("; fill({target})");
                continue;
            }
            _ => {
                let function = BinaryFunction::ALL[random.below(BinaryFunction::ALL.len())];
                let array = Array::binary(function, (&values[a].array).into(), second);
                let lazily = Expression::binary(function, values[a].argument(), lazy);
                (format!("{function:?}({a}, {second:?})"), array, lazily)
            }
        };
        match (array, expression) {
            (Ok(array), Ok(expression)) => {
                text += &format!("; {} = {name}", values.len());
                let is_kept = !in_block || random.below(2) == 0;
                if in_block {
                    expression.keep(is_kept);
                    assert!(block.add(&expression), "{text}");
                }
                values.push(Value { array, expression: Some(expression), is_kept });
            }
            (Err(one), Err(other)) if one.kind() == other.kind() => {}
            (one, other) => {
                return Ok(Some(format!("{text}; {name}: {one:?} but {other:?}")));
            }
        }
    }
    if in_block && random.below(2) == 0 {
        block.compute()?;
    }
    let first = random.below(values.len());
    let count = values.len();
    for position in (0..count).map(|k| (first + k) % count) {
        let value = &values[position];
        let Some(expression) = value.expression.as_ref().filter(|_| value.is_kept) else {
            continue;
        };
        let array = expression.evaluate()?;
        if !is_same(&array, &value.array)? {
            return Ok(Some(format!(
                "{text}; value {position} is {:?}, not {:?}",
                array, value.array
            )));
        }
    }
    Ok(None)
}

fn random_expressions_have_the_values_of_their_functions(context: &Context) -> Outcome {
    let first = setting("GPUARRAY_EXPRESSION_SEED", 0);
    let usual = if context.takes_all() { 150 } else { 6 };
    for number in first..first + setting("GPUARRAY_EXPRESSIONS", usual) {
        if let Some(difference) = program(context, number)? {
            panic!("program {number}: {difference}");
        }
    }
    Ok(())
}

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
