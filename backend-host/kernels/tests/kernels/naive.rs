//! An interpreter of operations that computes one element at a time, directly from the definitions.

use super::arrays::{at, indices, read};
use super::scalar::apply;
use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::{
    Description, ElementMap, Elementwise, Epilogue, Formula, Fused, Indexed, Input, Mapped,
    MatrixProduct, Reduce, Scan, Shape, Term,
};
use hal::{DType, Scalar};
use std::collections::BTreeMap;

/// Returns the values that an operation stores, by address.
pub(super) fn values(operation: &Description) -> BTreeMap<u64, Scalar> {
    match operation {
        Description::Elementwise(operation) => elementwise(operation),
        Description::Fused(operation) => fused(operation),
        Description::Reduce(operation) => reduce(operation),
        Description::Scan(operation) => scan(operation),
        Description::Gather(operation) => indices(&operation.shape)
            .iter()
            .map(|index| {
                let value = indexed(&operation.source, index)
                    .map_or_else(|| zero(operation.source.base.dtype), |(value, _)| value);
                (at(&operation.output, index), cast(&value, operation.output.dtype))
            })
            .collect(),
        Description::Scatter(operation) => indices(&operation.shape)
            .iter()
            .filter_map(|index| {
                let (_, address) = indexed(&operation.target, index)?;
                Some((address, cast(&input(&operation.input, index), operation.target.base.dtype)))
            })
            .collect(),
        Description::Sequence(operation) => (0..operation.length)
            .map(|index| {
                let dtype = operation.output.dtype;
                let arithmetic = |function, x, y| apply(Function::Binary(function), dtype, &[x, y]);
                let number = cast(&Scalar::new(index as i64), dtype);
                let distance = arithmetic(BinaryFunction::Multiply, number, operation.step);
                let value = arithmetic(BinaryFunction::Add, operation.start, distance);
                (at(&operation.output, &[index]), value)
            })
            .collect(),
        Description::MatrixProduct(operation) => product(operation),
        Description::Random(_) | Description::Nonzero(_) | Description::Sort(_) => {
            panic!("no reference for {operation:?}")
        }
    }
}

fn cast(value: &Scalar, dtype: DType) -> Scalar {
    value.cast(dtype).expect("cast")
}

fn zero(dtype: DType) -> Scalar {
    Scalar::from_bytes(dtype, &vec![0; dtype.size()]).expect("zero")
}

fn input(input: &Input, index: &[usize]) -> Scalar {
    match input {
        Input::Array(operand) => read(at(operand, index), operand.dtype),
        Input::Scalar(scalar) => *scalar,
    }
}

/// Returns a function of arguments of any types, as an element of `dtype`.
fn call(function: Function, compute: DType, arguments: &[Scalar], dtype: DType) -> Scalar {
    let taken = |(position, value): (usize, &Scalar)| match function.argument(position, compute) {
        None => *value,
        Some(wanted) => cast(value, wanted),
    };
    let arguments: Vec<Scalar> = arguments.iter().enumerate().map(taken).collect();
    cast(&apply(function, compute, &arguments), dtype)
}

fn elementwise(operation: &Elementwise) -> BTreeMap<u64, Scalar> {
    let Elementwise { function, compute, shape, inputs, output } = operation;
    let value = |index: &Shape| {
        let arguments: Vec<Scalar> = inputs.iter().map(|one| input(one, index)).collect();
        (at(output, index), call(*function, *compute, &arguments, output.dtype))
    };
    indices(shape).iter().map(value).collect()
}

fn fused(operation: &Fused) -> BTreeMap<u64, Scalar> {
    let Fused { formula, shape, inputs, outputs } = operation;
    let mut stored = BTreeMap::new();
    for index in indices(shape) {
        let values = steps(formula, inputs, &index);
        for (output, step) in outputs.iter().zip(formula.outputs()) {
            stored.insert(at(output, &index), values[step]);
        }
    }
    stored
}

