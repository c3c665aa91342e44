//! Builtin operations as values. A backend executes them natively or compiles them from source.
//!
//! An [`Operation`] cannot be changed: [`Operation::new`] checks a [`Description`] and converts its scalars to the
//! kernels' types, and no method changes the result. Backends do not repeat the checks or conversions. The array layer
//! guarantees the conditions that a description does not show: shapes agree, every address that the strides reach is
//! inside a live allocation, outputs do not partly overlap inputs, and axes that can be merged are merged
//! ([`crate::iteration`]). So executing an operation is `unsafe`.
//!
//! Strides are in bytes, one per axis of `shape`; zero repeats an element along the axis.

mod check;
mod formula;

pub use formula::{ElementMap, Formula, FormulaValues, Fused, Step, Term};

use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::function::{Function, Reduction};
use crate::scalar::Scalar;
use random::Generator;
use random::distribution::Distribution;
use smallvec::SmallVec;
use std::fmt;

/// `output[i] = function(inputs[0][i], inputs[1][i], ...)` for every index of `shape`.
///
/// Each input is converted to `compute` (with the exceptions in [`Function::argument`]), and the function's
/// value to the output's dtype. Conversions follow C: to bool is "not zero"; a complex number loses its
/// imaginary part when it becomes real; floating point to integer truncates (values out of range saturate
/// or wrap, NaN becomes any value); integers wrap. [`DType::Opaque`] occurs only with
/// `UnaryFunction::Copy`, with all types equal. The output may consist of exactly the same elements as an
/// input; otherwise they are disjoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// The function to apply.
    pub function: Function,
    /// The type that it computes in.
    pub compute: DType,
    /// The extents of the iteration.
    pub shape: Shape,
    /// The inputs, as many as the function takes.
    pub inputs: SmallVec<[Input; 2]>,
    /// The destination of the values.
    pub output: Operand,
}

/// The values that a reduction combines.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapped {
    /// The elements of the input.
    Identity(Operand),
    /// The values of a formula, their squared distances or their positions. They are combined in the order of the
    /// elements of the array that they would be in.
    Formula(Box<FormulaValues>),
    /// The products of two inputs' elements, computed in the reduction's type (a dot product).
    Product(Operand, Operand),
    /// The elements that an array of indices names.
    Indexed(Indexed),
    /// The squared distances of the input's elements (not complex) from the mean of the elements that are combined.
    /// The reduction is `Sum`, in `Float32` or `Float64`.
    SquaredDeviation(Operand),
    /// The index, along the one reduced axis, of the first element equal to the reduction, or of the first
    /// NaN, if any. The reduction is `Minimum` or `Maximum` in the elements' own dtype. The output has
    /// dtype `Int64`.
    Position(Operand),
}

impl Mapped {
    /// Returns what is combined for each element, and the elements: those of an array, or the array in which a formula's
    /// values would be. Returns `None` for products and selected elements.
    pub fn elements(&self) -> Option<(ElementMap, &Operand)> {
        match self {
            Mapped::Identity(elements) => Some((ElementMap::Identity, elements)),
            Mapped::SquaredDeviation(elements) => Some((ElementMap::SquaredDeviation, elements)),
            Mapped::Position(elements) => Some((ElementMap::Position, elements)),
            Mapped::Formula(it) => Some((it.map, &it.values)),
            Mapped::Product(..) | Mapped::Indexed(_) => None,
        }
    }

    fn is_squares(&self) -> bool {
        matches!(self.elements(), Some((ElementMap::SquaredDeviation, _)))
    }
}

/// The last step of a reduction, applied to each complete value in the computing type. All except
/// `Identity` are for sums in inexact types.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Epilogue {
    /// No change.
    #[default]
    Identity,
    /// Division by a number.
    Quotient(f64),
    /// Division by a number, then the square root. The sum combines squared deviations.
    RootOfQuotient(f64),
}

impl Epilogue {
    /// Returns the divisor of a sum; 1 if it is not divided.
    #[must_use]
    pub const fn divisor(self) -> f64 {
        match self {
            Epilogue::Identity => 1.0,
            Epilogue::Quotient(by) | Epilogue::RootOfQuotient(by) => by,
        }
    }
}

