//! Builtin operations as values: what a backend executes natively or compiles from source.
//!
//! An [`Operation`] is sealed: [`Operation::new`] checks a [`Description`] and brings its scalars
//! into the types that kernels take, and nothing changes it afterwards. Backends neither check nor
//! convert again. What no description shows, the array layer answers for: shapes agree, every
//! address that the strides reach lies inside a live allocation, outputs do not partly overlap
//! inputs, and axes that can be merged are merged ([`crate::iteration`]). So executing an
//! operation is `unsafe`.
//!
//! Strides are in bytes, one per axis of `shape`; zero repeats an element along the axis.

mod check;
mod random;

use crate::dtype::DType;
use crate::error::Result;
use crate::function::{Function, Reduction};
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::fmt;

pub use random::{Random, RandomSource};

/// The extents of an array, without an allocation up to four axes.
pub type Shape = SmallVec<[usize; 4]>;

/// The strides of an array in bytes, without an allocation up to four axes.
pub type Strides = SmallVec<[isize; 4]>;

/// A shape as Python prints it.
pub fn shape_text<T: fmt::Display>(shape: &[T]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => {
            let parts: Vec<String> = shape.iter().map(T::to_string).collect();
            format!("({})", parts.join(", "))
        }
    }
}

/// A typed, strided place in device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The address of the element whose indices are all zero.
    pub address: u64,
    /// The type of the elements.
    pub dtype: DType,
    /// Bytes from one element to the next, one per axis of the operation's shape.
    pub strides: Strides,
}

/// An input of an operation: an array or a number. The parameters are what is known of each; where kernels
/// are generated that is their types, an `Input<DType, DType>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input<A = Operand, S = Scalar> {
    /// Elements in device memory.
    Array(A),
    /// One value for every element. In an [`Operation`] it has the type that the function takes
    /// (see [`Function::argument`]), of a copy that of the output, and of a selection's condition
    /// [`DType::Bool`]: whether it selects.
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

/// `output[i] = function(inputs[0][i], inputs[1][i], ...)` for every index of `shape`.
///
/// Each input is converted to `compute` (but see [`Function::argument`]), the function's value
/// to the output's dtype. Conversions follow C: to bool is "not zero", a complex number
/// loses its imaginary part when it becomes real, floating point to integer truncates
/// (what does not fit saturates or wraps, NaN becomes any value), integers wrap.
/// [`DType::Opaque`] occurs only with `UnaryFunction::Copy`, all types equal.
/// The output may be the very same elements as an input; otherwise they are disjoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    /// What is applied.
    pub function: Function,
    /// The type that it computes in.
    pub compute: DType,
    /// The extents of the iteration.
    pub shape: Shape,
    /// As many as the function takes.
    pub inputs: SmallVec<[Input; 2]>,
    /// Where the values go.
    pub output: Operand,
}

/// What a reduction combines.
#[derive(Clone, Debug, PartialEq)]
pub enum Mapped {
    /// The elements of the input.
    Identity(Operand),
    /// The products of two inputs' elements, computed in the reduction's type (a dot product).
    Product(Operand, Operand),
    /// The elements that an array of indices names.
    Indexed(Indexed),
    /// The squares of the distances of the input's elements, which are not complex, from the mean of those
    /// that are combined with them. The reduction is `Sum`, in `Float32` or `Float64`.
    SquaredDeviation(Operand),
    /// The index, along the one reduced axis, of the first element that the reduction returns, `Minimum` or
    /// `Maximum` in the elements' own dtype; of the first that is no number if any is. The output has
    /// dtype `Int64`.
    Position(Operand),
}

/// What is made of a reduction's values when they are whole, in the type that they were combined in.
/// All but `Identity` are for sums in inexact types.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Epilogue {
    /// Nothing.
    #[default]
    Identity,
    /// They are divided by a number.
    Quotient(f64),
    /// They are divided by a number, and then their square roots are taken. The sum is one of
    /// [`Mapped::SquaredDeviation`].
    RootOfQuotient(f64),
}

impl Epilogue {
    /// Returns what a sum is divided by; 1 where it is not.
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
/// The output's strides are zero on reduced axes; there the whole axis collapses into one
/// element. The value does not depend on the number of threads: elements are combined in
/// blocks of fixed size whose results are combined in a fixed order. Sums of floating-point
/// numbers lose no more than pairwise summation does. An empty reduction stores the
/// identity; the array layer refuses one where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// How elements are combined.
    pub reduction: Reduction,
    /// The type that elements are converted to and combined in.
    pub compute: DType,
    /// The extents of the iteration, reduced axes included.
    pub shape: Shape,
    /// The elements.
    pub input: Mapped,
    /// Where the values go.
    pub output: Operand,
    /// What becomes of each value before.
    pub epilogue: Epilogue,
}

/// A running sum, product, minimum or maximum along one axis.
///
/// The order in which elements are combined depends on shapes, strides and dtypes only, so that
/// results repeat to the last bit.
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
    /// True if element `i` of the result excludes element `i` of the input; the first one is
    /// then `initial`.
    pub exclusive: bool,
    /// What an exclusive scan starts with, in an [`Operation`] of type `compute`; the identity where
    /// there is one.
    pub initial: Scalar,
    /// The elements.
    pub input: Operand,
    /// Where the running values go; may be the very same elements as the input.
    pub output: Operand,
}

