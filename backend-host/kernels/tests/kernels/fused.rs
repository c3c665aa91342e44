//! Formulas: several functions of elements in one pass.

use super::arrays::{Array, ORDERS, Order, random};
use super::{check, pool, run, run_with};
use hal::DType;
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Description, Formula, Fused, Input, Shape, Step, Term};

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
    let shapes: [&[usize]; 8] =
        [&[], &[0], &[1], &[9000], &[2, 3, 700], &[1500, 3], &[3, 0, 2], &[5, 4, 30, 3]];
    for shape in shapes {
        for left in ORDERS {
            for right in ORDERS {
                for out in [Order::Rows, Order::Columns, Order::Backwards] {
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
