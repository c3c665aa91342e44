//! The parts of a list of parameters, arguments or declarators.

use crate::tokens::{Kind, Tokens};
use std::ops::Range;

/// The maximum number of tokens between `<` and `>`.
pub(crate) const LONGEST: usize = 2000;

/// Splits a range at its commas, ignoring nested brackets and template arguments.
pub(crate) fn parts(tokens: &Tokens<'_>, all: Range<usize>) -> Vec<Range<usize>> {
    let (mut parts, mut at) = (Vec::new(), all.start);
    while at < all.end {
        let end = outside_groups(tokens, at..all.end, &[","]).unwrap_or(all.end);
        parts.push(at..end);
        at = end + 1;
    }
    if at == all.end && !parts.is_empty() {
        parts.push(at..at);
    }
    parts
}

/// Returns a parameter without its default value, or a declarator without the value after `=`.
pub(crate) fn without_value(tokens: &Tokens<'_>, part: Range<usize>) -> Range<usize> {
    part.start..outside_groups(tokens, part.clone(), &["="]).unwrap_or(part.end)
}

/// Returns the first of some marks in a range outside of brackets and template arguments. In a value, template
/// arguments end with a `>` that no operand follows.
fn outside_groups(tokens: &Tokens<'_>, range: Range<usize>, marks: &[&str]) -> Option<usize> {
    let (mut at, mut is_value) = (range.start, false);
    while at < range.end {
        match tokens.at(at) {
            word if marks.contains(&word) => return Some(at),
            "=" => is_value = true,
            "(" | "[" | "{" => at = tokens.partner(at).unwrap_or(at),
            "<" if !is_value || tokens.is_word(at - 1) => {
                let behind = tokens.behind_angles(at, range.end.min(at + LONGEST));
                let is_end = |it: usize| it == range.end || tokens.all[it].kind == Kind::Mark;
                at = behind.filter(|&it| !is_value || is_end(it)).map_or(at, |it| it - 1);
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{parts, without_value};
    use crate::tokens::Tokens;

    #[test]
    fn commas_in_brackets_and_arguments_separate_nothing() {
        for (text, expected) in [
            ("", ""),
            ("int a", "int a"),
            (
                "f<1, 2> a, int (*b)(int, int), c[g(1, 2)]",
                "f<1, 2> a|int (*b)(int, int)|c[g(1, 2)]",
            ),
            ("int a = x < 3, bool b = y > z", "int a|bool b"),
            ("int a = f<1, 2>(), b{1, 2}", "int a|b{1, 2}"),
            ("e<(x == 1)> a = {1, 2}", "e<(x == 1)> a"),
            ("a,", "a|"),
        ] {
            let tokens = Tokens::of(text);
            let parts = parts(&tokens, 0..tokens.len()).into_iter().map(|part| {
                let part = without_value(&tokens, part);
                let token = |at: usize| tokens.all[at];
                part.clone()
                    .next()
                    .map_or("", |_| &text[token(part.start).start..token(part.end - 1).end])
            });
            assert_eq!(parts.collect::<Vec<_>>().join("|"), expected, "{text}");
        }
    }
}
