//! Compilers of CUDA C that are present at run time.

use hal::error::Result;
use hal::module::Compiled;
use std::fmt::Debug;

/// What is to be compiled, and for what.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compilation<'a> {
    /// The text.
    pub text: &'a str,
    /// The name that messages show in place of a file's.
    pub name: &'a str,
    /// The device's architecture: `sm_90`, `gfx90a:xnack-`.
    pub target: &'a str,
    /// Options of the compiler; one that names the architecture wins over the target.
    pub options: &'a [&'a str],
    /// Expressions that name kernels and variables, `scale<float>` for example, for which
    /// templates are made and the names in the code are given back.
    pub names: &'a [&'a str],
    /// True if the vendor's headers are to be found, as far as they are installed.
    pub headers: bool,
}

/// A compiler that is present at run time.
pub trait Compiler: Send + Sync + Debug {
    /// Returns the name and the version of the compiler for `target`, which are part of the cache's key.
    ///
    /// # Errors
    /// `Unsupported` that says what to install if there is none.
    fn identity(&self, target: &str) -> Result<String>;

    /// Variables of the environment that change what it makes of the same compilation: their values
    /// are part of the key, too.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Compiles CUDA C.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log as the detail; `InvalidArgument` for a text
    /// with a zero byte or a target of another vendor; those of [`Compiler::identity`].
    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled>;
}
