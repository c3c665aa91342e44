//! The specification of an operation's kernels, which is the key of a kernel cache.

use super::kernel_key::KernelKey;
use super::prelude::Prelude;
use super::{elementwise, indexed, nonzero, product, random, reduce, scan, sequence, sort};
use smallvec::SmallVec;

/// What of an operation changes its compiled code: function, dtypes, scalar inputs, the
/// class of its layout and the width of its indices; never values, nor addresses and extents
/// but for the class that they make possible.
///
/// Operations that differ only in how they are written share one: a copy between equal types
/// is a copy of words, a fill converts its value before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelSpec(Family);

/// The key of the kernels, by the family that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Elementwise(elementwise::Key),
    Reduce(reduce::Key),
    Scan(scan::Key),
    Nonzero(nonzero::Key),
    Gather(indexed::GatherKey),
    Scatter(indexed::ScatterKey),
    Sequence(sequence::Key),
    Random(random::Key),
    Sort(sort::Key),
    Product(product::Key),
}

impl From<Family> for KernelSpec {
    fn from(family: Family) -> KernelSpec {
        KernelSpec(family)
    }
}

impl KernelSpec {
    /// Returns the names of the kernels in the source, which no other specification has.
    pub fn kernel_names(&self) -> SmallVec<[String; 3]> {
        let name = self.name();
        self.key().suffixes().iter().map(|suffix| format!("{name}{suffix}")).collect()
    }

    /// Returns the translation unit with the kernels: CUDA C without any header.
    pub fn source(&self) -> String {
        unit([*self])
    }

    fn name(&self) -> String {
        format!("gpuarray_{}", self.key().name())
    }

    fn key(&self) -> &dyn KernelKey {
        match &self.0 {
            Family::Elementwise(key) => key,
            Family::Reduce(key) => key,
            Family::Scan(key) => key,
            Family::Nonzero(key) => key,
            Family::Gather(key) => key,
            Family::Scatter(key) => key,
            Family::Sequence(key) => key,
            Family::Random(key) => key,
            Family::Sort(key) => key,
            Family::Product(key) => key,
        }
    }
}

/// Returns one translation unit with the kernels of several specifications, which must differ.
pub fn unit(specs: impl IntoIterator<Item = KernelSpec>) -> String {
    let mut prelude = Prelude::NONE;
    let mut kernels = String::new();
    for spec in specs {
        prelude = prelude.with(spec.key().prelude());
        kernels.push('\n');
        kernels.push_str(&spec.key().kernels(&spec.name()));
    }
    prelude.enclose(&kernels)
}
