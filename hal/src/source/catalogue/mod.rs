//! The builtin operations that are worth compiling ahead of time: every function that many
//! programs call on every dtype that has it where arrays lie in one run of memory, and for what
//! programs do most also slices, broadcast rows, transposed operands and very long arrays.
//!
//! What is not here is compiled at run time, so this list decides about time and size only.

use crate::dtype::DType::{
    Bool, Complex64, Complex128, Float32, Float64, Int32, Int64, UInt8, UInt16, UInt32, UInt64,
};
use crate::dtype::{DType, Frequency, Kind};
use crate::function::{
    BinaryFunction, Cost, Function, Properties, Reduction, UnaryFunction, Usage, Value,
};
use crate::operation::{
    Elementwise, Gather, Indexed, Input, Mapped, Operand, Operation, Reduce, Scan, Scatter,
    Sequence,
};
use crate::scalar::Scalar;
use crate::source::{Plan, Spec};
use std::collections::HashSet;

/// Operations that are compiled as one unit, because programs use them together.
#[derive(Clone, Debug)]
pub struct Group {
    /// A name that no other group has, of letters, digits and underscores.
    pub name: String,
    /// A plan of an operation for each specification; no other group has one of these.
    pub plans: Vec<Plan>,
}

impl Group {
    /// The specifications.
    pub fn specs(&self) -> Vec<Spec> {
        self.plans.iter().map(Plan::spec).collect()
    }
}

/// Everything that is worth compiling ahead of time, in an order that does not change.
pub fn catalogue() -> Vec<Group> {
    let mut catalogue = Catalogue::default();
    for family in FAMILIES {
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
    for reduction in Reduction::ALL.into_iter().filter(|it| it.value() != Value::Bool) {
        let main = DType::ALL.into_iter().filter(|&dtype| is_main(dtype));
        let operations = main.flat_map(|dtype| scans(reduction, dtype));
        catalogue.add(format!("scan_{reduction:?}"), operations);
    }
    catalogue.add("copy".into(), WORDS.iter().flat_map(|&word| moves(word)));
    catalogue.add("take".into(), WORDS.iter().flat_map(|&word| indexed(word)));
    catalogue.add("sequence".into(), DType::ALL.map(sequence));
    catalogue.groups
}

/// Dtypes whose functions share code.
struct Family {
    name: &'static str,
    kinds: &'static [Kind],
}

impl Family {
    fn dtypes(&self) -> impl Iterator<Item = DType> + '_ {
        DType::ALL.into_iter().filter(|dtype| self.kinds.contains(&dtype.kind()))
    }
}

const FAMILIES: [Family; 4] = [
    Family { name: "float", kinds: &[Kind::Float] },
    Family { name: "complex", kinds: &[Kind::Complex] },
    Family { name: "signed", kinds: &[Kind::Bool, Kind::Signed] },
    Family { name: "unsigned", kinds: &[Kind::Unsigned] },
];

fn is_main(dtype: DType) -> bool {
    dtype.frequency() == Frequency::Often
}

fn is_rare(dtype: DType) -> bool {
    dtype.frequency() == Frequency::Seldom
}

/// What moves the elements of every dtype.
const WORDS: [DType; 6] = [UInt8, UInt16, UInt32, UInt64, Complex64, Complex128];

/// What indices are made of.
const INDICES: [DType; 2] = [Int32, Int64];

#[derive(Default)]
struct Catalogue {
    groups: Vec<Group>,
    seen: HashSet<Spec>,
}

impl Catalogue {
    /// Adds a group of what is new among the operations that are defined.
    fn add(&mut self, name: String, operations: impl IntoIterator<Item = Operation>) {
        let plans = operations.into_iter().filter_map(|operation| Plan::new(&operation).ok());
        let plans: Vec<Plan> = plans.filter(|plan| self.seen.insert(plan.spec())).collect();
        if !plans.is_empty() {
            self.groups.push(Group { name: name.to_ascii_lowercase(), plans });
        }
    }
}

/// How the arrays of an operation lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// One run of memory in each.
    Run,
    /// The same, longer than 32-bit indices reach.
    LongRun,
    /// Every other element of a vector.
    Steps,
    /// Part of a matrix: its rows apart but whole packs of 16 bytes.
    Rows,
    /// Part of a matrix: its rows apart and anywhere.
    Pieces,
    /// Whole matrices, the input of this number transposed.
    Transposed(usize),
}

impl Walk {
    /// The shape, and the operand of a number (0 is the output) as it lies in memory.
    fn lay(self, dtype: DType, number: usize) -> (&'static [usize], Operand) {
        let (shape, elements): (&[usize], [isize; 2]) = match self {
            Walk::Run => (&[4096], [1, 0]),
            Walk::LongRun => (&[1 << 32], [1, 0]),
            Walk::Steps => (&[4095], [1 + isize::from(number > 0), 0]),
            Walk::Rows => (&[64, 64], [128, 1]),
            Walk::Pieces => (&[63, 63], [127, 1]),
            Walk::Transposed(input) if number == input + 1 => (&[1024, 1024], [1, 1024]),
            Walk::Transposed(_) => (&[1024, 1024], [1024, 1]),
        };
        (shape, operand(dtype, &elements[..shape.len()]))
    }
}

