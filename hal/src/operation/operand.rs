//! The inputs and outputs of operations: strided elements, and numbers.

use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::fmt;

/// The extents of an array, stored inline up to four axes.
pub type Shape = SmallVec<[usize; 4]>;

/// The strides of an array in bytes, stored inline up to four axes.
pub type Strides = SmallVec<[isize; 4]>;

/// Formats a shape as Python prints it.
pub fn shape_text<T: fmt::Display>(shape: &[T]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => {
            let parts: Vec<String> = shape.iter().map(T::to_string).collect();
            format!("({})", parts.join(", "))
        }
    }
}

/// Typed, strided elements in device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The address of the element whose indices are all zero.
    pub address: u64,
    /// The type of the elements.
    pub dtype: DType,
    /// Bytes from one element to the next, one per axis of the operation's shape.
    pub strides: Strides,
}

/// An input of an operation: an array, described by `A`, or a number, described by `S`. For a generated
/// kernel only the element type of each is known: `Input<DType, DType>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input<A = Operand, S = Scalar> {
    /// Elements in device memory.
    Array(A),
    /// One value for every element. In an [`Operation`](super::Operation), it has the type that the function takes
    /// (see [`Function::argument`](crate::function::Function::argument)). For a copy, this is the output's type; for a
    /// selection's condition, it is [`DType::Bool`].
    Scalar(S),
}

impl Input {
    /// Returns the type of the input's elements.
    pub fn dtype(&self) -> DType {
        match self {
            Input::Array(operand) => operand.dtype,
            Input::Scalar(scalar) => scalar.dtype(),
        }
    }
}

pub(super) const fn is_record(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Opaque)
}

/// Refuses operands whose number of strides differs from the shape's number of axes.
#[inline]
pub(super) fn check_strides<'a>(
    call: &'static str,
    axes: usize,
    operands: impl IntoIterator<Item = &'a Operand>,
) -> Result<()> {
    for operand in operands {
        if operand.strides.len() != axes {
            return Err(wrong_strides(call, axes, operand.strides.len()));
        }
    }
    Ok(())
}

#[cold]
fn wrong_strides(call: &'static str, axes: usize, given: usize) -> Error {
    Error::invalid(
        call,
        format!(
            "an operand has {given} as its number of strides; one for each axis, {axes}, is needed"
        ),
    )
}
