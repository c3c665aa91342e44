//! A front end for CUDA C: text in, text for a C++ compiler out.
//!
//! The crate reads texts that a preprocessor has written, with the language's headers ([`HEADERS`]) before the
//! program. [`unit()`] writes what a C++ compiler takes for such a text. The other functions are for the compiler's
//! answers: [`program_messages`] turns a log into messages about the program, [`without_constexpr`] and
//! [`refused_variants`] say what to change in a text that the compiler refuses.
//!
//! The crate runs no compiler and reads no file. `include/gpuarray_abi.h` is what a compiled unit and its executor know of
//! each other.

mod alloca;
mod constant_functions;
mod declarations;
pub mod dialects;
mod headers;
mod indices;
mod known_names;
mod messages;
mod placement;
mod ptx;
mod qualifiers;
mod regions;
mod shared_pointers;
mod signatures;
mod tokens;
mod unnamed_classes;
mod volatile_writes;

pub use constant_functions::without_constexpr;
pub use declarations::{CONSTANT_OF_FUNCTION, CONSTANT_PREFIX, Unit, unit};
pub use headers::{HEADERS, PREFIX as HEADER_PREFIX, PRELUDE, header_text};
pub use indices::{constant_indices, constant_indices_message};
pub use messages::program_messages;
pub use regions::refused_variants;
pub use signatures::{Number, Signature, SignatureParameter, Signatures, ValueType};

/// A fingerprint of this crate's sources: units of another build were written by other rules.
pub const SOURCES: &str = env!("GPUARRAY_SOURCES");

/// Returns the headers that a preprocessed text needs besides the prelude, by name. Few texts need one.
pub fn additional_headers(text: &str, is_hip: bool) -> Vec<&'static str> {
    let tokens = tokens::Tokens::of(text);
    let needed = [
        (ptx::HEADER, !is_hip && ptx::is_used(&tokens)),
        (alloca::HEADER, alloca::is_missing(&tokens)),
        (placement::HEADER, placement::is_missing(&tokens)),
    ];
    needed.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}