/// Elements named by an array of integer indices along one axis: the element at index `i`
/// of the iteration is `base + sum(i * strides) + index[i] * axis_stride`.
///
/// A negative index counts from the end, as in Python. One that lies outside
/// `-axis_length .. axis_length` is read as zero and not written, as a texture fetch does:
/// it never touches memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Indexed {
    /// The elements; the indexed axis has stride zero here.
    pub base: Operand,
    /// The indices, of any integer dtype; they vary over the axes of the operation's shape.
    pub indices: Operand,
    /// Extent of the indexed axis.
    pub axis_length: usize,
    /// Bytes from one element of the indexed axis to the next.
    pub axis_stride: isize,
}

/// `output[i] = source at index i`, converted to the output's dtype.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The extents of the iteration.
    pub shape: Shape,
    /// Where the elements come from.
    pub source: Indexed,
    /// Where they go.
    pub output: Operand,
}

/// `target at index i = input[i]`, converted to the target's dtype. Where an element is
/// named more than once, one of the inputs wins.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter {
    /// The extents of the iteration.
    pub shape: Shape,
    /// Where the elements come from.
    pub input: Input,
    /// Where they go.
    pub target: Indexed,
}

/// `output[i] = start + i * step` in the output's dtype, along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The number of elements.
    pub length: usize,
    /// The first value, in an [`Operation`] of the output's dtype.
    pub start: Scalar,
    /// The difference, likewise.
    pub step: Scalar,
    /// Where the values go: one stride.
    pub output: Operand,
}

/// `output[k] = i`, or `output[k] = values[i]`, for the k-th index `i` at which the mask is true, along
/// one axis.
///
/// The mask, the values and the output have no gaps; the output is apart from the others. Of more
/// true elements than `most` the first `most` are stored, so that nothing is written outside the
/// output although the mask may have changed since its elements were counted; of fewer, the rest of
/// the output stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Nonzero {
    /// The elements of the mask.
    pub length: usize,
    /// The elements of the output.
    pub most: usize,
    /// The mask, of dtype bool: one stride.
    pub mask: Operand,
    /// The values, of any dtype but records: one stride. Without them indices are stored.
    pub values: Option<Operand>,
    /// Where the values go, of their dtype, or the indices, of dtype int32 or int64, which has to hold
    /// them: one stride.
    pub output: Operand,
}

/// Rows in ascending order, or the indices that sort them.
///
/// NaN is last. Complex numbers are ordered by their real parts, then by their imaginary ones; of those
/// with NaN the ones whose real part is a number come first. Equal elements keep their order. The
/// input and the output lie in C order without gaps; they may be the very same elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// The number of rows.
    pub rows: usize,
    /// The elements of each.
    pub length: usize,
    /// True if the output is the index of each element in its row, of dtype int64.
    pub indices: bool,
    /// The elements: two strides.
    pub input: Operand,
    /// The elements in order, or their indices: two strides.
    pub output: Operand,
}

/// Products of matrices: `output[b, i, j]` is the sum over `t` of `left[b, i, t] * right[b, t, j]`.
///
/// The order in which a sum's terms are added depends on shapes, strides and dtypes only. Products
/// and sums of floating-point numbers may be fused. Half precision is summed in single precision. The
/// output is apart from the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixProduct {
    /// The type that elements are converted to and multiplied in.
    pub compute: DType,
    /// The extents of the axes before those of the matrices.
    pub batch: Shape,
    /// The rows of each left matrix and of each result.
    pub rows: usize,
    /// The columns of each left matrix, and the rows of each right one.
    pub terms: usize,
    /// The columns of each right matrix and of each result.
    pub columns: usize,
    /// The left matrices: strides of the batch, of the rows, of the terms.
    pub left: Operand,
    /// The right matrices: strides of the batch, of the terms, of the columns.
    pub right: Operand,
    /// Where the values go: strides of the batch, of the rows, of the columns.
    pub output: Operand,
}

/// What an operation does, with which memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Description {
    /// A function of corresponding elements: arithmetic, cast, fill, copy, comparison, select.
    Elementwise(Elementwise),
    /// Axes combined into one element.
    Reduce(Reduce),
    /// Running values along an axis.
    Scan(Scan),
    /// Elements picked by indices.
    Gather(Gather),
    /// Elements stored by indices.
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
described!(Elementwise Reduce Scan Gather Scatter Sequence Random Nonzero Sort MatrixProduct);

/// A builtin operation that has been checked.
#[derive(Clone, Debug, PartialEq)]
#[repr(transparent)]
pub struct Operation(Description);

impl Operation {
    /// Checks a description and seals it.
    ///
    /// # Errors
    /// `InvalidArgument` for another number of inputs or strides than the function and the shape
    /// have, or an axis that there is not; `InvalidType` for a function that is not defined for the
    /// computing type, for records that are calculated with or converted, and for indices that are
    /// not integers.
    #[inline]
    pub fn new(description: impl Into<Description>) -> Result<Self> {
        let mut operation = Operation(description.into());
        operation.0.check()?;
        Ok(operation)
    }

    /// Does what [`Operation::new`] documents, where the description lies: to move one takes longer
    /// than to check it.
    ///
    /// # Errors
    /// Those of [`Operation::new`].
    #[inline]
    pub fn seal(description: &mut Description) -> Result<&Self> {
        description.check()?;
        // SAFETY: an operation has the layout of its description (`repr(transparent)`), which is
        // borrowed for as long, so that nothing changes it.
        Ok(unsafe { &*std::ptr::from_ref(description).cast::<Operation>() })
    }

    /// Returns what the operation does.
    #[inline]
    pub fn description(&self) -> &Description {
        &self.0
    }
}
