//! Moves qualifiers of CUDA C to places where the system's C++ compiler accepts them.
//!
//! For NVIDIA's compilers `__shared__` is an attribute, so other attributes may follow it: `__shared__
//! alignas(16) float s[4]`. Here it is a specifier, which attributes have to precede. `__noinline__` is a
//! macro in CUDA's headers, but also a word in attributes of system headers, `__attribute__((__noinline__))`;
//! it is therefore not a macro here.

use crate::tokens::{Tokens, edited};

/// The token that replaces `__shared__` after preprocessing.
const SHARED: &str = "thread_local";
const NOINLINE: &str = "__noinline__";

/// Returns a text with all qualifiers in places that a C++ compiler accepts. Returns `None` if nothing has to
/// move.
pub(crate) fn placed(tokens: &Tokens<'_>) -> Option<String> {
    let mut edits = Vec::new();
    let mut replace = |at: usize, replacement: &str| {
        edits.push((tokens.all[at].start, tokens.all[at].end, replacement.to_owned()));
    };
    let mut at = 0;
    while at < tokens.len() {
        match tokens.at(at) {
            SHARED => {
                let end = behind_attributes(tokens, at + 1);
                if end > at + 1 {
                    let gap = |it: usize| if tokens.is_adjacent(it) { "" } else { " " };
                    let attributes: Vec<&str> =
                        (at + 1..end).flat_map(|it| [tokens.at(it), gap(it)]).collect();
                    replace(at, &format!("{} {SHARED}", attributes.concat()));
                    // Line markers between the tokens stay.
                    (at + 1..end).for_each(|it| replace(it, ""));
                }
                at = end;
            }
            NOINLINE => {
                let is_in_attribute = at > 0 && matches!(tokens.at(at - 1), "(" | "," | "::");
                if !is_in_attribute {
                    replace(at, "__attribute__((noinline))");
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    (!edits.is_empty()).then(|| edited(tokens.text, edits))
}

/// Returns the token after a sequence of C++ attributes.
fn behind_attributes(tokens: &Tokens<'_>, mut at: usize) -> usize {
    loop {
        let last = match (tokens.at(at), tokens.at(at + 1)) {
            ("alignas", "(") => tokens.partner(at + 1),
            ("[", "[") => tokens.partner(at),
            _ => None,
        };
        match last {
            Some(last) => at = last + 1,
            None => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::placed;
    use crate::tokens::Tokens;

    #[test]
    fn attributes_come_before_the_specifiers() {
        for (text, expected) in [
            (
                "{ thread_local alignas(16)\n[[maybe_unused]] float s[4]; }",
                "{ alignas(16) [[maybe_unused]] thread_local \n float s[4]; }",
            ),
            ("{ thread_local alignas(T...) int s; }", "{ alignas(T...) thread_local int s; }"),
            ("__noinline__ int f();", "__attribute__((noinline)) int f();"),
        ] {
            let squeezed = |text: &str| text.replace("  ", " ").replace("  ", " ");
            let found = placed(&Tokens::of(text)).map(|it| squeezed(&it));
            assert_eq!(found.as_deref(), Some(expected));
        }
        for text in [
            "thread_local float s[4];",
            "alignas(16) thread_local float s[4];",
            "extern thread_local float s[];",
            "__attribute__((__noinline__)) int f();",
            "[[gnu::__noinline__]] int f();",
            "thread_local alignas(",
        ] {
            assert_eq!(placed(&Tokens::of(text)), None, "{text}");
        }
    }
}
