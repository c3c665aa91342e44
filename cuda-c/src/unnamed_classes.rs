//! Names unnamed classes that have static members: `typedef struct { static const int n = 4; } Tile;`.
//!
//! NVIDIA's compilers accept such classes, GCC does not. If a declarator follows the class, the program
//! refers to the class by the declarator, so the class can get a name.

use crate::tokens::Tokens;

/// Returns the insertions, in order.
pub(crate) fn edits(tokens: &Tokens<'_>) -> Vec<(usize, usize, String)> {
    let is_class = |&at: &usize| {
        matches!(tokens.at(at), "struct" | "class" | "union") && tokens.is_of_program(at)
    };
    let name = |at: usize| {
        let open = body(tokens, at + 1)?;
        let close = tokens.partner(open)?;
        let has_declarator = tokens.is_word(close + 1) || tokens.at(close + 1) == "*";
        let start = tokens.all[open].start;
        (has_declarator && has_static(tokens, open, close))
            .then(|| (start, start, format!(" gpuarray_unnamed_{at} ")))
    };
    (0..tokens.len()).filter(is_class).filter_map(name).collect()
}

/// Returns the opening brace of the body of an unnamed class, after its attributes.
fn body(tokens: &Tokens<'_>, mut at: usize) -> Option<usize> {
    loop {
        match tokens.at(at) {
            "{" => return Some(at),
            "__attribute__" | "alignas" => at = tokens.partner(at + 1)? + 1,
            _ => return None,
        }
    }
}

/// Returns true if the class itself has a static member. Members of nested functions and classes do not
/// count.
fn has_static(tokens: &Tokens<'_>, open: usize, close: usize) -> bool {
    let mut at = open + 1;
    while at < close {
        match tokens.at(at) {
            "static" => return true,
            "{" | "(" | "[" => at = tokens.partner(at).unwrap_or(close),
            _ => {}
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::edits;
    use crate::tokens::Tokens;

    #[test]
    fn classes_with_static_members_and_a_declarator_get_a_name() {
        for (text, count) in [
            ("typedef struct { static const int x = 1; } T;", 1),
            (
                "struct U { struct __attribute__((aligned(8))) { static const int q = 4; } in, *p; };",
                1,
            ),
            ("class { public: static int f() { return 1; } } *it;", 1),
            ("typedef struct { int f() { static int n; return n; } } T;", 0),
            ("typedef struct T { static const int x = 1; } T;", 0),
            ("union { struct { int a; }; float b; } u; struct { static", 0),
        ] {
            assert_eq!(edits(&Tokens::of(text)).len(), count, "{text}");
        }
    }
}
