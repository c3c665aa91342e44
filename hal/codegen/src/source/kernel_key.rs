//! The interface of a family's kernels.

use super::ctype::Prelude;
use hal::dtype::DType;
use hal::operation::Input;

/// The key of a family's kernels: everything that affects their code, and the generator of the
/// code.
pub(super) trait KernelKey {
    /// Returns the prefix of the kernels' names, which is unique among all keys of all families.
    fn name(&self) -> String;

    /// Returns the suffix of each kernel's name.
    fn suffixes(&self) -> &'static [&'static str] {
        &[""]
    }

    /// Returns the parts of the prelude that the kernels use.
    fn prelude(&self) -> Prelude;

    /// Returns the definitions of the kernels, each named `name` plus a suffix.
    fn kernels(&self, name: &str) -> String;
}

/// The type of a kernel's input: an array of a dtype, or a scalar of a dtype.
pub(super) type InputType = Input<DType, DType>;
