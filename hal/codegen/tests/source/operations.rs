//! Operations for tests of their source, without memory.

use codegen::source::{KernelSpec, Plan};
use hal::DType;
use hal::Scalar;
use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::*;
use std::collections::HashSet;

/// Plans an operation that a test describes.
pub(crate) fn plan(description: &Description) -> Plan {
    Plan::new(&Operation::new(description.clone()).unwrap()).unwrap()
}

/// Returns an operand at `address`.
pub(crate) fn operand(address: u64, dtype: DType, strides: &[isize]) -> Operand {
    Operand { address, dtype, strides: strides.into() }
}

/// Returns the strides of an array in C order.
pub(crate) fn c_order(shape: &[usize], dtype: DType) -> Vec<isize> {
    let mut strides = vec![dtype.size() as isize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as isize;
    }
    strides
}

/// Returns zero of any type.
pub(crate) fn zero(dtype: DType) -> Scalar {
    Scalar::from_bytes(dtype, &vec![0; dtype.size()]).unwrap()
}

/// Returns every function with every dtype that it computes in, with results in the function's own type.
pub(crate) fn functions() -> Vec<(Function, DType)> {
    let mut list = Vec::new();
    for dtype in DType::ALL {
        for function in UnaryFunction::ALL {
            if function.signature(dtype).is_ok_and(|s| s.compute == dtype) {
                list.push((Function::Unary(function), dtype));
            }
        }
        for function in BinaryFunction::ALL {
            if function.signature(dtype).is_ok_and(|s| s.compute == dtype) {
                list.push((Function::Binary(function), dtype));
            }
            if function.is_comparison() && dtype == DType::Int64 {
                list.push((Function::CompareMixed(function), dtype));
            }
        }
        for function in [Function::Select, Function::SelectPositive, Function::LinearCombination] {
            list.push((function, dtype));
        }
    }
    list
}

/// Returns `function` over arrays of `shape` in C order, all of type `dtype`.
pub(crate) fn elementwise(function: Function, dtype: DType, shape: &[usize]) -> Elementwise {
    let strides = c_order(shape, dtype);
    let result = function.result(dtype);
    Elementwise {
        function,
        compute: dtype,
        shape: shape.into(),
        inputs: (0..function.arity())
            .map(|i| Input::Array(operand(0x10000 * (i as u64 + 2), dtype, &strides)))
            .collect(),
        output: operand(0x10000, result, &c_order(shape, result)),
    }
}

