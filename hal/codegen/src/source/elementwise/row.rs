//! The source of a formula as a loop over contiguous rows, which the host's C++ compiler turns into vector
//! instructions.

use super::{AccessPattern, Computation as _, Key};
use crate::source::ctype;
use hal::dtype::{DType, Kind};
use hal::function::{BinaryFunction, Cost, Function, UnaryFunction};
use hal::operation::{Formula, Input, Step};

/// The variable with the address of the loop.
///
/// The loop takes the addresses of the arrays, inputs before outputs, the addresses of the numbers, and the number of
/// elements.
pub const ROW: &str = "fused_row";

/// The options for the text of [`row_source`].
pub const ROW_OPTIONS: &[&str] = &["-fmad=false", "-w"];

/// Returns CUDA C with a loop over a row of a formula's elements, in which each array is contiguous or, if
/// `is_repeated` returns true for its number, one element. Returns `None` if a compiler may compute other bits than the
/// host backend's own loops do, apart from the bits of a NaN, or if a compiled loop would not be faster.
pub fn row_source(formula: &Formula, is_repeated: impl Fn(usize) -> bool) -> Option<String> {
    if !formula.steps().iter().all(|step| is_exact(formula, step)) {
        return None;
    }
    let name = "row";
    let key = Key { computation: formula.clone(), access: AccessPattern::Contiguous, wide: true };
    let mut variables = String::new();
    let (mut arrays, mut numbers) = (0, 0);
    for (position, input) in key.inputs() {
        let (Input::Array(dtype) | Input::Scalar(dtype)) = input;
        let stored = ctype::stored(dtype);
        variables += &match input {
            Input::Array(_) if is_repeated(arrays) => {
                format!("    const {stored} in{position} = *(const {stored}*)arrays[{arrays}];\n")
            }
            Input::Array(_) => {
                format!("    const {stored}* in{position} = (const {stored}*)arrays[{arrays}];\n")
            }
            Input::Scalar(_) => {
                format!("    const {stored} in{position} = *(const {stored}*)numbers[{numbers}];\n")
            }
        };
        match input {
            Input::Array(_) => arrays += 1,
            Input::Scalar(_) => numbers += 1,
        }
    }
    for (output, dtype) in key.outputs() {
        let (stored, array) = (ctype::stored(dtype), arrays + output);
        variables += &format!("    {stored}* out{output} = ({stored}*)arrays[{array}];\n");
    }
    let call = key.call(name, |position, dtype| {
        let array = key.arrays().take_while(|&(other, _)| other < position).count();
        let index = if is_repeated(array) { "" } else { "[i]" };
        format!("Stored<{}>::get(in{position}{index})", ctype::value(dtype))
    });
    let stores = key.results(name, &call, |output, dtype, value| {
        let kind = ctype::value(dtype);
        format!("                out{output}[i] = Stored<{kind}>::put({value});\n")
    });
    Some(formula.prelude().enclose(&format!(
        "{}typedef void (*Row)(char* const*, const char* const*, u64);
static __device__ void {name}(char* const* arrays, const char* const* numbers, u64 count) {{
{variables}#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (u64 i = 0; i < count; ++i) {{
{stores}    }}
}}
extern \"C\" {{
__device__ Row {ROW} = {name};
}}
",
        formula.definition(name)
    )))
}

/// Returns true if each right compiler computes the same bits for a step.
fn is_exact(formula: &Formula, step: &Step) -> bool {
    let is_exact = match step.function {
        Function::Unary(function) => {
            // The sign of a NaN depends on the compiler, and some constants on the number of their digits.
            function.properties().cost != Cost::Heavy
                && !matches!(
                    function,
                    UnaryFunction::SignBit
                        | UnaryFunction::Fraction
                        | UnaryFunction::Mantissa
                        | UnaryFunction::Exponent
                        | UnaryFunction::Radians
                        | UnaryFunction::Degrees
                )
        }
        Function::Binary(function) => {
            !matches!(function.properties().cost, Cost::Heavy | Cost::Heaviest)
                && !matches!(function, BinaryFunction::CopySign | BinaryFunction::NextAfter)
        }
        _ => true,
    };
    let converts = |from: DType, to: DType| {
        // The result of a number that an integer type does not have depends on the instruction.
        is_plain(from) && is_plain(to) && (from.kind() != Kind::Float || !to.is_integer())
    };
    let arguments = step.arguments.iter().enumerate().all(|(position, &term)| {
        let from = formula.dtype(term);
        converts(from, step.function.argument(position, step.compute).unwrap_or(from))
    });
    is_exact && arguments && converts(step.function.result(step.compute), step.dtype)
}

/// Returns true for the types with which a processor computes.
pub(super) fn is_plain(dtype: DType) -> bool {
    match dtype.kind() {
        Kind::Float => dtype.working() == dtype,
        Kind::Bool | Kind::Unsigned | Kind::Signed => true,
        _ => false,
    }
}
