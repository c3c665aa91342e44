//! The errors of the crate.

use std::fmt;

/// The result of the crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a text does not compile, or a kernel does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No C++ compiler runs. The text lists the compilers that were tried and says what to install.
    NoCompiler(String),
    /// The compiler refuses the text, or an option is unknown. The text is the log.
    Refused(String),
    /// The bytes are not a compiled unit of this version, or the system cannot load them.
    NotAUnit(String),
    /// The system refuses a file, memory or a process.
    System(String),
    /// A kernel has failed.
    Kernel(Failure),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoCompiler(text)
            | Error::Refused(text)
            | Error::NotAUnit(text)
            | Error::System(text) => f.write_str(text),
            Error::Kernel(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// The failure of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, for decisions.
    pub kind: FailureKind,
    /// A sentence that names the kernel, the block and the problem.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The kinds of kernel failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An access to an unmapped or misaligned address.
    Address,
    /// A failed `assert`.
    Assert,
    /// `__trap()`, a division by zero, or an invalid instruction.
    Trap,
    /// Threads wait for each other, or for threads that never arrive.
    Deadlock,
    /// Unordered accesses of two threads. Only launches with checks detect this.
    Race,
    /// Threads of a block at different barriers. Only launches with checks detect this.
    Divergence,
    /// A read of memory that has never been written. Only launches with checks detect this.
    Uninitialised,
    /// A feature that this executor does not support.
    Unsupported,
    /// The launch was interrupted.
    Interrupted,
}