/// Returns an operation for every family of kernels and every dtype.
pub(crate) fn all() -> Vec<Description> {
    let mut list = Vec::new();
    for (function, dtype) in functions() {
        let contiguous = elementwise(function, dtype, &[1 << 12]);
        // No whole packs along the last axis.
        let mut strided = elementwise(function, dtype, &[3, 40, 71]);
        strided.output.strides[0] += 64;
        list.push(Description::Elementwise(strided));
        list.push(Description::Elementwise(contiguous));
    }
    for dtype in DType::ALL {
        let size = dtype.size() as isize;
        let add = Function::Binary(BinaryFunction::Add);
        for side in [64, 40] {
            let mut tiled = elementwise(add, dtype, &[side, side]);
            if let Input::Array(input) = &mut tiled.inputs[1] {
                input.strides.reverse();
            }
            list.push(Description::Elementwise(tiled));
        }
        let mut rows = elementwise(add, dtype, &[3, 40, 64]);
        rows.output.strides[0] += 64;
        list.push(Description::Elementwise(rows));
        for to in DType::ALL {
            let mut cast = elementwise(Function::Unary(UnaryFunction::Copy), dtype, &[1 << 12]);
            cast.output.dtype = to;
            cast.output.strides[0] = to.size() as isize;
            list.push(Description::Elementwise(cast));
        }
        for (rank, extent) in [(6, 3), (12, 2)] {
            let mut folded = elementwise(add, dtype, &vec![extent; rank]);
            for stride in &mut folded.output.strides {
                *stride *= 2;
            }
            folded.output.strides[rank - 1] = size;
            folded.inputs[0] = Input::Scalar(zero(dtype));
            list.push(Description::Elementwise(folded));
        }
        list.extend(compared(dtype));
        for reduction in Reduction::ALL {
            let result = reduction.result(dtype);
            for (shape, kept) in [(vec![100], false), (vec![1 << 20], false), (vec![40, 90], true)]
            {
                let strides = c_order(&shape, dtype);
                let mut output = vec![0; shape.len()];
                if kept {
                    output[0] = result.size() as isize;
                }
                for product in [false, true] {
                    let input = operand(0x10000, dtype, &strides);
                    list.push(Description::Reduce(Reduce {
                        reduction,
                        compute: dtype,
                        shape: shape[..].into(),
                        input: if product {
                            Mapped::Product(input.clone(), input)
                        } else {
                            Mapped::Identity(input)
                        },
                        output: operand(0x20000, result, &output),
                        epilogue: Epilogue::Identity,
                    }));
                }
            }
            // Elements with gaps, columns, and rows with gaps.
            for (shape, strides, kept) in [
                ([1, 100], [0, 2], None),
                ([1, 1 << 20], [0, 2], None),
                ([64, 96], [96, 1], Some(1)),
                ([1 << 20, 96], [96, 1], Some(1)),
                ([1 << 14, 64], [96, 1], None),
            ] {
                let mut output = [0; 2];
                if let Some(axis) = kept {
                    output[axis] = result.size() as isize;
                }
                list.push(Description::Reduce(Reduce {
                    reduction,
                    compute: dtype,
                    shape: shape[..].into(),
                    input: Mapped::Identity(operand(0x10000, dtype, &strides.map(|it| it * size))),
                    output: operand(0x20000, result, &output),
                    epilogue: Epilogue::Identity,
                }));
            }
            list.push(Description::Reduce(Reduce {
                reduction,
                compute: dtype,
                shape: [100][..].into(),
                input: Mapped::Indexed(indexed(dtype, DType::Int64)),
                output: operand(0x20000, result, &[0]),
                epilogue: Epilogue::Identity,
            }));
            if matches!(reduction, Reduction::Any | Reduction::All) {
                continue;
            }
            for (shape, axis) in
                [([8192, 32], 0), ([100, 60], 1), ([100, 5000], 1), ([2, 1 << 20], 1)]
            {
                for exclusive in [false, true] {
                    let place = operand(0x20000, dtype, &c_order(&shape, dtype));
                    list.push(Description::Scan(Scan {
                        reduction,
                        compute: dtype,
                        shape: shape[..].into(),
                        axis,
                        exclusive,
                        initial: zero(dtype),
                        input: place.clone(),
                        output: place,
                    }));
                }
            }
        }
        let gaps = operand(0x20000, dtype, &[2 * size]);
        list.push(Description::Scan(Scan {
            reduction: Reduction::Sum,
            compute: dtype,
            shape: [3000][..].into(),
            axis: 0,
            exclusive: false,
            initial: zero(dtype),
            input: gaps.clone(),
            output: gaps,
        }));
        let mut rows = indexed(dtype, DType::Int64);
        rows.base.strides = [0, size][..].into();
        rows.indices.strides = [8, 0][..].into();
        rows.axis_stride = 64 * size;
        let output = operand(0x20000, dtype, &[64 * size, size]);
        list.push(Description::Gather(Gather {
            shape: [100, 64][..].into(),
            source: rows,
            output,
        }));
        for index in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
            let source = indexed(dtype, index);
            list.push(Description::Gather(Gather {
                shape: [100][..].into(),
                source: source.clone(),
                output: operand(0x20000, dtype, &[size]),
            }));
            list.push(Description::Scatter(Scatter {
                shape: [100][..].into(),
                input: Input::Array(operand(0x20000, DType::Float16, &[2])),
                target: source.clone(),
            }));
            list.push(Description::Scatter(Scatter {
                shape: [100][..].into(),
                input: Input::Scalar(zero(dtype)),
                target: source,
            }));
        }
        for (indices, length) in [
            (false, 1 << 20),
            (true, 1 << 20),
            (false, 1 << 31),
            (true, 1 << 31),
            (false, 999),
            (true, 999),
        ] {
            let out = if indices { DType::Int64 } else { dtype };
            list.push(Description::Sort(Sort {
                rows: 1,
                length: length as usize,
                indices,
                input: operand(0x10000, dtype, &[size * length, size]),
                output: operand(0x20000, out, &[out.size() as isize * length, out.size() as isize]),
            }));
        }
        for (batch, extents) in [(1, [20, 20, 20]), (1, [40, 2000, 40]), (400, [300, 30, 300])] {
            let [rows, terms, columns] = extents;
            let of = |address, matrix: [usize; 2]| {
                operand(address, dtype, &c_order(&[batch, matrix[0], matrix[1]], dtype))
            };
            list.push(Description::MatrixProduct(MatrixProduct {
                compute: dtype,
                batch: [batch][..].into(),
                rows,
                terms,
                columns,
                left: of(0x10000, [rows, terms]),
                right: of(0x20000, [terms, columns]),
                output: of(0x30000, [rows, columns]),
            }));
        }
        list.push(Description::Sequence(Sequence {
            length: 100,
            start: zero(dtype),
            step: zero(dtype),
            output: operand(0x10000, dtype, &[size]),
        }));
    }
    for (length, out) in [(4096, DType::Int32), (1 << 24, DType::Int32), (1 << 33, DType::Int64)] {
        list.push(Description::Nonzero(Nonzero {
            length,
            most: length,
            mask: operand(0x10000, DType::Bool, &[1]),
            values: None,
            output: operand(0x20000, out, &[out.size() as isize]),
        }));
    }
    // A space too large for 32-bit indices.
    let mut large = elementwise(Function::Binary(BinaryFunction::Add), DType::Float32, &[1 << 33]);
    list.push(Description::Elementwise(large.clone()));
    large.output.strides[0] = 8;
    list.push(Description::Elementwise(large));
    list.extend(formulas());
    list.extend(reduced_formulas());
    list
}

