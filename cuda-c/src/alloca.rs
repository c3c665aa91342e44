//! Stack memory: `alloca`, which NVIDIA's compilers declare without a header.

use crate::tokens::Tokens;
use crate::tree::{Declared, Items};

/// The header that declares the function.
pub(crate) const HEADER: &str = "cuda_c/alloca.h";
const NAME: &str = "alloca";

/// Returns true for a text that calls `alloca` and does not define it.
pub(crate) fn is_missing(tokens: &Tokens<'_>) -> bool {
    let is_called = |at: usize| {
        let is_member = at > 0 && matches!(tokens.at(at - 1), "." | ">" | "::");
        tokens.at(at) == NAME && tokens.at(at + 1) == "(" && !is_member && tokens.is_of_program(at)
    };
    let is_own = |it: &Declared| it.name(tokens) == Some(NAME);
    (0..tokens.len()).any(is_called) && !Items::of(tokens).all.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::is_missing;
    use crate::tokens::Tokens;

    #[test]
    fn the_function_is_declared_where_it_is_called_and_not_declared() {
        for (text, expected) in [
            ("void k() { int *p = (int *)alloca(3); }", true),
            ("void k() { S s; s.alloca(3); S::alloca(3); int alloca = 3; }", false),
            ("void *alloca(int n) { return 0; } void k() { alloca(3); }", false),
            ("namespace n { void *alloca(int n); } void k() { n::alloca(3); }", false),
            ("# 1 \"/x.h\" 1 3\nvoid k() { alloca(3); }", false),
        ] {
            assert_eq!(is_missing(&Tokens::of(text)), expected, "{text}");
        }
    }
}