/// An operand at an address like those of allocations, its strides counted in elements.
fn operand(dtype: DType, elements: &[isize]) -> Operand {
    let strides = elements.iter().map(|stride| stride * dtype.size() as isize).collect();
    Operand { address: 1 << 20, dtype, strides }
}

/// An argument of a function.
#[derive(Clone, Copy)]
enum Slot {
    Array(DType),
    Number(DType),
}
use Slot::{Array, Number};

fn elementwise(
    function: Function,
    compute: DType,
    slots: &[Slot],
    output: DType,
    walk: Walk,
) -> Operation {
    let (shape, output) = walk.lay(output, 0);
    let mut arrays = 0;
    let inputs = slots
        .iter()
        .map(|slot| match *slot {
            Array(dtype) => {
                arrays += 1;
                Input::Array(walk.lay(dtype, arrays).1)
            }
            Number(dtype) => Input::Scalar(number(dtype)),
        })
        .collect();
    Operation::Elementwise(Elementwise { function, compute, shape: shape.into(), inputs, output })
}

/// A number of a type; which one does not matter.
fn number(dtype: DType) -> Scalar {
    let zero = Scalar::new(false);
    // Only records have no numbers, and there are none here.
    zero.cast(dtype).unwrap_or(zero)
}

/// True for what is worth its size: on what is mostly stored and seldom calculated with only
/// functions of few instructions are.
fn is_worth(cost: Cost, compute: DType, dtype: DType) -> bool {
    is_main(dtype) || dtype.is_complex() || (compute == dtype && cost != Cost::Heaviest)
}

fn unary(function: UnaryFunction, dtype: DType) -> Vec<Operation> {
    let Ok(signature) = function.signature(dtype) else { return Vec::new() };
    let Properties { cost, usage, .. } = *function.properties();
    if usage == Usage::Seldom || !is_worth(cost, signature.compute, dtype) {
        return Vec::new();
    }
    let (slots, function) = ([Array(dtype)], Function::Unary(function));
    walks(dtype, false)
        .iter()
        .map(|&walk| elementwise(function, signature.compute, &slots, signature.result, walk))
        .collect()
}

/// The walks worth having for a function on a dtype; `arithmetic` is used most.
fn walks(dtype: DType, arithmetic: bool) -> &'static [Walk] {
    match dtype {
        _ if arithmetic && (is_main(dtype) || dtype.is_complex()) => &[
            Walk::Run,
            Walk::LongRun,
            Walk::Steps,
            Walk::Rows,
            Walk::Pieces,
            Walk::Transposed(0),
            Walk::Transposed(1),
        ],
        Float32 | Float64 => &[Walk::Run, Walk::Pieces],
        _ => &[Walk::Run],
    }
}

fn binary(function: BinaryFunction, dtype: DType) -> Vec<Operation> {
    let Ok(signature) = function.signature(dtype) else { return Vec::new() };
    let (compute, result) = (signature.compute, signature.result);
    let Properties { cost, usage, .. } = *function.properties();
    let arithmetic = usage == Usage::Arithmetic;
    let both = [Array(dtype), Array(dtype)];
    let forms = [both, [Array(dtype), Number(compute)], [Number(compute), Array(dtype)]];
    // Programs write a number first for arithmetic; a comparison is turned round.
    let reflected = usage != Usage::Call;
    if usage == Usage::Seldom || !is_worth(cost, compute, dtype) {
        return Vec::new();
    }
    let function = Function::Binary(function);
    let mut operations = Vec::new();
    for &walk in walks(dtype, arithmetic) {
        let forms = match walk {
            Walk::Transposed(_) => &forms[..1],
            _ if reflected => &forms[..],
            _ => &forms[..2],
        };
        let forms = forms.iter();
        operations.extend(forms.map(|slots| elementwise(function, compute, slots, result, walk)));
    }
    operations
}

/// Arithmetic of arrays of two types, and of whole numbers with a fraction.
fn mixed(function: BinaryFunction) -> Vec<Operation> {
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
        for slots in [[Array(a), Array(b)], [Array(b), Array(a)]] {
            let (compute, result) = (signature.compute, signature.result);
            operations.push(elementwise(function_of, compute, &slots, result, Walk::Run));
        }
    }
    for dtype in [Int32, Int64, UInt8, Bool] {
        for slots in [[Array(dtype), Number(Float64)], [Number(Float64), Array(dtype)]] {
            operations.push(elementwise(function_of, Float64, &slots, Float64, Walk::Run));
        }
    }
    operations
}

fn casts(to: DType) -> Vec<Operation> {
    let copy = Function::Unary(UnaryFunction::Copy);
    let worth = |&from: &DType| from != to && !(is_rare(from) && is_rare(to));
    let others = DType::ALL.into_iter().filter(worth);
    others.map(|from| elementwise(copy, to, &[Array(from)], to, Walk::Run)).collect()
}

