//! Reads loops, and what they read and call.

use super::names::{Names, is_word};
use crate::tokens::Tokens;
use crate::tree::last_of_statement;
use std::ops::Range;

/// The parts of a loop, as ranges of tokens.
pub(super) struct Loop {
    pub(super) condition: Range<usize>,
    /// The repeated statement, including its braces.
    pub(super) body: Range<usize>,
    /// The step of a `for`.
    pub(super) step: Range<usize>,
    /// True for a `do` loop.
    pub(super) is_do: bool,
    pub(super) is_empty: bool,
    /// True for a `for` loop with a step.
    pub(super) counts: bool,
    /// True for `for (;;)`, which only a jump in its body can leave.
    pub(super) is_endless: bool,
}

impl Loop {
    /// Returns the loop of a `while` or `for` in the program.
    pub(super) fn of(tokens: &Tokens<'_>, at: usize) -> Option<Loop> {
        let open = at + 1;
        let close = tokens.partner(open).filter(|_| tokens.at(open) == "(")?;
        if !tokens.is_of_program(at) {
            return None;
        }
        let (condition, step) = match tokens.at(at) {
            "while" => (open + 1..close, close..close),
            _ => {
                let mut semicolons = (open..close).filter(|&at| tokens.at(at) == ";");
                let (first, second) = (semicolons.next()?, semicolons.next()?);
                (first + 1..second, second + 1..close)
            }
        };
        let before = (tokens.at(at) == "while").then(|| body_of_do(tokens, at)).flatten();
        let is_do = before.is_some();
        let body = before.unwrap_or_else(|| {
            close + 1..last_of_statement(tokens, close + 1).map_or(close + 1, |it| it + 1)
        });
        let is_braces = tokens.at(body.start) == "{" && body.len() == 2;
        let condition_is =
            |words: &[&str]| condition.len() == 1 && words.contains(&tokens.at(condition.start));
        Some(Loop {
            is_empty: !is_do && (is_braces || tokens.at(body.start) == ";"),
            counts: !step.is_empty(),
            is_endless: condition.is_empty() || condition_is(&["true", "1"]),
            is_do,
            condition,
            body,
            step,
        })
    }
}

/// Returns the body of a `do`, given its `while`.
pub(super) fn body_of_do(tokens: &Tokens<'_>, at: usize) -> Option<Range<usize>> {
    let last = at.checked_sub(1)?;
    if tokens.at(last) == "}" {
        let open = tokens.partner(last)?;
        return (open > 0 && tokens.at(open - 1) == "do").then_some(open..at);
    }
    // A single statement.
    let mut it = last;
    while tokens.at(it) == ";" && it > 0 || it < last {
        it = match tokens.at(it) {
            ")" | "]" | "}" => tokens.partner(it)?,
            "do" => return Some(it + 1..at),
            ";" | "{" if it < last => return None,
            _ => it,
        };
        it = it.checked_sub(1)?;
    }
    None
}

/// Returns true for the `=` of a simple or compound assignment, but not of a comparison.
pub(super) fn assigns(tokens: &Tokens<'_>, at: usize) -> bool {
    tokens.at(at) == "="
        && tokens.at(at + 1) != "="
        && at.checked_sub(1).is_some_and(|it| !matches!(tokens.at(it), "=" | "!" | "<" | ">"))
}

/// Returns true for a token that reads a volatile variable.
pub(super) fn reads(tokens: &Tokens<'_>, names: &Names<'_>, at: usize) -> bool {
    tokens.is_word(at) && (is_word(tokens.at(at)) || names.has(tokens.at(at)))
}

/// Returns true for a call of a function whose name begins with one of `names`.
pub(super) fn is_call(tokens: &Tokens<'_>, at: usize, names: &[&str]) -> bool {
    tokens.is_word(at)
        && tokens.at(at + 1) == "("
        && names.iter().any(|it| tokens.at(at).starts_with(it))
}
