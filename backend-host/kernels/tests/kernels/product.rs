//! Matrix products of every dtype, layout and size, with one and several threads.

use super::arrays::{Array, Order};
use super::{check, pool, run, run_with};
use hal::DType;
use hal::operation::{Description, MatrixProduct, Operand};

/// An operand's matrices, whose batch has the output's axes.
fn product(
    compute: DType,
    batch: &[usize],
    [rows, terms, columns]: [usize; 3],
    [left, right, output]: [Operand; 3],
) -> Description {
    let batch = batch.into();
    Description::MatrixProduct(MatrixProduct {
        compute,
        batch,
        rows,
        terms,
        columns,
        left,
        right,
        output,
    })
}

fn shaped(batch: &[usize], matrix: [usize; 2]) -> Vec<usize> {
    batch.iter().copied().chain(matrix).collect()
}

#[test]
fn matrices_of_every_dtype_and_layout() {
    for compute in DType::ALL {
        for (extents, order) in [
            ([3, 4, 5], Order::Rows),
            ([7, 9, 2], Order::Columns),
            ([5, 3, 6], Order::Backwards),
            ([2, 7, 3], Order::Broadcast),
        ] {
            let [rows, terms, columns] = extents;
            let output_order = if order == Order::Broadcast { Order::Rows } else { order };
            let mut left = Array::random(compute, &[rows, terms], order, 1);
            let mut right = Array::random(compute, &[terms, columns], order, 2);
            let mut output = Array::random(compute, &[rows, columns], output_order, 3);
            let operands = [left.operand(), right.operand(), output.operand()];
            check(&product(compute, &[], extents, operands));
        }
    }
}

#[test]
fn blocks_of_several_buffers_and_batches() {
    for compute in [DType::Int16, DType::UInt64, DType::Float16, DType::Float32, DType::Complex128]
    {
        for (batch, extents) in [
            (&[][..], [3, 95, 91]),
            (&[], [95, 2, 3]),
            (&[3, 2], [9, 40, 17]),
            (&[40], [2, 3, 2]),
            (&[2], [5, 0, 4]),
        ] {
            let [rows, terms, columns] = extents;
            let mut left = Array::random(compute, &shaped(batch, [rows, terms]), Order::Rows, 1);
            let mut right =
                Array::random(compute, &shaped(batch, [terms, columns]), Order::Columns, 2);
            let mut output =
                Array::random(compute, &shaped(batch, [rows, columns]), Order::Rows, 3);
            let operands = [left.operand(), right.operand(), output.operand()];
            check(&product(compute, batch, extents, operands));
        }
    }
}

#[test]
fn operands_of_other_dtypes_are_converted() {
    let extents = [5, 70, 40];
    for (compute, left, right, output) in [
        (DType::Float64, DType::Int8, DType::Float32, DType::Float64),
        (DType::Float16, DType::Float32, DType::Bool, DType::Float64),
        (DType::Int32, DType::Int8, DType::Int32, DType::Int64),
        (DType::Complex64, DType::Float32, DType::Complex64, DType::Complex128),
        (DType::BFloat16, DType::BFloat16, DType::UInt8, DType::Float32),
    ] {
        let mut left = Array::random(left, &[5, 70], Order::Columns, 1);
        let mut right = Array::random(right, &[70, 40], Order::Rows, 2);
        let mut output = Array::zeros(output, &[5, 40], Order::Backwards);
        let operands = [left.operand(), right.operand(), output.operand()];
        check(&product(compute, &[], extents, operands));
    }
}

#[test]
fn a_result_does_not_depend_on_the_number_of_threads() {
    let pool = pool(3);
    for compute in [DType::Float32, DType::Float64, DType::Float16, DType::Int32] {
        for (batch, extents) in
            [(&[][..], [257, 300, 130]), (&[], [5, 999, 400]), (&[40], [20, 33, 21])]
        {
            let [rows, terms, columns] = extents;
            let mut left = Array::random(compute, &shaped(batch, [rows, terms]), Order::Rows, 1);
            let mut right =
                Array::random(compute, &shaped(batch, [terms, columns]), Order::Rows, 2);
            let results = [false, true].map(|several| {
                let mut output =
                    Array::zeros(compute, &shaped(batch, [rows, columns]), Order::Rows);
                let operands = [left.operand(), right.operand(), output.operand()];
                let operation = product(compute, batch, extents, operands);
                if several {
                    run_with(&operation, &pool)
                } else {
                    run(&operation)
                }
                output
            });
            assert_eq!(results[0].words(), results[1].words(), "{compute} {extents:?}");
        }
    }
}
