//! The functions that builtin operations apply to elements, and the types they work in.
//!
//! Every function is one row of a table ([`mod@table`]); the enumerations, signatures and names
//! come from it.

#[doc(hidden)]
pub mod table;

pub use table::{Compute, Cost, Kinds, Start, Usage, ValueType};

use crate::dtype::{DType, Kind};
use crate::enumeration::enumeration;
use crate::error::{Error, Result};
use crate::{binary_functions, reductions, unary_functions};

/// The row of a function of one or two elements in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// The name in CUDA C and in the names of kernels.
    pub name: &'static str,
    /// The kinds of elements that the function is defined for.
    pub kinds: Kinds,
    /// The type that it computes in.
    pub compute: Compute,
    /// The type of its value.
    pub value: ValueType,
    /// The number of instructions, by class.
    pub cost: Cost,
    /// The way in which programs call it.
    pub usage: Usage,
    /// numpy's name, if numpy has the function.
    pub numpy: Option<&'static str>,
    /// The documentation of the function.
    pub doc: &'static str,
}

/// Defines the enumeration of a table, and the properties of each value.
macro_rules! functions {
    ($(#[$outer:meta])* $name:ident: $(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal
            ($kinds:ident, $compute:ident, $value:ident, $cost:ident, $($usage:ident)?)
            ($($numpy:literal)?);
    )*) => {
        enumeration! {
            $(#[$outer])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #[non_exhaustive]
            pub enum $name { $($(#[doc = $doc])+ $variant,)* }
        }

        impl $name {
            const PROPERTIES: [Properties; $name::ALL.len()] = [$(Properties {
                name: $text,
                kinds: Kinds::$kinds,
                compute: Compute::$compute,
                value: ValueType::$value,
                cost: Cost::$cost,
                usage: Usage::of(&[$(Usage::$usage)?]),
                numpy: table::first(&[$($numpy)?]),
                doc: concat!($($doc, "\n"),+),
            }),*];

            /// Returns the function's row of the table.
            #[inline]
            pub const fn properties(self) -> &'static Properties {
                &Self::PROPERTIES[self as usize]
            }
        }
    };
}

macro_rules! unary {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal
            ($kinds:ident, $compute:ident, $value:ident, $cost:ident $(, $usage:ident)?)
            $(= $numpy:literal)? $(-> $module:ident($python:ident))?;
    )*) => {
        functions! {
            /// A function of one element.
            ///
            /// A program passes the function to an array whose dtype is known only at run time:
            ///
            /// ```
            /// use gpuarray::{DType, DeviceArray, function::UnaryFunction};
            ///
            /// # fn main() -> gpuarray::Result<()> {
            /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
            /// let x = DeviceArray::from_slice(&device, &[1.0f32, 4.0])?.into_untyped();
            /// let roots = x.unary(UnaryFunction::Sqrt)?;
            /// assert_eq!(DeviceArray::<f32>::from_untyped(roots)?.to_vec()?, [1.0, 2.0]);
            /// assert_eq!(UnaryFunction::Sqrt.signature(DType::Int32)?.result, DType::Float64);
            /// # Ok(())
            /// # }
            /// ```
            UnaryFunction: $(
                $(#[doc = $doc])+
                $variant $text ($kinds, $compute, $value, $cost, $($usage)?) ($($numpy)?);
            )*
        }
    };
}
unary_functions!(unary);

macro_rules! binary {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal
            ($kinds:ident, $compute:ident, $value:ident, $cost:ident, $usage:ident)
            $(= $numpy:literal)? $(-> $module:ident($python:ident($x:ident, $y:ident)))?;
    )*) => {
        functions! {
            /// A function of two elements.
            ///
            /// Arrays and numbers are operands of the same function:
            ///
            /// ```
            /// use gpuarray::{Array, DeviceArray, Number, function::BinaryFunction};
            ///
            /// # fn main() -> gpuarray::Result<()> {
            /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
            /// let x = DeviceArray::from_slice(&device, &[5i32, 6, 7])?.into_untyped();
            /// let rest = Array::binary(BinaryFunction::Remainder, (&x).into(), Number::Integer(4).into())?;
            /// assert_eq!(DeviceArray::<i32>::from_untyped(rest)?.to_vec()?, [1, 2, 3]);
            /// # Ok(())
            /// # }
            /// ```
            BinaryFunction: $(
                $(#[doc = $doc])+
                $variant $text ($kinds, $compute, $value, $cost, $usage) ($($numpy)?);
            )*
        }
    };
}
binary_functions!(binary);

/// A function that an element-wise operation applies. Its arguments are the inputs, in order.
///
/// A program that reads formulas checks the number of arguments first:
///
/// ```
/// use gpuarray::function::{BinaryFunction, Function, UnaryFunction};
///
/// # fn main() -> gpuarray::Result<()> {
/// assert_eq!(Function::Unary(UnaryFunction::Negative).arity(), 1);
/// assert_eq!(Function::Binary(BinaryFunction::Add).arity(), 2);
/// assert_eq!(Function::Select.arity(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// One argument.
    Unary(UnaryFunction),
    /// Two arguments.
    Binary(BinaryFunction),
    /// Three arguments: the second where the first is not zero, else the third. The first keeps its own
    /// type; the other two are converted to the computing type.
    Select,
    /// Three arguments: the second where the first is greater than zero, else the third. The first keeps its
    /// own type; the other two are converted to the computing type.
    SelectPositive,
    /// Four arguments `a, x, b, y`: `a * x + b * y`, rounded after each step.
    LinearCombination,
    /// An exact comparison of two arguments whose types no integer type can hold together. The first
    /// argument is converted to `Int64`, the second to `UInt64`. It computes in `Int64`. For the other order
    /// of the types, use [`BinaryFunction::swapped`].
    CompareMixed(BinaryFunction),
}