/// Returns the values of a formula's steps.
fn steps(formula: &Formula, inputs: &[Input], index: &[usize]) -> Vec<Scalar> {
    let mut values: Vec<Scalar> = Vec::new();
    for step in formula.steps() {
        let argument = |term: &Term| match *term {
            Term::Input(position) => input(&inputs[usize::from(position)], index),
            Term::Step(earlier) => values[usize::from(earlier)],
        };
        let arguments: Vec<Scalar> = step.arguments.iter().map(argument).collect();
        values.push(call(step.function, step.compute, &arguments, step.dtype));
    }
    values
}

fn indexed(indexed: &Indexed, index: &[usize]) -> Option<(Scalar, u64)> {
    let number = read(at(&indexed.indices, index), indexed.indices.dtype);
    let number = match number.get::<u64>() {
        Some(number) => i128::from(number),
        None => cast(&number, DType::Int64).get::<i64>().expect("index").into(),
    };
    let length = indexed.axis_length as i128;
    let number = if number < 0 { number + length } else { number };
    (0..length).contains(&number).then(|| {
        let address = at(&indexed.base, index)
            .wrapping_add_signed(number as i64 * indexed.axis_stride as i64);
        (read(address, indexed.base.dtype), address)
    })
}

fn combine(reduction: Reduction, compute: DType, x: &Scalar, y: &Scalar) -> Scalar {
    let function = match reduction {
        Reduction::Sum => BinaryFunction::Add,
        Reduction::Product => BinaryFunction::Multiply,
        Reduction::Minimum => BinaryFunction::Minimum,
        Reduction::Maximum => BinaryFunction::Maximum,
        Reduction::Any => return Scalar::new(x.is_true() || y.is_true()),
        Reduction::All => return Scalar::new(x.is_true() && y.is_true()),
    };
    apply(Function::Binary(function), compute, &[*x, *y])
}

fn reduce(operation: &Reduce) -> BTreeMap<u64, Scalar> {
    let Reduce { reduction, compute, shape, input, output, .. } = operation;
    match input.elements() {
        Some((ElementMap::SquaredDeviation, _)) => return deviations(operation),
        Some((ElementMap::Position, _)) => return positions(operation),
        Some((ElementMap::Identity, _)) | None => {}
    }
    // Sums of 16-bit floats are computed in a wider type.
    let inner = if compute.working() == *compute { *compute } else { DType::Float64 };
    let mut values = BTreeMap::<u64, Scalar>::new();
    for index in indices(shape) {
        let element = |operand: &hal::operation::Operand| {
            cast(&read(at(operand, &index), operand.dtype), *compute)
        };
        let value = match input {
            Mapped::Product(x, y) => {
                let multiply = Function::Binary(BinaryFunction::Multiply);
                apply(multiply, *compute, &[element(x), element(y)])
            }
            Mapped::Indexed(source) => indexed(source, &index)
                .map_or_else(|| zero(*compute), |(value, _)| cast(&value, *compute)),
            input => cast(&element_of(input, &index), *compute),
        };
        let value = cast(&value, inner);
        let address = at(output, &index);
        let value = match values.get(&address) {
            Some(before) => combine(*reduction, inner, before, &value),
            None if matches!(reduction, Reduction::Any | Reduction::All) => {
                Scalar::new(value.is_true())
            }
            None => value,
        };
        values.insert(address, value);
    }
    let whole = |value| cast(&finished(operation.epilogue, inner, value), output.dtype);
    values.into_iter().map(|(address, value)| (address, whole(value))).collect()
}

fn finished(epilogue: Epilogue, dtype: DType, value: Scalar) -> Scalar {
    let divide = |by: f64| {
        let by = cast(&Scalar::new(by), dtype);
        apply(Function::Binary(BinaryFunction::Divide), dtype, &[value, by])
    };
    match epilogue {
        Epilogue::Identity => value,
        Epilogue::Quotient(by) => divide(by),
        Epilogue::RootOfQuotient(by) => {
            apply(Function::Unary(UnaryFunction::Sqrt), dtype, &[divide(by)])
        }
    }
}

/// Returns the element of an array, or the value of a formula.
fn element_of(input: &Mapped, index: &[usize]) -> Scalar {
    if let Mapped::Formula(it) = input {
        let mut number = at(&it.values, index) as usize / it.values.dtype.size();
        let mut own = vec![0; it.shape.len()];
        for (place, &extent) in own.iter_mut().zip(&it.shape).rev() {
            (*place, number) = (number % extent, number / extent);
        }
        let steps = steps(&it.formula, &it.inputs, &own);
        return steps[it.formula.outputs().next().expect("an output")];
    }
    let (_, elements) = input.elements().expect("elements");
    read(at(elements, index), elements.dtype)
}

