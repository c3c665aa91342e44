//! Compilers of CUDA C that are present at run time.

use crate::error::Result;
use std::fmt::Debug;

/// What is to be compiled, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Compilation<'a> {
    /// The text.
    pub text: &'a str,
    /// The name that messages show in place of a file's.
    pub name: &'a str,
    /// The device's architecture: `sm_90`, `gfx90a:xnack-`.
    pub target: &'a str,
    /// Options of the compiler, besides the architecture.
    pub options: &'a [&'a str],
}

/// Code for a device, and what the compiler had to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// A cubin, PTX text or code object.
    pub code: Vec<u8>,
    /// Warnings; empty without any.
    pub log: String,
}

/// A compiler that is present at run time.
pub trait Compiler: Send + Sync + Debug {
    /// Name and version: part of the key of everything that it compiled.
    fn identity(&self) -> &str;

    /// Compiles CUDA C.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's log as the detail.
    fn compile(&self, compilation: &Compilation<'_>) -> Result<Compiled>;
}