/// `output[o] = epilogue(reduction over all indices i of shape that output's strides map to o)`.
///
/// The output's strides are zero on reduced axes; there, the whole axis collapses into one element. The
/// value does not depend on the number of threads: elements are combined in blocks of fixed size whose
/// results are combined in a fixed order. Sums of floating-point numbers are at least as accurate as
/// pairwise summation. An empty reduction stores the identity; the array layer refuses it if the reduction
/// does not have one.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// The reduction.
    pub reduction: Reduction,
    /// The type that elements are converted to and combined in.
    pub compute: DType,
    /// The extents of the iteration, reduced axes included.
    pub shape: Shape,
    /// The elements.
    pub input: Mapped,
    /// The destination of the values.
    pub output: Operand,
    /// The last step applied to each value.
    pub epilogue: Epilogue,
}

/// A running sum, product, minimum or maximum along one axis.
///
/// The order in which elements are combined depends only on shapes, strides and dtypes, so that results are
/// reproducible to the last bit.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// `Sum`, `Product`, `Minimum` or `Maximum`.
    pub reduction: Reduction,
    /// The type that elements are converted to and combined in.
    pub compute: DType,
    /// The extents of the iteration.
    pub shape: Shape,
    /// The axis along which the scan runs.
    pub axis: usize,
    /// True if element `i` of the result excludes element `i` of the input. The first element is then
    /// `initial`.
    pub exclusive: bool,
    /// The first value of an exclusive scan: the identity, if the reduction has one. In an [`Operation`],
    /// it has type `compute`.
    pub initial: Scalar,
    /// The elements.
    pub input: Operand,
    /// The destination of the running values; may be exactly the same elements as the input.
    pub output: Operand,
}

/// Elements selected by an array of integer indices along one axis: the element at index `i` of the iteration is at
/// the address `base.address + sum(i * base.strides) + indices[i] * axis_stride`.
///
/// A negative index counts from the end, as in Python. For an index outside `-axis_length .. axis_length` a gather
/// reads zero and a scatter writes nothing; neither accesses memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Indexed {
    /// The elements. The strides leave out the indexed axis: its stride is zero, and `axis_stride` has the real one.
    pub base: Operand,
    /// The indices, of any integer dtype; they vary over the axes of the operation's shape.
    pub indices: Operand,
    /// The extent of the indexed axis.
    pub axis_length: usize,
    /// The bytes from one element of the indexed axis to the next.
    pub axis_stride: isize,
}

/// `output[i] = source at index i`, converted to the output's dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The extents of the iteration.
    pub shape: Shape,
    /// The elements to read.
    pub source: Indexed,
    /// The destination of the elements.
    pub output: Operand,
}

/// `target at index i = input[i]`, converted to the target's dtype. If several inputs have the same target,
/// one of them wins.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The extents of the iteration.
    pub shape: Shape,
    /// The elements to store.
    pub input: Input,
    /// The elements to write.
    pub target: Indexed,
}

/// `output[i] = start + i * step` in the output's dtype, along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The number of elements.
    pub length: usize,
    /// The first value. In an [`Operation`], it has the output's dtype.
    pub start: Scalar,
    /// The difference between neighbours, of the same dtype as `start`.
    pub step: Scalar,
    /// The destination of the values: one stride.
    pub output: Operand,
}

/// The source of random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RandomSource {
    /// The states of a generator: [`Generator::count`] states, each with [`Generator::state_words`]
    /// 32-bit words, starting at this address. Drawing advances them.
    States {
        /// The kind of the states.
        generator: Generator,
        /// The address of the first state.
        address: u64,
    },
    /// The sequence of this seed from its beginning, generated by Philox4x32-10
    /// ([`random::philox`]).
    Seed(u64),
}

/// `output[e] = draw e / count of state e % count`, where `count` is the number of states.
///
/// For a pseudo-random generator, normal numbers come in pairs: elements `2 k` and `2 k + 1` are
/// one draw. A double-precision number takes two 32-bit words.
#[derive(Clone, Debug, PartialEq)]
pub struct Random {
    /// The source of the numbers.
    pub source: RandomSource,
    /// The distribution of the numbers.
    pub distribution: Distribution,
    /// The number of elements.
    pub length: usize,
    /// The destination of the numbers: one stride, between neighbours.
    pub output: Operand,
}

/// `output[k] = i`, or `output[k] = values[i]`, for the k-th index `i` at which the mask is true, along
/// one axis.
///
/// The mask, the values and the output are contiguous. The output does not overlap the others. At most
/// `most` elements are stored: the mask may have changed since its true elements were counted, and nothing
/// must be written outside the output. If there are fewer true elements, the rest of the output is
/// unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Nonzero {
    /// The number of elements of the mask.
    pub length: usize,
    /// The number of elements of the output.
    pub most: usize,
    /// The mask, of dtype bool: one stride.
    pub mask: Operand,
    /// The values, of any dtype except records: one stride. If `None`, indices are stored.
    pub values: Option<Operand>,
    /// The destination: one stride. Its dtype is the values' dtype; for indices it is int32 or int64, and must be able
    /// to hold them.
    pub output: Operand,
}

