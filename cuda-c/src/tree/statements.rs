//! The ends of statements and values.

use crate::tokens::Tokens;

/// The maximum nesting depth of statements without braces.
const DEEPEST: usize = 64;

/// Returns the last token of a statement; `None` if the text is wrong or nested too deeply.
pub(crate) fn last_of_statement(tokens: &Tokens<'_>, at: usize) -> Option<usize> {
    last(tokens, at, DEEPEST)
}

/// Returns the `,` or `;` after a value, or the bracket that closes around it.
pub(crate) fn value_end(tokens: &Tokens<'_>, from: usize) -> usize {
    let mut at = from;
    while at < tokens.len() && !matches!(tokens.at(at), ";" | "," | ")" | "]" | "}") {
        at = match tokens.at(at) {
            "(" | "[" | "{" => tokens.partner(at).map_or(at + 1, |it| it + 1),
            _ => at + 1,
        };
    }
    at
}

fn last(tokens: &Tokens<'_>, at: usize, depth: usize) -> Option<usize> {
    let depth = depth.checked_sub(1)?;
    let behind_condition = |at: usize| {
        let open = at + if tokens.at(at) == "constexpr" { 1 } else { 0 };
        (tokens.at(open) == "(").then(|| tokens.partner(open)).flatten().map(|it| it + 1)
    };
    match tokens.at(at) {
        "{" => tokens.partner(at),
        "for" | "while" | "switch" => last(tokens, behind_condition(at + 1)?, depth),
        "do" => {
            let body = last(tokens, at + 1, depth)?;
            let last = behind_condition(body + 2)?;
            (tokens.at(body + 1) == "while" && tokens.at(last) == ";").then_some(last)
        }
        "if" => {
            let mut found = last(tokens, behind_condition(at + 1)?, depth)?;
            // Iterates over a chain of `else if`, to avoid deep recursion.
            while tokens.at(found + 1) == "else" {
                let other = found + 2;
                found = match tokens.at(other) {
                    "if" => last(tokens, behind_condition(other + 1)?, depth)?,
                    _ => return last(tokens, other, depth),
                };
            }
            Some(found)
        }
        _ => {
            let mut at = at;
            loop {
                match tokens.at(at) {
                    ";" => return Some(at),
                    "" | ")" | "]" | "}" => return None,
                    "(" | "[" | "{" => at = tokens.partner(at)?,
                    _ => {}
                }
                at += 1;
            }
        }
    }
}
