//! A front end for CUDA C: it translates a program's text to a text for a C++ compiler.
//!
//! [`dialects`] adapts a program written for nvcc to a run-time compiler or to the host's. [`Signatures`] reads the
//! parameters of kernels from such a program. [`diagnostics()`] turns any compiler's log into messages about that
//! program.
//!
//! For the host, the crate then reads the text that a preprocessor has written, with the language's headers
//! ([`headers()`]) before the program. [`unit()`] turns it into a text for a C++ compiler. [`program_messages`] turns the
//! compiler's log into messages about the program; [`without_constexpr`] and [`refused_variants`] say how to change a
//! text that the compiler refuses. [`defined_out_of_range`] makes conversions and shifts of integers in a unit
//! return a GPU's results.
//!
//! The modules and the files in their folders have an order: each names only those before it, and a test checks this.
//! [`headers()`] and `tokens` come first, then `tree`; then the passes and readers; then `declarations`, `messages` and
//! `diagnostics`.
//!
//! The crate runs no compiler. `include/gpuarray_abi.h` declares the interface between a compiled unit and its
//! executor.

mod additional;
mod constant_functions;
mod declarations;
mod diagnostics;
pub mod dialects;
mod element_uses;
mod headers;
mod indices;
mod known_names;
mod messages;
mod out_of_range;
mod ptx;
mod qualifiers;
mod regions;
mod shared_pointers;
mod signatures;
mod temporary;
mod throws;
mod tokens;
mod tree;
mod unnamed_classes;
mod volatile_writes;

pub use additional::additional_headers;
pub use constant_functions::without_constexpr;
pub use declarations::{CONSTANT_OF_FUNCTION, CONSTANT_PREFIX, Choices, Unit, unit};
pub use diagnostics::{GENERATED, diagnostics, with_carets};
pub use element_uses::{ArrayUses, element_uses, is_only_read};
pub use headers::{PREFIX as HEADER_PREFIX, PRELUDE, header_text, headers};
pub use indices::{constant_indices, constant_indices_message};
pub use messages::{has_changed_meaning, program_messages, without_changed_meanings};
pub use out_of_range::defined_out_of_range;
pub use regions::refused_variants;
pub use signatures::{Number, Signature, SignatureParameter, Signatures, ValueType};
pub use temporary::{TemporaryFolder, write_headers};
pub use volatile_writes::VolatileLines;

/// A fingerprint of this crate's sources: units of another build were written by other rules.
pub const SOURCES: &str = env!("GPUARRAY_SOURCES");