/// The types that a function works in: its arguments are converted to `compute`, and its value is of type
/// `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The type that the arguments are converted to.
    pub compute: DType,
    /// The type of the function's value before it is converted to the output's type.
    pub result: DType,
}

impl Function {
    /// Returns the number of arguments.
    pub const fn arity(self) -> usize {
        match self {
            Function::Unary(_) => 1,
            Function::Binary(_) | Function::CompareMixed(_) => 2,
            Function::Select | Function::SelectPositive => 3,
            Function::LinearCombination => 4,
        }
    }

    /// Returns numpy's name, or this library's for a function that numpy lacks.
    pub fn name(self) -> &'static str {
        let name = |it: &Properties| it.numpy.unwrap_or(it.name);
        match self {
            Function::Unary(function) => name(function.properties()),
            Function::Binary(function) | Function::CompareMixed(function) => {
                name(function.properties())
            }
            Function::Select => "where",
            Function::SelectPositive => "if_positive",
            Function::LinearCombination => "axpbyz",
        }
    }

    /// Returns the type of the function's value when it computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        match self {
            Function::Unary(function) => function.result(compute),
            Function::Binary(function) | Function::CompareMixed(function) => {
                function.result(compute)
            }
            _ => compute,
        }
    }

    /// Returns true if the function takes many instructions when it computes in `compute`.
    pub fn is_long(self, compute: DType) -> bool {
        match self {
            Function::Unary(function) => function.properties().cost.is_long(compute),
            Function::Binary(function) => function.properties().cost.is_long(compute),
            _ => false,
        }
    }

    /// Returns true if the function can compute in `compute`; false for every record.
    pub(crate) fn computes_in(self, compute: DType) -> bool {
        let admits = |properties: &Properties| {
            properties.kinds.contain(compute.kind()) && properties.compute.of(compute) == compute
        };
        match self {
            Function::Unary(function) => admits(function.properties()),
            Function::Binary(function) => admits(function.properties()),
            Function::CompareMixed(function) => function.is_comparison() && compute == DType::Int64,
            Function::Select | Function::SelectPositive | Function::LinearCombination => true,
        }
    }

    /// Returns the type to which the argument at `position` is converted when the function computes in
    /// `compute`; `None` for the condition of a selection: a condition keeps its own type.
    pub const fn argument(self, position: usize, compute: DType) -> Option<DType> {
        match (self, position) {
            (Function::Select | Function::SelectPositive, 0) => None,
            (Function::CompareMixed(_), 1) => Some(DType::UInt64),
            _ => Some(compute),
        }
    }
}

/// Returns the error for a function that is not defined for a type.
#[cold]
fn undefined(function: &Properties, dtype: DType, hint: &str) -> Error {
    let function = function.numpy.unwrap_or(function.name);
    Error::invalid_type("elementwise", format!("{function} is not defined for dtype {dtype}{hint}"))
}

