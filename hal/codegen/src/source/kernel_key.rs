//! What the kernels of a family are generated from.

use super::prelude::Prelude;
use hal::dtype::DType;

/// The key of a family's kernels: everything that changes their code, and the code itself.
pub(super) trait KernelKey {
    /// Returns the name that the names of the kernels begin with. No other key of any family
    /// has it.
    fn name(&self) -> String;

    /// Returns what follows the name in the name of each kernel.
    fn suffixes(&self) -> &'static [&'static str] {
        &[""]
    }

    /// Returns the parts of the prelude that the kernels use.
    fn prelude(&self) -> Prelude;

    /// Returns the definitions of the kernels, whose names are `name` and a suffix each.
    fn kernels(&self, name: &str) -> String;
}

/// What a kernel takes as one of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum InputType {
    /// No input.
    Unused,
    /// A value of this type among the arguments.
    Scalar(DType),
    /// The address of elements of this type.
    Array(DType),
}
