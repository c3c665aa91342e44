//! Formulas: several functions of elements in one pass.

use super::arrays::{Array, ORDERS, Order, random};
use super::{check, pool, run, run_with};
use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::{
    Description, ElementMap, Epilogue, Formula, FormulaValues, Fused, Input, Mapped, Operand,
    Reduce, Shape, Step, Term,
};
use hal::{DType, ErrorKind};

fn step(function: Function, compute: DType, dtype: DType, arguments: &[Term]) -> Step {
    Step { function, compute, dtype, arguments: arguments.into() }
}

/// Returns `(x + y < number ? x : x + y) * y` in double precision, where the sum is of single precision, and the
/// comparison.
fn formula() -> Formula {
    let (x, y, number) = (Term::Input(0), Term::Input(1), Term::Input(2));
    let (single, double) = (DType::Float32, DType::Float64);
    let binary = Function::Binary;
    let steps = [
        step(binary(BinaryFunction::Add), single, single, &[x, y]),
        step(binary(BinaryFunction::Less), single, DType::Bool, &[Term::Step(0), number]),
        step(Function::Select, single, single, &[Term::Step(1), x, Term::Step(0)]),
        step(Function::Unary(UnaryFunction::Copy), double, double, &[Term::Step(2)]),
        step(binary(BinaryFunction::Multiply), double, double, &[Term::Step(3), y]),
    ];
    let inputs = [Input::Array(single), Input::Array(DType::Int16), Input::Scalar(single)];
    Formula::new(&inputs, &steps, &[4, 1]).expect("formula")
}

fn operation(shape: &[usize], inputs: &mut [Array; 2], outputs: &mut [Array; 2]) -> Description {
    let mut seed = 9;
    let mut arguments: Vec<Input> =
        inputs.iter_mut().map(|array| Input::Array(array.operand())).collect();
    arguments.push(Input::Scalar(random(DType::Float32, &mut seed)));
    Description::Fused(Fused {
        formula: formula(),
        shape: Shape::from_slice(shape),
        inputs: arguments,
        outputs: outputs.iter_mut().map(Array::operand).collect(),
    })
}

#[test]
fn every_arrangement_in_pieces() {
    // A piece has at most 16,384 elements.
    let shapes: [&[usize]; 8] =
        [&[], &[0], &[1], &[20_000], &[2, 3, 6000], &[7000, 3], &[3, 0, 2], &[5, 4, 300, 3]];
    let outs = [Order::Rows, Order::Columns, Order::Backwards];
    let takes_all = std::env::var_os("PYGPU_TEST_ALL").is_some();
    for shape in shapes {
        for (i, left) in ORDERS.into_iter().enumerate() {
            for (j, right) in ORDERS.into_iter().enumerate() {
                for (k, out) in outs.into_iter().enumerate() {
                    // Otherwise every pair of orders.
                    if !takes_all && k != (i + j) % outs.len() {
                        continue;
                    }
                    let mut inputs = [
                        Array::random(DType::Float32, shape, left, 1),
                        Array::random(DType::Int16, shape, right, 2),
                    ];
                    let mut outputs = [
                        Array::zeros(DType::Float64, shape, out),
                        Array::zeros(DType::Bool, shape, Order::Rows),
                    ];
                    check(&operation(shape, &mut inputs, &mut outputs));
                }
            }
        }
    }
}

#[test]
fn threads_store_the_same_bits() {
    let shape = [1 << 19];
    let mut inputs = [
        Array::random(DType::Float32, &shape, Order::Rows, 3),
        Array::random(DType::Int16, &shape, Order::Rows, 4),
    ];
    let zeros = || [DType::Float64, DType::Bool].map(|it| Array::zeros(it, &shape, Order::Rows));
    let (mut alone, mut together) = (zeros(), zeros());
    run(&operation(&shape, &mut inputs, &mut alone));
    run_with(&operation(&shape, &mut inputs, &mut together), &pool(4));
    for (one, other) in alone.iter().zip(&together) {
        assert_eq!(one.words(), other.words());
    }
}

