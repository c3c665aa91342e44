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
use gpuarray::{
    Argument, Array, DType, DeviceArray, Expression, ExpressionArgument, FusedBlock, IndexItem,
    Kind, Number, Order, Result, SliceBounds,
};

tests![random_expressions_have_the_values_of_their_functions,];

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
pub(super) fn is_same(a: &Array, b: &Array) -> Result<bool> {
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
pub(super) enum Combination {
    Reduction(Reduction),
    Mean,
    Variance,
    Deviation,
    Position(Reduction),
}

/// A reduction along axes. Positions are along the first of them.
#[derive(Debug)]
pub(super) struct How {
    pub(super) combination: Combination,
    pub(super) dtype: DType,
    pub(super) axes: Option<Vec<isize>>,
    pub(super) keep_axes: bool,
}

impl How {
    pub(super) fn of_array(&self, array: &Array) -> Result<Array> {
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

    pub(super) fn of_expression(&self, expression: &Expression) -> Result<Array> {
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
