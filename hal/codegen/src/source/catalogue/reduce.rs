//! Reductions and scans of the catalogue.

use super::{INDICES, indexed, is_main, is_rare, number, operand};
use hal::dtype::DType;
use hal::dtype::DType::{
    Bool, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
};
use hal::function::Reduction;
use hal::operation::{Description, Epilogue, Mapped, Reduce, Scan};

/// Lengths below 4096 that need different kernels.
const FEW: [usize; 4] = [1000, 100, 8, 5];

/// Returns a reduction of the elements of an operand with these extents and strides, along the axes
/// where the output has stride 0.
fn reduction(
    reduction: Reduction,
    compute: DType,
    shape: &[usize],
    input: Mapped,
    output: &[isize],
) -> Description {
    let output = operand(reduction.result(compute), output);
    Description::Reduce(Reduce {
        reduction,
        compute,
        shape: shape.into(),
        input,
        output,
        epilogue: Epilogue::Identity,
    })
}

/// Returns the reductions of arrays of a dtype.
pub(super) fn reduce(function: Reduction, dtype: DType) -> Vec<Description> {
    let of = |shape: &[usize], input: &[isize], output: &[isize]| {
        let input = Mapped::Identity(operand(dtype, input));
        reduction(function, dtype, shape, input, output)
    };
    let main = is_main(dtype);
    let defined = match function {
        Reduction::Sum => true,
        Reduction::Product => main || dtype.is_complex(),
        Reduction::Minimum | Reduction::Maximum => main || dtype == UInt8,
        _ => main || matches!(dtype, Bool | UInt8),
    };
    if !defined || is_rare(dtype) {
        return Vec::new();
    }
    // A long and a short vector; the rows of a matrix use the same kernels as the latter.
    let mut operations = vec![of(&[1 << 24], &[1], &[0]), of(&[4096], &[1], &[0])];
    let often = match function {
        Reduction::Sum => main || dtype.is_complex(),
        Reduction::Any | Reduction::All => dtype == Bool,
        _ => main,
    };
    if often {
        // Vectors with fewer elements, and the rows and columns of matrices.
        operations.extend(FEW.map(|length| of(&[length], &[1], &[0])));
        operations.extend(
            [4096, 1000, 100].map(|length| of(&[1000, length], &[length as isize, 1], &[1, 0])),
        );
        for (rows, columns) in [(1000, 1000), (1 << 20, 16), (100, 100), (8, 1 << 20)] {
            operations.push(of(&[rows, columns], &[columns as isize, 1], &[0, 1]));
        }
    }
    if main && !matches!(function, Reduction::Product | Reduction::Any | Reduction::All) {
        for indices in INDICES {
            for length in [4096, 1 << 24] {
                let input = Mapped::Indexed(indexed(dtype, indices, 1));
                operations.push(reduction(function, dtype, &[length], input, &[0]));
            }
        }
    }
    if function == Reduction::Sum && (main || dtype.is_complex()) {
        for length in [1 << 24, 4096].into_iter().chain(FEW) {
            let input = Mapped::Product(operand(dtype, &[1]), operand(dtype, &[1]));
            operations.push(reduction(function, dtype, &[length], input, &[0]));
        }
    }
    operations
}

/// Returns sums and products in a wider type than the elements', as numpy adds whole numbers, and
/// as `mean` and `nonzero` count.
pub(super) fn widened(function: Reduction) -> Vec<Description> {
    let pairs = [
        (Bool, Int64),
        (Int8, Int64),
        (Int16, Int64),
        (Int32, Int64),
        (UInt8, UInt64),
        (UInt16, UInt64),
        (UInt32, UInt64),
        (Float32, Float64),
        (Int32, Float64),
        (Int64, Float64),
    ];
    let narrow = DType::ALL.into_iter().filter(|it| it.working() != *it && !it.is_integer());
    let mut operations = Vec::new();
    for (dtype, compute) in pairs.into_iter().chain(narrow.map(|it| (it, it.working()))) {
        let mut add = |shape: &[usize], input: &[isize], output: &[isize]| {
            let input = Mapped::Identity(operand(dtype, input));
            operations.push(reduction(function, compute, shape, input, output));
        };
        for length in [1 << 24, 4096].into_iter().chain(FEW) {
            add(&[length], &[1], &[0]);
        }
        add(&[1000, 1000], &[1000, 1], &[1, 0]);
        add(&[1000, 1000], &[1000, 1], &[0, 1]);
    }
    operations
}

/// Returns the scans of arrays of a dtype.
pub(super) fn scans(reduction: Reduction, dtype: DType) -> Vec<Description> {
    let of = |shape: &[usize], strides: &[isize], axis: usize, exclusive: bool| {
        Description::Scan(Scan {
            reduction,
            compute: dtype,
            shape: shape.into(),
            axis,
            exclusive,
            initial: number(dtype),
            input: operand(dtype, strides),
            output: operand(dtype, strides),
        })
    };
    let mut operations = Vec::new();
    for length in [4096, 1 << 24] {
        operations.push(of(&[length], &[1], 0, false));
    }
    if reduction == Reduction::Sum {
        for length in [4096, 1 << 24] {
            operations.push(of(&[length], &[1], 0, true));
        }
        operations.push(of(&[1000, 1000], &[1000, 1], 0, false));
        operations.push(of(&[1 << 20, 64], &[64, 1], 1, false));
        operations.push(of(&[1 << 20, 64], &[64, 1], 0, false));
    }
    operations
}
