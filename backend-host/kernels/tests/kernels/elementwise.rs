//! Every function, on every dtype, in every arrangement of its operands.

use super::arrays::{Array, ORDERS, Order, random, read};
use super::{check, pool, run, run_with};
use hal::function::{BinaryFunction, Function, UnaryFunction};
use hal::operation::{Description, Elementwise, Input, Operand, Shape};
use hal::{DType, Scalar};

fn operation(
    function: Function,
    compute: DType,
    shape: &[usize],
    inputs: &mut [Array],
    output: &mut Array,
) -> Description {
    let inputs = inputs.iter_mut().map(|array| Input::Array(array.operand())).collect();
    let shape = Shape::from_slice(shape);
    Description::Elementwise(Elementwise {
        function,
        compute,
        shape,
        inputs,
        output: output.operand(),
    })
}

/// Returns all functions, with the types that numpy's rules give for arguments of `dtype`.
fn functions(dtype: DType) -> Vec<(Function, DType)> {
    let unary = UnaryFunction::ALL.iter().filter_map(|function| {
        let signature = function.signature(dtype).ok()?;
        Some((Function::Unary(*function), signature.compute))
    });
    let binary = BinaryFunction::ALL.iter().filter_map(|function| {
        let signature = function.signature(dtype).ok()?;
        Some((Function::Binary(*function), signature.compute))
    });
    let others = [Function::Select, Function::SelectPositive, Function::LinearCombination]
        .map(|function| (function, dtype));
    let mixed = BinaryFunction::ALL.iter().filter_map(|function| {
        let compares = function.is_comparison() && matches!(dtype, DType::Int64 | DType::UInt64);
        compares.then_some((Function::CompareMixed(*function), DType::Int64))
    });
    unary.chain(binary).chain(others).chain(mixed).collect()
}

#[test]
fn every_function_of_every_dtype() {
    for dtype in DType::ALL {
        for (function, compute) in functions(dtype) {
            let shape = [67];
            let mut inputs: Vec<Array> = (0..function.arity())
                .map(|seed| Array::random(dtype, &shape, Order::Rows, seed as u64 + 5))
                .collect();
            let mut output = Array::zeros(function.result(compute), &shape, Order::Rows);
            let array = operation(function, compute, &shape, &mut inputs, &mut output);
            check(&array);
            // Each argument as a scalar, and all of them.
            let Description::Elementwise(array) = array else { unreachable!() };
            let mut state = 11;
            for scalars in 1..1 << function.arity() {
                let mut mixed = array.clone();
                for (position, input) in mixed.inputs.iter_mut().enumerate() {
                    if scalars >> position & 1 == 1 {
                        *input = Input::Scalar(random(dtype, &mut state));
                    }
                }
                check(&Description::Elementwise(mixed));
            }
        }
    }
}

#[test]
fn every_cast() {
    for from in DType::ALL {
        for to in DType::ALL {
            for compute in [from, to, DType::Float32] {
                let mut input = [Array::random(from, &[9, 5], Order::Columns, 3)];
                if to.kind() != from.kind() && from.is_inexact() {
                    // Values out of range are undefined, so the values are small.
                    input = [Array::random(from, &[9, 5], Order::Rows, 4)];
                }
                let mut output = Array::zeros(to, &[9, 5], Order::Rows);
                let copy = Function::Unary(UnaryFunction::Copy);
                let operation = operation(copy, compute, &[9, 5], &mut input, &mut output);
                let lossy = compute == DType::Float32 && from.is_integer() && from.size() > 1;
                if !lossy {
                    check(&operation);
                }
            }
        }
    }
}

#[test]
fn every_arrangement() {
    let add = Function::Binary(BinaryFunction::Add);
    let shapes: [&[usize]; 9] = [
        &[],
        &[0],
        &[1],
        &[1500],
        &[3, 0, 2],
        &[40, 50],
        &[2, 70, 65],
        &[300, 3],
        &[2, 3, 4, 2, 5],
    ];
    for shape in shapes {
        for left in ORDERS {
            for right in ORDERS {
                for out in [Order::Rows, Order::Columns, Order::Backwards] {
                    for dtypes in [
                        [DType::Int32, DType::Int32, DType::Int32],
                        [DType::Int8, DType::Float64, DType::Float64],
                        [DType::UInt16, DType::UInt16, DType::Complex64],
                    ] {
                        let mut inputs = [
                            Array::random(dtypes[0], shape, left, 1),
                            Array::random(dtypes[1], shape, right, 2),
                        ];
                        let mut output = Array::zeros(dtypes[2], shape, out);
                        check(&operation(add, dtypes[1], shape, &mut inputs, &mut output));
                    }
                }
            }
        }
    }
}