/// Selections and linear combinations.
fn ternary(dtype: DType) -> Vec<Operation> {
    if !is_main(dtype) && !dtype.is_complex() && dtype != UInt8 {
        return Vec::new();
    }
    let combination = [Number(dtype), Array(dtype), Number(dtype), Array(dtype)];
    let function = Function::LinearCombination;
    let mut operations = vec![elementwise(function, dtype, &combination, dtype, Walk::Run)];
    let values = [Array(dtype), Number(dtype)];
    let selections = [(Function::Select, Bool), (Function::SelectPositive, dtype.real())];
    for (function, criterion) in selections {
        for yes in values {
            for no in values {
                let slots = [Array(criterion), yes, no];
                operations.push(elementwise(function, dtype, &slots, dtype, Walk::Run));
            }
        }
    }
    operations
}

/// Copies and fills of words.
fn moves(word: DType) -> Vec<Operation> {
    let copy = Function::Unary(UnaryFunction::Copy);
    let copied =
        [Walk::Run, Walk::LongRun, Walk::Steps, Walk::Rows, Walk::Pieces, Walk::Transposed(0)]
            .map(|walk| elementwise(copy, word, &[Array(word)], word, walk));
    let filled = [Walk::Run, Walk::LongRun, Walk::Rows, Walk::Pieces]
        .map(|walk| elementwise(copy, word, &[Number(word)], word, walk));
    copied.into_iter().chain(filled).collect()
}

/// Lengths below 4096 that are reduced in a way of their own each.
const FEW: [usize; 4] = [1000, 100, 8, 5];

/// A reduction of the elements of an operand with these extents and strides, along the axes
/// of which the output has stride 0.
fn reduction(
    reduction: Reduction,
    compute: DType,
    shape: &[usize],
    input: Mapped,
    output: &[isize],
) -> Operation {
    let output = operand(reduction.result(compute), output);
    Operation::Reduce(Reduce { reduction, compute, shape: shape.into(), input, output })
}

fn reduce(function: Reduction, dtype: DType) -> Vec<Operation> {
    let of = |shape: &[usize], input: &[isize], output: &[isize]| {
        let input = Mapped::Identity(operand(dtype, input));
        reduction(function, dtype, shape, input, output)
    };
    let main = is_main(dtype);
    let defined = match function {
        Reduction::Sum => true,
        Reduction::Product => main || dtype.is_complex(),
        Reduction::Minimum | Reduction::Maximum => main || dtype == UInt8,
        Reduction::Any | Reduction::All => main || matches!(dtype, Bool | UInt8),
    };
    if !defined || is_rare(dtype) {
        return Vec::new();
    }
    // A vector: long, short; the rows of a matrix are like the latter.
    let mut operations = vec![of(&[1 << 24], &[1], &[0]), of(&[4096], &[1], &[0])];
    let often = match function {
        Reduction::Sum => main || dtype.is_complex(),
        Reduction::Any | Reduction::All => dtype == Bool,
        _ => main,
    };
    if often {
        // Vectors of fewer elements, the rows of matrices, and their columns.
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
                let input = Mapped::Indexed(named(dtype, indices, 1));
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

/// The elements of a vector, or the rows of a matrix, that indices name.
fn named(dtype: DType, indices: DType, axes: usize) -> Indexed {
    let (base, place): (&[isize], &[isize]) =
        if axes == 1 { (&[0], &[1]) } else { (&[0, 1], &[1, 0]) };
    let row = if axes == 1 { 1 } else { 64 };
    Indexed {
        base: operand(dtype, base),
        indices: operand(indices, place),
        axis_length: 4096,
        axis_stride: row * dtype.size() as isize,
    }
}

/// Taking and putting.
fn indexed(word: DType) -> Vec<Operation> {
    let mut operations = Vec::new();
    for indices in INDICES {
        for axes in [1, 2] {
            let shape = [512, 64][..axes].into();
            let elements: &[isize] = if axes == 1 { &[1] } else { &[64, 1] };
            let place = operand(word, elements);
            let (source, output) = (named(word, indices, axes), place.clone());
            operations.push(Operation::Gather(Gather { shape, source, output }));
            for input in [Input::Array(place), Input::Scalar(number(word))] {
                let (shape, target) = ([512, 64][..axes].into(), named(word, indices, axes));
                operations.push(Operation::Scatter(Scatter { shape, input, target }));
            }
        }
    }
    operations
}

fn scans(reduction: Reduction, dtype: DType) -> Vec<Operation> {
    let of = |shape: &[usize], strides: &[isize], axis: usize, exclusive: bool| {
        Operation::Scan(Scan {
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

fn sequence(dtype: DType) -> Operation {
    let (start, step) = (number(dtype), number(dtype));
    let output = operand(dtype, &[1]);
    Operation::Sequence(Sequence { length: 4096, start, step, output })
}