impl UnaryFunction {
    /// Returns the type of the value when the function computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        self.properties().value.of(compute)
    }

    /// Returns the types for an argument of type `input`, by numpy's rules.
    ///
    /// # Errors
    /// `InvalidType` if the function is not defined for `input`.
    pub fn signature(self, input: DType) -> Result<Signature> {
        let properties = self.properties();
        if !properties.kinds.contain(input.kind()) {
            return Err(undefined(properties, input, ""));
        }
        let compute = properties.compute.of(input);
        Ok(Signature { compute, result: properties.value.of(compute) })
    }
}

impl BinaryFunction {
    /// Returns true for comparisons, including equality.
    pub const fn is_comparison(self) -> bool {
        use BinaryFunction::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
    }

    /// Returns the comparison that has the same value with its arguments exchanged; any other function
    /// unchanged.
    pub const fn swapped(self) -> Self {
        use BinaryFunction::{Greater, GreaterEqual, Less, LessEqual};
        match self {
            Less => Greater,
            LessEqual => GreaterEqual,
            Greater => Less,
            GreaterEqual => LessEqual,
            other => other,
        }
    }

    /// Returns the type of the value when the function computes in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        self.properties().value.of(compute)
    }

    /// Returns the types for arguments whose common type is `common`, by numpy's rules.
    ///
    /// # Errors
    /// `InvalidType` if the function is not defined for `common`.
    pub fn signature(self, common: DType) -> Result<Signature> {
        let properties = self.properties();
        if !properties.kinds.contain(common.kind()) {
            let is_difference = matches!((self, common.kind()), (Self::Subtract, Kind::Bool));
            let hint =
                if is_difference { "; use not_equal or bitwise_xor (a != b, a ^ b)" } else { "" };
            return Err(undefined(properties, common, hint));
        }
        let compute = properties.compute.of(common);
        Ok(Signature { compute, result: properties.value.of(compute) })
    }
}

macro_rules! reduction {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $text:literal ($value:ident, $start:ident, $combine:ident)
            = $numpy:literal $(-> $module:ident($python:ident))?;
    )*) => {
        enumeration! {
            /// A function that combines the elements of an array into one.
            ///
            /// Sums along an axis, in the type that numpy chooses:
            ///
            /// ```
            /// use gpuarray::{DeviceArray, function::Reduction};
            ///
            /// # fn main() -> gpuarray::Result<()> {
            /// # let device = gpuarray::open(gpuarray::Choice::Host)?.device(0)?;
            /// let x = DeviceArray::from_shaped(&device, &[2, 2], &[1i16, 2, 3, 4])?.into_untyped();
            /// let compute = Reduction::Sum.numpy_compute(x.dtype());
            /// let rows = x.reduce(Reduction::Sum, compute, Some(&[1]), false)?;
            /// assert_eq!(DeviceArray::<i64>::from_untyped(rows)?.to_vec()?, [3, 7]);
            /// # Ok(())
            /// # }
            /// ```
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum Reduction { $($(#[doc = $doc])+ $variant,)* }
        }

        impl Reduction {
            /// Returns the name in CUDA C and in the names of kernels.
            pub const fn name(self) -> &'static str {
                match self { $(Reduction::$variant => $text,)* }
            }

            /// Returns the type of the value.
            pub const fn value(self) -> ValueType {
                match self { $(Reduction::$variant => ValueType::$value,)* }
            }

            /// Returns the value that the reduction starts with.
            pub const fn start(self) -> Start {
                match self { $(Reduction::$variant => Start::$start,)* }
            }

            /// Returns the function that combines two elements in the type of the value.
            pub const fn combine(self) -> BinaryFunction {
                match self { $(Reduction::$variant => BinaryFunction::$combine,)* }
            }
        }
    };
}
reductions!(reduction);

impl Reduction {
    /// Returns the type of the value when the elements are combined in `compute`.
    pub const fn result(self, compute: DType) -> DType {
        self.value().of(compute)
    }

    /// Returns the type in which numpy combines elements of type `input`. Sums and products of truth values
    /// and of integers narrower than 64 bits are 64-bit integers; everything else keeps its type.
    pub const fn numpy_compute(self, input: DType) -> DType {
        match (self, input.kind()) {
            (Reduction::Sum | Reduction::Product, Kind::Bool | Kind::Signed) => DType::Int64,
            (Reduction::Sum | Reduction::Product, Kind::Unsigned) => DType::UInt64,
            _ => input,
        }
    }

    /// Returns true if the reduction of no elements has a value.
    pub const fn has_identity(self) -> bool {
        matches!(self.start(), Start::Zero | Start::One)
    }
}
