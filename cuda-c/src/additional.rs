//! Headers that few texts need: for functions, operators and types that NVIDIA's compilers declare without a header.

use crate::ptx;
use crate::tokens::Tokens;
use crate::tree::{Declared, Items};

/// Returns the headers that a preprocessed text needs besides the prelude, by name. Few texts need one.
pub fn additional_headers(text: &str, is_hip: bool) -> Vec<&'static str> {
    let tokens = Tokens::of(text);
    let needed = [
        (ptx::HEADER, !is_hip && ptx::is_used(&tokens)),
        ("cuda_c/alloca.h", lacks_alloca(&tokens)),
        ("cuda_c/placement.h", lacks_placement(&tokens)),
        ("cuda_c/lists.h", has_loops_over_lists(&tokens)),
    ];
    needed.into_iter().filter(|it| it.1).map(|it| it.0).collect()
}

/// Returns true for a text that calls `alloca` and does not define it.
fn lacks_alloca(tokens: &Tokens<'_>) -> bool {
    let is_called = |at: usize| {
        let is_member = at > 0 && matches!(tokens.at(at - 1), "." | ">" | "::");
        tokens.at(at) == "alloca"
            && tokens.at(at + 1) == "("
            && !is_member
            && tokens.is_of_program(at)
    };
    let is_own = |it: &Declared| it.name(tokens) == Some("alloca");
    (0..tokens.len()).any(is_called) && !Items::of(tokens).all.iter().any(is_own)
}

/// Returns true for a text that uses placement `new`, `new (address) T`, before it declares the operator.
fn lacks_placement(tokens: &Tokens<'_>) -> bool {
    let is_operator = |at: usize| at > 0 && tokens.at(at - 1) == "operator";
    let is_used = |at: usize| {
        tokens.at(at) == "new"
            && tokens.at(at + 1) == "("
            && !is_operator(at)
            && tokens.is_of_program(at)
    };
    let Some(first) = (0..tokens.len()).find(|&at| is_used(at)) else { return false };
    // True for each enclosing brace of a class or function. An operator declared inside one does not count.
    let mut inner: Vec<bool> = Vec::new();
    for at in 0..first {
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

/// Returns true for a text with a loop over a list in braces, `for (int x : {1, 2})`.
fn has_loops_over_lists(tokens: &Tokens<'_>) -> bool {
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
    use super::{has_loops_over_lists, lacks_alloca, lacks_placement};
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
            assert_eq!(lacks_alloca(&Tokens::of(text)), expected, "{text}");
        }
    }

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
                "void f(int *p) { new (p) int; } inline void *operator new(size_t, void *p) { return p; }",
                true,
            ),
            (
                "inline void *operator new(size_t, void *p) { return p; } void f(int *p) { new (p) int; }",
                false,
            ),
        ] {
            assert_eq!(lacks_placement(&Tokens::of(text)), expected, "{text}");
        }
    }

    #[test]
    fn loops_over_lists_are_found() {
        for (text, expected) in [
            ("void k() { for (int x : {1, 2}) y += x; }", true),
            ("void k() { for (int x : y) { case 1: { z(); } } }", false),
            ("struct S { S() : a{1} {} }; void k() { for (int i = 0; i < 2; ++i) {} }", false),
            ("# 1 \"/x.h\" 1 3\nvoid k() { for (int x : {1, 2}) y += x; }", false),
        ] {
            assert_eq!(has_loops_over_lists(&Tokens::of(text)), expected, "{text}");
        }
    }
}
