//! The builtin operations that are compiled ahead of time: every common function on every dtype
//! that supports it, for contiguous arrays. The most frequent operations are also compiled for
//! slices, broadcast rows, transposed operands and very long arrays.
//!
//! Everything else is compiled at run time, so this list only affects time and size.

mod elementwise;
mod reduce;

use crate::source::ctype::{Frequency, frequency};
use crate::source::{KernelSpec, Plan};
use elementwise::{binary, casts, mixed, moves, ternary, unary};
use hal::dtype::DType::{
    Complex64, Complex128, Float32, Float64, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
};
use hal::dtype::{DType, Kind};
use hal::function::{BinaryFunction, Reduction, UnaryFunction, Usage, ValueType};
use hal::operation::{
    Description, Gather, Indexed, Input, MatrixProduct, Nonzero, Operand, Operation, Random,
    RandomSource, Scatter, Sequence, Sort,
};
use hal::random::{Distribution, Generator};
use hal::scalar::Scalar;
use reduce::{reduce, scans, widened};
use std::collections::HashSet;

/// Operations that are compiled as one unit, because programs use them together.
#[derive(Clone, Debug)]
pub struct Group {
    /// A unique name of letters, digits and underscores.
    pub name: String,
    /// A plan of an operation for each specification; each specification occurs in one group only.
    pub plans: Vec<Plan>,
}

impl Group {
    /// Returns the specifications of the group's kernels.
    pub fn specs(&self) -> Vec<KernelSpec> {
        self.plans.iter().map(Plan::spec).cloned().collect()
    }
}

/// The groups that programs use first. Their code takes the least time to unpack.
const COMMON: [&str; 7] = [
    "add_float",
    "multiply_float",
    "subtract_float",
    "divide_float",
    "copy",
    "cast_float",
    "reduce_sum_float",
];

/// Returns all groups that are worth compiling ahead of time, in a fixed order: common ones first.
pub fn catalogue() -> Vec<Group> {
    let mut catalogue = Catalogue::default();
    for family in DTYPE_FAMILIES {
        for function in UnaryFunction::ALL {
            if function != UnaryFunction::Copy {
                let operations = family.dtypes().flat_map(|dtype| unary(function, dtype));
                catalogue.add(format!("{function:?}_{}", family.name), operations);
            }
        }
        for function in BinaryFunction::ALL {
            let operations = family.dtypes().flat_map(|dtype| binary(function, dtype));
            catalogue.add(format!("{function:?}_{}", family.name), operations);
        }
        for reduction in Reduction::ALL {
            let operations = family.dtypes().flat_map(|dtype| reduce(reduction, dtype));
            catalogue.add(format!("reduce_{reduction:?}_{}", family.name), operations);
        }
        let operations = family.dtypes().flat_map(casts);
        catalogue.add(format!("cast_{}", family.name), operations);
        let operations = family.dtypes().flat_map(ternary);
        catalogue.add(format!("select_{}", family.name), operations);
    }
    let is_arithmetic = |it: &BinaryFunction| it.properties().usage == Usage::Arithmetic;
    for function in BinaryFunction::ALL.into_iter().filter(is_arithmetic) {
        catalogue.add(format!("{function:?}_mixed"), mixed(function));
    }
    for reduction in Reduction::ALL.into_iter().filter(|it| it.value() != ValueType::Bool) {
        let main = DType::ALL.into_iter().filter(|&dtype| is_main(dtype));
        let operations = main.flat_map(|dtype| scans(reduction, dtype));
        catalogue.add(format!("scan_{reduction:?}"), operations);
    }
    catalogue.add("reduce_sum_widened".into(), widened(Reduction::Sum));
    for dtype in DType::ALL {
        catalogue.add(format!("sort_{dtype}"), sorts(dtype));
        catalogue.add(format!("product_{dtype}"), products(dtype));
    }
    for generator in [None].into_iter().chain(Generator::ALL.map(Some)) {
        let name = generator.map_or("seed".into(), |it| format!("{it:?}"));
        catalogue.add(format!("random_{name}"), draws(generator));
    }
    catalogue.add("copy".into(), WORDS.iter().flat_map(|&word| moves(word)));
    catalogue.add("take".into(), WORDS.iter().flat_map(|&word| gathers_and_scatters(word)));
    catalogue.add("nonzero".into(), nonzero());
    catalogue.add("sequence".into(), DType::ALL.map(sequence));
    let place = |group: &Group| COMMON.iter().position(|it| *it == group.name);
    catalogue.groups.sort_by_key(|it| place(it).unwrap_or(COMMON.len()));
    catalogue.groups
}

