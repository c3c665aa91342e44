//! Element-wise operations of the catalogue.

use super::{ArrayLayout, is_main, is_rare, number};
use crate::source::kernel_key::InputType;
use hal::dtype::DType;
use hal::dtype::DType::{Bool, Complex64, Complex128, Float32, Float64, Int32, Int64, UInt8};
use hal::function::{BinaryFunction, Cost, Function, Properties, UnaryFunction, Usage};
use hal::operation::Input::{Array, Scalar as Number};
use hal::operation::{Description, Elementwise};

fn elementwise(
    function: Function,
    compute: DType,
    arguments: &[InputType],
    output: DType,
    layout: ArrayLayout,
) -> Description {
    let (shape, output) = layout.operand(output, 0);
    let mut arrays = 0;
    let inputs = arguments
        .iter()
        .map(|argument| match *argument {
            Array(dtype) => {
                arrays += 1;
                Array(layout.operand(dtype, arrays).1)
            }
            Number(dtype) => Number(number(dtype)),
        })
        .collect();
    Description::Elementwise(Elementwise { function, compute, shape: shape.into(), inputs, output })
}

/// Returns true if a function is worth its size. For dtypes that are mostly stored and seldom
/// calculated with, only functions of few instructions are. Functions that few programs call are
/// compiled for the other dtypes only.
fn is_worth(cost: Cost, usage: Usage, compute: DType, dtype: DType) -> bool {
    if usage == Usage::Seldom {
        return is_main(dtype);
    }
    is_main(dtype) || dtype.is_complex() || (compute == dtype && cost != Cost::Heaviest)
}

/// Returns the operations for a function of one argument on a dtype.
pub(super) fn unary(function: UnaryFunction, dtype: DType) -> Vec<Description> {
    let Ok(signature) = function.signature(dtype) else { return Vec::new() };
    let Properties { cost, usage, .. } = *function.properties();
    if !is_worth(cost, usage, signature.compute, dtype) {
        return Vec::new();
    }
    let (arguments, function) = ([Array(dtype)], Function::Unary(function));
    layouts(dtype, false)
        .iter()
        .map(|&layout| {
            elementwise(function, signature.compute, &arguments, signature.result, layout)
        })
        .collect()
}

/// Returns the layouts that are worth compiling for a function on a dtype; `arithmetic` functions
/// are the most frequent.
fn layouts(dtype: DType, arithmetic: bool) -> &'static [ArrayLayout] {
    match dtype {
        _ if arithmetic && (is_main(dtype) || dtype.is_complex()) => &[
            ArrayLayout::Contiguous,
            ArrayLayout::LongContiguous,
            ArrayLayout::Strided,
            ArrayLayout::AlignedRows,
            ArrayLayout::UnalignedRows,
            ArrayLayout::Transposed(0),
            ArrayLayout::Transposed(1),
        ],
        Float32 | Float64 => &[ArrayLayout::Contiguous, ArrayLayout::UnalignedRows],
        _ => &[ArrayLayout::Contiguous],
    }
}

/// Returns the operations for a function of two arguments of a dtype, or of one array and a number.
pub(super) fn binary(function: BinaryFunction, dtype: DType) -> Vec<Description> {
    let Ok(signature) = function.signature(dtype) else { return Vec::new() };
    let (compute, result) = (signature.compute, signature.result);
    let Properties { cost, usage, .. } = *function.properties();
    let arithmetic = usage == Usage::Arithmetic;
    let both = [Array(dtype), Array(dtype)];
    let forms = [both, [Array(dtype), Number(compute)], [Number(compute), Array(dtype)]];
    // Programs write a number first for arithmetic; a comparison is reversed instead.
    let reflected = usage != Usage::Call;
    if !is_worth(cost, usage, compute, dtype) {
        return Vec::new();
    }
    let function = Function::Binary(function);
    let mut operations = Vec::new();
    for &layout in layouts(dtype, arithmetic) {
        let forms = match layout {
            ArrayLayout::Transposed(_) => &forms[..1],
            _ if reflected => &forms[..],
            _ => &forms[..2],
        };
        let forms = forms.iter();
        operations.extend(
            forms.map(|arguments| elementwise(function, compute, arguments, result, layout)),
        );
    }
    operations
}

/// Returns arithmetic on arrays of two types, and on whole numbers with a fraction.
pub(super) fn mixed(function: BinaryFunction) -> Vec<Description> {
    let arrays = [
        (Float32, Float64),
        (Int32, Float32),
        (Int32, Float64),
        (Int64, Float64),
        (Int32, Int64),
        (Float32, Complex64),
        (Float64, Complex128),
    ];
    let function_of = Function::Binary(function);
    let mut operations = Vec::new();
    for (a, b) in arrays {
        let Ok(signature) = a.promote(b).and_then(|common| function.signature(common)) else {
            continue;
        };
        for arguments in [[Array(a), Array(b)], [Array(b), Array(a)]] {
            let (compute, result) = (signature.compute, signature.result);
            operations.push(elementwise(
                function_of,
                compute,
                &arguments,
                result,
                ArrayLayout::Contiguous,
            ));
        }
    }
    for dtype in [Int32, Int64, UInt8, Bool] {
        for arguments in [[Array(dtype), Number(Float64)], [Number(Float64), Array(dtype)]] {
            operations.push(elementwise(
                function_of,
                Float64,
                &arguments,
                Float64,
                ArrayLayout::Contiguous,
            ));
        }
    }
    operations
}

/// Returns the conversions to a dtype.
pub(super) fn casts(to: DType) -> Vec<Description> {
    let copy = Function::Unary(UnaryFunction::Copy);
    let worth = |&from: &DType| from != to && !(is_rare(from) && is_rare(to));
    let others = DType::ALL.into_iter().filter(worth);
    others.map(|from| elementwise(copy, to, &[Array(from)], to, ArrayLayout::Contiguous)).collect()
}

/// Returns selections and linear combinations.
pub(super) fn ternary(dtype: DType) -> Vec<Description> {
    if !is_main(dtype) && !dtype.is_complex() && dtype != UInt8 {
        return Vec::new();
    }
    let combination = [Number(dtype), Array(dtype), Number(dtype), Array(dtype)];
    let function = Function::LinearCombination;
    let mut operations =
        vec![elementwise(function, dtype, &combination, dtype, ArrayLayout::Contiguous)];
    let values = [Array(dtype), Number(dtype)];
    let selections = [(Function::Select, Bool), (Function::SelectPositive, dtype.real())];
    for (function, criterion) in selections {
        for yes in values {
            for no in values {
                let arguments = [Array(criterion), yes, no];
                operations.push(elementwise(
                    function,
                    dtype,
                    &arguments,
                    dtype,
                    ArrayLayout::Contiguous,
                ));
            }
        }
    }
    operations
}

/// Returns copies and fills of words.
pub(super) fn moves(word: DType) -> Vec<Description> {
    let copy = Function::Unary(UnaryFunction::Copy);
    let copied = [
        ArrayLayout::Contiguous,
        ArrayLayout::LongContiguous,
        ArrayLayout::Strided,
        ArrayLayout::AlignedRows,
        ArrayLayout::UnalignedRows,
        ArrayLayout::Transposed(0),
    ]
    .map(|layout| elementwise(copy, word, &[Array(word)], word, layout));
    let filled = [
        ArrayLayout::Contiguous,
        ArrayLayout::LongContiguous,
        ArrayLayout::AlignedRows,
        ArrayLayout::UnalignedRows,
    ]
    .map(|layout| elementwise(copy, word, &[Number(word)], word, layout));
    copied.into_iter().chain(filled).collect()
}
