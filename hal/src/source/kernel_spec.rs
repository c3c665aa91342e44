//! The key of a kernel cache: what of an operation changes its code.

use super::plan::Plan;
use super::prelude::{CLOSE, Fragments};
use super::{elementwise, indexed, reduce, scan, sequence};
use crate::error::Result;
use crate::operation::Operation;
use smallvec::SmallVec;

/// What of an operation changes its compiled code: function, dtypes, scalar inputs, the
/// class of its layout and the width of its indices; never values, nor addresses and extents
/// but for the class that they make possible.
///
/// Operations that differ only in how they are written share one: a copy between equal types
/// is a copy of words, a fill converts its value before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec(Key);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Elementwise(elementwise::Key),
    Reduce(reduce::Key),
    Scan(scan::Key),
    Gather(indexed::GatherKey),
    Scatter(indexed::ScatterKey),
    Sequence(sequence::Key),
}

impl Spec {
    /// The specification of an operation.
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    pub fn of(operation: &Operation) -> Result<Spec> {
        Ok(plan(operation)?.spec())
    }

    /// The names of the kernels in the source, which no other specification has.
    pub fn kernel_names(&self) -> SmallVec<[String; 3]> {
        let name = self.name();
        self.suffixes().iter().map(|suffix| format!("{name}{suffix}")).collect()
    }

    /// The translation unit with the kernels: CUDA C without any header.
    pub fn source(&self) -> String {
        unit([*self])
    }

    fn name(&self) -> String {
        let name = match &self.0 {
            Key::Elementwise(key) => key.name(),
            Key::Reduce(key) => key.name(),
            Key::Scan(key) => key.name(),
            Key::Gather(key) => key.name(),
            Key::Scatter(key) => key.name(),
            Key::Sequence(key) => key.name(),
        };
        format!("gpuarray_{name}")
    }

    /// What follows the name, for each kernel.
    fn suffixes(&self) -> &'static [&'static str] {
        match &self.0 {
            Key::Reduce(key) => key.suffixes(),
            Key::Scan(key) => key.suffixes(),
            _ => &[""],
        }
    }

    fn fragments(&self) -> Fragments {
        match &self.0 {
            Key::Elementwise(key) => key.fragments(),
            Key::Reduce(key) => key.fragments(),
            Key::Scan(key) => key.fragments(),
            Key::Gather(_) | Key::Scatter(_) => Fragments::INDEXED,
            Key::Sequence(key) => key.fragments(),
        }
    }

    fn kernels(&self) -> String {
        let name = self.name();
        match &self.0 {
            Key::Elementwise(key) => key.kernels(&name),
            Key::Reduce(key) => key.kernels(&name),
            Key::Scan(key) => key.kernels(&name),
            Key::Gather(key) => key.kernels(&name),
            Key::Scatter(key) => key.kernels(&name),
            Key::Sequence(key) => key.kernels(&name),
        }
    }
}

/// One translation unit with the kernels of several specifications, which must differ.
pub fn unit(specs: impl IntoIterator<Item = Spec>) -> String {
    let mut fragments = Fragments::NONE;
    let mut kernels = String::new();
    for spec in specs {
        fragments = fragments.with(spec.fragments());
        kernels.push('\n');
        kernels.push_str(&spec.kernels());
    }
    let mut text = fragments.text();
    text.push_str(&kernels);
    text.push_str(CLOSE);
    text
}

/// The plan of an operation.
pub(super) fn plan(operation: &Operation) -> Result<Plan> {
    match operation {
        Operation::Elementwise(it) => elementwise::plan(it),
        Operation::Reduce(it) => reduce::plan(it),
        Operation::Scan(it) => scan::plan(it),
        Operation::Gather(it) => indexed::plan_gather(it),
        Operation::Scatter(it) => indexed::plan_scatter(it),
        Operation::Sequence(it) => sequence::plan(it),
    }
}

/// Each module's key is a specification.
macro_rules! specification {
    ($($family:ident: $key:ty;)*) => {
        $(impl From<$key> for Spec {
            fn from(key: $key) -> Spec {
                Spec(Key::$family(key))
            }
        })*
    };
}

specification! {
    Elementwise: elementwise::Key;
    Reduce: reduce::Key;
    Scan: scan::Key;
    Gather: indexed::GatherKey;
    Scatter: indexed::ScatterKey;
    Sequence: sequence::Key;
}
