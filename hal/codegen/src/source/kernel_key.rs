//! What the kernels of a family are generated from.

use super::prelude::Prelude;
use hal::dtype::DType;
use hal::operation::Input;

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

/// What a kernel takes as one of its inputs: the address of elements of a type, or a value of one.
pub(super) type InputType = Input<DType, DType>;
