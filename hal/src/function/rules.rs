//! The parts of a row in the table of functions: kinds of elements, types, cost.

use crate::dtype::{DType, Kind};

/// A set of kinds of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    const fn of(kinds: &[Kind]) -> Kinds {
        let (mut set, mut index) = (0, 0);
        while index < kinds.len() {
            set |= 1 << kinds[index] as u8;
            index += 1;
        }
        Kinds(set)
    }

    /// Integers.
    pub const INTEGERS: Kinds = Kinds::of(&[Kind::Unsigned, Kind::Signed]);
    /// Truth values and integers.
    pub const WHOLE: Kinds = Kinds::of(&[Kind::Bool, Kind::Unsigned, Kind::Signed]);
    /// Integers and floating-point numbers.
    pub const ORDERED: Kinds = Kinds::of(&[Kind::Unsigned, Kind::Signed, Kind::Float]);
    /// Floating-point numbers.
    pub const FLOAT: Kinds = Kinds::of(&[Kind::Float]);
    /// All except complex numbers and records.
    pub const REAL: Kinds = Kinds::WHOLE.with(Kinds::FLOAT);
    /// All except truth values and records.
    pub const ARITHMETIC: Kinds = Kinds::ORDERED.with(Kinds::of(&[Kind::Complex]));
    /// All except records.
    pub const NUMBERS: Kinds = Kinds::REAL.with(Kinds::ARITHMETIC);
    /// All kinds.
    pub const EVERY: Kinds = Kinds::NUMBERS.with(Kinds::of(&[Kind::Opaque]));

    const fn with(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Returns true if the set contains `kind`.
    #[inline]
    pub const fn contain(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }
}

/// The type that a function computes in, from the common type of its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compute {
    /// The common type.
    Own,
    /// [`DType::inexact`] of the common type.
    Inexact,
    /// The common type if it is inexact, else `Float64`.
    Double,
    /// The common type; `Int8` for bool.
    Integer,
}

impl Compute {
    /// Returns the type for arguments of the common type `common`.
    #[inline]
    pub const fn of(self, common: DType) -> DType {
        match self {
            Compute::Inexact => common.inexact(),
            Compute::Double if !common.is_inexact() => DType::Float64,
            Compute::Integer if matches!(common, DType::Bool) => DType::Int8,
            _ => common,
        }
    }
}

/// The type of a function's value, from the type that it computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// The type that the function computes in.
    Own,
    /// [`DType::real`] of that type.
    Real,
    /// A truth value.
    Bool,
}

impl ValueType {
    /// Returns the type for a function that computes in `compute`.
    #[inline]
    pub const fn of(self, compute: DType) -> DType {
        match self {
            ValueType::Own => compute,
            ValueType::Real => compute.real(),
            ValueType::Bool => DType::Bool,
        }
    }
}

/// The number of instructions of a function on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Few: memory bandwidth limits the speed.
    Light,
    /// Few for real numbers, many for complex ones.
    LightReal,
    /// Many, in the inexact types that the function computes in.
    Heavy,
    /// Many in every type, integers included.
    Heaviest,
}

impl Cost {
    /// Returns true if the function takes many instructions in `compute`.
    pub const fn is_long(self, compute: DType) -> bool {
        match self {
            Cost::Light => false,
            Cost::LightReal => compute.is_complex(),
            Cost::Heavy | Cost::Heaviest => true,
        }
    }
}

/// The way in which programs use a function. It decides which code is compiled ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Usage {
    /// One of the four arithmetic operations, the most frequent: also on slices, broadcast rows and
    /// long arrays.
    Arithmetic,
    /// An operator whose first argument may be a number.
    Operator,
    /// A function that many programs call.
    Call,
    /// A function that few programs call: ahead of time it is compiled for few dtypes.
    Seldom,
}

impl Usage {
    /// Returns the usage given in a row of the table; [`Usage::Call`] if it is omitted.
    pub(super) const fn of(given: &[Usage]) -> Usage {
        match given {
            [usage, ..] => *usage,
            [] => Usage::Call,
        }
    }
}

/// The start value of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero.
    Zero,
    /// One.
    One,
    /// The least value of the type. The reduction of no elements does not have a value.
    Lowest,
    /// The greatest value of the type. The reduction of no elements does not have a value.
    Highest,
}

/// Returns the first of the names, if any.
pub(super) const fn first(names: &[&'static str]) -> Option<&'static str> {
    match names {
        [name, ..] => Some(*name),
        [] => None,
    }
}