/// What is combined of the formula's values: the comparisons are added, and the products have a variance and a place.
const MAPS: [(ElementMap, Reduction, DType, u8, DType); 3] = [
    (ElementMap::Identity, Reduction::Sum, DType::Int32, 1, DType::Int32),
    (ElementMap::SquaredDeviation, Reduction::Sum, DType::Float64, 4, DType::Float64),
    (ElementMap::Position, Reduction::Maximum, DType::Float64, 4, DType::Int64),
];

/// Returns a reduction of a value of the formula, whose elements would be in the order of `values`.
fn reduction(
    (map, reduction, compute, step, _): (ElementMap, Reduction, DType, u8, DType),
    shape: &[usize],
    inputs: &mut [Array; 2],
    values: Operand,
    order: Order,
    output: Operand,
) -> Description {
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    if order == Order::Columns {
        axes.reverse();
    }
    let mut seed = 9;
    let mut arguments: Vec<Input> = Vec::new();
    for array in inputs {
        let operand = array.operand();
        let strides = axes.iter().map(|&axis| operand.strides[axis]).collect();
        arguments.push(Input::Array(Operand { strides, ..operand }));
    }
    arguments.push(Input::Scalar(random(DType::Float32, &mut seed)));
    let formula = Formula::new(formula().inputs(), formula().steps(), &[step]).expect("formula");
    let extents = axes.iter().map(|&axis| shape[axis]).collect();
    let values = Operand { address: 0, ..values };
    Description::Reduce(Reduce {
        reduction,
        compute,
        shape: Shape::from_slice(shape),
        input: Mapped::Formula(Box::new(FormulaValues {
            formula,
            map,
            values,
            shape: extents,
            inputs: arguments,
        })),
        output,
        epilogue: Epilogue::Identity,
    })
}

#[test]
fn reductions_compute_the_values_that_they_combine() {
    let shapes: [&[usize]; 7] = [&[], &[1], &[3000], &[2, 3, 70], &[90, 3], &[3, 90], &[40, 50]];
    let mut refused = 0;
    for shape in shapes {
        for order in [Order::Rows, Order::Columns] {
            for (left, right) in
                [(order, order), (order, Order::Backwards), (Order::Broadcast, order)]
            {
                for (reduced, how) in
                    (0..1 << shape.len()).flat_map(|reduced| MAPS.map(|how| (reduced, how)))
                {
                    let (map, _, _, step, result) = how;
                    let mut inputs = [
                        Array::random(DType::Float32, shape, left, 1),
                        Array::random(DType::Int16, shape, right, 2),
                    ];
                    let stored = formula().steps()[usize::from(step)].dtype;
                    let mut values = Array::zeros(stored, shape, order);
                    let is_reduced = |axis: usize| reduced >> axis & 1 == 1;
                    let axes = shape.iter().enumerate();
                    let long =
                        axes.clone().filter(|&(axis, &extent)| is_reduced(axis) && extent > 1);
                    if map == ElementMap::Position && long.count() > 1 {
                        continue;
                    }
                    let extents: Vec<usize> = axes
                        .map(|(axis, &extent)| if is_reduced(axis) { 1 } else { extent })
                        .collect();
                    let mut output = Array::zeros(result, &extents, Order::Rows);
                    let mut place = output.operand();
                    for (axis, stride) in place.strides.iter_mut().enumerate() {
                        *stride = if is_reduced(axis) { 0 } else { *stride };
                    }
                    let reduce = reduction(how, shape, &mut inputs, values.operand(), order, place);
                    // SAFETY: the arrays are alive.
                    let result = unsafe {
                        gpuarray_host_kernels::execute(&super::sealed(&reduce), &|| None)
                    };
                    match result {
                        // Values of inputs in several orders are not combined across those.
                        Err(error) if error.kind() == ErrorKind::Unsupported => refused += 1,
                        _ => check(&reduce),
                    }
                }
            }
        }
    }
    assert!((1..150).contains(&refused), "{refused}");
}
