//! The key of a kernel cache: what of an operation changes its code.

use super::fragment::{CLOSE, Fragments};
use super::plan::Plan;
use super::{elementwise, indexed, reduce, scan, sequence};
use crate::error::Result;
use crate::operation::Operation;
use smallvec::SmallVec;

/// What of an operation changes its compiled code: function, dtypes, scalar inputs, the
/// class of its layout and the width of its indices; never addresses, extents or values.
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
        Ok(Prepared::new(operation)?.spec())
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

/// An operation brought into the form in which it is launched.
#[derive(Debug)]
pub(super) enum Prepared {
    Elementwise(elementwise::Prepared),
    Reduce(reduce::Prepared),
    Scan(scan::Prepared),
    Gather(indexed::PreparedGather),
    Scatter(indexed::PreparedScatter),
    Sequence(sequence::Prepared),
}

impl Prepared {
    pub(super) fn new(operation: &Operation) -> Result<Prepared> {
        Ok(match operation {
            Operation::Elementwise(it) => Self::Elementwise(elementwise::Prepared::new(it)?),
            Operation::Reduce(it) => Self::Reduce(reduce::Prepared::new(it)?),
            Operation::Scan(it) => Self::Scan(scan::Prepared::new(it)?),
            Operation::Gather(it) => Self::Gather(indexed::PreparedGather::new(it)?),
            Operation::Scatter(it) => Self::Scatter(indexed::PreparedScatter::new(it)?),
            Operation::Sequence(it) => Self::Sequence(sequence::Prepared::new(it)?),
        })
    }

    pub(super) fn spec(&self) -> Spec {
        Spec(match self {
            Self::Elementwise(it) => Key::Elementwise(it.key()),
            Self::Reduce(it) => Key::Reduce(it.key()),
            Self::Scan(it) => Key::Scan(it.key()),
            Self::Gather(it) => Key::Gather(it.key()),
            Self::Scatter(it) => Key::Scatter(it.key()),
            Self::Sequence(it) => Key::Sequence(it.key()),
        })
    }

    pub(super) fn launch(&self, plan: &mut Plan) {
        match self {
            Self::Elementwise(it) => it.launch(plan),
            Self::Reduce(it) => it.launch(plan),
            Self::Scan(it) => it.launch(plan),
            Self::Gather(it) => it.launch(plan),
            Self::Scatter(it) => it.launch(plan),
            Self::Sequence(it) => it.launch(plan),
        }
    }
}