#[derive(Default)]
struct Catalogue {
    groups: Vec<Group>,
    seen: HashSet<KernelSpec>,
}

impl Catalogue {
    /// Adds a group of the new plans among the operations that are defined.
    fn add(&mut self, name: String, operations: impl IntoIterator<Item = Description>) {
        let checked = operations.into_iter().filter_map(|it| Operation::new(it).ok());
        let plans = checked.filter_map(|operation| Plan::new(&operation).ok());
        let plans: Vec<Plan> = plans.filter(|plan| self.seen.insert(plan.spec().clone())).collect();
        if !plans.is_empty() {
            self.groups.push(Group { name: name.to_ascii_lowercase(), plans });
        }
    }
}

fn nonzero() -> impl Iterator<Item = Description> {
    let search = |output: DType, values: Option<Operand>| {
        let (mask, output) = (operand(DType::Bool, &[1]), operand(output, &[1]));
        Description::Nonzero(Nonzero { length: 4096, most: 4096, mask, values, output })
    };
    let indices = [DType::Int32, DType::Int64].map(|dtype| search(dtype, None));
    let values = DType::ALL.map(|dtype| search(dtype, Some(operand(dtype, &[1]))));
    indices.into_iter().chain(values)
}

fn sequence(dtype: DType) -> Description {
    let (start, step) = (number(dtype), number(dtype));
    let output = operand(dtype, &[1]);
    Description::Sequence(Sequence { length: 4096, start, step, output })
}

// The dtypes of the catalogue: those that share code, and those that programs use most.

/// Dtypes whose functions share code.
struct DTypeFamily {
    name: &'static str,
    kinds: &'static [Kind],
}

impl DTypeFamily {
    /// Returns the dtypes of the family.
    fn dtypes(&self) -> impl Iterator<Item = DType> + '_ {
        DType::ALL.into_iter().filter(|dtype| self.kinds.contains(&dtype.kind()))
    }
}

const DTYPE_FAMILIES: [DTypeFamily; 4] = [
    DTypeFamily { name: "float", kinds: &[Kind::Float] },
    DTypeFamily { name: "complex", kinds: &[Kind::Complex] },
    DTypeFamily { name: "signed", kinds: &[Kind::Bool, Kind::Signed] },
    DTypeFamily { name: "unsigned", kinds: &[Kind::Unsigned] },
];

/// Returns true for the dtypes that programs calculate with most.
fn is_main(dtype: DType) -> bool {
    frequency(dtype) == Frequency::Often
}

/// Returns true for the dtypes that programs seldom use.
fn is_rare(dtype: DType) -> bool {
    frequency(dtype) == Frequency::Seldom
}

/// The words that move the elements of every dtype.
const WORDS: [DType; 6] = [UInt8, UInt16, UInt32, UInt64, Complex64, Complex128];

/// The dtypes of indices.
const INDICES: [DType; 2] = [Int32, Int64];

// Gathers and scatters of the catalogue.

/// Returns the gathers and scatters of a machine word.
fn gathers_and_scatters(word: DType) -> Vec<Description> {
    let mut operations = Vec::new();
    for indices in INDICES {
        for axes in [1, 2] {
            let shape = [512, 64][..axes].into();
            let elements: &[isize] = if axes == 1 { &[1] } else { &[64, 1] };
            let array = operand(word, elements);
            let (source, output) = (indexed(word, indices, axes), array.clone());
            operations.push(Description::Gather(Gather { shape, source, output }));
            for input in [Input::Array(array), Input::Scalar(number(word))] {
                let (shape, target) = ([512, 64][..axes].into(), indexed(word, indices, axes));
                operations.push(Description::Scatter(Scatter { shape, input, target }));
            }
        }
    }
    operations
}

// Sorts, products of matrices and random numbers of the catalogue.

/// Returns the sorts of a dtype: short rows and long ones, values and indices.
fn sorts(dtype: DType) -> Vec<Description> {
    let mut operations = Vec::new();
    for length in [4096, 1 << 20] {
        for indices in [false, true] {
            let output = if indices { Int64 } else { dtype };
            operations.push(Description::Sort(Sort {
                rows: 1,
                length,
                indices,
                input: operand(dtype, &[length as isize, 1]),
                // Another array: rows of bytes are sorted by digits unless the result replaces them.
                output: Operand { address: 1 << 30, ..operand(output, &[length as isize, 1]) },
            }));
        }
    }
    operations
}

