//! The dtypes of the catalogue: what shares code, and what programs use most.

use crate::source::ctype::{Frequency, frequency};
use hal::dtype::DType::{Complex64, Complex128, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
use hal::dtype::{DType, Kind};

/// Dtypes whose functions share code.
pub(super) struct DTypeFamily {
    pub(super) name: &'static str,
    kinds: &'static [Kind],
}

impl DTypeFamily {
    /// Returns the dtypes of the family.
    pub(super) fn dtypes(&self) -> impl Iterator<Item = DType> + '_ {
        DType::ALL.into_iter().filter(|dtype| self.kinds.contains(&dtype.kind()))
    }
}

pub(super) const DTYPE_FAMILIES: [DTypeFamily; 4] = [
    DTypeFamily { name: "float", kinds: &[Kind::Float] },
    DTypeFamily { name: "complex", kinds: &[Kind::Complex] },
    DTypeFamily { name: "signed", kinds: &[Kind::Bool, Kind::Signed] },
    DTypeFamily { name: "unsigned", kinds: &[Kind::Unsigned] },
];

/// Returns true for the dtypes that programs calculate with most.
pub(super) fn is_main(dtype: DType) -> bool {
    frequency(dtype) == Frequency::Often
}

/// Returns true for the dtypes that programs seldom use.
pub(super) fn is_rare(dtype: DType) -> bool {
    frequency(dtype) == Frequency::Seldom
}

/// What moves the elements of every dtype.
pub(super) const WORDS: [DType; 6] = [UInt8, UInt16, UInt32, UInt64, Complex64, Complex128];

/// What indices are made of.
pub(super) const INDICES: [DType; 2] = [Int32, Int64];