fn deviations(operation: &Reduce) -> BTreeMap<u64, Scalar> {
    let mut lines = BTreeMap::<u64, Vec<f64>>::new();
    for index in indices(&operation.shape) {
        let value = cast(&element_of(&operation.input, &index), DType::Float64);
        let line = lines.entry(at(&operation.output, &index)).or_default();
        line.push(value.get::<f64>().expect("float64"));
    }
    let squares = lines.into_iter().map(|(address, line)| {
        let mean = line.iter().sum::<f64>() / line.len() as f64;
        let sum: f64 = line.iter().map(|it| (it - mean).powi(2)).sum();
        let whole = finished(operation.epilogue, DType::Float64, Scalar::new(sum));
        (address, cast(&whole, operation.output.dtype))
    });
    squares.collect()
}

fn positions(operation: &Reduce) -> BTreeMap<u64, Scalar> {
    let Reduce { reduction, compute, shape, output, .. } = operation;
    let dtype = *compute;
    let same = |x: &Scalar, y: &Scalar| {
        apply(Function::Binary(BinaryFunction::Equal), dtype, &[*x, *y]).is_true()
    };
    let mut first = BTreeMap::<u64, (Scalar, i64)>::new();
    // In index order, so that the reduced axis is traversed forwards.
    for index in indices(shape) {
        let value = element_of(&operation.input, &index);
        let reduced = (0..shape.len()).filter(|&axis| output.strides[axis] == 0);
        let place = reduced.map(|axis| index[axis]).sum::<usize>() as i64;
        let best = first.entry(at(output, &index)).or_insert((value, place));
        let extreme = combine(*reduction, dtype, &best.0, &value);
        let is_kept = same(&extreme, &best.0) || !same(&best.0, &best.0);
        if !is_kept {
            *best = (value, place);
        }
    }
    first.into_iter().map(|(address, (_, place))| (address, Scalar::new(place))).collect()
}

fn scan(operation: &Scan) -> BTreeMap<u64, Scalar> {
    let Scan { reduction, compute, shape, axis, exclusive, initial, input, output } = operation;
    let element = |index: &[usize]| cast(&read(at(input, index), input.dtype), *compute);
    indices(shape)
        .iter()
        .map(|index| {
            let mut line = index.clone();
            let mut value = exclusive.then(|| *initial);
            for position in 0..index[*axis] + usize::from(!exclusive) {
                line[*axis] = position;
                value = Some(match value {
                    Some(before) => combine(*reduction, *compute, &before, &element(&line)),
                    None => element(&line),
                });
            }
            (at(output, index), cast(&value.expect("value"), output.dtype))
        })
        .collect()
}

fn product(operation: &MatrixProduct) -> BTreeMap<u64, Scalar> {
    let MatrixProduct { compute, batch, rows, terms, columns, left, right, output } = operation;
    // Sums of 16-bit floats are computed in a wider type.
    let inner = if compute.working() == *compute { *compute } else { DType::Float64 };
    let shape: Vec<usize> = batch.iter().chain([rows, columns]).copied().collect();
    let multiply = Function::Binary(BinaryFunction::Multiply);
    let value = |index: &[usize]| {
        let outer = &index[..batch.len()];
        let [row, column] = [index[batch.len()], index[batch.len() + 1]];
        (0..*terms).fold(zero(inner), |sum, term| {
            let element = |operand: &hal::operation::Operand, place: [usize; 2]| {
                let index = [outer, &place].concat();
                cast(&cast(&read(at(operand, &index), operand.dtype), *compute), inner)
            };
            let factors = [element(left, [row, term]), element(right, [term, column])];
            combine(Reduction::Sum, inner, &sum, &apply(multiply, inner, &factors))
        })
    };
    let stored = |value: Scalar| cast(&cast(&value, *compute), output.dtype);
    indices(&shape).iter().map(|index| (at(output, index), stored(value(index)))).collect()
}