/// Returns the products of matrices of a dtype: each tile's size, whole sums and parts of them, and
/// matrices that are transposed.
fn products(dtype: DType) -> Vec<Description> {
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

/// Returns the operations that draw from a generator, or from a seed's sequence.
fn draws(generator: Option<Generator>) -> Vec<Description> {
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

// Typical memory layouts of operands.

/// The memory layout of an operation's arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ArrayLayout {
    /// Each array is contiguous.
    Contiguous,
    /// Contiguous, and longer than 32-bit indices can address.
    LongContiguous,
    /// Every other element of a vector.
    Strided,
    /// Part of a matrix: its rows have gaps, but consist of whole, aligned packs of 16 bytes.
    AlignedRows,
    /// Part of a matrix: its rows have gaps and any alignment.
    UnalignedRows,
    /// Whole matrices, where the input with this number is transposed.
    Transposed(usize),
}

impl ArrayLayout {
    /// Returns the shape, and the operand with a number (0 is the output).
    fn operand(self, dtype: DType, number: usize) -> (&'static [usize], Operand) {
        let (shape, elements): (&[usize], [isize; 2]) = match self {
            ArrayLayout::Contiguous => (&[4096], [1, 0]),
            ArrayLayout::LongContiguous => (&[1 << 32], [1, 0]),
            ArrayLayout::Strided => (&[4095], [1 + isize::from(number > 0), 0]),
            ArrayLayout::AlignedRows => (&[64, 64], [128, 1]),
            ArrayLayout::UnalignedRows => (&[63, 63], [127, 1]),
            ArrayLayout::Transposed(input) if number == input + 1 => (&[1024, 1024], [1, 1024]),
            ArrayLayout::Transposed(_) => (&[1024, 1024], [1024, 1]),
        };
        (shape, operand(dtype, &elements[..shape.len()]))
    }
}

/// Returns an operand with a typical address of an allocation, and strides counted in elements.
fn operand(dtype: DType, elements: &[isize]) -> Operand {
    let strides = elements.iter().map(|stride| stride * dtype.size() as isize).collect();
    Operand { address: 1 << 20, dtype, strides }
}

/// Returns a number of a type; its value does not matter.
fn number(dtype: DType) -> Scalar {
    let zero = Scalar::new(false);
    // Only records cannot be cast, and they do not occur here.
    zero.cast(dtype).unwrap_or(zero)
}

/// Returns the elements of a vector, or the rows of a matrix, at indices.
fn indexed(dtype: DType, indices: DType, axes: usize) -> Indexed {
    let (base, index_strides): (&[isize], &[isize]) =
        if axes == 1 { (&[0], &[1]) } else { (&[0, 1], &[1, 0]) };
    let row = if axes == 1 { 1 } else { 64 };
    Indexed {
        base: operand(dtype, base),
        indices: operand(indices, index_strides),
        axis_length: 4096,
        axis_stride: row * dtype.size() as isize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hal::function::Function;
    use hal::operation::Elementwise;

    /// The specification of a function of whole arrays of one dtype, if it is defined.
    fn of_arrays(function: Function, dtype: DType) -> Option<KernelSpec> {
        let (signature, arguments) = match function {
            Function::Unary(unary) => (unary.signature(dtype).ok()?, 1),
            Function::Binary(binary) => (binary.signature(dtype).ok()?, 2),
            _ => return None,
        };
        let array = |dtype: DType| operand(dtype, &[1]);
        let operation = Elementwise {
            function,
            compute: signature.compute,
            shape: [1000].into_iter().collect(),
            inputs: (0..arguments).map(|_| Input::Array(array(dtype))).collect(),
            output: array(signature.result),
        };
        KernelSpec::of(&Operation::new(Description::Elementwise(operation)).ok()?).ok()
    }

    #[test]
    fn every_function_of_the_main_dtypes_is_compiled_ahead_of_time() {
        let ahead: HashSet<KernelSpec> = catalogue().iter().flat_map(Group::specs).collect();
        let unary = UnaryFunction::ALL.into_iter().map(Function::Unary);
        let functions: Vec<_> =
            unary.chain(BinaryFunction::ALL.into_iter().map(Function::Binary)).collect();
        let (mut main, mut others, mut missing) = (0, [0, 0], Vec::new());
        for &function in &functions {
            for dtype in DType::ALL {
                let Some(spec) = of_arrays(function, dtype) else { continue };
                let is_there = ahead.contains(&spec);
                if is_main(dtype) {
                    main += 1;
                    if !is_there {
                        missing.push(format!("{function:?} of {dtype}"));
                    }
                } else {
                    others[usize::from(is_there)] += 1;
                }
            }
        }
        assert!(main > 200 && others[1] > 300, "{main}, {others:?}");
        assert!(missing.is_empty(), "{missing:?}");
    }
}
