//! Loops over lists in braces, `for (int x : {1, 2})`, whose type NVIDIA's compilers declare without a header.

use crate::tokens::Tokens;

/// The header that declares the type.
pub(crate) const HEADER: &str = "cuda_c/lists.h";

/// Returns true for a text with a loop over a list.
pub(crate) fn are_used(tokens: &Tokens<'_>) -> bool {
    let is_loop = |at: usize| {
        let close = tokens.partner(at + 1).unwrap_or(at);
        tokens.at(at) == "for"
            && tokens.is_of_program(at)
            && (at..close).any(|it| tokens.at(it) == ":" && tokens.at(it + 1) == "{")
    };
    (0..tokens.len()).any(is_loop)
}

#[cfg(test)]
mod tests {
    use super::are_used;
    use crate::tokens::Tokens;

    #[test]
    fn loops_over_lists_are_found() {
        for (text, expected) in [
            ("void k() { for (int x : {1, 2}) y += x; }", true),
            ("void k() { for (int x : y) { case 1: { z(); } } }", false),
            ("struct S { S() : a{1} {} }; void k() { for (int i = 0; i < 2; ++i) {} }", false),
            ("# 1 \"/x.h\" 1 3\nvoid k() { for (int x : {1, 2}) y += x; }", false),
        ] {
            assert_eq!(are_used(&Tokens::of(text)), expected, "{text}");
        }
    }
}