/// Rows in ascending order, or the indices that sort them.
///
/// NaN is last. Complex numbers are ordered by their real parts, then by their imaginary parts; among those
/// with a NaN, the ones with a real part that is a number come first. The sort is stable. The input and the
/// output are contiguous in C order; they may be exactly the same elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// The number of rows.
    pub rows: usize,
    /// The number of elements per row.
    pub length: usize,
    /// True if the output is the index of each element in its row, of dtype int64.
    pub indices: bool,
    /// The elements: two strides.
    pub input: Operand,
    /// The sorted elements, or their indices: two strides.
    pub output: Operand,
}

/// Products of matrices: `output[b, i, j]` is the sum over `t` of `left[b, i, t] * right[b, t, j]`.
///
/// The order in which a sum's terms are added depends only on shapes, strides and dtypes. Products and sums
/// of floating-point numbers may be fused. Half precision is summed in single precision. The output does
/// not overlap the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixProduct {
    /// The type that elements are converted to and multiplied in.
    pub compute: DType,
    /// The extents of the batch axes. These precede the axes of the matrices.
    pub batch: Shape,
    /// The rows of each left matrix and of each result.
    pub rows: usize,
    /// The columns of each left matrix, and the rows of each right one.
    pub terms: usize,
    /// The columns of each right matrix and of each result.
    pub columns: usize,
    /// The left matrices: the strides of the batch, the rows and the terms.
    pub left: Operand,
    /// The right matrices: the strides of the batch, the terms and the columns.
    pub right: Operand,
    /// The destination of the values: the strides of the batch, the rows and the columns.
    pub output: Operand,
}

/// The action of an operation, and the memory that it uses.
#[derive(Clone, Debug, PartialEq)]
pub enum Description {
    /// A function of corresponding elements: arithmetic, cast, fill, copy, comparison, select.
    Elementwise(Elementwise),
    /// Several functions of corresponding elements.
    Fused(Fused),
    /// Axes combined into one element.
    Reduce(Reduce),
    /// Running values along an axis.
    Scan(Scan),
    /// Elements picked by indices.
    Gather(Gather),
    /// Elements stored at indices.
    Scatter(Scatter),
    /// Evenly spaced values.
    Sequence(Sequence),
    /// Random numbers.
    Random(Random),
    /// The indices of true elements.
    Nonzero(Nonzero),
    /// Rows in ascending order.
    Sort(Sort),
    /// Products of matrices.
    MatrixProduct(MatrixProduct),
}

macro_rules! described {
    ($($family:ident)*) => {$(
        impl From<$family> for Description {
            #[inline]
            fn from(family: $family) -> Self {
                Description::$family(family)
            }
        }
    )*};
}
described!(Elementwise Fused Reduce Scan Gather Scatter Sequence Random Nonzero Sort MatrixProduct);

/// A builtin operation that has been checked.
#[derive(Clone, Debug, PartialEq)]
#[repr(transparent)]
pub struct Operation(Description);

impl Operation {
    /// Checks a description and seals it.
    ///
    /// # Errors
    /// `InvalidArgument` for the wrong number of inputs or strides, or for an invalid axis; `InvalidType`
    /// for a function that is not defined for the computing type, for records that are calculated with or
    /// converted, and for indices that are not integers.
    #[inline]
    pub fn new(description: impl Into<Description>) -> Result<Self> {
        let mut operation = Operation(description.into());
        operation.0.check()?;
        Ok(operation)
    }

    /// Like [`Operation::new`], but in place, because moving a description takes longer than checking it.
    ///
    /// # Errors
    /// As for [`Operation::new`].
    #[inline]
    pub fn seal(description: &mut Description) -> Result<&Self> {
        description.check()?;
        // SAFETY: an operation has the layout of its description (`repr(transparent)`), which stays
        // borrowed and is therefore not changed.
        Ok(unsafe { &*std::ptr::from_ref(description).cast::<Operation>() })
    }

    /// Returns the checked description.
    #[inline]
    pub fn description(&self) -> &Description {
        &self.0
    }
}

// The inputs and outputs of operations: strided elements, and numbers.

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
    /// One value for every element. In an [`Operation`], it has the type that the function takes
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

const fn is_record(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Opaque)
}

/// Refuses operands whose number of strides differs from the shape's number of axes.
#[inline]
fn check_strides<'a>(
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
