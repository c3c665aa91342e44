//! Sorts, products of matrices and random numbers of the catalogue.

use super::{is_main, operand};
use hal::dtype::DType;
use hal::dtype::DType::{Float32, Float64, Int32, Int64, UInt32, UInt64};
use hal::operation::{Description, MatrixProduct, Random, RandomSource, Sort};
use hal::random::{Distribution, Generator};

/// Returns the sorts of a dtype: short rows and long ones, values and indices.
pub(super) fn sorts(dtype: DType) -> Vec<Description> {
    let mut operations = Vec::new();
    for length in [4096, 1 << 20] {
        for indices in [false, true] {
            let output = if indices { Int64 } else { dtype };
            operations.push(Description::Sort(Sort {
                rows: 1,
                length,
                indices,
                input: operand(dtype, &[length as isize, 1]),
                output: operand(output, &[length as isize, 1]),
            }));
        }
    }
    operations
}

/// Returns the products of matrices of a dtype: each tile's size, whole sums and parts of them, and
/// matrices that are transposed.
pub(super) fn products(dtype: DType) -> Vec<Description> {
    if !is_main(dtype) && !dtype.is_complex() {
        return Vec::new();
    }
    let along: &[[bool; 2]] = match dtype {
        Float32 | Float64 => &[[true, false], [true, true], [false, false]],
        _ => &[[true, false]],
    };
    let mut operations = Vec::new();
    for [rows, terms, columns] in
        [[16, 16, 16], [16, 4096, 16], [256, 256, 256], [256, 4096, 256], [4096, 4096, 4096]]
    {
        for [left_along, right_along] in along {
            let strides = |along: bool, lines: usize, length: usize| {
                if along { [length as isize, 1] } else { [1, lines as isize] }
            };
            let [row, term] = strides(*left_along, rows, terms);
            let [column, line] = strides(*right_along, columns, terms);
            operations.push(Description::MatrixProduct(MatrixProduct {
                compute: dtype,
                batch: [].into_iter().collect(),
                rows,
                terms,
                columns,
                left: operand(dtype, &[row, term]),
                right: operand(dtype, &[line, column]),
                output: operand(dtype, &[columns as isize, 1]),
            }));
        }
    }
    operations
}

/// Returns what a generator draws, or a seed's sequence.
pub(super) fn draws(generator: Option<Generator>) -> Vec<Description> {
    let source = match generator {
        Some(generator) => RandomSource::States { generator, address: 1 << 20 },
        None => RandomSource::Seed(0),
    };
    let distributions = [
        Distribution::Bits,
        Distribution::Uniform,
        Distribution::HalfOpen,
        Distribution::Normal,
        Distribution::LogNormal { mean: 0.0, deviation: 1.0 },
        Distribution::Poisson { mean: 1.0 },
        Distribution::PoissonOfElement,
    ];
    let dtypes = [Int32, UInt32, Int64, UInt64, Float32, Float64];
    let draw = |distribution, dtype| {
        let output = operand(dtype, &[1]);
        Description::Random(Random { source, distribution, length: 4096, output })
    };
    distributions.iter().flat_map(|it| dtypes.map(|dtype| draw(*it, dtype))).collect()
}
