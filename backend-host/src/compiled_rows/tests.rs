//! Compiled loops against the same formulas in pieces.

use super::{WORTH_COMPILING, compile_row, find};
use codegen::source::row_source;
use hal::function::{BinaryFunction, Function, Reduction, UnaryFunction};
use hal::operation::{
    Description, ElementMap, Epilogue, Formula, FormulaValues, Fused, Input, Mapped, Operand,
    Operation, Reduce, Step, Term,
};
use hal::{DType, Scalar};
use host_kernels::CompiledRow;
use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

/// More than a piece, and no multiple of a vector.
const COUNT: usize = 20_011;

/// Returns elements of a type, among them special values, in aligned memory.
fn elements(dtype: DType, seed: u32) -> Vec<u128> {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        1e-45,
        -1e-45,
        1e-310,
        2e-38,
        3e38,
        -3e38,
        1e308,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        8388609.5,
        4503599627370497.5,
        127.0,
        128.0,
        255.0,
        256.0,
        -128.0,
        -129.0,
        32767.0,
        65536.0,
        2147483648.0,
        -2147483649.0,
        9.3e18,
        1.9e19,
        3.0,
        7.0,
        10.0,
    ];
    let mut packed = vec![0_u8; COUNT * dtype.size()];
    for (place, bytes) in packed.chunks_exact_mut(dtype.size()).enumerate() {
        let mixed =
            (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_usize.wrapping_add(2 * seed as usize));
        let value = match place % 3 {
            // Each pair appears.
            0 => special[place / 3 / special.len().pow(seed - 1) % special.len()],
            _ => (mixed >> 20) as f64 / 1e9 - 8e3,
        };
        let scalar = Scalar::new(value).cast(dtype).expect("a number");
        bytes.copy_from_slice(scalar.bytes());
    }
    let mut words = vec![0_u128; packed.len().div_ceil(16)];
    // SAFETY: the words have as many bytes.
    unsafe { words.as_mut_ptr().cast::<u8>().copy_from(packed.as_ptr(), packed.len()) };
    words
}

fn zeros(dtype: DType) -> Vec<u128> {
    vec![0; (COUNT * dtype.size()).div_ceil(16)]
}

fn operand(words: &mut [u128], dtype: DType) -> Operand {
    let address = words.as_mut_ptr().expose_provenance() as u64;
    Operand { address, dtype, strides: [dtype.size() as isize].into_iter().collect() }
}

fn step(function: Function, compute: DType, dtype: DType, arguments: &[Term]) -> Step {
    Step { function, compute, dtype, arguments: arguments.into() }
}

