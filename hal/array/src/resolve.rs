//! Selection of the function, arguments and computing type for a requested operation.

use super::promote::{Constant, Number, Typed, common_dtype};
use hal::dtype::{DType, Kind};
use hal::error::{Error, Result};
use hal::function::{BinaryFunction, Compute, Function, UnaryFunction};
use hal::scalar::Scalar;
use smallvec::SmallVec;

/// Returns the function and the computing type of a selection.
pub(super) fn selection<A: Typed>(
    then: A,
    otherwise: A,
    positive: bool,
) -> Result<(Function, DType)> {
    let compute = common_dtype(&[then, otherwise])?;
    Ok((if positive { Function::SelectPositive } else { Function::Select }, compute))
}

/// Returns true if integer arguments are converted to floating point before the common type is
/// determined. By numpy's rule, the common type may then be narrower than the floating-point type for the
/// integers' common type.
const fn has_fractions(function: BinaryFunction) -> bool {
    matches!(function.properties().compute, Compute::Inexact)
}

/// A function, its arguments and the type that it computes in.
pub(super) type Resolved<A> = (Function, SmallVec<[A; 2]>, DType);

/// Returns the function, the arguments and the computing type of a binary operation. Common powers become
/// a cheaper function with the same value.
pub(super) fn resolve<A: Typed>(
    function: BinaryFunction,
    left: A,
    right: A,
) -> Result<Resolved<A>> {
    let common = match function {
        // As in numpy, a whole exponent does not affect the type of the value.
        BinaryFunction::Ldexp if is_whole(right) => common_dtype(&[left])?,
        _ => {
            let common = common_dtype(&[left, right])?;
            match (left.dtype(), right.dtype()) {
                (Some(a), Some(b)) if !common.is_inexact() && has_fractions(function) => {
                    a.inexact().promote(b.inexact())?
                }
                _ => common,
            }
        }
    };
    if function.is_comparison() {
        if let Some(resolved) = resolve_whole(function, left, right, common) {
            return Ok(resolved);
        }
        if let Some(resolved) = resolve_mixed(function, left, right, common) {
            return Ok(resolved);
        }
    }
    // The functions are equal for truth values, and these normalise each nonzero byte to 1.
    let function = match function {
        BinaryFunction::Fmin if common == DType::Bool => BinaryFunction::Minimum,
        BinaryFunction::Fmax if common == DType::Bool => BinaryFunction::Maximum,
        other => other,
    };
    let signature = function.signature(common)?;
    let compute = signature.compute;
    if function == BinaryFunction::Power {
        let exponent = match right.constant() {
            None => None,
            Some(Constant::Scalar(scalar)) => Some(scalar.cast(compute)?),
            Some(Constant::Number(number)) => Some(number.to_scalar(compute)?),
        };
        if let Some(exponent) = exponent {
            return resolve_power(left, exponent, compute);
        }
    }
    Ok((Function::Binary(function), SmallVec::from_slice(&[left, right]), compute))
}

/// Returns true for an argument of integers or booleans.
fn is_whole<A: Typed>(argument: A) -> bool {
    match argument.constant() {
        Some(Constant::Number(number)) => matches!(number, Number::Bool(_) | Number::Integer(_)),
        _ => argument.dtype().is_some_and(|dtype| dtype.is_integer() || dtype == DType::Bool),
    }
}

fn resolve_power<A: Typed>(left: A, exponent: Scalar, compute: DType) -> Result<Resolved<A>> {
    let value = exponent.as_f64();
    if compute.kind() == Kind::Signed && value < 0.0 {
        return Err(Error::invalid(
            "power",
            format!("integers to negative integer powers are not allowed (exponent {value})"),
        ));
    }
    let is_real = exponent == Scalar::new(value).cast(compute)?;
    let unary = |function| Ok((Function::Unary(function), SmallVec::from_slice(&[left]), compute));
    let is_bool = left.constant().is_none() && left.dtype() == Some(DType::Bool);
    match value {
        1.0 if is_real => unary(UnaryFunction::Copy),
        // 0 and 1 equal their own powers.
        1.0.. if is_real && is_bool => unary(UnaryFunction::Copy),
        0.5 if is_real && compute.is_inexact() => unary(UnaryFunction::Sqrt),
        2.0 if is_real => Ok((
            Function::Binary(BinaryFunction::Multiply),
            SmallVec::from_slice(&[left, left]),
            compute,
        )),
        _ => Ok((
            Function::Binary(BinaryFunction::Power),
            SmallVec::from_slice(&[left, exponent.into()]),
            compute,
        )),
    }
}

/// Resolves a comparison of signed integers with `UInt64`. Their common type, `Float64`, cannot
/// distinguish neighbours above 2^53.
fn resolve_mixed<A: Typed>(
    function: BinaryFunction,
    left: A,
    right: A,
    common: DType,
) -> Option<Resolved<A>> {
    let (Some(a), Some(b)) = (left.dtype(), right.dtype()) else { return None };
    if common != DType::Float64 || !a.is_integer() || !b.is_integer() {
        return None;
    }
    let (function, arguments) = match a.kind() {
        Kind::Signed => (function, [left, right]),
        _ => (function.swapped(), [right, left]),
    };
    Some((Function::CompareMixed(function), SmallVec::from_slice(&arguments), DType::Int64))
}

/// Resolves a comparison of integers. A whole number outside the array's type is an error in arithmetic,
/// but has a well-defined order: it compares like an infinity of the same sign.
fn resolve_whole<A: Typed>(
    function: BinaryFunction,
    left: A,
    right: A,
    common: DType,
) -> Option<Resolved<A>> {
    // With truth values, the common type is the number's own, and the number has to fit (numpy's rule).
    let is_typed = |argument: &A| argument.dtype().is_none_or(DType::is_integer);
    if !common.is_integer() || ![left, right].iter().all(is_typed) {
        return None;
    }
    let mut compute = common;
    let mut convert = |argument: A| {
        let Some(Constant::Number(number)) = argument.constant() else { return argument };
        let is_negative = match number {
            Number::Integer(value) => value < 0,
            Number::Huge(value) => value < 0.0,
            _ => return argument,
        };
        match number.to_scalar(common) {
            Ok(value) => value.into(),
            Err(_) => {
                compute = DType::Float64;
                let side = if is_negative { f64::NEG_INFINITY } else { f64::INFINITY };
                Number::Float(side).into()
            }
        }
    };
    let arguments = [convert(left), convert(right)];
    Some((Function::Binary(function), SmallVec::from_slice(&arguments), compute))
}
