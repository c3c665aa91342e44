//! Objects that a text creates in its own memory: `new (address) T`. NVIDIA's compilers declare the operator
//! without a header.

use crate::tokens::Tokens;

/// The header that declares the operator.
pub(crate) const HEADER: &str = "cuda_c/placement.h";

/// True for a text that uses the operator, and does not declare it.
pub(crate) fn is_missing(tokens: &Tokens<'_>) -> bool {
    let mut is_used = false;
    for at in (0..tokens.len()).filter(|&at| tokens.at(at) == "new") {
        let is_operator = at > 0 && tokens.at(at - 1) == "operator";
        if is_operator && is_of_place(tokens, at + 1) {
            return false;
        }
        is_used |= !is_operator && tokens.at(at + 1) == "(" && tokens.is_of_program(at);
    }
    is_used
}

/// True for parameters of which another one follows the size, and is an address.
fn is_of_place(tokens: &Tokens<'_>, open: usize) -> bool {
    let Some(close) = tokens.partner(open).filter(|_| tokens.at(open) == "(") else { return false };
    let comma = (open..close).find(|&at| tokens.at(at) == ",");
    comma.is_some_and(|at| tokens.at(at + 1) == "void" && tokens.at(at + 2) == "*")
}

#[cfg(test)]
mod tests {
    use super::is_missing;
    use crate::tokens::Tokens;

    #[test]
    fn the_operator_is_declared_where_it_is_used_and_not_declared() {
        for (text, expected) in [
            ("void f(int *p) { new (p) int(3); }", true),
            ("void f(int *p) { ::new ((void *)p) int; }", true),
            ("void *operator new(size_t); void f(int *p) { new (p) int; }", true),
            ("int *f() { return new int(3); }", false),
            ("# 1 \"/usr/include/x\" 1 3\nvoid f(int *p) { new (p) int; }", false),
            (
                "inline void *operator new(size_t, void *p) { return p; } void f(int *p) { new (p) int; }",
                false,
            ),
        ] {
            assert_eq!(is_missing(&Tokens::of(text)), expected, "{text}");
        }
    }
}