#[test]
fn copies_of_any_size_and_order() {
    let mut types = DType::ALL.to_vec();
    types.extend([1, 3, 8, 12, 16].map(DType::Opaque));
    for dtype in types {
        for shape in [&[300][..], &[17, 19], &[5, 4, 3], &[]] {
            for from in ORDERS {
                for to in [Order::Rows, Order::Columns, Order::Backwards] {
                    let mut input = [Array::random(dtype, shape, from, 8)];
                    let mut output = Array::zeros(dtype, shape, to);
                    let copy = Function::Unary(UnaryFunction::Copy);
                    check(&operation(copy, dtype, shape, &mut input, &mut output));
                }
            }
        }
        let mut output = Array::zeros(dtype, &[31], Order::Backwards);
        let mut fill = operation(
            Function::Unary(UnaryFunction::Copy),
            dtype,
            &[31],
            &mut [Array::zeros(dtype, &[31], Order::Rows)],
            &mut output,
        );
        let Description::Elementwise(inner) = &mut fill else { unreachable!() };
        inner.inputs[0] = Input::Scalar(random(dtype, &mut 77));
        check(&fill);
    }
}

#[test]
fn results_replace_an_input() {
    for (compute, out) in [(DType::Float32, DType::Float32), (DType::Int8, DType::Bool)] {
        let function =
            if out == DType::Bool { BinaryFunction::Less } else { BinaryFunction::Subtract };
        for order in [Order::Rows, Order::Columns, Order::Backwards] {
            for position in 0..2 {
                let shape = [70, 35];
                let mut inputs = [
                    Array::random(compute, &shape, order, 1),
                    Array::random(compute, &shape, Order::Rows, 2),
                ];
                inputs.swap(0, position);
                let mut output = inputs[position].operand();
                output.dtype = out;
                let inputs = inputs.each_mut().map(|array| Input::Array(array.operand()));
                check(&Description::Elementwise(Elementwise {
                    function: Function::Binary(function),
                    compute,
                    shape: Shape::from_slice(&shape),
                    inputs: inputs.into_iter().collect(),
                    output,
                }));
            }
        }
    }
}

#[test]
fn threads_do_not_change_a_result() {
    let pool = pool(3);
    for (shape, order) in [(&[500_000][..], Order::Rows), (&[700, 800], Order::Columns)] {
        let mut inputs = [
            Array::random(DType::Float32, shape, order, 1),
            Array::random(DType::Int16, shape, Order::Rows, 2),
        ];
        let multiply = Function::Binary(BinaryFunction::Multiply);
        let mut outputs = [(); 2].map(|()| Array::zeros(DType::Float32, shape, Order::Rows));
        let [alone, together] = &mut outputs;
        run(&operation(multiply, DType::Float32, shape, &mut inputs, alone));
        run_with(&operation(multiply, DType::Float32, shape, &mut inputs, together), &pool);
        assert!(alone.words() == together.words(), "{shape:?}");
        assert!(alone.words().iter().any(|&word| word != 0));
    }
}

#[test]
fn neighbours_do_not_change_a_value() {
    const LENGTH: usize = 67;
    let at = |operand: &Operand, index: usize| {
        let address = operand.address + (index * operand.dtype.size()) as u64;
        Operand { address, ..operand.clone() }
    };
    for dtype in DType::ALL {
        for (function, compute) in functions(dtype) {
            let random = |seed| Array::random(dtype, &[LENGTH], Order::Rows, seed as u64 + 5);
            let mut inputs: Vec<Array> = (0..function.arity()).map(random).collect();
            let zeros = || Array::zeros(function.result(compute), &[LENGTH], Order::Rows);
            let [mut together, mut alone] = [zeros(), zeros()];
            run(&operation(function, compute, &[LENGTH], &mut inputs, &mut together));
            for index in 0..LENGTH {
                run(&Description::Elementwise(Elementwise {
                    function,
                    compute,
                    shape: Shape::from_slice(&[1]),
                    inputs: inputs
                        .iter_mut()
                        .map(|array| Input::Array(at(&array.operand(), index)))
                        .collect(),
                    output: at(&alone.operand(), index),
                }));
            }
            for index in 0..LENGTH {
                let [one, other] = [&mut together, &mut alone].map(|array| {
                    let element = at(&array.operand(), index);
                    read(element.address, element.dtype)
                });
                // Not a number equals no other number, so bits and texts are compared.
                assert!(
                    one.bytes() == other.bytes() || format!("{one:?}") == format!("{other:?}"),
                    "{function:?} in {compute}, element {index}: {one:?} with others, {other:?} alone"
                );
            }
        }
    }
}

#[test]
fn little_work_asks_for_no_threads() {
    let mut input = [Array::random(DType::Float32, &[4096], Order::Rows, 1)];
    let mut output = Array::zeros(DType::Float32, &[4096], Order::Rows);
    let negative = Function::Unary(UnaryFunction::Negative);
    let operation = operation(negative, DType::Float32, &[4096], &mut input, &mut output);
    // SAFETY: the arrays are alive.
    let result =
        unsafe { super::execute(&super::sealed(&operation), &|| panic!("asked for threads")) };
    result.expect("execute");
}

#[test]
fn any_byte_but_zero_is_true() {
    let mut input = [Array::of(&[7u8, 0, 255, 1].map(Scalar::new))];
    input[0].dtype = DType::Bool;
    let mut output = Array::zeros(DType::Bool, &[4], Order::Rows);
    let copy = Function::Unary(UnaryFunction::Copy);
    run(&operation(copy, DType::Bool, &[4], &mut input, &mut output));
    assert_eq!(output.words()[0].to_ne_bytes()[..4], [1, 0, 1, 1]);
}