fn bytes(words: &[u128]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Asserts that values are the same to the last bit. A NaN equals any other NaN.
fn assert_same(dtype: DType, pieces: &[u128], compiled: &[u128], of: &dyn Debug) {
    let (pieces, compiled) = (bytes(pieces), bytes(compiled));
    let is_nan = |bytes: &[u8]| match dtype {
        DType::Float32 => f32::from_le_bytes(bytes.try_into().expect("4")).is_nan(),
        DType::Float64 => f64::from_le_bytes(bytes.try_into().expect("8")).is_nan(),
        _ => false,
    };
    let pairs = pieces.chunks(dtype.size()).zip(compiled.chunks(dtype.size()));
    for (place, (a, b)) in pairs.enumerate() {
        assert!(
            a == b || is_nan(a) && is_nan(b),
            "element {place} is {a:?} in pieces and {b:?} compiled: {of:?}"
        );
    }
}

/// Compares the steps' values of two arrays and a number in pieces and by a compiled loop.
fn check(dtype: DType, steps: &[Step]) {
    let outputs: Vec<u8> = (0..steps.len() as u8).collect();
    let formula = Formula::new(&inputs(dtype), steps, &outputs).expect("a formula");
    let row = compile_row(&(formula.clone(), 0)).expect("a compiler").expect("a loop");
    let (mut x, mut y) = (elements(dtype, 1), elements(dtype, 2));
    let mut results = [None, Some(&row)].map(|row| {
        let mut arrays: Vec<Vec<u128>> = steps.iter().map(|step| zeros(step.dtype)).collect();
        let outputs = arrays.iter_mut().zip(steps);
        let operation = Fused {
            formula: formula.clone(),
            shape: [COUNT].into_iter().collect(),
            inputs: vec![
                Input::Array(operand(&mut x, dtype)),
                Input::Array(operand(&mut y, dtype)),
                Input::Scalar(Scalar::new(2.0).cast(dtype).expect("a number")),
            ],
            outputs: outputs.map(|(words, step)| operand(words, step.dtype)).collect(),
        };
        run(operation, row);
        arrays
    });
    let [pieces, compiled] = &mut results;
    for ((step, pieces), compiled) in steps.iter().zip(pieces).zip(compiled) {
        assert_same(step.dtype, pieces, compiled, step);
    }
}

fn run(operation: impl Into<Description>, row: Option<&CompiledRow>) {
    let operation = Operation::new(operation).expect("an operation");
    // SAFETY: the callers' arrays are alive; an output is separate, or the same elements as an input.
    unsafe { host_kernels::execute_with(&operation, row, &|| None) }.expect("executed");
}

fn inputs(dtype: DType) -> [Input<DType, DType>; 3] {
    [Input::Array(dtype), Input::Array(dtype), Input::Scalar(dtype)]
}

/// Returns a step for each function of a dtype.
fn steps(dtype: DType) -> Vec<Step> {
    let (x, y) = (Term::Input(0), Term::Input(1));
    let unary = UnaryFunction::ALL.iter().map(|&it| (Function::Unary(it), vec![x]));
    let binary = BinaryFunction::ALL.iter().map(|&it| (Function::Binary(it), vec![x, y]));
    let others = [
        (Function::Select, vec![x, y, Term::Input(2)]),
        (Function::SelectPositive, vec![x, y, x]),
        (Function::LinearCombination, vec![Term::Input(2), x, Term::Input(2), y]),
    ];
    let compute = |function: Function| match function {
        Function::Unary(it) => it.signature(dtype).ok().map(|it| it.compute),
        Function::Binary(it) => it.signature(dtype).ok().map(|it| it.compute),
        _ => Some(dtype),
    };
    let made = unary.chain(binary).chain(others).filter_map(|(function, arguments)| {
        let compute = compute(function)?;
        Some(step(function, compute, function.result(compute), &arguments))
    });
    // Some functions have no value for truth values.
    made.filter(|step| Formula::new(&inputs(dtype), std::slice::from_ref(step), &[0]).is_ok())
        .collect()
}

#[test]
fn every_function_has_the_bits_of_the_pieces() {
    let all = [
        DType::Float32,
        DType::Float64,
        DType::Bool,
        DType::Int8,
        DType::UInt8,
        DType::Int16,
        DType::UInt16,
        DType::Int32,
        DType::UInt32,
        DType::Int64,
        DType::UInt64,
    ];
    let takes_all = std::env::var_os("PYGPU_TEST_ALL").is_some();
    for &dtype in &all[..if takes_all { all.len() } else { 1 }] {
        let is_exact = |step: &Step| {
            let formula = Formula::new(&inputs(dtype), std::slice::from_ref(step), &[0]);
            row_source(&formula.expect("a formula"), |_| false).is_some()
        };
        let exact: Vec<Step> = steps(dtype).into_iter().filter(is_exact).collect();
        assert!(exact.len() > 15, "{dtype}: {exact:?}");
        exact.chunks(Formula::MOST_OUTPUTS).for_each(|some| check(dtype, some));
    }
}

#[test]
fn functions_with_other_bits_stay_in_pieces() {
    let single = DType::Float32;
    let (exp, sign) = (UnaryFunction::Exp, UnaryFunction::SignBit);
    let refused = [
        (Function::Unary(exp), single, single),
        (Function::Unary(sign), single, DType::Bool),
        (Function::Unary(UnaryFunction::Copy), DType::Int32, DType::Int32),
        (Function::Unary(UnaryFunction::Sqrt), DType::Float16, DType::Float16),
        (Function::Unary(UnaryFunction::Copy), DType::Complex64, DType::Complex64),
    ];
    for (function, compute, dtype) in refused {
        let one = step(function, compute, dtype, &[Term::Input(0)]);
        let formula = Formula::new(&inputs(single), std::slice::from_ref(&one), &[0]);
        assert_eq!(row_source(&formula.expect("a formula"), |_| false), None, "{one:?}");
    }
}

/// Returns `(x + y) * x`, whose first step is not stored.
fn product() -> Formula {
    let single = DType::Float32;
    let (x, y) = (Term::Input(0), Term::Input(1));
    let binary = |function, arguments: [Term; 2]| {
        step(Function::Binary(function), single, single, &arguments)
    };
    let steps =
        [binary(BinaryFunction::Add, [x, y]), binary(BinaryFunction::Multiply, [Term::Step(0), x])];
    Formula::new(&[Input::Array(single), Input::Array(single)], &steps, &[1]).expect("a formula")
}

#[test]
fn rows_of_other_arrangements_have_the_same_bits() {
    let single = DType::Float32;
    let row = compile_row(&(product(), 2)).expect("a compiler").expect("a loop");
    // The second array has one element for each row, and the rows of the first one are apart.
    let (rows, columns) = (40, 400);
    let (mut x, mut y) = (elements(single, 1), elements(single, 2));
    let strided = |words: &mut [u128], strides: [isize; 2]| Operand {
        strides: strides.into_iter().collect(),
        ..operand(words, single)
    };
    let [pieces, compiled] = [None, Some(&row)].map(|row| {
        let mut result = zeros(single);
        let operation = Fused {
            formula: product(),
            shape: [rows, columns].into_iter().collect(),
            inputs: vec![
                Input::Array(strided(&mut x, [2000, 4])),
                Input::Array(strided(&mut y, [4, 0])),
            ],
            outputs: vec![strided(&mut result, [1600, 4])],
        };
        run(operation, row);
        result
    });
    assert_same(single, &pieces, &compiled, &"rows");
    // Into the first array itself.
    let row = compile_row(&(product(), 0)).expect("a compiler").expect("a loop");
    let [pieces, compiled] = [None, Some(&row)].map(|row| {
        let mut x = elements(single, 1);
        let inputs = [&mut x, &mut y].map(|words| Input::Array(operand(words, single)));
        let outputs = vec![operand(&mut x, single)];
        let shape = [COUNT].into_iter().collect();
        run(Fused { formula: product(), shape, inputs: inputs.into(), outputs }, row);
        x
    });
    assert_same(single, &pieces, &compiled, &"in place");
    // As the elements of a sum.
    let [pieces, compiled] = [None, Some(&row)].map(|row| {
        let mut sum = zeros(single);
        let (from, to) = (operand(&mut [], single), operand(&mut sum, single));
        let values = FormulaValues {
            formula: product(),
            map: ElementMap::Identity,
            values: Operand { address: 0, ..from },
            shape: [COUNT].into_iter().collect(),
            inputs: [&mut x, &mut y].map(|words| Input::Array(operand(words, single))).into(),
        };
        let reduce = Reduce {
            reduction: Reduction::Maximum,
            compute: single,
            shape: [COUNT].into_iter().collect(),
            input: Mapped::Formula(Box::new(values)),
            output: Operand { strides: [0].into_iter().collect(), ..to },
            epilogue: Epilogue::Identity,
        };
        run(reduce, row);
        sum
    });
    assert_same(single, &pieces[..1], &compiled[..1], &"a reduction");
}

#[test]
fn a_formula_is_compiled_once_it_has_run_often() {
    let single = DType::Float32;
    let (mut x, mut y, mut result) = (elements(single, 1), elements(single, 2), zeros(single));
    let mut operation = |count: usize| {
        let inputs = [&mut x, &mut y].map(|words| Input::Array(operand(words, single)));
        let outputs = vec![operand(&mut result, single)];
        let shape = [count].into_iter().collect();
        let fused = Fused { formula: product(), shape, inputs: inputs.into(), outputs };
        Operation::new(fused).expect("an operation")
    };
    let short = operation(COUNT);
    assert!((0..100).all(|_| find(&short).is_none()), "the work of 100 runs is not enough");
    // It is only counted, not executed.
    let long = operation(WORTH_COMPILING as usize);
    let end = Instant::now() + Duration::from_secs(120);
    while find(&long).is_none() {
        assert!(Instant::now() < end, "the formula is not compiled");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(find(&short).is_some(), "the loop is for every length");
}