/// Returns reductions of a formula's values, in each way of access, from contiguous inputs and from others.
fn reduced_formulas() -> Vec<Description> {
    let mut list = Vec::new();
    let multiply = |dtype| Step {
        function: Function::Binary(BinaryFunction::Multiply),
        compute: BinaryFunction::Multiply.signature(dtype).unwrap().compute,
        dtype,
        arguments: [Term::Input(0), Term::Input(1)].as_slice().into(),
    };
    for dtype in [DType::Float32, DType::Float16, DType::Complex64, DType::UInt8] {
        let inputs = [Input::Array(dtype), Input::Array(dtype)];
        let root = Step {
            function: Function::Unary(UnaryFunction::Sin),
            compute: DType::Float64,
            dtype: DType::Float64,
            arguments: [Term::Step(0)].as_slice().into(),
        };
        // Long functions are only defined for some types.
        let steps = [multiply(dtype), root];
        let steps = if dtype == DType::Float16 { &steps[..] } else { &steps[..1] };
        let formula = Formula::new(&inputs, steps, &[steps.len() as u8 - 1]).unwrap();
        let value = steps[steps.len() - 1].dtype;
        for (shape, axis) in [([1, 4096], 1), ([70, 64], 0), ([70, 64], 1), ([33, 3], 1)] {
            let strides = c_order(&shape, dtype);
            for second in [strides.clone(), vec![0, strides[1]]] {
                let mut out = c_order(&shape, value);
                out[axis] = 0;
                let values = operand(0, value, &c_order(&shape, value));
                let input =
                    |k: u64, strides: &[isize]| Input::Array(operand(0x10000 * k, dtype, strides));
                let inputs = vec![input(1, &strides), input(2, &second)];
                let values = FormulaValues {
                    formula: formula.clone(),
                    map: ElementMap::Identity,
                    values,
                    shape: shape.as_slice().into(),
                    inputs,
                };
                let mut reduce = |reduction, map, output: DType| {
                    let size = (output.size() / value.size().min(output.size())) as isize;
                    let strides: Vec<isize> = out.iter().map(|stride| stride * size).collect();
                    list.push(Description::Reduce(Reduce {
                        reduction,
                        compute: value,
                        shape: shape.as_slice().into(),
                        input: Mapped::Formula(Box::new(FormulaValues { map, ..values.clone() })),
                        output: operand(0x30000, output, &strides),
                        epilogue: Epilogue::Identity,
                    }));
                };
                reduce(Reduction::Sum, ElementMap::Identity, value);
                reduce(Reduction::Maximum, ElementMap::Position, DType::Int64);
                if matches!(value, DType::Float32 | DType::Float64) {
                    reduce(Reduction::Sum, ElementMap::SquaredDeviation, value);
                }
            }
        }
    }
    list
}

