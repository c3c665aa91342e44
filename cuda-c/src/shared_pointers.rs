//! Pointers to shared variables that one thread sets and all threads use.
//!
//! `int *p; if (threadIdx.x == 0) p = &counter;` leaves `p` undefined in the other threads. NVIDIA's
//! compilers use the only value that is ever assigned, and programs unknowingly rely on it. A local pointer
//! without an initialiser whose only assignment is the address of a shared variable is therefore initialised
//! with that address.

use crate::tokens::Tokens;
use crate::tree::{Declaration, Kind, Scopes};

/// The token that replaces `__shared__` after preprocessing.
const SHARED: &str = "thread_local";

/// Returns the initialisers to insert, in order.
pub(crate) fn edits(tokens: &Tokens<'_>) -> Vec<(usize, usize, String)> {
    if !tokens.of_program().any(|at| address(tokens, at).is_some()) {
        return Vec::new();
    }
    let scopes = Scopes::of(tokens);
    let pointers = scopes.all.iter().filter(|it| it.is_local && tokens.is_of_program(it.name));
    let edit = |pointer: &Declaration| {
        let start = tokens.all[pointer.end].start;
        only_value(tokens, &scopes, pointer).map(|it| (start, start, format!(" = &{it}")))
    };
    pointers.filter(|it| is_pointer(tokens, &scopes, it)).filter_map(edit).collect()
}

/// Returns the variable in `= &variable;`.
fn address(tokens: &Tokens<'_>, sign: usize) -> Option<usize> {
    let is_one = (tokens.at(sign), tokens.at(sign + 1), tokens.at(sign + 3)) == ("=", "&", ";");
    (is_one && tokens.is_word(sign + 2)).then_some(sign + 2)
}

/// Returns true for a local pointer without an initialiser: `type *name;`, or a name for that type.
fn is_pointer(tokens: &Tokens<'_>, scopes: &Scopes<'_, '_>, declared: &Declaration) -> bool {
    let Declaration { of, declarator, end, .. } = declared;
    let is_left = |it: usize| matches!(tokens.at(it), "static" | "extern" | SHARED);
    let is_uninitialised = matches!(tokens.at(*end), ";" | ",") && !of.clone().any(is_left);
    // A name for a type: a pointer.
    let is_alias = |it: usize| {
        let Declaration { kind, of, declarator, .. } = &scopes.all[it];
        let count = |word: &str| {
            of.clone().chain(declarator.clone()).filter(|&it| tokens.at(it) == word).count()
        };
        *kind == Kind::Alias && count("*") == 1 && count("(") + count("[") == 0
    };
    declared.kind == Kind::Variable
        && tokens.at(declared.block) == "{"
        && is_uninitialised
        && match declarator.len() {
            1 => scopes.named(of.end - 1).any(is_alias),
            length => length == 2 && tokens.at(declarator.start) == "*",
        }
}

/// Returns the shared variable whose address is the only value assigned to the pointer.
fn only_value<'a>(
    tokens: &Tokens<'a>,
    scopes: &Scopes<'_, 'a>,
    pointer: &Declaration,
) -> Option<&'a str> {
    let Declaration { block, known, .. } = pointer;
    if (*block..known.end).any(|at| tokens.at(at) == "goto") || is_of_switch(tokens, *block) {
        // A jump may not bypass an initialiser.
        return None;
    }
    let is_pointer = |&at: &usize| {
        let name = tokens.at(pointer.name);
        tokens.at(at) == name && scopes.named(at).any(|it| scopes.all[it].name == pointer.name)
    };
    let mut value = None;
    for at in (pointer.end..known.end).filter(is_pointer) {
        let changes = matches!(
            (tokens.at(at + 1), tokens.at(at + 2)),
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=") | ("+", "+") | ("-", "-")
        );
        let before = (tokens.at(at - 1), tokens.at(at - 2));
        if changes || before.0 == "&" || matches!(before, ("+", "+") | ("-", "-")) {
            return None;
        }
        if tokens.at(at + 1) == "=" && tokens.at(at + 2) != "=" && before.0 != "*" {
            let variable = address(tokens, at + 1).filter(|_| value.is_none())?;
            value = Some(variable);
        }
    }
    // A shared scalar, which is known where the pointer is declared.
    let is_shared = |it: usize| {
        let variable = &scopes.all[it];
        variable.of.clone().any(|it| tokens.at(it) == SHARED)
            && variable.declarator.len() == 1
            && variable.known.contains(&pointer.name)
    };
    value.filter(|&it| scopes.named(it).any(is_shared)).map(|it| tokens.at(it))
}

fn is_of_switch(tokens: &Tokens<'_>, open: usize) -> bool {
    let condition = open.checked_sub(1).and_then(|at| tokens.partner(at));
    condition.and_then(|at| at.checked_sub(1)).is_some_and(|at| tokens.at(at) == "switch")
}

#[cfg(test)]
mod tests {
    use super::edits;
    use crate::tokens::Tokens;

    #[test]
    fn a_pointer_that_has_one_value_begins_with_it() {
        let body = "void f() { thread_local int s; int q; int *p; if (t == 1) { p = &s; s = 0; } g(p); *p = 2; }";
        let text = |edits: Vec<(usize, usize, String)>| {
            edits.into_iter().map(|it| it.2).collect::<Vec<_>>()
        };
        assert_eq!(text(edits(&Tokens::of(body))), [" = &s"]);
        // The preprocessor marks text that comes from a macro of the language.
        let marked = body.replace("thread_local", "\n# 1 \"k.cu\" 3\nthread_local\n# 1 \"k.cu\"\n");
        assert_eq!(text(edits(&Tokens::of(&marked))), [" = &s"]);
        for (from, to) in [
            ("int *p;", "int *p = 0;"),
            ("int *p;", "static int *p;"),
            ("thread_local int s;", "int s; thread_local int r;"),
            ("thread_local int s;", "thread_local int s[4];"),
            ("g(p);", "p = &q;"),
            ("g(p);", "p += 1;"),
            ("g(p);", "++p;"),
            ("g(p);", "h(&p);"),
            ("p = &s;", "p = &s + 1;"),
            ("p = &s;", "a = p;"),
            ("g(p);", "goto end; end:"),
            ("void f()", "void f() { switch (t)"),
        ] {
            assert!(edits(&Tokens::of(&body.replace(from, to))).is_empty(), "{to}");
        }
        // Names for types, other declarators, and names that other scopes declare again.
        for (from, to, expected) in [
            ("int *p;", "typedef int *P; P p;", true),
            ("int *p;", "using P = int *; P p;", true),
            ("int *p;", "int a, *p, *r;", true),
            ("int *p;", "typedef int **P; P p;", false),
            ("int *p;", "typedef int P[4]; P p;", false),
            ("int *p;", "auto p = &q;", false),
            ("int *p;", "T p;", false),
            ("g(p);", "{ int *p; p = &q; p++; }", true),
            ("g(p);", "h([](int *p) { p = 0; }); a.p = &q; b->p = &q;", true),
            ("p = &s;", "int s; p = &s;", false),
            ("p = &s;", "int *p; p = &q;", false),
            ("thread_local int s; int q;", "int s, q; { thread_local int s; }", false),
            ("void f() {", "void f() { thread_local int s; { thread_local int s; }", true),
            ("int *p;", "int *p; int *&r = p;", true),
        ] {
            let text = body.replacen(from, to, 1);
            assert_eq!(!edits(&Tokens::of(&text)).is_empty(), expected, "{text}");
        }
    }
}
