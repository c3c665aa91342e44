//! Gathers, scatters, reductions of selected elements, and sequences.

use super::arrays::{Array, Order, random};
use super::{check, run};
use hal::function::Reduction;
use hal::operation::{
    Description, Epilogue, Gather, Indexed, Input, Mapped, Reduce, Scatter, Sequence, Shape,
};
use hal::{DType, Scalar};

/// Returns indices of an axis with 7 elements, some of them out of bounds.
fn indices(dtype: DType) -> Array {
    let values = [0i64, 6, -1, -7, -8, 7, 100, 3, -100, 2];
    let values = values.map(|value| Scalar::new(value).cast(dtype).expect("cast"));
    Array::of(&values)
}

fn types() -> Vec<DType> {
    let mut types = DType::ALL.to_vec();
    types.extend([3, 16].map(DType::Opaque));
    types
}

#[test]
fn gathers_read_zero_outside() {
    for dtype in types() {
        for index_type in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
            for out in [dtype, DType::Float64] {
                if dtype.kind() == hal::Kind::Opaque && out != dtype {
                    continue;
                }
                for order in [Order::Rows, Order::Backwards] {
                    let mut source = Array::random(dtype, &[7], order, 2);
                    let mut base = source.operand();
                    let axis_stride = std::mem::take(&mut base.strides[0]);
                    let mut indices = indices(index_type);
                    let mut output = Array::random(out, &[10], order, 3);
                    let source =
                        Indexed { base, indices: indices.operand(), axis_length: 7, axis_stride };
                    let shape = Shape::from_slice(&[10]);
                    check(&Description::Gather(Gather { shape, source, output: output.operand() }));
                }
            }
        }
    }
}

/// Rows of a matrix selected by indices, like `take` along either axis.
fn rows(source: &mut Array, indices: &mut Array, axis: usize) -> (Shape, Indexed) {
    let mut base = source.operand();
    let mut picked = indices.operand();
    let axis_stride = std::mem::take(&mut base.strides[axis]);
    picked.strides.insert(1 - axis, 0);
    let shape = if axis == 0 { [10, 5] } else { [5, 10] };
    (Shape::from_slice(&shape), Indexed { base, indices: picked, axis_length: 7, axis_stride })
}

#[test]
fn gathers_and_scatters_along_an_axis() {
    for axis in 0..2 {
        let extents = if axis == 0 { [7, 5] } else { [5, 7] };
        for order in [Order::Rows, Order::Columns, Order::Backwards] {
            let mut source = Array::random(DType::Int32, &extents, order, 4);
            let mut indices = indices(DType::Int16);
            let (shape, source) = rows(&mut source, &mut indices, axis);
            let mut output = Array::zeros(DType::Int32, &shape, order);
            check(&Description::Gather(Gather {
                shape: shape.clone(),
                source: source.clone(),
                output: output.operand(),
            }));
            let mut input = Array::random(DType::Float32, &shape, Order::Rows, 9);
            let input = Input::Array(input.operand());
            check(&Description::Scatter(Scatter {
                shape: shape.clone(),
                input,
                target: source.clone(),
            }));
            let (reduction, compute) = (Reduction::Sum, DType::Int64);
            let mut sum = Array::zeros(DType::Int64, &[shape[1 - axis]], Order::Rows);
            let mut output = sum.operand();
            output.strides.insert(axis, 0);
            check(&Description::Reduce(Reduce {
                reduction,
                compute,
                shape,
                input: Mapped::Indexed(source),
                output,
                epilogue: Epilogue::Identity,
            }));
        }
    }
}

/// Runs of elements that one index selects, and rows that share their indices, in and out of bounds.
#[test]
fn gathers_along_each_axis_of_three() {
    let inside = Array::of(&[0i64, 6, 2, 5, 5].map(Scalar::new));
    let mut all = vec![(5, inside)];
    all.extend([DType::Int64, DType::Int8, DType::UInt64].map(|dtype| (10, indices(dtype))));
    for dtype in types() {
        for (axis, extents) in
            [[7, 3, 4], [3, 7, 4], [3, 4, 7], [7, 1, 1], [1, 7, 1]].iter().enumerate()
        {
            let axis = if axis < 3 { axis } else { axis - 3 };
            for (length, picked) in &mut all {
                for orders in [
                    [Order::Rows, Order::Rows],
                    [Order::Columns, Order::Rows],
                    [Order::Rows, Order::Columns],
                    [Order::Backwards, Order::Backwards],
                ] {
                    let mut source = Array::random(dtype, extents, orders[0], 5);
                    let mut base = source.operand();
                    let axis_stride = std::mem::take(&mut base.strides[axis]);
                    let mut indices = picked.operand();
                    let step = indices.strides[0];
                    indices.strides = [0; 3][..].into();
                    indices.strides[axis] = step;
                    let mut shape = Shape::from_slice(extents);
                    shape[axis] = *length;
                    let mut output = Array::zeros(dtype, &shape, orders[1]);
                    let source = Indexed { base, indices, axis_length: 7, axis_stride };
                    check(&Description::Gather(Gather { shape, source, output: output.operand() }));
                }
            }
        }
    }
}

#[test]
fn scatters_skip_what_is_outside() {
    for dtype in types() {
        for scalar in [false, true] {
            let mut target = Array::random(dtype, &[7], Order::Rows, 2);
            let mut base = target.operand();
            let axis_stride = std::mem::take(&mut base.strides[0]);
            let mut indices = indices(DType::Int64);
            let mut array = Array::random(dtype, &[10], Order::Backwards, 6);
            let input = if scalar {
                Input::Scalar(random(dtype, &mut 9))
            } else {
                Input::Array(array.operand())
            };
            let target = Indexed { base, indices: indices.operand(), axis_length: 7, axis_stride };
            check(&Description::Scatter(Scatter {
                shape: Shape::from_slice(&[10]),
                input,
                target,
            }));
        }
    }
}

#[test]
fn long_gathers_pass_several_tiles() {
    let count = 5000;
    let numbers: Vec<Scalar> = (0..count as i32).map(Scalar::new).collect();
    let backwards: Vec<Scalar> = (0..count as i64).rev().map(Scalar::new).collect();
    let (mut source, mut indices) = (Array::of(&numbers), Array::of(&backwards));
    for dtype in [DType::Int32, DType::Float64] {
        let mut output = Array::zeros(dtype, &[count], Order::Rows);
        let mut base = source.operand();
        base.strides[0] = 0;
        let indices = indices.operand();
        let source = Indexed { base, indices, axis_length: count, axis_stride: 4 };
        let shape = Shape::from_slice(&[count]);
        check(&Description::Gather(Gather { shape, source, output: output.operand() }));
    }
}

#[test]
fn sequences_of_every_dtype() {
    for dtype in DType::ALL {
        for order in [Order::Rows, Order::Backwards] {
            let mut output = Array::zeros(dtype, &[100], order);
            let [start, step] = [3.0f64, 0.5].map(|value| {
                let value = if dtype.is_inexact() { value } else { value * 2.0 };
                Scalar::new(value).cast(dtype).expect("cast")
            });
            let output = output.operand();
            check(&Description::Sequence(Sequence { length: 100, start, step, output }));
        }
    }
    let mut none = Array::zeros(DType::Int8, &[0], Order::Rows);
    let [start, step] = [0i8, 1].map(Scalar::new);
    run(&Description::Sequence(Sequence { length: 0, start, step, output: none.operand() }));
}