/// Returns formulas with one and with two outputs, in each way of access.
fn formulas() -> Vec<Description> {
    let half = DType::Float16;
    let arrays = [DType::Float32, DType::Int16, DType::Complex64, DType::Bool, half];
    let mut list = Vec::new();
    for dtype in arrays {
        let signature = BinaryFunction::Add.signature(dtype).unwrap();
        let step = |function, arguments: &[Term], dtype| Step {
            function,
            compute: signature.compute,
            dtype,
            arguments: arguments.into(),
        };
        let (x, y, number) = (Term::Input(0), Term::Input(1), Term::Input(2));
        let add = Function::Binary(BinaryFunction::Add);
        let steps = [
            step(add, &[x, number], dtype),
            step(Function::Binary(BinaryFunction::Less), &[Term::Step(0), y], DType::Bool),
            step(Function::Select, &[Term::Step(1), x, Term::Step(0)], dtype),
            step(Function::Unary(UnaryFunction::Copy), &[Term::Step(2)], DType::Float64),
        ];
        let inputs = [Input::Array(dtype), Input::Array(dtype), Input::Scalar(dtype)];
        for outputs in [&[3][..], &[1, 3]] {
            let formula = Formula::new(&inputs, &steps, outputs).unwrap();
            let mut push = |shape: &[usize], strides: &[Vec<isize>], base: u64| {
                let at = |k: usize, dtype| operand(base + 0x10000 * k as u64, dtype, &strides[k]);
                let stored = formula.outputs().map(|output| steps[output].dtype);
                list.push(Description::Fused(Fused {
                    formula: formula.clone(),
                    shape: shape.into(),
                    inputs: vec![
                        Input::Array(at(2, dtype)),
                        Input::Array(at(3, dtype)),
                        Input::Scalar(zero(dtype)),
                    ],
                    outputs: stored.enumerate().map(|(k, dtype)| at(k, dtype)).collect(),
                }));
            };
            let first = steps[usize::from(outputs[0])].dtype;
            let stored = [first, DType::Float64];
            for (shape, broadcast) in
                [(&[4096][..], false), (&[30, 64], true), (&[40, 7, 71], false)]
            {
                let mut strides: Vec<Vec<isize>> = Vec::new();
                for dtype in stored.into_iter().chain([dtype, dtype]) {
                    let mut list = c_order(shape, dtype);
                    // Rows with a gap behind them, except in the first shape.
                    for stride in list.iter_mut().rev().skip(1) {
                        *stride += 64;
                    }
                    strides.push(list);
                }
                if broadcast {
                    strides[3] = vec![0, dtype.size() as isize];
                    strides[2][1] = 0;
                }
                push(shape, &strides, 0x10000);
            }
        }
    }
    list
}

/// Returns reductions to positions and of squared distances: along rows and columns, in one launch and in
/// parts, with gaps.
fn compared(dtype: DType) -> Vec<Description> {
    let size = dtype.size() as isize;
    let real = if dtype.size() > 4 { DType::Float64 } else { DType::Float32 };
    let mut list = Vec::new();
    for (shape, strides, axis) in [
        ([40, 90], [90, 1], 1),
        ([4, 1 << 20], [1 << 20, 1], 1),
        ([64, 96], [96, 1], 0),
        ([1 << 16, 96], [96, 1], 0),
        ([40, 90], [180, 2], 1),
    ] {
        let along = |dtype: DType| {
            let mut kept = [0; 2];
            kept[1 - axis] = dtype.size() as isize;
            kept
        };
        let elements = || operand(0x10000, dtype, &strides.map(|it| it * size));
        let mut reduce = |reduction, compute, input, output: DType| {
            let output = operand(0x20000, output, &along(output));
            let shape = shape[..].into();
            list.push(Description::Reduce(Reduce {
                reduction,
                compute,
                shape,
                input,
                output,
                epilogue: Epilogue::Identity,
            }));
        };
        reduce(Reduction::Minimum, dtype, Mapped::Position(elements()), DType::Int64);
        if !dtype.is_complex() {
            reduce(Reduction::Sum, real, Mapped::SquaredDeviation(elements()), real);
        }
    }
    list
}

fn indexed(dtype: DType, index: DType) -> Indexed {
    Indexed {
        base: operand(0x10000, dtype, &[0]),
        indices: operand(0x30000, index, &[index.size() as isize]),
        axis_length: 1000,
        axis_stride: dtype.size() as isize,
    }
}

/// Returns the plans for tests with the vendors' compilers: one for each specification of [`all`] if
/// `PYGPU_EVERY_KERNEL=1` (which takes minutes for each target), else for one in 37. That covers every
/// function, every dtype and every family, but not every combination.
#[allow(dead_code, reason = "the tests of hal itself look at all")]
pub(crate) fn plans() -> Vec<(KernelSpec, Plan)> {
    let every = std::env::var("PYGPU_EVERY_KERNEL").is_ok_and(|it| it == "1");
    let mut seen = HashSet::new();
    let plans = all().into_iter().map(|operation| plan(&operation));
    let distinct =
        plans.map(|plan| (plan.spec().clone(), plan)).filter(|(spec, _)| seen.insert(spec.clone()));
    let step = if every { 1 } else { 37 };
    // Kernels that have crashed a compiler are always included.
    let known = |spec: &KernelSpec| {
        spec.kernel_names().iter().any(|name| {
            name.contains("_products_i8_i8_to_i8") || name.contains("_products_u8_u8_to_u8")
        })
    };
    let distinct =
        distinct.enumerate().filter(|(place, (spec, _))| place % step == 0 || known(spec));
    let chosen: Vec<_> = distinct.map(|(_, plan)| plan).collect();
    assert!(chosen.len() > if every { 1500 } else { 40 }, "{}", chosen.len());
    chosen
}
