//! Pointers to shared variables that one thread sets and all threads use.
//!
//! `int *p; if (threadIdx.x == 0) p = &counter;` leaves `p` undefined in the other threads. NVIDIA's
//! compilers use the only value that is ever assigned, and programs unknowingly rely on it. A local pointer
//! without an initialiser whose only assignment is the address of a shared variable is therefore initialised
//! with that address.

use crate::tokens::Tokens;

/// The token that replaces `__shared__` after preprocessing.
const SHARED: &str = "thread_local";

/// Returns the initialisers to insert, in order.
pub(crate) fn edits(tokens: &Tokens<'_>) -> Vec<(usize, usize, String)> {
    let mut edits = Vec::new();
    for at in 0..tokens.len() {
        if tokens.at(at) != ";" || !tokens.is_of_program(at) {
            continue;
        }
        if let Some(variable) = declared(tokens, at).and_then(|name| only_value(tokens, name, at)) {
            let start = tokens.all[at].start;
            edits.push((start, start, format!(" = &{variable}")));
        }
    }
    edits
}

/// Returns the name of the pointer in a declaration `type *name;` that ends at this semicolon.
fn declared(tokens: &Tokens<'_>, end: usize) -> Option<usize> {
    let name = end.checked_sub(1)?;
    let star = end.checked_sub(2)?;
    if !tokens.is_word(name) || tokens.at(star) != "*" {
        return None;
    }
    let mut at = star;
    while at > 0 && tokens.is_word(at - 1) {
        at -= 1;
        if matches!(tokens.at(at), "return" | "static" | "extern" | "typedef" | SHARED) {
            return None;
        }
    }
    let begins = at < star && at > 0 && matches!(tokens.at(at - 1), ";" | "{" | "}");
    begins.then_some(name)
}

/// Returns the shared variable whose address is assigned to the pointer, if the enclosing block contains no other
/// assignment.
fn only_value<'a>(tokens: &Tokens<'a>, name: usize, end: usize) -> Option<&'a str> {
    let pointer = tokens.at(name);
    let (open, close) = tokens.block_about(name)?;
    if (open..close).any(|at| tokens.at(at) == "goto") || is_of_switch(tokens, open) {
        // A jump may not bypass an initialiser.
        return None;
    }
    let mut value = None;
    for at in (end..close).filter(|&at| tokens.at(at) == pointer) {
        let changes = matches!(
            (tokens.at(at + 1), tokens.at(at + 2)),
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=") | ("+", "+") | ("-", "-")
        );
        let before = (tokens.at(at - 1), tokens.at(at - 2));
        let is_other = matches!(before.0, "." | "::" | "&")
            || matches!(before, (">", "-") | ("+", "+") | ("-", "-"));
        if changes || is_other {
            return None;
        }
        if tokens.at(at + 1) == "=" && tokens.at(at + 2) != "=" && before.0 != "*" {
            let is_address =
                tokens.at(at + 2) == "&" && tokens.is_word(at + 3) && tokens.at(at + 4) == ";";
            if value.is_some() || !is_address {
                return None;
            }
            value = Some(tokens.at(at + 3));
        }
    }
    value.filter(|variable| is_shared(tokens, variable, open, name))
}

fn is_of_switch(tokens: &Tokens<'_>, open: usize) -> bool {
    let condition = open.checked_sub(1).and_then(|at| tokens.partner(at));
    condition.and_then(|at| at.checked_sub(1)).is_some_and(|at| tokens.at(at) == "switch")
}

/// Returns true for a shared scalar that this block declares before the pointer.
fn is_shared(tokens: &Tokens<'_>, variable: &str, open: usize, before: usize) -> bool {
    let Some(name) =
        (open..before).rfind(|&at| tokens.at(at) == variable && tokens.at(at + 1) == ";")
    else {
        return false;
    };
    let mut at = name;
    while at > open && tokens.is_word(at - 1) {
        at -= 1;
        if tokens.at(at) == SHARED {
            return true;
        }
    }
    false
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
    }
}
