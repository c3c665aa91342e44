//! The errors of the crate.

use std::fmt;

/// The result of the crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a text does not compile, or a kernel does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No C++ compiler runs; the text says which were looked for and what to install.
    NoCompiler(String),
    /// The compiler refuses the text, or an option is unknown; the text is the log.
    Refused(String),
    /// Bytes that are not a compiled unit of this version, or that the system does not load.
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

/// How a kernel failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, to decide on.
    pub kind: FailureKind,
    /// A sentence that names the kernel, the block and what happened.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The kinds of failures of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An access to an address that is not mapped, or not aligned.
    Address,
    /// A failed `assert`.
    Assert,
    /// `__trap()`, a division by zero, or an instruction that is none.
    Trap,
    /// Threads wait for each other, or for threads that never come.
    Deadlock,
    /// Accesses of two threads that nothing orders; only launches with checks find it.
    Race,
    /// Threads of a block at different barriers; only launches with checks find it.
    Divergence,
    /// A read of memory that nobody has written; only launches with checks find it.
    Uninitialised,
    /// Something that this executor does not have.
    Unsupported,
    /// The launch was interrupted.
    Interrupted,
}
