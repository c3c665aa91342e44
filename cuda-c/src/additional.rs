//! Placement `new`: `new (address) T`. NVIDIA's compilers declare the operator without a header.

use crate::tokens::Tokens;

/// The header that declares the operator.
pub(crate) const HEADER: &str = "cuda_c/placement.h";

/// Returns true for a text that uses the operator without declaring it.
pub(crate) fn is_missing(tokens: &Tokens<'_>) -> bool {
    let is_operator = |at: usize| at > 0 && tokens.at(at - 1) == "operator";
    let is_used = |at: usize| {
        tokens.at(at) == "new"
            && tokens.at(at + 1) == "("
            && !is_operator(at)
            && tokens.is_of_program(at)
    };
    if !(0..tokens.len()).any(is_used) {
        return false;
    }
    // True for each enclosing brace of a class or function. An operator declared inside one does not count.
    let mut inner: Vec<bool> = Vec::new();
    for at in 0..tokens.len() {
        match tokens.at(at) {
            "{" => inner.push(!tokens.is_of_scope(at)),
            "}" => drop(inner.pop()),
            "new" if is_operator(at) && !inner.contains(&true) && is_of_place(tokens, at) => {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// Returns true for a global `operator new` that can be called with only a size and an address.
fn is_of_place(tokens: &Tokens<'_>, new: usize) -> bool {
    let open = new + 1;
    let Some(close) = tokens.partner(open).filter(|_| tokens.at(open) == "(") else { return false };
    // `void *S::operator new`, but not `void *::operator new`
    let is_of_class = new > 2 && tokens.at(new - 2) == "::" && tokens.is_word(new - 3);
    let mut commas = (open..close).filter(|&at| tokens.at(at) == ",");
    let Some(comma) = commas.next() else { return false };
    let has_more = commas.next().is_some_and(|more| (more..close).all(|at| tokens.at(at) != "="));
    !is_of_class && !has_more && tokens.at(comma + 1) == "void" && tokens.at(comma + 2) == "*"
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
                "void *operator new(size_t, void *p, int q); void f(int *p) { new (p) int; }",
                true,
            ),
            (
                "void *operator new(size_t, void *p, int q = 0); void f(int *p) { new (p) int; }",
                false,
            ),
            (
                "struct S { static void *operator new(size_t, void *p) { return p; } };
                 void f(int *p) { new (p) int; }",
                true,
            ),
            (
                "struct S { static void *operator new(size_t, void *); };
                 void *S::operator new(size_t, void *p) { return p; } void f(int *p) { new (p) int; }",
                true,
            ),
            (
                "extern \"C++\" { void *operator new(size_t, void *p); } void f(int *p) { new (p) int; }",
                false,
            ),
            (
                "inline void *operator new(size_t, void *p) { return p; } void f(int *p) { new (p) int; }",
                false,
            ),
        ] {
            assert_eq!(is_missing(&Tokens::of(text)), expected, "{text}");
        }
    }
}
